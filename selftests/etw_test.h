/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's test harness with what every program of ours adds to it: a time limit that slow machines can keep, and
 * checks that print what broke. One program includes it once.
 */
#ifndef ETW_SELFTEST_ETW_TEST_H
#define ETW_SELFTEST_ETW_TEST_H

#include <kselftest_harness.h>

#include "util.h"

/* Every test gets this many seconds; software emulation on a busy machine is 50 times slower than metal. */
#define ETW_TIMEOUT 300
#undef TEST_F
#define TEST_F(fixture, name) TEST_F_TIMEOUT(fixture, name, ETW_TIMEOUT)

/* A reader's checks found nothing wrong. Use as a statement after every reader_drain(). */
#define ASSERT_DRAINED(reader) do {						\
	if (reader_drain(reader) < 0) {						\
		TH_LOG("%s", (reader)->error);					\
		ASSERT_TRUE(false);						\
	}									\
} while (0)

/* The sums of R4 that hold at rest, for a session, its relays and its providers. */
#define ASSERT_SUMS(session) do {						\
	const char *_why = sums_broken(session);				\
	if (_why) {								\
		TH_LOG("%s", _why);						\
		ASSERT_TRUE(false);						\
	}									\
} while (0)

/* Everything recorded so far has been read, and the sums hold. */
#define ASSERT_ALL_READ(session, reader) do {					\
	ASSERT_NE(0, session_flush(session));					\
	ASSERT_DRAINED(reader);							\
	ASSERT_SUMS(session);							\
} while (0)

#endif
