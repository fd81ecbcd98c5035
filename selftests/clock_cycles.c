// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions whose clock is the cycle counter: refused where the kernel does not rely on it, right where it does, and ended when it
 * does no more. The module etw_tsc plays the CPU with such a counter; the kernel must have been told tsc=reliable. The tests of
 * this program are in an order: the last one cannot be taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"

#define NSEC 1000000000ULL
#define NR 50
#define RATE "/sys/module/etw/parameters/untrusted_rate"

static uint64_t cycles(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence"
			 : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* As linux/etw.h says it, in another way than the module. */
static uint64_t to_ns(uint64_t ticks, uint64_t freq)
{
	return (unsigned __int128)ticks * NSEC / freq;
}

static int session_of(int dev, const char *name, __u32 clock, __u32 flags)
{
	struct etw_session_create create = session_small(name);

	create.clock = clock;
	create.flags = flags;
	create.nr_subbufs = 4;
	return session_make(dev, &create);
}

/* ---- a CPU that has none ---- */

FIXTURE(without)
{
	int dev;
};

FIXTURE_SETUP(without)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
}

FIXTURE_TEARDOWN(without)
{
	close(self->dev);
}

TEST_F(without, refused)
{
	struct etw_version before, after;

	poison(before);
	poison(after);
	ASSERT_EQ(0, call(self->dev, ETW_IOC_VERSION, &before));
	EXPECT_EQ(-EOPNOTSUPP, session_of(self->dev, unique("none"), ETW_CLOCK_CYCLES, 0));
	EXPECT_EQ(-EOPNOTSUPP, session_of(self->dev, unique("none"), ETW_CLOCK_CYCLES, ETW_SESSION_PERSIST));
	ASSERT_EQ(0, call(self->dev, ETW_IOC_VERSION, &after));
	EXPECT_EQ(before.memory_used, after.memory_used);
}

/* ---- one that has one ---- */

FIXTURE(cycles)
{
	int dev;
	int fd;
	uint64_t before, after;		/* the counter when the session was made */
	uint64_t freq;
	struct log log;
	struct reader reader;
	int provider, event;
};

/* The kernel measures the counter's rate once more in the seconds after its start, before it takes its own time from it. */
static bool settled(void)
{
	char name[32] = "";

	return file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof(name)) > 0 &&
	       !strncmp(name, "tsc\n", 4);
}

FIXTURE_SETUP(cycles)
{
	const char *name = unique("own");
	int err;

	ASSERT_TRUE(wait_until(60000, settled()));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	err = module_load("/etw/etw_tsc.ko", "");
	ASSERT_TRUE(!err || err == -EEXIST);	/* a test that failed may have left it */
	self->before = cycles();
	self->fd = session_of(self->dev, unique("cycles"), ETW_CLOCK_CYCLES, 0);
	self->after = cycles();
	ASSERT_GE(self->fd, 0);
	self->freq = session_query(self->fd).clock_freq;
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
	self->provider = provider_register(self->dev, name);
	ASSERT_GE(self->provider, 0);
	self->event = provider_counter(self->provider, "own", 1);
	ASSERT_GE(self->event, 0);
	ASSERT_EQ(1, enable_all(self->fd, name));
}

FIXTURE_TEARDOWN(cycles)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->provider);
	close(self->fd);
	close(self->dev);
	module_unload("etw_tsc");
}

