/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One CPU's relay of one session: a ring of sub-buffers, each a CTF packet, written by the owning CPU in any context and read by
 * one reader. Knows nothing of sessions, classes and files.
 *
 * The algorithm and its proof obligations (R1 to R8, steps (a) to (f)) were checked exhaustively as a Promela model before this
 * was written. In short:
 *
 *   position	u64 bytes since the session began plus one lap; offset, slot and lap are bit fields of it
 *   slot	a place in the order. Its word {lap, buffer index, TAKEN, OPEN} is either OPEN in lap L (writers of lap L may be in
 *		it) or delivered in lap L (complete, nobody writes). Its commit word counts bytes and records of this lap.
 *   buffer	memory with a descriptor. N slots use N buffers, one spare is the reader's; GET in overwrite mode exchanges them.
 *
 * A record fits only if at least one byte of padding stays after it, so every packet is closed in one way: by an exchange that
 * moves the position past the rest. Whoever makes the commit bytes equal the sub-buffer size delivers.
 *
 * Ordering. All writers of a relay run on one CPU, so for @reserve, @last_seen, @last_rec, @lost and the commit words program order
 * and compiler barriers suffice. Across CPUs:
 *   deliver():    smp_store_release(word)	pairs with smp_load_acquire(word) in get(): records, header and descriptor
 *   put():        smp_store_release(consumed)	pairs with smp_load_acquire(consumed) in etw_relay_room()
 *   get():        full cmpxchg(word)		against the full cmpxchg(word) in etw_relay_open(): one wins
 *   deliver():    word; smp_mb(); @waiting	against etw_relay_wait(): @waiting; smp_mb(); word
 */
#ifndef ETW_RELAY_H
#define ETW_RELAY_H

#include <linux/cache.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/wait.h>
#include <asm/local.h>

#include <linux/etw.h>

#include "clock.h"

#define ETW_SLOT_OPEN		1ULL
#define ETW_SLOT_TAKEN		2ULL
#define ETW_SLOT_INDEX_SHIFT	2
#define ETW_SLOT_INDEX		(0x3fffULL << ETW_SLOT_INDEX_SHIFT)
#define ETW_SLOT_LAP_SHIFT	16

/* task, softirq, hardirq, NMI, machine check */
#define ETW_MAX_NESTING		5

struct etw_slot {
	u64 word;
	local_t commit;			/* bits 0..31 bytes, 32..63 records of this lap */
} ____cacheline_aligned_in_smp;

/* Travels with the buffer: a count kept per slot would be overwritten by the next lap while the reader holds the buffer. */
struct etw_buffer {
	u8 *base;
	u64 position;			/* by the writer that begins the packet */
	u64 begin;
	u64 end;			/* by the closer */
	u64 lost;
	u32 content;
	u32 records;			/* by the deliverer */
	u32 classes;
	struct page **pages;
	bool vmapped;
};

/* Losses of one cause, and what the loss event still has to tell of them. */
struct etw_loss {
	u64 count;			/* owner CPU */
	u64 first;			/* time of the first since it was last taken, 0 none */
	u64 last;
	u64 reported;			/* session's direct lock, with the next */
	u64 pending_first;		/* taken, but not written yet */
};

struct etw_relay {
	/* writers, owner CPU only */
	u64 reserve ____cacheline_aligned_in_smp;
	u64 last_seen;			/* raised before the reservation; clamps time */
	u64 last_rec;			/* stored after it; alone decides on the extended header */
	u64 lost;			/* all causes: what packets carry */
	u64 overwritten;

	/* read-mostly */
	u64 mask ____cacheline_aligned_in_smp;	/* sub-buffer size - 1 */
	struct etw_slot *slots;
	struct etw_buffer *buffers;
	u64 clock_offset;		/* added to what the clock reads */
	u64 start;			/* of the session: begin of the first packet */
	u32 shift;			/* log2 of the sub-buffer size */
	u32 lap_shift;			/* shift plus log2 of the number of slots */
	u32 nr_slots;
	u32 cpu;
	bool overwrite;
	const u32 *nr_classes;		/* of the session's table, append-only */
	const u8 *uuid;
	wait_queue_head_t *session_wait;
	int *session_waiting;

	/* reader and flush */
	struct mutex lock ____cacheline_aligned_in_smp;	/* leaf: the reader's state below */
	u64 consumed;			/* discard mode */
	u64 next;			/* overwrite mode */
	u32 spare;
	bool in_hand;			/* a packet is lent; survives the reader */
	bool opened;			/* a relay file exists */
	u64 delivered;			/* records, at PUT */
	u64 got_end;			/* end of the last packet got */
	u64 complete;			/* every earlier record was delivered, by FLUSH */
	int waiting;
	wait_queue_head_t wait;
	struct irq_work irq_work;
	struct etw_loss losses[ETW_NR_LOST];
	u64 memory;
};

DECLARE_PER_CPU(int, etw_nesting);

struct etw_relay_config {
	u32 subbuf_size;
	u32 nr_subbufs;
	bool overwrite;
	u64 clock_offset;
	u64 start;			/* session start: begin of the first packet */
	const u32 *nr_classes;
	const u8 *uuid;
	wait_queue_head_t *wait;	/* the session's, woken with the relay's */
	int *waiting;
};

/* Process context. EDQUOT over the module's memory limit, ENOMEM. */
struct etw_relay *etw_relay_create(u32 cpu, const struct etw_relay_config *config);
/* No writer, reader or mapping call may be under way. Mappings keep their pages. */
void etw_relay_destroy(struct etw_relay *relay);

