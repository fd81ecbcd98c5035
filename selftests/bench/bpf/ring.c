// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads the programs of ring.bpf.c whose names begin with a workload's, or all, and takes what they write, every 50 ms, until it is
 * ended; then prints "EVENTS BYTES LOST". It must not know what the benchmark measures.
 *
 *   ring WORKLOAD [PID]		only events of process PID
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ring.skel.h"

#define HEADER 8	/* the ring's own, of each record */

static volatile sig_atomic_t ended;
static unsigned long long events, bytes, sum;

static void on_end(int signal)
{
	ended = signal;
}

static int take(void *context, void *data, size_t size)
{
	events++;
	bytes += size + HEADER;
	sum += *(unsigned long long *)data;
	return 0;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_end };
	struct bpf_program *program;
	struct ring_buffer *ring;
	struct ring_bpf *skel;
	bool some = false;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: ring WORKLOAD [PID]\n");
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	skel = ring_bpf__open();
	if (!skel)
		goto failed;
	bpf_object__for_each_program(program, skel->obj) {
		const bool wanted = !strcmp(argv[1], "all") || !strncmp(bpf_program__name(program), argv[1], strlen(argv[1]));

		bpf_program__set_autoload(program, wanted);
		some |= wanted;
	}
	if (!some) {
		fprintf(stderr, "ring: %s: no program for it\n", argv[1]);
		return 2;
	}
	skel->rodata->only_pid = argc > 2 ? atoi(argv[2]) : 0;
	if (ring_bpf__load(skel) || ring_bpf__attach(skel))
		goto failed;
	ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), take, NULL, NULL);
	if (!ring)
		goto failed;
	fprintf(stderr, "ready\n");
	while (!ended) {
		usleep(50000);
		ring_buffer__consume(ring);
	}
	ring_bpf__detach(skel);
	ring_buffer__consume(ring);
	printf("%llu %llu %llu\n", events, bytes, (unsigned long long)skel->bss->lost);
	return 0;
failed:
	perror("ring: the programs cannot be loaded");
	return 1;
}
