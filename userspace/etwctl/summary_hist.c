// SPDX-License-Identifier: GPL-2.0-only
/* The log-linear histogram of summary_hist.h. It knows nothing of events or time. */
#include "summary_hist.h"

#include <err.h>
#include <stdlib.h>

void *sum_alloc(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p)
		errx(1, "out of memory");
	return p;
}

void *sum_realloc(void *old, size_t nr, size_t size)
{
	void *p = reallocarray(old, nr, size);

	if (!p)
		errx(1, "out of memory");
	return p;
}

/* Row 0 holds 0 .. SUB-1; row r > 0 holds the octave that begins at SUB << (r - 1), in buckets of 1 << (r - 1). */
static unsigned int row_of(uint64_t value)
{
	if (value < SUM_HIST_SUB)
		return 0;
	return 64 - SUM_HIST_SHIFT - __builtin_clzll(value);
}

static uint64_t middle(unsigned int row, unsigned int bucket)
{
	uint64_t width;

	if (!row)
		return bucket;
	width = 1ULL << (row - 1);
	return (SUM_HIST_SUB + bucket) * width + width / 2;
}

void sum_hist_add(struct sum_hist *h, uint64_t value)
{
	unsigned int row = row_of(value);
	unsigned int bucket = row ? (value >> (row - 1)) - SUM_HIST_SUB : value;

	if (!h->rows[row])
		h->rows[row] = sum_alloc(SUM_HIST_SUB, sizeof(*h->rows[row]));
	h->rows[row][bucket]++;
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
}

void sum_hist_merge(struct sum_hist *into, const struct sum_hist *from)
{
	if (!from->count)
		return;
	for (unsigned int r = 0; r < SUM_HIST_ROWS; r++) {
		if (!from->rows[r])
			continue;
		if (!into->rows[r])
			into->rows[r] = sum_alloc(SUM_HIST_SUB, sizeof(*into->rows[r]));
		for (unsigned int b = 0; b < SUM_HIST_SUB; b++)
			into->rows[r][b] += from->rows[r][b];
	}
	if (!into->count || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
}

uint64_t sum_hist_quantile(const struct sum_hist *h, unsigned int per_mille)
{
	uint64_t want, seen = 0;

	if (!h->count)
		return 0;
	/* rounded up: the 99 % value of two values is the larger; count below 2^54 in any real trace */
	want = (h->count * per_mille + 999) / 1000;
	if (want < 1)
		want = 1;
	if (want >= h->count)
		return h->max;
	for (unsigned int r = 0; r < SUM_HIST_ROWS; r++) {
		for (unsigned int b = 0; h->rows[r] && b < SUM_HIST_SUB; b++) {
			seen += h->rows[r][b];
			if (seen >= want) {
				uint64_t v = middle(r, b);

				return v < h->min ? h->min : v > h->max ? h->max : v;
			}
		}
	}
	return h->max;
}

void sum_hist_clear(struct sum_hist *h)
{
	for (unsigned int r = 0; r < SUM_HIST_ROWS; r++)
		free(h->rows[r]);
	*h = (struct sum_hist){ 0 };
}
