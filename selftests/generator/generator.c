// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider "test" of a test build: writes a commanded number of events from a task, a softirq, an interrupt or an
 * NMI on a commanded CPU, the way a kernel provider does, and counts what it emitted. It must not know sessions, and
 * how relays work only where it holds a writer up inside a record.
 *
 * One command is one write(2) to /dev/etw-test, "VERB NAME=VALUE ..."; it returns when it is done:
 *
 *   burst	count=N events (1)
 *	context=task|softirq|hardirq|nmi (task)
 *	cpu=N		there; without it a task writes itself where it runs, the others take the CPU it is on
 *	class=fixed|sized|large|pointer (fixed)
 *	size=BYTES	of the data of sized and large, a multiple of 4; without it every record has another one
 *	chunk=N		events an interrupt or NMI writes before it returns (1)
 *	every_us=N	time between two interrupts (50)
 *	depth=N		class fixed: each event is a chain of N writers, each nested in the one before (1)
 *	hold_us=N	class fixed: each writer is held up so long, or until it is released, ...
 *	where=begin|record	... after its clock reading, or with its record reserved and not committed (record)
 *	bare=1		context=task: the probe is called as this kernel's tracepoints do, which may be with preemption on; an
 *			event that nobody wants may then be numbered on another CPU than it was refused on
 *	release		who is held up goes on
 *	rundown	count=N	state events in every rundown from now on (4)
 *
 *	EINVAL malformed; ENXIO the CPU is not online; EOPNOTSUPP no NMI on this machine; EINTR killed; ETIMEDOUT an NMI
 *	did not come. What was emitted counts in any case.
 *
 * read(2) gives lines "emitted CPU CONTEXT CLASS NUMBER" for every possible CPU, the sequence number of the next such
 * event on that CPU; where an event was really written counts, not where it was asked for. Then "held CPU NUMBER",
 * writers that are being held up there, "rundown WRITTEN REFUSED", and "preemptible CALLS WRITES": how often a probe was
 * called with preemption on, and how often it was still on where the record is
 * made, which must be never.
 *
 * Events of one CPU, context and class have the sequence numbers 0, 1, ... in the order in which they reserve.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../kmod/event.h"
#include "../../kmod/provider.h"
#include "../../kmod/test.h"

#if defined(CONFIG_X86_LOCAL_APIC) && !defined(CONFIG_UML)
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#define HAVE_NMI	1
#else
#define HAVE_NMI	0
#endif

enum level { TASK, SOFTIRQ, HARDIRQ, NMI, NR_CONTEXTS };
enum kind { FIXED, SIZED, LARGE, POINTER, NR_CLASSES };

static const char *const context_names[] = { "task", "softirq", "hardirq", "nmi" };
static const char *const class_names[] = { "fixed", "sized", "large", "pointer" };

#define KW_FIXED	0x1
#define KW_SIZED	0x2
#define KW_LARGE	0x4
#define KW_POINTER	0x8

static const struct etw_keyword_name keywords[] = {
	{ KW_FIXED, "fixed" },
	{ KW_SIZED, "sized" },
	{ KW_LARGE, "large" },
	{ KW_POINTER, "pointer" },
};

static const struct etw_value context_values[] = {
	{ TASK, "task" }, { SOFTIRQ, "softirq" }, { HARDIRQ, "hardirq" }, { NMI, "nmi" },
};

static const struct etw_map context_map = { ETW_MAP_VALUES, ARRAY_SIZE(context_values), context_values };

#define HEAD(F)					\
	F(U64, seq, DEFAULT, NULL)		\
	F(U32, cpu, DEFAULT, NULL)		\
	F(U8, context, DEFAULT, &context_map)
#define FIXED_EVENT(F)				\
	HEAD(F)					\
	F(U8, nesting, DEFAULT, NULL)		\
	F(U32, check, HEX, NULL)
ETW_EVENT(fixed, FIXED_EVENT, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KW_FIXED,
	  .description = "a small event; nesting: writers on this CPU, check: made from the fields before nesting");

