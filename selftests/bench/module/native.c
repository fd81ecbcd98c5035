// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generator's event written side by side by several tracers on several CPUs at once, timed by the kernel's clock: for
 * kernels that run natively. It must not know what is done with the figures.
 *
 * Writing "CPUS ROUNDS EVENTS INSTANCE" to the parameter native makes ROUNDS rounds. In each of them a thread on each of CPUS
 * CPUs makes EVENTS events of each tracer, one tracer after the other and all threads at the same time. INSTANCE is the tracefs
 * instance that has the generator's tracepoint enabled. Reading it gives lines, of the slowest CPU, over the rounds:
 *
 *   CPUS time TRACER MIN LOWER-QUARTILE MEDIAN UPPER-QUARTILE MAX    thousandths of nanoseconds an event
 *   CPUS rest TRACER ...   the same without what the clock took in that round
 *   CPUS part TRACER MIN LOWEST MEDIAN HIGHEST MAX   thousandths: this project's rest of the TRACER's in that round; LOWEST and
 *							HIGHEST are medians of stretches of an eighth of the rounds
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>
#include <linux/trace_events.h>

#include "etw_bench_trace.h"
#include "generator.h"
#include "native.h"
#include "threads.h"

#define MAX_ROUNDS 10000

/* What ftrace's ring is given: as much as a record of this project says. */
struct ring_record {
	s32 tid;
	s32 pid;
	u64 number;
	u32 value;
} __packed;

/* ftrace's record of the tracepoint. */
struct ftrace_record {
	struct trace_entry head;
	u64 number;
	u32 value;
};

static struct trace_event_file *file;
static struct trace_buffer *ring;

static noinline void run_loop(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		barrier();
}

static noinline void run_clock(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		(void)ktime_get_mono_fast_ns();
}

static noinline void run_etw(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		bench_write(i, n);
}

/* What ftrace does for the tracepoint's event, but for the tracepoint, whose entry and exit mask interrupts on User-Mode Linux. */
static noinline void run_ftrace(unsigned int n)
{
	struct trace_event_buffer buffer;
	struct ftrace_record *r;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (trace_trigger_soft_disabled(file))
			continue;
		r = trace_event_buffer_reserve(&buffer, file, sizeof(*r));
		if (!r)
			continue;
		r->number = i;
		r->value = n;
		trace_event_buffer_commit(&buffer);
	}
}

static noinline void run_tracepoint(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		trace_etw_bench_event(i, n);
}

static noinline void run_ring(unsigned int n)
{
	struct ring_buffer_event *event;
	const struct task_struct *me;
	unsigned int i;

	for (i = 0; i < n; i++) {
		event = ring_buffer_lock_reserve(ring, sizeof(struct ring_record));
		if (!event)
			continue;
		me = current;
		*(struct ring_record *)ring_buffer_event_data(event) = (struct ring_record){ me->pid, me->tgid, i, n };
		ring_buffer_unlock_commit(ring);
	}
}

static noinline void run_this_cpu(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		(void)raw_smp_processor_id();
}

static noinline void run_masking(unsigned int n)
{
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < n; i++) {
		local_irq_save(flags);
		local_irq_restore(flags);
	}
}

enum { LOOP, CLOCK, ETW, FTRACE, RING, THIS_CPU, MASKING, TRACEPOINT, NR_TRACERS };

static const struct {
	const char *name;
	void (*run)(unsigned int n);
	bool slow;			/* a sixteenth of the events does */
} tracers[NR_TRACERS] = {
	[LOOP] = { "loop", run_loop }, [CLOCK] = { "clock", run_clock }, [ETW] = { "etw", run_etw },
	[FTRACE] = { "ftrace", run_ftrace }, [RING] = { "ring", run_ring }, [THIS_CPU] = { "this_cpu", run_this_cpu },
	[MASKING] = { "masking", run_masking, true }, [TRACEPOINT] = { "tracepoint", run_tracepoint, true },
};

static DEFINE_MUTEX(lock);
static unsigned int cpus, rounds, events;
static u32 *samples;			/* by tracer, then round: of the slowest CPU */
static u64 took[BENCH_MAX_CPUS];
static bool failed;

static void work(unsigned int cpu)
{
	unsigned int round, t, i, n;
	u64 begin, slowest;

	for (round = 0; round < rounds; round++) {
		for (t = 0; t < NR_TRACERS; t++) {
			n = tracers[t].slow ? events / 16 : events;
			bench_meet();
			begin = ktime_get_mono_fast_ns();
			tracers[t].run(n);
			took[cpu] = ktime_get_mono_fast_ns() - begin;
			bench_meet();
			if (cpu)
				continue;
			for (i = 0, slowest = 0; i < cpus; i++)
				slowest = max(slowest, took[i]);
			samples[t * rounds + round] = min_t(u64, slowest * 1000 / n, U32_MAX);
		}
		cond_resched();
	}
}

