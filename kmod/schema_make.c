// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes classes from schemas that come from outside. Nothing in them is believed: every offset, name and number is checked before
 * it is used. Knows classes only.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "filter.h"
#include "objects.h"
#include "schema.h"

#define MAX_DESCRIPTION	256U
/* Of all maps of a class: they can share bytes, but what is made of them cannot. */
#define MAX_VALUES	4096U
#define MAX_COUNT	65535U

/* One allocation: the class, then its fields, maps and values. */
struct made_class {
	struct etw_class class;
	struct etw_field fields[];
};

struct source {
	const u8 *blob;
	u32 size;
	struct etw_schema head;
};

static bool read_at(const struct source *s, u32 offset, void *to, u32 len)
{
	if (offset > s->size || len > s->size - offset)
		return false;
	memcpy(to, s->blob + offset, len);
	return true;
}

/* A string that ends within the schema and is shorter than @room, or NULL. */
static const char *text_at(const struct source *s, u32 offset, u32 room)
{
	const char *text = (const char *)s->blob + offset;

	if (offset >= s->size || strnlen(text, min(room, s->size - offset)) == min(room, s->size - offset))
		return NULL;
	return text;
}

static const char *name_at(const struct source *s, u32 offset)
{
	const char *name = text_at(s, offset, ETW_NAME_SIZE);

	return name && etw_name_valid(name, strlen(name) + 1) ? name : NULL;
}

