// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a traced event costs, in guest instructions, against the goals of the project; TAP. It owns the workloads and
 * the arithmetic and knows the ABI only. It must run alone on one CPU under -icount, where the time stamp counter
 * counts instructions: cost.md says why the figures can be trusted, and how to see which instructions they are.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <linux/etw.h>

#define MAX_REPS 31
#define MAX_SESSIONS 4
#define BLOCK_SIZE 4096
#define PAGE 4096

/* Instructions an event, each at most. */
#define GOAL_FURTHER 80		/* another session with the same clock */
#define GOAL_REJECTED 60	/* by the pid filter */
#define GOAL_NOTHING 5		/* no session wants the event: what remains is the noise of the measurement */

static int control = -1, device = -1;
static int reps = 7;
static int test_nr, failed;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(": %s\n", strerror(errno));
	exit(1);
}

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

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/*
 * Workloads: each runs @n iterations, of which each makes the events named.
 */

static char *pages;
static int to_peer[2], to_us[2];
static void *io_buffer;

/* Reading an untouched page maps the zero page: nothing is allocated, so the cost of a fault does not wander. */
static void run_faults(int n)
{
	for (int i = 0; i < n; i++)
		(void)*(volatile char *)(pages + (size_t)i * PAGE);
}

static void after_faults(int n)
{
	if (madvise(pages, (size_t)n * PAGE, MADV_DONTNEED))
		die("madvise");
}

static void run_reads(int n)
{
	for (int i = 0; i < n; i++)
		if (pread(device, io_buffer, BLOCK_SIZE, (off_t)(i & 1023) * BLOCK_SIZE) != BLOCK_SIZE)
			die("/dev/nullb0: read");
}

static void run_ping_pong(int n)
{
	char c = 'x';

	for (int i = 0; i < n; i++)
		if (write(to_peer[1], &c, 1) != 1 || read(to_us[0], &c, 1) != 1)
			die("pipe");
}

static void *peer(void *unused)
{
	char c;

	(void)unused;
	while (read(to_peer[0], &c, 1) == 1)
		if (write(to_us[1], &c, 1) != 1)
			die("pipe");
	return NULL;
}

static void after_nothing(int n)
{
	(void)n;
}

struct workload {
	const char *label;
	const char *provider;
	const char *events[2];
	unsigned int per_iteration;	/* events */
	int n;				/* iterations of one repetition: all records fit a default relay */
	int goal;
	void (*run)(int n);
	void (*after)(int n);
};

static const struct workload workloads[] = {
	{ "page_fault_user", "fault", { "page_fault_user" }, 1, 4096, 180, run_faults, after_faults },
	{ "block_rq_issue and _complete", "block", { "block_rq_issue", "block_rq_complete" }, 2, 3000, 180, run_reads,
	  after_nothing },
	{ "block_rq_issue", "block", { "block_rq_issue" }, 1, 3000, 180, run_reads, after_nothing },
	{ "block_rq_complete", "block", { "block_rq_complete" }, 1, 3000, 180, run_reads, after_nothing },
	{ "sched_switch", "sched", { "sched_switch" }, 2, 2500, 220, run_ping_pong, after_nothing },
};

#define NR_WORKLOADS (int)(sizeof(workloads) / sizeof(workloads[0]))
#define TESTS_PER_WORKLOAD 5

/*
 * Sessions.
 */

