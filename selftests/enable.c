// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an ENABLE lets through: level, keywords, lists of events and of processes, on real events of the kernel providers.
 * The 14 vectors of the rule itself are cases of kmod/kunit/filter_kunit.c; here it is whether the module applies it.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "etw_test.h"

FIXTURE(enable)
{
	int dev;
	int fd;
	struct log log;
	struct reader reader;
};

FIXTURE_SETUP(enable)
{
	struct etw_session_create create = session_small(unique("enable"));

	create.subbuf_size = 64 << 10;
	create.nr_subbufs = 32;
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	self->log.text_field = "newcomm";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(enable)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

#define FLUSH_AND_DRAIN() do {						\
	ASSERT_NE(0, session_flush(self->fd));				\
	ASSERT_DRAINED(&self->reader);					\
	ASSERT_EQ(0, session_query(self->fd).lost[ETW_LOST_NO_ROOM]);	\
} while (0)

static void forget(struct log *log)
{
	log->nr = 0;
}

/* The classes of a provider, from EVENT_LIST. */
struct listed {
	char name[64];
	__u64 keyword;
	__u8 level;
	bool available;
	bool rundown;
};

static unsigned int list_classes(int dev, const char *alias, struct listed *list, unsigned int room, __u64 *keywords)
{
	struct etw_event_list e = { 0 };
	struct etw_provider_list p;
	struct etw_keyword words[64];
	unsigned int nr = 0, i;
	struct class *c;
	__u64 id = 0;
	int err = 0;

	*keywords = 0;
	do {
		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		p.id = id;
		p.keywords = (uintptr_t)words;
		p.nr_keywords = 64;
		if (call(dev, ETW_IOC_PROVIDER_LIST, &p))
			return 0;
		id = p.id;
	} while (strcmp((char *)p.alias, alias));
	for (i = 0; i < p.nr_keywords; i++)
		*keywords |= words[i].mask;
	while (nr < room && (c = event_next(dev, &e, &err))) {
		if (e.provider_id == p.id) {
			snprintf(list[nr].name, sizeof(list[nr].name), "%.63s", c->name);
			list[nr].keyword = c->keyword;
			list[nr].level = c->level;
			list[nr].available = e.flags & ETW_EVENT_AVAILABLE;
			list[nr++].rundown = e.flags & ETW_EVENT_RUNDOWN;
		}
		free(c);
	}
	return err == -EPROTO ? 0 : nr;
}

/* ETW's rule, word for word. */
static bool passes(const struct listed *c, __u32 level, __u64 any, __u64 all, bool ignore_0)
{
	if (level && c->level > level)
		return false;
	if (!c->keyword)
		return !ignore_0;
	if (!any)
		return true;
	return (c->keyword & any) && (c->keyword & all) == all;
}

static void exec_true(void *arg)
{
	/* Whether it can be executed does not matter: /proc/self/exe runs this program with an option it refuses. */
	execl("/proc/self/exe", "nothing", "-l", NULL);
}

static void all_of_process(void)
{
	pid_t pid;
	int null = dup(2);

	freopen("/dev/null", "w", stderr);
	work_rename("every", 0, 1);
	pid = spawn(exec_true, NULL);
	waitpid(pid, NULL, 0);
	fflush(stderr);
	dup2(null, 2);
	close(null);
}

