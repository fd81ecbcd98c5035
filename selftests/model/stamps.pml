/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time in one relay, and what FLUSH promises: the stamps as kmod/relay.{c,h} decides them and the flush of
 * kmod/session.c, for Spin 6.5. Knows nothing of buffers: the packets follow each other without end, relay.pml has the
 * ring. See there for what a transition is, and for the comments in brackets.
 *
 * On the owning CPU a task writer (level 0), an interrupting writer and the flush handler, whose levels are free;
 * beside it a clock and somebody who calls FLUSH. As folded there: load and exchange of last_seen are one transition.
 *
 *   NT NI LI  records of the two writers, level of the second     NF LF  FLUSH calls, level of the handler
 *   NE     calls of the handler alone, for nobody: the flush timer, or another relay's
 *   MOD    stands for 2^32       LAST  where the clock stops
 *   BACK   the clock may be read too early by one; not with FLUSH: it does not step back by as much as a call to
 *          another CPU takes
 *   M_*    one seeded mistake each; the runner has the list
 *
 * A record is 1 unit, a packet S = 3: two records and the padding. A record that does not fit may be lost.
 *
 * Asserted: in the order of positions stamps, and with them the ends of packets, never decrease; each record's stamp
 * can be told from its header, of which a compact one has the time modulo MOD, and the first of a packet is extended;
 * when FLUSH returns every record older than its time is delivered, and no record comes later that is older; the same
 * for the end of a packet once it and all before it are delivered (complete_up_to); FLUSH ends.
 *
 * Not here: that a clamped time is late by up to the length of an interrupt, STOP
 * (no writer is left then), several relays at once (each clamps to its own last_seen, and they share nothing else).
 */

#ifndef NT
#define NT 2
#endif
#ifndef NI
#define NI 2
#endif
#ifndef LI
#define LI 2
#endif
#ifndef NF
#define NF 0
#endif
#ifndef LF
#define LF 1
#endif
#ifndef NE
#define NE 0
#endif
#ifndef MOD
#define MOD 3
#endif
#ifndef LAST
#define LAST (MOD + 1)				/* the clock begins at 0, and is told apart from it at MOD */
#endif

#define S 3
#define PACKET(p) ((p) / S)
#define OFF(p)    ((p) % S)
#define FITS(p)   (OFF(p) != 0 && OFF(p) + 1 < S)
#define BOUND(p)  (OFF(p) == 0 -> (p) : (p) + S - OFF(p))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define NP        (NT + NI + 1)			/* packets there can be */

byte reserve, last_seen, extend_at = MOD, clk, top;
byte hint = NP;					/* packet that the hints name */
byte committed[NP];				/* units */
bit delivered[NP];
byte nesting;					/* etw_nesting */
bit inside[2], wait_for[2];			/* not preemptible; the grace period waits for it */

/* ghosts */
byte first[NP];					/* stamp of its first record plus one until it is delivered; or 0 */
byte ends[NP];					/* its end, until it and all before are delivered */
byte whole;					/* packets delivered from the first on without a gap */
byte prev;					/* of the last exchange of reserve */
byte prev_record;				/* of the last record */
byte promised;					/* nothing older may come */

/* flush_request */
bit asked, answered, closed, nested;
byte position;

/* Reserve up to e with time t; a record at p if r. */
#define TAKE(p, e, t, r) \
	reserve = e; \
	assert((t) >= prev); \
	prev = t; \
	assert(!(r) || (t) >= promised)

#define DELIVER(p) \
	delivered[PACKET(p)] = 1; \
	first[PACKET(p)] = 0; \
	do \
	:: whole < NP && delivered[whole] -> \
		promised = MAX(promised, ends[whole]); \
		ends[whole] = 0; \
		whole++ \
	:: else -> break \
	od

/* u units more; the add that makes the packet whole delivers it, one step later. [etw_relay_commit_records] */
#define COMMIT(p, u, after) \
	atomic { \
		committed[PACKET(p)] = committed[PACKET(p)] + (u); \
		if \
		:: committed[PACKET(p)] == S \
		:: else -> goto after \
		fi \
	} \
	atomic { DELIVER(p) }

/* At (f): can the stamp be told from what the header will have? */
#define TOLD(p, t) \
	assert(ext || (OFF(p) != 0 && (t) - prev_record < MOD)); \
	prev_record = t; \
	first[PACKET(p)] = (OFF(p) == 0 -> (t) + 1 : first[PACKET(p)])

#ifdef M_EXTENDBYSEEN
#define MUST_EXTEND(t) ((t) - seen >= MOD)
#elif defined(M_GT)
#define MUST_EXTEND(t) ((t) > extend_at)
#else
#define MUST_EXTEND(t) ((t) >= extend_at)
#endif

#ifdef M_EXTENDBYSEEN
#define LOCALS byte now, old, at, ts, under, seen; bit ext
#define SEE seen = last_seen
#else
#define LOCALS byte now, old, at, ts, under; bit ext
#define SEE skip
#endif
#ifdef M_NOTCOUNTED
#define LEAVE(me) nesting = nesting - (me)
#else
#define LEAVE(me) nesting--
#endif

