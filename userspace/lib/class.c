// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Event classes: parse and check one struct etw_schema entry, tables of them, look-up by name. An entry may come from a
 * damaged file, so nothing in it is trusted. It must not know events, sessions or files.
 */
#include "class.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

static const __u8 type_sizes[ETW_NR_TYPES] = {
	[ETW_TYPE_U8] = 1,	[ETW_TYPE_U16] = 2,    [ETW_TYPE_U32] = 4,    [ETW_TYPE_U64] = 8,
	[ETW_TYPE_S8] = 1,	[ETW_TYPE_S16] = 2,    [ETW_TYPE_S32] = 4,    [ETW_TYPE_S64] = 8,
	[ETW_TYPE_POINTER] = 8, [ETW_TYPE_F32] = 4,    [ETW_TYPE_F64] = 8,    [ETW_TYPE_BOOL] = 1,
	[ETW_TYPE_STRING] = 1,	[ETW_TYPE_BINARY] = 1, [ETW_TYPE_GUID] = 16,  [ETW_TYPE_IPV4] = 4,
	[ETW_TYPE_IPV6] = 16,	[ETW_TYPE_MAC] = 6,
};

unsigned int etw_type_size(unsigned int type)
{
	return type < ETW_NR_TYPES ? type_sizes[type] : 0;
}

/* One entry being parsed: where it is, and what of its copy is used up. */
struct parser {
	const char *base;
	__u32 size;
	char *heap;
	size_t map_values;	/* of all distinct maps together */
	struct {
		__u32 offset;
		const struct etw_map *map;
	} maps[ETW_MAX_FIELDS];
	unsigned int nr_maps;
};

static void *take(struct parser *p, size_t n)
{
	void *mem = p->heap;

	n = (n + 7) & ~(size_t)7;
	p->heap += n;
	return mem;
}

/* A terminated string inside the entry, behind its fixed part. NULL if it is not. */
static const char *string_at(const struct parser *p, __u32 offset)
{
	if (offset < sizeof(struct etw_schema) || offset >= p->size)
		return NULL;
	return memchr(p->base + offset, 0, p->size - offset) ? p->base + offset : NULL;
}

static bool printable(const char *s)
{
	if (!s || !*s)
		return false;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

static bool map_valid(struct parser *p, __u32 offset)
{
	struct etw_schema_map map;
	struct etw_schema_value value;
	__u32 i;

	if (offset < sizeof(struct etw_schema) || offset > p->size - sizeof(map))
		return false;
	memcpy(&map, p->base + offset, sizeof(map));
	if (map.kind > ETW_MAP_FLAGS || map.nr > (p->size - offset - sizeof(map)) / sizeof(value))
		return false;
	for (i = 0; i < map.nr; i++) {
		memcpy(&value, p->base + offset + sizeof(map) + i * sizeof(value), sizeof(value));
		if (!printable(string_at(p, value.name)))
			return false;
	}
	for (i = 0; i < p->nr_maps; i++)
		if (p->maps[i].offset == offset)
			return true;
	p->maps[p->nr_maps++].offset = offset;
	p->map_values += map.nr;
	/* Real maps do not overlap; this also bounds what an entry can make us allocate. */
	return p->map_values * sizeof(value) <= p->size;
}

static const struct etw_map *map_make(struct parser *p, __u32 offset)
{
	struct etw_schema_map map;
	struct etw_schema_value value;
	struct etw_map_value *values;
	struct etw_map *out;
	unsigned int i;
	__u32 k;

	for (i = 0; p->maps[i].offset != offset; i++)
		;
	if (p->maps[i].map)
		return p->maps[i].map;
	memcpy(&map, p->base + offset, sizeof(map));
	out = take(p, sizeof(*out));
	values = take(p, map.nr * sizeof(*values));
	for (k = 0; k < map.nr; k++) {
		memcpy(&value, p->base + offset + sizeof(map) + k * sizeof(value), sizeof(value));
		values[k].value = value.value;
		values[k].name = p->base + value.name;
	}
	out->kind = map.kind;
	out->nr = map.nr;
	out->values = values;
	p->maps[i].map = out;
	return out;
}

/* NULL, or what is wrong with the field. */
static const char *field_check(struct parser *p, const struct etw_schema_field *f)
{
	if (!printable(string_at(p, f->name)))
		return "its name is not printable text";
	if (f->type == 0 || f->type >= ETW_NR_TYPES)
		return "its type is unknown";
	if (f->array > ETW_ARRAY_COUNTED || (f->array && f->type > ETW_TYPE_BOOL))
		return "its array kind is not possible";
	if (f->array == ETW_ARRAY_FIXED || f->type == ETW_TYPE_CHARS) {
		unsigned int unit = f->type == ETW_TYPE_CHARS ? 1 : type_sizes[f->type];

		if (f->count == 0 || f->count > ETW_MAX_PAYLOAD / unit)
			return "its count is out of range";
	}
	if (f->map && (f->type > ETW_TYPE_S64 || !map_valid(p, f->map)))
		return "its map is not whole";
	return NULL;
}

static bool name_taken(const struct etw_field *fields, __u32 nr, const char *name)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		const struct etw_field *f = &fields[i];
		size_t len = strlen(f->ctf_name);

		if (!strcmp(f->ctf_name, name))
			return true;
		/* A sequence's length is a field of its own in CTF: __name_length. */
		if ((f->array == ETW_ARRAY_COUNTED || f->type == ETW_TYPE_BINARY) && name[0] == '_' &&
		    !strncmp(name + 1, f->ctf_name, len) && !strcmp(name + 1 + len, "_length"))
			return true;
	}
	return false;
}

