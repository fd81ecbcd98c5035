/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of one relay as kmod/relay.{c,h} builds it, for Spin 6.5: one owning CPU whose contexts nest strictly and a
 * reader on another CPU. Knows nothing of time and of what FLUSH promises (stamps.pml), of sleepers (wakeup.pml) and of
 * CPUs that come and go (hotplug.pml). The program "run" beside it builds and runs them all.
 *
 * A context may be interrupted before each transition by any context of a higher level. A transition is at most one
 * access to one shared word: a load, a store, a local add or one exchange. Folded into it are local computation, loads
 * of words that nobody may change at that time (asserted where it is not plain), and stores into a buffer one after the
 * other. A load and the exchange that expects what it gave are one transition: if it fails it changed nothing and both
 * are repeated, and the value expected has the lap in it, so nothing comes back.
 *
 * A comment with a function's name in brackets, and the letter its source gives a step, says what code a step stands
 * for; lines of a name in brackets and a colon list the accesses of a function in their order, with "-" before what is
 * not modelled here. The runner compares both with the
 * sources.
 *
 *   N     slots (N+1 buffers)            OVER   1 overwrite, 0 discard
 *   NT    records of the task writer (level 0)
 *   NI LI RI  records, level and record size (1 or 2) of the interrupting writer    NZ LZ  the same for a third writer
 *   NF LF flushes and their level
 *   READER  0: nobody reads
 *   NU    how often a reader goes away with a packet in hand and the next one goes on
 *   WAITER  somebody waits for what the last flush closed
 *   M_*   one seeded mistake each; the runner has the list
 *
 * Sizes: a record is 1 unit (RI=2: 2 units, copied in two steps), the header belongs to the first record, a sub-buffer
 * is S = 3 units: two records and the unit of padding that the closer always has (a record fits if offset + size < S,
 * never <=).
 *
 * Asserted: nobody stores into a buffer that the reader owns; a packet handed out is the one expected and whole; the
 * lost counter in packets never goes back; a loss happens only where there was no room; when the writers are at rest,
 * wherever the reader is, all counts agree, every buffer has its place, and only the open packet cannot be read; what
 * delivered_to() answers is true; nothing gets stuck.
 *
 * Not here: weak memory (the model is sequentially consistent; that all writers are one CPU is what makes this enough
 * for them), more than four levels, more than two records in a packet, N above 4, long runs (N = 2: two to three laps),
 * the fields of a header one by one, the windows of time and the per-target counts of losses, records refused before
 * etw_relay_reserve().
 */

#ifndef N
#define N 2
#endif
#ifndef OVER
#define OVER 1
#endif
#ifndef NT
#define NT 2
#endif
#ifndef NI
#define NI 3
#endif
#ifndef LI
#define LI 2
#endif
#ifndef RI
#define RI 1
#endif
#ifndef NF
#define NF 1
#endif
#ifndef LF
#define LF 1
#endif
#ifndef NZ
#define NZ 0
#endif
#ifndef LZ
#define LZ 3
#endif
#ifndef NU
#define NU 0
#endif
#ifndef READER
#define READER 1
#endif

#define S 3
#define SLOT(p)  (((p) / S) % N)
#define LAP(p)   ((p) / (S * N))
#define OFF(p)   ((p) % S)
#define START    (S * N)		/* first position: lap 1; lap 0 is "never used, delivered, taken" */

typedef slot_t {
	byte lap; bit open; byte ix; bit taken;	/* the slot word: always loaded, stored, exchanged as one */
	byte cr; byte cb;			/* the commit word: records and units of this lap, as one */
	byte pos; byte base			/* the hints: position of the packet, index for base address */
#ifdef M_NRECSLOT
	; byte n
#endif
}
typedef buf_t {
	byte seq;				/* by the writer that begins the packet */
	byte content; byte disc;		/* by the closer */
	byte nrec;				/* by the deliverer */
	byte d[S];				/* the records: position + 1 */
	bit rd					/* ghost: the reader owns this buffer */
}

