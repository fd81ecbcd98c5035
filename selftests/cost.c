// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a traced event costs, in guest instructions, against the goals of the project; TAP. It owns the sessions and
 * the arithmetic and knows the ABI only. It must run alone on one CPU under -icount, where the time stamp counter
 * counts instructions: cost.md says why the figures can be trusted, and how to see which instructions they are.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/etw.h>

#include "counted.h"

#define MAX_SESSIONS 4
#define TESTS_PER_WORKLOAD 5

/* Instructions an event, each at most. */
#define GOAL_EVENT 180		/* one session */
#define GOAL_SWITCH 220	/* the same, sched_switch */
#define GOAL_FURTHER 80		/* another session with the same clock */
#define GOAL_REJECTED 45	/* by the pid filter */
#define GOAL_NOTHING 5		/* no session wants the event: what remains is the noise of the measurement */

static int control = -1;
static int reps = 7;
static __u32 session_clock = ETW_CLOCK_MONOTONIC;
static int test_nr, failed;

__attribute__((format(printf, 2, 3))) static void result(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", ok ? "" : "not ", ++test_nr);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	failed += !ok;
}

/*
 * Sessions.
 */

static int session_create(const char *name, __u32 flags)
{
	struct etw_session_create c = { .size = sizeof(c), .flags = flags, .clock = session_clock };
	int fd;

	strncpy((char *)c.name, name, sizeof(c.name) - 1);
	fd = ioctl(control, ETW_IOC_SESSION_CREATE, &c);
	if (fd < 0)
		die("session %s", name);
	return fd;
}

static void session_enable(int session, const struct workload *w, pid_t only)
{
	static char names[2][ETW_NAME_SIZE];
	__s32 pid = only;
	struct etw_enable e = {
		.size = sizeof(e), .event_mode = ETW_EVENTS_IN, .events = (uintptr_t)names,
		.pids = only ? (uintptr_t)&pid : 0, .nr_pids = only ? 1 : 0,
	};

	memset(names, 0, sizeof(names));
	for (int i = 0; i < 2 && w->events[i]; i++) {
		strncpy(names[i], w->events[i], ETW_NAME_SIZE - 1);
		e.nr_events++;
	}
	strncpy((char *)e.name, w->provider, sizeof(e.name) - 1);
	if (ioctl(session, ETW_IOC_SESSION_ENABLE, &e) != 1)
		die("enable %s", w->provider);
}

static void session_disable(int session, const struct workload *w)
{
	struct etw_provider_ref r = { .size = sizeof(r) };

	strncpy((char *)r.name, w->provider, sizeof(r.name) - 1);
	if (ioctl(session, ETW_IOC_SESSION_DISABLE, &r))
		die("disable %s", w->provider);
}

struct counts {
	uint64_t written, filtered, lost;
};

static struct counts session_counts(int session)
{
	struct etw_session_query q = { .size = sizeof(q) };
	struct counts c;

	if (ioctl(session, ETW_IOC_SESSION_QUERY, &q))
		die("query");
	c.written = q.written;
	c.filtered = q.filtered;
	c.lost = 0;
	for (int i = 0; i < ETW_NR_LOST; i++)
		c.lost += q.lost[i];
	return c;
}

/* A reader that takes each packet and looks at none. It has an ordinary priority: it runs between repetitions. */
static pid_t reader_start(int session)
{
	struct etw_relay_open o = { .size = sizeof(o), .cpu = 0 };
	struct etw_subbuf sb;
	struct pollfd p = { .events = POLLIN };
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	p.fd = ioctl(session, ETW_IOC_SESSION_RELAY_OPEN, &o);
	if (p.fd < 0)
		die("relay");
	for (;;) {
		poll(&p, 1, -1);
		for (;;) {
			sb = (struct etw_subbuf){ .size = sizeof(sb) };
			if (ioctl(p.fd, ETW_IOC_RELAY_SUBBUF_GET, &sb))
				break;
			if (ioctl(p.fd, ETW_IOC_RELAY_SUBBUF_PUT))
				die("put");
		}
		if (errno == ENODATA)
			_exit(0);
	}
}

/*
 * Whether the kernel has a probe on a tracepoint: the count in its static key, the second member of struct tracepoint,
 * read through /proc/kcore. -1 if it cannot be read.
 */
