/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The read-side filters --event --pid --comm --cpu --from --to, the same for dump, summary and watch, and opening what
 * is read. It must not know what is done with the events that pass.
 *
 *	struct filter f = {};
 *	while ((key = opt_next(argc, argv)) != -1)
 *		switch (key) { case OPT_FILTERS: if (filter_option(&f, key, optarg)) return STATUS_USAGE; break; ... }
 *	filter_open(&f, argv + optind, false, &done, &consumer)
 *	while etw_consumer_next(): tasks_event(tasks, ev), filter_event(&f, tasks, ev)
 */
#ifndef ETWCTL_FILTER_H
#define ETWCTL_FILTER_H

#include <etw/etw.h>

#include "etwctl.h"
#include "tasks.h"

struct filter_time {
	bool set;
	char kind;		/* '+' from the start of the trace, '@' epoch, 'c' session clock, 'd' time of day */
	__s64 ns;
	__s64 epoch;		/* the result */
};

struct filter {
	char **events;		/* patterns, NULL = all */
	bool events_out;
	bool *event_used;	/* by pattern: a class matched it */
	signed char *wanted;	/* by class index: 1 yes, -1 no, 0 not asked yet */
	unsigned int nr_wanted;
	__s32 *pids;
	unsigned int nr_pids;
	char **comms;		/* patterns */
	unsigned char *cpus;	/* by number, NULL = all */
	unsigned int nr_cpus;
	struct filter_time from, to;
	__s64 start;		/* epoch of the earliest input's start */
};

extern const struct opt opts_filter[];
#define OPT_FILTERS	OPT_EVENT: case OPT_PID: case OPT_COMM: case OPT_CPU: case OPT_FROM: case OPT_TO

/* Takes one of OPT_FILTERS; 0, or STATUS_USAGE after saying what is wrong. */
int filter_option(struct filter *f, int key, const char *arg);

/*
 * Names what is new in the consumer's lists of losses and damages since the last call; STATUS_LOSS if there is any, new
 * or old. Call it again when the stream has ended: damage inside a packet is found while reading.
 */
struct filter_reported {
	unsigned int losses, damages;
};
int filter_report(struct etw_consumer *consumer, bool quiet_loss, struct filter_reported *done);

/*
 * Opens the directories of a NULL-ended list in one consumer, names losses and damage of the inputs first (text:
 * stderr; --json: objects {"loss"} and {"damage"} on stdout), and settles times relative to the start. STATUS_OK or
 * STATUS_LOSS: *@consumer is set; else reported. @quiet_loss: the caller says what was lost itself. @done: zeroed; what
 * was named.
 */
int filter_open(struct filter *f, char *const *dirs, bool quiet_loss, struct filter_reported *done,
		struct etw_consumer **consumer);

/* Settles relative times when the consumer was not made by filter_open(). */
void filter_start(struct filter *f, struct etw_consumer *consumer);

enum { FILTER_NO, FILTER_YES, FILTER_END };	/* END: no later event passes either */

/*
 * Whether an event passes. pid: the writer's tid or pid or a subject's tid; comm: the writer's name as known now. Give
 * every event to tasks_event() before, also those before --from: their names count.
 */
int filter_event(struct filter *f, struct tasks *tasks, const struct etw_event *event);

/* Says which --event patterns matched nothing in what was read, and frees. */
void filter_free(struct filter *f, struct etw_consumer *consumer);

#endif
