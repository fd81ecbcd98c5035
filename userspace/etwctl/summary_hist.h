/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of 64-bit values whose memory does not grow with their number. It knows nothing of events or time.
 *
 * Values below SUM_HIST_SUB are exact. Above, each octave [2^n, 2^(n+1)) has SUM_HIST_SUB equal buckets and a value is
 * reported as the middle of its bucket: the error is at most 1/(2 * SUM_HIST_SUB) of the value, 0.8 %. Minimum, maximum,
 * count and sum are exact.
 *
 * There is one for each process, most of which have few values: these are kept as a list of buckets first.
 */
#ifndef ETWCTL_SUMMARY_HIST_H
#define ETWCTL_SUMMARY_HIST_H

#include <stddef.h>
#include <stdint.h>

#define SUM_HIST_SHIFT	6
#define SUM_HIST_SUB	(1U << SUM_HIST_SHIFT)
#define SUM_HIST_ROWS	(64 - SUM_HIST_SHIFT + 1)	/* the exact values, then one row for each octave */

#define SUM_HIST_FEW	32	/* buckets in the list at most */

struct sum_hist_bucket {
	uint32_t nr;			/* row * SUM_HIST_SUB + place in it */
	uint32_t count;
};

struct sum_hist {
	uint64_t count;
	uint64_t sum;
	uint64_t min;			/* valid if count is not 0 */
	uint64_t max;
	struct sum_hist_bucket *few;	/* in order; its room is the power of two from @nr_few on, 4 at least */
	unsigned int nr_few;
	uint32_t **rows;		/* NULL: few. SUM_HIST_SUB counters each, allocated when first hit */
};

void sum_hist_add(struct sum_hist *h, uint64_t value);
void sum_hist_merge(struct sum_hist *into, const struct sum_hist *from);

/* The smallest value that at least @per_mille of 1000 values do not exceed; 0 if there are none. */
uint64_t sum_hist_quantile(const struct sum_hist *h, unsigned int per_mille);

void sum_hist_clear(struct sum_hist *h);

/* calloc that ends the program with status 1 when there is no memory: the analysis has nothing to fall back to. */
void *sum_alloc(size_t nr, size_t size);
void *sum_realloc(void *old, size_t nr, size_t size);

#endif
