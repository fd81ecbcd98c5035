// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The facts of a trace and their form as session.json. It must not know streams or where the file lies. */
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/utsname.h>

#include <json-c/json.h>

#include "error.h"
#include "ticks.h"

#define FACTS_FORMAT 1

static void copy(char *to, size_t size, const char *from)
{
	size_t len = strlen(from);

	len = len < size ? len : size - 1;
	memcpy(to, from, len);
	memset(to + len, 0, size - len);
}

void etw_facts_host(struct facts *facts)
{
	struct utsname uts;
	char id[64] = "";
	__u8 guid[16];
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, id, sizeof(id) - 1);

		id[n > 0 ? n : 0] = 0;
		id[strcspn(id, "\n")] = 0;
		close(fd);
	}
	if (!etw_guid_parse(id, guid))
		etw_guid_format(guid, facts->boot_id);
	if (!uname(&uts)) {
		copy(facts->hostname, sizeof(facts->hostname), uts.nodename);
		copy(facts->kernel_release, sizeof(facts->kernel_release), uts.release);
		copy(facts->kernel_version, sizeof(facts->kernel_version), uts.version);
	}
	copy(facts->writer, sizeof(facts->writer), etw_library_version());
}

void etw_facts_session(struct facts *facts, const struct etw_session_query *q)
{
	copy(facts->name, sizeof(facts->name), (const char *)q->name);
	memcpy(facts->uuid, q->uuid, 16);
	facts->clock = q->clock == ETW_CLOCK_DEFAULT ? ETW_CLOCK_MONOTONIC : q->clock;
	facts->flags = q->flags;
	facts->freq = q->clock_freq;
	facts->offset = q->clock_offset;
	facts->start = q->start_time;
	facts->stop = q->stop_time;
	facts->subbuf_size = q->subbuf_size;
	facts->nr_subbufs = q->nr_subbufs;
	facts->flush_ms = q->flush_ms;
	facts->written = q->written;
	facts->filtered = q->filtered;
	facts->overwritten = q->overwritten;
	memcpy(facts->lost, q->lost, sizeof(facts->lost));
}

static struct etw_trace_provider *provider_add(struct facts *facts)
{
	struct etw_trace_provider *p = realloc(facts->providers, (facts->nr_providers + 1) * sizeof(*p));

	if (!p)
		return NULL;
	facts->providers = p;
	p += facts->nr_providers++;
	memset(p, 0, sizeof(*p));
	return p;
}

int etw_facts_counts(struct facts *facts, struct etw_session *session)
{
	struct etw_provider_query q = { .id = 0 };
	int ret;

	free(facts->providers);
	facts->providers = NULL;
	facts->nr_providers = 0;
	while ((ret = etw_session_next_provider(session, &q)) > 0) {
		struct etw_trace_provider *p = provider_add(facts);

		if (!p)
			return etw_error_errno(-ENOMEM, "counts of the session");
		copy(p->name, sizeof(p->name), (const char *)q.name);
		memcpy(p->guid, q.guid, 16);
		p->level = q.level;
		p->any = q.any;
		p->all = q.all;
		p->written = q.written;
		p->filtered = q.filtered;
		memcpy(p->lost, q.lost, sizeof(p->lost));
	}
	return ret;
}

