// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tracer says of itself, through the provider "etw": sessions that start and stop, what is enabled, the clocks,
 * what was lost, why and when.
 */
#include <sys/ioctl.h>

#include "etw_test.h"

FIXTURE(self)
{
	int dev;
	int fd;
	struct log log;
	struct reader reader;
};

FIXTURE_SETUP(self)
{
	struct etw_session_create create = session_small(unique("self"));

	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(1, enable_all(self->fd, "etw"));
}

FIXTURE_TEARDOWN(self)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

#define FLUSH_AND_DRAIN() do {						\
	ASSERT_NE(0, session_flush(self->fd));				\
	ASSERT_DRAINED(&self->reader);					\
} while (0)

#define OPEN_LOG(number, text) do {					\
	self->log.number_field = number;				\
	self->log.text_field = text;					\
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));	\
} while (0)

static const struct kept *find(const struct log *log, const char *name, const char *text)
{
	for (size_t i = 0; i < log->nr; i++)
		if (!strcmp(log->events[i].name, name) && (!text || !strcmp(log->events[i].text, text)))
			return &log->events[i];
	return NULL;
}

/* Another session starts and stops: each once, by name and number, at the right time. */
TEST_F(self, sessions)
{
	struct etw_session_create create = session_small(unique("watched"));
	const struct kept *start, *stop;
	uint64_t before, after;
	__u64 id;
	int other;

	OPEN_LOG("session_id", "session");
	before = now_ns();
	other = session_make(self->dev, &create);
	after = now_ns();
	ASSERT_GE(other, 0);
	id = session_query(other).id;
	close(other);
	FLUSH_AND_DRAIN();
	start = find(&self->log, "session_start", (char *)create.name);
	stop = find(&self->log, "session_stop", (char *)create.name);
	ASSERT_NE(NULL, start);
	ASSERT_NE(NULL, stop);
	EXPECT_EQ(id, start->number);
	EXPECT_EQ(id, stop->number);
	EXPECT_GE(start->time, before);
	EXPECT_LE(start->time, after);
	EXPECT_GE(stop->time, after);
	EXPECT_EQ(1, log_count(&self->log, "session_stop"));
}

/* On enable the sessions that are there already are told. */
TEST_F(self, session_state)
{
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "etw" };

	OPEN_LOG("session_id", "session");
	FLUSH_AND_DRAIN();
	EXPECT_NE(NULL, find(&self->log, "session_state", (char *)session_query(self->fd).name));
	self->log.nr = 0;
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	FLUSH_AND_DRAIN();
	EXPECT_NE(NULL, find(&self->log, "session_state", (char *)session_query(self->fd).name));
}

/* Its own stop is the session's last word. */
TEST_F(self, own_stop)
{
	const struct kept *stop;
	size_t i;

	OPEN_LOG("reason", "session");
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	stop = find(&self->log, "session_stop", (char *)session_query(self->fd).name);
	ASSERT_NE(NULL, stop);
	EXPECT_EQ(ETW_STOP_REQUEST, stop->number);
	for (i = 0; i < self->log.nr; i++)
		EXPECT_LE(self->log.events[i].time, stop->time);
	EXPECT_LE(stop->time, session_query(self->fd).stop_time);
}