#ifdef M_WAITOPEN
#define POSITION (reserve + S - OFF(reserve))
#else
#define POSITION (reserve - OFF(reserve))
#endif

/* The clock may step back a little. */
#ifdef BACK
#define READ(now) \
	atomic { \
		if \
		:: now = clk \
		:: clk > 0 -> now = clk - 1 \
		fi \
	}
#else
#define READ(now) now = clk
#endif

#define CLEAR now = 0; old = 0; at = 0; ts = 0; ext = 0

/*
 * One event, from etw_begin() to the end.
 *
 * [etw_begin]: etw_cpu_inc etw_nesting; etw_cpu_read etw_nesting; etw_clock_read; etw_clock_read; -etw_nested
 * [etw_relay_try_reserve]: READ_ONCE reserve; READ_ONCE last_seen; READ_ONCE current_slot; READ_ONCE position;
 *	etw_try_cmpxchg64_local last_seen; READ_ONCE extend_at; -READ_ONCE base; etw_try_cmpxchg64_local reserve;
 *	WRITE_ONCE extend_at
 * [etw_relay_reserve]: READ_ONCE reserve; READ_ONCE last_seen; cmpxchg64_local last_seen; READ_ONCE extend_at; -room;
 *	READ_ONCE reserve; -etw_relay_lose; -READ_ONCE lost; cmpxchg64_local reserve; WRITE_ONCE extend_at;
 *	close_packet; open_slot; -begin_packet; WRITE_ONCE current_slot
 */
inline event(me)
{
	READ(now);						/* [etw_begin] the clock; BEGIN counted */
	/* the short way */
	atomic {						/* [etw_relay_try_reserve (a)] and the hints */
		old = reserve;
		if
		:: FITS(old) && hint == PACKET(old)
		:: else -> goto again
		fi
	}
	atomic {						/* [etw_relay_try_reserve (b)] */
		SEE;
#ifdef M_NOCLAMP
		ts = now;
#else
		if
		:: now < last_seen -> goto again
		:: else -> ts = now
		fi;
#endif
#ifdef M_RAISELATE
	}
	atomic {
#else
		last_seen = ts
	}
	atomic {						/* [etw_relay_try_reserve (c)] */
#endif
#ifdef M_SHORTCOMPACT
		ext = 0
#else
		if
		:: MUST_EXTEND(ts) -> goto again
		:: else
		fi
#endif
	}
#ifdef M_EXTENDFIRST
	extend_at = ts + MOD;
#endif
	atomic {						/* [etw_relay_try_reserve (f)] */
		if
		:: reserve != old -> goto again
		:: else
		fi;
		TAKE(old, old + 1, ts, 1);
		TOLD(old, ts);
		at = old
	}
#ifdef M_RAISELATE
	last_seen = MAX(ts, last_seen);
#endif
#ifndef M_EXTENDFIRST
	extend_at = ts + MOD;					/* [etw_relay_try_reserve] extend_at */
#endif
	goto copied;

	/* the long way, with the same reading of the clock */
retry:	READ(now);						/* [etw_relay_reserve] the clock again */
again:
#ifdef M_SEENFIRST
	atomic { ext = 0; at = 0; ts = last_seen };
	old = reserve;
	atomic {
		if
		:: now <= ts
		:: now > ts && last_seen == ts -> ts = now; last_seen = ts
		:: else -> goto retry
		fi
	}
#else
	atomic { ext = 0; at = 0; old = reserve };		/* [etw_relay_reserve (a)] */
	atomic {						/* [etw_relay_reserve (b)] */
		SEE;
		ts = MAX(now, last_seen);
#ifndef M_RAISELATE
		last_seen = ts
#endif
	}
#endif
	atomic {						/* [etw_relay_reserve (c)] */
		ext = MUST_EXTEND(ts);
		if
		:: FITS(old) -> at = old; goto room
#ifdef M_FIRSTCOMPACT
		:: else -> at = BOUND(old)
#else
		:: else -> at = BOUND(old); ext = 1
#endif
		fi
	}
	if
	:: atomic { reserve != old -> goto retry }		/* [etw_relay_reserve] reserve again */
	:: atomic { reserve == old -> goto out }		/* [etw_relay_lose] */
	:: true
	fi;
room:
#ifdef M_EXTENDFIRST
	extend_at = ts + MOD;
#endif
	atomic {						/* [etw_relay_reserve (f)] */
		if
		:: reserve != old -> goto retry
		:: else
		fi;
		TAKE(at, at + 1, ts, 1);
		TOLD(at, ts)
	}
#ifdef M_RAISELATE
	last_seen = MAX(ts, last_seen);
#endif
#ifndef M_EXTENDFIRST
	extend_at = ts + MOD;					/* [etw_relay_reserve] extend_at */
#endif
	atomic {						/* [close_packet] end */
		if
		:: at != old -> ends[PACKET(old)] = ts
		:: else -> goto open
		fi
	}
	COMMIT(old, S - OFF(old), open);
open:	hint = PACKET(at);					/* [open_slot] position */
copied:
	COMMIT(at, 1, out);
out:	atomic {						/* [etw_end] and preemption on */
		CLEAR;
		LEAVE(me);
		inside[me] = 0; wait_for[me] = 0;
		top = under; under = 0
	}
}

