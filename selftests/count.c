// SPDX-License-Identifier: GPL-2.0-only
/*
 * A lossless session against an independent count: etw-count (libbpf, nothing of ours) counts seven events per CPU
 * between two markers that the session records too, while a real workload runs; both must have the same number of each,
 * on each CPU, to the event; only the sum where a task can move between one probe of an event and the next. TAP. It
 * knows the ABI and etw-count's output only; count.bpf.c says why the interval is exact. A kernel without BTF skips it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

#define BEGIN_COMM "etw-count-begin"
#define END_COMM "etw-count-end"
#define BTF "/sys/kernel/btf/vmlinux"
#define MAX_CPUS 64
#define ATTEMPTS 5	/* a run in which a BPF program was interrupted by itself is not valid */

/*
 * Class names, and what etw-count calls them. At least this many must have happened, or the workload did not work. Some
 * come from code that can be preempted.
 */
static const struct {
	const char *class;
	const char *counted;
	unsigned long long least;
	bool preemptible;
} events[] = {
	{ "sched_switch", "sched_switch", 4000, false },
	{ "sched_wakeup", "sched_wakeup", 2000, false },
	{ "sched_process_fork", "sched_process_fork", 100, true },
	{ "sched_process_exec", "sched_process_exec", 50, true },
	{ "block_rq_issue", "block_rq_issue", 2000, true },
	{ "block_rq_complete", "block_rq_complete", 2000, true },
	{ "page_fault_user", "x86_exceptions_page_fault_user", 4000, true },
};

#define NR_EVENTS (int)(sizeof(events) / sizeof(events[0]))

enum state { BEFORE, INSIDE, AFTER };

struct cpu {
	enum state state;
	uint64_t begin, end;
	unsigned long long events[NR_EVENTS];
};

static struct cpu ours[MAX_CPUS], theirs[MAX_CPUS];

static void see(const struct event *event, void *unused)
{
	struct cpu *cpu = &ours[event->cpu];

	if (event->cpu >= MAX_CPUS)
		return;
	if (event_is(event, "sched_switch")) {
		const char *comm = event_text(event, "prev_comm");

		if (cpu->state == BEFORE && !strcmp(comm, BEGIN_COMM)) {
			cpu->state = INSIDE;
			cpu->begin = event->time;
			return;
		}
		if (cpu->state == INSIDE && !strcmp(comm, END_COMM)) {
			cpu->state = AFTER;
			cpu->end = event->time;
			return;
		}
	}
	if (cpu->state != INSIDE)
		return;
	for (int i = 0; i < NR_EVENTS; i++)
		if (event_is(event, events[i].class))
			cpu->events[i]++;
}

/* What the counted command does: several processes at once, so that both CPUs are busy and interrupt each other. */
static int load(void)
{
	pid_t pids[5];
	int bad = 0;

	for (int i = 0; i < 5; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		switch (i) {
		case 0:
			for (int n = 0; n < 60; n++) {
				pid_t pid = vfork();

				if (!pid) {
					execl("/bin/busybox", "true", NULL);
					_exit(127);
				}
				waitpid(pid, NULL, 0);
			}
			_exit(0);
		case 1:
			work_fork(100);
			_exit(0);
		case 2:
			_exit(work_read("/dev/nullb0", 3000) != 0);
		case 3:
			work_pingpong(2500, -1);
			_exit(0);
		case 4:
			for (int n = 0; n < 8; n++)
				work_touch(600);
			_exit(0);
		}
	}
	for (int i = 0; i < 5; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			bad = 1;
	}
	return bad;
}

/* Reads etw-count's output. False if there is none. */
static bool read_theirs(const char *path, unsigned long long *misses)
{
	char line[1024];
	FILE *f = fopen(path, "r");
	bool ended = false;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		unsigned int cpu;

		if (sscanf(line, "{\"misses\":%llu}", misses) == 1)
			ended = true;
		if (sscanf(line, "{\"cpu\":%u,", &cpu) != 1 || cpu >= MAX_CPUS)
			continue;
		theirs[cpu].state = AFTER;
		for (int i = 0; i < NR_EVENTS; i++) {
			char key[64];
			const char *at;

			snprintf(key, sizeof(key), "\"%s\":", events[i].counted);
			at = strstr(line, key);
			if (at)
				theirs[cpu].events[i] = strtoull(at + strlen(key), NULL, 10);
		}
	}
	fclose(f);
	return ended;
}

struct outcome {
	const char *error;	/* NULL, or what went wrong before anything could be compared */
	int status;		/* of etw-count */
	unsigned long long misses;
	uint64_t lost;
};

static struct outcome attempt(const char *self)
{
	static const char *const providers[] = { "sched", "process", "block", "fault" };
	char file[] = "/tmp/etw-count-XXXXXX";
	struct etw_session_create create;
	struct outcome o = {};
	struct etw_session_query q;
	struct reader reader;
	int session, fd;
	pid_t pid;

