/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One recording: what was asked for, the session and its writer, and what is said at the end. It must not know which
 * verb wants it, nor the format of a trace.
 */
#ifndef ETWCTL_RUN_H
#define ETWCTL_RUN_H

#include <sys/types.h>
#include <time.h>

#include <etw/etw.h>

#include "spec.h"

struct state;

/* Keys of the options that record and start have; the first group is run_option()'s. */
enum {
	OPT_SUBBUF_SIZE = OPT_PRIVATE,
	OPT_SUBBUFS,
	OPT_FLUSH_MS,
	OPT_CLOCK,
	OPT_MAX_SIZE,
	OPT_CIRCULAR,
	OPT_OVERWRITE,
	OPT_ADDRESSES,
	OPT_NAME,
	OPT_EXIT_STATUS,
	OPT_FLIGHT_RECORDER,
};

struct run {
	/* asked for */
	struct specs specs;
	struct etw_session_options session_opts;
	char name[ETW_NAME_SIZE];
	char *dir;		/* absolute */
	const char *shown_dir;	/* as written */
	uint64_t max_size;
	bool circular;
	bool flight_recorder;
	bool pass_status;
	uint64_t duration_ms;
	char **command;
	/* running */
	struct etw_control *control;
	struct etw_session *session;
	struct etw_writer *writer;
	struct state *state;
	int signals;		/* signalfd */
	pid_t child;
	int child_go;		/* closing it without a byte: do not start */
	int child_err;		/* errno of exec, if it failed */
	int child_status;	/* of wait; -1 not ended */
	bool terminal;
	bool background;
	struct timespec began;
	const char *reason;	/* why it ended */
};

/* One option that record and start share: 0, or a status after saying what is wrong. */
int run_option(struct run *r, int key, const char *arg);
/* What can be said to be wrong before anything is made; fills @dir. */
int run_check(struct run *r);
/* The device, the providers, the memory: everything up to but without the session. */
int run_prepare(struct run *r);
/* SIGINT, SIGTERM, SIGHUP and SIGCHLD become readable from @signals. */
int run_signals(struct run *r);
/* The file for status, stop and watch; 0, or a status if the name is in use. */
int run_announce(struct run *r);
/* Makes session and writer and enables the providers; when it returns 0, events flow into the directory. */
int run_begin(struct run *r);
/* Runs the writer until there is a reason to end; then @reason is set. Returns a negative errno of the writer. */
int run_loop(struct run *r);
/*
 * Ends the trace and says what is in it. @err: what run_loop() returned. Returns the exit status, in @stats what was
 * written, in *@sentence (to be freed) why it ended.
 */
int run_end(struct run *r, int err, struct etw_writer_stats *stats, char **sentence);
/* A recording that did not start leaves nothing behind. */
void run_undo(struct run *r, int status);
void run_free(struct run *r);

#endif
