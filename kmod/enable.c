// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enabling is where the thinking happens: which sessions want which class is decided here, once, and published as one
 * array of targets per class. Everything that can fail comes before the first change.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "enable.h"
#include "hook.h"
#include "objects.h"
#include "provider.h"
#include "registration.h"
#include "self.h"
#include "user.h"

/* Of the latest CAPTURE_STATE; under etw_control. */
static u64 last_asked;

/* What a change replaced, to be freed after a grace period. */
struct retired {
	struct etw_targets *targets;
	struct etw_enabling *enabling;
	bool detached;
};

void etw_enabling_free(struct etw_enabling *e)
{
	if (!e)
		return;
	kvfree(e->events);
	etw_object_free(ETW_OBJECT_FILTER, e->filter);
	etw_object_free(ETW_OBJECT_FILTER, e->ids);
	etw_object_free(ETW_OBJECT_FILTER, e->processes);
	etw_object_free(ETW_OBJECT_FILTER, e->conditions);
	etw_object_free(ETW_OBJECT_ENABLING, e);
}

/* No lock held: waits until nobody uses what was replaced, and so until no event comes that it let through. */
static void retired_free(struct retired *retired)
{
	struct etw_targets *t;

	if (retired->targets || retired->detached || retired->enabling)
		etw_hook_synchronize();
	while ((t = retired->targets)) {
		retired->targets = t->next;
		etw_object_free(ETW_OBJECT_TARGETS, t);
	}
	etw_enabling_free(retired->enabling);
}

bool etw_enabling_of(const struct etw_enabling *e, const struct etw_provider *p)
{
	if ((e->flags & ETW_ENABLE_UID) && !(p->user && uid_eq(p->user->uid, e->uid)))
		return false;
	return etw_provider_is(p, e->name, &e->guid);
}

/* Does a list of this mode let pass what is @listed in it? */
static bool list_passes(u32 mode, bool listed)
{
	if (mode == ETW_EVENTS_ALL)
		return true;
	return mode == ETW_EVENTS_IN ? listed : !listed;
}

static bool passes(const struct etw_enabling *e, const struct etw_class *class)
{
	u32 i;

	if (class->made && !class->registrations)
		return false;
	if (class->unavailable || !etw_rule_passes(&e->rule, class->level, class->keyword))
		return false;
	/* filters choose among what happens; without the rundown what they leave would have no names */
	if (class->rundown)
		return true;
	if (!list_passes(e->event_mode, etw_name_listed(class->name, e->events, e->nr_events, ETW_NAME_SIZE)))
		return false;
	for (i = 0; i < e->nr_ids && e->ids[i] != class->event_id; i++)
		;
	if (!list_passes(e->id_mode, i < e->nr_ids))
		return false;
	return !e->conditions || etw_conditions_possible(e->conditions, class);
}

/* The enabling of @s that decides about @p: one that is in force, if there is one. */
static struct etw_enabling *enabling_of(struct etw_session *s, const struct etw_provider *p)
{
	struct etw_enabling *e, *found = NULL;

	list_for_each_entry(e, &s->enables, node)
		if (etw_enabling_of(e, p) && (!found || (e->enabled && !found->enabled)))
			found = e;
	return found;
}

bool etw_enabling_counts(struct etw_session *s, const struct etw_enabling *e, const struct etw_provider *p)
{
	const struct etw_enabling *of;

	lockdep_assert_held(&s->lock);
	if (!etw_provider_is(p, e->name, &e->guid))
		return false;
	of = enabling_of(s, p);
	if (of)
		return of == e;
	/* of a user that is meant no more: whose name or GUID it was */
	list_for_each_entry(of, &s->enables, node)
		if (etw_provider_is(p, of->name, &of->guid))
			return of == e;
	return false;
}

/*
 * The enabling that ENABLE replaces and DISABLE means: the same name or GUID, or the other one of @p, a provider of the
 * kernel's. A user's proves nothing: anybody can register a name together with somebody else's GUID.
 */
static struct etw_enabling *find_enabling(struct etw_session *s, const struct etw_provider *p, const char *name, const uuid_t *guid)
{
	struct etw_enabling *e;

	list_for_each_entry(e, &s->enables, node)
		if (name[0] ? !strcmp(e->name, name) : !e->name[0] && uuid_equal(&e->guid, guid))
			return e;
	if (p)
		list_for_each_entry(e, &s->enables, node)
			if (etw_provider_is(p, e->name, &e->guid))
				return e;
	return NULL;
}

struct etw_enabling *etw_enabling_after(struct etw_session *s, u64 id)
{
	struct etw_enabling *e, *next = NULL;

