// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sessions cost besides events, as results of the benchmark: memory by their settings, the processor time of ENABLE and
 * DISABLE with few and many sessions, and how long an event takes to its consumer, by the flush timer. Under -icount, where time
 * is instructions; and what a command takes. It knows the ABI only.
 *
 *   control memory | enable | latency
 *   control run COMMAND...	prints "INSTRUCTIONS KILOBYTES", its processor time and most memory; its output is dropped
 *
 *   other WORKLOAD CASE VALUE MIN MAX UNIT
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../util.h"

#define MANY 64
#define ROUNDS 9

static int device;

__attribute__((noreturn)) static void failed(const char *what, int err)
{
	fprintf(stderr, "control: %s: %s\n", what, strerror(err < 0 ? -err : errno));
	exit(1);
}

static int session(const char *name, uint32_t subbuf_size, uint32_t nr_subbufs, uint32_t flush_ms, uint32_t flags)
{
	struct etw_session_create c = session_small(name);
	int fd;

	c.subbuf_size = subbuf_size;
	c.nr_subbufs = nr_subbufs;
	c.flush_ms = flush_ms;
	c.flags = flags;
	fd = session_make(device, &c);
	if (fd < 0)
		failed(name, fd);
	return fd;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void other(const char *workload, const char *what, double *values, int nr, const char *unit)
{
	qsort(values, nr, sizeof(*values), compare);
	printf("other %s %s %.0f %.0f %.0f %s\n", workload, what, values[nr / 2], values[0], values[nr - 1], unit);
}

/* Bytes that nobody has: pages on the lists of a CPU, which the machine's own count leaves out, are free too. */
static double free_memory(void)
{
	unsigned long long pages = 0, n;
	char line[256];
	FILE *f;
	int err;

	/* each CPU keeps its latest changes of a count to itself until then */
	err = file_write("/proc/sys/vm/stat_refresh", "1");
	if (err)
		failed("/proc/sys/vm/stat_refresh", err);
	f = fopen("/proc/zoneinfo", "re");
	if (!f)
		failed("/proc/zoneinfo", 0);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " nr_free_pages %llu", &n) == 1 || sscanf(line, " count: %llu", &n) == 1)
			pages += n;
	fclose(f);
	return (double)pages * sysconf(_SC_PAGESIZE);
}

/* All that a session takes, with all of a provider enabled: what the machine has less when there are many. */
static void memory_of_many(void)
{
	int fds[MANY], err;
	double before, bytes;
	char name[64];

	for (int round = 0; round < 2; round++) {	/* the first one fills the allocator's caches */
		before = free_memory();
		for (int i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "bench-memory-%d", i);
			fds[i] = session(name, ETW_SUBBUF_SIZE_MIN, 2, 0, 0);
			err = enable_all(fds[i], "sched");
			if (err < 0)
				failed("enable", err);
		}
		bytes = (before - free_memory()) / MANY;
		if (bytes < 2 * ETW_SUBBUF_SIZE_MIN)
			failed("64 sessions leave more than they can", -ENODATA);
		for (int i = 0; i < MANY; i++)
			close(fds[i]);
		usleep(200000);				/* what is freed after a grace period */
	}
	snprintf(name, sizeof(name), "%uK*2,all,%ld-cpu", ETW_SUBBUF_SIZE_MIN >> 10, sysconf(_SC_NPROCESSORS_ONLN));
	other("memory", name, &bytes, 1, "bytes");
}

