// SPDX-License-Identifier: GPL-2.0-only
/*
 * filter.c: the 14 vectors of ETW's rule, the rule against a naive model of its text, sets of pids and lists of names
 * against naive ones. Runs in a kernel with KUnit, and on the host under sanitizers. Must not know how the filters
 * work.
 */
#include <kunit/test.h>
#include <linux/etw.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../filter.h"

static const struct {
	u8 level;
	u64 any, all;
	bool ignore_0;
	u8 event_level;
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
	{ 3, 0x8000000000000000ULL, 0, false, 3, 0x8000000000000001ULL, true },
};

static void rule_vectors(struct kunit *test)
{
	struct etw_rule rule;
	u32 i;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(vectors), 14);
	for (i = 0; i < ARRAY_SIZE(vectors); i++) {
		etw_rule_init(&rule, vectors[i].level, vectors[i].any, vectors[i].all, vectors[i].ignore_0);
		KUNIT_EXPECT_EQ_MSG(test, etw_rule_passes(&rule, vectors[i].event_level, vectors[i].keyword), vectors[i].pass,
				    "vector %u", i + 1);
	}
}

/* The rule as its text says it. */
static bool model(u8 level, u64 any, u64 all, bool ignore_0, u8 event_level, u64 keyword)
{
	if (level != 0 && event_level > level)
		return false;
	if (keyword == 0)
		return !ignore_0;
	if (any == 0)
		return true;
	return (keyword & any) != 0 && (keyword & all) == all;
}

/* Every combination of few bits, low and high, and of levels at the edges. */
static void rule_is_its_text(struct kunit *test)
{
	static const u8 levels[] = { 0, 1, 4, 5, 6, 254, 255 };
	const u32 nr = ARRAY_SIZE(levels);
	u32 shift, i, bits, wrong = 0;

	for (shift = 0; shift <= 60; shift += 60)
		for (bits = 0; bits < 16 * 16 * 16; bits++)
			for (i = 0; i < nr * nr * 2; i++) {
				u64 any = (u64)(bits & 15) << shift, all = (u64)(bits >> 4 & 15) << shift;
				u64 keyword = (u64)(bits >> 8) << shift;
				u8 level = levels[i % nr], event = levels[i / nr % nr];
				bool ignore_0 = i / (nr * nr);
				struct etw_rule rule;

				etw_rule_init(&rule, level, any, all, ignore_0);
				wrong += etw_rule_passes(&rule, event, keyword) != model(level, any, all, ignore_0, event, keyword);
			}
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

#define SEED	1U

/* The same numbers every time: a test that fails must fail again. */
static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Sets of random size and density, with duplicates: what is in is in, what is not is not, and each is there once. */
static void pids_in_and_out(struct kunit *test)
{
	struct etw_filter *filter = kunit_kzalloc(test, sizeof(*filter) + 500 * sizeof(s32), GFP_KERNEL);
	s32 *copy = kunit_kzalloc(test, 500 * sizeof(s32), GFP_KERNEL);
	u32 i, k, round, state = SEED, wrong = 0, unsorted = 0;

	KUNIT_ASSERT_NOT_NULL(test, filter);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	for (round = 0; round < 60; round++) {
		u32 nr = round ? 1 + next_random(&state) % (round < 30 ? 20 : 500) : 1;
		s32 range = 1 + next_random(&state) % (round % 2 ? 64 : 4194304);

		for (i = 0; i < nr; i++) {
			copy[i] = next_random(&state) % range;
			filter->pids[i] = copy[i];
		}
		etw_filter_init(filter, nr);
		for (i = 0; i + 1 < filter->nr; i++)
			unsorted += filter->pids[i] >= filter->pids[i + 1];
		for (i = 0; i < nr; i++)
			wrong += !etw_filter_has(filter, copy[i]);
		for (i = 0; i < 500; i++) {
			s32 pid = next_random(&state) % (range + 10);
			bool in = false;

			for (k = 0; k < nr && !in; k++)
				in = copy[k] == pid;
			wrong += etw_filter_has(filter, pid) != in;
		}
	}
	kunit_info(test, "seed %u: %u sets", SEED, round);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, unsorted, 0);
	filter->pids[0] = 0;
	etw_filter_init(filter, 1);
	KUNIT_EXPECT_TRUE(test, etw_filter_has(filter, 0));
	KUNIT_EXPECT_FALSE(test, etw_filter_has(filter, ETW_FILTER_HASH));
	KUNIT_EXPECT_FALSE(test, etw_filter_has(filter, -1));
}

static void names_of_valid_letters(struct kunit *test)
{
	static const char *const good[] = { "a", "Z", "a9", "a_b.c-d", "x......" };
	static const char *const bad[] = { "", "9", "_a", "-a", ".a", "a b", "a/b", "a\n", "a\xff", "a:b" };
	char name[ETW_NAME_SIZE];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		memset(name, 0, sizeof(name));
		memcpy(name, good[i], strlen(good[i]));
		KUNIT_EXPECT_TRUE_MSG(test, etw_name_valid(name, sizeof(name)), "\"%s\"", good[i]);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(name, 0, sizeof(name));
		memcpy(name, bad[i], strlen(bad[i]));
		KUNIT_EXPECT_FALSE_MSG(test, etw_name_valid(name, sizeof(name)), "\"%s\"", bad[i]);
	}
}

static void names_end_and_are_padded(struct kunit *test)
{
	char name[ETW_NAME_SIZE];

	memset(name, 'a', sizeof(name));
	KUNIT_EXPECT_FALSE(test, etw_name_valid(name, sizeof(name)));
	name[sizeof(name) - 1] = '\0';
	KUNIT_EXPECT_TRUE(test, etw_name_valid(name, sizeof(name)));
	name[10] = '\0';
	KUNIT_EXPECT_FALSE(test, etw_name_valid(name, sizeof(name)));
}

static void names_are_listed_whole(struct kunit *test)
{
	char list[3][ETW_NAME_SIZE] = { "one", "two" };

	memset(list[2], 'x', ETW_NAME_SIZE - 1);
	list[2][ETW_NAME_SIZE - 1] = '\0';
	KUNIT_EXPECT_TRUE(test, etw_name_listed("one", list[0], 3, ETW_NAME_SIZE));
	KUNIT_EXPECT_TRUE(test, etw_name_listed("two", list[0], 3, ETW_NAME_SIZE));
	KUNIT_EXPECT_TRUE(test, etw_name_listed(list[2], list[0], 3, ETW_NAME_SIZE));
	KUNIT_EXPECT_FALSE(test, etw_name_listed("two", list[0], 1, ETW_NAME_SIZE));
	KUNIT_EXPECT_FALSE(test, etw_name_listed("on", list[0], 3, ETW_NAME_SIZE));
	KUNIT_EXPECT_FALSE(test, etw_name_listed("onee", list[0], 3, ETW_NAME_SIZE));
	KUNIT_EXPECT_FALSE(test, etw_name_listed("one", list[0], 0, ETW_NAME_SIZE));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(rule_vectors),
	KUNIT_CASE(rule_is_its_text),
	KUNIT_CASE(pids_in_and_out),
	KUNIT_CASE(names_of_valid_letters),
	KUNIT_CASE(names_end_and_are_padded),
	KUNIT_CASE(names_are_listed_whole),
	{}
};

static struct kunit_suite suite = { .name = "etw_filter", .test_cases = cases };

kunit_test_suite(suite);
