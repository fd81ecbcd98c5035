// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every call of the ABI with its nth allocation or copy failing, for every n, and again with all allocations after that
 * one failing too. It gives an errno that ABI.md lists for it, leaves nothing behind, and succeeds afterwards. Needs a
 * kernel with fault injection. It must not know what the calls allocate.
 */
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"
#include "state.h"

#define DEBUGFS "/sys/kernel/debug/"
#define TRACEFS "/sys/kernel/tracing/"
/* More failures than any one call has places for them. */
#define ENDLESS 3000

/* The errno table of ABI.md, made by the Makefile. */
static const struct {
	const char *command;
	int err;
} abi_errnos[] = {
#include "abi_errnos.h"
};

static bool has_row(const char *command, int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(abi_errnos); i++)
		if (abi_errnos[i].err == err && !strcmp(abi_errnos[i].command, command))
			return true;
	return false;
}

/* A command, or another call on one of our files. */
static bool in_abi(const char *call, int err)
{
	return has_row(call, err) || (isupper(call[0]) && has_row("every command", err));
}

/* What makes this thread's calls fail: two files of its /proc/self/task. */
struct injector {
	int nth;
	int make_it;
};

FIXTURE(fail_nth)
{
	int dev;
	int session;		/* there all the time, with its relay of CPU 0 */
	int relay;
	int own;		/* made for one call, since class tables only grow and a session stops once; else -1 */
	int provider;			/* a provider file for one call */
	void *map;
	struct injector in;
	const char *name;
	struct state empty;	/* without the session */
	struct state start;
	struct state before;
	struct state after;
	struct state session_before;
	struct state session_after;
	/* Arguments and room for results, in memory that is there and stays there. */
	union {
		__u32 size;
		char bytes[512];
		struct etw_version version;
		struct etw_session_create create;
		struct etw_session_open open;
		struct etw_session_query query;
		struct etw_cpu_query cpu;
		struct etw_provider_query provider;
		struct etw_class_query class;
		struct etw_enable enable;
		struct etw_provider_ref ref;
		struct etw_session_update update;
		struct etw_flush flush;
		struct etw_schema_read schema;
		struct etw_provider_list list;
		struct etw_event_list events;
		struct etw_relay_open relay_open;
		struct etw_subbuf subbuf;
		struct etw_provider_register provider_register;
		struct etw_event_register event_register;
		struct etw_enabled_query enabled;
		struct etw_capture_query capture;
		struct etw_answer answer;
	} arg, given;
	__s32 pids[2];
	char names[2][ETW_NAME_SIZE];
	__u16 ids[1];
	struct etw_predicate predicates[1];
	struct etw_keyword keywords[64];
	char room[65536];
};

typedef struct _test_data_fail_nth self_t;

/* One call, in the ways it is tried. */
struct trial {
	const char *command;			/* as ABI.md names it */
	bool makes_file;
	unsigned int least;			/* places where it can fail, at least */
	void (*prepare)(self_t *self);		/* all but the call; NULL: nothing */
	int (*call)(self_t *self);		/* one system call: its result or -errno */
	void (*undo)(self_t *self, int result);	/* what success did, but to the session made for it; NULL: nothing */
	bool cannot_fail;			/* whatever happens */
	bool not_ours;				/* the kernel does it without asking us: its errnos */
};

static int thread_file(const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)syscall(SYS_gettid), what);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int set(const char *attribute, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "%s", attribute);
	return file_write(path, value);
}

static bool put_number(int fd, unsigned int number)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", number);

	return pwrite(fd, text, len, 0) == len;
}

/* From now on the nth allocation or copy of this thread fails. @all: and every allocation after it. */
static bool arm(const struct injector *in, unsigned int n, bool all)
{
	return (!all || put_number(in->make_it, 1)) && put_number(in->nth, n);
}

/* How many failures are left that did not happen; 0: it happened. */
static int disarm(const struct injector *in)
{
	char text[16] = "";
	ssize_t len = pread(in->nth, text, sizeof(text) - 1, 0);
	/* Reading copies too: it is the one that fails if just one was left. */
	int left = len > 0 ? atoi(text) : 1;

	/* And so does writing. */
	while (!put_number(in->nth, 0) || !put_number(in->make_it, 0))
		;
	return left;
}

