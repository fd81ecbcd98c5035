/* SPDX-License-Identifier: GPL-2.0-only */
/* A session: its relays, its class table, its life from creation to stop. Knows no user memory and no file. */
#ifndef ETW_SESSION_H
#define ETW_SESSION_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "class.h"
#include "relay.h"
#include "write.h"

/* A class numbered by the session. Never moves or goes while the session lives. */
struct etw_session_class {
	struct etw_class *class;
	struct etw_counts __percpu *counts;
	u64 __percpu *rate;		/* of its provider's user, NULL: the kernel's */
	struct hlist_node by_class;
	u32 number;
	bool enabled;			/* direct writes pass */
};

/* One user in one session: until when each CPU has spent what the user may record there (see etw_write_user()). */
struct etw_session_user {
	struct list_head node;
	kuid_t uid;
	u64 __percpu *rate;
};

#define ETW_CLASS_CHUNK 64

struct etw_session {
	struct list_head node;		/* in etw_root.sessions, under etw_control */
	struct kref ref;
	u64 id;
	char name[ETW_NAME_SIZE];
	u8 uuid[16];
	u32 flags;			/* ETW_SESSION_* */
	u32 clock;			/* ETW_CLOCK_* */
	u8 source;			/* ETW_SOURCE_*: what the clock is read from */
	u64 clock_add;			/* what the session adds to it */
	u64 clock_freq;			/* ticks in a second */
	s64 clock_offset;		/* session clock to epoch, in nanoseconds, at start */
	ktime_t slept;			/* the machine, until then */
	u32 subbuf_size;
	u32 nr_subbufs;
	struct pid *owner;
	kuid_t owner_uid;

	struct mutex lock;		/* rank 2: what follows, up to the next comment */
	u32 state;
	bool stopping;			/* STOP has begun: nothing can be enabled any more; etw_control too */
	u32 stop_reason;
	bool stop_asked;		/* by somebody, who then knows that it is over */
	bool persists;			/* has a reference that lasts until STOP */
	struct pid *stopper;
	struct list_head enables;
	u64 next_enable_id;
	struct etw_session_class *chunks[ETW_MAX_CLASSES / ETW_CLASS_CHUNK + 1];
	u32 nr_classes;			/* read without the lock, released after the entry */
	u32 nr_staged;			/* entries prepared by an ENABLE that may still fail */
	DECLARE_HASHTABLE(by_class, 10);	/* the entries, staged ones included; under etw_control */
	struct list_head users;		/* whose classes are in the table */

	u64 start_time;
	u64 stop_time;
	u32 flush_ms;

	/* relays appear with their CPU (hotplug lock, or creation) and stay until the session is freed */
	struct etw_relay **relays;	/* by CPU number */
	struct etw_relay *__percpu *cpu_relay;
	struct hlist_node hotplug;
	struct task_struct *maker;	/* makes the relays of the CPUs that are there; others come with their CPU */
	bool live;			/* creation is over: it can be found */

	/* serialises direct writes (rundown, the provider etw) with the final flush */
	struct mutex direct;
	bool closing;			/* no further direct writes but those of STOP */
	ktime_t rundown_patience;	/* how long the running rundown may still wait for room */

	/* the reader role: one session file, under reader_lock */
	spinlock_t reader_lock;
	u64 reader;			/* id of that file, 0 none */
	struct pid *reader_pid;
	u32 nr_reader_files;

	struct mutex flush_lock;	/* FLUSH and its scratch */
	u64 *flush_positions;		/* by CPU number */

	wait_queue_head_t wait;
	int waiting;
	struct hrtimer flush_timer;	/* queues flush_work */
	struct work_struct flush_work;
	struct delayed_work clock_work;	/* of a session whose clock can fail: looks whether it has */
	u64 last_snapshot;		/* of the clocks; direct lock */
};

/* Findable in a memory dump by this one symbol. */
struct etw_root {
	char magic[8];			/* "ETWROOT" */
	u32 version;
	u32 relay_size;
	struct list_head sessions;	/* under etw_control */
	u32 nr_sessions;
	u64 next_id;
};

