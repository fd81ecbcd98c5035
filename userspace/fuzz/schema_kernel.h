/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's side of the target schema: kmod/schema.c and the library call different things by one name. */
#ifndef FUZZ_SCHEMA_KERNEL_H
#define FUZZ_SCHEMA_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define SCHEMA_NAME 16

/* A class as plain numbers and texts. */
struct schema_plan {
	char provider[SCHEMA_NAME], name[SCHEMA_NAME], ctf_name[SCHEMA_NAME], description[SCHEMA_NAME];
	uint32_t nr_fields;
	struct schema_plan_field {
		char name[SCHEMA_NAME];
		uint8_t type, array, format, map;	/* map: 0 none, else its number of values plus 1 */
		uint32_t count;
	} fields[128];
};

/* Does the module take @payload for one of that class, to the byte? */
int schema_kernel_payload(const struct schema_plan *plan, const void *payload, uint32_t len);

/* What the module makes of it: an entry (malloc) and its size; the offsets of kernel pointers. -1: the module refuses it. */
int schema_kernel(const struct schema_plan *plan, uint32_t class_id, void **entry, uint32_t *size, uint16_t scrub[2]);

#endif
