/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session's relay of a CPU that comes and goes, as kmod/session.c makes it, while the session is made, read, flushed
 * and stopped, for Spin 6.5. Knows of a relay only how many records are in its open packet and how many are delivered:
 * relay.pml has the ring, stamps.pml a FLUSH that interrupts a writer. See relay.pml for the comments in brackets.
 *
 * One CPU that is switched on and off; what the hotplug lock covers is as in the kernel: switching holds it for
 * writing, making the session's relays and flushing for reading, and a CPU that dies may write until it is dead, when
 * it is no longer online. Who makes the session runs on another, as do the reader, FLUSH, the flush timer and STOP.
 *
 *   ONLINE  is it on at first      NH  how often it is switched      NW  records it writes      NF  FLUSH calls
 *   TIMER   1: the flush timer comes once
 *   FAILS   there may be no memory for the relay
 *   M_*     one seeded mistake each; the runner has the list
 *
 * Asserted: only a dead CPU is acted for by another, and only by the one who switched it off is anything closed; no CPU
 * is kept from coming; a reader learns of each relay; when FLUSH returns every record older than its time is delivered;
 * when the reader has come to the end after STOP he has had all that was written; then the relay is complete up to the
 * stop; everybody comes to his end.
 *
 * Not here: several such CPUs (they share nothing but the lock and the wait queue), the end of a session (nobody is
 * left), the order of memory (switching a CPU orders it).
 */
#ifndef ONLINE
#define ONLINE 0
#endif
#ifndef NH
#define NH 2
#endif
#ifndef NW
#define NW 2
#endif
#ifndef NF
#define NF 1
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef TIMER
#define TIMER 0
#endif

bit writing_lock;				/* the hotplug lock */
byte reading_locks;
bit online = ONLINE, running = ONLINE;		/* running: it executes, online: and others count on it */
bit listed;					/* the hotplug state has the session */
bit making, live, failed, stopping, stopped;	/* making: session->maker is the creator */
bit relay, cpu_relay;				/* session->relays[], *session->cpu_relay */
bit announce, opened, asleep, woken;		/* opened: the relay by the reader */
byte open, delivered, got, written;		/* records */
byte clk, since, complete;			/* since: time of the first record in the open packet */
bit busy, acting;				/* the CPU is in a write; another acts for it */
byte switchers = 1, calls = NF + TIMER;

#define READ_LOCK     atomic { !writing_lock -> reading_locks++ }
#define READ_UNLOCK   reading_locks--
#define WRITE_LOCK    atomic { !writing_lock && reading_locks == 0 -> writing_lock = 1 }
#define WRITE_UNLOCK  writing_lock = 0
#define MAX(a, b)     ((a) > (b) -> (a) : (b))

#define CLOSE \
	delivered = delivered + open; \
	open = 0; since = 0; woken = 1

#ifdef M_LIVE
#define COMES(by_creator) live
#else
#define COMES(by_creator) !(making && (by_creator))
#endif
#ifdef M_LIVEFAILS
#define MAY_LACK(by_creator) live
#else
#define MAY_LACK(by_creator) COMES(by_creator)
#endif

/*
 * [cpu_prepare]: READ_ONCE maker; READ_ONCE stopping; etw_relay_create; set complete; etw_session_now; set announce;
 *	smp_store_release relays; wake_up_all wait
 */
inline cpu_prepare(by_creator)
{
	atomic {
		if
#ifdef M_STOPPING
		:: relay -> goto prepared
#else
		:: relay || stopping -> goto prepared		/* [cpu_prepare] relays, stopping */
#endif
		:: else
		fi
	}
	atomic {
		if
		:: true						/* [cpu_prepare] etw_relay_create() */
		:: FAILS ->
			failed = (MAY_LACK(by_creator) -> failed : 1);
			assert(by_creator || !failed);
			goto prepared
		fi
	}
#ifndef M_NOANNOUNCE
	atomic {
		if
		:: COMES(by_creator) -> complete = clk; announce = 1	/* [cpu_prepare] complete, announce */
		:: else
		fi
	}
#endif
#ifdef M_WAKEEARLY
	woken = 1;
#endif
	cpu_relay = 1;
	relay = 1;						/* [cpu_prepare] relays */
#ifndef M_WAKEEARLY
	woken = 1;						/* [cpu_prepare] wake_up_all() */
#endif
prepared: skip
}

/* By another CPU. [flush_cpu] [cpu_dead] */
inline act_for(dying)
{
	atomic { assert(!running && !busy && !acting); acting = 1 };
	atomic {
		assert(dying || open == 0);
		if
		:: open > 0 -> CLOSE
		:: else
		fi;
		acting = 0
	}
}

/*
 * [etw_session_create]: -session_alloc; -claim_name; -take_clocks; WRITE_ONCE maker; cpuhp_state_add_instance;
 *	WRITE_ONCE maker; -set persists; -set state; set live
 */
proctype creator()
{
	making = 1;						/* [etw_session_create] maker */
	READ_LOCK;						/* [etw_session_create] cpuhp_state_add_instance() */
	if
	:: online -> cpu_prepare(1)
	:: else
	fi;
	atomic { listed = !failed; READ_UNLOCK };
	making = 0;						/* [etw_session_create] maker */
	live = !failed						/* [etw_session_create] live */
}