slot_t sl[N];
buf_t bf[N + 1];
byte reserve = START;
byte current;					/* current_slot */
byte next = START;				/* overwrite mode, with spare: the reader's, kept in the relay */
byte spare = N;
bit in_hand;
byte consumed = START;				/* discard mode */
byte lost, no_room, wrapped, overwritten, delivered;	/* counters of the algorithm */
byte reserved;					/* ghost */
bit putting;					/* ghost: the reader is between the two stores of PUT */
byte top;					/* level running on the owning CPU */
byte left = (NT > 0) + (NI > 0) + (NZ > 0) + (NF > 0);	/* contexts not yet at their end */
#ifdef WAITER
byte fpos;					/* flush_request.position */
#ifdef M_WAITOPEN
#define FPOS reserve + S - OFF(reserve)
#else
#define FPOS reserve - OFF(reserve)
#endif
#endif

#define W(p)        sl[SLOT(p)]
#define IS_OPEN(p)  (W(p).lap == LAP(p) && W(p).open)
#ifdef M_WRAPBYCOMMIT
#define IS_FREE(p)  (W(p).cb == 0 || W(p).cb == S)
#else
#define IS_FREE(p)  (W(p).lap + 1 == LAP(p) && !W(p).open)
#endif
#define OWN(b)      assert(!bf[b].rd)

#define HINT_BASE(p) W(p).base = b
#define HINT_POS(p)  W(p).pos = (p) - OFF(p)

/*
 * Make (slot, lap) of position p open and leave its buffer in b.
 *
 * [open_slot]: READ_ONCE word; cmpxchg64 word; local64_add overwritten; WRITE_ONCE base; barrier; WRITE_ONCE position
 */
inline open_slot(p, first)
{
#ifdef M_NOOPEN
	if
	:: atomic { !(first) -> b = W(p).ix; goto opened }
	:: else
	fi;
#endif
#ifdef M_HINTFIRST
	b = W(p).ix;
	HINT_BASE(p);
	HINT_POS(p);
#endif
	atomic {
		b = W(p).ix;
		if
		:: IS_OPEN(p) -> goto opened			/* [open_slot] found open */
		:: else
		fi;
#ifndef M_NOWRAP
		assert(W(p).lap + 1 == LAP(p) && !W(p).open);	/* its WARN */
#endif
#ifdef M_OPENSTORE
		wt = W(p).taken };
	atomic {
		W(p).ix = b;
#else
		wt = W(p).taken;
#endif
		W(p).lap = LAP(p); W(p).open = 1; W(p).taken = 0;	/* [open_slot] the exchange */
		if
		:: OVER && !wt
		:: else -> wt = 0; goto opened
		fi
	}
	atomic { overwritten = overwritten + bf[b].nrec; wt = 0 };	/* [open_slot] the packet that it replaces */
opened:
#ifdef M_HINTPOSFIRST
	HINT_POS(p);
	HINT_BASE(p)
#else
	HINT_BASE(p);						/* [open_slot] slot->base */
	HINT_POS(p)						/* [open_slot] slot->position */
#endif
}

#define DELIVER(s, p) sl[s].lap = LAP(p); sl[s].open = 0; sl[s].ix = b; sl[s].taken = 0

/*
 * t records, the last of them just committed, make the packet at p complete.
 *
 * [etw_relay_deliver]: READ_ONCE word; set records; -smp_rmb; -set classes; -READ_ONCE nr_classes; local_set commit;
 *	smp_store_release word; -smp_mb; -READ_ONCE waiting; -READ_ONCE session_waiting; -irq_work_queue
 */
