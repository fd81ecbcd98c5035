// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command's parsers: each line is one option of record or start, or, after a line "--", of dump, with its argument:
 * "p sched:info", "E sched_*"; then what was asked for is settled against providers that are made up here. The module is
 * not asked.
 */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "filter.h"
#include "run.h"
#include "spec.h"
#include "../tests/synth.h"

static const struct {
	const char *name, *alias;
	const char *keywords[3];
	const char *events[4];
} known[] = {
	{ "Linux-Kernel-Etw", "etw", { "session", "clock" }, { "session_start", "clock_snapshot" } },
	{ "Linux-Kernel-Sched", "sched", { "switch", "wakeup", "migrate" }, { "sched_switch", "sched_waking", "sched_wakeup" } },
	{ "Linux-Kernel-Process", "process", { "process" }, { "sched_process_fork", "sched_process_exit", "task_rename" } },
};

#define NR_KNOWN (sizeof(known) / sizeof(known[0]))

static const char *const flag_names[] = { "write", "read", "sync", NULL };
static const char *const value_names[] = { "running", "disk sleep", NULL };

/* Of every kind that a condition can be on, or not. */
static const struct synth_field fields[] = {
	{ "u8", ETW_TYPE_U8 }, { "s16", ETW_TYPE_S16 }, { "u64", ETW_TYPE_U64 }, { "s64", ETW_TYPE_S64 },
	{ "rwbs", ETW_TYPE_U32, .map_kind = ETW_MAP_FLAGS, .map = flag_names },
	{ "state", ETW_TYPE_S32, .map_kind = ETW_MAP_VALUES, .map = value_names },
	{ "dev", ETW_TYPE_U32, .format = ETW_FORMAT_DEV }, { "error", ETW_TYPE_S32, .format = ETW_FORMAT_ERRNO },
	{ "ok", ETW_TYPE_BOOL }, { "ratio", ETW_TYPE_F64 }, { "single", ETW_TYPE_F32 }, { "comm", ETW_TYPE_CHARS, .count = 16 },
	{ "path", ETW_TYPE_STRING }, { "data", ETW_TYPE_BINARY }, { "guid", ETW_TYPE_GUID }, { "v4", ETW_TYPE_IPV4 },
	{ "v6", ETW_TYPE_IPV6 }, { "mac", ETW_TYPE_MAC }, { "list", ETW_TYPE_U16, ETW_ARRAY_COUNTED },
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

int __wrap_etw_control_find_provider(struct etw_control *control, const char *text, struct etw_provider_list *info,
				     const struct etw_keyword **keywords);
int __wrap_etw_control_next_event(struct etw_control *control, struct etw_event_list *info, const struct etw_class **cls);

int __wrap_etw_control_find_provider(struct etw_control *control, const char *text, struct etw_provider_list *info,
				     const struct etw_keyword **keywords)
{
	static struct etw_keyword words[3];
	unsigned int i;

	(void)control;
	for (i = 0; i < NR_KNOWN && strcasecmp(known[i].name, text) && strcasecmp(known[i].alias, text); i++)
		;
	if (i == NR_KNOWN)
		return -ENOENT;
	memset(info, 0, sizeof(*info));
	info->id = i + 1;
	snprintf((char *)info->name, sizeof(info->name), "%s", known[i].name);
	snprintf((char *)info->alias, sizeof(info->alias), "%s", known[i].alias);
	while (info->nr_events < 4 && known[i].events[info->nr_events])
		info->nr_events++;
	for (; info->nr_keywords < 3 && known[i].keywords[info->nr_keywords]; info->nr_keywords++) {
		struct etw_keyword *k = &words[info->nr_keywords];

		k->mask = 1ULL << info->nr_keywords;
		snprintf((char *)k->name, sizeof(k->name), "%s", known[i].keywords[info->nr_keywords]);
	}
	if (keywords)
		*keywords = words;
	return 1;
}

int __wrap_etw_control_next_event(struct etw_control *control, struct etw_event_list *info, const struct etw_class **cls)
{
	static struct etw_class *last;
	static __u8 entry[1 << 16];
	struct synth_class made = {};
	unsigned int at = info->id;
	size_t used;

	(void)control;
	etw_class_free(last);
	last = NULL;
	for (; at < NR_KNOWN * 4 && !known[at / 4].events[at % 4]; at++)
		;
	if (at >= NR_KNOWN * 4)
		return 0;
	info->id = at + 1;
	info->provider_id = at / 4 + 1;
	made.provider = known[at / 4].name;
	made.name = made.ctf_name = known[at / 4].events[at % 4];
	made.keyword = 1 << at % 4;
	/* each event has some of them */
	made.fields = fields + at % 3;
	made.nr_fields = NR_FIELDS - at % 4 - at % 3;
	synth_schema(entry, 0, &made);
	if (etw_class_parse(entry, sizeof(entry), &used, &last))
		abort();
	*cls = last;
	return 1;
}

struct option_key {
	char letter;
	int key;
};

static const struct option_key record_options[] = {
	{ 'p', 'p' }, { 'P', OPT_PROFILE }, { 'n', OPT_NO_ETW }, { 'E', OPT_EVENT }, { 'I', OPT_PID }, { 's', OPT_SUBBUF_SIZE },
	{ 'b', OPT_SUBBUFS }, { 'f', OPT_FLUSH_MS }, { 'c', OPT_CLOCK }, { 'w', OPT_OVERWRITE }, { 'a', OPT_ADDRESSES },
	{ 'm', OPT_MAX_SIZE }, { 'C', OPT_CIRCULAR }, { 'W', OPT_WHERE }, { 'A', OPT_WHERE_ANY }, { 'D', OPT_ID },
	{ 'R', OPT_PROCESS }, { 'u', OPT_UID },
};

static const struct option_key dump_options[] = {
	{ 'E', OPT_EVENT }, { 'I', OPT_PID }, { 'C', OPT_COMM }, { 'u', OPT_CPU }, { 'F', OPT_FROM }, { 'T', OPT_TO },
};

#define KEY(table, c) key_of(table, sizeof(table) / sizeof(table[0]), c)

static int key_of(const struct option_key *table, size_t nr, char letter)
{
	for (size_t i = 0; i < nr; i++)
		if (table[i].letter == letter)
			return table[i].key;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = {};
	struct filter filter = {};
	struct etw_consumer *none;
	char line[512], profile[600];
	int status = 0, key;

	quiet = true;
	unsetenv("ETWCTL_PROFILES");
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	while (!status && input_line(&data, &size, line, sizeof(line)) && strcmp(line, "--")) {
		key = KEY(record_options, line[0]);
		if (line[0] == 'L' && line[1]) {
			/* a profile of one line */
			snprintf(profile, sizeof(profile), "%s/fuzz.profile", input_directory(data, 0));
			input_file("fuzz.profile", line + 2, strlen(line + 1) - 1);
			status = run_option(&run, OPT_PROFILE, profile);
		} else if (key && line[1]) {
			/* a profile is a file: no path of the machine's */
			if (key != OPT_PROFILE || !strchr(line, '/'))
				status = run_option(&run, key, line + 2);
		}
	}
	if (!status)
		specs_settle(&run.specs, NULL);
	specs_free(&run.specs);

	for (status = 0; !status && input_line(&data, &size, line, sizeof(line));) {
		key = KEY(dump_options, line[0]);
		if (key && line[1])
			status = filter_option(&filter, key, line + 2);
	}
	if (!status && !etw_consumer_new(NULL, &none)) {
		if (etw_consumer_add_trace(none, STREAM_TRACE, 0) >= 0) {
			const struct etw_event *e;
			struct tasks *tasks = tasks_new();

			filter_start(&filter, none);
			for (int i = 0; i < 20 && etw_consumer_next(none, &e, 0) == 1; i++) {
				tasks_event(tasks, e);
				filter_event(&filter, tasks, e);
			}
			tasks_free(tasks);
		}
		filter_free(&filter, none);
		etw_consumer_free(none);
	} else {
		filter_free(&filter, NULL);
	}
	return 0;
}