/* For the calling thread. NULL, or what this kernel lacks. */
static const char *injector_open(struct injector *in)
{
	static const char *const attributes[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		/* Only of tasks that ask for it in make-it-fail, and without a word. */
		{ "failslab/task-filter", "Y" },
		{ "failslab/verbose", "0" },
		{ "failslab/times", "-1" },
		{ "failslab/probability", "100" },
		{ "fail_page_alloc/task-filter", "Y" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_page_alloc/times", "-1" },
		{ "fail_page_alloc/probability", "100" },
		{ "fail_usercopy/verbose", "0" },
		{ "fail_usercopy/times", "-1" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(attributes); i++)
		if (set(attributes[i][0], attributes[i][1]))
			return attributes[i][0];
	in->nth = thread_file("fail-nth");
	if (in->nth < 0)
		return "fail-nth";
	in->make_it = thread_file("make-it-fail");
	if (in->make_it < 0)
		return "make-it-fail";
	/* Grace periods are most of the time. */
	file_write("/sys/kernel/rcu_expedited", "1");
	mlockall(MCL_CURRENT);
	return NULL;
}

static void injector_close(struct injector *in)
{
	close(in->make_it);
	close(in->nth);
	file_write("/sys/kernel/rcu_expedited", "0");
}

/* A macro, so that it can end the test. */
#define INJECTOR_OPEN(in) do {							\
	const char *_lacks = injector_open(in);					\
										\
	if (_lacks)								\
		TH_LOG("this kernel has no %s", _lacks);			\
	ASSERT_EQ(NULL, _lacks);						\
} while (0)

FIXTURE_SETUP(fail_nth)
{
	struct etw_session_create create = session_small(unique("nth"));
	struct etw_relay_open open = { .size = sizeof(open) };

	INJECTOR_OPEN(&self->in);
	self->own = -1;
	self->provider = -1;
	self->name = unique("nth");
	ASSERT_EQ(0, pin(0));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	state_module(&self->empty, self->dev);
	self->session = session_make(self->dev, &create);
	ASSERT_GE(self->session, 0);
	ASSERT_EQ(1, enable_renames(self->session, getpid()));
	self->relay = call(self->session, ETW_IOC_SESSION_RELAY_OPEN, &open);
	ASSERT_GE(self->relay, 0);
	state_module(&self->start, self->dev);
}

FIXTURE_TEARDOWN(fail_nth)
{
	const char *why;

	close(self->relay);
	close(self->session);
	/* A reference too many shows only now: the session would still be there. */
	state_module(&self->after, self->dev);
	why = state_differs(&self->empty, &self->after);
	if (why)
		TH_LOG("%s", why);
	EXPECT_EQ(NULL, why);
	close(self->dev);
	injector_close(&self->in);
}

struct tally {
	unsigned int points;	/* the last n that happened */
	unsigned int failed;
	unsigned int survived;
	bool seen[4096];
};

/* The call with its nth failure. What is wrong, or NULL; @tally->points is up to @n if it happened. */
static const char *try_one(self_t *self, const struct trial *t, unsigned int n, bool all, struct tally *tally)
{
	static char text[600];
	const char *why;
	int result, left, again;

	if (t->prepare)
		t->prepare(self);
	self->given = self->arg;
	state_module(&self->before, self->dev);
	state_session(&self->session_before, self->own >= 0 ? self->own : self->session);
	if (!arm(&self->in, n, all))
		return "fail-nth cannot be set";
	result = t->call(self);
	left = disarm(&self->in);
	if (!left)
		tally->points = n;

	if (result < 0) {
		if (left || t->cannot_fail) {
			snprintf(text, sizeof(text), "%s%s", strerror(-result), left ? " although nothing failed" : "");
			return text;
		}
		if (!in_abi(t->command, -result) && !(t->makes_file && (result == -EMFILE || result == -ENFILE)) &&
		    !(t->not_ours && (result == -ENOMEM || result == -EFAULT || result == -ENFILE))) {
			snprintf(text, sizeof(text), "%s: not in ABI.md", strerror(-result));
			return text;
		}
		tally->failed++;
		tally->seen[-result] = true;
		if (memcmp(&self->given, &self->arg, sizeof(self->arg)))
			return "it failed, and changed what it was given";
		state_module(&self->after, self->dev);
		state_session(&self->session_after, self->own >= 0 ? self->own : self->session);
		why = state_differs(&self->before, &self->after);
		if (!why)
			why = state_differs(&self->session_before, &self->session_after);
		if (why)
			return why;
		/* With all that follow failing too there is nothing new in it; the last call of the series must succeed. */
		if (!all) {
			again = t->call(self);
			if (again < 0) {
				snprintf(text, sizeof(text), "%s, and then %s", strerror(-result), strerror(-again));
				return text;
			}
			result = again;
		}
	} else if (!left) {
		tally->survived++;
	}
	if (result >= 0 && t->undo)
		t->undo(self, result);
	if (self->own >= 0)
		close(self->own);
	self->own = -1;
	if (self->provider >= 0)
		close(self->provider);
	self->provider = -1;
	state_module(&self->after, self->dev);
	return state_differs(&self->start, &self->after);
}

static const char *try_all(self_t *self, const struct trial *t, bool all, struct tally *tally)
{
	const char *why = NULL;
	static char text[700];
	unsigned int n;

	memset(tally, 0, sizeof(*tally));
	for (n = 1; !why && n < ENDLESS; n++) {
		why = try_one(self, t, n, all, tally);
		if (!why && tally->points < n)
			return NULL;
	}
	snprintf(text, sizeof(text), "%s, failure %u%s: %s", t->command, n - 1, all ? " and all after it" : "",
		 why ? why : "there is no end of them");
	return text;
}

static const char *run(self_t *self, const struct trial *t)
{
	static const int errs[] = { ENOMEM, EFAULT };
	struct tally one, all;
	static char text[200];
	uint64_t begin = now_ns();
	const char *why;
	size_t i;

	why = try_all(self, t, false, &one);
	if (!why)
		why = try_all(self, t, true, &all);
	if (why)
		return why;
	printf("# %s: %u points, %u failed, %u survived; from there on %u, %u, %u; %u ms\n", t->command, one.points,
	       one.failed, one.survived, all.points, all.failed, all.survived, (unsigned int)((now_ns() - begin) / 1000000));
	if (one.points < t->least) {
		snprintf(text, sizeof(text), "%s: %u places, not %u, where it can fail", t->command, one.points, t->least);
		return text;
	}
	/* What ABI.md says can happen did. */
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		if (in_abi(t->command, errs[i]) && !t->cannot_fail && !one.seen[errs[i]] && !all.seen[errs[i]]) {
			snprintf(text, sizeof(text), "%s: never %s", t->command, strerror(errs[i]));
			return text;
		}
	}
	return NULL;
}

