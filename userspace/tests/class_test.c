// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classes: hostile entries are refused without a crash, fields of every type give the right values and texts, names
 * become legal in CTF, and babeltrace2 reads them all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "synth.h"
#include "tap.h"

static const char *const colours[] = { "red", "green", "blue \"sky\"", NULL };
static const char *const bits[] = { "read", "write", "exec", NULL };

static const struct synth_field all_fields[] = {
	{ .name = "u8", .type = ETW_TYPE_U8 },
	{ .name = "s8", .type = ETW_TYPE_S8 },
	{ .name = "u16", .type = ETW_TYPE_U16, .format = ETW_FORMAT_OCTAL },
	{ .name = "s16", .type = ETW_TYPE_S16 },
	{ .name = "u32", .type = ETW_TYPE_U32, .format = ETW_FORMAT_DEV },
	{ .name = "s32", .type = ETW_TYPE_S32, .format = ETW_FORMAT_ERRNO },
	{ .name = "u64", .type = ETW_TYPE_U64, .format = ETW_FORMAT_HEX },
	{ .name = "s64", .type = ETW_TYPE_S64, .format = ETW_FORMAT_TIME },
	{ .name = "pointer", .type = ETW_TYPE_POINTER },
	{ .name = "f32", .type = ETW_TYPE_F32 },
	{ .name = "f64", .type = ETW_TYPE_F64 },
	{ .name = "bool", .type = ETW_TYPE_BOOL },
	{ .name = "chars", .type = ETW_TYPE_CHARS, .count = 8 },
	{ .name = "string", .type = ETW_TYPE_STRING },
	{ .name = "binary", .type = ETW_TYPE_BINARY },
	{ .name = "guid", .type = ETW_TYPE_GUID },
	{ .name = "ipv4", .type = ETW_TYPE_IPV4 },
	{ .name = "ipv6", .type = ETW_TYPE_IPV6 },
	{ .name = "mac", .type = ETW_TYPE_MAC },
	{ .name = "fixed", .type = ETW_TYPE_S16, .array = ETW_ARRAY_FIXED, .count = 3 },
	{ .name = "counted", .type = ETW_TYPE_U32, .array = ETW_ARRAY_COUNTED },
	{ .name = "empty", .type = ETW_TYPE_U64, .array = ETW_ARRAY_COUNTED },
	{ .name = "colour", .type = ETW_TYPE_U8, .map_kind = ETW_MAP_VALUES, .map = colours },
	{ .name = "flags", .type = ETW_TYPE_U32, .map_kind = ETW_MAP_FLAGS, .map = bits },
};

static const char *const all_texts[] = {
	"255",
	"-128",
	"0755",
	"-32768",
	"8:1",
	"-ENOENT",
	"0xffffffffffffffff",
	"1970-01-01T00:00:01.000000002Z",
	"0xffff888000000000",
	"1.5",
	"-0.25",
	"true",
	"pad",
	"gr\xc3\xbc\xc3\x9f\\x0a\\xff",
	"00ff10",
	"b3864c38-4273-58c5-545b-8b3608343471",
	"192.168.0.1",
	"2001:db8::1",
	"02:00:5e:10:00:ff",
	"[-1, 0, 1]",
	"[7, 4294967295]",
	"[]",
	"blue \"sky\"",
	"write|exec|0x80",
};

#define NR_ALL (sizeof(all_fields) / sizeof(all_fields[0]))

/* Awkward names: not identifiers, keywords of TSDL, duplicates, one that a sequence's length takes. */
static const struct synth_field name_fields[] = {
	{ .name = "int", .type = ETW_TYPE_U8 },	       { .name = "struct", .type = ETW_TYPE_U8 },
	{ .name = "_x", .type = ETW_TYPE_U8 },	       { .name = "a b", .type = ETW_TYPE_U8 },
	{ .name = "a-b", .type = ETW_TYPE_U8 },	       { .name = "a_b", .type = ETW_TYPE_U8 },
	{ .name = "a\"; };", .type = ETW_TYPE_U8 },    { .name = "_seq_length", .type = ETW_TYPE_U8 },
	{ .name = "seq", .type = ETW_TYPE_BINARY },    { .name = "_seq_2_length", .type = ETW_TYPE_U8 },
	{ .name = "9", .type = ETW_TYPE_U8 },
};