/* The instance's ring, by way of an event that is thrown away. */
static int find_ring(const char *instance)
{
	struct trace_event_buffer buffer = {};

	file = trace_get_event_file(instance, "etw_bench", "etw_bench_event");
	if (IS_ERR(file))
		return PTR_ERR(file);
	ring = NULL;
	if (trace_event_buffer_reserve(&buffer, file, sizeof(struct ftrace_record))) {
		ring = buffer.buffer;
		ring_buffer_discard_commit(ring, buffer.event);
	}
	if (ring)
		return 0;
	trace_put_event_file(file);
	return -ENODEV;
}

static int set(const char *text, const struct kernel_param *param)
{
	unsigned int nr_cpus, nr_rounds, nr_events;
	char instance[32];
	int err;

	if (sscanf(text, "%u %u %u %31s", &nr_cpus, &nr_rounds, &nr_events, instance) != 4 ||
	    !nr_cpus || nr_rounds < 8 || nr_rounds > MAX_ROUNDS || nr_events < 16)
		return -EINVAL;
	mutex_lock(&lock);
	kvfree(samples);
	cpus = nr_cpus, rounds = nr_rounds, events = nr_events;
	samples = kvcalloc(NR_TRACERS * rounds, sizeof(*samples), GFP_KERNEL);
	err = samples ? find_ring(instance) : -ENOMEM;
	if (!err) {
		err = bench_on_cpus(cpus, work);
		trace_put_event_file(file);
	}
	failed = err;
	mutex_unlock(&lock);
	return err;
}

static int compare(const void *a, const void *b)
{
	const u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static u32 time_of(unsigned int tracer, unsigned int round)
{
	return samples[tracer * rounds + round];
}

static u32 rest_of(unsigned int tracer, unsigned int round)
{
	const u32 time = time_of(tracer, round);

	return time - min(time, time_of(CLOCK, round));
}

/* Both are of one round: whatever slows the machine down for a while slows both. */
static u32 part_of(unsigned int tracer, unsigned int round)
{
	return min_t(u64, rest_of(ETW, round) * 1000ULL / max(rest_of(tracer, round), 1U), U32_MAX);
}

/* Rounds @begin to @end - 1, in order; how many they are. */
static unsigned int sorted(u32 *to, u32 (*of)(unsigned int tracer, unsigned int round), unsigned int tracer, unsigned int begin,
			   unsigned int end)
{
	unsigned int i, n = 0;

	for (i = begin; i < end; i++)
		to[n++] = of(tracer, i);
	sort(to, n, sizeof(*to), compare, NULL);
	return n;
}

static int line(char *text, int len, const char *what, u32 (*of)(unsigned int tracer, unsigned int round), unsigned int tracer,
		u32 *scratch)
{
	sorted(scratch, of, tracer, 0, rounds);
	return len + sysfs_emit_at(text, len, "%u %s %s %u %u %u %u %u\n", cpus, what, tracers[tracer].name, scratch[0],
				   scratch[rounds / 4], scratch[rounds / 2], scratch[rounds * 3 / 4], scratch[rounds - 1]);
}

#define STRETCHES 8

static int part_line(char *text, int len, unsigned int tracer, u32 *scratch)
{
	u32 lowest = U32_MAX, highest = 0;
	unsigned int s, n;

	for (s = 0; s < STRETCHES; s++) {
		n = sorted(scratch, part_of, tracer, s * rounds / STRETCHES, (s + 1) * rounds / STRETCHES);
		lowest = min(lowest, scratch[n / 2]);
		highest = max(highest, scratch[n / 2]);
	}
	sorted(scratch, part_of, tracer, 0, rounds);
	return len + sysfs_emit_at(text, len, "%u part %s %u %u %u %u %u\n", cpus, tracers[tracer].name, scratch[0], lowest,
				   scratch[rounds / 2], highest, scratch[rounds - 1]);
}

static int get(char *text, const struct kernel_param *param)
{
	unsigned int t;
	int len = 0;
	u32 *s;

	mutex_lock(&lock);
	s = samples && !failed ? kvcalloc(rounds, sizeof(*s), GFP_KERNEL) : NULL;
	if (s) {
		for (t = 0; t < NR_TRACERS; t++)
			len = line(text, len, "time", time_of, t, s);
		for (t = ETW; t <= RING; t++)
			len = line(text, len, "rest", rest_of, t, s);
		for (t = FTRACE; t <= RING; t++)
			len = part_line(text, len, t, s);
	}
	kvfree(s);
	mutex_unlock(&lock);
	return len ?: -ENODATA;
}

static const struct kernel_param_ops ops = { .set = set, .get = get };
module_param_cb(native, &ops, NULL, 0600);

void bench_native_exit(void)
{
	kvfree(samples);
}