static int probes_attached(const char *tracepoint)
{
	char symbol[128], line[512], name[256];
	unsigned long long address, found = 0;
	FILE *f = fopen("/proc/kallsyms", "r");
	int fd, enabled = -1;
	Elf64_Ehdr eh;

	if (!f)
		return -1;
	snprintf(symbol, sizeof(symbol), "__tracepoint_%s", tracepoint);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %255s", &address, name) == 2 && !strcmp(name, symbol))
			found = address;
	fclose(f);
	fd = open("/proc/kcore", O_RDONLY);
	if (!found || fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	for (int i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), eh.e_phoff + (off_t)i * eh.e_phentsize) != sizeof(ph))
			break;
		if (ph.p_type != PT_LOAD || found < ph.p_vaddr || found + 12 > ph.p_vaddr + ph.p_filesz)
			continue;
		if (pread(fd, &enabled, sizeof(enabled), ph.p_offset + (found - ph.p_vaddr) + 8) != sizeof(enabled))
			enabled = -1;
		break;
	}
	close(fd);
	return enabled;
}

/*
 * Measuring.
 */

struct cost {
	double typical, min, max;	/* added instructions an event */
};

static struct cost added(const struct workload *w, const struct series *base, const struct series *traced)
{
	double m = typical(base);

	return (struct cost){
		(typical(traced) - m) / w->per_iteration,
		(traced->value[0] - m) / w->per_iteration,
		(traced->value[traced->reps - 1] - m) / w->per_iteration,
	};
}

struct setup {
	int nr;			/* sessions */
	__u32 flags;
	bool reader;
	pid_t only;		/* pid filter, 0 = none */
};

/* Cost of @w under @setup; @why is set when the sessions did not see what they should have. */
static struct cost run(const struct workload *w, const struct setup *setup, const char **why)
{
	struct counts before[MAX_SESSIONS], after;
	struct series base, traced;
	pid_t readers[MAX_SESSIONS] = {};
	int fds[MAX_SESSIONS];

	*why = NULL;
	base = measure(w, reps);
	for (int i = 0; i < setup->nr; i++) {
		char name[32];

		snprintf(name, sizeof(name), "cost%d", i);
		fds[i] = session_create(name, setup->flags);
		if (setup->reader)
			readers[i] = reader_start(fds[i]);
		session_enable(fds[i], w, setup->only);
	}
	for (int i = 0; i < setup->nr; i++)
		before[i] = session_counts(fds[i]);
	traced = measure(w, reps);
	for (int i = 0; i < setup->nr; i++) {
		after = session_counts(fds[i]);
		if (after.lost != before[i].lost)
			*why = "events were lost";
		else if (setup->only && after.filtered - before[i].filtered < measured_events(w, reps))
			*why = "fewer events were filtered than happened";
		else if (setup->only && after.written != before[i].written)
			*why = "an event passed the filter";
		else if (!setup->only && after.written - before[i].written < measured_events(w, reps))
			*why = "fewer events were written than happened";
	}
	for (int i = 0; i < setup->nr; i++) {
		if (readers[i]) {
			kill(readers[i], SIGKILL);
			waitpid(readers[i], NULL, 0);
		}
		session_disable(fds[i], w);
		close(fds[i]);
	}
	return added(w, &base, &traced);
}

static void report(const struct workload *w, const char *what, struct cost c, int goal, const char *why)
{
	result(!why && c.typical <= goal, "%s, %s: %.0f instructions an event (min %.0f, max %.0f), at most %d%s%s",
	       w->label, what, c.typical, c.min, c.max, goal, why ? "; " : "", why ? why : "");
}

static double further(const struct workload *w, const struct cost c[], const char *why)
{
	double second = c[1].typical - c[0].typical, each = (c[2].typical - c[0].typical) / 3;
	double worse = second > each ? second : each;

	result(!why && worse <= GOAL_FURTHER,
	       "%s, a further session: %.0f instructions an event (1, 2, 4 sessions: %.0f, %.0f, %.0f), at most %d%s%s",
	       w->label, worse, c[0].typical, c[1].typical, c[2].typical, GOAL_FURTHER, why ? "; " : "",
	       why ? why : "");
	return worse;
}

/* A session that wants another event of the kernel must not cost this one anything, nor attach its probe. */
static double unwanted(const struct workload *w)
{
	static const struct workload other = { .provider = "process", .events = { "sched_process_exec" } };
	struct series none, idle;
	struct cost c;
	int fd, probes = 0;

	none = measure(w, reps);
	fd = session_create("cost-other", ETW_SESSION_OVERWRITE);
	session_enable(fd, &other, 0);
	for (int i = 0; i < 2 && w->events[i]; i++) {
		int n = probes_attached(w->events[i]);

		if (n)
			probes = n;
	}
	idle = measure(w, reps);
	close(fd);
	c = added(w, &none, &idle);
	result(probes == 0 && c.typical <= GOAL_NOTHING && c.typical >= -GOAL_NOTHING,
	       "%s, no session wants it: %.0f instructions an event (min %.0f, max %.0f), %s", w->label, c.typical,
	       c.min, c.max, probes == 0 ? "no probe attached" :
	       probes < 0 ? "whether a probe is attached cannot be read" : "a probe is attached");
	return c.typical;
}

