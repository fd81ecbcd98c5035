// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own relay interface as a tracer of the benchmark, as one would write it: tracepoint probes that put 48 bytes an
 * event into relay channels that discard when full. Writing "WORKLOAD N" to the parameter relay starts N channels, whose
 * buffers are debugfs files etw_bench/CHANNEL.CPU; "stop" ends them. Reading it gives what was written and lost. It must not
 * know etw.ko.
 */
#include <linux/blk-mq.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/relay.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

#include "etw_bench_trace.h"
#include "relay.h"

#define MAX_CHANNELS 8
#define SUBBUF_SIZE (128 << 10)
#define NR_SUBBUFS 8

struct record {
	u64 time;
	s32 tid;
	s32 pid;
	u64 data[4];
};

struct probe {
	const char *workload;
	const char *name;
	void *fn;
	struct tracepoint *tp;
};

static DEFINE_MUTEX(lock);
static struct rchan *channels[MAX_CHANNELS];
static unsigned int nr_channels;
static atomic64_t lost;
static DEFINE_PER_CPU(u64, written);
static struct dentry *dir;
static char running[32];	/* the workload; empty: none */

static __always_inline void put(u64 a, u64 b, u64 c, u64 d)
{
	struct record r = { ktime_get_mono_fast_ns(), current->pid, current->tgid, { a, b, c, d } };
	unsigned int i;

	for (i = 0; i < nr_channels; i++) {
		relay_write(channels[i], &r, sizeof(r));
		this_cpu_inc(written);
	}
}

static void on_switch(void *unused, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	put((u64)prev->pid << 32 | next->pid, (u64)prev->prio << 32 | next->prio, state, preempt);
}

static void on_fault(void *unused, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	put(address, error, regs->ip, regs->sp);
}

static void on_issue(void *unused, struct request *rq)
{
	put((uintptr_t)rq, blk_rq_pos(rq), blk_rq_bytes(rq), rq->cmd_flags);
}

static void on_complete(void *unused, struct request *rq, blk_status_t error, unsigned int bytes)
{
	put((uintptr_t)rq, blk_rq_pos(rq), bytes, rq->cmd_flags);
}

static void on_generator(void *unused, u64 number, u32 value)
{
	put(number, value, 0, 0);
}

static struct probe probes[] = {
	{ "sched_switch", "sched_switch", on_switch },
	{ "page_fault_user", "page_fault_user", on_fault },
	{ "block_rq", "block_rq_issue", on_issue },
	{ "block_rq", "block_rq_complete", on_complete },
	{ "generator", NULL, on_generator, &__tracepoint_etw_bench_event },
};

static void find(struct tracepoint *tp, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].name && !strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static int start_subbuf(struct rchan_buf *buf, void *subbuf, void *previous, size_t padding)
{
	if (!relay_buf_full(buf))
		return 1;
	atomic64_inc(&lost);
	return 0;
}

static struct dentry *create_file(const char *name, struct dentry *parent, umode_t mode, struct rchan_buf *buf, int *global)
{
	return debugfs_create_file(name, mode, parent, buf, &relay_file_operations);
}

static int remove_file(struct dentry *file)
{
	debugfs_remove(file);
	return 0;
}

static const struct rchan_callbacks callbacks = {
	.subbuf_start = start_subbuf,
	.create_buf_file = create_file,
	.remove_buf_file = remove_file,
};

/* Of a job in production everything is recorded. */
static bool wants(const char *workload, const struct probe *probe)
{
	return !strcmp(workload, "production") || !strcmp(workload, probe->workload);
}

static void attach(bool on)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!wants(running, &probes[i]) || !probes[i].tp)
			continue;
		if (on)
			tracepoint_probe_register(probes[i].tp, probes[i].fn, NULL);
		else
			tracepoint_probe_unregister(probes[i].tp, probes[i].fn, NULL);
	}
	tracepoint_synchronize_unregister();
}

static void stop(void)
{
	unsigned int i;

	if (!*running)
		return;
	attach(false);
	*running = 0;
	for (i = 0; i < nr_channels; i++)
		relay_close(channels[i]);
	nr_channels = 0;
	debugfs_remove_recursive(dir);
}

void bench_relay_stop(void)
{
	mutex_lock(&lock);
	stop();
	mutex_unlock(&lock);
}

static int start(const char *workload, unsigned int nr)
{
	char name[8];
	int i, cpu;

	if (*running || nr > MAX_CHANNELS)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(probes) && !wants(workload, &probes[i]); i++)
		;
	if (i == ARRAY_SIZE(probes))
		return -EINVAL;
	for_each_kernel_tracepoint(find, NULL);
	dir = debugfs_create_dir("etw_bench", NULL);
	while (nr_channels < nr) {
		snprintf(name, sizeof(name), "%u.", nr_channels);
		channels[nr_channels] = relay_open(name, dir, SUBBUF_SIZE, NR_SUBBUFS, &callbacks, NULL);
		if (!channels[nr_channels])
			break;
		nr_channels++;
	}
	atomic64_set(&lost, 0);
	for_each_possible_cpu(cpu)
		per_cpu(written, cpu) = 0;
	strscpy(running, workload, sizeof(running));
	if (nr_channels < nr) {
		stop();
		return -ENOMEM;
	}
	attach(true);
	return 0;
}

static int set(const char *text, const struct kernel_param *param)
{
	char workload[32];
	unsigned int nr;
	int err = -EINVAL;

	mutex_lock(&lock);
	if (sysfs_streq(text, "stop")) {
		stop();
		err = 0;
	} else if (sscanf(text, "%31s %u", workload, &nr) == 2) {
		err = start(workload, nr);
	}
	mutex_unlock(&lock);
	return err;
}

static int get(char *text, const struct kernel_param *param)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(written, cpu);
	return sysfs_emit(text, "%llu %llu %lld\n", sum, sum * sizeof(struct record), atomic64_read(&lost));
}

static const struct kernel_param_ops ops = { .set = set, .get = get };
module_param_cb(relay, &ops, NULL, 0600);
