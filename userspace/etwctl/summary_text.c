// SPDX-License-Identifier: GPL-2.0-only
/* What the verb summary has found, as text for a terminal of 100 columns. It must not know how it was found. */
#include "etwctl.h"
#include "print.h"
#include "summary.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NSEC 1000000000ULL

/* A short text by value, so that several fit into one printf(). */
struct cell {
	char s[24];
};

/* Three digits and a unit, at most 7 columns: "123 ns", "1.23 us", "12.3 s". */
static struct cell ns(uint64_t value)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double v = value;
	struct cell c;
	int u = 0;

	while (u < 3 && v >= 999.5) {
		v /= 1000;
		u++;
	}
	if (!u)
		snprintf(c.s, sizeof(c.s), "%" PRIu64 " ns", value);
	else
		snprintf(c.s, sizeof(c.s), "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[u]);
	return c;
}

static struct cell bytes(uint64_t value)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = value;
	struct cell c;
	int u = 0;

	while (u < 4 && v >= 1000) {
		v /= 1024;
		u++;
	}
	if (!u)
		snprintf(c.s, sizeof(c.s), "%" PRIu64 " B", value);
	else
		snprintf(c.s, sizeof(c.s), "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[u]);
	return c;
}

static struct cell percent(uint64_t part, uint64_t whole)
{
	struct cell c;

	snprintf(c.s, sizeof(c.s), "%.1f", whole ? 100.0 * part / whole : 0.0);
	return c;
}

static struct cell quantile(const struct sum_hist *h, unsigned int per_mille)
{
	return h->count ? ns(sum_hist_quantile(h, per_mille)) : (struct cell){ "-" };
}

static struct cell pid_of(const struct sum_proc *p)
{
	struct cell c = { "-" };

	if (p->pid > 0)
		snprintf(c.s, sizeof(c.s), "%" PRId32, p->pid);
	return c;
}

/* A name as it can be printed: bytes of a trace may be anything. 15 columns. */
static struct cell name_of(const struct sum_proc *p)
{
	char buf[4 * SUM_COMM + 1];
	struct cell c;

	text_safe(buf, p->name, strnlen(p->name, SUM_COMM));
	snprintf(c.s, sizeof(c.s), "%.15s", p->name[0] ? buf : "?");
	return c;
}

/* The rows of a list of @nr that are shown. */
static unsigned int rows(const struct summary_report *r, unsigned int nr)
{
	return r->top && r->top < nr ? r->top : nr;
}

/* @only_counted: more than the list has. */
static void more(const struct summary_report *r, unsigned int nr, uint64_t only_counted, const char *what)
{
	uint64_t left = nr - rows(r, nr) + only_counted;

	if (left)
		printf("       ... and %s more %s (--top 0 shows all)\n", show_count(left), what);
}

/* Seconds since the start of what is looked at. */
static double since(const struct summary_report *r, int64_t epoch)
{
	return (double)(epoch - r->from) / NSEC;
}

/* ---------------------------------------------------------------- what is missing */

static void lost_causes(const struct summary_report *r)
{
	uint64_t known = 0;

	for (int c = 0; c < ETW_NR_LOST; c++) {
		known += r->lost_causes[c];
		if (r->lost_causes[c])
			printf("  %-9s %12s  %s\n", etw_lost_name(c), show_count(r->lost_causes[c]), etw_lost_text(c));
	}
	if (r->lost > known)
		printf("  %-9s %12s  the trace was not finished: it does not say why\n", "unknown",
		       show_count(r->lost - known));
}

static void lost_providers(const struct summary_report *r)
{
	for (unsigned int i = 0; i < r->nr_providers; i++)
		if (r->providers[i].lost)
			printf("  %-9s %12s  of provider %s\n", "", show_count(r->providers[i].lost), r->providers[i].name);
}

/* For each CPU its sum and its largest windows; of one that lost often the others are added up. */
#define MAX_WINDOWS 4

