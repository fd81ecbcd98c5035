// SPDX-License-Identifier: GPL-2.0-only
/* Providers of other kernel modules (etw_module.h): registered as a program's are, written as the module's own are. */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "etw_module.h"
#include "event.h"
#include "filter.h"
#include "objects.h"
#include "payload.h"
#include "provider.h"
#include "registration.h"
#include "schema.h"

/* As the schema that user space would give; to be freed with kvfree(). */
static struct etw_schema *schema_of(const struct etw_module_event *event)
{
	struct etw_provider nobody = { .name = "" };
	struct etw_class class = {
		.provider = &nobody,
		.name = event->name,
		.description = event->description,
		.nr_fields = event->nr_fields,
		.keyword = event->keyword,
		.event_id = event->id,
		.task = event->task,
		.version = event->version,
		.level = event->level,
		.opcode = event->opcode,
	};
	struct etw_schema *schema;
	struct etw_field *fields;
	u32 i;

	if (event->nr_fields > ETW_MAX_FIELDS)
		return ERR_PTR(-E2BIG);
	fields = kcalloc(event->nr_fields ?: 1, sizeof(*fields), ETW_GFP);
	if (!fields)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < event->nr_fields; i++) {
		const struct etw_module_field *f = &event->fields[i];

		fields[i] = (struct etw_field){
			.name = f->name,
			.type = f->type,
			.array = f->array,
			.format = f->format,
			.count = f->count,
		};
	}
	class.fields = fields;
	schema = kvzalloc(etw_schema_size(&class), ETW_GFP);
	if (schema) {
		etw_schema_fill(schema, &class, 0);
		schema->provider = 0;
	}
	kfree(fields);
	return schema ?: ERR_PTR(-ENOMEM);
}

static int add_event(struct etw_registration *reg, struct etw_module_event *event)
{
	struct etw_schema *schema = schema_of(event);
	int index;

	if (IS_ERR(schema))
		return PTR_ERR(schema);
	index = etw_registration_add(reg, schema, schema->size, &event->wanted);
	kvfree(schema);
	if (index < 0)
		return index;
	smp_store_release(&event->class, etw_registration_class(reg, index));	/* pairs with etw_module_write() */
	return 0;
}

static struct etw_keyword_name *copy_keywords(const struct etw_module_provider *provider)
{
	const u32 nr = provider->nr_keywords;
	struct etw_keyword_name *keywords;
	char (*names)[32];
	u32 i;

	if (!nr)
		return NULL;
	if (nr > ETW_MAX_KEYWORDS)
		return ERR_PTR(-E2BIG);
	keywords = kzalloc(nr * (sizeof(*keywords) + sizeof(*names)), ETW_GFP);
	if (!keywords)
		return ERR_PTR(-ENOMEM);
	names = (void *)(keywords + nr);
	for (i = 0; i < nr; i++) {
		keywords[i] = (struct etw_keyword_name){ provider->keywords[i].mask, names[i] };
		if (!keywords[i].mask || strscpy(names[i], provider->keywords[i].name, sizeof(names[i])) < 0 ||
		    !etw_name_valid(names[i], sizeof(names[i]))) {
			kfree(keywords);
			return ERR_PTR(-EINVAL);
		}
	}
	return keywords;
}

/* The events know their class no more; and whoever still does has written when this returns. */
static void forget_events(struct etw_module_provider *provider)
{
	u32 i;

	for (i = 0; i < provider->nr_events; i++)
		WRITE_ONCE(provider->events[i]->class, NULL);
	synchronize_rcu();
}

int etw_module_register(struct etw_module_provider *provider)
{
	struct etw_provider_names names = {
		.name = provider->name,
		.guid = (const uuid_t *)provider->guid,
		.nr_keywords = provider->nr_keywords,
	};
	struct etw_registration *reg;
	int err = 0;
	u32 i;

	if (strnlen(provider->name, ETW_NAME_SIZE) == ETW_NAME_SIZE || !etw_name_valid(provider->name, strlen(provider->name) + 1))
		return -EINVAL;
	names.keywords = copy_keywords(provider);
	if (IS_ERR(names.keywords))
		return PTR_ERR(names.keywords);
	reg = etw_registration_make(&names, true, true);
	if (IS_ERR(reg)) {
		kfree(names.keywords);
		return PTR_ERR(reg);
	}
	for (i = 0; i < provider->nr_events && !err; i++)
		err = add_event(reg, provider->events[i]);
	if (err) {
		forget_events(provider);
		etw_registration_end(reg);
		return err;
	}
	provider->registration = reg;
	return 0;
}
EXPORT_SYMBOL_GPL(etw_module_register);

void etw_module_unregister(struct etw_module_provider *provider)
{
	if (!provider->registration)
		return;
	forget_events(provider);
	etw_registration_end(provider->registration);
	provider->registration = NULL;
}
EXPORT_SYMBOL_GPL(etw_module_unregister);

/* Too much for etw_end_short(). */
static noinline notrace void write_large(const struct etw_targets *targets, const void *payload, u32 len)
{
	const struct etw_vec vec = { payload, len };
	struct etw_event e;

	if (etw_begin(&e, targets, NULL))
		etw_end_vec(&e, &vec, 1);
}

int notrace etw_module_write(const struct etw_module_event *event, const void *payload, u32 len)
{
	const struct etw_targets *targets;
	const struct etw_class *class;
	struct etw_event e;
	int err = 0;

	preempt_disable_notrace();	/* forget_events() waits for it */
	class = rcu_dereference_raw(event->class);	/* pairs with add_event(): all that is read of it is read through it */
	if (!class) {
		err = -ENODEV;
		goto out;
	}
	/* records have no length of their own: what the fields do not say could not be read */
	if (len != class->fixed_size) {
		err = etw_payload_check(class->fields, class->nr_fields, payload, len, NULL);
		if (err)
			goto out;
	}
	targets = etw_targets_of(class);
	if (etw_rejected(targets, NULL, 1))
		goto out;
	if (unlikely(len > ETW_SHORT_PAYLOAD))
		write_large(targets, payload, len);
	else if (etw_begin(&e, targets, NULL))
		etw_end_short(&e, payload, len);
out:
	preempt_enable_notrace();
	return err;
}
EXPORT_SYMBOL_GPL(etw_module_write);