	memset(ours, 0, sizeof(ours));
	memset(theirs, 0, sizeof(theirs));
	create = session_small(unique("count"));
	create.subbuf_size = 1 << 20;
	create.nr_subbufs = 8;
	create.flush_ms = 100;
	session = session_make(device_open(), &create);
	if (session < 0) {
		o.error = "no session";
		return o;
	}
	if (reader_open(&reader, session, see, NULL)) {
		o.error = "no reader";
		return o;
	}
	for (int i = 0; i < 4; i++) {
		if (enable_all(session, providers[i]) != 1) {
			o.error = "ENABLE failed";
			return o;
		}
	}

	fd = mkstemp(file);
	close(fd);
	pid = fork();
	if (!pid) {
		execlp("etw-count", "etw-count", "-o", file, "--", self, "--load", NULL);
		_exit(127);
	}
	while (!waitpid(pid, &o.status, WNOHANG)) {
		reader_wait(&reader, 50);
		if (reader_drain(&reader) < 0)
			o.error = reader.error;
	}
	call(session, ETW_IOC_SESSION_STOP, NULL);
	for (int i = 0; i < 2; i++)
		if (reader_drain(&reader) < 0)
			o.error = reader.error;
	if (!o.error && sums_broken(session))
		o.error = sums_broken(session);
	q = session_query(session);
	for (int i = 0; i < ETW_NR_LOST; i++)
		o.lost += q.lost[i];
	if (!o.error && q.unread)
		o.error = "not everything was read";
	if (!o.error && !read_theirs(file, &o.misses))
		o.error = "etw-count wrote no counts";
	unlink(file);
	reader_close(&reader);
	close(session);
	return o;
}

/* From 7.0 on a tracepoint does not keep its caller on its CPU while its probes run one after the other. */
static bool probes_can_move(void)
{
	struct utsname u;

	return uname(&u) || atoi(u.release) >= 7;
}

int main(int argc, char **argv)
{
	int test = 0, failed = 0, marked = 0, cpus = 0;
	struct outcome o = {};
	char self[256];
	ssize_t len;
	bool ok;

	if (argc == 2 && !strcmp(argv[1], "--load"))
		return load();
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	if (access(BTF, F_OK)) {
		printf("1..0 # SKIP no %s, which etw-count needs\n", BTF);
		return 0;
	}
	printf("1..%d\n", NR_EVENTS + 4);
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0) {
		printf("Bail out! /proc/self/exe: %s\n", strerror(errno));
		return 1;
	}
	self[len] = '\0';
	if (access("/dev/nullb0", F_OK) && system("modprobe null_blk queue_mode=2 nr_devices=1"))
		printf("# null_blk cannot be loaded\n");

	for (int i = 0; i < ATTEMPTS; i++) {
		o = attempt(self);
		if (o.error || !o.misses)
			break;
		printf("# %llu calls of a BPF program were left out; again\n", o.misses);
	}
	ok = !o.error && WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0;
	printf("%sok %d - the workload ran in a session and under etw-count%s%s (status %#x)\n", ok ? "" : "not ",
	       ++test, o.error ? ": " : "", o.error ? o.error : "", o.status);
	failed += !ok;
	ok = !o.error && !o.misses;
	printf("%sok %d - etw-count was called for every event (%llu calls left out)\n", ok ? "" : "not ", ++test,
	       o.misses);
	failed += !ok;
	ok = !o.error && !o.lost;
	printf("%sok %d - the session lost nothing (%llu)\n", ok ? "" : "not ", ++test, (unsigned long long)o.lost);
	failed += !ok;

	for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
		cpus += theirs[cpu].state == AFTER;
		marked += theirs[cpu].state == AFTER && ours[cpu].state == AFTER;
	}
	ok = cpus == (int)cpus_online() && marked == cpus;
	printf("%sok %d - both saw both markers on each of %u CPUs (etw-count %d, both %d)\n", ok ? "" : "not ", ++test,
	       cpus_online(), cpus, marked);
	failed += !ok;

	for (int i = 0; i < NR_EVENTS; i++) {
		unsigned long long us = 0, them = 0;

		ok = true;
		for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
			us += ours[cpu].events[i];
			them += theirs[cpu].events[i];
			if (ours[cpu].events[i] != theirs[cpu].events[i]) {
				printf("# CPU %d, %s: session %llu, etw-count %llu\n", cpu, events[i].class,
				       ours[cpu].events[i], theirs[cpu].events[i]);
				ok = events[i].preemptible && probes_can_move();
			}
		}
		ok = ok && us == them && us >= events[i].least;
		printf("%sok %d - %s: session %llu, etw-count %llu, at least %llu\n", ok ? "" : "not ", ++test,
		       events[i].class, us, them, events[i].least);
		failed += !ok;
	}
	return failed != 0;
}
