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

FIXTURE(memory)
{
	int dev;
};

FIXTURE_SETUP(memory)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
}

FIXTURE_TEARDOWN(memory)
{
	close(self->dev);
}

static unsigned long free_mb(void)
{
	struct sysinfo info;

	sysinfo(&info);
	return info.freeram / 1024 * info.mem_unit / 1024;
}

/* Refused, nothing kept, and the machine as usable as before. */
TEST_F(memory, exhausted)
{
	struct etw_session_create create = session_small(unique("huge"));
	struct etw_version v = version(self->dev);
	unsigned long before = free_mb();
	struct sysinfo info;
	int i, fd;

	sysinfo(&info);
	if (v.memory_limit < 2ULL * info.totalram * info.mem_unit)
		SKIP(return, "the module's limit is below the machine's memory");
	create.subbuf_size = ETW_SUBBUF_SIZE_MAX;
	create.nr_subbufs = ETW_NR_SUBBUFS_MAX;
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOMEM, session_make(self->dev, &create));
		EXPECT_EQ(v.memory_used, version(self->dev).memory_used);
		EXPECT_EQ(-ENOENT, session_open(self->dev, (char *)create.name));
	}
	EXPECT_TRUE(wait_until(10000, free_mb() + 20 > before));
	create = session_small(unique("small"));
	fd = session_make(self->dev, &create);
	EXPECT_GE(fd, 0);
	close(fd);
}

TEST_HARNESS_MAIN
