// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A trace's CTF 1.8 metadata (TSDL), in the form that babeltrace 1 and 2, Trace Compass, lttng-analyses and WPA all
 * accept: the order of blocks, the env keys and the names in it are what those readers look for. It must not know
 * files.
 */
#include "metadata.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "ticks.h"

static const char aliases[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; signed = false; } := u8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := u16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := u32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := u64_t;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := s32_t;\n"
	"typealias integer { size = 64; align = 8; signed = true; } := s64_t;\n"
	"\n";

static const char structs[] =
	"struct etw_packet {\n"
	"\tstamp_t timestamp_begin;\n"
	"\tstamp_t timestamp_end;\n"
	"\tu64_t content_size;\n"
	"\tu64_t packet_size;\n"
	"\tu64_t packet_seq_num;\n"
	"\tu64_t events_discarded;\n"
	"\tu32_t cpu_id;\n"
	"};\n"
	"\n"
	"struct etw_event {\n"
	"\tenum : u16_t { compact = 0 ... 65534, extended = 65535 } id;\n"
	"\tvariant <id> {\n"
	"\t\tstruct { stamp32_t timestamp; } compact;\n"
	"\t\tstruct { u32_t id; stamp_t timestamp; } extended;\n"
	"\t} v;\n"
	"} align(8);\n"
	"\n"
	"stream {\n"
	"\tid = 0;\n"
	"\tevent.header := struct etw_event;\n"
	"\tpacket.context := struct etw_packet;\n"
	"\tevent.context := struct {\n"
	"\t\ts32_t _tid;\n"
	"\t\ts32_t _pid;\n"
	"\t};\n"
	"};\n";

/* The text of a string literal. Readers want ASCII. */
static void print_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		fputc(*s >= ' ' && *s <= '~' ? *s : '?', out);
	}
	fputc('"', out);
}

static void print_env(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\t%s = ", key);
	print_string(out, value);
	fputs(";\n", out);
}

/* CTF's offset is in ticks: of the cycle counter what is left of a second. */
static void print_time(FILE *out, const struct facts *facts)
{
	__s64 seconds = facts->offset / (__s64)TICKS_NSEC, rest = facts->offset % (__s64)TICKS_NSEC;
	__u64 freq = ticks_valid(facts->freq) ? facts->freq : TICKS_NSEC;

	fprintf(out, "\tfreq = %llu;\n\tprecision = 1;\n", (unsigned long long)freq);
	if (freq == TICKS_NSEC) {
		fprintf(out, "\toffset = %lld;\n", (long long)facts->offset);
		return;
	}
	if (rest < 0) {
		rest += TICKS_NSEC;
		seconds--;
	}
	fprintf(out, "\toffset_s = %lld;\n\toffset = %llu;\n", (long long)seconds,
		(unsigned long long)ns_ticks(rest, freq));
}

