/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hot path from a probe to the relays of all sessions that want the event. Knows targets and relays, never a
 * file.
 */
#ifndef ETW_WRITE_H
#define ETW_WRITE_H

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "class.h"
#include "compat.h"
#include "filter.h"
#include "predicate.h"
#include "relay.h"

struct etw_session;

/* Per CPU, per class and session. */
struct etw_counts {
	u64 written;
	u64 filtered;
	u64 lost[ETW_NR_LOST];
};

struct etw_target {
	/*
	 * By CPU. Where nothing fits (etw_no_relay) the long way takes over, which goes by @true_relays: of a CPU
	 * that has none yet, and everywhere if the target is special. NULL ends the list.
	 */
	struct etw_relay *__percpu *relays;
	struct etw_relay *__percpu *true_relays;
	struct etw_counts __percpu *counts;
	const struct etw_filter *filter;	/* NULL: of every task */
	const struct etw_matcher *matcher;	/* NULL: whatever it says, and of every process */
	u64 __percpu *rate;			/* of a user's classes only */
	u16 class_id;
	u8 source;				/* of its stamps: ETW_SOURCE_* */
	bool scrub;				/* hide kernel addresses */
	bool filtered;				/* filter or matcher */
	bool special;				/* filtered, scrub, or a source that is not the list's */
};

/* The targets of one class. Replaced as a whole, freed after a grace period. */
struct etw_targets {
	u32 nr;
	/*
	 * Up to which etw_nesting nothing is unusual: ETW_MAX_NESTING, but 0 where @source is not the usual one. So one comparison
	 * asks for both.
	 */
	int usual_nesting;
	bool unusual;				/* a filter_hash, or a @source that is not the usual one */
	u8 source;				/* read once for all targets that have it */
	const u8 *filter_hash;			/* of all targets' filters of tasks; NULL if one has none: ask etw_rejected() */
	const struct etw_class *class;
	struct etw_targets *next;		/* on the list of retired ones */
	struct etw_target t[];			/* and one that ends the list */
};

/* Those of a class that nobody wants, so that a class always has some: their filter_hash rejects every task. */
extern struct etw_targets etw_no_targets;

/* One event on its way, in the registers of its probe. */
struct etw_event {
	const struct etw_targets *targets;
	const struct task_struct *subject;
	u64 now;				/* a reading of targets->source */
	struct etw_cpu cpu;
};

void etw_nested(const struct etw_targets *targets);
void etw_write(const struct etw_event *event, const struct etw_target *from, const struct etw_vec *vec, unsigned int nr);
/* @nr records of @target are lost, preemption off. */
void etw_target_lose(const struct etw_target *target, unsigned int cause, u32 nr);
/* Does this record pass the filters that @target has (target->filtered)? Preemption is off. */
bool etw_target_wants(const struct etw_target *target, const struct task_struct *subject, const struct etw_vec *vec, u32 nr);

/* tid and pid of @task, as they stand side by side in a record. */
static __always_inline u64 etw_ids(const struct task_struct *task)
{
	static_assert(offsetof(struct task_struct, tgid) == offsetof(struct task_struct, pid) + 4);
	return *(const u64 *)&task->pid;
}

/* In this order, which nothing else keeps, it takes the fewest registers: so a probe need not save any. */
static __always_inline bool etw_may_be_wanted(const u8 *hash, const struct task_struct *subject)
{
	u8 found = etw_filter_may_have(hash, current->pid);

	found |= etw_filter_may_have(hash, current->tgid);
	/*
	 * About nobody else: the compiler knows (of a pointer itself __builtin_constant_p() is never true), or the writer's are
	 * looked up again, which takes no jump.
	 */
	if (__builtin_constant_p(!subject) && !subject)
		return found;
	OPTIMIZER_HIDE_VAR(found);
	if (!subject)
		subject = current;
	found |= etw_filter_may_have(hash, subject->pid);
	OPTIMIZER_HIDE_VAR(found);
	found |= etw_filter_may_have(hash, subject->tgid);
	return found;
}

