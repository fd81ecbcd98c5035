// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The device as the provider half sees it: a few calls, weak so that a test puts a fake in their place. It must not
 * know what is registered or written.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "provider_int.h"

#define WEAK __attribute__((weak))

WEAK const char *etw_device_dir(void)
{
	return "/dev";
}

WEAK const char *etw_device_name(void)
{
	return "etw";
}

WEAK int etw_device_open(void)
{
	long fd = syscall(SYS_openat, AT_FDCWD, "/dev/etw", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

WEAK int etw_device_ioctl(int fd, unsigned long command, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, command, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

WEAK int etw_device_map(int fd, void *at, size_t size)
{
	return mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ? -errno : 0;
}
