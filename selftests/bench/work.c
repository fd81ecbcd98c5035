// SPDX-License-Identifier: GPL-2.0-only
/*
 * One measurement of the comparison: runs a workload untraced, starts a tracer, runs it again, stops the tracer, and prints what
 * an event cost as one line. It knows the workloads and what a program writes through each tracer, and nothing else of these:
 * the script "tracer" beside it starts and stops them.
 *
 *   work TRACER WORKLOAD SESSIONS CASE [REPS]
 *
 *   result TRACER WORKLOAD SESSIONS CASE INSTRUCTIONS MIN MAX BYTES LOST EVENTS CONSUMER MEDIAN	for an event; - not known
 *
 * INSTRUCTIONS are those added to the untraced workload, all of them where the tracer is none; CONSUMER those of the processes
 * that take the events meanwhile. Exit status 77: the tracer has no such case.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../counted.h"

#ifdef WITH_UST
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE_DISABLED
#include "lttng/etw_bench_ust.h"
#else
#include <etw/provider.h>

ETW_PROVIDER(bench, "Etw-Bench");
#endif

#define SKIP 77
#define STATE "/run/bench"
#define BATCH 16

static int marker = -1, generator = -1;

/*
 * The pure write path: a loop in the kernel.
 */

static void run_generator(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(generator, text, len, 0) != len)
		die("the generator");
}

/*
 * Events of a program: four numbers of 64 bits.
 */

#ifdef WITH_UST
static void run_user(int n)
{
	for (int i = 0; i < n; i++)
		lttng_ust_tracepoint(etw_bench, event, i, n, 3, 4);
}
#else
static inline void write_event(int i, int n)
{
	ETW_WRITE(bench, "event", ETW_LEVEL_INFO, 1, etw_u64("a", i), etw_u64("b", n), etw_u64("c", 3), etw_u64("d", 4));
}

static void run_user(int n)
{
	for (int i = 0; i < n; i++)
		write_event(i, n);
}

static void run_user_batch(int n)
{
	static __u8 buf[4096];
	struct etw_batch batch;

	for (int i = 0; i < n; i += BATCH) {
		if (etw_batch_begin(&batch, buf, sizeof(buf)))
			die("a batch");
		for (int j = i; j < i + BATCH; j++)
			write_event(j, n);
		etw_batch_end(&batch);
	}
}

static void run_marker(int n)
{
	static const char text[32] = "thirty-two bytes of what happens";

	for (int i = 0; i < n; i++)
		if (write(marker, text, sizeof(text)) <= 0)
			die("trace_marker");
}

/* The kernel's interface, of which Debian's headers know nothing yet. */
struct user_reg {
	__u32 size;
	__u8 enable_bit;
	__u8 enable_size;
	__u16 flags;
	__u64 enable_addr;
	__u64 name_args;
	__u32 write_index;
} __attribute__((packed));
#define DIAG_IOCSREG _IOWR('*', 0, struct user_reg *)

static volatile __u32 user_events_enabled;
static int user_events = -1;
static __u32 user_events_index;

/* While it is open the event is there to be enabled. */
static void user_events_register(void)
{
	struct user_reg reg = {
		.size = sizeof(reg), .enable_size = sizeof(user_events_enabled), .enable_addr = (uintptr_t)&user_events_enabled,
		.name_args = (uintptr_t)"etw_bench u64 a; u64 b; u64 c; u64 d",
	};

	user_events = open("/sys/kernel/tracing/user_events_data", O_RDWR | O_CLOEXEC);
	if (user_events < 0 || ioctl(user_events, DIAG_IOCSREG, &reg))
		die("user_events");
	user_events_index = reg.write_index;
}

static void run_user_events(int n)
{
	for (int i = 0; i < n; i++) {
		__u64 fields[] = { i, n, 3, 4 };
		struct iovec iov[] = { { &user_events_index, sizeof(user_events_index) }, { fields, sizeof(fields) } };

		if (user_events_enabled && writev(user_events, iov, 2) < 0)
			die("user_events_data");
	}
}

/* Without a tracer there: nothing at all. */
static void run_nothing(int n)
{
	for (int i = 0; i < n; i++)
		__asm__ volatile("");
}
#endif

static const struct workload more[] = {
	{ "generator", .per_iteration = 1, .n = 8192, .run = run_generator },
	{ "user", .per_iteration = 1, .n = 4096, .run = run_user },
#ifndef WITH_UST
	{ "user_batch", .per_iteration = 1, .n = 4096, .run = run_user_batch },
#endif
};