	lockdep_assert_held(&s->lock);
	list_for_each_entry(e, &s->enables, node)
		if (e->id > id && (!next || e->id < next->id))
			next = e;
	return next;
}

static const struct etw_enabling *wants(struct etw_session *s, const struct etw_class *class)
{
	const struct etw_enabling *e;

	if (READ_ONCE(s->stopping))
		return NULL;
	e = enabling_of(s, class->provider);
	return e && e->enabled && passes(e, class) ? e : NULL;
}

/* Bytes of what @e asks of a record that only the record can tell; 0 for nothing. */
static size_t matcher_size(const struct etw_enabling *e)
{
	const struct etw_matcher *m = NULL;

	if (!e->nr_processes && !e->conditions)
		return 0;
	return ALIGN(struct_size(m, match, e->conditions ? e->conditions->nr : 0), sizeof(u64));
}

/* May a target of @e go the short way, but for its clock? */
static bool usual(struct etw_session *s, const struct etw_enabling *e, const struct etw_class *class)
{
	return !e->filter && !matcher_size(e) && !etw_session_scrubs(s, class);
}

/*
 * What is read once for a record of @class, for all targets that have it: where some can go the short way the most usual source
 * among theirs, so that nobody pays for another session's unusual clock; else the most usual of all.
 */
static u8 source_of(const struct etw_class *class)
{
	u8 best = ETW_NR_SOURCES, any = ETW_NR_SOURCES;
	struct etw_session *s;

	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = wants(s, class);

		if (!e)
			continue;
		any = min(any, s->source);
		if (usual(s, e, class))
			best = min(best, s->source);
	}
	return best < ETW_NR_SOURCES ? best : any;
}

/* Append the targets of @class that are special, or those that are not. @room: for what special ones ask of a record. */
static void add_targets(struct etw_targets *targets, const struct etw_class *class, bool special, void *room)
{
	struct etw_session *s;

	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = wants(s, class);
		struct etw_target *t = &targets->t[targets->nr];

		if (!e)
			continue;
		etw_session_fill_target(s, etw_session_class_number(s, class), t);
		t->filter = e->filter;
		t->filtered = e->filter || matcher_size(e);
		t->special = !usual(s, e, class) || t->source != targets->source;
		if (t->special != special) {
			memset(t, 0, sizeof(*t));
			continue;
		}
		targets->nr++;
		if (!special)
			continue;
		t->relays = &etw_no_relays;
		if (matcher_size(e)) {
			struct etw_matcher *m = room;

			m->processes = e->processes;
			m->nr_processes = e->nr_processes;
			etw_matcher_init(m, e->conditions, class, t->scrub);
			t->matcher = m;
			room += matcher_size(e);
		}
	}
}

/* What etw_rejected() asks, made in @room (zeroes) if it is not that of the only target. */
static const u8 *filter_hash(const struct etw_targets *targets, u8 *room)
{
	u32 i;

	for (i = 0; i < targets->nr; i++)
		if (!targets->t[i].filter)
			return NULL;
	if (targets->nr == 1)
		return targets->t[0].filter->hash;
	for (i = 0; i < targets->nr; i++)
		etw_filter_add_hash(room, targets->t[i].filter);
	return room;
}

/* The targets of @class as the enablings of all sessions now say, or ERR_PTR(-ENOMEM). */
static struct etw_targets *make_targets(const struct etw_class *class, gfp_t gfp)
{
	struct etw_targets *targets;
	struct etw_session *s;
	u32 nr = 0, nr_filters = 0;
	size_t matchers = 0, hash;

	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = wants(s, class);

		if (!e)
			continue;
		nr++;
		nr_filters += !!e->filter;
		matchers += matcher_size(e);
	}
	if (!nr || class->rundown)
		return &etw_no_targets;
	hash = nr_filters == nr && nr > 1 ? ETW_FILTER_HASH : 0;
	targets = etw_object_new(ETW_OBJECT_TARGETS, kvzalloc(struct_size(targets, t, nr + 1) + matchers + hash, gfp));
	if (!targets)
		return ERR_PTR(-ENOMEM);
	targets->class = class;
	targets->source = source_of(class);
	targets->usual_nesting = targets->source == ETW_SOURCE_MONOTONIC ? ETW_MAX_NESTING : 0;
	/* from the first special one on a record goes the long way, so these come last */
	add_targets(targets, class, false, NULL);
	add_targets(targets, class, true, &targets->t[nr + 1]);
	targets->filter_hash = filter_hash(targets, (u8 *)&targets->t[nr + 1] + matchers);
	targets->unusual = targets->filter_hash || targets->source != ETW_SOURCE_MONOTONIC;
	return targets;
}

