// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command on a terminal of its own and copies what it writes there to stdout; for tests of what differs on a terminal. It
 * ends with the command's status.
 *
 *	pty [-c MS] COMMAND ...		-c: types Ctrl-C after MS milliseconds
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long long type_at = 0, left;
	int opt, fd, status;
	char buf[4096];
	ssize_t n;
	pid_t pid;

	while ((opt = getopt(argc, argv, "+c:")) != -1) {
		if (opt != 'c')
			return 2;
		type_at = now_ms() + atoi(optarg);
	}
	pid = forkpty(&fd, NULL, NULL, NULL);
	if (pid < 0) {
		perror("forkpty");
		return 1;
	}
	if (!pid) {
		execvp(argv[optind], argv + optind);
		perror(argv[optind]);
		_exit(127);
	}
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		left = type_at ? type_at - now_ms() : -1;
		if (poll(&p, 1, type_at && left < 0 ? 0 : left) < 0 && errno != EINTR)
			break;
		if (type_at && now_ms() >= type_at) {
			if (write(fd, "\003", 1) != 1)
				perror("typing");
			type_at = 0;
		}
		if (!p.revents)
			continue;
		/* The other end's last close is an error here. */
		n = read(fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		if (write(STDOUT_FILENO, buf, n) != n)
			return 1;
	}
	if (waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
