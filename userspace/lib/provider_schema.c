// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * From the description of an event to the struct etw_schema that the module takes; the same content always gives the
 * same bytes. Everything the module would refuse is refused here, with a text. It must not know registrations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "provider_int.h"

#define MAX_DESCRIPTION 256
#define MAX_COUNT	65535
#define MAX_VALUES	4096

/* An event with its items sorted out. */
struct event {
	struct etw_event_options head;
	struct etw_field_info fields[ETW_MAX_FIELDS];
	unsigned int nr;
	size_t tables;
	size_t strings;
	size_t total;
};

static int add_field(struct event *e, const struct etw_field_info *f)
{
	if (e->nr == ETW_MAX_FIELDS)
		return etw_error(-E2BIG, "event %s: more than %u fields", e->head.name, ETW_MAX_FIELDS);
	e->fields[e->nr++] = *f;
	return 0;
}

static int add_item(struct event *e, const struct etw_field_info *f)
{
	switch (f->type) {
	case ETW_ITEM_OPCODE:
		e->head.opcode = f->count;
		return 0;
	case ETW_ITEM_TASK:
		e->head.task = f->count;
		return 0;
	case ETW_ITEM_ID:
		e->head.id = f->count;
		return 0;
	case ETW_ITEM_VERSION:
		e->head.version = f->count;
		return 0;
	case ETW_ITEM_DESCRIPTION:
		e->head.description = f->name;
		return 0;
	}
	return add_field(e, f);
}

static bool is_id(const struct etw_field_info *f, const char *name)
{
	return f->type == ETW_TYPE_GUID && f->name && !strcmp(f->name, name);
}

static int check_map(const struct event *e, const struct etw_field_info *f)
{
	const struct etw_map *map = f->map;
	__u32 i;

	if (f->type > ETW_TYPE_S64)
		return etw_error(-EINVAL, "event %s: field %s: only integers have named values", e->head.name,
				 f->name);
	if (map->kind > ETW_MAP_FLAGS || !map->nr || !map->values)
		return etw_error(-EINVAL, "event %s: field %s: its map is empty or of no kind there is", e->head.name,
				 f->name);
	for (i = 0; i < map->nr; i++)
		if (!map->values[i].name || !etw_name_valid(map->values[i].name))
			return etw_error(-EINVAL, "event %s: field %s: \"%s\" is no name for a value", e->head.name,
					 f->name, map->values[i].name ? map->values[i].name : "");
	return 0;
}

static int check_field(const struct event *e, unsigned int nr)
{
	const struct etw_field_info *f = &e->fields[nr];
	unsigned int i;

	if (!f->name || !etw_name_valid(f->name))
		return etw_error(-EINVAL,
				 "event %s: \"%s\" is no name for a field: a letter, then letters, digits, _ . -",
				 e->head.name, f->name ? f->name : "");
	for (i = 0; i < nr; i++)
		if (!strcmp(f->name, e->fields[i].name))
			return etw_error(-EINVAL, "event %s: two fields %s", e->head.name, f->name);
	if (f->type == ETW_TYPE_POINTER)
		return etw_error(-EINVAL,
				 "event %s: field %s: kernel pointers are the kernel's; take u64 in hexadecimal",
				 e->head.name, f->name);
	if (!f->type || f->type >= ETW_NR_TYPES)
		return etw_error(-EINVAL, "event %s: field %s: there is no type %u", e->head.name, f->name, f->type);
	if (f->array > ETW_ARRAY_COUNTED || (f->array && f->type > ETW_TYPE_BOOL) ||
	    (f->array && f->type == ETW_TYPE_POINTER))
		return etw_error(-EINVAL, "event %s: field %s: arrays are of numbers", e->head.name, f->name);
	if (f->array == ETW_ARRAY_FIXED || f->type == ETW_TYPE_CHARS) {
		if (!f->count || f->count > MAX_COUNT)
			return etw_error(-EINVAL, "event %s: field %s: its count must be 1 to %u", e->head.name,
					 f->name, MAX_COUNT);
	} else if (f->count) {
		return etw_error(-EINVAL, "event %s: field %s: only fixed arrays and chars have a count",
				 e->head.name, f->name);
	}
	if (f->format >= ETW_NR_FORMATS || (f->format && f->type > ETW_TYPE_S64))
		return etw_error(-EINVAL, "event %s: field %s: formats are of integers, below %u", e->head.name,
				 f->name, ETW_NR_FORMATS);
	return f->map ? check_map(e, f) : 0;
}

