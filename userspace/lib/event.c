// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Values of an event's fields, as numbers, bytes and text. It relies on offsets that were checked against the record,
 * and must not know where the event came from.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>

#include <etw/etw.h>

#include "class.h"

static inline const struct etw_field *field_of(const struct etw_event *event, int field)
{
	return (unsigned int)field < event->cls->nr_fields ? &event->cls->fields[field] : NULL;
}

static inline __u64 number_at(const __u8 *p, unsigned int type)
{
	__u64 u64;
	__u32 u32;
	__u16 u16;
	float f32;
	double f64;

	switch (type) {
	case ETW_TYPE_U8:
		return *p;
	case ETW_TYPE_BOOL:
		return *p != 0;
	case ETW_TYPE_S8:
		return (__s64)(signed char)*p;
	case ETW_TYPE_U16:
		memcpy(&u16, p, 2);
		return u16;
	case ETW_TYPE_S16:
		memcpy(&u16, p, 2);
		return (__s64)(__s16)u16;
	case ETW_TYPE_U32:
		memcpy(&u32, p, 4);
		return u32;
	case ETW_TYPE_S32:
		memcpy(&u32, p, 4);
		return (__s64)(__s32)u32;
	case ETW_TYPE_U64:
	case ETW_TYPE_S64:
	case ETW_TYPE_POINTER:
		memcpy(&u64, p, 8);
		return u64;
	case ETW_TYPE_F32:
		memcpy(&f32, p, 4);
		return f32 >= -9.2e18f && f32 <= 9.2e18f ? (__u64)(__s64)f32 : 0;
	case ETW_TYPE_F64:
		memcpy(&f64, p, 8);
		return f64 >= -9.2e18 && f64 <= 9.2e18 ? (__u64)(__s64)f64 : 0;
	}
	return 0;
}

static double double_at(const __u8 *p, unsigned int type)
{
	float f32;
	double f64;

	switch (type) {
	case ETW_TYPE_F32:
		memcpy(&f32, p, 4);
		return f32;
	case ETW_TYPE_F64:
		memcpy(&f64, p, 8);
		return f64;
	case ETW_TYPE_S8:
	case ETW_TYPE_S16:
	case ETW_TYPE_S32:
	case ETW_TYPE_S64:
		return (double)(__s64)number_at(p, type);
	}
	return (double)number_at(p, type);
}

__u64 etw_event_uint(const struct etw_event *event, int field)
{
	const struct etw_field *f = field_of(event, field);

	if (!f || f->array || f->type > ETW_TYPE_BOOL)
		return 0;
	return number_at(event->payload + event->offsets[field], f->type);
}

__s64 etw_event_int(const struct etw_event *event, int field)
{
	return (__s64)etw_event_uint(event, field);
}

double etw_event_double(const struct etw_event *event, int field)
{
	const struct etw_field *f = field_of(event, field);

	if (!f || f->array || f->type > ETW_TYPE_BOOL)
		return 0;
	return double_at(event->payload + event->offsets[field], f->type);
}

const void *etw_event_bytes(const struct etw_event *event, int field, size_t *len)
{
	const struct etw_field *f = field_of(event, field);
	const __u8 *p, *end;

	if (!f) {
		*len = 0;
		return NULL;
	}
	p = event->payload + event->offsets[field];
	end = event->payload + event->offsets[field + 1];
	if (f->type == ETW_TYPE_BINARY || f->array == ETW_ARRAY_COUNTED)
		p += sizeof(__u32);
	else if (f->type == ETW_TYPE_STRING)
		end--;
	*len = end - p;
	return p;
}

const char *etw_event_string(const struct etw_event *event, int field, size_t *len)
{
	const struct etw_field *f = field_of(event, field);
	const char *p;

	*len = 0;
	if (!f || (f->type != ETW_TYPE_CHARS && f->type != ETW_TYPE_STRING))
		return "";
	p = etw_event_bytes(event, field, len);
	*len = strnlen(p, *len);
	return p;
}

