// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verb summary: reads traces, turns their events into what the analysis understands, sorts what it found. It must not
 * know how anything is counted or shown.
 */
#include "etwctl.h"
#include "filter.h"
#include "summary.h"
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_TOP = OPT_PRIVATE };

const struct opt opts_summary[] = {
	{ "top", OPT_TOP, "N", "rows of each list, 0 for all (text: 12, --json: all)", NULL },
	{}
};

const char *const summary_op_names[SUM_NR_OPS] = { "read", "write", "discard", "flush" };
const char *const summary_doing_names[SUM_NR_DOING] = { "on_cpu", "runnable", "disk", "blocked", "unknown", "idle" };
const char *const summary_area_names[SUM_NR_AREAS] = {
	"code", "stack", "mapped", "image", "null", "other", "kernel", "hidden",
};
const char *const summary_access_names[SUM_NR_ACCESS] = { "read", "write", "exec" };

/* ---------------------------------------------------------------- from libetw's events to the analysis' */

#define MAX_FIELDS 8

/* One class of events, found once: which kind it is, and where its fields are. */
struct plan {
	enum sum_kind kind;
	bool made, wanted, identity, lost;
	bool related;			/* of an activity: it may say which one it is part of */
	int field[MAX_FIELDS];
	struct summary_class count;
};

static const struct source {
	const char *ctf_name;
	enum sum_kind kind;
	bool identity;		/* says who is who: followed even if --event leaves it out */
	const char *fields[MAX_FIELDS];
} sources[] = {
	{ "sched_switch", SUM_SWITCH, false,
	  { "prev_comm", "prev_tid", "prev_state", "preempt", "next_comm", "next_tid" } },
	{ "sched_waking", SUM_WAKING, false, { "comm", "tid" } },
	{ "sched_wakeup", SUM_WAKEUP, false, { "comm", "tid" } },
	{ "sched_wakeup_new", SUM_WAKEUP_NEW, false, { "comm", "tid" } },
	{ "sched_process_fork", SUM_FORK, true, { "child_comm", "child_tid", "child_pid", "parent_tid" } },
	{ "sched_process_exec", SUM_EXEC, true, { "filename", "tid", "old_tid" } },
	{ "sched_process_exit", SUM_EXIT, true, { "comm", "tid" } },
	{ "sched_process_free", SUM_FREE, true, { "comm", "tid" } },
	{ "task_rename", SUM_RENAME, true, { "newcomm", "tid" } },
	{ "lttng_statedump_process_state", SUM_DUMP_TASK, true, { "name", "tid", "pid", "type" } },
	{ "lttng_statedump_block_device", SUM_DUMP_DISK, true, { "diskname", "dev", "disk" } },
	{ "lttng_statedump_start", SUM_FOREIGN, true, { NULL } },
	{ "lttng_statedump_end", SUM_FOREIGN, true, { NULL } },
	{ "block_bio_queue", SUM_BIO_QUEUE, false, { "comm", "tid", "dev", "sector", "nr_sector", "rwbs" } },
	{ "block_bio_complete", SUM_BIO_COMPLETE, false, { NULL, NULL, "dev", "sector", "nr_sector", "rwbs", "error" } },
	{ "block_rq_insert", SUM_RQ_INSERT, false, { "comm", "tid", "dev", "sector", "nr_sector", "rwbs" } },
	{ "block_rq_issue", SUM_RQ_ISSUE, false, { "comm", "tid", "dev", "sector", "nr_sector", "rwbs" } },
	{ "block_rq_complete", SUM_RQ_COMPLETE, false, { NULL, NULL, "dev", "sector", "nr_sector", "rwbs", "error" } },
	{ "x86_exceptions_page_fault_user", SUM_FAULT_USER, false, { "address", "ip", "error_code" } },
	{ "x86_exceptions_page_fault_kernel", SUM_FAULT_KERNEL, false, { "address", "ip", "error_code" } },
};

