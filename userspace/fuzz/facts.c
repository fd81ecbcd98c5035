// SPDX-License-Identifier: GPL-2.0-only
/*
 * The facts of a trace: session.json as the library reads it, or, if the bytes do not begin with a brace, metadata. What was
 * read can be printed, and is then read as the same.
 */
#include "facts.h"
#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct facts facts = {}, again = {};
	char *text = malloc(size + 1), *printed, *second;

	memcpy(text, data, size);
	text[size] = 0;
	if (*text != '{') {
		etw_metadata_facts(text, &facts);
	} else if (!etw_facts_parse(&facts, text, size)) {
		printed = etw_facts_print(&facts);
		FUZZ_CHECK(printed && !etw_facts_parse(&again, printed, strlen(printed)));
		second = etw_facts_print(&again);
		FUZZ_CHECK(second && !strcmp(printed, second));
		free(printed);
		free(second);
		etw_facts_free(&again);
	}
	etw_facts_free(&facts);
	free(text);
	return 0;
}
