// SPDX-License-Identifier: GPL-2.0-only
/*
 * The filters of an enable beyond pids and event names: event ids, process names and predicates, on real events of the
 * kernel providers and of programs. What passes is compared with what a session without filters has seen, record by record,
 * and with the counts of the workload. Predicates alone are the business of kmod/kunit/predicate_kunit.c.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"

#define DISK "/dev/vda"

/* How many of the events that came are what a filter is for. */
struct judge {
	bool (*holds)(const struct event *event);
	unsigned int seen;
	unsigned int renames;	/* of these */
	unsigned int held;
};

static void judge_event(const struct event *event, void *arg)
{
	struct judge *judge = arg;

	judge->seen++;
	judge->renames += event_is(event, RENAMED);
	judge->held += judge->holds(event);
}

struct one {
	int fd;
	struct judge judge;
	struct reader reader;
	struct etw_provider_query before;
};

FIXTURE(filters)
{
	int dev;
	struct one some;	/* the session with filters */
	struct one all;		/* the one without */
};

static int one_open(struct one *one, int dev, const char *name)
{
	struct etw_session_create create = session_small(unique(name));

	create.subbuf_size = 64 << 10;
	create.nr_subbufs = 64;
	one->fd = session_make(dev, &create);
	return one->fd < 0 ? one->fd : reader_open(&one->reader, one->fd, judge_event, &one->judge);
}

static void one_close(struct one *one)
{
	reader_close(&one->reader);
	close(one->fd);
}

FIXTURE_SETUP(filters)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	ASSERT_EQ(0, one_open(&self->some, self->dev, "some"));
	ASSERT_EQ(0, one_open(&self->all, self->dev, "all"));
}

FIXTURE_TEARDOWN(filters)
{
	one_close(&self->some);
	one_close(&self->all);
	close(self->dev);
}

/* An enable of the events named, a comma-separated list, without the rundown; valid until the next call. */
static struct etw_enable enable_of(const char *provider, const char *events)
{
	static char names[8][ETW_NAME_SIZE];
	struct etw_enable e = enable_make(provider);

	memset(names, 0, sizeof(names));
	while (*events) {
		size_t len = strcspn(events, ",");

		memcpy(names[e.nr_events++], events, len);
		events += len + !!events[len];
	}
	e.flags = ETW_ENABLE_IGNORE_KEYWORD_0;
	e.event_mode = ETW_EVENTS_IN;
	e.events = (uintptr_t)names;
	return e;
}

static struct etw_predicate number(const char *field, __u32 op, __u64 value)
{
	struct etw_predicate p = { .op = op, .kind = ETW_VALUE_NUMBER, .value = value };

	snprintf((char *)p.field, sizeof(p.field), "%s", field);
	return p;
}

static struct etw_predicate text(const char *field, __u32 op, const char *value)
{
	struct etw_predicate p = { .op = op, .kind = ETW_VALUE_TEXT };

	snprintf((char *)p.field, sizeof(p.field), "%s", field);
	snprintf((char *)p.text, sizeof(p.text), "%s", value);
	return p;
}

/* Enables @e in the session with filters, and the same without them in the other. 1, or -errno. */
static int begin(struct one *some, struct one *all, const char *provider, const struct etw_enable *e,
		 bool (*holds)(const struct event *))
{
	struct etw_enable plain = *e;
	int ret;

	plain.pids = plain.ids = plain.processes = plain.predicates = 0;
	plain.nr_pids = plain.nr_ids = plain.nr_processes = plain.nr_predicates = plain.id_mode = 0;
	plain.flags &= ~ETW_ENABLE_ANY_PREDICATE;
	some->judge = all->judge = (struct judge){ .holds = holds };
	some->before = session_provider(some->fd, provider);
	all->before = session_provider(all->fd, provider);
	ret = call(some->fd, ETW_IOC_SESSION_ENABLE, e);
	return ret == 1 ? call(all->fd, ETW_IOC_SESSION_ENABLE, &plain) : ret;
}

/*
 * Ends what begin() began. NULL, or what is wrong. @again: the sessions may have been enabled at another task's event, so that
 * their counts differ by it.
 */
static const char *end(struct one *some, struct one *all, const char *provider, unsigned int expected, bool *again)
{
	static char why[200];
	struct etw_provider_query a, b;

	disable(all->fd, provider);
	disable(some->fd, provider);
	session_flush(all->fd);
	session_flush(some->fd);
	if (reader_drain(&all->reader) < 0)
		return all->reader.error;
	if (reader_drain(&some->reader) < 0)
		return some->reader.error;
	a = session_provider(some->fd, provider);
	b = session_provider(all->fd, provider);
	a.written -= some->before.written;
	a.filtered -= some->before.filtered;
	b.written -= all->before.written;
	snprintf(why, sizeof(why),
		 "some: %u records, %u of them right, %llu written, %llu filtered; all: %u records, %llu written, %u to pass; %u expected",
		 some->judge.seen, some->judge.held, a.written, a.filtered, all->judge.seen, b.written, all->judge.held, expected);
	*again = a.written + a.filtered != b.written;
	if (some->judge.seen != some->judge.held || some->judge.seen != a.written || all->judge.seen != b.written ||
	    some->judge.held != all->judge.held || some->judge.held != expected)
		return why;
	return *again ? why : NULL;
}

