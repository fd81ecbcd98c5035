// SPDX-License-Identifier: GPL-2.0-only
/* Reads the clock set of a snapshot. */
#include <linux/irqflags.h>
#include <linux/timex.h>

#include "clock.h"

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
