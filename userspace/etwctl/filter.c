// SPDX-License-Identifier: GPL-2.0-only
/*
 * The read-side filters and opening what is read (filter.h). It must not know what is done with the events that pass.
 */
#include "filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC 1000000000LL
#define MAX_CPU 65535

const struct opt opts_filter[] = {
	{ "event", OPT_EVENT, "LIST|!LIST", "only events that match a pattern of the list, or all but those",
	  "@event" },
	{ "pid", OPT_PID, "LIST", "only events of these threads or processes, or about them", NULL },
	{ "comm", OPT_COMM, "LIST", "only events of threads whose name matches a pattern of the list", NULL },
	{ "cpu", OPT_CPU, "LIST", "only events of these CPUs, as 0,2-3", NULL },
	{ "from", OPT_FROM, "TIME",
	  "not before TIME: +SECONDS from the start, HH:MM:SS[.frac], @EPOCH, or SECONDS of the clock", NULL },
	{ "to", OPT_TO, "TIME", "before TIME", NULL },
	{}
};

static int parse_pids(struct filter *f, const char *arg)
{
	char **list = list_split("--pid", arg);
	uint64_t value;

	if (!list)
		return STATUS_USAGE;
	free(f->pids);
	f->pids = xmalloc(list_len(list) * sizeof(*f->pids));
	f->nr_pids = 0;
	for (char **p = list; *p; p++) {
		if (parse_u64("--pid", *p, 0, INT32_MAX, &value)) {
			list_free(list);
			return STATUS_USAGE;
		}
		f->pids[f->nr_pids++] = value;
	}
	list_free(list);
	return 0;
}

static int parse_cpus(struct filter *f, const char *arg)
{
	char **list = list_split("--cpu", arg);
	int status = 0;

	if (!list)
		return STATUS_USAGE;
	free(f->cpus);
	f->cpus = xmalloc(MAX_CPU + 1);
	f->nr_cpus = MAX_CPU + 1;
	for (char **p = list; *p && !status; p++) {
		char *dash = strchr(*p, '-');
		uint64_t first, last;

		if (dash)
			*dash++ = 0;
		status = parse_u64("--cpu", *p, 0, MAX_CPU, &first);
		last = first;
		if (!status && dash)
			status = parse_u64("--cpu", dash, first, MAX_CPU, &last);
		for (uint64_t cpu = first; !status && cpu <= last; cpu++)
			f->cpus[cpu] = 1;
	}
	list_free(list);
	return status;
}

/* "123", "123.45": nanoseconds, or -1. */
static __s64 parse_seconds(const char *text)
{
	__s64 ns = 0, unit = NSEC / 10;
	int digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++) {
		if (ns > INT64_MAX / NSEC / 10 - 1)
			return -1;
		ns = ns * 10 + *text - '0';
	}
	ns *= NSEC;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
			ns += (*text - '0') * unit;
			unit /= 10;
		}
	return *text || !digits ? -1 : ns;
}

static int parse_time(const char *what, const char *text, struct filter_time *t)
{
	unsigned int h, m;
	int n = 0;

	t->set = true;
	if (*text == '+' || *text == '@') {
		t->kind = *text;
		t->ns = parse_seconds(text + 1);
	} else if (sscanf(text, "%2u:%2u:%n", &h, &m, &n) == 2 && n && h < 24 && m < 60) {
		t->kind = 'd';
		t->ns = parse_seconds(text + n);
		if (t->ns >= 0)
			t->ns += (h * 3600LL + m * 60LL) * NSEC;
	} else {
		t->kind = 'c';
		t->ns = parse_seconds(text);
	}
	if (t->ns < 0)
		return usage(
			"%s: '%s' is not a time; write +SECONDS from the start, HH:MM:SS[.frac], @EPOCH or SECONDS of the trace's clock",
			what, text);
	return 0;
}

int filter_option(struct filter *f, int key, const char *arg)
{
	switch (key) {
	case OPT_EVENT:
		list_free(f->events);
		free(f->event_used);
		f->events_out = *arg == '!';
		f->events = list_split("--event", arg + f->events_out);
		f->event_used = xmalloc(list_len(f->events) + 1);
		return f->events ? 0 : STATUS_USAGE;
	case OPT_PID:
		return parse_pids(f, arg);
	case OPT_COMM:
		list_free(f->comms);
		f->comms = list_split("--comm", arg);
		return f->comms ? 0 : STATUS_USAGE;
	case OPT_CPU:
		return parse_cpus(f, arg);
	case OPT_FROM:
		return parse_time("--from", arg, &f->from);
	case OPT_TO:
		return parse_time("--to", arg, &f->to);
	}
	return 0;
}