/* Everything again while events of other tasks stand in the way of exact counts. */
#define EXPECT_PASSING(provider, e, holds, expected, work) do {						\
	bool _again = true;										\
	const char *_why = NULL;									\
	int _i;												\
	for (_i = 0; _again && _i < 10; _i++) {								\
		ASSERT_EQ(1, begin(&self->some, &self->all, provider, e, holds));			\
		work;											\
		_why = end(&self->some, &self->all, provider, expected, &_again);			\
	}												\
	if (_why)											\
		TH_LOG("%s", _why);									\
	EXPECT_EQ(NULL, _why);										\
} while (0)

static bool any_event(const struct event *event)
{
	return true;
}

static bool nothing(const struct event *event)
{
	return false;
}

/* ---- event ids ---- */

static int event_id(int dev, const char *name)
{
	struct etw_event_list list = { 0 };
	struct class *c;
	int err, found = -1;

	while (found < 0 && (c = event_next(dev, &list, &err))) {
		found = strcmp(c->name, name) ? -1 : c->event_id;
		free(c);
	}
	return found;
}

static bool is_rename(const struct event *event)
{
	return event_is(event, RENAMED);
}

/* A kernel thread may rename itself at any time. */
static bool is_our_rename(const struct event *event)
{
	return is_rename(event) && event->pid == getpid();
}

TEST_F(filters, event_ids)
{
	struct etw_enable e = enable_make("process");
	int id = event_id(self->dev, RENAMED);
	struct etw_provider_query q;
	unsigned int renames;
	__u16 ids[2];

	ASSERT_GE(id, 0);
	ids[0] = 65000;
	ids[1] = id;
	e.flags = ETW_ENABLE_IGNORE_KEYWORD_0;
	e.ids = (uintptr_t)ids;
	e.nr_ids = 2;
	e.id_mode = ETW_EVENTS_IN;
	self->some.judge.holds = is_our_rename;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("id", 0, 5);
	work_fork(2);
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	renames = self->some.judge.renames;
	EXPECT_EQ(self->some.judge.seen, renames);
	EXPECT_EQ(5, self->some.judge.held);
	/* decided when it was enabled: nothing was rejected */
	q = session_provider(self->some.fd, "process");
	EXPECT_EQ(0, q.filtered);
	EXPECT_EQ(2, q.nr_ids);
	EXPECT_EQ(ETW_EVENTS_IN, q.id_mode);

	e.id_mode = ETW_EVENTS_OUT;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	renames = self->some.judge.renames;
	work_rename("id", 0, 5);
	work_fork(2);
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(5, self->some.judge.held);
	EXPECT_EQ(renames, self->some.judge.renames);
	EXPECT_GE(self->some.judge.seen, renames + 2 * 2);	/* forks and exits */
	EXPECT_EQ(0, session_provider(self->some.fd, "process").filtered);
}

/* Names and ids both: an event needs to be let through by both. */
TEST_F(filters, ids_and_names)
{
	struct etw_enable e = enable_of("process", RENAMED);
	__u16 id = event_id(self->dev, RENAMED);

	e.ids = (uintptr_t)&id;
	e.nr_ids = 1;
	e.id_mode = ETW_EVENTS_OUT;
	self->some.judge.holds = is_our_rename;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("both", 0, 5);
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(0, self->some.judge.seen);
	e.id_mode = ETW_EVENTS_IN;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("both", 0, 5);
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(5, self->some.judge.held);
	EXPECT_EQ(self->some.judge.seen, self->some.judge.renames);
}

/* ---- processes ---- */

static void put_processes(struct etw_enable *e, const char *list)
{
	static char names[ETW_MAX_PROCESS_NAMES][ETW_NAME_SIZE];

	memset(names, 0, sizeof(names));
	e->nr_processes = 0;
	while (*list) {
		size_t len = strcspn(list, ",");

		memcpy(names[e->nr_processes++], list, len);
		list += len + !!list[len];
	}
	e->processes = (uintptr_t)names;
}

static void *rename_in_thread(void *arg)
{
	work_rename("thr", 0, *(int *)arg);
	return NULL;
}

static void thread_renames(int nr)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, rename_in_thread, &nr))
		pthread_join(thread, NULL);
}

static bool of_us(const struct event *event)
{
	return event->pid == getpid();
}

static bool thread_of_us(const struct event *event)
{
	return event->pid == getpid() && event->tid != getpid();
}

static bool old_is_filtA(const struct event *event)
{
	return !strcmp(event_text(event, "oldcomm"), "filtA");
}

