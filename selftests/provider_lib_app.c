// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with providers, commanded by lines of its standard input: what provider_lib looks at from outside. It
 *knows the library's provider half only.
 *
 *	provider_lib_app [thread|loop|none]	how its enable callback is called
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <etw/provider.h>

ETW_PROVIDER(app, "Test-Lib-App", ETW_KEYWORD("a", 0x1), ETW_KEYWORD("b", 0x2));
ETW_VALUE_MAP(states, { 0, "idle" }, { 7, "busy" });

static unsigned int evaluated;

static unsigned int evaluate(unsigned int n)
{
	evaluated++;
	return n;
}

static void on_enable(struct etw_provider *provider, const struct etw_enabled *e, void *arg)
{
	(void)provider;
	(void)arg;
	printf("callback %u %u %llx\n", e->code, e->level, (unsigned long long)e->any);
	if (e->code == ETW_CODE_CAPTURE)
		ETW_WRITE(app, "State", ETW_LEVEL_INFO, 0, etw_str("text", "captured"));
}

static void counter(unsigned int n)
{
	ETW_WRITE(app, "Counter", ETW_LEVEL_INFO, 0x1, etw_u32("n", evaluate(n)), etw_str("text", "plain"));
}

static void types(void)
{
	static const __u8 id[16] = { 0xb3, 0x86, 0x4c, 0x38, 0x42, 0x73, 0x58, 0xc5,
				     0x54, 0x5b, 0x8b, 0x36, 8,	   0x34, 0x34, 0x71 };
	static const __u8 four[4] = { 192, 0, 2, 1 }, mac[6] = { 0, 0, 0x5e, 0, 0x53, 1 };
	static const __u16 numbers[] = { 1, 2, 3 };
	static const __u8 six[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };

	ETW_WRITE(app, "Types", ETW_LEVEL_ERROR, 0x2, etw_opcode(ETW_OPCODE_START), etw_task(3), etw_id(9),
		  etw_version(2), etw_u8("a", 255), etw_s16("b", -2), etw_hex32("c", 0x1f), etw_u64("d", ~0ULL),
		  etw_errno("e", -2), etw_f32("f", 1.5), etw_f64("g", -0.25), etw_bool("h", 1), etw_str("i", "text"),
		  etw_chars("j", "chars", 8), etw_bin("k", mac, 3), etw_guid("l", id), etw_ipv4("m", four),
		  etw_ipv6("n", six), etw_mac("o", mac), etw_u16_array("p", numbers, 3),
		  etw_u16_fixed("q", numbers, 2), etw_named(states, etw_u8("r", 7)));
}

static void activity(unsigned int n)
{
	__u8 old[16], outer[16];

	etw_activity_create_set(old);
	ETW_WRITE(app, "Request", ETW_LEVEL_INFO, 0, etw_opcode(ETW_OPCODE_START), etw_u32("n", n));
	etw_activity_create_set(outer);
	ETW_WRITE(app, "Part", ETW_LEVEL_INFO, 0, etw_opcode(ETW_OPCODE_START), etw_related(outer),
		  etw_u32("n", n + 1));
	etw_activity_set(outer);
	ETW_WRITE(app, "Request", ETW_LEVEL_INFO, 0, etw_opcode(ETW_OPCODE_STOP), etw_u32("n", n + 2));
	etw_activity_set(old);
}

static void batch(unsigned int nr)
{
	static __u8 room[4096];
	struct etw_batch b;

	etw_batch_begin(&b, room, sizeof(room));
	while (nr)
		counter(nr--);
	etw_batch_end(&b);
}

static void forked(unsigned int n)
{
	pid_t child = fork();

	if (!child) {
		counter(n);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("child %d\n", child);
}

/* As a program that makes itself a daemon: no descriptor stays, and others come in the place of all. What is in them afterwards? */
static void close_all(unsigned int n)
{
	const int file = memfd_create("own", 0);
	struct stat st = {};
	int fd;

	dup2(file, 3);
	syscall(SYS_close_range, 4U, ~0U, 0U);
	for (fd = 4; fd < 1000; fd++)
		dup2(3, fd);
	counter(n);
	counter(n + 1);
	fstat(3, &st);
	syscall(SYS_close_range, 3U, 900U, 0U);
	printf("own %lld\n", (long long)st.st_size);
}

/* A child ends its registration where no memory is to be had. */
static void without_memory(void)
{
	const struct rlimit none = { 0, 0 };
	int status = -1;
	pid_t child;

	child = fork();
	if (!child) {
		setrlimit(RLIMIT_DATA, &none);
		etw_provider_unregister(&app);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("status %d\n", status);
}

static void status(void)
{
	struct etw_provider_status s = { .size = sizeof(s) };

	etw_provider_status(&app, &s);
	printf("attached %u evaluated %u failed %llu\n", s.attached, evaluated, (unsigned long long)s.failed);
}

static int command(char *line)
{
	unsigned int n = strtoul(line + 1, NULL, 10);

	switch (*line) {
	case 'w':
		counter(n);
		break;
	case 't':
		types();
		break;
	case 'a':
		activity(n);
		break;
	case 'b':
		batch(n);
		break;
	case 'f':
		forked(n);
		break;
	case 'c':
		close_all(n);
		break;
	case 'm':
		without_memory();
		break;
	case 'e':
		printf("enabled %d\n", etw_provider_enabled(&app, ETW_LEVEL_INFO, 0x1));
		break;
	case 's':
		status();
		break;
	case 'q':
		return 0;
	}
	printf("done\n");
	return 1;
}

/* Its own loop: commands, and the provider's descriptor if it is there. */
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "none";
	const bool loop = !strcmp(how, "loop");
	struct pollfd fds[2] = { { .fd = 0, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (!strcmp(how, "thread") && etw_provider_on_enable(&app, on_enable, NULL, ETW_CALLBACK_THREAD))
		return 1;
	if (loop && etw_provider_on_enable(&app, on_enable, NULL, 0))
		return 1;
	printf("ready\n");
	for (;;) {
		/* The same as long as it is open. */
		fds[1].fd = loop ? etw_provider_fd(&app) : -1;
		if (poll(fds, 2, -1) < 0)
			return 1;
		if (fds[1].revents)
			etw_provider_dispatch(&app);
		if (fds[0].revents && (!fgets(line, sizeof(line), stdin) || !command(line)))
			return 0;
	}
}
