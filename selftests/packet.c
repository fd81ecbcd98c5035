// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads schema entries and packets and checks them: see packet.h. It must not know how the module makes them.
 */
#include "packet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static const char *fail(const char *format, ...)
{
	static char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

static uint64_t get_le(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* Copies the string at offset @at of an entry; false if it does not end within the entry or does not fit. */
static bool entry_string(char *to, size_t room, const uint8_t *entry, uint32_t size, uint32_t at)
{
	const char *from = (const char *)entry + at;
	size_t len;

	if (at >= size)
		return false;
	len = strnlen(from, size - at);
	if (len == size - at || len >= room)
		return false;
	memcpy(to, from, len + 1);
	return true;
}

static unsigned int number_size(uint8_t type)
{
	switch (type) {
	case ETW_TYPE_U8:
	case ETW_TYPE_S8:
	case ETW_TYPE_BOOL:
		return 1;
	case ETW_TYPE_U16:
	case ETW_TYPE_S16:
		return 2;
	case ETW_TYPE_U32:
	case ETW_TYPE_S32:
	case ETW_TYPE_F32:
		return 4;
	case ETW_TYPE_U64:
	case ETW_TYPE_S64:
	case ETW_TYPE_POINTER:
	case ETW_TYPE_F64:
		return 8;
	default:
		return 0;
	}
}

static bool field_parse(struct field *field, const struct etw_schema_field *from, const uint8_t *entry, uint32_t size)
{
	struct etw_schema_map map;
	char name[64];
	uint32_t i;

	if (!entry_string(field->name, sizeof(field->name), entry, size, from->name) || !field->name[0])
		return false;
	if (!from->type || from->type >= ETW_NR_TYPES || from->array > ETW_ARRAY_COUNTED ||
	    from->format >= ETW_NR_FORMATS || from->reserved)
		return false;
	if (from->array != ETW_ARRAY_NONE && !number_size(from->type))
		return false;
	if ((from->array == ETW_ARRAY_FIXED || from->type == ETW_TYPE_CHARS) && !from->count)
		return false;
	if (from->map) {
		if (from->map & 7 || from->map > size - sizeof(map))
			return false;
		memcpy(&map, entry + from->map, sizeof(map));
		if (map.kind > ETW_MAP_FLAGS || !map.nr ||
		    map.nr > (size - from->map - sizeof(map)) / sizeof(struct etw_schema_value))
			return false;
		for (i = 0; i < map.nr; i++) {
			struct etw_schema_value v;

			memcpy(&v, entry + from->map + sizeof(map) + i * sizeof(v), sizeof(v));
			if (v.reserved || !entry_string(name, sizeof(name), entry, size, v.name) || !name[0])
				return false;
		}
	}
	field->type = from->type;
	field->array = from->array;
	field->format = from->format;
	field->count = from->count;
	return true;
}

struct class *schema_parse(const void *data, size_t room, const char **why)
{
	const uint8_t *entry = data;
	struct etw_schema head;
	struct class *class;
	unsigned int i;
	char text[256];

	if (room < sizeof(head)) {
		*why = "entry shorter than struct etw_schema";
		return NULL;
	}
	memcpy(&head, entry, sizeof(head));
	if (head.size & 7 || head.size < sizeof(head) || head.size > room) {
		*why = fail("entry size %u of %zu", head.size, room);
		return NULL;
	}
	class = calloc(1, sizeof(*class));
	class->id = head.class_id;
	memcpy(class->guid, head.guid, 16);
	class->keyword = head.keyword;
	class->event_id = head.event_id;
	class->task = head.task;
	class->version = head.version;
	class->level = head.level;
	class->opcode = head.opcode;
	class->nr_fields = head.nr_fields;
	*why = NULL;
	if (head.reserved)
		*why = "entry's reserved byte is not 0";
	else if (!entry_string(class->provider, sizeof(class->provider), entry, head.size, head.provider))
		*why = "provider name outside its entry";
	else if (!entry_string(class->name, sizeof(class->name), entry, head.size, head.name) || !class->name[0])
		*why = "event name outside its entry, or empty";
	else if (head.ctf_name && !entry_string(class->ctf_name, sizeof(class->ctf_name), entry, head.size, head.ctf_name))
		*why = "CTF name outside its entry";
	else if (head.description && !entry_string(text, sizeof(text), entry, head.size, head.description))
		*why = "description outside its entry";
	else if (head.nr_fields > ETW_MAX_FIELDS ||
		 (head.nr_fields && (head.fields & 3 || head.fields > head.size ||
				     head.nr_fields > (head.size - head.fields) / sizeof(struct etw_schema_field))))
		*why = "fields outside their entry";
	for (i = 0; !*why && i < head.nr_fields; i++) {
		struct etw_schema_field f;

		memcpy(&f, entry + head.fields + i * sizeof(f), sizeof(f));
		if (!field_parse(&class->fields[i], &f, entry, head.size))
			*why = fail("%s: field %u is malformed", class->name, i);
	}
	if (*why) {
		free(class);
		return NULL;
	}
	return class;
}

int schema_update(struct schema *schema, int session, const char **why)
{
	static uint8_t buf[256 << 10] __attribute__((aligned(8)));
	struct etw_schema_read read;
	struct class *class;
	uint32_t at, i;

	for (;;) {
		memset(buf, 0xcc, sizeof(buf));
		memset(&read, 0, sizeof(read));
		read.size = sizeof(read);
		read.from = schema->nr;
		read.buf = (uintptr_t)buf;
		read.buf_size = sizeof(buf);
		read.used = read.nr = read.nr_classes = 0xcccccccc;
		if (ioctl(session, ETW_IOC_SESSION_SCHEMA_READ, &read))
			return -errno;
		if (!read.nr)
			return 0;
		schema->classes = realloc(schema->classes, (schema->nr + read.nr) * sizeof(*schema->classes));
		for (i = at = 0; i < read.nr; i++, at += ((struct etw_schema *)(buf + at))->size) {
			class = schema_parse(buf + at, read.used - at, why);
			if (class && class->id != schema->nr) {
				*why = fail("class %u found where %u belongs", class->id, schema->nr);
				free(class);
				class = NULL;
			}
			if (!class)
				return -EPROTO;
			schema->classes[schema->nr++] = class;
		}
		if (at != read.used) {
			*why = fail("%u bytes used, entries take %u", read.used, at);
			return -EPROTO;
		}
	}
}

void schema_free(struct schema *schema)
{
	while (schema->nr)
		free(schema->classes[--schema->nr]);
	free(schema->classes);
	schema->classes = NULL;
}

/* Bytes that @field takes at @p, where @room bytes are left; -1 if it does not fit or breaks a rule. */
static int64_t field_size(const struct field *field, const uint8_t *p, size_t room)
{
	uint64_t size = number_size(field->type);

	if (field->array == ETW_ARRAY_FIXED) {
		size *= field->count;
	} else if (field->array == ETW_ARRAY_COUNTED) {
		if (room < 4)
			return -1;
		size = 4 + size * get_le(p, 4);
	} else {
		switch (field->type) {
		case ETW_TYPE_CHARS:
			size = field->count;
			break;
		case ETW_TYPE_STRING:
			size = strnlen((const char *)p, room) + 1;
			break;
		case ETW_TYPE_BINARY:
			if (room < 4)
				return -1;
			size = 4 + get_le(p, 4);
			break;
		case ETW_TYPE_GUID:
		case ETW_TYPE_IPV6:
			size = 16;
			break;
		case ETW_TYPE_IPV4:
			size = 4;
			break;
		case ETW_TYPE_MAC:
			size = 6;
			break;
		case ETW_TYPE_BOOL:
			if (room && *p > 1)
				return -1;
			break;
		}
	}
	return size && size <= room ? (int64_t)size : -1;
}

/* Bytes of the payload of @class at @p, or -1 with the field in *@bad. */
static int64_t payload_size(const struct class *class, const uint8_t *p, size_t room, unsigned int *bad)
{
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < class->nr_fields; i++) {
		int64_t size = field_size(&class->fields[i], p + used, room - used);

		if (size < 0) {
			*bad = i;
			return -1;
		}
		used += size;
	}
	return used;
}

static const struct field *field_find(const struct event *event, const char *name, const uint8_t **at)
{
	const uint8_t *p = event->payload;
	unsigned int i;

	for (i = 0; i < event->class->nr_fields; i++) {
		const struct field *field = &event->class->fields[i];

		*at = p;
		if (!strcmp(field->name, name))
			return field;
		p += field_size(field, p, event->payload + event->size - p);
	}
	return NULL;
}

bool event_number(const struct event *event, const char *name, int64_t *value)
{
	const uint8_t *at;
	const struct field *field = field_find(event, name, &at);
	uint64_t v;

	if (!field || field->array != ETW_ARRAY_NONE || !number_size(field->type))
		return false;
	v = get_le(at, number_size(field->type));
	switch (field->type) {
	case ETW_TYPE_S8:
		*value = (int8_t)v;
		break;
	case ETW_TYPE_S16:
		*value = (int16_t)v;
		break;
	case ETW_TYPE_S32:
		*value = (int32_t)v;
		break;
	default:
		*value = v;
	}
	return true;
}

const char *event_text(const struct event *event, const char *name)
{
	static char texts[4][256];
	static unsigned int turn;
	const uint8_t *at;
	const struct field *field = field_find(event, name, &at);
	char *text = texts[turn++ & 3];
	size_t len;

	text[0] = '\0';
	if (!field || (field->type != ETW_TYPE_STRING && field->type != ETW_TYPE_CHARS))
		return text;
	len = field->type == ETW_TYPE_CHARS ? field->count : strlen((const char *)at);
	if (len > 255)
		len = 255;
	memcpy(text, at, len);
	text[len] = '\0';
	return text;
}

bool event_is(const struct event *event, const char *name)
{
	return !strcmp(event->class->name, name);
}

static const char *header_check(struct stream *s, const struct etw_subbuf *sb, const struct etw_packet_header *h)
{
	if (h->magic != ETW_CTF_MAGIC)
		return fail("magic %#x", h->magic);
	if (memcmp(h->uuid, s->uuid, 16))
		return "the uuid is not the session's";
	if (h->stream_id)
		return fail("stream_id %u", h->stream_id);
	if (h->cpu_id != s->cpu)
		return fail("cpu_id %u in the relay of CPU %u", h->cpu_id, s->cpu);
	if (h->content_size & 7 || h->packet_size & 7 || h->content_size > h->packet_size)
		return fail("content %llu, packet %llu bits", h->content_size, h->packet_size);
	if (h->content_size != sb->content_size * 8ULL || h->packet_size != sb->packet_size * 8ULL)
		return fail("sizes: header %llu/%llu bits, GET %u/%u bytes", h->content_size, h->packet_size,
			    sb->content_size, sb->packet_size);
	if (sb->packet_size > s->subbuf_size || sb->content_size >= s->subbuf_size)
		return fail("content %u, packet %u in a sub-buffer of %u", sb->content_size, sb->packet_size, s->subbuf_size);
	if (h->packet_seq_num != sb->seq || h->timestamp_begin != sb->begin || h->timestamp_end != sb->end ||
	    h->events_discarded != sb->lost)
		return "the header and what GET returned differ";
	if (h->timestamp_begin > h->timestamp_end)
		return fail("begins at %llu, ends at %llu", h->timestamp_begin, h->timestamp_end);
	if (!h->packet_seq_num && h->timestamp_begin != s->start_time)
		return fail("packet 0 begins at %llu, the session at %llu", h->timestamp_begin,
			    (unsigned long long)s->start_time);
	if (h->timestamp_begin < s->start_time)
		return "begins before the session";
	if (!s->packets) {
		s->gaps += h->packet_seq_num;
		return s->overwrite || !h->packet_seq_num ? NULL : fail("first packet has number %llu", h->packet_seq_num);
	}
	if (h->timestamp_begin < s->last_end)
		return fail("begins at %llu, before the end %llu of the packet before", h->timestamp_begin,
			    (unsigned long long)s->last_end);
	if (h->events_discarded < s->last_lost)
		return fail("events_discarded went from %llu to %llu", (unsigned long long)s->last_lost, h->events_discarded);
	if (h->packet_seq_num <= s->last_seq || (!s->overwrite && h->packet_seq_num != s->last_seq + 1))
		return fail("packet %llu after %llu", h->packet_seq_num, (unsigned long long)s->last_seq);
	s->gaps += h->packet_seq_num - s->last_seq - 1;
	return NULL;
}

const char *packet_walk(struct stream *s, const struct etw_subbuf *sb, const uint8_t *data,
			const struct schema *schema, event_fn fn, void *arg)
{
	struct etw_packet_header h;
	uint64_t time = 0, at = sizeof(h);
	uint32_t records = 0;
	const char *why;

	if (sb->content_size <= sizeof(h) || sb->content_size > s->subbuf_size)
		return fail("content of %u bytes", sb->content_size);
	memcpy(&h, data, sizeof(h));
	why = header_check(s, sb, &h);
	if (why)
		return why;
	if (sb->nr_classes > schema->nr)
		return fail("needs %u classes, the table has %u", sb->nr_classes, schema->nr);

	while (at < sb->content_size) {
		const uint8_t *p = data + at;
		uint64_t room = sb->content_size - at;
		struct event e = { .cpu = s->cpu, .seq = sb->seq };
		unsigned int bad = 0;
		uint32_t id;
		int64_t size;

		if (room < sizeof(struct etw_record_compact))
			return fail("record %u is cut at offset %llu", records, (unsigned long long)at);
		id = get_le(p, 2);
		if (id == ETW_ID_EXTENDED) {
			if (room < sizeof(struct etw_record_extended))
				return fail("record %u is cut at offset %llu", records, (unsigned long long)at);
			id = get_le(p + 2, 4);
			e.time = get_le(p + 6, 8);
			e.extended = true;
			p += 14;
			if (records && e.time < time)
				return fail("record %u: time goes from %llu to %llu", records, (unsigned long long)time,
					    (unsigned long long)e.time);
		} else {
			uint32_t low = get_le(p + 2, 4);

			if (!records)
				return "the first record is not extended";
			e.time = time + (uint32_t)(low - (uint32_t)time);
			p += 6;
		}
		e.tid = get_le(p, 4);
		e.pid = get_le(p + 4, 4);
		p += 8;
		time = e.time;
		if (e.time < h.timestamp_begin || e.time > h.timestamp_end)
			return fail("record %u at %llu outside its packet %llu..%llu", records, (unsigned long long)e.time,
				    h.timestamp_begin, h.timestamp_end);
		if (id >= sb->nr_classes)
			return fail("record %u has class %u, the packet needs %u", records, id, sb->nr_classes);
		e.class = schema->classes[id];
		size = payload_size(e.class, p, data + sb->content_size - p, &bad);
		if (size < 0)
			return fail("record %u (%s): field %s does not parse", records, e.class->name,
				    e.class->fields[bad].name);
		e.payload = p;
		e.size = size;
		records++;
		at = p + size - data;
		if (fn)
			fn(&e, arg);
	}
	if (at != sb->content_size)
		return fail("records end at %llu, the content at %u", (unsigned long long)at, sb->content_size);
	if (records != sb->records)
		return fail("%u records found, GET says %u", records, sb->records);
	s->packets++;
	s->records += records;
	s->last_seq = sb->seq;
	s->last_end = sb->end;
	s->last_lost = sb->lost;
	s->last_time = time;
	return NULL;
}
