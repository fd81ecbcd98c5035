// SPDX-License-Identifier: GPL-2.0-only
/*
 * The analysis of `etwctl summary` on made-up events with known answers. It is compiled with the analysis itself and
 * knows neither libetw nor traces.
 */
#include "../etwctl/summary_hist.c"
#include "../etwctl/summary_model.c"
#include "../etwctl/summary_proc.c"
#include "../etwctl/summary_task.c"
#include "../etwctl/summary_sched.c"
#include "../etwctl/summary_activity.c"
#include "../etwctl/summary_bio.c"
#include "../etwctl/summary_block.c"
#include "../etwctl/summary_fault.c"

#include <stdio.h>

static int nr, failed;
static bool bad;

#define EQ(a, b) do {											\
	long long a_ = (long long)(a), b_ = (long long)(b);						\
	if (a_ != b_) {											\
		printf("# line %d: %s is %lld, not %lld\n", __LINE__, #a, a_, b_);			\
		bad = true;										\
	}												\
} while (0)

static void done(const char *name)
{
	printf("%sok %d - %s\n", bad ? "not " : "", ++nr, name);
	failed += bad;
	bad = false;
}

static struct sum_text text(const char *s)
{
	return (struct sum_text){ s, strlen(s) };
}

/* The next events come from here. */
static struct summary *s;
static uint32_t on_cpu;
static int32_t by_tid, by_pid;
static uint32_t source;

static bool feed(struct sum_event e, enum sum_kind kind, uint64_t time)
{
	e.kind = kind;
	e.time = time;
	e.cpu = on_cpu;
	e.source = source;
	e.tid = by_tid;
	e.pid = by_pid;
	return summary_event(s, &e);
}

static void by(uint32_t cpu, int32_t tid, int32_t pid)
{
	on_cpu = cpu;
	by_tid = tid;
	by_pid = pid;
}

/* What an event says of a thread: the name and process it has by now. */
static struct sum_text name_of(int32_t tid)
{
	struct sum_thread *t = tid ? sum_thread_find(s, tid) : NULL;

	return text(t && t->comm[0] ? t->comm : "n");
}

static int32_t pid_of(int32_t tid)
{
	struct sum_thread *t = tid ? sum_thread_find(s, tid) : NULL;

	return t && !t->proc->provisional ? t->proc->pid : tid;
}

/* @state: as prev_state, or 'p' for preempted */
static void sw(uint64_t time, uint32_t cpu, int32_t prev, int64_t state, int32_t next)
{
	struct sum_event e = { .sw = { .prev_comm = name_of(prev), .next_comm = name_of(next), .prev_tid = prev,
				       .next_tid = next, .prev_state = state == 'p' ? 0 : state, .preempt = state == 'p' } };

	by(cpu, prev, pid_of(prev));
	feed(e, SUM_SWITCH, time);
}

static void wake(enum sum_kind kind, uint64_t time, uint32_t cpu, int32_t by_whom, int32_t tid)
{
	struct sum_event e = { .task = { .name = name_of(tid), .tid = tid } };

	by(cpu, by_whom, pid_of(by_whom));
	feed(e, kind, time);
}

static void dump_task(int32_t tid, int32_t pid, const char *name, bool kernel)
{
	struct sum_event e = { .task = { .name = text(name), .tid = tid, .pid = pid, .kernel = kernel } };

	by(0, tid, pid);
	feed(e, SUM_DUMP_TASK, 1);
}

static void blk(enum sum_kind kind, uint64_t time, uint32_t dev, uint64_t sector, uint32_t n, uint32_t rwbs)
{
	struct sum_event e = { .blk = { .comm = name_of(by_tid), .sector = sector, .dev = dev, .nr = n, .rwbs = rwbs,
					.tid = by_tid } };

	feed(e, kind, time);
}

static void dump_disk(uint32_t dev, const char *name)
{
	struct sum_event e = { .disk = { .name = text(name), .dev = dev } };

	by(0, 1, 1);
	feed(e, SUM_DUMP_DISK, 1);
}

static struct sum_proc *proc_of(int32_t pid)
{
	static struct sum_proc none;

	for (struct sum_proc *p = s->all; p; p = p->next)
		if (!p->root && p->pid == pid)
			return p;
	return &none;
}

static struct sum_share *share(int32_t pid, uint32_t dev)
{
	static struct sum_share none;
	struct sum_share *sh, *tmp;

	HASH_ITER(hh, s->shares, sh, tmp)
		if (sh->key.proc->pid == pid && sh->key.disk->dev == dev)
			return sh;
	return &none;
}

static void begin(const struct sum_filter *f, const struct sum_gap *gaps, unsigned int nr_gaps)
{
	s = summary_new(f, gaps, nr_gaps);
	source = 0;
}

/* All there is of the trace is known to the end. */
static void finish(uint64_t time)
{
	s->last_switch = time;
	summary_finish(s, time);
}

static void end(const char *name)
{
	summary_free(s);
	done(name);
}

/* ---------------------------------------------------------------- histogram */

static void test_hist(void)
{
	struct sum_hist h = { 0 }, g = { 0 };
	uint64_t v = 1;

	for (uint64_t i = 1; i <= 1000; i++)
		sum_hist_add(&h, i);
	EQ(h.count, 1000);
	EQ(h.sum, 500500);
	EQ(h.min, 1);
	EQ(h.max, 1000);
	EQ(sum_hist_quantile(&h, 1000), 1000);
	EQ(sum_hist_quantile(&h, 0), 1);
	EQ(sum_hist_quantile(&h, 50), 50);
	EQ(sum_hist_quantile(&h, 500) >= 496 && sum_hist_quantile(&h, 500) <= 504, 1);
	EQ(sum_hist_quantile(&h, 990) >= 982 && sum_hist_quantile(&h, 990) <= 998, 1);
	sum_hist_merge(&g, &h);
	sum_hist_add(&g, 0);
	EQ(g.count, 1001);
	EQ(g.min, 0);
	EQ(sum_hist_quantile(&g, 1000), 1000);
	sum_hist_clear(&h);
	sum_hist_clear(&g);
	EQ(sum_hist_quantile(&h, 500), 0);
	done("histogram: quantiles, merge, empty");

	/* Three values with the middle one asked for, over the whole range: its error is below 1/128. */
	for (int bits = 0; bits < 63; bits++) {
		for (int k = 0; k < 50; k++) {
			uint64_t x, q;

			v = v * 6364136223846793005ULL + 1442695040888963407ULL;
			x = (v >> (63 - bits)) | 1ULL << bits;
			sum_hist_add(&h, 0);
			sum_hist_add(&h, x);
			sum_hist_add(&h, UINT64_MAX);
			q = sum_hist_quantile(&h, 500);
			EQ((q > x ? q - x : x - q) <= x / 128, 1);
			sum_hist_clear(&h);
		}
	}
	sum_hist_add(&h, UINT64_MAX);
	EQ(sum_hist_quantile(&h, 500) == UINT64_MAX, 1);
	sum_hist_clear(&h);
	done("histogram: error below 1/128 over 64 bits");
}

/* The 1000 quantiles of a histogram are those of the sorted values, to its precision. */
static void same_quantiles(const struct sum_hist *h, const uint64_t *sorted, int n)
{
	for (int per_mille = 1; per_mille <= 1000; per_mille++) {
		uint64_t x = sorted[((uint64_t)n * per_mille + 999) / 1000 - 1], q = sum_hist_quantile(h, per_mille);

		EQ((q > x ? q - x : x - q) <= x / 128, 1);
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* As a list, as rows, on the way from one to the other, and both merged with both. */
static void test_hist_few(void)
{
	static const int sizes[] = { 1, 3, 4, 5, 16, SUM_HIST_FEW - 1, SUM_HIST_FEW, SUM_HIST_FEW + 1, 200 };
	uint64_t values[400], v = 1;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned int k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			struct sum_hist h = { 0 }, g = { 0 };
			int n = sizes[i] + sizes[k];

			/* Octaves apart, so that nearly each has a bucket of its own; every fifth is there twice. */
			for (int at = 0; at < n; at++) {
				v = v * 6364136223846793005ULL + 1442695040888963407ULL;
				values[at] = at % 5 == 4 ? values[at - 1] : v >> (v >> 8) % 60;
				sum_hist_add(at < sizes[i] ? &h : &g, values[at]);
			}
			EQ(h.rows != NULL, sizes[i] > SUM_HIST_FEW + SUM_HIST_FEW / 4);
			sum_hist_merge(&h, &g);
			EQ(h.count, n);
			qsort(values, n, sizeof(values[0]), by_value);
			same_quantiles(&h, values, n);
			sum_hist_clear(&h);
			sum_hist_clear(&g);
		}
	}
	done("histogram: few values and many, merged");
}

/* ---------------------------------------------------------------- who ran */

