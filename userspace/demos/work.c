// SPDX-License-Identifier: GPL-2.0-only
/*
 * demo-work: workloads with a known outcome, for the demos and their assertions. It knows nothing of tracing.
 *
 *	demo-work NAME spin MS				keep a CPU busy
 *	demo-work NAME pingpong ROUNDS US		wake NAME-peer, which works for US, answers and sleeps; 0: as fast as can be
 *	demo-work NAME read DEVICE MS [SECTORS [SLOW]]	read SECTORS (8) at a time, straight from the device, 2 ms apart; count
 *							those that took SLOW (20) ms and more
 *	demo-work NAME touch MIB			write one byte to each page of fresh memory
 *	demo-work NAME spawn N				start N processes one after the other, each of which executes a program
 *
 * NAME becomes the thread's name. What was done is printed as "key=value" words on one line; times are seconds of
 * CLOCK_MONOTONIC.
 */
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void busy(uint64_t ns)
{
	uint64_t end = now() + ns;

	while (now() < end)
		;
}

static void spin(unsigned long ms)
{
	busy(ms * 1000000);
	printf("pid=%d spun_ms=%lu\n", getpid(), ms);
}

static void pingpong(const char *name, unsigned long rounds, unsigned long us)
{
	char peer[32], byte = 0;
	int there[2], back[2];
	pid_t pid;

	if (pipe(there) || pipe(back))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(there[1]);
		snprintf(peer, sizeof(peer), "%.10s-peer", name);
		prctl(PR_SET_NAME, peer);
		while (read(there[0], &byte, 1) == 1) {
			busy(us * 1000);
			if (write(back[1], &byte, 1) != 1)
				break;
		}
		_exit(0);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			err(1, "pipe");
		/* so that the peer is back at its read, and asleep, before it is woken again */
		if (us)
			usleep(5000);
	}
	close(there[1]);
	waitpid(pid, NULL, 0);
	printf("pid=%d peer=%d rounds=%lu\n", getpid(), pid, rounds);
}

static void read_device(const char *path, unsigned long ms, unsigned long sectors, unsigned long slow_ms)
{
	size_t size = sectors * 512;
	uint64_t start = now(), end = start + ms * 1000000, longest = 0;
	unsigned long n = 0, slow = 0;
	off_t len, at = 0;
	void *buf;
	int fd = open(path, O_RDONLY | O_DIRECT);

	if (fd < 0)
		err(1, "%s", path);
	len = lseek(fd, 0, SEEK_END);
	if (posix_memalign(&buf, PAGE, size))
		errx(1, "out of memory");
	while (now() < end) {
		uint64_t begin = now(), took;

		if (pread(fd, buf, size, at) != (ssize_t)size)
			err(1, "%s at %lld", path, (long long)at);
		took = now() - begin;
		if (took > longest)
			longest = took;
		slow += took >= slow_ms * 1000000;
		n++;
		/* a stride keeps read-ahead and merging out of the picture */
		at = (at + 17 * (off_t)size) % (len - size);
		at -= at % size;
		usleep(2000);
	}
	printf("pid=%d reads=%lu slow=%lu longest_ms=%.3f from=%.6f to=%.6f\n", getpid(), n, slow, longest / 1e6, start / 1e9,
	       now() / 1e9);
}

/* Its address range is the code that faults. */
__attribute__((noinline, aligned(64))) static void touch_pages(volatile char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

static void touch(unsigned long mib)
{
	size_t size = mib << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	madvise(p, size, MADV_NOHUGEPAGE);
	touch_pages(p, size / PAGE);
	printf("pid=%d pages=%zu from=0x%012lx to=0x%012lx code=0x%012lx\n", getpid(), size / PAGE, (unsigned long)p,
	       (unsigned long)p + size, (unsigned long)touch_pages);
}

static void spawn(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (!pid) {
			execl("/proc/self/exe", "demo-work", "child", "none", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
	printf("pid=%d spawned=%lu\n", getpid(), n);
}

static unsigned long number(char **argv, int argc, int i)
{
	char *end;
	unsigned long n;

	if (i >= argc)
		errx(2, "%s: a number is missing", argv[2]);
	n = strtoul(argv[i], &end, 10);
	if (*end || end == argv[i])
		errx(2, "'%s' is not a number", argv[i]);
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (argc > 1)
		prctl(PR_SET_NAME, argv[1]);
	if (!strcmp(what, "spin"))
		spin(number(argv, argc, 3));
	else if (!strcmp(what, "pingpong"))
		pingpong(argv[1], number(argv, argc, 3), number(argv, argc, 4));
	else if (!strcmp(what, "read") && argc > 3)
		read_device(argv[3], number(argv, argc, 4), argc > 5 ? number(argv, argc, 5) : 8,
			    argc > 6 ? number(argv, argc, 6) : 20);
	else if (!strcmp(what, "touch"))
		touch(number(argv, argc, 3));
	else if (!strcmp(what, "spawn"))
		spawn(number(argv, argc, 3));
	else if (strcmp(what, "none"))
		errx(2, "usage: demo-work NAME spin|pingpong|read|touch|spawn ARGUMENT...");
	return 0;
}
