/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzz targets share: a target gets bytes; these make a trace directory or a text of them. It must not know what
 * is tested.
 *
 * A trace directory as one input: parts that each begin with a line "==== NAME", NAME one of those in input.c. What comes
 * before the first is dropped; the newline before such a line belongs to it.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include <etw/etw.h>

#include "check.h"

/* Makes the directory anew from @data; its name stays the same. */
const char *input_directory(const uint8_t *data, size_t size);
/* Writes one file of that directory. */
void input_file(const char *name, const void *data, size_t size);

/* Reads all of a consumer's events, each field in each way. Number of events. */
unsigned int input_read(const char *dir);
/* Takes sums of what was looked at, so that the compiler cannot leave looking out. */
extern volatile uint64_t input_sink;
/* Every way to ask about an event. */
void input_event(const struct etw_event *event);

/* The next line of a text, NUL-terminated, in @line; 0 at the end. */
int input_line(const uint8_t **data, size_t *size, char *line, size_t room);

#endif