unsigned int etw_event_count(const struct etw_event *event, int field)
{
	const struct etw_field *f = field_of(event, field);
	size_t len;

	if (!f)
		return 0;
	if (!f->array)
		return 1;
	etw_event_bytes(event, field, &len);
	return len / f->element_size;
}

__u64 etw_event_element(const struct etw_event *event, int field, unsigned int i)
{
	const struct etw_field *f = field_of(event, field);
	const __u8 *p;
	size_t len;

	if (!f || f->type > ETW_TYPE_BOOL)
		return 0;
	p = etw_event_bytes(event, field, &len);
	return i < len / f->element_size ? number_at(p + (size_t)i * f->element_size, f->type) : 0;
}

/* Text that grows in a buffer of fixed size; counts on when it is full. */
struct text {
	char *buf;
	size_t size;
	size_t len;
};

static void put_char(struct text *t, char c)
{
	if (t->len + 1 < t->size)
		t->buf[t->len] = c;
	t->len++;
}

static void put_string(struct text *t, const char *s)
{
	while (*s)
		put_char(t, *s++);
}

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
	char tmp[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(tmp, sizeof(tmp), fmt, args);
	va_end(args);
	put_string(t, tmp);
}

/* Most fields are whole numbers: these two are many times as fast as put(). */
static void put_decimal(struct text *t, __u64 value)
{
	char digits[20];
	unsigned int n = 0;

	do
		digits[n++] = '0' + value % 10;
	while (value /= 10);
	while (n)
		put_char(t, digits[--n]);
}

static void put_hexadecimal(struct text *t, __u64 value)
{
	int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;

	put_string(t, "0x");
	for (; shift >= 0; shift -= 4)
		put_char(t, "0123456789abcdef"[value >> shift & 15]);
}

