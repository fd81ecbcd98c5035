// SPDX-License-Identifier: GPL-2.0-only
/* The decision whether an event or a task is wanted. Pure, as filter.h says. */
#include <linux/sort.h>
#include <linux/string.h>

#include "filter.h"

/* ETW: level 0 is every level; any 0 is every keyword, and all is then not used. */
void etw_rule_init(struct etw_rule *rule, u8 level, u64 any, u64 all, bool ignore_keyword_0)
{
	rule->level = level ? level : 255;
	rule->any = any ? any : ~0ULL;
	rule->all = any ? all : 0;
	rule->ignore_keyword_0 = ignore_keyword_0;
}

bool etw_rule_passes(const struct etw_rule *rule, u8 event_level, u64 event_keyword)
{
	if (event_level > rule->level)
		return false;
	if (!event_keyword)
		return !rule->ignore_keyword_0;
	return (event_keyword & rule->any) && (event_keyword & rule->all) == rule->all;
}

static int compare_pids(const void *a, const void *b)
{
	s32 x = *(const s32 *)a, y = *(const s32 *)b;

	return x < y ? -1 : x > y;
}

void etw_filter_init(struct etw_filter *filter, u32 nr)
{
	u32 i, n = 0;

	sort(filter->pids, nr, sizeof(filter->pids[0]), compare_pids, NULL);
	memset(filter->hash, 0, sizeof(filter->hash));
	for (i = 0; i < nr; i++) {
		if (n && filter->pids[n - 1] == filter->pids[i])
			continue;
		filter->hash[(u32)filter->pids[i] % ETW_FILTER_HASH] = 1;
		filter->pids[n++] = filter->pids[i];
	}
	filter->nr = n;
}

void etw_filter_add_hash(u8 *hash, const struct etw_filter *filter)
{
	u32 i;

	for (i = 0; i < ETW_FILTER_HASH; i++)
		hash[i] |= filter->hash[i];
}

bool etw_filter_has_exact(const struct etw_filter *filter, s32 pid)
{
	u32 low = 0, high = filter->nr;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (filter->pids[middle] == pid)
			return true;
		if (filter->pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool etw_name_listed(const char *name, const char *names, u32 nr, u32 size)
{
	u32 i;

	for (i = 0; i < nr; i++)
		if (!strncmp(name, names + (size_t)i * size, size))
			return true;
	return false;
}

bool etw_name_valid(const char *name, u32 size)
{
	u32 i;

	for (i = 0; i < size && name[i]; i++) {
		char c = name[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool other = (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';

		if (!letter && !(i && other))
			return false;
	}
	if (!i || i == size)
		return false;
	for (; i < size; i++)
		if (name[i])
			return false;
	return true;
}
