// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs as providers by libetw, looked at from outside: another process enables them and reads their events by the
 * library's consumer. It knows libetw and commands provider_lib_app.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

#include <etw/etw.h>

#include "etw_test.h"

#define NAME   "Test-Lib-App"
#define MODULE "/etw/etw.ko"

/* The program, and what its lines say. */
struct app {
	pid_t pid;
	int in;
	FILE *out;
	char line[128];
};

static const char *app_path(void)
{
	static char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 8);

	if (n < 0)
		return "./provider_lib_app";
	path[n] = 0;
	return strcat(path, "_app");
}

static int app_start_as(struct app *app, uid_t uid, const char *how, const char *variable)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return -errno;
	app->pid = fork();
	if (!app->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (variable)
			setenv(variable, "1", 1);
		if (uid && setresuid(uid, uid, uid))
			_exit(126);
		execl(app_path(), "provider_lib_app", how, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	app->in = in[1];
	app->out = fdopen(out[0], "r");
	return app->pid < 0 ? -errno : 0;
}

static int app_start(struct app *app, const char *how, const char *variable)
{
	return app_start_as(app, 0, how, variable);
}

/* The next line that begins so; "" there is none. */
static const char *app_line(struct app *app, const char *begin)
{
	while (fgets(app->line, sizeof(app->line), app->out)) {
		app->line[strcspn(app->line, "\n")] = 0;
		if (!strncmp(app->line, begin, strlen(begin)))
			return app->line;
	}
	return "";
}

/* Has it done; the next line that begins so, or after which it is done. */
static const char *app_do(struct app *app, const char *command, const char *begin)
{
	static char kept[128];

	if (dprintf(app->in, "%s\n", command) < 0)
		return "";
	if (strcmp(begin, "done")) {
		snprintf(kept, sizeof(kept), "%s", app_line(app, begin));
		app_line(app, "done");
		return kept;
	}
	return app_line(app, "done");
}

static void app_end(struct app *app)
{
	if (app->pid <= 0)
		return;
	close(app->in);
	fclose(app->out);
	waitpid(app->pid, NULL, 0);
	app->pid = 0;
}

/* Of @nr looks, 10 ms apart, how many found a thread of the program that does not sleep. */
static int looks_awake(const struct app *app, int nr)
{
	char pattern[64];
	int awake = 0;
	glob_t tasks;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*", app->pid);
	while (nr--) {
		bool all = !glob(pattern, 0, NULL, &tasks);

		for (size_t i = 0; all && i < tasks.gl_pathc; i++)
			all = task_state(atoi(strrchr(tasks.gl_pathv[i], '/') + 1)) == 'S';
		globfree(&tasks);
		awake += !all;
		sleep_ms(10);
	}
	return awake;
}

FIXTURE(provider_lib)
{
	struct app app;
	struct etw_control *control;
	struct etw_session *session;
	struct etw_consumer *consumer;
	const struct etw_event *event;
};

static int open_session(FIXTURE_DATA(provider_lib) * self)
{
	struct etw_session_options o = { .size = sizeof(o), .flush_ms = 20 };
	int err = etw_control_open(&self->control);

	if (!err)
		err = etw_session_create(self->control, unique("lib"), &o, &self->session);
	if (!err)
		err = etw_consumer_new(NULL, &self->consumer);
	if (!err)
		err = etw_consumer_add_session(self->consumer, self->session);
	return err < 0 ? err : 0;
}

static void close_session(FIXTURE_DATA(provider_lib) * self)
{
	etw_consumer_free(self->consumer);
	etw_session_close(self->session);
	etw_control_close(self->control);
	self->consumer = NULL;
	self->session = NULL;
	self->control = NULL;
}

FIXTURE_SETUP(provider_lib)
{
	signal(SIGPIPE, SIG_IGN);
	memset(&self->app, 0, sizeof(self->app));
	ASSERT_EQ(0, open_session(self)) TH_LOG("%s", etw_last_error());
}

FIXTURE_TEARDOWN(provider_lib)
{
	app_end(&self->app);
	close_session(self);
}

static int enable(struct etw_session *session, unsigned int level, __u64 any)
{
	struct etw_enable_options o = { .size = sizeof(o), .provider = NAME, .level = level, .any = any };

	return etw_session_enable(session, &o);
}

/* The next event of the session; "Name field=text ..." of it. */
static const char *next(FIXTURE_DATA(provider_lib) * self)
{
	static char text[1024];
	const struct etw_event *e;
	size_t n;
	__u32 i;

	self->event = NULL;
	if (etw_consumer_next(self->consumer, &e, 20000) != 1)
		return "nothing";
	self->event = e;
	n = snprintf(text, sizeof(text), "%s", e->cls->name);
	for (i = 0; i < e->cls->nr_fields && n < sizeof(text) - 300; i++) {
		n += snprintf(text + n, sizeof(text) - n, " %s=", e->cls->fields[i].name);
		n += etw_event_format(e, i, text + n, 256);
	}
	return text;
}

#define EXPECT_EVENT(text) EXPECT_STREQ(text, next(self))

/* Nothing more, when everything that was recorded has been delivered. */
static bool nothing_more(FIXTURE_DATA(provider_lib) * self)
{
	const struct etw_event *e;

	etw_session_flush(self->session, 0, NULL);
	return etw_consumer_next(self->consumer, &e, 300) == -EAGAIN;
}

TEST_F(provider_lib, enabled_from_outside)
{
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_line(&self->app, "ready");
	EXPECT_STREQ("attached 1 evaluated 0 failed 0", app_do(&self->app, "s", "attached"));
	app_do(&self->app, "w1", "done");
	EXPECT_STREQ("enabled 0", app_do(&self->app, "e", "enabled"));
	ASSERT_EQ(1, enable(self->session, 4, 0x1));
	EXPECT_STREQ("enabled 1", app_do(&self->app, "e", "enabled"));
	app_do(&self->app, "w2", "done");
	EXPECT_EVENT("Counter n=2 text=plain");
	ASSERT_NE(NULL, self->event);
	EXPECT_EQ(self->app.pid, self->event->pid);
	EXPECT_EQ(self->app.pid, self->event->tid);
	EXPECT_STREQ(NAME, self->event->cls->provider);
	EXPECT_EQ(0x1, self->event->cls->keyword);
	EXPECT_EQ(ETW_LEVEL_INFO, self->event->cls->level);
	ASSERT_EQ(0, etw_session_disable(self->session, NAME));
	app_do(&self->app, "w3", "done");
	EXPECT_STREQ("attached 1 evaluated 1 failed 0", app_do(&self->app, "s", "attached"));
	ASSERT_EQ(1, enable(self->session, 3, 0));
	app_do(&self->app, "w4", "done");
	ASSERT_EQ(1, enable(self->session, 0, 0));
	app_do(&self->app, "w5", "done");
	EXPECT_EVENT("Counter n=5 text=plain");
	EXPECT_TRUE(nothing_more(self));
}

TEST_F(provider_lib, enabled_before_it_starts)
{
	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_do(&self->app, "w1", "done");
	EXPECT_EVENT("Counter n=1 text=plain");
}

TEST_F(provider_lib, every_type)
{
	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_do(&self->app, "t", "done");
	EXPECT_EVENT(
		"Types a=255 b=-2 c=0x1f d=18446744073709551615 e=-ENOENT f=1.5 g=-0.25 h=true i=text j=chars k=00005e l=b3864c38-4273-58c5-545b-8b3608343471 m=192.0.2.1 n=2001:db8::1 o=00:00:5e:00:53:01 p=[1, 2, 3] q=[1, 2] r=busy");
	ASSERT_NE(NULL, self->event);
	EXPECT_EQ(ETW_OPCODE_START, self->event->cls->opcode);
	EXPECT_EQ(3, self->event->cls->task);
	EXPECT_EQ(9, self->event->cls->event_id);
	EXPECT_EQ(2, self->event->cls->version);
}

TEST_F(provider_lib, listed_with_events_and_keywords)
{
	const struct etw_keyword *keywords;
	struct etw_event_list events = {};
	struct etw_provider_list info;
	const struct etw_class *cls;
	int found = 0;

	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_line(&self->app, "ready");
	ASSERT_EQ(0, etw_control_find_provider(self->control, NAME, &info, &keywords)) TH_LOG("%s", etw_last_error());
	EXPECT_EQ(2, info.nr_keywords);
	EXPECT_STREQ("a", (const char *)keywords[0].name);
	EXPECT_EQ(self->app.pid, info.pid);
	/* before any of them was come to */
	while (etw_control_next_event(self->control, &events, &cls) == 1)
		found += !strcmp(cls->provider, NAME) &&
			 (!strcmp(cls->name, "Counter") || !strcmp(cls->name, "Types"));
	EXPECT_EQ(2, found);
	app_end(&self->app);
	EXPECT_EQ(-ENOENT, etw_control_find_provider(self->control, NAME, &info, NULL));
}

TEST_F(provider_lib, activities)
{
	char request[64], part[64];
	const char *text;

	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_do(&self->app, "a1", "done");
	text = next(self);
	ASSERT_EQ(1, sscanf(text, "Request activity_id=%63s n=1", request)) TH_LOG("%s", text);
	text = next(self);
	ASSERT_EQ(1, sscanf(text, "Part activity_id=%63s ", part)) TH_LOG("%s", text);
	EXPECT_STRNE(request, part);
	EXPECT_NE(NULL, strstr(text, request));
	text = next(self);
	EXPECT_NE(NULL, strstr(text, request));
	EXPECT_NE(NULL, strstr(text, " n=3"));
	app_do(&self->app, "w4", "done");
	EXPECT_EVENT("Counter n=4 text=plain");
}

TEST_F(provider_lib, one_time_for_a_batch)
{
	__u64 time = 0;

	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_do(&self->app, "b16", "done");
	for (int n = 16; n; n--) {
		char want[64];

		snprintf(want, sizeof(want), "Counter n=%d text=plain", n);
		EXPECT_EVENT(want);
		ASSERT_NE(NULL, self->event);
		EXPECT_TRUE(!time || time == self->event->time);
		time = self->event->time;
	}
}

TEST_F(provider_lib, fork_shares_the_registration)
{
	int child;

	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	ASSERT_EQ(1, sscanf(app_do(&self->app, "f7", "child"), "child %d", &child));
	EXPECT_EVENT("Counter n=7 text=plain");
	ASSERT_NE(NULL, self->event);
	EXPECT_EQ(child, self->event->pid);
	app_do(&self->app, "w8", "done");
	EXPECT_EVENT("Counter n=8 text=plain");
}

/* The module's enable bytes, which cannot be written, are left even where no memory can take their place. */
TEST_F(provider_lib, unregistered_without_memory)
{
	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_line(&self->app, "ready");
	EXPECT_STREQ("status 0", app_do(&self->app, "m", "status"));
	app_do(&self->app, "w8", "done");
	EXPECT_EVENT("Counter n=8 text=plain");
}

static __u64 written(struct etw_session *session)
{
	struct etw_session_query q = { .size = sizeof(q) };

	return etw_session_query(session, &q) ? ~0ULL : q.written;
}

/* Both ways of calling back tell the same, and a session's request is answered to it alone. */
TEST_F(provider_lib, callbacks)
{
	static const char *const ways[] = { "thread", "loop" };
	struct etw_session_options o = { .size = sizeof(o) };
	struct etw_session *other;
	__u64 before;

	ASSERT_EQ(0, etw_session_create(self->control, unique("other"), &o, &other)) TH_LOG("%s", etw_last_error());
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, app_start(&self->app, ways[i], NULL));
		app_line(&self->app, "ready");
		ASSERT_EQ(1, enable(self->session, 3, 0x6));
		EXPECT_STREQ("callback 1 3 6", app_line(&self->app, "callback"));
		ASSERT_EQ(1, enable(self->session, 5, 0));
		EXPECT_STREQ("callback 1 5 ffffffffffffffff", app_line(&self->app, "callback"));
		ASSERT_EQ(0, etw_session_capture_state(self->session, NAME)) TH_LOG("%s", etw_last_error());
		EXPECT_STREQ("callback 2 5 ffffffffffffffff", app_line(&self->app, "callback"));
		EXPECT_EVENT("State text=captured");
		ASSERT_EQ(1, enable(other, 4, 0x2));
		EXPECT_STREQ("callback 1 5 ffffffffffffffff", app_line(&self->app, "callback"));
		before = written(other);
		ASSERT_EQ(0, etw_session_capture_state(self->session, NAME));
		EXPECT_STREQ("callback 2 5 ffffffffffffffff", app_line(&self->app, "callback"));
		EXPECT_EVENT("State text=captured");
		EXPECT_EQ(before, written(other));
		before = written(self->session);
		ASSERT_EQ(0, etw_session_capture_state(other, NAME));
		EXPECT_STREQ("callback 2 4 2", app_line(&self->app, "callback"));
		EXPECT_STREQ("done", app_do(&self->app, "w1", "done"));
		EXPECT_EVENT("Counter n=1 text=plain");
		EXPECT_EQ(before + 1, written(self->session));
		ASSERT_EQ(0, etw_session_disable(other, NAME));
		EXPECT_STREQ("callback 1 5 ffffffffffffffff", app_line(&self->app, "callback"));
		ASSERT_EQ(0, etw_session_disable(self->session, NAME));
		EXPECT_STREQ("callback 0 0 0", app_line(&self->app, "callback"));
		app_end(&self->app);
	}
	EXPECT_EQ(2, written(other));
	etw_session_close(other);
}

