/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the demos share: events from a trace on disk or from a session of their own, whichever the command line names. It
 * must not know what is made of them.
 */
#ifndef DEMOS_INPUT_H
#define DEMOS_INPUT_H

#include <etw/etw.h>

struct input {
	struct etw_control *control;	/* live only, as the next two */
	struct etw_session *session;
	uint64_t end;			/* CLOCK_MONOTONIC ns; 0: stopped */
	struct etw_consumer *consumer;
	uint64_t start;			/* session clock: begin of the trace */
};

/*
 * @where: a trace directory, or for how many seconds to record (Ctrl-C ends it earlier). Then a session called @name is made
 * with these providers enabled, and a line on stderr says so. Ends the program with a message if that fails.
 */
void input_open(struct input *in, const char *name, const char *where, const struct etw_enable_options *providers, unsigned int nr);

/* The next event in time order; NULL at the end. */
const struct etw_event *input_next(struct input *in);

/* Returns the program's status: 0, or 5 after saying how many events were lost. */
int input_close(struct input *in);

/*
 * A field by its name, 0 or "" if there is none. A tool for floods would look the names up once for each class, with
 * etw_class_fields().
 */
static inline __u64 field(const struct etw_event *ev, const char *name)
{
	return etw_event_uint(ev, etw_class_field(ev->cls, name));
}

#define COMM 16
void field_comm(const struct etw_event *ev, const char *name, char comm[COMM]);

#endif
