/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program's side of provider files: schemas, registering, writes, as calls that give -errno. It knows the ABI header only,
 * and asserts nothing.
 */
#ifndef ETW_SELFTEST_EMITTER_H
#define ETW_SELFTEST_EMITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/etw.h>

/* A schema being made, in one piece of memory; strings are put behind everything else by schema_done(). */
struct schema_maker {
	_Alignas(8) uint8_t bytes[ETW_MAX_SCHEMA + 4096];
	uint32_t used;
	struct {
		uint32_t at;
		const char *text;
	} strings[ETW_MAX_FIELDS + 300];
	unsigned int nr_strings;
};

struct map_value {
	uint64_t value;
	const char *name;
};

/* The keyword, level and so on can be set in the head afterwards: schema_head(). */
void schema_begin(struct schema_maker *m, const char *event, unsigned int nr_fields);
struct etw_schema *schema_head(struct schema_maker *m);
struct etw_schema_field *schema_field(struct schema_maker *m, unsigned int i, const char *name, uint8_t type);
/* The map of field @i: pairs of value and name up to a NULL name. */
void schema_map(struct schema_maker *m, unsigned int i, uint32_t kind, const struct map_value *values);
/* The whole size. */
uint32_t schema_done(struct schema_maker *m);

/* Provider fds, or -errno. */
int provider_register(int device, const char *name);
int provider_event(int provider, const void *schema, uint32_t size);	/* number, or -errno */
/* An event of one u64 "n", level informational. */
int provider_counter(int provider, const char *event, uint64_t keyword);
/* Its enable bytes, or NULL. */
const volatile uint8_t *provider_map(int provider);
struct etw_enabled_query provider_query(int provider);

/* Adds an event to a write of @used bytes: the new number of bytes. */
size_t write_add(void *buf, size_t used, unsigned int index, const void *payload, uint32_t len);
/* One event with one u64. Bytes, or -errno. */
ssize_t write_number(int provider, unsigned int index, uint64_t n);

/* The calling process becomes @uid without capabilities. 0 or -errno. */
int become_user(uid_t uid);

#endif
