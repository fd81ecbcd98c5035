// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the verb summary has found, as one JSON object. Its names are an interface, described in etwctl-summary(1): names
 * may be added, never changed. It must not know how anything was found.
 */
#include "etwctl.h"
#include "print.h"
#include "summary.h"

#include <json-c/json.h>
#include <string.h>

typedef struct json_object json_t;

static json_t *object_in(json_t *parent, const char *key)
{
	json_t *o = json_object_new_object();

	json_object_object_add(parent, key, o);
	return o;
}

static json_t *array_in(json_t *parent, const char *key)
{
	json_t *a = json_object_new_array();

	json_object_object_add(parent, key, a);
	return a;
}

static json_t *object_at_end(json_t *array)
{
	json_t *o = json_object_new_object();

	json_object_array_add(array, o);
	return o;
}

static void flag(json_t *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

static void latency(json_t *parent, const char *key, const struct sum_hist *h)
{
	json_t *o = object_in(parent, key);

	json_u64(o, "count", h->count);
	if (!h->count)
		return;
	json_u64(o, "min_ns", h->min);
	json_u64(o, "mean_ns", h->sum / h->count);
	json_u64(o, "median_ns", sum_hist_quantile(h, 500));
	json_u64(o, "p90_ns", sum_hist_quantile(h, 900));
	json_u64(o, "p99_ns", sum_hist_quantile(h, 990));
	json_u64(o, "max_ns", h->max);
}

static void name_of(json_t *o, const struct sum_proc *p)
{
	if (p->pid >= 0)
		json_s64(o, "pid", p->pid);
	else
		json_object_object_add(o, "pid", NULL);
	json_object_object_add(o, "name", NULL);
	if (p->name[0]) {
		char buf[4 * SUM_COMM + 1], name[SUM_COMM + 1] = { 0 };

		memcpy(name, p->name, SUM_COMM);
		text_utf8(buf, name, strlen(name));
		json_object_object_add(o, "name", json_object_new_string(buf));
	}
	flag(o, "kernel", p->kernel);
}

static unsigned int rows(const struct summary_report *r, unsigned int nr)
{
	return r->top && r->top < nr ? r->top : nr;
}

static void add_traces(json_t *top, const struct summary_report *r)
{
	json_t *list = array_in(top, "traces");

	for (unsigned int i = 0; i < etw_consumer_nr_traces(r->consumer); i++) {
		const struct etw_trace *t = etw_consumer_trace(r->consumer, i);
		json_t *o = object_at_end(list);

		json_text(o, "path", t->path);
		json_text(o, "session", t->name);
		json_text(o, "hostname", t->hostname);
		json_text(o, "kernel", t->kernel);
		json_text(o, "command", t->command);
		json_text(o, "clock", etw_clock_name(t->clock));
		flag(o, "finished", t->finished);
		json_s64(o, "begin_ns", (int64_t)t->first + t->offset);
		json_s64(o, "end_ns", (int64_t)t->stop + t->offset);
		json_u64(o, "cpus", t->nr_cpus);
		json_u64(o, "packets", t->nr_packets);
		json_u64(o, "bytes", t->bytes);
		json_u64(o, "written", t->written);
		json_u64(o, "filtered", t->filtered);
		json_u64(o, "overwritten", t->overwritten);
	}
}

static void add_lost(json_t *top, const struct summary_report *r)
{
	json_t *lost = object_in(top, "lost"), *o, *list;

	json_u64(lost, "events", r->lost);
	o = object_in(lost, "causes");
	for (int c = 0; c < ETW_NR_LOST; c++)
		json_u64(o, etw_lost_name(c), r->lost_causes[c]);
	list = array_in(lost, "windows");
	for (unsigned int i = 0; i < etw_consumer_nr_losses(r->consumer); i++) {
		const struct etw_loss *l = etw_consumer_loss(r->consumer, i);
		int64_t offset = etw_consumer_trace(r->consumer, l->trace)->offset;

		o = object_at_end(list);
		json_u64(o, "trace", l->trace);
		json_u64(o, "cpu", l->cpu);
		json_s64(o, "begin_ns", (int64_t)l->begin + offset);
		json_s64(o, "end_ns", (int64_t)l->end + offset);
		json_u64(o, "events", l->events);
		json_u64(o, "packets", l->packets);
	}
	list = array_in(lost, "records");
	for (unsigned int i = 0; i < r->nr_causes; i++) {
		const struct summary_cause *c = &r->causes[i];

		o = object_at_end(list);
		json_u64(o, "trace", c->trace);
		json_u64(o, "cpu", c->cpu);
		json_text(o, "cause", etw_lost_name(c->cause));
		json_u64(o, "events", c->count);
		json_s64(o, "begin_ns", c->first);
		json_s64(o, "end_ns", c->last);
	}
	list = array_in(top, "damage");
	for (unsigned int i = 0; i < etw_consumer_nr_damages(r->consumer); i++) {
		const struct etw_damage *d = etw_consumer_damage(r->consumer, i);

		o = object_at_end(list);
		json_u64(o, "trace", d->trace);
		json_text(o, "file", d->file);
		json_u64(o, "offset", d->offset);
		json_u64(o, "bytes", d->bytes);
		json_text(o, "what", d->what);
	}
}

static void add_run(json_t *top, const struct summary_report *r)
{
	json_t *run = object_in(top, "run"), *list, *o;

	flag(run, "recorded", r->s->sched_from);
	json_u64(run, "begin_ns", r->s->sched_from);
	json_u64(run, "end_ns", r->s->last_switch);
	json_u64(run, "missed_switches", r->s->missed_switches);
	list = array_in(run, "cpus");
	for (uint32_t cpu = 0; cpu < r->s->nr_cpus; cpu++) {
		const struct sum_cpu *c = &r->s->cpus[cpu];

		o = object_at_end(list);
		json_u64(o, "cpu", cpu);
		json_u64(o, "busy_ns", c->busy_ns);
		json_u64(o, "idle_ns", c->idle_ns);
		json_u64(o, "unknown_ns", c->unknown_ns);
		json_u64(o, "switches", c->switches);
	}
	list = array_in(run, "processes");
	for (unsigned int i = 0; i < rows(r, r->nr_runs); i++) {
		const struct sum_proc *p = r->runs[i];

		o = object_at_end(list);
		name_of(o, p);
		json_u64(o, "threads", p->threads);
		json_u64(o, "cpu_ns", p->run.cpu_ns);
		json_u64(o, "wait_ns", p->run.wait_ns);
		json_u64(o, "switches", p->run.switches);
		json_u64(o, "preempted", p->run.preempted);
		latency(o, "wakeup", &p->run.wakeup);
	}
}

static void add_ops(json_t *o, const struct sum_io io[SUM_NR_OPS], bool device)
{
	for (int op = 0; op < SUM_NR_OPS; op++) {
		json_t *x;

		if (!io[op].count)
			continue;
		x = object_in(o, summary_op_names[op]);
		json_u64(x, "count", io[op].count);
		json_u64(x, "bytes", io[op].bytes);
		json_u64(x, "errors", io[op].errors);
		latency(x, "latency", &io[op].latency);
		if (device)
			latency(x, "device_latency", &io[op].service);
	}
}

static void add_disk(json_t *top, const struct summary_report *r)
{
	json_t *disk = object_in(top, "disk"), *list, *o;
	char buf[SUMMARY_DISK_NAME];

	list = array_in(disk, "devices");
	for (unsigned int i = 0; i < rows(r, r->nr_disks); i++) {
		const struct sum_disk *d = r->disks[i];

		o = object_at_end(list);
		json_text(o, "name", summary_disk_name(d, buf));
		json_u64(o, "major", d->dev >> 20);
		json_u64(o, "minor", d->dev & 0xfffff);
		flag(o, "requests", d->has_requests);
		json_u64(o, "started_before", d->started_before);
		json_u64(o, "unfinished", d->unfinished);
		json_u64(o, "requeued", d->requeued);
		add_ops(o, d->io, true);
	}
	list = array_in(disk, "processes");
	for (unsigned int i = 0; i < rows(r, r->nr_shares); i++) {
		const struct sum_share *sh = r->shares[i];

		o = object_at_end(list);
		name_of(o, sh->key.proc);
		flag(o, "writeback", sh->key.proc->writeback);
		json_text(o, "disk", summary_disk_name(sh->key.disk, buf));
		json_u64(o, "guessed", sh->guessed);
		add_ops(o, sh->io, false);
	}
}

static void add_id(json_t *o, const char *key, const uint8_t id[16])
{
	static const uint8_t none[16];
	char text[ETW_GUID_TEXT_SIZE];

	json_object_object_add(o, key, NULL);
	if (!memcmp(id, none, sizeof(none)))
		return;
	etw_guid_format(id, text);
	json_text(o, key, text);
}

static void add_doing(json_t *o, const uint64_t time[SUM_NR_DOING], uint64_t cpu_ns)
{
	char key[32];

	for (int d = 0; d < SUM_NR_DOING; d++) {
		snprintf(key, sizeof(key), "%s_ns", summary_doing_names[d]);
		json_u64(o, key, time[d]);
	}
	json_u64(o, "cpu_ns", cpu_ns);
}

static void add_disks(json_t *o, const struct sum_act_disk *disks, unsigned int nr, bool kind)
{
	json_t *list = array_in(o, "disks"), *x;
	char buf[SUMMARY_DISK_NAME];

	for (unsigned int i = 0; i < nr; i++) {
		x = object_at_end(list);
		json_text(x, "disk", summary_disk_name(sum_disk_whole(disks[i].disk), buf));
		json_text(x, "operation", summary_op_names[disks[i].op]);
		json_u64(x, "count", disks[i].count);
		json_u64(x, "bytes", disks[i].bytes);
		json_u64(x, "errors", disks[i].errors);
		json_u64(x, "waited_ns", disks[i].waited);
		json_u64(x, "longest_ns", disks[i].longest);
		if (kind)
			json_u64(x, "activities", disks[i].activities);
	}
}

static void add_ios(json_t *o, const struct sum_activity *a)
{
	json_t *list = array_in(o, "ios"), *x;
	char buf[SUMMARY_DISK_NAME], name[4 * SUM_COMM + 1];

	for (unsigned int i = 0; i < a->nr_ios; i++) {
		const struct sum_act_io *io = &a->ios[i];
		const struct sum_disk *d = sum_disk_whole(io->disk);

		x = object_at_end(list);
		json_text(x, "disk", summary_disk_name(d, buf));
		json_u64(x, "major", d->dev >> 20);
		json_u64(x, "minor", d->dev & 0xfffff);
		json_text(x, "operation", summary_op_names[io->op]);
		json_u64(x, "sector", io->sector);
		json_u64(x, "bytes", io->nr * 512ULL);
		flag(x, "error", io->failed);
		json_s64(x, "begin_ns", io->begin);
		json_u64(x, "took_ns", io->took);
		json_u64(x, "waited_ns", io->waited);
		json_s64(x, "tid", io->tid);
		text_utf8(name, io->comm, strnlen(io->comm, SUM_COMM));
		json_text(x, "thread", name);
	}
}

static void add_activities(json_t *top, const struct summary_report *r)
{
	json_t *activity = object_in(top, "activity"), *list, *o;

	list = array_in(activity, "kinds");
	for (unsigned int i = 0; i < rows(r, r->nr_kinds); i++) {
		const struct sum_act_kind *k = r->kinds[i];

		o = object_at_end(list);
		json_text(o, "provider", k->provider);
		json_text(o, "activity", k->name);
		latency(o, "duration", &k->duration);
		json_u64(o, "started_before", k->started_before);
		json_u64(o, "unfinished", k->unfinished);
		json_u64(o, "lossy", k->lossy);
		add_doing(o, k->ns, k->cpu_ns);
		add_disks(o, k->disks, k->nr_disks, true);
	}
	list = array_in(activity, "activities");
	for (unsigned int i = 0; i < rows(r, r->s->nr_acts); i++) {
		const struct sum_activity *a = r->s->acts[i];

		o = object_at_end(list);
		json_text(o, "provider", a->kind->provider);
		json_text(o, "activity", a->kind->name);
		add_id(o, "id", a->id);
		add_id(o, "parent_id", a->parent_id);
		json_object_object_add(o, "parent", NULL);
		if (a->parent_kind)
			json_text(o, "parent", a->parent_kind->name);
		json_text(o, "start_fields", a->start_fields ? a->start_fields : "");
		json_text(o, "stop_fields", a->stop_fields ? a->stop_fields : "");
		name_of(o, sum_proc_root(a->proc));
		flag(o, "finished", a->finished);
		flag(o, "lossy", a->lossy);
		json_s64(o, "begin_ns", a->begin);
		json_s64(o, "end_ns", a->end);
		json_u64(o, "duration_ns", a->end - a->begin);
		add_doing(o, a->ns, a->cpu_ns);
		json_u64(o, "moves", a->moves);
		add_disks(o, a->disks, a->nr_disks, false);
		add_ios(o, a);
	}
}

static void add_fault_counts(json_t *o, const struct sum_faults *f)
{
	json_t *areas;

	json_u64(o, "faults", f->total);
	json_u64(o, "by_kernel", f->by_kernel);
	json_u64(o, "protection", f->protection);
	areas = object_in(o, "areas");
	for (int a = 0; a < SUM_NR_AREAS; a++) {
		json_t *x = object_in(areas, summary_area_names[a]);

		for (int k = 0; k < SUM_NR_ACCESS; k++)
			json_u64(x, summary_access_names[k], f->n[a][k]);
	}
}

static void add_faults(json_t *top, const struct summary_report *r)
{
	json_t *fault = object_in(top, "fault"), *list, *o;

	add_fault_counts(fault, &r->s->faults);
	list = array_in(fault, "processes");
	for (unsigned int i = 0; i < rows(r, r->nr_faulters); i++) {
		o = object_at_end(list);
		name_of(o, r->faulters[i]);
		add_fault_counts(o, r->faulters[i]->faults);
	}
}

static void add_events(json_t *top, const struct summary_report *r)
{
	json_t *events = object_in(top, "events"), *list, *o, *sub, *x;

	json_u64(events, "count", r->events);
	json_u64(events, "bytes", r->bytes);
	json_u64(events, "duplicates", r->s->duplicates);
	list = array_in(events, "providers");
	for (unsigned int i = 0; i < r->nr_providers; i++) {
		const struct summary_provider *p = &r->providers[i];

		o = object_at_end(list);
		json_text(o, "provider", p->name);
		json_u64(o, "count", p->count);
		json_u64(o, "bytes", p->bytes);
		json_u64(o, "filtered", p->filtered);
		json_u64(o, "lost", p->lost);
		sub = array_in(o, "events");
		for (unsigned int c = 0; c < rows(r, p->nr_classes); c++) {
			x = object_at_end(sub);
			json_text(x, "event", p->classes[c].cls->name);
			json_u64(x, "count", p->classes[c].count);
			json_u64(x, "bytes", p->classes[c].bytes);
		}
	}
}

void summary_json(const struct summary_report *r)
{
	json_t *top = json_object_new_object();

	add_lost(top, r);
	add_traces(top, r);
	json_s64(top, "begin_ns", r->from);
	json_s64(top, "end_ns", r->to);
	add_run(top, r);
	add_disk(top, r);
	add_activities(top, r);
	add_faults(top, r);
	add_events(top, r);
	json_line(top);
}
