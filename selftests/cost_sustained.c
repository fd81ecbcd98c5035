// SPDX-License-Identifier: GPL-2.0-only
/*
 * A minute at 10,000 events a second and more, recorded to files with default settings, loses nothing; TAP. It knows the
 * command line of etwctl only. cost_sustained [SECONDS]; --load SECONDS is the load itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RATE 10000		/* events a second that must have happened */
#define TICK_NS 10000000	/* the load works in slices of 10 ms */
#define FAULTS 150		/* of a slice: 15,000 a second; the ping-pong adds about 4,000 switches and wake-ups */
#define TRIPS 10
#define TRACE "/tmp/etw-sustained"

static void work(char *pages, int to, int from)
{
	char c = 'x';

	for (int i = 0; i < FAULTS; i++)
		*(volatile char *)(pages + i * 4096L) = 1;
	madvise(pages, FAULTS * 4096L, MADV_DONTNEED);
	for (int i = 0; i < TRIPS; i++)
		if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
			exit(1);
}

static int load(int seconds)
{
	char *pages = mmap(NULL, FAULTS * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int to_peer[2], to_us[2];
	struct timespec next;
	char c;

	if (pages == MAP_FAILED || madvise(pages, FAULTS * 4096L, MADV_NOHUGEPAGE) || pipe(to_peer) || pipe(to_us))
		return 1;
	if (!fork()) {
		close(to_peer[1]);
		while (read(to_peer[0], &c, 1) == 1)
			if (write(to_us[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < seconds * (1000000000L / TICK_NS); i++) {
		work(pages, to_peer[1], to_us[0]);
		next.tv_nsec += TICK_NS;
		if (next.tv_nsec >= 1000000000L) {
			next.tv_nsec -= 1000000000L;
			next.tv_sec++;
		}
		/* A machine that is late catches up: the rate is that of the whole run. */
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	close(to_peer[1]);
	wait(NULL);
	return 0;
}

/* The number behind @key in the first line of @f that has it. -1: none has. */
static long long number(FILE *f, const char *key)
{
	char line[65536];
	const char *at;

	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, key);
		if (at)
			return strtoll(at + strlen(key), NULL, 10);
	}
	return -1;
}

int main(int argc, char **argv)
{
	int seconds = 60, status = -1, failed = 0;
	char self[256], text[16];
	struct timespec begin, end;
	long long events;
	FILE *out;
	double took;
	ssize_t len;
	pid_t pid;

	if (argc == 3 && !strcmp(argv[1], "--load"))
		return load(atoi(argv[2]));
	if (argc == 2)
		seconds = atoi(argv[1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..2\n");
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	out = tmpfile();
	if (len < 0 || !out || seconds < 1) {
		printf("Bail out! no temporary file, or not a number of seconds\n");
		return 1;
	}
	self[len] = '\0';
	snprintf(text, sizeof(text), "%d", seconds);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	pid = fork();
	if (!pid) {
		dup2(fileno(out), 1);
		execlp("etwctl", "etwctl", "record", "--json", "-o", TRACE, "--", self, "--load", text, NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
	events = number(out, "\"events\":");
	/* etwctl's own status is 5 when anything was lost. */
	printf("%sok 1 - etwctl record with default settings lost nothing (status %#x)\n", status ? "not " : "", status);
	failed += status != 0;
	printf("%sok 2 - %lld events in %.1f seconds, %.0f a second, at least %d\n", events >= (long long)RATE * seconds ? "" : "not ",
	       events, took, events / took, RATE);
	failed += events < (long long)RATE * seconds;
	if (status) {
		char line[1024];

		rewind(out);
		while (fgets(line, sizeof(line), out))
			printf("# %s", line);
	}
	return failed != 0;
}