static void lost_cpus(const struct summary_report *r)
{
	unsigned int nr = etw_consumer_nr_losses(r->consumer);

	for (uint32_t cpu = 0, max = 0; cpu <= max; cpu++) {
		uint64_t events = 0, packets = 0, floor = UINT64_MAX;
		unsigned int windows = 0, shown;

		for (unsigned int i = 0; i < nr; i++) {
			const struct etw_loss *l = etw_consumer_loss(r->consumer, i);

			if (l->cpu > max)
				max = l->cpu;
			if (l->cpu != cpu)
				continue;
			events += l->events;
			packets += l->packets;
			windows++;
		}
		if (!windows)
			continue;
		printf("  cpu %-5" PRIu32 " %12s  in %u place%s", cpu, show_count(events), windows, windows == 1 ? "" : "s");
		if (packets)
			printf(", %s packets missing", show_count(packets));
		printf("\n");
		/* the largest windows, by repeated selection: there are few, and each CPU's list is walked a few times only */
		for (shown = 0; shown < MAX_WINDOWS && shown < windows; shown++) {
			const struct etw_loss *best = NULL;
			uint64_t below = 0;

			for (unsigned int i = 0; i < nr; i++) {
				const struct etw_loss *l = etw_consumer_loss(r->consumer, i);

				if (l->cpu == cpu && l->events < floor && (!best || l->events > below)) {
					best = l;
					below = l->events;
				}
			}
			if (!best)
				break;
			floor = best->events;
			printf("  %-9s %12s  from %.6f to %.6f s\n", "", show_count(best->events),
			       since(r, best->begin + etw_consumer_trace(r->consumer, best->trace)->offset),
			       since(r, best->end + etw_consumer_trace(r->consumer, best->trace)->offset));
		}
	}
}

static void show_missing(const struct summary_report *r)
{
	unsigned int damages = etw_consumer_nr_damages(r->consumer);

	if (r->lost || etw_consumer_nr_losses(r->consumer)) {
		printf("LOST %s EVENTS: all that follows is incomplete (%s events are in the trace)\n",
		       show_count(r->lost), show_count(r->events));
		lost_causes(r);
		lost_providers(r);
		lost_cpus(r);
		printf("\n");
	}
	if (damages)
		printf("DAMAGED in %u place%s (named above): what could be read follows\n\n", damages,
		       damages == 1 ? "" : "s");
}

/* ---------------------------------------------------------------- the parts */