static const struct workload *find(const char *name)
{
	if (!strcmp(name, "block_rq"))
		name = "block_rq_issue and _complete";
	for (int i = 0; i < NR_WORKLOADS; i++)
		if (!strcmp(workloads[i].label, name))
			return &workloads[i];
	for (unsigned int i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (!strcmp(more[i].label, name))
			return &more[i];
	fprintf(stderr, "work: %s: no such workload\n", name);
	exit(2);
}

/* Runs "tracer VERB ARGUMENT..."; its status, and the line it prints in @line. */
static int tracer(char *line, size_t room, const char *verb, char **argv)
{
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		execlp("tracer", "tracer", verb, argv[1], argv[2], argv[3], argv[4], NULL);
		_exit(127);
	}
	close(fds[1]);
	while (used < room - 1 && (n = read(fds[0], line + used, room - 1 - used)) > 0)
		used += n;
	line[used] = 0;
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static double median(const struct series *s)
{
	return s->value[s->reps / 2];
}

/* Processor time, which is instructions here, of the processes that "tracer start" left in its list. */
static uint64_t consumed(void)
{
	unsigned long long ns, sum = 0;
	char command[] = "cat $(sed 's|.*|/proc/&/task/*/schedstat|' " STATE "/consumers) 2>/dev/null";
	FILE *f = popen(command, "r");

	if (!f)
		die("schedstat");
	while (fscanf(f, "%llu %*u %*u", &ns) == 1)
		sum += ns;
	pclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	const int reps = argc > 5 ? atoi(argv[5]) : 5;
	struct workload w, idle;
	struct series base, traced;
	char line[256], bytes[32] = "-", lost[32] = "-", events[32] = "-";
	uint64_t before, after;
	double each;
	bool none;
	int status;

	if (argc < 5 || reps < 1 || reps > MAX_REPS) {
		fprintf(stderr, "usage: work TRACER WORKLOAD SESSIONS CASE [REPS]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	w = *find(argv[2]);
	none = !strcmp(argv[1], "none");
	idle = w;
	counted_prepare();
	if (!strcmp(w.label, "generator")) {
		generator = open("/sys/module/etw_bench/parameters/generate", O_WRONLY | O_CLOEXEC);
		if (generator < 0)
			die("/sys/module/etw_bench/parameters/generate");
	}
#ifndef WITH_UST
	if (!strcmp(argv[1], "ftrace") && !strcmp(w.label, "user")) {
		w.run = run_marker;
		idle.run = run_nothing;
	}
	if (!strcmp(argv[1], "user_events") && !strcmp(w.label, "user")) {
		user_events_register();
		w.run = idle.run = run_user_events;
	}
#endif
	base = measure(&idle, reps);
	if (none) {
		printf("result none %s 0 untraced %.1f %.1f %.1f - - - - %.1f\n", argv[2], typical(&base) / w.per_iteration,
		       base.value[0] / w.per_iteration, base.value[reps - 1] / w.per_iteration, median(&base) / w.per_iteration);
		return 0;
	}
	status = tracer(line, sizeof(line), "start", argv);
	if (status) {
		if (status != SKIP)
			fprintf(stderr, "work: %s %s %s %s did not start: %s\n", argv[1], argv[2], argv[3], argv[4], line);
		return status;
	}
#ifndef WITH_UST
	if (w.run == run_marker) {
		marker = open("/sys/kernel/tracing/instances/bench1/trace_marker", O_WRONLY | O_CLOEXEC);
		if (marker < 0)
			die("trace_marker");
	}
#endif
	sleep(2);	/* a consumer starts up */
	before = consumed();
	traced = measure(&w, reps);
	sleep(2);	/* and takes the last of it */
	after = consumed();
	if (marker >= 0)
		close(marker);
	status = tracer(line, sizeof(line), "stop", argv);
	if (status || sscanf(line, "%31s %31s %31s", events, bytes, lost) != 3) {
		fprintf(stderr, "work: %s %s %s %s did not stop: %s\n", argv[1], argv[2], argv[3], argv[4], line);
		return status ? status : 1;
	}
	each = measured_events(&w, reps);
	printf("result %s %s %s %s %.1f %.1f %.1f ", argv[1], argv[2], argv[3], argv[4],
	       (typical(&traced) - typical(&base)) / w.per_iteration, (traced.value[0] - typical(&base)) / w.per_iteration,
	       (traced.value[reps - 1] - typical(&base)) / w.per_iteration);
	if (atoll(events) > 0 && strcmp(bytes, "-"))
		printf("%.2f ", atof(bytes) / atof(events));
	else
		printf("- ");
	printf("%s %s %.1f %.1f\n", lost, events, (after - before) / each / atoi(argv[3]),
	       (median(&traced) - median(&base)) / w.per_iteration);
	if (strcmp(argv[4], "rejected") && strcmp(events, "-") && atof(events) < each) {
		fprintf(stderr, "work: %s %s %s %s: %s events of %.0f\n", argv[1], argv[2], argv[3], argv[4], events, each);
		return 1;
	}
	return 0;
}
