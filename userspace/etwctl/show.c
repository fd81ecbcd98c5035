// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs that show what there is: status of sessions, list of sessions, providers, events, profiles. They change
 * nothing.
 */
#include "dev.h"
#include "etwctl.h"
#include "spec.h"
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NSEC 1000000000ULL

enum { OPT_NAMES = OPT_PRIVATE };

const struct opt opts_list[] = {
	{ "names", OPT_NAMES, NULL, "print names only, one a line", NULL },
	{}
};

static const char *when(int64_t epoch)
{
	static char buf[32];
	time_t second = epoch / (int64_t)NSEC;
	struct tm tm;

	strftime(buf, sizeof(buf), "%F %T", localtime_r(&second, &tm));
	return buf;
}

static const char *flush_text(uint32_t ms)
{
	static char buf[24];

	if (ms == ETW_FLUSH_MS_NEVER)
		return "never";
	snprintf(buf, sizeof(buf), "%u ms", ms);
	return buf;
}

static const char *mode_of(const struct etw_session_query *q)
{
	return q->flags & ETW_SESSION_OVERWRITE ? "overwrite" : "discard";
}

/* Why it stopped, in words or as one. */
static const char *stop_reason_of(const struct etw_session_query *q, bool word)
{
	static const char *const reasons[][2] = {
		[ETW_STOP_REQUEST] = { "on request", "request" },
		[ETW_STOP_CLOSED] = { "with its owner", "closed" },
		[ETW_STOP_CLOCK] = { "because the cycle counter can be relied on no more; use --clock monotonic", "clock" },
	};

	if (q->stop_reason >= sizeof(reasons) / sizeof(reasons[0]) || !reasons[q->stop_reason][word])
		return "for a reason not known";
	return reasons[q->stop_reason][word];
}

static uint64_t sum_lost(const __u64 lost[ETW_NR_LOST])
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < ETW_NR_LOST; i++)
		sum += lost[i];
	return sum;
}

static struct json_object *json_lost(const __u64 lost[ETW_NR_LOST])
{
	struct json_object *obj = json_object_new_object();

	for (unsigned int i = 0; i < ETW_NR_LOST; i++)
		json_u64(obj, etw_lost_name(i), lost[i]);
	return obj;
}

static struct json_object *json_session(const struct etw_session_query *q, const struct state *s)
{
	struct json_object *obj = json_object_new_object();
	char uuid[ETW_GUID_TEXT_SIZE];

	etw_guid_format(q->uuid, uuid);
	json_text(obj, "session", (const char *)q->name);
	json_text(obj, "state", q->state == ETW_SESSION_RUNNING ? "running" : "stopped");
	if (q->state == ETW_SESSION_STOPPED)
		json_text(obj, "stop_reason", stop_reason_of(q, true));
	json_u64(obj, "id", q->id);
	json_text(obj, "uuid", uuid);
	json_text(obj, "mode", mode_of(q));
	json_object_object_add(obj, "persist", json_object_new_boolean(!!(q->flags & ETW_SESSION_PERSIST)));
	json_object_object_add(obj, "kernel_addresses", json_object_new_boolean(!!(q->flags & ETW_SESSION_ADDRESSES)));
	json_text(obj, "clock", etw_clock_name(q->clock));
	if (q->clock == ETW_CLOCK_CYCLES)
		json_u64(obj, "clock_freq", q->clock_freq);
	json_u64(obj, "subbuf_size", q->subbuf_size);
	json_u64(obj, "subbufs", q->nr_subbufs);
	if (q->flush_ms == ETW_FLUSH_MS_NEVER)
		json_object_object_add(obj, "flush_ms", NULL);
	else
		json_u64(obj, "flush_ms", q->flush_ms);
	json_u64(obj, "relays", q->nr_relays);
	json_u64(obj, "memory", q->memory);
	json_u64(obj, "classes", q->nr_classes);
	json_s64(obj, "owner_pid", q->owner_pid);
	json_u64(obj, "owner_uid", q->owner_uid);
	json_s64(obj, "reader_pid", q->reader_pid);
	json_u64(obj, "start_time", q->start_time);
	json_u64(obj, "stop_time", q->stop_time);
	json_u64(obj, "now", q->now);
	json_s64(obj, "clock_offset", q->clock_offset);
	json_u64(obj, "written", q->written);
	json_u64(obj, "filtered", q->filtered);
	json_u64(obj, "delivered", q->delivered);
	json_u64(obj, "overwritten", q->overwritten);
	json_u64(obj, "unread", q->unread);
	json_u64(obj, "lost", sum_lost(q->lost));
	json_object_object_add(obj, "lost_by_cause", json_lost(q->lost));
	json_u64(obj, "complete_up_to", q->complete_up_to);
	if (s && s->life == STATE_ALIVE)
		json_text(obj, "directory", s->dir);
	return obj;
}

