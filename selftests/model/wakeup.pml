/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who sleeps for a packet is woken: delivery in kmod/relay.c against poll() of a relay and the wait of FLUSH, for
 * Spin 6.5. Knows of a packet only that it was delivered. See relay.pml for the comments in brackets.
 *
 * Memory is TSO, made explicit: each CPU has a queue of stores that reach memory one by one at any later time, its own
 * loads see them, a full barrier and whatever is locked (an atomic exchange, a wait queue) waits until it is empty. So
 * a barrier left out is seen, as store buffering. Loads are in order, and so are stores.
 *
 * Each relay has a CPU with a writer and, interrupting it, its irq_work; relay 0 has a reader in poll(), and somebody
 * waits in FLUSH for all packets of all relays, each on a CPU of its own.
 *
 *   NR     relays (1 or 2)         ND     packets delivered by each
 *   READER, FLUSHER  0: there is none
 *   M_*    one seeded mistake each; the runner has the list
 *
 * Asserted: everybody comes to his end, which nobody does who sleeps while there is what he waits for.
 *
 * Not here: memory weaker than TSO (the order of clearing the flag and of waking rests on the lock of the wait queue),
 * epoll's own queues, STOP and new relays, which wake without a flag.
 */
#ifndef NR
#define NR 1
#endif
#ifndef ND
#define ND 2
#endif
#ifndef READER
#define READER 1
#endif
#ifndef FLUSHER
#define FLUSHER 1
#endif

#define WORD(r)    (r)
#define WAITING(r) (2 + (r))
#define SESSION    4				/* session->waiting */
#define LENGTH     3				/* of a queue of stores; who finds it full waits */

typedef cpu_t {
	byte n;
	byte var[LENGTH];
	byte val[LENGTH]
}

cpu_t cpu[NR + 2];
byte mem[5];
bit pending[NR];				/* irq_work */
bit in_irq[NR];
bit queued[2], woken[2];			/* on the relay's queue, on the session's */

#define STORE(c, v, x) \
	atomic { \
		cpu[c].n < LENGTH -> \
		cpu[c].var[cpu[c].n] = v; cpu[c].val[cpu[c].n] = x; cpu[c].n++ \
	}
/* At most one store to each variable can be under way, in what follows. */
#define LOAD(c, v) \
	(cpu[c].n > 2 && cpu[c].var[2] == (v) -> cpu[c].val[2] : \
	(cpu[c].n > 1 && cpu[c].var[1] == (v) -> cpu[c].val[1] : \
	(cpu[c].n > 0 && cpu[c].var[0] == (v) -> cpu[c].val[0] : mem[v])))
#define DRAINED(c) (cpu[c].n == 0)
#define MB(c)      DRAINED(c)

#define OLDEST_OF(c) \
	atomic { \
		cpu[c].n > 0 -> \
		mem[cpu[c].var[0]] = cpu[c].val[0]; \
		cpu[c].var[0] = cpu[c].var[1]; cpu[c].val[0] = cpu[c].val[1]; \
		cpu[c].var[1] = cpu[c].var[2]; cpu[c].val[1] = cpu[c].val[2]; \
		cpu[c].var[2] = 0; cpu[c].val[2] = 0; \
		cpu[c].n-- \
	}

proctype memory()
{
end:	do
	:: OLDEST_OF(0)
	:: OLDEST_OF(1)
	:: OLDEST_OF(2)
#if NR > 1
	:: OLDEST_OF(3)
#endif
	od
}

/*
 * [etw_relay_deliver], its end: smp_store_release word; smp_mb; READ_ONCE waiting; READ_ONCE session_waiting;
 *	irq_work_queue
 */
proctype writer(byte r) provided (!in_irq[r])
{
	byte n;
	bit wanted;
	do
	:: n < ND ->
#ifdef M_FLAGFIRST
		wanted = LOAD(r, WAITING(r));
		wanted = (wanted || LOAD(r, SESSION));
		n++;
		STORE(r, WORD(r), n);
		MB(r);
#else
		n++;
		STORE(r, WORD(r), n);				/* [etw_relay_deliver] the word */
#ifndef M_NOMBDELIVER
		MB(r);						/* [etw_relay_deliver] smp_mb() */
#endif
		wanted = LOAD(r, WAITING(r));			/* [etw_relay_deliver] waiting */
#ifndef M_RELAYONLY
		wanted = (wanted || LOAD(r, SESSION));		/* [etw_relay_deliver] session_waiting */
#endif
#endif
		if
		:: atomic { wanted && DRAINED(r) -> pending[r] = 1; wanted = 0 }	/* irq_work_queue() */
		:: !wanted
		fi
	:: n == ND -> break
	od
}

