// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks and their partitions, and the bios that wait on them until requests take them. It must not know requests.
 */
#include "summary_block.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR 512ULL

enum sum_op sum_block_op(uint32_t rwbs, uint32_t nr)
{
	if (!nr && (rwbs & (SUM_RWBS_FLUSH | SUM_RWBS_PREFLUSH)))
		return SUM_FLUSH;
	if (rwbs & SUM_RWBS_DISCARD)
		return SUM_DISCARD;
	if (rwbs & SUM_RWBS_WRITE)
		return SUM_WRITE;
	/* Writing zeroes without data has no bit of its own. */
	return rwbs & SUM_RWBS_READ ? SUM_READ : SUM_DISCARD;
}

/* ---------------------------------------------------------------- disks and partitions */

static uint32_t major_of(uint32_t dev)
{
	return dev >> 20;
}

/* "sda1" is a partition of "sda", "nvme0n1p2" of "nvme0n1"; "loop12" is none of "loop1". */
static bool is_part_name(const char *part, const char *disk)
{
	size_t len = strlen(disk);

	if (!len || strncmp(part, disk, len))
		return false;
	part += len;
	if (disk[len - 1] >= '0' && disk[len - 1] <= '9') {
		if (*part != 'p')
			return false;
		part++;
	}
	return *part && strspn(part, "0123456789") == strlen(part);
}

struct sum_disk *sum_disk_whole(struct sum_disk *d)
{
	while (d->whole != d)
		d = d->whole;
	return d;
}

/* @part has turned out to be a partition of @disk: what waits there waits here. */
void sum_disk_set_whole(struct summary *s, struct sum_disk *part, struct sum_disk *disk)
{
	disk = sum_disk_whole(disk);
	if (disk == part)
		return;
	part->whole = disk;
	for (unsigned int i = 0; i < part->nr_bios; i++)
		sum_bio_insert(s, disk, part->bios[i]);
	for (unsigned int i = 0; i < part->nr_flushes; i++) {
		if (disk->nr_flushes == disk->max_flushes) {
			disk->max_flushes = disk->max_flushes ? 2 * disk->max_flushes : 8;
			disk->flushes = sum_realloc(disk->flushes, disk->max_flushes, sizeof(*disk->flushes));
		}
		disk->flushes[disk->nr_flushes++] = part->flushes[i];
	}
	part->nr_bios = part->nr_flushes = 0;
}

struct sum_disk *sum_disk_find(struct summary *s, uint32_t dev)
{
	struct sum_disk *d;

	HASH_FIND(hh, s->disks, &dev, sizeof(dev), d);
	return d;
}

struct sum_disk *sum_disk_get(struct summary *s, uint32_t dev)
{
	struct sum_disk *d = sum_disk_find(s, dev);

	if (!d) {
		d = sum_alloc(1, sizeof(*d));
		d->dev = dev;
		d->whole = d;
		d->rqs_tail = &d->rqs;
		HASH_ADD(hh, s->disks, dev, sizeof(d->dev), d);
	}
	return d;
}

void sum_disk_name(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_get(s, e->disk.dev), *other, *tmp;
	size_t len = e->disk.name.len;

	if (len >= sizeof(d->name))
		len = sizeof(d->name) - 1;
	memcpy(d->name, e->disk.name.s, len);
	d->name[len] = 0;
	if (e->disk.whole) {
		if (e->disk.whole != e->disk.dev && d->whole == d)
			sum_disk_set_whole(s, d, sum_disk_get(s, e->disk.whole));
		return;
	}
	HASH_ITER(hh, s->disks, other, tmp) {
		if (other == d)
			continue;
		if (is_part_name(d->name, other->name) && d->whole == d)
			sum_disk_set_whole(s, d, other);
		else if (is_part_name(other->name, d->name) && other->whole == other)
			sum_disk_set_whole(s, other, d);
	}
}

/* Could bios queued on @part be those of requests on @disk? Only asked when names did not tell. */
bool sum_disk_may_be_part(const struct sum_disk *part, const struct sum_disk *disk)
{
	return part != disk && part->whole == part && !part->has_requests && !(part->name[0] && disk->name[0]) &&
	       major_of(part->dev) == major_of(disk->dev);
}

/* ---------------------------------------------------------------- bios */

struct sum_share *sum_share_get(struct summary *s, struct sum_proc *p, struct sum_disk *d)
{
	struct sum_share *sh, key = { 0 };

	key.key.proc = p;
	key.key.disk = d;
	HASH_FIND(hh, s->shares, &key.key, sizeof(key.key), sh);
	if (!sh) {
		sh = sum_alloc(1, sizeof(*sh));
		sh->key.proc = p;
		sh->key.disk = d;
		HASH_ADD(hh, s->shares, key, sizeof(sh->key), sh);
	}
	return sh;
}

