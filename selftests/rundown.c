// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rundown: what is there already is written to the asking session only, on enable, when asked and at stop: every process
 * and thread, every block device by name. The truth to compare with is /proc and /sys.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "etw_test.h"

FIXTURE(rundown)
{
	int dev;
	int fd;
	struct log log;
	struct reader reader;
};

FIXTURE_SETUP(rundown)
{
	struct etw_session_create create = session_small(unique("rundown"));

	create.subbuf_size = 64 << 10;
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	self->log.number_field = "tid";
	self->log.text_field = "name";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(rundown)
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

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void sort(struct log *log)
{
	qsort(log->events, log->nr, sizeof(*log->events), by_time);
}

static const struct kept *find_state(const struct log *log, int tid)
{
	for (size_t i = 0; i < log->nr; i++)
		if (!strcmp(log->events[i].name, "process_state") && log->events[i].number == tid)
			return &log->events[i];
	return NULL;
}

/* "Name:" and the like from /proc/TID/status, "" if it is gone. */
static const char *status_line(int tid, const char *key)
{
	static char text[4096], line[64];
	char path[64], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	line[0] = '\0';
	if (file_read(path, text, sizeof(text)) > 0 && (at = strstr(text, key)))
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + strlen(key) + 1, "\n"), at + strlen(key) + 1);
	return line;
}

/* Calls @fn for each thread that /proc shows. */
static unsigned int each_thread(void (*fn)(int pid, int tid, void *), void *arg)
{
	DIR *proc = opendir("/proc"), *task;
	struct dirent *p, *t;
	char path[280];
	unsigned int nr = 0;

	while (proc && (p = readdir(proc))) {
		if (p->d_name[0] < '0' || p->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", p->d_name);
		task = opendir(path);
		while (task && (t = readdir(task))) {
			if (t->d_name[0] == '.')
				continue;
			fn(atoi(p->d_name), atoi(t->d_name), arg);
			nr++;
		}
		if (task)
			closedir(task);
	}
	if (proc)
		closedir(proc);
	return nr;
}

struct compared {
	const struct log *log;
	unsigned int missing, wrong, compared;
};

static void compare(int pid, int tid, void *arg)
{
	struct compared *c = arg;
	const struct kept *k = find_state(c->log, tid);
	char comm[64];

	snprintf(comm, sizeof(comm), "%s", status_line(tid, "Name:"));
	if (!comm[0] || !strncmp(comm, "kworker", 7))	/* /proc shows a worker's task, not its name */
		return;
	c->compared++;
	if (!k) {
		c->missing++;
		printf("# no process_state of %d/%d %s\n", pid, tid, comm);
		return;
	}
	if (k->tid != tid || k->pid != pid || strncmp(k->text, comm, 15)) {
		c->wrong++;
		printf("# %d/%d %s is told as %d/%d %s\n", pid, tid, comm, k->pid, k->tid, k->text);
	}
}

static void *idle_thread(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void with_threads(void *ready)
{
	pthread_t thread;

	work_rename("child", 1, 1);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, idle_thread, NULL);
	*(volatile int *)ready = 1;
	for (;;)
		pause();
}

/* Every thread once, between the markers, with the dumped task's own tid and pid in the record's head. */
TEST_F(rundown, every_thread)
{
	volatile int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct compared c = { &self->log };
	unsigned int i, start = 0, end = 0, states = 0;
	pid_t pid = spawn(with_threads, (void *)ready);

	ASSERT_TRUE(wait_until(5000, *ready));
	/* Fork, exec and exit are enabled as well, so that nothing can be missed that changes meanwhile. */
	ASSERT_EQ(1, enable_all(self->fd, "process"));
	FLUSH_AND_DRAIN();
	sort(&self->log);
	for (i = 0; i < self->log.nr; i++) {
		const struct kept *k = &self->log.events[i];

		if (!strcmp(k->name, "rundown_start")) {
			EXPECT_EQ(0, start + end + states);
			start++;
		} else if (!strcmp(k->name, "rundown_end")) {
			EXPECT_EQ(1, start);
			end++;
		} else if (!strcmp(k->name, "process_state")) {
			EXPECT_EQ(1, start);
			EXPECT_EQ(0, end);
			states++;
		}
	}
	EXPECT_EQ(1, start);
	EXPECT_EQ(1, end);
	each_thread(compare, &c);
	EXPECT_GT(c.compared, 20);
	EXPECT_EQ(0, c.missing);
	EXPECT_EQ(0, c.wrong);
	EXPECT_GE(states, c.compared);
	EXPECT_NE(NULL, find_state(&self->log, getpid()));
	EXPECT_NE(NULL, find_state(&self->log, pid));
	/* Nobody twice. */
	for (i = 0; i < self->log.nr; i++) {
		const struct kept *k = &self->log.events[i];

		if (!strcmp(k->name, "process_state") && k->number)
			ASSERT_EQ(k, find_state(&self->log, k->number));
	}
	reap(pid);
}

/* The asking session only; and each kind of asking is one rundown. */
TEST_F(rundown, asking_session_only)
{
	struct etw_session_create create = session_small(unique("bystander"));
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "process" };
	struct log log = { .number_field = "tid" };
	struct reader reader;
	int other;

	create.subbuf_size = 64 << 10;
	other = session_make(self->dev, &create);
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, reader_open(&reader, other, log_event, &log));
	ASSERT_EQ(1, enable_all(other, "process"));
	ASSERT_NE(0, session_flush(other));
	ASSERT_DRAINED(&reader);
	EXPECT_EQ(1, log_count(&log, "rundown_start"));

	ASSERT_EQ(1, enable_all(self->fd, "process"));
	FLUSH_AND_DRAIN();
	EXPECT_EQ(1, log_count(&self->log, "rundown_start"));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	FLUSH_AND_DRAIN();
	EXPECT_EQ(2, log_count(&self->log, "rundown_start"));
	EXPECT_EQ(2, log_count(&self->log, "rundown_end"));
	memset(ref.name, 0, sizeof(ref.name));		/* all that are enabled */
	ASSERT_EQ(1, enable_all(self->fd, "block"));
	FLUSH_AND_DRAIN();
	EXPECT_EQ(3, log_count(&self->log, "rundown_start"));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	FLUSH_AND_DRAIN();
	EXPECT_EQ(5, log_count(&self->log, "rundown_start"));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(7, log_count(&self->log, "rundown_start"));
	EXPECT_EQ(7, log_count(&self->log, "rundown_end"));
	ASSERT_SUMS(self->fd);

	ASSERT_NE(0, session_flush(other));
	ASSERT_DRAINED(&reader);
	EXPECT_EQ(1, log_count(&log, "rundown_start"));
	reader_close(&reader);
	log_free(&log);
	close(other);
}