#define TRY(...) do {							\
	const struct trial _trial = { __VA_ARGS__ };			\
	const char *_why = run(self, &_trial);				\
									\
	if (_why)							\
		TH_LOG("%s", _why);					\
	ASSERT_EQ(NULL, _why);						\
} while (0)

/* The argument of most commands: its size and poison, for the caller to complete. */
#define fresh(self, member) ({						\
	memset(&(self)->arg, 0, sizeof((self)->arg));			\
	poison((self)->arg.member);					\
	&(self)->arg.member; })
#define zeroed(self, member) ({						\
	memset(&(self)->arg, 0, sizeof((self)->arg));			\
	(self)->arg.member.size = sizeof((self)->arg.member);		\
	&(self)->arg.member; })

static void close_result(self_t *self, int result)
{
	close(result);
}

/* ---- the control file ---- */

static int open_device(self_t *self)
{
	return device_open();
}

TEST_F(fail_nth, open_control)
{
	TRY("open of /dev/etw", .least = 3, .call = open_device, .undo = close_result, .not_ours = true);
}

static void prepare_version(self_t *self)
{
	fresh(self, version);
}

static int version(self_t *self)
{
	return call(self->dev, ETW_IOC_VERSION, &self->arg);
}

TEST_F(fail_nth, version)
{
	TRY("VERSION", .least = 1, .prepare = prepare_version, .call = version);
}

static void prepare_create(self_t *self)
{
	struct etw_session_create *c = zeroed(self, create);

	strcpy((char *)c->name, "nth-created");
	c->subbuf_size = 8192;
	c->nr_subbufs = 2;
}

static int session_create(self_t *self)
{
	return call(self->dev, ETW_IOC_SESSION_CREATE, &self->arg);
}

TEST_F(fail_nth, session_create)
{
	TRY("SESSION_CREATE", true, 20, prepare_create, session_create, close_result);
}

static void prepare_create_persistent(self_t *self)
{
	prepare_create(self);
	self->arg.create.flags = ETW_SESSION_PERSIST | ETW_SESSION_OVERWRITE;
}

static void stop_and_close(self_t *self, int result)
{
	call(result, ETW_IOC_SESSION_STOP, NULL);
	close(result);
}

TEST_F(fail_nth, session_create_persistent)
{
	TRY("SESSION_CREATE", true, 20, prepare_create_persistent, session_create, stop_and_close);
}

static void prepare_open(self_t *self)
{
	strcpy((char *)zeroed(self, open)->name, self->name);
}

static int session_open_again(self_t *self)
{
	return call(self->dev, ETW_IOC_SESSION_OPEN, &self->arg);
}

TEST_F(fail_nth, session_open)
{
	TRY("SESSION_OPEN", true, 4, prepare_open, session_open_again, close_result);
}

static void prepare_session_list(self_t *self)
{
	fresh(self, query)->id = 0;
}