/* What passes and what does not, for every combination that means something to the provider's own keywords and levels. */
TEST_F(enable, level_and_keywords)
{
	struct listed list[64];
	__u64 bits, masks[16];
	__u32 levels[] = { 0, 1, 3, 4, 5, 255 };
	unsigned int nr, i, n, nr_masks = 0, tried = 0, seen_any = 0;

	nr = list_classes(self->dev, "process", list, ARRAY_SIZE(list), &bits);
	ASSERT_GT(nr, 5);
	masks[nr_masks++] = 0;
	masks[nr_masks++] = ~0ULL;
	masks[nr_masks++] = 1ULL << 63;			/* nobody's */
	for (i = 0; i < 64 && nr_masks < 7; i++)
		if (bits & 1ULL << i)
			masks[nr_masks++] = 1ULL << i;
	for (n = 0; n < ARRAY_SIZE(levels) * nr_masks * nr_masks * 2; n++) {
		struct etw_enable e = enable_make("process");
		unsigned int flag = n % 2, all = n / 2 % nr_masks;

		e.level = levels[n / 2 / nr_masks / nr_masks];
		e.any = masks[n / 2 / nr_masks % nr_masks];
		e.all = masks[all];
		e.flags = flag ? ETW_ENABLE_IGNORE_KEYWORD_0 : 0;
		if (e.level != 4 && all % 5)		/* all combinations with one level, some with the others */
			continue;
		ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
		all_of_process();
		ASSERT_EQ(0, disable(self->fd, "process"));
		FLUSH_AND_DRAIN();
		for (i = 0; i < nr; i++) {
			bool expected = passes(&list[i], e.level, e.any, e.all, flag);
			bool seen = log_count(&self->log, list[i].name);

			/* A task is freed some time after its exit, perhaps later than this. */
			if (!strcmp(list[i].name, "sched_process_free") && expected)
				continue;
			if (seen != expected)
				TH_LOG("level %u any %#llx all %#llx flags %#x: %s (level %u keyword %#llx) %s", e.level,
				       e.any, e.all, e.flags, list[i].name, list[i].level, list[i].keyword,
				       seen ? "passed" : "did not pass");
			ASSERT_EQ(expected, seen);
			seen_any += seen;
		}
		for (i = 0; i < self->log.nr; i++)
			ASSERT_STREQ("Linux-Kernel-Process", self->log.events[i].provider);
		tried++;
		forget(&self->log);
	}
	TH_LOG("%u combinations, %u classes seen", tried, seen_any);
	EXPECT_GT(tried, 100);
	EXPECT_GT(seen_any, 100);
}

/* The second ENABLE replaces everything of the first: what it does not say is gone. */
TEST_F(enable, replaces)
{
	struct etw_enable e = enable_make("process");
	struct etw_provider_query q;
	__s32 pids[] = { 1 };
	__u64 id;

	e.level = 4;
	e.any = ~0ULL;
	e.pids = (uintptr_t)pids;
	e.nr_pids = 1;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("one", 0, 3);
	q = session_provider(self->fd, "process");
	id = q.id;
	EXPECT_EQ(4, q.level);
	EXPECT_EQ(~0ULL, q.any);
	EXPECT_EQ(1, q.nr_pids);
	EXPECT_EQ(0, q.nr_events);
	EXPECT_EQ(1, q.enabled);
	EXPECT_EQ(1, q.registered);
	EXPECT_EQ(1, session_query(self->fd).nr_enabled);

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));	/* no pids any more */
	work_rename("two", 0, 5);
	q = session_provider(self->fd, "process");
	EXPECT_EQ(0, q.level);
	EXPECT_EQ(0, q.any);
	EXPECT_EQ(0, q.nr_pids);
	EXPECT_EQ(ETW_EVENTS_IN, q.event_mode);
	EXPECT_EQ(1, q.nr_events);
	EXPECT_EQ(1, session_query(self->fd).nr_enabled);

	ASSERT_EQ(1, enable_events(self->fd, "process", "sched_process_fork"));
	work_rename("three", 0, 7);
	work_fork(1);
	FLUSH_AND_DRAIN();
	EXPECT_EQ(5, log_count_ours(&self->log, RENAMED));
	EXPECT_EQ(1, log_count_ours(&self->log, "sched_process_fork"));
	/* By another of its names it is the same provider. */
	ASSERT_EQ(1, enable_all(self->fd, "Linux-Kernel-Process"));
	EXPECT_EQ(1, session_query(self->fd).nr_enabled);
	EXPECT_EQ(0, session_provider(self->fd, "process").nr_events);
	EXPECT_EQ(id, session_provider(self->fd, "process").id);
}

TEST_F(enable, events_in_and_out)
{
	struct etw_enable e = enable_make("process");
	char names[2][ETW_NAME_SIZE] = { RENAMED, "no_such_event" };

	e.events = (uintptr_t)names;
	e.nr_events = 2;
	e.event_mode = ETW_EVENTS_IN;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("in", 0, 4);
	work_fork(2);
	FLUSH_AND_DRAIN();
	EXPECT_EQ(4, log_count_ours(&self->log, RENAMED));
	EXPECT_EQ(0, log_count(&self->log, "sched_process_fork"));
	/* Names for what passes: the rundown is no matter of the list. */
	EXPECT_EQ(1, log_count(&self->log, "rundown_start"));
	EXPECT_EQ(1, log_count(&self->log, "rundown_end"));
	EXPECT_EQ(self->log.nr, log_count(&self->log, RENAMED) + 2 + log_count(&self->log, "process_state"));
	forget(&self->log);
	e.event_mode = ETW_EVENTS_OUT;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("out", 0, 4);
	work_fork(2);
	FLUSH_AND_DRAIN();
	EXPECT_EQ(0, log_count_ours(&self->log, RENAMED));
	EXPECT_EQ(1, log_count(&self->log, "rundown_end"));
	EXPECT_GE(log_count(&self->log, "sched_process_fork"), 2);
}

