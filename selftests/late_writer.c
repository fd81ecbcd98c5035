// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer is held up between reserving its record and committing it, or before it reserves, as an interrupt or a hypervisor
 * can: FLUSH says so when its time is over, and what comes after waits for the record. Needs a test build of the module (its
 * generator).
 */
#include <fcntl.h>
#include <signal.h>

#include "etw_test.h"

#define GENERATOR "/dev/etw-test"

FIXTURE(late_writer)
{
	int dev;
	int fd;
	unsigned int cpu;
	struct log log;
	struct reader reader;
};

FIXTURE_SETUP(late_writer)
{
	struct etw_session_create create = session_small(unique("late"));

	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(1, enable_events(self->fd, "test", "fixed"));
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
	self->cpu = cpus_online() - 1;
	ASSERT_EQ(0, pin(0));
}

FIXTURE_TEARDOWN(late_writer)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

struct hold {
	unsigned int cpu;
	unsigned int ms;
	const char *where;	/* NULL: with its record reserved */
};

static void write_slowly(void *arg)
{
	const struct hold *hold = arg;
	char text[64];

	snprintf(text, sizeof(text), "burst cpu=%u hold_us=%u where=%s", hold->cpu, hold->ms * 1000, hold->where ?: "record");
	file_write(GENERATOR, text);
}

static bool held(unsigned int cpu)
{
	char text[16384], line[32];

	snprintf(line, sizeof(line), "\nheld %u 1\n", cpu);
	return file_read(GENERATOR, text, sizeof(text)) > 0 && strstr(text, line);
}

/* The writer went on, and its record is there. */
static void expect_written(struct __test_metadata *_metadata, FIXTURE_DATA(late_writer) *self, pid_t pid)
{
	EXPECT_FALSE(held(self->cpu));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(1, log_count(&self->log, "fixed"));
	reap(pid);
	ASSERT_SUMS(self->fd);
}

TEST_F(late_writer, flush_times_out)
{
	struct hold hold = { self->cpu, scaled(400) };
	struct etw_flush flush;
	struct etw_cpu_query cpu;
	pid_t pid;

	if (!self->cpu)
		SKIP(return, "one CPU only");
	pid = spawn(write_slowly, &hold);
	ASSERT_TRUE(wait_until(5000, held(self->cpu)));
	poison(flush);
	flush.timeout_ms = 20;
	flush.reserved = 0;
	EXPECT_EQ(-ETIMEDOUT, call(self->fd, ETW_IOC_SESSION_FLUSH, &flush));
	EXPECT_EQ(self->cpu, flush.cpu);
	EXPECT_TRUE(held(self->cpu));
	/* Not promised, and so not said. */
	ASSERT_TRUE(session_cpu(self->fd, self->cpu, &cpu));
	EXPECT_LT(cpu.complete_up_to, flush.time);
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(0, log_count(&self->log, "fixed"));
	/* With more time it waits for the writer. */
	ASSERT_NE(0, session_flush(self->fd));
	expect_written(_metadata, self, pid);
}

/* Nothing is open, but a writer has read the clock before FLUSH did: its record is promised. */
TEST_F(late_writer, flush_waits_for_an_old_reading)
{
	struct hold hold = { self->cpu, scaled(500), "begin" };
	pid_t pid;

	if (!self->cpu)
		SKIP(return, "one CPU only");
	pid = spawn(write_slowly, &hold);
	ASSERT_TRUE(wait_until(5000, held(self->cpu)));
	ASSERT_NE(0, session_flush(self->fd));
	expect_written(_metadata, self, pid);
}

/* Nothing that was reserved before it is missing after it. */
TEST_F(late_writer, stop_waits)
{
	struct hold hold = { self->cpu, scaled(500) };
	pid_t pid;

	if (!self->cpu)
		SKIP(return, "one CPU only");
	pid = spawn(write_slowly, &hold);
	ASSERT_TRUE(wait_until(5000, held(self->cpu)));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	expect_written(_metadata, self, pid);
}

/* When DISABLE returns no event comes any more, not even the one that had begun. */
TEST_F(late_writer, disable_waits)
{
	struct hold hold = { self->cpu, scaled(500) };
	pid_t pid;

	if (!self->cpu)
		SKIP(return, "one CPU only");
	pid = spawn(write_slowly, &hold);
	ASSERT_TRUE(wait_until(5000, held(self->cpu)));
	ASSERT_EQ(0, disable(self->fd, "test"));
	EXPECT_FALSE(held(self->cpu));
	reap(pid);
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(1, log_count(&self->log, "fixed"));
}

TEST_HARNESS_MAIN
