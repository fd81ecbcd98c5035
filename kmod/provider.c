// SPDX-License-Identifier: GPL-2.0-only
/* The registry: providers in order of their ids, each with its classes, and the life of those that are made. */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hook.h"
#include "objects.h"
#include "provider.h"
#include "schema.h"
#include "user.h"
#include "write.h"

DEFINE_MUTEX(etw_control);	/* see provider.h */

LIST_HEAD(etw_providers);
static u64 next_provider_id = 1, next_class_id = 1;
static DEFINE_HASHTABLE(made_classes, 10);	/* by provider and schema */

int etw_provider_register(struct etw_provider *provider)
{
	u32 i;
	int err;

	for (i = 0; i < provider->nr_classes; i++) {
		err = etw_schema_scan(provider->classes[i]);
		if (err)
			return err;
		provider->classes[i]->provider = provider;
		RCU_INIT_POINTER(provider->classes[i]->targets, &etw_no_targets);
	}
	etw_hook_find(provider->classes, provider->nr_classes);
	mutex_lock(&etw_control);
	provider->id = next_provider_id++;
	for (i = 0; i < provider->nr_classes; i++)
		provider->classes[i]->id = next_class_id++;
	list_add_tail(&provider->node, &etw_providers);
	mutex_unlock(&etw_control);
	return 0;
}

void etw_provider_unregister(struct etw_provider *provider)
{
	mutex_lock(&etw_control);
	list_del(&provider->node);
	mutex_unlock(&etw_control);
}

bool etw_provider_is(const struct etw_provider *p, const char *name, const uuid_t *guid)
{
	if (name[0])
		return !strcmp(p->name, name) || (p->alias && !strcmp(p->alias, name));
	return uuid_equal(&p->guid, guid);
}

struct etw_provider *etw_provider_of_kernel(const char *name, const uuid_t *guid)
{
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &etw_providers, node)
		if (!p->user && etw_provider_is(p, name, guid) && etw_provider_live(p))
			return p;
	return NULL;
}

static bool listed(const struct etw_provider *p, const struct etw_user *user)
{
	return etw_provider_live(p) && (!user || p->user == user);
}

struct etw_provider *etw_provider_after(u64 id, const struct etw_user *user)
{
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &etw_providers, node)
		if (p->id > id && listed(p, user))
			return p;
	return NULL;
}

/* Ids rise with time within a provider only: its events follow each other in the list. */
struct etw_class *etw_class_after(u64 id, const struct etw_user *user)
{
	struct etw_class *next = NULL;
	struct etw_provider *p;
	u32 i;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &etw_providers, node) {
		if (!listed(p, user))
			continue;
		for (i = 0; i < p->nr_classes; i++) {
			struct etw_class *class = p->classes[i];

			if (class->id > id && (!class->made || class->registrations) && (!next || class->id < next->id))
				next = class;
		}
	}
	return next;
}

/* ---- made providers ---- */

struct made_provider {
	struct etw_provider p;
	struct etw_class **classes;
	u32 room;
	char name[ETW_NAME_SIZE];
};

static struct made_provider *made(struct etw_provider *p)
{
	return container_of(p, struct made_provider, p);
}

struct etw_provider *etw_provider_make(const char *name, const uuid_t *guid, struct etw_user *user)
{
	struct made_provider *m;
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &etw_providers, node)
		if (p->made && p->user == user && uuid_equal(&p->guid, guid) && !strcmp(p->name, name))
			return p;
	m = etw_object_new(ETW_OBJECT_PROVIDER, kzalloc(sizeof(*m), ETW_GFP_USER));
	if (!m)
		return ERR_PTR(-ENOMEM);
	strscpy(m->name, name, sizeof(m->name));
	m->p.made = true;
	m->p.name = m->name;
	m->p.guid = *guid;
	m->p.user = etw_user_get(user);
	m->p.id = next_provider_id++;
	INIT_LIST_HEAD(&m->p.registrations);
	list_add_tail(&m->p.node, &etw_providers);
	return &m->p;
}

void etw_provider_let_go(struct etw_provider *p)
{
	lockdep_assert_held(&etw_control);
	if (p->nr_registrations || p->nr_classes)
		return;
	list_del(&p->node);
	etw_user_put(p->user);
	kfree(p->keywords);
	kfree(made(p)->classes);
	etw_object_free(ETW_OBJECT_PROVIDER, p);
}

static int make_room(struct made_provider *m)
{
	const u32 room = m->room ? 2 * m->room : 8;
	struct etw_class **more;

	if (m->p.nr_classes < m->room)
		return 0;
	more = krealloc(m->classes, room * sizeof(*more), ETW_GFP_USER);
	if (!more)
		return -ENOMEM;
	m->classes = more;
	m->room = room;
	m->p.classes = more;
	return 0;
}

struct etw_class *etw_provider_add(struct etw_provider *p, struct etw_class *class, bool charge)
{
	const u32 content = jhash(class->schema, class->schema->size, p->id);
	struct made_provider *m = made(p);
	struct etw_class *old;
	int err;

	lockdep_assert_held(&etw_control);
	hash_for_each_possible(made_classes, old, by_content, content) {
		if (old->provider == p && old->schema->size == class->schema->size &&
		    !memcmp(old->schema, class->schema, old->schema->size)) {
			etw_schema_unmake(class);
			return old;
		}
	}
	err = charge ? etw_user_may_add_class(p->user, class->memory) : 0;
	if (!err)
		err = make_room(m);
	if (err) {
		etw_schema_unmake(class);
		return ERR_PTR(err);
	}
	class->id = next_class_id++;
	class->charged = charge;
	RCU_INIT_POINTER(class->targets, &etw_no_targets);
	hash_add(made_classes, &class->by_content, content);
	class->place = p->nr_classes;
	m->classes[p->nr_classes++] = class;
	if (charge)
		etw_user_charge_class(p->user, 1, class->memory);
	return class;
}

void etw_class_get(struct etw_class *class)
{
	lockdep_assert_held(&etw_control);
	class->refs += class->made;
}

void etw_class_put(struct etw_class *class)
{
	struct etw_provider *p = class->provider;
	const s64 memory = class->memory;
	struct etw_class *last;

	lockdep_assert_held(&etw_control);
	if (!class->made || --class->refs)
		return;
	hash_del(&class->by_content);
	last = p->classes[--p->nr_classes];
	made(p)->classes[class->place] = last;
	last->place = class->place;
	if (class->charged)
		etw_user_charge_class(p->user, -1, -memory);
	etw_schema_unmake(class);
	etw_provider_let_go(p);
}