static const struct synth_field large_fields[] = { { .name = "data", .type = ETW_TYPE_BINARY } };

static const struct synth_class classes[] = {
	{ "All-Types", "Everything", NULL, 4, 0xab, all_fields, NR_ALL },
	{ "Names", "Awkward-one.x", "say \"hi\" \\ there", 0, 0, name_fields,
	  sizeof(name_fields) / sizeof(name_fields[0]) },
	{ "sched_mine", "Thing", NULL, 0, 0, NULL, 0 },
	{ "Large", "Event", NULL, 0, 0, large_fields, 1 },
};

static size_t all_payload(__u8 *p)
{
	static const __u8 bytes[] = {
		0xff, 0x80, 0xed, 0x01, 0x00, 0x80, 0x01, 0x00, 0x80, 0x00, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0xca, 0x9a, 0x3b, 0,	  0,	0,    0,    0,	  0,
		0,    0,    0x80, 0x88, 0xff, 0xff, 0,	  0,	0xc0, 0x3f, 0,	  0,	0,    0,    0,	  0,
		0xd0, 0xbf, 1,	  'p',	'a',  'd',  0,	  0,	0,    0,    0,	  'g',	'r',  0xc3, 0xbc, 0xc3,
		0x9f, '\n', 0xff, 0,	3,    0,    0,	  0,	0,    0xff, 0x10, 0xb3, 0x86, 0x4c, 0x38, 0x42,
		0x73, 0x58, 0xc5, 0x54, 0x5b, 0x8b, 0x36, 0x08, 0x34, 0x34, 0x71, 192,	168,  0,    1,	  0x20,
		0x01, 0x0d, 0xb8, 0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    1,	  2,
		0,    0x5e, 0x10, 0,	0xff, 0xff, 0xff, 0,	0,    1,    0,	  2,	0,    0,    0,	  7,
		0,    0,    0,	  0xff, 0xff, 0xff, 0xff, 0,	0,    0,    0,	  2,	0x86, 0,    0,	  0,
	};

	memcpy(p, bytes, sizeof(bytes));
	return sizeof(bytes);
}