/* A session that is gone, from what its writer left. */
static void json_gone(const struct state *s)
{
	struct json_object *obj = json_object_new_object();

	json_text(obj, "session", s->name);
	json_text(obj, "state", s->life == STATE_DIED ? "died" : "ended");
	json_text(obj, "directory", s->dir);
	json_s64(obj, "writer_pid", s->pid);
	if (s->life == STATE_ENDED) {
		json_text(obj, "end", s->reason);
		json_u64(obj, "events", s->events);
		json_u64(obj, "bytes", s->bytes);
		json_u64(obj, "lost", s->lost);
		json_s64(obj, "status", s->status);
	}
	json_line(obj);
}

static int show_gone(const struct state *s)
{
	if (json) {
		json_gone(s);
	} else if (s->life == STATE_DIED) {
		printf("%s: DIED: its writer (process %d, started %s) was killed or crashed, and the session ended with it\n",
		       s->name, s->pid, when(s->started));
		printf("  %s holds what was written; etwctl repair makes it readable for other tools; etwctl stop %s forgets it\n",
		       s->dir, s->name);
	} else {
		printf("%s: ended %s: %s\n", s->name, when(s->ended), s->reason);
		printf("  %s events, %s, %s lost, in %s; etwctl stop %s forgets it\n", show_count(s->events),
		       show_bytes(s->bytes), show_count(s->lost), s->dir, s->name);
	}
	return s->life == STATE_DIED ? STATUS_LOSS : s->status;
}

static void show_lost(const __u64 lost[ETW_NR_LOST], const char *indent)
{
	for (unsigned int i = 0; i < ETW_NR_LOST; i++)
		if (lost[i])
			printf("%sLOST %s: %s\n", indent, show_count(lost[i]), etw_lost_text(i));
}

static void show_session(const struct etw_session_query *q, const struct state *s)
{
	uint64_t end = q->stop_time ? q->stop_time : q->now;

	printf("%s: %s for %.1f s, %s mode, clock %s%s\n", (const char *)q->name,
	       q->state == ETW_SESSION_RUNNING ? "running" : "stopped", (double)(end - q->start_time) / NSEC,
	       mode_of(q), etw_clock_name(q->clock),
	       q->flags & ETW_SESSION_ADDRESSES ? ", shows kernel addresses" : "");
	if (q->state == ETW_SESSION_STOPPED)
		printf("  it stopped %s\n", stop_reason_of(q, false));
	show_lost(q->lost, "  ");
	if (s && s->life == STATE_ALIVE)
		printf("  written into %s by process %d\n", s->dir, s->pid);
	else if (q->reader_pid)
		printf("  read by process %d\n", q->reader_pid);
	else
		printf("  nobody reads it\n");
	printf("  owner: process %d, uid %u%s\n", q->owner_pid, q->owner_uid,
	       q->flags & ETW_SESSION_PERSIST ? ", outlives it" : "");
	printf("  memory: %s, %u relays of %u+1 sub-buffers of %s, flush %s\n", show_bytes(q->memory), q->nr_relays,
	       q->nr_subbufs, show_bytes(q->subbuf_size), flush_text(q->flush_ms));
	printf("  events: %s written, %s delivered, %s unread, %s overwritten, %s lost, %s filtered\n",
	       show_count(q->written), show_count(q->delivered), show_count(q->unread), show_count(q->overwritten),
	       show_count(sum_lost(q->lost)), show_count(q->filtered));
}