/*
 * A program closes all descriptors, the library's too, and has others of these numbers: nothing is written to those, and no event
 * is lost. Its callbacks go on too, by a thread that does not spin, or the descriptor that its loop asks for again.
 */
TEST_F(provider_lib, closed)
{
	static const char *const ways[] = { "none", "thread", "loop" };
	char line[32];

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, app_start(&self->app, ways[i], NULL));
		app_line(&self->app, "ready");
		ASSERT_EQ(1, enable(self->session, 5, 0));
		if (i)
			EXPECT_STREQ("callback 1 5 ffffffffffffffff", app_line(&self->app, "callback"));
		EXPECT_STREQ("own 0", app_do(&self->app, "c7", "own"));
		EXPECT_EVENT("Counter n=7 text=plain");
		EXPECT_EVENT("Counter n=8 text=plain");
		app_do(&self->app, "w9", "done");
		EXPECT_EVENT("Counter n=9 text=plain");
		/* A child that ends closes descriptors too: its parent asks, and goes on. */
		app_do(&self->app, "f10", "child");
		EXPECT_EVENT("Counter n=10 text=plain");
		app_do(&self->app, "w11", "done");
		EXPECT_EVENT("Counter n=11 text=plain");
		if (i) {
			ASSERT_EQ(1, enable(self->session, 4, 0));
			EXPECT_STREQ("callback 1 4 ffffffffffffffff", app_line(&self->app, "callback"));
			EXPECT_GT(25, looks_awake(&self->app, 50));
		}
		snprintf(line, sizeof(line), "attached 1 evaluated %d failed 0", 4);
		EXPECT_STREQ(line, app_do(&self->app, "s", "attached"));
		ASSERT_EQ(0, etw_session_disable(self->session, NAME));
		app_end(&self->app);
	}
}