unsigned int sum_share_count(struct summary *s, struct sum_proc *p, struct sum_share **one)
{
	struct sum_share *sh, key = { 0 };
	struct sum_disk *d, *tmp;
	unsigned int nr = 0;

	*one = NULL;
	key.key.proc = p;
	HASH_ITER(hh, s->disks, d, tmp) {
		key.key.disk = d;
		HASH_FIND(hh, s->shares, &key.key, sizeof(key.key), sh);
		if (sh) {
			*one = sh;
			nr++;
		}
	}
	return nr;
}

void sum_share_free(struct summary *s, struct sum_share *sh)
{
	HASH_DEL(s->shares, sh);
	sum_io_clear(sh->io);
	free(sh);
}

uint64_t sum_io_bytes(const struct sum_io io[SUM_NR_OPS])
{
	uint64_t bytes = 0;

	for (int op = 0; op < SUM_NR_OPS; op++)
		bytes += io[op].bytes;
	return bytes;
}

void sum_io_clear(struct sum_io io[SUM_NR_OPS])
{
	for (int op = 0; op < SUM_NR_OPS; op++) {
		sum_hist_clear(&io[op].latency);
		sum_hist_clear(&io[op].service);
	}
}

struct sum_bio *sum_bio_new(struct summary *s, const struct sum_event *e, int32_t tid, bool guessed)
{
	struct sum_bio *bio = sum_alloc(1, sizeof(*bio));

	bio->queued = e->time;
	bio->seq = s->bio_seq++;
	bio->sector = e->blk.sector;
	bio->nr = bio->to_issue = bio->to_complete = e->blk.nr;
	bio->op = sum_block_op(e->blk.rwbs, e->blk.nr);
	bio->guessed = guessed;
	bio->tid = tid;
	bio->wanted = sum_cpu_wanted(s, e->cpu);
	if (tid > 0) {
		struct sum_thread *t = sum_thread_get(s, tid);

		sum_thread_name(s, t, e->blk.comm);
		bio->wanted &= t->wanted;
		bio->proc = t->proc;
		if (bio->op == SUM_WRITE && sum_name_is_worker(t->comm))
			bio->proc = s->writeback;
	} else {
		bio->wanted &= !s->filter.nr_pids && !s->filter.nr_comms;
		bio->proc = s->idle;
	}
	bio->proc->refs++;
	sum_activity_io(s, bio);
	return bio;
}

/* It has not been heard of to its end. */
void sum_bio_free(struct summary *s, struct sum_bio *bio)
{
	sum_activity_io_end(s, bio, NULL, 0);
	bio->proc->refs--;
	free(bio);
}

/* First place in @d->bios whose bio begins at @sector or later. */
static unsigned int bio_search(const struct sum_disk *d, uint64_t sector)
{
	unsigned int lo = 0, hi = d->nr_bios;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (d->bios[mid]->sector < sector)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void sum_bio_remove(struct sum_disk *d, unsigned int i)
{
	d->nr_bios--;
	memmove(&d->bios[i], &d->bios[i + 1], (d->nr_bios - i) * sizeof(*d->bios));
}

/* A bio that is in a request already stays with it; only its place in the queue is given up. */
void sum_bio_give_up(struct summary *s, struct sum_disk *d, struct sum_bio *bio)
{
	d->unfinished++;
	if (bio->to_issue != bio->to_complete) {
		bio->to_complete -= bio->to_issue;
		bio->to_issue = 0;
	} else {
		sum_bio_free(s, bio);
	}
}

/* Gives up the older half of all that wait. */
static void bios_trim(struct summary *s, struct sum_disk *d)
{
	uint64_t oldest = UINT64_MAX, newest = 0, limit;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < d->nr_bios; i++) {
		if (d->bios[i]->seq < oldest)
			oldest = d->bios[i]->seq;
		if (d->bios[i]->seq > newest)
			newest = d->bios[i]->seq;
	}
	limit = oldest + (newest - oldest) / 2;
	for (unsigned int i = 0; i < d->nr_bios; i++) {
		if (d->bios[i]->seq <= limit)
			sum_bio_give_up(s, d, d->bios[i]);
		else
			d->bios[kept++] = d->bios[i];
	}
	d->nr_bios = kept;
}

