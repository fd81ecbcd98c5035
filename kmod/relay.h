/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One CPU's relay of one session: a ring of sub-buffers, each a CTF packet, written by the owning CPU in any context
 * and read by one reader. Knows nothing of sessions, classes and files.
 *
 * The algorithm and its proof obligations (R1 to R8, steps (a) to (f)) were checked exhaustively as a Promela model
 * before this was written. In short:
 *
 *   position	u64 bytes since the session began plus one lap; offset, slot and lap are bit fields of it
 *   slot	a place in the order. Its word {lap, buffer index, TAKEN, OPEN} is either OPEN in lap L (writers of lap L may be in
 *		it) or delivered in lap L (complete, nobody writes). Its commit word counts bytes and records of this lap.
 *   buffer	memory with a descriptor. N slots use N buffers, one spare is the reader's; GET in overwrite mode exchanges them.
 *
 * A record fits only if at least one byte of padding stays after it, so every packet is closed in one way: by an
 * exchange that moves the position past the rest. Whoever makes the commit bytes equal the sub-buffer size delivers.
 *
 * Where it departs from the model, and why:
 *   - @extend_at is the model's last record's stamp plus 2^32: one comparison instead of a subtraction and a shift.
 *   - @current_slot, and the slot's @position and @base, are hints, stored by whoever opened the slot: a record that fits
 *     into the open packet needs no look at the slot word. etw_relay_try_reserve() has the argument.
 *   - A per-cause count and the times of losses, for the loss event, are raised with @lost.
 *
 * Ordering. All writers of a relay run on one CPU, so for @reserve, @last_seen, @extend_at, @lost and the commit
 * words program order and compiler barriers suffice. Across CPUs:
 *   deliver():    smp_store_release(word)	pairs with smp_load_acquire(word) in get(): records, header and descriptor
 *   put():        smp_store_release(consumed)	pairs with smp_load_acquire(consumed) in room()
 *   get():        full cmpxchg(word)		against the full cmpxchg(word) in open_slot(): one wins
 *   deliver():    word; smp_mb(); @waiting	against etw_relay_wait(): @waiting; smp_mb(); word
 */
#ifndef ETW_RELAY_H
#define ETW_RELAY_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/wait.h>
#include <asm/local.h>

#include <linux/etw.h>

#include "clock.h"
#include "compat.h"
#include "step.h"

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
	/*
	 * what the opener leaves for the short way; owner CPU only. @base is valid if @position is that of the packet
	 * looked for
	 */
	u64 position;
	u8 *base;
} ____cacheline_aligned_in_smp;

/*
 * Travels with the buffer: a count kept per slot would be overwritten by the next lap while the reader holds the
 * buffer.
 */
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
	u64 extend_at;			/* stored after it: the record's stamp + 2^32, from which on a header must be extended */
	u64 lost;			/* all causes: what packets carry */
	u64 overwritten;
	struct etw_slot *current_slot;	/* where the last packet was begun or found: a hint */

	/* read-mostly */
	u64 mask ____cacheline_aligned_in_smp;	/* sub-buffer size - 1 */
	u32 size;			/* of a sub-buffer */
	struct etw_slot *slots;
	struct etw_buffer *buffers;
	u64 clock_offset;		/* added to what the clock reads */
	u64 start;			/* of the session: begin of the first packet */
	u32 shift;			/* log2 of the sub-buffer size */
	u32 lap_shift;			/* shift plus log2 of the number of slots */
	u32 nr_slots;
	u32 cpu;
	bool overwrite;
	u64 untrusted;			/* bytes in the ring, at most, for an untrusted user's payload to be added */
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
	bool announce;			/* came with its CPU, and was never opened */
	u64 delivered;			/* records, at PUT */
	u64 got_end;			/* end of the last packet got */
	u64 complete;			/* every earlier record was delivered, by FLUSH */
	int waiting;
	wait_queue_head_t wait;
	struct irq_work irq_work;
	struct etw_loss losses[ETW_NR_LOST];
	u64 memory;
};

/* A compact header's stamp tells times apart that are less than this after the one before. */
#define ETW_COMPACT_RANGE	BIT_ULL(32)

/* How many writers this CPU is in, one interrupted by the other. */
DECLARE_PER_CPU(int, etw_nesting);

/* Stands for the relay a CPU does not have yet: nothing ever fits into it. */
extern struct etw_relay etw_no_relay;
DECLARE_PER_CPU(struct etw_relay *, etw_no_relays);	/* it, on every CPU, after etw_relay_init() */

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

/* Once, before anything else here. */
void etw_relay_init(void);