/* It is the name of the process that counts, whatever its threads are called, at the time of the event. */
TEST_F(filters, processes)
{
	struct etw_enable e = enable_of("process", RENAMED);

	prctl(PR_SET_NAME, "filtA");
	put_processes(&e, "nobody,filtA");
	EXPECT_PASSING("process", &e, of_us, 20, thread_renames(20));
	EXPECT_PASSING("process", &e, old_is_filtA, 3, {
		prctl(PR_SET_NAME, "filtA");
		prctl(PR_SET_NAME, "x");
		prctl(PR_SET_NAME, "filtA");
		prctl(PR_SET_NAME, "filtA");
	});
	EXPECT_EQ(2, session_provider(self->some.fd, "process").nr_processes);
	put_processes(&e, "filt");
	EXPECT_PASSING("process", &e, nothing, 0, thread_renames(20));
	put_processes(&e, "filtAA");
	EXPECT_PASSING("process", &e, nothing, 0, thread_renames(20));
	/* what is longer than a name can be is cut as exec does it */
	prctl(PR_SET_NAME, "abcdefghijklmnopqrst");
	put_processes(&e, "abcdefghijklmnoXYZ");
	EXPECT_PASSING("process", &e, thread_of_us, 7, thread_renames(7));
	prctl(PR_SET_NAME, "filters");
}

static void exec_self(void *arg)
{
	freopen("/dev/null", "w", stderr);
	freopen("/dev/null", "w", stdout);
	execl("/proc/self/exe", "whatever", "-l", NULL);
}

static pid_t the_child;

static bool of_child(const struct event *event)
{
	return event->pid == the_child;
}

/* exec gives a process its name. */
TEST_F(filters, executables)
{
	struct etw_enable e = enable_of("process", "sched_process_exit");

	put_processes(&e, "exe");
	EXPECT_PASSING("process", &e, of_child, 1, {
		the_child = spawn(exec_self, NULL);
		waitpid(the_child, NULL, 0);
		work_fork(3);
	});
}

static void *outlive(void *arg)
{
	int *go = arg;
	char c;

	if (read(go[0], &c, 1) == 1)
		work_rename("left", 0, 6);
	exit(0);
}

static void leader_goes(void *arg)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "leader");
	if (pthread_create(&thread, NULL, outlive, arg))
		exit(1);
	pthread_exit(NULL);
}

static bool left_by_child(const struct event *event)
{
	return event->pid == the_child && !strncmp(event_text(event, "newcomm"), "left", 4);
}

/* The process keeps its name when its main thread is gone. */
TEST_F(filters, main_thread_is_gone)
{
	struct etw_enable e = enable_of("process", RENAMED);
	int go[2];

	put_processes(&e, "leader");
	EXPECT_PASSING("process", &e, left_by_child, 6, {
		char state[64] = "";
		char path[64];

		ASSERT_EQ(0, pipe(go));
		the_child = spawn(leader_goes, go);
		snprintf(path, sizeof(path), "/proc/%d/stat", the_child);
		ASSERT_TRUE(wait_until(5000, file_read(path, state, sizeof(state)) > 0 && strstr(state, "(leader) Z")));
		ASSERT_EQ(1, write(go[1], "", 1));
		waitpid(the_child, NULL, 0);
		close(go[0]);
		close(go[1]);
	});
}

/* ---- predicates ---- */

static bool new_is_odd(const struct event *event)
{
	const char *name = event_text(event, "newcomm");

	return !strncmp(name, "od", 2) && strstr(name, "d7");
}

static bool seven_or_even(const struct event *event)
{
	return strstr(event_text(event, "newcomm"), "d7") || !strncmp(event_text(event, "newcomm"), "ev", 2);
}

static bool is_odd42(const struct event *event)
{
	return !strcmp(event_text(event, "newcomm"), "odd42");
}

static void odd_and_even(void)
{
	work_rename("odd", 0, 100);
	work_rename("even", 0, 30);
}

TEST_F(filters, texts)
{
	struct etw_enable e = enable_of("process", RENAMED);
	struct etw_predicate p[2] = { text("newcomm", ETW_OP_CONTAINS, "d7"), text("newcomm", ETW_OP_PREFIX, "od") };

	e.predicates = (uintptr_t)p;
	e.nr_predicates = 2;
	EXPECT_PASSING("process", &e, new_is_odd, 11, odd_and_even());
	EXPECT_EQ(2, session_provider(self->some.fd, "process").nr_predicates);
	p[1] = text("newcomm", ETW_OP_PREFIX, "ev");
	EXPECT_PASSING("process", &e, nothing, 0, odd_and_even());
	e.flags |= ETW_ENABLE_ANY_PREDICATE;
	EXPECT_PASSING("process", &e, seven_or_even, 11 + 30, odd_and_even());
	/* one that no event suits: of several of which one is enough it does no harm */
	p[1] = text("nothing", ETW_OP_PREFIX, "ev");
	EXPECT_PASSING("process", &e, new_is_odd, 11, odd_and_even());
	p[0] = text("newcomm", ETW_OP_EQ, "odd42");
	EXPECT_PASSING("process", &e, is_odd42, 1, odd_and_even());
}

static bool tid_is_ours(const struct event *event)
{
	int64_t tid;

	return event_number(event, "tid", &tid) && tid == getpid();
}