void etw_metadata_head(FILE *out, const struct facts *facts, const struct metadata_env *env, unsigned int nr)
{
	/*
	 * "monotonic" is the name by which babeltrace2 knows a clock of the epoch, so that traces of one boot merge;
	 * other clocks must say so themselves, and must not pass for the same clock.
	 */
	static const struct {
		const char *name;
		const char *description;
	} clocks[] = {
		[ETW_CLOCK_DEFAULT] = { "monotonic", "CLOCK_MONOTONIC" },
		[ETW_CLOCK_MONOTONIC] = { "monotonic", "CLOCK_MONOTONIC" },
		[ETW_CLOCK_BOOT] = { "boottime", "CLOCK_BOOTTIME" },
		[ETW_CLOCK_REAL] = { "realtime", "CLOCK_MONOTONIC plus its offset to UTC at the start of the session" },
		[ETW_CLOCK_CYCLES] = { "cycles", "the cycle counter of the CPU" },
	};
	__u32 clock = facts->clock <= ETW_CLOCK_CYCLES ? facts->clock : ETW_CLOCK_MONOTONIC;
	const char *name = clocks[clock].name;
	char uuid[ETW_GUID_TEXT_SIZE];
	unsigned int i;

	fputs(aliases, out);
	etw_guid_format(facts->uuid, uuid);
	fprintf(out, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n", uuid);
	fputs("\tpacket.header := struct {\n\t\tu32_t magic;\n\t\tu8_t uuid[16];\n\t\tu32_t stream_id;\n\t};\n};\n\n",
	      out);

	fputs("env {\n", out);
	print_env(out, "hostname", facts->hostname);
	print_env(out, "domain", "kernel");
	print_env(out, "sysname", "Linux");
	print_env(out, "kernel_release", facts->kernel_release);
	print_env(out, "kernel_version", facts->kernel_version);
	print_env(out, "tracer_name", "lttng-modules");
	fputs("\ttracer_major = 2;\n\ttracer_minor = 13;\n\ttracer_patchlevel = 0;\n", out);
	for (i = 0; i < nr; i++)
		print_env(out, env[i].key, env[i].value);
	fputs("};\n\n", out);

	fprintf(out, "clock {\n\tname = %s;\n", name);
	if (facts->boot_id[0] && !strcmp(name, "monotonic"))
		fprintf(out, "\tuuid = \"%s\";\n", facts->boot_id);
	fputs("\tdescription = ", out);
	print_string(out, clocks[clock].description);
	fputs(";\n", out);
	print_time(out, facts);
	if (strcmp(name, "monotonic"))
		fputs("\tabsolute = TRUE;\n", out);
	fputs("};\n\n", out);

	fprintf(out, "typealias integer { size = 64; align = 8; signed = false; map = clock.%s.value; } := stamp_t;\n",
		name);
	fprintf(out,
		"typealias integer { size = 32; align = 8; signed = false; map = clock.%s.value; } := stamp32_t;\n",
		name);
	fputs("typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text_t;\n\n", out);
	fputs(structs, out);
}

void etw_metadata_begin(FILE *out, const struct facts *facts)
{
	const struct metadata_env env[] = {
		{ "etw_version", facts->writer },
		{ "etw_session", facts->name },
		{ "etw_mode", facts->flags & ETW_SESSION_OVERWRITE ? "overwrite" : "discard" },
		{ "etw_clock", etw_clock_name(facts->clock) },
	};

	etw_metadata_head(out, facts, env, sizeof(env) / sizeof(env[0]));
}

/* An integer type without its name. Readers compute with fields of kernel events, so those never become enums. */
static void print_integer(FILE *out, const struct etw_class *cls, const struct etw_field *f)
{
	unsigned int bits = f->element_size * 8;
	bool is_signed = f->type >= ETW_TYPE_S8 && f->type <= ETW_TYPE_S64;
	unsigned int base = f->type == ETW_TYPE_POINTER || f->format == ETW_FORMAT_HEX ? 16 :
			    f->format == ETW_FORMAT_OCTAL			       ? 8 :
											 10;
	__u32 i;

	if (f->format == ETW_FORMAT_TIME && bits == 64)
		is_signed = true;
	if (f->map && f->map->kind == ETW_MAP_VALUES && f->map->nr && !class_info(cls)->own_ctf_name) {
		fprintf(out, "enum : integer { size = %u; align = 8; signed = %s; } {\n", bits,
			is_signed ? "true" : "false");
		for (i = 0; i < f->map->nr; i++) {
			__u64 value = f->map->values[i].value << (64 - bits);

			fputs("\t\t\t", out);
			print_string(out, f->map->values[i].name);
			if (is_signed)
				fprintf(out, " = %lld", (long long)((__s64)value >> (64 - bits)));
			else
				fprintf(out, " = %llu", (unsigned long long)(value >> (64 - bits)));
			fputs(i + 1 < f->map->nr ? ",\n" : "\n", out);
		}
		fputs("\t\t}", out);
		return;
	}
	if (base != 10 || (is_signed && bits < 32))
		fprintf(out, "integer { size = %u; align = 8; signed = %s; base = %u; }", bits,
			is_signed ? "true" : "false", base);
	else
		fprintf(out, "%c%u_t", is_signed ? 's' : 'u', bits);
}

static void print_field(FILE *out, const struct etw_class *cls, const struct etw_field *f)
{
	const char *name = f->ctf_name;
	bool counted = f->array == ETW_ARRAY_COUNTED || f->type == ETW_TYPE_BINARY;

	if (counted)
		fprintf(out, "\t\tu32_t __%s_length;\n", name);
	fputs("\t\t", out);
	switch (f->type) {
	case ETW_TYPE_CHARS:
		fprintf(out, "text_t _%s[%u];\n", name, f->count);
		return;
	case ETW_TYPE_STRING:
		fprintf(out, "string { encoding = UTF8; } _%s;\n", name);
		return;
	case ETW_TYPE_GUID:
	case ETW_TYPE_IPV4:
	case ETW_TYPE_IPV6:
	case ETW_TYPE_MAC:
		fprintf(out, "u8_t _%s[%u];\n", name, f->element_size);
		return;
	case ETW_TYPE_F32:
		fputs("floating_point { exp_dig = 8; mant_dig = 24; byte_order = le; align = 8; }", out);
		break;
	case ETW_TYPE_F64:
		fputs("floating_point { exp_dig = 11; mant_dig = 53; byte_order = le; align = 8; }", out);
		break;
	case ETW_TYPE_BOOL:
	case ETW_TYPE_BINARY:
		fputs("u8_t", out);
		break;
	default:
		print_integer(out, cls, f);
	}
	fprintf(out, " _%s", name);
	if (counted)
		fprintf(out, "[ __%s_length ]", name);
	else if (f->array == ETW_ARRAY_FIXED)
		fprintf(out, "[%u]", f->count);
	fputs(";\n", out);
}

void etw_metadata_event(FILE *out, const struct etw_class *cls, __u32 id)
{
	__u32 i;

	fputs("\nevent {\n\tname = ", out);
	print_string(out, cls->ctf_name);
	fprintf(out, ";\n\tid = %u;\n\tstream_id = 0;\n", id);
	if (cls->level)
		fprintf(out, "\tloglevel = %u;\n", cls->level);
	fputs("\tfields := struct {\n", out);
	for (i = 0; i < cls->nr_fields; i++)
		print_field(out, cls, &cls->fields[i]);
	fputs("\t};\n};\n", out);
}

/* The value of `key = "value";` at or after @text. */
static void scan_string(const char *text, const char *key, char *to, size_t size)
{
	char search[64];
	const char *p, *end;

	snprintf(search, sizeof(search), "\t%s = \"", key);
	p = strstr(text, search);
	end = p ? strchr(p + strlen(search), '"') : NULL;
	if (!end)
		return;
	p += strlen(search);
	snprintf(to, size, "%.*s", (int)(end - p), p);
}

/* The value of `key = number;`, or 0. */
static __s64 scan_number(const char *text, const char *key)
{
	char search[64];
	const char *p;

	snprintf(search, sizeof(search), "\t%s = ", key);
	p = strstr(text, search);
	return p ? strtoll(p + strlen(search), NULL, 10) : 0;
}

void etw_metadata_facts(const char *text, struct facts *facts)
{
	const char *trace = strstr(text, "trace {"), *clock = strstr(text, "\nclock {");
	__s64 ticks;
	char uuid[64] = "", word[32] = "";
	int id;

	if (trace) {
		scan_string(trace, "uuid", uuid, sizeof(uuid));
		etw_guid_parse(uuid, facts->uuid);
	}
	scan_string(text, "hostname", facts->hostname, sizeof(facts->hostname));
	scan_string(text, "kernel_release", facts->kernel_release, sizeof(facts->kernel_release));
	scan_string(text, "kernel_version", facts->kernel_version, sizeof(facts->kernel_version));
	scan_string(text, "etw_version", facts->writer, sizeof(facts->writer));
	scan_string(text, "etw_session", facts->name, sizeof(facts->name));
	scan_string(text, "etw_mode", word, sizeof(word));
	facts->flags = strcmp(word, "overwrite") ? 0 : ETW_SESSION_OVERWRITE;
	scan_string(text, "etw_clock", word, sizeof(word));
	id = etw_clock_parse(word);
	facts->clock = id < 0 ? ETW_CLOCK_MONOTONIC : id;
	facts->freq = TICKS_NSEC;
	if (!clock)
		return;
	scan_string(clock, "uuid", facts->boot_id, sizeof(facts->boot_id));
	facts->freq = scan_number(clock, "freq");
	if (!ticks_valid(facts->freq))
		facts->freq = TICKS_NSEC;
	ticks = scan_number(clock, "offset");
	if (facts->freq != TICKS_NSEC && ticks >= 0)
		ticks = ticks_ns(ticks, facts->freq);
	facts->offset = (__u64)scan_number(clock, "offset_s") * TICKS_NSEC + ticks;
}