static void test_edges(void)
{
	begin(NULL, NULL, 0);
	/* CPU 0: 10 ran before the first switch, 20 until the end. CPU 1: 30 ran all the time, a wake-up tells. */
	sw(1000, 0, 10, 1, 20);
	wake(SUM_WAKING, 1500, 1, 30, 10);
	wake(SUM_WAKEUP, 1510, 1, 30, 10);
	sw(1700, 0, 20, 'p', 10);
	sw(2000, 0, 10, 1, 20);
	/* CPU 2: 40 from the recording's begin although its first switch is late; then idle */
	sw(2500, 2, 40, 2, 0);
	finish(3000);
	EQ(proc_of(10)->run.cpu_ns, 300);
	EQ(proc_of(10)->run.wait_ns, 200);
	EQ(proc_of(10)->run.wakeup.count, 1);
	EQ(proc_of(10)->run.wakeup.max, 200);
	EQ(proc_of(10)->run.switches, 2);
	EQ(proc_of(20)->run.cpu_ns, 700 + 1000);
	EQ(proc_of(20)->run.wait_ns, 300);
	EQ(proc_of(20)->run.switches, 1);
	EQ(proc_of(20)->run.preempted, 1);
	EQ(proc_of(20)->run.wakeup.count, 0);
	EQ(proc_of(30)->run.cpu_ns, 2000);
	EQ(proc_of(40)->run.cpu_ns, 1500);
	EQ(s->idle->run.cpu_ns, 500);
	EQ(s->cpus[2].idle_ns, 500);
	EQ(s->cpus[0].busy_ns, 2000);
	EQ(s->cpus[0].unknown_ns + s->cpus[1].unknown_ns + s->cpus[2].unknown_ns, 0);
	EQ(s->missed_switches, 0);
	end("who ran: edges of the trace");

	begin(NULL, NULL, 0);
	summary_sched_from(s, 100);
	sw(1000, 0, 10, 1, 0);
	sw(1200, 1, 0, 0, 11);
	summary_cpu_end(s, 1, 1500);
	finish(2000);
	EQ(proc_of(10)->run.cpu_ns, 900);
	EQ(proc_of(11)->run.cpu_ns, 300);
	EQ(s->cpus[1].idle_ns, 1100);
	EQ(s->cpus[1].unknown_ns, 500);
	end("who ran: known begin, one CPU cut off");
}

static void test_wake_race(void)
{
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	/* woken on its way off the CPU: runnable from the moment it is off */
	wake(SUM_WAKING, 190, 1, 30, 10);
	sw(200, 0, 10, 1, 11);
	wake(SUM_WAKEUP, 205, 0, 11, 10);
	sw(300, 0, 11, 1, 10);
	EQ(proc_of(10)->run.wakeup.count, 1);
	EQ(proc_of(10)->run.wakeup.max, 100);
	/* woken before it was off, so it never slept; later it sleeps for real, and that wake-up counts */
	wake(SUM_WAKING, 350, 1, 30, 10);
	wake(SUM_WAKEUP, 351, 1, 30, 10);
	sw(400, 0, 10, 1, 0);
	wake(SUM_WAKING, 500, 1, 30, 10);
	wake(SUM_WAKEUP, 501, 0, 0, 10);
	sw(520, 0, 0, 0, 10);
	EQ(proc_of(10)->run.wakeup.count, 2);
	EQ(proc_of(10)->run.wakeup.min, 20);
	/* without waking events, wakeup is the begin, and one that comes while it runs is none */
	wake(SUM_WAKEUP, 590, 1, 30, 10);
	sw(600, 0, 10, 1, 0);
	wake(SUM_WAKEUP, 700, 1, 30, 10);
	sw(707, 0, 0, 0, 10);
	EQ(proc_of(10)->run.wakeup.min, 7);
	/* preemption is no wake-up, also when a waking without effect came before */
	wake(SUM_WAKING, 750, 1, 30, 10);
	sw(760, 0, 10, 'p', 11);
	sw(770, 0, 11, 1, 10);
	EQ(proc_of(10)->run.wakeup.count, 3);
	EQ(proc_of(10)->run.wait_ns, 100 + 20 + 7 + 10);
	/* preempted on its way to sleep, and woken then: it never slept, and waited since it left; later it sleeps for real */
	sw(800, 0, 10, 'p', 11);
	wake(SUM_WAKING, 830, 0, 11, 10);
	wake(SUM_WAKEUP, 831, 0, 11, 10);
	sw(840, 0, 11, 1, 10);
	EQ(proc_of(10)->run.wakeup.count, 3);
	EQ(proc_of(10)->run.wait_ns, 100 + 20 + 7 + 10 + 40);
	sw(850, 0, 10, 1, 0);
	wake(SUM_WAKING, 870, 1, 30, 10);
	wake(SUM_WAKEUP, 871, 1, 30, 10);
	sw(873, 0, 0, 0, 10);
	EQ(proc_of(10)->run.wakeup.count, 4);
	EQ(proc_of(10)->run.wakeup.min, 3);
	finish(1000);
	EQ(s->missed_switches, 0);
	end("who ran: wake-ups that race with going to sleep");
}

static void test_lives(void)
{
	struct sum_event f = { .fork = { .child_name = text("sh"), .parent_tid = 10, .child_tid = 50, .child_pid = 50 } };
	struct sum_event x = { .task = { .name = text("/usr/bin/gcc"), .tid = 50, .old_tid = 50 } };

	begin(NULL, NULL, 0);
	dump_task(2, 2, "kthreadd", true);
	dump_task(7, 7, "kworker/0:1", true);
	dump_task(10, 10, "make", false);
	dump_task(11, 10, "helper", false);
	sw(100, 0, 0, 0, 10);
	by(0, 10, 10);
	feed(f, SUM_FORK, 110);
	wake(SUM_WAKEUP_NEW, 120, 0, 10, 50);
	sw(150, 0, 10, 1, 50);
	by(0, 50, 50);
	feed(x, SUM_EXEC, 160);
	EQ(strcmp(proc_of(50)->name, "gcc"), 0);
	sw(200, 0, 50, 0x20, 11);
	EQ(proc_of(50)->run.cpu_ns, 50);
	EQ(proc_of(50)->run.wakeup.max, 30);
	EQ(sum_thread_find(s, 50) == NULL, 1);
	sw(300, 0, 11, 1, 0);
	EQ(proc_of(10)->run.cpu_ns, 50 + 100);
	EQ(proc_of(10)->threads, 2);
	EQ(strcmp(proc_of(10)->name, "make"), 0);
	/* the number again: another process */
	by(0, 10, 10);
	sw(310, 0, 0, 0, 10);
	by(0, 10, 10);
	f.fork.child_name = text("other");
	feed(f, SUM_FORK, 320);
	wake(SUM_WAKEUP_NEW, 321, 0, 10, 50);
	sw(330, 0, 10, 1, 50);
	sw(390, 0, 50, 0x10, 0);
	finish(400);
	EQ(proc_of(7)->kernel, 1);
	EQ(proc_of(10)->kernel, 0);
	{
		int n = 0;

		for (struct sum_proc *p = s->all; p; p = p->next)
			if (p->pid == 50 && !p->root) {
				EQ(p->run.cpu_ns, n ? 60 : 50);
				EQ(strcmp(p->name, n ? "other" : "gcc"), 0);
				n++;
			}
		EQ(n, 2);
	}
	end("who ran: fork, exec, threads, exit, a number used again");

	/* A thread whose process shows late: what it did before goes there. Another thread's exec takes the leader's number. */
	begin(NULL, NULL, 0);
	by(0, 0, 0);
	{
		struct sum_event e = { .sw = { .prev_comm = text("swapper/0"), .next_comm = text("n"), .next_tid = 61 } };

		feed(e, SUM_SWITCH, 100);
	}
	by(0, 61, 60);
	{
		struct sum_event e = { .sw = { .prev_comm = text("n"), .next_comm = text("n"), .prev_tid = 61, .prev_state = 1,
					       .next_tid = 61 } };

		e.sw.next_tid = 0;
		feed(e, SUM_SWITCH, 150);
	}
	sw(200, 0, 0, 0, 61);
	by(0, 60, 60);
	{
		struct sum_event e = { .task = { .name = text("./new"), .tid = 60, .old_tid = 61 } };

		feed(e, SUM_EXEC, 220);
	}
	sw(300, 0, 60, 1, 0);
	finish(400);
	EQ(proc_of(60)->run.cpu_ns, 150);
	EQ(proc_of(60)->run.switches, 2);
	EQ(proc_of(61)->pid, 0);
	EQ(strcmp(proc_of(60)->name, "new"), 0);
	EQ(s->missed_switches, 0);
	end("who ran: process known late, exec by another thread");
}

/* Memory is as much as there were processes: a thread whose process is told when it is first seen needs no other for a while. */
static void test_rows(void)
{
	struct sum_event f = { .fork = { .child_name = text("sh"), .parent_tid = 10 } };
	int n = 0;

	begin(NULL, NULL, 0);
	dump_task(10, 10, "make", false);
	for (int i = 0; i < 100; i++) {
		f.fork.child_tid = f.fork.child_pid = 100 + i % 50;	/* each number twice */
		by(0, 10, 10);
		feed(f, SUM_FORK, 10 + 10 * i);
		f.fork.child_tid += 1000;				/* a thread of it */
		by(0, f.fork.child_pid, f.fork.child_pid);
		feed(f, SUM_FORK, 11 + 10 * i);
		by(1, 2000 + i, f.fork.child_pid);			/* and one that nothing told of */
		feed((struct sum_event){ 0 }, SUM_OTHER, 12 + 10 * i);
	}
	finish(2000);
	for (struct sum_proc *p = s->all; p; p = p->next)
		n++;
	EQ(n, 100 + 3);	/* and make, idle, writeback */
	EQ(proc_of(100)->threads, 3);
	end("who ran: a row for each process, and no more");
}

