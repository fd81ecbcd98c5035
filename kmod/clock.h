/* SPDX-License-Identifier: GPL-2.0-only */
/* What sessions take their time from, and the set of clocks a snapshot records. Knows no session. */
#ifndef ETW_CLOCK_H
#define ETW_CLOCK_H

#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>

#include <linux/etw.h>

/* What is read for a stamp, the most usual first. A session's clock is one of them plus an offset. */
enum {
	ETW_SOURCE_MONOTONIC,
	ETW_SOURCE_CYCLES,
	ETW_SOURCE_BOOT,
	ETW_NR_SOURCES,
};

/*
 * Safe in every context, NMI included; may step back a little, which the relay clamps. The cycle counter is read without a fence:
 * a reading can be as much too early or too late as the CPU runs ahead of itself, some hundred cycles, and of two readings on one
 * CPU the later can be the smaller by that. So stamps of one CPU are in order, as the relay sees to it, and events of two CPUs that
 * follow from each other within that time can be the other way round. What a flush promises rests on an interrupt, which comes
 * after the sender's reading and before the receiver's.
 */
static __always_inline u64 etw_clock_read(u8 source)
{
	if (likely(source == ETW_SOURCE_MONOTONIC))
		return ktime_get_mono_fast_ns();
	return source == ETW_SOURCE_CYCLES ? get_cycles() : ktime_get_boot_fast_ns();
}

struct etw_clocks {
	u64 monotonic;
	u64 boot;
	u64 real;
	u64 tai;
	u64 cycles;			/* 0 where the architecture offers none to modules */
};

void etw_clocks_read(struct etw_clocks *clocks);

/* Cycles in a second, or 0: the kernel does not rely on the counter, or there is none. Once 0 it stays so. */
u64 etw_cycles_freq(void);
/* Does the counter go on while the machine sleeps? */
bool etw_cycles_survive_sleep(void);
/* The counter, and what the monotonic clock said then, within a few dozen cycles. */
u64 etw_cycles_read(u64 *monotonic);

/* @ticks of a clock with @freq of them in a second, as nanoseconds, rounded down. */
u64 etw_clock_ns(u64 ticks, u64 freq);

#endif
