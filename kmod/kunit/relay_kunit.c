// SPDX-License-Identifier: GPL-2.0-only
/*
 * relay.c and the copies of write.c: every step, with every other writer, flush or step of the reader running right
 * there, in both modes. A naive model follows each case and says what every packet must hold; a reader of its own
 * checks the bytes. Runs in a kernel with KUnit, in real interrupts too, and on the host under sanitizers. Must not
 * know sessions, nor how the relay finds its answers.
 */
#include <kunit/test.h>
#include <linux/etw.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/string.h>

#if defined(__KERNEL__) && !defined(CONFIG_UML)
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#endif

#include "../relay.h"
#include "../relay_mem.h"
#include "../step.h"
#include "../write.h"

/* A packet holds a short record and another one, or a long one and a short one, never two long ones. */
#define HEADER		sizeof(struct etw_packet_header)
#define EXTENDED	sizeof(struct etw_record_extended)
#define COMPACT		sizeof(struct etw_record_compact)
#define ROOM		(PAGE_SIZE - HEADER - EXTENDED - COMPACT - 1)
#define SHORT		((u32)(ROOM * 2 / 5))
#define LONG		((u32)(ROOM * 3 / 5))

/*
 * A sanitized kernel in an emulated machine needs a hundred times as long for a case: few states and writers must do
 * where cases are many, and no further lap.
 */
#ifdef __KERNEL__
#define FEW		true
#else
#define FEW		false
#endif

#define CLASS_ID		0x1234
#define MAX_RECORDS	64
#define MAX_PACKETS	32
#define MAX_SLOTS	4
#define MAX_PLAN	5
#define MAX_HOOKS	2048
#define MAX_FRAMES	8
#define NOBODY		0xffffffffU

enum action { WRITE_SHORT, WRITE_LONG, FLUSH, GET_OR_PUT, NR_ACTIONS };
static const char letters[] = "WLFR";

#define WRITERS		(BIT(WRITE_SHORT) | BIT(WRITE_LONG))
#define EVERYTHING	(WRITERS | BIT(FLUSH) | BIT(GET_OR_PUT))

struct model_record {
	u64 earliest, latest;		/* of its stamp */
	u32 len;
	bool reserved, lost;
};

struct model_packet {
	u32 nr;
	u32 record[4];
	u32 content;
	u32 pending;			/* pieces reserved and not committed */
	u64 lost;			/* the running count, at its end */
	bool closed, delivered, overwritten, taken, put;
};

/* One context: what it does, and what was true when it decided. */
struct frame {
	enum action action;
	u32 record;
	u64 sample;
	bool full, wrapped, closed;
};

static struct {
	struct etw_relay *relay;
	struct etw_relay fresh;		/* as created, with its slots and buffers */
	struct etw_slot fresh_slots[MAX_SLOTS];
	struct etw_buffer fresh_buffers[MAX_SLOTS + 1];
	struct etw_targets *targets;
	struct etw_relay *__percpu *relays;
	struct etw_counts __percpu *counts;
	wait_queue_head_t wait;
	int waiting;
	u32 nr_classes;
	u8 uuid[16];
	u8 payload[MAX_RECORDS][PAGE_SIZE];
	u8 hand[PAGE_SIZE];		/* what the packet lent held when it was got */

	/* the model */
	u64 position;
	struct model_record records[MAX_RECORDS];
	u32 nr_records;
	struct model_packet packets[MAX_PACKETS];
	u64 reserved, lost, overwritten, delivered, flushes;
	u64 causes[ETW_NR_LOST];
	u32 consumed;			/* packets put, in discard mode */
	u32 in_hand;			/* packet lent, or NOBODY */
	u64 clock;			/* the latest reading */
	u64 read_end;			/* of the last packet read */
	u64 tick;			/* passes at every step */

	/* contexts on each other */
	struct frame frames[MAX_FRAMES];
	u32 depth;
	bool active, real, chain;
	int cpu;

	/* what is to run where */
	struct {
		u32 at;
		enum action action;
	} plan[MAX_PLAN];
	u32 nr_plan, done, hooks, span;	/* span: steps of the outermost action */
	u32 allowed;
	u8 legal[MAX_HOOKS];
	u8 kept[MAX_PLAN][MAX_HOOKS];

	/* what came of it */
	const char *wrong;
	u64 wrong_a, wrong_b;
	enum etw_step wrong_step;
	enum etw_step step;
	unsigned long cases, nested, hardirqs, softirqs;
	u32 deepest;
	unsigned long cut[ETW_NR_STEPS];
} w;

#define STEP_NAME(name) #name,
static const char *const step_names[] = { ETW_STEPS(STEP_NAME) };

/* Any context: only the first one is kept. */
static void wrong(const char *what, u64 a, u64 b)
{
	if (w.wrong)
		return;
	w.wrong = what;
	w.wrong_a = a;
	w.wrong_b = b;
	w.wrong_step = w.step;
}

static void equal(const char *what, u64 a, u64 b)
{
	if (a != b)
		wrong(what, a, b);
}

#define CHECK(x)	((x) ? (void)0 : wrong(#x, 0, 0))
#define EQUAL(a, b)	equal(#a " == " #b, a, b)

static u32 nr_slots(void)
{
	return w.relay->nr_slots;
}

static u32 seq_of(u64 position)
{
	u64 seq = position / w.relay->size - nr_slots();

	if (seq < MAX_PACKETS)
		return seq;
	wrong("position", position, 0);
	return MAX_PACKETS - 1;
}

static struct model_packet *packet_at(u64 position)
{
	return &w.packets[seq_of(position)];
}

static u32 offset_of(u64 position)
{
	return position % w.relay->size;
}

static struct frame *frame(void)
{
	return &w.frames[w.depth - 1];
}

static u64 clock_now(void)
{
	return etw_relay_now(w.relay, ETW_SOURCE_MONOTONIC);
}

/* ---- the model: what each step means for the packets ---- */

static void model_close(u64 end)
{
	struct model_packet *p = packet_at(end);

	CHECK(!p->closed);
	p->closed = true;
	p->pending++;
	p->content = offset_of(end);
	p->lost = frame()->sample;
	frame()->closed = true;
}