/* The frequency is the counter's, the offset that to the epoch, all times are cycles. */
TEST_F(cycles, settings)
{
	uint64_t c[2], t[4], real[2], best = ~0ULL, off = 0, flushed;
	struct etw_session_query q = session_query(self->fd);
	unsigned int i;

	EXPECT_EQ(ETW_CLOCK_CYCLES, q.clock);
	EXPECT_GE(q.start_time, self->before);
	EXPECT_LE(q.start_time, self->after);
	c[0] = cycles();
	q = session_query(self->fd);
	c[1] = cycles();
	EXPECT_GE(q.now, c[0]);
	EXPECT_LE(q.now, c[1]);
	flushed = session_flush(self->fd);
	EXPECT_GE(flushed, c[1]);
	EXPECT_LE(flushed, cycles());

	/* within a thousandth, whatever holds this process up between two readings */
	t[0] = clock_ns(CLOCK_MONOTONIC);
	c[0] = cycles();
	t[1] = clock_ns(CLOCK_MONOTONIC);
	sleep_ms(500);
	t[2] = clock_ns(CLOCK_MONOTONIC);
	c[1] = cycles();
	t[3] = clock_ns(CLOCK_MONOTONIC);
	EXPECT_GT((c[1] - c[0]) * 1000, (t[2] - t[1]) * (q.clock_freq / 1000) / 1000000 * 999);
	EXPECT_LT((c[1] - c[0]) * 1000, (t[3] - t[0]) * (q.clock_freq / 1000) / 1000000 * 1001);

	/* the closest of some tries */
	for (i = 0; i < 200; i++) {
		real[0] = clock_ns(CLOCK_REALTIME);
		c[0] = cycles();
		real[1] = clock_ns(CLOCK_REALTIME);
		if (real[1] - real[0] >= best)
			continue;
		best = real[1] - real[0];
		off = to_ns(c[0], q.clock_freq) + q.clock_offset - real[0];
	}
	EXPECT_LT(off + 200000, 400000 + best) {
		TH_LOG("the epoch is %lld ns off, within %llu", (long long)off, (unsigned long long)best);
	}
}

/*
 * Each stamp lies between the counter before and after: of an event alone in its list, beside sessions with other clocks, by a
 * filter, and of a program's; on both CPUs. And what the monotonic session says of the same events is the same time.
 */
TEST_F(cycles, stamps)
{
	const unsigned int last = cpus_online() - 1;
	int monotonic = session_of(self->dev, unique("beside"), ETW_CLOCK_MONOTONIC, 0);
	int boot = session_of(self->dev, unique("boot"), ETW_CLOCK_BOOT, 0);
	struct etw_session_query q, m;
	struct log other = { .only = RENAMED };
	uint64_t t[4 * NR + 1], own[4 * NR], closest = ~0ULL;
	struct reader reader;
	unsigned int i, renamed = 0, owned = 0, k = 0;

	ASSERT_GE(monotonic, 0);
	ASSERT_GE(boot, 0);
	ASSERT_EQ(0, reader_open(&reader, monotonic, log_event, &other));
	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	for (i = 0; i < 4 * NR; i++) {
		if (i == NR)
			ASSERT_EQ(1, enable_events(boot, "process", RENAMED));
		if (i == 2 * NR)
			ASSERT_EQ(1, enable_events(monotonic, "process", RENAMED));
		if (i == 3 * NR)
			ASSERT_EQ(1, enable_renames(self->fd, getpid()));
		ASSERT_EQ(0, pin(i % 2 ? last : 0));
		t[i] = cycles();
		work_rename("c", i, 1);
		own[i] = cycles();
		ASSERT_GT(write_number(self->provider, self->event, i), 0);
	}
	t[i] = cycles();
	ASSERT_GT(session_flush(self->fd), t[i]);
	ASSERT_NE(0, session_flush(monotonic));
	q = session_query(self->fd);
	m = session_query(monotonic);
	EXPECT_EQ(NSEC, m.clock_freq);
	ASSERT_DRAINED(&self->reader);
	ASSERT_DRAINED(&reader);
	EXPECT_EQ(8 * NR, self->log.nr);
	EXPECT_EQ(2 * NR, other.nr);
	for (k = 0; k < self->log.nr; k++) {
		const struct kept *e = &self->log.events[k];

		if (strcmp(e->name, RENAMED))
			continue;
		/* each relay's are in order: which one it is, its time says */
		for (i = e->cpu != 0; i < 4 * NR && e->time > own[i]; i += 2)
			;
		ASSERT_LT(i, 4 * NR);
		EXPECT_GE(e->time, t[i]);
		renamed++;
		for (i = 0; i < other.nr; i++) {
			uint64_t ns = to_ns(e->time, q.clock_freq) + q.clock_offset, theirs = other.events[i].time + m.clock_offset;
			uint64_t apart = ns > theirs ? ns - theirs : theirs - ns;

			if (other.events[i].cpu == e->cpu && apart < closest)
				closest = apart;
		}
	}
	for (k = 0; k < self->log.nr; k++) {
		const struct kept *e = &self->log.events[k];

		if (strcmp(e->name, "own"))
			continue;
		for (i = e->cpu != 0; i < 4 * NR && e->time > t[i + 1]; i += 2)
			;
		ASSERT_LT(i, 4 * NR);
		EXPECT_GE(e->time, own[i]);
		owned++;
	}
	EXPECT_EQ(4 * NR, renamed);
	EXPECT_EQ(4 * NR, owned);
	EXPECT_LT(closest, 100000);
	reader_close(&reader);
	log_free(&other);
	close(monotonic);
	close(boot);
}

