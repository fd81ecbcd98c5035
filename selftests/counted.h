/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workloads that make a known number of events, and how many guest instructions they take: what the goals of the project and
 * the comparison with other tracers are measured with. It knows no tracer. For a guest with one CPU under -icount (cost.md).
 */
#ifndef ETW_SELFTEST_COUNTED_H
#define ETW_SELFTEST_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_REPS 31

struct workload {
	const char *label;
	const char *provider;
	const char *events[2];
	unsigned int per_iteration;	/* events */
	int n;				/* iterations of one repetition: all records fit a default relay */
	void (*run)(int n);
	void (*after)(int n);		/* not counted; NULL nothing */
};

/* An event of the kernel each, block_rq_issue and _complete together and alone. */
#define NR_WORKLOADS 5
extern const struct workload workloads[NR_WORKLOADS];

/* Instructions an iteration, sorted. */
struct series {
	double value[MAX_REPS];
	int reps;
};

/* Ends the program with "Bail out! ..." and the error of errno. */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

/* True if the time stamp counter counts instructions; prints a comment. */
bool counts_instructions(void);
/*
 * The calling thread becomes a real-time task on CPU 0 and has what the workloads need; what it starts has an ordinary
 * priority. Needs /dev/nullb0 (modprobe null_blk queue_mode=2 irqmode=0 submit_queues=1).
 */
void counted_prepare(void);
/* Runs @w @reps times, at most MAX_REPS, and a short time before; whoever reads traces gets a turn between. */
struct series measure(const struct workload *w, int reps);
/* How many events of @w that makes. */
uint64_t measured_events(const struct workload *w, int reps);
/*
 * The figure of a series: its lower quartile. Repetitions differ by less than one instruction, but for some of those of
 * the ping-pong, traced or not, that take 27 more an iteration from some moment on (housekeeping of the kernel); the
 * median would now and then compare one kind with the other.
 */
double typical(const struct series *s);

#endif