inline deliver(s, p)
{
#ifdef M_EARLYREL
	d_step { b = sl[s].ix; DELIVER(s, p) };
#endif
	d_step { b = sl[s].ix;				/* [etw_relay_deliver] index; open, so only we change it */
#ifndef M_EARLYREL
		assert(sl[s].open && sl[s].lap == LAP(p));
#endif
		OWN(b); bf[b].nrec = t;				/* [etw_relay_deliver] b->records */
#ifdef M_NRECSLOT
		sl[s].n = t;
#endif
		t = 0 };
#ifdef M_RESETLATE
	d_step { DELIVER(s, p) };
#endif
#ifndef M_NORESET
	d_step { sl[s].cr = 0; sl[s].cb = 0 };			/* [etw_relay_deliver] commit */
#endif
#if !defined(M_EARLYREL) && !defined(M_RESETLATE)
	d_step { DELIVER(s, p) }				/* [etw_relay_deliver] release of the word */
#endif
}

/*
 * Add r records and u units to the commit word of slot s; the add that makes it S delivers. Then on to after, which
 * must be the label of the next step.
 *
 * [etw_relay_commit_records]: barrier; local_add_return commit
 */
#define COMMIT(s, p, r, u, closer, after) \
	atomic { \
		sl[s].cr = sl[s].cr + r; sl[s].cb = sl[s].cb + u;	/* [etw_relay_commit_records] the add */ \
		WITHIN(s); \
		if \
		:: LAST(s, closer) -> t = sl[s].cr \
		:: else -> goto after \
		fi \
	} \
	deliver(s, p)

#ifdef M_NOWRAP
#define WITHIN(s) skip
#else
#define WITHIN(s) assert(sl[s].cb <= S)
#endif
#ifdef M_SWDELIVER
#define LAST(s, closer) (closer)
#else
#define LAST(s, closer) (sl[s].cb == S)
#endif

/*
 * The caller owns the padding from p on, which keeps the packet from being delivered before. Its next step is closed.
 *
 * [close_packet]: open_slot; set content; set end; set lost; -set timestamp_end; -set content_size; -set packet_size;
 *	-set events_discarded; barrier; local_add_return commit; etw_relay_deliver
 */
inline close_packet(p)
{
#ifdef M_LATESAMPLE
	smp = lost;
#endif
#ifdef M_CLOSENOOPEN
	b = W(p).ix;
#else
	open_slot(p, 0);
#endif
#ifdef M_COMMITFIRSTCLOSE
	h = b;
	COMMIT(SLOT(p), p, 0, S - OFF(p), 1, late);
late:	atomic { OWN(h); bf[h].content = OFF(p); bf[h].disc = smp; smp = 0; h = 0; b = 0 }
#else
	d_step { OWN(b); bf[b].content = OFF(p); bf[b].disc = smp; smp = 0; b = 0 };	/* [close_packet] */
	COMMIT(SLOT(p), p, 0, S - OFF(p), 1, closed)	/* [close_packet] commit */
#endif
}

#ifdef M_LOOSEFIT
#define FITS(o, z) (OFF(o) != 0 && OFF(o) + (z) <= S)
#define SHORT_FITS(z) (old > sl[h].pos && old + (z) <= sl[h].pos + S)
#else
#define FITS(o, z) (OFF(o) != 0 && OFF(o) + (z) < S)
#define SHORT_FITS(z) (old > sl[h].pos && old + (z) < sl[h].pos + S)
#endif
#ifdef M_EARLYCONSUMED
#define FREED (consumed + (in_hand -> S : 0))
#else
#define FREED consumed
#endif
#ifdef M_ROOMGT
#define ROOM_MORE 1
#else
#define ROOM_MORE 0
#endif
#define NEXT(o)   (OFF(o) == 0 -> (o) : (o) + S - OFF(o))

/*
 * Lose the record, unless somebody moved the position meanwhile: what was seen is then stale. just: when it was seen
 * it was not.
 *
 * [etw_relay_lose]: -READ_ONCE first; -WRITE_ONCE first; -WRITE_ONCE last; local64_inc lost; local64_inc count
 */
