// SPDX-License-Identifier: GPL-2.0-only
/* Reads the clock set of a snapshot, and asks the kernel what it thinks of the cycle counter. */
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/time64.h>
#include <linux/timex.h>

#include "clock.h"

#if defined(CONFIG_X86_TSC) && !defined(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/tsc.h>

/* As much as the kernel asks for to keep its own time by it, but that it need not be the best there is. */
u64 etw_cycles_freq(void)
{
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC) || !boot_cpu_has(X86_FEATURE_NONSTOP_TSC) || check_tsc_unstable())
		return 0;
	return tsc_khz * 1000ULL;
}

bool etw_cycles_survive_sleep(void)
{
	return boot_cpu_has(X86_FEATURE_NONSTOP_TSC_S3);
}
#else
u64 etw_cycles_freq(void)
{
	return 0;
}

bool etw_cycles_survive_sleep(void)
{
	return false;
}
#endif

/* Between two readings of the counter: of some tries the closest, since what comes between takes long. */
u64 etw_cycles_read(u64 *monotonic)
{
	u64 best = ~0ULL, middle = 0, before, now, after;
	unsigned long flags;
	int i;

	for (i = 0; i < 8; i++) {
		local_irq_save(flags);
		before = get_cycles();
		now = ktime_get_mono_fast_ns();
		after = get_cycles();
		local_irq_restore(flags);
		if (after - before >= best)
			continue;
		best = after - before;
		middle = before + best / 2;
		*monotonic = now;
	}
	return middle;
}

/* In two steps, so that nothing overflows: @freq is far below 2^34. */
u64 etw_clock_ns(u64 ticks, u64 freq)
{
	u64 rest, seconds;

	if (freq == NSEC_PER_SEC)
		return ticks;
	seconds = div64_u64_rem(ticks, freq, &rest);
	return seconds * NSEC_PER_SEC + div64_u64(rest * NSEC_PER_SEC, freq);
}

/* With interrupts off the five readings lie within a microsecond of each other, which is what pairing them needs. */
void etw_clocks_read(struct etw_clocks *clocks)
{
	unsigned long flags;

	local_irq_save(flags);
	clocks->cycles = get_cycles();
	clocks->monotonic = ktime_get_mono_fast_ns();
	clocks->boot = ktime_get_boot_fast_ns();
	clocks->real = ktime_get_real_fast_ns();
	clocks->tai = ktime_get_tai_fast_ns();
	local_irq_restore(flags);
}
