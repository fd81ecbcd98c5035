// SPDX-License-Identifier: GPL-2.0-only
/*
 * schema.c: an entry is self-contained, as large as it says and says what the class says; kernel pointers are found.
 * Runs in a kernel with KUnit, and on the host under sanitizers. Must not know how an entry is laid out beyond the
 * ABI header.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/etw.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../schema.h"

static const struct etw_value colours[] = { { 1, "red" }, { 2, "green" }, { 0x8000000000000000ULL, "far" } };
static const struct etw_map colour_map = { ETW_MAP_FLAGS, ARRAY_SIZE(colours), colours };

static struct etw_provider provider = { .name = "Test-Provider", .alias = "test" };

static const struct etw_field fields[] = {
	{ .name = "first", .type = ETW_TYPE_U32, .map = &colour_map },
	{ .name = "name", .type = ETW_TYPE_CHARS, .count = 16 },
	{ .name = "where", .type = ETW_TYPE_POINTER },
	{ .name = "who", .type = ETW_TYPE_S32, .format = ETW_FORMAT_PID, .map = &colour_map },
	{ .name = "text", .type = ETW_TYPE_STRING },
};

static struct etw_class full = {
	.name = "full", .ctf_name = "the_full", .description = "every part of it",
	.fields = fields, .nr_fields = ARRAY_SIZE(fields),
	.keyword = 0x123456789abcdefULL, .event_id = 7, .task = 9, .version = 3, .level = 4, .opcode = 5, .provider = &provider,
};

static struct etw_class bare = { .name = "bare", .provider = &provider };

/* The string at @offset, if it is one that ends within the entry. */
static const char *text(const struct etw_schema *s, u32 offset)
{
	const char *at = (const char *)s + offset;

	return offset >= sizeof(*s) && offset < s->size && memchr(at, 0, s->size - offset) ? at : "not a string";
}

static const struct etw_schema *fill(struct kunit *test, const struct etw_class *class, u32 number)
{
	u32 size = etw_schema_size(class);
	void *buf = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, 0xcc, size);
	etw_schema_fill(buf, class, number);
	return buf;
}

static void entry_says_what_the_class_says(struct kunit *test)
{
	const struct etw_schema *s = fill(test, &full, 42);
	const struct etw_schema_field *f = (const void *)((const u8 *)s + s->fields);
	u32 i, k;

	KUNIT_EXPECT_EQ(test, s->size, etw_schema_size(&full));
	KUNIT_EXPECT_EQ(test, s->size % 8, 0);
	KUNIT_EXPECT_EQ(test, s->class_id, 42);
	KUNIT_EXPECT_EQ(test, s->keyword, full.keyword);
	KUNIT_EXPECT_EQ(test, s->event_id, 7);
	KUNIT_EXPECT_EQ(test, s->task, 9);
	KUNIT_EXPECT_EQ(test, s->version, 3);
	KUNIT_EXPECT_EQ(test, s->level, 4);
	KUNIT_EXPECT_EQ(test, s->opcode, 5);
	KUNIT_EXPECT_STREQ(test, text(s, s->provider), "Test-Provider");
	KUNIT_EXPECT_STREQ(test, text(s, s->name), "full");
	KUNIT_EXPECT_STREQ(test, text(s, s->ctf_name), "the_full");
	KUNIT_EXPECT_STREQ(test, text(s, s->description), "every part of it");
	KUNIT_ASSERT_EQ(test, s->nr_fields, ARRAY_SIZE(fields));
	KUNIT_ASSERT_LE(test, s->fields + s->nr_fields * sizeof(*f), s->size);
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct etw_schema_map *m = (const void *)((const u8 *)s + f[i].map);

		KUNIT_EXPECT_STREQ(test, text(s, f[i].name), fields[i].name);
		KUNIT_EXPECT_EQ(test, f[i].type, fields[i].type);
		KUNIT_EXPECT_EQ(test, f[i].format, fields[i].format);
		KUNIT_EXPECT_EQ(test, f[i].count, fields[i].count);
		KUNIT_ASSERT_EQ(test, !!f[i].map, !!fields[i].map);
		if (!f[i].map)
			continue;
		KUNIT_EXPECT_EQ(test, f[i].map % 8, 0);
		KUNIT_EXPECT_EQ(test, f[i].map, f[0].map);	/* once, for all that have it */
		KUNIT_EXPECT_EQ(test, m->kind, ETW_MAP_FLAGS);
		KUNIT_ASSERT_EQ(test, m->nr, ARRAY_SIZE(colours));
		for (k = 0; k < m->nr; k++) {
			KUNIT_EXPECT_EQ(test, m->values[k].value, colours[k].value);
			KUNIT_EXPECT_STREQ(test, text(s, m->values[k].name), colours[k].name);
		}
	}
}

static void a_class_of_nothing_is_an_entry(struct kunit *test)
{
	const struct etw_schema *s = fill(test, &bare, 0);

	KUNIT_EXPECT_EQ(test, s->nr_fields, 0);
	KUNIT_EXPECT_EQ(test, s->ctf_name, 0);
	KUNIT_EXPECT_EQ(test, s->description, 0);
	KUNIT_EXPECT_STREQ(test, text(s, s->name), "bare");
}

static void kernel_pointers_are_found(struct kunit *test)
{
	struct etw_class class = full;

	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), 0);
	KUNIT_ASSERT_EQ(test, class.nr_scrub, 1);
	KUNIT_EXPECT_EQ(test, class.scrub[0], 4 + 16);
	class = bare;
	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), 0);
	KUNIT_EXPECT_EQ(test, class.nr_scrub, 0);
}

/* Where it could not be hidden, a kernel pointer must not be. */
static void kernel_pointers_out_of_reach_are_refused(struct kunit *test)
{
	static const struct etw_field behind[] = {
		{ .name = "s", .type = ETW_TYPE_STRING },
		{ .name = "p", .type = ETW_TYPE_POINTER },
	};
	static const struct etw_field many[] = {
		{ .name = "a", .type = ETW_TYPE_POINTER },
		{ .name = "b", .type = ETW_TYPE_POINTER },
		{ .name = "c", .type = ETW_TYPE_POINTER },
	};
	static const struct etw_field array[] = { { .name = "a", .type = ETW_TYPE_POINTER, .array = ETW_ARRAY_FIXED, .count = 2 } };
	static const struct etw_field far[] = {
		{ .name = "a", .type = ETW_TYPE_CHARS, .count = ETW_SCRUB_SIZE - 7 },
		{ .name = "p", .type = ETW_TYPE_POINTER },
	};
	struct etw_class class = bare;

	class.fields = far;
	class.nr_fields = ARRAY_SIZE(far);
	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), -EINVAL);
	class.fields = behind;
	class.nr_fields = ARRAY_SIZE(behind);
	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), -EINVAL);
	class.fields = many;
	class.nr_fields = ARRAY_SIZE(many);
	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), -EINVAL);
	class.fields = array;
	class.nr_fields = ARRAY_SIZE(array);
	KUNIT_EXPECT_EQ(test, etw_schema_scan(&class), -EINVAL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(entry_says_what_the_class_says),
	KUNIT_CASE(a_class_of_nothing_is_an_entry),
	KUNIT_CASE(kernel_pointers_are_found),
	KUNIT_CASE(kernel_pointers_out_of_reach_are_refused),
	{}
};

static struct kunit_suite suite = { .name = "etw_schema", .test_cases = cases };

kunit_test_suite(suite);
