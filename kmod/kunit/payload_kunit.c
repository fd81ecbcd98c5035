// SPDX-License-Identifier: GPL-2.0-only
/*
 * payload.c: what each type may be, and random schemas and payloads against a naive walker that takes one byte at a time.
 * Runs in a kernel with KUnit, and on the host under sanitizers. Must not know how the walk is made.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/etw.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../payload.h"
#include "width.h"

#define MOST_FIELDS	6
#define MOST_BYTES	512
#define SEED		20261129U

#ifdef __KERNEL__
#define ROUNDS		2000
#else
#define ROUNDS		100000
#endif

static u32 seed;

static u32 pick(u32 below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* ---- the naive walker: a cursor that yields a byte or is at the end ---- */

struct cursor {
	const u8 *bytes;
	u32 at, len;
	bool over;
};

static u8 next(struct cursor *c)
{
	if (c->at == c->len) {
		c->over = true;
		return 0;
	}
	return c->bytes[c->at++];
}

static u32 next_u32(struct cursor *c)
{
	u32 i, v = 0;

	for (i = 0; i < 4; i++)
		v |= (u32)next(c) << 8 * i;
	return v;
}

static bool naive_field(struct cursor *c, const struct etw_field *f)
{
	u32 n = 1, i;

	if (f->type == ETW_TYPE_STRING) {
		while (next(c) && !c->over)
			;
		return !c->over;
	}
	if (f->type == ETW_TYPE_CHARS || f->array == ETW_ARRAY_FIXED)
		n = f->count;
	if (f->type == ETW_TYPE_BINARY || f->array == ETW_ARRAY_COUNTED)
		n = next_u32(c);
	while (n-- && !c->over)
		for (i = 0; i < width(f->type); i++)
			if (next(c) > 1 && f->type == ETW_TYPE_BOOL)
				return false;
	return !c->over;
}

/* The first field that is not right, @nr if bytes are left over, or -1. */
static int naive(const struct etw_field *fields, u32 nr, const u8 *bytes, u32 len)
{
	struct cursor c = { bytes, 0, len };
	u32 i;

	for (i = 0; i < nr; i++)
		if (!naive_field(&c, &fields[i]))
			return i;
	return c.at == c.len ? -1 : nr;
}

/* ---- random schemas, and payloads that fit them ---- */

static void random_field(struct etw_field *f)
{
	*f = (struct etw_field){ .name = "f", .type = 1 + pick(ETW_NR_TYPES - 1), .count = 1 + pick(5) };
	if (f->type <= ETW_TYPE_BOOL)
		f->array = pick(3);
}

static u32 put_random_bytes(u8 *to, u32 n, u32 below)
{
	u32 i;

	for (i = 0; i < n; i++)
		to[i] = pick(below);
	return n;
}

static u32 put_random_value(u8 *to, const struct etw_field *f)
{
	u32 n = 1, at = 0;

	if (f->type == ETW_TYPE_STRING) {
		for (n = pick(6); at < n; at++)
			to[at] = 1 + pick(255);
		to[at++] = 0;
		return at;
	}
	if (f->type == ETW_TYPE_CHARS || f->array == ETW_ARRAY_FIXED)
		n = f->count;
	if (f->type == ETW_TYPE_BINARY || f->array == ETW_ARRAY_COUNTED) {
		n = pick(5);
		to[0] = n;
		memset(to + 1, 0, 3);
		at = 4;
	}
	return at + put_random_bytes(to + at, n * width(f->type), f->type == ETW_TYPE_BOOL ? 2 : 256);
}

/* @bytes in memory of just their length, so that a sanitizer sees a look beyond. */
static bool agrees(const struct etw_field *fields, u32 nr, const u8 *bytes, u32 len, bool must_pass)
{
	u8 *exact = kmalloc(len ? len : 1, GFP_KERNEL);
	u32 field = 12345;
	int want, got;

	if (!exact)
		return false;
	memcpy(exact, bytes, len);
	want = naive(fields, nr, exact, len);
	got = etw_payload_check(fields, nr, exact, len, &field);
	if (etw_payload_check(fields, nr, exact, len, NULL) != got)
		got = 1;
	kfree(exact);
	if (must_pass && want >= 0)
		return false;
	return want < 0 ? got == 0 && field == 12345 : got == -EINVAL && field == (u32)want;
}

