/* SPDX-License-Identifier: GPL-2.0-only */
/* See etw-host.h. A key is a number here. */
#ifndef ETW_HOST_JUMP_LABEL_H
#define ETW_HOST_JUMP_LABEL_H

struct static_key_false {
	int enabled;
};

#define STATIC_KEY_FALSE_INIT		{ 0 }
#define static_branch_unlikely(key)	((key)->enabled)
#define static_branch_enable(key)	((void)((key)->enabled = 1))
#define static_branch_disable(key)	((void)((key)->enabled = 0))

#endif
