// SPDX-License-Identifier: GPL-2.0-only
/*
 * predicate.c: what a condition may say, each operator on each type, and random classes, payloads, splits and conditions
 * against a naive model that takes a payload apart field by field. Runs in a kernel with KUnit, and on the host under
 * sanitizers. Must not know how conditions are compiled.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/etw.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../predicate.h"
#include "width.h"

#define MOST_FIELDS	7
#define MOST_BYTES	1024
#define MOST_PARTS	6
#define SEED		20261130U

#ifdef __KERNEL__
#define ROUNDS		3000
#else
#define ROUNDS		60000
#endif

static u32 seed;

static u32 pick(u32 below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Numbers of both sizes in their order; those of one rank are equal. Single precision has no 2^-1074. */
static const struct {
	u64 bits;
	u32 single;
	bool has_single;
	int rank;
} floats[] = {
	{ 0xfff0000000000000ULL, 0xff800000, true, -6 },	/* minus infinity */
	{ 0xffefffffffffffffULL, 0, false, -5 },
	{ 0xc7efffffe0000000ULL, 0xff7fffff, true, -4 },	/* the largest single */
	{ 0xc004000000000000ULL, 0xc0200000, true, -3 },	/* -2.5 */
	{ 0xb810000000000000ULL, 0x80800000, true, -2 },	/* -2^-126 */
	{ 0xb6a0000000000000ULL, 0x80000001, true, -1 },	/* -2^-149 */
	{ 0x8000000000000000ULL, 0x80000000, true, 0 },
	{ 0, 0, true, 0 },
	{ 1, 0, false, 1 },
	{ 0x36a0000000000000ULL, 0x00000001, true, 2 },
	{ 0x380fffffc0000000ULL, 0x007fffff, true, 3 },		/* the largest without a leading 1 */
	{ 0x3810000000000000ULL, 0x00800000, true, 4 },
	{ 0x3ff0000000000000ULL, 0x3f800000, true, 5 },
	{ 0x3ff0000020000000ULL, 0x3f800001, true, 6 },
	{ 0x40f86a0000000000ULL, 0x47c35000, true, 7 },		/* 100000 */
	{ 0x7ff0000000000000ULL, 0x7f800000, true, 8 },
	{ 0x7ff8000000000000ULL, 0x7fc00000, true, 99 },	/* not numbers */
	{ 0xfff0000000000001ULL, 0xff800001, true, 99 },
};

#define NAN_RANK 99

/* ---- the naive model ---- */

static bool is_signed(u8 type)
{
	return type >= ETW_TYPE_S8 && type <= ETW_TYPE_S64;
}

static bool is_float(u8 type)
{
	return type == ETW_TYPE_F32 || type == ETW_TYPE_F64;
}

/* As the comments at struct etw_predicate say. */
static bool suits(const struct etw_field *f, const struct etw_predicate *p)
{
	if (f->array)
		return false;
	switch (p->kind) {
	case ETW_VALUE_NUMBER:
		return f->type <= ETW_TYPE_BOOL && !(p->op == ETW_OP_BITS && is_float(f->type));
	case ETW_VALUE_TEXT:
		return f->type == ETW_TYPE_CHARS || f->type == ETW_TYPE_STRING;
	default:
		return f->type >= ETW_TYPE_GUID;
	}
}

static int rank_of(u64 bits, bool single)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(floats); i++)
		if (single ? floats[i].has_single && floats[i].single == (u32)bits : floats[i].bits == bits)
			return floats[i].rank;
	return NAN_RANK;
}

static bool ordered(u32 op, int order)
{
	switch (op) {
	case ETW_OP_EQ:
		return order == 0;
	case ETW_OP_NE:
		return order != 0;
	case ETW_OP_LT:
		return order < 0;
	case ETW_OP_LE:
		return order <= 0;
	case ETW_OP_GT:
		return order > 0;
	case ETW_OP_GE:
		return order >= 0;
	}
	return false;
}