static int session_create(const char *name, __u32 flags)
{
	struct etw_session_create c = { .size = sizeof(c), .flags = flags, .clock = ETW_CLOCK_MONOTONIC };
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

struct series {
	double value[MAX_REPS];		/* sorted, instructions an iteration */
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The figure of a series: its lower quartile. Repetitions differ by less than one instruction, but for some of those of
 * the ping-pong, traced or not, that take 27 more an iteration from some moment on (housekeeping of the kernel); the
 * median would now and then compare one kind with the other.
 */
static double typical(const struct series *s)
{
	return s->value[reps / 4];
}

static struct series measure(const struct workload *w)
{
	const struct timespec drain = { .tv_nsec = 200000000 };
	struct series s;

	/* The first, short one warms up. */
	for (int r = -1; r < reps; r++) {
		int n = r < 0 ? w->n / 8 : w->n;
		uint64_t begin, end;

		nanosleep(&drain, NULL);
		begin = __rdtsc();
		w->run(n);
		end = __rdtsc();
		w->after(n);
		if (r >= 0)
			s.value[r] = (double)(end - begin) / n;
	}
	qsort(s.value, reps, sizeof(s.value[0]), compare);
	return s;
}

struct cost {
	double typical, min, max;	/* added instructions an event */
};

static struct cost added(const struct workload *w, const struct series *base, const struct series *traced)
{
	double m = typical(base);

	return (struct cost){
		(typical(traced) - m) / w->per_iteration,
		(traced->value[0] - m) / w->per_iteration,
		(traced->value[reps - 1] - m) / w->per_iteration,
	};
}

/* How many events of the workload the sessions must have seen: all repetitions and the warm-up. */
static uint64_t expected(const struct workload *w)
{
	return (uint64_t)w->per_iteration * ((uint64_t)w->n * reps + w->n / 8);
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
	base = measure(w);
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
	traced = measure(w);
	for (int i = 0; i < setup->nr; i++) {
		after = session_counts(fds[i]);
		if (after.lost != before[i].lost)
			*why = "events were lost";
		else if (setup->only && after.filtered - before[i].filtered < expected(w))
			*why = "fewer events were filtered than happened";
		else if (setup->only && after.written != before[i].written)
			*why = "an event passed the filter";
		else if (!setup->only && after.written - before[i].written < expected(w))
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

	none = measure(w);
	fd = session_create("cost-other", ETW_SESSION_OVERWRITE);
	session_enable(fd, &other, 0);
	for (int i = 0; i < 2 && w->events[i]; i++) {
		int n = probes_attached(w->events[i]);

		if (n)
			probes = n;
	}
	idle = measure(w);
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
	const struct setup read = { 1, 0, true, 0 }, rejected = { 1, ETW_SESSION_OVERWRITE, false, stranger };
	const char *why, *problem = NULL;
	struct cost c[3], reading, filtered;
	double more, nothing;

	for (int i = 0; i < 3; i++) {
		c[i] = run(w, &one[i], &why);
		if (i == 0)
			report(w, "one session that overwrites", c[0], w->goal, why);
		if (why)
			problem = why;
	}
	more = further(w, c, problem);
	reading = run(w, &read, &why);
	report(w, "one session with a reader", reading, w->goal, why);
	filtered = run(w, &rejected, &why);
	report(w, "rejected by pid", filtered, GOAL_REJECTED, why);
	nothing = unwanted(w);
	printf("# cost of %s, instructions an event: one session %.0f, with a reader %.0f, a further session %.0f, ",
	       w->label, c[0].typical, reading.typical, more);
	printf("rejected by pid %.0f, unwanted %.0f\n", filtered.typical, nothing);
}

/* 10,000 rounds of a loop of 4 instructions: exactly that many, plus a few, if the counter counts instructions. */
static bool counts_instructions(void)
{
	uint64_t begin, end, n = 10000, x = 0;

	begin = __rdtsc();
	asm volatile("1: add $1, %0\n\tadd $1, %0\n\tsub $1, %1\n\tjnz 1b"
		     : "+r"(x), "+r"(n));
	end = __rdtsc();
	printf("# 40000 instructions take %llu units of the time stamp counter\n", (unsigned long long)(end - begin));
	return end - begin >= 40000 && end - begin < 80000;
}

static void prepare(void)
{
	struct sched_param fifo = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity");
	/* Nothing else runs while a repetition does: not the reader, and no kernel thread of ordinary priority. */
	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	write_file("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
	write_file("/sys/block/nullb0/queue/scheduler", "none");
	control = open("/dev/etw", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/etw");
	device = open("/dev/nullb0", O_RDONLY | O_DIRECT);
	if (device < 0)
		die("/dev/nullb0 (modprobe null_blk queue_mode=2 irqmode=0 submit_queues=1)");
	io_buffer = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
	pages = mmap(NULL, (size_t)workloads[0].n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!io_buffer || pages == MAP_FAILED)
		die("memory");
	memset(io_buffer, 0, BLOCK_SIZE);
	madvise(pages, (size_t)workloads[0].n * PAGE, MADV_NOHUGEPAGE);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo))
		die("real-time priority");
}

/* One session and a few events, for cost_profile to step through. @only: the pid that the filter lets pass, or 0. */
static int profile(const struct workload *w, int n, pid_t only)
{
	int fd = session_create("profile", ETW_SESSION_OVERWRITE);

	session_enable(fd, w, only);
	for (int i = 0; i < 4; i++) {
		w->run(n);
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
		{}
	};
	pthread_attr_t attr;
	const char *only = NULL;
	bool rejected = false;
	pthread_t thread;
	pid_t stranger;
	int opt;

	while ((opt = getopt_long(argc, argv, "r:p:x", options, NULL)) != -1) {
		if (opt == 'r') {
			reps = atoi(optarg);
		} else if (opt == 'p') {
			only = optarg;
		} else if (opt == 'x') {
			rejected = true;
		} else {
			fprintf(stderr, "usage: cost [--reps N] [--profile EVENT [--rejected]]\n");
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
	prepare();
	if (pipe(to_peer) || pipe(to_us))
		die("pipe");
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &(struct sched_param){ .sched_priority = 1 });
	errno = pthread_create(&thread, &attr, peer, NULL);
	if (errno)
		die("thread");

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
