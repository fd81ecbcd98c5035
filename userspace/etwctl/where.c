// SPDX-License-Identifier: GPL-2.0-only
/* Conditions on fields (where.h). It must not know sessions nor how providers are chosen. */
#include "where.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define GRAMMAR "write '[PROVIDER/]FIELD OP VALUE', where OP is one of == != < <= > >= & ^= *="

/* The longer ones first. */
static const struct {
	const char *text;
	__u32 op;
} ops[] = {
	{ "==", ETW_OP_EQ }, { "!=", ETW_OP_NE }, { "<=", ETW_OP_LE }, { ">=", ETW_OP_GE },
	{ "^=", ETW_OP_PREFIX }, { "*=", ETW_OP_CONTAINS },
	{ "=", ETW_OP_EQ }, { "<", ETW_OP_LT }, { ">", ETW_OP_GT }, { "&", ETW_OP_BITS },
};

static const char *op_text(__u32 op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].op == op)
			return ops[i].text;
	return "?";
}

static char *trimmed(const char *from, size_t len)
{
	while (len && isspace((unsigned char)*from)) {
		from++;
		len--;
	}
	while (len && isspace((unsigned char)from[len - 1]))
		len--;
	return xasprintf("%.*s", (int)len, from);
}

int where_parse(const char *text, struct where *w)
{
	size_t len = strcspn(text, "=!<>&^*"), n;
	char *slash;

	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) && !w->op; i++)
		if (!strncmp(text + len, ops[i].text, strlen(ops[i].text)))
			w->op = ops[i].op;
	if (!w->op)
		return usage("--where '%s' has no operator; " GRAMMAR, text);
	w->text = xstrdup(text);
	w->field = trimmed(text, len);
	text += len + strlen(op_text(w->op));
	if (w->op == ETW_OP_EQ && w->text[len + 1] != '=')
		text--;
	w->value = trimmed(text, strlen(text));
	slash = strchr(w->field, '/');
	if (slash) {
		*slash = 0;
		w->provider = w->field;
		w->field = xstrdup(slash + 1);
	}
	if (!etw_name_valid(w->field) || (w->provider && !*w->provider)) {
		usage("--where '%s': '%s' cannot be the name of a field; " GRAMMAR, w->text, w->field);
		where_free(w);
		return STATUS_USAGE;
	}
	n = strlen(w->value);
	if (n >= 2 && (*w->value == '"' || *w->value == '\'') && w->value[n - 1] == *w->value) {
		w->quoted = true;
		memmove(w->value, w->value + 1, n - 2);
		w->value[n - 2] = 0;
	} else if (!n) {
		usage("--where '%s' has no value; " GRAMMAR ", or '%s %s \"\"' for no text", w->text, w->field,
		      op_text(w->op));
		where_free(w);
		return STATUS_USAGE;
	}
	return 0;
}

void where_free(struct where *w)
{
	free(w->text);
	free(w->provider);
	free(w->field);
	free(w->value);
	memset(w, 0, sizeof(*w));
}

/* ---- values; each function gives NULL, or what is wrong, to be freed ---- */

static bool is_signed(unsigned int type)
{
	return type >= ETW_TYPE_S8 && type <= ETW_TYPE_S64;
}

static unsigned int bits_of(unsigned int type)
{
	switch (type) {
	case ETW_TYPE_BOOL:
		return 1;
	case ETW_TYPE_POINTER:
		return 64;
	}
	return 8U << (type - (is_signed(type) ? ETW_TYPE_S8 : ETW_TYPE_U8));
}

/* A whole number of any sign, as 64 bits; *@negative: it has one. */
static bool parse_number(const char *text, __u64 *value, bool *negative)
{
	char *end;

	*negative = *text == '-';
	if (!isdigit((unsigned char)text[*negative || *text == '+']))
		return false;
	errno = 0;
	*value = *negative ? (__u64)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	return !*end && !errno;
}

static char *range_of(unsigned int type)
{
	unsigned int bits = bits_of(type);

	if (is_signed(type))
		return xasprintf("%lld to %lld", (long long)(~0ULL << (bits - 1)), (long long)~(~0ULL << (bits - 1)));
	return xasprintf("0 to %llu", ~0ULL >> (64 - bits));
}

/* Names of the field's map: one, or of flags several joined by '|'. */
static bool parse_mapped(const struct etw_map *map, const char *text, __u64 *value)
{
	char *copy = xstrdup(text), *rest = copy, *word;
	bool all = true;

	*value = 0;
	while (all && (word = text_part(&rest, '|'))) {
		char *name = trimmed(word, strlen(word));

		all = false;
		for (unsigned int i = 0; i < map->nr && !all; i++)
			if (!strcasecmp(map->values[i].name, name)) {
				*value |= map->values[i].value;
				all = true;
			}
		all &= map->kind == ETW_MAP_FLAGS || !rest;
		free(name);
	}
	free(copy);
	return all;
}

