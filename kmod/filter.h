/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which events and which tasks an enable wants. Pure: no locks, no allocation; also compiled in user space by the
 * host tests.
 */
#ifndef ETW_FILTER_H
#define ETW_FILTER_H

#include <linux/types.h>

/* Level and keywords as stored: etw_rule_init() has applied ETW's special cases, so the test has none. */
struct etw_rule {
	u64 any;
	u64 all;
	u8 level;			/* 255 for "every level" */
	bool ignore_keyword_0;
};

void etw_rule_init(struct etw_rule *rule, u8 level, u64 any, u64 all, bool ignore_keyword_0);
bool etw_rule_passes(const struct etw_rule *rule, u8 event_level, u64 event_keyword);

#define ETW_FILTER_HASH 1024

/*
 * A set of task numbers of the initial pid namespace. Constant once published. Most rejections cost one test each;
 * the exact answer is a binary search.
 */
struct etw_filter {
	u8 hash[ETW_FILTER_HASH];	/* 0: certainly not. Bytes, not bits: one instruction tests one */
	u32 nr;
	s32 pids[];			/* ascending, no duplicates */
};

/* Takes @filter->pids[0..@nr), in any order, and completes the filter. */
void etw_filter_init(struct etw_filter *filter, u32 nr);
/* @hash, of ETW_FILTER_HASH bytes, is then also that of @filter. */
void etw_filter_add_hash(u8 *hash, const struct etw_filter *filter);
bool etw_filter_has_exact(const struct etw_filter *filter, s32 pid);

static __always_inline u8 etw_filter_may_have(const u8 *hash, s32 pid)
{
	return hash[(u32)pid % ETW_FILTER_HASH];
}

static inline bool etw_filter_has(const struct etw_filter *filter, s32 pid)
{
	return etw_filter_may_have(filter->hash, pid) && etw_filter_has_exact(filter, pid);
}

/* Is @name among the @nr names of @size bytes at @names? */
bool etw_name_listed(const char *name, const char *names, u32 nr, u32 size);
/* Is @name a name: [A-Za-z][A-Za-z0-9_.-]*, terminated within @size bytes, the rest zero? */
bool etw_name_valid(const char *name, u32 size);

#endif
