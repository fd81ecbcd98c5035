/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records that come from outside the module, several at a time: from programs and other modules. Knows targets and relays, never a
 * file, a session or user memory.
 */
#ifndef ETW_WRITE_USER_H
#define ETW_WRITE_USER_H

#include <linux/types.h>

#include "class.h"
#include "clock.h"

struct etw_relay;

/* Events of one class, one after the other, each with its head: of the right size, and as the schema says. */
struct etw_run {
	const u8 *first;
	u32 bytes;
	u32 nr;
};

/* The clock readings that all runs of one write share. */
struct etw_moment {
	u64 now[ETW_NR_SOURCES];	/* 0: not read yet */
};

/*
 * Preemption is off, and etw_nesting counts the caller, from before the first run to after the last; @moment is of zeros before.
 * Process context. @trusted: without limits of rate and room. 0; ENOBUFS or EMSGSIZE if not every session took all.
 */
int etw_write_run(const struct etw_class *class, const struct etw_run *run, struct etw_moment *moment, bool trusted);
/* The same to the target alone whose relays are @only. */
int etw_write_run_to(const struct etw_class *class, const struct etw_run *run, struct etw_moment *moment, bool trusted,
		     struct etw_relay *__percpu *only);
/* The same for the single event at @first, of at most ETW_WRITE_ONE bytes. */
#define ETW_WRITE_ONE 1024
int etw_write_one(const struct etw_class *class, const u8 *first, u32 bytes, bool trusted);

/* Nanoseconds of its rate that one record of an untrusted user takes; 0 unlimited. */
extern u32 etw_untrusted_ns;

#endif
