// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs that come for the first time while sessions live, from every context: each event on them is in the trace, or is
 * counted as lost because there was no memory for a relay. Needs a test build of the module, a machine booted with one CPU
 * of several, and memory_limit_mb=2; it must not know how relays come.
 */
#include <poll.h>
#include <sys/ioctl.h>

#include "etw_test.h"
#include "tally.h"

FIXTURE(late)
{
	int dev, fd, others[32];
	unsigned int nr_others;
	struct reader reader;
	struct tally tally;
	struct emitted from, to;
	unsigned int contexts;
};

FIXTURE_SETUP(late)
{
	ASSERT_TRUE(generator_there());
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->contexts = nmi_there() ? NR_CONTEXTS : NMI;
}

FIXTURE_TEARDOWN(late)
{
	reader_close(&self->reader);
	while (self->nr_others)
		close(self->others[--self->nr_others]);
	close(self->fd);
	close(self->dev);
}

static void write_on(unsigned int cpu, unsigned int contexts)
{
	unsigned int context, kind;

	for (context = 0; context < contexts; context++)
		for (kind = 0; kind < NR_KINDS; kind++)
			generate("burst context=%s cpu=%u class=%s count=20 chunk=3", context_names[context], cpu,
				 kind_names[kind]);
}

/* First without memory for its relay, then with, then as if it had always been there. */
TEST_F(late, cpu)
{
	struct etw_session_create create = session_small(unique("late"));
	const unsigned int cpu = cpus_online();
	const uint64_t events = 20ULL * NR_KINDS * self->contexts;
	struct etw_session_query q;
	struct etw_cpu_query r;
	struct pollfd p;
	const char *why;

	ASSERT_LT(cpu, sysconf(_SC_NPROCESSORS_CONF));
	create.nr_subbufs = 16;
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(cpu, session_query(self->fd).nr_relays);
	emitted_read(&self->from);
	ASSERT_EQ(1, enable_all(self->fd, "test"));
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, tally_event, &self->tally));
	p = (struct pollfd){ .fd = self->fd, .events = POLLPRI };

	/* What is left of the limit is taken, down to less than a relay. */
	for (create.nr_subbufs = 64; create.nr_subbufs >= 2 && self->nr_others < ARRAY_SIZE(self->others);) {
		int fd;

		snprintf((char *)create.name, sizeof(create.name), "greedy-%u", self->nr_others);
		fd = session_make(self->dev, &create);
		if (fd >= 0) {
			self->others[self->nr_others++] = fd;
			continue;
		}
		ASSERT_EQ(-EDQUOT, fd);
		create.nr_subbufs /= 2;
	}
	ASSERT_GT(self->nr_others, 0);
	ASSERT_LT(create.nr_subbufs, 2);
	ASSERT_EQ(0, cpu_online(cpu, true));
	EXPECT_EQ(0, poll(&p, 1, 100));
	write_on(cpu, self->contexts);
	write_on(0, self->contexts);
	q = session_query(self->fd);
	EXPECT_EQ(events, q.lost[ETW_LOST_CPU]);
	EXPECT_EQ(cpu, q.nr_relays);
	EXPECT_FALSE(session_cpu(self->fd, cpu, &r));
	ASSERT_DRAINED(&self->reader);

	/* It goes, memory is there, it comes: now it has one. */
	ASSERT_EQ(0, cpu_online(cpu, false));
	while (self->nr_others)
		close(self->others[--self->nr_others]);
	ASSERT_EQ(0, cpu_online(cpu, true));
	EXPECT_EQ(1, poll_woken(&p, 5000));
	EXPECT_EQ(cpu + 1, session_query(self->fd).nr_relays);
	/* its losses of before are its relay's */
	ASSERT_TRUE(session_cpu(self->fd, cpu, &r));
	EXPECT_EQ(events, r.lost[ETW_LOST_CPU]);
	EXPECT_EQ(events, r.lost_total);
	write_on(cpu, self->contexts);
	ASSERT_EQ(0, reader_open_late(&self->reader));
	ASSERT_EQ(cpu + 1, self->reader.nr);
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(events, tally_read(&self->tally, cpu));
	write_on(cpu, self->contexts);
	ASSERT_EQ(0, cpu_online(cpu, false));
	write_on(0, self->contexts);
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(2 * events, tally_read(&self->tally, cpu));	/* its going closes its packet */
	EXPECT_EQ(0, tally_missing(&self->tally, cpu));

	ASSERT_EQ(0, disable(self->fd, "test"));
	emitted_read(&self->to);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	why = tally_broken(self->fd, &self->tally, &self->from, &self->to, false);
	if (why)
		TH_LOG("%s", why);
	EXPECT_EQ(NULL, why);
	q = session_query(self->fd);
	EXPECT_EQ(events, q.lost[ETW_LOST_CPU]);
	EXPECT_EQ(4 * events + 4, q.delivered);
}

TEST_HARNESS_MAIN
