// SPDX-License-Identifier: GPL-2.0-only
/* Creation, stop and flush of sessions, their relays by CPU, and their class table. */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/uuid.h>

#include "compat.h"
#include "enable.h"
#include "objects.h"
#include "provider.h"
#include "self.h"
#include "session.h"
#include "user.h"

struct etw_root etw_root = {
	.magic = "ETWROOT",
	.version = ETW_ABI_VERSION,
	.relay_size = sizeof(struct etw_relay),
	.sessions = LIST_HEAD_INIT(etw_root.sessions),
	.next_id = 1,
};

static struct workqueue_struct *flush_queue;
static enum cpuhp_state hotplug_state;

u64 etw_session_now(const struct etw_session *s)
{
	return etw_clock_read(s->source) + s->clock_add;
}

/* The session lives, and the module with it. */
static void hold(struct etw_session *s)
{
	kref_get(&s->ref);
	__module_get(THIS_MODULE);
}

static void let_go(struct etw_session *s)
{
	etw_session_put(s);
	module_put(THIS_MODULE);
}

/* ---- relays come with their CPU ---- */

/* What was lost on a CPU while there was no memory for its relay: a relay's losses are all there were on its CPU. */
static void take_losses(struct etw_session *s, struct etw_relay *r)
{
	struct etw_session_class *entry;
	struct etw_counts sum = {};
	u32 i;

	for (i = 0; (entry = etw_session_class(s, i)); i++)
		etw_counts_add_cpu(&sum, entry->counts, r->cpu);
	r->lost = sum.lost[ETW_LOST_CPU];
	if (!r->lost)
		return;
	r->losses[ETW_LOST_CPU] = (struct etw_loss){ .count = r->lost, .first = s->start_time, .last = etw_session_now(s) };
}

static int cpu_prepare(unsigned int cpu, struct hlist_node *node)
{
	struct etw_session *s = hlist_entry(node, struct etw_session, hotplug);
	struct etw_relay_config config = {
		.subbuf_size = s->subbuf_size,
		.nr_subbufs = s->nr_subbufs,
		.overwrite = s->flags & ETW_SESSION_OVERWRITE,
		.clock_offset = s->clock_add,
		.start = s->start_time,
		.nr_classes = &s->nr_classes,
		.uuid = s->uuid,
		.wait = &s->wait,
		.waiting = &s->waiting,
	};
	/* not whether creation is over: that may change while we are here */
	const bool comes = READ_ONCE(s->maker) != current;
	struct etw_relay *r;

	if (s->relays[cpu] || READ_ONCE(s->stopping))
		return 0;
	r = etw_relay_create(cpu, &config);
	if (IS_ERR(r))	/* a tracer must not keep a CPU from coming: its records are then lost and counted */
		return comes ? 0 : PTR_ERR(r);
	if (comes) {
		r->complete = etw_session_now(s);	/* it has nothing older to say */
		r->announce = true;
		take_losses(s, r);	/* exact: the CPU does not run yet */
	}
	*per_cpu_ptr(s->cpu_relay, cpu) = r;
	smp_store_release(&s->relays[cpu], r);	/* pairs with etw_session_relay() */
	wake_up_all(&s->wait);
	return 0;
}

/* The CPU is gone, so anybody may act for it. While creation is unwound it is not, but then there are no writers. */
static int cpu_dead(unsigned int cpu, struct hlist_node *node)
{
	struct etw_session *s = hlist_entry(node, struct etw_session, hotplug);

	if (s->relays[cpu])
		etw_relay_flush(s->relays[cpu], etw_session_now(s));
	return 0;
}

/* ---- flush ---- */

struct flush_request {
	struct etw_session *session;
	struct etw_relay *relay;
	bool closed;
	bool nested;
	u64 position;			/* of the first packet that the flush did not close */
};

static void flush_local(void *arg)
{
	struct flush_request *f = arg;

	f->nested = this_cpu_read(etw_nesting);
	f->closed = etw_relay_flush(f->relay, etw_session_now(f->session));
	f->position = READ_ONCE(f->relay->reserve) & ~f->relay->mask;
}

