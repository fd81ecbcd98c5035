// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module goes only when nobody uses it, leaves nothing behind, and comes back. It must not know what sessions do.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "etw_test.h"

static int unload(void)
{
	return module_unload("etw");
}

static int load(void)
{
	return module_load(getenv("ETW_KO") ?: "/etw/etw.ko", "");
}

static bool loaded(void)
{
	return !access("/sys/module/etw", F_OK);
}

static __u64 memory_used(void)
{
	struct etw_version v;
	int dev = device_open();

	poison(v);
	call(dev, ETW_IOC_VERSION, &v);
	close(dev);
	return v.memory_used;
}

FIXTURE(unload)
{
	int dev;
};

FIXTURE_SETUP(unload)
{
	if (!loaded())
		ASSERT_EQ(0, load());
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
}

FIXTURE_TEARDOWN(unload)
{
	if (self->dev >= 0)
		close(self->dev);
	/* The next program finds the module again. */
	if (!loaded())
		EXPECT_EQ(0, load());
}

/* Each kind of file alone keeps the module, a mapping too; then it goes, and its device with it. */
TEST_F(unload, refused_while_used)
{
	struct etw_session_create create = session_small(unique("use"));
	struct relay relay;
	int fd;

	EXPECT_EQ(-EWOULDBLOCK, unload());
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	close(self->dev);
	self->dev = -1;
	EXPECT_EQ(-EWOULDBLOCK, unload());
	ASSERT_EQ(1, enable_all(fd, "sched"));
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(fd);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(relay.fd);
	relay.fd = -1;
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0, relay.map[0] & 0);
	relay_close(&relay);
	EXPECT_TRUE(wait_until(5000, !unload()));
	EXPECT_FALSE(loaded());
	EXPECT_EQ(-1, access("/dev/etw", F_OK));
	EXPECT_EQ(ENOENT, errno);
}

/* A session that persists is a use as well, although no file is open. */
TEST_F(unload, refused_while_a_session_persists)
{
	struct etw_session_create create = session_small("persists");
	int fd;

	create.flags = ETW_SESSION_PERSIST;
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	close(fd);
	close(self->dev);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	self->dev = device_open();
	fd = session_open(self->dev, "persists");
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
	close(fd);
	close(self->dev);
	self->dev = -1;
	EXPECT_TRUE(wait_until(5000, !unload()));
}

static void busy(void *arg)
{
	for (;;) {
		work_fork(1);
		work_rename("busy", 0, 20);
		work_touch(20);
	}
}

/* Twenty times, with hooks attached a moment before and a busy machine. */
TEST_F(unload, reload)
{
	static const char *const providers[] = { "process", "sched", "fault", "block", "etw" };
	unsigned int i, k;
	pid_t pid;

	close(self->dev);
	self->dev = -1;
	pid = spawn(busy, NULL);	/* it must not inherit the file */
	for (i = 0; i < 20; i++) {
		struct etw_session_create create = session_small(unique("reload"));
		int dev, fd;

		if (i)
			ASSERT_EQ(0, load());
		dev = device_open();
		ASSERT_GE(dev, 0);
		fd = session_make(dev, &create);
		ASSERT_GE(fd, 0);
		for (k = 0; k < ARRAY_SIZE(providers); k++)
			ASSERT_EQ(1, enable_all(fd, providers[k]));
		sleep_ms(20);
		EXPECT_GT(session_query(fd).written, 0);
		close(fd);
		close(dev);
		EXPECT_TRUE(wait_until(5000, !memory_used()));
		ASSERT_TRUE(wait_until(5000, !unload()));
	}
	reap(pid);
}

TEST_HARNESS_MAIN