/* The probe check itself must be able to see a probe. */
static void check_probe_check(const struct workload *w)
{
	int fd = session_create("cost-probe", ETW_SESSION_OVERWRITE), before, during, after;

	before = probes_attached(w->events[0]);
	session_enable(fd, w, 0);
	during = probes_attached(w->events[0]);
	session_disable(fd, w);
	after = probes_attached(w->events[0]);
	close(fd);
	result(before == 0 && during > 0 && after == 0,
	       "the probe of %s is attached by ENABLE and gone after DISABLE (%d, %d, %d)", w->label, before, during,
	       after);
}

static void workload_costs(const struct workload *w, pid_t stranger)
{
	static const struct setup one[] = {
		{ 1, ETW_SESSION_OVERWRITE, false, 0 },
		{ 2, ETW_SESSION_OVERWRITE, false, 0 },
		{ 4, ETW_SESSION_OVERWRITE, false, 0 },
	};
	const int goal = strcmp(w->label, "sched_switch") ? GOAL_EVENT : GOAL_SWITCH;
	const struct setup read = { 1, 0, true, 0 }, rejected = { 1, ETW_SESSION_OVERWRITE, false, stranger };
	const char *why, *problem = NULL;
	struct cost c[3], reading, filtered;
	double more, nothing;

	for (int i = 0; i < 3; i++) {
		c[i] = run(w, &one[i], &why);
		if (i == 0)
			report(w, "one session that overwrites", c[0], goal, why);
		if (why)
			problem = why;
	}
	more = further(w, c, problem);
	reading = run(w, &read, &why);
	report(w, "one session with a reader", reading, goal, why);
	filtered = run(w, &rejected, &why);
	report(w, "rejected by pid", filtered, GOAL_REJECTED, why);
	nothing = unwanted(w);
	printf("# cost of %s, instructions an event: one session %.0f, with a reader %.0f, a further session %.0f, ",
	       w->label, c[0].typical, reading.typical, more);
	printf("rejected by pid %.0f, unwanted %.0f\n", filtered.typical, nothing);
}

/* One session and a few events, for cost_profile to step through. @only: the pid that the filter lets pass, or 0. */
static int profile(const struct workload *w, int n, pid_t only)
{
	int fd = session_create("profile", ETW_SESSION_OVERWRITE);

	session_enable(fd, w, only);
	for (int i = 0; i < 4; i++) {
		w->run(n);
		if (w->after)
			w->after(n);
	}
	session_disable(fd, w);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "reps", required_argument, NULL, 'r' },
		{ "profile", required_argument, NULL, 'p' },
		{ "rejected", no_argument, NULL, 'x' },
		{ "cycles", no_argument, NULL, 'c' },
		{}
	};
	const char *only = NULL;
	bool rejected = false;
	pid_t stranger;
	int opt;

	while ((opt = getopt_long(argc, argv, "r:p:xc", options, NULL)) != -1) {
		if (opt == 'r') {
			reps = atoi(optarg);
		} else if (opt == 'p') {
			only = optarg;
		} else if (opt == 'x') {
			rejected = true;
		} else if (opt == 'c') {
			session_clock = ETW_CLOCK_CYCLES;
		} else {
			fprintf(stderr, "usage: cost [--reps N] [--cycles] [--profile EVENT [--rejected]]\n");
			return 2;
		}
	}
	if (reps < 1 || reps > MAX_REPS) {
		fprintf(stderr, "cost: --reps is from 1 to %d\n", MAX_REPS);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	stranger = fork();
	if (stranger < 0)
		die("fork");
	if (!stranger) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	counted_prepare();
	control = open("/dev/etw", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/etw");

	for (int i = 0; only && i < NR_WORKLOADS; i++)
		if (!strcmp(only, workloads[i].label))
			return profile(&workloads[i], 64, rejected ? stranger : 0);
	if (only) {
		fprintf(stderr, "cost: %s: no such event\n", only);
		return 2;
	}

	printf("TAP version 13\n");
	if (!counts_instructions()) {
		printf("1..0 # SKIP needs QEMU's -icount: the time stamp counter does not count instructions here\n");
		return 0;
	}
	printf("1..%d\n", NR_WORKLOADS * (TESTS_PER_WORKLOAD + 1));
	for (int i = 0; i < NR_WORKLOADS; i++) {
		check_probe_check(&workloads[i]);
		workload_costs(&workloads[i], stranger);
	}
	kill(stranger, SIGKILL);
	return failed != 0;
}
