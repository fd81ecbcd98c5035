// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of sessions: who ends them, who reads them, how many there can be, what they cost, what time they keep. It
 * must not know what is in a packet beyond what packet.c checks.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "etw_test.h"

FIXTURE(session)
{
	int dev;
	__u64 memory;		/* before the test */
};

static __u64 memory_used(int dev)
{
	struct etw_version v;

	poison(v);
	call(dev, ETW_IOC_VERSION, &v);
	return v.memory_used;
}

static bool exists(int dev, const char *name)
{
	int fd = session_open(dev, name);

	if (fd >= 0)
		close(fd);
	return fd != -ENOENT;
}

FIXTURE_SETUP(session)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->memory = memory_used(self->dev);
}

FIXTURE_TEARDOWN(session)
{
	/* Whatever a test did, nothing of it is left. */
	EXPECT_TRUE(wait_until(10000, memory_used(self->dev) == self->memory));
	close(self->dev);
}

TEST_F(session, ends_with_owner)
{
	const char *name = unique("owner");
	struct etw_session_create create = session_small(name);
	int fd = session_make(self->dev, &create), again;

	ASSERT_GE(fd, 0);
	EXPECT_TRUE(exists(self->dev, name));
	EXPECT_GT(memory_used(self->dev), self->memory);
	again = dup(fd);
	close(fd);
	EXPECT_TRUE(exists(self->dev, name));		/* the same open file, still there */
	close(again);
	EXPECT_FALSE(exists(self->dev, name));
	/* The name is free again. */
	fd = session_make(self->dev, &create);
	EXPECT_GE(fd, 0);
	close(fd);
}

/* Another file sees how it ended, and can read the rest. */
TEST_F(session, ends_with_owner_others_read_on)
{
	const char *name = unique("others");
	struct etw_session_create create = session_small(name);
	int fd = session_make(self->dev, &create), other;
	struct log log = { .only = RENAMED };
	struct etw_session_query q;
	struct reader reader;

	ASSERT_GE(fd, 0);
	other = session_open(self->dev, name);
	ASSERT_GE(other, 0);
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	work_rename("o", 0, 100);
	close(fd);
	ASSERT_TRUE(wait_until(10000, session_query(other).state == ETW_SESSION_STOPPED));
	q = session_query(other);
	EXPECT_EQ(ETW_STOP_CLOSED, q.stop_reason);
	EXPECT_GE(q.stop_time, q.start_time);
	EXPECT_LE(q.stop_time, q.now);
	EXPECT_EQ(-ESHUTDOWN, enable_all(other, "sched"));
	ASSERT_EQ(0, reader_open(&reader, other, log_event, &log));
	ASSERT_DRAINED(&reader);
	EXPECT_EQ(100, log_count(&log, RENAMED));
	ASSERT_SUMS(other);
	reader_close(&reader);
	close(other);
	EXPECT_FALSE(exists(self->dev, name));
	log_free(&log);
}

static void own_session(void *name)
{
	struct etw_session_create create = session_small(name);
	int dev = device_open(), fd = session_make(dev, &create);

	enable_all(fd, "sched");
	for (;;)
		pause();
}

TEST_F(session, ends_with_killed_owner)
{
	const char *name = unique("killed");
	pid_t pid = spawn(own_session, (void *)name);

	ASSERT_TRUE(wait_until(10000, exists(self->dev, name)));
	reap(pid);
	EXPECT_TRUE(wait_until(10000, !exists(self->dev, name)));
}

