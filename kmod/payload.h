/* SPDX-License-Identifier: GPL-2.0-only */
/* Is a payload from outside what its schema says? Pure: no locks, no allocation, no user memory. Knows classes only. */
#ifndef ETW_PAYLOAD_H
#define ETW_PAYLOAD_H

#include "class.h"

/*
 * Records have no length, so what is written must be what the fields say to the byte: every part within @len, strings
 * terminated, booleans 0 or 1, nothing left over. Work and reach are bounded by @nr_fields and @len, whatever the bytes
 * are. @payload is the kernel's own copy.
 *
 * 0, or EINVAL with the first field that is not right in @field (may be NULL); @nr_fields if bytes are left over.
 */
int etw_payload_check(const struct etw_field *fields, u32 nr_fields, const void *payload, u32 len, u32 *field);

#endif
