/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The head of one record: decode it. Inline, because it is what reading a trace consists of. It must not know classes.
 */
#ifndef ETW_RECORD_H
#define ETW_RECORD_H

#include <string.h>

#include <linux/etw.h>

struct record {
	__u64 time;
	__u32 id;
	__s32 tid;
	__s32 pid;
};

/*
 * @last: time of the record before, or the packet's begin. Returns the bytes that header and contexts take, 0 if there
 * is no room for them.
 */
static inline unsigned int record_head(const __u8 *p, size_t room, __u64 last, struct record *r)
{
	__u32 low;
	__u16 id;

	if (room < sizeof(struct etw_record_compact))
		return 0;
	memcpy(&id, p, 2);
	if (__builtin_expect(id != ETW_ID_EXTENDED, 1)) {
		r->id = id;
		memcpy(&low, p + 2, 4);
		/* The low half of the first time that is not below @last. */
		r->time = last + (__u32)(low - (__u32)last);
		memcpy(&r->tid, p + 6, 4);
		memcpy(&r->pid, p + 10, 4);
		return sizeof(struct etw_record_compact);
	}
	if (room < sizeof(struct etw_record_extended))
		return 0;
	memcpy(&r->id, p + 2, 4);
	memcpy(&r->time, p + 6, 8);
	memcpy(&r->tid, p + 14, 4);
	memcpy(&r->pid, p + 18, 4);
	return sizeof(struct etw_record_extended);
}

#endif /* ETW_RECORD_H */