/* Of two users' providers of one name, a session has those of the one it asked for. */
TEST_F(provider_lib, of_one_user)
{
	const uid_t somebody = 1234;
	struct etw_enable_options o = {
		.size = sizeof(o), .provider = NAME, .flags = ETW_ENABLE_UID, .uid = somebody,
	};
	struct app other;

	ASSERT_EQ(0, app_start(&self->app, "none", NULL));
	app_line(&self->app, "ready");
	ASSERT_EQ(0, app_start_as(&other, somebody, "none", NULL));
	app_line(&other, "ready");
	ASSERT_EQ(1, etw_session_enable(self->session, &o)) TH_LOG("%s", etw_last_error());
	app_do(&self->app, "w1", "done");
	app_do(&other, "w2", "done");
	EXPECT_EVENT("Counter n=2 text=plain");
	o.uid = 0;
	ASSERT_EQ(1, etw_session_enable(self->session, &o)) TH_LOG("%s", etw_last_error());
	app_do(&other, "w3", "done");
	app_do(&self->app, "w4", "done");
	EXPECT_EVENT("Counter n=4 text=plain");
	app_end(&other);
}

TEST_F(provider_lib, killed)
{
	struct etw_provider_list info;

	ASSERT_EQ(0, enable(self->session, 0, 0));
	ASSERT_EQ(0, app_start(&self->app, "thread", NULL));
	app_do(&self->app, "w1", "done");
	kill(self->app.pid, SIGKILL);
	app_end(&self->app);
	EXPECT_EVENT("Counter n=1 text=plain");
	EXPECT_TRUE(nothing_more(self));
	EXPECT_EQ(-ENOENT, etw_control_find_provider(self->control, NAME, &info, NULL));
}

