/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of 64-bit values whose memory does not grow with their number. It knows nothing of events or time.
 *
 * Values below SUM_HIST_SUB are exact. Above, each octave [2^n, 2^(n+1)) has SUM_HIST_SUB equal buckets and a value is
 * reported as the middle of its bucket: the error is at most 1/(2 * SUM_HIST_SUB) of the value, 0.8 %. Minimum, maximum,
 * count and sum are exact.
 */
#ifndef ETWCTL_SUMMARY_HIST_H
#define ETWCTL_SUMMARY_HIST_H

#include <stddef.h>
#include <stdint.h>

#define SUM_HIST_SHIFT	6
#define SUM_HIST_SUB	(1U << SUM_HIST_SHIFT)
#define SUM_HIST_ROWS	(64 - SUM_HIST_SHIFT + 1)	/* the exact values, then one row for each octave */

struct sum_hist {
	uint64_t count;
	uint64_t sum;
	uint64_t min;			/* valid if count is not 0 */
	uint64_t max;
	uint32_t *rows[SUM_HIST_ROWS];	/* SUM_HIST_SUB counters, allocated when first hit */
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
