// SPDX-License-Identifier: GPL-2.0-only
/*
 * What QUERY tells is true, FLUSH keeps its promise, and no session disturbs another. It must not know how counts are
 * kept.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "etw_test.h"

FIXTURE(account)
{
	int dev;
	int fd;
	struct log log;
	struct reader reader;
};

FIXTURE_VARIANT(account)
{
	__u32 flags;
};

FIXTURE_VARIANT_ADD(account, discard) { 0 };
FIXTURE_VARIANT_ADD(account, overwrite) { ETW_SESSION_OVERWRITE };

FIXTURE_SETUP(account)
{
	struct etw_session_create create = session_small(unique("account"));

	create.flags = variant->flags;
	create.subbuf_size = 4096;	/* a drain beside writers takes all that a relay holds */
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	self->log.text_field = "newcomm";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(account)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

static unsigned int number_of(const char *text)
{
	return atoi(text + strcspn(text, "0123456789"));
}

/* Written and filtered by CPU, provider and class are what was done, to the event. */
TEST_F(account, exact_counts)
{
	unsigned int cpus = cpus_online(), i, total = 0;
	struct etw_provider_query process, block;
	struct etw_cpu_query cpu;
	struct etw_session_query q;

	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	ASSERT_EQ(1, enable_all(self->fd, "block"));
	q = session_query(self->fd);
	EXPECT_EQ(2, q.nr_enabled);
	for (i = 0; i < cpus; i++) {
		__u64 before;

		ASSERT_EQ(0, pin(i));
		ASSERT_TRUE(session_cpu(self->fd, i, &cpu));
		before = cpu.written;
		work_rename("exact", 0, 10 + i);
		total += 10 + i;
		ASSERT_TRUE(session_cpu(self->fd, i, &cpu));
		EXPECT_EQ(before + 10 + i, cpu.written);
		EXPECT_EQ(i, cpu.cpu);
		EXPECT_GT(cpu.open_bytes, 0);
		EXPECT_EQ(0, cpu.lost_total);
		EXPECT_EQ(0, cpu.first_seq);
		EXPECT_EQ(1, cpu.next_seq);
	}
	process = session_provider(self->fd, "process");
	EXPECT_EQ(total, process.written);
	block = session_provider(self->fd, "block");
	EXPECT_NE(process.id, block.id);
	ASSERT_EQ(0, disable(self->fd, "process"));
	ASSERT_EQ(0, disable(self->fd, "block"));
	ASSERT_SUMS(self->fd);
	q = session_query(self->fd);
	EXPECT_EQ(q.written, q.unread);
	EXPECT_EQ(0, q.nr_enabled);
	EXPECT_EQ(0, session_provider(self->fd, "process").enabled);
	EXPECT_EQ(total, session_provider(self->fd, "process").written);
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	ASSERT_SUMS(self->fd);
	q = session_query(self->fd);
	EXPECT_EQ(q.written, q.delivered);
	EXPECT_EQ(0, q.unread);
	EXPECT_EQ(total, log_count(&self->log, RENAMED));
	for (i = 0; i < cpus; i++) {
		ASSERT_TRUE(session_cpu(self->fd, i, &cpu));
		EXPECT_EQ(cpu.next_seq, cpu.first_seq);
		EXPECT_EQ(0, cpu.open_bytes);
	}
}

/* A packet in hand is unread until PUT. */
TEST_F(account, delivered_at_put)
{
	struct relay *relay = &self->reader.relays[0];
	struct etw_session_query q;
	struct etw_subbuf sb;

	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	work_rename("put", 0, 5);
	ASSERT_NE(0, session_flush(self->fd));
	q = session_query(self->fd);
	EXPECT_EQ(5, q.unread);
	EXPECT_EQ(0, q.delivered);
	ASSERT_EQ(0, relay_get(relay, &sb));
	EXPECT_EQ(5, sb.records);
	q = session_query(self->fd);
	EXPECT_EQ(5, q.unread);
	EXPECT_EQ(0, q.delivered);
	ASSERT_EQ(0, relay_put(relay));
	q = session_query(self->fd);
	EXPECT_EQ(0, q.unread);
	EXPECT_EQ(5, q.delivered);
}