/* data: element i is etw_test_data(seq % DATA_STARTS + i) */
#define SIZED_EVENT(F)				\
	HEAD(F)					\
	F(SEQ_S32, data, DEFAULT, NULL)
ETW_EVENT(sized, SIZED_EVENT, .event_id = 2, .level = ETW_LEVEL_VERBOSE, .keyword = KW_SIZED,
	  .description = "an event of variable size");
ETW_EVENT(large, SIZED_EVENT, .event_id = 3, .level = ETW_LEVEL_WARNING, .keyword = KW_LARGE,
	  .description = "a large event");

#define POINTER_EVENT(F)			\
	HEAD(F)					\
	F(POINTER, address, HEX, NULL)
ETW_EVENT(pointer, POINTER_EVENT, .event_id = 4, .level = ETW_LEVEL_INFO, .keyword = KW_POINTER,
	  .description = "an event with a kernel address");

#define STATE_EVENT(F)				\
	F(U64, round, DEFAULT, NULL)		\
	F(U32, number, DEFAULT, NULL)		\
	F(U32, of, DEFAULT, NULL)
ETW_EVENT(state, STATE_EVENT, .event_id = 5, .opcode = ETW_OPCODE_DC_START, .rundown = true,
	  .description = "one of so many in a rundown, which has a number of its own");

#define MAX_DATA	(70000 / sizeof(s32))
#define DATA_STARTS	64
#define MAX_HELD	8
#define MAX_DEPTH	8
#define MAX_HOLD_US	10000000
#define HOLD_STEP_US	100

static s32 *data;

static u32 etw_test_data(u32 i)
{
	return i * 2654435761U;
}

struct counts {
	u64 emitted[NR_CONTEXTS][NR_CLASSES];	/* each touched by one context of its CPU only */
};

static DEFINE_PER_CPU(struct counts, counts);
static DEFINE_PER_CPU(int, held);
static atomic64_t preemptible_calls, preemptible_writes;
static atomic64_t rundown_round, rundown_written, rundown_refused;
static unsigned int rundown_count = 4;
static unsigned int releases;

struct burst {
	enum level context;
	enum kind class;
	int cpu;			/* -1: anywhere */
	u32 count;
	u32 left;
	u32 size;			/* of the data; 0 varies */
	u32 chunk;
	u32 every_us;
	u32 depth;
	u32 hold_us;
	bool hold_record;
	bool bare;
	int err;
	struct hrtimer timer;
	struct completion done;
};

/* One event on its way. The sequence number is taken just before the record is reserved. */
struct emission {
	const struct burst *burst;
	u32 depth;
	bool taken;
	enum level context;
};

static notrace u64 take_seq(struct emission *e)
{
	u64 *next = &this_cpu_ptr(&counts)->emitted[e->context][e->burst->class];
	u64 seq = READ_ONCE(*next);

	if (preemptible())
		atomic64_inc(&preemptible_writes);
	WRITE_ONCE(*next, seq + 1);
	e->taken = true;
	return seq;
}

static notrace void emit(const struct burst *b, u32 depth);

static notrace void hold(const struct burst *b)
{
	const unsigned int before = READ_ONCE(releases);
	u32 left = b->hold_us;

	if (!left)
		return;
	this_cpu_inc(held);
	for (; left > HOLD_STEP_US && READ_ONCE(releases) == before; left -= HOLD_STEP_US)
		udelay(HOLD_STEP_US);
	if (left <= HOLD_STEP_US)
		udelay(left);
	this_cpu_dec(held);
}

