/* SPDX-License-Identifier: GPL-2.0-only */
/* The same function on several CPUs at once: see threads.c. */
#ifndef ETW_BENCH_THREADS_H
#define ETW_BENCH_THREADS_H

#define BENCH_MAX_CPUS 8

/* Runs @fn on CPUs 0 to @nr - 1, in a thread each; returns when all have. One caller at a time. EINVAL there are not so many. */
int bench_on_cpus(unsigned int nr, void (*fn)(unsigned int cpu));
/* In @fn: waits, spinning, until all threads are here. */
void bench_meet(void);

#endif