static void settle(struct filter_time *t, __s64 start, __s64 offset)
{
	time_t day = start / NSEC;
	struct tm tm;

	if (!t->set)
		return;
	switch (t->kind) {
	case '+':
		t->epoch = start + t->ns;
		break;
	case '@':
		t->epoch = t->ns;
		break;
	case 'c':
		t->epoch = t->ns + offset;
		break;
	case 'd':
		/* On the day the trace began; a time of day more than 12 hours before its start is of the next day. */
		localtime_r(&day, &tm);
		tm.tm_hour = t->ns / (3600 * NSEC);
		tm.tm_min = t->ns / (60 * NSEC) % 60;
		tm.tm_sec = t->ns / NSEC % 60;
		tm.tm_isdst = -1;
		t->epoch = mktime(&tm) * NSEC + t->ns % NSEC;
		if (t->epoch < start - 12 * 3600 * NSEC)
			t->epoch += 24 * 3600 * NSEC;
		break;
	}
}

void filter_start(struct filter *f, struct etw_consumer *consumer)
{
	__s64 offset = 0;

	for (unsigned int i = 0; i < etw_consumer_nr_traces(consumer); i++) {
		const struct etw_trace *t = etw_consumer_trace(consumer, i);
		__s64 start = (__s64)(t->first ? t->first : t->start) + t->offset;

		if (!i || start < f->start)
			f->start = start;
		if (!i)
			offset = t->offset;
	}
	settle(&f->from, f->start, offset);
	settle(&f->to, f->start, offset);
}

static void show_loss(struct etw_consumer *consumer, const struct etw_loss *l)
{
	const struct etw_trace *t = etw_consumer_trace(consumer, l->trace);
	struct json_object *obj, *loss;

	if (!json) {
		char events[64] = "an unknown number of events";

		if (l->events)
			snprintf(events, sizeof(events), "%s events", show_count(l->events));
		note("%s: cpu %u lost %s between %.6f and %.6f s after the start", t->path, l->cpu, events,
		     ((double)l->begin - t->start) / NSEC, ((double)l->end - t->start) / NSEC);
		return;
	}
	obj = json_object_new_object();
	loss = json_object_new_object();
	json_text(loss, "trace", t->path);
	json_u64(loss, "cpu", l->cpu);
	json_u64(loss, "events", l->events);
	json_u64(loss, "packets", l->packets);
	json_u64(loss, "begin", l->begin);
	json_u64(loss, "end", l->end);
	json_object_object_add(obj, "loss", loss);
	json_line(obj);
}

static void show_damage(struct etw_consumer *consumer, const struct etw_damage *d)
{
	struct json_object *obj, *damage;

	if (!json) {
		char bytes[64] = "";

		if (d->bytes)
			snprintf(bytes, sizeof(bytes), " (%" PRIu64 " bytes cannot be read)", (uint64_t)d->bytes);
		note("%s: offset %" PRIu64 ": %s%s", d->file, (uint64_t)d->offset, d->what, bytes);
		return;
	}
	obj = json_object_new_object();
	damage = json_object_new_object();
	json_text(damage, "trace", etw_consumer_trace(consumer, d->trace)->path);
	json_text(damage, "file", d->file);
	json_u64(damage, "offset", d->offset);
	json_u64(damage, "bytes", d->bytes);
	json_text(damage, "what", d->what);
	json_object_object_add(obj, "damage", damage);
	json_line(obj);
}

int filter_report(struct etw_consumer *consumer, bool quiet_loss, struct filter_reported *done)
{
	unsigned int losses = etw_consumer_nr_losses(consumer), damages = etw_consumer_nr_damages(consumer);

	if (!quiet_loss && losses != done->losses) {
		uint64_t events = 0;

		for (unsigned int i = done->losses; i < losses; i++)
			events += etw_consumer_loss(consumer, i)->events;
		if (!json && events)
			note("%s events were lost, in %u place%s", show_count(events), losses - done->losses,
			     losses - done->losses == 1 ? "" : "s");
		else if (!json)
			note("packets are missing in %u place%s", losses - done->losses,
			     losses - done->losses == 1 ? "" : "s");
		for (unsigned int i = done->losses; i < losses; i++)
			/* A flood of losses is summed above; its head is enough to see where. */
			if (json || i - done->losses < 20)
				show_loss(consumer, etw_consumer_loss(consumer, i));
	}
	for (unsigned int i = done->damages; i < damages; i++)
		show_damage(consumer, etw_consumer_damage(consumer, i));
	done->losses = losses;
	done->damages = damages;
	return losses || damages ? STATUS_LOSS : STATUS_OK;
}

int filter_open(struct filter *f, char *const *dirs, bool quiet_loss, struct filter_reported *done,
		struct etw_consumer **consumer)
{
	int err;

