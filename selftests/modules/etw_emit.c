// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that emits a known number of events through kmod/etw_module.h: writing N to the parameter emit makes N events from the
 * writing task, N from an interrupt, N from a softirq and where there are such (the parameter contexts is then 4) N from an NMI,
 * numbered from 0 on in each. It must not know sessions.
 *
 * The parameter wrong is the number of writes that were refused although they were right, or taken although they were not;
 * wanted says whether somebody wants the event. With twin=1 it has the event twice, and is not loaded: ENOTUNIQ if
 * that is the reason.
 */
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "../../kmod/etw_module.h"

#if defined(CONFIG_X86_LOCAL_APIC) && !defined(CONFIG_UML)
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#define HAVE_NMI 1
#else
#define HAVE_NMI 0
#endif

enum { TASK, HARDIRQ, SOFTIRQ, NMI, NR_CONTEXTS };

static const struct etw_module_field fields[] = {
	{ "context", ETW_TYPE_U8 },
	{ "n", ETW_TYPE_U64 },
	{ "text", ETW_TYPE_STRING },
};

struct record {
	u8 context;
	u64 n;
	char text[5];
} __packed;

static struct etw_module_event numbered = ETW_MODULE_EVENT("numbered", ETW_LEVEL_INFO, 0x1, fields);
static struct etw_module_event other = ETW_MODULE_EVENT("numbered", ETW_LEVEL_INFO, 0x1, fields);
static struct etw_module_event *const events[] = { &numbered, &other };
static struct etw_module_provider provider = { .name = "Etw-Emit-Module", .events = events, .nr_events = 1 };
static bool twin;
module_param(twin, bool, 0444);

static DEFINE_MUTEX(lock);
static u64 next[NR_CONTEXTS];
static unsigned int count, wrong;
module_param(wrong, uint, 0444);

static void emit(u8 context)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		const struct record r = { context, next[context]++, "four" };

		if (etw_module_write(&numbered, &r, sizeof(r)))
			wrong++;
		/* without its end it is no string */
		if (etw_module_write(&numbered, &r, sizeof(r) - 1) != -EINVAL)
			wrong++;
	}
}

static DECLARE_COMPLETION(done);

static void softirq_emit(struct tasklet_struct *unused)
{
	emit(SOFTIRQ);
	complete(&done);
}

static DECLARE_TASKLET(tasklet, softirq_emit);

static void hardirq_emit(struct irq_work *unused)
{
	emit(HARDIRQ);
	tasklet_schedule(&tasklet);
}

static struct irq_work work;

static unsigned int contexts = NMI + HAVE_NMI;
module_param(contexts, uint, 0444);

#if HAVE_NMI
static int ordered;			/* the next NMI is ours */

static int nmi(unsigned int type, struct pt_regs *regs)
{
	if (cmpxchg(&ordered, 1, 2) != 1)
		return NMI_DONE;
	emit(NMI);
	smp_store_release(&ordered, 0);		/* pairs with nmi_emit() */
	return NMI_HANDLED;
}

static void nmi_emit(void)
{
	int cpu = get_cpu();

	WRITE_ONCE(ordered, 1);
	apic->send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
	put_cpu();
	while (smp_load_acquire(&ordered))	/* pairs with nmi() */
		cpu_relax();
}

static int add_handler(void)
{
	return register_nmi_handler(NMI_LOCAL, nmi, 0, "etw-emit");
}

static void remove_handler(void)
{
	unregister_nmi_handler(NMI_LOCAL, "etw-emit");
}
#else
static void nmi_emit(void)
{
}

static int add_handler(void)
{
	return 0;
}

static void remove_handler(void)
{
}
#endif

static int set_emit(const char *text, const struct kernel_param *param)
{
	int err;

	mutex_lock(&lock);
	err = kstrtouint(text, 0, &count);
	if (!err && (!provider.registration || count > 100000))
		err = -EINVAL;
	if (!err) {
		emit(TASK);
		reinit_completion(&done);
		irq_work_queue(&work);
		wait_for_completion(&done);
		nmi_emit();
	}
	mutex_unlock(&lock);
	return err;
}

static const struct kernel_param_ops emit_ops = { .set = set_emit };
module_param_cb(emit, &emit_ops, NULL, 0200);

static int get_wanted(char *text, const struct kernel_param *param)
{
	return sprintf(text, "%d\n", !!etw_module_enabled(&numbered));
}

static const struct kernel_param_ops wanted_ops = { .get = get_wanted };
module_param_cb(wanted, &wanted_ops, NULL, 0444);

static int __init emit_init(void)
{
	int err;

	init_irq_work(&work, hardirq_emit);
	provider.nr_events += twin;
	err = add_handler();
	if (err)
		return err;
	err = etw_module_register(&provider);
	if (err)
		remove_handler();
	/* EEXIST is the loader's own: later kernels do not pass it on */
	return twin && err == -EEXIST ? -ENOTUNIQ : err;
}

static void __exit emit_exit(void)
{
	tasklet_kill(&tasklet);
	remove_handler();
	etw_module_unregister(&provider);
}

module_init(emit_init);
module_exit(emit_exit);
MODULE_DESCRIPTION("Emits a known number of events as an ETW provider");
MODULE_AUTHOR("The ETW for Linux authors");
MODULE_LICENSE("GPL");