/*
 * Of targets->filter_hash: does nobody want the @nr records, as the filters of tasks of all targets reject them for certain? Then
 * they have been counted in each. If not, the long way decides and counts. Calls nothing, so that a rejection saves no
 * registers.
 */
static __always_inline bool etw_reject(const struct etw_targets *targets, const struct task_struct *subject, const u64 nr)
{
	const struct etw_cpu cpu = etw_cpu();
	const struct etw_target *t;

	if (unlikely(etw_may_be_wanted(targets->filter_hash, subject)))
		return false;
	/* the first, which there always is, needs no pointer */
	etw_cpu_add(cpu, targets->t[0].counts->filtered, nr);
	for (t = &targets->t[1]; unlikely(t->relays); t++)
		etw_cpu_add(cpu, t->counts->filtered, nr);
	return true;
}

/* To be asked before a record is built. */
static __always_inline bool etw_rejected(const struct etw_targets *targets, const struct task_struct *subject, const u64 nr)
{
	return targets->filter_hash && etw_reject(targets, subject, nr);
}

/*
 * Who wants records of @class. Ask etw_rejected() before anything is built. Preemption stays off from before this call
 * until the record is written. Any context.
 */
static __always_inline const struct etw_targets *etw_targets_of(const struct etw_class *class)
{
	return rcu_dereference_raw(class->targets);
}

/*
 * True: one of the etw_end functions must follow, and nothing may sleep until then. False: the record is counted as
 * lost.
 */
static __always_inline bool etw_begin(struct etw_event *event, const struct etw_targets *targets, const struct task_struct *subject)
{
	const struct etw_cpu cpu = etw_cpu();
	int nesting;
	u64 now;

	etw_cpu_inc(cpu, etw_nesting);	/* before the clock: FLUSH asks whether it interrupted somebody with an old reading */
	nesting = etw_cpu_read(cpu, etw_nesting);
	if (likely(nesting <= targets->usual_nesting)) {
		now = etw_clock_read(ETW_SOURCE_MONOTONIC);
	} else if (nesting <= ETW_MAX_NESTING) {
		now = etw_clock_read(targets->source);
	} else {
		etw_nested(targets);
		return false;
	}
	*event = (struct etw_event){ targets, subject, now, cpu };
	ETW_STEP(NULL, BEGUN, 0);
	return true;
}

/* Write the record whose payload is the @nr parts of @vec, one after the other. */
static __always_inline void etw_end_vec(const struct etw_event *event, const struct etw_vec *vec, unsigned int nr)
{
	etw_write(event, event->targets->t, vec, nr);
	etw_cpu_dec(event->cpu, etw_nesting);
}

/* What is left to do for an event that met something unusual at target @t. */
struct etw_rest {
	struct etw_event event;			/* a copy, so that it stays in registers where it is usual */
	const struct etw_target *t;		/* from here on nothing is written */
	const void *payload;
	u32 len;
	u32 records;				/* not 0: but first deliver this packet */
	struct etw_relay *relay;
	struct etw_slot *slot;
	u64 at;
};

void etw_write_rest(const struct etw_rest *rest);

static __always_inline void etw_copy16(u8 *to, const u8 *from)
{
	const u64 first = get_unaligned((const u64 *)from), second = get_unaligned((const u64 *)from + 1);

	put_unaligned(first, (u64 *)to);
	put_unaligned(second, (u64 *)to + 1);
}

static __always_inline void etw_copy32(u8 *to, const u8 *from)
{
	etw_copy16(to, from);
	etw_copy16(to + 16, from + 16);
}

/*
 * Of what is mostly a few words: as much from its beginning and to its end, over each other. For more the memory's function is
 * quicker.
 */
