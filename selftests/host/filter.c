// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/filter.c in user space: the 14 vectors of ETW's rule, the rule against a naive model of its text, sets of pids and
 * lists of names against naive ones. Prints TAP. It must not know how the filters work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/etw.h>

#include "filter.h"

static unsigned int number, failed;

static void result(bool ok, const char *name)
{
	printf("%sok %u %s\n", ok ? "" : "not ", ++number, name);
	failed += !ok;
}

static const struct {
	unsigned int level;
	u64 any, all;
	bool ignore_0;
	unsigned int event_level;
	u64 keyword;
	bool pass;
} vectors[] = {
	{ 4, 0,   0,   false, 4,   0x8, true },
	{ 4, 0,   0,   false, 5,   0x8, false },
	{ 0, 0,   0,   false, 255, 0x8, true },
	{ 1, 0x1, 0,   false, 0,   0x1, true },
	{ 4, 0x6, 0,   false, 4,   0x8, false },
	{ 4, 0x6, 0,   false, 4,   0xc, true },
	{ 4, 0x6, 0x6, false, 4,   0x2, false },
	{ 4, 0x6, 0x6, false, 4,   0xe, true },
	{ 4, 0x6, 0x8, false, 4,   0x2, false },
	{ 4, 0,   0x8, false, 4,   0x1, true },
	{ 4, 0x6, 0x6, false, 4,   0,   true },
	{ 4, 0x6, 0x6, true,  4,   0,   false },
	{ 4, 0,   0,   true,  4,   0,   false },
	{ 3, 0x8000000000000000, 0, false, 3, 0x8000000000000001, true },
};

/* The rule as its text says it. */
static bool model(unsigned int level, u64 any, u64 all, bool ignore_0, unsigned int event_level, u64 keyword)
{
	if (level != 0 && event_level > level)
		return false;
	if (keyword == 0)
		return !ignore_0;
	if (any == 0)
		return true;
	return (keyword & any) != 0 && (keyword & all) == all;
}

static void test_vectors(void)
{
	char name[32];

	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct etw_rule rule;

		etw_rule_init(&rule, vectors[i].level, vectors[i].any, vectors[i].all, vectors[i].ignore_0);
		sprintf(name, "vector_%u", i + 1);
		result(etw_rule_passes(&rule, vectors[i].event_level, vectors[i].keyword) == vectors[i].pass, name);
	}
}

/* Every combination of few bits, low and high, and of levels at the edges. */
static void test_model(void)
{
	static const unsigned int levels[] = { 0, 1, 4, 5, 6, 254, 255 };
	bool ok = true;

	for (unsigned int shift = 0; shift <= 60; shift += 60)
		for (u64 any = 0; any < 16; any++)
			for (u64 all = 0; all < 16; all++)
				for (u64 keyword = 0; keyword < 16; keyword++)
					for (unsigned int i = 0; i < 7 * 7 * 2; i++) {
						unsigned int level = levels[i % 7], event = levels[i / 7 % 7];
						bool ignore = i / 49;
						struct etw_rule rule;

						etw_rule_init(&rule, level, any << shift, all << shift, ignore);
						ok &= etw_rule_passes(&rule, event, keyword << shift) ==
						      model(level, any << shift, all << shift, ignore, event, keyword << shift);
					}
	result(ok, "rule_is_its_text");
}

/* Sets of random size and density, with duplicates: what is in is in, what is not is not. */
static void test_pids(void)
{
	struct etw_filter *filter = malloc(sizeof(*filter) + ETW_MAX_PIDS * sizeof(s32));
	s32 *copy = malloc(ETW_MAX_PIDS * sizeof(s32));
	bool ok = true, sorted = true;

	srandom(1);
	for (unsigned int round = 0; round < 60; round++) {
		u32 nr = round ? 1 + random() % (round < 30 ? 20 : ETW_MAX_PIDS) : 1;
		s32 range = 1 + random() % (round % 2 ? 64 : 4194304);

		for (u32 i = 0; i < nr; i++)
			copy[i] = filter->pids[i] = random() % range;
		etw_filter_init(filter, nr);
		for (u32 i = 0; i + 1 < filter->nr; i++)
			sorted &= filter->pids[i] < filter->pids[i + 1];
		for (u32 i = 0; i < nr; i++)
			ok &= etw_filter_has(filter, copy[i]);
		for (unsigned int i = 0; i < 2000; i++) {
			s32 pid = random() % (range + 10);
			bool in = false;

			for (u32 k = 0; k < nr && !in; k++)
				in = copy[k] == pid;
			ok &= etw_filter_has(filter, pid) == in;
		}
	}
	result(ok, "pids_in_and_out");
	result(sorted, "pids_once_each");
	filter->pids[0] = 0;
	etw_filter_init(filter, 1);
	result(etw_filter_has(filter, 0) && !etw_filter_has(filter, 1024) && !etw_filter_has(filter, -1), "pid_0");
	free(copy);
	free(filter);
}

static void test_names(void)
{
	static const char *const good[] = { "a", "Z", "a9", "a_b.c-d", "x......" };
	static const char *const bad[] = { "", "9", "_a", "-a", ".a", "a b", "a/b", "a\n", "a\xff", "a:b" };
	char name[ETW_NAME_SIZE], list[3][ETW_NAME_SIZE] = { "one", "two" };
	bool ok = true;

	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(name, 0, sizeof(name));
		strcpy(name, good[i]);
		ok &= etw_name_valid(name, sizeof(name));
	}
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(name, 0, sizeof(name));
		strcpy(name, bad[i]);
		ok &= !etw_name_valid(name, sizeof(name));
	}
	result(ok, "names");
	memset(name, 'a', sizeof(name));
	ok = !etw_name_valid(name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ok &= etw_name_valid(name, sizeof(name));
	name[10] = '\0';
	result(ok && !etw_name_valid(name, sizeof(name)), "names_end_and_padding");
	memset(list[2], 'x', sizeof(list[2]));
	list[2][ETW_NAME_SIZE - 1] = '\0';
	result(etw_name_listed("one", list[0], 3, ETW_NAME_SIZE) && etw_name_listed("two", list[0], 3, ETW_NAME_SIZE) &&
	       etw_name_listed(list[2], list[0], 3, ETW_NAME_SIZE) && !etw_name_listed("two", list[0], 1, ETW_NAME_SIZE) &&
	       !etw_name_listed("on", list[0], 3, ETW_NAME_SIZE) && !etw_name_listed("onee", list[0], 3, ETW_NAME_SIZE) &&
	       !etw_name_listed("one", list[0], 0, ETW_NAME_SIZE), "names_listed");
}

int main(void)
{
	test_vectors();
	test_model();
	test_pids();
	test_names();
	printf("1..%u\n", number);
	return failed != 0;
}
