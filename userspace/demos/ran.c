// SPDX-License-Identifier: GPL-2.0-only
/*
 * etw-ran: what each CPU did in an interval: from, to, who, why it left, who had woken it. It knows scheduler events only.
 *
 *	etw-ran SECONDS|DIR [FROM TO]		in seconds from the start of the trace
 *
 * Who woke a thread is the thread that ran when sched_waking was written; an interrupt shows the thread it interrupted, or
 * "interrupt" on an idle CPU.
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "input.h"

struct thread {
	__s32 tid;
	char comm[COMM];
	__s32 waker;			/* -1: not woken since it left a CPU */
	UT_hash_handle hh;
};

/* A stay on a CPU; those of each CPU are a list in order. */
struct stay {
	struct stay *next;
	__u64 from, to;
	__s32 tid;
	char comm[COMM], waker[COMM + 16], why[16];
};

static struct cpu {
	bool known;
	__s32 tid;
	__u64 since;
	char waker[COMM + 16];
	struct stay *stays, **tail;
} *cpus;
static unsigned int nr_cpus;

static struct thread *threads;

static struct thread *thread_of(__s32 tid)
{
	struct thread *t;

	HASH_FIND_INT(threads, &tid, t);
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			err(1, "a thread");
		t->tid = tid;
		t->waker = -1;
		HASH_ADD_INT(threads, tid, t);
	}
	return t;
}

static struct cpu *cpu_of(unsigned int cpu)
{
	if (cpu >= nr_cpus) {
		struct cpu *more = calloc(cpu + 1, sizeof(*more));

		if (!more)
			err(1, "a CPU");
		for (unsigned int i = 0; i < nr_cpus; i++)
			more[i] = cpus[i];
		/* tails point into their own structure while a list is empty */
		for (unsigned int i = 0; i <= cpu; i++)
			if (!more[i].stays)
				more[i].tail = &more[i].stays;
		free(cpus);
		cpus = more;
		nr_cpus = cpu + 1;
	}
	return &cpus[cpu];
}

static void why_it_left(const struct etw_event *ev, char *why, size_t size)
{
	__u64 state = field(ev, "prev_state");

	if (field(ev, "preempt") || !state)
		snprintf(why, size, "preempted");
	else if (state & 0x30)
		snprintf(why, size, "exited");
	else
		/* the schema has names for the others: sleeping, disk sleep, stopped ... */
		etw_event_format(ev, etw_class_field(ev->cls, "prev_state"), why, size);
}

static void switched(const struct etw_event *ev, __u64 from, __u64 to)
{
	struct thread *prev = thread_of(field(ev, "prev_tid")), *next = thread_of(field(ev, "next_tid"));
	struct cpu *c = cpu_of(ev->cpu);

	field_comm(ev, "prev_comm", prev->comm);
	field_comm(ev, "next_comm", next->comm);
	if (c->known && c->tid == prev->tid && ev->time >= from && c->since < to) {
		struct stay *s = calloc(1, sizeof(*s));

		if (!s)
			err(1, "a stay");
		s->from = c->since;
		s->to = ev->time;
		s->tid = prev->tid;
		memcpy(s->comm, prev->comm, COMM);
		memcpy(s->waker, c->waker, sizeof(s->waker));
		why_it_left(ev, s->why, sizeof(s->why));
		*c->tail = s;
		c->tail = &s->next;
	}
	/* Who was woken while it ran, and did not sleep, was not woken since. */
	if (field(ev, "preempt") || !field(ev, "prev_state"))
		prev->waker = -1;
	c->known = true;
	c->tid = next->tid;
	c->since = ev->time;
	if (next->waker < 0)
		snprintf(c->waker, sizeof(c->waker), "-");
	else if (!next->waker)
		snprintf(c->waker, sizeof(c->waker), "interrupt");
	else
		snprintf(c->waker, sizeof(c->waker), "%s (%d)", thread_of(next->waker)->comm, next->waker);
	next->waker = -1;
}

int main(int argc, char **argv)
{
	static const char *const events[] = { "sched_switch", "sched_waking", "sched_wakeup_new" };
	static const struct etw_enable_options sched = {
		.size = sizeof(sched), .provider = "sched", .event_mode = ETW_EVENTS_IN, .events = events, .nr_events = 3,
	};
	const struct etw_event *ev;
	struct input in;
	__u64 from, to;

	if (argc != 2 && argc != 4)
		errx(2, "usage: etw-ran SECONDS|DIR [FROM TO]");
	input_open(&in, "ran", argv[1], &sched, 1);
	from = in.start + (argc == 4 ? strtod(argv[2], NULL) * 1e9 : 0);
	to = argc == 4 ? in.start + strtod(argv[3], NULL) * 1e9 : UINT64_MAX;
	while ((ev = input_next(&in))) {
		if (!strcmp(ev->cls->name, "sched_switch"))
			switched(ev, from, to);
		else if (!strncmp(ev->cls->name, "sched_wak", 9))
			thread_of(field(ev, "tid"))->waker = ev->tid;
	}
	printf("%3s %12s %12s %10s  %-15s %7s  %-11s %s\n", "CPU", "FROM", "TO", "MS", "THREAD", "TID", "LEFT", "WOKEN BY");
	for (unsigned int i = 0; i < nr_cpus; i++)
		for (const struct stay *s = cpus[i].stays; s; s = s->next)
			if (s->tid)
				printf("%3u %12.6f %12.6f %10.3f  %-15s %7d  %-11s %s\n", i, (s->from - in.start) / 1e9,
				       (s->to - in.start) / 1e9, (s->to - s->from) / 1e6, s->comm, s->tid, s->why, s->waker);
			else
				printf("%3u %12.6f %12.6f %10.3f  idle\n", i, (s->from - in.start) / 1e9, (s->to - in.start) / 1e9,
				       (s->to - s->from) / 1e6);
	return input_close(&in);
}
