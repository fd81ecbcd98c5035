// SPDX-License-Identifier: GPL-2.0-only
/* Compiles conditions for a class, and asks them of payloads. Pure, as predicate.h says. */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "filter.h"
#include "predicate.h"
#include "schema.h"

/* How a field's bytes are compared. */
enum { UNSUITED, UNSIGNED, SIGNED, FLOAT, DOUBLE, TEXT, BYTES };

/* ---- for an enable ---- */

#define OP(name)	(1U << ETW_OP_##name)

static const u32 suitable_ops[] = {
	[ETW_VALUE_NUMBER] = OP(EQ) | OP(NE) | OP(LT) | OP(LE) | OP(GT) | OP(GE) | OP(BITS),
	[ETW_VALUE_TEXT] = OP(EQ) | OP(NE) | OP(PREFIX) | OP(CONTAINS),
	[ETW_VALUE_BYTES] = OP(EQ) | OP(NE),
};

/* Bytes of @text up to the last that is not zero. */
static u32 used(const u8 *text)
{
	u32 len = ETW_NAME_SIZE;

	while (len && !text[len - 1])
		len--;
	return len;
}

/* Doubles are in the order of their values; there is no floating point here. False: not a number. */
static notrace bool order_of_double(u64 bits, u64 *order)
{
	const u64 sign = 1ULL << 63;

	if ((bits & ~sign) > 0x7ffULL << 52)
		return false;
	if (bits == sign)	/* -0 */
		bits = 0;
	*order = bits & sign ? ~bits : bits | sign;
	return true;
}

/* For each beginning of the text: its longest end that is a beginning too. So a search never goes back in the field. */
static void find_backs(struct etw_condition *c)
{
	const u8 *text = c->p.text;
	u32 i, n = 0;

	for (i = 1; i < c->len; i++) {
		while (n && text[n] != text[i])
			n = c->back[n - 1];
		n += text[n] == text[i];
		c->back[i] = n;
	}
}

int etw_condition_init(struct etw_condition *c)
{
	const struct etw_predicate *p = &c->p;

	if (!etw_name_valid((const char *)p->field, sizeof(p->field)) || !p->op || p->op >= ETW_NR_OPS ||
	    p->kind > ETW_VALUE_BYTES || !(suitable_ops[p->kind] & 1U << p->op))
		return -EINVAL;
	c->len = used(p->text);
	if (p->kind == ETW_VALUE_NUMBER ? c->len : p->value || c->len == ETW_NAME_SIZE)
		return -EINVAL;
	if (p->kind == ETW_VALUE_TEXT && memchr(p->text, '\0', c->len))
		return -EINVAL;
	memset(c->back, 0, sizeof(c->back));
	find_backs(c);
	c->ordered = order_of_double(p->value, &c->order);
	return 0;
}

/* ---- for a class ---- */

static u8 how_to_compare(const struct etw_field *field, const struct etw_predicate *p)
{
	static const u8 suits[ETW_NR_TYPES] = {
		[ETW_TYPE_U8] = UNSIGNED, [ETW_TYPE_U16] = UNSIGNED, [ETW_TYPE_U32] = UNSIGNED, [ETW_TYPE_U64] = UNSIGNED,
		[ETW_TYPE_S8] = SIGNED, [ETW_TYPE_S16] = SIGNED, [ETW_TYPE_S32] = SIGNED, [ETW_TYPE_S64] = SIGNED,
		[ETW_TYPE_POINTER] = UNSIGNED, [ETW_TYPE_BOOL] = UNSIGNED, [ETW_TYPE_F32] = FLOAT, [ETW_TYPE_F64] = DOUBLE,
		[ETW_TYPE_CHARS] = TEXT, [ETW_TYPE_STRING] = TEXT,
		[ETW_TYPE_GUID] = BYTES, [ETW_TYPE_IPV4] = BYTES, [ETW_TYPE_IPV6] = BYTES, [ETW_TYPE_MAC] = BYTES,
	};
	const u8 how = field->type < ETW_NR_TYPES && field->array == ETW_ARRAY_NONE ? suits[field->type] : UNSUITED;

	switch (p->kind) {
	case ETW_VALUE_TEXT:
		return how == TEXT ? how : UNSUITED;
	case ETW_VALUE_BYTES:
		return how == BYTES ? how : UNSUITED;
	}
	if (how == TEXT || how == BYTES || (p->op == ETW_OP_BITS && how != UNSIGNED && how != SIGNED))
		return UNSUITED;
	return how;
}