struct reader {
	struct filter filter;
	struct filter only;		/* the --event part of it */
	bool filtering;
	struct plan *plans;		/* by class index */
	unsigned int nr_plans;
	struct tasks *tasks;
	struct summary_report r;
};

static bool is_id_field(const struct etw_class *cls, unsigned int i, const char *name)
{
	return i < cls->nr_fields && cls->fields[i].type == ETW_TYPE_GUID && !strcmp(cls->fields[i].name, name);
}

/* What an event with an activity id, which is always the first field, says of the activity. */
static void plan_activity(struct plan *p, const struct etw_class *cls)
{
	if (p->kind != SUM_OTHER || !is_id_field(cls, 0, ETW_FIELD_ACTIVITY))
		return;
	p->related = is_id_field(cls, 1, ETW_FIELD_RELATED);
	p->kind = cls->opcode == ETW_OPCODE_START ? SUM_START : cls->opcode == ETW_OPCODE_STOP ? SUM_STOP :
		  cls->opcode == ETW_OPCODE_SUSPEND ? SUM_SUSPEND : SUM_WORK;
}

static struct plan *plan_of(struct reader *rd, const struct etw_event *event)
{
	const struct etw_class *cls = event->cls;
	struct plan *p;

	if (cls->index >= rd->nr_plans) {
		unsigned int nr = cls->index + 64;

		rd->plans = sum_realloc(rd->plans, nr, sizeof(*rd->plans));
		memset(&rd->plans[rd->nr_plans], 0, (nr - rd->nr_plans) * sizeof(*rd->plans));
		rd->nr_plans = nr;
	}
	p = &rd->plans[cls->index];
	if (p->made)
		return p;
	p->made = true;
	p->count.cls = cls;
	/* Events of this module's own provider are written for others, as those of the rundown. */
	p->kind = strcmp(cls->provider, "Linux-Kernel-Etw") ? SUM_OTHER : SUM_FOREIGN;
	p->lost = p->kind == SUM_FOREIGN && !strcmp(cls->name, "records_lost");
	p->wanted = filter_event(&rd->only, rd->tasks, event) == FILTER_YES;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (strcmp(sources[i].ctf_name, cls->ctf_name))
			continue;
		p->kind = sources[i].kind;
		p->identity = sources[i].identity;
		for (int f = 0; f < MAX_FIELDS; f++)
			p->field[f] = sources[i].fields[f] ? etw_class_field(cls, sources[i].fields[f]) : -1;
	}
	plan_activity(p, cls);
	if (p->lost)
		for (int f = 0; f < 5; f++)
			p->field[f] = etw_class_field(cls, (const char *[]){ "cpu", "cause", "count", "first", "last" }[f]);
	return p;
}

static struct sum_text text(const struct etw_event *event, int field)
{
	struct sum_text t;

	t.s = etw_event_string(event, field, &t.len);
	return t;
}

/* The fields behind the activity ids, as dump shows them. Valid until the next call. */
static struct sum_text describe(const struct plan *p, const struct etw_event *ev)
{
	static char buf[SUMMARY_FIELDS];
	size_t len = 0;

	for (unsigned int f = p->related ? 2 : 1; f < ev->cls->nr_fields && len < sizeof(buf) - 1; f++) {
		len += snprintf(buf + len, sizeof(buf) - len, "%s%s=", len ? " " : "", ev->cls->fields[f].name);
		if (len < sizeof(buf) - 1)
			len += etw_event_format(ev, f, buf + len, sizeof(buf) - len);
	}
	if (len < sizeof(buf) - 1)
		return (struct sum_text){ buf, len };
	/* cut, but not inside a character */
	for (len = sizeof(buf) - 4; len && (buf[len] & 0xc0) == 0x80;)
		len--;
	memcpy(buf + len, "...", 3);
	return (struct sum_text){ buf, len + 3 };
}