static void show_traces(const struct summary_report *r)
{
	for (unsigned int i = 0; i < etw_consumer_nr_traces(r->consumer); i++) {
		const struct etw_trace *t = etw_consumer_trace(r->consumer, i);
		int64_t first = (int64_t)t->first + t->offset;
		time_t s = first / (int64_t)NSEC;
		struct tm tm;
		char when[32];

		localtime_r(&s, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		printf("%s: session %s, Linux %s%s%s, %u CPU%s, %s, %.3f s%s\n", t->path, t->name, t->kernel,
		       t->hostname[0] ? " on " : "", t->hostname, t->nr_cpus, t->nr_cpus == 1 ? "" : "s", when,
		       (double)(t->stop - t->first) / NSEC, t->finished ? "" : ", not finished");
		if (t->command[0])
			printf("  command: %s\n", t->command);
		if (t->overwritten)
			printf("  flight recorder: %s older events were overwritten\n", show_count(t->overwritten));
	}
	printf("%s events, %s", show_count(r->events), bytes(r->bytes).s);
	if (r->to > r->from)
		printf(", %s a second", show_count(r->events * NSEC / (r->to - r->from)));
	if (r->s->duplicates)
		printf("; %s were in more than one trace and count once below", show_count(r->s->duplicates));
	printf("%s\n", r->lost ? "" : "; none lost");
}

static void show_run(const struct summary_report *r)
{
	const struct summary *s = r->s;
	uint64_t busy = 0, idle = 0, unknown = 0, all;

	printf("\nWHO RAN\n");
	if (!s->sched_from) {
		printf("  no sched_switch events here (provider sched)\n");
		return;
	}
	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
		busy += s->cpus[cpu].busy_ns;
		idle += s->cpus[cpu].idle_ns;
		unknown += s->cpus[cpu].unknown_ns;
	}
	all = busy + idle + unknown;
	printf("  %-9s %9s %7s %7s %8s %9s\n", "", "TIME", "BUSY %", "IDLE %", "UNKNOWN", "SWITCHES");
	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
		const struct sum_cpu *c = &s->cpus[cpu];
		uint64_t time = c->busy_ns + c->idle_ns + c->unknown_ns;

		if (r->top && cpu >= r->top && cpu + 1 < s->nr_cpus)
			continue;
		printf("  cpu %-5" PRIu32 " %9s %7s %7s %8s %9" PRIu64 "\n", cpu, ns(time).s, percent(c->busy_ns, time).s,
		       percent(c->idle_ns, time).s, percent(c->unknown_ns, time).s, c->switches);
	}
	if (s->nr_cpus > 1)
		printf("  %-9s %9s %7s %7s %8s\n", "all", ns(all).s, percent(busy, all).s, percent(idle, all).s,
		       percent(unknown, all).s);
	if (s->missed_switches)
		printf("  %s switches are missing%s\n", show_count(s->missed_switches),
		       r->lost ? "" : " although no loss was reported");

	/* CPUs are all known for the same time */
	all = s->nr_cpus ? s->cpus[0].busy_ns + s->cpus[0].idle_ns + s->cpus[0].unknown_ns : 0;
	printf("\n%67sWAKE-UP TO RUNNING\n", "");
	printf("%7s %-15s %8s %6s %8s %9s %7s %8s %7s %7s %7s\n", "PID", "PROCESS", "CPU TIME", "CPU %", "SWITCHES", "PREEMPTED",
	       "WAITED", "COUNT", "MEDIAN", "99 %", "MAX");
	for (unsigned int i = 0; i < rows(r, r->nr_runs); i++) {
		const struct sum_proc *p = r->runs[i];
		const struct sum_hist *w = &p->run.wakeup;

		printf("%7s %-15s %8s %6s %8" PRIu64 " %9" PRIu64 " %7s %8" PRIu64 " %7s %7s %7s\n", pid_of(p).s, name_of(p).s,
		       ns(p->run.cpu_ns).s, percent(p->run.cpu_ns, all).s, p->run.switches, p->run.preempted,
		       ns(p->run.wait_ns).s, w->count, quantile(w, 500).s, quantile(w, 990).s, quantile(w, 1000).s);
	}
	more(r, r->nr_runs, s->forgotten.runs, "processes");
}

static void show_disks(const struct summary_report *r)
{
	char buf[SUMMARY_DISK_NAME];

	printf("\n%-50s%-25sFROM SUBMISSION\n", "DISKS", "IN THE DEVICE");
	printf("%-12s %-8s %9s %9s %6s %7s %7s %7s  %7s %7s %7s\n", "DISK", "", "REQUESTS", "BYTES", "ERRORS", "MEDIAN", "99 %",
	       "MAX", "MEDIAN", "99 %", "MAX");
	for (unsigned int i = 0; i < rows(r, r->nr_disks); i++) {
		const struct sum_disk *d = r->disks[i];
		const char *name = summary_disk_name(d, buf);

		for (int op = 0; op < SUM_NR_OPS; op++) {
			const struct sum_io *io = &d->io[op];

			if (!io->count)
				continue;
			printf("%-12s %-8s %9" PRIu64 " %9s %6" PRIu64 " %7s %7s %7s  %7s %7s %7s\n", name, summary_op_names[op],
			       io->count, bytes(io->bytes).s, io->errors, quantile(&io->service, 500).s,
			       quantile(&io->service, 990).s, quantile(&io->service, 1000).s, quantile(&io->latency, 500).s,
			       quantile(&io->latency, 990).s, quantile(&io->latency, 1000).s);
		}
		if (d->started_before)
			printf("%-12s %s had begun before the trace\n", name, show_count(d->started_before));
		if (d->unfinished)
			printf("%-12s %s were not finished in the trace\n", name, show_count(d->unfinished));
		if (d->requeued)
			printf("%-12s %s were given to the device again\n", name, show_count(d->requeued));
	}
	more(r, r->nr_disks, 0, "disks");
}

