// SPDX-License-Identifier: GPL-2.0-only
/* The reader against any files in a trace directory: streams, metadata, schema, facts, ring. */
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input_read(input_directory(data, size));
	return 0;
}
