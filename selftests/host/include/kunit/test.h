/* SPDX-License-Identifier: GPL-2.0-only */
/* As much of KUnit as the module's suites use, on the host: one suite a program, TAP on stdout, memory freed after each case. */
#ifndef ETW_HOST_KUNIT_TEST_H
#define ETW_HOST_KUNIT_TEST_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include <etw-host.h>

struct kunit {
	jmp_buf abort;
	int failed;
	void *memory[16];
	unsigned int nr_memory;
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(function)	{ function, #function }

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	void *p = test->nr_memory < 16 ? calloc(1, size) : NULL;

	(void)gfp;
	return p ? test->memory[test->nr_memory++] = p : NULL;
}

#define KUNIT_CHECK(test, ok, fatal, text, ...)								\
	do {												\
		if (ok)											\
			break;										\
		(test)->failed = 1;									\
		printf("# %s:%d: %s " text "\n", __FILE__, __LINE__, #ok, ##__VA_ARGS__);		\
		if (fatal)										\
			longjmp((test)->abort, 1);							\
	} while (0)

#define kunit_info(test, text, ...)	((void)(test), (void)printf("# " text "\n", ##__VA_ARGS__))
#define kunit_err(test, text, ...)	kunit_info(test, text, ##__VA_ARGS__)

#define KUNIT_EXPECT_EQ(test, a, b)			KUNIT_CHECK(test, (a) == (b), 0, "")
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...)		KUNIT_CHECK(test, (a) == (b), 0, __VA_ARGS__)
#define KUNIT_EXPECT_STREQ(test, a, b)			KUNIT_CHECK(test, !strcmp(a, b), 0, "")
#define KUNIT_EXPECT_TRUE(test, a)			KUNIT_CHECK(test, a, 0, "")
#define KUNIT_EXPECT_TRUE_MSG(test, a, ...)		KUNIT_CHECK(test, a, 0, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE(test, a)			KUNIT_CHECK(test, !(a), 0, "")
#define KUNIT_EXPECT_FALSE_MSG(test, a, ...)		KUNIT_CHECK(test, !(a), 0, __VA_ARGS__)
#define KUNIT_ASSERT_TRUE(test, a)			KUNIT_CHECK(test, a, 1, "")
#define KUNIT_ASSERT_FALSE(test, a)			KUNIT_CHECK(test, !(a), 1, "")
#define KUNIT_ASSERT_EQ(test, a, b)			KUNIT_CHECK(test, (a) == (b), 1, "")
#define KUNIT_ASSERT_LE(test, a, b)			KUNIT_CHECK(test, (a) <= (b), 1, "")
#define KUNIT_ASSERT_NOT_NULL(test, a)			KUNIT_CHECK(test, (a) != NULL, 1, "")

static int run_suite(const struct kunit_suite *suite, int stop)
{
	const struct kunit_case *c;
	int number = 0, failed = 0;

	if (suite->suite_init && suite->suite_init((struct kunit_suite *)suite))
		return 1;
	for (c = suite->test_cases; c->run && !(stop && failed); c++) {
		struct kunit test = { .failed = 0 };

		if (!setjmp(test.abort) && !(suite->init && suite->init(&test)))
			c->run(&test);
		if (suite->exit)
			suite->exit(&test);
		while (test.nr_memory)
			free(test.memory[--test.nr_memory]);
		printf("%sok %d %s.%s\n", test.failed ? "not " : "", ++number, suite->name, c->name);
		fflush(stdout);
		failed |= test.failed;
	}
	if (suite->suite_exit)
		suite->suite_exit((struct kunit_suite *)suite);
	printf("1..%d\n", number);
	return failed;
}

/* With an argument: the first case that fails is the last. */
#define kunit_test_suite(suite)			\
	int main(int argc, char **argv)		\
	{					\
		(void)argv;			\
		return run_suite(&(suite), argc > 1);	\
	}

#endif
