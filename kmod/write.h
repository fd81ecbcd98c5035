/* SPDX-License-Identifier: GPL-2.0-only */
/* The hot path from a probe to the relays of all sessions that want the event. Knows targets and relays, never a file. */
#ifndef ETW_WRITE_H
#define ETW_WRITE_H

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "class.h"
#include "compat.h"
#include "relay.h"

struct etw_filter;
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
	u16 class_id;
	bool boot_clock;
	bool scrub;				/* hide kernel addresses */
	bool plain;				/* neither of the two: the short way will do */
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

bool etw_filter_passes_current(const struct etw_filter *filter, const struct task_struct *subject);
bool etw_filters_pass(const struct etw_targets *targets, const struct task_struct *subject);
void etw_write(const struct etw_class *class, const struct etw_vec *vec, unsigned int nr, const struct task_struct *subject);
void etw_write_target(const struct etw_class *class, const struct etw_target *target, u64 now, const struct etw_vec *vec,
		      unsigned int nr);
void etw_write_nested(const struct etw_targets *targets);

/* tid and pid of the writer, as they stand side by side in a record. */
static __always_inline u64 etw_current_ids(void)
{
	static_assert(offsetof(struct task_struct, tgid) == offsetof(struct task_struct, pid) + 4);
	return *(const u64 *)&current->pid;
}

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

/* A record with a compact header into the target's relay, in the usual case; false: not written, go the long way. */
static __always_inline bool etw_try_write(const struct etw_target *t, u64 now, u64 ids, const void *payload, u32 len)
{
	struct etw_relay *r = this_cpu_read(*t->relays);
	struct etw_reservation res __uninitialized;
	struct etw_record_compact *h;

	if (unlikely(!r) || unlikely(!t->plain) ||
	    unlikely(!etw_relay_try_reserve(r, now + r->clock_offset, len + sizeof(*h), &res)))
		return false;
	h = (void *)res.to;
	h->id = t->class_id;
	h->timestamp = res.ts;
	put_unaligned(ids, (u64 *)(res.to + offsetof(struct etw_record_compact, tid)));
	memcpy(h + 1, payload, len);
	etw_relay_commit(r, &res);
	this_cpu_inc(t->counts->written);
	return true;
}

/*
 * Write the record with payload @payload, of constant size. Inline, so that the copy is a few moves. One reading of the clock serves
 * all targets.
 */
static __always_inline void etw_end(const struct etw_class *class, const void *payload, const u32 len,
				    const struct task_struct *subject)
{
	const struct etw_targets *targets = rcu_dereference_raw(class->targets);
	const struct etw_target *t, *end;
	struct etw_vec vec __uninitialized;
	u64 now, ids;

	BUILD_BUG_ON(!__builtin_constant_p(len) || len > ETW_SUBBUF_SIZE_MIN - 128);
	if (unlikely(!targets))
		goto out;
	__this_cpu_inc(etw_nesting);
	if (unlikely(__this_cpu_read(etw_nesting) > ETW_MAX_NESTING)) {
		etw_write_nested(targets);
		goto leave;
	}
	now = ktime_get_mono_fast_ns();
	ids = etw_current_ids();
	for (t = targets->t, end = t + targets->nr; t < end; t++) {
		if (unlikely(t->filter) && !etw_filter_passes_current(t->filter, subject)) {
			this_cpu_inc(t->counts->filtered);
			continue;
		}
		if (likely(etw_try_write(t, now, ids, payload, len)))
			continue;
		vec.data = payload;
		vec.len = len;
		etw_write_target(class, t, now, &vec, 1);
	}
leave:
	__this_cpu_dec(etw_nesting);
out:
	preempt_enable_notrace();
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
