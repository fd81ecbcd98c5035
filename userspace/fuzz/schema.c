// SPDX-License-Identifier: GPL-2.0-only
/*
 * A class through the module's serialiser and the library's decoder: what comes out is what went in, both find kernel
 * pointers in the same places, and agree which payload is one of the class. The bytes choose the class; the rest is the
 * payload.
 */
#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "schema_kernel.h"

struct bytes {
	const uint8_t *p, *end;
};

static uint8_t byte(struct bytes *b)
{
	return b->p < b->end ? *b->p++ : 0;
}

static void text(struct bytes *b, char to[SCHEMA_NAME], unsigned int least)
{
	static const char characters[] = "abcdefgxyzABCXYZ0123456789_-.";
	unsigned int i, len = least + byte(b) % (SCHEMA_NAME - least);

	for (i = 0; i < len; i++)
		to[i] = characters[i ? byte(b) % (sizeof(characters) - 1) : byte(b) % 16];
	to[i] = 0;
}

/* Only what the module's own tables can hold. */
static void plan_make(struct schema_plan *plan, struct bytes *b)
{
	unsigned int i;

	memset(plan, 0, sizeof(*plan));
	text(b, plan->provider, 1);
	text(b, plan->name, 1);
	text(b, plan->ctf_name, 0);
	text(b, plan->description, 0);
	plan->nr_fields = byte(b) % 129;
	for (i = 0; i < plan->nr_fields; i++) {
		struct schema_plan_field *f = &plan->fields[i];

		text(b, f->name, 1);
		f->type = 1 + byte(b) % (ETW_NR_TYPES - 1);
		f->array = f->type <= ETW_TYPE_BOOL ? byte(b) % 3 : 0;
		f->format = byte(b) % ETW_NR_FORMATS;
		f->map = f->type <= ETW_TYPE_S64 ? byte(b) % 10 : 0;
		if (f->array == ETW_ARRAY_FIXED || f->type == ETW_TYPE_CHARS)
			f->count = 1 + byte(b);
	}
}

/* What the module takes the library can read to the byte; and the other way round, but that a bool may be only 0 or 1. */
static void check_payload(const struct schema_plan *plan, const struct etw_class *cls, const uint8_t *payload, size_t len)
{
	uint32_t *offsets = malloc((cls->nr_fields + 1) * sizeof(*offsets)), i;
	unsigned int bad;
	int kernel = schema_kernel_payload(plan, payload, len), library, bools = 0;

	if (cls->payload_size == ETW_SIZE_VARIES)
		library = etw_class_walk(cls, payload, len, offsets, &bad) == (long)len;
	else
		library = cls->payload_size == len;
	for (i = 0; i < cls->nr_fields; i++)
		bools |= cls->fields[i].type == ETW_TYPE_BOOL;
	FUZZ_CHECK(kernel ? library : !library || bools);
	free(offsets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, data + size };
	static struct schema_plan plan;
	struct etw_class *cls;
	uint16_t scrub[2];
	size_t used;
	uint32_t len, i, found = 0;
	void *entry;

	plan_make(&plan, &b);
	if (schema_kernel(&plan, 77, &entry, &len, scrub))
		return 0;
	if (etw_class_parse(entry, len, &used, &cls))
		fuzz_failed(__FILE__, __LINE__, etw_last_error());
	FUZZ_CHECK(used == len);
	FUZZ_CHECK(cls->class_id == 77 && !strcmp(cls->provider, plan.provider) && !strcmp(cls->name, plan.name));
	FUZZ_CHECK(!strcmp(cls->description, plan.description) && (!*plan.ctf_name || !strcmp(cls->ctf_name, plan.ctf_name)));
	FUZZ_CHECK(cls->nr_fields == plan.nr_fields);
	for (i = 0; i < cls->nr_fields; i++) {
		const struct etw_field *f = &cls->fields[i];
		const struct schema_plan_field *was = &plan.fields[i];

		FUZZ_CHECK(!strcmp(f->name, was->name) && f->format == was->format);
		FUZZ_CHECK(f->type == was->type && f->array == was->array);
		FUZZ_CHECK(f->count == was->count && !!f->map == !!was->map && (!f->map || f->map->nr == was->map - 1U));
		if (f->type == ETW_TYPE_POINTER)
			FUZZ_CHECK(found < 2 && scrub[found++] == f->offset);
	}
	FUZZ_CHECK(found == 2 || scrub[found] == 0xffff);
	check_payload(&plan, cls, b.p, b.end - b.p);
	etw_class_free(cls);
	free(entry);
	return 0;
}