/* The field that @p is about if it suits: its number, and in @how how to compare it. Else nr_fields. */
static u32 suitable_field(const struct etw_class *class, const struct etw_predicate *p, u8 *how)
{
	u32 i;

	for (i = 0; i < class->nr_fields; i++) {
		if (strcmp(class->fields[i].name, (const char *)p->field))
			continue;
		*how = how_to_compare(&class->fields[i], p);
		return *how == UNSUITED ? class->nr_fields : i;
	}
	return i;
}

bool etw_conditions_possible(const struct etw_conditions *conditions, const struct etw_class *class)
{
	u32 i;
	u8 how;

	for (i = 0; i < conditions->nr; i++)
		if ((suitable_field(class, &conditions->c[i].p, &how) < class->nr_fields) == conditions->any)
			return conditions->any;
	return !conditions->any;
}

static bool varies(const struct etw_field *field)
{
	return field->array == ETW_ARRAY_COUNTED || !etw_type_size(field->type);
}

static u64 fixed_size(const struct etw_field *field)
{
	const bool many = field->array == ETW_ARRAY_FIXED || field->type == ETW_TYPE_CHARS;

	return (u64)etw_type_size(field->type) * (many ? field->count : 1);
}

/* Sets m->first and m->first_offset, and returns where field @to is if nothing before it varies. */
static u32 find_first(struct etw_matcher *m, const struct etw_class *class, u32 to)
{
	u64 offset = 0;
	u32 i;

	for (i = 0; i < to && !varies(&class->fields[i]); i++)
		offset = min_t(u64, offset + fixed_size(&class->fields[i]), ETW_OFFSET_VARIES - 1);
	m->first = i;
	m->first_offset = offset;
	return i == to ? offset : ETW_OFFSET_VARIES;
}

void etw_matcher_init(struct etw_matcher *m, const struct etw_conditions *conditions, const struct etw_class *class, bool scrub)
{
	u32 i, at;

	m->fields = class->fields;
	m->scrub = scrub;
	m->nr = 0;
	m->any = conditions && conditions->any;
	for (i = 0; conditions && i < conditions->nr; i++) {
		const struct etw_condition *c = &conditions->c[i];
		u8 how;
		u32 field = suitable_field(class, &c->p, &how);

		if (field == class->nr_fields)	/* never holds: of several of which one is enough it need not be asked */
			continue;
		for (at = m->nr++; at && m->match[at - 1].field > field; at--)
			m->match[at] = m->match[at - 1];
		m->match[at] = (struct etw_match){ c, find_first(m, class, field), field, how };
	}
	find_first(m, class, class->nr_fields);
}

/* ---- for an event ---- */

struct cursor {
	const struct etw_vec *vec;
	u32 nr;				/* parts left, with the one it is in */
	u32 at;				/* in that part */
};

static notrace bool skip(struct cursor *c, u64 bytes)
{
	for (; c->nr; c->vec++, c->nr--, c->at = 0) {
		const u32 left = c->vec->len - c->at;

		if (bytes < left) {
			c->at += bytes;
			return true;
		}
		bytes -= left;
	}
	return !bytes;
}

static notrace bool take(struct cursor *c, void *to, u32 bytes)
{
	for (; c->nr && bytes; c->vec++, c->nr--, c->at = 0) {
		const u32 n = min(bytes, c->vec->len - c->at);

		memcpy(to, (const u8 *)c->vec->data + c->at, n);
		to = (u8 *)to + n;
		bytes -= n;
		c->at += n;
		if (c->at < c->vec->len)
			break;
	}
	return !bytes;
}

static notrace bool skip_string(struct cursor *c)
{
	for (; c->nr; c->vec++, c->nr--, c->at = 0) {
		const u8 *from = (const u8 *)c->vec->data + c->at;
		const u8 *end = memchr(from, '\0', c->vec->len - c->at);

		if (end)
			return skip(c, end - from + 1);
	}
	return false;
}

static notrace bool skip_field(struct cursor *c, const struct etw_field *field)
{
	u32 count = 0;

	if (field->type == ETW_TYPE_STRING)
		return skip_string(c);
	if (!varies(field))
		return skip(c, fixed_size(field));
	/* little-endian, as all that load the module are */
	return take(c, &count, sizeof(count)) && skip(c, (u64)count * (etw_type_size(field->type) ?: 1));
}

/* As a double, with the same value. */
static notrace u64 widen(u32 f)
{
	const u64 sign = (u64)(f >> 31) << 63;
	u32 mantissa = f & 0x7fffff;
	s32 exponent = f >> 23 & 0xff;

	if (exponent == 0xff)
		return sign | 0x7ffULL << 52 | (u64)mantissa << 29;
	if (!exponent) {
		const u32 shift = mantissa ? __builtin_clz(mantissa) - 8 : 0;

		if (!mantissa)
			return sign;
		mantissa = mantissa << shift & 0x7fffff;
		exponent = 1 - (s32)shift;
	}
	return sign | (u64)(exponent - 127 + 1023) << 52 | (u64)mantissa << 29;
}