/* Owner CPU with interrupts off, or for a dead CPU. True if a packet was closed. @now: an instant of the session's clock not in the future. */
bool etw_relay_flush(struct etw_relay *relay, u64 now);

/* Reader role, relay->lock held. EAGAIN nothing delivered. The buffer's index, until etw_relay_put(). */
int etw_relay_get(struct etw_relay *relay);
void etw_relay_put(struct etw_relay *relay);
/* Is there a packet to get? Any context. */
bool etw_relay_ready(struct etw_relay *relay);
/* Announce a sleeper, to be woken at the next delivery; test etw_relay_ready() after it. */
void etw_relay_wait(struct etw_relay *relay);
/* Are all packets that end at or below @position delivered? */
bool etw_relay_delivered_to(struct etw_relay *relay, u64 position);

/* relay->lock held. Exact at rest. */
u64 etw_relay_unread(struct etw_relay *relay);
u64 etw_relay_complete_up_to(struct etw_relay *relay);
u64 etw_relay_first_seq(struct etw_relay *relay);
u64 etw_relay_next_seq(struct etw_relay *relay);

static inline u64 etw_relay_offset(const struct etw_relay *r, u64 position)
{
	return position & r->mask;
}

static inline struct etw_slot *etw_relay_slot(const struct etw_relay *r, u64 position)
{
	return &r->slots[(position >> r->shift) & (r->nr_slots - 1)];
}

static inline u64 etw_relay_now(const struct etw_relay *r, bool boot_clock)
{
	return etw_clock_read(boot_clock) + r->clock_offset;
}

/* The slow half of a write, in relay.c. */
int etw_relay_room(struct etw_relay *relay, u64 at);
u32 etw_relay_open(struct etw_relay *relay, u64 position);
u32 etw_relay_turn(struct etw_relay *relay, u64 old, u64 at, u64 ts, u64 lost);
void etw_relay_deliver(struct etw_relay *relay, u64 position, u32 index, u32 records);
void etw_relay_lose(struct etw_relay *relay, unsigned int cause, u64 ts);

struct etw_reservation {
	u64 at;
	u64 ts;
	u32 size;
	u32 index;
	bool extended;
	u8 cause;			/* of a refusal */
};

/*
 * Reserve room for a record of @len bytes of payload. @now: a reading of the clock, with the session's offset, not older than the
 * caller's preempt-off section; several relays may share one, since each clamps to its own last_seen. Returns where the record
 * (its header first) goes, or NULL with the loss counted in the relay and res->cause set. A reservation is always committed.
 */
static __always_inline u8 *etw_relay_reserve(struct etw_relay *r, u64 now, bool boot_clock, u32 len, struct etw_reservation *res)
{
	u64 old, seen, ts, lost = 0;

	for (;;) {
		old = READ_ONCE(r->reserve);				/* (a) */
		seen = READ_ONCE(r->last_seen);				/* (b) */
		ts = max(now, seen);
		if (ts != seen && unlikely(cmpxchg64_local(&r->last_seen, seen, ts) != seen)) {
			now = etw_relay_now(r, boot_clock);
			continue;					/* a nested context raised it */
		}
		res->extended = ts - READ_ONCE(r->last_rec) >= 1ULL << 32;	/* (c) */
		res->size = len + (unlikely(res->extended) ? sizeof(struct etw_record_extended) :
							     sizeof(struct etw_record_compact));
		res->at = old;
		if (unlikely(!etw_relay_offset(r, old) || etw_relay_offset(r, old) + res->size > r->mask)) {
			int cause;

			res->at = (old + r->mask) & ~r->mask;		/* the next slot, or this one not yet begun */
			res->extended = true;				/* the first record of a packet always is */
			res->size = len + sizeof(struct etw_packet_header) + sizeof(struct etw_record_extended);
			cause = etw_relay_room(r, res->at);		/* (d), (e) */
			if (cause >= 0) {
				if (READ_ONCE(r->reserve) != old)
					continue;			/* what was seen is stale */
				etw_relay_lose(r, cause, ts);
				res->cause = cause;
				return NULL;
			}
			lost = READ_ONCE(r->lost);			/* the closing packet's sample, in a register */
		}
		if (likely(cmpxchg64_local(&r->reserve, old, res->at + res->size) == old))	/* (f) */
			break;
		now = etw_relay_now(r, boot_clock);
	}
	res->ts = ts;
	WRITE_ONCE(r->last_rec, ts);

	if (unlikely(!etw_relay_offset(r, res->at))) {
		res->index = etw_relay_turn(r, old, res->at, ts, lost);
		return r->buffers[res->index].base + sizeof(struct etw_packet_header);
	}
	res->index = etw_relay_open(r, res->at);
	return r->buffers[res->index].base + etw_relay_offset(r, res->at);
}

/* Everything was stored: count it, and deliver the packet if this was the last of it. */
static __always_inline void etw_relay_commit(struct etw_relay *r, const struct etw_reservation *res)
{
	struct etw_slot *slot = etw_relay_slot(r, res->at);
	u64 sum;

	barrier();	/* the copy before the add; one CPU, so a compiler barrier is enough */
	sum = local_add_return((1L << 32) | res->size, &slot->commit);
	if (unlikely((u32)sum == (u32)r->mask + 1))
		etw_relay_deliver(r, res->at, res->index, sum >> 32);
}

#endif