/* CPU hotplug lock held. */
static void flush_cpu(struct etw_session *s, u32 cpu, struct flush_request *f)
{
	*f = (struct flush_request){ .session = s, .relay = s->relays[cpu] };
	if (cpu_online(cpu)) {
		smp_call_function_single(cpu, flush_local, f, true);
		return;
	}
	f->closed = etw_relay_flush(f->relay, etw_session_now(s));
	f->position = READ_ONCE(f->relay->reserve) & ~f->relay->mask;
}

/* Ask every CPU once. True if an answer says nothing of older records. */
static bool flush_round(struct etw_session *s)
{
	struct flush_request f;
	bool again = false;
	u32 cpu;

	cpus_read_lock();
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (!s->relays[cpu])
			continue;
		flush_cpu(s, cpu, &f);
		s->flush_positions[cpu] = f.position;
		again |= !f.closed && f.nested;
	}
	cpus_read_unlock();
	return again;
}

/*
 * Close every open packet. A relay with nothing to close says nothing if its answer interrupted a writer, which can
 * still reserve with an older stamp: the CPUs are asked again after a grace period, which outlasts that writer.
 */
static void flush_all(struct etw_session *s)
{
	if (!flush_round(s))
		return;
	synchronize_rcu();
	flush_round(s);
}

static bool all_delivered(struct etw_session *s, u32 *late)
{
	u32 cpu;

	WRITE_ONCE(s->waiting, 1);
	smp_mb();	/* pairs with etw_relay_deliver() */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		if (s->relays[cpu] && !etw_relay_delivered_to(s->relays[cpu], s->flush_positions[cpu])) {
			*late = cpu;
			return false;
		}
	}
	return true;
}

int etw_session_flush(struct etw_session *s, unsigned int timeout_ms, u64 *time, u32 *late)
{
	long left;
	u32 cpu;

	if (etw_session_direct_begin(s)) {
		etw_self_losses(s);
		etw_self_clock(s);
		etw_session_direct_end(s);
	}
	if (mutex_lock_interruptible(&s->flush_lock))
		return -EINTR;
	*time = READ_ONCE(s->state) == ETW_SESSION_STOPPED ? s->stop_time : etw_session_now(s);
	flush_all(s);
	left = wait_event_interruptible_timeout(s->wait, all_delivered(s, late), msecs_to_jiffies(timeout_ms) + 1);
	for (cpu = 0; left > 0 && cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = s->relays[cpu];

		if (!r)
			continue;
		mutex_lock(&r->lock);
		r->complete = max(r->complete, *time);
		mutex_unlock(&r->lock);
	}
	mutex_unlock(&s->flush_lock);
	return left > 0 ? 0 : left ? -EINTR : -ETIMEDOUT;
}

/*
 * R7. Only what a waiting reader lacks: packets with records, of relays where nothing else is ready. A flight
 * recorder's packets stay open, so that the timer does not cut its history into small pieces.
 */
static void flush_for_reader(struct etw_session *s)
{
	struct flush_request f;
	u32 cpu;

	if ((s->flags & ETW_SESSION_OVERWRITE) || !etw_session_has_reader(s))
		return;
	cpus_read_lock();
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = s->relays[cpu];

		if (r && etw_relay_offset(r, READ_ONCE(r->reserve)) && !etw_relay_ready(r))
			flush_cpu(s, cpu, &f);
	}
	cpus_read_unlock();
}

static void flush_regularly(struct work_struct *work)
{
	struct etw_session *s = container_of(work, struct etw_session, flush_work);

	if (mutex_trylock(&s->direct)) {
		if (!s->closing && etw_session_now(s) - s->last_snapshot >= s->clock_freq) {
			etw_self_losses(s);
			etw_self_clock(s);
		}
		mutex_unlock(&s->direct);
	}
	flush_for_reader(s);
}

static enum hrtimer_restart flush_tick(struct hrtimer *timer)
{
	struct etw_session *s = container_of(timer, struct etw_session, flush_timer);
	u32 ms = READ_ONCE(s->flush_ms);

	if (ms == ETW_FLUSH_MS_NEVER)
		return HRTIMER_NORESTART;
	queue_work(flush_queue, &s->flush_work);
	hrtimer_forward_now(timer, ms_to_ktime(ms));
	return HRTIMER_RESTART;
}

