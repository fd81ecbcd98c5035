/* SPDX-License-Identifier: GPL-2.0-only */
/* The generator's tracepoint as LTTng describes it; goes into lttng-modules' sources. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM etw_bench

#if !defined(LTTNG_TRACE_ETW_BENCH_H) || defined(TRACE_HEADER_MULTI_READ)
#define LTTNG_TRACE_ETW_BENCH_H

#include <linux/types.h>
#include <lttng/tracepoint-event.h>

LTTNG_TRACEPOINT_EVENT(etw_bench_event,
	TP_PROTO(u64 number, u32 value),
	TP_ARGS(number, value),
	TP_FIELDS(
		ctf_integer(u64, number, number)
		ctf_integer(u32, value, value)
	)
)

#endif

#include <lttng/define_trace.h>
