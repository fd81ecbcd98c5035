// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program of the benchmark's part lines: has the module (module/lines.c) write events to a provider of its own, as a user who
 * may not control sessions. It knows the ABI and that module's parameter only.
 *
 *   lines_user CPUS EVENTS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../emitter.h"
#include "../util.h"

#define NOBODY 65534

int main(int argc, char **argv)
{
	const int device = device_open();
	/* Opened by root, written by another. */
	const int lines = open("/sys/module/etw_bench/parameters/lines", O_WRONLY | O_CLOEXEC);
	const char *what = "open";
	char text[64];
	int provider = -1, err, len;

	if (argc != 3) {
		fprintf(stderr, "usage: lines_user CPUS EVENTS\n");
		return 2;
	}
	err = device < 0 ? device : lines < 0 ? -errno : 0;
	if (!err) {
		what = "become another user";
		err = become_user(NOBODY);
	}
	if (!err) {
		what = "register";
		provider = provider_register(device, "Etw-Bench-User");
		err = provider < 0 ? provider : provider_counter(provider, "event", 1);
	}
	if (err >= 0) {
		what = "write";
		len = snprintf(text, sizeof(text), "user %s %s %d", argv[1], argv[2], provider);
		err = write(lines, text, len) == len ? 0 : -errno;
	}
	if (err < 0)
		fprintf(stderr, "lines_user: %s: %s\n", what, strerror(-err));
	return err < 0;
}