/* The counter is faster than nanoseconds go by; what an untrusted user may record in a second is not more for it. */
TEST_F(cycles, rate)
{
	const char *name = unique("rated");
	const unsigned int rate = 1000, once = rate / 10;
	uint64_t *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct etw_provider_query q;
	int status = -1;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, took);
	ASSERT_EQ(0, enable_all(self->fd, name));
	ASSERT_EQ(0, file_write(RATE, "1000"));
	pid = fork();
	if (!pid) {
		int p, event;

		pin(0);
		p = become_user(1234) ? -1 : provider_register(self->dev, name);
		event = provider_counter(p, "own", 1);
		took[0] = now_ns();
		for (took[1] = took[0]; took[1] - took[0] < NSEC; took[1] = now_ns())
			write_number(p, event, 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ASSERT_EQ(0, file_write(RATE, "100000"));
	ASSERT_EQ(0, status);
	q = session_provider(self->fd, name);
	EXPECT_LT(0, q.lost[ETW_LOST_RATE]);
	EXPECT_GE(once + (took[1] - took[0]) * rate / NSEC + 1, q.written);
	EXPECT_LE(rate / 2, q.written);
	munmap(took, 4096);
}

/* So far apart that the low half of a stamp does not tell them apart: 2^32 cycles are less than two seconds. */
TEST_F(cycles, long_silence)
{
	uint64_t silence = (1ULL << 32) * 1000 / self->freq + 100, t;

	ASSERT_EQ(0, pin(0));
	ASSERT_GT(write_number(self->provider, self->event, 0), 0);
	t = cycles();
	sleep_ms(silence);
	ASSERT_GT(write_number(self->provider, self->event, 1), 0);
	ASSERT_GT(session_flush(self->fd), t);
	ASSERT_DRAINED(&self->reader);
	ASSERT_EQ(2, self->log.nr);
	EXPECT_TRUE(self->log.events[1].extended);
	EXPECT_GT(self->log.events[1].time - self->log.events[0].time, 1ULL << 32);
	EXPECT_LE(self->log.events[0].time, t);
}

/* Payloads tell times in nanoseconds: when the session began, and when it lost something. */
TEST_F(cycles, payloads)
{
	const unsigned int most = 100000;
	int tells = session_of(self->dev, unique("tells"), ETW_CLOCK_CYCLES, 0);
	int loses = session_of(self->dev, unique("loses"), ETW_CLOCK_CYCLES, 0);
	struct log started = { .only = "session_state", .number_field = "start" };
	struct log first = { .only = "records_lost", .number_field = "first" };
	struct reader reader[2];
	struct etw_session_query q;
	unsigned int i;
	uint64_t t;

	ASSERT_GE(tells, 0);
	ASSERT_GE(loses, 0);
	ASSERT_EQ(0, reader_open(&reader[0], tells, log_event, &started));
	ASSERT_EQ(0, reader_open(&reader[1], loses, log_event, &first));
	ASSERT_EQ(1, enable_all(tells, "etw"));
	ASSERT_NE(0, session_flush(tells));
	ASSERT_DRAINED(&reader[0]);
	q = session_query(tells);
	ASSERT_EQ(1, started.nr);
	EXPECT_EQ(to_ns(q.start_time, q.clock_freq), (uint64_t)started.events[0].number);

	ASSERT_EQ(1, enable_all(loses, "etw"));
	ASSERT_EQ(1, enable_renames(loses, getpid()));
	ASSERT_EQ(0, pin(0));
	t = to_ns(cycles(), q.clock_freq);
	for (i = 0; i < most && !session_query(loses).lost[ETW_LOST_NO_ROOM]; i++)
		work_rename("l", i, 1);
	ASSERT_LT(i, most);
	ASSERT_DRAINED(&reader[1]);
	ASSERT_NE(0, session_flush(loses));
	ASSERT_DRAINED(&reader[1]);
	ASSERT_LE(1, first.nr);
	EXPECT_GE((uint64_t)first.events[0].number, t);
	EXPECT_LE((uint64_t)first.events[0].number, to_ns(cycles(), q.clock_freq));
	for (i = 0; i < 2; i++)
		reader_close(&reader[i]);
	log_free(&started);
	log_free(&first);
	close(tells);
	close(loses);
}

/* Sessions come and go while the kernel looks at their clock. */
TEST_F(cycles, many)
{
	uint64_t end = now_ns() + 1500000000ULL;

	while (now_ns() < end) {
		int fd = session_of(self->dev, unique("brief"), ETW_CLOCK_CYCLES, 0);

		ASSERT_GE(fd, 0);
		EXPECT_EQ(ETW_SESSION_RUNNING, session_query(fd).state);
		close(fd);
	}
	EXPECT_EQ(ETW_SESSION_RUNNING, session_query(self->fd).state);
}

/* The session ends and says why, whoever holds it; nobody else's does; what it has recorded can be read. */
TEST_F(cycles, zz_unstable)
{
	const char *name = unique("left");
	int monotonic = session_of(self->dev, unique("other"), ETW_CLOCK_MONOTONIC, 0), left;
	struct log stopped = { .only = "session_stop", .number_field = "reason" };
	struct etw_session_query q;
	struct reader reader;

	ASSERT_GE(monotonic, 0);
	ASSERT_EQ(0, reader_open(&reader, monotonic, log_event, &stopped));
	ASSERT_EQ(1, enable_all(monotonic, "etw"));
	left = session_of(self->dev, name, ETW_CLOCK_CYCLES, ETW_SESSION_PERSIST | ETW_SESSION_OVERWRITE);
	ASSERT_GE(left, 0);
	close(left);
	ASSERT_GT(write_number(self->provider, self->event, 1), 0);
	sleep_ms(1500);
	EXPECT_EQ(ETW_SESSION_RUNNING, session_query(self->fd).state);

	ASSERT_GE(file_write("/sys/module/etw_tsc/parameters/unstable", "1"), 0);
	ASSERT_TRUE(wait_until(3000, session_query(self->fd).state == ETW_SESSION_STOPPED));
	q = session_query(self->fd);
	EXPECT_EQ(ETW_STOP_CLOCK, q.stop_reason);
	EXPECT_EQ(0, q.stopper_pid);
	EXPECT_GE(q.stop_time, q.start_time);
	EXPECT_EQ(-ESHUTDOWN, enable_all(self->fd, "sched"));
	EXPECT_EQ(-ESHUTDOWN, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(1, log_count(&self->log, "own"));
	ASSERT_SUMS(self->fd);
	/* the one that persists had nobody whom to tell, and waits for somebody */
	left = session_open(self->dev, name);
	ASSERT_GE(left, 0);
	ASSERT_TRUE(wait_until(3000, session_query(left).state == ETW_SESSION_STOPPED));
	EXPECT_EQ(ETW_STOP_CLOCK, session_query(left).stop_reason);
	close(left);
	left = session_open(self->dev, name);
	ASSERT_GE(left, 0);
	EXPECT_EQ(0, call(left, ETW_IOC_SESSION_STOP, NULL));
	EXPECT_EQ(ETW_STOP_CLOCK, session_query(left).stop_reason);
	EXPECT_EQ(-ESHUTDOWN, call(left, ETW_IOC_SESSION_STOP, NULL));
	close(left);
	EXPECT_EQ(-ENOENT, session_open(self->dev, name));
	EXPECT_EQ(-EOPNOTSUPP, session_of(self->dev, unique("late"), ETW_CLOCK_CYCLES, 0));

	EXPECT_EQ(ETW_SESSION_RUNNING, session_query(monotonic).state);
	ASSERT_NE(0, session_flush(monotonic));
	ASSERT_DRAINED(&reader);
	ASSERT_EQ(2, stopped.nr);
	EXPECT_EQ(ETW_STOP_CLOCK, stopped.events[0].number);
	EXPECT_EQ(ETW_STOP_CLOCK, stopped.events[1].number);
	reader_close(&reader);
	log_free(&stopped);
	close(monotonic);
}

TEST_HARNESS_MAIN