/* Process context. EDQUOT over the module's memory limit, ENOMEM. */
struct etw_relay *etw_relay_create(u32 cpu, const struct etw_relay_config *config);
/* No writer, reader or mapping call may be under way. Mappings keep their pages. */
void etw_relay_destroy(struct etw_relay *relay);

/*
 * Owner CPU with interrupts off, or for a dead CPU. True if a packet was closed. @now: an instant of the session's
 * clock not in the future.
 */
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

static inline u64 etw_relay_now(const struct etw_relay *r, u8 source)
{
	return etw_clock_read(source) + r->clock_offset;
}

struct etw_reservation {
	u8 *to;				/* where the record goes, its header first; NULL refused */
	struct etw_slot *slot;
	u64 at;				/* position; of the packet's header if the record begins one */
	u64 ts;
	u32 size;
	bool extended;
	u8 cause;			/* of a refusal */
};

/*
 * Reserve room for a record of @len bytes of payload, whose size the caller has checked. @now: a reading of
 * @source, with the session's offset, not older than the caller's nesting count; several relays may share one, since
 * each clamps to its own last_seen. A refusal has been counted in the relay. A reservation is always committed. Owner
 * CPU, preemption off, any context.
 */
void etw_relay_reserve(struct etw_relay *relay, u64 now, u8 source, u32 len, struct etw_reservation *res);
void etw_relay_deliver(struct etw_relay *relay, struct etw_slot *slot, u64 position, u32 records);
/* Count a record that is lost before it is reserved. */
void etw_relay_lose(struct etw_relay *relay, unsigned int cause, u64 ts);

/*
 * The short way through etw_relay_reserve() for a record of @size bytes with a compact header: the packet is open,
 * the record fits, nobody interferes. False: nothing is reserved, go the long way. The steps are the same, in the
 * same order, but one: that the slot is open is seen before (f) and not after. It holds after it: a slot opened in
 * its lap stays open until its last byte is committed, and if (f) succeeds from @old, which lies in this slot and
 * lap, that byte is not yet even reserved.
 */
static __always_inline bool etw_relay_try_reserve(struct etw_relay *r, u64 now, u32 size, struct etw_reservation *res)
{
	u64 old, seen, at, offset;
	struct etw_slot *slot;

	old = READ_ONCE(r->reserve);					/* (a) */
	at = old;
	ETW_STEP(r, SHORT_POSITION, at);
	seen = READ_ONCE(r->last_seen);					/* (b) */
	ETW_STEP(r, SHORT_SEEN, at);
	slot = READ_ONCE(r->current_slot);
	ETW_STEP(r, SHORT_SLOT, at);
	offset = old - READ_ONCE(slot->position);
	ETW_STEP(r, SHORT_HINT, at);
	/* in this slot, not at its start, with a byte to spare: as one unsigned comparison */
	if (unlikely(offset - 1 >= r->mask - size))
		return false;
	if (unlikely(now < seen) || unlikely(!etw_try_cmpxchg64_local(&r->last_seen, &seen, now)))
		return false;
	ETW_STEP(r, SHORT_TIME, at);
	if (unlikely(now >= READ_ONCE(r->extend_at)))			/* (c) */
		return false;
	ETW_STEP(r, SHORT_EXTEND, at);
	res->to = READ_ONCE(slot->base) + offset;
	ETW_STEP(r, SHORT_BASE, at);
	if (unlikely(!etw_try_cmpxchg64_local(&r->reserve, &old, at + size)))	/* (f) */
		return false;
	ETW_STEP(r, SHORT_RESERVED, at);
	WRITE_ONCE(r->extend_at, now + ETW_COMPACT_RANGE);
	ETW_STEP(r, SHORT_STAMPED, at);
	res->slot = slot;
	res->at = at;
	res->ts = now;
	res->size = size;
	return true;
}

/*
 * Everything was stored, as @nr records: count them. The number of records if these were the last of the packet: then
 * etw_relay_deliver() it; else 0.
 */
static __always_inline u32 etw_relay_commit_records(struct etw_relay *r, const struct etw_reservation *res, u32 nr)
{
	u64 sum;

	barrier();	/* the copy before the add; one CPU, so a compiler barrier is enough */
	sum = local_add_return((u64)nr << 32 | res->size, &res->slot->commit);
	ETW_STEP(r, COMMITTED, res->at);
	return unlikely((u32)sum == r->size) ? sum >> 32 : 0;
}

static __always_inline u32 etw_relay_commit(struct etw_relay *r, const struct etw_reservation *res)
{
	return etw_relay_commit_records(r, res, 1);
}

#endif