static void show_details(struct etw_session *session)
{
	struct etw_provider_query p = {};
	struct etw_cpu_query c = {};

	printf("  %-26s %5s %18s %12s %12s %10s  %s\n", "provider", "level", "any keyword", "written", "filtered",
	       "lost", "notes");
	while (etw_session_next_provider(session, &p) == 1) {
		char level[12] = "every", any[24] = "every";

		if (p.level)
			snprintf(level, sizeof(level), "%u", p.level);
		if (p.any && p.any != UINT64_MAX)
			snprintf(any, sizeof(any), "%#" PRIx64, (uint64_t)p.any);
		printf("  %-26s %5s %18s %12s %12s %10s  %s%s", *p.name ? (const char *)p.name : "(by GUID)", level,
		       any, show_count(p.written), show_count(p.filtered), show_count(sum_lost(p.lost)),
		       p.enabled ? "" : "disabled ", p.registered ? "" : "not registered ");
		if (p.nr_pids)
			printf("%u pids ", p.nr_pids);
		if (p.event_mode != ETW_EVENTS_ALL)
			printf("%s %u events ", p.event_mode == ETW_EVENTS_IN ? "only" : "without", p.nr_events);
		if (p.id_mode != ETW_EVENTS_ALL)
			printf("%s %u ids ", p.id_mode == ETW_EVENTS_IN ? "only" : "without", p.nr_ids);
		if (p.nr_processes)
			printf("%u process names ", p.nr_processes);
		if (p.nr_predicates)
			printf("%s of %u conditions ", p.flags & ETW_ENABLE_ANY_PREDICATE ? "any" : "all",
			       p.nr_predicates);
		if (p.flags & ETW_ENABLE_UID)
			printf("one uid ");
		putchar('\n');
	}
	printf("  %-26s %12s %12s %10s %12s %10s\n", "CPU", "written", "delivered", "unread", "overwritten", "lost");
	for (; etw_session_query_cpu(session, &c) == 1; c.cpu++)
		printf("  %-26u %12s %12s %10s %12s %10s\n", c.cpu, show_count(c.written), show_count(c.delivered),
		       show_count(c.unread), show_count(c.overwritten), show_count(sum_lost(c.lost)));
}

static void json_details(struct json_object *obj, struct etw_session *session)
{
	struct json_object *providers = json_object_new_array(), *cpus = json_object_new_array();
	struct etw_provider_query p = {};
	struct etw_cpu_query c = {};

	while (etw_session_next_provider(session, &p) == 1) {
		struct json_object *one = json_object_new_object();
		char guid[ETW_GUID_TEXT_SIZE];

		etw_guid_format(p.guid, guid);
		json_text(one, "provider", (const char *)p.name);
		json_text(one, "guid", guid);
		json_object_object_add(one, "enabled", json_object_new_boolean(p.enabled));
		json_object_object_add(one, "registered", json_object_new_boolean(p.registered));
		json_u64(one, "level", p.level);
		json_u64(one, "any", p.any);
		json_u64(one, "all", p.all);
		json_u64(one, "pids", p.nr_pids);
		json_text(one, "event_mode",
			  p.event_mode == ETW_EVENTS_ALL ? "all" :
			  p.event_mode == ETW_EVENTS_IN	 ? "in" :
							   "out");
		json_u64(one, "events", p.nr_events);
		json_text(one, "id_mode",
			  p.id_mode == ETW_EVENTS_ALL ? "all" :
			  p.id_mode == ETW_EVENTS_IN  ? "in" :
							"out");
		json_u64(one, "ids", p.nr_ids);
		json_u64(one, "processes", p.nr_processes);
		json_u64(one, "conditions", p.nr_predicates);
		json_object_object_add(one, "any_condition",
				       json_object_new_boolean(!!(p.flags & ETW_ENABLE_ANY_PREDICATE)));
		json_u64(one, "written", p.written);
		json_u64(one, "filtered", p.filtered);
		json_u64(one, "lost", sum_lost(p.lost));
		json_object_object_add(one, "lost_by_cause", json_lost(p.lost));
		json_object_array_add(providers, one);
	}
	for (; etw_session_query_cpu(session, &c) == 1; c.cpu++) {
		struct json_object *one = json_object_new_object();

		json_u64(one, "cpu", c.cpu);
		json_u64(one, "written", c.written);
		json_u64(one, "delivered", c.delivered);
		json_u64(one, "unread", c.unread);
		json_u64(one, "overwritten", c.overwritten);
		json_u64(one, "lost", sum_lost(c.lost));
		json_object_object_add(one, "lost_by_cause", json_lost(c.lost));
		json_u64(one, "complete_up_to", c.complete_up_to);
		json_object_array_add(cpus, one);
	}
	json_object_object_add(obj, "providers", providers);
	json_object_object_add(obj, "cpus", cpus);
}