static bool adjusted(const struct event *event)
{
	int64_t adj;

	return event_number(event, "oom_score_adj", &adj) && adj < 0;
}

TEST_F(filters, numbers)
{
	struct etw_enable e = enable_of("process", RENAMED);
	struct etw_predicate p[ETW_MAX_PREDICATES] = { number("tid", ETW_OP_EQ, getpid()) };
	unsigned int i;

	e.predicates = (uintptr_t)p;
	e.nr_predicates = 1;
	EXPECT_PASSING("process", &e, tid_is_ours, 12, { work_rename("num", 0, 12); thread_renames(5); });
	p[0].op = ETW_OP_NE;
	EXPECT_PASSING("process", &e, thread_of_us, 5, { work_rename("num", 0, 12); thread_renames(5); });
	/* a signed field; and no value is cut to what the field can hold */
	p[0] = number("oom_score_adj", ETW_OP_LT, 0);
	EXPECT_PASSING("process", &e, nothing, 0, work_rename("num", 0, 12));
	ASSERT_EQ(0, file_write("/proc/self/oom_score_adj", "-17"));
	EXPECT_PASSING("process", &e, adjusted, 12, work_rename("num", 0, 12));
	p[0] = number("oom_score_adj", ETW_OP_EQ, (__u64)-17LL);
	EXPECT_PASSING("process", &e, adjusted, 12, work_rename("num", 0, 12));
	p[0] = number("oom_score_adj", ETW_OP_EQ, (__u16)-17);
	EXPECT_PASSING("process", &e, nothing, 0, work_rename("num", 0, 12));
	ASSERT_EQ(0, file_write("/proc/self/oom_score_adj", "0"));
	/* as many as there may be */
	for (i = 0; i < ETW_MAX_PREDICATES; i++)
		p[i] = number(i % 2 ? "tid" : "oom_score_adj", i % 2 ? ETW_OP_GE : ETW_OP_LE, i % 2 ? 1 : 1000);
	e.nr_predicates = ETW_MAX_PREDICATES;
	EXPECT_PASSING("process", &e, tid_is_ours, 12, work_rename("num", 0, 12));
	p[ETW_MAX_PREDICATES - 1] = number("tid", ETW_OP_EQ, 0);
	EXPECT_PASSING("process", &e, nothing, 0, work_rename("num", 0, 12));
}

static bool thr1_of_us(const struct event *event)
{
	return event->pid == getpid() && !strncmp(event_text(event, "newcomm"), "thr1", 4);
}

/* All filters of an enable together; each alone would let more pass. */
TEST_F(filters, together)
{
	struct etw_enable e = enable_of("process", RENAMED);
	struct etw_predicate p = text("newcomm", ETW_OP_PREFIX, "thr1");
	__u16 id = event_id(self->dev, RENAMED);
	__s32 pid = getpid();

	prctl(PR_SET_NAME, "filtA");
	put_processes(&e, "filtA");
	e.predicates = (uintptr_t)&p;
	e.nr_predicates = 1;
	e.ids = (uintptr_t)&id;
	e.nr_ids = 1;
	e.id_mode = ETW_EVENTS_IN;
	e.pids = (uintptr_t)&pid;
	e.nr_pids = 1;
	EXPECT_PASSING("process", &e, thr1_of_us, 11, thread_renames(20));	/* thr1, thr10 .. thr19 */
	pid = 1;
	EXPECT_PASSING("process", &e, nothing, 0, thread_renames(20));
	prctl(PR_SET_NAME, "filters");
}