/* The record of this context got its place at @at, by an exchange that moved the position to where it is now. */
static void model_reserve(u64 at)
{
	struct frame *f = frame();
	struct model_record *rec = &w.records[f->record];
	u64 size = READ_ONCE(w.relay->reserve) - at, boundary = (w.position + w.relay->mask) & ~w.relay->mask;
	struct model_packet *p;
	bool fits = offset_of(w.position) && offset_of(w.position) + size < w.relay->size;

	CHECK(!rec->reserved && !rec->lost);
	if (at == boundary) {
		EQUAL(size, HEADER + EXTENDED + rec->len);
		CHECK(!offset_of(w.position) || offset_of(w.position) + COMPACT + rec->len >= w.relay->size ||
		      offset_of(w.position) + EXTENDED + rec->len >= w.relay->size);
		CHECK(!f->full && !f->wrapped);
		if (offset_of(w.position))
			model_close(w.position);
	} else {
		CHECK(fits);
		EQUAL(at, w.position);
		CHECK(size == COMPACT + rec->len || size == EXTENDED + rec->len);
	}
	p = packet_at(at);
	CHECK(!p->closed && p->nr < ARRAY_SIZE(p->record));
	if (p->nr < ARRAY_SIZE(p->record))
		p->record[p->nr++] = f->record;
	p->pending++;
	rec->reserved = true;
	rec->latest = w.clock;
	w.position = at + size;
	w.reserved++;
}

/* Whoever opens a slot ends what the lap before left there. */
static void model_open(u64 position)
{
	u32 seq = seq_of(position);
	struct model_packet *old;

	if (seq < nr_slots())
		return;
	old = &w.packets[seq - nr_slots()];
	CHECK(old->delivered && !old->overwritten);
	if (!w.relay->overwrite) {
		CHECK(old->put);
	} else if (!old->taken) {
		old->overwritten = true;
		w.overwritten += old->nr;
	}
}

static void model_deliver(u64 position)
{
	struct model_packet *p = packet_at(position);

	CHECK(p->closed && !p->delivered);
	EQUAL(p->pending, 0);
	p->delivered = true;
}

static void commit_piece(u64 position)
{
	struct model_packet *p = packet_at(position);

	CHECK(p->pending && !p->delivered);
	p->pending--;
}

/* The packet is the reader's: the oldest that is still there. */
static void model_take(u64 position)
{
	u32 i, seq = seq_of(position);

	CHECK(w.packets[seq].delivered && !w.packets[seq].overwritten && !w.packets[seq].taken);
	for (i = 0; i < seq; i++)
		CHECK(w.packets[i].taken || w.packets[i].overwritten);
	w.packets[seq].taken = true;
}

static bool hand_is_whole(void)
{
	u32 index = w.relay->spare;

	if (!w.relay->overwrite)
		index = (etw_relay_slot(w.relay, w.relay->consumed)->word & ETW_SLOT_INDEX) >> ETW_SLOT_INDEX_SHIFT;
	return !memcmp(w.hand, w.relay->buffers[index].base, w.packets[w.in_hand].content);
}

/* @step has just been done. */
static void after(enum etw_step step, u64 position)
{
	switch (step) {
	case ETW_STEP_SHORT_RESERVED:
	case ETW_STEP_RESERVED:
		model_reserve(position);
		break;
	case ETW_STEP_FLUSHED:
		EQUAL(position, w.position);
		CHECK(offset_of(position));
		model_close(position);
		w.position = (position | w.relay->mask) + 1;
		w.flushes++;
		break;
	case ETW_STEP_COMMITTED:
	case ETW_STEP_CLOSE_COMMITTED:
		commit_piece(position);
		break;
	case ETW_STEP_OPENED:
		model_open(position);
		break;
	case ETW_STEP_DELIVERED:
		model_deliver(position);
		break;
	case ETW_STEP_LOST_BEFORE:
		CHECK(frame()->full || frame()->wrapped);
		w.causes[frame()->full ? ETW_LOST_NO_ROOM : ETW_LOST_WRAPPED]++;
		break;
	case ETW_STEP_LOST_TOTAL:
		w.lost++;
		w.records[frame()->record].lost = true;
		break;
	case ETW_STEP_GOT:
		model_take(position);
		break;
	case ETW_STEP_PUT:
		w.packets[w.consumed++].put = true;
		break;
	default:
		break;
	}
}

/* Nothing else comes before the load that follows. */
static void before(enum etw_step step, u64 position)
{
	struct frame *f = frame();
	u32 seq;

	switch (step) {
	case ETW_STEP_POSITION:
		f->full = false;
		f->wrapped = false;
		break;
	case ETW_STEP_ROOM_BEFORE:
		f->full = !w.relay->overwrite && seq_of(position) - w.consumed >= nr_slots();
		f->wrapped = false;
		break;
	case ETW_STEP_WORD_BEFORE:
		seq = seq_of(position);
		f->wrapped = seq >= nr_slots() && !w.packets[seq - nr_slots()].delivered;
		break;
	case ETW_STEP_SAMPLE_BEFORE:
	case ETW_STEP_FLUSH_SAMPLE_BEFORE:
		f->sample = w.lost;
		break;
	case ETW_STEP_PUT_COUNTED:
		if (!w.relay->overwrite)
			CHECK(hand_is_whole());
		break;
	default:
		break;
	}
}

/* ---- a reader of packets that shares nothing with the relay ---- */

