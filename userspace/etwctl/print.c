// SPDX-License-Identifier: GPL-2.0-only
/* One event as a line of text or a JSON object (print.h). It must not know where events come from. */
#include "etwctl.h"

#include "print.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC 1000000000LL

const struct opt opts_print[] = {
	{ "time", OPT_TIME, "HOW", "show times as local, utc, start, clock or epoch", "local utc start clock epoch" },
	{ "limit", 'n', "N", "stop after N events", NULL },
	{}
};

int print_time_option(struct print *p, const char *arg)
{
	static const char *const words[] = { "local", "utc", "clock", "start", "epoch" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], arg)) {
			p->time = i;
			return 0;
		}
	return usage("--time: '%s' is not local, utc, clock, start or epoch", arg);
}

const char *provider_short(const char *name)
{
	static const char kernel[] = "Linux-Kernel-";

	return strncmp(name, kernel, sizeof(kernel) - 1) ? name : name + sizeof(kernel) - 1;
}

/*
 * Lines are put together here and given to stdout as one piece; printf() would take most of the time of a dump.
 */
static char line[16384];
static size_t used;

static void put_line(void)
{
	fwrite(line, 1, used, stdout);
	used = 0;
}

static void put_char(char c)
{
	if (used == sizeof(line))
		put_line();
	line[used++] = c;
}

/* At most 16 bytes, as most pieces are: two moves that overlap, cheaper than a call or a loop. */
static inline void put_few(char *to, const char *text, size_t len)
{
	if (len >= 8) {
		memcpy(to, text, 8);
		memcpy(to + len - 8, text + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, text, 4);
		memcpy(to + len - 4, text + len - 4, 4);
	} else if (len >= 2) {
		memcpy(to, text, 2);
		memcpy(to + len - 2, text + len - 2, 2);
	} else if (len) {
		*to = *text;
	}
}

static void put_many(const char *text, size_t len)
{
	if (len > sizeof(line) - used)
		put_line();
	if (len > sizeof(line)) {
		fwrite(text, 1, len, stdout);
		return;
	}
	memcpy(line + used, text, len);
	used += len;
}

static inline void put_bytes(const char *text, size_t len)
{
	if (len > 16 || used + 16 > sizeof(line)) {
		put_many(text, len);
		return;
	}
	put_few(line + used, text, len);
	used += len;
}

static inline void put_text(const char *text)
{
	put_bytes(text, strlen(text));
}

static void put_number(__u64 value)
{
	char digits[20];
	unsigned int n = 0;

	do
		digits[sizeof(digits) - ++n] = '0' + value % 10;
	while (value /= 10);
	put_bytes(digits + sizeof(digits) - n, n);
}

/* Nanoseconds behind a point: nine digits. */
static void put_fraction(unsigned int ns)
{
	char digits[10] = ".";

	for (int i = 9; i; i--, ns /= 10)
		digits[i] = '0' + ns % 10;
	put_bytes(digits, sizeof(digits));
}

static void put_integer(__s64 value)
{
	if (value < 0)
		put_char('-');
	put_number(value < 0 ? -(__u64)value : (__u64)value);
}

static void put_seconds(__s64 ns)
{
	if (ns < 0)
		put_char('-');
	put_number(llabs(ns / NSEC));
	put_fraction(llabs(ns % NSEC));
}

static void put_time(struct print *p, const struct etw_event *event)
{
	time_t second = event->epoch / NSEC;
	struct tm tm;

	put_char('[');
	switch (p->time) {
	case PRINT_LOCAL:
	case PRINT_UTC:
		if (second != p->second || !p->clock[0]) {
			if (p->time == PRINT_UTC)
				gmtime_r(&second, &tm);
			else
				localtime_r(&second, &tm);
			strftime(p->clock, sizeof(p->clock), "%H:%M:%S", &tm);
			p->second = second;
		}
		put_text(p->clock);
		put_fraction(llabs(event->epoch % NSEC));
		break;
	case PRINT_CLOCK:
		put_seconds(event->time);
		break;
	case PRINT_START:
		put_seconds(event->epoch - p->start);
		break;
	case PRINT_EPOCH:
		put_seconds(event->epoch);
		break;
	}
	put_text("] (+");
	put_seconds(p->begun ? event->epoch - p->last : 0);
	put_char(')');
	p->last = event->epoch;
	p->begun = true;
}

