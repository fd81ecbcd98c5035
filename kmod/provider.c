// SPDX-License-Identifier: GPL-2.0-only
/* The registry: providers in order of their ids, each with its classes. */
#include <linux/list.h>
#include <linux/string.h>

#include "hook.h"
#include "provider.h"
#include "schema.h"
#include "write.h"

DEFINE_MUTEX(etw_control);	/* see provider.h */

static LIST_HEAD(providers);
static u64 next_provider_id = 1, next_class_id = 1;

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
	list_add_tail(&provider->node, &providers);
	mutex_unlock(&etw_control);
	return 0;
}

void etw_provider_unregister(struct etw_provider *provider)
{
	mutex_lock(&etw_control);
	list_del(&provider->node);
	mutex_unlock(&etw_control);
}

struct etw_provider *etw_provider_find(const char *name, const uuid_t *guid)
{
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &providers, node)
		if (name[0] ? !strcmp(p->name, name) || !strcmp(p->alias, name) : uuid_equal(&p->guid, guid))
			return p;
	return NULL;
}

struct etw_provider *etw_provider_after(u64 id)
{
	struct etw_provider *p;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &providers, node)
		if (p->id > id)
			return p;
	return NULL;
}

struct etw_class *etw_class_after(u64 id)
{
	struct etw_provider *p;
	u32 i;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(p, &providers, node)
		for (i = 0; i < p->nr_classes; i++)
			if (p->classes[i]->id > id)
				return p->classes[i];
	return NULL;
}