void etw_session_set_flush_ms(struct etw_session *s, u32 flush_ms)
{
	hrtimer_cancel(&s->flush_timer);
	WRITE_ONCE(s->flush_ms, flush_ms);
	if (flush_ms != ETW_FLUSH_MS_NEVER && !(s->flags & ETW_SESSION_OVERWRITE))
		hrtimer_start(&s->flush_timer, ms_to_ktime(flush_ms), HRTIMER_MODE_REL);
}

/* ---- a clock that can fail ---- */

#define CLOCK_CHECK_MS 500

/*
 * Does the kernel rely on the counter no more, or may it have begun anew while the machine slept? What was recorded since then has
 * stamps that mean nothing: so nothing more is.
 */
static bool clock_failed(const struct etw_session *s)
{
	if (!etw_cycles_freq())
		return true;
	return !etw_cycles_survive_sleep() && ktime_mono_to_any(0, TK_OFFS_BOOT) != s->slept;
}

/* Held, because STOP does not wait for this work when it is this work that stops; the last steps are the queue's to wait for. */
static void check_clock(struct work_struct *work)
{
	struct etw_session *s = container_of(to_delayed_work(work), struct etw_session, clock_work);

	if (!clock_failed(s)) {
		queue_delayed_work(flush_queue, &s->clock_work, msecs_to_jiffies(CLOCK_CHECK_MS));
		return;
	}
	hold(s);
	etw_session_stop(s, ETW_STOP_CLOCK);	/* ESHUTDOWN: somebody else does, and waits for us */
	let_go(s);
}

/* ---- the class table ---- */

struct etw_session_class *etw_session_class(struct etw_session *s, u32 number)
{
	const u32 nr = etw_session_nr_classes(s);

	if (number >= nr)
		return NULL;
	number = array_index_nospec(number, nr);	/* it may be user space's */
	return &s->chunks[number / ETW_CLASS_CHUNK][number % ETW_CLASS_CHUNK];
}

int etw_session_class_number(struct etw_session *s, const struct etw_class *class)
{
	const struct etw_session_class *entry;

	lockdep_assert_held(&etw_control);
	hash_for_each_possible(s->by_class, entry, by_class, (unsigned long)class)
		if (entry->class == class)
			return entry->number;
	return -ENOENT;
}

/* Where the rate of @user's records is kept, or NULL: no memory. */
static u64 __percpu *rate_of(struct etw_session *s, const struct etw_user *user)
{
	struct etw_session_user *u;

	list_for_each_entry(u, &s->users, node)
		if (uid_eq(u->uid, user->uid))
			return u->rate;
	u = etw_object_new(ETW_OBJECT_RATE, kzalloc(sizeof(*u), ETW_GFP));
	if (!u)
		return NULL;
	u->uid = user->uid;
	u->rate = alloc_percpu_gfp(u64, ETW_GFP);
	if (!u->rate) {
		etw_object_free(ETW_OBJECT_RATE, u);
		return NULL;
	}
	list_add(&u->node, &s->users);
	return u->rate;
}

int etw_session_class_stage(struct etw_session *s, struct etw_class *class)
{
	struct etw_session_class **chunk, *entry;
	int number = etw_session_class_number(s, class);
	u64 __percpu *rate = NULL;

	lockdep_assert_held(&s->lock);
	if (number >= 0)
		return number;
	if (s->nr_staged == ETW_MAX_CLASSES)
		return -ENOSPC;
	chunk = &s->chunks[s->nr_staged / ETW_CLASS_CHUNK];
	if (!*chunk)
		*chunk = kcalloc(ETW_CLASS_CHUNK, sizeof(**chunk), ETW_GFP);
	if (!*chunk)
		return -ENOMEM;
	if (class->provider->user) {
		rate = rate_of(s, class->provider->user);
		if (!rate)
			return -ENOMEM;
	}
	entry = &(*chunk)[s->nr_staged % ETW_CLASS_CHUNK];
	entry->counts = alloc_percpu_gfp(struct etw_counts, ETW_GFP);
	if (!entry->counts)
		return -ENOMEM;
	etw_class_get(class);
	entry->class = class;
	entry->rate = rate;
	entry->number = s->nr_staged;
	hash_add(s->by_class, &entry->by_class, (unsigned long)class);
	etw_objects_made(ETW_OBJECT_CLASS, 1);
	return s->nr_staged++;
}