static bool naive_number(const struct etw_field *f, const struct etw_predicate *p, const u8 *at, bool scrub)
{
	u64 raw = 0, v;
	u32 i;

	for (i = 0; i < width(f->type); i++)
		raw |= (u64)at[i] << 8 * i;
	if (is_float(f->type)) {
		int a = rank_of(raw, f->type == ETW_TYPE_F32), b = rank_of(p->value, false);

		return a == NAN_RANK || b == NAN_RANK ? p->op == ETW_OP_NE : ordered(p->op, a - b);
	}
	if (f->type == ETW_TYPE_POINTER && scrub && raw >> 63)
		raw = 0;
	if (p->op == ETW_OP_BITS)
		return raw & p->value;
	v = raw;
	if (is_signed(f->type)) {
		if (at[width(f->type) - 1] & 0x80)
			for (i = width(f->type); i < 8; i++)
				v |= 0xffULL << 8 * i;
		return ordered(p->op, (s64)v < (s64)p->value ? -1 : (s64)v > (s64)p->value);
	}
	return ordered(p->op, v < p->value ? -1 : v > p->value);
}

static bool naive_text(const struct etw_predicate *p, const u8 *at, u32 len)
{
	const u32 n = strlen((const char *)p->text);
	u32 i;

	switch (p->op) {
	case ETW_OP_EQ:
		return len == n && !memcmp(at, p->text, n);
	case ETW_OP_NE:
		return len != n || memcmp(at, p->text, n);
	case ETW_OP_PREFIX:
		return len >= n && !memcmp(at, p->text, n);
	}
	for (i = 0; i + n <= len; i++)
		if (!memcmp(at + i, p->text, n))
			return true;
	return false;
}

/* What a field takes in a payload that is as its class says; in @len the bytes of its text. */
static u32 naive_size(const struct etw_field *f, const u8 *at, u32 *len)
{
	u32 n = 1, count;

	if (f->type == ETW_TYPE_STRING) {
		*len = strlen((const char *)at);
		return *len + 1;
	}
	if (f->type == ETW_TYPE_BINARY || f->array == ETW_ARRAY_COUNTED) {
		count = at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
		return 4 + count * width(f->type);
	}
	if (f->type == ETW_TYPE_CHARS)
		for (*len = 0; *len < f->count && at[*len]; ++*len)
			;
	if (f->type == ETW_TYPE_CHARS || f->array == ETW_ARRAY_FIXED)
		n = f->count;
	return n * width(f->type);
}

static bool naive_holds(const struct etw_class *class, const struct etw_predicate *p, const u8 *at, bool scrub)
{
	u32 i, len = 0;
	u8 padded[ETW_NAME_SIZE] = {};

	for (i = 0; i < class->nr_fields; i++) {
		const struct etw_field *f = &class->fields[i];
		u32 size = naive_size(f, at, &len);

		if (strcmp(f->name, (const char *)p->field)) {
			at += size;
			continue;
		}
		if (!suits(f, p))
			return false;
		switch (p->kind) {
		case ETW_VALUE_NUMBER:
			return naive_number(f, p, at, scrub);
		case ETW_VALUE_TEXT:
			return naive_text(p, at, len);
		}
		memcpy(padded, at, size);
		return !memcmp(padded, p->text, sizeof(padded)) == (p->op == ETW_OP_EQ);
	}
	return false;
}

static bool naive_passes(const struct etw_class *class, const struct etw_conditions *conditions, const u8 *payload, bool scrub)
{
	u32 i, held = 0;

	for (i = 0; i < conditions->nr; i++)
		held += naive_holds(class, &conditions->c[i].p, payload, scrub);
	return conditions->any ? held : held == conditions->nr;
}

/* ---- random classes, payloads and conditions ---- */