#define WAKE(r, q) \
	atomic { DRAINED(r) -> \
		if \
		:: queued[q] -> woken[q] = 1 \
		:: else \
		fi \
	}

/* [wake_readers]: WRITE_ONCE waiting; WRITE_ONCE session_waiting; wake_up_all wait; wake_up_all session_wait */
proctype work(byte r)
{
end:	do
	:: atomic { pending[r] -> in_irq[r] = 1 }
		atomic { DRAINED(r) -> pending[r] = 0 };	/* irq_work_single(), with a full barrier */
#ifdef M_WAKEFIRST
		if
		:: r == 0 -> WAKE(r, 0)
		:: else
		fi;
		WAKE(r, 1);
#endif
		STORE(r, WAITING(r), 0);			/* [wake_readers] waiting */
		STORE(r, SESSION, 0);				/* [wake_readers] session_waiting */
#ifndef M_WAKEFIRST
		if
		:: r == 0 -> WAKE(r, 0)				/* [wake_readers] the relay's queue */
		:: else
		fi;
		WAKE(r, 1);					/* [wake_readers] the session's */
#endif
		in_irq[r] = 0
	od
}

#define R NR					/* CPU of the reader */

/*
 * [relay_poll]: poll_wait; etw_relay_wait; -etw_session_stopped; etw_relay_ready
 * [etw_relay_wait]: WRITE_ONCE waiting; smp_mb
 */
proctype reader()
{
	byte got;
	do
	:: got < ND ->
		if
		:: atomic { LOAD(R, WORD(0)) > got -> got++ }	/* [etw_relay_get] */
		:: atomic { LOAD(R, WORD(0)) <= got -> skip }	/* EAGAIN: poll() */
#ifndef M_QUEUELATE
			atomic { DRAINED(R) -> queued[0] = 1; woken[0] = 0 };	/* [relay_poll] poll_wait() */
#endif
again:
#ifdef M_READYFIRST
			if
			:: LOAD(R, WORD(0)) > got -> goto ready
			:: LOAD(R, WORD(0)) <= got
			fi;
#endif
			STORE(R, WAITING(0), 1);		/* [etw_relay_wait] waiting */
#ifndef M_NOMBWAIT
			MB(R);					/* [etw_relay_wait] smp_mb() */
#endif
#ifndef M_READYFIRST
			if
			:: LOAD(R, WORD(0)) > got -> goto ready	/* [etw_relay_ready] */
			:: LOAD(R, WORD(0)) <= got
			fi;
#endif
#ifdef M_QUEUELATE
			atomic { DRAINED(R) -> queued[0] = 1 };
#endif
			atomic { woken[0] && DRAINED(R) -> woken[0] = 0 };	/* sleep */
			goto again;
ready:			atomic { DRAINED(R) -> queued[0] = 0; woken[0] = 0 }
		fi
	:: got == ND -> break
	od
}

#define F (NR + 1)				/* CPU of the one who calls FLUSH */

/* [all_delivered]: WRITE_ONCE waiting; smp_mb; etw_relay_delivered_to */
proctype flusher()
{
	byte r;
	atomic { DRAINED(F) -> queued[1] = 1; woken[1] = 0 };	/* [etw_session_flush] wait_event_...() */
again:	STORE(F, SESSION, 1);					/* [all_delivered] waiting */
#ifndef M_NOMBFLUSH
	MB(F);							/* [all_delivered] smp_mb() */
#endif
	r = 0;
	do
	:: atomic { r < NR && LOAD(F, WORD(r)) == ND -> r++ }	/* [etw_relay_delivered_to] */
	:: atomic { r < NR && LOAD(F, WORD(r)) < ND -> r = 0 }
		atomic { woken[1] && DRAINED(F) -> woken[1] = 0 };	/* sleep */
		goto again
	:: r == NR -> break
	od;
	atomic { DRAINED(F) -> queued[1] = 0; woken[1] = 0; r = 0 }
}

init {
	atomic {
		run memory();
		run writer(0); run work(0);
#if NR > 1
		run writer(1); run work(1);
#endif
		if :: READER -> run reader() :: else fi;
		if :: FLUSHER -> run flusher() :: else fi
	}
}