static int session_list(self_t *self)
{
	return call(self->dev, ETW_IOC_SESSION_LIST, &self->arg);
}

TEST_F(fail_nth, session_list)
{
	TRY("SESSION_LIST", .least = 2, .prepare = prepare_session_list, .call = session_list);
}

static void prepare_provider_list(self_t *self)
{
	struct etw_provider_list *l = zeroed(self, list);

	l->keywords = (uintptr_t)self->keywords;
	l->nr_keywords = ARRAY_SIZE(self->keywords);
}

static int provider_list(self_t *self)
{
	return call(self->dev, ETW_IOC_PROVIDER_LIST, &self->arg);
}

TEST_F(fail_nth, provider_list)
{
	TRY("PROVIDER_LIST", .least = 4, .prepare = prepare_provider_list, .call = provider_list);
}

static void prepare_event_list(self_t *self)
{
	struct etw_event_list *l = zeroed(self, events);

	l->buf = (uintptr_t)self->room;
	l->buf_size = sizeof(self->room);
}

static int event_list(self_t *self)
{
	return call(self->dev, ETW_IOC_EVENT_LIST, &self->arg);
}

TEST_F(fail_nth, event_list)
{
	TRY("EVENT_LIST", .least = 4, .prepare = prepare_event_list, .call = event_list);
}

/* ---- a session file ---- */

static void prepare_query(self_t *self)
{
	fresh(self, query);
}

static int session_query_(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_QUERY, &self->arg);
}

TEST_F(fail_nth, session_query)
{
	TRY("SESSION_QUERY", .least = 1, .prepare = prepare_query, .call = session_query_);
}

static void prepare_query_cpu(self_t *self)
{
	fresh(self, cpu)->cpu = 0;
}

static int query_cpu(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_QUERY_CPU, &self->arg);
}

TEST_F(fail_nth, session_query_cpu)
{
	TRY("SESSION_QUERY_CPU", .least = 2, .prepare = prepare_query_cpu, .call = query_cpu);
}

static void prepare_query_provider(self_t *self)
{
	struct etw_provider_query *q = fresh(self, provider);

	q->id = 0;
	q->flags = 0;
}

static int query_provider(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_QUERY_PROVIDER, &self->arg);
}

TEST_F(fail_nth, session_query_provider)
{
	TRY("SESSION_QUERY_PROVIDER", .least = 2, .prepare = prepare_query_provider, .call = query_provider);
}

static void prepare_query_class(self_t *self)
{
	fresh(self, class)->id = 0;
}

static int query_class(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_QUERY_CLASS, &self->arg);
}

TEST_F(fail_nth, session_query_class)
{
	TRY("SESSION_QUERY_CLASS", .least = 2, .prepare = prepare_query_class, .call = query_class);
}

/* A session for one call, with what @provider has enabled, if it is not NULL. */
static void make_own(self_t *self, const char *provider)
{
	struct etw_session_create create = session_small("nth-own");

	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	self->own = session_make(self->dev, &create);
	if (provider)
		enable_all(self->own, provider);
}

static void describe_enable(self_t *self)
{
	struct etw_enable *e = zeroed(self, enable);

	strcpy((char *)e->name, "process");
	self->pids[0] = getpid();
	e->pids = (uintptr_t)self->pids;
	e->nr_pids = ARRAY_SIZE(self->pids);
	strcpy(self->names[0], "process_fork");
	strcpy(self->names[1], "none");
	e->event_mode = ETW_EVENTS_OUT;
	e->events = (uintptr_t)self->names;
	e->nr_events = ARRAY_SIZE(self->names);
	self->ids[0] = 65000;
	e->id_mode = ETW_EVENTS_OUT;
	e->ids = (uintptr_t)self->ids;
	e->nr_ids = ARRAY_SIZE(self->ids);
	e->processes = (uintptr_t)self->names;
	e->nr_processes = ARRAY_SIZE(self->names);
	self->predicates[0] = (struct etw_predicate){ "tid", ETW_OP_GE, ETW_VALUE_NUMBER, 0, "" };
	e->predicates = (uintptr_t)self->predicates;
	e->nr_predicates = ARRAY_SIZE(self->predicates);
}

static void prepare_enable(self_t *self)
{
	make_own(self, NULL);
	describe_enable(self);
}

static int session_enable(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_ENABLE, &self->arg);
}

TEST_F(fail_nth, session_enable)
{
	TRY("SESSION_ENABLE", .least = 15, .prepare = prepare_enable, .call = session_enable);
}

static void prepare_enable_again(self_t *self)
{
	make_own(self, "process");
	describe_enable(self);
}