/* A provider that is not there (yet) is remembered, not refused. */
TEST_F(enable, before_the_provider_exists)
{
	struct etw_enable e = enable_make("My-Company.Nothing_1");
	struct etw_provider_query q;
	__u64 id = 0;

	e.level = 3;
	e.any = 0xf0;
	e.all = 0x30;
	EXPECT_EQ(0, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	EXPECT_EQ(1, session_query(self->fd).nr_enabled);
	poison(q);
	q.id = id;
	q.flags = 0;
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_QUERY_PROVIDER, &q));
	EXPECT_STREQ("My-Company.Nothing_1", (char *)q.name);
	EXPECT_EQ(0, q.registered);
	EXPECT_EQ(1, q.enabled);
	EXPECT_EQ(3, q.level);
	EXPECT_EQ(0xf0, q.any);
	EXPECT_EQ(0x30, q.all);
	EXPECT_EQ(0, q.written);
	EXPECT_EQ(0, disable(self->fd, "My-Company.Nothing_1"));
	EXPECT_EQ(0, session_query(self->fd).nr_enabled);
	/* The other sessions know nothing of it. */
	EXPECT_EQ(0, session_provider(self->fd, "block").id);
}

static void *rename_thread(void *tid)
{
	*(volatile pid_t *)tid = gettid();
	for (;;) {
		work_rename("thread", 0, 1);
		usleep(1000);
	}
	return NULL;
}

/* What this kernel has no tracepoint for is listed so; to enable it is no mistake, and brings nothing. */
TEST_F(enable, tracepoint_missing)
{
	const bool there = !access("/sys/kernel/tracing/events/exceptions/page_fault_user", F_OK);
	struct listed list[16];
	__u64 keywords, written;

	ASSERT_EQ(2, list_classes(self->dev, "fault", list, 16, &keywords));
	EXPECT_EQ(there, list[0].available);
	EXPECT_EQ(there, list[1].available);
	ASSERT_EQ(1, enable_all(self->fd, "fault"));
	work_touch(100);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	written = session_provider(self->fd, "Linux-Kernel-Fault").written;
	if (there) {
		EXPECT_GE(written, 100);
	} else {
		EXPECT_EQ(0, written);
	}
}

/* A process in the list means all its threads, a thread in the list only itself; what does not pass is counted. */
TEST_F(enable, pids)
{
	pid_t other = spawn(rename_slowly, NULL);
	volatile pid_t tid = 0;
	struct etw_provider_query q;
	pthread_t thread;
	size_t i, mine, its;

	ASSERT_EQ(0, pthread_create(&thread, NULL, rename_thread, (void *)&tid));
	ASSERT_TRUE(wait_until(5000, tid));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 0; i < 20; i++) {
		work_rename("main", 0, 1);
		usleep(1000);
	}
	ASSERT_TRUE(wait_until(5000, session_provider(self->fd, "process").filtered > 5));
	ASSERT_EQ(0, disable(self->fd, "process"));
	q = session_provider(self->fd, "process");
	FLUSH_AND_DRAIN();
	EXPECT_EQ(q.written, self->log.nr);
	for (i = mine = its = 0; i < self->log.nr; i++) {
		ASSERT_EQ(getpid(), self->log.events[i].pid);
		mine += self->log.events[i].tid == getpid();
		its += self->log.events[i].tid == tid;
	}
	EXPECT_EQ(20, mine);
	EXPECT_GT(its, 0);
	EXPECT_EQ(self->log.nr, mine + its);
	forget(&self->log);

	ASSERT_EQ(1, enable_renames(self->fd, tid));
	work_rename("main", 0, 20);
	ASSERT_TRUE(wait_until(5000, session_provider(self->fd, "process").written > q.written + 3));
	FLUSH_AND_DRAIN();
	for (i = 0; i < self->log.nr; i++)
		ASSERT_EQ(tid, self->log.events[i].tid);
	EXPECT_GE(session_provider(self->fd, "process").filtered, q.filtered + 20);

	ASSERT_EQ(0, disable(self->fd, "process"));
	FLUSH_AND_DRAIN();
	forget(&self->log);
	ASSERT_EQ(1, enable_renames(self->fd, other));
	work_rename("main", 0, 20);
	ASSERT_TRUE(wait_until(5000, session_query(self->fd).unread > 3));
	FLUSH_AND_DRAIN();
	for (i = 0; i < self->log.nr; i++)
		ASSERT_EQ(other, self->log.events[i].pid);
	reap(other);
}