TEST_F(self, enable_changes)
{
	struct etw_session_create create = session_small(unique("changed"));
	struct etw_enable e = enable_make("sched");
	int other = session_make(self->dev, &create);

	ASSERT_GE(other, 0);
	OPEN_LOG("level", "provider");
	e.level = 4;
	ASSERT_EQ(1, call(other, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(0, disable(other, "sched"));
	ASSERT_EQ(0, disable(other, "sched"));		/* changes nothing, so is not told */
	FLUSH_AND_DRAIN();
	ASSERT_NE(NULL, find(&self->log, "provider_enable", "Linux-Kernel-Sched"));
	EXPECT_EQ(4, find(&self->log, "provider_enable", "Linux-Kernel-Sched")->number);
	EXPECT_NE(NULL, find(&self->log, "provider_disable", "Linux-Kernel-Sched"));
	EXPECT_EQ(1, log_count(&self->log, "provider_disable"));
	close(other);
}

static uint64_t clocks[5];
static struct kept snapshot;

static void clock_event(const struct event *event, void *arg)
{
	static const char *const fields[] = { "monotonic", "boot", "real", "tai", "cycles" };
	int64_t v;

	if (!event_is(event, "clock_snapshot"))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(fields); i++)
		clocks[i] = event_number(event, fields[i], &v) ? v : 0;
	snapshot.time = event->time;
}

/* The clocks of one moment: each lies between what user space reads before and after. */
TEST_F(self, clock_snapshot)
{
	static const clockid_t ids[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_TAI };
	uint64_t before[4], after[4];
	unsigned int i;

	ASSERT_EQ(0, reader_open(&self->reader, self->fd, clock_event, NULL));
	FLUSH_AND_DRAIN();
	for (i = 0; i < 4; i++)
		before[i] = clock_ns(ids[i]);
	ASSERT_NE(0, session_flush(self->fd));
	for (i = 0; i < 4; i++)
		after[i] = clock_ns(ids[i]);
	ASSERT_DRAINED(&self->reader);
	ASSERT_NE(0, snapshot.time);
	for (i = 0; i < 4; i++) {
		EXPECT_GE(clocks[i], before[i]);
		EXPECT_LE(clocks[i], after[i]);
	}
	EXPECT_NE(0, clocks[4]);
	EXPECT_LE(clocks[0], snapshot.time);
}

/* What was enabled once and is no more is not written, though the session still knows the class. */
TEST_F(self, only_what_is_enabled)
{
	struct etw_enable e = enable_make("etw");

	OPEN_LOG("monotonic", NULL);
	FLUSH_AND_DRAIN();
	EXPECT_GT(log_count(&self->log, "clock_snapshot"), 0);
	e.any = 1;				/* its keyword "session" */
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	FLUSH_AND_DRAIN();
	self->log.nr = 0;
	FLUSH_AND_DRAIN();
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(0, log_count(&self->log, "clock_snapshot"));
	EXPECT_EQ(1, log_count(&self->log, "session_stop"));
}

static struct {
	uint64_t records, count, first, last;
	int64_t cause, cpu;
} lost;

static void lost_event(const struct event *event, void *arg)
{
	int64_t v;

	if (!event_is(event, "records_lost"))
		return;
	lost.records++;
	event_number(event, "cause", &lost.cause);
	event_number(event, "cpu", &lost.cpu);
	if (event_number(event, "count", &v))
		lost.count += v;
	if (event_number(event, "first", &v) && (lost.records == 1 || (uint64_t)v < lost.first))
		lost.first = v;
	if (event_number(event, "last", &v) && (uint64_t)v > lost.last)
		lost.last = v;
}

/* What was lost is told: how much, why, on which CPU, between which times. */
TEST_F(self, losses)
{
	uint64_t before, after, sum;
	struct etw_session_query q;
	unsigned int i;

	ASSERT_EQ(0, reader_open(&self->reader, self->fd, lost_event, NULL));
	FLUSH_AND_DRAIN();
	EXPECT_EQ(0, lost.records);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	before = now_ns();
	work_rename("lost", 0, 10000);
	/* The news of this is lost as well. */
	ASSERT_EQ(0, disable(self->fd, "process"));
	after = now_ns();
	/* There must be room for the news of it. */
	ASSERT_DRAINED(&self->reader);
	for (i = 0; i < 3; i++)
		FLUSH_AND_DRAIN();
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	q = session_query(self->fd);
	sum = 0;
	for (i = 0; i < ETW_NR_LOST; i++)
		sum += q.lost[i];
	ASSERT_GT(sum, 1000);
	EXPECT_EQ(sum, q.lost[ETW_LOST_NO_ROOM]);
	EXPECT_EQ(sum, lost.count);
	EXPECT_EQ(ETW_LOST_NO_ROOM, lost.cause);
	EXPECT_EQ(0, lost.cpu);
	EXPECT_GE(lost.first, before);
	EXPECT_LE(lost.last, after);
	EXPECT_LE(lost.first, lost.last);
	ASSERT_SUMS(self->fd);
}

TEST_HARNESS_MAIN