static void test_loss(void)
{
	static const struct sum_gap gaps[] = { { .cpu = 0, .from = 1000, .to = 2000 } };

	begin(NULL, gaps, 1);
	sw(100, 0, 0, 0, 10);
	wake(SUM_WAKING, 900, 0, 10, 12);
	wake(SUM_WAKING, 950, 0, 10, 14);
	wake(SUM_WAKING, 950, 0, 10, 15);
	/* lost: 10 off, 11 on and off, 14 on, off, woken again; 15 on and off */
	wake(SUM_WAKING, 2100, 0, 12, 13);
	wake(SUM_WAKING, 2150, 0, 12, 15);
	sw(2200, 0, 12, 1, 13);
	sw(2300, 0, 13, 1, 14);
	sw(2310, 0, 14, 1, 15);
	finish(2400);
	EQ(proc_of(15)->run.wakeup.count, 1);
	EQ(proc_of(15)->run.wakeup.max, 160);
	EQ(proc_of(14)->run.wakeup.count, 0);
	EQ(proc_of(14)->run.wait_ns, 0);
	EQ(proc_of(10)->run.cpu_ns, 850);
	EQ(s->cpus[0].unknown_ns, 1150);
	EQ(proc_of(12)->run.cpu_ns, 100);
	EQ(proc_of(12)->run.wakeup.count, 0);
	EQ(proc_of(13)->run.cpu_ns, 100);
	EQ(proc_of(13)->run.wakeup.max, 100);
	end("loss: nobody is credited for the gap, no latency across it");

	/* Packets that each lost something are one window with events in it: 10 may have left and come back in between. */
	begin(NULL, gaps, 1);
	sw(900, 0, 0, 0, 10);
	wake(SUM_WAKING, 1100, 0, 10, 12);
	wake(SUM_WAKING, 1900, 0, 10, 12);
	wake(SUM_WAKING, 2100, 0, 10, 12);
	sw(2200, 0, 10, 1, 0);
	finish(2300);
	EQ(proc_of(10)->run.cpu_ns, 100);
	EQ(s->cpus[0].unknown_ns, 1200);
	EQ(s->cpus[0].idle_ns, 100);
	EQ(s->missed_switches, 0);
	end("loss: events within its window vouch for their moment only");

	/* A switch missed without notice: the other events of the CPU disagree. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	wake(SUM_WAKING, 500, 0, 10, 12);
	wake(SUM_WAKING, 800, 0, 11, 13);
	sw(900, 0, 11, 1, 0);
	finish(1000);
	EQ(s->missed_switches, 1);
	EQ(proc_of(10)->run.cpu_ns, 400);
	EQ(proc_of(11)->run.cpu_ns, 100);
	EQ(s->cpus[0].unknown_ns, 300);
	EQ(s->idle->run.cpu_ns, 100);
	end("loss: a missed switch is noticed");
}

static void test_filter(void)
{
	static const int32_t pids[] = { 10 };
	static const uint32_t cpus[] = { 0 };
	char *comms[] = { "k*" };
	struct sum_filter f = { .from = 200, .to = 400, .pids = pids, .nr_pids = 1 };

	begin(&f, NULL, 0);
	sw(100, 0, 0, 0, 10);
	sw(300, 0, 10, 1, 11);
	wake(SUM_WAKING, 350, 0, 11, 10);
	sw(380, 0, 11, 1, 10);
	by(0, 10, 10);
	feed((struct sum_event){ .fault = { .address = 0x1000000 } }, SUM_FAULT_USER, 390);
	feed((struct sum_event){ .fault = { .address = 0x1000000 } }, SUM_FAULT_USER, 410);
	finish(500);
	EQ(proc_of(10)->run.cpu_ns, 100 + 20);
	EQ(proc_of(10)->run.wakeup.count, 1);
	EQ(proc_of(11)->run.cpu_ns, 0);
	EQ(s->faults.total, 1);
	end("filter: time window and pid");

	f = (struct sum_filter){ .cpus = cpus, .nr_cpus = 1, .comms = comms, .nr_comms = 1 };
	begin(&f, NULL, 0);
	dump_task(10, 10, "kate", false);
	dump_task(11, 11, "vi", false);
	by(0, 10, 10);
	feed((struct sum_event){ .fault = { .address = 0x1000000 } }, SUM_FAULT_USER, 10);
	by(1, 10, 10);
	feed((struct sum_event){ .fault = { .address = 0x1000000 } }, SUM_FAULT_USER, 11);
	by(0, 11, 11);
	feed((struct sum_event){ .fault = { .address = 0x1000000 } }, SUM_FAULT_USER, 12);
	finish(100);
	EQ(s->faults.total, 1);
	end("filter: cpu and name");
}

static void test_two_traces(void)
{
	begin(NULL, NULL, 0);
	for (source = 0; source < 2; source++)
		sw(100, 0, 0, 0, 10);
	source = 0;
	sw(200, 0, 10, 1, 0);
	source = 1;
	sw(200, 0, 10, 1, 0);
	by(0, 0, 0);
	blk(SUM_BIO_QUEUE, 200, 1, 5, 8, SUM_RWBS_READ);
	source = 0;
	blk(SUM_BIO_QUEUE, 200, 1, 5, 8, SUM_RWBS_READ);
	finish(300);
	EQ(s->duplicates, 3);
	EQ(proc_of(10)->run.switches, 1);
	EQ(proc_of(10)->run.cpu_ns, 100);
	EQ(s->kind_count[SUM_BIO_QUEUE], 1);
	end("two traces of one machine: the same event counts once");

	/* The last switch of all ends what is known: what another trace, or another hook, tells afterwards proves nothing. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	wake(SUM_FREE, 200, 0, 10, 77);
	wake(SUM_FREE, 250, 1, 12, 77);
	sw(300, 1, 12, 1, 0);
	source = 1;
	wake(SUM_FREE, 500, 0, 11, 78);
	wake(SUM_FREE, 700, 1, 10, 79);
	summary_finish(s, 1000);
	EQ(proc_of(10)->run.cpu_ns, 200);
	EQ(proc_of(11)->run.cpu_ns, 0);
	EQ(proc_of(12)->run.cpu_ns, 200);
	EQ(s->missed_switches, 0);
	EQ(s->cpus[0].busy_ns + s->cpus[0].unknown_ns, 200);
	end("who ran: known from the first switch to the last");
}

/* ---------------------------------------------------------------- disks */

#define SDA (8U << 20)
#define SDA1 (8U << 20 | 1)
#define R SUM_RWBS_READ
#define W SUM_RWBS_WRITE

static void test_disk(void)
{
	begin(NULL, NULL, 0);
	dump_disk(SDA1, "sda1");
	dump_disk(SDA, "sda");
	dump_task(7, 7, "kworker/u4:1", true);
	/* 10 reads by the partition; another thread inserts and issues, the interrupt hits a third */
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 100, SDA1, 2048, 8, R);
	by(0, 7, 7);
	blk(SUM_RQ_INSERT, 110, SDA, 2048, 8, R);
	blk(SUM_RQ_ISSUE, 120, SDA, 2048, 8, R);
	by(1, 99, 99);
	blk(SUM_RQ_COMPLETE, 200, SDA, 2048, 8, R);
	EQ(share(10, SDA)->io[SUM_READ].count, 1);
	EQ(share(10, SDA)->io[SUM_READ].bytes, 4096);
	EQ(share(10, SDA)->io[SUM_READ].latency.max, 100);
	EQ(sum_disk_find(s, SDA)->io[SUM_READ].service.max, 80);
	EQ(share(99, SDA)->io[SUM_READ].count + share(7, SDA)->io[SUM_READ].count, 0);

	/* two processes' bios merged into one request, completed in two parts */
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 300, SDA, 100, 8, R);
	by(0, 11, 11);
	blk(SUM_BIO_QUEUE, 310, SDA, 108, 16, R);
	blk(SUM_RQ_ISSUE, 320, SDA, 100, 24, R);
	blk(SUM_RQ_COMPLETE, 400, SDA, 100, 12, R);
	EQ(share(10, SDA)->io[SUM_READ].count, 2);
	EQ(share(11, SDA)->io[SUM_READ].count, 0);
	blk(SUM_RQ_COMPLETE, 450, SDA, 112, 12, R);
	EQ(share(11, SDA)->io[SUM_READ].count, 1);
	EQ(share(11, SDA)->io[SUM_READ].bytes, 8192);
	EQ(share(11, SDA)->io[SUM_READ].latency.max, 140);
	EQ(sum_disk_find(s, SDA)->io[SUM_READ].count, 2);
	EQ(sum_disk_find(s, SDA)->io[SUM_READ].service.max, 130);

	/* one bio split into three requests, issued and completed out of order; one of them issued again after a requeue */
	by(0, 12, 12);
	blk(SUM_BIO_QUEUE, 500, SDA, 1000, 300, W);
	blk(SUM_RQ_ISSUE, 510, SDA, 1200, 100, W);
	blk(SUM_RQ_ISSUE, 511, SDA, 1000, 100, W);
	blk(SUM_RQ_ISSUE, 512, SDA, 1100, 100, W);
	blk(SUM_RQ_ISSUE, 550, SDA, 1100, 100, W);
	blk(SUM_RQ_COMPLETE, 560, SDA, 1100, 100, W);
	blk(SUM_RQ_COMPLETE, 570, SDA, 1000, 100, W);
	EQ(share(12, SDA)->io[SUM_WRITE].count, 0);
	blk(SUM_RQ_COMPLETE, 580, SDA, 1200, 100, W);
	EQ(share(12, SDA)->io[SUM_WRITE].count, 1);
	EQ(share(12, SDA)->io[SUM_WRITE].bytes, 153600);
	EQ(share(12, SDA)->io[SUM_WRITE].latency.max, 80);
	EQ(sum_disk_find(s, SDA)->io[SUM_WRITE].count, 3);
	EQ(sum_disk_find(s, SDA)->io[SUM_WRITE].service.min, 10);
	EQ(sum_disk_find(s, SDA)->requeued, 1);

	/* two bios for the same sectors: both complete, the older first */
	by(0, 13, 13);
	blk(SUM_BIO_QUEUE, 600, SDA, 50, 8, R);
	by(0, 14, 14);
	blk(SUM_BIO_QUEUE, 610, SDA, 50, 8, R);
	blk(SUM_RQ_ISSUE, 620, SDA, 50, 8, R);
	blk(SUM_RQ_ISSUE, 621, SDA, 50, 8, R);
	blk(SUM_RQ_COMPLETE, 630, SDA, 50, 8, R);
	blk(SUM_RQ_COMPLETE, 650, SDA, 50, 8, R);
	EQ(share(13, SDA)->io[SUM_READ].latency.max, 30);
	EQ(share(14, SDA)->io[SUM_READ].latency.max, 40);

	/* written back by a kernel worker */
	by(0, 7, 7);
	blk(SUM_BIO_QUEUE, 700, SDA1, 5000, 8, W);
	blk(SUM_RQ_ISSUE, 701, SDA, 5000, 8, W);
	blk(SUM_RQ_COMPLETE, 702, SDA, 5000, 8, W);
	EQ(share(-1, SDA)->io[SUM_WRITE].count, 1);
	EQ(share(7, SDA)->io[SUM_WRITE].count, 0);

	/* issued before the trace; never completed; submission not seen */
	blk(SUM_RQ_COMPLETE, 800, SDA, 7777, 8, R);
	by(0, 15, 15);
	blk(SUM_BIO_QUEUE, 810, SDA, 9000, 8, R);
	blk(SUM_RQ_ISSUE, 820, SDA, 9100, 8, R);
	blk(SUM_RQ_COMPLETE, 830, SDA, 9100, 8, R);
	by(0, 16, 16);
	blk(SUM_RQ_INSERT, 840, SDA, 9200, 8, R);
	by(0, 7, 7);
	blk(SUM_RQ_ISSUE, 850, SDA, 9200, 8, R);
	blk(SUM_RQ_COMPLETE, 860, SDA, 9200, 8, R);
	blk(SUM_BIO_QUEUE, 900, SDA, 9300, 8, R);
	blk(SUM_RQ_ISSUE, 910, SDA, 9300, 8, R);
	finish(1000);
	EQ(sum_disk_find(s, SDA)->started_before, 1);
	EQ(sum_disk_find(s, SDA)->unfinished, 2);
	EQ(share(15, SDA)->guessed, 1);
	EQ(share(16, SDA)->io[SUM_READ].latency.max, 20);
	end("disk: partition, merge, split, partial, requeue, twins, writeback, edges");
}

