// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies what a buffer of the kernel's gives to a file, every 50 ms, until it is ended: the consumer of tracers that have none.
 *
 *   drain FROM TO
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t ended;
static char buffer[1 << 20];

static void on_end(int signal)
{
	ended = signal;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_end };
	int from, to;
	bool last;
	ssize_t n;

	if (argc != 3) {
		fprintf(stderr, "usage: drain FROM TO\n");
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	from = open(argv[1], O_RDONLY | O_NONBLOCK);
	to = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (from < 0 || to < 0) {
		perror(from < 0 ? argv[1] : argv[2]);
		return 1;
	}
	do {
		last = ended;
		while ((n = read(from, buffer, sizeof(buffer))) > 0)
			if (write(to, buffer, n) != n) {
				perror(argv[2]);
				return 1;
			}
		if (!last)
			usleep(50000);
	} while (!last);
	return 0;
}