static notrace bool holds_of(u32 op, bool less, bool equal)
{
	switch (op) {
	case ETW_OP_EQ:
		return equal;
	case ETW_OP_NE:
		return !equal;
	case ETW_OP_LT:
		return less;
	case ETW_OP_LE:
		return less || equal;
	case ETW_OP_GT:
		return !less && !equal;
	default:
		return !less;
	}
}

static notrace bool number_holds(const struct etw_match *match, const struct etw_field *field, bool scrub, struct cursor *c)
{
	const struct etw_condition *condition = match->condition;
	const u32 op = condition->p.op, size = etw_type_size(field->type);
	u64 number = 0, value = condition->p.value;

	if (!take(c, &number, size))
		return false;
	if (field->type == ETW_TYPE_POINTER && scrub && (s64)number < 0)
		number = 0;
	if (op == ETW_OP_BITS)
		return number & value;
	switch (match->how) {
	case UNSIGNED:
		return holds_of(op, number < value, number == value);
	case SIGNED:
		number = (u64)((s64)(number << (64 - 8 * size)) >> (64 - 8 * size));
		return holds_of(op, (s64)number < (s64)value, number == value);
	case FLOAT:
		number = widen(number);
		break;
	}
	if (!condition->ordered || !order_of_double(number, &number))
		return op == ETW_OP_NE;
	return holds_of(op, number < condition->order, number == condition->order);
}

static notrace bool bytes_hold(const struct etw_condition *condition, const struct etw_field *field, struct cursor *c)
{
	const u32 size = etw_type_size(field->type);
	u8 bytes[16];

	if (!take(c, bytes, size))
		return false;
	return (condition->len <= size && !memcmp(bytes, condition->p.text, size)) == (condition->p.op == ETW_OP_EQ);
}

/* The next byte of a text of at most *@left bytes, 0 at its end, or -1 where the payload ends first. */
static notrace int next_byte(struct cursor *c, u32 *left)
{
	if (!*left)
		return 0;
	while (c->nr && c->at == c->vec->len) {
		c->vec++;
		c->nr--;
		c->at = 0;
	}
	if (!c->nr)
		return -1;
	--*left;
	return ((const u8 *)c->vec->data)[c->at++];
}

static notrace bool text_holds(const struct etw_condition *condition, const struct etw_field *field, struct cursor *c)
{
	const u8 *text = condition->p.text;
	const u32 op = condition->p.op, len = condition->len;
	u32 left = field->type == ETW_TYPE_CHARS ? field->count : ~0U, n = 0;
	int byte = 0;

	if (op == ETW_OP_CONTAINS) {
		while (n < len && (byte = next_byte(c, &left)) > 0) {
			while (n && text[n] != byte)
				n = condition->back[n - 1];
			n += text[n] == byte;
		}
		return n == len;
	}
	while (n < len && (byte = next_byte(c, &left)) == text[n])
		n++;
	if (op == ETW_OP_PREFIX || n < len)
		return op == ETW_OP_PREFIX ? n == len : op == ETW_OP_NE && byte >= 0;
	byte = next_byte(c, &left);
	return byte >= 0 && !byte == (op == ETW_OP_EQ);
}

static notrace bool holds(const struct etw_match *match, const struct etw_field *field, bool scrub, struct cursor *c)
{
	switch (match->how) {
	case TEXT:
		return text_holds(match->condition, field, c);
	case BYTES:
		return bytes_hold(match->condition, field, c);
	default:
		return number_holds(match, field, scrub, c);
	}
}

notrace bool etw_matcher_passes(const struct etw_matcher *m, const struct etw_vec *vec, u32 nr)
{
	struct cursor walk = { vec, nr, 0 };
	u32 i, at = m->first;
	bool whole = skip(&walk, m->first_offset);

	for (i = 0; i < m->nr; i++) {
		const struct etw_match *match = &m->match[i];
		struct cursor c = { vec, nr, 0 };
		bool there;

		if (match->offset != ETW_OFFSET_VARIES) {
			there = skip(&c, match->offset);
		} else {
			for (; whole && at < match->field; at++)
				whole = skip_field(&walk, &m->fields[at]);
			there = whole;
			c = walk;
		}
		if ((there && holds(match, &m->fields[match->field], m->scrub, &c)) == m->any)
			return m->any;
	}
	return !m->any;
}
