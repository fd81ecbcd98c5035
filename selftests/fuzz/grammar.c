// SPDX-License-Identifier: GPL-2.0-only
/* Programs: the calls there are, as the ABI describes them, how one is made up, changed, written and read. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <linux/etw.h>

#include "fuzz.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

uint64_t random_next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1dULL;
}

uint32_t random_below(struct random *r, uint32_t n)
{
	return (random_next(r) >> 32) % n;
}

/* ---- names ---- */

#define TEXT(s) { s, s, sizeof(s) - 1 }

/* Few that are good, so that there are never many sessions. */
const struct text sessions[] = {
	TEXT("fz0"), TEXT("fz1"), TEXT("fz2"), TEXT("fz3"), TEXT("fz4"), TEXT("fz5"), TEXT("fz6"), TEXT("fz7"),
	{ "<longest>", "fzbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 63 },
	{ "<empty>", "", 0 },
	{ "<unterminated>", "fzaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 64 },
	{ "<digit>", "1fz", 3 },
	{ "<space>", "f z", 3 },
	{ "<tail>", "fz0\0x", 5 },
	{ "<high>", "fz\xc3\xa9", 4 },
	{ "<escape>", "fz%s%n/..", 9 },
};
const unsigned int nr_sessions = ARRAY_SIZE(sessions);
const unsigned int nr_good_sessions = 9;

const struct text providers[] = {
	TEXT("etw"), TEXT("process"), TEXT("sched"), TEXT("block"), TEXT("fault"),
	TEXT("fz0"), TEXT("fz1"), TEXT("Linux-Kernel-Etw"), TEXT("Linux-Kernel-Process"), TEXT("Linux-Kernel-Sched"), TEXT("linux-kernel-sched"),
	TEXT("test"), TEXT("nobody"), TEXT("nobody1"), TEXT("nobody2"),
	{ "<empty>", "", 0 },
	{ "<unterminated>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 64 },
	{ "<tail>", "etw\0x", 5 },
	{ "<space>", "e tw", 4 },
};
const unsigned int nr_providers = ARRAY_SIZE(providers);

const struct text events[] = {
	TEXT("sched_switch"), TEXT("sched_waking"), TEXT("task_rename"), TEXT("sched_process_fork"), TEXT("page_fault_user"),
	TEXT("session_start"), TEXT("provider_enable"), TEXT("clock_snapshot"), TEXT("no_such_event"),
	{ "<longest>", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 63 },
	{ "<empty>", "", 0 },
	{ "<unterminated>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 64 },
};
const unsigned int nr_events = ARRAY_SIZE(events);

/* None, one nobody has, or that of the provider sched. */
void guid_fill(uint64_t which, uint8_t guid[16])
{
	static const uint8_t sched[16] = {
		0x51, 0x6a, 0x1d, 0x97, 0x20, 0xf3, 0x54, 0x8b, 0x1e, 0xab, 0x51, 0x77, 0x27, 0xfc, 0xf5, 0xb2,
	};

	memset(guid, 0, 16);
	if (which == 1)
		memcpy(guid, sched, 16);
	else if (which > 1)
		guid[which % 16] = which;
}

/* ---- the calls ---- */

#define POOL(...) (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8
#define FILE_ARG { "file", KIND_FILE, 0, 0, NULL, 0 }
#define NEW_ARG { "new", KIND_NEW, 0, 0, NULL, 0 }
#define AT_ARGS { "at", KIND_POINTER, 0, 0, NULL, 0 }, { "size", KIND_SIZE, 0, 4, NULL, 0 }, \
		{ "tail", KIND_NUMBER, 0, 0, POOL(0, 0, 0, 0, 0, 1, 0xff) }
#define FIELD(type, field, kind, ...) \
	{ #field, kind, offsetof(struct type, field), sizeof(((struct type *)0)->field), POOL(__VA_ARGS__) }
#define NUM(type, field, ...) FIELD(type, field, KIND_NUMBER, __VA_ARGS__)
#define PLAIN(name, ...) { name, KIND_NUMBER, 0, 0, POOL(__VA_ARGS__) }
#define MAPPING_ARG { "mapping", KIND_MAPPING, 0, 0, NULL, 0 }

#define SESSION_IDS 0, 0, 0, 1, 2, 3, 5, 10, 1000, 0x7fffffff, ~0ULL
#define COMMAND(name, type, files, errors, weight, ...) \
	{ #name, #name, ETW_IOC_##name, sizeof(struct type), files, errors, weight, { FILE_ARG, AT_ARGS, ##__VA_ARGS__ } }

const struct op ops[] = {
	COMMAND(VERSION, etw_version, FILES_CONTROL, "", 3),
	{ "SESSION_CREATE", "SESSION_CREATE", ETW_IOC_SESSION_CREATE, sizeof(struct etw_session_create), FILES_CONTROL,
	  "EPERM EEXIST ENOSPC EDQUOT ENOMEM EOPNOTSUPP EMFILE ENFILE", 10, {
		FILE_ARG, NEW_ARG, AT_ARGS,
		NUM(etw_session_create, flags, 0, 0, 0, 1, 2, 2, 3, 4, 6, 7, 8, 0x80000000),
		FIELD(etw_session_create, name, KIND_SESSION, 0),
		NUM(etw_session_create, subbuf_size, 4096, 4096, 4096, 4096, 8192, 8192, 16384, 0, 65536, 4095, 4097, 2048,
		    1U << 22, 1U << 23, 0x80000000, 12288),
		NUM(etw_session_create, nr_subbufs, 2, 2, 4, 4, 8, 0, 1, 3, 16, 4096, 8192, 0x80000000, 0xffffffff),
		NUM(etw_session_create, flush_ms, 0, 1, 10, 10, 20, 1000, ETW_FLUSH_MS_NEVER, ETW_FLUSH_MS_NEVER, ETW_FLUSH_MS_MAX,
		    ETW_FLUSH_MS_MAX + 1, 0x80000000),
		NUM(etw_session_create, clock, 0, 1, 2, 3, 4, 5, 0xffffffff) } },
	{ "SESSION_OPEN", "SESSION_OPEN", ETW_IOC_SESSION_OPEN, sizeof(struct etw_session_open), FILES_CONTROL,
	  "EPERM ENOENT ENOMEM EMFILE ENFILE", 6, {
		FILE_ARG, NEW_ARG, AT_ARGS, NUM(etw_session_open, flags, 0, 0, 0, 0, 1, 0x80000000),
		FIELD(etw_session_open, name, KIND_SESSION, 0) } },
	COMMAND(SESSION_LIST, etw_session_query, FILES_CONTROL, "EPERM ENOENT", 4, NUM(etw_session_query, id, SESSION_IDS)),
	COMMAND(PROVIDER_LIST, etw_provider_list, FILES_CONTROL, "ENOENT ENOMEM", 4,
		NUM(etw_provider_list, flags, 0, 0, 0, 0, 1, 0x80000000), NUM(etw_provider_list, id, SESSION_IDS),
		NUM(etw_provider_list, nr_keywords, 0, 1, 4, 64, 65, 0xffffffff),
		FIELD(etw_provider_list, keywords, KIND_ROOM, 0)),
	COMMAND(EVENT_LIST, etw_event_list, FILES_CONTROL, "ENOENT EMSGSIZE ENOMEM", 4,
		NUM(etw_event_list, flags, 0, 0, 0, 0, 1, 0x80000000), NUM(etw_event_list, id, SESSION_IDS, 30, 40, 50),
		FIELD(etw_event_list, buf, KIND_ROOM, 0),
		NUM(etw_event_list, buf_size, 4096, 4096, 65536, 0, 1, 256, 0xffffffff)),
	{ "PROVIDER_REGISTER", "PROVIDER_REGISTER", ETW_IOC_PROVIDER_REGISTER, sizeof(struct etw_provider_register), FILES_CONTROL,
	  "EPERM EDQUOT ENOMEM EMFILE ENFILE", 6, {
		FILE_ARG, NEW_ARG, AT_ARGS,
		NUM(etw_provider_register, flags, 0, 0, 0, 0, 0, 0, 1), FIELD(etw_provider_register, name, KIND_SESSION, 0),
		FIELD(etw_provider_register, guid, KIND_GUID, 0),
		NUM(etw_provider_register, keywords, 0, 0, 0, 0, 0, 0, 8),
		NUM(etw_provider_register, nr_keywords, 0, 0, 0, 0, 0, 0, 1, 65),
		NUM(etw_provider_register, reserved, 0, 0, 0, 0, 0, 0, 1) } },
	COMMAND(PROVIDER_EVENT, etw_event_register, FILES_PROVIDER, "ENOSPC EDQUOT ENOMEM", 6,
		NUM(etw_event_register, flags, 0, 0, 0, 0, 0, 0, 1), FIELD(etw_event_register, schema, KIND_SCHEMA, 0),
		NUM(etw_event_register, schema_size, 0, 0, 0, 0, 0, 0, 0, 8, 64, 65536, 65537, 0xffffffff),
		NUM(etw_event_register, reserved, 0, 0, 0, 0, 0, 0, 1)),
	COMMAND(PROVIDER_ENABLED, etw_enabled_query, FILES_PROVIDER, "", 4,
		NUM(etw_enabled_query, flags, 0, 0, 0, 0, 0, 0, 1)),
	COMMAND(PROVIDER_CAPTURE, etw_capture_query, FILES_PROVIDER, "ENOENT", 4,
		NUM(etw_capture_query, flags, 0, 0, 0, 0, 0, 0, 1), NUM(etw_capture_query, id, SESSION_IDS)),
	COMMAND(PROVIDER_ANSWER, etw_answer, FILES_PROVIDER, "ENOENT ENOMEM ENOBUFS EMSGSIZE", 6,
		NUM(etw_answer, flags, 0, 0, 0, 0, 0, 0, 1), NUM(etw_answer, id, 0, 0, 0, 0, SESSION_IDS),
		NUM(etw_answer, events, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 4096, ~0ULL),
		NUM(etw_answer, bytes, 0, 0, 0, 0, 0, 0, 8, 16, 7, 4096, 131073, 0xffffffff),
		NUM(etw_answer, reserved, 0, 0, 0, 0, 0, 0, 1)),
	COMMAND(SESSION_QUERY, etw_session_query, FILES_SESSION, "", 5),
	COMMAND(SESSION_QUERY_CPU, etw_cpu_query, FILES_SESSION, "ENOENT", 5,
		NUM(etw_cpu_query, cpu, 0, 0, 1, 2, 3, 7, 8, 63, 64, 8191, 8192, 0x7fffffff, 0x80000000, 0xffffffff)),
	COMMAND(SESSION_QUERY_PROVIDER, etw_provider_query, FILES_SESSION, "ENOENT", 5,
		NUM(etw_provider_query, flags, 0, 0, 0, 0, 0x10, 0x80000000), NUM(etw_provider_query, id, SESSION_IDS)),
	COMMAND(SESSION_QUERY_CLASS, etw_class_query, FILES_SESSION, "ENOENT", 5,
		NUM(etw_class_query, id, 0, 1, 2, 5, 10, 40, 63, 64, 255, 256, 65534, 65535, 65536, 0x7fffffff, 0x80000000,
		    0xffffffff)),
	COMMAND(SESSION_ENABLE, etw_enable, FILES_SESSION, "ESRCH E2BIG ESHUTDOWN ENOSPC ENOMEM", 4,
		NUM(etw_enable, flags, 0, 0, 0, 0x10, 0x200, 0x210, 0x100, 1, 0x20, 0x80000000),
		FIELD(etw_enable, name, KIND_PROVIDER, 0),
		FIELD(etw_enable, guid, KIND_GUID, 0), NUM(etw_enable, level, 0, 0, 4, 5, 1, 255, 256, 0xffffffff),
		NUM(etw_enable, event_mode, 0, 0, 0, 1, 1, 2, 3, 0xffffffff),
		NUM(etw_enable, any, 0, 0, 1, 2, 0xff, ~0ULL, 1ULL << 63), NUM(etw_enable, all, 0, 0, 1, 3, ~0ULL),
		FIELD(etw_enable, pids, KIND_PIDS, 0), FIELD(etw_enable, events, KIND_EVENTS, 0),
		NUM(etw_enable, nr_pids, 0, 0, 0, 1, 2, 16, 256, 4095, 4096, 4097, 0x40000000, 0xffffffff),
		NUM(etw_enable, nr_events, 0, 0, 0, 1, 2, 8, 256, 257, 0x4000000, 0xffffffff),
		FIELD(etw_enable, ids, KIND_IDS, 0), FIELD(etw_enable, processes, KIND_PROCESSES, 0),
		FIELD(etw_enable, predicates, KIND_PREDICATES, 0),
		NUM(etw_enable, nr_ids, 0, 0, 0, 1, 2, 8, 256, 257, 0x80000000, 0xffffffff),
		NUM(etw_enable, id_mode, 0, 0, 0, 1, 1, 2, 3, 0xffffffff),
		NUM(etw_enable, nr_processes, 0, 0, 0, 1, 1, 2, 64, 65, 0x4000000, 0xffffffff),
		NUM(etw_enable, nr_predicates, 0, 0, 0, 1, 1, 1, 2, 4, 16, 17, 0x1c71c72, 0xffffffff),
		NUM(etw_enable, uid, 0, 0, 0, 0, 1, 65534, 0xffffffff), NUM(etw_enable, reserved, 0, 0, 0, 0, 0, 0, 1)),
	COMMAND(SESSION_DISABLE, etw_provider_ref, FILES_SESSION, "ESHUTDOWN", 4,
		NUM(etw_provider_ref, flags, 0, 0, 0, 0, 1, 0x80000000), FIELD(etw_provider_ref, name, KIND_PROVIDER, 0),
		FIELD(etw_provider_ref, guid, KIND_GUID, 0)),
	COMMAND(SESSION_CAPTURE_STATE, etw_provider_ref, FILES_SESSION, "ENOENT ESHUTDOWN EINTR", 4,
		NUM(etw_provider_ref, flags, 0, 0, 0, 0, 1, 0x80000000), FIELD(etw_provider_ref, name, KIND_PROVIDER, 0),
		FIELD(etw_provider_ref, guid, KIND_GUID, 0)),
	COMMAND(SESSION_UPDATE, etw_session_update, FILES_SESSION, "ESHUTDOWN", 4,
		NUM(etw_session_update, what, 1, 1, 1, 0, 2, 3, 0x80000000),
		NUM(etw_session_update, flush_ms, 1, 2, 10, 1000, 0, ETW_FLUSH_MS_NEVER, ETW_FLUSH_MS_MAX, ETW_FLUSH_MS_MAX + 1),
		NUM(etw_session_update, reserved, 0, 0, 0, 0, 1, 0x80000000)),
	COMMAND(SESSION_FLUSH, etw_flush, FILES_SESSION, "ETIMEDOUT EINTR", 5,
		NUM(etw_flush, timeout_ms, 0, 1, 10, 100, 600000, 600001, 0xffffffff)),
	{ "SESSION_STOP", "SESSION_STOP", ETW_IOC_SESSION_STOP, 0, FILES_SESSION, "ESHUTDOWN", 2, {
		FILE_ARG, PLAIN("argument", 0, 0, 0, 0, 0, 1, ~0ULL) } },
	COMMAND(SESSION_SCHEMA_READ, etw_schema_read, FILES_SESSION, "EMSGSIZE ENOMEM", 5,
		NUM(etw_schema_read, from, 0, 0, 1, 5, 10, 40, 65535, 65536, 0xffffffff), FIELD(etw_schema_read, buf, KIND_ROOM, 0),
		NUM(etw_schema_read, buf_size, 4096, 65536, 65536, 0, 1, 255, 512, 0x100000, 0xffffffff)),
	{ "SESSION_RELAY_OPEN", "SESSION_RELAY_OPEN", ETW_IOC_SESSION_RELAY_OPEN, sizeof(struct etw_relay_open), FILES_SESSION,
	  "ENODEV EBUSY ENOMEM EMFILE ENFILE", 9, {
		FILE_ARG, NEW_ARG, AT_ARGS,
		NUM(etw_relay_open, cpu, 0, 0, 0, 1, 1, 1, 2, 3, 7, 8, 64, 8192, 0x7fffffff, 0x80000000, 0xffffffff) } },
	COMMAND(RELAY_SUBBUF_GET, etw_subbuf, FILES_RELAY, "EAGAIN ENODATA", 9),
	{ "RELAY_SUBBUF_PUT", "RELAY_SUBBUF_PUT", ETW_IOC_RELAY_SUBBUF_PUT, 0, FILES_RELAY, "", 7, {
		FILE_ARG, PLAIN("argument", 0, 0, 0, 0, 0, 1, ~0ULL) } },

	{ "ioctl", NULL, 0, 0, FILES_OTHER, NULL, 3, { FILE_ARG, { "at", KIND_POINTER, 0, 0, NULL, 0 },
		PLAIN("command", 0xe700, 0xe705, 0xe706, 0xe71f, 0xe720, 0xe72c, 0xe73f, 0xe740, 0xe742, 0xe760, 0xe77f, 0xe7ff,
		      0x4008e701, 0x8048e700, 0xc004e740, 0x5421, 0x5450, 0x5451, 0, 0xffffffff),
		PLAIN("word", 0, 1, 4096, ~0ULL) } },
	{ "open", NULL, 0, 0, FILES_CONTROL, NULL, 3, { NEW_ARG, PLAIN("flags", 2, 2, 0, 1, 0x802, 0x80002) } },
	{ "open_other", NULL, 0, 0, FILES_OTHER, NULL, 2, { NEW_ARG, PLAIN("what", 0, 1, 2, 3, 4, 5) } },
	{ "close", NULL, 0, 0, FILES_RELAY, NULL, 6, { FILE_ARG } },
	{ "dup", NULL, 0, 0, FILES_RELAY, NULL, 2, { FILE_ARG, NEW_ARG } },
	{ "mmap", NULL, 0, 0, FILES_RELAY, NULL, 7, { FILE_ARG, MAPPING_ARG,
		PLAIN("subbufs", 3, 3, 3, 5, 5, 9, 2, 1, 0, 17, 4097),
		PLAIN("subbuf_size", 4096, 4096, 4096, 8192, 16384, 131072, 1),
		PLAIN("prot", 1, 1, 1, 1, 0, 3, 5, 7, 2), PLAIN("flags", 1, 1, 1, 1, 2, 0x8001, 0x2001, 3, 0x4001),
		PLAIN("offset", 0, 0, 0, 0, 4096, 1ULL << 40) } },
	{ "munmap", NULL, 0, 0, FILES_RELAY, NULL, 3, { MAPPING_ARG, PLAIN("from", 0, 0, 0, 4096, 8192),
		PLAIN("length", 0, 0, 4096, 8192) } },
	{ "mprotect", NULL, 0, 0, FILES_RELAY, NULL, 3, { MAPPING_ARG, PLAIN("from", 0, 0, 4096), PLAIN("length", 0, 0, 4096),
		PLAIN("prot", 0, 1, 2, 3, 4, 5, 7) } },
	{ "mremap", NULL, 0, 0, FILES_RELAY, NULL, 3, { MAPPING_ARG, PLAIN("from", 0, 0, 4096), PLAIN("old", 0, 0, 4096),
		PLAIN("length", 0, 4096, 8192, 0x100000), PLAIN("flags", 1, 1, 0, 5) } },
	{ "madvise", NULL, 0, 0, FILES_RELAY, NULL, 3, { MAPPING_ARG, PLAIN("from", 0, 0, 4096), PLAIN("length", 0, 0, 4096),
		PLAIN("advice", 4, 4, 0, 3, 8, 9, 10, 11, 14, 16, 17, 18, 20, 21, 22, 23, 200) } },
	{ "touch", NULL, 0, 0, FILES_RELAY, NULL, 4, { MAPPING_ARG, PLAIN("from", 0, 0, 4096, 8192), PLAIN("write", 0, 0, 0, 1) } },
	{ "poll", NULL, 0, 0, FILES_RELAY, NULL, 5, { FILE_ARG, { "second", KIND_FILE, 0, 0, NULL, 0 },
		PLAIN("events", 1, 1, 3, 0, 0x7f, 0xffff), PLAIN("ms", 0, 0, 0, 1, 2) } },
	{ "epoll", NULL, 0, 0, FILES_SESSION, NULL, 3, { { "epoll", KIND_FILE, 0, 0, NULL, 0 }, FILE_ARG,
		PLAIN("op", 1, 1, 1, 2, 3, 0),
		PLAIN("events", 1, 3, 0x80000001, 0x40000001, 0xffffffff), PLAIN("ms", 0, 0, 1) } },
	{ "read", NULL, 0, 0, FILES_RELAY, NULL, 2, { FILE_ARG, PLAIN("length", 0, 1, 8, 4096) } },
	{ "write", NULL, 0, 0, FILES_RELAY, NULL, 2, { FILE_ARG, PLAIN("length", 0, 1, 8, 4096) } },
	{ "seek", NULL, 0, 0, FILES_RELAY, NULL, 1, { FILE_ARG, PLAIN("to", 0, 1, ~0ULL), PLAIN("whence", 0, 1, 2, 3, 9) } },
	{ "send", NULL, 0, 0, FILES_RELAY, NULL, 2, { FILE_ARG } },
	{ "receive", NULL, 0, 0, FILES_RELAY, NULL, 2, { NEW_ARG } },
	{ "fork", NULL, 0, 0, FILES_OTHER, NULL, 1, { PLAIN("wait", 0, 1) } },
	{ "user", NULL, 0, 0, FILES_OTHER, NULL, 1, { PLAIN("id", 0, 65534) } },
	{ "cpu", NULL, 0, 0, FILES_OTHER, NULL, 1, { PLAIN("number", 0, 1, 2, 3) } },
	{ "work", NULL, 0, 0, FILES_OTHER, NULL, 3, { PLAIN("kind", 0, 0, 1, 2), PLAIN("times", 1, 2, 5, 10, 50) } },
	{ "pause", NULL, 0, 0, FILES_OTHER, NULL, 1, { PLAIN("us", 0, 50, 500) } },
	{ "signal", NULL, 0, 0, FILES_OTHER, NULL, 1, { PLAIN("us", 0, 1) } },
	{ "emit", NULL, 0, 0, FILES_PROVIDER, NULL, 9, { FILE_ARG, { "at", KIND_POINTER, 0, 0, NULL, 0 },
		PLAIN("number", 0, 0, 0, 1, 1, 2, 3, 4, 4095, 4096, 65535),
		PLAIN("shape", 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
		PLAIN("cut", 0, 0, 0, 1, 7, 8, 100) } },
};
const unsigned int nr_ops = ARRAY_SIZE(ops);
const unsigned int first_other_op = ARRAY_SIZE(ops) - NR_OTHER_OPS;

static unsigned int nr_args(const struct op *op)
{
	unsigned int n = 0;

	while (n < MAX_ARGS && op->args[n].kind != KIND_END)
		n++;
	return n;
}

/* ---- making up ---- */

static const uint8_t first_place[NR_FILES] = { 0, 4, 10, 16, 24 };
static const uint8_t nr_place[NR_FILES] = { 4, 6, 6, 8, 6 };

/* Mostly the first of its kind, so that calls meet. */
static uint64_t make_place(enum files files, struct random *r)
{
	uint32_t n = random_below(r, 100);

	if (n >= 97)
		return NR_PLACES + random_below(r, 4);
	if (n >= 86)
		files = random_below(r, NR_FILES);
	n = random_below(r, 100);
	return first_place[files] + (n < 60 ? 0 : n < 80 ? 1 : random_below(r, nr_place[files]));
}

static uint64_t make_where(struct random *r)
{
	uint32_t n = random_below(r, 100);

	if (n < 86)
		return WHERE_OK;
	return random_below(r, NR_WHERE) | (uint64_t)random_below(r, 256) << 8;
}

static uint64_t make_odd_number(struct random *r)
{
	uint64_t n = 1ULL << random_below(r, 64);

	switch (random_below(r, 4)) {
	case 0:
		return n;
	case 1:
		return n - 1;
	case 2:
		return n + 1;
	default:
		return random_next(r) >> random_below(r, 64);
	}
}

static uint64_t make_arg(const struct op *op, const struct arg *a, struct random *r)
{
	static const uint32_t sizes[] = { 0, 1, 4, 8, 4088, 4095, 4096, 4097, 8192, 0x7fffffff, 0x80000000, 0xffffffff };

	switch (a->kind) {
	case KIND_FILE:
		if (!strcmp(a->name, "epoll"))
			return first_place[FILES_OTHER] + random_below(r, 2);
		return make_place(op->files, r);
	case KIND_NEW:
		if (op->cmd == ETW_IOC_SESSION_CREATE || op->cmd == ETW_IOC_SESSION_OPEN)
			return make_place(FILES_SESSION, r) % NR_PLACES;
		if (op->cmd == ETW_IOC_SESSION_RELAY_OPEN)
			return make_place(FILES_RELAY, r) % NR_PLACES;
		if (op->cmd == ETW_IOC_PROVIDER_REGISTER)
			return make_place(FILES_PROVIDER, r) % NR_PLACES;
		return make_place(op->files, r) % NR_PLACES;
	case KIND_MAPPING:
		return random_below(r, 100) < 60 ? 0 : random_below(r, NR_MAPPINGS);
	case KIND_POINTER:
		return make_where(r);
	case KIND_SIZE:
		switch (random_below(r, 16)) {
		case 0:
			return sizes[random_below(r, ARRAY_SIZE(sizes))];
		case 1:
			return op->size + random_below(r, 17) - 8;
		case 2:
			return op->size + 8 * random_below(r, 64);
		default:
			return op->size;
		}
	case KIND_SESSION:
		if (random_below(r, 8))
			return random_below(r, 3) ? random_below(r, 3) : random_below(r, nr_good_sessions);
		return random_below(r, nr_sessions);
	case KIND_PROVIDER:
		return random_below(r, 8) ? random_below(r, 7) : random_below(r, nr_providers);
	case KIND_GUID:
		return random_below(r, 8) ? 0 : random_below(r, 4);
	case KIND_PIDS:
	case KIND_EVENTS:
	case KIND_IDS:
	case KIND_PROCESSES:
	case KIND_PREDICATES:
	case KIND_SCHEMA:
	case KIND_ROOM:
		/* "no list" as often as one: the field itself is then 0 */
		if (a->kind != KIND_ROOM && a->kind != KIND_SCHEMA && random_below(r, 3))
			return WHERE_NULL;
		return make_where(r) | (uint64_t)random_below(r, 16) << 16;
	default:
		if (!a->nr_pool || !random_below(r, 12))
			return make_odd_number(r);
		return a->pool[random_below(r, a->nr_pool)];
	}
}

/* Waits for grace periods, for memory or for another process, or takes away what the others need. */
static bool is_dear(unsigned int op)
{
	switch (ops[op].cmd) {
	case ETW_IOC_SESSION_CREATE:
	case ETW_IOC_SESSION_ENABLE:
	case ETW_IOC_SESSION_DISABLE:
	case ETW_IOC_SESSION_CAPTURE_STATE:
	case ETW_IOC_SESSION_STOP:
		return true;
	case 0:
		op -= first_other_op;
		return op == OP_CLOSE || op == OP_FORK || op == OP_PAUSE || op == OP_USER || op == OP_OPEN || op == OP_OPEN_OTHER ||
		       op == OP_DUP || op == OP_RECEIVE;
	default:
		return false;
	}
}

static void call_make(struct call *c, bool cheap, struct random *r)
{
	unsigned int i, n, sum = 0;

	for (i = 0; i < nr_ops; i++)
		sum += cheap && is_dear(i) ? 0 : ops[i].weight;
	n = random_below(r, sum);
	for (i = 0; (cheap && is_dear(i)) || n >= ops[i].weight; i++)
		n -= cheap && is_dear(i) ? 0 : ops[i].weight;
	memset(c, 0, sizeof(*c));
	c->op = i;
	for (n = 0; n < nr_args(&ops[i]); n++)
		c->arg[n] = make_arg(&ops[i], &ops[i].args[n], r);
}

void program_make(struct program *p, bool cheap, struct random *r)
{
	uint32_t i;

	p->nr = cheap ? MAX_CALLS : 1 + random_below(r, MAX_CALLS);
	for (i = 0; i < p->nr; i++)
		call_make(&p->calls[i], cheap, r);
}

static void insert(struct program *p, uint32_t at, const struct call *c)
{
	if (p->nr == MAX_CALLS)
		p->nr--;
	if (at > p->nr)
		at = p->nr;
	memmove(&p->calls[at + 1], &p->calls[at], (p->nr - at) * sizeof(*c));
	p->calls[at] = *c;
	p->nr++;
}

static void change_arg(struct call *c, struct random *r)
{
	const struct op *op = &ops[c->op];
	unsigned int n = nr_args(op);

	if (!n)
		return;
	n = random_below(r, n);
	switch (random_below(r, 8)) {
	case 0:
		c->arg[n] += random_below(r, 2) ? 1 : -1;
		break;
	case 1:
		c->arg[n] ^= 1ULL << random_below(r, op->args[n].bytes ? 8 * op->args[n].bytes % 64 ?: 64 : 32);
		break;
	default:
		c->arg[n] = make_arg(op, &op->args[n], r);
	}
}

void program_mutate(struct program *p, const struct program *other, struct random *r)
{
	uint32_t times = 1 + random_below(r, 4), at, i;
	struct call c;

	while (times--) {
		at = random_below(r, p->nr);
		switch (random_below(r, 12)) {
		case 0:
			if (p->nr > 1) {
				memmove(&p->calls[at], &p->calls[at + 1], (p->nr - at - 1) * sizeof(c));
				p->nr--;
			}
			break;
		case 1:
			c = p->calls[at];
			insert(p, random_below(r, p->nr + 1), &c);
			break;
		case 2:
			i = random_below(r, p->nr);
			c = p->calls[at];
			p->calls[at] = p->calls[i];
			p->calls[i] = c;
			break;
		case 3:
			/* the end of one after the beginning of the other */
			i = random_below(r, other->nr);
			for (p->nr = at + 1; p->nr < MAX_CALLS && i < other->nr; i++)
				p->calls[p->nr++] = other->calls[i];
			break;
		case 4:
		case 5:
		case 6:
			call_make(&c, false, r);
			insert(p, random_below(r, p->nr + 1), &c);
			break;
		default:
			change_arg(&p->calls[at], r);
		}
	}
}

/* ---- as text ---- */

static const char *const wheres[NR_WHERE] = {
	"ok", "null", "low", "hole", "kernel", "edge", "read-only", "cross", "changing", "flickering", "odd", "mapping",
};

static uint64_t usual(const struct op *op, const struct arg *a)
{
	if (a->kind == KIND_SIZE)
		return op->size;
	if (a->kind >= KIND_PIDS && a->kind <= KIND_PREDICATES)
		return WHERE_NULL;
	return 0;
}

static const struct text *texts(enum kind kind, unsigned int *nr)
{
	*nr = kind == KIND_SESSION ? nr_sessions : nr_providers;
	return kind == KIND_SESSION ? sessions : providers;
}

void program_print(const struct program *p, FILE *out)
{
	uint32_t i, k;

	for (i = 0; i < p->nr; i++) {
		const struct op *op = &ops[p->calls[i].op];

		fprintf(out, "%s", op->name);
		for (k = 0; k < nr_args(op); k++) {
			const struct arg *a = &op->args[k];
			uint64_t v = p->calls[i].arg[k];
			const struct text *t;
			unsigned int nr;

			if (v == usual(op, a))
				continue;
			switch (a->kind) {
			case KIND_POINTER:
			case KIND_PIDS:
			case KIND_EVENTS:
			case KIND_IDS:
			case KIND_PROCESSES:
			case KIND_PREDICATES:
			case KIND_SCHEMA:
			case KIND_ROOM:
				fprintf(out, " %s=%s", a->name, wheres[(v & 0xff) % NR_WHERE]);
				if (v >> 8)
					fprintf(out, ":%llu", (unsigned long long)(v >> 8));
				break;
			case KIND_SESSION:
			case KIND_PROVIDER:
				t = texts(a->kind, &nr);
				fprintf(out, " %s=%s", a->name, t[v % nr].label);
				break;
			default:
				fprintf(out, v > 9999 ? " %s=0x%llx" : " %s=%llu", a->name, (unsigned long long)v);
			}
		}
		fprintf(out, "\n");
	}
	fprintf(out, "\n");
}

static const char *read_value(const struct arg *a, const char *text, uint64_t *v)
{
	const struct text *t;
	unsigned int nr, i;
	char *end;

	switch (a->kind) {
	case KIND_POINTER:
	case KIND_PIDS:
	case KIND_EVENTS:
	case KIND_IDS:
	case KIND_PROCESSES:
	case KIND_PREDICATES:
	case KIND_SCHEMA:
	case KIND_ROOM:
		for (i = 0; i < NR_WHERE; i++) {
			size_t len = strlen(wheres[i]);

			if (strncmp(text, wheres[i], len) || (text[len] && text[len] != ':'))
				continue;
			*v = i | (text[len] ? strtoull(text + len + 1, NULL, 0) << 8 : 0);
			return NULL;
		}
		return "no such place in memory";
	case KIND_SESSION:
	case KIND_PROVIDER:
		t = texts(a->kind, &nr);
		for (i = 0; i < nr; i++) {
			if (!strcmp(t[i].label, text)) {
				*v = i;
				return NULL;
			}
		}
		return "no such name";
	default:
		*v = strtoull(text, &end, 0);
		return *text && !*end ? NULL : "not a number";
	}
}

static const char *read_call(struct call *c, char *line)
{
	char *save, *word = strtok_r(line, " \t", &save), *value;
	const struct op *op;
	const char *wrong;
	unsigned int i;

	memset(c, 0, sizeof(*c));
	for (c->op = 0; c->op < nr_ops && strcmp(ops[c->op].name, word); c->op++)
		;
	if (c->op == nr_ops)
		return "no such call";
	op = &ops[c->op];
	for (i = 0; i < nr_args(op); i++)
		c->arg[i] = usual(op, &op->args[i]);
	while ((word = strtok_r(NULL, " \t", &save))) {
		value = strchr(word, '=');
		if (!value)
			return "an argument without =";
		*value++ = 0;
		for (i = 0; i < nr_args(op) && strcmp(op->args[i].name, word); i++)
			;
		if (i == nr_args(op))
			return "no such argument";
		wrong = read_value(&op->args[i], value, &c->arg[i]);
		if (wrong)
			return wrong;
	}
	return NULL;
}

const char *program_read(struct program *p, FILE *in)
{
	char line[1024];

	p->nr = 0;
	while (fgets(line, sizeof(line), in)) {
		const char *wrong;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "#\n")] = 0;
		if (!line[strspn(line, " \t")]) {
			if (p->nr)
				return NULL;
			continue;
		}
		if (p->nr == MAX_CALLS)
			return "too many calls";
		wrong = read_call(&p->calls[p->nr], line);
		if (wrong)
			return wrong;
		p->nr++;
	}
	return NULL;
}
