// SPDX-License-Identifier: GPL-2.0-only
/* The provider Linux-Kernel-Sched: who runs, who is woken, who moves. Knows no session. */
#include <linux/kernel.h>
#include <linux/mm_types.h>
#include <trace/events/sched.h>

#include "../event.h"
#include "providers.h"
#include "task.h"

#define KEYWORD_SWITCH	BIT_ULL(0)
#define KEYWORD_WAKE	BIT_ULL(1)
#define KEYWORD_MIGRATE	BIT_ULL(2)

static const struct etw_keyword_name keywords[] = {
	{ KEYWORD_SWITCH, "switch" },
	{ KEYWORD_WAKE, "wake" },
	{ KEYWORD_MIGRATE, "migrate" },
};

static const struct etw_value state_names[] = {
	{ TASK_RUNNING, "running" },
	{ TASK_INTERRUPTIBLE, "sleeping" },
	{ TASK_UNINTERRUPTIBLE, "disk sleep" },
	{ __TASK_STOPPED, "stopped" },
	{ __TASK_TRACED, "traced" },
	{ EXIT_DEAD, "dead" },
	{ EXIT_ZOMBIE, "zombie" },
	{ TASK_PARKED, "parked" },
	{ TASK_IDLE, "idle" },
};

static const struct etw_map states = { ETW_MAP_VALUES, ARRAY_SIZE(state_names), state_names };

ETW_DECLARE_PROBE(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state);
ETW_DECLARE_PROBE(sched_waking, struct task_struct *p);
ETW_DECLARE_PROBE(sched_wakeup, struct task_struct *p);
ETW_DECLARE_PROBE(sched_wakeup_new, struct task_struct *p);
ETW_DECLARE_PROBE(sched_migrate_task, struct task_struct *p, int dest_cpu);

#define SCHED_SWITCH(F)					\
	F(COMM, prev_comm, DEFAULT, NULL)		\
	F(S32, prev_tid, PID, NULL)			\
	F(S32, prev_prio, DEFAULT, NULL)		\
	F(S64, prev_state, DEFAULT, &states)		\
	F(COMM, next_comm, DEFAULT, NULL)		\
	F(S32, next_tid, PID, NULL)			\
	F(S32, next_prio, DEFAULT, NULL)		\
	F(U8, preempt, DEFAULT, NULL)

ETW_EVENT(sched_switch, SCHED_SWITCH, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_SWITCH,
	  .ctf_name = "sched_switch", .description = "A CPU leaves one thread for another",
	  ETW_HOOK(sched_switch));

#define SCHED_WAKE(F)					\
	F(COMM, comm, DEFAULT, NULL)			\
	F(S32, tid, PID, NULL)				\
	F(S32, prio, DEFAULT, NULL)			\
	F(S32, target_cpu, DEFAULT, NULL)

ETW_EVENT(sched_waking, SCHED_WAKE, .event_id = 2, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_WAKE,
	  .ctf_name = "sched_waking", .description = "A thread begins to wake another; written by the waker",
	  ETW_HOOK(sched_waking));
ETW_EVENT(sched_wakeup, SCHED_WAKE, .event_id = 3, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_WAKE,
	  .ctf_name = "sched_wakeup", .description = "A woken thread is ready to run on a CPU",
	  ETW_HOOK(sched_wakeup));
ETW_EVENT(sched_wakeup_new, SCHED_WAKE, .event_id = 4, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_WAKE,
	  .ctf_name = "sched_wakeup_new", .description = "A new thread is ready to run for the first time",
	  ETW_HOOK(sched_wakeup_new));

#define SCHED_MIGRATE_TASK(F)				\
	F(COMM, comm, DEFAULT, NULL)			\
	F(S32, tid, PID, NULL)				\
	F(S32, prio, DEFAULT, NULL)			\
	F(S32, orig_cpu, DEFAULT, NULL)			\
	F(S32, dest_cpu, DEFAULT, NULL)

ETW_EVENT(sched_migrate_task, SCHED_MIGRATE_TASK, .event_id = 5, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_MIGRATE,
	  .ctf_name = "sched_migrate_task", .description = "A thread moves to another CPU",
	  ETW_HOOK(sched_migrate_task));

/*
 * What the thread that leaves is about to do: one of state_names[]. Who is preempted still runs, whatever its state
 * says. Of several bits the highest counts, and frozen or waiting for a sleeping lock is disk sleep, as everywhere in
 * the kernel.
 */
static __always_inline s64 state_of(bool preempt, unsigned int state, const struct task_struct *prev)
{
	const unsigned int all = state | prev->exit_state, bits = all & TASK_REPORT;

	if (preempt)
		return TASK_RUNNING;
	/* nearly every thread that leaves runs on, or sleeps in one of the two ways */
	if (likely((all & ~TASK_FREEZABLE) <= TASK_UNINTERRUPTIBLE))
		return all & ~TASK_FREEZABLE;
	if (unlikely(state & (TASK_RTLOCK_WAIT | TASK_FROZEN)))
		return TASK_UNINTERRUPTIBLE;
	if ((state & TASK_IDLE) == TASK_IDLE)
		return TASK_IDLE;
	if (unlikely(bits & (bits - 1)))
		return 1U << (fls(bits) - 1);
	return bits;
}

ETW_PROBE(sched_switch, next, TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state),
	  TP_ARGS(preempt, prev, next, prev_state))
{
	struct sched_switch_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, next))
		return;
	etw_copy_comm(r.prev_comm, prev);
	r.prev_tid = prev->pid;
	r.prev_prio = etw_prio(prev);
	r.prev_state = state_of(preempt, prev_state, prev);
	etw_copy_comm(r.next_comm, next);
	r.next_tid = next->pid;
	r.next_prio = etw_prio(next);
	r.preempt = preempt;
	etw_end(&event, &r, sizeof(r));
}

static __always_inline void write_wake(const struct etw_targets *targets, const struct task_struct *p)
{
	struct sched_waking_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, p))
		return;
	etw_copy_comm(r.comm, p);
	r.tid = p->pid;
	r.prio = etw_prio(p);
	r.target_cpu = task_cpu(p);
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(sched_waking, p, TP_PROTO(struct task_struct *p),
	  TP_ARGS(p))
{
	write_wake(targets, p);
}

ETW_PROBE(sched_wakeup, p, TP_PROTO(struct task_struct *p),
	  TP_ARGS(p))
{
	write_wake(targets, p);
}

ETW_PROBE(sched_wakeup_new, p, TP_PROTO(struct task_struct *p),
	  TP_ARGS(p))
{
	write_wake(targets, p);
}

ETW_PROBE(sched_migrate_task, p, TP_PROTO(struct task_struct *p, int dest_cpu),
	  TP_ARGS(p, dest_cpu))
{
	struct sched_migrate_task_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, p))
		return;
	etw_copy_comm(r.comm, p);
	r.tid = p->pid;
	r.prio = etw_prio(p);
	r.orig_cpu = task_cpu(p);
	r.dest_cpu = dest_cpu;
	etw_end(&event, &r, sizeof(r));
}

static struct etw_class *const classes[] = {
	&sched_switch_class, &sched_waking_class, &sched_wakeup_class, &sched_wakeup_new_class, &sched_migrate_task_class,
};

struct etw_provider etw_provider_sched = {
	.guid = UUID_INIT(0x516a1d97, 0x20f3, 0x548b, 0x1e, 0xab, 0x51, 0x77, 0x27, 0xfc, 0xf5, 0xb2),
	.name = "Linux-Kernel-Sched",
	.alias = "sched",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = classes,
	.nr_classes = ARRAY_SIZE(classes),
};
