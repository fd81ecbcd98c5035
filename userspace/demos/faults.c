// SPDX-License-Identifier: GPL-2.0-only
/*
 * etw-faults: who takes page faults, at which addresses, and in which code. It knows fault events and names of threads.
 *
 *	etw-faults SECONDS|DIR
 *
 * Addresses are counted in blocks of 64 KiB; neighbours are shown as one range. Code is shown by instruction.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "input.h"

#define BLOCK_SHIFT	16
#define PROCESSES	5
#define PLACES		3

struct place {
	__u64 at;			/* block number or instruction */
	unsigned long faults;
	UT_hash_handle hh;
};

struct process {
	__s32 pid;
	char comm[COMM];
	unsigned long faults, writes;
	struct place *blocks, *instructions;
	UT_hash_handle hh;
};

static struct process *processes;

static struct process *process_of(__s32 pid)
{
	struct process *p;

	HASH_FIND_INT(processes, &pid, p);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			err(1, "a process");
		p->pid = pid;
		HASH_ADD_INT(processes, pid, p);
	}
	return p;
}

static void count(struct place **places, __u64 at)
{
	struct place *p;

	HASH_FIND(hh, *places, &at, sizeof(at), p);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			err(1, "a place");
		p->at = at;
		HASH_ADD(hh, *places, at, sizeof(p->at), p);
	}
	p->faults++;
}

static int by_process(const struct process *a, const struct process *b)
{
	return a->faults < b->faults ? 1 : a->faults > b->faults ? -1 : 0;
}

static int by_faults(const struct place *a, const struct place *b)
{
	return a->faults < b->faults ? 1 : a->faults > b->faults ? -1 : 0;
}

static int by_place(const struct place *a, const struct place *b)
{
	return a->at < b->at ? -1 : a->at > b->at ? 1 : 0;
}

/* Runs of neighbouring blocks are one range; the ranges with most faults are shown. */
static void show_ranges(struct process *p)
{
	struct range {
		__u64 from, to;
		unsigned long faults;
	} best[PLACES] = { 0 }, r = { 0 };
	struct place *b, *tmp;

	HASH_SORT(p->blocks, by_place);
	HASH_ITER(hh, p->blocks, b, tmp) {
		if (!r.faults || b->at != r.to)
			r = (struct range){ .from = b->at };
		r.to = b->at + 1;
		r.faults += b->faults;
		/* the range has ended: is it among the best? */
		if (!tmp || tmp->at != r.to) {
			struct range x = r;

			for (int i = 0; i < PLACES; i++)
				if (x.faults > best[i].faults) {
					struct range y = best[i];

					best[i] = x;
					x = y;
				}
		}
	}
	for (int i = 0; i < PLACES && best[i].faults; i++)
		printf("    %8lu in 0x%012llx-0x%012llx\n", best[i].faults, (unsigned long long)best[i].from << BLOCK_SHIFT,
		       (unsigned long long)best[i].to << BLOCK_SHIFT);
}

static void show_instructions(struct process *p)
{
	struct place *b, *tmp;
	int n = 0;

	HASH_SORT(p->instructions, by_faults);
	HASH_ITER(hh, p->instructions, b, tmp)
		if (n++ < PLACES && b->at)
			printf("    %8lu by 0x%012llx\n", b->faults, (unsigned long long)b->at);
		else if (!b->at)	/* where in the kernel is not shown to just anyone */
			printf("    %8lu by the kernel\n", b->faults);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "sched_process_exec", "task_rename" };
	static const struct etw_enable_options providers[] = {
		{ .size = sizeof(providers[0]), .provider = "fault" },
		/* names only; the rundown gives those of threads that run already */
		{ .size = sizeof(providers[0]), .provider = "process", .event_mode = ETW_EVENTS_IN, .events = names,
		  .nr_events = 2 },
	};
	const struct etw_event *ev;
	struct process *p, *tmp;
	struct input in;
	int n = 0;

	if (argc != 2)
		errx(2, "usage: etw-faults SECONDS|DIR");
	input_open(&in, "faults", argv[1], providers, 2);
	while ((ev = input_next(&in))) {
		const char *name = ev->cls->name;

		p = process_of(ev->pid);
		if (!strncmp(name, "page_fault_", 11)) {
			p->faults++;
			p->writes += (field(ev, "error_code") & 2) != 0;
			count(&p->blocks, field(ev, "address") >> BLOCK_SHIFT);
			count(&p->instructions, field(ev, "ip"));
		} else if (!strcmp(ev->cls->ctf_name, "lttng_statedump_process_state")) {
			if (field(ev, "tid") == field(ev, "pid"))
				field_comm(ev, "name", process_of(field(ev, "pid"))->comm);
		} else if (!strcmp(name, "task_rename") && ev->tid == ev->pid && (__s32)field(ev, "tid") == ev->tid) {
			field_comm(ev, "newcomm", p->comm);
		}
	}
	HASH_SORT(processes, by_process);
	HASH_ITER(hh, processes, p, tmp) {
		if (!p->faults || n++ == PROCESSES)
			break;
		printf("%s (%d): %lu faults, %lu of them writes\n", p->comm[0] ? p->comm : "?", p->pid, p->faults, p->writes);
		show_ranges(p);
		show_instructions(p);
	}
	return input_close(&in);
}
