// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF as a tracer of the benchmark: programs that copy 48 bytes an event into a ring buffer, as the kernel's own examples do. The
 * types below name only what is used of the kernel's; the loader finds where that is.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define KERNEL __attribute__((preserve_access_index))

struct pt_regs {
	unsigned long ip, sp;
} KERNEL;

struct task_struct {
	int pid, prio;
} KERNEL;

struct request {
	unsigned int __data_len, cmd_flags;
	__u64 __sector;
} KERNEL;

struct record {
	__u64 time, ids, data[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

volatile const __u32 only_pid;
volatile const __u64 submit_flags = BPF_RB_NO_WAKEUP;
__u64 lost;

static __always_inline int put(__u64 a, __u64 b, __u64 c, __u64 d)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct record *r;

	if (only_pid && ids >> 32 != only_pid)
		return 0;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	r->time = bpf_ktime_get_ns();
	r->ids = ids;
	r->data[0] = a;
	r->data[1] = b;
	r->data[2] = c;
	r->data[3] = d;
	bpf_ringbuf_submit(r, submit_flags);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	return put((__u64)prev->pid << 32 | (__u32)next->pid, (__u64)prev->prio << 32 | (__u32)next->prio, ctx[3], ctx[0]);
}

SEC("tp_btf/page_fault_user")
int page_fault_user(__u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[1];

	return put(ctx[0], ctx[2], regs->ip, regs->sp);
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];

	return put(ctx[0], rq->__sector, rq->__data_len, rq->cmd_flags);
}

SEC("tp_btf/block_rq_complete")
int block_rq_complete(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];

	return put(ctx[0], rq->__sector, ctx[2], rq->cmd_flags);
}

/* Of a module without BTF. */
SEC("raw_tp/etw_bench_event")
int generator(struct bpf_raw_tracepoint_args *ctx)
{
	return put(ctx->args[0], ctx->args[1], 0, 0);
}

char _license[] SEC("license") = "GPL";