/* One line: nothing that could move a terminal's cursor. */
static bool line(const char *text)
{
	for (; *text; text++)
		if ((u8)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static bool is_number(u8 type)
{
	return type >= ETW_TYPE_U8 && type <= ETW_TYPE_BOOL;
}

static bool is_integer(u8 type)
{
	return type >= ETW_TYPE_U8 && type <= ETW_TYPE_S64;
}

static bool field_valid(const struct etw_schema_field *f)
{
	if (f->type < ETW_TYPE_U8 || f->type >= ETW_NR_TYPES || f->type == ETW_TYPE_POINTER || f->reserved)
		return false;
	if (f->array > ETW_ARRAY_COUNTED || (f->array && !is_number(f->type)))
		return false;
	if (f->array == ETW_ARRAY_FIXED || f->type == ETW_TYPE_CHARS) {
		if (!f->count || f->count > MAX_COUNT)
			return false;
	} else if (f->count) {
		return false;
	}
	if (f->format >= ETW_NR_FORMATS || (f->format && !is_integer(f->type)))
		return false;
	return !f->map || is_integer(f->type);
}

/* The first field with the map at @offset. */
static u32 first_with_map(const struct source *s, u32 offset)
{
	struct etw_schema_field f;
	u32 i;

	for (i = 0; read_at(s, s->head.fields + i * sizeof(f), &f, sizeof(f)) && f.map != offset; i++)
		;
	return i;
}

/* How many maps and values the fields have. */
static int count_maps(const struct source *s, u32 *nr_maps, u32 *nr_values)
{
	struct etw_schema_field f;
	struct etw_schema_map map;
	u32 i;

	*nr_maps = 0;
	*nr_values = 0;
	for (i = 0; i < s->head.nr_fields; i++) {
		if (!read_at(s, s->head.fields + i * sizeof(f), &f, sizeof(f)) || !field_valid(&f))
			return -EINVAL;
		if (!f.map || first_with_map(s, f.map) < i)
			continue;
		if (!read_at(s, f.map, &map, sizeof(map)) || map.kind > ETW_MAP_FLAGS || !map.nr)
			return -EINVAL;
		if (map.nr > MAX_VALUES - *nr_values)
			return -E2BIG;
		*nr_maps += 1;
		*nr_values += map.nr;
	}
	return 0;
}

static int take_map(const struct source *s, u32 offset, struct etw_map *map, struct etw_value *values)
{
	struct etw_schema_map head;
	struct etw_schema_value v;
	u32 i;

	read_at(s, offset, &head, sizeof(head));	/* seen by count_maps() */
	*map = (struct etw_map){ head.kind, head.nr, values };
	for (i = 0; i < head.nr; i++) {
		if (!read_at(s, offset + sizeof(head) + i * sizeof(v), &v, sizeof(v)) || v.reserved)
			return -EINVAL;
		values[i].value = v.value;
		values[i].name = name_at(s, v.name);
		if (!values[i].name)
			return -EINVAL;
	}
	return 0;
}

static bool same_map(const struct etw_map *a, const struct etw_map *b)
{
	u32 i;

	if (!a || a->kind != b->kind || a->nr != b->nr)
		return false;
	for (i = 0; i < a->nr; i++)
		if (a->values[i].value != b->values[i].value || strcmp(a->values[i].name, b->values[i].name))
			return false;
	return true;
}

static int take_fields(const struct source *s, struct etw_field *fields, struct etw_map *maps, struct etw_value *values)
{
	u32 i, j;
	int err;

	for (i = 0; i < s->head.nr_fields; i++) {
		struct etw_schema_field f;

		read_at(s, s->head.fields + i * sizeof(f), &f, sizeof(f));
		fields[i] = (struct etw_field){
			.name = name_at(s, f.name), .type = f.type, .array = f.array, .format = f.format, .count = f.count,
		};
		if (!fields[i].name)
			return -EINVAL;
		for (j = 0; j < i; j++)
			if (!strcmp(fields[i].name, fields[j].name))
				return -EINVAL;
		if (!f.map)
			continue;
		j = first_with_map(s, f.map);
		if (j == i) {
			err = take_map(s, f.map, maps, values);
			if (err)
				return err;
			for (j = 0; j < i && !same_map(fields[j].map, maps); j++)
				;
		}
		fields[i].map = j < i ? fields[j].map : maps;
		if (j == i)
			values += maps++->nr;
	}
	return 0;
}

/* The size of every payload, or that it varies or must be looked at; -EINVAL: none would fit. */
static int fix_size(struct etw_class *class)
{
	bool fixed = true;
	u64 least = 0;
	u32 i;

	for (i = 0; i < class->nr_fields; i++) {
		const struct etw_field *f = &class->fields[i];
		const u32 size = etw_type_size(f->type);

		if (!size || f->array == ETW_ARRAY_COUNTED) {
			fixed = false;
			least += f->type == ETW_TYPE_STRING ? 1 : sizeof(u32);
			continue;
		}
		fixed &= f->type != ETW_TYPE_BOOL;
		least += (u64)size * (f->array || f->type == ETW_TYPE_CHARS ? f->count : 1);
	}
	class->fixed_size = fixed ? least : ETW_SIZE_VARIES;
	return least > ETW_MAX_PAYLOAD ? -EINVAL : 0;
}

/* A class whose names point into @s->blob. */
static struct etw_class *parse(const struct source *s)
{
	const struct etw_schema *h = &s->head;
	struct made_class *m;
	struct etw_class *class;
	u32 nr_maps, nr_values;
	size_t maps_at, values_at, size;
	int err = count_maps(s, &nr_maps, &nr_values);

	if (err)
		return ERR_PTR(err);
	maps_at = struct_size(m, fields, h->nr_fields);
	values_at = maps_at + nr_maps * sizeof(struct etw_map);
	size = values_at + nr_values * sizeof(struct etw_value);
	m = kvzalloc(size, ETW_GFP_USER);
	if (!m)
		return ERR_PTR(-ENOMEM);
	class = &m->class;
	class->made = true;
	class->memory = size;
	class->name = name_at(s, h->name);
	class->description = h->description ? text_at(s, h->description, MAX_DESCRIPTION) : NULL;
	class->fields = m->fields;
	class->nr_fields = h->nr_fields;
	class->keyword = h->keyword;
	class->event_id = h->event_id;
	class->task = h->task;
	class->version = h->version;
	class->level = h->level;
	class->opcode = h->opcode;
	if (!class->name || (h->description && (!class->description || !line(class->description))))
		err = -EINVAL;
	if (!err)
		err = take_fields(s, m->fields, (void *)m + maps_at, (void *)m + values_at);
	if (!err)
		err = fix_size(class);
	if (!err)
		return class;
	kvfree(m);
	return ERR_PTR(err);
}

/*
 * Twice: from what was given to the one form that equal classes have in common, bytes that nobody asked for left out, and
 * from that to the class.
 */
struct etw_class *etw_schema_make(const void *blob, u32 size, struct etw_provider *provider)
{
	static const u8 none[16];
	struct source s = { blob, size };
	struct etw_class *given, *class;
	struct etw_schema *own;
	u32 own_size;

	if (size > ETW_MAX_SCHEMA)
		return ERR_PTR(-E2BIG);
	if (!read_at(&s, 0, &s.head, sizeof(s.head)) || s.head.size != size || s.head.class_id || s.head.reserved ||
	    memcmp(s.head.guid, none, sizeof(none)) || s.head.provider || s.head.ctf_name)
		return ERR_PTR(-EINVAL);
	if (s.head.nr_fields > ETW_MAX_FIELDS)
		return ERR_PTR(-E2BIG);
	given = parse(&s);
	if (IS_ERR(given))
		return given;
	given->provider = provider;
	own_size = etw_schema_size(given);
	if (own_size > ETW_MAX_SCHEMA) {
		class = ERR_PTR(-E2BIG);
		goto free;
	}
	own = etw_object_new(ETW_OBJECT_SCHEMA, kvmalloc(own_size, ETW_GFP_USER));
	if (!own) {
		class = ERR_PTR(-ENOMEM);
		goto free;
	}
	etw_schema_fill(own, given, 0);
	s = (struct source){ (const u8 *)own, own_size, *own };
	class = parse(&s);
	if (IS_ERR(class)) {
		etw_object_free(ETW_OBJECT_SCHEMA, own);
		goto free;
	}
	class->provider = provider;
	class->schema = own;
	class->memory += own_size;
free:
	kvfree(given);
	return class;
}

void etw_schema_unmake(struct etw_class *class)
{
	etw_object_free(ETW_OBJECT_SCHEMA, class->schema);
	kvfree(class);
}