static void test_flush(void)
{
	begin(NULL, NULL, 0);
	dump_disk(SDA, "sda");
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 100, SDA, 0, 0, W | SUM_RWBS_PREFLUSH);
	by(0, 11, 11);
	blk(SUM_BIO_QUEUE, 110, SDA, 0, 0, W | SUM_RWBS_PREFLUSH);
	by(0, 7, 7);
	blk(SUM_RQ_ISSUE, 120, SDA, 0, 0, SUM_RWBS_FLUSH);
	by(0, 12, 12);
	blk(SUM_BIO_QUEUE, 130, SDA, 0, 0, W | SUM_RWBS_PREFLUSH);
	blk(SUM_RQ_COMPLETE, 200, SDA, 0, 0, SUM_RWBS_FLUSH);
	blk(SUM_RQ_COMPLETE, 201, SDA, 0, 0, W | SUM_RWBS_PREFLUSH);
	EQ(share(10, SDA)->io[SUM_FLUSH].latency.max, 100);
	EQ(share(11, SDA)->io[SUM_FLUSH].latency.max, 90);
	EQ(share(12, SDA)->io[SUM_FLUSH].count, 0);
	EQ(sum_disk_find(s, SDA)->io[SUM_FLUSH].service.max, 80);
	/* a write with a flush before it is a write */
	by(0, 13, 13);
	blk(SUM_BIO_QUEUE, 300, SDA, 64, 8, W | SUM_RWBS_PREFLUSH);
	blk(SUM_RQ_ISSUE, 310, SDA, 0, 0, SUM_RWBS_FLUSH);
	blk(SUM_RQ_COMPLETE, 350, SDA, 0, 0, SUM_RWBS_FLUSH);
	blk(SUM_RQ_ISSUE, 360, SDA, 64, 8, W | SUM_RWBS_PREFLUSH);
	blk(SUM_RQ_COMPLETE, 400, SDA, 64, 8, W | SUM_RWBS_PREFLUSH);
	EQ(share(12, SDA)->io[SUM_FLUSH].count, 1);
	EQ(share(13, SDA)->io[SUM_WRITE].latency.max, 100);
	EQ(share(13, SDA)->io[SUM_FLUSH].count, 0);
	blk(SUM_BIO_QUEUE, 410, SDA, 64, 800, SUM_RWBS_DISCARD);
	blk(SUM_RQ_ISSUE, 420, SDA, 64, 800, SUM_RWBS_DISCARD);
	blk(SUM_RQ_COMPLETE, 430, SDA, 64, 800, SUM_RWBS_DISCARD);
	finish(500);
	EQ(share(13, SDA)->io[SUM_DISCARD].bytes, 409600);
	EQ(sum_disk_find(s, SDA)->unfinished, 0);
	end("disk: flushes and discards");
}

static void test_other_disks(void)
{
	/* No names: the partition is found by what its request covers. dm: no requests, completions of bios. */
	uint32_t dm = 253U << 20;

	begin(NULL, NULL, 0);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 100, SDA1, 2048, 8, R);
	blk(SUM_RQ_ISSUE, 120, SDA, 2048, 8, R);
	blk(SUM_BIO_QUEUE, 130, SDA1, 4096, 8, R);
	blk(SUM_RQ_COMPLETE, 200, SDA, 2048, 8, R);
	blk(SUM_RQ_ISSUE, 210, SDA, 4096, 8, R);
	blk(SUM_RQ_COMPLETE, 220, SDA, 4096, 8, R);
	blk(SUM_BIO_QUEUE, 300, dm, 64, 8, W);
	blk(SUM_BIO_QUEUE, 310, dm, 72, 8, W);
	blk(SUM_BIO_COMPLETE, 350, dm, 64, 8, W);
	blk(SUM_BIO_COMPLETE, 360, dm, 80, 0, W);
	finish(500);
	EQ(share(10, SDA)->io[SUM_READ].count, 2);
	EQ(share(10, SDA)->io[SUM_READ].latency.max, 100);
	EQ(share(10, SDA)->guessed, 0);
	EQ(share(10, dm)->io[SUM_WRITE].count, 2);
	EQ(share(10, dm)->io[SUM_WRITE].latency.max, 50);
	EQ(sum_disk_find(s, dm)->io[SUM_WRITE].count, 2);
	EQ(is_part_name("sda1", "sda") && is_part_name("nvme0n1p2", "nvme0n1"), 1);
	EQ(is_part_name("loop12", "loop1") || is_part_name("sdab", "sda") || is_part_name("sda", "sda"), 0);
	end("disk: partition without a name, device without requests");

	begin(NULL, NULL, 0);
	by(0, 1, 1);
	feed((struct sum_event){ .disk = { text("odd"), 259U << 20 | 7, SDA } }, SUM_DUMP_DISK, 1);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 100, 259U << 20 | 7, 2048, 8, R);
	blk(SUM_RQ_ISSUE, 120, SDA, 2048, 8, R);
	blk(SUM_RQ_COMPLETE, 200, SDA, 2048, 8, R);
	finish(500);
	EQ(share(10, SDA)->io[SUM_READ].latency.max, 100);
	EQ(share(10, SDA)->guessed, 0);
	end("disk: partition told by the rundown");

	/* Many bios and requests whose completions were lost: memory stays bounded. */
	begin(NULL, NULL, 0);
	by(0, 10, 10);
	for (unsigned int i = 0; i < 300000; i++) {
		blk(SUM_BIO_QUEUE, 100 + i, SDA, 8ULL * i, 8, R);
		if (i % 3 == 0)
			blk(SUM_RQ_ISSUE, 100 + i, SDA, 8ULL * i, 8, R);
	}
	EQ(sum_disk_find(s, SDA)->nr_bios <= MAX_WAITING, 1);
	EQ(sum_disk_find(s, SDA)->nr_rqs <= MAX_IN_FLIGHT, 1);
	finish(1000000);
	EQ(sum_disk_find(s, SDA)->unfinished, 300000);
	end("disk: lost completions do not pile up");
}

/* ---------------------------------------------------------------- faults */

static void test_faults(void)
{
	static const struct {
		uint64_t address;
		uint32_t code;
		enum sum_area area;
		enum sum_access access;
	} v[] = {
		{ 0x7ffd12345678, 0x6, SUM_AREA_STACK, SUM_WRITE_ACCESS },
		{ 0x7ffffffff000 - 8, 0x6, SUM_AREA_STACK, SUM_WRITE_ACCESS },
		{ 0x7f0012345000, 0x4, SUM_AREA_MAPPED, SUM_READ_ACCESS },
		{ 0x7f0012345000, 0x14, SUM_AREA_CODE, SUM_EXEC_ACCESS },
		{ 0x555555554000, 0x4, SUM_AREA_IMAGE, SUM_READ_ACCESS },
		{ 0x561234567000, 0x7, SUM_AREA_IMAGE, SUM_WRITE_ACCESS },
		{ 0x4c0000, 0x4, SUM_AREA_IMAGE, SUM_READ_ACCESS },
		{ 0x10, 0x4, SUM_AREA_NULL, SUM_READ_ACCESS },
		{ 0x100000000000, 0x4, SUM_AREA_OTHER, SUM_READ_ACCESS },
		{ 0xffff888012345000, 0x2, SUM_AREA_KERNEL, SUM_WRITE_ACCESS },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		EQ(sum_fault_area(v[i].address, v[i].code), v[i].area);
		EQ(sum_fault_access(v[i].code), v[i].access);
	}
	begin(NULL, NULL, 0);
	by(0, 11, 10);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		feed((struct sum_event){ .fault = { v[i].address, 1, v[i].code } },
		     v[i].area == SUM_AREA_KERNEL ? SUM_FAULT_KERNEL : SUM_FAULT_USER, 10 + i);
	feed((struct sum_event){ .fault = { 0, 0, 0 } }, SUM_FAULT_KERNEL, 50);
	finish(100);
	EQ(proc_of(10)->faults->total, 11);
	EQ(proc_of(10)->faults->by_kernel, 2);
	EQ(proc_of(10)->faults->protection, 1);
	EQ(proc_of(10)->faults->n[SUM_AREA_STACK][SUM_WRITE_ACCESS], 2);
	EQ(proc_of(10)->faults->n[SUM_AREA_HIDDEN][SUM_READ_ACCESS], 1);
	end("faults: areas, access, process of a thread");
}

