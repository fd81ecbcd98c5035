/* SPDX-License-Identifier: GPL-2.0-only */
/* The session clocks and the set of clocks a snapshot records. Knows no session. */
#ifndef ETW_CLOCK_H
#define ETW_CLOCK_H

#include <linux/ktime.h>
#include <linux/timekeeping.h>

#include <linux/etw.h>

/* Safe in every context, NMI included; may step back a little, which the relay clamps. */
static __always_inline u64 etw_clock_read(bool boot)
{
	return boot ? ktime_get_boot_fast_ns() : ktime_get_mono_fast_ns();
}

struct etw_clocks {
	u64 monotonic;
	u64 boot;
	u64 real;
	u64 tai;
	u64 cycles;			/* 0 where the architecture offers none to modules */
};

void etw_clocks_read(struct etw_clocks *clocks);

#endif
