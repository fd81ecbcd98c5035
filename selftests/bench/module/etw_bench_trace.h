/* SPDX-License-Identifier: GPL-2.0-only */
/* The generator's event as a tracepoint, for the tracers that need one. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM etw_bench

#if !defined(ETW_BENCH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ETW_BENCH_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(etw_bench_event,
	TP_PROTO(u64 number, u32 value),
	TP_ARGS(number, value),
	TP_STRUCT__entry(
		__field(u64, number)
		__field(u32, value)
	),
	TP_fast_assign(
		__entry->number = number;
		__entry->value = value;
	),
	TP_printk("number=%llu value=%u", __entry->number, __entry->value)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE etw_bench_trace
#include <trace/define_trace.h>