/* The long way of kmod/write.c, but that it stops between reservation and copy, in all sessions at once. */
static notrace void write_held(const struct etw_event *event, const void *payload, u32 len, const struct burst *b)
{
	const struct etw_vec vec = { payload, len };
	struct {
		struct etw_relay *relay;
		const struct etw_target *t;
		struct etw_reservation res;
	} open[MAX_HELD];
	const struct etw_target *t;
	u32 i, records, nr = 0;

	for (t = event->targets->t; t->relays && nr < MAX_HELD; t++) {
		struct etw_relay *r = this_cpu_read(*t->true_relays);
		u64 now = t->source == event->targets->source ? event->now : etw_clock_read(t->source);

		if (t->filter && !etw_filter_has(t->filter, current->pid) &&
		    !etw_filter_has(t->filter, current->tgid)) {
			this_cpu_inc(t->counts->filtered);
			continue;
		}
		if (r == &etw_no_relay) {
			this_cpu_inc(t->counts->lost[ETW_LOST_CPU]);
			continue;
		}
		open[nr].relay = r;
		open[nr].t = t;
		etw_relay_reserve(r, now + r->clock_offset, t->source, len, &open[nr].res);
		if (open[nr].res.to)
			nr++;
		else
			this_cpu_inc(t->counts->lost[open[nr].res.cause]);
	}
	etw_write(event, t, &vec, 1);
	hold(b);
	for (i = 0; i < nr; i++) {
		const struct etw_reservation *res = &open[i].res;
		u8 *to = res->to;

		if (res->extended) {
			*(struct etw_record_extended *)to = (struct etw_record_extended){
				ETW_ID_EXTENDED, open[i].t->class_id, res->ts, current->pid, current->tgid };
			to += sizeof(struct etw_record_extended);
		} else {
			*(struct etw_record_compact *)to = (struct etw_record_compact){
				open[i].t->class_id, res->ts, current->pid, current->tgid };
			to += sizeof(struct etw_record_compact);
		}
		memcpy(to, payload, len);
		records = etw_relay_commit(open[i].relay, res);
		if (records)
			etw_relay_deliver(open[i].relay, res->slot, res->at, records);
		this_cpu_inc(open[i].t->counts->written);
	}
	__this_cpu_dec(etw_nesting);
}

static __always_inline u32 check_of(u64 seq, u32 cpu, u8 context)
{
	return (u32)seq * 2654435761U ^ cpu << 8 ^ context;
}

ETW_PROBE_NAMED(fixed, NULL, TP_PROTO(struct emission *e), TP_ARGS(e))
{
	const struct burst *b = e->burst;
	struct fixed_record r;
	struct etw_event event;
	bool begun = etw_begin(&event, targets, NULL);

	if (e->depth > 1)
		emit(b, e->depth - 1);
	if (!begun)
		return;
	if (!b->hold_record)
		hold(b);
	r.seq = take_seq(e);
	r.cpu = smp_processor_id();
	r.context = e->context;
	r.nesting = __this_cpu_read(etw_nesting);
	r.check = check_of(r.seq, r.cpu, r.context);
	if (b->hold_us && b->hold_record)
		write_held(&event, &r, sizeof(r), b);
	else
		etw_end(&event, &r, sizeof(r));
}

static __always_inline void write_data(const struct etw_targets *targets, struct emission *e, u32 vary_from, u32 vary)
{
	struct sized_record r;
	struct etw_vec vec[3] = { { &r, sizeof(r) } };
	struct etw_event event;
	u32 nr = e->burst->size / sizeof(s32);

	if (!etw_begin(&event, targets, NULL))
		return;
	r.seq = take_seq(e);
	r.cpu = smp_processor_id();
	r.context = e->context;
	if (!nr)
		nr = vary_from + (u32)r.seq % vary;
	vec[1] = (struct etw_vec){ &nr, sizeof(nr) };
	vec[2] = (struct etw_vec){ data + (u32)r.seq % DATA_STARTS, nr * sizeof(s32) };
	etw_end_vec(&event, vec, ARRAY_SIZE(vec));
}

ETW_PROBE_NAMED(sized, NULL, TP_PROTO(struct emission *e), TP_ARGS(e))
{
	write_data(targets, e, 0, 65);
}

ETW_PROBE_NAMED(large, NULL, TP_PROTO(struct emission *e), TP_ARGS(e))
{
	write_data(targets, e, 256, 512);
}

ETW_PROBE_NAMED(pointer, NULL, TP_PROTO(struct emission *e), TP_ARGS(e))
{
	struct pointer_record r;
	struct etw_event event;

	if (!etw_begin(&event, targets, NULL))
		return;
	r.seq = take_seq(e);
	r.cpu = smp_processor_id();
	r.context = e->context;
	r.address = (unsigned long)data;
	etw_end(&event, &r, sizeof(r));
}

