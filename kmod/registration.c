// SPDX-License-Identifier: GPL-2.0-only
/* Registrations come and go, and with them what sessions have of their events. No grace period is ever waited for here. */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "enable.h"
#include "guid.h"
#include "objects.h"
#include "provider.h"
#include "registration.h"
#include "schema.h"
#include "user.h"
#include "write.h"

static u64 next_id = 1;		/* under etw_control */

/* Is there a provider of the kernel's that sessions could mean by the same name? One that nobody has any more is not. */
static bool taken(const char *name, const uuid_t *guid)
{
	const struct etw_provider *p;

	list_for_each_entry(p, &etw_providers, node)
		if (!p->user && etw_provider_live(p) &&
		    (uuid_equal(&p->guid, guid) || !strcasecmp(p->name, name) || (p->alias && !strcasecmp(p->alias, name))))
			return true;
	return false;
}

/* Names that a user could be taken in by: those of the kernel's providers, in any case, and of those to come. */
static bool reserved(const char *name, const uuid_t *guid)
{
	if (!strncasecmp(name, "Linux-", 6))
		return true;
	return taken(name, guid);
}

/* @reg's provider; etw_control held. */
static int join(struct etw_registration *reg, const struct etw_provider_names *names, const uuid_t *guid, bool kernel)
{
	struct etw_user *user = NULL;
	struct etw_provider *p;
	int err = 0;

	if (kernel) {
		if (taken(names->name, guid))
			return -EEXIST;
	} else {
		if (reserved(names->name, guid))
			return -EPERM;
		user = etw_user_of(current_uid());
		if (IS_ERR(user))
			return PTR_ERR(user);
		if (!reg->trusted)
			err = etw_user_may_register(user);
	}
	p = err ? ERR_PTR(err) : etw_provider_make(names->name, guid, user);
	if (!IS_ERR(p)) {
		if (user && !reg->trusted)
			etw_user_charge_registration(user, 1);
		kfree(p->keywords);
		p->keywords = names->keywords;
		p->nr_keywords = names->nr_keywords;
		reg->provider = p;
		reg->id = next_id++;
		p->nr_registrations++;
		list_add_tail(&reg->node, &p->registrations);
	}
	etw_user_put(user);
	return PTR_ERR_OR_ZERO(p);
}

struct etw_registration *etw_registration_make(const struct etw_provider_names *names, bool trusted, bool kernel)
{
	struct etw_registration *reg = etw_object_new(ETW_OBJECT_REGISTRATION, kzalloc(sizeof(*reg), ETW_GFP_USER));
	uuid_t guid;
	int err;

	if (!reg)
		return ERR_PTR(-ENOMEM);
	reg->page = alloc_page(ETW_GFP_USER | __GFP_ZERO);
	if (!reg->page) {
		err = -ENOMEM;
		goto free;
	}
	reg->enabled = page_address(reg->page);
	reg->trusted = trusted;
	reg->pid = get_pid(task_tgid(current));
	init_waitqueue_head(&reg->wait);
	if (names->guid)
		guid = *names->guid;
	else
		etw_guid_of_name(names->name, &guid);
	mutex_lock(&etw_control);
	err = join(reg, names, &guid, kernel);
	mutex_unlock(&etw_control);
	if (!err)
		return reg;

	put_pid(reg->pid);
	__free_page(reg->page);
free:
	etw_object_free(ETW_OBJECT_REGISTRATION, reg);
	return ERR_PTR(err);
}

/* The last to have a class that is in sessions' targets takes it out of them: nobody is left who could be writing. */
static void leave_class(struct etw_class *class)
{
	if (!--class->registrations)
		etw_class_goes(class);
	etw_class_put(class);
}

void etw_registration_end(struct etw_registration *reg)
{
	struct etw_provider *p = reg->provider;
	u32 i;

	mutex_lock(&etw_control);
	list_del(&reg->node);
	for (i = 0; i < reg->nr_events; i++) {
		if (reg->keys)
			static_branch_disable(reg->keys[i]);
		leave_class(etw_registration_class(reg, i));
	}
	if (p->user && !reg->trusted)
		etw_user_charge_registration(p->user, -1);
	p->nr_registrations--;
	etw_provider_let_go(p);
	mutex_unlock(&etw_control);

	for (i = 0; i < ARRAY_SIZE(reg->chunks); i++)
		kfree(reg->chunks[i]);
	kvfree(reg->keys);
	put_pid(reg->pid);
	__free_page(reg->page);		/* mappings keep theirs */
	etw_object_free(ETW_OBJECT_REGISTRATION, reg);
}