TEST_F(session, persist)
{
	const char *name = unique("persist");
	struct etw_session_create create = session_small(name);
	struct etw_session_query q;
	int fd, i;

	create.flags = ETW_SESSION_PERSIST;
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	close(fd);
	for (i = 0; i < 3; i++) {
		fd = session_open(self->dev, name);
		ASSERT_GE(fd, 0);
		EXPECT_EQ(ETW_SESSION_RUNNING, session_query(fd).state);
		work_rename("p", 0, 10);
		EXPECT_EQ(10 * (i + 1), session_query(fd).written);
		close(fd);
	}
	fd = session_open(self->dev, name);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
	q = session_query(fd);
	EXPECT_EQ(ETW_SESSION_STOPPED, q.state);
	EXPECT_EQ(ETW_STOP_REQUEST, q.stop_reason);
	EXPECT_EQ(getpid(), q.stopper_pid);
	close(fd);
	EXPECT_FALSE(exists(self->dev, name));
}

/* A persistent session that was stopped is kept as long as somebody holds a file of it. */
TEST_F(session, stop)
{
	struct etw_session_create create = session_small(unique("stop"));
	int fd = session_make(self->dev, &create);
	struct etw_session_query q, later;
	struct log log = { .text_field = "newcomm" };
	struct reader reader;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, reader_open(&reader, fd, log_event, &log));
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	work_rename("s", 0, 50);
	ASSERT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
	/* Everything was delivered. */
	ASSERT_DRAINED(&reader);
	EXPECT_EQ(50, log.nr);
	reader_close(&reader);
	log_free(&log);
	q = session_query(fd);
	EXPECT_EQ(ETW_SESSION_STOPPED, q.state);
	EXPECT_EQ(ETW_STOP_REQUEST, q.stop_reason);
	EXPECT_GT(q.stop_time, q.start_time);
	EXPECT_LE(q.stop_time, q.now);
	/* Nothing is recorded any more. */
	q = session_query(fd);
	work_rename("s", 0, 50);
	later = session_query(fd);
	EXPECT_EQ(q.written, later.written);
	EXPECT_EQ(q.stop_time, later.stop_time);
	EXPECT_GE(q.complete_up_to, q.stop_time);
	ASSERT_SUMS(fd);
	EXPECT_EQ(-ESHUTDOWN, call(fd, ETW_IOC_SESSION_STOP, NULL));
	EXPECT_EQ(q.stop_time, session_query(fd).stop_time);
	close(fd);
}

TEST_F(session, stop_poll)
{
	struct etw_session_create create = session_small(unique("poll"));
	int fd = session_make(self->dev, &create);
	struct pollfd p[2];
	struct relay relay;
	struct etw_subbuf sb;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	ASSERT_EQ(0, pin(0));
	p[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = relay.fd, .events = POLLIN };
	EXPECT_EQ(0, poll(p, 2, 0));
	ASSERT_EQ(1, enable_events(fd, "process", RENAMED));
	work_rename("p", 0, 10);
	EXPECT_EQ(0, poll(p, 2, 0));		/* an open packet is nothing to read yet */
	ASSERT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
	EXPECT_EQ(2, poll(p, 2, scaled(5000)));
	EXPECT_EQ(POLLIN, p[1].revents);	/* not POLLHUP: there is something to read first */
	EXPECT_EQ(POLLIN | POLLHUP, p[0].revents);
	while (!relay_get(&relay, &sb)) {
		poll(&p[1], 1, 0);
		EXPECT_EQ(POLLIN, p[1].revents);
		ASSERT_EQ(0, relay_put(&relay));
	}
	EXPECT_EQ(2, poll(p, 2, 0));
	EXPECT_EQ(POLLHUP, p[1].revents);
	EXPECT_EQ(POLLHUP, p[0].revents);
	relay_close(&relay);
	close(fd);
}

/* A sleeping poll is woken by STOP. */
static void stop_later(void *name)
{
	int dev = device_open();
	int fd = session_open(dev, name);

	sleep_ms(300);
	call(fd, ETW_IOC_SESSION_STOP, NULL);
}