static void random_payloads(struct kunit *test)
{
	struct etw_field *fields = kunit_kzalloc(test, MOST_FIELDS * sizeof(*fields), GFP_KERNEL);
	u8 *bytes = kunit_kzalloc(test, MOST_BYTES, GFP_KERNEL);
	u32 round, i, nr, len, cut, wrong = 0, valid = 0, spoilt = 0;

	KUNIT_ASSERT_NOT_NULL(test, fields);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	seed = SEED;
	for (round = 0; round < ROUNDS && !wrong; round++) {
		nr = pick(MOST_FIELDS + 1);
		for (i = 0, len = 0; i < nr; i++) {
			random_field(&fields[i]);
			len += put_random_value(bytes + len, &fields[i]);
		}
		wrong += !agrees(fields, nr, bytes, len, true);
		valid++;
		/* a part of it, more than it, some bytes of it changed, or lengths that lie */
		for (i = 0; i < 8; i++) {
			cut = pick(len + 3);
			bytes[pick(len + 4)] = pick(4) ? pick(256) : 0xff;
			if (!pick(3))
				memset(bytes + pick(len + 1), pick(2) ? 0xff : 0, 4);
			wrong += !agrees(fields, nr, bytes, i & 1 ? cut : len, false);
			spoilt++;
		}
	}
	kunit_info(test, "seed %u: %u valid payloads, %u spoilt ones", SEED, valid, spoilt);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* A payload that is right is wrong with any other length. */
static void every_other_length_is_wrong(struct kunit *test)
{
	struct etw_field fields[ETW_NR_TYPES];
	u8 bytes[256] = {};
	u32 i, nr = 0, len = 0, cut, wrong = 0;

	for (i = 1; i < ETW_NR_TYPES; i++) {
		fields[nr] = (struct etw_field){ .type = i, .count = 3 };
		len += put_random_value(bytes + len, &fields[nr++]);
	}
	KUNIT_EXPECT_TRUE(test, agrees(fields, nr, bytes, len, true));
	for (cut = 0; cut < sizeof(bytes); cut++)
		if (cut != len)
			wrong += etw_payload_check(fields, nr, bytes, cut, NULL) != -EINVAL;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static int check_one(u8 type, u8 array, u32 count, const char *bytes, u32 len)
{
	const struct etw_field field = { .type = type, .array = array, .count = count };

	return etw_payload_check(&field, 1, bytes, len, NULL);
}

static void each_type_at_its_edges(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, etw_payload_check(NULL, 0, "", 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, etw_payload_check(NULL, 0, "x", 1, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U32, 0, 0, "1234", 4), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U32, 0, 0, "123", 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U32, 0, 0, "12345", 5), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_STRING, 0, 0, "", 1), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_STRING, 0, 0, "", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_STRING, 0, 0, "abc", 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_STRING, 0, 0, "abc", 4), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_STRING, 0, 0, "ab\0c", 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BINARY, 0, 0, "\2\0\0\0ab", 6), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BINARY, 0, 0, "\3\0\0\0ab", 6), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BINARY, 0, 0, "\0\0\0\0", 4), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BINARY, 0, 0, "\0\0\0", 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BINARY, 0, 0, "\xff\xff\xff\xff", 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BOOL, 0, 0, "\1", 1), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BOOL, 0, 0, "\2", 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BOOL, ETW_ARRAY_FIXED, 3, "\1\0\1", 3), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_BOOL, ETW_ARRAY_FIXED, 3, "\1\0\2", 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_CHARS, 0, 4, "abcd", 4), 0);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_CHARS, 0, 4, "abc", 3), -EINVAL);
	/* counts whose bytes do not fit into 32 bits */
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U64, ETW_ARRAY_COUNTED, 0, "\0\0\0\x20", 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U64, ETW_ARRAY_COUNTED, 0, "\1\0\0\04012345678", 12), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U32, ETW_ARRAY_FIXED, 0x40000000, "", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_TYPE_U16, ETW_ARRAY_COUNTED, 0, "\2\0\0\0abcd", 8), 0);
	/* no such type */
	KUNIT_EXPECT_EQ(test, check_one(0, 0, 0, "", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(ETW_NR_TYPES, 0, 0, "", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, check_one(255, 0, 0, "", 0), -EINVAL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_type_at_its_edges),
	KUNIT_CASE(every_other_length_is_wrong),
	KUNIT_CASE(random_payloads),
	{}
};

static struct kunit_suite suite = { .name = "etw_payload", .test_cases = cases };

kunit_test_suite(suite);