	if (!*dirs)
		return usage("which trace? name one directory or more");
	err = etw_consumer_new(NULL, consumer);
	if (err)
		return fail(STATUS_FAILED, "%s", etw_last_error());
	for (; *dirs; dirs++) {
		err = etw_consumer_add_trace(*consumer, *dirs, 0);
		if (err < 0) {
			int status = fail(err == -EACCES || err == -EPERM ? STATUS_DENIED :
					  err == -EBADMSG ? STATUS_LOSS : STATUS_FAILED,
					  "%s", etw_last_error());

			etw_consumer_free(*consumer);
			*consumer = NULL;
			return status;
		}
	}
	filter_start(f, *consumer);
	return filter_report(*consumer, quiet_loss, done);
}

/* Matches what etw_class_match() does, and "provider/event" with the provider's name or short name. */
static bool pattern_matches(const char *pattern, const struct etw_class *cls)
{
	static const char kernel[] = "Linux-Kernel-";
	char provider[ETW_NAME_SIZE];
	const char *event = pattern + strcspn(pattern, "/:");
	const char *alias = cls->provider;

	if (etw_class_match(cls, pattern))
		return true;
	if (!*event || (size_t)(event - pattern) >= sizeof(provider))
		return false;
	memcpy(provider, pattern, event - pattern);
	provider[event++ - pattern] = 0;
	if (!strncmp(alias, kernel, sizeof(kernel) - 1))
		alias += sizeof(kernel) - 1;
	if (fnmatch(provider, cls->provider, FNM_CASEFOLD) && fnmatch(provider, alias, FNM_CASEFOLD))
		return false;
	return !*event || !fnmatch(event, cls->name, 0) || !fnmatch(event, cls->ctf_name, 0);
}

static bool wanted(struct filter *f, const struct etw_class *cls)
{
	bool match = false;

	if (!f->events)
		return true;
	if (cls->index >= f->nr_wanted) {
		unsigned int nr = cls->index + 64;

		f->wanted = realloc(f->wanted, nr);
		if (!f->wanted)
			abort();
		memset(f->wanted + f->nr_wanted, 0, nr - f->nr_wanted);
		f->nr_wanted = nr;
	}
	if (!f->wanted[cls->index]) {
		for (int i = 0; f->events[i]; i++)
			if (pattern_matches(f->events[i], cls))
				f->event_used[i] = match = true;
		f->wanted[cls->index] = match != f->events_out ? 1 : -1;
	}
	return f->wanted[cls->index] > 0;
}

static bool has_pid(const struct filter *f, __s32 pid)
{
	for (unsigned int i = 0; i < f->nr_pids; i++)
		if (f->pids[i] == pid)
			return true;
	return false;
}

int filter_event(struct filter *f, struct tasks *tasks, const struct etw_event *event)
{
	if (f->to.set && event->epoch >= f->to.epoch)
		return FILTER_END;
	if (f->from.set && event->epoch < f->from.epoch)
		return FILTER_NO;
	if (f->cpus && (event->cpu >= f->nr_cpus || !f->cpus[event->cpu]))
		return FILTER_NO;
	if (!wanted(f, event->cls))
		return FILTER_NO;
	if (f->nr_pids && !has_pid(f, event->tid) && !has_pid(f, event->pid)) {
		__s32 tids[2];
		int n = tasks_subjects(tasks, event, tids);
		bool found = false;

		for (int i = 0; i < n; i++)
			found |= has_pid(f, tids[i]) ||
				 (tasks_pid(tasks, tids[i]) && has_pid(f, tasks_pid(tasks, tids[i])));
		if (!found)
			return FILTER_NO;
	}
	if (f->comms) {
		const char *comm = tasks_comm(tasks, event->tid, event->cpu);
		bool found = false;

		for (int i = 0; comm && f->comms[i]; i++)
			found |= !fnmatch(f->comms[i], comm, 0);
		if (!found)
			return FILTER_NO;
	}
	return FILTER_YES;
}

void filter_free(struct filter *f, struct etw_consumer *consumer)
{
	if (f->events && consumer) {
		/* Ask for every class of the table: a class without events is no reason to doubt the pattern. */
		for (unsigned int i = 0; i < etw_consumer_nr_classes(consumer); i++)
			wanted(f, etw_consumer_class(consumer, i));
		for (int i = 0; f->events[i]; i++)
			if (!f->event_used[i])
				note("--event: nothing here is called '%s'; patterns match an event's name, provider:event or provider:",
				     f->events[i]);
	}
	list_free(f->events);
	list_free(f->comms);
	free(f->event_used);
	free(f->wanted);
	free(f->pids);
	free(f->cpus);
	memset(f, 0, sizeof(*f));
}