static void mark(struct etw_registration *reg, u32 index)
{
	const bool wanted = rcu_access_pointer(etw_registration_class(reg, index)->targets)->nr;

	WRITE_ONCE(reg->enabled[index], !wanted ? 0 : reg->asks ? ETW_ENABLED_ASK : 1);
	if (!reg->keys)
		return;
	if (wanted)
		static_branch_enable(reg->keys[index]);
	else
		static_branch_disable(reg->keys[index]);
}

static int find_event(const struct etw_registration *reg, const struct etw_class *class)
{
	u32 i;

	for (i = 0; i < reg->nr_events; i++)
		if (etw_registration_class(reg, i) == class)
			return i;
	return -ENOENT;
}

/* @class, which is in the provider, becomes the next event; etw_control held. */
static int append(struct etw_registration *reg, struct etw_class *class, struct static_key_false *key)
{
	const u32 index = reg->nr_events;
	struct etw_class ***chunk;
	int err = 0;

	BUILD_BUG_ON(ETW_MAX_EVENTS & (ETW_MAX_EVENTS - 1));	/* etw_registration_class() */
	if (index == ETW_MAX_EVENTS)
		return -ENOSPC;
	if (key && !reg->keys)
		reg->keys = kvcalloc(ETW_MAX_EVENTS, sizeof(*reg->keys), ETW_GFP);
	if (key && !reg->keys)
		return -ENOMEM;
	chunk = &reg->chunks[index / ETW_EVENT_CHUNK];
	if (!*chunk)
		*chunk = kcalloc(ETW_EVENT_CHUNK, sizeof(**chunk), ETW_GFP_USER);
	if (!*chunk)
		return -ENOMEM;
	if (!class->registrations++)
		err = etw_class_comes(class);
	if (err) {
		class->registrations--;
		return err == -ENOSPC ? -EDQUOT : err;
	}
	(*chunk)[index % ETW_EVENT_CHUNK] = class;
	etw_class_get(class);
	if (key)
		reg->keys[index] = key;
	smp_store_release(&reg->nr_events, index + 1);	/* pairs with etw_registration_has() */
	mark(reg, index);
	return index;
}

int etw_registration_add(struct etw_registration *reg, const void *schema, u32 size, struct static_key_false *key)
{
	struct etw_provider *p = reg->provider;
	struct etw_class *class = etw_schema_make(schema, size, p);
	int index;

	if (IS_ERR(class))
		return PTR_ERR(class);
	mutex_lock(&etw_control);
	class = etw_provider_add(p, class, p->user && !reg->trusted);
	if (IS_ERR(class)) {
		index = PTR_ERR(class);
		goto unlock;
	}
	etw_class_get(class);
	index = class->registrations ? find_event(reg, class) : -ENOENT;
	if (index == -ENOENT)
		index = append(reg, class, key);
	else if (key)
		index = -EEXIST;	/* a key of its own cannot follow the other one's byte */
	etw_class_put(class);
unlock:
	mutex_unlock(&etw_control);
	return index;
}

static void mark_all(struct etw_registration *reg)
{
	u32 i;

	for (i = 0; i < reg->nr_events; i++)
		mark(reg, i);
}

void etw_registrations_mark(struct etw_provider *p)
{
	struct etw_registration *reg;

	lockdep_assert_held(&etw_control);
	if (!p->made)
		return;
	list_for_each_entry(reg, &p->registrations, node)
		mark_all(reg);
}

void etw_registration_ask(struct etw_registration *reg, bool closed)
{
	lockdep_assert_held(&etw_control);
	if (reg->asks == closed)
		return;
	reg->asks = closed;
	mark_all(reg);
}

void etw_registrations_notify(struct etw_provider *p, bool capture)
{
	struct etw_registration *reg;

	lockdep_assert_held(&etw_control);
	if (!p->made)
		return;
	list_for_each_entry(reg, &p->registrations, node) {
		WRITE_ONCE(reg->changes, reg->changes + 1);
		reg->captures += capture;
		wake_up_all(&reg->wait);
	}
}