/* One session by name: live, or what its writer left. */
static int status_one(struct etw_control *control, const char *name)
{
	struct etw_session_query q = {};
	struct etw_session *session;
	struct state *s;
	int status, err;

	err = etw_session_open(control, name, &session);
	if (err == -ENOENT) {
		s = state_read(name, -1);
		/* Alive without a session: it has stopped and its writer is about to finish. */
		if (s && s->life == STATE_ALIVE)
			state_wait(s, 10000);
		if (s && s->life != STATE_ALIVE) {
			status = show_gone(s);
			state_free(s);
			return status;
		}
		state_free(s);
		return open_session(control, name, &session);
	}
	if (err)
		return fail_etw(err, NULL);
	err = etw_session_query(session, &q);
	if (err) {
		status = fail_etw(err, name);
		etw_session_close(session);
		return status;
	}
	s = state_read(name, q.owner_uid);
	if (json) {
		struct json_object *obj = json_session(&q, s);

		json_details(obj, session);
		json_line(obj);
	} else {
		show_session(&q, s);
		show_details(session);
	}
	state_free(s);
	etw_session_close(session);
	return sum_lost(q.lost) ? STATUS_LOSS : STATUS_OK;
}

static bool is_live(struct etw_control *control, const char *name)
{
	struct etw_session_query q = {};

	while (etw_control_next_session(control, &q) == 1)
		if (!strcmp((const char *)q.name, name))
			return true;
	return false;
}

int cmd_status(int argc, char **argv)
{
	struct etw_session_query q = {};
	struct etw_control *control;
	struct etw_version v = {};
	int status, ret, n = 0;
	struct state **all;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	status = open_control(&control);
	if (status)
		return status;
	for (int i = optind; i < argc; i++)
		status = worse(status, status_one(control, argv[i]));
	if (optind < argc) {
		etw_control_close(control);
		return status;
	}
	while ((ret = etw_control_next_session(control, &q)) == 1) {
		struct state *s = state_read((const char *)q.name, q.owner_uid);

		if (json)
			json_line(json_session(&q, s));
		else
			show_session(&q, s);
		state_free(s);
		if (sum_lost(q.lost))
			status = STATUS_LOSS;
		n++;
	}
	if (ret < 0)
		status = fail_etw(ret, NULL);
	all = state_all();
	for (struct state **s = all; ret >= 0 && *s; s++)
		if ((*s)->life != STATE_ALIVE && !is_live(control, (*s)->name)) {
			status = worse(status, show_gone(*s));
			n++;
		}
	state_free_all(all);
	if (!n && ret >= 0 && !json && !etw_control_version(control, &v))
		printf("no session; all together may take %s of memory\n", show_bytes(v.memory_limit));
	etw_control_close(control);
	return status;
}

static int list_sessions(struct etw_control *control, bool names)
{
	struct etw_session_query q = {};
	int ret;

	if (!names && !json)
		printf("%-24s %-8s %-9s %8s %10s %14s %10s  %s\n", "session", "state", "mode", "owner", "memory",
		       "written", "lost", "reader");
	while ((ret = etw_control_next_session(control, &q)) == 1) {
		if (json)
			json_line(json_session(&q, NULL));
		else if (names)
			puts((const char *)q.name);
		else
			printf("%-24s %-8s %-9s %8d %10s %14s %10s  %d\n", (const char *)q.name,
			       q.state == ETW_SESSION_RUNNING ? "running" : "stopped", mode_of(&q), q.owner_pid,
			       show_bytes(q.memory), show_count(q.written), show_count(sum_lost(q.lost)), q.reader_pid);
	}
	return ret < 0 ? fail_etw(ret, NULL) : STATUS_OK;
}

static void show_provider(const struct etw_provider_list *p, const struct etw_keyword *keywords, bool full)
{
	char guid[ETW_GUID_TEXT_SIZE];

	etw_guid_format(p->guid, guid);
	printf("%-10s %-24s %s %4u events%s, %u sessions\n", *p->alias ? (const char *)p->alias : "-",
	       (const char *)p->name, guid, p->nr_events, p->nr_unavailable ? " (some not available)" : "",
	       p->nr_sessions);
	for (unsigned int i = 0; full && i < p->nr_keywords; i++)
		printf("  keyword %-16.*s %#" PRIx64 "\n", (int)sizeof(keywords[i].name),
		       (const char *)keywords[i].name, (uint64_t)keywords[i].mask);
}

