/* SPDX-License-Identifier: GPL-2.0-only */
/* The program's event of the benchmark for LTTng-UST: the same four numbers that the others write. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER etw_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng/etw_bench_ust.h"

#if !defined(ETW_BENCH_UST_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define ETW_BENCH_UST_H

#include <stdint.h>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(etw_bench, event,
	LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, a, a) lttng_ust_field_integer(uint64_t, b, b)
			    lttng_ust_field_integer(uint64_t, c, c) lttng_ust_field_integer(uint64_t, d, d))
)

#endif

#include <lttng/tracepoint-event.h>