static void add_text(json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void add_number(json_object *o, const char *key, __u64 value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void add_hex(json_object *o, const char *key, __u64 value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, (uint64_t)value);
	add_text(o, key, text);
}

static json_object *lost_object(const __u64 lost[ETW_NR_LOST])
{
	json_object *o = json_object_new_object();
	int i;

	for (i = 0; i < ETW_NR_LOST; i++)
		add_number(o, etw_lost_name(i), lost[i]);
	return o;
}

char *etw_facts_print(const struct facts *facts)
{
	json_object *o = json_object_new_object(), *list = json_object_new_array();
	char guid[ETW_GUID_TEXT_SIZE], digest[DIGEST_TEXT_SIZE], *text = NULL;
	const char *json;
	__u32 i;

	add_number(o, "format", FACTS_FORMAT);
	add_text(o, "writer", facts->writer);
	add_text(o, "name", facts->name);
	etw_guid_format(facts->uuid, guid);
	add_text(o, "uuid", guid);
	json_object_object_add(o, "finished", json_object_new_boolean(facts->finished));
	json_object_object_add(o, "snapshot", json_object_new_boolean(facts->snapshot));
	json_object_object_add(o, "circular", json_object_new_boolean(facts->circular));
	add_text(o, "clock", etw_clock_name(facts->clock));
	json_object_object_add(o, "clock_offset", json_object_new_int64(facts->offset));
	if (facts->clock == ETW_CLOCK_CYCLES)
		add_number(o, "clock_freq", facts->freq);
	add_number(o, "start", facts->start);
	add_number(o, "stop", facts->stop);
	json_object_object_add(o, "overwrite", json_object_new_boolean(!!(facts->flags & ETW_SESSION_OVERWRITE)));
	json_object_object_add(o, "persist", json_object_new_boolean(!!(facts->flags & ETW_SESSION_PERSIST)));
	json_object_object_add(o, "addresses", json_object_new_boolean(!!(facts->flags & ETW_SESSION_ADDRESSES)));
	add_number(o, "subbuf_size", facts->subbuf_size);
	add_number(o, "nr_subbufs", facts->nr_subbufs);
	add_number(o, "flush_ms", facts->flush_ms);
	add_number(o, "written", facts->written);
	add_number(o, "filtered", facts->filtered);
	add_number(o, "overwritten", facts->overwritten);
	json_object_object_add(o, "lost", lost_object(facts->lost));
	add_text(o, "boot_id", facts->boot_id);
	add_text(o, "hostname", facts->hostname);
	add_text(o, "kernel_release", facts->kernel_release);
	add_text(o, "kernel_version", facts->kernel_version);
	if (facts->command)
		add_text(o, "command", facts->command);
	for (i = 0; i < facts->nr_providers; i++) {
		const struct etw_trace_provider *p = &facts->providers[i];
		json_object *item = json_object_new_object();

		add_text(item, "name", p->name);
		etw_guid_format(p->guid, guid);
		add_text(item, "guid", guid);
		add_number(item, "level", p->level);
		add_hex(item, "any", p->any);
		add_hex(item, "all", p->all);
		add_number(item, "written", p->written);
		add_number(item, "filtered", p->filtered);
		json_object_object_add(item, "lost", lost_object(p->lost));
		json_object_array_add(list, item);
	}
	json_object_object_add(o, "providers", list);
	list = json_object_new_array();
	for (i = 0; i < facts->nr_cpus; i++)
		json_object_array_add(list, json_object_new_uint64(facts->cpus[i]));
	json_object_object_add(o, "cpus", list);
	add_text(o, "schema_digest", facts->schema_digest);
	/* Of everything before it. */
	json = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	etw_digest(json ? json : "", json ? strlen(json) : 0, digest);
	add_text(o, "digest", digest);
	json = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (json && asprintf(&text, "%s\n", json) < 0)
		text = NULL;
	json_object_put(o);
	return text;
}

/* The reader below notes the first key that is missing or of another kind, and goes on. */
struct source {
	json_object *o;
	const char *bad;
	char text[96];
};

static json_object *member(struct source *s, json_object *o, const char *key, json_type type)
{
	json_object *v = NULL;

	if (json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) &&
	    json_object_is_type(v, type))
		return v;
	if (!s->bad) {
		snprintf(s->text, sizeof(s->text), "\"%s\" is missing or not what it should be", key);
		s->bad = s->text;
	}
	return NULL;
}

static __u64 get_number(struct source *s, json_object *o, const char *key)
{
	return json_object_get_uint64(member(s, o, key, json_type_int));
}

static bool get_bool(struct source *s, json_object *o, const char *key)
{
	return json_object_get_boolean(member(s, o, key, json_type_boolean));
}

static void get_text(struct source *s, json_object *o, const char *key, char *to, size_t size)
{
	json_object *v = member(s, o, key, json_type_string);

	if (v)
		copy(to, size, json_object_get_string(v));
}

static __u64 get_hex(struct source *s, json_object *o, const char *key)
{
	char text[32] = "";

	get_text(s, o, key, text, sizeof(text));
	return strtoull(text, NULL, 16);
}

static void get_guid(struct source *s, json_object *o, const char *key, __u8 guid[16])
{
	char text[64] = "";

	get_text(s, o, key, text, sizeof(text));
	if (etw_guid_parse(text, guid) && !s->bad) {
		snprintf(s->text, sizeof(s->text), "\"%s\" is not a GUID", key);
		s->bad = s->text;
	}
}

static void get_lost(struct source *s, json_object *o, __u64 lost[ETW_NR_LOST])
{
	json_object *v = member(s, o, "lost", json_type_object);
	int i;

	for (i = 0; v && i < ETW_NR_LOST; i++)
		lost[i] = get_number(s, v, etw_lost_name(i));
}

/* Our own text, to the byte: its digest is part of it. */
static bool as_printed(const struct facts *facts, const char *text, size_t len)
{
	char *again;
	bool same;

	/* Another version may print otherwise. */
	if (strcmp(facts->writer, etw_library_version()))
		return true;
	again = etw_facts_print(facts);
	same = again && strlen(again) == len && !memcmp(again, text, len);
	free(again);
	return same;
}

