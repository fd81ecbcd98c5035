/* SPDX-License-Identifier: GPL-2.0-only */
/* The hot path from a probe to the relays of all sessions that want the event. Knows targets and relays, never a file. */
#ifndef ETW_WRITE_H
#define ETW_WRITE_H

#include <linux/compiler.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "class.h"

struct etw_filter;
struct etw_relay;
struct etw_session;

/* Per CPU, per class and session. */
struct etw_counts {
	u64 written;
	u64 filtered;
	u64 lost[ETW_NR_LOST];
};

struct etw_target {
	struct etw_relay *__percpu *relays;	/* NULL entry: that CPU has none yet */
	struct etw_counts __percpu *counts;
	const struct etw_filter *filter;	/* NULL: every record */
	struct etw_session *session;
	u16 class_id;
	bool boot_clock;
	bool scrub;				/* hide kernel addresses */
};

/* The targets of one class. Replaced as a whole, freed after a grace period. */
struct etw_targets {
	u32 nr;
	bool all_filtered;			/* every target has a filter */
	struct etw_targets *next;		/* on the list of retired ones */
	struct etw_target t[];
};

struct etw_vec {
	const void *data;
	u32 len;
};

bool etw_filters_pass(const struct etw_targets *targets, const struct task_struct *subject);
void etw_write(const struct etw_class *class, const struct etw_vec *vec, unsigned int nr, const struct task_struct *subject);

/*
 * First thing in a probe: false if nobody wants this record. True: preemption is off until etw_end() or etw_end_vec(), one of which
 * must follow. @subject: the task the event is about if that is not the writer (next, wakee, child), else NULL. Any context.
 */
static __always_inline bool etw_begin(const struct etw_class *class, const struct task_struct *subject)
{
	const struct etw_targets *targets;

	preempt_disable_notrace();
	targets = rcu_dereference_raw(class->targets);
	if (likely(targets) && (likely(!targets->all_filtered) || etw_filters_pass(targets, subject)))
		return true;
	preempt_enable_notrace();
	return false;
}

/* Write the record whose payload is the @nr parts of @vec, one after the other. */
static __always_inline void etw_end_vec(const struct etw_class *class, const struct etw_vec *vec, unsigned int nr,
					const struct task_struct *subject)
{
	etw_write(class, vec, nr, subject);
	preempt_enable_notrace();
}

/* Write the record with payload @payload. */
static __always_inline void etw_end(const struct etw_class *class, const void *payload, u32 len, const struct task_struct *subject)
{
	struct etw_vec vec = { payload, len };

	etw_end_vec(class, &vec, 1, subject);
}

/*
 * Write a record of @class to @session only, with the identity of the task it describes. False if it was not written: the class is not
 * enabled there, or the record was lost (and counted). Process context, session's direct lock held: for rundowns.
 */
bool etw_write_direct(struct etw_session *session, const struct etw_class *class, pid_t tid, pid_t tgid,
		      const struct etw_vec *vec, unsigned int nr);

/* A rundown must stop: its caller is being killed or the session is stopping. Sleeps a little where the relay has little room. */
bool etw_rundown_interrupted(struct etw_session *session);

#endif