inline drop(cause)
{
#ifdef M_COUNTEARLY
	cause++;
#endif
#ifndef M_NOREREAD
	atomic {
		if
		:: reserve != old -> just = 0; goto again	/* [etw_relay_reserve] reserve again */
		:: else
		fi
	};
#endif
	atomic { assert(just); just = 0; lost++ };		/* [etw_relay_lose] lost */
#ifndef M_COUNTEARLY
	cause++;						/* [etw_relay_lose] count */
#endif
	goto out
}

#ifdef M_BASEFIRST
#define BEGIN h = current; b = sl[h].base
#else
#define BEGIN old = reserve				/* [etw_relay_try_reserve (a)] [etw_relay_try_reserve (b)] */
#endif
#define END   old = 0; at = 0; b = 0; h = 0; smp = 0; t = 0

/*
 * From BEGIN, a step of the caller's, on.
 *
 * [etw_relay_try_reserve]: READ_ONCE reserve; -READ_ONCE last_seen; READ_ONCE current_slot; READ_ONCE position;
 *	-etw_try_cmpxchg64_local last_seen; -READ_ONCE extend_at; READ_ONCE base; etw_try_cmpxchg64_local reserve;
 *	-WRITE_ONCE extend_at
 * [room]: smp_load_acquire consumed; READ_ONCE word
 * [etw_relay_reserve]: READ_ONCE reserve; -READ_ONCE last_seen; -cmpxchg64_local last_seen; -READ_ONCE extend_at; room;
 *	READ_ONCE reserve; etw_relay_lose; READ_ONCE lost; cmpxchg64_local reserve; -WRITE_ONCE extend_at; close_packet;
 *	open_slot; begin_packet; WRITE_ONCE current_slot
 * [begin_packet]: set position; -set begin; -set magic; -set stream_id; -set timestamp_begin; -set packet_seq_num;
 *	-set cpu_id
 */
inline write_one(z)
{
	/* The short way. That a stamp sends the record the long way, steps (b) and (c), is a free choice here. */
#ifdef M_BASEFIRST
	old = reserve;
#else
	h = current;						/* [etw_relay_try_reserve] current_slot */
#endif
	atomic {						/* [etw_relay_try_reserve] position */
		if
#ifdef M_SHORTNOPOS
		:: FITS(old, z)
#else
		:: SHORT_FITS(z)
#endif
		:: goto again					/* [etw_relay_try_reserve (c)] or it does not fit */
		fi
#ifndef M_BASEFIRST
	}
	atomic {
		b = sl[h].base					/* [etw_relay_try_reserve] base */
#endif
	}
	atomic {						/* [etw_relay_try_reserve (f)] */
		if
		:: reserve == old -> reserve = old + z; reserved++; at = old; goto copy
		:: else
		fi
	}
again:
	atomic {
		END;
		/* [etw_relay_reserve (a)] [etw_relay_reserve (b)] [etw_relay_reserve (c)] */
		old = reserve;
#ifdef M_SAMPLEONCE
		smp = sample;
#endif
		if
		:: FITS(old, z) -> at = old; goto fits
		:: else -> at = NEXT(old)
		fi
	}
#if !OVER
	atomic {						/* [room (d)] [etw_relay_reserve (d)] */
		if
		:: at < FREED + S * N + ROOM_MORE && FREED <= at -> goto room_d
		:: else -> just = (reserve == old)
		fi
	}
	drop(no_room);
room_d:
#endif
#ifndef M_NOWRAP
	atomic {						/* [room (e)] [etw_relay_reserve (e)] */
		if
		:: IS_FREE(at) -> goto room_e
		:: else -> just = (reserve == old)
		fi
#if !OVER
		assert(!just)					/* room implies delivered */
#endif
	}
	drop(wrapped);
room_e:
#endif
#if !defined(M_LATESAMPLE) && !defined(M_SAMPLEONCE)
	smp = (OFF(old) != 0 -> lost : 0);			/* [etw_relay_reserve] lost, if one is closed */
#endif
fits:
	atomic {						/* [etw_relay_reserve (f)] */
		if
		:: reserve != old -> goto again
		:: else
		fi;
		reserve = at + z; reserved++;
		if
		:: at != old
		:: else -> smp = 0; goto closed
		fi
	}
	close_packet(old);
closed:
	open_slot(at, OFF(at) == 0);
	atomic {
		if
		:: OFF(at) == 0 -> OWN(b); bf[b].seq = at / S	/* [begin_packet] */
		:: else
		fi;
		current = SLOT(at); h = SLOT(at)		/* [etw_relay_reserve] current_slot */
	}
copy:
#ifdef M_COMMITFIRST
	smp = b;
	COMMIT(h, at, 1, z, 0, late);
late:	atomic { OWN(smp); bf[smp].d[OFF(at)] = at + 1 };
#else
	atomic {
		OWN(b); bf[b].d[OFF(at)] = at + 1;
		if
		:: z == 2
		:: else -> goto copied
		fi
	}
	d_step { OWN(b); bf[b].d[1] = at + 2 };
copied:
	COMMIT(h, at, 1, z, 0, out);				/* [etw_relay_commit_records] */
#endif
out:	atomic { END; top = prev; prev = 0 }
}

