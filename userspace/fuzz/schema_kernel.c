// SPDX-License-Identifier: GPL-2.0-only
/* Gives a planned class to kmod/schema.c and kmod/payload.c, compiled for this machine. */
#include <linux/slab.h>
#include <linux/string.h>

#include "../../kmod/payload.h"
#include "../../kmod/schema.h"
#include "schema_kernel.h"

void *malloc(size_t size);

static struct etw_field fields[128];

static void fields_make(const struct schema_plan *plan)
{
	static const struct etw_value values[8] = {
		{ 0, "zero" }, { 1, "one" },  { 2, "two" }, { ~0ULL, "all" },
		{ 4, "four" }, { 5, "five" }, { 6, "six" }, { 7, "seven" },
	};
	static struct etw_map maps[9];
	u32 i;

	for (i = 0; i < plan->nr_fields; i++) {
		const struct schema_plan_field *f = &plan->fields[i];

		fields[i] = (struct etw_field){
			.name = f->name, .type = f->type, .array = f->array, .format = f->format, .count = f->count,
		};
		if (f->map) {
			maps[f->map - 1] = (struct etw_map){ f->map % 2, f->map - 1, values };
			fields[i].map = &maps[f->map - 1];
		}
	}
}

int schema_kernel_payload(const struct schema_plan *plan, const void *payload, uint32_t len)
{
	fields_make(plan);
	return !etw_payload_check(fields, plan->nr_fields, payload, len, NULL);
}

int schema_kernel(const struct schema_plan *plan, uint32_t class_id, void **entry, uint32_t *size, uint16_t scrub[2])
{
	struct etw_provider provider = { .name = plan->provider };
	struct etw_class class = {
		.name = plan->name,
		.ctf_name = *plan->ctf_name ? plan->ctf_name : NULL,
		.description = *plan->description ? plan->description : NULL,
		.fields = fields,
		.nr_fields = plan->nr_fields,
		.provider = &provider,
	};
	u32 i;

	fields_make(plan);
	if (etw_schema_scan(&class))
		return -1;
	*size = etw_schema_size(&class);
	*entry = malloc(*size);
	if (!*entry)
		return -1;
	memset(*entry, 0xcc, *size);
	etw_schema_fill(*entry, &class, class_id);
	for (i = 0; i < 2; i++)
		scrub[i] = i < class.nr_scrub ? class.scrub[i] : 0xffff;
	return 0;
}
