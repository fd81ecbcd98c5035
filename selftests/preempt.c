// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writers that are preempted and moved all the time, on kernels whose tracepoints call probes with preemption on: it is
 * off where records are made, and each event arrives once, in order, on the CPU that wrote it. Needs a test build of the
 * module; it must not know how the write path keeps that.
 */
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "etw_test.h"
#include "tally.h"

#define WRITERS		6
#define BURSTS		120
#define PER_BURST	250

/* What the writers' processes tell: shared memory. */
struct told {
	unsigned int done;
	unsigned int failed;
	unsigned long preempted;
	unsigned long moved;
};

FIXTURE(preempt)
{
	int dev, session;
	struct reader reader;
	struct tally tally;
	struct emitted from, to;
	struct told *told;
	pid_t writers[WRITERS], pushers[8];
	unsigned int cpus;
};

FIXTURE_SETUP(preempt)
{
	struct etw_session_create create = session_small(unique("preempt"));

	ASSERT_TRUE(generator_there());
	self->cpus = cpus_online();
	ASSERT_LE(self->cpus, ARRAY_SIZE(self->pushers));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	create.subbuf_size = 65536;
	create.nr_subbufs = 128;	/* room for all of it */
	self->session = session_make(self->dev, &create);
	ASSERT_GE(self->session, 0);
	ASSERT_EQ(0, generate("rundown count=4"));
	emitted_read(&self->from);
	ASSERT_EQ(1, enable_all(self->session, "test"));
	ASSERT_EQ(0, reader_open(&self->reader, self->session, tally_event, &self->tally));
	self->told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->told);
}

FIXTURE_TEARDOWN(preempt)
{
	munmap(self->told, 4096);
	reader_close(&self->reader);
	close(self->session);
	close(self->dev);
}

static void write_bursts(void *arg)
{
	struct told *told = arg;
	struct rusage usage;
	unsigned int i;

	for (i = 0; i < BURSTS; i++)
		if (generate("burst bare=1 size=8 class=%s count=%u", kind_names[i % 2 ? SIZED : FIXED], PER_BURST))
			__atomic_fetch_add(&told->failed, 1, __ATOMIC_RELAXED);
	getrusage(RUSAGE_SELF, &usage);
	__atomic_fetch_add(&told->preempted, usage.ru_nivcsw, __ATOMIC_RELAXED);
	__atomic_fetch_add(&told->done, 1, __ATOMIC_RELEASE);
}

/* This process runs as soon as it wants to. */
static int before_others(void)
{
	struct sched_param param = { .sched_priority = 10 };

	prctl(PR_SET_TIMERSLACK, 1);
	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

/* Runs before everybody else on one CPU, for a moment, again and again; each time is a preemption of who wrote there. */
static void push(void *arg)
{
	struct timespec pause = { .tv_nsec = 100000 };

	if (pin((intptr_t)arg) || before_others())
		_exit(1);
	for (;;)
		nanosleep(&pause, NULL);
}

/* "preemptible CALLS WRITES" */
static void preemptible(unsigned long long *calls, unsigned long long *writes)
{
	FILE *f = fopen("/dev/etw-test", "re");
	char line[128];

	*calls = *writes = -1ULL;
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "preemptible %llu %llu", calls, writes);
	if (f)
		fclose(f);
}

/* From which version on this kernel's tracepoints leave preemption on. */
static bool callers_preemptible(void)
{
	struct utsname u;
	unsigned int major = 0;

	uname(&u);
	return sscanf(u.release, "%u.", &major) == 1 && major >= 7;
}

TEST_F(preempt, moved_and_interrupted)
{
	unsigned long long calls[2], writes[2];
	struct etw_session_query q;
	unsigned int i, round = 0;
	uint64_t events = 0;
	const char *why;

	preemptible(&calls[0], &writes[0]);
	for (i = 0; i < self->cpus; i++)
		self->pushers[i] = spawn(push, (void *)(intptr_t)i);
	for (i = 0; i < WRITERS; i++)
		self->writers[i] = spawn(write_bursts, self->told);
	ASSERT_EQ(0, before_others());
	while (__atomic_load_n(&self->told->done, __ATOMIC_ACQUIRE) < WRITERS) {
		cpu_set_t set;

		/* To another CPU, whatever they are doing. */
		for (i = 0; i < WRITERS; i++) {
			CPU_ZERO(&set);
			CPU_SET((round + i) % self->cpus, &set);
			if (!sched_setaffinity(self->writers[i], sizeof(set), &set))
				self->told->moved++;
		}
		round++;
		sleep_ms(1);
	}
	for (i = 0; i < WRITERS; i++)
		waitpid(self->writers[i], NULL, 0);
	for (i = 0; i < self->cpus; i++)
		reap(self->pushers[i]);
	preemptible(&calls[1], &writes[1]);

	EXPECT_EQ(0, self->told->failed);
	EXPECT_EQ(0, disable(self->session, "test"));
	EXPECT_EQ(0, call(self->session, ETW_IOC_SESSION_STOP, NULL));
	emitted_read(&self->to);
	ASSERT_DRAINED(&self->reader);
	why = sums_broken(self->session);
	if (!why)
		why = tally_broken(self->session, &self->tally, &self->from, &self->to, false);
	if (why)
		TH_LOG("%s", why);
	EXPECT_EQ(NULL, why);

	q = session_query(self->session);
	for (i = 0; i < self->cpus; i++)
		events += self->to.nr[i][TASK][FIXED] - self->from.nr[i][TASK][FIXED] +
			  self->to.nr[i][TASK][SIZED] - self->from.nr[i][TASK][SIZED];
	printf("# events %llu, written %llu, calls with preemption on %llu, writers preempted %lu, moved %lu\n", (llu)events,
	       (llu)q.written, calls[1] - calls[0], self->told->preempted, self->told->moved);
	EXPECT_EQ(WRITERS * BURSTS * PER_BURST, events);
	EXPECT_EQ(events + 4, q.written);	/* and the rundown */
	EXPECT_GT(self->told->preempted, 50);
	EXPECT_GT(self->told->moved, 20);
	EXPECT_EQ(0, writes[1] - writes[0]);
	EXPECT_EQ(callers_preemptible() ? events : 0, calls[1] - calls[0]);
}

TEST_HARNESS_MAIN
