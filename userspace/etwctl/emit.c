// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verb emit: events of a provider of one's own, from a command line or from lines of text. It knows how values
 * are written as text and must not know sessions.
 */
#include "dev.h"
#include "etwctl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <etw/provider.h>

enum {
	OPT_LEVEL = OPT_PRIVATE,
	OPT_KEYWORD,
	OPT_ID,
	OPT_TASK,
	OPT_EVENT_VERSION,
	OPT_OPCODE,
	OPT_ACTIVITY,
	OPT_RELATED,
	OPT_STDIN,
};

#define OPCODES "info start stop dc_start dc_stop extension reply resume suspend send"

const struct opt opts_emit[] = {
	{ "level", OPT_LEVEL, "LEVEL", "critical, error, warning, info, verbose or 0 to 255 (info)",
	  "critical error warning info verbose" },
	{ "keyword", OPT_KEYWORD, "MASK", "the event's keywords, a number (0: passes every keyword mask)", NULL },
	{ "id", OPT_ID, "N", "its id, 0 to 65535 (0)", NULL },
	{ "task", OPT_TASK, "N", "its task, 0 to 65535 (0)", NULL },
	{ "event-version", OPT_EVENT_VERSION, "N", "its version, 0 to 255 (0)", NULL },
	{ "opcode", OPT_OPCODE, "OPCODE", "start, stop ... or 0 to 255 (info)", OPCODES },
	{ "activity", OPT_ACTIVITY, "ID", "the activity it belongs to, a GUID; new: makes one and prints it", "new" },
	{ "related", OPT_RELATED, "ID", "the activity that its own comes from, a GUID", NULL },
	{ "count", 'n', "N", "write it so many times (1)", NULL },
	{ "stdin", OPT_STDIN, NULL, "an event from each line of standard input", NULL },
	{ "verbose", 'v', NULL, "say whether somebody listens", NULL },
	{}
};

struct emit {
	struct etw_provider *provider;
	struct etw_event_options event;
	uint64_t count;
	bool from_stdin;
	bool verbose;
	bool has_activity, has_related;
	__u8 activity[16], related[16];
	uint64_t events, wanted, lost;
	int status;
};

/* One event's fields: descriptions, and their values packed. */
struct fields {
	struct etw_field_info info[ETW_MAX_FIELDS];
	char names[ETW_MAX_FIELDS][ETW_NAME_SIZE];
	unsigned int nr;
	uint8_t *bytes;
	size_t size, room;
};

/* ---- types ---- */

static const struct type {
	const char *name;
	uint8_t type, format, size;
} types[] = {
	{ "u8", ETW_TYPE_U8, 0, 1 },
	{ "u16", ETW_TYPE_U16, 0, 2 },
	{ "u32", ETW_TYPE_U32, 0, 4 },
	{ "u64", ETW_TYPE_U64, 0, 8 },
	{ "s8", ETW_TYPE_S8, 0, 1 },
	{ "s16", ETW_TYPE_S16, 0, 2 },
	{ "s32", ETW_TYPE_S32, 0, 4 },
	{ "s64", ETW_TYPE_S64, 0, 8 },
	{ "f32", ETW_TYPE_F32, 0, 4 },
	{ "f64", ETW_TYPE_F64, 0, 8 },
	{ "bool", ETW_TYPE_BOOL, 0, 1 },
	{ "hex8", ETW_TYPE_U8, ETW_FORMAT_HEX, 1 },
	{ "hex16", ETW_TYPE_U16, ETW_FORMAT_HEX, 2 },
	{ "hex32", ETW_TYPE_U32, ETW_FORMAT_HEX, 4 },
	{ "hex64", ETW_TYPE_U64, ETW_FORMAT_HEX, 8 },
	{ "octal", ETW_TYPE_U32, ETW_FORMAT_OCTAL, 4 },
	{ "errno", ETW_TYPE_S32, ETW_FORMAT_ERRNO, 4 },
	{ "pid", ETW_TYPE_S32, ETW_FORMAT_PID, 4 },
	{ "time", ETW_TYPE_U64, ETW_FORMAT_TIME, 8 },
	{ "str", ETW_TYPE_STRING, 0, 0 },
	{ "string", ETW_TYPE_STRING, 0, 0 },
	{ "chars", ETW_TYPE_CHARS, 0, 0 },
	{ "bin", ETW_TYPE_BINARY, 0, 0 },
	{ "binary", ETW_TYPE_BINARY, 0, 0 },
	{ "guid", ETW_TYPE_GUID, 0, 16 },
	{ "ipv4", ETW_TYPE_IPV4, 0, 4 },
	{ "ipv6", ETW_TYPE_IPV6, 0, 16 },
	{ "mac", ETW_TYPE_MAC, 0, 6 },
};

