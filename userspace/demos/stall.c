// SPDX-License-Identifier: GPL-2.0-only
/*
 * etw-stall: who waits for a disk, and for which sectors. It knows block events only.
 *
 *	etw-stall SECONDS|DIR [MILLISECONDS]
 *
 * A bio belongs to the thread that submits it (block_bio_queue). It is done when requests that cover its sectors complete,
 * in whatever context that happens. Each that took at least MILLISECONDS (100) is a line; at the end one for each process and disk.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "input.h"

/* Submitted and not yet done. */
struct bio {
	struct bio *next;
	__u64 time, sector;
	__u32 dev, nr, left;
	__u32 rwbs;
	__s32 pid;
	char comm[COMM];
};

struct disk {
	__u32 dev, whole;		/* of a partition its disk */
	char name[32];
	UT_hash_handle hh;
};

/* Stalls of one process on one disk. */
struct victim {
	struct {
		__s32 pid;
		__u32 dev;
	} key;
	char comm[COMM];
	unsigned int stalls;
	__u64 longest, total;
	UT_hash_handle hh;
};

static struct bio *bios;
static struct disk *disks;
static struct victim *victims;

static struct disk *disk_of(__u32 dev)
{
	struct disk *d;

	HASH_FIND(hh, disks, &dev, sizeof(dev), d);
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d)
			err(1, "a disk");
		d->dev = d->whole = dev;
		snprintf(d->name, sizeof(d->name), "%u:%u", dev >> 20, dev & 0xfffff);
		HASH_ADD(hh, disks, dev, sizeof(d->dev), d);
	}
	return d;
}

static void name_disk(const struct etw_event *ev)
{
	struct disk *d = disk_of(field(ev, "dev"));

	d->whole = field(ev, "disk");
	etw_event_format(ev, etw_class_field(ev->cls, "diskname"), d->name, sizeof(d->name));
}

static void submitted(const struct etw_event *ev)
{
	struct bio *b = calloc(1, sizeof(*b));

	if (!b)
		err(1, "a bio");
	b->time = ev->time;
	b->sector = field(ev, "sector");
	b->nr = b->left = field(ev, "nr_sector");
	b->dev = disk_of(field(ev, "dev"))->whole;
	b->rwbs = field(ev, "rwbs");
	b->pid = ev->pid;
	field_comm(ev, "comm", b->comm);
	b->next = bios;
	bios = b;
}

static void stalled(const struct input *in, const struct bio *b, __u64 time)
{
	struct victim *v, key = { .key = { b->pid, b->dev } };

	printf("%12.6f s  %-15s %7d  %-5s %-8s sector %10llu +%-5u waited %9.3f ms\n", (b->time - in->start) / 1e9, b->comm, b->pid,
	       b->rwbs & 1 ? "write" : "read", disk_of(b->dev)->name, (unsigned long long)b->sector, b->nr, time / 1e6);
	HASH_FIND(hh, victims, &key.key, sizeof(key.key), v);
	if (!v) {
		v = calloc(1, sizeof(*v));
		if (!v)
			err(1, "a process");
		v->key = key.key;
		memcpy(v->comm, b->comm, COMM);
		HASH_ADD(hh, victims, key, sizeof(v->key), v);
	}
	v->stalls++;
	v->total += time;
	if (time > v->longest)
		v->longest = time;
}

static void completed(const struct input *in, const struct etw_event *ev, __u64 limit)
{
	__u64 from = field(ev, "sector"), to = from + field(ev, "nr_sector");
	__u32 dev = field(ev, "dev");

	for (struct bio *b, **link = &bios; (b = *link);) {
		__u64 first = b->sector > from ? b->sector : from;
		__u64 last = b->sector + b->nr < to ? b->sector + b->nr : to;

		if (b->dev != dev || first >= last || (b->left -= last - first)) {
			link = &b->next;
			continue;
		}
		if (ev->time - b->time >= limit)
			stalled(in, b, ev->time - b->time);
		*link = b->next;
		free(b);
	}
}

static int by_total(const struct victim *a, const struct victim *b)
{
	return a->total < b->total ? 1 : a->total > b->total ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const char *const events[] = { "block_bio_queue", "block_rq_complete" };
	static const struct etw_enable_options block = {
		.size = sizeof(block), .provider = "block", .event_mode = ETW_EVENTS_IN, .events = events, .nr_events = 2,
	};
	const struct etw_event *ev;
	struct victim *v, *tmp;
	struct input in;
	__u64 limit;

	if (argc < 2 || argc > 3)
		errx(2, "usage: etw-stall SECONDS|DIR [MILLISECONDS]");
	limit = 1e6 * (argc > 2 ? strtod(argv[2], NULL) : 100);
	setlinebuf(stdout);
	input_open(&in, "stall", argv[1], &block, 1);
	while ((ev = input_next(&in))) {
		if (!strcmp(ev->cls->name, "block_bio_queue") && field(ev, "nr_sector"))
			submitted(ev);
		else if (!strcmp(ev->cls->name, "block_rq_complete"))
			completed(&in, ev, limit);
		else if (!strcmp(ev->cls->ctf_name, "lttng_statedump_block_device"))
			name_disk(ev);
	}
	HASH_SORT(victims, by_total);
	HASH_ITER(hh, victims, v, tmp)
		printf("%s (%d) was stalled %u times on %s, %.0f ms in all, at longest %.3f ms\n", v->comm, v->key.pid, v->stalls,
		       disk_of(v->key.dev)->name, v->total / 1e6, v->longest / 1e6);
	if (!victims)
		printf("nobody waited %g ms for a disk\n", limit / 1e6);
	return input_close(&in);
}