static void test_values(void)
{
	static __u8 buf[65536], payload[512];
	__u32 offsets[ETW_MAX_FIELDS + 1];
	struct etw_class *cls;
	struct etw_event event = { .payload = payload, .offsets = offsets };
	size_t len, i, size = synth_schema(buf, 0, &classes[0]);
	unsigned int bad;
	char text[128];

	if (!ok(!etw_class_parse(buf, size, NULL, &cls), "class of all types"))
		exit(tap_done());
	len = all_payload(payload);
	event.cls = cls;
	ok(etw_class_walk(cls, payload, len, offsets, &bad) == (long)len, "the payload is as long as its fields");
	for (i = 0; i < len; i++) {
		__u8 *exact = malloc(i ? i : 1);

		memcpy(exact, payload, i);
		if (etw_class_walk(cls, exact, i, offsets, &bad) != -1)
			ok(false, "a payload cut at %zu of %zu is refused", i, len);
		free(exact);
	}
	ok(true, "every shorter payload is refused");
	etw_class_walk(cls, payload, len, offsets, &bad);
	for (i = 0; i < NR_ALL; i++) {
		size_t n = etw_event_format(&event, i, text, sizeof(text));

		ok(n == strlen(text) && !strcmp(text, all_texts[i]), "%s: %s", all_fields[i].name, text);
	}
	ok(etw_event_format(&event, 13, text, 4) == 14 && !strcmp(text, "gr\xc3"), "format cuts like snprintf");
	ok(etw_event_int(&event, 1) == -128 && etw_event_uint(&event, 1) == (__u64)-128 &&
		   etw_event_uint(&event, 6) == ~0ULL && etw_event_double(&event, 10) == -0.25 &&
		   etw_event_int(&event, 10) == 0,
	   "numbers are widened as their types say");
	ok(etw_event_uint(&event, -1) == 0 && etw_event_uint(&event, 99) == 0 && etw_event_uint(&event, 13) == 0 &&
		   !*etw_event_string(&event, -1, &len) && len == 0 && !*etw_event_string(&event, 0, &len) &&
		   !etw_event_bytes(&event, 99, &len),
	   "absent fields are 0 and empty");
	ok(etw_event_count(&event, 20) == 2 && etw_event_element(&event, 20, 1) == 0xffffffff &&
		   etw_event_element(&event, 20, 2) == 0 && etw_event_count(&event, 21) == 0 &&
		   etw_event_count(&event, 0) == 1,
	   "arrays");
	ok(etw_event_string(&event, 12, &len) && len == 3 && etw_event_bytes(&event, 14, &len) && len == 3, "lengths");
	ok(!strcmp(cls->ctf_name, "All_Types:Everything;kab;"), "CTF name %s", cls->ctf_name);
	ok(etw_class_match(cls, "Every*") && etw_class_match(cls, "All-Types:Everything") &&
		   etw_class_match(cls, "All-Types:") && etw_class_match(cls, "All_Types:Everything;kab;") &&
		   !etw_class_match(cls, "All-Types") && !etw_class_match(cls, "every*"),
	   "patterns");
	etw_class_free(cls);
}

static void test_names(void)
{
	static const char *const names[] = {
		"int",	 "struct",	    "_x", "a_b", "a_b_2", "a_b_3", "a_____", "_seq_length",
		"seq_2", "_seq_2_length_2", "9",
	};
	static __u8 buf[65536];
	struct etw_class *cls;
	size_t i, size = synth_schema(buf, 1, &classes[1]);

	if (!ok(!etw_class_parse(buf, size, NULL, &cls), "class of awkward names: %s", etw_last_error()))
		return;
	for (i = 0; i < cls->nr_fields; i++)
		ok(!strcmp(cls->fields[i].ctf_name, names[i]), "\"%s\" is %s", cls->fields[i].name,
		   cls->fields[i].ctf_name);
	ok(etw_class_field(cls, "a-b") == 4 && etw_class_field(cls, "a_b") == 5 && etw_class_field(cls, "a_b_2") == 4 &&
		   etw_class_field(cls, "zz") == -1,
	   "look-up by declared and by CTF name");
	etw_class_free(cls);
	size = synth_schema(buf, 2, &classes[2]);
	ok(!etw_class_parse(buf, size, NULL, &cls) && !strcmp(cls->ctf_name, "_sched_mine:Thing;k0;"),
	   "a user's provider does not pass for the kernel's");
	etw_class_free(cls);
}

/* Whatever bytes an entry has: refused or sound, never a crash (the sanitizers watch). */
static void test_hostile(void)
{
	static __u8 buf[65536];
	unsigned int accepted = 0, refused = 0;
	size_t size, i, k, c;

	for (c = 0; c < 2; c++) {
		size = synth_schema(buf, 0, &classes[c]);
		for (i = 0; i < size; i++) {
			/* A block of its own, so that reading past it is seen. */
			__u8 *entry = malloc(i ? i : 1);
			struct etw_class *cls;

			memcpy(entry, buf, i);
			if (!etw_class_parse(entry, i, NULL, &cls)) {
				ok(false, "an entry cut at %zu is refused", i);
				etw_class_free(cls);
			}
			free(entry);
			for (k = 0; k < 8; k++) {
				__u8 *flipped = malloc(size);

				memcpy(flipped, buf, size);
				flipped[i] ^= 1 << k;
				if (etw_class_parse(flipped, size, NULL, &cls)) {
					refused++;
				} else {
					accepted++;
					etw_class_free(cls);
				}
				flipped[i] = k & 1 ? 0xff : 0;
				if (!etw_class_parse(flipped, size, NULL, &cls))
					etw_class_free(cls);
				free(flipped);
			}
		}
	}
	ok(accepted && refused, "flipped bits: %u accepted, %u refused, no crash", accepted, refused);
	srand(1);
	for (i = 0; i < 20000; i++) {
		struct etw_class *cls;
		__u8 *flipped;

		size = synth_schema(buf, 0, &classes[0]);
		flipped = malloc(size);
		memcpy(flipped, buf, size);
		for (k = 0; k < 1 + i % 8; k++)
			flipped[rand() % size] = rand();
		if (!etw_class_parse(flipped, size, NULL, &cls))
			etw_class_free(cls);
		free(flipped);
	}
	ok(true, "20000 entries with random bytes: no crash");
}

