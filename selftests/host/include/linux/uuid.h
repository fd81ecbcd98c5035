/* SPDX-License-Identifier: GPL-2.0-only */
/* uuid_t, for code of the module compiled in user space. */
#ifndef ETW_HOST_LINUX_UUID_H
#define ETW_HOST_LINUX_UUID_H

#include <string.h>

#include <linux/types.h>

typedef struct {
	unsigned char b[16];
} uuid_t;

#define UUID_INIT(a, b, c, ...)	\
	((uuid_t){ { (a) >> 24 & 0xff, (a) >> 16 & 0xff, (a) >> 8 & 0xff, (a) & 0xff, (b) >> 8 & 0xff, (b) & 0xff, \
		     (c) >> 8 & 0xff, (c) & 0xff, __VA_ARGS__ } })

static inline bool uuid_equal(const uuid_t *a, const uuid_t *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static inline bool uuid_is_null(const uuid_t *a)
{
	static const uuid_t null;

	return uuid_equal(a, &null);
}

#endif
