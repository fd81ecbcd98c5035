// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module is loaded and unloaded 200 times on a machine that is busy in everything it looks at, with sessions coming
 * and going around: it goes only when nobody uses it, begins anew each time, and the machine's memory stays. Needs a test
 * build of the module; it must not know what sessions do.
 *
 * ETW_STRESS_ROUNDS is how often (200).
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "etw_test.h"
#include "state.h"
#include "tally.h"

#undef ETW_TIMEOUT
#define ETW_TIMEOUT 3000

static const char *const providers[] = { "process", "sched", "fault", "block", "etw", "test" };
static const char *const objects[] = {
	"session", "session_file", "relay_file", "relay", "page", "enabling", "filter", "class", "targets", "hook",
};

static struct shared {
	int quiet;			/* who uses the module pauses ... */
	int pausing;			/* ... so many do */
	int still, busy_still;		/* the one who is busy with other things pauses; it does */
	uint64_t sessions, bursts, early;
	char error[200];
} *shared;

static int unload(void)
{
	return module_unload("etw");
}

static int load(void)
{
	return module_load("/etw/etw.ko", "");
}

static void pause_if_told(void)
{
	if (!__atomic_load_n(&shared->quiet, __ATOMIC_ACQUIRE))
		return;
	__atomic_fetch_add(&shared->pausing, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->quiet, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	__atomic_fetch_sub(&shared->pausing, 1, __ATOMIC_RELEASE);
}

static void pause_if_still(void)
{
	while (__atomic_load_n(&shared->still, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&shared->busy_still, 1, __ATOMIC_RELEASE);
		sleep_ms(1);
	}
	__atomic_store_n(&shared->busy_still, 0, __ATOMIC_RELEASE);
}

static void busy(void *disk)
{
	for (;; pause_if_still()) {
		work_fork(1);
		work_rename("busy", 0, 20);
		work_touch(20);
		work_pingpong(5, -1);
		work_read(disk, 2);
		sleep_ms(5);		/* grace periods, for which each round waits often, take long without idle time */
	}
}

/* Writers of every context; the module may be away. */
static void write_for_ever(void *arg)
{
	const unsigned int i = (intptr_t)arg, cpus = cpus_online();
	int err;

	for (;; pause_if_told()) {
		err = generate("burst context=%s cpu=%u count=100 chunk=4 class=%s", context_names[i % NR_CONTEXTS],
			       i % cpus, kind_names[i % NR_KINDS]);
		if (!err)
			__atomic_fetch_add(&shared->bursts, 1, __ATOMIC_RELAXED);
		else if (err == -ENOENT || err == -ENODEV || err == -ENXIO)
			__atomic_fetch_add(&shared->early, 1, __ATOMIC_RELAXED);
		else
			snprintf(shared->error, sizeof(shared->error), "burst: %s", strerror(-err));
		sleep_ms(20 + 10 * i);	/* so that there are moments without any user */
	}
}

/* Sessions around the unloading; the module may be away, and come and go while this looks. */
static void sessions_for_ever(void *arg)
{
	unsigned int i;

	for (i = 0;; i++, pause_if_told()) {
		struct etw_session_create create = session_small(unique("around"));
		int dev = device_open(), fd = -1;
		struct relay relay;

		if (dev >= 0)
			fd = session_make(dev, &create);
		else if (dev != -ENOENT && dev != -ENODEV && dev != -ENXIO)
			snprintf(shared->error, sizeof(shared->error), "open: %s", strerror(-dev));
		if (fd >= 0) {
			enable_all(fd, providers[i % ARRAY_SIZE(providers)]);
			session_flush(fd);
			__atomic_fetch_add(&shared->sessions, 1, __ATOMIC_RELAXED);
			if (!relay_open(&relay, fd, 0))
				relay_close(&relay);
			close(fd);
		}
		if (dev >= 0)
			close(dev);
		sleep_ms(70);
	}
}

static uint64_t meminfo(const char *name)
{
	char text[4096], *p;

	if (file_read("/proc/meminfo", text, sizeof(text)) <= 0)
		return 0;
	p = strstr(text, name);
	return p ? strtoull(p + strlen(name) + 1, NULL, 10) : 0;
}

/* In KiB, what each CPU keeps for itself of the free pages: hundreds, more or less, and no part of MemFree. */
static uint64_t kept_kb(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	unsigned long long pages = 0, n;
	char line[200];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %llu", &n) == 1)
			pages += n;
	if (f)
		fclose(f);
	return pages * (getpagesize() / 1024);
}

/* What is free once everything that can be given back is, and nobody takes or gives any meanwhile, in KiB; 0: they did. */
static uint64_t free_kb(void)
{
	uint64_t kb = 0;

	__atomic_store_n(&shared->still, 1, __ATOMIC_RELEASE);
	if (wait_until(60000, __atomic_load_n(&shared->busy_still, __ATOMIC_ACQUIRE))) {
		file_write("/proc/sys/vm/drop_caches", "3");
		/* CPUs count for themselves too. */
		file_write("/proc/sys/vm/stat_refresh", "1");
		kb = meminfo("MemFree:") + kept_kb();
	}
	__atomic_store_n(&shared->still, 0, __ATOMIC_RELEASE);
	if (!wait_until(60000, !__atomic_load_n(&shared->busy_still, __ATOMIC_ACQUIRE)))
		return 0;
	return kb;
}

static void be_quiet(void)
{
	__atomic_store_n(&shared->quiet, 1, __ATOMIC_RELEASE);
}

/* Those who use the module pause. */
static bool is_quiet(void)
{
	return wait_until(60000, __atomic_load_n(&shared->pausing, __ATOMIC_ACQUIRE) == NR_CONTEXTS + 2);
}

/* It must go, and does so in a moment when nobody uses it. Tries at most @ms. */
static bool goes(int ms)
{
	uint64_t end = now_ns() + ms * 1000000ULL;

	while (unload()) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

#define WINDOW 20
#define DRIFT_KB 512		/* between the first and the last windows; one page a round that nobody frees is 680 */

FIXTURE(reload)
{
	pid_t pids[16];
	unsigned int nr_pids;
};

FIXTURE_SETUP(reload)
{
	ASSERT_TRUE(generator_there());
}

FIXTURE_TEARDOWN(reload)
{
	while (self->nr_pids)
		reap(self->pids[--self->nr_pids]);
	load();		/* EEXIST, but after a failure */
}

TEST_F(reload, under_load)
{
	const char *text = getenv("ETW_STRESS_ROUNDS");
	const unsigned int rounds = text && atoi(text) > 0 ? atoi(text) : 200;
	uint64_t early_kb = 0, late_kb = 0;
	unsigned int i, k, between = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	shared->quiet = 1;
	self->pids[self->nr_pids++] = spawn(busy, "/dev/vda");
	for (i = 0; i < NR_CONTEXTS; i++)
		self->pids[self->nr_pids++] = spawn(write_for_ever, (void *)(intptr_t)i);
	self->pids[self->nr_pids++] = spawn(sessions_for_ever, NULL);
	self->pids[self->nr_pids++] = spawn(sessions_for_ever, NULL);

	for (i = 0; i < rounds; i++) {
		struct etw_session_create create = session_small(unique("reload"));
		struct etw_session_query q;
		struct etw_version v;
		struct emitted e;
		const char *why;
		int dev, fd;

		if (i)
			ASSERT_EQ(0, load());
		/* All is new. */
		dev = device_open();
		ASSERT_GE(dev, 0);
		if (i && shared->quiet) {
			static const struct emitted none;

			emitted_read(&e);
			EXPECT_EQ(0, memcmp(&e, &none, sizeof(e)));
			poison(v);
			ASSERT_EQ(0, call(dev, ETW_IOC_VERSION, &v));
			EXPECT_EQ(0, v.memory_used);
			for (k = 0; k < ARRAY_SIZE(objects); k++)
				EXPECT_EQ(0, objects_alive(objects[k]));
		}
		fd = session_make(dev, &create);
		ASSERT_GE(fd, 0);
		q = session_query(fd);
		if (i && shared->quiet)
			EXPECT_EQ(1, q.id);
		for (k = 0; k < ARRAY_SIZE(providers); k++)
			ASSERT_EQ(1, enable_all(fd, providers[k]));
		__atomic_store_n(&shared->quiet, 0, __ATOMIC_RELEASE);
		for (k = 0; k < 3; k++) {
			EXPECT_EQ(-EWOULDBLOCK, unload());
			sleep_ms(10);
		}
		EXPECT_NE(0, session_flush(fd));
		EXPECT_GT(session_query(fd).written, 0);
		/* Every second time others use it until it is gone, unless they never let go. */
		if (i % 2) {
			be_quiet();
			ASSERT_TRUE(is_quiet());
		}
		ASSERT_EQ(0, call(fd, ETW_IOC_SESSION_STOP, NULL));
		why = sums_broken(fd);
		if (why)
			TH_LOG("%s", why);
		EXPECT_EQ(NULL, why);
		EXPECT_EQ(-EWOULDBLOCK, unload());
		close(fd);
		if (shared->quiet)
			for (k = 0; k < ARRAY_SIZE(objects); k++)
				EXPECT_EQ(0, objects_alive(objects[k]));
		close(dev);
		if (!shared->quiet && goes(scaled(300)))
			between++;
		else
			be_quiet();
		if (shared->quiet) {
			ASSERT_TRUE(is_quiet());
			ASSERT_TRUE(goes(scaled(20000)));
		}
		EXPECT_EQ(0, shared->error[0]);
		if (shared->quiet && (i < 2 * WINDOW || i % WINDOW == 1 || i >= rounds - WINDOW)) {
			uint64_t kb = free_kb();

			ASSERT_NE(0, kb);
			if (i < 2 * WINDOW && i >= WINDOW / 2 && kb > early_kb)
				early_kb = kb;
			if (i >= rounds - WINDOW && kb > late_kb)
				late_kb = kb;
			if (i % WINDOW == 1)
				TH_LOG("round %u: %llu KiB free (%llu kept by CPUs), %llu slab, %llu per CPU, %llu vmalloc", i, (llu)kb,
				       (llu)kept_kb(), (llu)meminfo("Slab:"), (llu)meminfo("Percpu:"),
				       (llu)meminfo("VmallocUsed:"));
		}
	}
	__atomic_store_n(&shared->quiet, 0, __ATOMIC_RELEASE);
	while (self->nr_pids)
		reap(self->pids[--self->nr_pids]);
	if (shared->error[0])
		TH_LOG("%s", shared->error);
	ASSERT_EQ(0, load());
	TH_LOG("%u rounds, in %u it went between two uses; %llu sessions, %llu bursts around, %llu met no module; "
	       "%llu KiB free early, %llu late",
	       rounds, between, (llu)shared->sessions, (llu)shared->bursts, (llu)shared->early,
	       (llu)early_kb, (llu)late_kb);
	EXPECT_GT(shared->sessions, rounds / 4);
	EXPECT_GT(shared->bursts, rounds);
	EXPECT_GT(between, 0);
	if (rounds >= 4 * WINDOW)
		EXPECT_GT(late_kb + DRIFT_KB, early_kb);
}

TEST_HARNESS_MAIN