/* An ENABLE replaces the filters of the one before; what it does not say is gone. */
TEST_F(filters, replaced)
{
	struct etw_predicate p = text("newcomm", ETW_OP_PREFIX, "a");
	struct etw_enable e = enable_of("process", RENAMED);
	struct etw_provider_query q;
	__u16 id = 65000;

	e.predicates = (uintptr_t)&p;
	e.nr_predicates = 1;
	e.ids = (uintptr_t)&id;
	e.nr_ids = 1;
	e.id_mode = ETW_EVENTS_OUT;
	put_processes(&e, "nobody");
	self->some.judge.holds = is_our_rename;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("a", 0, 4);
	q = session_provider(self->some.fd, "process");
	EXPECT_EQ(0, q.written);
	EXPECT_GE(q.filtered, 4);
	EXPECT_EQ(1, q.nr_predicates);
	EXPECT_EQ(1, q.nr_processes);
	EXPECT_EQ(1, q.nr_ids);

	ASSERT_EQ(1, enable_events(self->some.fd, "process", RENAMED));
	work_rename("b", 0, 4);
	ASSERT_NE(0, session_flush(self->some.fd));
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(4, self->some.judge.held);
	q = session_provider(self->some.fd, "process");
	EXPECT_LE(self->some.judge.seen, q.written);
	ASSERT_SUMS(self->some.fd);
	EXPECT_EQ(0, q.nr_predicates);
	EXPECT_EQ(0, q.nr_processes);
	EXPECT_EQ(0, q.nr_ids);
	EXPECT_EQ(ETW_EVENTS_ALL, q.id_mode);

	/* what an ENABLE that fails says counts for nothing */
	p.op = ETW_NR_OPS;
	ASSERT_EQ(-EINVAL, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	work_rename("c", 0, 4);
	ASSERT_NE(0, session_flush(self->some.fd));
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(8, self->some.judge.held);
	EXPECT_LE(self->some.judge.seen, session_provider(self->some.fd, "process").written);
	ASSERT_SUMS(self->some.fd);
}

/* Filters of one session are no matter of another's. */
TEST_F(filters, side_by_side)
{
	struct etw_enable a = enable_of("process", RENAMED), b = a;
	struct etw_predicate p = text("newcomm", ETW_OP_PREFIX, "odd");
	struct etw_session_create create = session_small(unique("third"));
	int third = session_make(self->dev, &create);

	ASSERT_GE(third, 0);
	prctl(PR_SET_NAME, "filtA");
	a.predicates = (uintptr_t)&p;
	a.nr_predicates = 1;
	put_processes(&b, "filtA");
	self->some.judge.holds = self->all.judge.holds = any_event;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &a));
	ASSERT_EQ(1, call(self->all.fd, ETW_IOC_SESSION_ENABLE, &b));
	ASSERT_EQ(1, enable_events(third, "process", RENAMED));
	work_rename("odd", 0, 10);	/* the first of them is still filtA's */
	work_rename("even", 0, 10);
	EXPECT_EQ(10, session_provider(self->some.fd, "process").written);
	EXPECT_EQ(1, session_provider(self->all.fd, "process").written);
	EXPECT_GE(session_provider(third, "process").written, 20);
	EXPECT_EQ(0, session_provider(third, "process").filtered);
	ASSERT_EQ(0, disable(third, "process"));
	work_rename("odd", 0, 10);
	EXPECT_EQ(20, session_provider(self->some.fd, "process").written);
	close(third);
}

/* An event that cannot pass is not looked at: it has no hook and counts nowhere. One that does not pass is, whoever's it is. */
TEST_F(filters, impossible)
{
	struct etw_predicate p = text("no_such_field", ETW_OP_EQ, "x");
	struct etw_enable e = enable_make("process");
	struct etw_provider_query q;
	pid_t other;
	int i;

	e.predicates = (uintptr_t)&p;
	e.nr_predicates = 1;
	self->some.judge.holds = any_event;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	q = session_provider(self->some.fd, "process");
	EXPECT_GT(q.written, 2);		/* the rundown, which nothing holds back */
	work_rename("none", 0, 10);
	work_fork(3);
	EXPECT_EQ(q.written, session_provider(self->some.fd, "process").written);
	EXPECT_EQ(0, session_provider(self->some.fd, "process").filtered);
	/* a field of some of the events: only these */
	p = text("newcomm", ETW_OP_PREFIX, "none");
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	self->some.judge = (struct judge){ .holds = is_rename };
	work_rename("none", 0, 10);
	work_fork(3);
	session_flush(self->some.fd);
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(10, self->some.judge.seen);
	EXPECT_EQ(10, self->some.judge.held);
	ASSERT_SUMS(self->some.fd);
	other = spawn(rename_slowly, NULL);
	EXPECT_TRUE(wait_until(5000, session_provider(self->some.fd, "process").filtered > 50));
	for (i = 0; i < 20; i++)
		ASSERT_SUMS(self->some.fd);
	reap(other);
}

/* ---- the scheduler, and block devices ---- */

static void pong(void *arg)
{
	int *fds = arg;
	char c;

	while (read(fds[0], &c, 1) == 1)
		if (write(fds[3], &c, 1) != 1)
			return;
}

static bool switches_child(const struct event *event)
{
	int64_t prev, next;

	return event_number(event, "prev_tid", &prev) && event_number(event, "next_tid", &next) &&
	       (prev == the_child || next == the_child);
}

TEST_F(filters, switches)
{
	struct etw_enable e = enable_of("sched", "sched_switch");
	struct etw_predicate p[2];
	int fds[4], i;
	bool again;
	char c = 0;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(0, pipe(fds + 2));
	ASSERT_EQ(0, pin(0));
	the_child = spawn(pong, fds);
	p[0] = number("next_tid", ETW_OP_EQ, the_child);
	p[1] = number("prev_tid", ETW_OP_EQ, the_child);
	e.predicates = (uintptr_t)p;
	e.nr_predicates = 2;
	e.flags |= ETW_ENABLE_ANY_PREDICATE;
	/* it has begun, and sleeps */
	ASSERT_EQ(1, write(fds[1], &c, 1));
	ASSERT_EQ(1, read(fds[2], &c, 1));
	sleep_ms(scaled(50));
	ASSERT_EQ(1, begin(&self->some, &self->all, "sched", &e, switches_child));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(1, write(fds[1], &c, 1));
		ASSERT_EQ(1, read(fds[2], &c, 1));
	}
	sleep_ms(scaled(50));
	/* other tasks are switched all the time, so the sums need not agree; what is to pass must */
	end(&self->some, &self->all, "sched", 0, &again);
	EXPECT_EQ(self->some.judge.seen, self->some.judge.held);
	EXPECT_EQ(self->some.judge.held, self->all.judge.held);
	EXPECT_GE(self->some.judge.held, 100);
	EXPECT_EQ(self->some.judge.seen, session_provider(self->some.fd, "sched").written);
	EXPECT_GE(session_provider(self->some.fd, "sched").filtered + self->some.judge.seen, self->all.judge.seen);
	EXPECT_LT(self->some.judge.seen, self->all.judge.seen);
	ASSERT_EQ(0, session_query(self->all.fd).lost[ETW_LOST_NO_ROOM]);
	reap(the_child);
}

