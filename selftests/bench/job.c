// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs as in production: how long a command takes, and a service that answers over TCP. It must not know who traces meanwhile.
 *
 *   job time COMMAND...	prints how many ns COMMAND took; its output is dropped, its failure is ours
 *   job echo N			a client asks N times over the loopback device, a server answers; 64 bytes each
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE 64

__attribute__((noreturn)) static void failed(const char *what)
{
	fprintf(stderr, "job: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int timed(char **argv)
{
	const unsigned long long begin = now();
	unsigned long long end;
	pid_t pid = fork();
	int status;

	if (pid < 0)
		failed("fork");
	if (!pid) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			failed("wait");
	end = now();
	if (status) {
		fprintf(stderr, "job: %s: status 0x%x\n", argv[0], status);
		return 1;
	}
	printf("%llu\n", end - begin);
	return 0;
}

/* A whole message, however it is cut. 0: the other end is closed. */
static int take(int fd, char *message)
{
	ssize_t n, got = 0;

	while (got < MESSAGE) {
		n = read(fd, message + got, MESSAGE - got);
		if (n < 0)
			failed("read");
		if (!n)
			return 0;
		got += n;
	}
	return 1;
}

static void give(int fd, const char *message)
{
	if (write(fd, message, MESSAGE) != MESSAGE)
		failed("write");
}

static void serve(int listening)
{
	char message[MESSAGE];
	int fd = accept(listening, NULL, NULL), one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		failed("accept");
	while (take(fd, message))
		give(fd, message);
}

static int echo(int n)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	char message[MESSAGE] = "a question";
	int listening = socket(AF_INET, SOCK_STREAM, 0), fd, status, one = 1;
	pid_t pid;

	if (listening < 0 || bind(listening, (void *)&at, sizeof(at)) || listen(listening, 1) ||
	    getsockname(listening, (void *)&at, &len))
		failed("listen");
	pid = fork();
	if (pid < 0)
		failed("fork");
	if (!pid) {
		serve(listening);
		exit(0);
	}
	close(listening);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (void *)&at, len) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		failed("connect (is the loopback device up?)");
	for (int i = 0; i < n; i++) {
		give(fd, message);
		if (!take(fd, message)) {
			errno = EPIPE;
			failed("the server");
		}
	}
	close(fd);
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "job: the server ended with status 0x%x\n", status);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "time"))
		return timed(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "echo") && atoi(argv[2]) > 0)
		return echo(atoi(argv[2]));
	fprintf(stderr, "usage: job time COMMAND... | echo N\n");
	return 2;
}
