// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages, numbers and strings in and out of text, for every verb. It must not know sessions or traces.
 */
#include "etwctl.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool json;
bool quiet;
bool progress_shown;

void json_line(struct json_object *obj)
{
	puts(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(obj);
}

void json_text(struct json_object *obj, const char *key, const char *text)
{
	size_t len = strlen(text);
	char *buf = xmalloc(4 * len + 1);

	json_object_object_add(obj, key, json_object_new_string(text_utf8(buf, text, len)));
	free(buf);
}

void json_u64(struct json_object *obj, const char *key, uint64_t value)
{
	json_object_object_add(obj, key, json_object_new_uint64(value));
}

void json_s64(struct json_object *obj, const char *key, int64_t value)
{
	json_object_object_add(obj, key, json_object_new_int64(value));
}

static void say(const char *text)
{
	char *buf = xmalloc(4 * strlen(text) + 1);

	fflush(stdout);
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
	fprintf(stderr, "etwctl%s%s: %s\n", verb ? " " : "", verb ? verb->name : "",
		text_safe(buf, text, strlen(text)));
	free(buf);
}

static char *format(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	return text;
}

int fail(int status, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	if (json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "error", text);
		if (verb)
			json_text(obj, "verb", verb->name);
		json_s64(obj, "status", status);
		json_line(obj);
		fflush(stdout);
	} else {
		say(text);
	}
	free(text);
	return status;
}

int usage(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	fail(STATUS_USAGE, "%s (see etwctl help%s%s)", text, verb ? " " : "", verb ? verb->name : "");
	free(text);
	return STATUS_USAGE;
}

void note(const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (quiet)
		return;
	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	say(text);
	free(text);
}

int worse(int a, int b)
{
	if (a == STATUS_OK || (a == STATUS_LOSS && b != STATUS_OK))
		return b;
	return a;
}

static int number(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	*value = strtoull(text, end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return errno ? -1 : 0;
}

int parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (number(text, &end, value) || *end || *value < min || *value > max)
		return usage("%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, what, text, min, max);
	return 0;
}

int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	static const char units[] = "kmgt";
	char lo[32];
	char *end;
	int shift = 0;

	if (!number(text, &end, value)) {
		const char *unit = *end ? strchr(units, *end | 32) : NULL;

		if (unit) {
			shift = 10 * (int)(unit - units + 1);
			end++;
			if ((end[0] | 32) == 'i')
				end++;
			if ((end[0] | 32) == 'b')
				end++;
		}
		if (!*end && *value <= UINT64_MAX >> shift) {
			*value <<= shift;
			if (*value >= min && *value <= max)
				return 0;
		}
	}
	snprintf(lo, sizeof(lo), "%s", show_bytes(min));
	if (max == UINT64_MAX)
		return usage("%s: '%s' is not a size of at least %s; sizes are like 64K, 2M, 1G", what, text, lo);
	return usage("%s: '%s' is not a size from %s to %s; sizes are like 64K, 2M, 1G", what, text, lo,
		     show_bytes(max));
}

int parse_ms(const char *what, const char *text, uint32_t max, uint32_t never, uint32_t *value)
{
	uint64_t n;
	char *end;

	if (never && !strcmp(text, "never")) {
		*value = never;
		return 0;
	}
	if (!number(text, &end, &n) && n <= max) {
		if (!strcmp(end, "s"))
			n *= 1000;
		if ((!*end || !strcmp(end, "ms") || !strcmp(end, "s")) && n >= 1 && n <= max) {
			*value = n;
			return 0;
		}
	}
	return usage("%s: '%s' is not a time from 1 to %u ms (also like 500ms or 2s%s)", what, text, max,
		     never ? ", or never" : "");
}

char **list_split(const char *what, const char *text)
{
	size_t n = 2;
	char **list, *copy;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	list = xmalloc(n * sizeof(*list));
	/* The parts stay in one copy, which the first one starts. */
	copy = xstrdup(text);
	n = 0;
	for (char *part = copy;; part++) {
		list[n++] = part;
		part += strcspn(part, ",");
		if (part == list[n - 1]) {
			list_free(list);
			usage("%s: '%s' has an empty part; a list is like a,b,c", what, text);
			return NULL;
		}
		if (!*part)
			return list;
		*part = 0;
	}
}

void list_free(char **list)
{
	if (list)
		free(list[0]);
	free(list);
}

size_t list_len(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

char *text_part(char **text, char divider)
{
	char *part = *text, *end;

	if (!part)
		return NULL;
	end = strchr(part, divider);
	if (end)
		*end++ = 0;
	*text = end;
	return part;
}

static char *static_buffer(void)
{
	static char buffers[8][32];
	static unsigned int next;

	return buffers[next++ % 8];
}

const char *show_bytes(uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	char *buf = static_buffer();
	double value = bytes;
	int unit = 0;

	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	/* Whole numbers without a fraction: 128 KiB, not 128.0 KiB. */
	snprintf(buf, 32, unit && value != (uint64_t)value ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buf;
}

const char *show_count(uint64_t n)
{
	char *buf = static_buffer();
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *p = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = 0;
	return buf;
}

/* Length of the valid UTF-8 sequence at @s, 0 if there is none. */
static int utf8_len(const unsigned char *s, size_t len)
{
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if (!n || (size_t)n > len)
		return 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* No overlong forms, surrogates, or values above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

static char *clean(char *buf, const char *text, size_t len, bool escape)
{
	const unsigned char *s = (const unsigned char *)text;
	char *p = buf;

	while (len) {
		int n;

		if (*s >= 0x20 && *s < 0x7f) {
			*p++ = *s++;
			len--;
			continue;
		}
		n = utf8_len(s, len);
		if (!n) {
			memcpy(p, "\xef\xbf\xbd", 3);
			p += 3;
			n = 1;
		} else if (escape && n == 1 && (*s < 0x20 || *s == 0x7f)) {
			p += sprintf(p, "\\x%02x", *s);
		} else if (escape && n == 2 && s[0] == 0xc2 && s[1] < 0xa0) {
			p += sprintf(p, "\\x%02x", s[1]);
		} else {
			memcpy(p, s, n);
			p += n;
		}
		s += n;
		len -= n;
	}
	*p = 0;
	return buf;
}

char *text_utf8(char *buf, const char *text, size_t len)
{
	return clean(buf, text, len, false);
}

char *text_safe(char *buf, const char *text, size_t len)
{
	return clean(buf, text, len, true);
}

void *xmalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p) {
		fputs("etwctl: out of memory\n", stderr);
		exit(STATUS_FAILED);
	}
	return p;
}

char *xstrdup(const char *text)
{
	return strcpy(xmalloc(strlen(text) + 1), text);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	return text;
}