#ifdef M_SAMPLEONCE
#define LOCALS byte old, at, b, h, smp, t, sample; bit wt, just
#define SAMPLE ; sample = lost
#else
#define LOCALS byte old, at, b, h, smp, t; bit wt, just
#define SAMPLE
#endif

proctype task() provided (top == 0)
{
	LOCALS; byte n = NT, prev;
	do
	:: atomic { n > 0 -> n--; BEGIN SAMPLE }
		write_one(1)
	:: atomic { n == 0 -> left--; break }
	od
}

proctype irq() provided (top <= LI)
{
	LOCALS; byte n = NI, prev;
	do
	:: atomic { n > 0 && top < LI -> n--; prev = top; top = LI; BEGIN SAMPLE }
		write_one(RI)
	:: atomic { n == 0 -> left--; break }
	od
}

proctype nmi() provided (top <= LZ)
{
	LOCALS; byte n = NZ, prev;
	do
	:: atomic { n > 0 && top < LZ -> n--; prev = top; top = LZ; BEGIN SAMPLE }
		write_one(1)
	:: atomic { n == 0 -> left--; break }
	od
}

/*
 * [etw_relay_flush]: READ_ONCE reserve; -READ_ONCE last_seen; -cmpxchg64_local last_seen; READ_ONCE lost;
 *	cmpxchg64_local reserve; close_packet
 */
proctype flush() provided (top <= LF)
{
	LOCALS; byte n = NF, prev;
	do
	:: atomic { n > 0 && top < LF -> n--; prev = top; top = LF }
again:		atomic {
			old = reserve;				/* [etw_relay_flush] reserve */
			if
			:: OFF(old) == 0 -> goto closed
			:: else
			fi
		}
		smp = lost;					/* [etw_relay_flush] lost */
		atomic {
			if
			:: reserve == old -> reserve = NEXT(old)	/* [etw_relay_flush] the exchange */
			:: else -> goto again
			fi
		}
#ifndef M_FLUSHNOCLOSE
		close_packet(old);
#endif
closed:	atomic { END;
#ifdef WAITER
			fpos = FPOS };				/* [flush_local] position */
		atomic {
#endif
			top = prev; prev = 0 }
	:: atomic { n == 0 -> left--; break }
	od
}

#define READY(p) (W(p).lap == LAP(p) && !W(p).open)
#define LAPPED(p) (W(p).lap > LAP(p))
#ifdef M_NRECSLOT
#define COUNT(p) W(p).n
#else
#define COUNT(p) bf[b].nrec
#endif