extern struct etw_root etw_root;

int etw_session_init(void);
void etw_session_exit(void);

/*
 * A running session with one reference, the caller's; args checked by the caller. For its errors see struct
 * etw_session_create.
 */
struct etw_session *etw_session_create(const struct etw_session_create *args);
/* With a reference, or NULL. */
struct etw_session *etw_session_find(const char *name);
/* The first with an id above @id, with a reference, or NULL. */
struct etw_session *etw_session_after(u64 id);
void etw_session_put(struct etw_session *session);

/* ESHUTDOWN already stopped. Process context, no lock held. */
int etw_session_stop(struct etw_session *session, u32 reason);
/* See struct etw_flush. EINTR, ETIMEDOUT. */
int etw_session_flush(struct etw_session *session, unsigned int timeout_ms, u64 *time, u32 *cpu);
void etw_session_set_flush_ms(struct etw_session *session, u32 flush_ms);

/* The relay of @cpu, below nr_cpu_ids, or NULL. Once there it stays as long as the session. */
static inline struct etw_relay *etw_session_relay(const struct etw_session *session, u32 cpu)
{
	return smp_load_acquire(&session->relays[cpu]);	/* pairs with cpu_prepare() */
}

u64 etw_session_now(const struct etw_session *session);
/* STOP is over, everything is delivered. */
static inline bool etw_session_stopped(const struct etw_session *session)
{
	return smp_load_acquire(&session->state) == ETW_SESSION_STOPPED;	/* pairs with etw_session_stop() */
}

static inline u32 etw_session_nr_classes(const struct etw_session *session)
{
	return smp_load_acquire(&session->nr_classes);	/* pairs with etw_session_class_publish() */
}

/* @ticks of the session's clock as nanoseconds: how payloads tell times. */
static inline u64 etw_session_ns(const struct etw_session *session, u64 ticks)
{
	return etw_clock_ns(ticks, session->clock_freq);
}

/* Are kernel addresses in the records of @class to be hidden? */
static inline bool etw_session_scrubs(const struct etw_session *session, const struct etw_class *class)
{
	return class->nr_scrub && !(session->flags & ETW_SESSION_ADDRESSES);
}

/* The reader role, for @who. EBUSY another has it. Counts the relay files that hold it. */
int etw_session_reader_get(struct etw_session *session, u64 who);
void etw_session_reader_put(struct etw_session *session);
bool etw_session_has_reader(struct etw_session *session);

/*
 * The class table. Writers hold etw_control and session->lock: stage the classes of an ENABLE, then publish or drop them all.
 * stage() gives the number @class has or will have; ENOSPC, ENOMEM.
 */
int etw_session_class_stage(struct etw_session *session, struct etw_class *class);
void etw_session_class_publish(struct etw_session *session);
void etw_session_class_drop(struct etw_session *session);
/* The number of @class, staged ones included, or -ENOENT; etw_control held. */
int etw_session_class_number(struct etw_session *session, const struct etw_class *class);
/* Without the lock: NULL beyond the table. */
struct etw_session_class *etw_session_class(struct etw_session *session, u32 number);

/* The target for a direct write, if @class is enabled in @session. */
bool etw_session_direct_target(struct etw_session *session, const struct etw_class *class, struct etw_target *target);
void etw_session_fill_target(struct etw_session *session, u32 number, struct etw_target *target);
/* session->direct taken if the session still takes direct writes; then etw_session_direct_end(). */
bool etw_session_direct_begin(struct etw_session *session);
void etw_session_direct_end(struct etw_session *session);

/* Sums of @counts over all CPUs, or of one CPU. */
void etw_counts_add(struct etw_counts *sum, const struct etw_counts __percpu *counts);
void etw_counts_add_cpu(struct etw_counts *sum, const struct etw_counts __percpu *counts, u32 cpu);

/* Has a relay come that nobody has opened? */
bool etw_session_has_news(struct etw_session *session);
/* Is any relay ready? Announces a sleeper first. */
bool etw_session_ready(struct etw_session *session);

#endif
