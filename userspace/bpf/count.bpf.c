// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts scheduler, process, block and page fault tracepoints per CPU between two markers; knows nothing of etw.
 *
 * Why the counts are exact, and comparable to the event with any other tracer of these tracepoints:
 *   - A CPU's interval begins after the first sched_switch there whose previous task is named COUNT_BEGIN_COMM, and
 *     ends before the first one whose previous task is named COUNT_END_COMM. Every tracer of sched_switch sees the same
 *     two.
 *   - The kernel calls the probes of sched_switch with interrupts off, so no other event comes between two tracers'
 *     probes of a marker. Only an NMI could, and none of these tracepoints is called in one.
 *   - The other tracepoints call their probes with preemption off, so no switch, hence no marker, comes between two
 *     tracers' probes of one event. On each CPU an event is inside for all tracers or for none.
 *   - Each program has its own counter, and the kernel does not enter a program that is already running on this CPU:
 *     the plain increment is not torn by an interrupt. The kernel counts what it did not enter (recursion_misses); the
 *     loader reports that, and a run with such a miss is not a valid one.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "etw-count.h"

/* The fields used, found in the running kernel's type information when the program is loaded. */
struct task_struct {
	char comm[16];
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct count_cpu);
} cpus SEC(".maps");

static __always_inline struct count_cpu *this_cpu(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&cpus, &key);
}

static __always_inline int count(enum count_event event)
{
	struct count_cpu *c = this_cpu();

	if (c && c->state == COUNT_INSIDE)
		c->events[event]++;
	return 0;
}

static __always_inline int is(const char *comm, const char *name, int size)
{
	for (int i = 0; i < size; i++)
		if (comm[i] != name[i])
			return 0;
	return 1;
}

SEC("tp_btf/sched_switch")
int count_sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct count_cpu *c = this_cpu();
	char comm[16];

	if (!c)
		return 0;
	bpf_probe_read_kernel(comm, sizeof(comm), prev->comm);
	if (c->state == COUNT_INSIDE && is(comm, COUNT_END_COMM, sizeof(COUNT_END_COMM))) {
		c->end_ns = bpf_ktime_get_ns();
		c->state = COUNT_AFTER;
	} else if (c->state == COUNT_INSIDE) {
		c->events[COUNT_SCHED_SWITCH]++;
	} else if (c->state == COUNT_BEFORE && is(comm, COUNT_BEGIN_COMM, sizeof(COUNT_BEGIN_COMM))) {
		c->begin_ns = bpf_ktime_get_ns();
		c->state = COUNT_INSIDE;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int count_sched_wakeup(__u64 *ctx)
{
	return count(COUNT_SCHED_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int count_fork(__u64 *ctx)
{
	return count(COUNT_FORK);
}

SEC("tp_btf/sched_process_exec")
int count_exec(__u64 *ctx)
{
	return count(COUNT_EXEC);
}

SEC("tp_btf/block_rq_issue")
int count_rq_issue(__u64 *ctx)
{
	return count(COUNT_RQ_ISSUE);
}

SEC("tp_btf/block_rq_complete")
int count_rq_complete(__u64 *ctx)
{
	return count(COUNT_RQ_COMPLETE);
}

SEC("tp_btf/page_fault_user")
int count_fault_user(__u64 *ctx)
{
	return count(COUNT_FAULT_USER);
}

char _license[] SEC("license") = "GPL";