TEST_F(session, stop_wakes_reader)
{
	struct etw_session_create create = session_small(unique("wakes"));
	int fd = session_make(self->dev, &create);
	struct relay relay;
	struct pollfd p;
	pid_t pid;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	pid = spawn(stop_later, create.name);
	p = (struct pollfd){ .fd = relay.fd, .events = POLLIN };
	EXPECT_EQ(1, poll_woken(&p, 10000));
	EXPECT_EQ(POLLHUP, p.revents);
	EXPECT_EQ(pid, session_query(fd).stopper_pid);
	reap(pid);
	relay_close(&relay);
	close(fd);
}

/* Its flush timer ends with a session, at whatever moment that is. */
TEST_F(session, timer_ends)
{
	for (unsigned int i = 0; i < 60; i++) {
		struct etw_session_create create = session_small(unique("timer"));
		struct relay relay;
		int fd;

		create.flush_ms = 1 + i % 3;
		fd = session_make(self->dev, &create);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, relay_open(&relay, fd, 0));
		ASSERT_EQ(1, enable_renames(fd, getpid()));
		work_rename("t", 0, 1);
		if (i % 2)
			sleep_ms(i % 5);
		relay_close(&relay);
		close(fd);
	}
	sleep_ms(20);
}

/* POLLHUP is a promise: everything was delivered before, and read. */
TEST_F(session, hangup_is_the_end)
{
	struct etw_session_create create = session_small(unique("hangup"));
	int fd = session_make(self->dev, &create);
	unsigned int packets = 0;
	struct etw_subbuf sb;
	struct relay relay;
	struct pollfd p;
	pid_t pid;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	work_rename("h", 0, 10);
	pid = spawn(stop_later, create.name);
	p = (struct pollfd){ .fd = relay.fd, .events = POLLIN };
	do {		/* asks again and again, for whoever sleeps is woken after the last packet */
		ASSERT_GE(poll(&p, 1, 1), 0);
		for (; !relay_get(&relay, &sb); packets++)
			ASSERT_EQ(0, relay_put(&relay));
	} while (!(p.revents & POLLHUP));
	EXPECT_GT(packets, 0);
	EXPECT_EQ(-ENODATA, relay_get(&relay, &sb));
	reap(pid);
	EXPECT_EQ(-ENODATA, relay_get(&relay, &sb));
	relay_close(&relay);
	close(fd);
}

/* 64 at once, all with the same provider: every one has every event. */
TEST_F(session, many)
{
	static int fds[64];
	struct etw_session_create create;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		char name[32];

		snprintf(name, sizeof(name), "many%u", i);
		create = session_small(unique(name));
		create.subbuf_size = 4096;
		create.nr_subbufs = 2;
		fds[i] = session_make(self->dev, &create);
		ASSERT_GE(fds[i], 0);
		ASSERT_EQ(1, enable_renames(fds[i], getpid()));
	}
	work_rename("m", 0, 20);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		struct etw_session_query q = session_query(fds[i]);

		EXPECT_EQ(20, q.written);
		EXPECT_EQ(0, q.lost[ETW_LOST_NO_ROOM]);
	}
	/* Half of them go; the others have the rest. */
	for (i = 0; i < ARRAY_SIZE(fds); i += 2)
		close(fds[i]);
	work_rename("m", 20, 5);
	for (i = 1; i < ARRAY_SIZE(fds); i += 2) {
		EXPECT_EQ(25, session_query(fds[i]).written);
		close(fds[i]);
	}
}

TEST_F(session, most)
{
	static int fds[ETW_MAX_SESSIONS];
	struct etw_session_create create;
	unsigned int i, nr;
	char name[32];

	for (nr = 0; nr < ARRAY_SIZE(fds); nr++) {
		snprintf(name, sizeof(name), "most%u", nr);
		create = session_small(unique(name));
		create.subbuf_size = 4096;
		create.nr_subbufs = 2;
		fds[nr] = session_make(self->dev, &create);
		if (fds[nr] < 0)
			break;
	}
	EXPECT_EQ(ETW_MAX_SESSIONS, nr);
	create = session_small(unique("toomany"));
	EXPECT_EQ(-ENOSPC, session_make(self->dev, &create));
	if (nr) {
		close(fds[--nr]);
		i = session_make(self->dev, &create);
		EXPECT_GE((int)i, 0);
		close(i);
	}
	while (nr)
		close(fds[--nr]);
}