/* The field's name with only [A-Za-z0-9_] in it, and unique. Room: length + 12. */
static const char *field_ctf_name(struct parser *p, const struct etw_field *fields, __u32 nr, bool counted)
{
	const char *name = fields[nr].name;
	size_t len = strlen(name), i;
	char *out = take(p, len + 12);
	char length_name[ETW_MAX_PAYLOAD / 64];
	unsigned int n;

	for (i = 0; i < len; i++)
		out[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	out[len] = 0;
	for (n = 2;; n++) {
		snprintf(length_name, sizeof(length_name), "_%s_length", out);
		if (!name_taken(fields, nr, out) && !(counted && name_taken(fields, nr, length_name)))
			return out;
		snprintf(out + len, 12, "_%u", n);
	}
}

/* Provider:Event;k<keywords>; in the characters that WPA accepts. Room: both names + 24. */
static const char *class_ctf_name(struct parser *p, const struct etw_class *cls)
{
	/* Readers take names that begin so for events of the kernel. */
	static const char *const taken[] = {
		"sys_", "syscall", "exit_syscall", "compat_", "module", "lttng_", "sched_", "block_", "irq_",
	};
	size_t room = strlen(cls->provider) + strlen(cls->name) + 24;
	char *out = take(p, room), *c;
	size_t i;

	snprintf(out, room, "_%s:%s;k%llx;", cls->provider, cls->name, (unsigned long long)cls->keyword);
	for (c = out; *c; c++)
		if (*c == '-')
			*c = '_';
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strncmp(out + 1, taken[i], strlen(taken[i])))
			return out;
	return out + 1;
}

static void fields_make(struct parser *p, struct class_info *info, const struct etw_schema *schema)
{
	struct etw_field *fields = take(p, schema->nr_fields * sizeof(*fields));
	__u32 offset = 0, i;

	info->offsets = take(p, (schema->nr_fields + 1) * sizeof(__u32));
	for (i = 0; i < schema->nr_fields; i++) {
		struct etw_field *f = &fields[i];
		struct etw_schema_field raw;

		memcpy(&raw, p->base + schema->fields + i * sizeof(raw), sizeof(raw));
		f->name = p->base + raw.name;
		f->type = raw.type;
		f->array = raw.array;
		/* A format that came later changes how a value looks, not what it is. */
		f->format = raw.format < ETW_NR_FORMATS ? raw.format : ETW_FORMAT_DEFAULT;
		f->count = raw.count;
		f->element_size = raw.type == ETW_TYPE_CHARS ? raw.count : type_sizes[raw.type];
		if (raw.type == ETW_TYPE_STRING || raw.type == ETW_TYPE_BINARY || raw.array == ETW_ARRAY_COUNTED)
			f->size = ETW_SIZE_VARIES;
		else if (raw.array == ETW_ARRAY_FIXED)
			f->size = f->element_size * raw.count;
		else
			f->size = f->element_size;
		f->offset = offset;
		info->offsets[i] = offset;
		if (offset != ETW_SIZE_VARIES)
			offset = f->size == ETW_SIZE_VARIES ? ETW_SIZE_VARIES : offset + f->size;
		f->map = raw.map ? map_make(p, raw.map) : NULL;
		f->ctf_name = field_ctf_name(p, fields, i,
					     raw.type == ETW_TYPE_BINARY || raw.array == ETW_ARRAY_COUNTED);
	}
	info->offsets[i] = offset;
	info->pub.fields = fields;
	info->pub.nr_fields = schema->nr_fields;
	info->pub.payload_size = offset;
}

