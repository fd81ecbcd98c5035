// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who ran: CPU time, switches, waiting and wake-up latency from scheduler events. It must not know disks, faults or output.
 *
 * For each CPU one knows who runs since when. A switch tells it; so does every other event, which names the running thread.
 * Where the two disagree a switch was missed: the time since the last event that agreed belongs to nobody ("unknown"). The
 * first switch of a CPU tells who ran before it.
 *
 * When the recording of switches began and ended is not in the trace: hooks of different events come and go at different
 * times. It is certain between the first and the last switch seen on any CPU, and only that time is looked at. So an
 * event that disagrees counts only when a later switch has shown that switches were still being recorded.
 */
#include "summary_model.h"

#include <stdlib.h>
#include <string.h>

#define STATE_UNINTERRUPTIBLE	0x02
#define STATE_DEAD		(0x10 | 0x20 | 0x80)

bool sum_cpu_wanted(const struct summary *s, uint32_t cpu)
{
	if (!s->filter.nr_cpus)
		return true;
	for (unsigned int i = 0; i < s->filter.nr_cpus; i++)
		if (s->filter.cpus[i] == cpu)
			return true;
	return false;
}

/* The part of [from, to) that is inside the window. */
static uint64_t inside(const struct summary *s, uint64_t from, uint64_t to)
{
	if (from < s->filter.from)
		from = s->filter.from;
	if (to > s->filter.to)
		to = s->filter.to;
	return to > from ? to - from : 0;
}

/* @cpu's current occupant has run until @to. */
static void credit(struct summary *s, uint32_t cpu, uint64_t to)
{
	struct sum_cpu *c = &s->cpus[cpu];
	uint64_t ns = inside(s, c->since, to);
	struct sum_thread *t;

	c->since = to;
	if (c->cur == SUM_NOBODY) {
		c->unknown_ns += ns;
		return;
	}
	if (!c->cur) {
		c->idle_ns += ns;
		if (sum_cpu_wanted(s, cpu))
			s->idle->run.cpu_ns += ns;
		return;
	}
	c->busy_ns += ns;
	t = sum_thread_get(s, c->cur);
	if (t->wanted && sum_cpu_wanted(s, cpu))
		t->proc->run.cpu_ns += ns;
}

static void thread_state(struct summary *s, struct sum_thread *t, enum sum_state state, bool woken, uint64_t time)
{
	t->state = state;
	t->woken = woken;
	t->since = time;
	t->early = 0;
	sum_activity_thread(s, t, time);
}

/* Nothing is known of @cpu since the last event that agreed with who ran there. */
static void forget(struct summary *s, uint32_t cpu)
{
	struct sum_cpu *c = &s->cpus[cpu];

	if (c->cur == SUM_NOBODY)
		return;
	credit(s, cpu, c->last < s->last_switch ? c->last : s->last_switch);
	if (c->cur) {
		struct sum_thread *t = sum_thread_find(s, c->cur);

		if (t)
			thread_state(s, t, SUM_UNKNOWN, false, c->last);
	}
	c->cur = SUM_NOBODY;
}

/* An event has disagreed (or was the first to tell), and a switch came after it: one was missed before. */
static void settle(struct summary *s, uint32_t cpu)
{
	struct sum_cpu *c = &s->cpus[cpu];

	if (c->other == SUM_NOBODY || c->other_first > s->last_switch)
		return;
	s->missed_switches += c->cur != SUM_NOBODY && !c->lost;
	c->lost = false;
	forget(s, cpu);
	credit(s, cpu, c->other_first);
	c->cur = c->other;
	c->last = c->other_last;
	c->other = SUM_NOBODY;
}

/* An event on @cpu says that @tid runs there now. */
static void runs(struct summary *s, uint32_t cpu, int32_t tid, uint64_t time)
{
	struct sum_cpu *c = &s->cpus[cpu];

	if (!s->sched_from || time < s->sched_from)
		return;
	settle(s, cpu);
	/* Where events were lost, what there are vouch for their own moment only. */
	if (c->seen && c->last <= c->lossy_to)
		c->lost = true;
	if (c->other_first <= c->lossy_to)
		c->other = SUM_NOBODY;
	if (!c->seen) {
		/* Nothing was switched here since the recording began, so whoever runs now has run since then. */
		c->seen = true;
		c->since = s->sched_from;
		if (!c->lossy)
			c->cur = tid;
	}
	if (c->other == tid) {
		c->other_last = time;
	} else if (c->other == SUM_NOBODY && c->cur == tid && !c->lost) {
		c->last = time;
	} else if (c->other == SUM_NOBODY) {
		c->other = tid;
		c->other_first = c->other_last = time;
	}
}

/* Events of a CPU were lost: who runs there is not known from its last event on, and a wake-up may have been missed. */
void sum_sched_gap(struct summary *s, const struct sum_gap *gap)
{
	struct sum_cpu *c = &s->cpus[gap->cpu];

	c->lossy = true;
	if (gap->to > c->lossy_to)
		c->lossy_to = gap->to;
	if (gap->to > s->gap_end)
		s->gap_end = gap->to;
	settle(s, gap->cpu);
	c->other = SUM_NOBODY;
	c->lost = c->seen;
}