TEST_F(session, quota)
{
	struct etw_session_create create = session_small(unique("quota"));
	struct etw_version v;
	int fd;

	poison(v);
	ASSERT_EQ(0, call(self->dev, ETW_IOC_VERSION, &v));
	create.subbuf_size = ETW_SUBBUF_SIZE_MAX;
	create.nr_subbufs = ETW_NR_SUBBUFS_MAX;
	ASSERT_GT((__u64)create.subbuf_size * create.nr_subbufs, v.memory_limit - v.memory_used);
	EXPECT_EQ(-EDQUOT, session_make(self->dev, &create));
	EXPECT_EQ(self->memory, memory_used(self->dev));
	EXPECT_FALSE(exists(self->dev, (char *)create.name));
	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	fd = session_make(self->dev, &create);
	EXPECT_GE(fd, 0);
	EXPECT_EQ(session_query(fd).memory, memory_used(self->dev) - self->memory);
	close(fd);
}

/* An event larger than a packet is lost under that cause, and with no other event. */
TEST_F(session, lost_too_large)
{
	const __u32 room = 4096 - 128;
	struct etw_session_create create = session_small(unique("large"));
	static char path[4096];
	struct etw_session_query q;
	int fd, status;
	size_t i;
	pid_t pid;

	create.subbuf_size = 4096;
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, enable_events(fd, "process", "sched_process_exec"));
	for (i = 0; i < sizeof(path) - 32; i += 2)
		memcpy(path + i, "./", 2);
	strcpy(path + i, "proc/self/exe");
	ASSERT_GT(strlen(path) + 1 + 8, room);
	pid = fork();
	if (!pid) {
		char *argv[] = { path, "--version", NULL };

		if (chdir("/"))
			_exit(1);
		close(1);
		close(2);
		execv(path, argv);
		_exit(2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2);
	q = session_query(fd);
	EXPECT_EQ(1, q.lost[ETW_LOST_TOO_LARGE]);
	EXPECT_EQ(0, q.written);
	EXPECT_EQ(0, q.lost[ETW_LOST_NO_ROOM]);
	EXPECT_EQ(1, session_provider(fd, "process").lost[ETW_LOST_TOO_LARGE]);
	close(fd);
}

/* A CPU that comes when there is no memory for its relay comes all the same; what happens there is lost under that cause. */
TEST_F(session, lost_on_a_cpu_without_relay)
{
	unsigned int last = cpus_online() - 1;
	struct etw_session_create create = session_small(unique("cpu"));
	struct etw_session_query q;
	struct etw_version v;
	int fd;

	if (!last)
		SKIP(return, "one CPU only");
	if (!cpus_can_go())
		SKIP(return, "CPUs cannot go and come here");
	poison(v);
	ASSERT_EQ(0, call(self->dev, ETW_IOC_VERSION, &v));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, cpu_online(last, false));
	/* So large that there is room for those that are online, and not for one more. */
	create.subbuf_size = ETW_SUBBUF_SIZE_MIN;
	create.nr_subbufs = 2;
	while ((__u64)create.subbuf_size * 3 * last * 2 <= v.memory_limit && create.subbuf_size < ETW_SUBBUF_SIZE_MAX)
		create.subbuf_size *= 2;
	while ((__u64)create.subbuf_size * (create.nr_subbufs * 2 + 1) * last <= v.memory_limit - v.memory_used)
		create.nr_subbufs *= 2;
	ASSERT_GT((__u64)create.subbuf_size * (create.nr_subbufs + 1) * (last + 1), v.memory_limit - v.memory_used);
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	EXPECT_EQ(0, cpu_online(last, true));
	EXPECT_EQ(last, session_query(fd).nr_relays);
	ASSERT_EQ(0, pin(last));
	work_rename("nowhere", 0, 10);
	ASSERT_EQ(0, pin(0));
	work_rename("there", 0, 3);
	q = session_query(fd);
	EXPECT_EQ(10, q.lost[ETW_LOST_CPU]);
	EXPECT_EQ(3, q.written);
	EXPECT_STREQ("", sums_broken(fd) ?: "");
	close(fd);
}