/* ---------------------------------------------------------------- activities */

/* One character for an id, 0 none. */
static const uint8_t *id_of(char c)
{
	static uint8_t ids[128][16];

	if (c) {
		memset(ids[(int)c], c, 16);
		ids[(int)c][15] = 0;
	}
	return ids[(int)c];
}

static struct sum_text fields;

static void act_of(const char *provider, const char *name, enum sum_kind kind, uint64_t time, uint32_t cpu, int32_t tid, char id,
		   char related)
{
	struct sum_event e = { .act = { .provider = provider, .name = name, .id = id_of(id),
					.related = related ? id_of(related) : NULL, .fields = fields } };

	by(cpu, tid, pid_of(tid));
	feed(e, kind, time);
}

/* NAME may be "NameStart" and so on; it is all the same to WORK and SUSPEND. */
static void act(enum sum_kind kind, uint64_t time, uint32_t cpu, int32_t tid, char id, char related)
{
	act_of("Web", kind == SUM_START ? "RequestStart" : kind == SUM_STOP ? "RequestStop" : "Step", kind, time, cpu, tid, id,
	       related);
}

/* The one with this id that is kept, the n-th from 0 on. */
static struct sum_activity *kept(char id)
{
	static struct sum_activity never;

	for (unsigned int i = 0; i < s->nr_acts; i++)
		if (!memcmp(s->acts[i]->id, id_of(id), 16))
			return s->acts[i];
	return &never;
}

static struct sum_act_kind *act_kind(const char *name)
{
	static struct sum_act_kind never;

	for (struct sum_act_kind *k = s->act_kinds; k; k = k->next)
		if (!strcmp(k->name, name))
			return k;
	return &never;
}

/* Everything an activity did, and that it adds up. */
#define DID(a, cpu, waiting, disk, blocked, untold, idle) do {	\
	struct sum_activity *act_ = (a);					\
	uint64_t sum_ = 0;						\
									\
	EQ(act_->ns[SUM_ON_CPU], cpu);					\
	EQ(act_->ns[SUM_WAITING], waiting);				\
	EQ(act_->ns[SUM_ON_DISK], disk);					\
	EQ(act_->ns[SUM_BLOCKED], blocked);				\
	EQ(act_->ns[SUM_UNTOLD], untold);					\
	EQ(act_->ns[SUM_IDLE], idle);					\
	for (int i_ = 0; i_ < SUM_NR_DOING; i_++)			\
		sum_ += act_->ns[i_];					\
	EQ(sum_, act_->end - act_->begin);					\
} while (0)