static u64 get_number(const u8 *p, u32 bytes)
{
	u64 v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static void check_record(const struct model_record *rec, const u8 *p, u32 number, bool extended, u64 ts)
{
	p += extended ? 14 : 6;
	CHECK((ts >= rec->earliest || (s64)w.tick < 0) && ts <= rec->latest);
	EQUAL(get_number(p, 4), (u32)current->pid);
	EQUAL(get_number(p + 4, 4), (u32)current->tgid);
	if (memcmp(p + 8, w.payload[number], rec->len))
		wrong("payload of record", number, p[8]);
}

/* @p holds packet @seq of the model, and @b says so. */
static void check_packet(const u8 *p, const struct etw_buffer *b, u32 seq)
{
	const struct model_packet *m = &w.packets[seq];
	u64 begin = get_number(p + 24, 8), end = get_number(p + 32, 8), ts = 0;
	u32 i, at = 76, size = (m->content + 7) & ~7U;

	CHECK(m->closed);
	EQUAL(get_number(p, 4), 0xC1FC1FC1U);
	CHECK(!memcmp(p + 4, w.uuid, 16));
	EQUAL(get_number(p + 20, 4), 0);
	EQUAL(get_number(p + 40, 8), (u64)m->content * 8);
	EQUAL(get_number(p + 48, 8), (u64)size * 8);
	EQUAL(get_number(p + 56, 8), seq);
	EQUAL(get_number(p + 64, 8), m->lost);
	EQUAL(get_number(p + 72, 4), w.relay->cpu);
	EQUAL(b->position, ((u64)seq + nr_slots()) * w.relay->size);
	EQUAL(b->begin, begin);
	EQUAL(b->end, end);
	EQUAL(b->lost, m->lost);
	EQUAL(b->content, m->content);
	EQUAL(b->records, m->nr);
	EQUAL(b->classes, w.nr_classes);
	CHECK(begin >= w.read_end && begin <= end && end <= w.clock);
	w.read_end = end;
	for (i = 0; i < m->nr; i++) {
		const struct model_record *rec = &w.records[m->record[i]];
		bool extended = get_number(p + at, 2) == 0xffff;
		u32 bytes = (extended ? 22 : 14) + rec->len;
		u64 last = ts;

		if (at + bytes > m->content) {
			wrong("end of record", at + bytes, m->content);
			return;
		}
		EQUAL(get_number(p + at + (extended ? 2 : 0), extended ? 4 : 2), CLASS_ID);
		if (extended) {
			ts = get_number(p + at + 6, 8);
		} else {
			ts = (last & ~0xffffffffULL) | get_number(p + at + 2, 4);
			if (ts < last)
				ts += BIT_ULL(32);
		}
		if (!i)
			CHECK(extended && ts == (seq ? begin : ts) && begin <= ts);
		CHECK(ts >= last && ts <= end);
		check_record(rec, p + at, m->record[i], extended, ts);
		at += bytes;
	}
	EQUAL(at, m->content);
	for (; at < size; at++)
		EQUAL(p[at], 0);
}

/* ---- the actions ---- */

static void read_step(void)
{
	struct etw_relay *r = w.relay;
	u32 seq, hooks = w.hooks, i;
	int index;

	if (r->in_hand) {
		CHECK(hand_is_whole());
		w.delivered += w.packets[w.in_hand].nr;
		etw_relay_put(r);
		w.in_hand = NOBODY;
		return;
	}
	index = etw_relay_get(r);
	if (index < 0) {
		EQUAL(index, -EAGAIN);
		/* if nothing came between, then the oldest packet there is cannot be had */
		for (i = r->overwrite ? 0 : w.consumed; w.hooks == hooks + (r->overwrite ? 3 : 1) && i < MAX_PACKETS; i++)
			if (!w.packets[i].taken && !w.packets[i].overwritten) {
				CHECK(!w.packets[i].delivered);
				break;
			}
		return;
	}
	if (index > nr_slots()) {
		wrong("index", index, nr_slots());
		return;
	}
	seq = seq_of(r->buffers[index].position);
	if (r->overwrite)
		CHECK(w.packets[seq].taken);
	else
		EQUAL(seq, w.consumed);
	CHECK(w.packets[seq].delivered);
	w.in_hand = seq;
	memcpy(w.hand, r->buffers[index].base, r->size);
	check_packet(r->buffers[index].base, &r->buffers[index], seq);
}

static noinline void write_short(u32 number)
{
	struct etw_event event;

	if (etw_begin(&event, w.targets, NULL))
		etw_end(&event, w.payload[number], SHORT);
}

static noinline void write_long(u32 number, u32 len)
{
	struct etw_vec vec[] = { { w.payload[number], len / 3 }, { w.payload[number] + len / 3, len - len / 3 } };
	struct etw_event event;

	if (etw_begin(&event, w.targets, NULL))
		etw_end_vec(&event, vec, ARRAY_SIZE(vec));
}

static u32 new_record(u32 len)
{
	if (w.nr_records == MAX_RECORDS) {
		wrong("records", w.nr_records, 0);
		w.nr_records--;
	}
	w.records[w.nr_records] = (struct model_record){ .earliest = clock_now(), .len = len };
	return w.nr_records++;
}

static void act_sized(enum action action, u32 len)
{
	struct frame *f = &w.frames[w.depth++];
	bool closed;

	*f = (struct frame){ .action = action, .record = NOBODY };
	w.deepest = max(w.deepest, w.depth);
	switch (action) {
	case WRITE_SHORT:
		f->record = new_record(SHORT);
		write_short(f->record);
		break;
	case WRITE_LONG:
		f->record = new_record(len);
		write_long(f->record, len);
		break;
	case FLUSH:
		closed = etw_relay_flush(w.relay, clock_now());
		EQUAL(closed, f->closed);
		break;
	default:
		read_step();
	}
	if (f->record != NOBODY)
		EQUAL(w.records[f->record].reserved + w.records[f->record].lost, 1);
	w.depth--;
}

static void act(enum action action)
{
	act_sized(action, LONG);
}

/* ---- interrupts: real where the kernel can be made to have one right here, else a call ---- */

#if defined(__KERNEL__) && !defined(CONFIG_UML)
static enum action pending;
static bool handled;

static void in_softirq_context(struct tasklet_struct *tasklet)
{
	w.softirqs++;
	act(pending);
	WRITE_ONCE(handled, true);
}

static DECLARE_TASKLET(tasklet, in_softirq_context);

static void in_hardirq_context(struct irq_work *work)
{
	w.hardirqs++;
	act(pending);
	WRITE_ONCE(handled, true);
}

static struct irq_work hard_work = IRQ_WORK_INIT_HARD(in_hardirq_context);

/* Where interrupts are off only an NMI can come, and a call stands for it. */
static void interrupt(enum action action)
{
	u32 waited;

	if (!w.real || action == GET_OR_PUT || irqs_disabled()) {
		act(action);
		return;
	}
	pending = action;
	WRITE_ONCE(handled, false);
	if (in_softirq() || action == FLUSH) {
		irq_work_queue(&hard_work);
	} else {
		local_bh_disable();
		tasklet_hi_schedule(&tasklet);
		local_bh_enable();
	}
	for (waited = 0; !READ_ONCE(handled) && waited < 100000000; waited++)
		cpu_relax();
	if (!READ_ONCE(handled))
		wrong("it did not come", action, 0);
}
#else
/* In user space there is none, and UML's come with the next tick. */
static void interrupt(enum action action)
{
	act(action);
}
#endif

/* Who may come here: what is on the stack decides. */
static u8 legal_here(void)
{
	u32 i, mask = w.allowed;

	for (i = 0; i < w.depth; i++) {
		if (w.frames[i].action == FLUSH)
			mask &= ~BIT(FLUSH);
		if (w.frames[i].action == GET_OR_PUT)
			mask &= ~BIT(GET_OR_PUT);
	}
	if (w.depth >= ETW_MAX_NESTING || (w.chain && w.depth != w.nr_plan + 1))
		mask = 0;
	return mask;
}

static void hook(struct etw_relay *relay, enum etw_step step, u64 position)
{
	u32 here;

	if (!w.active || !w.depth || (relay && relay != w.relay) || w.cpu != raw_smp_processor_id())
		return;
	w.step = step;
	w.relay->clock_offset += w.tick;
	w.clock = max(w.clock, clock_now());
	after(step, position);
	here = w.hooks++;
	if (here < MAX_HOOKS)
		w.legal[here] = legal_here();
	else
		wrong("no end", here, 0);
#ifndef __KERNEL__
	if (here > 100 * MAX_HOOKS)
		__builtin_trap();	/* no end */
#endif
	if (w.done < w.nr_plan && w.plan[w.done].at == here) {
		w.cut[step]++;
		w.nested++;
		interrupt(w.plan[w.done++].action);
		w.step = step;
		w.clock = max(w.clock, clock_now());
	}
	before(step, position);
}

/* ---- one case ---- */

/* What holds when no context is left. */
static void check_rest(void)
{
	struct etw_counts *counts = this_cpu_ptr(w.counts);
	struct etw_relay *r = w.relay;
	u64 causes = 0, records_lost = 0;
	u32 i, used = 0, slot;

	EQUAL(w.depth, 0);
	EQUAL(this_cpu_read(etw_nesting), 0);
	EQUAL(r->reserve, w.position);
	for (i = 0; i < w.nr_records; i++)
		records_lost += w.records[i].lost;
	for (i = 0; i < ETW_NR_LOST; i++) {
		causes += r->losses[i].count;
		EQUAL(r->losses[i].count, counts->lost[i]);
		if (i == ETW_LOST_NO_ROOM || i == ETW_LOST_WRAPPED)
			EQUAL(r->losses[i].count, w.causes[i]);
		CHECK(!r->losses[i].count == !r->losses[i].first);
	}
	/* emitted = reserved + lost; reserved = committed = delivered + overwritten + unread */
	EQUAL(w.nr_records, w.reserved + w.lost);
	EQUAL(records_lost, w.lost);
	EQUAL(r->lost, w.lost);
	EQUAL(causes, w.lost);
	EQUAL(counts->written, w.reserved);
	EQUAL(r->overwritten, w.overwritten);
	EQUAL(r->delivered, w.delivered);
	EQUAL(w.reserved, r->delivered + r->overwritten + etw_relay_unread(r));
	/* each buffer is in one place; only the slot being filled is open, and the others count from nothing */
	used = BIT(r->spare);
	for (slot = 0; slot < r->nr_slots; slot++) {
		u64 word = r->slots[slot].word;
		bool filling = offset_of(r->reserve) && &r->slots[slot] == etw_relay_slot(r, r->reserve);

		used |= BIT((word & ETW_SLOT_INDEX) >> ETW_SLOT_INDEX_SHIFT);
		EQUAL(!!(word & ETW_SLOT_OPEN), filling);
		if (!filling)
			EQUAL(local_read(&r->slots[slot].commit), 0);
	}
	EQUAL(used, BIT(r->nr_slots + 1) - 1);
	for (i = 0; i < MAX_PACKETS; i++)
		EQUAL(w.packets[i].closed, w.packets[i].delivered);
	EQUAL(etw_relay_next_seq(r), (w.position + r->mask) / r->size - nr_slots());
	CHECK(etw_relay_delivered_to(r, w.position & ~r->mask));
	CHECK(!offset_of(w.position) || !etw_relay_delivered_to(r, w.position));
}

static void drain(void)
{
	u32 i;

	act(FLUSH);
	for (i = 0; i < 4 * MAX_PACKETS && !w.wrong; i++) {
		CHECK(etw_relay_ready(w.relay) || !w.relay->in_hand);
		act(GET_OR_PUT);
		if (w.in_hand == NOBODY && !etw_relay_ready(w.relay))
			break;
	}
	EQUAL(etw_relay_unread(w.relay), 0);
	CHECK(etw_relay_complete_up_to(w.relay) >= w.read_end);
	for (i = 0; i < MAX_PACKETS; i++)
		CHECK(!w.packets[i].nr || w.packets[i].overwritten || w.packets[i].taken || w.packets[i].put);
}

/* As if just created, but in memory that is no longer zero. */
static void reset(void)
{
	struct etw_relay *r = w.relay;
	u32 i;

	memcpy(r, &w.fresh, offsetof(struct etw_relay, mask));
	memcpy(r->slots, w.fresh_slots, r->nr_slots * sizeof(r->slots[0]));
	memcpy(r->buffers, w.fresh_buffers, (r->nr_slots + 1) * sizeof(r->buffers[0]));
	for (i = 0; i <= r->nr_slots; i++)
		memset(r->buffers[i].base, 0xa5, r->size);
	memset(r->losses, 0, sizeof(r->losses));
	r->clock_offset = (s64)w.tick < 0 ? BIT_ULL(40) : 0;
	r->consumed = w.fresh.consumed;
	r->next = w.fresh.next;
	r->spare = w.fresh.spare;
	r->in_hand = false;
	r->delivered = 0;
	r->got_end = 0;
	r->complete = 0;
	memset(this_cpu_ptr(w.counts), 0, sizeof(struct etw_counts));

	w.position = r->reserve;
	w.nr_records = 0;
	memset(w.packets, 0, sizeof(w.packets));
	memset(w.causes, 0, sizeof(w.causes));
	w.reserved = 0;
	w.lost = 0;
	w.overwritten = 0;
	w.delivered = 0;
	w.flushes = 0;
	w.consumed = 0;
	w.in_hand = NOBODY;
	w.clock = clock_now();
	w.read_end = 0;
	w.depth = 0;
	w.done = 0;
	w.hooks = 0;
	w.wrong = NULL;
}

/* From begin() to end() the reader's lock is ours, and preemption is off. */
static void begin(void)
{
	mutex_lock(&w.relay->lock);
	preempt_disable();
	reset();
	w.cpu = raw_smp_processor_id();
	w.relay->cpu = w.cpu;
	w.active = true;
}

static void end(void)
{
	w.active = false;
	preempt_enable();
	mutex_unlock(&w.relay->lock);
}

static void fill(const char *actions)
{
	u32 nr_plan = w.nr_plan;

	w.nr_plan = 0;
	for (; *actions; actions++)
		act(strchr(letters, *actions) - letters);
	w.nr_plan = nr_plan;
}

/* After @before, @outer with the plan in it; then everything is looked at, read, and used for another lap. */
static void run_once(const char *before, enum action outer)
{
	u32 i;

	begin();
	fill(before);
	w.hooks = 0;
	act(outer);
	w.span = w.hooks;
	if (!w.wrong)
		check_rest();
	if (!w.wrong)
		drain();
	if (!w.wrong)
		check_rest();
	for (i = 0; !FEW && i < 2 * nr_slots() && !w.wrong; i++)
		act(WRITE_SHORT);
	if (!FEW && !w.wrong)
		drain();
	if (!FEW && !w.wrong)
		check_rest();
	end();
	w.cases++;
}

/*
 * The plan was made in another run. The kernel's clock may step back a little when it is adjusted, and then a writer goes
 * another way, on which a place of the plan does not lie: that run is no case of this plan.
 */
static void run_case(const char *before, enum action outer)
{
	int tries = 4;

	do
		run_once(before, outer);
	while (!w.wrong && w.done != w.nr_plan && --tries);
	EQUAL(w.done, w.nr_plan);
}

static bool failed(struct kunit *test, const char *before, enum action outer)
{
	u32 i;

	if (!w.wrong)
		return false;
	for (i = 0; i < w.nr_plan; i++)
		kunit_err(test, "nested %u: %c at step %u", i + 1, letters[w.plan[i].action], w.plan[i].at);
	KUNIT_EXPECT_TRUE_MSG(test, false, "%s: %llu, %llu, near %s; %s, %u slots, after \"%s\", in %c", w.wrong,
			      (unsigned long long)w.wrong_a, (unsigned long long)w.wrong_b, step_names[w.wrong_step],
			      w.relay->overwrite ? "overwrite" : "discard", nr_slots(), before, letters[outer]);
	return true;
}

/* The case of the plan as it is, and those with up to @more contexts further on in it. */
static bool explore(struct kunit *test, const char *before, enum action outer, u32 more)
{
	u32 level = w.nr_plan, nr, i;
	enum action action;

	run_case(before, outer);
	if (failed(test, before, outer))
		return false;
	if (!(w.cases & 255))
		cond_resched();
	if (!more)
		return true;
	nr = min_t(u32, w.span, MAX_HOOKS);
	memcpy(w.kept[level], w.legal, nr);
	for (i = level ? w.plan[level - 1].at + 1 : 0; i < nr; i++) {
		for (action = 0; action < NR_ACTIONS; action++) {
			if (!(w.kept[level][i] & BIT(action)))
				continue;
			w.plan[level].at = i;
			w.plan[level].action = action;
			w.nr_plan = level + 1;
			if (!explore(test, before, outer, more - 1))
				return false;
			w.nr_plan = level;
		}
	}
	return true;
}

/* ---- relays to test with ---- */

static int suite_start(struct kunit_suite *suite)
{
	u32 i, k;

	etw_relay_init();	/* on some kernels suites run before the module's own initialisation */
	for (i = 0; i < MAX_RECORDS; i++)
		for (k = 0; k < PAGE_SIZE; k++)
			w.payload[i][k] = i * 37 + k * 11 + k / 256 + 1;
	for (i = 0; i < sizeof(w.uuid); i++)
		w.uuid[i] = 0xf0 - i;
	init_waitqueue_head(&w.wait);
	return 0;
}

static struct etw_relay *create(u32 slots, bool overwrite)
{
	const struct etw_relay_config config = {
		.subbuf_size = PAGE_SIZE,
		.nr_subbufs = slots,
		.overwrite = overwrite,
		.start = etw_clock_read(ETW_SOURCE_MONOTONIC),
		.nr_classes = &w.nr_classes,
		.uuid = w.uuid,
		.wait = &w.wait,
		.waiting = &w.waiting,
	};

	return etw_relay_create(0, &config);
}

static void let_go(void)
{
	WRITE_ONCE(etw_step_hook, NULL);
	w.active = false;
	if (!IS_ERR(w.relay))
		etw_relay_destroy(w.relay);
	w.relay = NULL;
	free_percpu(w.relays);
	w.relays = NULL;
	free_percpu(w.counts);
	w.counts = NULL;
	kfree(w.targets);
	w.targets = NULL;
}

/* A relay of every CPU, one class and one target that writes to it. */
static void use(struct kunit *test, u32 slots, bool overwrite)
{
	int cpu;

	let_go();
	w.nr_classes = 3;
	w.waiting = 0;
	w.nr_plan = 0;
	w.tick = 1;
	w.allowed = EVERYTHING;
	w.chain = false;
	w.real = false;
	w.relays = alloc_percpu(struct etw_relay *);
	w.counts = alloc_percpu(struct etw_counts);
	w.targets = kzalloc(struct_size(w.targets, t, 2), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, w.relays && w.counts && w.targets);
	w.relay = create(slots, overwrite);
	KUNIT_ASSERT_FALSE(test, IS_ERR(w.relay));
	w.fresh = *w.relay;
	memcpy(w.fresh_slots, w.relay->slots, slots * sizeof(w.fresh_slots[0]));
	memcpy(w.fresh_buffers, w.relay->buffers, (slots + 1) * sizeof(w.fresh_buffers[0]));
	for_each_possible_cpu(cpu) {
		struct etw_relay **relay = per_cpu_ptr(w.relays, cpu);

		*relay = w.relay;
	}
	w.targets->nr = 1;
	w.targets->t[0] = (struct etw_target){
		.relays = w.relays, .true_relays = w.relays, .counts = w.counts, .class_id = CLASS_ID,
	};
	WRITE_ONCE(etw_step_hook, hook);
}

static void test_exit(struct kunit *test)
{
	let_go();
}

/* ---- one thing at a time ---- */

/* Runs @actions, one letter each, and looks at everything. */
static void play(struct kunit *test, const char *actions)
{
	begin();
	fill(actions);
	if (!w.wrong)
		check_rest();
	end();
	failed(test, actions, GET_OR_PUT);
}

static void reserve_and_commit(struct kunit *test)
{
	u32 mode;

	for (mode = 0; mode < 2; mode++) {
		use(test, 2, mode);
		play(test, "W");
		KUNIT_EXPECT_EQ(test, w.reserved, 1);
		KUNIT_EXPECT_EQ(test, w.position, 2 * PAGE_SIZE + HEADER + EXTENDED + SHORT);
		KUNIT_EXPECT_FALSE(test, etw_relay_ready(w.relay));
		play(test, "WW");
		KUNIT_EXPECT_EQ(test, w.position, 2 * PAGE_SIZE + HEADER + EXTENDED + COMPACT + 2 * SHORT);
		play(test, "WLFRR");
		KUNIT_EXPECT_EQ(test, w.delivered, 2);
		KUNIT_EXPECT_EQ(test, w.lost, 0);
	}
}

static void wraps(struct kunit *test)
{
	u32 mode;

	for (mode = 0; mode < 2; mode++) {
		use(test, 2, mode);
		play(test, "WWWRRWWRRWWRRWWRRWWRRFRR");
		KUNIT_EXPECT_EQ(test, w.reserved, 11);
		KUNIT_EXPECT_EQ(test, w.delivered, 11);
		KUNIT_EXPECT_EQ(test, w.lost, 0);
		use(test, 4, mode);
		play(test, "LLLRRLRRLRRLRRLLRRRRLRRFRRRR");
		KUNIT_EXPECT_EQ(test, w.reserved, 9);
		KUNIT_EXPECT_EQ(test, w.delivered, 9);
		KUNIT_EXPECT_EQ(test, w.lost, 0);
	}
}

static void full_loses_what_comes(struct kunit *test)
{
	use(test, 2, false);
	play(test, "WWWWWLWRRWWWW");
	KUNIT_EXPECT_EQ(test, w.reserved, 6);
	KUNIT_EXPECT_EQ(test, w.causes[ETW_LOST_NO_ROOM], 5);
	KUNIT_EXPECT_EQ(test, w.lost, 5);
	/* what does not fit leaves the packet open for what does */
	play(test, "WWLLW");
	KUNIT_EXPECT_EQ(test, w.causes[ETW_LOST_NO_ROOM], 1);
	KUNIT_EXPECT_EQ(test, w.reserved, 4);
}

static void overwrite_keeps_the_newest(struct kunit *test)
{
	use(test, 2, true);
	play(test, "WWWWWWWW");
	KUNIT_EXPECT_EQ(test, w.reserved, 8);
	KUNIT_EXPECT_EQ(test, w.lost, 0);
	KUNIT_EXPECT_EQ(test, w.overwritten, 4);
	play(test, "WWWWWWWWFRRRRR");
	KUNIT_EXPECT_EQ(test, w.delivered, 4);
}

static void exchange_keeps_what_is_lent(struct kunit *test)
{
	use(test, 2, true);
	play(test, "WWWRWWWWWWWWRRR");
	KUNIT_EXPECT_EQ(test, w.delivered, 2 + 2);
	KUNIT_EXPECT_EQ(test, w.overwritten, 6);
	/* a reader that died with a packet in hand: the next one gets it first */
	begin();
	fill("WWWR");
	EQUAL(etw_relay_get(w.relay), w.relay->spare);
	EQUAL(etw_relay_first_seq(w.relay), 0);
	check_rest();
	fill("WWWWR");
	EQUAL(w.delivered, 2);
	check_rest();
	end();
	failed(test, "WWWR", GET_OR_PUT);
	use(test, 2, false);
	begin();
	fill("WWWR");
	EQUAL(etw_relay_get(w.relay), 0);
	check_rest();
	fill("WWWWR");
	EQUAL(w.delivered, 2);
	EQUAL(etw_relay_first_seq(w.relay), 1);
	check_rest();
	end();
	failed(test, "WWWR", GET_OR_PUT);
}

static void flush_closes_what_is_open(struct kunit *test)
{
	u32 mode;

	for (mode = 0; mode < 2; mode++) {
		use(test, 2, mode);
		play(test, "F");
		KUNIT_EXPECT_EQ(test, w.flushes, 0);
		play(test, "WFF");
		KUNIT_EXPECT_EQ(test, w.flushes, 1);
		KUNIT_EXPECT_TRUE(test, etw_relay_ready(w.relay));
		KUNIT_EXPECT_EQ(test, w.position, 3 * PAGE_SIZE);
		play(test, "WFWFRRRRR");
		KUNIT_EXPECT_EQ(test, w.delivered, 2);
		KUNIT_EXPECT_EQ(test, w.lost, 0);
	}
}

/* Every length that changes where a record goes: one byte of padding must stay. */
static void fits_to_the_byte(struct kunit *test)
{
	const u32 left = PAGE_SIZE - HEADER - EXTENDED - SHORT;
	u32 mode, len, most = min_t(u32, left - COMPACT + 2, PAGE_SIZE - 128);

	for (mode = 0; mode < 2; mode++) {
		use(test, 2, mode);
		for (len = left - COMPACT - 3; len <= most && !w.wrong; len++) {
			begin();
			fill("W");
			act_sized(WRITE_LONG, len);
			EQUAL(w.packets[0].nr, COMPACT + len < left ? 2 : 1);
			EQUAL(w.packets[0].nr + w.packets[1].nr, 2);
			check_rest();
			drain();
			check_rest();
			end();
			failed(test, "W", WRITE_LONG);
		}
		/* the same for the short way, whose length is constant: the first record's varies */
		for (len = left - COMPACT - 3; len <= left - COMPACT + 2 && !w.wrong; len++) {
			begin();
			act_sized(WRITE_LONG, len);
			fill("W");
			EQUAL(w.packets[0].nr, COMPACT + len < left ? 2 : 1);
			EQUAL(w.packets[0].nr + w.packets[1].nr, 2);
			check_rest();
			drain();
			check_rest();
			end();
			failed(test, "L", WRITE_SHORT);
		}
		/* nothing, and the largest there is */
		begin();
		act_sized(WRITE_LONG, 0);
		act_sized(WRITE_LONG, PAGE_SIZE - 128);
		act_sized(WRITE_LONG, 0);
		EQUAL(w.reserved, 3);
		drain();
		check_rest();
		end();
		failed(test, "", WRITE_LONG);
		begin();
		act_sized(WRITE_LONG, PAGE_SIZE - 127);
		EQUAL(w.relay->losses[ETW_LOST_TOO_LARGE].count, 1);
		EQUAL(w.reserved, 0);
		check_rest();
		end();
		failed(test, "", WRITE_LONG);
	}
}

/*
 * After @before, and perhaps a record that is lost, one comes that is @step later than the last one there: is it extended?
 * And what it says must be right either way.
 */
static bool extended_after(struct kunit *test, const char *before, u64 step, bool lose, bool long_way)
{
	u64 last;
	u32 size;

	begin();
	w.tick = 0;
	w.relay->clock_offset += 9 * ETW_COMPACT_RANGE;
	w.clock = clock_now();
	fill(before);
	last = w.relay->extend_at - ETW_COMPACT_RANGE;
	w.relay->clock_offset += last + step - clock_now();
	w.clock = max(w.clock, clock_now());
	if (lose)
		act_sized(WRITE_LONG, PAGE_SIZE - 128);
	EQUAL(w.lost, lose);
	EQUAL(w.relay->extend_at - ETW_COMPACT_RANGE, last);
	size = w.position;
	act_sized(long_way ? WRITE_LONG : WRITE_SHORT, SHORT);
	size = w.position - size - SHORT;
	drain();
	check_rest();
	end();
	failed(test, before, WRITE_SHORT);
	return size == EXTENDED;
}

static void stamps_tell_every_distance(struct kunit *test)
{
	u32 way;

	for (way = 0; way < 2; way++) {
		use(test, 2, false);
		KUNIT_EXPECT_FALSE(test, extended_after(test, "W", 0, false, way));
		/* a kernel's clock goes on between the two readings */
		KUNIT_EXPECT_FALSE(test, extended_after(test, "W", ETW_COMPACT_RANGE - BIT_ULL(30), false, way));
#ifndef __KERNEL__
		KUNIT_EXPECT_FALSE(test, extended_after(test, "W", ETW_COMPACT_RANGE - 1, false, way));
#endif
		KUNIT_EXPECT_TRUE(test, extended_after(test, "W", ETW_COMPACT_RANGE, false, way));
		KUNIT_EXPECT_TRUE(test, extended_after(test, "W", 5 * ETW_COMPACT_RANGE, false, way));
		/* back: clamped to the record before, which is no distance */
		KUNIT_EXPECT_FALSE(test, extended_after(test, "W", -ETW_COMPACT_RANGE, false, way));
		/* a loss raises the time last seen, but no record of that time is there to count from */
		KUNIT_EXPECT_FALSE(test, extended_after(test, "WWW", ETW_COMPACT_RANGE / 2, true, way));
		KUNIT_EXPECT_TRUE(test, extended_after(test, "WWW", ETW_COMPACT_RANGE, true, way));
	}
}

static void nested_too_deep_is_lost(struct kunit *test)
{
	u32 depth;

	use(test, 2, false);
	for (depth = 0; depth < ETW_MAX_NESTING + 3; depth++) {
		begin();
		this_cpu_add(etw_nesting, depth);
		fill("WL");
		this_cpu_sub(etw_nesting, depth);
		EQUAL(w.relay->losses[ETW_LOST_NESTED].count, depth < ETW_MAX_NESTING ? 0 : 2);
		EQUAL(w.reserved, depth < ETW_MAX_NESTING ? 2 : 0);
		check_rest();
		end();
		failed(test, "", WRITE_SHORT);
	}
}

/* A CPU that has no relay loses, by cause, and nothing else happens. */
static void no_relay_is_lost(struct kunit *test)
{
	struct etw_counts *counts;

	use(test, 2, false);
	begin();
	*this_cpu_ptr(w.relays) = &etw_no_relay;
	counts = this_cpu_ptr(w.counts);
	write_short(0);
	write_long(1, LONG);
	EQUAL(counts->lost[ETW_LOST_CPU], 2);
	EQUAL(counts->written, 0);
	EQUAL(etw_no_relay.reserve, 0);
	EQUAL(etw_no_relay.lost, 0);
	EQUAL(w.relay->lost, 0);
	EQUAL(w.relay->reserve, w.position);
	end();
	failed(test, "", WRITE_SHORT);
}

/* One record, two sessions: each has its own, also where the first one turns its packet or is full. */
static void each_target_gets_its_record(struct kunit *test)
{
	struct etw_relay *second, *first;
	struct etw_targets *targets;
	u32 i;

	use(test, 2, false);
	w.wrong = NULL;
	second = create(4, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(second));
	targets = kunit_kzalloc(test, struct_size(targets, t, 3), GFP_KERNEL);
	if (targets) {
		struct etw_relay *__percpu *relays = alloc_percpu(struct etw_relay *);
		struct etw_counts __percpu *counts = alloc_percpu(struct etw_counts);
		int cpu;

		for_each_possible_cpu(cpu) {
			struct etw_relay **relay = per_cpu_ptr(relays, cpu);

			*relay = second;
		}
		targets->nr = 2;
		targets->t[0] = w.targets->t[0];
		targets->t[1] = (struct etw_target){ .relays = relays, .true_relays = relays, .counts = counts, .class_id = 1 };
		preempt_disable();
		first = *this_cpu_ptr(w.relays);
		memset(this_cpu_ptr(w.counts), 0, sizeof(struct etw_counts));
		for (i = 0; i < 9; i++) {
			struct etw_event event;

			if (etw_begin(&event, targets, NULL))
				etw_end(&event, w.payload[i], SHORT);
		}
		EQUAL(this_cpu_ptr(w.counts)->written, 4);
		EQUAL(this_cpu_ptr(w.counts)->lost[ETW_LOST_NO_ROOM], 5);
		EQUAL(first->lost, 5);
		EQUAL(this_cpu_ptr(counts)->written, 9);
		EQUAL(second->lost, 0);
		EQUAL(offset_of(second->reserve), HEADER + EXTENDED + SHORT);
		EQUAL(second->reserve / PAGE_SIZE, 8);
		preempt_enable();
		free_percpu(relays);
		free_percpu(counts);
	}
	etw_relay_destroy(second);
	failed(test, "", WRITE_SHORT);
}

/* A sleeper that announced itself is woken by a delivery, once, and by nothing else. */
static void delivery_wakes(struct kunit *test)
{
	u32 i;

	use(test, 2, false);
	begin();
	etw_relay_wait(w.relay);
	CHECK(!etw_relay_ready(w.relay));
	fill("WW");
	EQUAL(w.relay->waiting, 1);
	fill("W");
	end();
	irq_work_sync(&w.relay->irq_work);
	EQUAL(w.relay->waiting, 0);
	CHECK(etw_relay_ready(w.relay));
	failed(test, "WW", WRITE_SHORT);
	for (i = 0; i < 2; i++) {
		begin();
		w.waiting = 1;
		fill("WF");
		end();
		irq_work_sync(&w.relay->irq_work);
		EQUAL(w.waiting, 0);
		failed(test, "W", FLUSH);
	}
}

/* Whatever state a relay is left in, it goes, and its memory with it. */
static void teardown_leaves_nothing(struct kunit *test)
{
	static const char *const states[] = { "", "W", "WWF", "WWWWWW", "WWWR", "WWWRWWWWW", "LLLLLLRRR" };
	const u64 used = etw_memory_used();
	u32 i, mode;

	for (i = 0; i < 2 * ARRAY_SIZE(states); i++) {
		mode = i & 1;
		use(test, i & 2 ? 2 : 4, mode);
		KUNIT_EXPECT_EQ(test, etw_memory_used(), used + (nr_slots() + 1) * PAGE_SIZE);
		play(test, states[i / 2]);
		let_go();
		KUNIT_EXPECT_EQ(test, etw_memory_used(), used);
	}
	/* more than there may be: nothing is made */
	w.relay = create((etw_memory_limit() >> PAGE_SHIFT) + 1, false);
	KUNIT_EXPECT_EQ(test, PTR_ERR(w.relay), -EDQUOT);
	w.relay = NULL;
	KUNIT_EXPECT_EQ(test, etw_memory_used(), used);
}

/* ---- everything everywhere ---- */

/* States to begin in: nothing, a packet begun, nearly full, just closed, lent; the ring nearly full, full, and laps on. */
static const char *const fills[] = {
	"", "W", "WW", "WWF", "WWWW", "WWWR", "WWWWRR", "WWWWW", "WFWFR", "WWWWRRWWRRW", "WWWWWWWWRRF",
};

static const char *const fills_of_four[] = {
	"", "WW", "LLLL", "WFWFWFWFR", "LLLLRRRRLLLL",
};

static const char *const rushed_fills[] = { "", "WW", "WWWW", "WWWR" };
static const char *const walked_fills[] = { "WW" };
static const char *const deepest_fills[] = { "WWWW" };

/* How far a search goes. */
struct search {
	u32 slots;
	const char *const *fills;
	u32 nr_fills;
	u32 more;			/* this many contexts beside the outermost one, in each other or one after the other */
	u32 allowed;			/* which */
	bool chain;			/* each in the one before */
	u32 outers;			/* the outermost one, if not each in turn */
	u64 tick;			/* passes at each step */
};

#define FILLS(array)	.fills = array, .nr_fills = ARRAY_SIZE(array)

static void everywhere(struct kunit *test, const struct search *search)
{
	const bool few = FEW && search->more > 1;
	enum action outer;
	u32 mode, i;

	for (mode = 0; mode < 2; mode++) {
		use(test, search->slots, mode);
		w.tick = search->tick ?: 1;
		w.real = true;
		w.chain = search->chain;
		w.allowed = search->allowed ?: EVERYTHING;
		if (few)
			w.allowed = BIT(WRITE_SHORT);
		for (i = few ? search->nr_fills - 1 : 0; i < search->nr_fills; i++)
			for (outer = 0; outer < NR_ACTIONS; outer++)
				if ((!search->outers || search->outers & BIT(outer)) &&
				    !explore(test, search->fills[i], outer, few ? 2 : search->more))
					return;
	}
	kunit_info(test, "%lu cases, %lu with something nested; %lu real softirqs, %lu real hardirqs; up to %u contexts",
		   w.cases, w.nested, w.softirqs, w.hardirqs, w.deepest);
	w.cases = 0;
	w.nested = 0;
	w.softirqs = 0;
	w.hardirqs = 0;
	w.deepest = 0;
}

/* A clock of which four steps are more than a compact stamp can tell. */
#define RUSH	(ETW_COMPACT_RANGE / 4 + 12345)

static void one_nested_in_two_slots(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 2, FILLS(fills), .more = 1 });
}