/* QUERY of one session sees its own uuid; no two are the same. */
TEST_F(session, uuid)
{
	struct etw_session_create a = session_small(unique("a")), b = session_small(unique("b"));
	int fa = session_make(self->dev, &a), fb = session_make(self->dev, &b);
	struct etw_session_query qa, qb, qc;

	ASSERT_GE(fa, 0);
	ASSERT_GE(fb, 0);
	qa = session_query(fa);
	qb = session_query(fb);
	EXPECT_NE(0, memcmp(qa.uuid, qb.uuid, 16));
	EXPECT_NE(qa.id, qb.id);
	EXPECT_EQ(4, qa.uuid[6] >> 4);
	poison(qc);
	qc.id = qa.id - 1;
	ASSERT_EQ(0, call(self->dev, ETW_IOC_SESSION_LIST, &qc));
	EXPECT_EQ(qa.id, qc.id);
	EXPECT_EQ(0, memcmp(qa.uuid, qc.uuid, 16));
	EXPECT_STREQ((char *)a.name, (char *)qc.name);
	close(fa);
	close(fb);
}

static void read_for_ever(void *name)
{
	int dev = device_open(), fd = session_open(dev, name);
	struct relay relay;

	relay_open(&relay, fd, 0);
	for (;;)
		pause();
}

TEST_F(session, reader_role)
{
	const char *name = unique("role");
	struct etw_session_create create = session_small(name);
	int fd = session_make(self->dev, &create), other;
	struct etw_relay_open open = { .size = sizeof(open) };
	struct relay relay;
	pid_t pid;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, session_query(fd).reader_pid);
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	EXPECT_EQ(getpid(), session_query(fd).reader_pid);
	/* Another file of the same process is another reader; so is one for another CPU. */
	other = session_open(self->dev, name);
	ASSERT_GE(other, 0);
	EXPECT_EQ(-EBUSY, call(other, ETW_IOC_SESSION_RELAY_OPEN, &open));
	open.cpu = 1;
	if (cpus_online() > 1)
		EXPECT_EQ(-EBUSY, call(other, ETW_IOC_SESSION_RELAY_OPEN, &open));
	relay_close(&relay);
	EXPECT_EQ(0, session_query(fd).reader_pid);
	ASSERT_EQ(0, relay_open(&relay, other, 0));
	EXPECT_EQ(-EBUSY, call(fd, ETW_IOC_SESSION_RELAY_OPEN, &open));
	/* The session file goes, the relay file stays: it still has the role. */
	close(other);
	EXPECT_EQ(getpid(), session_query(fd).reader_pid);
	relay_close(&relay);
	EXPECT_EQ(0, session_query(fd).reader_pid);

	pid = spawn(read_for_ever, (void *)name);
	ASSERT_TRUE(wait_until(10000, session_query(fd).reader_pid == pid));
	open.cpu = 0;
	EXPECT_EQ(-EBUSY, call(fd, ETW_IOC_SESSION_RELAY_OPEN, &open));
	reap(pid);
	ASSERT_TRUE(wait_until(10000, session_query(fd).reader_pid == 0));
	EXPECT_EQ(0, relay_open(&relay, fd, 0));
	relay_close(&relay);
	close(fd);
}

