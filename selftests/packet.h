/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An independent reader of schema entries and packets, written from the uapi header alone. It checks every rule that a
 * packet must keep; it must not share code with the module or with libetw, whose mistakes it has to find.
 */
#ifndef ETW_SELFTEST_PACKET_H
#define ETW_SELFTEST_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/etw.h>

struct field {
	char name[64];
	uint8_t type;
	uint8_t array;
	uint8_t format;
	uint32_t count;
};

struct class {
	uint32_t id;
	uint8_t guid[16];
	uint64_t keyword;
	uint16_t event_id;
	uint16_t task;
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
	char provider[64];
	char name[64];
	char ctf_name[128];
	unsigned int nr_fields;
	struct field fields[ETW_MAX_FIELDS];
};

/* A copy of a session's class table. Zero-initialised is empty. */
struct schema {
	struct class **classes;
	uint32_t nr;
};

/* Reads the classes that are not in @schema yet. 0, or a negative errno; -EPROTO with *@why for a malformed entry. */
int schema_update(struct schema *schema, int session, const char **why);
/* One entry, as EVENT_LIST gives it, too. NULL with *@why if it is malformed. The caller frees the class. */
struct class *schema_parse(const void *entry, size_t room, const char **why);
void schema_free(struct schema *schema);

struct event {
	const struct class *class;
	uint64_t time;
	uint64_t seq;			/* of its packet */
	uint32_t cpu;
	int32_t tid;
	int32_t pid;
	bool extended;
	const uint8_t *payload;		/* in the mapping: valid during the call only */
	uint32_t size;
};

/* The number in a field of @event; false if there is no such number. */
bool event_number(const struct event *event, const char *field, int64_t *value);
/* The text in a field of @event, "" if there is none; at most 255 bytes, valid until the fourth call after this one. */
const char *event_text(const struct event *event, const char *field);
/* True if the class of @event belongs to the provider with this name or alias and has this event name. */
bool event_is(const struct event *event, const char *name);

typedef void (*event_fn)(const struct event *event, void *arg);

/* What must hold from one packet of a relay to the next. */
struct stream {
	uint32_t cpu;
	uint32_t subbuf_size;
	bool overwrite;
	uint8_t uuid[16];
	uint64_t start_time;

	uint64_t packets;
	uint64_t records;
	uint64_t gaps;			/* packets missing between those seen */
	uint64_t last_seq;
	uint64_t last_end;
	uint64_t last_lost;
	uint64_t last_time;
};

/*
 * Walks the packet @sb at @data, checks each rule and calls @fn for each record. NULL, or the rule that was broken.
 * Changes @stream.
 */
const char *packet_walk(struct stream *stream, const struct etw_subbuf *sb, const uint8_t *data,
			const struct schema *schema, event_fn fn, void *arg);

#endif
