// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions while the machine sleeps: the kernel's own test of suspend to memory, which does everything but switch the power off
 * (pm_test "core": devices asleep, all CPUs but one gone, no clock). Needs CONFIG_PM_DEBUG.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emitter.h"
#include "etw_test.h"

#define ASLEEP_S "1"
#define ASLEEP_NS 200000000ULL		/* of which so much at least shows: see sleep_once() */

FIXTURE(suspend)
{
	int dev;
	int fd;
	int beside;			/* a session with another clock */
	struct log log;
	struct reader reader;
};

FIXTURE_VARIANT(suspend)
{
	__u32 clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(suspend, monotonic) { ETW_CLOCK_MONOTONIC, CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(suspend, boot) { ETW_CLOCK_BOOT, CLOCK_BOOTTIME };
/* The offset to UTC is that of the session's start: what was slept is missing here too. */
FIXTURE_VARIANT_ADD(suspend, real) { ETW_CLOCK_REAL, CLOCK_MONOTONIC };

FIXTURE_SETUP(suspend)
{
	struct etw_session_create create = session_small(unique("suspend"));

	create.clock = variant->clock;
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
	create = session_small(unique("beside"));
	create.clock = variant->clock == ETW_CLOCK_BOOT ? ETW_CLOCK_MONOTONIC : ETW_CLOCK_BOOT;
	self->beside = session_make(self->dev, &create);
	ASSERT_GE(self->beside, 0);
}

FIXTURE_TEARDOWN(suspend)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->beside);
	close(self->fd);
	close(self->dev);
}

static uint64_t slept(void)
{
	uint64_t awake = clock_ns(CLOCK_MONOTONIC);	/* first, or the difference could be below zero */

	return clock_ns(CLOCK_BOOTTIME) - awake;
}

/* 0 when the machine is awake again, or -errno. What it slept is told by a clock of whole seconds, so it may take two. */
static int sleep_once(void)
{
	uint64_t before = slept();
	unsigned int tries = 5;
	int err = file_write("/sys/module/suspend/parameters/pm_test_delay", ASLEEP_S);

	if (err >= 0)
		err = file_write("/sys/power/pm_test", "core");
	while (err >= 0 && slept() < before + ASLEEP_NS)
		err = tries-- ? file_write("/sys/power/state", "mem") : -ETIME;
	return err < 0 ? err : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* Every stamp, a kernel event's and a program's, is of the session's clock, on the CPU that stayed and on the other. */
TEST_F(suspend, stamps)
{
	const char *numbers[] = { "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7" };
	uint64_t to_utc = variant->clock == ETW_CLOCK_REAL ? clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC) : 0;
	uint64_t slack = to_utc ? 2000000 : 0, t[12], flushed;
	unsigned int i, last = cpus_online() - 1;
	const char *name = unique("own");
	int provider = provider_register(self->dev, name), event;
	struct etw_session_query q;

	ASSERT_GE(provider, 0);
	event = provider_counter(provider, "own", 1);
	ASSERT_GE(event, 0);
	self->log.text_field = "newcomm";
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	ASSERT_EQ(1, enable_all(self->fd, name));
	for (i = 0; i < 8; i++) {
		if (i == 4)
			ASSERT_EQ(0, sleep_once());
		/* what one reading serves is then not this session's alone */
		if (i == 6)
			ASSERT_EQ(1, enable_renames(self->beside, getpid()));
		ASSERT_EQ(0, pin(i % 2 ? last : 0));
		t[i] = clock_ns(variant->id) + to_utc;
		work_rename("z", i, 1);
		ASSERT_GT(write_number(provider, event, i), 0);
	}
	/* So long after the last one that the other clock's time would not even go backwards; alone, and beside another clock. */
	for (i = 8; i < 12; i += 2) {
		sleep_ms(slept() / 1000000 + 100);
		t[i] = clock_ns(variant->id) + to_utc;
		ASSERT_GT(write_number(provider, event, i), 0);
		t[i + 1] = clock_ns(variant->id) + to_utc;
		ASSERT_EQ(1, enable_all(self->beside, name));
	}
	/* What the session says of itself is of this clock too. */
	q = session_query(self->fd);
	flushed = session_flush(self->fd);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	EXPECT_GE(q.now + slack, t[11]);
	EXPECT_GE(flushed, q.now);
	q = session_query(self->fd);
	EXPECT_GE(q.now, flushed);
	EXPECT_LE(q.now, clock_ns(variant->id) + to_utc + slack);
	ASSERT_DRAINED(&self->reader);
	ASSERT_SUMS(self->fd);
	close(provider);
	ASSERT_EQ(18, self->log.nr);
	qsort(self->log.events, 18, sizeof(*self->log.events), by_time);
	for (i = 0; i < 16; i++) {
		struct kept *e = &self->log.events[i];

		EXPECT_STREQ(i % 2 ? "own" : numbers[i / 2], i % 2 ? e->name : e->text);
		EXPECT_EQ(i / 2 % 2 ? last : 0, e->cpu);
		EXPECT_GE(e->time + slack, t[i / 2]);
		EXPECT_LE(e->time, t[i / 2 + 1] + slack);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_GE(self->log.events[16 + i].time + slack, t[8 + 2 * i]);
		EXPECT_LE(self->log.events[16 + i].time, t[9 + 2 * i] + slack);
	}
}

/* All that the kernel does on its way there and back is recorded, or accounted for. */
TEST_F(suspend, on_the_way)
{
	static const char *providers[] = { "sched", "process", "block", "fault" };
	struct etw_session_query before, after;
	unsigned int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(1, enable_all(self->fd, providers[i]));
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	before = session_query(self->fd);
	ASSERT_EQ(0, sleep_once());
	after = session_query(self->fd);
	EXPECT_GT(after.written, before.written + 100);
	/* It delivers afterwards as it did before. */
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	ASSERT_SUMS(self->fd);
	EXPECT_GT(log_count(&self->log, "sched_switch"), 100);
}

TEST_HARNESS_MAIN
