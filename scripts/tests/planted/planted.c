// SPDX-License-Identifier: GPL-2.0-only
/*
 * One mistake of each kind that the debug kernel is there to find, made on loading as the parameter says. Knows nothing
 * of the tracing module.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

static char *what = "";
module_param(what, charp, 0);

static DEFINE_SPINLOCK(a);
static DEFINE_SPINLOCK(b);
static void __rcu *shared;
static volatile int number = 40;
static void *kept;

static noinline void leak(void)
{
	/* It must not linger in a register or on the stack. */
	for (int i = 0; i < 20; i++)
		*(volatile char *)kmalloc(3000, GFP_KERNEL) = 1;
}

static void use_after_free(void)
{
	char *p = kmalloc(100, GFP_KERNEL);

	kfree(p);
	((volatile char *)p)[5] = 1;
}

static void beyond_vmalloc(void)
{
	char *p = vmalloc(5000);

	((volatile char *)p)[5001] = 1;
	vfree(p);
}

static void wrong_order(void)
{
	spin_lock(&a);
	spin_lock(&b);
	spin_unlock(&b);
	spin_unlock(&a);
	spin_lock(&b);
	spin_lock(&a);
	spin_unlock(&a);
	spin_unlock(&b);
}

static void sleep_in_atomic(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static void unprotected(void)
{
	if (rcu_dereference(shared))
		pr_info("planted: shared\n");
}

static void this_cpu(void)
{
	pr_info("planted: processor %u\n", smp_processor_id());
}

static void shift(void)
{
	pr_info("planted: %d\n", 1 << number);
}

static void twice_deleted(void)
{
	static LIST_HEAD(head);
	static struct list_head entry;

	list_add(&entry, &head);
	list_del(&entry);
	list_del(&entry);
}

static int unmarked;

static int racer(void *unused)
{
	while (!kthread_should_stop())
		unmarked++;
	return 0;
}

static void race(void)
{
	struct task_struct *tasks[2];

	for (int i = 0; i < 2; i++)
		tasks[i] = kthread_run(racer, NULL, "racer");
	msleep(3000);
	for (int i = 0; i < 2; i++)
		if (!IS_ERR(tasks[i]))
			kthread_stop(tasks[i]);
}

static const struct {
	const char *what;
	void (*make)(void);
} mistakes[] = {
	{ "leak", leak },
	{ "use_after_free", use_after_free },
	{ "beyond_vmalloc", beyond_vmalloc },
	{ "wrong_order", wrong_order },
	{ "sleep_in_atomic", sleep_in_atomic },
	{ "unprotected", unprotected },
	{ "this_cpu", this_cpu },
	{ "shift", shift },
	{ "twice_deleted", twice_deleted },
	{ "race", race },
};

static int __init planted_init(void)
{
	kept = kmalloc(100, GFP_KERNEL);
	for (int i = 0; i < ARRAY_SIZE(mistakes); i++) {
		if (!strcmp(what, mistakes[i].what)) {
			pr_info("planted: begin %s\n", what);
			mistakes[i].make();
			return 0;
		}
	}
	return *what ? -EINVAL : 0;
}

static void __exit planted_exit(void)
{
	kfree(kept);
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Mistakes for a debug kernel to find");
