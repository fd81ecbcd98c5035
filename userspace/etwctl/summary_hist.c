// SPDX-License-Identifier: GPL-2.0-only
/* The log-linear histogram of summary_hist.h. It knows nothing of events or time. */
#include "summary_hist.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static void add_to_row(struct sum_hist *h, uint32_t bucket, uint32_t count)
{
	uint32_t **row = &h->rows[bucket / SUM_HIST_SUB];

	if (!*row)
		*row = sum_alloc(SUM_HIST_SUB, sizeof(**row));
	(*row)[bucket % SUM_HIST_SUB] += count;
}

static void add_to_bucket(struct sum_hist *h, uint32_t bucket, uint32_t count)
{
	unsigned int at = 0;

	if (h->rows) {
		add_to_row(h, bucket, count);
		return;
	}
	while (at < h->nr_few && h->few[at].nr < bucket)
		at++;
	if (at < h->nr_few && h->few[at].nr == bucket) {
		h->few[at].count += count;
		return;
	}
	if (h->nr_few == SUM_HIST_FEW) {
		h->rows = sum_alloc(SUM_HIST_ROWS, sizeof(*h->rows));
		for (unsigned int i = 0; i < h->nr_few; i++)
			add_to_row(h, h->few[i].nr, h->few[i].count);
		free(h->few);
		h->few = NULL;
		h->nr_few = 0;
		add_to_row(h, bucket, count);
		return;
	}
	if (!h->nr_few || (h->nr_few >= 4 && !(h->nr_few & (h->nr_few - 1))))
		h->few = sum_realloc(h->few, h->nr_few ? 2 * h->nr_few : 4, sizeof(*h->few));
	memmove(h->few + at + 1, h->few + at, (h->nr_few - at) * sizeof(*h->few));
	h->few[at] = (struct sum_hist_bucket){ .nr = bucket, .count = count };
	h->nr_few++;
}

void sum_hist_add(struct sum_hist *h, uint64_t value)
{
	unsigned int row = row_of(value);

	add_to_bucket(h, row * SUM_HIST_SUB + (row ? (value >> (row - 1)) - SUM_HIST_SUB : value), 1);
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
}

/* The first bucket with values from @bucket on, and how many; false: none. */
static bool next_bucket(const struct sum_hist *h, uint32_t *bucket, uint32_t *count)
{
	for (unsigned int i = 0; i < h->nr_few; i++) {
		if (h->few[i].nr < *bucket)
			continue;
		*bucket = h->few[i].nr;
		*count = h->few[i].count;
		return true;
	}
	for (uint32_t b = *bucket; h->rows && b < SUM_HIST_ROWS * SUM_HIST_SUB; b++) {
		const uint32_t *row = h->rows[b / SUM_HIST_SUB];

		if (!row) {
			b |= SUM_HIST_SUB - 1;
		} else if (row[b % SUM_HIST_SUB]) {
			*bucket = b;
			*count = row[b % SUM_HIST_SUB];
			return true;
		}
	}
	return false;
}

void sum_hist_merge(struct sum_hist *into, const struct sum_hist *from)
{
	uint32_t bucket, count;

	if (!from->count)
		return;
	for (bucket = 0; next_bucket(from, &bucket, &count); bucket++)
		add_to_bucket(into, bucket, count);
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
	uint32_t bucket, count;

	if (!h->count)
		return 0;
	/* rounded up: the 99 % value of two values is the larger; count below 2^54 in any real trace */
	want = (h->count * per_mille + 999) / 1000;
	if (want < 1)
		want = 1;
	if (want >= h->count)
		return h->max;
	for (bucket = 0; next_bucket(h, &bucket, &count); bucket++) {
		seen += count;
		if (seen >= want) {
			uint64_t v = middle(bucket / SUM_HIST_SUB, bucket % SUM_HIST_SUB);

			return v < h->min ? h->min : v > h->max ? h->max : v;
		}
	}
	return h->max;
}

void sum_hist_clear(struct sum_hist *h)
{
	for (unsigned int r = 0; h->rows && r < SUM_HIST_ROWS; r++)
		free(h->rows[r]);
	free(h->rows);
	free(h->few);
	*h = (struct sum_hist){ 0 };
}
