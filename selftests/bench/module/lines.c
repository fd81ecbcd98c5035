// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events on several CPUs at once, with marks around each of them, so that who executes the instructions (QEMU with a plugin) can
 * tell which stores are the write path's. It must not know who that is, nor who listens to the events.
 *
 * Writing "PATH CPUS EVENTS [FD]" to the parameter lines makes EVENTS events on each of CPUS CPUs:
 *
 *   etw	the generator's, by etw.ko's functions for modules
 *   probe	sched_switch, by calling what is attached to the kernel's tracepoint
 *   ftrace	the generator's, through its tracepoint
 *   user	as a program's writes to the provider file FD, whose first event has one number of 64 bits
 *   planted	as etw, and then a counter that all CPUs share: what must be found
 *
 * Interrupts are off between two marks, for what they store is not the path's.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/uio.h>

#include <linux/etw.h>

#include "../marks.h"
#include "etw_bench_trace.h"
#include "generator.h"
#include "threads.h"

static DEFINE_MUTEX(lock);
static unsigned int events;
static struct tracepoint *sched_switch;
static struct file *provider;
static atomic_t planted;

/* What write(2) does, but that the event is in the kernel's memory. */
static void write_provider(u64 number)
{
	struct {
		struct etw_write head;
		u64 number;
	} event = { { .size = sizeof(event) }, number };
	struct kvec vec = { &event, sizeof(event) };
	struct iov_iter from;
	struct kiocb iocb;

	init_sync_kiocb(&iocb, provider);
	iov_iter_kvec(&from, ITER_SOURCE, &vec, 1, sizeof(event));
	provider->f_op->write_iter(&iocb, &from);
}

#define CHUNK 2048

/* Now and then a consumer must have a turn, or its session is full for the most part. */
#define PATH(name, number, statement)				\
static void run_##name(unsigned int cpu)			\
{								\
	unsigned long flags;					\
	unsigned int i;						\
								\
	bench_meet();	/* everybody is on its CPU */		\
	if (!cpu)						\
		MARK(MARK_AROUND(number));			\
	bench_meet();						\
	for (i = 0; i < events; i++) {				\
		if (i % CHUNK == CHUNK - 1)			\
			msleep(50);				\
		local_irq_save(flags);				\
		MARK(MARK_PATH(number));					\
		statement;					\
		MARK(MARK_PATH_END);				\
		local_irq_restore(flags);			\
	}							\
	bench_meet();						\
	if (!cpu)						\
		MARK(MARK_AROUND_END);				\
}

typedef void (*switch_fn)(void *unused, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state);

PATH(etw, 1, bench_write(i, events))
PATH(probe, 2, ((switch_fn)sched_switch->iterator)(NULL, false, current, current, 0))
PATH(ftrace, 3, trace_etw_bench_event(i, events))
PATH(user, 4, write_provider(i))
PATH(planted, 5, bench_write(i, events); atomic_inc(&planted))

static const struct {
	const char *name;
	void (*run)(unsigned int cpu);
} paths[] = {
	{ "etw", run_etw }, { "probe", run_probe }, { "ftrace", run_ftrace }, { "user", run_user },
	{ "planted", run_planted },
};

static void find(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		sched_switch = tp;
}

static int set(const char *text, const struct kernel_param *param)
{
	unsigned int cpus, nr, i;
	int fd = -1, err = 0;
	char name[16];

	if (sscanf(text, "%15s %u %u %d", name, &cpus, &nr, &fd) < 3)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(paths) && strcmp(paths[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(paths))
		return -EINVAL;
	mutex_lock(&lock);
	for_each_kernel_tracepoint(find, NULL);
	events = nr;
	/* Where nobody is attached the iterator must not be called. */
	if (paths[i].run == run_probe && (!sched_switch || !rcu_access_pointer(sched_switch->funcs)))
		err = -ENODEV;
	if (paths[i].run == run_user) {
		provider = fget(fd);
		err = !provider ? -EBADF : provider->f_op->write_iter ? 0 : -EINVAL;
	}
	if (!err)
		err = bench_on_cpus(cpus, paths[i].run);
	if (provider)
		fput(provider);
	provider = NULL;
	mutex_unlock(&lock);
	return err;
}

static const struct kernel_param_ops ops = { .set = set };
module_param_cb(lines, &ops, NULL, 0200);
