/* SPDX-License-Identifier: GPL-2.0-only */
/* What several providers tell of a task, in the units of the trace. Knows no event. */
#ifndef ETW_PROVIDERS_TASK_H
#define ETW_PROVIDERS_TASK_H

#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/string.h>

#include "../compat.h"

/*
 * Two loads and two stores. A name that changes meanwhile may come out mixed of both; it is zero-padded, and its last
 * byte is always zero.
 */
static __always_inline void etw_copy_comm(char *to, const struct task_struct *task)
{
	static_assert(sizeof(task->comm) == TASK_COMM_LEN && TASK_COMM_LEN == 16);
	put_unaligned(get_unaligned((const u64 *)task->comm), (u64 *)to);
	put_unaligned(get_unaligned((const u64 *)task->comm + 1), (u64 *)to + 1);
}

/* 20 is nice 0, negative is real time: the scale that readers of these traces know. */
static __always_inline s32 etw_prio(const struct task_struct *task)
{
	return task->prio - MAX_RT_PRIO;
}

#endif