/* Fields are numbered in the order of the table above. Long, because each kind of event has its case. */
static void convert(const struct plan *p, const struct etw_event *ev, struct sum_event *e)
{
	const int *f = p->field;
	size_t len;

	e->kind = p->kind;
	e->time = ev->epoch;
	e->cpu = ev->cpu;
	e->source = ev->trace;
	e->tid = ev->tid;
	e->pid = ev->pid;
	switch (p->kind) {
	case SUM_SWITCH:
		e->sw.prev_comm = text(ev, f[0]);
		e->sw.prev_tid = etw_event_int(ev, f[1]);
		e->sw.prev_state = etw_event_int(ev, f[2]);
		e->sw.preempt = etw_event_uint(ev, f[3]);
		e->sw.next_comm = text(ev, f[4]);
		e->sw.next_tid = etw_event_int(ev, f[5]);
		break;
	case SUM_WAKING:
	case SUM_WAKEUP:
	case SUM_WAKEUP_NEW:
	case SUM_RENAME:
	case SUM_EXIT:
	case SUM_FREE:
	case SUM_EXEC:
	case SUM_DUMP_TASK:
		e->task.name = text(ev, f[0]);
		e->task.tid = etw_event_int(ev, f[1]);
		if (p->kind == SUM_EXEC)
			e->task.old_tid = etw_event_int(ev, f[2]);
		if (p->kind == SUM_DUMP_TASK) {
			e->task.pid = etw_event_int(ev, f[2]);
			e->task.kernel = etw_event_int(ev, f[3]) == 1;
		}
		break;
	case SUM_FORK:
		e->fork.child_name = text(ev, f[0]);
		e->fork.child_tid = etw_event_int(ev, f[1]);
		e->fork.child_pid = etw_event_int(ev, f[2]);
		e->fork.parent_tid = etw_event_int(ev, f[3]);
		break;
	case SUM_BIO_QUEUE:
	case SUM_BIO_COMPLETE:
	case SUM_RQ_INSERT:
	case SUM_RQ_ISSUE:
	case SUM_RQ_COMPLETE:
		e->blk.comm = text(ev, f[0]);
		e->blk.tid = etw_event_int(ev, f[1]);
		e->blk.dev = etw_event_uint(ev, f[2]);
		e->blk.sector = etw_event_uint(ev, f[3]);
		e->blk.nr = etw_event_uint(ev, f[4]);
		e->blk.rwbs = etw_event_uint(ev, f[5]);
		e->blk.error = etw_event_int(ev, f[6]);
		break;
	case SUM_FAULT_USER:
	case SUM_FAULT_KERNEL:
		e->fault.address = etw_event_uint(ev, f[0]);
		e->fault.ip = etw_event_uint(ev, f[1]);
		e->fault.error_code = etw_event_uint(ev, f[2]);
		break;
	case SUM_DUMP_DISK:
		e->disk.name = text(ev, f[0]);
		e->disk.dev = etw_event_uint(ev, f[1]);
		e->disk.whole = etw_event_uint(ev, f[2]);
		break;
	case SUM_START:
	case SUM_STOP:
	case SUM_WORK:
	case SUM_SUSPEND:
		e->act.provider = ev->cls->provider;
		e->act.name = ev->cls->name;
		e->act.task = ev->cls->task;
		e->act.id = etw_event_bytes(ev, 0, &len);
		e->act.related = p->related ? etw_event_bytes(ev, 1, &len) : NULL;
		e->act.fields = (struct sum_text){ NULL, 0 };
		if (p->kind == SUM_START || p->kind == SUM_STOP)
			e->act.fields = describe(p, ev);
		break;
	default:
		break;
	}
}

