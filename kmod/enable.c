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
#include "self.h"

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

static bool passes(const struct etw_enabling *e, const struct etw_class *class)
{
	u32 i;

	if (class->unavailable || !etw_rule_passes(&e->rule, class->level, class->keyword))
		return false;
	/* filters choose among what happens; without the rundown what they leave would have no names */
	if (class->rundown)
		return true;
	if (e->event_mode != ETW_EVENTS_ALL &&
	    etw_name_listed(class->name, e->events, e->nr_events, ETW_NAME_SIZE) != (e->event_mode == ETW_EVENTS_IN))
		return false;
	for (i = 0; i < e->nr_ids && e->ids[i] != class->event_id; i++)
		;
	if (e->id_mode != ETW_EVENTS_ALL && (i < e->nr_ids) != (e->id_mode == ETW_EVENTS_IN))
		return false;
	return !e->conditions || etw_conditions_possible(e->conditions, class);
}

static struct etw_enabling *enabling_of(struct etw_session *s, const struct etw_provider *p)
{
	struct etw_enabling *e;

	list_for_each_entry(e, &s->enables, node)
		if (e->provider == p)
			return e;
	return NULL;
}

/* The enabling that @session has for this provider, known (@p) or not. */
static struct etw_enabling *find_enabling(struct etw_session *s, const struct etw_provider *p, const char *name, const uuid_t *guid)
{
	struct etw_enabling *e;

	if (p)
		return enabling_of(s, p);
	list_for_each_entry(e, &s->enables, node)
		if (!e->provider && (name[0] ? !strcmp(e->name, name) : !e->name[0] && uuid_equal(&e->guid, guid)))
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
		t->special |= t->filtered;
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

/* The targets of @class as the enablings of all sessions now say, or ERR_PTR(-ENOMEM). */
static struct etw_targets *make_targets(const struct etw_class *class, gfp_t gfp)
{
	struct etw_targets *targets;
	struct etw_session *s;
	size_t matchers = 0;
	u32 i, nr = 0;

