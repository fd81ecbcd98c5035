// SPDX-License-Identifier: GPL-2.0-only
/*
 * etw-count: runs a command between two markers and prints how often each event of count.bpf.c happened on each CPU.
 * It must not use the module or libetw: it is what they are checked against.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "count.skel.h"
#include "etw-count.h"

#define EXIT_MISSED 5		/* the kernel left out calls of a program: the counts are too low */
#define MARKER_TRIES 200	/* of 1 ms each, to be switched away from */

/* In order of enum count_event; the names that a CTF trace has for them. */
static const char *const names[COUNT_NR] = {
	"sched_switch", "sched_wakeup", "sched_process_fork", "sched_process_exec",
	"block_rq_issue", "block_rq_complete", "x86_exceptions_page_fault_user",
};

static bool debug;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	fputs("etw-count: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_DEBUG && !debug)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

static void read_cpus(struct count_bpf *skel, struct count_cpu *cpus, size_t size)
{
	__u32 key = 0;

	if (bpf_map__lookup_elem(skel->maps.cpus, &key, sizeof(key), cpus, size, 0))
		die("cannot read the counters: %s", strerror(errno));
}

/* Makes the calling thread, named @comm, leave @cpu once, and waits until the programs have seen that. */
static void mark(struct count_bpf *skel, int cpu, const char *comm, enum count_state want, struct count_cpu *cpus,
		 size_t size)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot run on CPU %d: %s", cpu, strerror(errno));
	prctl(PR_SET_NAME, comm);
	for (int i = 0; i < MARKER_TRIES; i++) {
		nanosleep(&ms, NULL);
		read_cpus(skel, cpus, size);
		if (cpus[cpu].state == want)
			break;
	}
	prctl(PR_SET_NAME, "etw-count");
	if (cpus[cpu].state != want)
		die("CPU %d: the program did not see the marker %s", cpu, comm);
}

static void mark_all(struct count_bpf *skel, const char *comm, enum count_state want, struct count_cpu *cpus, int nr)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("cannot read the affinity: %s", strerror(errno));
	for (int cpu = 0; cpu < nr; cpu++)
		if (CPU_ISSET(cpu, &all))
			mark(skel, cpu, comm, want, cpus, nr * sizeof(*cpus));
	sched_setaffinity(0, sizeof(all), &all);
}

static int run(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("cannot start %s: %s", argv[0], strerror(errno));
	if (!pid) {
		execvp(argv[0], argv);
		fprintf(stderr, "etw-count: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("cannot wait for %s: %s", argv[0], strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static unsigned long long misses(struct count_bpf *skel)
{
	unsigned long long sum = 0;
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj) {
		struct bpf_prog_info info = {};
		__u32 size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			die("cannot ask about program %s: %s", bpf_program__name(prog), strerror(errno));
		sum += info.recursion_misses;
	}
	return sum;
}

static void print_counts(FILE *out, const struct count_cpu *cpus, int nr, unsigned long long missed)
{
	for (int cpu = 0; cpu < nr; cpu++) {
		if (cpus[cpu].state != COUNT_AFTER)
			continue;
		fprintf(out, "{\"cpu\":%d,\"begin_ns\":%llu,\"end_ns\":%llu,\"events\":{", cpu, cpus[cpu].begin_ns,
			cpus[cpu].end_ns);
		for (int i = 0; i < COUNT_NR; i++)
			fprintf(out, "%s\"%s\":%llu", i ? "," : "", names[i], cpus[cpu].events[i]);
		fputs("}}\n", out);
	}
	fprintf(out, "{\"misses\":%llu}\n", missed);
}

static void usage(FILE *out)
{
	fputs("usage: etw-count [-o FILE] [--] COMMAND [ARGUMENT...]\n"
	      "Counts sched_switch, sched_wakeup, fork, exec, block issue and completion and user page faults per CPU\n"
	      "while COMMAND runs.\n"
	      "\n"
	      "  -o, --output FILE  write the counts there, not to stdout: one JSON object a line, one for each CPU, then\n"
	      "                     the misses\n"
	      "  -d, --debug        show what libbpf does\n"
	      "  -h, --help         this text\n"
	      "\n"
	      "Exit status: that of COMMAND; 1 the programs cannot be loaded; 2 usage; 5 the kernel left out calls of a\n"
	      "program.\n",
	      out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "debug", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct count_cpu *cpus;
	struct count_bpf *skel;
	const char *output = NULL;
	unsigned long long missed;
	int opt, nr, status;
	FILE *out = stdout;

	while ((opt = getopt_long(argc, argv, "+o:dh", options, NULL)) != -1) {
		switch (opt) {
		case 'o':
			output = optarg;
			break;
		case 'd':
			debug = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind == argc) {
		usage(stderr);
		return 2;
	}
	libbpf_set_print(print_libbpf);
	nr = libbpf_num_possible_cpus();
	if (nr < 0)
		die("cannot find the number of CPUs: %s", strerror(-nr));
	cpus = calloc(nr, sizeof(*cpus));
	if (!cpus)
		die("no memory");
	if (output) {
		out = fopen(output, "w");
		if (!out)
			die("cannot write %s: %s", output, strerror(errno));
	}

	skel = count_bpf__open_and_load();
	if (!skel)
		die("cannot load the programs: %s; this needs CAP_BPF, CAP_PERFMON and a kernel with /sys/kernel/btf/vmlinux",
		    strerror(errno));
	if (count_bpf__attach(skel))
		die("cannot attach the programs: %s", strerror(errno));

	mark_all(skel, COUNT_BEGIN_COMM, COUNT_INSIDE, cpus, nr);
	status = run(argv + optind);
	mark_all(skel, COUNT_END_COMM, COUNT_AFTER, cpus, nr);

	count_bpf__detach(skel);
	missed = misses(skel);
	read_cpus(skel, cpus, nr * sizeof(*cpus));
	print_counts(out, cpus, nr, missed);
	count_bpf__destroy(skel);
	if (fflush(out) || ferror(out))
		die("cannot write %s", output ? output : "the counts");
	if (missed) {
		fprintf(stderr,
			"etw-count: the kernel left out %llu calls of a program that was interrupted by itself; run it again\n",
			missed);
		return EXIT_MISSED;
	}
	return status;
}
