/* SPDX-License-Identifier: GPL-2.0-only */
/* What the BPF programs and their loader share: the counters of one CPU and the names that mark the interval. */
#ifndef ETW_COUNT_H
#define ETW_COUNT_H

enum count_event {
	COUNT_SCHED_SWITCH,
	COUNT_SCHED_WAKEUP,
	COUNT_FORK,
	COUNT_EXEC,
	COUNT_RQ_ISSUE,
	COUNT_RQ_COMPLETE,
	COUNT_FAULT_USER,
	COUNT_NR
};

enum count_state {
	COUNT_BEFORE,
	COUNT_INSIDE,
	COUNT_AFTER
};

/* Names of the thread whose first switch away from a CPU begins and ends that CPU's interval; at most 15 bytes. */
#define COUNT_BEGIN_COMM "etw-count-begin"
#define COUNT_END_COMM "etw-count-end"

struct count_cpu {
	unsigned long long state;	/* enum count_state */
	unsigned long long begin_ns;	/* CLOCK_MONOTONIC */
	unsigned long long end_ns;
	unsigned long long events[COUNT_NR];
};

#endif