static const char *const names[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8" };

static void random_class(struct etw_class *class, struct etw_field *fields)
{
	u32 i;

	*class = (struct etw_class){ .name = "c", .fields = fields, .nr_fields = 1 + pick(MOST_FIELDS) };
	for (i = 0; i < class->nr_fields; i++) {
		fields[i] = (struct etw_field){ .name = names[i], .type = 1 + pick(ETW_NR_TYPES - 1), .count = 1 + pick(9) };
		if (fields[i].type <= ETW_TYPE_BOOL && !pick(3))
			fields[i].array = 1 + pick(2);
		if (!pick(3))
			fields[i].type = ETW_TYPE_STRING, fields[i].array = 0;
	}
}

/* Few letters, so that beginnings of a text are found again and again. */
static u32 random_text(u8 *to, u32 most)
{
	u32 i, n = pick(most + 1);

	for (i = 0; i < n; i++)
		to[i] = 'a' + !pick(4);
	return n;
}

static u32 random_value(u8 *to, const struct etw_field *f)
{
	u32 n = 1, at = 0, i, k;

	if (f->type == ETW_TYPE_STRING) {
		at = random_text(to, pick(4) ? 9 : 60);
		to[at++] = 0;
		return at;
	}
	if (f->type == ETW_TYPE_CHARS) {
		memset(to, 0, f->count);
		random_text(to, f->count);
		return f->count;
	}
	if (f->array == ETW_ARRAY_FIXED)
		n = f->count;
	if (f->type == ETW_TYPE_BINARY || f->array == ETW_ARRAY_COUNTED) {
		n = pick(5);
		memset(to, 0, 4);
		to[0] = n;
		at = 4;
	}
	for (i = 0; i < n; i++, at += width(f->type)) {
		const u32 which = pick(ARRAY_SIZE(floats));

		for (k = 0; k < width(f->type); k++)
			to[at + k] = pick(2) ? 0 : pick(2) ? 0xff : pick(256);
		if (f->type == ETW_TYPE_BOOL)
			to[at] = pick(2);
		else if (f->type == ETW_TYPE_F32)
			memcpy(to + at, floats[which].has_single ? &floats[which].single : &floats[7].single, 4);
		else if (f->type == ETW_TYPE_F64)
			memcpy(to + at, &floats[which].bits, 8);
	}
	return at;
}

/* A condition on a field of the class, or on none; half the time with the value that the payload has there. */
static int random_condition(struct etw_condition *c, const struct etw_class *class, const u8 *payload)
{
	const u32 which = pick(class->nr_fields + 1);
	const struct etw_field *f = which < class->nr_fields ? &class->fields[which] : NULL;
	u32 i, len = 0, size;

	memset(c, 0, sizeof(*c));
	strscpy((char *)c->p.field, names[which], sizeof(c->p.field));
	for (i = 0; i < which; i++)
		payload += naive_size(&class->fields[i], payload, &len);
	size = f ? naive_size(f, payload, &len) : 0;
	c->p.kind = pick(8) || !f ? pick(3) : 0;
	if (f && pick(8))
		c->p.kind = f->type <= ETW_TYPE_BOOL ? ETW_VALUE_NUMBER : f->type < ETW_TYPE_BINARY ? ETW_VALUE_TEXT :
			    f->type >= ETW_TYPE_GUID ? ETW_VALUE_BYTES : c->p.kind;
	switch (c->p.kind) {
	case ETW_VALUE_NUMBER:
		c->p.op = ETW_OP_EQ + pick(7);
		c->p.value = f && is_float(f->type) ? floats[pick(ARRAY_SIZE(floats))].bits : pick(2) ? pick(4) - 2ULL : pick(256);
		if (f && f->type <= ETW_TYPE_BOOL && !is_float(f->type) && pick(2)) {
			c->p.value = 0;
			memcpy(&c->p.value, payload, width(f->type));
			if (is_signed(f->type) && pick(2) && c->p.value >> (8 * width(f->type) - 1) & 1 && width(f->type) < 8)
				c->p.value |= ~0ULL << 8 * width(f->type);
			if (!pick(4))
				c->p.value += pick(3) - 1ULL;
		}
		break;
	case ETW_VALUE_TEXT: {
		static const u8 ops[] = { ETW_OP_EQ, ETW_OP_NE, ETW_OP_PREFIX, ETW_OP_CONTAINS };

		c->p.op = ops[pick(4)];
		if (f && suits(f, &c->p) && pick(2) && len) {
			const u32 from = c->p.op == ETW_OP_CONTAINS ? pick(len) : 0;

			memcpy(c->p.text, payload + from, c->p.op <= ETW_OP_NE ? len : 1 + pick(len - from));
		} else {
			random_text(c->p.text, 9);
		}
		break;
	}
	default:
		c->p.op = ETW_OP_EQ + pick(2);
		if (f && size && size <= 16 && pick(2))
			memcpy(c->p.text, payload, size);
		if (!pick(4))
			c->p.text[pick(18)] ^= 1;
	}
	return etw_condition_init(c);
}

/* Parts of just their length, so that a sanitizer sees a look beyond; some are empty. */
static u32 split(struct kunit *test, const u8 *payload, u32 len, struct etw_vec *vec)
{
	u32 nr = 1 + pick(MOST_PARTS), i, n;

	for (i = 0; i < nr; i++, payload += n, len -= n) {
		u8 *part;

		n = i == nr - 1 ? len : pick(4) ? pick(len + 1) : 0;
		part = kmalloc(n ? n : 1, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, part);
		memcpy(part, payload, n);
		vec[i] = (struct etw_vec){ part, n };
	}
	return nr;
}

static void free_parts(struct etw_vec *vec, u32 nr)
{
	while (nr--)
		kfree(vec[nr].data);
}

static void random_everything(struct kunit *test)
{
	const u32 most = ETW_MAX_PREDICATES;
	struct etw_field *fields = kunit_kzalloc(test, MOST_FIELDS * sizeof(*fields), GFP_KERNEL);
	struct etw_class *class = kunit_kzalloc(test, sizeof(*class), GFP_KERNEL);
	struct etw_conditions *conditions = kunit_kzalloc(test, sizeof(*conditions) + most * sizeof(conditions->c[0]), GFP_KERNEL);
	struct etw_matcher *m = kunit_kzalloc(test, sizeof(*m) + most * sizeof(m->match[0]), GFP_KERNEL);
	u8 *payload = kunit_kzalloc(test, MOST_BYTES, GFP_KERNEL);
	u32 round, i, wrong = 0, passed = 0, rejected = 0, impossible = 0;
	struct etw_vec vec[MOST_PARTS];

	KUNIT_ASSERT_NOT_NULL(test, fields);
	KUNIT_ASSERT_NOT_NULL(test, class);
	KUNIT_ASSERT_NOT_NULL(test, conditions);
	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_NOT_NULL(test, payload);
	seed = SEED;
	for (round = 0; round < ROUNDS && !wrong; round++) {
		bool want, scrub = pick(2);
		u32 len = 0, nr, suited = 0;

		random_class(class, fields);
		for (i = 0; i < class->nr_fields; i++)
			len += random_value(payload + len, &fields[i]);
		conditions->nr = 1 + (pick(4) ? pick(3) : pick(most));
		conditions->any = pick(2);
		for (i = 0; i < conditions->nr; i++) {
			u32 k;

			wrong += random_condition(&conditions->c[i], class, payload) != 0;
			for (k = 0; k < class->nr_fields; k++)
				suited += !strcmp(fields[k].name, (char *)conditions->c[i].p.field) &&
					  suits(&fields[k], &conditions->c[i].p);
		}
		want = conditions->any ? suited : suited == conditions->nr;
		if (etw_conditions_possible(conditions, class) != want)
			wrong++;
		if (!want) {
			impossible++;
			continue;
		}
		etw_matcher_init(m, conditions, class, scrub);
		want = naive_passes(class, conditions, payload, scrub);
		nr = split(test, payload, len, vec);
		wrong += etw_matcher_passes(m, vec, nr) != want;
		free_parts(vec, nr);
		passed += want;
		rejected += !want;
		/* a payload that ends too early, or lies about its lengths: any answer, but nothing beyond it is looked at */
		for (i = 0; i < 4 && len; i++)
			payload[pick(len)] = pick(256);
		nr = split(test, payload, pick(len + 1), vec);
		etw_matcher_passes(m, vec, nr);
		free_parts(vec, nr);
	}
	kunit_info(test, "seed %u: %u passed, %u rejected, %u impossible", SEED, passed, rejected, impossible);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_TRUE(test, passed > ROUNDS / 10);
	KUNIT_EXPECT_TRUE(test, rejected > ROUNDS / 10);
	KUNIT_EXPECT_TRUE(test, impossible > ROUNDS / 10);
}

/* ---- one condition on one field ---- */

struct one {
	struct etw_class class;
	struct etw_field field;
	struct etw_conditions *conditions;
	struct etw_matcher *m;
};

static void one_init(struct kunit *test, struct one *one, u8 type, u32 count, u32 op, u32 kind)
{
	*one = (struct one){ .field = { .name = "x", .type = type, .count = count } };
	one->class = (struct etw_class){ .name = "c", .fields = &one->field, .nr_fields = 1 };
	one->conditions = kunit_kzalloc(test, sizeof(*one->conditions) + sizeof(one->conditions->c[0]), GFP_KERNEL);
	one->m = kunit_kzalloc(test, sizeof(*one->m) + sizeof(one->m->match[0]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, one->conditions);
	KUNIT_ASSERT_NOT_NULL(test, one->m);
	one->conditions->nr = 1;
	one->conditions->c[0].p = (struct etw_predicate){ .field = "x", .op = op, .kind = kind };
}

static bool one_passes(struct one *one, const void *payload, u32 len)
{
	const struct etw_vec vec = { payload, len };

	if (etw_condition_init(&one->conditions->c[0]) || !etw_conditions_possible(one->conditions, &one->class))
		return false;
	etw_matcher_init(one->m, one->conditions, &one->class, false);
	return etw_matcher_passes(one->m, &vec, 1);
}

static void floats_in_their_order(struct kunit *test)
{
	struct one one;
	u32 i, k, op, wrong = 0;

	one_init(test, &one, ETW_TYPE_F64, 0, ETW_OP_EQ, ETW_VALUE_NUMBER);
	for (op = ETW_OP_EQ; op <= ETW_OP_GE; op++)
		for (i = 0; i < ARRAY_SIZE(floats); i++)
			for (k = 0; k < ARRAY_SIZE(floats); k++) {
				const bool nan = floats[i].rank == NAN_RANK || floats[k].rank == NAN_RANK;
				const bool want = nan ? op == ETW_OP_NE : ordered(op, floats[i].rank - floats[k].rank);

				one.conditions->c[0].p.op = op;
				one.conditions->c[0].p.value = floats[k].bits;
				one.field.type = ETW_TYPE_F64;
				wrong += one_passes(&one, &floats[i].bits, 8) != want;
				one.field.type = ETW_TYPE_F32;
				if (floats[i].has_single)
					wrong += one_passes(&one, &floats[i].single, 4) != want;
			}
	KUNIT_EXPECT_EQ(test, wrong, 0);
#ifndef __KERNEL__
	/* where there is floating point, against it */
	seed = SEED;
	for (i = 0; i < 300000; i++) {
		u32 bits = pick(1U << 24) << 8 | pick(256), other = pick(8) ? bits + pick(3) - 1 : pick(1U << 24) << 8 | pick(256);
		float f, g;
		double d;

		memcpy(&f, &bits, 4);
		memcpy(&g, &other, 4);
		d = g;
		memcpy(&one.conditions->c[0].p.value, &d, 8);
		one.conditions->c[0].p.op = ETW_OP_LT;
		wrong += one_passes(&one, &f, 4) != (f < d);
		one.conditions->c[0].p.op = ETW_OP_EQ;
		wrong += one_passes(&one, &f, 4) != (f == d);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
#endif
}

/* A value that the type cannot hold is larger or smaller than all it can. */
static void values_are_not_cut(struct kunit *test)
{
	static const u8 bytes[] = { 0x2c }, minus[] = { 0xff };
	struct one one;

	one_init(test, &one, ETW_TYPE_U8, 0, ETW_OP_EQ, ETW_VALUE_NUMBER);
	one.conditions->c[0].p.value = 0x12c;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, bytes, 1));
	one.conditions->c[0].p.op = ETW_OP_LT;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, bytes, 1));
	one.conditions->c[0].p.op = ETW_OP_BITS;
	one.conditions->c[0].p.value = 0x100;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, minus, 1));
	one.field.type = ETW_TYPE_S8;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, minus, 1));
	one.conditions->c[0].p.op = ETW_OP_EQ;
	one.conditions->c[0].p.value = 0xff;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, minus, 1));
	one.conditions->c[0].p.value = ~0ULL;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, minus, 1));
	one.conditions->c[0].p.op = ETW_OP_LT;
	one.conditions->c[0].p.value = 0;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, minus, 1));
	one.field.type = ETW_TYPE_U8;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, minus, 1));
}

