// SPDX-License-Identifier: GPL-2.0-only
/* Threads that run a function on several CPUs at once. It must not know what for. */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

#include "threads.h"

static void (*function)(unsigned int cpu);
static unsigned int threads;
static atomic_t arrived, generation;
static DECLARE_COMPLETION(done);

void bench_meet(void)
{
	const int now = atomic_read(&generation);

	if (atomic_inc_return(&arrived) == threads) {
		atomic_set(&arrived, 0);
		atomic_inc_return(&generation);
		return;
	}
	while (atomic_read_acquire(&generation) == now)
		cpu_relax();
}

static int run(void *arg)
{
	function((unsigned long)arg);
	complete(&done);
	return 0;
}

int bench_on_cpus(unsigned int nr, void (*fn)(unsigned int cpu))
{
	struct task_struct *tasks[BENCH_MAX_CPUS];
	unsigned long made, i;
	int err = 0;

	if (!nr || nr > min_t(unsigned int, BENCH_MAX_CPUS, num_online_cpus()))
		return -EINVAL;
	function = fn;
	threads = nr;
	atomic_set(&arrived, 0);
	for (made = 0; made < nr; made++) {
		tasks[made] = kthread_create_on_cpu(run, (void *)made, made, "bench/%u");
		if (IS_ERR(tasks[made])) {
			err = PTR_ERR(tasks[made]);
			break;
		}
		get_task_struct(tasks[made]);
	}
	if (!err) {
		for (i = 0; i < made; i++)
			wake_up_process(tasks[i]);
		for (i = 0; i < made; i++)
			wait_for_completion(&done);
	}
	/* They are gone after this, so the module may be. */
	for (i = 0; i < made; i++) {
		kthread_stop(tasks[i]);
		put_task_struct(tasks[i]);
	}
	return err;
}
