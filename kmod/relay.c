// SPDX-License-Identifier: GPL-2.0-only
/*
 * The relay's slow half: opening, turning and closing packets, delivery, flush, and the reader's side. relay.h has
 * the picture.
 */
#include <linux/align.h>
#include <linux/bug.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/local64.h>

#include "relay.h"

/* Offset 0 of a packet, for which the long way is responsible, which asks for this relay first. */
static struct etw_slot no_slot;
struct etw_relay etw_no_relay = { .current_slot = &no_slot };
DEFINE_PER_CPU(struct etw_relay *, etw_no_relays);

#ifdef ETW_TEST
void (*etw_step_hook)(struct etw_relay *relay, enum etw_step step, u64 position);
#endif

/* Not by an initialiser: the module loader does not relocate those of per-CPU variables. */
void etw_relay_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(etw_no_relays, cpu) = &etw_no_relay;
}

static u64 lap_of(const struct etw_relay *r, u64 position)
{
	return position >> r->lap_shift;
}

static u64 word_lap(u64 word)
{
	return word >> ETW_SLOT_LAP_SHIFT;
}

static u32 word_index(u64 word)
{
	return (word & ETW_SLOT_INDEX) >> ETW_SLOT_INDEX_SHIFT;
}

static u64 make_word(u64 lap, u64 state, u32 index)
{
	return lap << ETW_SLOT_LAP_SHIFT | (u64)index << ETW_SLOT_INDEX_SHIFT | state;
}

/* Position of the packet that slot @i has or had in @lap. */
static u64 packet_position(const struct etw_relay *r, u32 i, u64 lap)
{
	return lap << r->lap_shift | (u64)i << r->shift;
}

static u64 seq_of(const struct etw_relay *r, u64 position)
{
	return (position >> r->shift) - r->nr_slots;	/* the first position is one lap in */
}

static u64 slot_word(const struct etw_slot *slot)
{
	return smp_load_acquire(&slot->word);	/* pairs with etw_relay_deliver() */
}

/* (d), (e): why a packet cannot begin at @at, or -1. */
static notrace int room(struct etw_relay *r, u64 at)
{
	u64 word;

	ETW_STEP(r, ROOM_BEFORE, at);
	/* the acquire pairs with etw_relay_put() */
	if (!r->overwrite && at - smp_load_acquire(&r->consumed) >= (u64)r->nr_slots << r->shift)
		return ETW_LOST_NO_ROOM;
	ETW_STEP(r, WORD_BEFORE, at);
	word = READ_ONCE(etw_relay_slot(r, at)->word);
	if ((word & ~(ETW_SLOT_INDEX | ETW_SLOT_TAKEN)) == make_word(lap_of(r, at) - 1, 0, 0))
		return -1;
	return ETW_LOST_WRAPPED;
}

/*
 * The buffer of the packet at @position, where the caller has uncommitted bytes. Every writer and every closer comes
 * here, not only the one that entered the slot: else one nested in a switch could store into a buffer that the reader
 * has just exchanged away.
 */
static notrace struct etw_buffer *open_slot(struct etw_relay *r, struct etw_slot *slot, u64 position)
{
	const u64 open = make_word(lap_of(r, position), ETW_SLOT_OPEN, 0);
	struct etw_buffer *b;
	u64 word;

	for (;;) {
		word = READ_ONCE(slot->word);
		b = &r->buffers[word_index(word)];
		ETW_STEP(r, OPEN_WORD, position);
		if (likely((word & ~ETW_SLOT_INDEX) == open))
			break;
		if (WARN_ON_ONCE((word & ~(ETW_SLOT_INDEX | ETW_SLOT_TAKEN)) != make_word(lap_of(r, position) - 1, 0, 0)))
			break;
		/* full: against the reader's exchange; fails at most twice, for the reader and for a nested writer */
		if (cmpxchg64(&slot->word, word, open | (word & ETW_SLOT_INDEX)) != word)
			continue;
		ETW_STEP(r, OPENED, position);
		/*
		 * only one opener succeeds, so the packet it replaces is counted once; the reader's spare was
		 * delivered before
		 */
		if (r->overwrite && !(word & ETW_SLOT_TAKEN))
			local64_add(b->records, (local64_t *)&r->overwritten);
		ETW_STEP(r, OPEN_COUNTED, position);
		break;
	}
	WRITE_ONCE(slot->base, b->base);
	ETW_STEP(r, OPEN_BASE, position);
	barrier();	/* base first: a nested writer that sees this position uses it */
	WRITE_ONCE(slot->position, position & ~r->mask);
	ETW_STEP(r, OPEN_HINT, position);
	return b;
}