	list_for_each_entry(s, &etw_root.sessions, node) {
		const struct etw_enabling *e = wants(s, class);

		nr += !!e;
		matchers += e ? matcher_size(e) : 0;
	}
	if (!nr || class->rundown)
		return &etw_no_targets;
	targets = etw_object_new(ETW_OBJECT_TARGETS, kvzalloc(struct_size(targets, t, nr + 1) + matchers, gfp));
	if (!targets)
		return ERR_PTR(-ENOMEM);
	targets->class = class;
	/* from the first special one on a record goes the long way, so these come last */
	add_targets(targets, class, false, NULL);
	add_targets(targets, class, true, &targets->t[nr + 1]);
	targets->all_filtered = true;
	for (i = 0; i < targets->nr; i++)
		targets->all_filtered &= !!targets->t[i].filter;
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

/*
 * Make the targets of all of @p's classes anew. On failure nothing has changed. @staged: NULL, or the session whose staged classes
 * are published when nothing can fail any more and before a record of them can be written.
 */
static int rebuild(struct etw_provider *p, gfp_t gfp, struct etw_session *staged, struct retired *retired)
{
	struct etw_targets **fresh = kcalloc(p->nr_classes, sizeof(*fresh), gfp);
	u32 i, made, attached = 0;
	int err = 0;

	if (!fresh)
		return -ENOMEM;
	for (made = 0; made < p->nr_classes; made++) {
		fresh[made] = make_targets(p->classes[made], gfp);
		if (IS_ERR(fresh[made])) {
			err = PTR_ERR(fresh[made]);
			goto free;
		}
	}
	for (; attached < p->nr_classes; attached++) {
		struct etw_class *class = p->classes[attached];

		if (!fresh[attached]->nr || targets_of(class)->nr)
			continue;
		err = etw_hook_attach(class);
		if (err)
			goto detach;
	}
	if (staged)
		etw_session_class_publish(staged);
	for (i = 0; i < p->nr_classes; i++) {
		struct etw_class *class = p->classes[i];
		struct etw_targets *old = targets_of(class);

		rcu_assign_pointer(class->targets, fresh[i]);
		if (!old->nr)
			continue;
		if (!fresh[i]->nr) {
			etw_hook_detach(class);
			retired->detached = true;
		}
		old->next = retired->targets;
		retired->targets = old;
	}
	kfree(fresh);
	return 0;

detach:
	while (attached--) {
		struct etw_class *class = p->classes[attached];

		if (fresh[attached]->nr && !targets_of(class)->nr) {
			etw_hook_detach(class);
			retired->detached = true;
		}
	}
free:
	while (made--)
		free_targets(fresh[made]);
	kfree(fresh);
	return err;
}

static void mark_classes(struct etw_session *s, const struct etw_enabling *e)
{
	u32 i;

	for (i = 0; i < s->nr_classes; i++) {
		struct etw_session_class *entry = etw_session_class(s, i);

		if (entry->class->provider == e->provider)
			WRITE_ONCE(entry->enabled, e->enabled && passes(e, entry->class));
	}
}

static int stage_classes(struct etw_session *s, const struct etw_enabling *e)
{
	u32 i;

	for (i = 0; i < e->provider->nr_classes; i++) {
		int number = passes(e, e->provider->classes[i]) ? etw_session_class_stage(s, e->provider->classes[i]) : 0;

		if (number < 0)
			return number;
	}
	return 0;
}

/* Put @want in the place of @old (NULL: at the end), or back. */
static void put_in_place(struct etw_session *s, struct etw_enabling *old, struct etw_enabling *want)
{
	if (!old) {
		list_add_tail(&want->node, &s->enables);
		return;
	}
	want->id = old->id;
	list_replace(&old->node, &want->node);
}

static int enable_known(struct etw_session *s, struct etw_enabling *old, struct etw_enabling *want, struct retired *retired)
{
	int err = stage_classes(s, want);

	if (err)
		goto drop;
	put_in_place(s, old, want);
	err = rebuild(want->provider, ETW_GFP, s, retired);
	if (err)
		goto restore;
	mark_classes(s, want);
	if (!old || !old->enabled)
		want->provider->nr_sessions++;
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

static void rundown(struct etw_session *s, struct etw_provider *p)
{
	if (!p || !p->rundown || !etw_session_direct_begin(s))
		return;
	p->rundown(s);
	etw_session_direct_end(s);
}

int etw_session_enable(struct etw_session *s, struct etw_enabling *want)
{
	struct etw_enabling *old = NULL;
	struct retired retired = {};
	struct etw_provider *p;
	int err = 0;

	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	want->enabled = true;
	p = etw_provider_find(want->name, &want->guid);
	want->provider = p;
	old = find_enabling(s, p, want->name, &want->guid);
	if (s->stopping) {
		err = -ESHUTDOWN;
	} else if (!old && s->next_enable_id > ETW_MAX_ENABLES) {
		err = -ENOSPC;
	} else if (p) {
		strscpy(want->name, p->name, sizeof(want->name));
		want->guid = p->guid;
		if (!old)
			want->id = s->next_enable_id;
		err = enable_known(s, old, want, &retired);
	} else {
		if (!old)
			want->id = s->next_enable_id;
		put_in_place(s, old, want);
	}
	if (!err && !old)
		s->next_enable_id++;
	if (!err)
		etw_self_provider_enable(s, want, true);
	retired.enabling = err ? want : old;
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);

	retired_free(&retired);
	if (err)
		return err;
	/* live events first: what comes into being during the rundown is then either in it or an event, or both */
	rundown(s, p);
	return p ? 1 : 0;
}

int etw_session_disable(struct etw_session *s, const char *name, const uuid_t *guid)
{
	struct retired retired = {};
	struct etw_enabling *e;
	struct etw_provider *p;
	int err = 0;

	mutex_lock(&etw_control);
	mutex_lock(&s->lock);
	p = etw_provider_find(name, guid);
	e = find_enabling(s, p, name, guid);
	if (s->stopping) {
		err = -ESHUTDOWN;
	} else if (e && e->enabled) {
		e->enabled = false;
		if (p) {
			rebuild(p, GFP_KERNEL | __GFP_NOFAIL, NULL, &retired);
			mark_classes(s, e);
			p->nr_sessions--;
		}
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
		if (!e->provider || !e->enabled)
			continue;
		rebuild(e->provider, GFP_KERNEL | __GFP_NOFAIL, NULL, &retired);
		e->provider->nr_sessions--;
	}
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);
	retired_free(&retired);
}

void etw_session_rundown_all(struct etw_session *s)
{
	struct etw_enabling *e;

	lockdep_assert_held(&s->direct);
	list_for_each_entry(e, &s->enables, node)	/* stable: the session is stopping */
		if (e->provider && e->enabled && e->provider->rundown)
			e->provider->rundown(s);
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
			e = find_enabling(s, etw_provider_find(name, guid), name, guid);
		else
			e = etw_enabling_after(s, id);
		if (s->stopping)
			err = -ESHUTDOWN;
		else if (!e || (!all && !e->enabled))
			err = -ENOENT;
		else if (e->enabled)
			p = e->provider;
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