static void test_activity(void)
{
	struct sum_activity *a;

	/* A request: it runs, reads the disk, waits for a lock while another I/O of its own is not needed, is preempted. */
	begin(NULL, NULL, 0);
	dump_task(11, 10, "worker", false);
	dump_disk(SDA, "sda");
	sw(100, 0, 0, 0, 11);
	fields = text("path=/report");
	act(SUM_START, 110, 0, 11, 'A', 0);
	fields = text("status=200");
	by(0, 11, 10);
	blk(SUM_BIO_QUEUE, 120, SDA1, 2048, 8, R);
	blk(SUM_RQ_ISSUE, 125, SDA, 2048, 8, R);
	sw(130, 0, 11, 2, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, 230, SDA, 2048, 8, R);
	wake(SUM_WAKING, 233, 0, 0, 11);
	sw(240, 0, 0, 0, 11);
	by(0, 11, 10);
	blk(SUM_BIO_QUEUE, 250, SDA, 4096, 8, R);
	blk(SUM_RQ_ISSUE, 251, SDA, 4096, 8, R);
	sw(260, 0, 11, 1, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, 280, SDA, 4096, 8, R);
	wake(SUM_WAKING, 300, 0, 0, 11);
	sw(310, 0, 0, 0, 11);
	sw(320, 0, 11, 'p', 12);
	sw(350, 0, 12, 1, 11);
	act(SUM_STOP, 360, 0, 11, 'A', 0);
	fields.len = 0;
	act(SUM_START, 370, 0, 11, 'B', 0);
	by(0, 11, 10);
	blk(SUM_BIO_QUEUE, 371, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 372, SDA, 8, 8, R);
	blk(SUM_RQ_COMPLETE, 373, SDA, 8, 8, R);
	act(SUM_STOP, 380, 0, 11, 'B', 0);
	sw(400, 0, 11, 2, 0);
	finish(500);
	a = kept('A');
	DID(a, 20 + 20 + 10 + 10, 7 + 10 + 30, 100, 3 + 40, 0, 0);
	EQ(a->cpu_ns, 60);
	EQ(a->finished, 1);
	EQ(a->lossy, 0);
	EQ(a->nr_ios, 2);
	EQ(a->ios[0].sector, 2048);
	EQ(a->ios[0].waited, 100);
	EQ(a->ios[0].took, 110);
	EQ(a->ios[0].begin, 120);
	EQ(a->ios[0].tid, 11);
	EQ(strcmp(a->ios[0].comm, "worker"), 0);
	EQ(sum_disk_whole(a->ios[0].disk)->dev, SDA);
	EQ(a->ios[1].waited, 0);
	EQ(a->ios[1].took, 30);
	EQ(strcmp(a->start_fields, "path=/report"), 0);
	EQ(strcmp(a->stop_fields, "status=200"), 0);
	EQ(a->proc->pid, 10);
	EQ(act_kind("Request")->duration.count, 2);
	EQ(act_kind("Request")->duration.max, 250);
	EQ(act_kind("Request")->disks[0].waited, 100);
	EQ(act_kind("Request")->disks[0].activities, 1);
	EQ(act_kind("Request")->disks[0].count, 3);
	EQ(act_kind("Request")->disks[0].bytes, 12288);
	end("activity: one thread, a disk read, a lock, preemption");

	/* Two reads at once, one sleep: each is given its part, and the parts are the whole. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 11);
	act(SUM_START, 110, 0, 11, 'A', 0);
	by(0, 11, 11);
	blk(SUM_BIO_QUEUE, 120, SDA, 8, 8, R);
	blk(SUM_BIO_QUEUE, 121, SDA, 800, 8, R);
	blk(SUM_RQ_ISSUE, 122, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 123, SDA, 800, 8, R);
	sw(130, 0, 11, 2, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, 230, SDA, 8, 8, R);
	blk(SUM_RQ_COMPLETE, 250, SDA, 800, 8, R);
	wake(SUM_WAKING, 250, 0, 0, 11);
	sw(250, 0, 0, 0, 11);
	act(SUM_STOP, 260, 0, 11, 'A', 0);
	finish(500);
	DID(kept('A'), 30, 0, 120, 0, 0, 0);
	EQ(kept('A')->ios[0].waited, 100);
	EQ(kept('A')->ios[1].waited, 20);
	EQ(kept('A')->disks[0].longest, 100);
	end("activity: a sleep for two reads");
}

static void test_activity_nested(void)
{
	/*
	 * B is inside A by its related id, and what is done for it is done for A. C names neither: the thread works for C alone,
	 * and goes on with B when C stops.
	 */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 11);
	act_of("Web", "RequestStart", SUM_START, 100, 0, 11, 'A', 0);
	act_of("Db", "Query_Start", SUM_START, 200, 0, 11, 'B', 'A');
	act_of("Db", "Parse", SUM_START, 210, 0, 11, 'C', 0);
	act_of("Db", "Parse", SUM_STOP, 220, 0, 11, 'C', 0);
	by(0, 11, 11);
	blk(SUM_BIO_QUEUE, 230, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 230, SDA, 8, 8, R);
	sw(250, 0, 11, 2, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, 350, SDA, 8, 8, R);
	wake(SUM_WAKING, 350, 0, 0, 11);
	sw(350, 0, 0, 0, 11);
	act_of("Db", "Query_Stop", SUM_STOP, 360, 0, 11, 'B', 'A');
	sw(400, 0, 11, 1, 0);
	wake(SUM_WAKING, 450, 0, 0, 11);
	sw(450, 0, 0, 0, 11);
	act_of("Web", "RequestStop", SUM_STOP, 460, 0, 11, 'A', 0);
	finish(500);
	DID(kept('A'), 200, 0, 100, 50, 0, 10);
	DID(kept('B'), 50, 0, 100, 0, 0, 10);
	DID(kept('C'), 10, 0, 0, 0, 0, 0);
	EQ(kept('A')->ios[0].waited, 100);
	EQ(kept('B')->ios[0].waited, 100);
	EQ(kept('C')->nr_ios, 0);
	EQ(kept('B')->parent_kind == kept('A')->kind, 1);
	EQ(memcmp(kept('B')->parent_id, id_of('A'), 16), 0);
	EQ(kept('C')->parent_kind == NULL, 1);
	EQ(strcmp(kept('B')->kind->name, "Query"), 0);
	end("activity: nested by the related id, or only in time");

	/* One id for all: a stop takes its name first, then its task, then the innermost. Client and server share the id. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 11);
	act_of("Client", "CallStart", SUM_START, 100, 0, 11, 'A', 0);
	act_of("Web", "ReqStart", SUM_START, 200, 1, 12, 'A', 0);
	act_of("Web", "RunStart", SUM_START, 300, 1, 12, 'A', 0);
	act_of("Web", "ReqStop", SUM_STOP, 400, 1, 12, 'A', 0);
	EQ(work_of(sum_thread_find(s, 12))->kind == act_kind("Run"), 1);
	act_of("Client", "Note", SUM_WORK, 450, 1, 13, 'A', 0);
	EQ(work_of(sum_thread_find(s, 13))->kind == act_kind("Call"), 1);
	act_of("Web", "Whatever", SUM_STOP, 500, 1, 12, 'A', 0);
	act_of("Client", "End", SUM_STOP, 600, 0, 11, 'A', 0);
	act_of("Client", "End", SUM_STOP, 700, 0, 11, 'A', 0);
	finish(800);
	EQ(act_kind("Req")->duration.max, 200);
	EQ(act_kind("Run")->duration.max, 200);
	EQ(act_kind("Call")->duration.max, 500);
	EQ(act_kind("End")->started_before, 1);
	EQ(s->nr_open, 0);
	end("activity: several with one id");

	begin(NULL, NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct sum_event e = { .act = { .provider = "P", .name = i ? "Eat" : "Sleep", .id = id_of('A'), .task = 3 + i } };

		by(0, 11, 11);
		feed(e, SUM_START, 100 + i);
	}
	{
		struct sum_event e = { .act = { .provider = "P", .name = "Awake", .id = id_of('A'), .task = 3 } };

		feed(e, SUM_STOP, 200);
	}
	finish(300);
	EQ(act_kind("Sleep")->duration.max, 100);
	EQ(act_kind("Eat")->unfinished, 1);
	end("activity: a stop by its task");
}

static void test_activity_moves(void)
{
	/* Accepted by 10, taken up by 11, handed on to 12, which stops it; 10 accepts the next one meanwhile. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	sw(100, 1, 0, 0, 11);
	act(SUM_START, 100, 0, 10, 'A', 0);
	act(SUM_START, 150, 0, 10, 'B', 0);
	sw(200, 0, 10, 1, 0);
	act(SUM_WORK, 200, 1, 11, 'A', 0);
	sw(260, 1, 11, 1, 12);
	act(SUM_WORK, 270, 1, 12, 'A', 0);
	act(SUM_STOP, 300, 1, 12, 'A', 0);
	sw(310, 1, 12, 1, 11);
	act(SUM_WORK, 320, 1, 11, 'B', 0);
	act(SUM_STOP, 350, 1, 11, 'B', 0);
	finish(400);
	/* until 10 starts B it counts for A; then A waits for 11 */
	DID(kept('A'), 50 + 60 + 30, 0, 0, 10, 0, 50);
	EQ(kept('A')->moves, 2);
	/* 10 sleeps, and nobody else has taken B up */
	DID(kept('B'), 50 + 30, 0, 0, 120, 0, 0);
	EQ(kept('B')->moves, 1);
	EQ(sum_thread_find(s, 10)->nr_work, 0);
	EQ(sum_thread_find(s, 11)->nr_work, 0);
	end("activity: from thread to thread");

	/* A thread does not go back to what another one has taken up, but to what its new work is part of; 1 ran all the time. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	act(SUM_START, 100, 0, 10, 'A', 0);
	act(SUM_START, 110, 0, 10, 'B', 0);
	act(SUM_WORK, 120, 1, 11, 'A', 0);
	act(SUM_START, 125, 1, 11, 'C', 'A');
	act(SUM_STOP, 130, 0, 10, 'B', 0);
	EQ(sum_thread_find(s, 10)->nr_work, 0);
	act(SUM_WORK, 140, 0, 10, 'A', 0);
	act(SUM_WORK, 150, 0, 10, 'C', 0);
	sw(160, 1, 11, 1, 0);
	act(SUM_STOP, 170, 0, 10, 'C', 0);
	EQ(sum_thread_find(s, 10)->nr_work, 1);
	sw(180, 0, 10, 1, 0);
	act(SUM_STOP, 200, 1, 9, 'A', 0);
	finish(300);
	DID(kept('A'), 10 + 60, 0, 0, 20, 0, 10);
	EQ(kept('A')->cpu_ns, 10 + 40 + 40);
	DID(kept('B'), 20, 0, 0, 0, 0, 0);
	DID(kept('C'), 45, 0, 0, 0, 0, 0);
	end("activity: what a thread goes back to");

	/* Two threads at once, one suspended explicitly; another id, and id 0, end the work of a thread. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	sw(100, 1, 0, 0, 11);
	act(SUM_START, 100, 0, 10, 'A', 0);
	act(SUM_WORK, 110, 1, 11, 'A', 0);
	act(SUM_SUSPEND, 150, 0, 10, 'A', 0);
	act(SUM_WORK, 180, 1, 11, 0, 0);
	act(SUM_WORK, 200, 0, 10, 'Z', 0);
	act(SUM_WORK, 210, 0, 10, 'A', 0);
	act(SUM_STOP, 260, 1, 11, 'A', 0);
	finish(400);
	DID(kept('A'), 80 + 50, 0, 0, 0, 0, 30);
	EQ(kept('A')->cpu_ns, 50 + 70 + 50);
	end("activity: two threads at once, suspend, no id");

	/* Its thread ends: nobody works for it; its tid, used again, is somebody else. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	act(SUM_START, 100, 0, 10, 'A', 0);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 110, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 110, SDA, 8, 8, R);
	sw(150, 0, 10, 0x20, 0);
	{
		struct sum_event f = { .fork = { .child_name = text("x"), .parent_tid = 9, .child_tid = 10, .child_pid = 10 } };

		by(0, 0, 0);
		feed(f, SUM_FORK, 160);
	}
	sw(170, 0, 0, 0, 10);
	act(SUM_START, 172, 0, 10, 'B', 0);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 175, SDA, 800, 8, R);
	sw(180, 0, 10, 2, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, 190, SDA, 8, 8, R);
	act(SUM_STOP, 200, 1, 12, 'A', 0);
	finish(300);
	DID(kept('A'), 50, 0, 0, 0, 0, 50);
	EQ(kept('A')->ios[0].waited, 0);
	EQ(kept('A')->ios[0].took, 80);
	EQ(kept('B')->nr_ios, 0);
	EQ(kept('B')->ns[SUM_ON_DISK], 120);
	EQ(sum_thread_find(s, 10)->ios, 0);
	end("activity: its thread ends");
}

static void forks(uint64_t time, uint32_t cpu, int32_t parent, int32_t child, int32_t pid)
{
	struct sum_event f = { .fork = { .child_name = text("sh"), .parent_tid = parent, .child_tid = child, .child_pid = pid } };

	by(cpu, parent, pid_of(parent));
	feed(f, SUM_FORK, time);
	wake(SUM_WAKEUP_NEW, time, cpu, parent, child);
}

/* @tid, which runs on CPU 0, reads and sleeps until it has what it read. */
static void waits_for_disk(int32_t tid, uint64_t from, uint64_t to)
{
	by(0, tid, pid_of(tid));
	blk(SUM_BIO_QUEUE, from, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, from, SDA, 8, 8, R);
	sw(from, 0, tid, 2, 0);
	by(0, 0, 0);
	blk(SUM_RQ_COMPLETE, to, SDA, 8, 8, R);
	wake(SUM_WAKING, to, 0, 0, tid);
	sw(to, 0, 0, 0, tid);
}

