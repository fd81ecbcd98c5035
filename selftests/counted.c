// SPDX-License-Identifier: GPL-2.0-only
/* Workloads and the counting of their instructions: see counted.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "counted.h"

#define BLOCK_SIZE 4096
#define PAGE 4096

static int device = -1;
static char *pages;
static int to_peer[2], to_us[2];
static void *io_buffer;

void die(const char *fmt, ...)
{
	const int err = errno;
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(": %s\n", strerror(err));
	exit(1);
}

/* Reading an untouched page maps the zero page: nothing is allocated, so the cost of a fault does not wander. */
static void run_faults(int n)
{
	for (int i = 0; i < n; i++)
		(void)*(volatile char *)(pages + (size_t)i * PAGE);
}

static void after_faults(int n)
{
	if (madvise(pages, (size_t)n * PAGE, MADV_DONTNEED))
		die("madvise");
}

static void run_reads(int n)
{
	for (int i = 0; i < n; i++)
		if (pread(device, io_buffer, BLOCK_SIZE, (off_t)(i & 1023) * BLOCK_SIZE) != BLOCK_SIZE)
			die("/dev/nullb0: read");
}

static void run_ping_pong(int n)
{
	char c = 'x';

	for (int i = 0; i < n; i++)
		if (write(to_peer[1], &c, 1) != 1 || read(to_us[0], &c, 1) != 1)
			die("pipe");
}

static void *peer(void *unused)
{
	char c;

	(void)unused;
	while (read(to_peer[0], &c, 1) == 1)
		if (write(to_us[1], &c, 1) != 1)
			die("pipe");
	return NULL;
}

const struct workload workloads[NR_WORKLOADS] = {
	{ "page_fault_user", "fault", { "page_fault_user" }, 1, 4096, run_faults, after_faults },
	{ "block_rq_issue and _complete", "block", { "block_rq_issue", "block_rq_complete" }, 2, 3000, run_reads },
	{ "block_rq_issue", "block", { "block_rq_issue" }, 1, 3000, run_reads },
	{ "block_rq_complete", "block", { "block_rq_complete" }, 1, 3000, run_reads },
	{ "sched_switch", "sched", { "sched_switch" }, 2, 2500, run_ping_pong },
};

/* 10,000 rounds of a loop of 4 instructions: exactly that many, plus a few, if the counter counts instructions. */
bool counts_instructions(void)
{
	uint64_t begin, end, n = 10000, x = 0;

	begin = __rdtsc();
	asm volatile("1: add $1, %0\n\tadd $1, %0\n\tsub $1, %1\n\tjnz 1b"
		     : "+r"(x), "+r"(n));
	end = __rdtsc();
	printf("# 40000 instructions take %llu units of the time stamp counter\n", (unsigned long long)(end - begin));
	return end - begin >= 40000 && end - begin < 80000;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void counted_prepare(void)
{
	struct sched_param fifo = { .sched_priority = 1 };
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity");
	/* Nothing else runs while a repetition does: not the reader, and no kernel thread of ordinary priority. */
	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	write_file("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
	write_file("/sys/block/nullb0/queue/scheduler", "none");
	device = open("/dev/nullb0", O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (device < 0)
		die("/dev/nullb0 (modprobe null_blk queue_mode=2 irqmode=0 submit_queues=1)");
	io_buffer = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
	pages = mmap(NULL, (size_t)workloads[0].n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!io_buffer || pages == MAP_FAILED)
		die("memory");
	memset(io_buffer, 0, BLOCK_SIZE);
	madvise(pages, (size_t)workloads[0].n * PAGE, MADV_NOHUGEPAGE);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo))
		die("real-time priority");
	if (pipe2(to_peer, O_CLOEXEC) || pipe2(to_us, O_CLOEXEC))
		die("pipe");
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &(struct sched_param){ .sched_priority = 1 });
	errno = pthread_create(&thread, &attr, peer, NULL);
	if (errno)
		die("thread");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double typical(const struct series *s)
{
	return s->value[s->reps / 4];
}

static int warm_up(const struct workload *w)
{
	return w->n / 8;
}

struct series measure(const struct workload *w, int reps)
{
	const struct timespec drain = { .tv_nsec = 200000000 };
	struct series s = { .reps = reps };

	/* The first, short one warms up. */
	for (int r = -1; r < reps; r++) {
		int n = r < 0 ? warm_up(w) : w->n;
		uint64_t begin, end;

		nanosleep(&drain, NULL);
		begin = __rdtsc();
		w->run(n);
		end = __rdtsc();
		if (w->after)
			w->after(n);
		if (r >= 0)
			s.value[r] = (double)(end - begin) / n;
	}
	qsort(s.value, reps, sizeof(s.value[0]), compare);
	return s;
}

uint64_t measured_events(const struct workload *w, int reps)
{
	return (uint64_t)w->per_iteration * ((uint64_t)w->n * reps + warm_up(w));
}