/* What is not shown cannot be found out by asking. */
static void hidden_addresses_are_zero(struct kunit *test)
{
	const u64 secret = 0xffffffff81234567ULL, public = 0x00007f0012345678ULL;
	const struct etw_vec hidden = { &secret, 8 }, user = { &public, 8 };
	struct one one;
	u64 bit;

	one_init(test, &one, ETW_TYPE_POINTER, 0, ETW_OP_BITS, ETW_VALUE_NUMBER);
	one.conditions->c[0].p.value = public;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, &secret, 8));
	for (bit = 1; bit; bit <<= 1) {
		one.conditions->c[0].p.value = bit;
		etw_condition_init(&one.conditions->c[0]);
		etw_matcher_init(one.m, one.conditions, &one.class, true);
		KUNIT_EXPECT_FALSE(test, etw_matcher_passes(one.m, &hidden, 1));
		KUNIT_EXPECT_EQ(test, etw_matcher_passes(one.m, &user, 1), !!(public & bit));
	}
	one.conditions->c[0].p.op = ETW_OP_EQ;
	one.conditions->c[0].p.value = 0;
	etw_condition_init(&one.conditions->c[0]);
	etw_matcher_init(one.m, one.conditions, &one.class, true);
	KUNIT_EXPECT_TRUE(test, etw_matcher_passes(one.m, &hidden, 1));
}

