// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A thread's current activity id, and new ids. It must not know providers. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/random.h>

#include "provider_int.h"

__thread struct etw_thread etw_thread;

/* The first half of this process's ids, 0 until there is one; the second half counts. */
static __u64 process_key;
static __u64 counter;

static void forked(void)
{
	process_key = 0;
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static __u64 make_key(void)
{
	__u64 key = 0, none = 0;
	struct timespec now;
	int saved = errno;

	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key) || !key) {
		/* Before the random pool is ready: no other process has this id at this time. */
		clock_gettime(CLOCK_BOOTTIME, &now);
		key = ((__u64)now.tv_sec * 1000000000 + now.tv_nsec) << 22 | (getpid() & 0x3fffff) | 1;
	}
	errno = saved;
	if (__atomic_compare_exchange_n(&process_key, &none, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return key;
	return none;
}

void etw_activity_get(__u8 id[16])
{
	memcpy(id, etw_thread.activity, 16);
}

void etw_activity_set(const __u8 id[16])
{
	memcpy(etw_thread.activity, id, 16);
	etw_thread_changed();
}

void etw_activity_create(__u8 id[16])
{
	__u64 key = __atomic_load_n(&process_key, __ATOMIC_RELAXED);
	__u64 number = htobe64(__atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED));

	if (!key)
		key = make_key();
	memcpy(id, &key, 8);
	memcpy(id + 8, &number, 8);
}

void etw_activity_swap(__u8 id[16])
{
	__u8 old[16];

	etw_activity_get(old);
	etw_activity_set(id);
	memcpy(id, old, 16);
}

void etw_activity_create_set(__u8 previous[16])
{
	__u8 id[16];

	etw_activity_create(id);
	etw_activity_get(previous);
	etw_activity_set(id);
}
