// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader's packets and records: the bytes are one stream of a trace whose other files are sound, those of the
 * recorded trace STREAM_TRACE.
 */
#include "input.h"

#include <stdio.h>
#include <stdlib.h>

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "kernel/metadata", "schema", "session.json" };
	static struct {
		char *text;
		size_t len;
	} sound[3];
	const char *dir = input_directory(data, 0);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		char path[512];

		snprintf(path, sizeof(path), STREAM_TRACE "/%s", files[i]);
		if (!sound[i].text && etw_read_file(path, &sound[i].text, &sound[i].len))
			abort();
		input_file(files[i], sound[i].text, sound[i].len);
	}
	input_file("kernel/chan_0", data, size);
	input_read(dir);
	return 0;
}