static void free_targets(struct etw_targets *targets)
{
	if (targets != &etw_no_targets)
		etw_object_free(ETW_OBJECT_TARGETS, targets);
}

static struct etw_targets *targets_of(const struct etw_class *class)
{
	return rcu_dereference_protected(class->targets, lockdep_is_held(&etw_control));
}

/* Make the new targets of all of @p's classes, in p->fresh. On failure nothing has changed. */
static int prepare(struct etw_provider *p, gfp_t gfp)
{
	u32 i;

	p->nr_attached = 0;
	p->fresh = kvcalloc(p->nr_classes ?: 1, sizeof(*p->fresh), gfp);
	if (!p->fresh)
		return -ENOMEM;
	for (i = 0; i < p->nr_classes; i++) {
		struct etw_targets *fresh = make_targets(p->classes[i], gfp);

		if (IS_ERR(fresh))
			return PTR_ERR(fresh);
		p->fresh[i] = fresh;
	}
	return 0;
}

/* Attach the hooks that @p's new targets need. */
static int attach(struct etw_provider *p)
{
	int err;

	for (; p->nr_attached < p->nr_classes; p->nr_attached++) {
		struct etw_class *class = p->classes[p->nr_attached];

		if (!p->fresh[p->nr_attached]->nr || targets_of(class)->nr)
			continue;
		err = etw_hook_attach(class);
		if (err)
			return err;
	}
	return 0;
}

static void publish(struct etw_provider *p, struct retired *retired)
{
	u32 i;

	for (i = 0; i < p->nr_classes; i++) {
		struct etw_class *class = p->classes[i];
		struct etw_targets *old = targets_of(class);

		rcu_assign_pointer(class->targets, p->fresh[i]);
		if (!old->nr)
			continue;
		if (!p->fresh[i]->nr) {
			etw_hook_detach(class);
			retired->detached = true;
		}
		old->next = retired->targets;
		retired->targets = old;
	}
	kvfree(p->fresh);
	p->fresh = NULL;
	etw_registrations_mark(p);
}

static void give_up(struct etw_provider *p, struct retired *retired)
{
	u32 i;

	if (!p->fresh)
		return;
	for (i = 0; i < p->nr_attached; i++) {
		struct etw_class *class = p->classes[i];

		if (p->fresh[i]->nr && !targets_of(class)->nr) {
			etw_hook_detach(class);
			retired->detached = true;
		}
	}
	for (i = 0; i < p->nr_classes; i++)
		if (p->fresh[i])
			free_targets(p->fresh[i]);
	kvfree(p->fresh);
	p->fresh = NULL;
}

/* Whose targets may change when @e comes into force or goes, in the place of @old (NULL: of nothing). */
static bool touched(const struct etw_provider *p, const struct etw_enabling *e, const struct etw_enabling *old)
{
	return etw_enabling_of(e, p) || (old && etw_enabling_of(old, p));
}

#define for_each_touched(p, e, old)				\
	list_for_each_entry(p, &etw_providers, node)		\
		if (touched(p, e, old))

#define for_each_provider_of(p, e) for_each_touched(p, e, NULL)

/*
 * Make the targets of all classes of all providers of @e and @old anew. On failure nothing has changed. @staged: NULL, or the
 * session whose staged classes are published when nothing can fail any more and before a record of them can be written.
 */
static int rebuild(const struct etw_enabling *e, const struct etw_enabling *old, gfp_t gfp, struct etw_session *staged,
		   struct retired *retired)
{
	struct etw_provider *p;
	int err = 0;

	for_each_touched(p, e, old) {
		err = prepare(p, gfp);
		if (!err)
			err = attach(p);
		if (err)
			break;
	}
	if (!err && staged)
		etw_session_class_publish(staged);
	for_each_touched(p, e, old) {
		if (err)
			give_up(p, retired);
		else
			publish(p, retired);
	}
	return err;
}

bool etw_enabling_registered(const struct etw_enabling *e)
{
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	for_each_provider_of(p, e)
		if (etw_provider_live(p))
			return true;
	return false;
}

static void mark_classes(struct etw_session *s)
{
	u32 i;

	for (i = 0; i < s->nr_classes; i++) {
		struct etw_session_class *entry = etw_session_class(s, i);

		WRITE_ONCE(entry->enabled, !!wants(s, entry->class));
	}
}