static void json_provider(const struct etw_provider_list *p, const struct etw_keyword *keywords)
{
	struct json_object *obj = json_object_new_object(), *words = json_object_new_object();
	char guid[ETW_GUID_TEXT_SIZE], name[sizeof(keywords->name) + 1];

	etw_guid_format(p->guid, guid);
	json_text(obj, "provider", (const char *)p->name);
	json_text(obj, "alias", (const char *)p->alias);
	json_text(obj, "guid", guid);
	json_object_object_add(obj, "kernel", json_object_new_boolean(!!(p->flags & ETW_PROVIDER_KERNEL)));
	json_u64(obj, "events", p->nr_events);
	json_u64(obj, "unavailable", p->nr_unavailable);
	json_u64(obj, "sessions", p->nr_sessions);
	for (unsigned int i = 0; i < p->nr_keywords; i++) {
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(keywords[i].name), (const char *)keywords[i].name);
		json_u64(words, name, keywords[i].mask);
	}
	json_object_object_add(obj, "keywords", words);
	json_line(obj);
}

/* Who may not control sessions is shown what is their own, and nothing of the kernel's. */
static bool shown_all(struct etw_control *control)
{
	struct etw_provider_list p = {};

	while (etw_control_next_provider(control, &p, NULL) == 1)
		if (p.flags & ETW_PROVIDER_KERNEL)
			return true;
	return false;
}

static int no_provider(struct etw_control *control, const char *name)
{
	if (!shown_all(control))
		return fail(STATUS_DENIED, "'%s' is not a provider of yours; others are shown with CAP_PERFMON or CAP_SYS_ADMIN",
			    name);
	return fail(STATUS_FAILED, "'%s' is not a provider; etwctl list providers shows them", name);
}

static int list_providers(struct etw_control *control, char **which, bool names)
{
	struct etw_provider_list p = {};
	const struct etw_keyword *keywords;
	int ret, status = STATUS_OK;

	for (; *which; which++) {
		memset(&p, 0, sizeof(p));
		ret = etw_control_find_provider(control, *which, &p, &keywords);
		if (ret)
			status = worse(status, ret == -ENOENT ? no_provider(control, *which) : fail_etw(ret, *which));
		else if (json)
			json_provider(&p, keywords);
		else if (names)
			puts(*p.alias ? (const char *)p.alias : (const char *)p.name);
		else
			show_provider(&p, keywords, true);
		if (!which[1])
			return status;
	}
	while ((ret = etw_control_next_provider(control, &p, &keywords)) == 1) {
		if (json)
			json_provider(&p, keywords);
		else if (names)
			puts(*p.alias ? (const char *)p.alias : (const char *)p.name);
		else
			show_provider(&p, keywords, false);
	}
	if (!ret && !shown_all(control))
		note("only your own are shown; the others with CAP_PERFMON or CAP_SYS_ADMIN");
	return ret < 0 ? fail_etw(ret, NULL) : STATUS_OK;
}

static void show_event(const struct etw_event_list *e, const struct etw_class *cls)
{
	const char *level = etw_level_name(cls->level);

	printf("%s:%s  id %u, level %u%s%s%s, keyword %#" PRIx64 "%s\n", cls->provider, cls->name, cls->event_id,
	       cls->level, level ? " (" : "", level ? level : "", level ? ")" : "", (uint64_t)cls->keyword,
	       e->flags & ETW_EVENT_RUNDOWN ? ", rundown" : "");
	if (!(e->flags & ETW_EVENT_AVAILABLE))
		printf("  NOT AVAILABLE: %s\n", (const char *)e->reason);
	if (strcmp(cls->ctf_name, cls->name))
		printf("  in CTF: %s\n", cls->ctf_name);
	if (*cls->description)
		printf("  %s\n", cls->description);
	for (unsigned int i = 0; i < cls->nr_fields; i++) {
		const struct etw_field *f = &cls->fields[i];

		printf("  %-20s %s", f->name, etw_type_name(f->type));
		if (f->array == ETW_ARRAY_COUNTED)
			fputs("[]", stdout);
		else if (f->array == ETW_ARRAY_FIXED || f->type == ETW_TYPE_CHARS)
			printf("[%u]", f->count);
		if (f->format)
			printf(" %s", etw_format_name(f->format));
		putchar('\n');
	}
}