static char *names_of(const struct etw_map *map)
{
	char *text = xstrdup(""), *more;

	for (unsigned int i = 0; i < map->nr; i++) {
		more = xasprintf("%s%s%s", text, *text ? ", " : "", map->values[i].name);
		free(text);
		text = more;
	}
	return text;
}

static bool parse_device(const char *text, __u64 *value)
{
	unsigned int major_nr, minor_nr;
	char *path, end;
	struct stat st;
	bool ok;

	if (sscanf(text, "%u:%u%c", &major_nr, &minor_nr, &end) == 2) {
		*value = (__u64)major_nr << 20 | minor_nr;
		return true;
	}
	path = *text == '/' ? xstrdup(text) : xasprintf("/dev/%s", text);
	ok = !stat(path, &st) && S_ISBLK(st.st_mode);
	if (ok)
		*value = (__u64)major(st.st_rdev) << 20 | minor(st.st_rdev);
	free(path);
	return ok;
}

/* "ENOENT", "-ENOENT". */
static bool parse_errno(const char *text, bool is_negative, __u64 *value)
{
	text += *text == '-';
	for (int i = 1; i < 4096; i++) {
		const char *name = strerrorname_np(i);

		if (name && !strcasecmp(name, text)) {
			*value = is_negative ? (__u64)-(__s64)i : (__u64)i;
			return true;
		}
	}
	return false;
}

static char *settle_integer(const struct where *w, const struct etw_field *f, struct etw_predicate *p)
{
	const char *what = etw_type_name(f->type);
	char *text, *range;
	bool negative;
	unsigned int bits = bits_of(f->type);

	if (f->map && parse_mapped(f->map, w->value, &p->value))
		return NULL;
	if (f->type == ETW_TYPE_BOOL && (!strcasecmp(w->value, "true") || !strcasecmp(w->value, "false"))) {
		p->value = !strcasecmp(w->value, "true");
		return NULL;
	}
	if (f->format == ETW_FORMAT_DEV && parse_device(w->value, &p->value))
		return NULL;
	if (f->format == ETW_FORMAT_ERRNO && parse_errno(w->value, is_signed(f->type), &p->value))
		return NULL;
	if (parse_number(w->value, &p->value, &negative)) {
		bool fits = is_signed(f->type) ?
				    (negative ? (__s64)p->value >= (__s64)(~0ULL << (bits - 1)) :
						p->value <= ~(~0ULL << (bits - 1))) :
				    (!negative && p->value <= ~0ULL >> (64 - bits));

		/* All bits of a field can be asked for, also the sign's. */
		if (fits || (w->op == ETW_OP_BITS && !negative && p->value <= ~0ULL >> (64 - bits)))
			return NULL;
		range = range_of(f->type);
		text = xasprintf("'%s' does not fit into %s, a %s: %s", w->value, f->name, what, range);
		free(range);
		return text;
	}
	if (f->map) {
		range = names_of(f->map);
		text = xasprintf("'%s' is no value of %s; write a number or %s: %s", w->value, f->name,
				 f->map->kind == ETW_MAP_FLAGS ? "names joined by |" : "a name", range);
		free(range);
		return text;
	}
	return xasprintf("'%s' is no value of %s, a %s: write a number%s", w->value, f->name, what,
			 f->type == ETW_TYPE_BOOL ? ", true or false" :
			 f->format == ETW_FORMAT_DEV ? ", a block device or MAJOR:MINOR" :
			 f->format == ETW_FORMAT_ERRNO ? " or a name such as EIO" : "");
}

static char *settle_float(const struct where *w, const struct etw_field *f, struct etw_predicate *p)
{
	char *end;
	double d = strtod(w->value, &end);

	if (end == w->value || *end)
		return xasprintf("'%s' is no value of %s, a %s: write a number", w->value, f->name,
				 etw_type_name(f->type));
	memcpy(&p->value, &d, sizeof(d));
	return NULL;
}

static char *settle_text(const struct where *w, const char *field, struct etw_predicate *p)
{
	p->kind = ETW_VALUE_TEXT;
	if (strlen(w->value) >= sizeof(p->text))
		return xasprintf("the text for %s is longer than %zu bytes", field, sizeof(p->text) - 1);
	memcpy(p->text, w->value, strlen(w->value));
	return NULL;
}

static char *settle_bytes(const struct where *w, const struct etw_field *f, struct etw_predicate *p)
{
	static const char *const how[ETW_NR_TYPES] = {
		[ETW_TYPE_GUID] = "a GUID, 8-4-4-4-12 hexadecimal digits",
		[ETW_TYPE_IPV4] = "an IPv4 address, as 10.0.0.1",
		[ETW_TYPE_IPV6] = "an IPv6 address, as fe80::1",
		[ETW_TYPE_MAC] = "a MAC address, as 00:11:22:33:44:55",
	};
	__u8 *b = p->text;
	bool ok = false;
	char end;

	p->kind = ETW_VALUE_BYTES;
	switch (f->type) {
	case ETW_TYPE_GUID:
		ok = !etw_guid_parse(w->value, b);
		break;
	case ETW_TYPE_IPV4:
		ok = inet_pton(AF_INET, w->value, b) == 1;
		break;
	case ETW_TYPE_IPV6:
		ok = inet_pton(AF_INET6, w->value, b) == 1;
		break;
	case ETW_TYPE_MAC:
		ok = sscanf(w->value, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", b, b + 1, b + 2, b + 3, b + 4, b + 5,
			    &end) == 6;
		break;
	}
	return ok ? NULL : xasprintf("'%s' is no value of %s: write %s", w->value, f->name, how[f->type]);
}

