// SPDX-License-Identifier: GPL-2.0-only
/*
 * A minute at 10,000 events a second and more, recorded to files with default settings, loses nothing; TAP. It knows
 * the command line of etwctl only. cost_sustained [SECONDS]; --load SECONDS is the load itself. A kernel with sanitisers, of
 * which the environment says how much slower it is (ETW_SCALE, see util.h), makes as many events fewer.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RATE 10000		/* events a second that must have happened */
#define SCALE 30		/* ETW_SCALE of a kernel without sanitisers */
#define TICK_NS 10000000	/* the load works in slices of 10 ms */
#define FAULTS 120		/* of a slice: 12,000 a second, each of the zero page, which is quick */
#define TRIPS 10		/* of a slice: 2,000 switches a second with as many wake-ups */
#define TRACE "/tmp/etw-sustained"

static void work(char *pages, int to, int from)
{
	char c = 'x';

	for (int i = 0; i < FAULTS; i++)
		(void)*(volatile char *)(pages + i * 4096L);
	madvise(pages, FAULTS * 4096L, MADV_DONTNEED);
	for (int i = 0; i < TRIPS; i++)
		if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
			exit(1);
}

static int load(int seconds)
{
	char *pages = mmap(NULL, FAULTS * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int to_peer[2], to_us[2];
	struct timespec next, now;
	cpu_set_t one;
	time_t end;
	char c;

	/* Both processes share a CPU: waking another, emulated and asleep, takes as long as its host likes. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);

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
	end = next.tv_sec + seconds;
	while (next.tv_sec < end) {
		work(pages, to_peer[1], to_us[0]);
		next.tv_nsec += TICK_NS;
		if (next.tv_nsec >= 1000000000L) {
			next.tv_nsec -= 1000000000L;
			next.tv_sec++;
		}
		/* A slice that is late follows at once; after a second's delay the time lost is given up. */
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > next.tv_sec + 1)
			next = now;
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
	const char *slower = getenv("ETW_SCALE");
	int seconds = 60, status = -1, failed = 0, rate = RATE;
	char self[256], text[16];
	long long events;
	ssize_t len;
	FILE *out;
	pid_t pid;
	bool ok;

	if (argc == 3 && !strcmp(argv[1], "--load"))
		return load(atoi(argv[2]));
	if (argc == 2)
		seconds = atoi(argv[1]);
	if (slower && atoi(slower) > SCALE)
		rate = RATE * SCALE / atoi(slower);
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
	pid = fork();
	if (!pid) {
		dup2(fileno(out), 1);
		execlp("etwctl", "etwctl", "record", "--json", "-o", TRACE, "--", self, "--load", text, NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	events = number(out, "\"events\":");
	/* etwctl's own status is 5 when anything was lost. */
	printf("%sok 1 - etwctl record with default settings lost nothing (status %#x)\n", status ? "not " : "",
	       status);
	failed += status != 0;
	ok = events >= (long long)rate * seconds;
	printf("%sok 2 - %lld events in %d seconds of load, %lld a second, at least %d%s\n", ok ? "" : "not ", events,
	       seconds, events / seconds, rate, ok ? "" : "; was this machine busy with something else?");
	failed += !ok;
	if (status) {
		char line[1024];

		rewind(out);
		while (fgets(line, sizeof(line), out))
			printf("# %s", line);
	}
	return failed != 0;
}