/* A record says what its session lost: times are of the session's clock. */
static void note_cause(struct summary_report *r, const struct plan *p, const struct etw_event *ev)
{
	const struct etw_trace *t = etw_consumer_trace(r->consumer, ev->trace);
	uint64_t cause = etw_event_uint(ev, p->field[1]);
	struct summary_cause *c;

	/* The writer's final counts say it for the whole trace, if it came to write them. */
	if (!t->finished && cause < ETW_NR_LOST)
		r->lost_causes[cause] += etw_event_uint(ev, p->field[2]);
	if (r->nr_causes == SUMMARY_MAX_CAUSES)
		return;
	if (!(r->nr_causes & (r->nr_causes - 1)))
		r->causes = sum_realloc(r->causes, r->nr_causes ? 2 * r->nr_causes : 1, sizeof(*r->causes));
	c = &r->causes[r->nr_causes++];
	c->trace = ev->trace;
	c->cpu = etw_event_uint(ev, p->field[0]);
	c->cause = cause;
	c->count = etw_event_uint(ev, p->field[2]);
	c->first = etw_event_int(ev, p->field[3]) + t->offset;
	c->last = etw_event_int(ev, p->field[4]) + t->offset;
}

static int read_events(struct reader *rd)
{
	const struct etw_event *ev;
	struct sum_event e = { 0 };
	bool ended = false;
	int ret;

	while ((ret = etw_consumer_next(rd->r.consumer, &ev, -1)) > 0) {
		struct plan *p = plan_of(rd, ev);
		int pass = FILTER_YES;

		if (rd->filtering) {
			tasks_event(rd->tasks, ev);
			pass = filter_event(&rd->filter, rd->tasks, ev);
			/* One more switch shows who ran up to the end. */
			if (pass == FILTER_END && !rd->r.s->sched_from)
				return STATUS_OK;
			ended |= pass == FILTER_END;
		}
		if (p->lost)
			note_cause(&rd->r, p, ev);
		if (p->wanted || p->identity) {
			convert(p, ev, &e);
			summary_event(rd->r.s, &e);
			if (ended && e.kind == SUM_SWITCH)
				return STATUS_OK;
		}
		if (pass == FILTER_YES) {
			p->count.count++;
			p->count.bytes += ev->record_size;
		}
	}
	return ret < 0 ? fail(STATUS_FAILED, "%s", etw_last_error()) : STATUS_OK;
}

/* ---------------------------------------------------------------- what is known before the first event */

/* Another trace covers @l's time and has lost nothing on that CPU: nothing is missing. */
static bool covered(struct etw_consumer *c, const struct etw_loss *l)
{
	const struct etw_trace *lossy = etw_consumer_trace(c, l->trace);

	for (unsigned int i = 0; i < etw_consumer_nr_traces(c); i++) {
		const struct etw_trace *t = etw_consumer_trace(c, i);
		bool lost = false;

		if (i == l->trace || (int64_t)t->first + t->offset > (int64_t)l->begin + lossy->offset ||
		    (int64_t)t->stop + t->offset < (int64_t)l->end + lossy->offset)
			continue;
		for (unsigned int k = 0; k < etw_consumer_nr_losses(c) && !lost; k++)
			lost = etw_consumer_loss(c, k)->trace == i && etw_consumer_loss(c, k)->cpu == l->cpu;
		if (!lost)
			return true;
	}
	return false;
}