static void pong(void *arg)
{
	int *fds = arg;
	char c;

	while (read(fds[0], &c, 1) == 1) {
		usleep(500);	/* so that the other one sleeps, and this one wakes it */
		if (write(fds[3], &c, 1) != 1)
			break;
	}
}

/* Scheduler events pass by their writer or their subject: next, wakee, child. */
TEST_F(enable, pids_of_subjects)
{
	struct etw_enable e;
	size_t i, switched_in = 0, switched_out = 0, woken = 0, woke = 0;
	int fds[4];
	__s32 pid;
	char c;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(0, pipe(fds + 2));
	ASSERT_EQ(0, pin(0));
	pid = spawn(pong, fds);
	e = enable_make("sched");
	e.pids = (uintptr_t)&pid;
	e.nr_pids = 1;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	self->log.number_field = "next_tid";
	for (i = 0; i < 50; i++) {
		c = i;
		ASSERT_EQ(1, write(fds[1], &c, 1));
		ASSERT_EQ(1, read(fds[2], &c, 1));
	}
	sleep_ms(20);		/* we go to sleep and are woken: switches that are not about the one */
	ASSERT_EQ(0, disable(self->fd, "sched"));
	FLUSH_AND_DRAIN();
	for (i = 0; i < self->log.nr; i++) {
		const struct kept *k = &self->log.events[i];

		if (!strcmp(k->name, "sched_switch")) {
			if (k->tid == pid)
				switched_out++;
			else if (k->number == pid)
				switched_in++;
			else
				ASSERT_EQ(pid, k->tid);
		} else if (k->tid == pid) {
			woke++;
		} else {
			woken++;	/* whose tid is the payload's: checked below */
		}
	}
	EXPECT_GE(switched_in, 40);
	EXPECT_GE(switched_out, 40);
	EXPECT_GE(woken, 40);
	EXPECT_GE(woke, 40);
	EXPECT_GT(session_provider(self->fd, "sched").filtered, 0);

	forget(&self->log);
	self->log.number_field = "tid";
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(1, write(fds[1], &c, 1));
		ASSERT_EQ(1, read(fds[2], &c, 1));
	}
	ASSERT_EQ(0, disable(self->fd, "sched"));
	FLUSH_AND_DRAIN();
	for (i = 0; i < self->log.nr; i++) {
		const struct kept *k = &self->log.events[i];

		if (strcmp(k->name, "sched_switch") && k->tid != pid)
			ASSERT_EQ(pid, k->number);
	}
	reap(pid);
	for (i = 0; i < 4; i++)
		close(fds[i]);
}

/* On return events flow: the very next one is there. After DISABLE none comes, although others go on. */
TEST_F(enable, synchronous)
{
	unsigned int i, cpus = cpus_online();
	pid_t pids[64];
	__u64 written;

	for (i = 0; i < cpus; i++)
		pids[i] = spawn(rename_slowly, NULL);
	for (i = 0; i < 40; i++) {
		written = session_query(self->fd).written;
		ASSERT_EQ(1, enable_renames(self->fd, getpid()));
		work_rename("sync", i, 1);
		EXPECT_EQ(written + 1, session_query(self->fd).written);
		ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
		ASSERT_TRUE(wait_until(5000, session_query(self->fd).written > written + 3));
		ASSERT_EQ(0, disable(self->fd, "process"));
		written = session_query(self->fd).written;
		work_rename("after", 0, 3);
		sleep_ms(10);
		ASSERT_EQ(written, session_query(self->fd).written);
		ASSERT_DRAINED(&self->reader);
	}
	for (i = 0; i < cpus; i++)
		reap(pids[i]);
}

