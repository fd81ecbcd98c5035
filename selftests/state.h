/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is there now, as text that can be compared: of the whole module and this process, or of one session. For tests
 * of calls that must leave nothing behind. It does not know which calls these are.
 */
#ifndef ETW_SELFTEST_STATE_H
#define ETW_SELFTEST_STATE_H

#include <stdbool.h>
#include <stddef.h>

#define STATE_ROOM 8192

struct state {
	size_t len;
	char text[STATE_ROOM];
};

/*
 * Memory the module uses, its live objects by kind, users of it, sessions, how many have each provider enabled, open
 * descriptors of this process. @device: a control file.
 */
void state_module(struct state *state, int device);
/* Settings, sums that only calls change, what is enabled and how, classes, the reader, what poll says. */
void state_session(struct state *state, int session);
/* NULL if both are equal, else the first line that is not, of both. */
const char *state_differs(const struct state *before, const struct state *after);

/* How many objects of a kind of the module's census live now, or -errno. */
long objects_alive(const char *kind);

#endif