static int by_begin(const void *a, const void *b)
{
	const struct sum_gap *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static struct sum_gap *find_gaps(struct summary_report *r, unsigned int *nr)
{
	unsigned int losses = etw_consumer_nr_losses(r->consumer);
	struct sum_gap *gaps = sum_alloc(losses + 1, sizeof(*gaps));

	*nr = 0;
	for (unsigned int i = 0; i < losses; i++) {
		const struct etw_loss *l = etw_consumer_loss(r->consumer, i);
		int64_t offset = etw_consumer_trace(r->consumer, l->trace)->offset;

		r->lost += l->events;
		if (!covered(r->consumer, l))
			gaps[(*nr)++] = (struct sum_gap){ .cpu = l->cpu, .from = l->begin + offset, .to = l->end + offset };
	}
	qsort(gaps, *nr, sizeof(*gaps), by_begin);
	return gaps;
}

/* The times that are looked at: those of the traces, narrowed by --from and --to. */
static void settle_window(struct reader *rd)
{
	struct summary_report *r = &rd->r;

	for (unsigned int i = 0; i < etw_consumer_nr_traces(r->consumer); i++) {
		const struct etw_trace *t = etw_consumer_trace(r->consumer, i);
		int64_t first = (int64_t)t->first + t->offset, stop = (int64_t)t->stop + t->offset;

		if (!i || first < r->from)
			r->from = first;
		if (!i || stop > r->to)
			r->to = stop;
		for (int c = 0; c < ETW_NR_LOST && t->finished; c++)
			r->lost_causes[c] += t->lost[c];
	}
	if (rd->filter.from.set && rd->filter.from.epoch > r->from)
		r->from = rd->filter.from.epoch;
	if (rd->filter.to.set && rd->filter.to.epoch < r->to)
		r->to = rd->filter.to.epoch;
	if (r->to < r->from)
		r->to = r->from;
}

/* ---------------------------------------------------------------- sorting what was found */

uint64_t summary_io_count(const struct sum_io io[SUM_NR_OPS])
{
	uint64_t sum = 0;

	for (int op = 0; op < SUM_NR_OPS; op++)
		sum += io[op].count;
	return sum;
}

const char *summary_disk_name(const struct sum_disk *d, char buf[SUMMARY_DISK_NAME])
{
	if (d->name[0])
		return d->name;
	snprintf(buf, SUMMARY_DISK_NAME, "%u:%u", d->dev >> 20, d->dev & 0xfffff);
	return buf;
}

static int by_disk_bytes(const void *a, const void *b)
{
	const struct sum_disk *x = *(struct sum_disk *const *)a, *y = *(struct sum_disk *const *)b;

	return SUM_ORDER(sum_io_bytes(x->io), sum_io_bytes(y->io), x->dev, y->dev);
}

static int by_duration(const void *a, const void *b)
{
	const struct sum_activity *x = *(struct sum_activity *const *)a, *y = *(struct sum_activity *const *)b;

	return SUM_ORDER(x->end - x->begin, y->end - y->begin, x->begin, y->begin);
}

static int by_kind_time(const void *a, const void *b)
{
	const struct sum_act_kind *x = *(struct sum_act_kind *const *)a, *y = *(struct sum_act_kind *const *)b;

	if (strcmp(x->provider, y->provider))
		return SUM_ORDER(x->duration.sum, y->duration.sum, strcmp(x->provider, y->provider), 0);
	return SUM_ORDER(x->duration.sum, y->duration.sum, strcmp(x->name, y->name), 0);
}

static int by_count(const void *a, const void *b)
{
	const struct summary_class *x = a, *y = b;

	return SUM_ORDER(x->count, y->count, x->cls->index, y->cls->index);
}

static int by_provider(const void *a, const void *b)
{
	const struct summary_provider *x = a, *y = b;

	return SUM_ORDER(x->count, y->count, strcmp(x->name, y->name), 0);
}

static void sort_tasks(struct summary_report *r)
{
	r->runs = sum_alloc(r->s->nr_all, sizeof(*r->runs));
	r->faulters = sum_alloc(r->s->nr_all, sizeof(*r->faulters));
	for (struct sum_proc *p = r->s->all; p; p = p->next) {
		if (p->root)
			continue;
		if (p != r->s->idle && sum_proc_has_run(p))
			r->runs[r->nr_runs++] = p;
		if (sum_proc_has_faults(p))
			r->faulters[r->nr_faulters++] = p;
	}
	qsort(r->runs, r->nr_runs, sizeof(*r->runs), sum_by_cpu_time);
	qsort(r->faulters, r->nr_faulters, sizeof(*r->faulters), sum_by_faults);
}

static void sort_disks(struct summary_report *r)
{
	struct sum_disk *d, *dtmp;
	struct sum_share *sh, *tmp;

	r->disks = sum_alloc(HASH_COUNT(r->s->disks) + 1, sizeof(*r->disks));
	r->shares = sum_alloc(HASH_COUNT(r->s->shares) + 1, sizeof(*r->shares));
	HASH_ITER(hh, r->s->disks, d, dtmp)
		if (summary_io_count(d->io) || d->unfinished || d->started_before)
			r->disks[r->nr_disks++] = d;
	HASH_ITER(hh, r->s->shares, sh, tmp)
		r->shares[r->nr_shares++] = sh;
	qsort(r->disks, r->nr_disks, sizeof(*r->disks), by_disk_bytes);
	qsort(r->shares, r->nr_shares, sizeof(*r->shares), sum_by_share_bytes);
}

static void sort_activities(struct summary_report *r)
{
	unsigned int nr = 0;

	for (struct sum_act_kind *k = r->s->act_kinds; k; k = k->next)
		nr++;
	r->kinds = sum_alloc(nr + 1, sizeof(*r->kinds));
	for (struct sum_act_kind *k = r->s->act_kinds; k; k = k->next)
		if (k->duration.count || k->unfinished || k->started_before)
			r->kinds[r->nr_kinds++] = k;
	qsort(r->kinds, r->nr_kinds, sizeof(*r->kinds), by_kind_time);
	if (r->s->nr_acts)
		qsort(r->s->acts, r->s->nr_acts, sizeof(*r->s->acts), by_duration);
}

static struct summary_provider *provider_get(struct summary_report *r, const char *name)
{
	struct summary_provider *p;

	for (unsigned int i = 0; i < r->nr_providers; i++)
		if (!strcmp(r->providers[i].name, name))
			return &r->providers[i];
	r->providers = sum_realloc(r->providers, r->nr_providers + 1, sizeof(*r->providers));
	p = &r->providers[r->nr_providers++];
	*p = (struct summary_provider){ .name = name };
	return p;
}

static void sort_events(struct reader *rd)
{
	struct summary_report *r = &rd->r;

	for (unsigned int i = 0; i < rd->nr_plans; i++) {
		const struct summary_class *c = &rd->plans[i].count;
		struct summary_provider *p;

		if (!rd->plans[i].made || !c->count)
			continue;
		p = provider_get(r, c->cls->provider);
		p->classes = sum_realloc(p->classes, p->nr_classes + 1, sizeof(*p->classes));
		p->classes[p->nr_classes++] = *c;
		p->count += c->count;
		p->bytes += c->bytes;
		r->events += c->count;
		r->bytes += c->bytes;
	}
	for (unsigned int t = 0; t < etw_consumer_nr_traces(r->consumer); t++) {
		const struct etw_trace *trace = etw_consumer_trace(r->consumer, t);

		for (unsigned int i = 0; i < trace->nr_providers; i++) {
			struct summary_provider *p = provider_get(r, trace->providers[i].name);

			p->filtered += trace->providers[i].filtered;
			for (int c = 0; c < ETW_NR_LOST; c++)
				p->lost += trace->providers[i].lost[c];
		}
	}
	for (unsigned int i = 0; i < r->nr_providers; i++)
		if (r->providers[i].nr_classes)
			qsort(r->providers[i].classes, r->providers[i].nr_classes, sizeof(struct summary_class), by_count);
	if (r->nr_providers)
		qsort(r->providers, r->nr_providers, sizeof(*r->providers), by_provider);
}

/* ---------------------------------------------------------------- the verb */

static struct summary *new_analysis(struct reader *rd, uint32_t **cpus)
{
	const struct filter *f = &rd->filter;
	struct sum_filter sf = {
		.from = f->from.set ? rd->r.from : 0,
		.to = f->to.set ? (uint64_t)rd->r.to : SUM_FOREVER,
		.pids = f->pids,
		.nr_pids = f->nr_pids,
		.comms = f->comms,
		.nr_comms = f->comms ? list_len(f->comms) : 0,
		.top = rd->r.top,
	};
	unsigned int nr_gaps;
	struct sum_gap *gaps = find_gaps(&rd->r, &nr_gaps);
	struct summary *s;

	*cpus = NULL;
	if (f->cpus) {
		*cpus = sum_alloc(f->nr_cpus, sizeof(**cpus));
		for (unsigned int cpu = 0; cpu < f->nr_cpus; cpu++)
			if (f->cpus[cpu])
				(*cpus)[sf.nr_cpus++] = cpu;
		sf.cpus = *cpus;
	}
	s = summary_new(&sf, gaps, nr_gaps);
	free(gaps);
	return s;
}

/* A trace whose writer died may lack the end of some CPUs: what a CPU did after its last event is then not known. */
static void cut_cpus(struct summary_report *r)
{
	for (unsigned int i = 0; i < etw_consumer_nr_traces(r->consumer); i++)
		if (etw_consumer_trace(r->consumer, i)->finished)
			return;
	for (uint32_t cpu = 0; cpu < r->s->nr_cpus; cpu++)
		if (r->s->cpus[cpu].last)
			summary_cpu_end(r->s, cpu, r->s->cpus[cpu].last);
}

static void report_free(struct summary_report *r)
{
	for (unsigned int i = 0; i < r->nr_providers; i++)
		free(r->providers[i].classes);
	free(r->providers);
	free(r->runs);
	free(r->faulters);
	free(r->disks);
	free(r->shares);
	free(r->kinds);
	free(r->causes);
	summary_free(r->s);
}

int cmd_summary(int argc, char **argv)
{
	/* The JSON object has the damages in it: nothing is to be named before. */
	struct filter_reported done = { 0 }, all = { .losses = UINT32_MAX, .damages = UINT32_MAX };
	struct reader rd = { 0 };
	struct summary_report *r = &rd.r;
	uint64_t top = UINT64_MAX;
	uint32_t *cpus;
	int key, status;

	while ((key = opt_next(argc, argv)) != -1) {
		switch (key) {
		case OPT_FILTERS:
			if (filter_option(&rd.filter, key, optarg))
				return STATUS_USAGE;
			rd.filtering = true;
			break;
		case OPT_TOP:
			if (parse_u64("--top", optarg, 0, UINT32_MAX, &top))
				return STATUS_USAGE;
			break;
		default:
			return STATUS_USAGE;
		}
	}
	r->top = top != UINT64_MAX ? top : json ? 0 : 12;
	status = filter_open(&rd.filter, argv + optind, true, json ? &all : &done, &r->consumer);
	if (!r->consumer)
		return status;
	rd.only.events = rd.filter.events;
	rd.only.events_out = rd.filter.events_out;
	rd.only.event_used = rd.filter.event_used;
	settle_window(&rd);
	r->s = new_analysis(&rd, &cpus);
	rd.tasks = tasks_new();
	status = worse(status, read_events(&rd));
	if (json)
		all = (struct filter_reported){ .losses = UINT32_MAX, .damages = UINT32_MAX };
	status = worse(status, filter_report(r->consumer, true, json ? &all : &done));
	cut_cpus(r);
	summary_finish(r->s, r->to);
	sort_tasks(r);
	sort_disks(r);
	sort_activities(r);
	sort_events(&rd);
	if (json)
		summary_json(r);
	else
		summary_text(r);
	report_free(r);
	tasks_free(rd.tasks);
	free(rd.only.wanted);
	free(rd.plans);
	free(cpus);
	filter_free(&rd.filter, r->consumer);
	etw_consumer_free(r->consumer);
	return status;
}