/* [cpu_dead]: etw_relay_flush; etw_session_now */
proctype switcher()
{
	byte n = NH;
	do
	:: atomic { n > 0 && !online -> n-- }
		WRITE_LOCK;
		if
		:: listed -> cpu_prepare(0)
		:: else
		fi;
		running = 1;
		atomic { online = 1; WRITE_UNLOCK }
	:: atomic { n > 0 && online -> n-- }
		WRITE_LOCK;
		online = 0;
#ifdef M_DEADEARLY
		if
		:: listed && relay -> act_for(1)
		:: else
		fi;
#endif
		atomic { !busy -> running = 0 };
#if !defined(M_DEADEARLY) && !defined(M_NODEAD)
		if
		:: listed && relay -> act_for(1)		/* [cpu_dead] */
		:: else
		fi;
#endif
		WRITE_UNLOCK
	:: atomic { n == 0 -> switchers--; break }
	od
}

/* The CPU's own records, until STOP has disabled everything. */
proctype writer()
{
	byte n = NW;
	do
	:: atomic { n > 0 && running && live && !stopping && cpu_relay -> n--; busy = 1 }
		atomic {
			since = (open == 0 -> clk : since);
			open++; written++; busy = 0 }
	:: atomic { n == 0 || stopping || failed -> break }
	od
}

/*
 * [flush_cpu]: smp_call_function_single; -set closed; etw_relay_flush; -etw_session_now; -set position;
 *	-READ_ONCE reserve
 */
inline flush_cpu()
{
#ifdef M_ALWAYSCALL
	if
	:: true
#else
	if
	:: online
#endif
		atomic {					/* [flush_cpu] smp_call_function_single() */
			assert(running);
			CLOSE
		}
	:: !online -> act_for(0)				/* [flush_cpu] for a CPU that is off */
	fi
}

/* [etw_session_flush] [flush_all] */
proctype flusher()
{
	byte n = NF, time;
	do
	:: n > 0 && live ->
		atomic { n--; time = clk };
#ifndef M_NOLOCK
		READ_LOCK;
#endif
#ifndef M_NOFLUSH
		if
		:: relay -> flush_cpu()				/* [flush_round] */
		:: else
		fi;
#endif
#ifndef M_NOLOCK
		READ_UNLOCK;
#endif
		atomic { assert(open == 0 || since >= time);
			complete = (relay -> MAX(complete, time) : complete);
			time = 0;
			calls-- }
	:: atomic { n == 0 || failed -> calls = calls - n; n = 0; break }
	od
}

/* [flush_for_reader]: READ_ONCE reserve; etw_relay_ready; flush_cpu */
proctype timer()
{
	do
	:: live ->
		READ_LOCK;
		if
		:: relay && open > 0 && delivered == got -> flush_cpu()
		:: else
		fi;
		READ_UNLOCK;
		break
	:: failed -> break
	od;
	calls--
}

/* It waits for the others' ends only to see them all on its way. */
proctype stopper()
{
	byte time;
	do
	:: atomic { live -> stopping = 1; break }		/* [etw_session_stop] stopping */
	:: atomic { failed -> goto out }
	od;
#ifndef M_NOGRACE
	!busy;							/* [etw_session_disable_all] a grace period */
#endif
	calls == 0;						/* [etw_session_stop] cancel_work_sync(), flush_lock */
	READ_LOCK;						/* [etw_session_stop] [flush_all] */
	if
	:: relay -> flush_cpu()
	:: else
	fi;
	READ_UNLOCK;
	time = clk;						/* [last_time] */
	stopped = 1;						/* [etw_session_stop] state */
	complete = (relay -> time : complete);			/* [etw_session_stop] complete */
#ifndef M_NOSTOPWAKE
	woken = 1;						/* [etw_session_stop] wake_up_all() */
#endif
	switchers == 0;
	assert(!relay || complete == time);
	assert(open == 0);
out:	skip
}

/*
 * A reader that opens what there is, and then goes by poll() of the session.
 *
 * [session_poll]: poll_wait; etw_session_stopped; etw_session_ready; etw_session_has_news
 * [etw_session_has_news]: etw_session_relay; READ_ONCE announce
 */
proctype reader()
{
	bit end;
	if
	:: live
	:: failed -> goto out
	fi;
	opened = relay;						/* [etw_relay_file_open], or ENODEV */
	announce = (opened -> 0 : announce);			/* [etw_relay_file_open] announce */
	do
	:: end = stopped;					/* [session_poll] etw_session_stopped() first */
		if
		:: atomic { opened && delivered > got -> got = delivered }
		:: atomic { !opened && relay && announce -> opened = 1; announce = 0 }	/* [etw_session_has_news] */
		:: atomic { !(opened && delivered > got) && !(!opened && relay && announce) ->
			if
			:: end -> break
			:: else -> asleep = 1
			fi }
			atomic { woken -> woken = 0; asleep = 0 }
		fi
	od;
	assert(got == written);
out:	skip
}

/* Nobody sleeps on news. */
proctype watch()
{
end:	atomic { asleep && !woken && !writing_lock && (relay && announce && !opened || opened && delivered > got) ->
		assert(false) }
}

proctype clock()
{
end:	do
	:: atomic { clk < 2 -> clk++ }
	od
}

init {
	atomic {
		run creator(); run switcher(); run writer(); run stopper(); run reader(); run watch(); run clock();
		if :: NF > 0 -> run flusher() :: else fi;
		if :: TIMER > 0 -> run timer() :: else fi
	}
}