int etw_class_parse(const void *entry, size_t len, size_t *used, struct etw_class **cls)
{
	struct etw_schema schema;
	struct class_info *info;
	struct parser p = { .base = entry };
	size_t names = 0, room;
	const char *what;
	__u32 i;

	if (len < sizeof(schema))
		return etw_error(-EBADMSG, "schema entry: cut off in its first %zu bytes", sizeof(schema));
	memcpy(&schema, entry, sizeof(schema));
	if (schema.size < sizeof(schema) || schema.size % 8 || schema.size > CLASS_ENTRY_MAX)
		return etw_error(-EBADMSG, "schema entry: its size %u is not possible", schema.size);
	if (schema.size > len)
		return etw_error(-EBADMSG, "schema entry: %u bytes long, and cut off after %zu", schema.size, len);
	p.size = schema.size;
	what = string_at(&p, schema.provider);
	if (!what || !etw_name_valid(what))
		return etw_error(-EBADMSG, "schema entry %u: its provider's name is malformed", schema.class_id);
	what = string_at(&p, schema.name);
	if (!what || !etw_name_valid(what))
		return etw_error(-EBADMSG, "schema entry %u: its name is malformed", schema.class_id);
	if (schema.ctf_name && !printable(string_at(&p, schema.ctf_name)))
		return etw_error(-EBADMSG, "schema entry %u: its CTF name is malformed", schema.class_id);
	if (schema.description && !string_at(&p, schema.description))
		return etw_error(-EBADMSG, "schema entry %u: its description is not terminated", schema.class_id);
	if (schema.nr_fields > ETW_MAX_FIELDS)
		return etw_error(-EBADMSG, "schema entry %u: %u fields, more than %u", schema.class_id,
				 schema.nr_fields, ETW_MAX_FIELDS);
	if (schema.nr_fields && (schema.fields < sizeof(schema) || schema.fields > schema.size ||
				 (schema.size - schema.fields) / sizeof(struct etw_schema_field) < schema.nr_fields))
		return etw_error(-EBADMSG, "schema entry %u: its fields lie outside", schema.class_id);
	for (i = 0; i < schema.nr_fields; i++) {
		struct etw_schema_field f;

		memcpy(&f, p.base + schema.fields + i * sizeof(f), sizeof(f));
		what = field_check(&p, &f);
		if (what)
			return etw_error(-EBADMSG, "schema entry %u: field %u: %s", schema.class_id, i, what);
		names += strlen(p.base + f.name) + 12;
		if (names > 2 * CLASS_ENTRY_MAX || strlen(p.base + f.name) > 255)
			return etw_error(-EBADMSG, "schema entry %u: field %u: its name is too long", schema.class_id,
					 i);
	}

	room = sizeof(*info) + schema.size +
	       schema.nr_fields * (sizeof(struct etw_field) + sizeof(struct etw_map) + 8 + 32) +
	       p.map_values * sizeof(struct etw_map_value) + names + 2 * ETW_NAME_SIZE + 64 + 64;
	info = calloc(1, room);
	if (!info)
		return etw_error_errno(-ENOMEM, "event class");
	p.heap = (char *)info;
	take(&p, sizeof(*info));
	p.base = memcpy(take(&p, schema.size), entry, schema.size);
	info->pub.schema = (const struct etw_schema *)p.base;
	info->pub.class_id = schema.class_id;
	info->pub.index = schema.class_id;
	info->pub.provider = p.base + schema.provider;
	info->pub.name = p.base + schema.name;
	info->pub.description = schema.description ? p.base + schema.description : "";
	memcpy(info->pub.guid, schema.guid, 16);
	info->pub.keyword = schema.keyword;
	info->pub.event_id = schema.event_id;
	info->pub.task = schema.task;
	info->pub.version = schema.version;
	info->pub.level = schema.level;
	info->pub.opcode = schema.opcode;
	info->own_ctf_name = schema.ctf_name != 0;
	info->pub.ctf_name = schema.ctf_name ? p.base + schema.ctf_name : class_ctf_name(&p, &info->pub);
	fields_make(&p, info, &schema);
	if (used)
		*used = schema.size;
	*cls = &info->pub;
	return 0;
}

