// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a kernel provider from every context, in every kind of session, to the event: each arrives with its contents
 * and in order, or is counted under the right cause. Needs a test build of the module; it must not know how the relay
 * works inside.
 */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "etw_test.h"
#include "tally.h"

/* A session, what was read of it, and what had been emitted when "test" was enabled in it. */
struct box {
	int fd;
	struct reader reader;
	struct tally tally;
	struct emitted from;
};

static int box_open(struct box *b, int dev, struct etw_session_create *create)
{
	memset(b, 0, sizeof(*b));
	b->tally.addresses = create->flags & ETW_SESSION_ADDRESSES;
	b->fd = session_make(dev, create);
	if (b->fd < 0)
		return b->fd;
	emitted_read(&b->from);
	return enable_all(b->fd, "test") == 1 ? reader_open(&b->reader, b->fd, tally_event, &b->tally) : -EINVAL;
}

static void box_close(struct box *b)
{
	reader_close(&b->reader);
	close(b->fd);
}

/* Stop, read the rest, and account for all. */
static const char *box_broken(struct box *b)
{
	struct emitted to;
	const char *why;

	if (disable(b->fd, "test") || call(b->fd, ETW_IOC_SESSION_STOP, NULL))
		return "it does not stop";
	emitted_read(&to);
	if (reader_drain(&b->reader) < 0)
		return b->reader.error;
	why = sums_broken(b->fd);
	return why ? why : tally_broken(b->fd, &b->tally, &b->from, &to, false);
}

#define EXPECT_BOX(b) do {							\
	const char *_why = box_broken(b);					\
	if (_why)								\
		TH_LOG("%s", _why);						\
	EXPECT_EQ(NULL, _why);							\
} while (0)

FIXTURE(stress)
{
	int dev;
	struct box box;
	struct etw_session_create create;
	unsigned int cpus, contexts;
};

FIXTURE_SETUP(stress)
{
	ASSERT_TRUE(generator_there());
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->cpus = cpus_online();
	self->contexts = nmi_there() ? NR_CONTEXTS : NMI;
	self->create = session_small(unique("stress"));
	self->create.subbuf_size = 65536;
	self->box.fd = -1;
	ASSERT_EQ(0, generate("rundown count=4"));
}

FIXTURE_TEARDOWN(stress)
{
	if (self->box.fd >= 0)
		box_close(&self->box);
	close(self->dev);
}

static uint64_t lost_but(const struct etw_session_query *q, unsigned int cause)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ETW_NR_LOST; i++)
		sum += i == cause ? 0 : q->lost[i];
	return sum;
}

/* Every class from every context on every CPU in every kind of session: all is there, none is lost. */
TEST_F(stress, contents)
{
	static const struct {
		__u32 flags, clock;
	} kinds[] = {
		{ 0, ETW_CLOCK_MONOTONIC },
		{ ETW_SESSION_OVERWRITE, ETW_CLOCK_MONOTONIC },
		{ ETW_SESSION_ADDRESSES, ETW_CLOCK_MONOTONIC },
		{ 0, ETW_CLOCK_BOOT },
		{ ETW_SESSION_OVERWRITE, ETW_CLOCK_REAL },
		{ ETW_SESSION_OVERWRITE | ETW_SESSION_ADDRESSES, ETW_CLOCK_BOOT },
	};
	struct box boxes[ARRAY_SIZE(kinds)];
	unsigned int i, cpu, context, kind;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		char name[16];

		snprintf(name, sizeof(name), "box%u", i);
		self->create = session_small(unique(name));
		self->create.subbuf_size = 65536;
		self->create.nr_subbufs = 16;
		self->create.flags = kinds[i].flags;
		self->create.clock = kinds[i].clock;
		ASSERT_EQ(0, box_open(&boxes[i], self->dev, &self->create));
	}
	for (cpu = 0; cpu < self->cpus; cpu++)
		for (context = 0; context < self->contexts; context++)
			for (kind = 0; kind < NR_KINDS; kind++)
				ASSERT_EQ(0, generate("burst context=%s cpu=%u class=%s count=50 chunk=3",
						      context_names[context], cpu, kind_names[kind]));
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct etw_session_query q;

		EXPECT_BOX(&boxes[i]);
		q = session_query(boxes[i].fd);
		EXPECT_EQ(0, lost_but(&q, ETW_NR_LOST));
		EXPECT_EQ(0, q.overwritten);
		EXPECT_EQ(self->cpus * self->contexts * NR_KINDS * 50 + 4, q.delivered);	/* and the rundown */
		for (cpu = 0; cpu < self->cpus; cpu++)
			for (context = 0; context < self->contexts; context++)
				for (kind = 0; kind < NR_KINDS; kind++)
					EXPECT_EQ(50, boxes[i].tally.seen[cpu][context][kind].read);
		box_close(&boxes[i]);
	}
}