static notrace void call_probe(struct emission *e)
{
	static void (*const probes[])(void *class, struct emission *e) = {
		[FIXED] = probe_fixed, [SIZED] = probe_sized, [LARGE] = probe_large, [POINTER] = probe_pointer,
	};
	static struct etw_class *const classes[] = {
		[FIXED] = &fixed_class, [SIZED] = &sized_class, [LARGE] = &large_class, [POINTER] = &pointer_class,
	};
	const enum kind class = e->burst->class;

	e->context = interrupt_context_level();
	probes[class](classes[class], e);
}

static notrace void emit(const struct burst *b, u32 depth)
{
	struct emission e = { .burst = b, .depth = depth };

	if (b->bare) {
		etw_tracepoint_preempt_disable();
		if (preemptible())
			atomic64_inc(&preemptible_calls);
		call_probe(&e);
		etw_tracepoint_preempt_enable();
		preempt_disable_notrace();
	} else {
		preempt_disable_notrace();
		call_probe(&e);
	}
	if (!e.taken)	/* nobody wanted it, or it was lost */
		take_seq(&e);
	preempt_enable_notrace();
}

/* True when all are out. */
static notrace bool emit_chunk(struct burst *b)
{
	u32 nr = min(b->left, b->chunk);

	b->left -= nr;
	while (nr--)
		emit(b, b->depth);
	return !b->left;
}

/* ---- a burst in each context ---- */

#define TASK_CHUNK 256

static int task_chunk(void *arg)
{
	struct burst *b = arg;
	u32 i;

	for (i = 0; i < TASK_CHUNK && b->left; i++)
		emit_chunk(b);
	return 0;
}

static int burst_task(struct burst *b)
{
	int err = 0;

	while (b->left && !err) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		if (b->cpu < 0) {
			task_chunk(b);
			continue;
		}
		cpus_read_lock();	/* work for a CPU that is not there would wait for it */
		err = cpu_online(b->cpu) ? smp_call_on_cpu(b->cpu, task_chunk, b, false) : -ENXIO;
		cpus_read_unlock();
	}
	return err;
}

/* In softirq or in the interrupt itself, by the mode of the timer. */
static enum hrtimer_restart burst_tick(struct hrtimer *timer)
{
	struct burst *b = container_of(timer, struct burst, timer);

	if (emit_chunk(b)) {
		complete(&b->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(b->every_us * 1000ULL));
	return HRTIMER_RESTART;
}

static void start_timer(void *arg)
{
	struct burst *b = arg;

	hrtimer_start(&b->timer, ns_to_ktime(b->every_us * 1000ULL),
		      b->context == HARDIRQ ? HRTIMER_MODE_REL_PINNED_HARD : HRTIMER_MODE_REL_PINNED_SOFT);
}

static int burst_timer(struct burst *b)
{
	int err;

	etw_hrtimer_setup(&b->timer, burst_tick, CLOCK_MONOTONIC,
			  b->context == HARDIRQ ? HRTIMER_MODE_REL_PINNED_HARD : HRTIMER_MODE_REL_PINNED_SOFT);
	init_completion(&b->done);
	err = smp_call_function_single(b->cpu, start_timer, b, true);
	if (err)
		return err;
	err = wait_for_completion_killable(&b->done) ? -EINTR : 0;
	hrtimer_cancel(&b->timer);
	return err;
}

#if HAVE_NMI
/* What the next NMI of a CPU is for. */
struct order {
	struct mutex lock;
	struct burst *burst;
	int state;			/* 0 none, 1 sent, 2 being done */
};

static DEFINE_PER_CPU(struct order, orders);

static int nmi(unsigned int type, struct pt_regs *regs)
{
	struct order *order = this_cpu_ptr(&orders);

	if (cmpxchg(&order->state, 1, 2) != 1)
		return NMI_DONE;
	emit_chunk(order->burst);
	smp_store_release(&order->state, 0);	/* pairs with send_nmi() */
	return NMI_HANDLED;
}

/* One NMI at a time: those that come too fast are one. Order lock held. */
static int send_nmi(struct order *order, struct burst *b)
{
	const unsigned long end = jiffies + 10 * HZ;
	unsigned int i;
	int err = 0;

	cpus_read_lock();
	if (!cpu_online(b->cpu)) {
		err = -ENXIO;
		goto out;
	}
	order->burst = b;
	smp_store_release(&order->state, 1);
	apic->send_IPI_mask(cpumask_of(b->cpu), NMI_VECTOR);
	for (i = 0; smp_load_acquire(&order->state); i++) {	/* pairs with nmi() */
		if (i < 10000) {
			cpu_relax();
			continue;
		}
		usleep_range(10, 20);
		if (time_after(jiffies, end) && cmpxchg(&order->state, 1, 0) == 1) {
			err = -ETIMEDOUT;
			break;
		}
	}
out:
	cpus_read_unlock();
	return err;
}

static int burst_nmi(struct burst *b)
{
	struct order *order = per_cpu_ptr(&orders, b->cpu);
	int err = 0;

	mutex_lock(&order->lock);
	while (b->left && !err) {
		err = fatal_signal_pending(current) ? -EINTR : send_nmi(order, b);
		cond_resched();
	}
	mutex_unlock(&order->lock);
	return err;
}

static int nmi_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		mutex_init(&per_cpu_ptr(&orders, cpu)->lock);
	return register_nmi_handler(NMI_LOCAL, nmi, 0, "etw-test");
}