static void one_nested_in_four_slots(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 4, FILLS(fills_of_four), .more = 1 });
}

static void one_nested_while_time_rushes(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 2, FILLS(rushed_fills), .more = 1, .tick = RUSH });
}

static void two_nested_in_two_slots(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 2, FILLS(fills), .more = 2 });
}

static void two_nested_in_four_slots(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 4, FILLS(fills_of_four), .more = 2 });
}

static void two_nested_while_time_rushes(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 2, FILLS(rushed_fills), .more = 2, .tick = RUSH });
}

/* The steps of one writer are less than a compact stamp can tell, those of two are more. */
static void two_nested_while_time_walks(struct kunit *test)
{
	u64 steps;

	for (steps = 24; steps <= 40; steps += 8)
		everywhere(test, &(struct search){
			.slots = 2, FILLS(walked_fills), .more = 2, .chain = true, .allowed = BIT(WRITE_SHORT),
			.outers = BIT(WRITE_SHORT), .tick = ETW_COMPACT_RANGE / steps,
		});
}

/* A clock may step back: what is recorded must not. */
static void two_nested_while_time_runs_back(struct kunit *test)
{
	everywhere(test, &(struct search){ .slots = 2, FILLS(rushed_fills), .more = 2, .tick = -BIT_ULL(20) });
}