/* What one session enables and disables is not noticed by another. */
/* What is remembered costs memory, so it has a bound; a provider that is known already still can be enabled anew. */
TEST_F(enable, at_most_so_many)
{
	char name[ETW_NAME_SIZE];
	struct etw_enable e;
	unsigned int i;

	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 1; i < ETW_MAX_ENABLES; i++) {
		snprintf(name, sizeof(name), "Nobody-%u", i);
		e = enable_make(name);
		ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	}
	e = enable_make("One-Too-Many");
	EXPECT_EQ(-ENOSPC, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	e = enable_make("sched");
	EXPECT_EQ(-ENOSPC, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	EXPECT_EQ(ETW_MAX_ENABLES, session_query(self->fd).nr_enabled);
	EXPECT_EQ(1, enable_renames(self->fd, getpid()));
	EXPECT_EQ(0, disable(self->fd, "Nobody-1"));
}

static void make_and_stop_for_ever(void *arg)
{
	int dev = device_open();

	(void)arg;
	for (;;) {
		struct etw_session_create create = session_small(unique("brief"));
		int fd = session_make(dev, &create);

		enable_all(fd, "sched");
		call(fd, ETW_IOC_SESSION_STOP, NULL);
		close(fd);
	}
}

/* Sessions stop while others enable the same provider: each change looks at all of them. The kernel lives, nothing is left. */
TEST_F(enable, amid_stops)
{
	pid_t stoppers[2];
	uint64_t end;
	unsigned int i;

	for (i = 0; i < 2; i++)
		stoppers[i] = spawn(make_and_stop_for_ever, NULL);
	for (end = now_ns() + 3000000000ULL; now_ns() < end;) {
		ASSERT_EQ(1, enable_all(self->fd, "sched"));
		ASSERT_EQ(0, disable(self->fd, "sched"));
	}
	for (i = 0; i < 2; i++)
		reap(stoppers[i]);
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	work_rename("alive", 0, 1);
	EXPECT_GT(session_query(self->fd).written, 0);
}

TEST_F(enable, others_are_not_disturbed)
{
	struct etw_session_create create = session_small(unique("other"));
	int other = session_make(self->dev, &create), i;

	ASSERT_GE(other, 0);
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(1, enable_all(other, "process"));
		work_rename("both", i, 1);
		ASSERT_EQ(0, disable(other, "process"));
		work_rename("both", i, 1);
	}
	EXPECT_EQ(40, session_query(self->fd).written);
	EXPECT_EQ(1, session_provider(self->fd, "process").enabled);
	EXPECT_EQ(0, session_provider(other, "process").enabled);
	close(other);
	work_rename("both", i, 1);
	EXPECT_EQ(41, session_query(self->fd).written);
	FLUSH_AND_DRAIN();
	EXPECT_EQ(41, self->log.nr);
}

/* PROVIDER_LIST says how many want it. */
TEST_F(enable, sessions_counted)
{
	struct etw_provider_list p;
	unsigned int step, expected[] = { 0, 1, 1, 0 };
	bool found = false;

	for (step = 0; step < 4; step++) {
		if (step == 1 || step == 2) {
			ASSERT_EQ(1, enable_all(self->fd, "fault"));
		}
		if (step == 3) {
			ASSERT_EQ(0, disable(self->fd, "fault"));
		}
		memset(&p, 0, sizeof(p));
		do {
			__u64 id = p.id;

			memset(&p, 0, sizeof(p));
			p.size = sizeof(p);
			p.id = id;
			ASSERT_EQ(0, call(self->dev, ETW_IOC_PROVIDER_LIST, &p));
			found = !strcmp((char *)p.alias, "fault");
		} while (!found);
		EXPECT_EQ(expected[step], p.nr_sessions);
	}
}

/* The class table only grows: a class enabled again has its old number, and its counts go on. */
TEST_F(enable, class_table_grows_only)
{
	struct etw_class_query c;
	__u32 nr, id;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, enable_renames(self->fd, getpid()));
		work_rename("class", 0, 3);
		ASSERT_EQ(0, disable(self->fd, "process"));
		nr = session_query(self->fd).nr_classes;
		if (i < 4)
			EXPECT_EQ(1, nr);
		if (i == 3)
			ASSERT_EQ(1, enable_all(self->fd, "block"));
	}
	EXPECT_GT(nr, 5);
	poison(c);
	c.id = id = 0;
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_QUERY_CLASS, &c));
	EXPECT_EQ(15, c.written);
	EXPECT_EQ(id, c.id);
	EXPECT_EQ(15, session_provider(self->fd, "process").written);
	FLUSH_AND_DRAIN();
	EXPECT_EQ(15, log_count(&self->log, RENAMED));
}

TEST_HARNESS_MAIN