const char *etw_facts_parse(struct facts *facts, const char *text, size_t len)
{
	static __thread char what[96];
	struct json_tokener *tokener;
	struct source s = { .bad = NULL };
	json_object *o, *list, *command = NULL;
	char clock[16] = "";
	size_t i;
	int id;

	if (len > 64 << 20)
		return "it is too large";
	tokener = json_tokener_new();
	if (!tokener)
		return "there is no memory to read it";
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	o = json_tokener_parse_ex(tokener, text, len);
	if (!o || !json_object_is_type(o, json_type_object)) {
		snprintf(what, sizeof(what), "it is not whole JSON from byte %zu on",
			 json_tokener_get_parse_end(tokener));
		json_object_put(o);
		json_tokener_free(tokener);
		return what;
	}
	json_tokener_free(tokener);
	if (get_number(&s, o, "format") != FACTS_FORMAT && !s.bad)
		s.bad = "its format is not one that this program knows";
	get_text(&s, o, "writer", facts->writer, sizeof(facts->writer));
	get_text(&s, o, "name", facts->name, sizeof(facts->name));
	get_guid(&s, o, "uuid", facts->uuid);
	facts->finished = get_bool(&s, o, "finished");
	facts->snapshot = get_bool(&s, o, "snapshot");
	facts->circular = get_bool(&s, o, "circular");
	get_text(&s, o, "clock", clock, sizeof(clock));
	id = etw_clock_parse(clock);
	if (id < 0 && !s.bad)
		s.bad = "\"clock\" is not one that this program knows";
	facts->clock = id < 0 ? ETW_CLOCK_MONOTONIC : id;
	facts->offset = json_object_get_int64(member(&s, o, "clock_offset", json_type_int));
	facts->freq = facts->clock == ETW_CLOCK_CYCLES ? get_number(&s, o, "clock_freq") : TICKS_NSEC;
	if (!ticks_valid(facts->freq)) {
		facts->freq = TICKS_NSEC;
		if (!s.bad)
			s.bad = "\"clock_freq\" is not a frequency";
	}
	facts->start = get_number(&s, o, "start");
	facts->stop = get_number(&s, o, "stop");
	facts->flags = (get_bool(&s, o, "overwrite") ? ETW_SESSION_OVERWRITE : 0) |
		       (get_bool(&s, o, "persist") ? ETW_SESSION_PERSIST : 0) |
		       (get_bool(&s, o, "addresses") ? ETW_SESSION_ADDRESSES : 0);
	facts->subbuf_size = get_number(&s, o, "subbuf_size");
	facts->nr_subbufs = get_number(&s, o, "nr_subbufs");
	facts->flush_ms = get_number(&s, o, "flush_ms");
	facts->written = get_number(&s, o, "written");
	facts->filtered = get_number(&s, o, "filtered");
	facts->overwritten = get_number(&s, o, "overwritten");
	get_lost(&s, o, facts->lost);
	get_text(&s, o, "boot_id", facts->boot_id, sizeof(facts->boot_id));
	get_text(&s, o, "hostname", facts->hostname, sizeof(facts->hostname));
	get_text(&s, o, "kernel_release", facts->kernel_release, sizeof(facts->kernel_release));
	get_text(&s, o, "kernel_version", facts->kernel_version, sizeof(facts->kernel_version));
	if (json_object_object_get_ex(o, "command", &command) && json_object_is_type(command, json_type_string))
		facts->command = strdup(json_object_get_string(command));
	list = member(&s, o, "providers", json_type_array);
	for (i = 0; list && i < json_object_array_length(list); i++) {
		json_object *item = json_object_array_get_idx(list, i);
		struct etw_trace_provider *p = provider_add(facts);

		if (!p)
			break;
		get_text(&s, item, "name", p->name, sizeof(p->name));
		get_guid(&s, item, "guid", p->guid);
		p->level = get_number(&s, item, "level");
		p->any = get_hex(&s, item, "any");
		p->all = get_hex(&s, item, "all");
		p->written = get_number(&s, item, "written");
		p->filtered = get_number(&s, item, "filtered");
		get_lost(&s, item, p->lost);
	}
	list = member(&s, o, "cpus", json_type_array);
	facts->cpus = list ? calloc(json_object_array_length(list) + 1, sizeof(*facts->cpus)) : NULL;
	for (i = 0; facts->cpus && i < json_object_array_length(list); i++)
		facts->cpus[facts->nr_cpus++] = json_object_get_uint64(json_object_array_get_idx(list, i));
	get_text(&s, o, "schema_digest", facts->schema_digest, sizeof(facts->schema_digest));
	json_object_put(o);
	if (!s.bad && !as_printed(facts, text, len))
		s.bad = "it is not as it was written";
	if (s.bad)
		copy(what, sizeof(what), s.bad);
	return s.bad ? what : NULL;
}

void etw_facts_free(struct facts *facts)
{
	free(facts->command);
	free(facts->providers);
	free(facts->cpus);
	facts->command = NULL;
	facts->providers = NULL;
	facts->cpus = NULL;
	facts->nr_providers = facts->nr_cpus = 0;
}