notrace void etw_relay_deliver(struct etw_relay *r, struct etw_slot *slot, u64 position, u32 records)
{
	u32 index = word_index(READ_ONCE(slot->word));	/* open, so only we change it */
	struct etw_buffer *b = &r->buffers[index];

	ETW_STEP(r, DELIVER_INDEX, position);
	b->records = records;
	ETW_STEP(r, DELIVER_RECORDS, position);
	smp_rmb();	/* the targets that led here before the table: pairs with etw_session_class_publish() */
	b->classes = READ_ONCE(*r->nr_classes);		/* an upper bound: the table is append-only */
	ETW_STEP(r, DELIVER_CLASSES, position);
	local_set(&slot->commit, 0);			/* before the release, never after */
	ETW_STEP(r, DELIVER_RESET, position);
	smp_store_release(&slot->word, make_word(lap_of(r, position), 0, index));	/* pairs with slot_word() */
	ETW_STEP(r, DELIVERED, position);
	smp_mb();	/* pairs with etw_relay_wait() */
	ETW_STEP(r, DELIVER_FENCE, position);
	if (READ_ONCE(r->waiting) || READ_ONCE(*r->session_waiting))
		irq_work_queue(&r->irq_work);
}

/* The caller owns the padding from @end, at least one byte, up to the end of the sub-buffer. */
static notrace void close_packet(struct etw_relay *r, u64 end, u64 ts, u64 lost)
{
	struct etw_slot *slot = etw_relay_slot(r, end);
	struct etw_buffer *b = open_slot(r, slot, end);
	struct etw_packet_header *h = (void *)b->base;
	u32 content = etw_relay_offset(r, end), size = ALIGN(content, 8);
	u64 sum;

	b->content = content;
	b->end = ts;
	b->lost = lost;
	ETW_STEP(r, CLOSE_BUFFER, end);
	memset(b->base + content, 0, size - content);
	ETW_STEP(r, CLOSE_PADDED, end);
	h->timestamp_end = ts;
	h->content_size = (u64)content * 8;
	h->packet_size = (u64)size * 8;
	h->events_discarded = lost;
	ETW_STEP(r, CLOSE_HEADER, end);

	barrier();
	sum = local_add_return(r->size - content, &slot->commit);
	ETW_STEP(r, CLOSE_COMMITTED, end);
	if ((u32)sum == r->size)
		etw_relay_deliver(r, slot, end, sum >> 32);
}

static notrace void begin_packet(struct etw_relay *r, struct etw_buffer *b, u64 at, u64 ts)
{
	struct etw_packet_header *h = (void *)b->base;

	b->position = at;
	b->begin = seq_of(r, at) ? ts : r->start;
	ETW_STEP(r, BEGIN_BUFFER, at);
	h->magic = ETW_CTF_MAGIC;
	memcpy(h->uuid, r->uuid, sizeof(h->uuid));
	h->stream_id = 0;
	h->timestamp_begin = b->begin;
	h->packet_seq_num = seq_of(r, at);
	h->cpu_id = r->cpu;
	ETW_STEP(r, BEGIN_HEADER, at);
}

notrace void etw_relay_reserve(struct etw_relay *r, u64 now, u8 source, u32 len, struct etw_reservation *res)
{
	u64 old, seen, ts, at, lost = 0;
	struct etw_buffer *b;
	int cause;

	for (;; now = etw_relay_now(r, source)) {
		old = READ_ONCE(r->reserve);				/* (a) */
		ETW_STEP(r, POSITION, old);
		seen = READ_ONCE(r->last_seen);				/* (b) */
		ETW_STEP(r, SEEN, old);
		ts = max(now, seen);
		if (ts != seen && cmpxchg64_local(&r->last_seen, seen, ts) != seen)
			continue;					/* a nested context raised it */
		ETW_STEP(r, TIME, old);
		res->extended = ts >= READ_ONCE(r->extend_at);		/* (c) */
		ETW_STEP(r, EXTEND, old);
		res->size = len + (res->extended ? sizeof(struct etw_record_extended) : sizeof(struct etw_record_compact));
		at = old;
		if (!etw_relay_offset(r, old) || etw_relay_offset(r, old) + res->size > r->mask) {
			at = (old + r->mask) & ~r->mask;		/* the next slot, or this one not yet begun */
			res->extended = true;				/* the first record of a packet always is */
			res->size = len + sizeof(struct etw_packet_header) + sizeof(struct etw_record_extended);
			cause = room(r, at);				/* (d), (e) */
			ETW_STEP(r, DECIDED, at);
			if (cause >= 0) {
				if (READ_ONCE(r->reserve) != old)
					continue;			/* what was seen is stale */
				ETW_STEP(r, LOST_BEFORE, at);
				etw_relay_lose(r, cause, ts);
				res->cause = cause;
				res->to = NULL;
				return;
			}
			ETW_STEP(r, SAMPLE_BEFORE, at);
			lost = READ_ONCE(r->lost);			/* the closing packet's sample, in a register */
			ETW_STEP(r, SAMPLED, at);
		}
		if (cmpxchg64_local(&r->reserve, old, at + res->size) == old)	/* (f) */
			break;
	}
	ETW_STEP(r, RESERVED, at);
	WRITE_ONCE(r->extend_at, ts + ETW_COMPACT_RANGE);
	ETW_STEP(r, STAMPED, at);

	if (at != old)
		close_packet(r, old, ts, lost);
	res->slot = etw_relay_slot(r, at);
	res->at = at;
	res->ts = ts;
	b = open_slot(r, res->slot, at);
	res->to = b->base + etw_relay_offset(r, at);
	if (!etw_relay_offset(r, at)) {
		begin_packet(r, b, at, ts);
		res->to += sizeof(struct etw_packet_header);
	}
	WRITE_ONCE(r->current_slot, res->slot);
	ETW_STEP(r, SLOT, at);
}