void etw_session_class_publish(struct etw_session *s)
{
	lockdep_assert_held(&s->lock);
	smp_store_release(&s->nr_classes, s->nr_staged);	/* pairs with etw_session_nr_classes() */
}

void etw_session_class_drop(struct etw_session *s)
{
	while (s->nr_staged > s->nr_classes) {
		struct etw_session_class *entry;

		s->nr_staged--;
		entry = &s->chunks[s->nr_staged / ETW_CLASS_CHUNK][s->nr_staged % ETW_CLASS_CHUNK];
		hash_del(&entry->by_class);
		free_percpu(entry->counts);
		etw_class_put(entry->class);
		etw_objects_gone(ETW_OBJECT_CLASS, 1);
		memset(entry, 0, sizeof(*entry));
	}
}

void etw_counts_add_cpu(struct etw_counts *sum, const struct etw_counts __percpu *counts, u32 cpu)
{
	const struct etw_counts *c = per_cpu_ptr(counts, cpu);
	int cause;

	sum->written += READ_ONCE(c->written);
	sum->filtered += READ_ONCE(c->filtered);
	for (cause = 0; cause < ETW_NR_LOST; cause++)
		sum->lost[cause] += READ_ONCE(c->lost[cause]);
}

void etw_counts_add(struct etw_counts *sum, const struct etw_counts __percpu *counts)
{
	int cpu;

	for_each_possible_cpu(cpu)
		etw_counts_add_cpu(sum, counts, cpu);
}

/* ---- direct writes ---- */

void etw_session_fill_target(struct etw_session *s, u32 number, struct etw_target *target)
{
	const struct etw_session_class *entry = &s->chunks[number / ETW_CLASS_CHUNK][number % ETW_CLASS_CHUNK];

	*target = (struct etw_target){
		.relays = s->cpu_relay,
		.true_relays = s->cpu_relay,
		.counts = entry->counts,
		.rate = entry->rate,
		.class_id = number,
		.source = s->source,
		.scrub = etw_session_scrubs(s, entry->class),
	};
}

bool etw_session_direct_target(struct etw_session *s, const struct etw_class *class, struct etw_target *target)
{
	struct etw_session_class *entry;
	u32 i;

	for (i = 0; (entry = etw_session_class(s, i)); i++) {
		if (entry->class != class)
			continue;
		if (!READ_ONCE(entry->enabled))
			return false;
		etw_session_fill_target(s, i, target);
		return true;
	}
	return false;
}

bool etw_session_direct_begin(struct etw_session *s)
{
	mutex_lock(&s->direct);
	if (!s->closing) {
		s->rundown_patience = ms_to_ktime(2000);
		return true;
	}
	mutex_unlock(&s->direct);
	return false;
}

void etw_session_direct_end(struct etw_session *s)
{
	mutex_unlock(&s->direct);
}

static bool little_room(struct etw_session *s)
{
	struct etw_relay *r = *raw_cpu_ptr(s->cpu_relay);

	return r != &etw_no_relay && READ_ONCE(r->reserve) - READ_ONCE(r->consumed) > (u64)(r->nr_slots - 1) << r->shift;
}

/* Waiting helps only if somebody else reads. */
static bool other_reads(struct etw_session *s)
{
	bool other;

	if (s->flags & ETW_SESSION_OVERWRITE)
		return false;
	spin_lock(&s->reader_lock);
	other = s->reader && s->reader_pid != task_tgid(current);
	spin_unlock(&s->reader_lock);
	return other;
}

bool etw_rundown_interrupted(struct etw_session *s)
{
	const ktime_t nap = ms_to_ktime(10);

	cond_resched();
	while (ktime_compare(s->rundown_patience, nap) > 0 && little_room(s) && other_reads(s)) {
		if (fatal_signal_pending(current))
			return true;
		schedule_timeout_killable(msecs_to_jiffies(10) ?: 1);
		s->rundown_patience = ktime_sub(s->rundown_patience, nap);
	}
	return fatal_signal_pending(current) || (READ_ONCE(s->stopping) && !s->closing);
}

/* ---- reader ---- */