/* What was enabled before stays as it was. */
TEST_F(fail_nth, session_enable_again)
{
	TRY("SESSION_ENABLE", .least = 10, .prepare = prepare_enable_again, .call = session_enable);
}

static void prepare_enable_unknown(self_t *self)
{
	make_own(self, NULL);
	describe_enable(self);
	strcpy((char *)self->arg.enable.name, "unknown");
}

TEST_F(fail_nth, session_enable_unknown)
{
	TRY("SESSION_ENABLE", .least = 6, .prepare = prepare_enable_unknown, .call = session_enable);
}

/* Another user of the tracepoints, so that taking out ours needs memory too. */
static void use_tracepoints(bool use)
{
	static const char *const events[] = {
		"sched/sched_process_fork", "sched/sched_process_exec", "sched/sched_process_exit", "task/task_rename",
	};
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), TRACEFS "events/%s/enable", events[i]);
		if (file_write(path, use ? "1" : "0"))
			printf("# no %s\n", path);
	}
}

static void prepare_ref(self_t *self)
{
	make_own(self, "process");
	strcpy((char *)zeroed(self, ref)->name, "process");
}

static int session_disable(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_DISABLE, &self->arg);
}

TEST_F(fail_nth, session_disable)
{
	use_tracepoints(true);
	TRY("SESSION_DISABLE", .least = 4, .prepare = prepare_ref, .call = session_disable);
	use_tracepoints(false);
}

static void prepare_own(self_t *self)
{
	make_own(self, "process");
}

static int session_stop(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_STOP, NULL);
}

TEST_F(fail_nth, session_stop)
{
	use_tracepoints(true);
	TRY("SESSION_STOP", .least = 3, .prepare = prepare_own, .call = session_stop, .cannot_fail = true);
	use_tracepoints(false);
}

static int session_close(self_t *self)
{
	int fd = self->own;

	self->own = -1;
	return close(fd) ? -errno : 0;
}

TEST_F(fail_nth, session_close)
{
	use_tracepoints(true);
	TRY("close of a session file", .least = 3, .prepare = prepare_own, .call = session_close, .cannot_fail = true);
	use_tracepoints(false);
}

static int capture_state(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_CAPTURE_STATE, &self->arg);
}

TEST_F(fail_nth, session_capture_state)
{
	TRY("SESSION_CAPTURE_STATE", .least = 1, .prepare = prepare_ref, .call = capture_state);
}

static void prepare_update(self_t *self)
{
	struct etw_session_update *u;

	make_own(self, NULL);
	u = zeroed(self, update);
	u->what = ETW_UPDATE_FLUSH_MS;
	u->flush_ms = 500;
}

static int session_update(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_UPDATE, &self->arg);
}

TEST_F(fail_nth, session_update)
{
	TRY("SESSION_UPDATE", .least = 1, .prepare = prepare_update, .call = session_update);
}

static void prepare_flush(self_t *self)
{
	struct etw_flush *f = fresh(self, flush);

	f->timeout_ms = 60000;
	f->reserved = 0;
}

static int flush(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_FLUSH, &self->arg);
}

TEST_F(fail_nth, session_flush)
{
	TRY("SESSION_FLUSH", .least = 2, .prepare = prepare_flush, .call = flush);
}

static void prepare_schema_read(self_t *self)
{
	struct etw_schema_read *r = fresh(self, schema);

	r->from = 0;
	r->buf = (uintptr_t)self->room;
	r->buf_size = sizeof(self->room);
}

static int schema_read(self_t *self)
{
	return call(self->session, ETW_IOC_SESSION_SCHEMA_READ, &self->arg);
}

TEST_F(fail_nth, session_schema_read)
{
	TRY("SESSION_SCHEMA_READ", .least = 4, .prepare = prepare_schema_read, .call = schema_read);
}

static void prepare_relay_open(self_t *self)
{
	make_own(self, NULL);
	zeroed(self, relay_open);
}

static int relay_open_own(self_t *self)
{
	return call(self->own, ETW_IOC_SESSION_RELAY_OPEN, &self->arg);
}

TEST_F(fail_nth, session_relay_open)
{
	TRY("SESSION_RELAY_OPEN", true, 4, prepare_relay_open, relay_open_own, close_result);
}

/* ---- a relay file ---- */

static void prepare_get(self_t *self)
{
	work_rename("nth", 0, 1);
	session_flush(self->session);
	fresh(self, subbuf);
}

static int subbuf_get(self_t *self)
{
	return call(self->relay, ETW_IOC_RELAY_SUBBUF_GET, &self->arg);
}

static void put_back(self_t *self, int result)
{
	if (self->arg.subbuf.records != 1)
		printf("# GET: %u records, not the one that was written\n", self->arg.subbuf.records);
	call(self->relay, ETW_IOC_RELAY_SUBBUF_PUT, NULL);
}

