// SPDX-License-Identifier: GPL-2.0-only
/* LTTng's probe of the generator's tracepoint; goes into lttng-modules' sources. */
#include <linux/module.h>
#include <lttng/tracer.h>

#include "etw_bench_trace.h"

#include <wrapper/tracepoint.h>

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE

#define LTTNG_PACKAGE_BUILD
#define CREATE_TRACE_POINTS
#define TRACE_INCLUDE_PATH instrumentation/events
#define TRACE_INCLUDE_FILE etw_bench
#include <instrumentation/events/etw_bench.h>

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("LTTng's probe of the ETW benchmark");