static void nmi_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "etw-test");
}
#else
static int burst_nmi(struct burst *b)
{
	return -EOPNOTSUPP;
}

static int nmi_init(void)
{
	return 0;
}

static void nmi_exit(void)
{
}
#endif

static int burst_run(struct burst *b)
{
	if (b->context == TASK)
		return burst_task(b);
	if (b->cpu < 0)
		b->cpu = raw_smp_processor_id();
	return b->context == NMI ? burst_nmi(b) : burst_timer(b);
}

/* ---- commands ---- */

static int parse_name(const char *value, const char *const *names, int nr)
{
	while (nr-- && strcmp(value, names[nr]))
		;
	return nr;
}

static int parse_word(struct burst *b, char *word)
{
	static const char *const wheres[] = { "begin", "record" };
	char *value = strchr(word, '=');
	u32 number;
	int index;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(word, "context")) {
		index = parse_name(value, context_names, NR_CONTEXTS);
		b->context = index;
		return index < 0 ? -EINVAL : 0;
	}
	if (!strcmp(word, "class")) {
		index = parse_name(value, class_names, NR_CLASSES);
		b->class = index;
		return index < 0 ? -EINVAL : 0;
	}
	if (!strcmp(word, "where")) {
		index = parse_name(value, wheres, ARRAY_SIZE(wheres));
		b->hold_record = index;
		return index < 0 ? -EINVAL : 0;
	}
	if (kstrtou32(value, 0, &number))
		return -EINVAL;
	if (!strcmp(word, "count")) {
		b->count = number;
		return 0;
	}
	if (!strcmp(word, "cpu")) {
		b->cpu = number;
		return number < nr_cpu_ids ? 0 : -EINVAL;
	}
	if (!strcmp(word, "size")) {
		b->size = number;
		return number % sizeof(s32) || number > MAX_DATA * sizeof(s32) ? -EINVAL : 0;
	}
	if (!strcmp(word, "chunk")) {
		b->chunk = number;
		return number ? 0 : -EINVAL;
	}
	if (!strcmp(word, "every_us")) {
		b->every_us = number;
		return number ? 0 : -EINVAL;
	}
	if (!strcmp(word, "depth")) {
		b->depth = number;
		return number && number <= MAX_DEPTH ? 0 : -EINVAL;
	}
	if (!strcmp(word, "bare")) {
		b->bare = number;
		return 0;
	}
	if (!strcmp(word, "hold_us")) {
		b->hold_us = number;
		return number <= MAX_HOLD_US ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int command(char *line, struct burst *b)
{
	char *verb = strsep(&line, " \n"), *word;
	int err;

	while ((word = strsep(&line, " \n"))) {
		if (!*word)
			continue;
		err = parse_word(b, word);
		if (err)
			return err;
	}
	if (!strcmp(verb, "release")) {
		WRITE_ONCE(releases, releases + 1);
		return 0;
	}
	if (!strcmp(verb, "rundown")) {
		WRITE_ONCE(rundown_count, b->count);
		return 0;
	}
	if (strcmp(verb, "burst") || (b->class != FIXED && (b->depth > 1 || b->hold_us)))
		return -EINVAL;
	b->left = b->count;
	return b->count ? burst_run(b) : 0;
}

static ssize_t control_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct burst *b;
	char line[256];
	int err;

	if (!len || len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = '\0';
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->cpu = -1;
	b->count = 1;
	b->chunk = 1;
	b->every_us = 50;
	b->depth = 1;
	b->hold_record = true;
	err = command(line, b);
	kfree(b);
	return err ?: len;
}

static int control_show(struct seq_file *m, void *unused)
{
	int cpu, context, class;

	for_each_possible_cpu(cpu)
		for (context = 0; context < NR_CONTEXTS; context++)
			for (class = 0; class < NR_CLASSES; class++)
				seq_printf(m, "emitted %d %s %s %llu\n", cpu, context_names[context], class_names[class],
					   READ_ONCE(per_cpu_ptr(&counts, cpu)->emitted[context][class]));
	for_each_possible_cpu(cpu)
		seq_printf(m, "held %d %d\n", cpu, READ_ONCE(per_cpu(held, cpu)));
	seq_printf(m, "preemptible %lld %lld\n", (s64)atomic64_read(&preemptible_calls),
		   (s64)atomic64_read(&preemptible_writes));
	seq_printf(m, "rundown %lld %lld\n", (s64)atomic64_read(&rundown_written), (s64)atomic64_read(&rundown_refused));
	return 0;
}

static int control_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL;	/* misc devices have it set, seq_file does not like that */
	return single_open(file, control_show, NULL);
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.read = seq_read,
	.write = control_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static struct miscdevice control = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "etw-test",
	.fops = &control_fops,
	.mode = 0600,
};