static bool our_read(const struct event *event)
{
	int64_t tid, rwbs, sectors;

	return event_number(event, "tid", &tid) && event_number(event, "rwbs", &rwbs) &&
	       event_number(event, "nr_sector", &sectors) && tid == getpid() && (rwbs & 4) && sectors == 8;
}

TEST_F(filters, block)
{
	struct etw_enable e = enable_of("block", "block_bio_queue");
	struct etw_predicate p[4] = {
		number("rwbs", ETW_OP_BITS, 4), number("nr_sector", ETW_OP_LE, 8), number("tid", ETW_OP_EQ, getpid()),
		number("rwbs", ETW_OP_BITS, 1),
	};

	if (access(DISK, R_OK))
		SKIP(return, "no " DISK);
	e.predicates = (uintptr_t)p;
	e.nr_predicates = 3;
	EXPECT_PASSING("block", &e, our_read, 40, ASSERT_EQ(0, work_read(DISK, 40)));
	e.nr_predicates = 4;	/* and a write */
	EXPECT_PASSING("block", &e, nothing, 0, ASSERT_EQ(0, work_read(DISK, 40)));
	e.nr_predicates = 3;
	p[1] = number("nr_sector", ETW_OP_GT, 8);
	EXPECT_PASSING("block", &e, nothing, 0, ASSERT_EQ(0, work_read(DISK, 40)));
}

/* ---- events of programs ---- */

#define NR_REQUESTS 100

/* Number of the event, whose fields all follow from it. */
static uint32_t put_request(uint8_t *to, unsigned int i)
{
	const double ratio = i / 8.0 - 4;
	const uint32_t three = 3;
	const uint64_t last = 1000 + i;
	uint8_t *at = to;

	memset(at, 0, 16);
	at[3] = i;
	at += 16;
	at += sprintf((char *)at, "%s/file%u", i % 2 ? "/a" : "/tmp", i) + 1;
	memcpy(at, &three, 4);
	memcpy(at + 4, "xyz", 3);
	at += 7;
	memcpy(at, &(uint32_t){ i }, 4);
	memcpy(at + 4, &ratio, 8);
	memcpy(at + 12, (uint8_t[4]){ 10, 0, 0, i }, 4);
	at += 16;
	memcpy(at, &three, 4);
	memcpy(at + 4, (int16_t[3]){ -1, i, 1 }, 6);
	at += 10;
	*at++ = i % 3 == 0;
	memcpy(at, &last, 8);
	return at + 8 - to;
}

static int request_register(int provider, const char *event, uint16_t id)
{
	static const struct {
		const char *name;
		uint8_t type;
	} fields[] = {
		{ "activity_id", ETW_TYPE_GUID }, { "path", ETW_TYPE_STRING }, { "data", ETW_TYPE_BINARY },
		{ "count", ETW_TYPE_U32 },
		{ "ratio", ETW_TYPE_F64 }, { "addr", ETW_TYPE_IPV4 }, { "deltas", ETW_TYPE_S16 }, { "ok", ETW_TYPE_BOOL },
		{ "last", ETW_TYPE_U64 },
	};
	static struct schema_maker m;
	unsigned int i;

	schema_begin(&m, event, ARRAY_SIZE(fields));
	schema_head(&m)->event_id = id;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		schema_field(&m, i, fields[i].name, fields[i].type);
	schema_field(&m, 6, "deltas", ETW_TYPE_S16)->array = ETW_ARRAY_COUNTED;
	return provider_event(provider, m.bytes, schema_done(&m));
}

/* Half of them one by one, the others in writes of ten. 0 or -errno. */
static int write_requests(int provider, int index)
{
	static uint8_t buf[4096], payload[256];
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < NR_REQUESTS; i++) {
		used = write_add(buf, used, index, payload, put_request(payload, i));
		if (i >= NR_REQUESTS / 2 && i % 10 != 9)
			continue;
		if (write(provider, buf, used) != (ssize_t)used)
			return errno ? -errno : -EIO;
		used = 0;
	}
	return 0;
}

static struct etw_predicate bytes(const char *field, const void *value, size_t len)
{
	struct etw_predicate p = { .op = ETW_OP_EQ, .kind = ETW_VALUE_BYTES };

	snprintf((char *)p.field, sizeof(p.field), "%s", field);
	memcpy(p.text, value, len);
	return p;
}

static struct etw_predicate real(const char *field, __u32 op, double value)
{
	__u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return number(field, op, bits);
}