static void leaves(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *t = sum_thread_get(s, e->sw.prev_tid);
	bool runnable = e->sw.preempt || !e->sw.prev_state;

	if (t->wanted && sum_cpu_wanted(s, e->cpu) && sum_in_window(s, e->time)) {
		t->proc->run.switches++;
		t->proc->run.preempted += runnable;
	}
	t->deep = e->sw.prev_state & STATE_UNINTERRUPTIBLE;
	if (runnable)
		thread_state(s, t, SUM_RUNNABLE, false, e->time);
	else if (e->sw.prev_state & STATE_DEAD)
		sum_thread_end(s, e->sw.prev_tid);
	else if (t->early)
		thread_state(s, t, SUM_RUNNABLE, true, e->time);
	else
		thread_state(s, t, SUM_SLEEPING, false, e->time);
}

static void arrives(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *t = sum_thread_get(s, e->sw.next_tid);

	if (t->state == SUM_RUNNABLE && t->since >= s->gap_end && t->wanted && sum_cpu_wanted(s, e->cpu)) {
		t->proc->run.wait_ns += inside(s, t->since, e->time);
		if (t->woken && sum_in_window(s, e->time))
			sum_hist_add(&t->proc->run.wakeup, e->time - t->since);
	}
	thread_state(s, t, SUM_RUNNING, false, e->time);
}

static void switch_event(struct summary *s, const struct sum_event *e)
{
	struct sum_cpu *c = &s->cpus[e->cpu];

	if (!s->sched_from)
		s->sched_from = e->time;
	s->last_switch = e->time;
	settle(s, e->cpu);
	runs(s, e->cpu, e->sw.prev_tid, e->time);
	settle(s, e->cpu);
	credit(s, e->cpu, e->time);
	if (sum_in_window(s, e->time))
		c->switches++;
	if (e->sw.prev_tid)
		leaves(s, e);
	else if (sum_cpu_wanted(s, e->cpu) && sum_in_window(s, e->time))
		s->idle->run.switches++;
	if (e->sw.next_tid)
		arrives(s, e);
	c->cur = e->sw.next_tid;
	c->last = e->time;
}

/*
 * Waking comes before, wakeup after the thread is put on a run queue. Both may come while it still runs, on its way to sleep: then
 * either the wakeup follows at once and it never sleeps, or it is switched out first and has been runnable since that moment. A
 * thread that was preempted on its way to sleep never slept either: who wakes it then ends no sleep, and it waits since it left.
 * What was known before a loss may have passed: then the waking begins a wait.
 */
static void wake_event(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *t;

	if (e->task.tid <= 0)
		return;
	t = sum_thread_get(s, e->task.tid);
	if (t->state == SUM_RUNNING) {
		t->early = e->kind == SUM_WAKING ? e->time : 0;
		return;
	}
	if (t->state == SUM_RUNNABLE && (e->kind == SUM_WAKEUP || t->since >= s->gap_end))
		return;
	thread_state(s, t, SUM_RUNNABLE, true, e->time);
}

void sum_sched_event(struct summary *s, const struct sum_event *e)
{
	switch (e->kind) {
	case SUM_FOREIGN:
	case SUM_DUMP_TASK:
	case SUM_DUMP_DISK:
		return;
	case SUM_SWITCH:
		switch_event(s, e);
		return;
	case SUM_EXEC:
		if (s->cpus[e->cpu].seen && s->cpus[e->cpu].cur == e->task.old_tid)
			s->cpus[e->cpu].cur = e->task.tid;
		break;
	default:
		break;
	}
	runs(s, e->cpu, e->tid, e->time);
	if (e->kind == SUM_WAKING || e->kind == SUM_WAKEUP || e->kind == SUM_WAKEUP_NEW)
		wake_event(s, e);
	if (e->kind == SUM_FREE && e->task.tid > 0)
		sum_thread_freed(s, e->task.tid);
}

/* Who runs last runs to the end, which is the last switch of all; who is runnable has waited until then. */
void sum_sched_finish(struct summary *s, uint64_t end)
{
	struct sum_thread *t, *tmp;

	if (!s->sched_from)
		return;
	if (s->last_switch < end)
		end = s->last_switch;
	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
		struct sum_cpu *c = &s->cpus[cpu];
		uint64_t known = c->end && c->end < end ? c->end : end;

		settle(s, cpu);
		if (c->lost)
			forget(s, cpu);
		if (!c->seen) {
			c->cur = SUM_NOBODY;
			c->since = s->sched_from;
			c->seen = true;
		}
		if (known > c->since)
			credit(s, cpu, known);
		if (end > known) {
			c->cur = SUM_NOBODY;
			credit(s, cpu, end);
		}
	}
	HASH_ITER(hh, s->threads, t, tmp)
		if (t->state == SUM_RUNNABLE && t->since >= s->gap_end && t->wanted)
			t->proc->run.wait_ns += inside(s, t->since, end);
}