static void test_babeltrace(void)
{
	static __u8 buf[65536], payload[512], large[ETW_MAX_PAYLOAD];
	const __u32 large_length = sizeof(large) - sizeof(large_length);
	struct output_options options = { .nr_cpus = 1 };
	const char *dir = synth_dir();
	static struct synth_packet p;
	struct etw_classes *table;
	struct output *output;
	struct facts facts;
	char *text;
	__u32 i;

	etw_classes_new(&table);
	memcpy(large, &large_length, sizeof(large_length));
	for (i = 0; i < 4; i++)
		etw_classes_add(table, buf, synth_schema(buf, i, &classes[i]));
	synth_facts(&facts);
	strcpy(facts.hostname, "a \"quoted\\ h\xc3\xb6st\n");
	if (etw_output_create(dir, &facts, &options, &output))
		exit(1);
	etw_output_classes(output, table, 4);
	synth_begin(&p, 0, 1000, 0, 0);
	synth_record(&p, 0, 2000, 7, 7, payload, all_payload(payload), false);
	synth_record(&p, 1, 3000, 7, 7, "\1\2\3\4\5\6\7\10\2\0\0\0xy\11\12", 16, false);
	synth_record(&p, 2, 4000, 7, 7, "", 0, false);
	/* The largest payload. */
	synth_record(&p, 3, 5000, 7, 7, large, sizeof(large), false);
	synth_end(&p, 9000);
	etw_output_packet(output, 0, p.bytes, p.len, p.records, 0);
	etw_output_finish(output, 9000, NULL, 0);
	etw_output_free(output);
	etw_classes_free(table);
	synth_run(&text, "babeltrace2 --names none '%s' 2>&1", dir);
	ok(strstr(text, "All_Types:Everything;kab;") && strstr(text, "say \"hi\" \\ there") &&
		   strstr(text, "_sched_mine:Thing;k0;"),
	   "babeltrace2 reads the names");
	ok(strstr(text,
		  "255, -128, 0755, -32768, 8388609, -2, 0xFFFFFFFFFFFFFFFF, 1000000002, 0xFFFF888000000000, 1.5, -0.25, 1, "
		  "\"pad\", ") &&
		   strstr(text, "[ -1, 0, 1 ], 2, [ 7, 4294967295 ], 0, [ ]"),
	   "babeltrace2 reads the values");
	ok(strstr(text, "{ 65532, [ 0, 0,") && strlen(text) > 3 * 65532, "babeltrace2 reads an event of 64 KiB");
	ok(strstr(text, "\"blue \\\"sky\\\"\"") != NULL, "babeltrace2 reads value maps of user events");
	if (tap_failed)
		printf("# %.3000s\n", text);
	free(text);
	synth_run(&text, "babeltrace2 '%s' 2>&1 >/dev/null", dir);
	ok(!*text, "babeltrace2 says nothing: %s", text);
	free(text);
}

int main(void)
{
	test_values();
	test_names();
	test_hostile();
	test_babeltrace();
	synth_clean();
	return tap_done();
}