static void show_shares(const struct summary_report *r)
{
	uint64_t guessed = r->s->forgotten.guessed;
	char buf[SUMMARY_DISK_NAME];

	printf("\n%74sFROM SUBMISSION\n", "");
	printf("%7s %-15s %-12s %-8s %9s %9s %6s %7s %7s %7s\n", "PID", "PROCESS", "DISK", "", "I/OS", "BYTES", "ERRORS", "MEDIAN",
	       "99 %", "MAX");
	for (unsigned int i = 0; i < r->nr_shares; i++) {
		const struct sum_share *sh = r->shares[i];

		guessed += sh->guessed;
		for (int op = 0; op < SUM_NR_OPS && i < rows(r, r->nr_shares); op++) {
			const struct sum_io *io = &sh->io[op];

			if (io->count)
				printf("%7s %-15s %-12s %-8s %9" PRIu64 " %9s %6" PRIu64 " %7s %7s %7s\n",
				       pid_of(sh->key.proc).s, name_of(sh->key.proc).s,
				       summary_disk_name(sh->key.disk, buf), summary_op_names[op], io->count,
				       bytes(io->bytes).s, io->errors, quantile(&io->latency, 500).s,
				       quantile(&io->latency, 990).s, quantile(&io->latency, 1000).s);
		}
	}
	more(r, r->nr_shares, r->s->forgotten.shares, "processes and disks");
	for (unsigned int i = 0; i < r->nr_shares; i++)
		if (r->shares[i]->key.proc->writeback) {
			printf("        writeback: dirty pages written by kernel workers, whoever made them dirty\n");
			break;
		}
	if (guessed)
		printf("        %s I/Os whose submission is not in the trace belong to who issued them\n", show_count(guessed));
}

/* ---------------------------------------------------------------- activities */

/* A time that is none is no figure to look at. */
static struct cell ns_or_not(uint64_t value)
{
	return value ? ns(value) : (struct cell){ "-" };
}

static void show_kinds(const struct summary_report *r)
{
	char name[2 * ETW_NAME_SIZE], buf[SUMMARY_DISK_NAME];

	printf("\n%-58sOF THIS TIME, %%\n", "ACTIVITIES");
	printf("%-25s %7s %7s %7s %7s  %6s %6s %6s %6s %6s %6s\n", "PROVIDER, NAME", "COUNT", "MEDIAN", "99 %", "MAX", "ON CPU",
	       "READY", "DISK", "BLOCK.", "IDLE", "UNKN.");
	for (unsigned int i = 0; i < rows(r, r->nr_kinds); i++) {
		const struct sum_act_kind *k = r->kinds[i];
		const struct sum_hist *h = &k->duration;

		snprintf(name, sizeof(name), "%s%s%s", provider_short(k->provider), k->name[0] ? ":" : "", k->name);
		printf("%-25s %7" PRIu64 " %7s %7s %7s  %6s %6s %6s %6s %6s %6s\n", name, h->count, quantile(h, 500).s,
		       quantile(h, 990).s, quantile(h, 1000).s, percent(k->ns[SUM_ON_CPU], h->sum).s,
		       percent(k->ns[SUM_WAITING], h->sum).s, percent(k->ns[SUM_ON_DISK], h->sum).s,
		       percent(k->ns[SUM_BLOCKED], h->sum).s, percent(k->ns[SUM_IDLE], h->sum).s,
		       percent(k->ns[SUM_UNTOLD], h->sum).s);
		for (unsigned int d = 0; d < k->nr_disks; d++)
			if (k->disks[d].waited)
				printf("    %s of them waited for a %s of %s, %s in all, %s at most\n",
				       show_count(k->disks[d].activities), summary_op_names[k->disks[d].op],
				       summary_disk_name(sum_disk_whole(k->disks[d].disk), buf), ns(k->disks[d].waited).s,
				       ns(k->disks[d].longest).s);
		if (k->started_before)
			printf("    %s had begun before the trace\n", show_count(k->started_before));
		if (k->unfinished)
			printf("    %s were not stopped in the trace\n", show_count(k->unfinished));
		if (k->lossy)
			printf("    events were lost during %s\n", show_count(k->lossy));
	}
	more(r, r->nr_kinds, 0, "kinds of activities");
}