/* Without a reader a ring that does not overwrite is full: what comes then is lost for that reason and no other. */
TEST_F(stress, no_room)
{
	struct etw_session_query q;
	unsigned int context, round;

	self->create.subbuf_size = 4096;
	self->create.nr_subbufs = 2;
	ASSERT_EQ(0, box_open(&self->box, self->dev, &self->create));
	for (round = 0; round < 2; round++) {
		for (context = 0; context < self->contexts; context++)
			ASSERT_EQ(0, generate("burst context=%s cpu=%u count=1000 chunk=10", context_names[context],
					      self->cpus - 1));
		q = session_query(self->box.fd);
		EXPECT_GT(q.lost[ETW_LOST_NO_ROOM], (round + 1) * 500 * self->contexts);
		EXPECT_EQ(0, lost_but(&q, ETW_LOST_NO_ROOM));
		EXPECT_EQ(1000ULL * self->contexts * (round + 1) + 4, q.written + q.lost[ETW_LOST_NO_ROOM]);
		ASSERT_DRAINED(&self->box.reader);
	}
	EXPECT_BOX(&self->box);
	EXPECT_GT(tally_missing(&self->box.tally, self->cpus - 1), 0);	/* what was lost before the second round */
}

/* The limit is ETW_MAX_PAYLOAD and the sub-buffer less 128, to the byte; a record of that size arrives. */
TEST_F(stress, too_large)
{
	static const __u32 subbufs[] = { 4096, 131072 };
	unsigned int i, context;

	for (i = 0; i < 2; i++) {
		const __u32 most = (subbufs[i] == 4096 ? 4096 - 128 : ETW_MAX_PAYLOAD) - 17, fits = most & ~3U;
		struct etw_session_query q;

		self->create.subbuf_size = subbufs[i];
		ASSERT_EQ(0, box_open(&self->box, self->dev, &self->create));
		for (context = 0; context < self->contexts; context++) {
			ASSERT_EQ(0, generate("burst context=%s class=large cpu=0 count=2 size=%u", context_names[context],
					      fits));
			ASSERT_EQ(0, generate("burst context=%s class=large cpu=0 count=3 size=%u", context_names[context],
					      fits + 4));
			ASSERT_DRAINED(&self->box.reader);
		}
		q = session_query(self->box.fd);
		EXPECT_EQ(3 * self->contexts, q.lost[ETW_LOST_TOO_LARGE]);
		EXPECT_EQ(0, lost_but(&q, ETW_LOST_TOO_LARGE));
		EXPECT_BOX(&self->box);
		for (context = 0; context < self->contexts; context++)
			EXPECT_EQ(2, self->box.tally.seen[0][context][LARGE].read);
		box_close(&self->box);
		self->box.fd = -1;
	}
}

/* Eight writers inside each other: the inner three are lost, the outer five come out, the innermost first. */
TEST_F(stress, nested)
{
	struct etw_session_query q;
	unsigned int context;

	ASSERT_EQ(0, box_open(&self->box, self->dev, &self->create));
	for (context = 0; context < self->contexts; context++)
		ASSERT_EQ(0, generate("burst context=%s cpu=%u count=20 depth=8", context_names[context],
				      self->cpus - 1));
	q = session_query(self->box.fd);
	EXPECT_EQ(60 * self->contexts, q.lost[ETW_LOST_NESTED]);
	EXPECT_EQ(0, lost_but(&q, ETW_LOST_NESTED));
	EXPECT_BOX(&self->box);
	for (context = 0; context < self->contexts; context++)
		EXPECT_EQ(100, self->box.tally.seen[self->cpus - 1][context][FIXED].read);
	EXPECT_EQ(5, self->box.tally.deepest);
}

/* Holds a writer up on the last CPU, until he is released. */
static void hold_in(void *where)
{
	generate("burst cpu=%u hold_us=10000000 where=%s", cpus_online() - 1, (const char *)where);
}

static void release_soon(void *ms)
{
	sleep_ms((intptr_t)ms);
	generate("release");
}

static bool held(unsigned int cpu)
{
	struct emitted e;

	emitted_read(&e);
	return e.held[cpu];
}

/*
 * Somebody is held up inside a record, and a ring of two goes round under him: wrapped or no room, and his record stays.
 * Not by softirqs, which the kernel may put off until he goes on.
 */