static int stage_classes(struct etw_session *s, const struct etw_enabling *e)
{
	struct etw_provider *p;
	u32 i;

	for_each_provider_of(p, e) {
		for (i = 0; i < p->nr_classes; i++) {
			int number = passes(e, p->classes[i]) ? etw_session_class_stage(s, p->classes[i]) : 0;

			if (number < 0)
				return number;
		}
	}
	return 0;
}

/* Tell the programs. @capture: they should write what is there. */
static void notify(const struct etw_enabling *e, const struct etw_enabling *old, bool capture)
{
	struct etw_provider *p;

	for_each_touched(p, e, old)
		etw_registrations_notify(p, capture);
}

/* Put @want in the place of @old (NULL: at the end), or back. */
static void put_in_place(struct etw_session *s, struct etw_enabling *old, struct etw_enabling *want)
{
	if (!old) {
		list_add_tail(&want->node, &s->enables);
		return;
	}
	want->id = old->id;
	want->asked = old->asked;
	list_replace(&old->node, &want->node);
}

static int enable(struct etw_session *s, struct etw_enabling *old, struct etw_enabling *want, struct retired *retired)
{
	int err = stage_classes(s, want);

	if (err)
		goto drop;
	put_in_place(s, old, want);
	err = rebuild(want, old, ETW_GFP, s, retired);
	if (err)
		goto restore;
	mark_classes(s);
	notify(want, old, false);
	return 0;

restore:
	if (old)
		list_replace(&want->node, &old->node);
	else
		list_del(&want->node);
drop:
	etw_session_class_drop(s);
	return err;
}

/* Those that can do it are the module's own and stay; programs are told of CAPTURE_STATE instead. */
static void rundown(struct etw_session *s, struct etw_provider *p)
{
	if (!p || p->made || !p->rundown || !etw_session_direct_begin(s))
		return;
	p->rundown(s);
	etw_session_direct_end(s);
}

int etw_session_enable(struct etw_session *s, struct etw_enabling *want)
{
	struct etw_enabling *old = NULL;
	struct retired retired = {};
	struct etw_provider *p;
	int err = 0, registered;

	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	want->enabled = true;
	p = etw_provider_of_kernel(want->name, &want->guid);
	old = find_enabling(s, p, want->name, &want->guid);
	if (p && !p->made)
		strscpy(want->name, p->name, sizeof(want->name));
	if (p)
		want->guid = p->guid;
	if (s->stopping) {
		err = -ESHUTDOWN;
	} else if (!old && s->next_enable_id > ETW_MAX_ENABLES) {
		err = -ENOSPC;
	} else {
		if (!old)
			want->id = s->next_enable_id;
		err = enable(s, old, want, &retired);
	}
	if (!err && !old)
		s->next_enable_id++;
	if (!err)
		etw_self_provider_enable(s, want, true);
	registered = etw_enabling_registered(want);
	retired.enabling = err ? want : old;
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);

	retired_free(&retired);
	if (err)
		return err;
	/* live events first: what comes into being during the rundown is then either in it or an event, or both */
	rundown(s, p && !p->made ? p : NULL);
	return registered;
}

int etw_session_disable(struct etw_session *s, const char *name, const uuid_t *guid)
{
	struct retired retired = {};
	struct etw_enabling *e;
	int err = 0;

	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	e = find_enabling(s, etw_provider_of_kernel(name, guid), name, guid);
	if (s->stopping) {
		err = -ESHUTDOWN;
	} else if (e && e->enabled) {
		e->enabled = false;
		rebuild(e, NULL, GFP_KERNEL | __GFP_NOFAIL, NULL, &retired);
		mark_classes(s);
		notify(e, NULL, false);
		etw_self_provider_enable(s, e, false);
	}
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);
	retired_free(&retired);
	return err;
}

void etw_session_disable_all(struct etw_session *s)
{
	/* always wait: another session's enable may have taken us out already, and not have waited yet */
	struct retired retired = { .detached = true };
	struct etw_enabling *e;

	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	list_for_each_entry(e, &s->enables, node) {
		if (!e->enabled)
			continue;
		rebuild(e, NULL, GFP_KERNEL | __GFP_NOFAIL, NULL, &retired);
		notify(e, NULL, false);
	}
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);
	retired_free(&retired);
}

/* ---- made classes come and go ---- */

/* The class is in the tables of the sessions that want it, or in none. */
static int stage_everywhere(struct etw_class *class)
{
	struct etw_session *s;
	int number = 0;

	list_for_each_entry(s, &etw_root.sessions, node) {
		if (!wants(s, class))
			continue;
		mutex_lock(&s->lock);
		number = etw_session_class_stage(s, class);
		mutex_unlock(&s->lock);
		if (number < 0)
			break;
	}
	return min(number, 0);
}