/* For a field of unknown type: what the value looks like. */
static char *settle_by_look(const struct where *w, struct etw_predicate *p)
{
	bool negative;

	if (!w->quoted && parse_number(w->value, &p->value, &negative))
		return w->op >= ETW_OP_PREFIX ? settle_text(w, w->field, p) : NULL;
	p->value = 0;
	if (!w->quoted && !etw_guid_parse(w->value, p->text)) {
		p->kind = ETW_VALUE_BYTES;
		return w->op > ETW_OP_NE ? xasprintf("%s is not for a GUID: == and != are", op_text(w->op)) : NULL;
	}
	if (w->op >= ETW_OP_LT && w->op <= ETW_OP_BITS)
		return xasprintf("%s needs a number behind it, and '%s' is none", op_text(w->op), w->value);
	return settle_text(w, w->field, p);
}

static char *settle_field(const struct where *w, const struct etw_field *f, struct etw_predicate *p)
{
	const bool number = f->type <= ETW_TYPE_BOOL, real = f->type == ETW_TYPE_F32 || f->type == ETW_TYPE_F64;
	const bool is_text = f->type == ETW_TYPE_CHARS || f->type == ETW_TYPE_STRING;

	memset(p, 0, sizeof(*p));
	memcpy(p->field, f->name, strlen(f->name));
	p->op = w->op;
	if (f->array != ETW_ARRAY_NONE || f->type == ETW_TYPE_BINARY)
		return xasprintf("%s is %s, which has no single value to compare", f->name,
				 f->array != ETW_ARRAY_NONE ? "an array" : "binary");
	if (number ? w->op > ETW_OP_BITS || (real && w->op == ETW_OP_BITS) :
	    is_text ? w->op >= ETW_OP_LT && w->op <= ETW_OP_BITS :
		      w->op > ETW_OP_NE)
		return xasprintf("%s is not for %s, a %s: %s are", op_text(w->op), f->name, etw_type_name(f->type),
				 real ? "== != < <= > >=" : number ? "== != < <= > >= &" :
				 is_text ? "== != ^= *=" : "== and !=");
	if (is_text)
		return settle_text(w, f->name, p);
	if (w->quoted && number)
		return xasprintf("'%s' in quotes is text, and %s is a %s", w->value, f->name, etw_type_name(f->type));
	return real ? settle_float(w, f, p) : number ? settle_integer(w, f, p) : settle_bytes(w, f, p);
}

int where_settle(struct where *w, const char *provider, struct etw_class *const *classes, unsigned int nr, bool *found,
		 struct etw_predicate *p)
{
	const char *of = NULL;
	char *why = NULL;
	int status;

	*found = false;
	if (!nr) {
		*found = true;
		memset(p, 0, sizeof(*p));
		memcpy(p->field, w->field, strlen(w->field));
		p->op = w->op;
		why = settle_by_look(w, p);
	}
	for (unsigned int i = 0; i < nr; i++) {
		int n = etw_class_field(classes[i], w->field);
		struct etw_predicate one;
		char *fault;

		if (n < 0)
			continue;
		*found = true;
		fault = settle_field(w, &classes[i]->fields[n], &one);
		if (!fault && of && memcmp(&one, p, sizeof(one)))
			return fail(STATUS_FAILED,
				    "--where '%s': %s is not of the same kind in %s and %s of %s; name the events with --event",
				    w->text, w->field, of, classes[i]->name, provider);
		if (!fault) {
			*p = one;
			of = classes[i]->name;
		} else if (!why) {
			why = xasprintf("%s (event %s of %s)", fault, classes[i]->name, provider);
		}
		free(fault);
	}
	w->used |= *found;
	/* What suits one event is a condition that the others, which it does not suit, cannot meet. */
	status = why && !of ? fail(STATUS_FAILED, "--where '%s': %s", w->text, why) : 0;
	free(why);
	return status;
}

char *where_fields(struct etw_class *const *classes, unsigned int nr)
{
	char *text = xstrdup("");

	for (unsigned int i = 0; i < nr; i++)
		for (unsigned int n = 0; n < classes[i]->nr_fields; n++) {
			const char *name = classes[i]->fields[n].name;
			bool there = false;
			char *more;

			for (unsigned int k = 0; k < i && !there; k++)
				there = etw_class_field(classes[k], name) >= 0;
			if (there)
				continue;
			more = xasprintf("%s%s%s", text, *text ? ", " : "", name);
			free(text);
			text = more;
		}
	return text;
}