/* A relay file, and a mapping without any file, keep what they need and nothing else. */
TEST_F(session, relay_outlives_session)
{
	const char *name = unique("outlives");
	struct etw_session_create create = session_small(name);
	int fd = session_make(self->dev, &create);
	struct etw_subbuf sb;
	struct relay relay;
	struct etw_packet_header h;
	__u32 index;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	work_rename("r", 0, 10);
	close(fd);
	/* It stopped with its owner, so that the packet is whole. */
	ASSERT_TRUE(wait_until(10000, relay_get(&relay, &sb) == 0));
	EXPECT_EQ(10, sb.records);
	index = sb.index;
	EXPECT_EQ(0, relay_put(&relay));
	EXPECT_EQ(-ENODATA, relay_get(&relay, &sb));
	close(relay.fd);
	relay.fd = -1;
	memcpy(&h, relay.map + (size_t)index * relay.subbuf_size, sizeof(h));
	EXPECT_EQ(ETW_CTF_MAGIC, h.magic);
	/* A mapping is a use like a file. */
	EXPECT_TRUE(exists(self->dev, name));
	relay_close(&relay);
	EXPECT_FALSE(exists(self->dev, name));
}

FIXTURE(clock)
{
	int dev;
};

FIXTURE_VARIANT(clock)
{
	__u32 clock;
	clockid_t id;
};

FIXTURE_VARIANT_ADD(clock, monotonic) { ETW_CLOCK_MONOTONIC, CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(clock, boot) { ETW_CLOCK_BOOT, CLOCK_BOOTTIME };
FIXTURE_VARIANT_ADD(clock, real) { ETW_CLOCK_REAL, CLOCK_REALTIME };

FIXTURE_SETUP(clock)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
}

FIXTURE_TEARDOWN(clock)
{
	close(self->dev);
}

/* Every stamp lies between what the same clock says before and after. The guest's real time is not set meanwhile. */
TEST_F(clock, stamps)
{
	struct etw_session_create create = session_small(unique("clock"));
	struct log log = { .only = RENAMED };
	__u64 before, after, t[51], real, slack = variant->clock == ETW_CLOCK_REAL ? 2000000 : 0;
	struct etw_session_query q;
	struct reader reader;
	unsigned int i;
	int fd;

	create.clock = variant->clock;
	before = clock_ns(variant->id);
	fd = session_make(self->dev, &create);
	real = clock_ns(CLOCK_REALTIME);
	after = clock_ns(variant->id);
	ASSERT_GE(fd, 0);
	q = session_query(fd);
	EXPECT_EQ(variant->clock, q.clock);
	EXPECT_GE(q.start_time + slack, before);
	EXPECT_LE(q.start_time, after + slack);
	EXPECT_GE(q.start_time + q.clock_offset, real - scaled(1000) * 1000000ULL);
	EXPECT_LE(q.start_time + q.clock_offset, real + 2000000);
	if (variant->clock == ETW_CLOCK_REAL)
		EXPECT_EQ(0, q.clock_offset);
	ASSERT_EQ(0, reader_open(&reader, fd, log_event, &log));
	ASSERT_EQ(1, enable_renames(fd, getpid()));
	for (i = 0; i < 50; i++) {
		t[i] = clock_ns(variant->id);
		work_rename("c", i, 1);
	}
	t[i] = clock_ns(variant->id);
	ASSERT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_DRAINED(&reader);
	ASSERT_EQ(50, log.nr);
	for (i = 0; i < 50; i++) {
		EXPECT_GE(log.events[i].time + slack, t[i]);
		EXPECT_LE(log.events[i].time, t[i + 1] + slack);
	}
	reader_close(&reader);
	close(fd);
	log_free(&log);
}

/*
 * A reader is killed with a packet in hand: the next reader gets it first, unchanged.
 */
FIXTURE(unget)
{
	int dev;
	int fd;
	char name[ETW_NAME_SIZE];
};

FIXTURE_VARIANT(unget)
{
	__u32 flags;
};

FIXTURE_VARIANT_ADD(unget, discard) { 0 };
FIXTURE_VARIANT_ADD(unget, overwrite) { ETW_SESSION_OVERWRITE };