inline check(p)
{
	assert(bf[b].seq == (p) / S);			/* it is the packet it should be */
	assert(COUNT(p) >= 1 && COUNT(p) <= 2);
	assert(bf[b].content <= 2 && COUNT(p) <= bf[b].content);	/* complete */
	assert(RI == 2 || bf[b].content == COUNT(p));
	assert(bf[b].d[0] == (p) + 1);
	assert(bf[b].content < 2 || bf[b].d[1] == (p) + 2);
	assert(bf[b].disc >= ldisc)			/* the counter never runs backwards */
}

#ifdef M_OLDEST
#define OLDEST (N - 2)
#elif defined(M_OLDESTSAME)
#define OLDEST N
#else
#define OLDEST (N - 1)
#endif
#if OVER
#define IN_HAND (next - S)			/* position of the packet in hand */
#else
#define IN_HAND consumed
#endif

/*
 * A reader asks again and again; that nothing has come, and a load that changes nothing, are no steps. got: a reader
 * holds the packet; in_hand: somebody has got it. The lock keeps one call apart from the other.
 *
 * [etw_relay_get]: get_overwrite; get_discard; set in_hand; -set got_end
 * [get_overwrite]: oldest; set next; slot_word; cmpxchg64 word; set spare; set next
 * [oldest]: slot_word
 * [get_discard]: slot_word
 * [slot_word]: smp_load_acquire word
 * [etw_relay_put]: set in_hand; set delivered; set delivered; READ_ONCE word; smp_store_release consumed
 */
