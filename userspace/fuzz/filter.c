// SPDX-License-Identifier: GPL-2.0-only
/* The module's filters, compiled for this machine, against the plainest way to say the same. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/filter.h"
#include "check.h"

static bool name_is_valid(const char *name, size_t size)
{
	size_t len = strnlen(name, size), i;

	if (!len || len == size || !isalpha((unsigned char)name[0]))
		return false;
	for (i = 0; i < size; i++)
		if (i < len ? !isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]) : name[i])
			return false;
	return true;
}

static bool passes(uint8_t level, uint64_t any, uint64_t all, bool ignore, uint8_t event_level, uint64_t keyword)
{
	if (level && event_level > level)
		return false;
	if (!keyword)
		return !ignore;
	return !any || ((keyword & any) && (keyword & all) == all);
}

static void check_rule(const uint8_t *data)
{
	struct etw_rule rule;
	uint64_t any, all, keyword;

	memcpy(&any, data + 3, 8);
	memcpy(&all, data + 11, 8);
	memcpy(&keyword, data + 19, 8);
	etw_rule_init(&rule, data[0], any, all, data[1] & 1);
	FUZZ_CHECK(etw_rule_passes(&rule, data[2], keyword) == passes(data[0], any, all, data[1] & 1, data[2], keyword));
}

static void check_pids(const uint8_t *data, size_t size)
{
	uint32_t nr = size / 4, i, k;
	struct etw_filter *f = malloc(sizeof(*f) + nr * 4);
	s32 *given = malloc(nr * 4 + 4);

	memcpy(given, data, nr * 4);
	memcpy(f->pids, data, nr * 4);
	etw_filter_init(f, nr);
	for (i = 0; i < nr; i++) {
		s32 near[] = { given[i], (s32)((u32)given[i] + 1), (s32)((u32)given[i] - 1), -1, 0 };

		for (k = 0; k < 5; k++) {
			bool in = false;
			uint32_t j;

			for (j = 0; j < nr; j++)
				in |= given[j] == near[k];
			FUZZ_CHECK(etw_filter_has_exact(f, near[k]) == in && etw_filter_has(f, near[k]) == in);
		}
	}
	for (i = 1; i < f->nr; i++)
		FUZZ_CHECK(f->pids[i - 1] < f->pids[i]);
	free(given);
	free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *names = malloc(size + 1);
	uint32_t i, width;

	memcpy(names, data, size);
	if (size >= 27)
		check_rule(data);
	check_pids(data, size < 4096 ? size : 4096);
	for (width = 1; width <= 64 && width <= size; width *= 4) {
		bool listed = false;

		FUZZ_CHECK(etw_name_valid(names, width) == name_is_valid(names, width));
		for (i = 0; i < size / width; i++)
			listed |= !strncmp("sched_switch", names + i * width, width);
		FUZZ_CHECK(etw_name_listed("sched_switch", names, size / width, width) == listed);
	}
	free(names);
	return 0;
}