void etw_class_free(struct etw_class *cls)
{
	free(cls);
}

int etw_class_field(const struct etw_class *cls, const char *name)
{
	__u32 i;

	for (i = 0; i < cls->nr_fields; i++)
		if (!strcmp(cls->fields[i].name, name))
			return i;
	for (i = 0; i < cls->nr_fields; i++)
		if (!strcmp(cls->fields[i].ctf_name, name))
			return i;
	return -1;
}

int etw_class_fields(const struct etw_class *cls, const char *const *names, int *index, unsigned int nr)
{
	unsigned int i;
	int missing = 0;

	for (i = 0; i < nr; i++) {
		index[i] = etw_class_field(cls, names[i]);
		missing += index[i] < 0;
	}
	return missing;
}

int etw_class_match(const struct etw_class *cls, const char *text)
{
	char full[2 * ETW_NAME_SIZE];
	size_t len = strlen(text);

	if (!fnmatch(text, cls->name, 0) || !fnmatch(text, cls->ctf_name, 0))
		return 1;
	snprintf(full, sizeof(full), "%s:%s", cls->provider, len && text[len - 1] == ':' ? "" : cls->name);
	return !fnmatch(text, full, 0);
}

long etw_class_walk(const struct etw_class *cls, const __u8 *payload, size_t room, __u32 *offsets, unsigned int *bad)
{
	size_t pos = 0;
	__u32 i;

	for (i = 0; i < cls->nr_fields; i++) {
		const struct etw_field *f = &cls->fields[i];
		size_t size = f->size;

		offsets[i] = pos;
		if (f->type == ETW_TYPE_STRING) {
			const __u8 *end = memchr(payload + pos, 0, room - pos);

			if (!end)
				goto bad;
			size = end - (payload + pos) + 1;
		} else if (size == ETW_SIZE_VARIES) {
			__u32 n;

			if (room - pos < sizeof(n))
				goto bad;
			memcpy(&n, payload + pos, sizeof(n));
			size = sizeof(n) + (size_t)n * f->element_size;
		}
		if (size > room - pos)
			goto bad;
		pos += size;
	}
	offsets[i] = pos;
	return pos;
bad:
	*bad = i;
	return -1;
}

struct etw_classes {
	struct etw_class **classes;
	unsigned int nr;
	unsigned int room;
};

int etw_classes_new(struct etw_classes **table)
{
	*table = calloc(1, sizeof(**table));
	return *table ? 0 : etw_error_errno(-ENOMEM, "class table");
}

void etw_classes_free(struct etw_classes *table)
{
	unsigned int i;

	if (!table)
		return;
	for (i = 0; i < table->nr; i++)
		etw_class_free(table->classes[i]);
	free(table->classes);
	free(table);
}

int etw_classes_add(struct etw_classes *table, const void *buf, size_t len)
{
	const char *p = buf;
	int added = 0;

	while (len) {
		struct etw_class *cls;
		size_t used;
		int err = etw_class_parse(p, len, &used, &cls);

		if (err)
			return err;
		if (cls->class_id != table->nr || table->nr >= ETW_MAX_CLASSES) {
			err = etw_error(-EBADMSG, "schema entry %u: number %u was expected", cls->class_id, table->nr);
			etw_class_free(cls);
			return err;
		}
		if (table->nr == table->room) {
			unsigned int room = table->room ? 2 * table->room : 64;
			void *mem = realloc(table->classes, room * sizeof(*table->classes));

			if (!mem) {
				etw_class_free(cls);
				return etw_error_errno(-ENOMEM, "class table");
			}
			table->classes = mem;
			table->room = room;
		}
		table->classes[table->nr++] = cls;
		p += used;
		len -= used;
		added++;
	}
	return added;
}

unsigned int etw_classes_count(const struct etw_classes *table)
{
	return table->nr;
}

const struct etw_class *etw_classes_get(const struct etw_classes *table, unsigned int class_id)
{
	return class_id < table->nr ? table->classes[class_id] : NULL;
}

const struct etw_class *etw_classes_find(const struct etw_classes *table, const char *provider, const char *name)
{
	unsigned int i;

	for (i = 0; i < table->nr; i++) {
		const struct etw_class *cls = table->classes[i];

		if ((!provider || !strcmp(provider, cls->provider)) &&
		    (!strcmp(name, cls->name) || !strcmp(name, cls->ctf_name)))
			return cls;
	}
	return NULL;
}