TEST_F(stress, wrapped)
{
	const unsigned int cpu = self->cpus - 1;
	unsigned int mode, context;

	for (mode = 0; mode < 2; mode++) {
		const unsigned int cause = mode ? ETW_LOST_WRAPPED : ETW_LOST_NO_ROOM;
		struct etw_session_query q;
		pid_t pid;

		self->create.flags = mode ? ETW_SESSION_OVERWRITE : 0;
		self->create.subbuf_size = 4096;
		self->create.nr_subbufs = 2;
		ASSERT_EQ(0, box_open(&self->box, self->dev, &self->create));
		pid = spawn(hold_in, "record");
		ASSERT_TRUE(wait_until(5000, held(cpu)));
		for (context = HARDIRQ; context < self->contexts; context++)
			ASSERT_EQ(0, generate("burst context=%s cpu=%u count=500 chunk=25 every_us=20", context_names[context],
					      cpu));
		EXPECT_TRUE(held(cpu));		/* all that was while he was held */
		q = session_query(self->box.fd);
		EXPECT_GT(q.lost[cause], 350 * (self->contexts - HARDIRQ));
		EXPECT_EQ(0, lost_but(&q, cause));
		EXPECT_EQ(0, q.overwritten);
		ASSERT_EQ(0, generate("release"));
		waitpid(pid, NULL, 0);
		EXPECT_BOX(&self->box);
		EXPECT_EQ(1, self->box.tally.seen[cpu][TASK][FIXED].read);
		EXPECT_EQ(2, self->box.tally.deepest);
		box_close(&self->box);
		self->box.fd = -1;
	}
}

/* FLUSH cannot deliver what is still being written: it says so, and where; afterwards it can. */
TEST_F(stress, flush_timeout)
{
	const unsigned int cpu = self->cpus - 1;
	struct etw_flush flush;
	pid_t pid, releaser;

	ASSERT_EQ(0, box_open(&self->box, self->dev, &self->create));
	pid = spawn(hold_in, "record");
	ASSERT_TRUE(wait_until(5000, held(cpu)));
	poison(flush);
	flush.timeout_ms = 20;
	flush.reserved = 0;
	EXPECT_EQ(-ETIMEDOUT, call(self->box.fd, ETW_IOC_SESSION_FLUSH, &flush));
	EXPECT_EQ(cpu, flush.cpu);
	EXPECT_TRUE(held(cpu));
	ASSERT_DRAINED(&self->box.reader);
	EXPECT_EQ(0, tally_read(&self->box.tally, cpu));
	releaser = spawn(release_soon, (void *)100);
	EXPECT_NE(0, session_flush(self->box.fd));		/* waits for him */
	EXPECT_FALSE(held(cpu));
	waitpid(pid, NULL, 0);
	waitpid(releaser, NULL, 0);
	ASSERT_DRAINED(&self->box.reader);
	EXPECT_EQ(1, tally_read(&self->box.tally, cpu));
	EXPECT_BOX(&self->box);
}

static void note_time(const struct event *event, void *arg)
{
	if (event_is(event, "fixed"))
		*(uint64_t *)arg = event->time;
}

/*
 * A writer held up after its clock reading, with nothing reserved, while others close the packet or nothing is open:
 * FLUSH's promise holds, what comes after it is not older.
 */
TEST_F(stress, flush_promise)
{
	const unsigned int cpu = self->cpus - 1;
	unsigned int first;

	for (first = 0; first < 2; first++) {
		int fd = session_make(self->dev, &self->create);
		uint64_t promise, time = 0;
		struct reader reader;
		pid_t pid, releaser;

		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, generate("rundown count=0"));
		ASSERT_EQ(1, enable_all(fd, "test"));
		ASSERT_EQ(0, reader_open(&reader, fd, note_time, &time));
		if (first)
			ASSERT_EQ(0, generate("burst cpu=%u class=sized", cpu));
		pid = spawn(hold_in, "begin");
		ASSERT_TRUE(wait_until(5000, held(cpu)));
		releaser = spawn(release_soon, (void *)100);
		promise = session_flush(fd);
		ASSERT_NE(0, promise);
		ASSERT_DRAINED(&reader);
		if (!time) {
			waitpid(pid, NULL, 0);
			ASSERT_NE(0, session_flush(fd));
			ASSERT_DRAINED(&reader);
			EXPECT_GE(time, promise);
		} else {
			waitpid(pid, NULL, 0);
		}
		waitpid(releaser, NULL, 0);
		EXPECT_NE(0, time);
		reader_close(&reader);
		close(fd);
	}
	generate("rundown count=4");
}

TEST_HARNESS_MAIN