TEST_F(filters, programs)
{
	static const uint8_t guid[16] = { [3] = 7 }, addr[4] = { 10, 0, 0, 42 };
	const struct {
		const char *what;
		struct etw_predicate p[2];
		unsigned int nr;
		bool any;
		unsigned int passing;
	} rows[] = {
		{ "string", { text("path", ETW_OP_PREFIX, "/a") }, 1, false, 50 },
		{ "part", { text("path", ETW_OP_CONTAINS, "file3") }, 1, false, 11 },
		{ "number behind a string", { number("count", ETW_OP_GE, 90) }, 1, false, 10 },
		{ "float", { real("ratio", ETW_OP_LT, -3.5) }, 1, false, 4 },
		{ "float, equal", { real("ratio", ETW_OP_EQ, 0) }, 1, false, 1 },
		{ "GUID", { bytes("activity_id", guid, 16) }, 1, false, 1 },
		{ "address", { bytes("addr", addr, 4) }, 1, false, 1 },
		{ "bool behind an array", { number("ok", ETW_OP_EQ, 1) }, 1, false, 34 },
		{ "last", { number("last", ETW_OP_LE, 1004) }, 1, false, 5 },
		{ "both", { number("last", ETW_OP_LE, 1004), text("path", ETW_OP_PREFIX, "/tmp") }, 2, false, 3 },
		{ "one of two", { number("last", ETW_OP_LE, 1004), text("path", ETW_OP_EQ, "/a/file99") }, 2, true, 6 },
		{ "none", { text("path", ETW_OP_EQ, "/a/file98") }, 1, false, 0 },
	};
	char name[ETW_NAME_SIZE];
	const volatile uint8_t *enabled;
	struct etw_provider_query q, before = {};
	struct etw_enable e;
	int provider, index;
	unsigned int i;
	__u16 id = 77;

	snprintf(name, sizeof(name), "Filters-%d", getpid());
	provider = provider_register(self->dev, name);
	ASSERT_GE(provider, 0);
	index = request_register(provider, "Request", 77);
	ASSERT_GE(index, 0);
	enabled = provider_map(provider);
	ASSERT_NE(NULL, enabled);
	self->some.judge.holds = any_event;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		e = enable_make(name);
		e.predicates = (uintptr_t)rows[i].p;
		e.nr_predicates = rows[i].nr;
		e.flags = rows[i].any ? ETW_ENABLE_ANY_PREDICATE : 0;
		ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
		EXPECT_EQ(1, enabled[index]);
		ASSERT_EQ(0, write_requests(provider, index));
		q = session_provider(self->some.fd, name);
		EXPECT_EQ(rows[i].passing, q.written - before.written) TH_LOG("%s", rows[i].what);
		EXPECT_EQ(NR_REQUESTS - rows[i].passing, q.filtered - before.filtered) TH_LOG("%s", rows[i].what);
		before = q;
	}
	ASSERT_NE(0, session_flush(self->some.fd));
	ASSERT_DRAINED(&self->some.reader);
	EXPECT_EQ(before.written, self->some.judge.seen);
	ASSERT_SUMS(self->some.fd);

	/* what can never pass costs the program nothing: an array has no value to compare */
	e = enable_make(name);
	e.predicates = (uintptr_t)(struct etw_predicate[]){ number("deltas", ETW_OP_EQ, 1) };
	e.nr_predicates = 1;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	EXPECT_EQ(0, enabled[index]);
	e = enable_make(name);
	e.ids = (uintptr_t)&id;
	e.nr_ids = 1;
	e.id_mode = ETW_EVENTS_OUT;
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	EXPECT_EQ(0, enabled[index]);
	e.id_mode = ETW_EVENTS_IN;
	put_processes(&e, "filters");
	ASSERT_EQ(1, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	EXPECT_EQ(1, enabled[index]);
	before = session_provider(self->some.fd, name);
	ASSERT_EQ(0, write_requests(provider, index));
	prctl(PR_SET_NAME, "other");
	ASSERT_EQ(0, write_requests(provider, index));
	prctl(PR_SET_NAME, "filters");
	q = session_provider(self->some.fd, name);
	EXPECT_EQ(NR_REQUESTS, q.written - before.written);
	EXPECT_EQ(NR_REQUESTS, q.filtered - before.filtered);
	close(provider);
}

/* Filters of an enable that was there first are those of the events that come. */
TEST_F(filters, program_comes_later)
{
	struct etw_predicate p = number("count", ETW_OP_LT, 30);
	char name[ETW_NAME_SIZE];
	struct etw_provider_query q;
	struct etw_enable e;
	int provider, index, other;

	snprintf(name, sizeof(name), "Filters-%d", getpid());
	e = enable_make(name);
	e.predicates = (uintptr_t)&p;
	e.nr_predicates = 1;
	self->some.judge.holds = any_event;
	ASSERT_EQ(0, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e));
	provider = provider_register(self->dev, name);
	ASSERT_GE(provider, 0);
	index = request_register(provider, "Request", 1);
	ASSERT_GE(index, 0);
	other = provider_counter(provider, "Counter", 0);	/* no such field */
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, write_requests(provider, index));
	ASSERT_GT(write_number(provider, other, 5), 0);
	q = session_provider(self->some.fd, name);
	EXPECT_EQ(30, q.written);
	EXPECT_EQ(NR_REQUESTS - 30, q.filtered);
	close(provider);
}