int etw_session_reader_get(struct etw_session *s, u64 who)
{
	int err = 0;

	spin_lock(&s->reader_lock);
	if (s->reader && s->reader != who) {
		err = -EBUSY;
	} else if (!s->nr_reader_files++) {
		s->reader = who;
		s->reader_pid = get_pid(task_tgid(current));
	}
	spin_unlock(&s->reader_lock);
	return err;
}

void etw_session_reader_put(struct etw_session *s)
{
	struct pid *pid = NULL;

	spin_lock(&s->reader_lock);
	if (!--s->nr_reader_files) {
		s->reader = 0;
		pid = s->reader_pid;
		s->reader_pid = NULL;
	}
	spin_unlock(&s->reader_lock);
	put_pid(pid);
}

bool etw_session_has_reader(struct etw_session *s)
{
	return READ_ONCE(s->reader);
}

bool etw_session_has_news(struct etw_session *s)
{
	u32 cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = etw_session_relay(s, cpu);

		if (r && READ_ONCE(r->announce))
			return true;
	}
	return false;
}

bool etw_session_ready(struct etw_session *s)
{
	u32 cpu;

	WRITE_ONCE(s->waiting, 1);
	smp_mb();	/* pairs with etw_relay_deliver() */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = etw_session_relay(s, cpu);

		if (r && etw_relay_ready(r))
			return true;
	}
	return false;
}

/* ---- life ---- */

static void session_free(struct etw_session *s)
{
	u32 cpu, i;

	for (cpu = 0; s->relays && cpu < nr_cpu_ids; cpu++)
		etw_relay_destroy(s->relays[cpu]);
	while (!list_empty(&s->enables)) {
		struct etw_enabling *e = list_first_entry(&s->enables, struct etw_enabling, node);

		list_del(&e->node);
		etw_enabling_free(e);
	}
	etw_objects_gone(ETW_OBJECT_CLASS, s->nr_classes);
	mutex_lock(&etw_control);
	for (i = 0; i < s->nr_classes; i++) {
		struct etw_session_class *entry = &s->chunks[i / ETW_CLASS_CHUNK][i % ETW_CLASS_CHUNK];

		free_percpu(entry->counts);
		etw_class_put(entry->class);
	}
	mutex_unlock(&etw_control);
	while (!list_empty(&s->users)) {
		struct etw_session_user *u = list_first_entry(&s->users, struct etw_session_user, node);

		list_del(&u->node);
		free_percpu(u->rate);
		etw_object_free(ETW_OBJECT_RATE, u);
	}
	for (i = 0; i < ARRAY_SIZE(s->chunks); i++)
		kfree(s->chunks[i]);
	free_percpu(s->cpu_relay);
	kfree(s->relays);
	kfree(s->flush_positions);
	put_pid(s->owner);
	put_pid(s->stopper);
	etw_object_free(ETW_OBJECT_SESSION, s);
}

static struct etw_session *session_alloc(const struct etw_session_create *args)
{
	struct etw_session *s = etw_object_new(ETW_OBJECT_SESSION, kvzalloc(sizeof(*s), ETW_GFP));
	struct etw_relay **relay;
	int cpu;