static const struct type *find_type(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == len && !strncmp(types[i].name, name, len))
			return &types[i];
	return NULL;
}

static bool is_mac(const char *text, uint8_t mac[6])
{
	for (int i = 0; i < 6; i++, text += 3) {
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]) ||
		    text[2] != (i < 5 ? ':' : 0))
			return false;
		mac[i] = strtoul((char[]){ text[0], text[1], 0 }, NULL, 16);
	}
	return true;
}

/* [+-]digits without useless zeros in front; what else is made of digits is more likely a name. */
static const char *after_digits(const char *p)
{
	p += *p == '-' || *p == '+';
	if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
		return NULL;
	return p + strspn(p, "0123456789");
}

static bool is_hex(const char *text)
{
	return text[0] == '0' && (text[1] | 0x20) == 'x' && text[2] && strlen(text) <= 18 &&
	       !text[2 + strspn(text + 2, "0123456789abcdefABCDEF")];
}

/* The type that a value looks as if it had. */
static const struct type *guess(const char *text)
{
	const char *end = after_digits(text);
	__u8 bytes[16];

	if (end && !*end) {
		errno = 0;
		strtoll(text, NULL, 10);
		if (!errno)
			return find_type("s64", 3);
		errno = 0;
		if (*text != '-' && (strtoull(text, NULL, 10), !errno))
			return find_type("u64", 3);
		return find_type("str", 3);
	}
	if (is_hex(text))
		return find_type("hex64", 5);
	if (end && *end == '.' && isdigit((unsigned char)end[1])) {
		end += 1 + strspn(end + 1, "0123456789");
		if (*end == 'e' || *end == 'E')
			end = after_digits(end + 1);
		if (end && !*end)
			return find_type("f64", 3);
	}
	if (!strcmp(text, "true") || !strcmp(text, "false"))
		return find_type("bool", 4);
	if (strlen(text) == ETW_GUID_TEXT_SIZE - 1 && !etw_guid_parse(text, bytes))
		return find_type("guid", 4);
	if (is_mac(text, bytes))
		return find_type("mac", 3);
	if (inet_pton(AF_INET, text, bytes) == 1)
		return find_type("ipv4", 4);
	if (inet_pton(AF_INET6, text, bytes) == 1)
		return find_type("ipv6", 4);
	return find_type("str", 3);
}

/* ---- values ---- */