/* A text as long as the largest payload, made so that a search that goes back would take long. */
static void a_long_text_is_searched_once(struct kunit *test)
{
	const u32 size = ETW_MAX_PAYLOAD - 4;
	u8 *text = kunit_kzalloc(test, size, GFP_KERNEL);
	struct one one;

	KUNIT_ASSERT_NOT_NULL(test, text);
	one_init(test, &one, ETW_TYPE_STRING, 0, ETW_OP_CONTAINS, ETW_VALUE_TEXT);
	memset(text, 'a', size - 1);
	memset(one.conditions->c[0].p.text, 'a', ETW_NAME_SIZE - 1);
	KUNIT_EXPECT_TRUE(test, one_passes(&one, text, size));
	one.conditions->c[0].p.text[ETW_NAME_SIZE - 2] = 'b';
	KUNIT_EXPECT_FALSE(test, one_passes(&one, text, size));
	text[size - 2] = 'b';
	KUNIT_EXPECT_TRUE(test, one_passes(&one, text, size));
	one.conditions->c[0].p.text[0] = 'b';
	KUNIT_EXPECT_FALSE(test, one_passes(&one, text, size));
}

/* Chars need no end, a string does; the empty text is a beginning and a part of everything. */
static void texts_at_their_edges(struct kunit *test)
{
	struct one one;

	one_init(test, &one, ETW_TYPE_CHARS, 4, ETW_OP_EQ, ETW_VALUE_TEXT);
	memcpy(one.conditions->c[0].p.text, "abcd", 4);
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "abcd", 4));
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "abc", 4));
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "abc", 3));
	one.conditions->c[0].p.op = ETW_OP_NE;
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "abcd", 4));
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "abc", 4));
	memset(one.conditions->c[0].p.text, 0, 4);
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "a\0bc", 4));
	one.conditions->c[0].p.op = ETW_OP_EQ;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "\0bcd", 4));
	one.conditions->c[0].p.op = ETW_OP_PREFIX;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "\0bcd", 4));
	one.conditions->c[0].p.op = ETW_OP_CONTAINS;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "\0bcd", 4));
	memcpy(one.conditions->c[0].p.text, "bc", 2);
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "\0bcd", 4));
	one.field.type = ETW_TYPE_STRING;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "abc", 4));
	one.conditions->c[0].p.op = ETW_OP_NE;
	KUNIT_EXPECT_TRUE(test, one_passes(&one, "b", 2));
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "b", 1));	/* no end: no text */
	KUNIT_EXPECT_FALSE(test, one_passes(&one, "bc", 2));
}

