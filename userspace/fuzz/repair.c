// SPDX-License-Identifier: GPL-2.0-only
/* Repair of any directory: it ends, and what it made needs no repair and can be read. */
#include "input.h"

#include <stdio.h>
#include <string.h>

static void report(void *arg, const struct etw_damage *damage)
{
	FUZZ_CHECK(*damage->what);
	*(int *)arg = damage->bytes == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *dir = input_directory(data, size);
	int last = 0, first;

	first = etw_trace_repair(dir, report, &last);
	if (first < 0) {
		FUZZ_CHECK(*etw_last_error());
		return 0;
	}
	input_read(dir);
	FUZZ_CHECK(etw_trace_repair(dir, report, &last) == 0);
	return 0;
}