/* What it lent but could not tell it lends again. */
TEST_F(fail_nth, relay_subbuf_get)
{
	TRY("RELAY_SUBBUF_GET", .least = 1, .prepare = prepare_get, .call = subbuf_get, .undo = put_back);
	while (!subbuf_get(self))
		put_back(self, 0);
	EXPECT_EQ(session_query(self->session).written, session_query(self->session).delivered);
}

static void prepare_put(self_t *self)
{
	prepare_get(self);
	subbuf_get(self);
}

static int subbuf_put(self_t *self)
{
	return call(self->relay, ETW_IOC_RELAY_SUBBUF_PUT, NULL);
}

TEST_F(fail_nth, relay_subbuf_put)
{
	TRY("RELAY_SUBBUF_PUT", .prepare = prepare_put, .call = subbuf_put, .cannot_fail = true);
	EXPECT_EQ(session_query(self->session).written, session_query(self->session).delivered);
}

/* Far from everything, so that all levels of page tables have to be made. */
#define FAR_AWAY ((void *)0x200000000000UL)
#define MAP_SIZE (9 * 16384UL)

static int relay_mmap(self_t *self)
{
	self->map = mmap(FAR_AWAY, MAP_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, self->relay, 0);
	return self->map == MAP_FAILED ? -errno : 0;
}

static void unmap(self_t *self, int result)
{
	munmap(self->map, MAP_SIZE);
}

TEST_F(fail_nth, relay_mmap)
{
	TRY("mmap of a relay file", .least = 5, .call = relay_mmap, .undo = unmap);
}

/* ---- a provider file ---- */

static void prepare_register(self_t *self)
{
	struct etw_provider_register *r = zeroed(self, provider_register);

	strcpy((char *)r->name, "Nth-Provider");
	memset(self->keywords, 0, sizeof(self->keywords[0]));
	self->keywords[0].mask = 1;
	strcpy((char *)self->keywords[0].name, "one");
	r->keywords = (uintptr_t)self->keywords;
	r->nr_keywords = 1;
}

static int register_provider(self_t *self)
{
	return call(self->dev, ETW_IOC_PROVIDER_REGISTER, &self->arg);
}

TEST_F(fail_nth, provider_register)
{
	TRY("PROVIDER_REGISTER", true, 6, prepare_register, register_provider, close_result);
}

/* A provider file that the session has enabled. */
static void make_provider(self_t *self)
{
	self->provider = provider_register(self->dev, "Nth-Provider");
}

static void prepare_event(self_t *self)
{
	static const struct map_value values[] = { { 1, "one" }, { 2, "two" }, { 0, NULL } };
	static struct schema_maker m;
	struct etw_event_register *e = zeroed(self, event_register);

	schema_begin(&m, "event", 1);
	schema_field(&m, 0, "n", ETW_TYPE_U64);
	schema_map(&m, 0, ETW_MAP_VALUES, values);
	e->schema_size = schema_done(&m);
	e->schema = (uintptr_t)m.bytes;
	make_provider(self);
}

static int add_event(self_t *self)
{
	return call(self->provider, ETW_IOC_PROVIDER_EVENT, &self->arg);
}

/* Into no session: what a session keeps of it stays as long as the session. */
TEST_F(fail_nth, provider_event)
{
	TRY("PROVIDER_EVENT", .least = 6, .prepare = prepare_event, .call = add_event);
}

static void prepare_enabled(self_t *self)
{
	zeroed(self, enabled);
	make_provider(self);
}

static int query_enabled(self_t *self)
{
	return call(self->provider, ETW_IOC_PROVIDER_ENABLED, &self->arg);
}

TEST_F(fail_nth, provider_enabled)
{
	TRY("PROVIDER_ENABLED", .least = 2, .prepare = prepare_enabled, .call = query_enabled);
}

static void prepare_capture(self_t *self)
{
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "Nth-Provider" };

	make_own(self, NULL);
	make_provider(self);
	enable_all(self->own, "Nth-Provider");
	call(self->own, ETW_IOC_SESSION_CAPTURE_STATE, &ref);
	zeroed(self, capture);
}

static int query_capture(self_t *self)
{
	return call(self->provider, ETW_IOC_PROVIDER_CAPTURE, &self->arg);
}

TEST_F(fail_nth, provider_capture)
{
	TRY("PROVIDER_CAPTURE", .least = 2, .prepare = prepare_capture, .call = query_capture);
}