/* A byte of eight is a control character, DEL, a quotation mark or not ASCII; the usual tricks with borrows, never too lenient. */
static inline bool plain_eight(const char *text)
{
	const __u64 ones = 0x0101010101010101, high = 0x8080808080808080;
	__u64 v, quote, del;

	memcpy(&v, text, sizeof(v));
	quote = v ^ ones * '"';
	del = v ^ ones * 0x7f;
	return !(((v - ones * ' ') | v | ((quote - ones) & ~quote) | ((del - ones) & ~del)) & high);
}

/* Nothing in it has to be escaped. */
static bool plain(const char *text, size_t len)
{
	size_t i = 0;

	while (i + 8 <= len && plain_eight(text + i))
		i += 8;
	for (; i < len; i++)
		if ((signed char)text[i] < ' ' || text[i] == 0x7f || text[i] == '"')
			return false;
	return true;
}

static void put_quoted(const char *text, size_t len)
{
	char small[1024], *buf;

	if (plain(text, len)) {
		put_char('"');
		put_bytes(text, len);
		put_char('"');
		return;
	}
	buf = 4 * len < sizeof(small) ? small : xmalloc(4 * len + 1);
	text_safe(buf, text, len);
	put_char('"');
	for (const char *c = buf; *c; c++) {
		if (*c == '"')
			put_char('\\');
		put_char(*c);
	}
	put_char('"');
	if (buf != small)
		free(buf);
}

/* " name=" of each field of a class; copied whole, so that it takes a few moves. */
struct label {
	size_t len;
	char text[ETW_NAME_SIZE + 8];
};

static struct label **labels;		/* by class index */
static unsigned int nr_labels;

static const struct label *labels_of(const struct etw_class *cls)
{
	struct label *made;

	if (cls->index >= nr_labels) {
		struct label **more = xmalloc((cls->index + 32) * sizeof(*more));

		if (labels)
			memcpy(more, labels, nr_labels * sizeof(*more));
		free(labels);
		labels = more;
		nr_labels = cls->index + 32;
	}
	if (!labels[cls->index]) {
		made = xmalloc(cls->nr_fields * sizeof(*made));
		for (unsigned int i = 0; i < cls->nr_fields; i++)
			made[i].len = snprintf(made[i].text, sizeof(made[i].text), " %s=", cls->fields[i].name);
		labels[cls->index] = made;
	}
	return labels[cls->index];
}

static void put_label(const struct label *label, const struct etw_field *f)
{
	if (label->len < sizeof(label->text) && used + sizeof(label->text) <= sizeof(line)) {
		memcpy(line + used, label->text, sizeof(label->text));
		used += label->len;
		return;
	}
	put_char(' ');
	put_text(f->name);
	put_char('=');
}

static bool is_plain_number(const struct etw_field *f)
{
	return f->type <= ETW_TYPE_S64 && !f->map && f->array == ETW_ARRAY_NONE &&
	       (f->format == ETW_FORMAT_DEFAULT || f->format == ETW_FORMAT_PID);
}

static void put_field(const struct etw_event *event, unsigned int i, const struct label *label)
{
	const struct etw_field *f = &event->cls->fields[i];
	char small[1024];
	size_t len;

	put_label(label, f);
	if (is_plain_number(f)) {
		if (f->type >= ETW_TYPE_S8)
			put_integer(etw_event_int(event, i));
		else
			put_number(etw_event_uint(event, i));
		return;
	}
	if (f->type == ETW_TYPE_CHARS || f->type == ETW_TYPE_STRING) {
		const char *text = etw_event_string(event, i, &len);

		put_quoted(text, len);
		return;
	}
	len = etw_event_format(event, i, small, sizeof(small));
	if (len < sizeof(small)) {
		put_bytes(small, len);
	} else {
		char *buf = xmalloc(len + 1);

		etw_event_format(event, i, buf, len + 1);
		put_bytes(buf, len);
		free(buf);
	}
}

static struct json_object *json_number(const struct etw_event *event, unsigned int i, unsigned int element)
{
	const struct etw_field *f = &event->cls->fields[i];
	__u64 value = f->array == ETW_ARRAY_NONE ? etw_event_uint(event, i) : etw_event_element(event, i, element);
	float f32;
	double f64;

