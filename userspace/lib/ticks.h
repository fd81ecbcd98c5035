/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Ticks of a session's clock, as packets, files and the module have them, and the nanoseconds that the library speaks of. */
#ifndef ETW_TICKS_H
#define ETW_TICKS_H

#include <stdbool.h>

#include <linux/types.h>

#define TICKS_NSEC 1000000000ULL	/* the frequency of every clock but the cycle counter */

/* Frequencies with which nothing below overflows. */
static inline bool ticks_valid(__u64 freq)
{
	return freq && freq < 1ULL << 34;
}

/* Rounded down, so that what is earlier in ticks is never later in nanoseconds. @freq is valid. */
static inline __u64 ticks_ns(__u64 ticks, __u64 freq)
{
	if (__builtin_expect(freq == TICKS_NSEC, 1))
		return ticks;
	return ticks / freq * TICKS_NSEC + ticks % freq * TICKS_NSEC / freq;
}

/* The first tick of nanosecond @ns, of less than a second: ticks_ns() gives @ns back if there is a tick in each. */
static inline __u64 ns_ticks(__u64 ns, __u64 freq)
{
	return (ns * freq + TICKS_NSEC - 1) / TICKS_NSEC;
}

#endif /* ETW_TICKS_H */
