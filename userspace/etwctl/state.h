/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a writer leaves for other runs of etwctl: one small file NAME.json for each session, locked as long as the
 * writer lives, so that a dead writer's file is recognised whatever it says. It must not know how a trace is written.
 *
 * Directory: $ETWCTL_RUN, or /run/etw, or for a user who may not write there $XDG_RUNTIME_DIR/etw.
 */
#ifndef ETWCTL_STATE_H
#define ETWCTL_STATE_H

#include "etwctl.h"

enum state_life {
	STATE_NONE,		/* no file */
	STATE_ALIVE,		/* its writer works */
	STATE_ENDED,		/* its writer ended and said how */
	STATE_DIED,		/* its writer is gone and said nothing */
};

/* One file's contents. Free with state_free(). */
struct state {
	enum state_life life;
	char *path;
	char *name;
	char *dir;
	char *uuid;		/* of the session, hex */
	int pid;
	int64_t started;	/* epoch ns */
	/* Only of STATE_ENDED: */
	char *reason;		/* one sentence */
	int status;		/* exit status of the recording */
	uint64_t events, bytes, lost;
	int64_t ended;
	int fd;
};

/*
 * For a writer: makes and locks the file. Returns it, to be kept open; NULL if no directory can be written (said as a
 * note, the recording works without) or another writer has the name (*@taken is its pid).
 */
struct state *state_make(const char *name, int *taken);
/* Says where the trace goes and that it runs; called again it replaces what was said. */
void state_running(struct state *s, const char *dir, const char *uuid);
/* Says how it ended; @keep: leave the file for status and stop to read, else remove it. */
void state_ended(struct state *s, const char *reason, int status, uint64_t events, uint64_t bytes, uint64_t lost,
		 bool keep);

/* For the others: what is known of a session. @uid: owner to look for in a user's own directory, or -1. */
struct state *state_read(const char *name, int uid);
/* All there are, in a NULL-ended array; free both with state_free_all(). */
struct state **state_all(void);
/* Waits until the writer of an alive state is gone; then reads the file again. -ETIMEDOUT; @timeout_ms -1: for ever. */
int state_wait(struct state *s, int timeout_ms);
/* Removes the file of a writer that is gone. */
void state_remove(struct state *s);
void state_free(struct state *s);
void state_free_all(struct state **all);

#endif