/* A script, 10, whose events are written by processes of their own, and which lets others read the disk. */
static void test_activity_script(void)
{
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	forks(110, 0, 10, 20, 20);
	sw(120, 0, 10, 1, 20);
	act(SUM_START, 130, 0, 20, 'J', 0);
	sw(140, 0, 20, 0x20, 10);
	/* a step that does not say that it is part of the job */
	forks(150, 0, 10, 21, 21);
	sw(160, 0, 10, 1, 21);
	act(SUM_START, 170, 0, 21, 'F', 0);
	sw(180, 0, 21, 0x20, 10);
	/* the work; and a thread of the script's, which is not part of it */
	forks(190, 0, 10, 22, 22);
	forks(190, 0, 10, 30, 10);
	sw(195, 1, 0, 0, 30);
	sw(200, 0, 10, 1, 22);
	waits_for_disk(22, 210, 310);
	sw(320, 0, 22, 0x20, 10);
	forks(330, 0, 10, 23, 23);
	sw(340, 0, 10, 1, 23);
	act(SUM_STOP, 350, 0, 23, 'F', 0);
	EQ(work_of(sum_thread_find(s, 10)) == open_find(s, id_of('J'), "Web"), 1);
	EQ(sum_thread_find(s, 30)->nr_work, 0);
	sw(360, 0, 23, 0x20, 10);
	forks(370, 0, 10, 24, 24);
	sw(380, 0, 10, 1, 24);
	act(SUM_STOP, 390, 0, 24, 'J', 0);
	finish(500);
	DID(kept('F'), 10 + 20 + 10 + 10 + 20 + 10, 0, 100, 0, 0, 0);
	EQ(kept('F')->ios[0].waited, 100);
	EQ(kept('F')->ios[0].tid, 22);
	/* the step is no part of it; while it is started and stopped the script waits for whom it lets do that */
	DID(kept('J'), 10 + 20 + 10 + 20 + 10, 0, 0, 10 + 10, 0, 170);
	end("activity: of a script");

	/* The script goes on when the process that wrote the start has exited, whose CPU may be held up before it leaves it. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	forks(110, 0, 10, 20, 20);
	sw(120, 1, 0, 0, 20);
	sw(120, 0, 10, 1, 0);
	act(SUM_START, 130, 1, 20, 'F', 0);
	wake(SUM_EXIT, 140, 1, 20, 20);
	wake(SUM_WAKING, 150, 1, 20, 10);
	sw(150, 0, 0, 0, 10);
	forks(160, 0, 10, 22, 22);
	sw(170, 0, 10, 1, 22);
	sw(200, 1, 20, 0x20, 0);
	waits_for_disk(22, 210, 310);
	act(SUM_STOP, 320, 0, 22, 'F', 0);
	finish(500);
	DID(kept('F'), 80 + 10, 0, 100, 0, 0, 0);
	EQ(kept('F')->moves, 1);
	end("activity: of a script that goes on before the last switch");

	/* A child that has nothing to do with an activity but by birth leaves none; one whose parent is another by now neither. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	act(SUM_START, 110, 0, 10, 'A', 0);
	forks(120, 0, 10, 20, 20);
	act(SUM_WORK, 130, 0, 10, 0, 0);
	sw(140, 0, 10, 1, 20);
	sw(150, 0, 20, 0x20, 10);
	EQ(sum_thread_find(s, 10)->nr_work, 0);
	forks(160, 0, 10, 21, 21);
	sw(170, 0, 10, 0x20, 21);
	forks(180, 0, 21, 10, 10);
	act(SUM_START, 190, 0, 21, 'B', 0);
	sw(200, 0, 21, 0x20, 0);
	EQ(sum_thread_find(s, 10)->nr_work, 0);
	finish(300);
	DID(kept('A'), 20 + 10, 10, 0, 0, 0, 150);
	DID(kept('B'), 10, 0, 0, 0, 0, 100);
	end("activity: processes that leave none");

	/* What the parent works for already stays where it is among its works. */
	begin(NULL, NULL, 0);
	sw(100, 0, 0, 0, 10);
	act(SUM_START, 110, 0, 10, 'J', 0);
	act(SUM_START, 120, 0, 10, 'F', 'J');
	forks(130, 0, 10, 20, 20);
	sw(140, 0, 10, 1, 20);
	act(SUM_WORK, 150, 0, 20, 'J', 0);
	sw(160, 0, 20, 0x20, 10);
	EQ(sum_thread_find(s, 10)->nr_work, 2);
	EQ(work_of(sum_thread_find(s, 10)) == open_find(s, id_of('F'), "Web"), 1);
	finish(300);
	end("activity: a process that leaves what there is");
}

static void test_activity_edges(void)
{
	static const struct sum_gap gaps[] = { { .cpu = 0, .from = 120, .to = 200 } };
	static const int32_t pids[] = { 10 };
	struct sum_filter f = { .top = 2 };

	/* Without scheduler events nothing is known but the duration and the I/Os; what never stops is so far. */
	begin(NULL, NULL, 0);
	act(SUM_STOP, 50, 0, 10, 'Z', 0);
	act(SUM_START, 100, 0, 10, 'A', 0);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 110, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 110, SDA, 8, 8, R);
	blk(SUM_RQ_COMPLETE, 150, SDA, 8, 8, R);
	summary_finish(s, 1000);
	DID(kept('A'), 0, 0, 0, 0, 900, 0);
	EQ(kept('A')->finished, 0);
	EQ(kept('A')->ios[0].took, 40);
	EQ(act_kind("Request")->unfinished, 1);
	EQ(act_kind("Request")->started_before, 1);
	EQ(act_kind("Request")->duration.count, 0);
	end("activity: no scheduler events, no stop, no start");

	/* Events lost meanwhile: said so; a completion that was lost does not make later sleeps ones for the disk. */
	begin(NULL, gaps, 1);
	sw(100, 0, 0, 0, 10);
	act(SUM_START, 105, 0, 10, 'A', 0);
	by(0, 10, 10);
	blk(SUM_BIO_QUEUE, 110, SDA, 8, 8, R);
	blk(SUM_RQ_ISSUE, 110, SDA, 8, 8, R);
	sw(250, 0, 0, 0, 10);
	sw(260, 0, 10, 2, 0);
	wake(SUM_WAKING, 300, 0, 0, 10);
	sw(300, 0, 0, 0, 10);
	act(SUM_STOP, 310, 0, 10, 'A', 0);
	act(SUM_START, 320, 0, 10, 'B', 0);
	act(SUM_STOP, 330, 0, 10, 'B', 0);
	finish(400);
	EQ(kept('A')->lossy, 1);
	EQ(kept('A')->ns[SUM_ON_DISK], 0);
	EQ(kept('A')->ns[SUM_BLOCKED], 40);
	EQ(kept('B')->lossy, 0);
	EQ(act_kind("Request")->lossy, 1);
	end("activity: events lost meanwhile");

	/* The longest are kept; a window, a pid. */
	begin(&f, NULL, 0);
	for (int i = 0; i < 20; i++) {
		act(SUM_START, 1000 * i, 0, 10, 'a' + i, 0);
		act(SUM_STOP, 1000 * i + (i * 7) % 20 + 1, 0, 10, 'a' + i, 0);
	}
	finish(30000);
	EQ(s->nr_acts, 2);
	EQ(s->acts[0]->end - s->acts[0]->begin, 19);
	EQ(s->acts[1]->end - s->acts[1]->begin, 20);
	EQ(act_kind("Request")->duration.count, 20);
	end("activity: the longest are kept");

	f = (struct sum_filter){ .from = 200, .to = 400, .pids = pids, .nr_pids = 1 };
	begin(&f, NULL, 0);
	act(SUM_START, 100, 0, 10, 'A', 0);
	act(SUM_STOP, 150, 0, 10, 'A', 0);
	act(SUM_START, 160, 0, 11, 'B', 0);
	act(SUM_STOP, 210, 0, 11, 'B', 0);
	act(SUM_START, 170, 0, 11, 'C', 0);
	act(SUM_WORK, 180, 0, 10, 'C', 0);
	act(SUM_STOP, 300, 0, 11, 'C', 0);
	act(SUM_START, 310, 0, 10, 'D', 0);
	act(SUM_START, 450, 0, 10, 'E', 0);
	act(SUM_STOP, 460, 0, 10, 'D', 0);
	finish(500);
	EQ(s->nr_acts, 2);
	EQ(act_kind("Request")->unfinished, 1);
	EQ(kept('C')->end, 300);
	EQ(kept('D')->end, 400);
	end("activity: a window and a pid");

	/* What two traces of one machine have of it is one; a batch in one trace has as many as it says. */
	begin(NULL, NULL, 0);
	for (source = 0; source < 2; source++) {
		for (int i = 0; i < 16; i++)
			act(SUM_START, 100, 0, 10, 'a' + i, 0);
		act(SUM_START, 100, 0, 10, 'a', 0);
	}
	for (source = 0; source < 2; source++)
		act(SUM_STOP, 200, 0, 10, 'b', 0);
	finish(300);
	EQ(s->duplicates, 18);
	EQ(act_kind("Request")->duration.count, 1);
	EQ(act_kind("Request")->unfinished, 16);
	EQ(act_kind("Request")->started_before, 0);
	end("activity: two traces, a batch");

	/* A provider that never stops anything, and a chain of which each is inside the one before: memory stays bounded. */
	begin(NULL, NULL, 0);
	for (unsigned int i = 0; i < 200000; i++) {
		uint8_t id[16] = { 1 }, before[16] = { 1 };
		struct sum_event e = { .act = { .provider = "P", .name = "Start", .id = id, .related = before } };

		memcpy(id + 4, &i, 4);
		i--;
		memcpy(before + 4, &i, 4);
		i++;
		by(0, 10, 10);
		feed(e, SUM_START, 100 + i);
		EQ(s->nr_open <= MAX_OPEN, 1);
	}
	EQ(sum_thread_find(s, 10)->nr_work <= MAX_DEPTH, 1);
	EQ(act_kind("")->unfinished, 200000 - MAX_OPEN);
	s->filter.top = 1;
	finish(300000);
	end("activity: none is ever stopped");

	f = (struct sum_filter){ .top = 1 };
	begin(&f, NULL, 0);
	for (unsigned int i = 0; i < 100000; i++) {
		uint8_t id[16] = { 1 }, before[16] = { 1 };
		unsigned int j = i - 1, depth = 0;
		struct sum_event e = { .act = { .provider = "P", .name = "Start", .id = id, .related = before } };

		memcpy(id + 4, &i, 4);
		memcpy(before + 4, &j, 4);
		by(0, 10, 10);
		feed(e, SUM_START, 100 + 2 * i);
		memcpy(id, before, 16);
		if (i)
			feed(e, SUM_STOP, 101 + 2 * i);
		for (struct sum_activity *a = s->newest; a; a = a->parent)
			depth++;
		EQ(depth <= 3, 1);
	}
	finish(300000);
	end("activity: a chain without end");
}

/* ---------------------------------------------------------------- any events whatever */

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % below;
}

/* Rows of a list of @s in order, as (value, pid); returns their number. */
enum list { RUNS, FAULTERS, SHARES };

struct row {
	uint64_t value;
	int32_t pid;
};

