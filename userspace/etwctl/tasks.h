/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of threads as a stream of events tells them: from switches, wake-ups, forks, execs, renames and the rundown.
 * It must not know who prints or sums.
 */
#ifndef ETWCTL_TASKS_H
#define ETWCTL_TASKS_H

#include <etw/etw.h>

struct tasks;

struct tasks *tasks_new(void);
void tasks_free(struct tasks *t);

/*
 * Learns from one event. Call it for every event of the stream in time order, filtered out or not; what the event says
 * holds when it returns (after a switch both names, after a fork the child's, after an exec the new name).
 */
void tasks_event(struct tasks *t, const struct etw_event *event);

/*
 * Name of a thread at this point of the stream, NULL if no event has told it. The idle thread (tid 0) is "swapper/N" of
 * @cpu. Valid until the next tasks_event(). Names stay after the thread's end until its number is used again.
 */
const char *tasks_comm(struct tasks *t, __s32 tid, __u32 cpu);

/* The thread's process, or 0 if no event has told it. */
__s32 tasks_pid(struct tasks *t, __s32 tid);

/*
 * The threads an event is about besides its writer: next of a switch, the woken thread, the child of a fork, the one a
 * block request or rundown record names. At most 2 are written to @tids; returns how many.
 */
int tasks_subjects(struct tasks *t, const struct etw_event *event, __s32 tids[2]);

#endif