/* FLUSH: what was recorded before is delivered, nothing delivered later is older, and idle relays get no packets. */
TEST_F(account, flush_promise)
{
	unsigned int i, round, cpus = cpus_online();
	uint64_t time = 0, before, packets;
	pid_t pids[64];
	size_t seen = 0, k;

	self->log.only = RENAMED;
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (round = 0; round < 10; round++) {
		before = now_ns();
		work_rename("flush", round, 1);
		time = session_flush(self->fd);
		ASSERT_GE(time, before);
		ASSERT_LE(time, now_ns());
		ASSERT_DRAINED(&self->reader);
		ASSERT_EQ(round + 1, self->log.nr);
		ASSERT_LT(self->log.events[round].time, time);
		EXPECT_GE(session_query(self->fd).complete_up_to, time);
	}
	packets = self->reader.packets;
	for (round = 0; round < 5; round++)
		ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(packets, self->reader.packets);

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	for (i = 0; i < cpus; i++)
		pids[i] = spawn(rename_for_ever, (void *)(intptr_t)i);
	seen = self->log.nr;
	for (round = 0; round < 100; round++) {
		for (k = seen; k < self->log.nr; k++)
			ASSERT_GE(self->log.events[k].time, time);
		seen = self->log.nr;
		/* What is read before this FLUSH is none of its business. */
		ASSERT_DRAINED(&self->reader);
		for (k = seen; k < self->log.nr; k++)
			ASSERT_GE(self->log.events[k].time, time);
		time = session_flush(self->fd);
		ASSERT_NE(0, time);
		/* All before @time comes now; later, only what is not before it. */
		ASSERT_DRAINED(&self->reader);
		seen = self->log.nr;
	}
	for (i = 0; i < cpus; i++)
		reap(pids[i]);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = 1;
}

static void flush_for_ever(void *name)
{
	int dev = device_open(), fd = session_open(dev, name);

	for (;;)
		session_flush(fd);
}

/* A signal ends the wait for others who flush. */
TEST_F(account, flush_interrupted)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct itimerval often = { { 0, 700 }, { 0, 700 } }, never = { 0 };
	struct etw_session_query q = session_query(self->fd);
	int others[3], flushes = 0, hits = 0;
	uint64_t end;

	for (int i = 0; i < 3; i++)
		others[i] = spawn(flush_for_ever, q.name);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (end = now_ns() + scaled(20000) * 1000000ULL; !hits && now_ns() < end; flushes++)
		if (!session_flush(self->fd)) {
			ASSERT_EQ(EINTR, errno);
			hits++;
		}
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < 3; i++)
		reap(others[i]);
	TH_LOG("interrupted after %d times", flushes);
	EXPECT_TRUE(interrupted);
	EXPECT_EQ(1, hits);
	EXPECT_NE(0, session_flush(self->fd));
}

/*
 * complete_up_to: once GET says EAGAIN, no record of that relay with a lower time comes any more. Merging in time order
 * rests on it.
 */
TEST_F(account, complete_up_to)
{
	unsigned int i, round, cpus = cpus_online(), moved = 0;
	__u64 complete[64] = { 0 };
	struct etw_cpu_query cpu;
	pid_t pids[64];
	size_t k, seen;

	if (variant->flags & ETW_SESSION_OVERWRITE)
		SKIP(return, "for live readers, who use discard mode");
	self->log.only = RENAMED;
	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	for (i = 0; i < cpus; i++)
		pids[i] = spawn(rename_for_ever, (void *)(intptr_t)i);
	for (round = 0; round < 300; round++) {
		__u64 next[64];

		for (i = 0; i < cpus; i++) {
			ASSERT_TRUE(session_cpu(self->fd, i, &cpu));
			next[i] = cpu.complete_up_to;
			ASSERT_GE(next[i], complete[i]);
			moved += next[i] > complete[i];
		}
		seen = self->log.nr;
		ASSERT_DRAINED(&self->reader);
		for (k = seen; k < self->log.nr; k++)
			ASSERT_GE(self->log.events[k].time, complete[self->log.events[k].cpu]);
		memcpy(complete, next, sizeof(complete));
		if (round % 10 == 0) {
			ASSERT_NE(0, session_flush(self->fd));
		}
	}
	for (i = 0; i < cpus; i++)
		reap(pids[i]);
	EXPECT_GT(moved, 20);
}

/* Session A: floods, overruns, is killed in the middle of a read. */
static void flooding_session(void *arg)
{
	struct etw_session_create create = session_small(unique("flood"));
	int dev = device_open(), fd;
	struct reader reader;
	const char *const providers[] = { "process", "sched", "fault", "block", "etw" };
	unsigned int i;

	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	create.flags = *(__u32 *)arg;
	fd = session_make(dev, &create);
	for (i = 0; i < 5; i++)
		enable_all(fd, providers[i]);
	reader_open(&reader, fd, NULL, NULL);
	for (i = 0;; i++) {
		struct etw_subbuf sb;

		work_touch(16);
		work_fork(1);
		relay_get(&reader.relays[i % reader.nr], &sb);
		if (i % 3 == 0)
			relay_put(&reader.relays[i % reader.nr]);
	}
}