void sum_bio_insert(struct summary *s, struct sum_disk *d, struct sum_bio *bio)
{
	unsigned int i;

	if (d->nr_bios >= MAX_WAITING)
		bios_trim(s, d);
	if (d->nr_bios == d->max_bios) {
		d->max_bios = d->max_bios ? 2 * d->max_bios : 32;
		d->bios = sum_realloc(d->bios, d->max_bios, sizeof(*d->bios));
	}
	i = bio_search(d, bio->sector);
	while (i < d->nr_bios && d->bios[i]->sector == bio->sector && d->bios[i]->seq < bio->seq)
		i++;
	memmove(&d->bios[i + 1], &d->bios[i], (d->nr_bios - i) * sizeof(*d->bios));
	d->bios[i] = bio;
	d->nr_bios++;
	if (bio->nr > d->largest)
		d->largest = bio->nr;
}

/*
 * The bio to take for @sector of a request: the oldest of the same direction that covers it. If none does, *gap is where the
 * next one begins, at most @end.
 */
struct sum_bio *sum_bio_covering(struct sum_disk *d, uint64_t sector, uint64_t end, enum sum_op op, unsigned int *at,
				 uint64_t *gap)
{
	struct sum_bio *best = NULL;

	*gap = end;
	for (unsigned int i = bio_search(d, sector > d->largest ? sector - d->largest : 0); i < d->nr_bios; i++) {
		struct sum_bio *bio = d->bios[i];

		if (bio->sector >= end)
			break;
		if (bio->op != op)
			continue;
		if (bio->sector > sector) {
			if (bio->sector < *gap)
				*gap = bio->sector;
		} else if (bio->sector + bio->nr > sector && (!best || bio->seq < best->seq)) {
			best = bio;
			*at = i;
		}
	}
	return best;
}

void sum_io_add(struct sum_io *io, uint64_t sectors, bool failed)
{
	io->count++;
	io->bytes += sectors * SECTOR;
	io->errors += failed;
}

/* All of @bio has completed. */
void sum_bio_done(struct summary *s, struct sum_disk *d, struct sum_bio *bio, uint64_t time)
{
	if (bio->wanted && sum_in_window(s, time)) {
		struct sum_share *sh = sum_share_get(s, bio->proc, d);

		sum_io_add(&sh->io[bio->op], bio->nr, bio->failed);
		sum_hist_add(&sh->io[bio->op].latency, time - bio->queued);
		sh->guessed += bio->guessed;
		if (!bio->guessed)
			sum_hist_add(&d->io[bio->op].latency, time - bio->queued);
		if (!d->has_requests)
			sum_io_add(&d->io[bio->op], bio->nr, bio->failed);
	}
	sum_activity_io_end(s, bio, d, time);
	bio->proc->refs--;
	free(bio);
}

void sum_bio_queue(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_whole(sum_disk_get(s, e->blk.dev));
	struct sum_bio *bio = sum_bio_new(s, e, e->tid, false);

	if (bio->nr) {
		sum_bio_insert(s, d, bio);
		return;
	}
	if (bio->op != SUM_FLUSH) {
		sum_bio_free(s, bio);	/* nothing moves, nothing to follow */
		return;
	}
	if (d->nr_flushes == MAX_IN_FLIGHT) {
		sum_bio_free(s, d->flushes[0]);
		memmove(d->flushes, d->flushes + 1, --d->nr_flushes * sizeof(*d->flushes));
		d->unfinished++;
	}
	if (d->nr_flushes == d->max_flushes) {
		d->max_flushes = d->max_flushes ? 2 * d->max_flushes : 8;
		d->flushes = sum_realloc(d->flushes, d->max_flushes, sizeof(*d->flushes));
	}
	d->flushes[d->nr_flushes++] = bio;
}

/* A driver may have advanced the bio before it completed it: then the event has its end, and no sectors. */
void sum_bio_complete(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_whole(sum_disk_get(s, e->blk.dev));
	uint64_t end = e->blk.sector + e->blk.nr;
	struct sum_bio *best = NULL;
	unsigned int at = 0;

	if (d->has_requests)
		return;
	for (unsigned int i = bio_search(d, end > d->largest ? end - d->largest : 0); i < d->nr_bios; i++) {
		struct sum_bio *bio = d->bios[i];

		if (bio->sector > e->blk.sector)
			break;
		if (bio->sector + bio->nr == end && (!best || bio->seq < best->seq)) {
			best = bio;
			at = i;
		}
	}
	if (!best) {
		if (!e->blk.nr && d->nr_flushes) {
			best = d->flushes[0];
			memmove(d->flushes, d->flushes + 1, --d->nr_flushes * sizeof(*d->flushes));
		} else {
			d->started_before++;
			return;
		}
	} else {
		sum_bio_remove(d, at);
	}
	best->failed = e->blk.error;
	sum_bio_done(s, d, best, e->time);
}
