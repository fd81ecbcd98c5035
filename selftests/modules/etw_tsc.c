// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CPU whose cycle counter the kernel relies on, for guests whose emulator cannot say that it has one: loading it gives the CPU
 * the two flags. Writing to the parameter unstable has the kernel call the counter unstable, by its own function, for good. It
 * must not know the tracer.
 */
#include <linux/module.h>

#if defined(CONFIG_X86_TSC) && !defined(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/tsc.h>

static int set_unstable(const char *text, const struct kernel_param *param)
{
	mark_tsc_unstable("the test says so");
	return 0;
}

static const struct kernel_param_ops unstable_ops = { .set = set_unstable };
module_param_cb(unstable, &unstable_ops, NULL, 0200);

static int __init etw_tsc_init(void)
{
	if (check_tsc_unstable())
		return -EOPNOTSUPP;
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_CONSTANT_TSC);
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_NONSTOP_TSC);
	return 0;
}
#else
static int __init etw_tsc_init(void)
{
	return -EOPNOTSUPP;
}
#endif

/* The machine is as before but for what cannot be taken back. */
static void __exit etw_tsc_exit(void)
{
#if defined(CONFIG_X86_TSC) && !defined(CONFIG_UML)
	clear_bit(X86_FEATURE_CONSTANT_TSC, (unsigned long *)boot_cpu_data.x86_capability);
	clear_bit(X86_FEATURE_NONSTOP_TSC, (unsigned long *)boot_cpu_data.x86_capability);
#endif
}

module_init(etw_tsc_init);
module_exit(etw_tsc_exit);
MODULE_DESCRIPTION("A cycle counter that the kernel relies on, and relies on no more");
MODULE_LICENSE("GPL");