	switch (f->type) {
	case ETW_TYPE_S8:
		return json_object_new_int64((__s8)value);
	case ETW_TYPE_S16:
		return json_object_new_int64((__s16)value);
	case ETW_TYPE_S32:
		return json_object_new_int64((__s32)value);
	case ETW_TYPE_S64:
		return json_object_new_int64((__s64)value);
	case ETW_TYPE_F32:
	case ETW_TYPE_F64:
		if (f->array == ETW_ARRAY_NONE) {
			f64 = etw_event_double(event, i);
		} else if (f->type == ETW_TYPE_F32) {
			const char *bytes = etw_event_bytes(event, i, &(size_t){ 0 });

			memcpy(&f32, bytes + element * sizeof(f32), sizeof(f32));
			f64 = f32;
		} else {
			const char *bytes = etw_event_bytes(event, i, &(size_t){ 0 });

			memcpy(&f64, bytes + element * sizeof(f64), sizeof(f64));
		}
		/* JSON has no infinity and no NaN. */
		return isfinite(f64) ? json_object_new_double(f64) : NULL;
	}
	return json_object_new_uint64(value);
}

static struct json_object *json_field(const struct etw_event *event, unsigned int i)
{
	const struct etw_field *f = &event->cls->fields[i];
	struct json_object *value;
	const unsigned char *bytes;
	size_t len;
	char *buf;

	switch (f->type) {
	case ETW_TYPE_CHARS:
	case ETW_TYPE_STRING: {
		const char *text = etw_event_string(event, i, &len);

		buf = xmalloc(4 * len + 1);
		value = json_object_new_string(text_utf8(buf, text, len));
		free(buf);
		return value;
	}
	case ETW_TYPE_BINARY:
	case ETW_TYPE_GUID:
	case ETW_TYPE_IPV4:
	case ETW_TYPE_IPV6:
	case ETW_TYPE_MAC:
		bytes = etw_event_bytes(event, i, &len);
		buf = xmalloc(2 * len + 1);
		for (size_t k = 0; bytes && k < len; k++)
			sprintf(buf + 2 * k, "%02x", bytes[k]);
		value = json_object_new_string(buf);
		free(buf);
		return value;
	}
	if (f->array == ETW_ARRAY_NONE)
		return json_number(event, i, 0);
	value = json_object_new_array();
	for (unsigned int k = 0; k < etw_event_count(event, i); k++)
		json_object_array_add(value, json_number(event, i, k));
	return value;
}

static void print_json(struct print *p, struct tasks *tasks, const struct etw_event *event)
{
	struct json_object *obj = json_object_new_object(), *fields = json_object_new_object();
	const char *comm = tasks_comm(tasks, event->tid, event->cpu);

	json_u64(obj, "time", event->time);
	json_s64(obj, "epoch", event->epoch);
	if (p->trace)
		json_u64(obj, "trace", event->trace);
	json_u64(obj, "cpu", event->cpu);
	json_s64(obj, "tid", event->tid);
	json_s64(obj, "pid", event->pid);
	if (comm)
		json_text(obj, "comm", comm);
	json_text(obj, "provider", event->cls->provider);
	json_text(obj, "event", event->cls->name);
	json_text(obj, "ctf", event->cls->ctf_name);
	json_u64(obj, "level", event->cls->level);
	for (unsigned int i = 0; i < event->cls->nr_fields; i++)
		json_object_object_add(fields, event->cls->fields[i].name, json_field(event, i));
	json_object_object_add(obj, "fields", fields);
	json_line(obj);
}

void print_event(struct print *p, struct tasks *tasks, const struct etw_event *event)
{
	const struct label *label;
	const char *comm;

	if (json) {
		print_json(p, tasks, event);
		return;
	}
	put_time(p, event);
	if (p->trace) {
		put_text(" trace ");
		put_number(event->trace);
	}
	put_text(" cpu ");
	put_number(event->cpu);
	put_char(' ');
	put_integer(event->tid);
	put_char('/');
	put_integer(event->pid);
	put_char(' ');
	comm = tasks_comm(tasks, event->tid, event->cpu);
	if (comm) {
		char buf[80];

		put_text(text_safe(buf, comm, strlen(comm)));
		put_char(' ');
	}
	put_text(provider_short(event->cls->provider));
	put_char('/');
	put_text(event->cls->name);
	label = labels_of(event->cls);
	for (unsigned int i = 0; i < event->cls->nr_fields; i++)
		put_field(event, i, &label[i]);
	put_char('\n');
	if (used > sizeof(line) / 2)
		put_line();
}

void print_flush(void)
{
	put_line();
	fflush(stdout);
}