static int init_with(u32 op, u32 kind, u64 value, const char *text, u32 len, const char *field)
{
	static struct etw_condition c;

	memset(&c, 0, sizeof(c));
	c.p.op = op;
	c.p.kind = kind;
	c.p.value = value;
	memcpy(c.p.text, text, len);
	memcpy(c.p.field, field, strlen(field));
	return etw_condition_init(&c);
}

static void malformed_ones_are_refused(struct kunit *test)
{
	static const u32 suitable[] = { 0xfe, 0x306, 0x006 };	/* bits of operators, by kind */
	char full[ETW_NAME_SIZE];
	u32 op, kind;

	memset(full, 'a', sizeof(full));
	for (op = 0; op < 16; op++)
		for (kind = 0; kind < 5; kind++)
			KUNIT_EXPECT_EQ_MSG(test, init_with(op, kind, 0, "", 0, "x"),
					    kind < 3 && suitable[kind] >> op & 1 ? 0 : -EINVAL, "operator %u, kind %u", op, kind);
	KUNIT_EXPECT_EQ(test, init_with(33, 0, 0, "", 0, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_NUMBER, 5, "", 0, "x"), 0);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_NUMBER, 5, "a", 1, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_TEXT, 5, "a", 1, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_BYTES, 5, "a", 1, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_TEXT, 0, full, 63, "x"), 0);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_TEXT, 0, full, 64, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_BYTES, 0, full, 64, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_TEXT, 0, "a\0b", 3, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_BYTES, 0, "a\0b", 3, "x"), 0);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_NUMBER, 0, "", 0, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, init_with(ETW_OP_EQ, ETW_VALUE_NUMBER, 0, "", 0, "9x"), -EINVAL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(malformed_ones_are_refused),
	KUNIT_CASE(values_are_not_cut),
	KUNIT_CASE(texts_at_their_edges),
	KUNIT_CASE(floats_in_their_order),
	KUNIT_CASE(hidden_addresses_are_zero),
	KUNIT_CASE(a_long_text_is_searched_once),
	KUNIT_CASE(random_everything),
	{}
};

static struct kunit_suite suite = { .name = "etw_predicate", .test_cases = cases };

kunit_test_suite(suite);
