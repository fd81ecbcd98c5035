// SPDX-License-Identifier: GPL-2.0-only
/*
 * The decoder of schemas: entries as the kernel gives them, and a payload behind the last. What it takes must be whole:
 * all of it is looked at, printed as metadata, and the payload read by it.
 */
#include "input.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "metadata.h"

static void look_at(const struct etw_class *cls, const uint8_t *payload, size_t size)
{
	uint32_t *offsets = malloc((cls->nr_fields + 1) * sizeof(*offsets));
	struct etw_event event = { .cls = cls, .payload = payload, .size = size };
	unsigned int bad = 0, i, k;
	size_t text_len;
	char *text = NULL;
	FILE *out;
	long used;

	FUZZ_CHECK(etw_name_valid(cls->provider) && etw_name_valid(cls->name) && *cls->ctf_name);
	for (i = 0; i < cls->nr_fields; i++) {
		const struct etw_field *f = &cls->fields[i];

		FUZZ_CHECK(etw_class_field(cls, f->name) >= 0 && etw_class_field(cls, f->ctf_name) >= 0);
		FUZZ_CHECK(etw_type_name(f->type) && etw_format_name(f->format));
		for (k = 0; f->map && k < f->map->nr; k++)
			input_sink += strlen(f->map->values[k].name);
		for (k = 0; k < i; k++)
			FUZZ_CHECK(strcmp(f->ctf_name, cls->fields[k].ctf_name));
	}
	input_sink += strlen(cls->description) + etw_class_match(cls, "sched_*") + etw_class_match(cls, "Linux-Kernel-Sched:");

	out = open_memstream(&text, &text_len);
	etw_metadata_event(out, cls, cls->class_id);
	fclose(out);
	free(text);

	/* as the reader does: walked if its size varies, else it must be there */
	if (cls->payload_size == ETW_SIZE_VARIES) {
		used = etw_class_walk(cls, payload, size, offsets, &bad);
		FUZZ_CHECK(used <= (long)size && (used >= 0 || bad < cls->nr_fields));
		event.offsets = offsets;
		event.size = used;
	} else {
		used = cls->payload_size <= size ? (long)cls->payload_size : -1;
		event.offsets = class_info(cls)->offsets;
		event.size = cls->payload_size;
	}
	if (used >= 0)
		input_event(&event);
	free(offsets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct etw_class *cls;
	struct etw_classes *table;
	const uint8_t *p = data;
	size_t left = size, used;

	while (left && !etw_class_parse(p, left, &used, &cls)) {
		FUZZ_CHECK(used && used <= left);
		p += used;
		left -= used;
		/* in memory of its own size, so that reading behind it is seen */
		look_at(cls, p, left);
		etw_class_free(cls);
	}
	if (etw_classes_new(&table))
		abort();
	if (etw_classes_add(table, data, size) < 0)
		FUZZ_CHECK(*etw_last_error());
	etw_classes_find(table, NULL, "sched_switch");
	etw_classes_free(table);
	return 0;
}