/* @keep: or take them back. */
static void settle_everywhere(const struct etw_class *class, bool keep)
{
	struct etw_session *s;

	list_for_each_entry(s, &etw_root.sessions, node) {
		if (!wants(s, class))
			continue;
		mutex_lock(&s->lock);
		if (keep)
			etw_session_class_publish(s);
		else
			etw_session_class_drop(s);
		mutex_unlock(&s->lock);
	}
}

int etw_class_comes(struct etw_class *class)
{
	struct etw_targets *targets = NULL;
	int err;

	lockdep_assert_held(&etw_control);
	err = stage_everywhere(class);
	if (!err) {
		targets = make_targets(class, ETW_GFP);
		if (IS_ERR(targets))
			err = PTR_ERR(targets);
	}
	settle_everywhere(class, !err);
	if (err)
		return err;
	rcu_assign_pointer(class->targets, targets);
	return 0;
}

void etw_class_goes(struct etw_class *class)
{
	struct etw_targets *old = targets_of(class);

	rcu_assign_pointer(class->targets, &etw_no_targets);
	if (old->nr)
		etw_object_free(ETW_OBJECT_TARGETS, old);
}

/* What @s now wants of @p, or NULL. */
static const struct etw_enabling *in_force(struct etw_session *s, const struct etw_provider *p)
{
	const struct etw_enabling *e = READ_ONCE(s->stopping) ? NULL : enabling_of(s, p);

	return e && e->enabled ? e : NULL;
}

void etw_enabled_query(const struct etw_provider *p, struct etw_enabled_query *q)
{
	struct etw_session *s;

	lockdep_assert_held(&etw_control);
	q->nr_sessions = 0;
	q->level = 0;
	q->any = 0;
	q->all = ~0ULL;
	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = in_force(s, p);

		if (!e)
			continue;
		q->nr_sessions++;
		q->level = max_t(u32, q->level, e->rule.level);
		q->any |= e->rule.any;
		q->all &= e->rule.all;
	}
	if (!q->nr_sessions)
		q->all = 0;
}

int etw_capture_query(const struct etw_provider *p, struct etw_capture_query *q)
{
	const struct etw_enabling *found = NULL;
	struct etw_session *s;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = in_force(s, p);

		if (e && e->asked > q->id && (!found || e->asked < found->asked))
			found = e;
	}
	if (!found)
		return -ENOENT;
	q->id = found->asked;
	q->level = found->rule.level;
	q->any = found->rule.any;
	q->all = found->rule.all;
	return 0;
}

struct etw_session *etw_capture_session(const struct etw_provider *p, u64 id)
{
	struct etw_session *s;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = in_force(s, p);

		if (e && id && e->asked == id)
			return s;
	}
	return NULL;
}

static struct etw_provider *own_provider(const struct etw_enabling *e)
{
	struct etw_provider *p = etw_provider_of_kernel(e->name, &e->guid);

	return p && !p->made && etw_enabling_of(e, p) ? p : NULL;
}

void etw_session_rundown_all(struct etw_session *s)
{
	struct etw_enabling *e;

	lockdep_assert_held(&s->direct);
	list_for_each_entry(e, &s->enables, node) {	/* stable: the session is stopping */
		struct etw_provider *p;

		if (!e->enabled)
			continue;
		mutex_lock(&etw_control);
		p = own_provider(e);
		mutex_unlock(&etw_control);
		if (p && p->rundown)
			p->rundown(s);
	}
}

int etw_session_capture_state(struct etw_session *s, const char *name, const uuid_t *guid)
{
	const bool all = !name[0] && uuid_is_null(guid);
	struct etw_enabling *e;
	u64 id = 0;

	for (;;) {
		struct etw_provider *p = NULL;
		int err = 0;

		mutex_lock(&etw_control);
		mutex_lock(&s->lock);
		if (!all)
			e = find_enabling(s, etw_provider_of_kernel(name, guid), name, guid);
		else
			e = etw_enabling_after(s, id);
		if (s->stopping) {
			err = -ESHUTDOWN;
		} else if (!e || (!all && !e->enabled)) {
			err = -ENOENT;
		} else if (e->enabled) {
			p = own_provider(e);
			e->asked = ++last_asked;
			notify(e, NULL, true);
		}
		id = e ? e->id : 0;
		mutex_unlock(&s->lock);
		mutex_unlock(&etw_control);
		if (err)
			return all && err == -ENOENT ? 0 : err;
		rundown(s, p);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (!all)
			return 0;
	}
}