/* Session B is small and without loss, whatever happens to A: it has every event once, in order. */
TEST_F(account, independence)
{
	__u32 other_flags[] = { 0, ETW_SESSION_OVERWRITE };
	const unsigned int nr = 5000;
	struct etw_session_query q;
	pid_t flood[4], load[64];
	unsigned int i, cpus = cpus_online();

	self->log.only = RENAMED;
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 0; i < cpus; i++)
		load[i] = spawn(rename_for_ever, (void *)(intptr_t)i);
	for (i = 0; i < 4; i++)
		flood[i] = spawn(flooding_session, &other_flags[i & 1]);
	for (i = 0; i < nr; i++) {
		work_rename("b", i, 1);
		if (i % 50 == 0)
			ASSERT_DRAINED(&self->reader);
		/* One after the other is killed, and another takes its place. */
		if (i % 1000 == 500) {
			reap(flood[i / 1000 % 4]);
			flood[i / 1000 % 4] = spawn(flooding_session, &other_flags[i / 1000 & 1]);
		}
	}
	for (i = 0; i < 4; i++)
		reap(flood[i]);
	for (i = 0; i < cpus; i++)
		reap(load[i]);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	ASSERT_SUMS(self->fd);
	q = session_query(self->fd);
	EXPECT_EQ(nr, q.written);
	EXPECT_EQ(nr, q.delivered);
	EXPECT_EQ(0, q.overwritten);
	for (i = 0; i < ETW_NR_LOST; i++)
		EXPECT_EQ(0, q.lost[i]);
	EXPECT_EQ(0, reader_gaps(&self->reader));
	EXPECT_GT(q.filtered, 0);
	ASSERT_EQ(nr, self->log.nr);
	/* Each number once: the thread may have moved between CPUs, so order is by time. */
	static unsigned char seen[5000];

	for (i = 0; i < nr; i++)
		seen[number_of(self->log.events[i].text)]++;
	for (i = 0; i < nr; i++)
		ASSERT_EQ(1, seen[i]);
}

static void sleep_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void rename_50(void *arg)
{
	(void)arg;
	work_rename("none", 0, 50);
}

/* What one session rejects and another takes is counted once in each. */
TEST_F(account, rejected_by_one)
{
	struct etw_session_create create = session_small(unique("second"));
	int other = session_make(self->dev, &create), third;
	pid_t pid = spawn(sleep_for_ever, NULL);
	struct etw_provider_query before, q, p, later;

	ASSERT_GE(other, 0);
	ASSERT_EQ(1, enable_renames(self->fd, pid));
	ASSERT_EQ(1, enable_renames(other, getpid()));
	before = session_provider(self->fd, "process");
	work_rename("one", 0, 100);
	/* both reject what others do meanwhile, the first also what they did before the second was enabled */
	q = session_provider(self->fd, "process");
	p = session_provider(other, "process");
	later = session_provider(self->fd, "process");
	EXPECT_EQ(0, later.written);
	EXPECT_EQ(100, p.written);
	EXPECT_LE(q.filtered, 100 + p.filtered + before.filtered);
	EXPECT_GE(later.filtered, 100 + p.filtered);

	/* and beside one that takes everything */
	create = session_small(unique("third"));
	third = session_make(self->dev, &create);
	ASSERT_GE(third, 0);
	ASSERT_EQ(1, enable_events(third, "process", RENAMED));
	work_rename("two", 0, 100);
	EXPECT_LE(q.filtered + 100, session_provider(self->fd, "process").filtered);
	EXPECT_EQ(0, session_provider(self->fd, "process").written);
	EXPECT_EQ(200, session_provider(other, "process").written);
	EXPECT_LE(100, session_provider(third, "process").written);
	/* of somebody whom no filter has */
	p = session_provider(third, "process");
	waitpid(spawn(rename_50, NULL), NULL, 0);
	EXPECT_LE(p.written + 50, session_provider(third, "process").written);
	EXPECT_EQ(200, session_provider(other, "process").written);
	reap(pid);
	close(third);
	close(other);
}

/* Two sessions see the same event at the same time if they have the same clock. */
TEST_F(account, same_event_in_two_sessions)
{
	struct etw_session_create create = session_small(unique("second"));
	int other = session_make(self->dev, &create);
	struct log log = { .text_field = "newcomm" };
	struct reader reader;
	unsigned int i;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, reader_open(&reader, other, log_event, &log));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	ASSERT_EQ(1, enable_renames(other, getpid()));
	work_rename("same", 0, 100);
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_NE(0, session_flush(other));
	ASSERT_DRAINED(&self->reader);
	ASSERT_DRAINED(&reader);
	ASSERT_EQ(100, self->log.nr);
	ASSERT_EQ(100, log.nr);
	for (i = 0; i < 100; i++) {
		EXPECT_STREQ(self->log.events[i].text, log.events[i].text);
		EXPECT_EQ(self->log.events[i].time, log.events[i].time);
	}
	reader_close(&reader);
	log_free(&log);
	close(other);
}

TEST_HARNESS_MAIN