static void prepare_answer(self_t *self)
{
	struct etw_capture_query q = { .size = sizeof(q) };
	struct etw_answer *a;

	prepare_capture(self);
	call(self->provider, ETW_IOC_PROVIDER_CAPTURE, &q);
	a = zeroed(self, answer);
	a->id = q.id;
	a->events = (uintptr_t)self->room;
	provider_counter(self->provider, "event", 0);
	a->bytes = write_add(self->room, 0, 0, &(uint64_t){ 1 }, 8);
}

static int answer(self_t *self)
{
	return call(self->provider, ETW_IOC_PROVIDER_ANSWER, &self->arg);
}

TEST_F(fail_nth, provider_answer)
{
	TRY("PROVIDER_ANSWER", .least = 3, .prepare = prepare_answer, .call = answer);
}

static void prepare_write(self_t *self)
{
	static struct schema_maker m;
	uint32_t len = 1000;

	make_provider(self);
	schema_begin(&m, "event", 1);
	schema_field(&m, 0, "bytes", ETW_TYPE_BINARY);
	provider_event(self->provider, m.bytes, schema_done(&m));
	memset(self->room, 0, 1100);
	write_add(self->room, 0, 0, "", 0);
	memcpy(self->room + sizeof(struct etw_write), &len, sizeof(len));
	((struct etw_write *)self->room)->size += 4 + len;
}

static int write_large(self_t *self)
{
	const ssize_t ret = write(self->provider, self->room, 4 + 1000 + sizeof(struct etw_write));

	return ret < 0 ? -errno : ret == 4 + 1000 + sizeof(struct etw_write) ? 0 : -EPROTO;
}

TEST_F(fail_nth, provider_write)
{
	TRY("write to a provider file", .least = 2, .prepare = prepare_write, .call = write_large);
}

static int provider_mmap(self_t *self)
{
	self->map = mmap(FAR_AWAY, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, self->provider, 0);
	return self->map == MAP_FAILED ? -errno : 0;
}

static void unmap_page(self_t *self, int result)
{
	munmap(self->map, 4096);
}

TEST_F(fail_nth, provider_mmap)
{
	TRY("mmap of a provider file", .least = 4, .prepare = make_provider, .call = provider_mmap, .undo = unmap_page);
}

static void prepare_relay_close(self_t *self)
{
	struct etw_relay_open open = { .size = sizeof(open) };

	make_own(self, NULL);
	self->arg.relay_open.cpu = call(self->own, ETW_IOC_SESSION_RELAY_OPEN, &open);
}

static int relay_file_close(self_t *self)
{
	return close(self->arg.relay_open.cpu) ? -errno : 0;
}

TEST_F(fail_nth, relay_close)
{
	TRY("close of a relay file", .prepare = prepare_relay_close, .call = relay_file_close, .cannot_fail = true);
}

/* ---- what is no call on a file ---- */