/* Of one activity: its I/Os worth a line. */
#define MAX_IOS 3

static void show_ios(const struct sum_activity *a)
{
	char buf[SUMMARY_DISK_NAME], name[4 * SUM_COMM + 1];
	uint64_t shown = 0, waited = 0;
	unsigned int i;

	for (i = 0; i < a->nr_ios && i < MAX_IOS && (a->ios[i].waited || !i); i++) {
		const struct sum_act_io *io = &a->ios[i];
		const char *disk = summary_disk_name(sum_disk_whole(io->disk), buf);

		if (io->waited)
			printf("%9s waited %s for a %s of %s", "", ns(io->waited).s, summary_op_names[io->op], disk);
		else
			printf("%9s a %s of %s, not waited for", "", summary_op_names[io->op], disk);
		if (io->nr)
			printf(", %s at sector %" PRIu64, bytes(io->nr * 512ULL).s, io->sector);
		text_safe(name, io->comm, strnlen(io->comm, SUM_COMM));
		printf(", took %s%s; thread %s (%" PRId32 ")\n", ns(io->took).s, io->failed ? " and failed" : "",
		       io->comm[0] ? name : "?", io->tid);
		shown += io->waited;
	}
	for (unsigned int d = 0; d < a->nr_disks; d++)
		waited += a->disks[d].waited;
	if (waited > shown)
		printf("%9s waited %s for other I/Os\n", "", ns(waited - shown).s);
}

static void show_activities(const struct summary_report *r)
{
	char id[ETW_GUID_TEXT_SIZE];

	printf("\n%8s %7s %7s %7s %7s %7s %7s %11s  %s\n", "DURATION", "ON CPU", "READY", "DISK", "BLOCK.", "IDLE", "UNKN.",
	       "BEGIN", "THE LONGEST");
	for (unsigned int i = 0; i < rows(r, r->s->nr_acts); i++) {
		const struct sum_activity *a = r->s->acts[i];

		printf("%8s %7s %7s %7s %7s %7s %7s %+11.6f  %s%s%s%s%s%s\n", ns(a->end - a->begin).s,
		       ns_or_not(a->ns[SUM_ON_CPU]).s, ns_or_not(a->ns[SUM_WAITING]).s, ns_or_not(a->ns[SUM_ON_DISK]).s,
		       ns_or_not(a->ns[SUM_BLOCKED]).s, ns_or_not(a->ns[SUM_IDLE]).s, ns_or_not(a->ns[SUM_UNTOLD]).s,
		       since(r, a->begin), a->kind->name[0] ? a->kind->name : a->kind->provider, a->start_fields ? " " : "",
		       a->start_fields ? a->start_fields : "", a->stop_fields ? " " : "", a->stop_fields ? a->stop_fields : "",
		       a->finished ? "" : " (not stopped)");
		etw_guid_format(a->id, id);
		printf("%9s %s  %s (%s)", "", id, name_of(sum_proc_root(a->proc)).s, pid_of(sum_proc_root(a->proc)).s);
		if (a->parent_kind)
			printf(", in %s", a->parent_kind->name[0] ? a->parent_kind->name : a->parent_kind->provider);
		if (a->lossy)
			printf(", events were lost meanwhile");
		printf("\n");
		show_ios(a);
	}
}