FIXTURE_SETUP(unget)
{
	struct etw_session_create create = session_small(unique("unget"));

	create.flags = variant->flags;
	create.subbuf_size = 4096;
	create.nr_subbufs = 4;
	strcpy(self->name, (char *)create.name);
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(unget)
{
	close(self->fd);
	close(self->dev);
}

struct dying {
	const char *name;
	int pipe;
	unsigned int puts;	/* packets it reads properly before */
};

static __u64 checksum(const struct relay *relay, const struct etw_subbuf *sb)
{
	const uint8_t *p = relay->map + (size_t)sb->index * relay->subbuf_size;
	__u64 sum = sb->content_size;
	unsigned int i;

	for (i = 0; i < sb->content_size; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static void get_and_wait(void *arg)
{
	const struct dying *d = arg;
	int dev = device_open(), fd = session_open(dev, d->name);
	struct relay relay;
	struct etw_subbuf sb;
	__u64 out[2] = { 0 };
	unsigned int i;

	if (!relay_open(&relay, fd, 0)) {
		for (i = 0; i < d->puts && !relay_get(&relay, &sb); i++)
			relay_put(&relay);
		if (!relay_get(&relay, &sb)) {
			out[0] = sb.seq + 1;
			out[1] = checksum(&relay, &sb);
		}
	}
	if (write(d->pipe, out, sizeof(out)) == sizeof(out))
		for (;;)
			pause();
}

TEST_F(unget, killed_reader)
{
	struct etw_relay_open open = { .size = sizeof(open) };
	struct etw_session_query q;
	struct log log = { .only = RENAMED };
	struct etw_subbuf sb;
	struct reader reader;
	struct relay relay;
	struct dying d = { self->name };
	__u64 in[2];
	int fds[2], err, round;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	d.pipe = fds[1];
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	work_rename("u", 0, 160);		/* two packets and a bit */
	for (round = 0; round < 6; round++) {
		d.puts = round & 1;
		pid = spawn(get_and_wait, &d);
		ASSERT_EQ(sizeof(in), read(fds[0], in, sizeof(in)));
		ASSERT_NE(0, in[0]);
		/* Writers go on, around the ring and more. */
		work_rename("w", 0, 2000);
		EXPECT_EQ(-EBUSY, call(self->fd, ETW_IOC_SESSION_RELAY_OPEN, &open));
		q = session_query(self->fd);
		EXPECT_EQ(q.written, q.delivered + q.overwritten + q.unread);
		reap(pid);
		ASSERT_TRUE(wait_until(10000, (err = relay_open(&relay, self->fd, 0)) != -EBUSY));
		ASSERT_EQ(0, err);
		ASSERT_EQ(0, relay_get(&relay, &sb));
		EXPECT_EQ(in[0] - 1, sb.seq);
		EXPECT_EQ(in[1], checksum(&relay, &sb));
		/* Closed without PUT: the same again. */
		relay_close(&relay);
		ASSERT_EQ(0, relay_open(&relay, self->fd, 0));
		EXPECT_EQ(-EINVAL, relay_put(&relay));	/* GET was another file's */
		ASSERT_EQ(0, relay_get(&relay, &sb));
		EXPECT_EQ(in[0] - 1, sb.seq);
		EXPECT_EQ(in[1], checksum(&relay, &sb));
		EXPECT_EQ(0, relay_put(&relay));
		relay_close(&relay);
	}
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	ASSERT_SUMS(self->fd);
	/* What is left is whole. The packets before are somebody else's: the stream starts in the middle. */
	ASSERT_EQ(0, reader_open(&reader, self->fd, log_event, &log));
	reader.streams[0].overwrite = true;
	ASSERT_DRAINED(&reader);
	EXPECT_GT(reader.packets, 0);
	ASSERT_SUMS(self->fd);
	EXPECT_EQ(0, session_query(self->fd).unread);
	reader_close(&reader);
	close(fds[0]);
	close(fds[1]);
	log_free(&log);
}

TEST_HARNESS_MAIN