	if (!s)
		return NULL;
	INIT_LIST_HEAD(&s->node);
	INIT_LIST_HEAD(&s->enables);
	INIT_LIST_HEAD(&s->users);
	hash_init(s->by_class);
	kref_init(&s->ref);
	strscpy(s->name, args->name, sizeof(s->name));
	generate_random_uuid(s->uuid);
	s->flags = args->flags;
	s->clock = args->clock ?: ETW_CLOCK_MONOTONIC;
	s->subbuf_size = args->subbuf_size ?: ETW_SUBBUF_SIZE_DEFAULT;
	s->nr_subbufs = args->nr_subbufs ?: ETW_NR_SUBBUFS_DEFAULT;
	s->flush_ms = args->flush_ms ?: ETW_FLUSH_MS_DEFAULT;
	s->owner = get_pid(task_tgid(current));
	s->owner_uid = current_uid();
	mutex_init(&s->lock);
	mutex_init(&s->direct);
	mutex_init(&s->flush_lock);
	spin_lock_init(&s->reader_lock);
	init_waitqueue_head(&s->wait);
	INIT_WORK(&s->flush_work, flush_regularly);
	INIT_DELAYED_WORK(&s->clock_work, check_clock);
	etw_hrtimer_setup(&s->flush_timer, flush_tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	s->next_enable_id = 1;
	s->relays = kcalloc(nr_cpu_ids, sizeof(*s->relays), ETW_GFP);
	s->flush_positions = kcalloc(nr_cpu_ids, sizeof(*s->flush_positions), ETW_GFP);
	s->cpu_relay = alloc_percpu_gfp(struct etw_relay *, ETW_GFP);
	if (!s->relays || !s->flush_positions || !s->cpu_relay) {
		session_free(s);
		return NULL;
	}
	for_each_possible_cpu(cpu) {
		relay = per_cpu_ptr(s->cpu_relay, cpu);
		*relay = &etw_no_relay;
	}
	return s;
}

/* EOPNOTSUPP: the kernel does not rely on it. */
static int take_clocks(struct etw_session *s)
{
	u64 monotonic;

	s->clock_freq = NSEC_PER_SEC;
	/* exact, and so the same for all sessions of a boot unless the time was stepped: their traces then merge */
	s->clock_offset = ktime_to_ns(ktime_mono_to_real(0));
	s->slept = ktime_mono_to_any(0, TK_OFFS_BOOT);
	switch (s->clock) {
	case ETW_CLOCK_REAL:
		s->clock_add = s->clock_offset;
		s->clock_offset = 0;
		break;
	case ETW_CLOCK_BOOT:
		s->source = ETW_SOURCE_BOOT;
		s->clock_offset -= ktime_to_ns(s->slept);
		break;
	case ETW_CLOCK_CYCLES:
		s->source = ETW_SOURCE_CYCLES;
		s->clock_freq = etw_cycles_freq();
		if (!s->clock_freq)
			return -EOPNOTSUPP;
		s->start_time = etw_cycles_read(&monotonic);
		s->clock_offset += monotonic - etw_session_ns(s, s->start_time);
		return 0;
	}
	s->start_time = etw_session_now(s);
	return 0;
}

/* Give the session its id and its name, which nobody else can then take. */
static int claim_name(struct etw_session *s)
{
	struct etw_session *other;
	int err = 0;

	mutex_lock(&etw_control);
	list_for_each_entry(other, &etw_root.sessions, node)
		if (!strcmp(other->name, s->name))
			err = -EEXIST;
	if (!err && etw_root.nr_sessions == ETW_MAX_SESSIONS)
		err = -ENOSPC;
	if (!err) {
		s->id = etw_root.next_id++;
		etw_root.nr_sessions++;
		list_add_tail(&s->node, &etw_root.sessions);
	}
	mutex_unlock(&etw_control);
	return err;
}

static void release_name(struct etw_session *s)
{
	mutex_lock(&etw_control);
	list_del(&s->node);
	etw_root.nr_sessions--;
	mutex_unlock(&etw_control);
}

struct etw_session *etw_session_create(const struct etw_session_create *args)
{
	struct etw_session *s = session_alloc(args);
	int err;

	if (!s)
		return ERR_PTR(-ENOMEM);
	err = claim_name(s);
	if (err)
		goto free;
	err = take_clocks(s);
	if (err)
		goto release;
	WRITE_ONCE(s->maker, current);
	err = cpuhp_state_add_instance(hotplug_state, &s->hotplug);	/* makes the relays */
	WRITE_ONCE(s->maker, NULL);
	if (err)
		goto release;
	if (s->flags & ETW_SESSION_PERSIST) {
		hold(s);
		s->persists = true;
	}
	s->state = ETW_SESSION_RUNNING;
	etw_session_set_flush_ms(s, s->flush_ms);	/* before anybody can find it, and stop it */
	if (s->source == ETW_SOURCE_CYCLES)
		queue_delayed_work(flush_queue, &s->clock_work, msecs_to_jiffies(CLOCK_CHECK_MS));
	etw_self_session_start(s);
	mutex_lock(&etw_control);
	s->live = true;
	mutex_unlock(&etw_control);
	return s;

release:
	release_name(s);
free:
	session_free(s);
	return ERR_PTR(err);
}

static void session_release(struct kref *ref)
{
	struct etw_session *s = container_of(ref, struct etw_session, ref);

	WARN_ON_ONCE(s->state != ETW_SESSION_STOPPED);
	cpuhp_state_remove_instance_nocalls(hotplug_state, &s->hotplug);
	release_name(s);
	session_free(s);
}

void etw_session_put(struct etw_session *s)
{
	kref_put(&s->ref, session_release);
}

struct etw_session *etw_session_find(const char *name)
{
	struct etw_session *s, *found = NULL;