static void memory(void)
{
	static const struct {
		uint32_t size, nr;
	} settings[] = { { 4096, 2 }, { 16384, 4 }, { 0, 0 }, { 128 << 10, 32 }, { 1 << 20, 8 } };

	for (unsigned int i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		int fd = session("bench-memory", settings[i].size, settings[i].nr, 0, 0);
		struct etw_session_query q = session_query(fd);
		double bytes = (double)q.memory / q.nr_relays;
		char what[64];

		snprintf(what, sizeof(what), "%uK*%u", q.subbuf_size >> 10, q.nr_subbufs);
		other("memory", what, &bytes, 1, "bytes");
		close(fd);
	}
	memory_of_many();
}

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void enable(void)
{
	static const int counts[] = { 1, MANY };
	double on[ROUNDS], off[ROUNDS], waited_on[ROUNDS], waited_off[ROUNDS], begin;
	int fds[MANY], nr = 0, err;
	char what[64];
	uint64_t from;

	for (int c = 0; c < 2; c++) {
		while (nr < counts[c]) {
			snprintf(what, sizeof(what), "bench-enable-%d", nr);
			fds[nr] = session(what, ETW_SUBBUF_SIZE_MIN, 2, 0, ETW_SESSION_OVERWRITE);
			/* The first is the one that is measured. */
			if (nr++ && (err = enable_events(fds[nr - 1], "sched", "sched_switch")) < 0)
				failed("enable", err);
		}
		for (int r = 0; r < ROUNDS; r++) {
			from = now_ns();
			begin = cpu_time();
			err = enable_events(fds[0], "sched", "sched_switch");
			on[r] = cpu_time() - begin;
			waited_on[r] = now_ns() - from;
			from = now_ns();
			begin = cpu_time();
			if (err < 0 || (err = disable(fds[0], "sched")) < 0)
				failed("enable and disable", err);
			off[r] = cpu_time() - begin;
			waited_off[r] = now_ns() - from;
		}
		snprintf(what, sizeof(what), "enable,%d", counts[c]);
		other("control", what, on, ROUNDS, "instructions");
		snprintf(what, sizeof(what), "enable,%d,elapsed", counts[c]);
		other("control", what, waited_on, ROUNDS, "ns");
		snprintf(what, sizeof(what), "disable,%d", counts[c]);
		other("control", what, off, ROUNDS, "instructions");
		snprintf(what, sizeof(what), "disable,%d,elapsed", counts[c]);
		other("control", what, waited_off, ROUNDS, "ns");
	}
	while (nr)
		close(fds[--nr]);
}

/* When the first event in @r after those read before was recorded; 0 none is there. */
static uint64_t oldest;

static void on_event(const struct event *event, void *unused)
{
	if (!oldest)
		oldest = event->time;
}

/* About ten thousand events a second. */
static void keep_writing(void *unused)
{
	for (unsigned int i = 0;; i++) {
		work_rename("busy", i % 1000, 1);
		usleep(100);
	}
}

static void latency_of(uint32_t flush_ms, bool busy)
{
	const pid_t writer = busy ? spawn(keep_writing, NULL) : getpid();
	int fd = session("bench-latency", 16384, 8, flush_ms, 0), err;
	struct reader reader = {};
	double late[ROUNDS];
	char what[64];

	err = reader_open(&reader, fd, on_event, NULL);
	if (err < 0)
		failed("reader", err);
	err = enable_renames(fd, writer);
	if (err < 0)
		failed("enable", err);
	for (int r = 0; r < ROUNDS; r++) {
		/* Not in step with the timer; and a reader that sleeps while much is written finds old packets. */
		if (!busy)
			usleep(1000 * (flush_ms + 3) + r * 137 * flush_ms);
		for (int i = 0; i < (busy ? 10 : 1); i++) {
			if (busy)
				reader_wait(&reader, 10000);
			if (reader_drain(&reader) < 0)
				failed(reader.error, EPROTO);
		}
		oldest = 0;
		if (!busy)
			work_rename("late", r, 1);
		while (!oldest) {
			reader_wait(&reader, 10000);
			if (reader_drain(&reader) < 0)
				failed(reader.error, EPROTO);
		}
		late[r] = (now_ns() - oldest) / 1e3;
	}
	if (busy)
		reap(writer);
	snprintf(what, sizeof(what), "%ums,%s", flush_ms, busy ? "busy" : "quiet");
	other("latency", what, late, ROUNDS, "us");
	reader_close(&reader);
	close(fd);
}

static int run(char **argv)
{
	struct rusage usage;
	unsigned long long us;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		failed("fork", -errno);
	if (!pid) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &usage) < 0)
		failed("wait", -errno);
	us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ULL + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	printf("%llu %ld\n", us * 1000, usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	static const uint32_t timers[] = { 1000, 20, 1 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "run"))
		return run(argv + 2);
	device = device_open();
	if (device < 0)
		failed("/dev/etw", device);
	if (argc == 2 && !strcmp(argv[1], "memory")) {
		memory();
	} else if (argc == 2 && !strcmp(argv[1], "enable")) {
		enable();
	} else if (argc == 2 && !strcmp(argv[1], "latency")) {
		for (int i = 0; i < 3; i++) {
			latency_of(timers[i], false);
			latency_of(timers[i], true);
		}
	} else {
		fprintf(stderr, "usage: control memory | enable | latency | run COMMAND...\n");
		return 2;
	}
	return 0;
}