static unsigned int rows_of(struct summary *of, enum list list, struct row *rows, unsigned int max)
{
	struct sum_proc **procs = calloc(of->nr_all, sizeof(*procs));
	struct sum_share **shares = calloc(HASH_COUNT(of->shares) + 1, sizeof(*shares)), *sh, *tmp;
	unsigned int n = 0;

	for (struct sum_proc *p = of->all; p; p = p->next)
		if (list == RUNS ? p != of->idle && sum_proc_has_run(p) : list == FAULTERS && p->faults)
			procs[n++] = p;
	HASH_ITER(hh, of->shares, sh, tmp)
		if (list == SHARES)
			shares[n++] = sh;
	if (list == SHARES)
		qsort(shares, n, sizeof(*shares), sum_by_share_bytes);
	else
		qsort(procs, n, sizeof(*procs), list == RUNS ? sum_by_cpu_time : sum_by_faults);
	for (unsigned int i = 0; i < n && i < max; i++)
		rows[i] = list == SHARES ? (struct row){ sum_io_bytes(shares[i]->io), shares[i]->key.proc->pid } :
			  (struct row){ list == RUNS ? procs[i]->run.cpu_ns : procs[i]->faults->total, procs[i]->pid };
	free(procs);
	free(shares);
	return n;
}

/* @few has kept the first rows of @all, and counted the others. */
static void same_rows(struct summary *all, struct summary *few)
{
	uint64_t guessed = few->forgotten.guessed;
	struct sum_share *sh, *tmp;

	for (enum list list = RUNS; list <= SHARES; list++) {
		const uint64_t forgotten[] = { few->forgotten.runs, few->forgotten.faulters, few->forgotten.shares };
		unsigned int top = few->filter.top;
		struct row x[16], y[16];
		unsigned int n = rows_of(all, list, x, top);

		EQ(rows_of(few, list, y, top) + forgotten[list], n);
		for (unsigned int i = 0; i < top && i < n; i++) {
			EQ(y[i].value, x[i].value);
			EQ(y[i].pid, x[i].pid);
		}
	}
	HASH_ITER(hh, few->shares, sh, tmp)
		guessed += sh->guessed;
	HASH_ITER(hh, all->shares, sh, tmp)
		guessed -= sh->guessed;
	EQ(guessed, 0);
}

/* Ten thousand short processes, of which any may be the largest: those that have ended are not kept. */
static void test_forget(void)
{
	const struct sum_filter first = { .top = 4 };
	struct summary *all = NULL;

	for (int pass = 0; pass < 2; pass++) {
		uint64_t time = 100;

		seed = 1;
		begin(pass ? &first : NULL, NULL, 0);
		dump_disk(1, "ram0");
		sw(time, 0, 0, 0, 5);
		for (int i = 0; i < 10000; i++) {
			int32_t pid = 100 + i % 3000;
			uint32_t sectors = any(2) * any(50);
			struct sum_event f = { .fork = { text("job"), 5, pid, pid } }, gone = { .task = { text("job"), pid } };

			/* Not all are known to be processes when they begin. */
			by(0, 5, 5);
			if (any(3))
				feed(f, SUM_FORK, time += 10);
			wake(SUM_WAKEUP_NEW, time += 10, 0, 5, pid);
			sw(time += 10, 0, 5, 1, pid);
			by(0, pid, pid);
			for (uint32_t n = any(3) ? any(5) : 7; n; n--)
				feed((struct sum_event){ .fault.address = 0x400000 }, SUM_FAULT_USER, time += any(10));
			if (sectors)
				blk(SUM_BIO_QUEUE, time += 10, 1, 8, sectors, R);
			/* Some are still under way when the process is gone. */
			if (sectors % 2)
				blk(SUM_BIO_COMPLETE, time += 10, 1, 8, sectors, R);
			sw(time += any(1000), 0, pid, 0x10, 5);
			by(0, 5, 5);
			feed(gone, SUM_FREE, time += 10);
			if (sectors && sectors % 2 == 0)
				blk(SUM_BIO_COMPLETE, time += 10, 1, 8, sectors, R);
		}
		finish(time);
		if (!pass) {
			all = s;
			EQ(s->nr_all > 10000, 1);
			continue;
		}
		EQ(s->nr_all < 1000, 1);
		EQ(s->forgotten.runs > 9000, 1);
		EQ(s->forgotten.faulters > 6000, 1);
		EQ(HASH_COUNT(s->shares) < 1000, 1);
		same_rows(all, s);
	}
	summary_free(all);
	end("ended processes that cannot be among the first rows are only counted");
}

/* Whatever comes: each CPU's time is all accounted for, and no more of it is given to processes than was busy. */
static void test_any(void)
{
	static const struct sum_gap gaps[] = { { 0, 20000, 30000 }, { 1, 25000, 26000 }, { 0, 70000, 90000 } };
	static const struct sum_filter top = { .top = 3 };
	static char bytes[64];
	struct summary *few, *all_events;
	uint64_t forgotten = 0;

	for (seed = 1; seed < 60; seed++) {
		uint64_t time = 1, first = seed, busy = 0, all = 0, given = 0;

		begin(NULL, gaps, first % 2 ? 3 : 0);
		few = summary_new(&top, gaps, first % 2 ? 3 : 0);
		for (int i = 0; i < 4000; i++) {
			struct sum_event e = { 0 };
			struct sum_text t = { bytes, any(sizeof(bytes)) };

			e.kind = any(SUM_NR_KINDS);
			if (first % 3 && any(2))
				e.kind = SUM_START + any(4);
			memset(bytes, any(256), sizeof(bytes));
			by(any(3), any(12), any(12));
			source = any(2);
			time += any(60);
			switch (e.kind) {
			case SUM_SWITCH:
				e.sw.prev_comm = e.sw.next_comm = t;
				e.sw.prev_tid = any(12);
				e.sw.next_tid = any(12);
				e.sw.prev_state = any(2) * any(256);
				e.sw.preempt = !any(4);
				by(on_cpu, e.sw.prev_tid, by_pid);
				break;
			case SUM_FORK:
				e.fork.child_name = t;
				e.fork.parent_tid = any(12);
				e.fork.child_tid = any(12);
				e.fork.child_pid = any(12);
				break;
			case SUM_FAULT_USER:
			case SUM_FAULT_KERNEL:
				e.fault.address = (uint64_t)any(1U << 31) << any(33);
				e.fault.error_code = any(64);
				break;
			case SUM_START:
			case SUM_STOP:
			case SUM_WORK:
			case SUM_SUSPEND:
				e.act.provider = any(2) ? "P" : "Q";
				e.act.name = any(2) ? "AStart" : any(2) ? "B" : "Stop";
				e.act.id = id_of("\0ABCDEFG"[any(8)]);
				e.act.related = any(2) ? id_of("\0ABCDEFG"[any(8)]) : NULL;
				e.act.fields = t;
				e.act.task = any(3);
				break;
			case SUM_DUMP_DISK:
				e.disk.name = t;
				e.disk.dev = any(4);
				e.disk.whole = any(4);
				break;
			default:
				if (e.kind >= SUM_BIO_QUEUE && e.kind <= SUM_RQ_COMPLETE) {
					e.blk.comm = t;
					e.blk.dev = any(4);
					e.blk.sector = any(40);
					e.blk.nr = any(12);
					e.blk.rwbs = any(3) ? any(2) ? R : W : any(0x800);
					e.blk.error = -(int)any(2);
					e.blk.tid = any(12);
				} else {
					e.task.name = t;
					e.task.tid = any(12);
					e.task.pid = any(12);
					e.task.old_tid = any(12);
					e.task.kernel = any(2);
				}
			}
			feed(e, e.kind, time);
			all_events = s;
			s = few;
			feed(e, e.kind, time);
			s = all_events;
			if (!any(100))
				forget_ended(few);
		}
		summary_finish(s, time + 100);
		summary_finish(few, time + 100);
		same_rows(s, few);
		forgotten += few->forgotten.runs + few->forgotten.faulters + few->forgotten.shares;
		summary_free(few);
		EQ(s->nr_open + HASH_COUNT(s->act_ids), 0);
		for (unsigned int i = 0; i < s->nr_acts; i++) {
			const struct sum_activity *a = s->acts[i];
			uint64_t ns = 0, waited = 0;

			for (int d = 0; d < SUM_NR_DOING; d++) {
				ns += a->ns[d];
				EQ(a->doing[d] < 12, 1);
			}
			EQ(ns, a->end - a->begin);
			for (unsigned int d = 0; d < a->nr_disks; d++)
				waited += a->disks[d].waited;
			EQ(waited == 0 || a->ns[SUM_ON_DISK] <= ns, 1);
		}
		for (struct sum_act_kind *k = s->act_kinds; k; k = k->next)
			EQ(k->duration.count <= s->nr_acts, 1);
		for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
			busy += s->cpus[cpu].busy_ns;
			all += s->cpus[cpu].busy_ns + s->cpus[cpu].idle_ns + s->cpus[cpu].unknown_ns;
		}
		for (struct sum_proc *p = s->all; p; p = p->next)
			given += p->run.cpu_ns;
		EQ(all, 3 * (s->last_switch - s->sched_from));
		EQ(given - s->idle->run.cpu_ns, busy);
		for (struct sum_proc *p = s->all; p; p = p->next)
			if (p->faults) {
				EQ(p->root == NULL, 1);
				given = 0;
				for (int a = 0; a < SUM_NR_AREAS; a++)
					for (int x = 0; x < SUM_NR_ACCESS; x++)
						given += p->faults->n[a][x];
				EQ(given, p->faults->total);
			}
		summary_free(s);
		seed = first;
	}
	EQ(forgotten > 500, 1);
	done("any events: all time is accounted for, nothing is counted twice");
}

int main(void)
{
	test_hist();
	test_hist_few();
	test_edges();
	test_wake_race();
	test_lives();
	test_rows();
	test_loss();
	test_filter();
	test_two_traces();
	test_disk();
	test_flush();
	test_other_disks();
	test_faults();
	test_activity();
	test_activity_nested();
	test_activity_moves();
	test_activity_script();
	test_activity_edges();
	test_forget();
	test_any();
	printf("1..%d\n", nr);
	return failed != 0;
}