/* Did the kernel's trace note a line with both words since the last time? It is emptied. */
static bool traced(const char *word, const char *other)
{
	FILE *f = fopen(TRACEFS "trace", "re");
	bool found = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		found |= line[0] != '#' && strstr(line, word) && strstr(line, other);
	if (f)
		fclose(f);
	close(open(TRACEFS "trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
	return found;
}

FIXTURE(fail_load)
{
	struct injector in;
	int err;
	int left;
};

static int unload(void)
{
	return syscall(SYS_delete_module, "etw", O_NONBLOCK) ? -errno : 0;
}

static bool loaded(void)
{
	return !access("/sys/module/etw", F_OK);
}

/* With the nth failure; 0: without any. */
static void load(void *arg, unsigned int n)
{
	const char *file = getenv("ETW_KO");
	struct _test_data_fail_load *self = arg;
	int fd = open(file ? file : "/etw/etw.ko", O_RDONLY | O_CLOEXEC);

	if (loaded())
		wait_until(10000, !unload());
	if (n)
		arm(&self->in, n, false);
	self->err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	self->left = n ? disarm(&self->in) : 1;
	close(fd);
}

FIXTURE_SETUP(fail_load)
{
	INJECTOR_OPEN(&self->in);
	ASSERT_EQ(0, file_write(TRACEFS "events/module/module_load/enable", "1"));
}

FIXTURE_TEARDOWN(fail_load)
{
	file_write(TRACEFS "events/module/module_load/enable", "0");
	if (!loaded())
		load(self, 0);
	injector_close(&self->in);
}

/*
 * The module's own part of loading it: from the last failure there is back to the first that comes before the module's code
 * runs. What the module made until it fails it takes back, or its census would complain.
 */
TEST_F(fail_load, load)
{
	unsigned int last, n, failed = 0, survived = 0;

	load(self, ENDLESS);
	ASSERT_EQ(0, self->err);
	last = ENDLESS - self->left;
	traced("", "");
	/* A slab may need a page more the next time. */
	for (n = last + 3; n; n--) {
		load(self, n);
		if (!traced("module_load: etw", ""))
			break;
		if (!self->err) {
			survived += !self->left;
			continue;
		}
		failed++;
		EXPECT_EQ(-ENOMEM, self->err);
		EXPECT_FALSE(loaded());
		EXPECT_EQ(-1, access("/dev/etw", F_OK));
		EXPECT_EQ(-1, access("/sys/class/misc/etw", F_OK));
		EXPECT_EQ(-1, access(DEBUGFS "etw", F_OK));
	}
	printf("# load: %u points after %u of the loader, %u failed, %u survived\n", failed + survived, n, failed, survived);
	EXPECT_LT(5, failed);
	EXPECT_LT(0, n);
	load(self, 0);
	EXPECT_EQ(0, self->err);
	EXPECT_TRUE(loaded());
	EXPECT_EQ(0, access("/dev/etw", F_OK));
}

FIXTURE(fail_cpu)
{
	struct injector in;
	unsigned int cpu;
	int dev;
	int session;
	int err;
	int left;
};

FIXTURE_SETUP(fail_cpu)
{
	INJECTOR_OPEN(&self->in);
	ASSERT_EQ(0, pin(0));
	self->cpu = cpus_online() - 1;
	self->session = -1;
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	ASSERT_EQ(0, file_write(TRACEFS "events/cpuhp/cpuhp_multi_enter/enable", "1"));
}

FIXTURE_TEARDOWN(fail_cpu)
{
	file_write(TRACEFS "events/cpuhp/cpuhp_multi_enter/enable", "0");
	close(self->session);
	close(self->dev);
	if (self->cpu)
		cpu_online(self->cpu, true);
	injector_close(&self->in);
}

/* A CPU comes to a session that was made without it, with the nth failure. */
static void bring_cpu(void *arg, unsigned int n)
{
	struct etw_session_create create = session_small("nth-cpu");
	struct _test_data_fail_cpu *self = arg;

	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	cpu_online(self->cpu, false);
	if (self->session >= 0)
		close(self->session);
	self->session = session_make(self->dev, &create);
	enable_renames(self->session, getpid());
	arm(&self->in, n, false);
	self->err = cpu_online(self->cpu, true);
	self->left = disarm(&self->in);
}

/* No failure of ours keeps a CPU away. Without a relay what is recorded there is lost and counted; next time it gets one. */
TEST_F(fail_cpu, relay)
{
	unsigned int first = 1, high = ENDLESS, n, without = 0, with = 0, rounds = 0;
	char cpu[24];

	if (!self->cpu)
		SKIP(return, "one CPU only");
	/* The first failure that lets the CPU come as far as to our code, by halves; it is among the first few hundred. */
	snprintf(cpu, sizeof(cpu), "cpu: %04u ", self->cpu);
	while (first < high) {
		unsigned int middle = first + (high - first > 300 ? 150 : (high - first) / 2);

		traced("", "");
		bring_cpu(self, middle);
		if (traced(cpu, "cpu_prepare [etw]"))
			high = middle;
		else
			first = middle + 1;
	}
	ASSERT_LT(first, ENDLESS);
	/* Which of them hits us changes with the pages that slabs have left: once more, if too few did. */
	for (; without < 4 && rounds < 5; rounds++) {
		for (n = first; n < ENDLESS; n++) {
			struct etw_session_query q;

			traced("", "");
			bring_cpu(self, n);
			if (self->left)
				break;
			/* A slab needed a page more than before: it failed on the way to us. */
			if (!traced(cpu, "cpu_prepare [etw]"))
				continue;
			q = session_query(self->session);
			/* Single pages take the place of a block, or it failed after us. */
			if (q.nr_relays > self->cpu) {
				with++;
				continue;
			}
			without++;
			ASSERT_EQ(0, self->err);
			ASSERT_EQ(0, pin(self->cpu));
			work_rename("lost", 0, 10);
			ASSERT_EQ(0, pin(0));
			EXPECT_EQ(10, session_query(self->session).lost[ETW_LOST_CPU] - q.lost[ETW_LOST_CPU]);
			ASSERT_EQ(0, cpu_online(self->cpu, false));
			ASSERT_EQ(0, cpu_online(self->cpu, true));
			EXPECT_EQ(self->cpu + 1, session_query(self->session).nr_relays);
		}
	}
	printf("# late CPU: %u points in %u rounds after %u of others, %u without a relay\n", with + without, rounds,
	       first - 1, without);
	EXPECT_EQ(0, self->err);
	EXPECT_LE(4, without);
}

TEST_HARNESS_MAIN
