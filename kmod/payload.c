// SPDX-License-Identifier: GPL-2.0-only
/* Walks a payload field by field. Pure, as payload.h says. */
#include <linux/errno.h>
#include <linux/string.h>

#include "payload.h"
#include "schema.h"

struct walk {
	const u8 *at;
	u32 left;
};

static bool skip(struct walk *w, u64 bytes)
{
	if (bytes > w->left)
		return false;
	w->at += bytes;
	w->left -= bytes;
	return true;
}

static bool take_count(struct walk *w, u32 *count)
{
	const u8 *at = w->at;

	if (!skip(w, sizeof(*count)))
		return false;
	memcpy(count, at, sizeof(*count));	/* not aligned; little-endian, as all that load the module are */
	return true;
}

static bool skip_string(struct walk *w)
{
	const u8 *end = memchr(w->at, '\0', w->left);

	return end && skip(w, end - w->at + 1);
}

static bool skip_field(struct walk *w, const struct etw_field *field)
{
	const u32 size = etw_type_size(field->type);
	u32 count = field->count;
	const u8 *value;

	if (field->type == ETW_TYPE_STRING)
		return skip_string(w);
	if (field->type == ETW_TYPE_BINARY)
		return take_count(w, &count) && skip(w, count);
	if (!size)
		return false;
	if (field->array == ETW_ARRAY_COUNTED) {
		if (!take_count(w, &count))
			return false;
	} else if (field->array != ETW_ARRAY_FIXED && field->type != ETW_TYPE_CHARS) {
		count = 1;
	}
	value = w->at;
	if (!skip(w, (u64)count * size))
		return false;
	for (; field->type == ETW_TYPE_BOOL && value < w->at; value++)
		if (*value > 1)
			return false;
	return true;
}

int etw_payload_check(const struct etw_field *fields, u32 nr_fields, const void *payload, u32 len, u32 *field)
{
	struct walk w = { payload, len };
	u32 i;

	for (i = 0; i < nr_fields; i++)
		if (!skip_field(&w, &fields[i]))
			break;
	if (i == nr_fields && !w.left)
		return 0;
	if (field)
		*field = i;
	return -EINVAL;
}