static void show_faults(const struct summary_report *r)
{
	const struct sum_faults *all = &r->s->faults;

	printf("\nPAGE FAULTS\n");
	if (!all->total) {
		printf("  none here (provider fault)\n");
		return;
	}
	printf("%7s %-15s %8s %8s %8s", "PID", "PROCESS", "FAULTS", "BY KERN.", "PROTECT.");
	for (int a = 0; a < SUM_NR_AREAS; a++)
		if (a != SUM_AREA_HIDDEN && a != SUM_AREA_OTHER)
			printf(" %7s", summary_area_names[a]);
	printf(" %7s\n", "other");
	for (unsigned int i = 0; i <= rows(r, r->nr_faulters); i++) {
		const struct sum_proc *p = i < rows(r, r->nr_faulters) ? r->faulters[i] : NULL;
		const struct sum_faults *f = p ? p->faults : all;
		uint64_t n[SUM_NR_AREAS] = { 0 };

		for (int a = 0; a < SUM_NR_AREAS; a++)
			for (int x = 0; x < SUM_NR_ACCESS; x++)
				n[a] += f->n[a][x];
		if (!p)
			more(r, r->nr_faulters, r->s->forgotten.faulters, "processes");
		printf("%7s %-15s %8" PRIu64 " %8" PRIu64 " %8" PRIu64, p ? pid_of(p).s : "", p ? name_of(p).s : "all", f->total,
		       f->by_kernel, f->protection);
		for (int a = 0; a < SUM_NR_AREAS; a++)
			if (a != SUM_AREA_HIDDEN && a != SUM_AREA_OTHER)
				printf(" %7" PRIu64, n[a]);
		printf(" %7" PRIu64 "\n", n[SUM_AREA_OTHER] + n[SUM_AREA_HIDDEN]);
	}
	for (int x = 0; x < SUM_NR_ACCESS; x++) {
		printf("%7s   %-39s", "", summary_access_names[x]);
		for (int a = 0; a < SUM_NR_AREAS; a++)
			if (a != SUM_AREA_HIDDEN && a != SUM_AREA_OTHER)
				printf(" %7" PRIu64, all->n[a][x]);
		printf(" %7" PRIu64 "\n", all->n[SUM_AREA_OTHER][x] + all->n[SUM_AREA_HIDDEN][x]);
	}
}

static void show_events(const struct summary_report *r)
{
	printf("\nEVENTS\n%-44s %14s %10s %14s %12s\n", "PROVIDER, EVENT", "EVENTS", "BYTES", "FILTERED", "LOST");
	for (unsigned int i = 0; i < r->nr_providers; i++) {
		const struct summary_provider *p = &r->providers[i];

		printf("%-44s %14s %10s %14s %12s\n", p->name, show_count(p->count), bytes(p->bytes).s, show_count(p->filtered),
		       show_count(p->lost));
		for (unsigned int c = 0; c < rows(r, p->nr_classes); c++)
			printf("  %-42s %14s %10s\n", p->classes[c].cls->name, show_count(p->classes[c].count),
			       bytes(p->classes[c].bytes).s);
		more(r, p->nr_classes, 0, "events");
	}
}

void summary_text(const struct summary_report *r)
{
	show_missing(r);
	show_traces(r);
	show_run(r);
	if (r->nr_disks || r->nr_shares) {
		show_disks(r);
		show_shares(r);
	} else {
		printf("\nDISKS\n  no I/O here (provider block)\n");
	}
	if (r->nr_kinds) {
		show_kinds(r);
		show_activities(r);
	}
	show_faults(r);
	show_events(r);
}