/* ---- the provider ---- */

static int rundown(struct etw_session *session)
{
	struct state_record r = { .round = atomic64_inc_return(&rundown_round), .of = READ_ONCE(rundown_count) };
	struct etw_vec vec = { &r, sizeof(r) };

	for (; r.number < r.of; r.number++) {
		if (etw_rundown_interrupted(session))
			return -EINTR;
		if (etw_write_direct(session, &state_class, current->pid, current->tgid, &vec, 1))
			atomic64_inc(&rundown_written);
		else
			atomic64_inc(&rundown_refused);
	}
	return 0;
}

static struct etw_class *const provided[] = { &fixed_class, &sized_class, &large_class, &pointer_class, &state_class };

static struct etw_provider provider = {
	.guid = UUID_INIT(0xb5d02072, 0xe30d, 0x501b, 0x9b, 0xde, 0x07, 0xa2, 0xd7, 0x40, 0xa9, 0xc4),
	.name = "Linux-Kernel-Test",
	.alias = "test",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = provided,
	.nr_classes = ARRAY_SIZE(provided),
	.rundown = rundown,
};

int etw_test_init(void)
{
	u32 i;
	int err;

	BUILD_BUG_ON(sizeof(struct large_record) != sizeof(struct sized_record));
	data = kvmalloc_array(MAX_DATA + DATA_STARTS, sizeof(*data), GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	for (i = 0; i < MAX_DATA + DATA_STARTS; i++)
		data[i] = etw_test_data(i);
	err = nmi_init();
	if (err)
		goto free;
	err = etw_provider_register(&provider);
	if (err)
		goto no_nmi;
	err = misc_register(&control);
	if (err)
		goto unregister;
	return 0;

unregister:
	etw_provider_unregister(&provider);
no_nmi:
	nmi_exit();
free:
	kvfree(data);
	return err;
}

void etw_test_exit(void)
{
	misc_deregister(&control);
	etw_provider_unregister(&provider);
	nmi_exit();
	kvfree(data);
}
