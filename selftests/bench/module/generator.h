/* SPDX-License-Identifier: GPL-2.0-only */
/* The generator's event as one of this project's: generator.c is its provider. Knows no other tracer. */
#ifndef ETW_BENCH_GENERATOR_H
#define ETW_BENCH_GENERATOR_H

#include "../../../kmod/etw_module.h"

struct bench_record {
	u64 number;
	u32 value;
} __packed;

extern struct etw_module_event bench_event;

static __always_inline void bench_write(u64 number, u32 value)
{
	if (etw_module_enabled(&bench_event)) {
		const struct bench_record r = { number, value };

		etw_module_write(&bench_event, &r, sizeof(r));
	}
}

#endif