static void put(struct fields *f, const void *bytes, size_t size)
{
	if (f->size + size > f->room) {
		f->room = (f->size + size) * 2;
		f->bytes = realloc(f->bytes, f->room);
		if (!f->bytes)
			abort();
	}
	if (size)
		memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static bool parse_errno(const char *text, int64_t *value)
{
	for (int i = 1; i < 134; i++) {
		const char *name = strerrorname_np(i);

		if (name && !strcasecmp(name, text)) {
			*value = i;
			return true;
		}
	}
	return false;
}

/* What a value of @type looks like, for the message when this one does not. */
static const char *expected(const struct type *type)
{
	static char text[64];

	switch (type->type) {
	case ETW_TYPE_BOOL:
		return "true, false, 1 or 0";
	case ETW_TYPE_F32:
	case ETW_TYPE_F64:
		return "a number, as 1.5";
	case ETW_TYPE_GUID:
		return "a GUID, as b3864c38-4273-58c5-545b-8b3608343471";
	case ETW_TYPE_IPV4:
		return "an address, as 192.0.2.1";
	case ETW_TYPE_IPV6:
		return "an address, as 2001:db8::1";
	case ETW_TYPE_MAC:
		return "an address, as 00:00:5e:00:53:01";
	case ETW_TYPE_BINARY:
		return "bytes in hexadecimal, as 00ff";
	}
	if (type->format == ETW_FORMAT_ERRNO)
		return "a number or a name, as ENOENT";
	if (type->format == ETW_FORMAT_TIME)
		return "nanoseconds since 1970, or now";
	if (type->type >= ETW_TYPE_S8 && type->type <= ETW_TYPE_S64)
		snprintf(text, sizeof(text), "an integer from %" PRId64 " to %" PRId64,
			 INT64_MIN >> (64 - 8 * type->size), INT64_MAX >> (64 - 8 * type->size));
	else
		snprintf(text, sizeof(text), "an integer from 0 to %" PRIu64, UINT64_MAX >> (64 - 8 * type->size));
	return text;
}

static bool put_integer(struct fields *f, const struct type *type, const char *text)
{
	const bool is_signed = type->type >= ETW_TYPE_S8 && type->type <= ETW_TYPE_S64;
	const int unused = 64 - 8 * type->size;
	struct timespec now;
	uint64_t u = 0;
	int64_t s = 0;
	char *end;

	if (type->format == ETW_FORMAT_TIME && !strcmp(text, "now")) {
		clock_gettime(CLOCK_REALTIME, &now);
		u = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
		put(f, &u, 8);
		return true;
	}
	if (type->format == ETW_FORMAT_ERRNO && parse_errno(text, &s)) {
		put(f, &s, 4);
		return true;
	}
	errno = 0;
	if (isspace((unsigned char)*text) || (!is_signed && *text == '-'))
		return false;
	if (is_signed)
		s = strtoll(text, &end, 0);
	else
		u = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		return false;
	if (is_signed ? s < INT64_MIN >> unused || s > INT64_MAX >> unused : u > UINT64_MAX >> unused)
		return false;
	put(f, is_signed ? (void *)&s : (void *)&u, type->size);
	return true;
}

static bool put_real(struct fields *f, const struct type *type, const char *text)
{
	double d;
	float s;
	char *end;

	if (!*text || isspace((unsigned char)*text))
		return false;
	d = strtod(text, &end);
	if (*end)
		return false;
	s = d;
	put(f, type->size == 4 ? (void *)&s : (void *)&d, type->size);
	return true;
}

static bool put_hex(struct fields *f, const char *text)
{
	uint32_t n = strlen(text) / 2;

	if (strlen(text) % 2 || text[strspn(text, "0123456789abcdefABCDEF")])
		return false;
	put(f, &n, sizeof(n));
	for (; *text; text += 2) {
		uint8_t byte = strtoul((char[]){ text[0], text[1], 0 }, NULL, 16);

		put(f, &byte, 1);
	}
	return true;
}

/* One value; false: it is none of this type. */
static bool put_value(struct fields *f, const struct type *type, const char *text)
{
	uint8_t bytes[16];
	bool good;

	switch (type->type) {
	case ETW_TYPE_F32:
	case ETW_TYPE_F64:
		return put_real(f, type, text);
	case ETW_TYPE_BOOL:
		bytes[0] = !strcmp(text, "true") || !strcmp(text, "1");
		if (!bytes[0] && strcmp(text, "false") && strcmp(text, "0"))
			return false;
		put(f, bytes, 1);
		return true;
	case ETW_TYPE_STRING:
		put(f, text, strlen(text) + 1);
		return true;
	case ETW_TYPE_BINARY:
		return put_hex(f, text);
	case ETW_TYPE_GUID:
		good = !etw_guid_parse(text, bytes);
		break;
	case ETW_TYPE_IPV4:
		good = inet_pton(AF_INET, text, bytes) == 1;
		break;
	case ETW_TYPE_IPV6:
		good = inet_pton(AF_INET6, text, bytes) == 1;
		break;
	case ETW_TYPE_MAC:
		good = is_mac(text, bytes);
		break;
	default:
		return put_integer(f, type, text);
	}
	if (good)
		put(f, bytes, type->size);
	return good;
}

/* [], [N] or nothing behind a type. 0, or a reported misuse. */
static int parse_array(const char *field, const char *text, const struct type *type, struct etw_field_info *info)
{
	const bool chars = type->type == ETW_TYPE_CHARS;
	char *end;

	if (!*text)
		return chars ? usage("%s: chars has a length, as %s:chars[16]=...", field, field) : 0;
	if (type->type > ETW_TYPE_CHARS)
		return usage("%s: arrays are of numbers; %s is not", field, type->name);
	if (!strcmp(text, "[]") && !chars) {
		info->array = ETW_ARRAY_COUNTED;
		return 0;
	}
	info->count = strtoul(text + 1, &end, 10);
	if (!isdigit((unsigned char)text[1]) || strcmp(end, "]") || !info->count || info->count > 65535)
		return usage("%s: '%s' is not the length of an array: [N], 1 to 65535%s", field, text,
			     chars ? "" : ", or []");
	if (!chars)
		info->array = ETW_ARRAY_FIXED;
	return 0;
}

static int put_array(struct fields *f, const char *field, const struct type *type, const struct etw_field_info *info,
		     char *text)
{
	size_t head = f->size;
	uint32_t n = 0;
	char *part;

	if (info->array == ETW_ARRAY_COUNTED)
		put(f, &n, sizeof(n));
	while (*text && (part = text_part(&text, ','))) {
		if (!put_value(f, type, part))
			return usage("%s: '%s' is not %s", field, part, expected(type));
		n++;
		if (!text)
			break;
	}
	if (info->array == ETW_ARRAY_FIXED && n != info->count)
		return usage("%s: %u value%s instead of %u", field, n, n == 1 ? "" : "s", info->count);
	if (info->array == ETW_ARRAY_COUNTED)
		memcpy(f->bytes + head, &n, sizeof(n));
	return 0;
}

static int put_chars(struct fields *f, const char *field, const struct etw_field_info *info, const char *text)
{
	size_t len = strlen(text);
	char *padded;

	if (len > info->count)
		return usage("%s: '%s' is longer than %u bytes", field, text, info->count);
	padded = xmalloc(info->count);
	memcpy(padded, text, len);
	put(f, padded, info->count);
	free(padded);
	return 0;
}

/* field=value, field:type=value. */
static int add_field(struct fields *f, char *text)
{
	struct etw_field_info *info = &f->info[f->nr];
	char *value = strchr(text, '='), *colon;
	const struct type *type;
	size_t len;
	int status;

	if (!value)
		return usage("'%s' is no field: give it as NAME=VALUE or NAME:TYPE=VALUE", text);
	if (f->nr == ETW_MAX_FIELDS)
		return usage("'%s' is one field too many: an event has at most %u", text, ETW_MAX_FIELDS);
	*value++ = 0;
	colon = strchr(text, ':');
	if (colon)
		*colon++ = 0;
	if (!etw_name_valid(text))
		return usage(
			"'%s' is no name for a field: a letter, then letters, digits, '_', '.' or '-', at most %d",
			text, ETW_NAME_SIZE - 1);
	for (unsigned int i = 0; i < f->nr; i++)
		if (!strcmp(f->names[i], text))
			return usage("there are two fields %s", text);
	strcpy(f->names[f->nr], text);
	memset(info, 0, sizeof(*info));
	info->name = f->names[f->nr];
	if (colon) {
		len = strcspn(colon, "[");
		type = find_type(colon, len);
		if (!type)
			return usage(
				"%s: there is no type '%.*s'; u8 to u64, s8 to s64, hex8 to hex64, f32, f64, bool, str, chars, bin, guid, ipv4, ipv6, mac, pid, errno, time and octal are",
				text, (int)len, colon);
		status = parse_array(text, colon + len, type, info);
		if (status)
			return status;
	} else {
		type = guess(value);
	}
	info->type = type->type;
	info->format = type->format;
	f->nr++;
	if (info->array)
		return put_array(f, text, type, info, value);
	if (type->type == ETW_TYPE_CHARS)
		return put_chars(f, text, info, value);
	return put_value(f, type, value) ? 0 : usage("%s: '%s' is not %s", text, value, expected(type));
}

/* ---- events ---- */

static void write_event(struct emit *e, struct etw_user_event *event, const struct fields *f)
{
	const struct iovec iov = { f->bytes, f->size };
	const struct etw_event_data data = {
		.event = event,
		.iov = &iov,
		.nr = 1,
		.activity = e->has_activity ? e->activity : NULL,
		.related = e->has_related ? e->related : NULL,
	};
	int err;

	e->events++;
	if (!etw_event_enabled(event))
		return;
	e->wanted++;
	err = etw_event_write_many(&data, 1);
	if (err == -ENOBUFS || err == -EMSGSIZE)
		e->lost++;
	else if (err)
		e->status = worse(e->status, fail_etw(err, NULL));
}

/* An event of @nr words that are its fields. */
static int emit(struct emit *e, const char *name, char **words, int nr)
{
	struct fields *f = xmalloc(sizeof(*f));
	struct etw_user_event *event;
	int status = 0, err;

	for (int i = 0; i < nr && !status; i++)
		status = add_field(f, words[i]);
	if (!status && f->size > ETW_MAX_PAYLOAD)
		status = usage("%s: its fields take %zu bytes, an event has at most %u", name, f->size,
			       ETW_MAX_PAYLOAD);
	if (!status) {
		e->event.name = name;
		e->event.fields = f->info;
		e->event.nr_fields = f->nr;
		err = etw_event_define(e->provider, &e->event, &event);
		if (err)
			status =
				err == -EINVAL || err == -E2BIG ? usage("%s", etw_last_error()) : fail_etw(err, NULL);
		for (uint64_t i = 0; !err && i < e->count; i++)
			write_event(e, event, f);
	}
	free(f->bytes);
	free(f);
	return status;
}

/*
 * The words of a line, in place, as a shell would find them: divided by blanks, quotes and backslashes taken away.
 * How many, -1 a quote does not end.
 */
static int split(char *line, char **words, int room)
{
	char *to = line;
	int nr = 0;

	for (;;) {
		char quote = 0;

		line += strspn(line, " \t\r\n");
		if (!*line || nr == room)
			return nr;
		words[nr++] = to;
		for (; *line && (quote || !isspace((unsigned char)*line)); line++) {
			if (quote ? *line == quote : *line == '"' || *line == '\'') {
				quote = quote ? 0 : *line;
				continue;
			}
			if (*line == '\\' && quote != '\'' && line[1])
				line++;
			*to++ = *line;
		}
		if (quote)
			return -1;
		if (*line)
			line++;
		*to++ = 0;
	}
}

/* Each line an event; a wrong one is reported, and the others are written. */
static int emit_lines(struct emit *e, const char *name)
{
	char *words[ETW_MAX_FIELDS + 2], *line = NULL;
	size_t room = 0, number = 0;
	int status = 0, nr;

	while (getline(&line, &room, stdin) > 0) {
		number++;
		nr = split(line, words, ETW_MAX_FIELDS + 2);
		if (nr > 0 && words[0][0] == '#')
			continue;
		if (nr < 0)
			status = worse(status, usage("line %zu: a quote does not end", number));
		else if (nr && name)
			status = worse(status, emit(e, name, words, nr));
		else if (nr)
			status = worse(status, emit(e, words[0], words + 1, nr - 1));
	}
	free(line);
	return status;
}

/* ---- the verb ---- */

static int parse_opcode(const char *text, __u8 *opcode)
{
	const char *p = OPCODES;
	uint64_t n;

	for (n = 0; *p; n++) {
		size_t len = strcspn(p, " ");

		if (strlen(text) == len && !strncmp(p, text, len)) {
			*opcode = n;
			return 0;
		}
		p += len + (p[len] == ' ');
	}
	if (!strcmp(text, "receive"))
		n = 0xf0;
	else if (!isdigit((unsigned char)*text))
		return usage("--opcode: '%s' is not %s, receive or 0 to 255", text, OPCODES);
	else if (parse_u64("--opcode", text, 0, 255, &n))
		return STATUS_USAGE;
	*opcode = n;
	return 0;
}

static int parse_activity(const char *what, const char *text, __u8 id[16], bool *has)
{
	static const __u8 none[16];

	if (etw_guid_parse(text, id) || !memcmp(id, none, 16))
		return usage("%s: '%s' is not an activity id: a GUID, as etwctl emit --activity new prints it", what,
			     text);
	*has = true;
	return 0;
}

static int option(struct emit *e, int key)
{
	char text[ETW_GUID_TEXT_SIZE];
	uint64_t n;
	int level;

	switch (key) {
	case OPT_LEVEL:
		level = etw_level_parse(optarg);
		if (level < 0)
			return usage("--level: %s", etw_last_error());
		e->event.level = level;
		return 0;
	case OPT_KEYWORD:
		return parse_u64("--keyword", optarg, 0, UINT64_MAX, (uint64_t *)&e->event.keyword);
	case OPT_ID:
	case OPT_TASK:
		if (parse_u64(key == OPT_ID ? "--id" : "--task", optarg, 0, 65535, &n))
			return STATUS_USAGE;
		*(key == OPT_ID ? &e->event.id : &e->event.task) = n;
		return 0;
	case OPT_EVENT_VERSION:
		if (parse_u64("--event-version", optarg, 0, 255, &n))
			return STATUS_USAGE;
		e->event.version = n;
		return 0;
	case OPT_OPCODE:
		return parse_opcode(optarg, &e->event.opcode);
	case OPT_ACTIVITY:
		if (strcmp(optarg, "new"))
			return parse_activity("--activity", optarg, e->activity, &e->has_activity);
		etw_activity_create(e->activity);
		e->has_activity = true;
		etw_guid_format(e->activity, text);
		puts(text);
		return 0;
	case OPT_RELATED:
		return parse_activity("--related", optarg, e->related, &e->has_related);
	case 'n':
		return parse_u64("--count", optarg, 0, UINT64_MAX, &e->count);
	case OPT_STDIN:
		e->from_stdin = true;
		return 0;
	case 'v':
		e->verbose = true;
		return 0;
	}
	return STATUS_USAGE; /* '?': reported */
}

static void say_what_became(struct emit *e)
{
	struct etw_enabled enabled = { .size = sizeof(enabled) };
	struct etw_provider_status status = { .size = sizeof(status) };

	etw_provider_status(e->provider, &status);
	if (!status.attached) {
		note("there is no /dev/etw: the module is not loaded, so nobody listens");
		return;
	}
	if (etw_provider_query(e->provider, &enabled))
		enabled.nr_sessions = 0;
	if (!enabled.nr_sessions)
		note("no session has this provider enabled");
	else
		note("%" PRIu64 " of %" PRIu64 " events written; sessions that have the provider enabled: %u",
		     e->wanted - e->lost, e->events, enabled.nr_sessions);
}

static int run(struct emit *e, char **words, int nr)
{
	struct etw_provider_options options = { .size = sizeof(options),
						.name = words[0],
						.flags = ETW_PROVIDER_NO_THREAD };
	struct etw_provider_status status = { .size = sizeof(status) };
	int err;

	if (!etw_name_valid(words[0]))
		return usage(
			"'%s' is no name for a provider: a letter, then letters, digits, '_', '.' or '-', at most %d",
			words[0], ETW_NAME_SIZE - 1);
	err = etw_provider_register(&options, &e->provider);
	if (err)
		return fail_etw(err, NULL);
	etw_provider_status(e->provider, &status);
	if (status.error == -EACCES || status.error == -EPROTO) {
		etw_provider_attach(e->provider);
		err = fail_etw(status.error, NULL);
		etw_provider_unregister(e->provider);
		return err;
	}
	e->status = e->from_stdin ? emit_lines(e, words[1]) : emit(e, words[1], words + 2, nr - 2);
	if (e->verbose && e->status != STATUS_USAGE)
		say_what_became(e);
	if (e->lost)
		e->status = worse(e->status, fail(STATUS_LOSS,
						  "%" PRIu64 " of %" PRIu64
						  " events were lost: some session had no room for them",
						  e->lost, e->events));
	etw_provider_unregister(e->provider);
	return e->status;
}

int cmd_emit(int argc, char **argv)
{
	struct emit e = { .event = { .size = sizeof(e.event), .level = ETW_LEVEL_INFO }, .count = 1 };
	bool made = false;
	int key, status, nr;

	while ((key = opt_next(argc, argv)) != -1) {
		status = option(&e, key);
		if (status)
			return status;
		made |= key == OPT_ACTIVITY && !strcmp(optarg, "new");
	}
	nr = argc - optind;
	if (!nr && made && !e.from_stdin)
		return STATUS_OK;
	if (!nr)
		return usage("which PROVIDER, and which EVENT?");
	if (nr < 2 && !e.from_stdin)
		return usage("which EVENT of %s?", argv[optind]);
	if (nr > 2 && e.from_stdin)
		return usage("'%s': with --stdin the fields are in the lines", argv[optind + 2]);
	if (!e.has_activity && getenv("ETW_ACTIVITY")) {
		status = parse_activity("ETW_ACTIVITY", getenv("ETW_ACTIVITY"), e.activity, &e.has_activity);
		if (status)
			return status;
	}
	return run(&e, argv + optind, nr);
}