/* Length of the valid UTF-8 sequence of more than one byte at @p, 0 if there is none (overlong forms are none). */
static unsigned int utf8_length(const __u8 *p, size_t len)
{
	unsigned int n, i;
	__u32 c;

	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2, c = p[0] & 0x1f;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3, c = p[0] & 0x0f;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4, c = p[0] & 0x07;
	else
		return 0;
	if (len < n)
		return 0;
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	/* C1 control characters are as dangerous to a terminal as C0. */
	if (c < 0xa0 || (n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

static void put_utf8(struct text *t, const __u8 *p, size_t len)
{
	while (len) {
		unsigned int n = 1;

		if (*p >= ' ' && *p < 0x7f) {
			put_char(t, *p);
		} else {
			n = utf8_length(p, len);
			if (n) {
				unsigned int i;

				for (i = 0; i < n; i++)
					put_char(t, p[i]);
			} else {
				n = 1;
				put(t, "\\x%02x", *p);
			}
		}
		p += n;
		len -= n;
	}
}

static bool is_signed(unsigned int type)
{
	return type >= ETW_TYPE_S8 && type <= ETW_TYPE_S64;
}

/* 1: written as the map says; 0: the map has no word for it. */
static int put_mapped(struct text *t, const struct etw_field *f, __u64 value)
{
	unsigned int bits = f->element_size * 8, i;
	__u64 mask = bits < 64 ? (1ULL << bits) - 1 : ~0ULL, rest;
	bool first = true;

	value &= mask;
	for (i = 0; i < f->map->nr; i++) {
		if ((f->map->values[i].value & mask) == value) {
			put_string(t, f->map->values[i].name);
			return 1;
		}
	}
	if (f->map->kind != ETW_MAP_FLAGS || !value)
		return 0;
	rest = value;
	for (i = 0; i < f->map->nr; i++) {
		__u64 bit = f->map->values[i].value & mask;

		if (!bit || (value & bit) != bit || !(rest & bit))
			continue;
		if (!first)
			put_char(t, '|');
		put_string(t, f->map->values[i].name);
		first = false;
		rest &= ~bit;
	}
	if (rest)
		put(t, "%s0x%llx", first ? "" : "|", (unsigned long long)rest);
	return 1;
}

static void put_time(struct text *t, __s64 ns)
{
	__s64 seconds = ns / 1000000000, rest = ns % 1000000000;
	time_t when;
	struct tm tm;
	char day[32];

	if (rest < 0) {
		rest += 1000000000;
		seconds--;
	}
	when = seconds;
	gmtime_r(&when, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	put(t, "%s.%09lldZ", day, (long long)rest);
}

static void put_number(struct text *t, const struct etw_field *f, const __u8 *p)
{
	__u64 value = number_at(p, f->type);
	unsigned int bits = f->element_size * 8;
	__u64 unsigned_value = bits < 64 ? value & ((1ULL << bits) - 1) : value;
	__s64 error;

	if (f->map && put_mapped(t, f, value))
		return;
	if (f->type == ETW_TYPE_BOOL) {
		put_string(t, value ? "true" : "false");
		return;
	}
	if (f->type == ETW_TYPE_F32 || f->type == ETW_TYPE_F64) {
		put(t, f->type == ETW_TYPE_F32 ? "%.9g" : "%.17g", double_at(p, f->type));
		return;
	}
	switch (f->format) {
	case ETW_FORMAT_HEX:
		put_hexadecimal(t, unsigned_value);
		return;
	case ETW_FORMAT_OCTAL:
		put(t, "0%llo", (unsigned long long)unsigned_value);
		return;
	case ETW_FORMAT_TIME:
		put_time(t, (__s64)value);
		return;
	case ETW_FORMAT_DEV:
		put_decimal(t, unsigned_value >> 20);
		put_char(t, ':');
		put_decimal(t, unsigned_value & 0xfffff);
		return;
	case ETW_FORMAT_ERRNO:
		error = is_signed(f->type) ? (__s64)value : (__s64)unsigned_value;
		if (error && error > -4096 && error < 4096 && strerrorname_np(error < 0 ? -error : error)) {
			put(t, "%s%s", error < 0 ? "-" : "", strerrorname_np(error < 0 ? -error : error));
			return;
		}
		break;
	}
	if (f->type == ETW_TYPE_POINTER) {
		put_hexadecimal(t, value);
	} else if (is_signed(f->type) && (__s64)value < 0) {
		put_char(t, '-');
		put_decimal(t, -value);
	} else {
		put_decimal(t, value);
	}
}

static void put_hex(struct text *t, const __u8 *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		put(t, "%02x", p[i]);
}

size_t etw_event_format(const struct etw_event *event, int field, char *buf, size_t size)
{
	const struct etw_field *f = field_of(event, field);
	struct text t = { .buf = buf, .size = size };
	char address[INET6_ADDRSTRLEN], guid[ETW_GUID_TEXT_SIZE];
	const __u8 *p;
	size_t len, i;

	p = etw_event_bytes(event, field, &len);
	switch (f ? f->type : 0) {
	case 0:
		break;
	case ETW_TYPE_CHARS:
	case ETW_TYPE_STRING:
		put_utf8(&t, p, strnlen((const char *)p, len));
		break;
	case ETW_TYPE_BINARY:
		put_hex(&t, p, len);
		break;
	case ETW_TYPE_GUID:
		etw_guid_format(p, guid);
		put_string(&t, guid);
		break;
	case ETW_TYPE_IPV4:
	case ETW_TYPE_IPV6:
		if (inet_ntop(f->type == ETW_TYPE_IPV4 ? AF_INET : AF_INET6, p, address, sizeof(address)))
			put_string(&t, address);
		break;
	case ETW_TYPE_MAC:
		put(&t, "%02x:%02x:%02x:%02x:%02x:%02x", p[0], p[1], p[2], p[3], p[4], p[5]);
		break;
	default:
		if (!f->array) {
			put_number(&t, f, p);
			break;
		}
		put_char(&t, '[');
		for (i = 0; i < len / f->element_size; i++) {
			if (i)
				put_string(&t, ", ");
			put_number(&t, f, p + i * f->element_size);
		}
		put_char(&t, ']');
	}
	if (size)
		buf[t.len < size ? t.len : size - 1] = 0;
	return t.len;
}
