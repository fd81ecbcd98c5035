/* SPDX-License-Identifier: GPL-2.0-only */
/* One event as a line of text or a JSON object. It must not know where events come from. */
#ifndef ETWCTL_PRINT_H
#define ETWCTL_PRINT_H

#include <etw/etw.h>
#include <time.h>

#include "tasks.h"

enum print_time { PRINT_LOCAL, PRINT_UTC, PRINT_CLOCK, PRINT_START, PRINT_EPOCH };

struct print {
	enum print_time time;
	__s64 start;		/* epoch, for PRINT_START */
	bool trace;		/* several inputs: say which */
	__s64 last;		/* epoch of the line before, for the difference */
	bool begun;
	time_t second;		/* cache of the broken-down time */
	char clock[16];
};

extern const struct opt opts_print[];
enum { OPT_TIME = OPT_PRIVATE + 200, OPT_LIMIT };

/* --time's word; 0 or STATUS_USAGE. */
int print_time_option(struct print *p, const char *arg);

/*
 * Text: [time] (+difference) cpu tid/pid name Provider/event field=value ...   The name is missing if no event has told
 * it. JSON: {"time", "epoch", "cpu", "tid", "pid", "comm", "provider", "event", "ctf", "level", "fields"}; see
 * etwctl(1).
 */
void print_event(struct print *p, struct tasks *tasks, const struct etw_event *event);

/* Gives what print_event() has gathered to stdout, and on: before one waits for events, and at the end. */
void print_flush(void);

/* A provider's name as lines show it: without "Linux-Kernel-". */
const char *provider_short(const char *name);

#endif
