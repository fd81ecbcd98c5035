/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verb summary has found, sorted, for whoever shows it. It must not know how it was found. */
#ifndef ETWCTL_SUMMARY_H
#define ETWCTL_SUMMARY_H

#include <etw/etw.h>

#include "summary_model.h"

/* Events of one class that pass the filters, and their bytes in the stream. */
struct summary_class {
	const struct etw_class *cls;
	uint64_t count;
	uint64_t bytes;
};

struct summary_provider {
	const char *name;
	uint64_t count;
	uint64_t bytes;
	uint64_t lost;			/* by the sessions' own counts, whole traces */
	uint64_t filtered;
	struct summary_class *classes;	/* by count */
	unsigned int nr_classes;
};

/* What records of the provider etw say of losses: why, on one CPU, between two times (epoch). */
struct summary_cause {
	uint32_t trace, cpu, cause;
	uint64_t count;
	int64_t first, last;
};

/* More records of losses than this are only added up. */
#define SUMMARY_MAX_CAUSES 1000

struct summary_report {
	struct summary *s;
	struct etw_consumer *consumer;
	unsigned int top;		/* rows of a list to show, 0 all */
	int64_t from, to;		/* epoch, what was looked at */
	uint64_t lost;			/* events, by the packets */
	uint64_t lost_causes[ETW_NR_LOST];	/* of what the traces or their records say; may be less than @lost */
	struct summary_cause *causes;
	unsigned int nr_causes;
	uint64_t events, bytes;
	/* Sorted, most important first. Rows that the analysis has only counted (s->forgotten) would follow. */
	struct sum_proc **runs, **faulters;
	struct sum_disk **disks;
	struct sum_share **shares;
	struct summary_provider *providers;
	struct sum_act_kind **kinds;	/* the activities themselves are s->acts */
	unsigned int nr_runs, nr_faulters, nr_disks, nr_shares, nr_providers, nr_kinds;
};

void summary_text(const struct summary_report *r);
void summary_json(const struct summary_report *r);

/* Bytes of text for the fields of a start or stop event. */
#define SUMMARY_FIELDS 256

extern const char *const summary_doing_names[SUM_NR_DOING];
extern const char *const summary_op_names[SUM_NR_OPS];
extern const char *const summary_area_names[SUM_NR_AREAS];
extern const char *const summary_access_names[SUM_NR_ACCESS];

/* Of all operations on a disk, or of a process on it. */
uint64_t summary_io_count(const struct sum_io io[SUM_NR_OPS]);

/* "sda", or "8:0" if no event told the name. */
#define SUMMARY_DISK_NAME 32
const char *summary_disk_name(const struct sum_disk *d, char buf[SUMMARY_DISK_NAME]);

#endif