/* Sizes of what stands behind the head. */
static int measure(struct event *e)
{
	size_t values = 0;
	unsigned int i;
	__u32 k;

	e->tables = sizeof(struct etw_schema) + e->nr * sizeof(struct etw_schema_field);
	e->strings = e->tables;
	for (i = 0; i < e->nr; i++) {
		const struct etw_map *map = e->fields[i].map;

		if (!map)
			continue;
		values += map->nr;
		if (values > MAX_VALUES)
			return etw_error(-E2BIG, "event %s: more than %u named values", e->head.name, MAX_VALUES);
		e->strings += sizeof(struct etw_schema_map) + map->nr * sizeof(struct etw_schema_value);
	}
	e->total = e->strings + strlen(e->head.name) + 1;
	if (e->head.description)
		e->total += strlen(e->head.description) + 1;
	for (i = 0; i < e->nr; i++) {
		const struct etw_map *map = e->fields[i].map;

		e->total += strlen(e->fields[i].name) + 1;
		for (k = 0; map && k < map->nr; k++)
			e->total += strlen(map->values[k].name) + 1;
	}
	e->total = (e->total + 7) & ~(size_t)7;
	if (e->total > ETW_MAX_SCHEMA)
		return etw_error(-E2BIG, "event %s: its names take more than %u bytes", e->head.name, ETW_MAX_SCHEMA);
	return 0;
}

static __u32 put_string(__u8 *base, size_t *at, const char *text)
{
	__u32 offset = *at;
	size_t n;

	if (!text)
		return 0;
	n = strlen(text) + 1;
	memcpy(base + offset, text, n);
	*at += n;
	return offset;
}

static void fill(struct event *e, __u8 *base)
{
	struct etw_schema *s = (struct etw_schema *)base;
	struct etw_schema_field *out = (struct etw_schema_field *)(s + 1);
	unsigned int i;
	__u32 k;

	s->size = e->total;
	s->keyword = e->head.keyword;
	s->event_id = e->head.id;
	s->task = e->head.task;
	s->version = e->head.version;
	s->level = e->head.level;
	s->opcode = e->head.opcode;
	s->name = put_string(base, &e->strings, e->head.name);
	s->description = put_string(base, &e->strings, e->head.description);
	s->fields = sizeof(*s);
	s->nr_fields = e->nr;
	for (i = 0; i < e->nr; i++, out++) {
		const struct etw_field_info *f = &e->fields[i];
		struct etw_schema_map *map = (struct etw_schema_map *)(base + e->tables);

		out->name = put_string(base, &e->strings, f->name);
		out->type = f->type;
		out->array = f->array;
		out->format = f->format;
		out->count = f->count;
		if (!f->map)
			continue;
		out->map = e->tables;
		map->kind = f->map->kind;
		map->nr = f->map->nr;
		for (k = 0; k < map->nr; k++) {
			map->values[k].value = f->map->values[k].value;
			map->values[k].name = put_string(base, &e->strings, f->map->values[k].name);
		}
		e->tables += sizeof(*map) + map->nr * sizeof(map->values[0]);
	}
}