	mutex_lock(&etw_control);
	list_for_each_entry(s, &etw_root.sessions, node)
		if (s->live && !strcmp(s->name, name) && kref_get_unless_zero(&s->ref)) {
			found = s;
			break;
		}
	mutex_unlock(&etw_control);
	return found;
}

struct etw_session *etw_session_after(u64 id)
{
	struct etw_session *s, *found = NULL;

	mutex_lock(&etw_control);
	list_for_each_entry(s, &etw_root.sessions, node)
		if (s->live && s->id > id && kref_get_unless_zero(&s->ref)) {
			found = s;
			break;
		}
	mutex_unlock(&etw_control);
	return found;
}

/* The stop time is no earlier than any stamp, so that the last packets can end with it. */
static u64 last_time(struct etw_session *s)
{
	u64 time = etw_session_now(s);
	u32 cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (s->relays[cpu])
			time = max(time, READ_ONCE(s->relays[cpu]->last_seen));
	return time;
}

/* s->lock held. True: the reference of one that persists is the caller's to put. Not before somebody knows that it is over. */
static bool persists_no_more(struct etw_session *s)
{
	if (!s->persists || !s->stop_asked || s->state != ETW_SESSION_STOPPED)
		return false;
	s->persists = false;
	return true;
}

int etw_session_stop(struct etw_session *s, u32 reason)
{
	bool stopped, last;
	u32 cpu;

	/* 1. nothing can be enabled any more; etw_control, because other sessions' enables look at it */
	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	stopped = s->stopping;
	s->stop_asked |= reason != ETW_STOP_CLOCK;
	last = persists_no_more(s);
	if (!stopped) {
		WRITE_ONCE(s->stopping, true);
		s->stop_reason = reason;
		if (reason != ETW_STOP_CLOCK)
			s->stopper = get_pid(task_tgid(current));
	}
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);
	if (stopped) {
		if (last)
			let_go(s);
		return last ? 0 : -ESHUTDOWN;
	}

	/* 2. no event comes; probes nobody needs are gone */
	etw_session_disable_all(s);
	hrtimer_cancel(&s->flush_timer);
	cancel_work_sync(&s->flush_work);
	if (reason != ETW_STOP_CLOCK)
		cancel_delayed_work_sync(&s->clock_work);

	/* 3. the last words: names of what is there now, losses, the clocks, the stop */
	mutex_lock(&s->direct);
	s->closing = true;
	s->rundown_patience = ms_to_ktime(2000);
	etw_session_rundown_all(s);
	etw_self_losses(s);
	etw_self_clock(s);
	etw_self_stopped(s, reason);
	mutex_unlock(&s->direct);

	/* 4. everything is delivered: no writer is left */
	mutex_lock(&s->flush_lock);
	flush_all(s);
	mutex_lock(&s->lock);
	s->stop_time = last_time(s);
	smp_store_release(&s->state, ETW_SESSION_STOPPED);	/* everything is delivered before it */
	last = persists_no_more(s);
	mutex_unlock(&s->lock);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = s->relays[cpu];

		if (!r)
			continue;
		mutex_lock(&r->lock);
		r->complete = s->stop_time;
		mutex_unlock(&r->lock);
		wake_up_all(&r->wait);
	}
	wake_up_all(&s->wait);
	mutex_unlock(&s->flush_lock);

	etw_self_session_stop(s, reason);
	if (last)
		let_go(s);
	return 0;
}

int etw_session_init(void)
{
	int err;

	flush_queue = alloc_workqueue("etw_flush", WQ_UNBOUND, 0);
	if (!flush_queue)
		return -ENOMEM;
	err = cpuhp_setup_state_multi(CPUHP_BP_PREPARE_DYN, "etw:prepare", cpu_prepare, cpu_dead);
	if (err < 0) {
		destroy_workqueue(flush_queue);
		return err;
	}
	hotplug_state = err;
	return 0;
}

void etw_session_exit(void)
{
	cpuhp_remove_multi_state(hotplug_state);
	destroy_workqueue(flush_queue);
}