proctype reader()
{
	byte b, ldisc, ungot;
	bit got;
#ifdef M_GETSTORE
	bit loaded;
#endif
end:	do
#if OVER
	:: atomic { in_hand && !got -> b = spare; got = 1 }	/* [get_overwrite] in hand: it comes first */
	:: atomic { !in_hand && !got && LAPPED(next) ->		/* [oldest] */
		b = next;
		next = SLOT(next) * S + W(next).lap * S * N - OLDEST * S;
		assert(next > b); b = 0 }
#ifdef M_GETSTORE
	:: atomic { !in_hand && !got && !loaded && READY(next) -> b = W(next).ix; loaded = 1 }
	:: atomic { loaded -> loaded = 0; W(next).lap = LAP(next); W(next).open = 0;
#else
	:: atomic {
#ifndef M_UNGETLOST
		!in_hand &&
#endif
		!got && READY(next) -> b = W(next).ix;		/* [get_overwrite] word and exchange */
#endif
		W(next).ix = spare;
#ifndef M_NOTAKEN
		W(next).taken = 1;
#endif
		bf[spare].rd = 0; bf[b].rd = 1;
		spare = b; in_hand = 1; got = 1;
#ifndef WAITER
		next = next + S }
	:: atomic { got ->
#else
		}
		next = next + S;				/* [get_overwrite] next */
	:: atomic { got ->
#endif
		check(IN_HAND); ldisc = bf[b].disc; delivered = delivered + COUNT(IN_HAND);	/* [etw_relay_put] */
		in_hand = 0; got = 0; b = 0 }
#else
	/* [get_discard] */
	:: atomic { !got && READY(consumed) -> b = W(consumed).ix; bf[b].rd = 1; in_hand = 1; got = 1 }
	:: atomic { got ->					/* [etw_relay_put] delivered */
		check(IN_HAND); ldisc = bf[b].disc; delivered = delivered + COUNT(IN_HAND); putting = 1 }
		atomic { consumed = consumed + S;		/* [etw_relay_put] consumed */
			bf[b].rd = 0; in_hand = 0; got = 0; b = 0; putting = 0 }
#endif
	:: atomic { got && ungot < NU -> check(IN_HAND); ungot++; got = 0; b = 0 }	/* [relay_release] */
	od
}

#ifdef WAITER
#if OVER
#define NEXT_TO_READ next
#else
#define NEXT_TO_READ consumed
#endif
#ifdef M_DTOPEN
#define PENDING(p) (W(p).lap < LAP(p))
#else
#define PENDING(p) (W(p).lap < LAP(p) || (W(p).lap == LAP(p) && W(p).open))
#endif

/*
 * The wait of a FLUSH. After a look that finds a packet missing it goes on where it stood: another look from the start
 * is a first look at that time.
 *
 * [etw_relay_delivered_to]: next_to_read; slot_word
 * [next_to_read]: READ_ONCE next; READ_ONCE consumed
 */
proctype waiter()
{
	byte p, i;
	atomic { fpos != 0 ->
		p = NEXT_TO_READ;				/* [next_to_read] */
#ifdef M_DTLAST
		p = fpos - S
#else
		p = (p > fpos - S * N -> p : fpos - S * N)	/* fpos is never below the first lap */
#endif
	}
	do
	:: atomic { p < fpos && !PENDING(p) -> p = p + S }	/* [etw_relay_delivered_to] a word */
	:: d_step { p >= fpos ->
		i = 0;
		do
		:: i < N ->
			p = i * S + LAP(fpos) * S * N;
			p = (p >= fpos -> p - S * N : p);	/* the last packet of slot i below fpos */
			assert(sl[i].lap > LAP(p) || (sl[i].lap == LAP(p) && !sl[i].open));
			i++
		:: else -> break
		od;
		p = 0; i = 0 }
		break
	od
}
#endif

/*
 * The sums when the writers are at rest.
 *
 * [etw_relay_unread]: slot_word; local_read commit
 */
proctype fin()
{
	byte i, unread, cur, m;
	d_step {
		left == 0 && !putting ->
		i = 0;
		do
		:: i < N ->
			if
			:: sl[i].open ->
				cur++;
				assert(OFF(reserve) != 0 && i == SLOT(reserve) && sl[i].lap == LAP(reserve));
				assert(sl[i].cb == OFF(reserve));
				unread = unread + sl[i].cr
			:: else ->
				assert(sl[i].cb == 0 && sl[i].cr == 0);
				if
				/* [etw_relay_unread] */
				:: OVER && !sl[i].taken && sl[i].lap > 0 -> unread = unread + bf[sl[i].ix].nrec
				:: !OVER && sl[i].lap > 0 && (sl[i].lap * N + i) * S >= consumed ->
					unread = unread + bf[sl[i].ix].nrec
				:: else
				fi
			fi;
			m = m | (1 << sl[i].ix);
			i++
		:: else -> break
		od;
		assert(cur == (OFF(reserve) != 0 -> 1 : 0));
#if OVER
		assert(in_hand || READY(next) || LAPPED(next) || unread == (cur != 0 -> sl[SLOT(reserve)].cr : 0));
		unread = unread + (in_hand -> bf[spare].nrec : 0);
		assert(no_room == 0);
#else
		assert(READY(consumed) || unread == (cur != 0 -> sl[SLOT(reserve)].cr : 0));
		assert(wrapped == 0 && overwritten == 0);
#endif
		m = m | (1 << spare);
		assert(m == (1 << (N + 1)) - 1);		/* slots and spare hold every buffer once */
		assert(NT + NI + NZ == reserved + lost);
		assert(lost == no_room + wrapped);
		assert(reserved == delivered + overwritten + unread);
		i = 0; unread = 0; cur = 0; m = 0
	}
}

init {
	byte i;
	atomic {
		do
		:: i < N -> sl[i].ix = i; sl[i].taken = 1; i++
		:: else -> break
		od;
		i = 0;
		bf[N].rd = OVER;
		if :: NT > 0 -> run task() :: else fi;
		if :: NI > 0 -> run irq() :: else fi;
		if :: NZ > 0 -> run nmi() :: else fi;
		if :: NF > 0 -> run flush() :: else fi;
		if :: READER -> run reader() :: else fi;
		run fin();
#ifdef WAITER
		run waiter()
#endif
	}
}