static int check_description(const struct event *e)
{
	const char *p;

	if (!e->head.description)
		return 0;
	for (p = e->head.description; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return etw_error(-EINVAL, "event %s: its description is not one line of text", e->head.name);
	if (p - e->head.description >= MAX_DESCRIPTION)
		return etw_error(-EINVAL, "event %s: its description is longer than %d bytes", e->head.name,
				 MAX_DESCRIPTION - 1);
	return 0;
}

/* No event of this kind would fit. */
static int check_size(const struct event *e)
{
	static const __u8 sizes[ETW_NR_TYPES] = {
		[ETW_TYPE_U8] = 1,     [ETW_TYPE_U16] = 2,    [ETW_TYPE_U32] = 4,   [ETW_TYPE_U64] = 8,
		[ETW_TYPE_S8] = 1,     [ETW_TYPE_S16] = 2,    [ETW_TYPE_S32] = 4,   [ETW_TYPE_S64] = 8,
		[ETW_TYPE_F32] = 4,    [ETW_TYPE_F64] = 8,    [ETW_TYPE_BOOL] = 1,  [ETW_TYPE_CHARS] = 1,
		[ETW_TYPE_STRING] = 1, [ETW_TYPE_BINARY] = 4, [ETW_TYPE_GUID] = 16, [ETW_TYPE_IPV4] = 4,
		[ETW_TYPE_IPV6] = 16,  [ETW_TYPE_MAC] = 6,
	};
	size_t least = 0;
	unsigned int i;

	for (i = 0; i < e->nr; i++) {
		const struct etw_field_info *f = &e->fields[i];

		if (f->array == ETW_ARRAY_COUNTED)
			least += sizeof(__u32);
		else
			least += sizes[f->type] * (size_t)(f->count ? f->count : 1);
	}
	if (least > ETW_MAX_PAYLOAD)
		return etw_error(-EINVAL, "event %s: its fields take at least %zu bytes, an event has at most %u",
				 e->head.name, least, ETW_MAX_PAYLOAD);
	return 0;
}

int etw_describe(const struct etw_event_options *options, const struct etw_field_info *fields, unsigned int with,
		 struct etw_schema **schema)
{
	static const struct etw_field_info activity = { .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID };
	static const struct etw_field_info related = { .name = ETW_FIELD_RELATED, .type = ETW_TYPE_GUID };
	struct event *e = calloc(1, sizeof(*e));
	unsigned int i;
	int err = 0;

	if (!e)
		return etw_error_errno(-ENOMEM, "event");
	e->head = *options;
	if (!e->head.name || !etw_name_valid(e->head.name)) {
		err = etw_error(-EINVAL,
				"\"%s\" is no name for an event: a letter, then letters, digits, _ . -, at most %u",
				e->head.name ? e->head.name : "", ETW_NAME_SIZE - 1);
		goto out;
	}
	if (with)
		err = add_field(e, &activity);
	if (!err && (with & WITH_RELATED))
		err = add_field(e, &related);
	for (; !err && fields->type != ETW_ITEM_END; fields++)
		err = add_item(e, fields);
	if (!err && e->head.description && !*e->head.description)
		e->head.description = NULL;
	for (i = 0; !err && i < e->nr; i++) {
		err = check_field(e, i);
		if (!err && ((is_id(&e->fields[i], ETW_FIELD_ACTIVITY) && i) ||
			     (is_id(&e->fields[i], ETW_FIELD_RELATED) &&
			      (i != 1 || !is_id(&e->fields[0], ETW_FIELD_ACTIVITY)))))
			err = etw_error(-EINVAL,
					"event %s: the activity id, then the related one, come before other fields",
					e->head.name);
	}
	if (!err)
		err = check_description(e);
	if (!err)
		err = check_size(e);
	if (!err)
		err = measure(e);
	if (err)
		goto out;
	*schema = calloc(1, e->total);
	if (*schema)
		fill(e, (__u8 *)*schema);
	else
		err = etw_error_errno(-ENOMEM, "event %s", e->head.name);
out:
	free(e);
	return err;
}