static int load(void)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

/* The file of a process that has just ended can take a moment. */
static int unload(void)
{
	int err = -EBUSY, tries;

	for (tries = 0; tries < 100 && err; tries++) {
		err = syscall(SYS_delete_module, "etw", O_NONBLOCK) ? -errno : 0;
		if (err)
			usleep(20000);
	}
	return err;
}

/* A program that was there before the module: whoever waits for it, thread, loop or its own events. */
TEST_F(provider_lib, module_comes_late)
{
	static const struct {
		const char *how, *variable;
	} ways[] = { { "none", NULL }, { "thread", NULL }, { "loop", NULL }, { "none", "ETW_NO_THREAD" } };
	int tries;

	if (access(MODULE, R_OK))
		SKIP(return, "no " MODULE " here");
	for (unsigned int i = 0; i < 4; i++) {
		close_session(self);
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, app_start(&self->app, ways[i].how, ways[i].variable));
		app_line(&self->app, "ready");
		app_do(&self->app, "w1", "done");
		EXPECT_STREQ("attached 0 evaluated 0 failed 0", app_do(&self->app, "s", "attached"));
		ASSERT_EQ(0, load());
		for (tries = 0; tries < 200; tries++) {
			if (ways[i].variable)
				app_do(&self->app, "w2", "done");
			if (!strcmp("attached 1 evaluated 0 failed 0", app_do(&self->app, "s", "attached")))
				break;
			usleep(50000);
		}
		EXPECT_LT(tries, 200) TH_LOG("%s %s", ways[i].how, ways[i].variable ? ways[i].variable : "");
		ASSERT_EQ(0, open_session(self)) TH_LOG("%s", etw_last_error());
		ASSERT_EQ(1, enable(self->session, 0, 0));
		app_do(&self->app, "w3", "done");
		EXPECT_EVENT("Counter n=3 text=plain");
		app_end(&self->app);
	}
}

TEST_HARNESS_MAIN