/*
 * Owner CPU, preemption off. A nested loss may come between any two steps; only the window's edges can then be a
 * little off.
 */
notrace void etw_relay_lose(struct etw_relay *r, unsigned int cause, u64 ts)
{
	struct etw_loss *loss = &r->losses[cause];

	BUILD_BUG_ON(sizeof(local64_t) != sizeof(u64));
	if (!READ_ONCE(loss->first))
		WRITE_ONCE(loss->first, ts);
	ETW_STEP(r, LOST_FIRST, 0);
	WRITE_ONCE(loss->last, ts);
	ETW_STEP(r, LOST_LAST, 0);
	local64_inc((local64_t *)&r->lost);
	ETW_STEP(r, LOST_TOTAL, 0);
	local64_inc((local64_t *)&loss->count);
	ETW_STEP(r, LOST, 0);
}

/* A flush stops at the next slot's start, so it needs no room and cannot fail. */
notrace bool etw_relay_flush(struct etw_relay *r, u64 now)
{
	u64 old, seen, ts, lost;

	for (;;) {
		old = READ_ONCE(r->reserve);
		ETW_STEP(r, FLUSH_POSITION, old);
		seen = READ_ONCE(r->last_seen);
		ETW_STEP(r, FLUSH_SEEN, old);
		ts = max(now, seen);
		if (ts != seen && cmpxchg64_local(&r->last_seen, seen, ts) != seen)
			continue;
		ETW_STEP(r, FLUSH_TIME, old);
		if (!etw_relay_offset(r, old))
			return false;
		ETW_STEP(r, FLUSH_SAMPLE_BEFORE, old);
		lost = READ_ONCE(r->lost);
		ETW_STEP(r, FLUSH_SAMPLED, old);
		if (cmpxchg64_local(&r->reserve, old, (old | r->mask) + 1) == old)
			break;
	}
	ETW_STEP(r, FLUSHED, old);
	close_packet(r, old, ts, lost);
	return true;
}

/* ---- the reader's side ---- */

static u64 next_to_read(const struct etw_relay *r)
{
	return r->overwrite ? READ_ONCE(r->next) : READ_ONCE(r->consumed);
}

static bool delivered_in(u64 word, u64 lap)
{
	return word_lap(word) == lap && !(word & ETW_SLOT_OPEN);
}

/* Overwrite mode: the oldest packet at or after @r->next that can still be there. */
static u64 oldest(const struct etw_relay *r)
{
	u64 p = r->next;
	u64 word = slot_word(etw_relay_slot(r, p));
	u64 i = (p >> r->shift) & (r->nr_slots - 1);

	if (word_lap(word) > lap_of(r, p))
		p = packet_position(r, i, word_lap(word)) - ((u64)(r->nr_slots - 1) << r->shift);
	return p;
}

static int get_discard(struct etw_relay *r)
{
	u64 p = r->consumed;
	u64 word = slot_word(etw_relay_slot(r, p));

	ETW_STEP(r, GET_WORD, p);
	if (!delivered_in(word, lap_of(r, p)))
		return -EAGAIN;
	return word_index(word);
}

