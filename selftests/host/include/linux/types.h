/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's short names of types, for pure code of the module compiled in user space. Knows nothing else of the kernel. */
#ifndef ETW_HOST_LINUX_TYPES_H
#define ETW_HOST_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef unsigned long long u64;
typedef __s32 s32;
typedef long long s64;

struct list_head {
	struct list_head *next, *prev;
};

#define __rcu
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define __always_inline inline __attribute__((always_inline))

#endif
