/* SPDX-License-Identifier: GPL-2.0-only */
/* A class as the self-contained struct etw_schema of the ABI, and back. Knows classes only. */
#ifndef ETW_SCHEMA_H
#define ETW_SCHEMA_H

#include "class.h"

/* Bytes of @class's entry, a multiple of 8. */
u32 etw_schema_size(const struct etw_class *class);
/* Fill @buf, etw_schema_size() bytes, zeroed or not. */
void etw_schema_fill(void *buf, const struct etw_class *class, u32 class_id);
/*
 * Bytes of a payload that do not vary, and where the kernel pointers are: sets @class->scrub. EINVAL: one lies behind
 * a variable field.
 */
int etw_schema_scan(struct etw_class *class);

/*
 * Makes the class that @blob of @size bytes, the kernel's copy of what user space or another module gave, describes as
 * one of @provider. All of it is checked. EINVAL malformed, E2BIG too many fields, values or bytes, ENOMEM. To be freed
 * by etw_schema_unmake().
 */
struct etw_class *etw_schema_make(const void *blob, u32 size, struct etw_provider *provider);
void etw_schema_unmake(struct etw_class *class);

/* Bytes of one value of an ETW_TYPE_*, or of one byte of CHARS; 0: it varies, or there is no such type. */
u32 etw_type_size(u8 type);

#endif
