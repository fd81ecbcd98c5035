// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generator of the benchmark: writing N to the parameter generate makes N small events in a loop, through etw.ko's functions
 * for modules if a session wants them, and through a tracepoint if somebody is attached there. Writing N to the parameter rate
 * makes N of them a second, from a timer's interrupts, until 0 is written; reading it tells how many these were. The parameter
 * clocks tells what a reading of the clocks costs. It must not know who listens.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>

#include "../../../kmod/compat.h"
#include "generator.h"
#include "native.h"
#include "relay.h"

#define CREATE_TRACE_POINTS
#include "etw_bench_trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(etw_bench_event);

static const struct etw_module_field fields[] = {
	{ "number", ETW_TYPE_U64 },
	{ "value", ETW_TYPE_U32 },
};

struct etw_module_event bench_event = ETW_MODULE_EVENT("event", ETW_LEVEL_INFO, 0x1, fields);
static struct etw_module_event *const events[] = { &bench_event };
static struct etw_module_provider provider = { .name = "Etw-Bench-Module", .events = events, .nr_events = ARRAY_SIZE(events) };

static void make(u64 number, u32 value)
{
	bench_write(number, value);
	trace_etw_bench_event(number, value);
}

static int generate(const char *text, const struct kernel_param *param)
{
	unsigned int n, i;
	int err = kstrtouint(text, 0, &n);

	if (err)
		return err;
	for (i = 0; i < n; i++)
		make(i, n);
	return 0;
}

static const struct kernel_param_ops generate_ops = { .set = generate };
module_param_cb(generate, &generate_ops, NULL, 0200);

#define RATE_MAX 1000000

static struct hrtimer timer;
static ktime_t period;
static u64 made;	/* by the timer, since the rate was set */

/* One for each period that is over, so that a late interrupt does not change the rate. */
static enum hrtimer_restart on_timer(struct hrtimer *t)
{
	u64 n = hrtimer_forward_now(t, period);

	while (n--)
		make(made++, 0);
	return HRTIMER_RESTART;
}

static int rate_set(const char *text, const struct kernel_param *param)
{
	unsigned int rate;
	int err = kstrtouint(text, 0, &rate);

	if (err || rate > RATE_MAX)
		return err ?: -EINVAL;
	hrtimer_cancel(&timer);
	if (rate) {
		made = 0;
		period = NSEC_PER_SEC / rate;
		hrtimer_start(&timer, period, HRTIMER_MODE_REL_PINNED);
	}
	return 0;
}

static int rate_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%llu\n", READ_ONCE(made));
}

static const struct kernel_param_ops rate_ops = { .set = rate_set, .get = rate_get };
module_param_cb(rate, &rate_ops, NULL, 0600);

#define ROUNDS 100
#define SERIES 20

/* Time stamps are instructions under -icount, the loop's two included; the lowest of some series, for interrupts come between. */
#define COST(clock) ({						\
	unsigned int _lowest = UINT_MAX;			\
	int _i, _s;						\
								\
	for (_s = 0; _s < SERIES; _s++) {			\
		u64 _begin = __builtin_ia32_rdtsc();				\
								\
		for (_i = 0; _i < ROUNDS; _i++)			\
			(void)(clock);				\
		_lowest = min_t(u64, _lowest, __builtin_ia32_rdtsc() - _begin);	\
	}							\
	_lowest / ROUNDS;					\
})

static int clocks(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "mono_fast %u\nmonotonic %u\nlocal %u\ntsc %u\n", COST(ktime_get_mono_fast_ns()), COST(ktime_get()),
			  COST(local_clock()), COST(__builtin_ia32_rdtsc()));
}

static const struct kernel_param_ops clocks_ops = { .get = clocks };
module_param_cb(clocks, &clocks_ops, NULL, 0400);

static int __init bench_init(void)
{
	etw_hrtimer_setup(&timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	return etw_module_register(&provider);
}

static void __exit bench_exit(void)
{
	hrtimer_cancel(&timer);
	bench_relay_stop();
	bench_native_exit();
	etw_module_unregister(&provider);
}

module_init(bench_init);
module_exit(bench_exit);
MODULE_DESCRIPTION("Generator and relay of the ETW benchmark");
MODULE_AUTHOR("The ETW for Linux authors");
MODULE_LICENSE("GPL");