static void json_event(const struct etw_event_list *e, const struct etw_class *cls)
{
	struct json_object *obj = json_object_new_object(), *fields = json_object_new_array();

	json_text(obj, "provider", cls->provider);
	json_text(obj, "event", cls->name);
	json_text(obj, "ctf", cls->ctf_name);
	json_text(obj, "description", cls->description);
	json_u64(obj, "id", cls->event_id);
	json_u64(obj, "version", cls->version);
	json_u64(obj, "level", cls->level);
	json_u64(obj, "opcode", cls->opcode);
	json_u64(obj, "task", cls->task);
	json_u64(obj, "keyword", cls->keyword);
	json_object_object_add(obj, "rundown", json_object_new_boolean(!!(e->flags & ETW_EVENT_RUNDOWN)));
	json_object_object_add(obj, "available", json_object_new_boolean(!!(e->flags & ETW_EVENT_AVAILABLE)));
	if (!(e->flags & ETW_EVENT_AVAILABLE))
		json_text(obj, "reason", (const char *)e->reason);
	for (unsigned int i = 0; i < cls->nr_fields; i++) {
		const struct etw_field *f = &cls->fields[i];
		struct json_object *field = json_object_new_object();

		json_text(field, "name", f->name);
		json_text(field, "type", etw_type_name(f->type));
		json_text(field, "array",
			  f->array == ETW_ARRAY_COUNTED ? "counted" :
			  f->array == ETW_ARRAY_FIXED	? "fixed" :
							  "none");
		json_u64(field, "count", f->count);
		json_text(field, "format", etw_format_name(f->format));
		json_object_array_add(fields, field);
	}
	json_object_object_add(obj, "fields", fields);
	json_line(obj);
}

static int list_events(struct etw_control *control, char **which, size_t nr, bool names)
{
	__u64 *ids = xmalloc(nr * sizeof(*ids));
	struct etw_event_list e = {};
	const struct etw_class *cls;
	int ret;

	for (size_t i = 0; i < nr; i++) {
		struct etw_provider_list p = {};

		if (etw_control_find_provider(control, which[i], &p, NULL)) {
			free(ids);
			return no_provider(control, which[i]);
		}
		ids[i] = p.id;
	}
	while ((ret = etw_control_next_event(control, &e, &cls)) == 1) {
		bool wanted = !nr;

		for (size_t i = 0; i < nr; i++)
			wanted |= ids[i] == e.provider_id;
		if (!wanted)
			continue;
		if (json)
			json_event(&e, cls);
		else if (names)
			puts(cls->name);
		else
			show_event(&e, cls);
	}
	free(ids);
	return ret < 0 ? fail_etw(ret, NULL) : STATUS_OK;
}

static void show_profile(const char *name, const char *from, const char *description)
{
	if (json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "profile", name);
		json_text(obj, "from", from);
		json_text(obj, "description", description);
		json_line(obj);
	} else {
		printf("%-12s %s (%s)\n", name, description, from);
	}
}

static void name_profile(const char *name, const char *from, const char *description)
{
	(void)from;
	(void)description;
	puts(name);
}

int cmd_list(int argc, char **argv)
{
	struct etw_control *control;
	bool names = false;
	const char *what;
	int key, status;

	while ((key = opt_next(argc, argv)) != -1) {
		if (key != OPT_NAMES)
			return STATUS_USAGE;
		names = true;
	}
	if (optind == argc)
		return usage("what? sessions, providers, events or profiles");
	what = argv[optind++];
	if (!strcmp(what, "profiles") && optind == argc) {
		profiles_each(names && !json ? name_profile : show_profile);
		return STATUS_OK;
	}
	if (strcmp(what, "sessions") && strcmp(what, "providers") && strcmp(what, "events"))
		return usage("'%s' cannot be listed; sessions, providers, events and profiles can", what);
	if (optind < argc && !strcmp(what, "sessions"))
		return usage("'%s' is one word too many; etwctl status %s shows one session", argv[optind],
			     argv[optind]);
	status = open_control(&control);
	if (status)
		return status;
	if (!strcmp(what, "sessions"))
		status = list_sessions(control, names);
	else if (!strcmp(what, "providers"))
		status = list_providers(control, argv + optind, names);
	else
		status = list_events(control, argv + optind, argc - optind, names);
	etw_control_close(control);
	return status;
}