static void three_nested(struct kunit *test)
{
	everywhere(test, &(struct search){
		.slots = 2, FILLS(deepest_fills), .more = 3, .allowed = BIT(WRITE_SHORT) | BIT(GET_OR_PUT),
	});
}

/* Each in the one before; in a kernel a softirq in the task, a hardirq in it, and calls that stand for NMIs in that. */
static void four_levels(struct kunit *test)
{
	everywhere(test, &(struct search){
		.slots = 2, FILLS(deepest_fills), .more = 3, .chain = true, .allowed = EVERYTHING & ~BIT(WRITE_LONG),
	});
}

static void five_levels(struct kunit *test)
{
	everywhere(test, &(struct search){
		.slots = 2, FILLS(deepest_fills), .more = 4, .chain = true, .allowed = BIT(WRITE_SHORT),
		.outers = BIT(WRITE_SHORT),
	});
}

/* Over all the cases before: no step was left out. */
static void every_step_was_cut(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ETW_NR_STEPS; i++)
		KUNIT_EXPECT_TRUE_MSG(test, w.cut[i] > 0, "nothing ever ran at %s", step_names[i]);
	kunit_info(test, "%u steps", ETW_NR_STEPS);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(reserve_and_commit),
	KUNIT_CASE(wraps),
	KUNIT_CASE(full_loses_what_comes),
	KUNIT_CASE(overwrite_keeps_the_newest),
	KUNIT_CASE(exchange_keeps_what_is_lent),
	KUNIT_CASE(flush_closes_what_is_open),
	KUNIT_CASE(fits_to_the_byte),
	KUNIT_CASE(stamps_tell_every_distance),
	KUNIT_CASE(nested_too_deep_is_lost),
	KUNIT_CASE(no_relay_is_lost),
	KUNIT_CASE(each_target_gets_its_record),
	KUNIT_CASE(delivery_wakes),
	KUNIT_CASE(teardown_leaves_nothing),
	KUNIT_CASE(one_nested_in_two_slots),
	KUNIT_CASE(one_nested_in_four_slots),
	KUNIT_CASE(one_nested_while_time_rushes),
	KUNIT_CASE(two_nested_in_two_slots),
	KUNIT_CASE(two_nested_in_four_slots),
	KUNIT_CASE(two_nested_while_time_rushes),
	KUNIT_CASE(two_nested_while_time_walks),
	KUNIT_CASE(two_nested_while_time_runs_back),
	KUNIT_CASE(three_nested),
	KUNIT_CASE(four_levels),
	KUNIT_CASE(five_levels),
	KUNIT_CASE(every_step_was_cut),
	{}
};

static struct kunit_suite suite = {
	.name = "etw_relay", .suite_init = suite_start, .exit = test_exit, .test_cases = cases,
};

kunit_test_suite(suite);