static int get_overwrite(struct etw_relay *r)
{
	struct etw_slot *slot;
	u64 p, word;

	if (r->in_hand)
		return r->spare;
	for (;;) {
		p = oldest(r);
		ETW_STEP(r, OLDEST_WORD, p);
		r->next = p;
		ETW_STEP(r, GET_NEXT, p);
		slot = etw_relay_slot(r, p);
		word = slot_word(slot);
		ETW_STEP(r, GET_WORD, p);
		if (word_lap(word) > lap_of(r, p))
			continue;
		if (!delivered_in(word, lap_of(r, p)))
			return -EAGAIN;
		/* full: from here no writer can reach the old buffer, and the spare is theirs */
		if (cmpxchg64(&slot->word, word, make_word(lap_of(r, p), ETW_SLOT_TAKEN, r->spare)) == word)
			break;
	}
	ETW_STEP(r, GOT, p);
	r->spare = word_index(word);
	ETW_STEP(r, GET_SPARE, p);
	r->next = p + r->size;
	ETW_STEP(r, GET_PASSED, p);
	return r->spare;
}

int etw_relay_get(struct etw_relay *r)
{
	int index;

	lockdep_assert_held(&r->lock);
	index = r->overwrite ? get_overwrite(r) : get_discard(r);
	if (index < 0)
		return index;
	r->in_hand = true;
	ETW_STEP(r, GET_HAND, r->buffers[index].position);
	r->got_end = r->buffers[index].end;
	return index;
}

void etw_relay_put(struct etw_relay *r)
{
	lockdep_assert_held(&r->lock);
	if (WARN_ON_ONCE(!r->in_hand))
		return;
	r->in_hand = false;
	ETW_STEP(r, PUT_HAND, 0);
	if (r->overwrite) {
		r->delivered += r->buffers[r->spare].records;
		ETW_STEP(r, PUT_COUNTED, 0);
		return;
	}
	r->delivered += r->buffers[word_index(READ_ONCE(etw_relay_slot(r, r->consumed)->word))].records;
	ETW_STEP(r, PUT_COUNTED, r->consumed);
	smp_store_release(&r->consumed, r->consumed + r->size);	/* pairs with room() */
	ETW_STEP(r, PUT, r->consumed);
}

/* Without the lock: a stale answer is corrected by the next delivery or by GET. */
bool etw_relay_ready(struct etw_relay *r)
{
	u64 p = next_to_read(r);
	u64 word = slot_word(etw_relay_slot(r, p));

	if (READ_ONCE(r->in_hand))
		return true;
	return word_lap(word) > lap_of(r, p) || delivered_in(word, lap_of(r, p));
}

void etw_relay_wait(struct etw_relay *r)
{
	WRITE_ONCE(r->waiting, 1);
	smp_mb();	/* pairs with etw_relay_deliver() */
}

bool etw_relay_delivered_to(struct etw_relay *r, u64 position)
{
	u64 p = max(next_to_read(r), position - min(position, (u64)r->nr_slots << r->shift));

	for (p &= ~r->mask; p < position; p += r->size) {
		u64 word = slot_word(etw_relay_slot(r, p));

		if (word_lap(word) < lap_of(r, p) || (word_lap(word) == lap_of(r, p) && (word & ETW_SLOT_OPEN)))
			return false;
	}
	return true;
}

u64 etw_relay_unread(struct etw_relay *r)
{
	u64 word, sum = 0;
	u32 i;

	lockdep_assert_held(&r->lock);
	for (i = 0; i < r->nr_slots; i++) {
		word = slot_word(&r->slots[i]);
		if (word & ETW_SLOT_OPEN)
			sum += (u64)local_read(&r->slots[i].commit) >> 32;
		else if (!word_lap(word))
			continue;
		else if (r->overwrite ? !(word & ETW_SLOT_TAKEN) : packet_position(r, i, word_lap(word)) >= r->consumed)
			sum += r->buffers[word_index(word)].records;
	}
	if (r->overwrite && r->in_hand)
		sum += r->buffers[r->spare].records;
	return sum;
}

/* The flush promise, or the end of the last of the delivered packets that follow each other without a gap. */
u64 etw_relay_complete_up_to(struct etw_relay *r)
{
	u64 p, word, complete = max(r->complete, r->got_end);

	lockdep_assert_held(&r->lock);
	if (r->overwrite)
		return complete;
	for (p = r->consumed; ; p += r->size) {
		word = slot_word(etw_relay_slot(r, p));
		if (!delivered_in(word, lap_of(r, p)))
			return complete;
		complete = max(complete, r->buffers[word_index(word)].end);
	}
}

u64 etw_relay_first_seq(struct etw_relay *r)
{
	lockdep_assert_held(&r->lock);
	if (!r->overwrite)
		return seq_of(r, r->consumed);
	return seq_of(r, r->in_hand ? r->buffers[r->spare].position : oldest(r));
}

u64 etw_relay_next_seq(struct etw_relay *r)
{
	return seq_of(r, (READ_ONCE(r->reserve) + r->mask) & ~r->mask);
}