/* A thread that appeared after the enable and lives at the stop has its name at the stop. */
TEST_F(rundown, names_at_stop)
{
	volatile int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct etw_enable e = enable_make("process");
	const struct kept *k;
	char names[1][ETW_NAME_SIZE] = { "sched_process_exec" };	/* the rundown, and nothing else that happens here */
	pid_t pid;

	e.event_mode = ETW_EVENTS_IN;
	e.events = (uintptr_t)names;
	e.nr_events = 1;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	pid = spawn(with_threads, (void *)ready);
	ASSERT_TRUE(wait_until(5000, *ready));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&self->reader);
	k = find_state(&self->log, pid);
	ASSERT_NE(NULL, k);
	EXPECT_STREQ("child1", k->text);
	reap(pid);
}

/* A rundown may be larger than the relay: a reader at work makes room for it. */
static void keep_reading(void *name)
{
	int dev = device_open(), fd = session_open(dev, name);
	struct reader reader;

	if (reader_open(&reader, fd, NULL, NULL))
		return;
	for (;;) {
		reader_wait(&reader, 10);
		if (reader_drain(&reader) < 0)
			return;
	}
}

static void sleeper(void *arg)
{
	for (;;)
		pause();
}

TEST_F(rundown, larger_than_the_relay)
{
	struct etw_session_create create = session_small(unique("tiny"));
	struct etw_session_query q;
	pid_t pids[300], reader;
	int fd, i;

	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	for (i = 0; i < 300; i++)
		pids[i] = spawn(sleeper, NULL);
	reader = spawn(keep_reading, create.name);
	ASSERT_TRUE(wait_until(5000, session_query(fd).reader_pid == reader));
	EXPECT_EQ(1, enable_events(fd, "block", "none"));	/* nothing but rundown is written: */
	{
		struct etw_enable e = enable_make("process");
		char names[1][ETW_NAME_SIZE] = { "none" };

		e.event_mode = ETW_EVENTS_IN;
		e.events = (uintptr_t)names;
		e.nr_events = 1;
		ASSERT_EQ(1, call(fd, ETW_IOC_SESSION_ENABLE, &e));
	}
	q = session_query(fd);
	EXPECT_GT(q.written, 300);
	EXPECT_EQ(0, q.lost[ETW_LOST_NO_ROOM]);
	reap(reader);
	for (i = 0; i < 300; i++)
		reap(pids[i]);
	close(fd);
}

struct disk {
	char name[32];
	unsigned int dev;
	bool seen;
};

static struct disk disks[64];
static unsigned int nr_disks, unknown_disks;

static void block_event(const struct event *event, void *arg)
{
	int64_t dev;
	unsigned int i;

	if (!event_is(event, "block_device") || !event_number(event, "dev", &dev))
		return;
	for (i = 0; i < nr_disks; i++)
		if (disks[i].dev == dev && !strcmp(disks[i].name, event_text(event, "diskname"))) {
			disks[i].seen = true;
			return;
		}
	unknown_disks++;
	printf("# block_device %lld %s is not in /sys/class/block\n", (long long)dev, event_text(event, "diskname"));
}

/* Every block device, by number and name, as /sys/class/block has them. */
TEST_F(rundown, block_devices)
{
	DIR *dir = opendir("/sys/class/block");
	struct dirent *d;
	char path[300], text[32];
	unsigned int major, minor;

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/block/%s/dev", d->d_name);
		if (d->d_name[0] == '.' || file_read(path, text, sizeof(text)) < 0 ||
		    sscanf(text, "%u:%u", &major, &minor) != 2)
			continue;
		snprintf(disks[nr_disks].name, sizeof(disks[0].name), "%.31s", d->d_name);
		disks[nr_disks++].dev = major << 20 | minor;
		if (nr_disks == ARRAY_SIZE(disks))
			break;
	}
	if (!nr_disks)
		SKIP(return, "no block device in this guest");
	reader_close(&self->reader);
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, block_event, NULL));
	ASSERT_EQ(1, enable_all(self->fd, "block"));
	FLUSH_AND_DRAIN();
	for (unsigned int i = 0; i < nr_disks; i++) {
		if (!disks[i].seen)
			TH_LOG("%s %#x", disks[i].name, disks[i].dev);
		EXPECT_TRUE(disks[i].seen);
	}
	EXPECT_EQ(0, unknown_disks);
}

TEST_HARNESS_MAIN