static __always_inline void etw_copy_payload(u8 *to, const u8 *from, size_t len)
{
	if (unlikely(len - 16 > 112)) {
		memcpy(to, from, len);
	} else if (len <= 32) {
		etw_copy16(to, from);
		etw_copy16(to + len - 16, from + len - 16);
	} else {
		etw_copy32(to, from);
		if (len > 64) {
			etw_copy32(to + 32, from + 32);
			etw_copy32(to + len - 64, from + len - 64);
		}
		etw_copy32(to + len - 32, from + len - 32);
	}
}

void etw_copy(u8 *to, const u8 *from, u32 len);

/* The same in few registers: what is not one word or two is copied elsewhere. */
static __always_inline void etw_copy_words(u8 *to, const u8 *from, u32 len)
{
	if (likely(len - 8 <= 8)) {
		const u64 first = get_unaligned((const u64 *)from), last = get_unaligned((const u64 *)(from + len - 8));

		put_unaligned(first, (u64 *)to);
		put_unaligned(last, (u64 *)(to + len - 8));
	} else {
		etw_copy(to, from, len);
	}
}

/* Sizes of payload that fit into any relay. */
#define ETW_SHORT_PAYLOAD	(ETW_SUBBUF_SIZE_MIN - 128)

/*
 * Write the record with payload @payload of at most ETW_SHORT_PAYLOAD bytes. What is unusual goes the long way, with all that
 * follows.
 */
static __always_inline void etw_end_short(const struct etw_event *event, const void *payload, const u32 len)
{
	const struct etw_target *t = event->targets->t;
	const u64 ids = etw_ids(current);
	u32 records;

	do {
		struct etw_relay *r = etw_cpu_read(event->cpu, *t->relays);
		struct etw_reservation res __uninitialized;
		struct etw_record_compact *h;

		if (unlikely(!etw_relay_try_reserve(r, event->now + r->clock_offset, len + sizeof(*h), &res))) {
			etw_write_rest(&(struct etw_rest){ *event, t, payload, len });
			break;
		}
		h = (void *)res.to;
		h->id = t->class_id;
		h->timestamp = res.ts;
		put_unaligned(ids, (u64 *)(res.to + offsetof(struct etw_record_compact, tid)));
		ETW_STEP(r, HEADER, res.at);
		if (__builtin_constant_p(len))
			memcpy(h + 1, payload, len);
		else
			etw_copy_words((u8 *)(h + 1), payload, len);
		ETW_STEP(r, PART, res.at);
		records = etw_relay_commit(r, &res);
		etw_cpu_add(event->cpu, t->counts->written, 1);
		ETW_STEP(r, COUNTED, res.at);
		if (unlikely(records)) {
			etw_write_rest(&(struct etw_rest){ *event, t + 1, payload, len, records, r, res.slot, res.at });
			break;
		}
	} while ((++t)->relays);
	etw_cpu_dec(event->cpu, etw_nesting);
}

/*
 * The same for a payload of constant size. Inline, so that the copy is a few moves: on the usual way nothing is called, so
 * nothing is kept in registers that would have to be saved.
 */
static __always_inline void etw_end(const struct etw_event *event, const void *payload, const u32 len)
{
	BUILD_BUG_ON(!__builtin_constant_p(len) || len > ETW_SHORT_PAYLOAD);
	etw_end_short(event, payload, len);
}

/*
 * Write a record of @class to @session only, with the identity of the task it describes. False if it was not written:
 * the class is not enabled there, or the record was lost (and counted). Process context, session's direct lock held:
 * for rundowns.
 */
bool etw_write_direct(struct etw_session *session, const struct etw_class *class, pid_t tid, pid_t tgid,
		      const struct etw_vec *vec, unsigned int nr);

/*
 * A rundown must stop: its caller is being killed or the session is stopping. Sleeps a little where the relay has
 * little room.
 */
bool etw_rundown_interrupted(struct etw_session *session);

#endif