#ifdef M_NOTCOUNTED
#define BEGIN(me) inside[me] = 1; nesting = nesting + (me)
#else
#define BEGIN(me) inside[me] = 1; nesting++		/* [etw_begin] */
#endif


proctype task() provided (top == 0)
{
	LOCALS; byte n = NT;
	do
	:: atomic { n > 0 -> n--; BEGIN(0) }
		event(0)
	:: atomic { n == 0 -> break }
	od
}

proctype irq() provided (top <= LI)
{
	LOCALS; byte n = NI;
	do
	:: atomic { n > 0 && top < LI -> n--; under = top; top = LI; BEGIN(1) }
		event(1)
	:: atomic { n == 0 -> break }
	od
}

/*
 * The handler.
 *
 * [flush_local]: set nested; this_cpu_read etw_nesting; set closed; etw_relay_flush; etw_session_now; set position;
 *	READ_ONCE reserve
 * [etw_relay_flush]: READ_ONCE reserve; READ_ONCE last_seen; cmpxchg64_local last_seen; -READ_ONCE lost;
 *	cmpxchg64_local reserve; close_packet
 */
proctype handler() provided (top <= LF)
{
	byte now, old, ts, under, alone = NE;
	bit did, found;
end:	do
	:: atomic { top < LF && (asked || alone > 0) ->
			if
			:: asked -> asked = 0; found = 1
			:: alone > 0 -> alone--
			fi;
			under = top; top = LF;
			nested = (found -> nesting != 0 : nested) }	/* [flush_local] nested */
#ifdef M_POSITIONEARLY
		position = (found -> POSITION : position);
#endif
		READ(now);					/* [flush_local] the clock */
again:		old = reserve;					/* [etw_relay_flush] reserve */
		atomic {					/* [etw_relay_flush] last_seen */
			ts = MAX(now, last_seen);
#ifndef M_FLUSHQUIET
			last_seen = ts;
#endif
			did = 0;
			if
			:: OFF(old) == 0 -> goto flushed
			:: else
			fi
		}
		atomic {					/* [etw_relay_flush] the exchange */
			if
			:: reserve != old -> goto again
			:: else -> TAKE(old, BOUND(old), ts, 0); did = 1
			fi
		}
		ends[PACKET(old)] = ts;				/* [close_packet] end */
		COMMIT(old, S - OFF(old), flushed);
flushed:	atomic {
#ifndef M_POSITIONEARLY
			position = (found -> POSITION : position);	/* [flush_local] position */
#endif
			closed = (found -> did : closed);
			answered = (answered || found);
			now = 0; old = 0; ts = 0; did = 0; found = 0;
			top = under; under = 0
		}
	od
}

/*
 * [etw_session_flush]: -etw_self_losses; -etw_self_clock; -READ_ONCE state; etw_session_now; flush_all; all_delivered;
 *	set complete
 * [flush_all]: flush_round; synchronize_rcu; flush_round
 * [flush_round]: flush_cpu; set flush_positions
 */
proctype flusher()
{
	byte n = NF, time, p;
	do
	:: atomic { n > 0 -> n--; time = clk }			/* [etw_session_flush] time */
		asked = 1;					/* [flush_round] [flush_cpu] */
		atomic { answered -> answered = 0;		/* [flush_round] again */
			if
#ifdef M_NONESTING
			:: goto wait
#else
			:: !closed && nested
			:: else -> goto wait
#endif
			fi
		}
#ifndef M_NOGRACE
		atomic { wait_for[0] = inside[0]; wait_for[1] = inside[1] };	/* [flush_all] synchronize_rcu */
		!wait_for[0] && !wait_for[1];
#endif
#ifndef M_ONCE
		asked = 1;					/* [flush_round] [flush_cpu] */
		atomic { answered -> answered = 0 };
#endif
#ifdef M_TIMELATE
wait:		time = clk;
#else
wait:		skip;
#endif
		do						/* [etw_relay_delivered_to] */
#ifdef M_NOWAIT
		:: true -> break
#endif
		:: atomic { p < PACKET(position) && delivered[p] -> p++ }
		:: p >= PACKET(position) -> break
		od;
		atomic {					/* [etw_session_flush] complete */
			promised = MAX(promised, time);
			p = 0;
			do
			:: p < NP -> assert(first[p] == 0 || first[p] > time); p++
			:: else -> break
			od;
			p = 0; time = 0
		}
	:: n == 0 -> break
	od
}

proctype clock()
{
end:	do
	:: atomic { clk < LAST -> clk++ }
	od
}

init {
	atomic {
		run task(); run irq(); run clock();
		if :: NF + NE > 0 -> run handler() :: else fi;
		if :: NF > 0 -> run flusher() :: else fi
	}
}
