// SPDX-License-Identifier: GPL-2.0-only
/* Serialises a class: header, fields, maps, then the strings, each referred to by its offset. */
#include <linux/align.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "schema.h"

static u32 string_size(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static u32 map_size(const struct etw_map *map)
{
	return sizeof(struct etw_schema_map) + map->nr * sizeof(struct etw_schema_value);
}

/* The first field with the map of @class's field @i: there the map is, for all of them. */
static u32 first_with_map(const struct etw_class *class, u32 i)
{
	u32 first;

	for (first = 0; class->fields[first].map != class->fields[i].map; first++)
		;
	return first;
}

u32 etw_schema_size(const struct etw_class *class)
{
	u32 i, j, size = sizeof(struct etw_schema) + class->nr_fields * sizeof(struct etw_schema_field);

	size += string_size(class->provider->name) + string_size(class->name) +
		string_size(class->ctf_name) + string_size(class->description);
	for (i = 0; i < class->nr_fields; i++) {
		const struct etw_map *map = class->fields[i].map;

		size += string_size(class->fields[i].name);
		if (!map || first_with_map(class, i) != i)
			continue;
		size += map_size(map);
		for (j = 0; j < map->nr; j++)
			size += string_size(map->values[j].name);
	}
	return ALIGN(size, 8);
}

struct filler {
	u8 *buf;
	u32 tables;			/* where the next map goes: 8-byte aligned */
	u32 strings;			/* where the next string goes */
};

static u32 put_string(struct filler *f, const char *s)
{
	u32 at = f->strings;

	if (!s)
		return 0;
	memcpy(f->buf + at, s, string_size(s));
	f->strings += string_size(s);
	return at;
}

static u32 put_map(struct filler *f, const struct etw_map *map)
{
	struct etw_schema_map *m = (void *)(f->buf + f->tables);
	u32 i, at = f->tables;

	if (!map)
		return 0;
	m->kind = map->kind;
	m->nr = map->nr;
	for (i = 0; i < map->nr; i++) {
		m->values[i].value = map->values[i].value;
		m->values[i].name = put_string(f, map->values[i].name);
	}
	f->tables += map_size(map);
	return at;
}

void etw_schema_fill(void *buf, const struct etw_class *class, u32 class_id)
{
	struct etw_schema *s = buf;
	struct etw_schema_field *out = (void *)(s + 1), *const outs = out;
	struct filler f = { .buf = buf };
	u32 i;

	memset(buf, 0, etw_schema_size(class));
	f.tables = sizeof(*s) + class->nr_fields * sizeof(*out);
	f.strings = f.tables;
	for (i = 0; i < class->nr_fields; i++)
		if (class->fields[i].map && first_with_map(class, i) == i)
			f.strings += map_size(class->fields[i].map);

	s->size = etw_schema_size(class);
	s->class_id = class_id;
	memcpy(s->guid, &class->provider->guid, sizeof(s->guid));
	s->keyword = class->keyword;
	s->event_id = class->event_id;
	s->task = class->task;
	s->version = class->version;
	s->level = class->level;
	s->opcode = class->opcode;
	s->provider = put_string(&f, class->provider->name);
	s->name = put_string(&f, class->name);
	s->ctf_name = put_string(&f, class->ctf_name);
	s->description = put_string(&f, class->description);
	s->fields = sizeof(*s);
	s->nr_fields = class->nr_fields;
	for (i = 0; i < class->nr_fields; i++, out++) {
		const struct etw_field *field = &class->fields[i];
		const u32 first = first_with_map(class, i);

		out->name = put_string(&f, field->name);
		out->map = first < i ? outs[first].map : put_map(&f, field->map);
		out->type = field->type;
		out->array = field->array;
		out->format = field->format;
		out->count = field->count;
	}
}

static const u8 type_size[ETW_NR_TYPES] = {
	[ETW_TYPE_U8] = 1, [ETW_TYPE_U16] = 2, [ETW_TYPE_U32] = 4, [ETW_TYPE_U64] = 8,
	[ETW_TYPE_S8] = 1, [ETW_TYPE_S16] = 2, [ETW_TYPE_S32] = 4, [ETW_TYPE_S64] = 8,
	[ETW_TYPE_POINTER] = 8, [ETW_TYPE_F32] = 4, [ETW_TYPE_F64] = 8, [ETW_TYPE_BOOL] = 1,
	[ETW_TYPE_CHARS] = 1, [ETW_TYPE_GUID] = 16, [ETW_TYPE_IPV4] = 4, [ETW_TYPE_IPV6] = 16, [ETW_TYPE_MAC] = 6,
};

u32 etw_type_size(u8 type)
{
	return type < ETW_NR_TYPES ? type_size[type] : 0;
}

int etw_schema_scan(struct etw_class *class)
{
	bool fixed = true;
	u32 i, offset = 0;

	class->nr_scrub = 0;
	for (i = 0; i < class->nr_fields; i++) {
		const struct etw_field *field = &class->fields[i];
		bool many = field->array == ETW_ARRAY_FIXED || field->type == ETW_TYPE_CHARS;

		if (field->type == ETW_TYPE_POINTER) {
			if (!fixed || field->array || class->nr_scrub == ETW_MAX_SCRUB ||
			    offset + sizeof(u64) > ETW_SCRUB_SIZE)
				return -EINVAL;
			class->scrub[class->nr_scrub++] = offset;
		}
		if (field->array == ETW_ARRAY_COUNTED || !type_size[field->type])
			fixed = false;
		offset += type_size[field->type] * (many ? field->count : 1);
	}
	return 0;
}