/* ---- errors ---- */

TEST_F(filters, errors)
{
	static char names[ETW_MAX_PROCESS_NAMES + 1][ETW_NAME_SIZE];
	static struct etw_predicate many[ETW_MAX_PREDICATES + 1];
	static __u16 ids[ETW_MAX_EVENT_IDS + 1];
	const struct etw_enable good = enable_of("process", RENAMED);
	struct etw_predicate p = text("newcomm", ETW_OP_EQ, "x");
	struct etw_enable e;
	unsigned int i;

	for (i = 0; i <= ETW_MAX_PROCESS_NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "p%u", i);
	for (i = 0; i <= ETW_MAX_PREDICATES; i++)
		many[i] = p;

#define ROW(errno_, ...) do {									\
	e = good;										\
	__VA_ARGS__;										\
	EXPECT_EQ(errno_, call(self->some.fd, ETW_IOC_SESSION_ENABLE, &e)) TH_LOG("%s", #__VA_ARGS__);	\
} while (0)
#define IDS(nr, mode)		e.ids = (uintptr_t)ids, e.nr_ids = nr, e.id_mode = mode
#define PROCESSES(nr)		e.processes = (uintptr_t)names, e.nr_processes = nr
#define PREDICATES(list, nr)	e.predicates = (uintptr_t)(list), e.nr_predicates = nr
#define UNREADABLE		((uintptr_t)-4096)

	ROW(1, IDS(ETW_MAX_EVENT_IDS, ETW_EVENTS_OUT));
	ROW(-E2BIG, IDS(ETW_MAX_EVENT_IDS + 1, ETW_EVENTS_OUT));
	ROW(-EINVAL, IDS(1, ETW_EVENTS_ALL));
	ROW(-EINVAL, IDS(0, ETW_EVENTS_ALL));
	ROW(-EINVAL, IDS(0, ETW_EVENTS_IN));
	ROW(-EINVAL, IDS(1, ETW_EVENTS_OUT + 1));
	ROW(-EFAULT, IDS(1, ETW_EVENTS_IN), e.ids = UNREADABLE);

	ROW(1, PROCESSES(ETW_MAX_PROCESS_NAMES));
	ROW(-E2BIG, PROCESSES(ETW_MAX_PROCESS_NAMES + 1));
	ROW(-EINVAL, PROCESSES(0));
	ROW(-EFAULT, PROCESSES(1), e.processes = UNREADABLE);
	ROW(-EINVAL, PROCESSES(1), e.processes = 0, e.nr_processes = 0, e.reserved = 1);
	memset(names[1], 0, sizeof(names[1]));
	ROW(1, PROCESSES(1));
	ROW(-EINVAL, PROCESSES(2));
	memset(names[1], 'n', sizeof(names[1]));
	ROW(-EINVAL, PROCESSES(2));
	names[1][sizeof(names[1]) - 1] = 0;
	ROW(1, PROCESSES(2));
	names[1][20] = 0;
	ROW(-EINVAL, PROCESSES(2));
	snprintf(names[1], sizeof(names[1]), "%s", "a b/c:(0)");
	memset(names[1] + 9, 0, sizeof(names[1]) - 9);
	ROW(1, PROCESSES(2));

	ROW(1, PREDICATES(many, ETW_MAX_PREDICATES));
	ROW(-E2BIG, PREDICATES(many, ETW_MAX_PREDICATES + 1));
	ROW(-EINVAL, PREDICATES(many, 0));
	ROW(-EFAULT, PREDICATES(UNREADABLE, 1));
	ROW(1, PREDICATES(&p, 1), e.flags |= ETW_ENABLE_ANY_PREDICATE);
	ROW(1, e.flags |= ETW_ENABLE_ANY_PREDICATE);
	many[1].op = 0;
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1].op = ETW_NR_OPS;
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1].op = ETW_OP_LT;
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1] = number("tid", ETW_OP_PREFIX, 1);
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1] = number("tid", ETW_OP_EQ, 1);
	ROW(1, PREDICATES(many, 2));
	many[1].kind = ETW_VALUE_BYTES + 1;
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1].kind = ETW_VALUE_BYTES;
	ROW(-EINVAL, PREDICATES(many, 2));	/* with a number */
	many[1].value = 0;
	ROW(1, PREDICATES(many, 2));
	many[1] = number("", ETW_OP_EQ, 1);
	ROW(-EINVAL, PREDICATES(many, 2));
	many[1] = text("tid", ETW_OP_EQ, "x");
	many[1].text[10] = 'y';
	ROW(-EINVAL, PREDICATES(many, 2));
	/* the last that was good is in force */
	EXPECT_EQ(2, session_provider(self->some.fd, "process").nr_predicates);
}

TEST_HARNESS_MAIN
