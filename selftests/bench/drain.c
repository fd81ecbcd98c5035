// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies what a buffer of the kernel's gives to a file, every 50 ms, until it is ended: the consumer of tracers that have none.
 *
 *   drain FROM TO
 *   drain --pages FROM TO	whole pages by splice, as trace-cmd does; what is left is read at the end
 *
 * Reading ftrace's buffer gives a page however little is in it: who does so while events come never finds it empty.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t ended;
static char buffer[1 << 20];

/* Nothing is there, 0, or that failed, -1. */
static ssize_t copy(int from, int to)
{
	ssize_t n = read(from, buffer, sizeof(buffer));

	return n <= 0 ? 0 : write(to, buffer, n) == n ? n : -1;
}

static ssize_t move_pages(int from, int to, const int pipe[2])
{
	ssize_t n = splice(from, NULL, pipe[1], NULL, sizeof(buffer), SPLICE_F_NONBLOCK | SPLICE_F_MOVE), moved, done = 0;

	for (; n > 0 && done < n; done += moved) {
		moved = splice(pipe[0], NULL, to, NULL, n - done, SPLICE_F_MOVE);
		if (moved <= 0)
			return -1;
	}
	return n < 0 ? 0 : n;
}

static void on_end(int signal)
{
	ended = signal;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_end };
	const bool pages = argc == 4 && !strcmp(argv[1], "--pages");
	int from, to, through[2];
	bool last;
	ssize_t n;

	if (!pages && argc != 3) {
		fprintf(stderr, "usage: drain [--pages] FROM TO\n");
		return 2;
	}
	argv += pages;
	sigaction(SIGTERM, &sa, NULL);
	from = open(argv[1], O_RDONLY | O_NONBLOCK);
	to = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (from < 0 || to < 0) {
		perror(from < 0 ? argv[1] : argv[2]);
		return 1;
	}
	if (pipe(through)) {
		perror("pipe");
		return 1;
	}
	do {
		last = ended;
		while ((n = pages && !last ? move_pages(from, to, through) : copy(from, to)) > 0)
			;
		if (n < 0) {
			perror(argv[2]);
			return 1;
		}
		if (!last)
			usleep(50000);
	} while (!last);
	return 0;
}
