// SPDX-License-Identifier: GPL-2.0-only
/*
 * More memory asked for than the machine has: the module's own limit is lifted (memory_limit_mb), so that the allocator
 * refuses. It must not know how relays are allocated.
 */
#include <sys/sysinfo.h>

#include "etw_test.h"

static struct etw_version version(int dev)
{
	struct etw_version v;

	poison(v);
	call(dev, ETW_IOC_VERSION, &v);
	return v;
}

static unsigned long free_mb(void)
{
	struct sysinfo info;

	sysinfo(&info);
	return info.freeram / 1024 * info.mem_unit / 1024;
}

/* As the kernel estimates it, without what it keeps for itself. */
static unsigned long available_mb(void)
{
	char text[4096] = "", *at;

	if (file_read("/proc/meminfo", text, sizeof(text)) <= 0 || !(at = strstr(text, "MemAvailable:")))
		return 0;
	return strtoul(at + strlen("MemAvailable:"), NULL, 10) / 1024;
}

FIXTURE(memory)
{
	int dev;
	unsigned long total_mb, before;
	__u64 used;
};

FIXTURE_SETUP(memory)
{
	struct etw_version v;
	struct sysinfo info;

	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	v = version(self->dev);
	sysinfo(&info);
	if (v.memory_limit < 2ULL * info.totalram * info.mem_unit)
		SKIP(return, "the module's limit is below the machine's memory");
	self->total_mb = info.totalram / 1024 * info.mem_unit / 1024;
	self->used = v.memory_used;
	self->before = free_mb();
}

FIXTURE_TEARDOWN(memory)
{
	close(self->dev);
}

/* Refused, nothing kept, and the machine as usable as before. */
TEST_F(memory, exhausted)
{
	struct etw_session_create create = session_small(unique("huge"));
	int i, fd;

	create.subbuf_size = ETW_SUBBUF_SIZE_MAX;
	create.nr_subbufs = ETW_NR_SUBBUFS_MAX;
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOMEM, session_make(self->dev, &create));
		EXPECT_EQ(self->used, version(self->dev).memory_used);
		EXPECT_EQ(-ENOENT, session_open(self->dev, (char *)create.name));
	}
	EXPECT_TRUE(wait_until(10000, free_mb() + 20 > self->before));
	create = session_small(unique("small"));
	fd = session_make(self->dev, &create);
	EXPECT_GE(fd, 0);
	close(fd);
}

/*
 * Taken in many pieces until nothing more is given: the machine still has some for its programs, none of which had to die
 * for it (a guest in which one does fails).
 */
TEST_F(memory, taken_in_pieces)
{
	struct etw_session_create create = session_small("piece");
	int fds[ETW_MAX_SESSIONS], n, err = 0;

	/*
	 * what the last of them found too little for itself stays, and what it took before it failed is free again: together not
	 * so much that it passes for what has to stay
	 */
	create.subbuf_size = 1 << 18;
	create.nr_subbufs = 8;
	for (n = 0; n < (int)ETW_MAX_SESSIONS; n++) {
		snprintf((char *)create.name, sizeof(create.name), "piece-%d", n);
		fds[n] = session_make(self->dev, &create);
		err = fds[n];
		if (err < 0)
			break;
	}
	EXPECT_EQ(-ENOMEM, err);
	EXPECT_GT(n, 4);
	EXPECT_GT(available_mb(), self->total_mb / 20);	/* of the sixteenth that stays */
	while (n--)
		close(fds[n]);
	EXPECT_EQ(self->used, version(self->dev).memory_used);
	EXPECT_TRUE(wait_until(10000, free_mb() + 20 > self->before));
}

TEST_HARNESS_MAIN
