// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disk I/O: which process submitted it, how long it took. It must not know schedulers, faults or output.
 *
 * A bio belongs to the thread in whose context block_bio_queue was written; all later events of it come in other contexts.
 * It waits among its disk's bios, sorted by sector, until requests that cover its sectors are issued: one request takes
 * several bios when they were merged, one bio goes into several requests when it was split, and neither merging nor the
 * I/O scheduler's order needs to be followed. From its issue a request is in flight until all its sectors have completed.
 *
 *	block_bio_queue      the bio waits. Of a partition: sectors are the whole disk's, the device number the partition's
 *	block_rq_insert      only if the bio was not seen: the request's thread stands for it
 *	block_rq_issue       takes bios; the same sectors again without a bio waiting is a requeued request
 *	block_rq_complete    some or all sectors of the request; the context is any interrupted thread, so it is not used
 *	block_bio_complete   end of a bio on a device that has no requests (dm, md, brd, zram ...)
 *
 * Flushes have no sectors: all that wait on a disk are served by the next flush request issued.
 */
#include "summary_model.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR 512ULL

/* More bios or requests than this waiting on one disk are leftovers of lost completions: the oldest are given up. */
#define MAX_WAITING 65536U
#define MAX_IN_FLIGHT 4096U

static enum sum_op op_of(uint32_t rwbs, uint32_t nr)
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

static struct sum_disk *whole_of(struct sum_disk *d)
{
	while (d->whole != d)
		d = d->whole;
	return d;
}

static void bio_insert(struct sum_disk *d, struct sum_bio *bio);

/* @part has turned out to be a partition of @disk: what waits there waits here. */
static void set_whole(struct sum_disk *part, struct sum_disk *disk)
{
	disk = whole_of(disk);
	if (disk == part)
		return;
	part->whole = disk;
	for (unsigned int i = 0; i < part->nr_bios; i++)
		bio_insert(disk, part->bios[i]);
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

static struct sum_disk *disk_get(struct summary *s, uint32_t dev)
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

static void name_event(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = disk_get(s, e->disk.dev), *other, *tmp;
	size_t len = e->disk.name.len;

	if (len >= sizeof(d->name))
		len = sizeof(d->name) - 1;
	memcpy(d->name, e->disk.name.s, len);
	d->name[len] = 0;
	if (e->disk.whole) {
		if (e->disk.whole != e->disk.dev && d->whole == d)
			set_whole(d, disk_get(s, e->disk.whole));
		return;
	}
	HASH_ITER(hh, s->disks, other, tmp) {
		if (other == d)
			continue;
		if (is_part_name(d->name, other->name) && d->whole == d)
			set_whole(d, other);
		else if (is_part_name(other->name, d->name) && other->whole == other)
			set_whole(other, d);
	}
}

/* Could bios queued on @part be those of requests on @disk? Only asked when names did not tell. */
static bool may_be_part(const struct sum_disk *part, const struct sum_disk *disk)
{
	return part != disk && part->whole == part && !part->has_requests && !(part->name[0] && disk->name[0]) &&
	       major_of(part->dev) == major_of(disk->dev);
}

/* ---------------------------------------------------------------- bios */

static struct sum_share *share_get(struct summary *s, struct sum_proc *p, struct sum_disk *d)
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

static struct sum_bio *bio_new(struct summary *s, const struct sum_event *e, int32_t tid, bool guessed)
{
	struct sum_bio *bio = sum_alloc(1, sizeof(*bio));

	bio->queued = e->time;
	bio->seq = s->bio_seq++;
	bio->sector = e->blk.sector;
	bio->nr = bio->to_issue = bio->to_complete = e->blk.nr;
	bio->op = op_of(e->blk.rwbs, e->blk.nr);
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
	return bio;
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

static void bio_remove(struct sum_disk *d, unsigned int i)
{
	d->nr_bios--;
	memmove(&d->bios[i], &d->bios[i + 1], (d->nr_bios - i) * sizeof(*d->bios));
}

/* A bio that is in a request already stays with it; only its place in the queue is given up. */
static void bio_give_up(struct sum_disk *d, struct sum_bio *bio)
{
	d->unfinished++;
	if (bio->to_issue != bio->to_complete) {
		bio->to_complete -= bio->to_issue;
		bio->to_issue = 0;
	} else {
		free(bio);
	}
}

/* Gives up the older half of all that wait. */
static void bios_trim(struct sum_disk *d)
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
			bio_give_up(d, d->bios[i]);
		else
			d->bios[kept++] = d->bios[i];
	}
	d->nr_bios = kept;
}

static void bio_insert(struct sum_disk *d, struct sum_bio *bio)
{
	unsigned int i;

	if (d->nr_bios >= MAX_WAITING)
		bios_trim(d);
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
static struct sum_bio *bio_covering(struct sum_disk *d, uint64_t sector, uint64_t end, enum sum_op op, unsigned int *at,
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

static void io_add(struct sum_io *io, uint64_t sectors, bool failed)
{
	io->count++;
	io->bytes += sectors * SECTOR;
	io->errors += failed;
}

/* All of @bio has completed. */
static void bio_done(struct summary *s, struct sum_disk *d, struct sum_bio *bio, uint64_t time)
{
	if (bio->wanted && sum_in_window(s, time)) {
		struct sum_share *sh = share_get(s, bio->proc, d);

		io_add(&sh->io[bio->op], bio->nr, bio->failed);
		sum_hist_add(&sh->io[bio->op].latency, time - bio->queued);
		sh->guessed += bio->guessed;
		if (!bio->guessed)
			sum_hist_add(&d->io[bio->op].latency, time - bio->queued);
		if (!d->has_requests)
			io_add(&d->io[bio->op], bio->nr, bio->failed);
	}
	free(bio);
}

static void bio_queue(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = whole_of(disk_get(s, e->blk.dev));
	struct sum_bio *bio = bio_new(s, e, e->tid, false);

	if (bio->nr) {
		bio_insert(d, bio);
		return;
	}
	if (bio->op != SUM_FLUSH) {
		free(bio);	/* nothing moves, nothing to follow */
		return;
	}
	if (d->nr_flushes == MAX_IN_FLIGHT) {
		free(d->flushes[0]);
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
static void bio_complete(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = whole_of(disk_get(s, e->blk.dev));
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
		bio_remove(d, at);
	}
	best->failed = e->blk.error;
	bio_done(s, d, best, e->time);
}

/* ---------------------------------------------------------------- requests */

static void rq_free(struct sum_disk *d, struct sum_rq **link)
{
	struct sum_rq *rq = *link;

	*link = rq->next;
	if (d->rqs_tail == &rq->next)
		d->rqs_tail = link;
	d->nr_rqs--;
	free(rq->parts);
	free(rq);
}

static void rq_give_up(struct sum_disk *d, struct sum_rq **link)
{
	struct sum_rq *rq = *link;

	for (unsigned int i = rq->part; i < rq->nr_parts; i++) {
		struct sum_bio *bio = rq->parts[i].bio;

		bio->to_complete -= rq->parts[i].nr;
		if (!bio->to_complete)
			free(bio);
	}
	d->unfinished++;
	rq_free(d, link);
}

static struct sum_rq **rq_find(struct sum_disk *d, uint64_t sector, uint32_t nr, bool whole)
{
	struct sum_rq **link;

	for (link = &d->rqs; *link; link = &(*link)->next)
		if ((*link)->sector == sector && (whole ? (*link)->nr == nr : (*link)->nr >= nr))
			return link;
	return NULL;
}

static void rq_part(struct sum_rq *rq, struct sum_bio *bio, uint32_t nr)
{
	if (!(rq->nr_parts & (rq->nr_parts - 1)))
		rq->parts = sum_realloc(rq->parts, rq->nr_parts ? 2 * rq->nr_parts : 1, sizeof(*rq->parts));
	rq->parts[rq->nr_parts].bio = bio;
	rq->parts[rq->nr_parts++].nr = nr;
	rq->wanted |= bio->wanted;
}

/* Looks for bios of @d's partitions that no name told to be such; one that fits makes it one. */
static void find_partition(struct summary *s, struct sum_disk *d, const struct sum_event *e)
{
	struct sum_disk *other, *tmp;

	HASH_ITER(hh, s->disks, other, tmp) {
		unsigned int at;
		uint64_t gap;

		if (may_be_part(other, d) && other->nr_bios &&
		    bio_covering(other, e->blk.sector, e->blk.sector + e->blk.nr, op_of(e->blk.rwbs, e->blk.nr), &at, &gap))
			set_whole(other, d);
	}
}

/* A bio in place of the sectors of a request that no bio was seen for. */
static struct sum_bio *bio_guess(struct summary *s, const struct sum_event *e, uint64_t sector, uint64_t end)
{
	struct sum_event g = *e;

	g.blk.sector = sector;
	g.blk.nr = end - sector;
	return bio_new(s, &g, e->blk.tid, true);
}

static void flush_issue(struct summary *s, struct sum_disk *d, const struct sum_event *e)
{
	d->flush_issued = e->time;
	if (!d->nr_flushes) {
		struct sum_disk *other, *tmp;

		HASH_ITER(hh, s->disks, other, tmp)
			if (may_be_part(other, d) && other->nr_flushes)
				set_whole(other, d);
	}
	for (unsigned int i = 0; i < d->nr_flushes; i++)
		d->flushes[i]->issued = true;
}

static void flush_complete(struct summary *s, struct sum_disk *d, const struct sum_event *e)
{
	unsigned int kept = 0;

	if (!d->flush_issued)
		return;
	if (sum_in_window(s, e->time)) {
		io_add(&d->io[SUM_FLUSH], 0, e->blk.error);
		sum_hist_add(&d->io[SUM_FLUSH].service, e->time - d->flush_issued);
	}
	d->flush_issued = 0;
	for (unsigned int i = 0; i < d->nr_flushes; i++) {
		struct sum_bio *bio = d->flushes[i];

		if (!bio->issued) {
			d->flushes[kept++] = bio;
			continue;
		}
		bio->failed = e->blk.error;
		bio_done(s, d, bio, e->time);
	}
	d->nr_flushes = kept;
}

static void rq_issue(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = whole_of(disk_get(s, e->blk.dev));
	uint64_t sector = e->blk.sector, end = sector + e->blk.nr, gap;
	enum sum_op op = op_of(e->blk.rwbs, e->blk.nr);
	struct sum_bio *bio;
	struct sum_rq *rq;
	unsigned int at;

	d->has_requests = true;
	if (!e->blk.nr) {
		if (op == SUM_FLUSH)
			flush_issue(s, d, e);
		return;		/* else a command passed through */
	}
	bio = bio_covering(d, sector, end, op, &at, &gap);
	if (!bio && gap == end) {
		struct sum_rq **again = rq_find(d, sector, e->blk.nr, true);

		if (again) {
			d->requeued++;
			(*again)->issued = e->time;
			return;
		}
		find_partition(s, d, e);
	}
	rq = sum_alloc(1, sizeof(*rq));
	rq->sector = sector;
	rq->nr = rq->total = e->blk.nr;
	rq->issued = e->time;
	rq->op = op;
	while (sector < end) {
		uint64_t upto;

		bio = bio_covering(d, sector, end, op, &at, &gap);
		if (!bio) {
			bio = bio_guess(s, e, sector, gap);
			bio->to_issue = 0;
			rq_part(rq, bio, gap - sector);
			sector = gap;
			continue;
		}
		upto = bio->sector + bio->nr < end ? bio->sector + bio->nr : end;
		/* of the same sectors twice (an error retried) only as much as the bio still has */
		if (upto - sector > bio->to_issue)
			upto = sector + bio->to_issue;
		bio->to_issue -= upto - sector;
		if (!bio->to_issue)
			bio_remove(d, at);
		rq_part(rq, bio, upto - sector);
		sector = upto;
	}
	if (d->nr_rqs >= MAX_IN_FLIGHT)
		rq_give_up(d, &d->rqs);
	*d->rqs_tail = rq;
	d->rqs_tail = &rq->next;
	d->nr_rqs++;
}

static void rq_insert(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = whole_of(disk_get(s, e->blk.dev));
	uint64_t end = e->blk.sector + e->blk.nr, gap;
	enum sum_op op = op_of(e->blk.rwbs, e->blk.nr);
	unsigned int at;

	d->has_requests = true;
	if (!e->blk.nr)
		return;
	if (bio_covering(d, e->blk.sector, end, op, &at, &gap) || gap != end)
		return;
	find_partition(s, d, e);
	if (bio_covering(d, e->blk.sector, end, op, &at, &gap) || gap != end || rq_find(d, e->blk.sector, e->blk.nr, true))
		return;
	bio_insert(d, bio_guess(s, e, e->blk.sector, end));
}

static void rq_complete(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = whole_of(disk_get(s, e->blk.dev));
	uint32_t left = e->blk.nr;
	struct sum_rq **link, *rq;

	d->has_requests = true;
	if (!left) {
		/* The flush request itself; those that asked for it complete after it and say nothing new. */
		if (e->blk.rwbs & SUM_RWBS_FLUSH)
			flush_complete(s, d, e);
		return;
	}
	link = rq_find(d, e->blk.sector, left, true);
	if (!link)
		link = rq_find(d, e->blk.sector, left, false);
	if (!link) {
		d->started_before++;
		return;
	}
	rq = *link;
	while (left) {
		struct sum_part *part = &rq->parts[rq->part];
		uint32_t nr = part->nr < left ? part->nr : left;
		struct sum_bio *bio = part->bio;

		bio->to_complete -= nr;
		bio->failed |= e->blk.error != 0;
		part->nr -= nr;
		if (!part->nr)
			rq->part++;
		left -= nr;
		if (!bio->to_complete)
			bio_done(s, d, bio, e->time);
	}
	rq->sector += e->blk.nr;
	rq->nr -= e->blk.nr;
	if (rq->nr)
		return;
	if (rq->wanted && sum_in_window(s, e->time)) {
		io_add(&d->io[rq->op], rq->total, e->blk.error);
		sum_hist_add(&d->io[rq->op].service, e->time - rq->issued);
	}
	rq_free(d, link);
}

void sum_block_event(struct summary *s, const struct sum_event *e)
{
	switch (e->kind) {
	case SUM_BIO_QUEUE:
		bio_queue(s, e);
		break;
	case SUM_BIO_COMPLETE:
		bio_complete(s, e);
		break;
	case SUM_RQ_INSERT:
		rq_insert(s, e);
		break;
	case SUM_RQ_ISSUE:
		rq_issue(s, e);
		break;
	case SUM_RQ_COMPLETE:
		rq_complete(s, e);
		break;
	case SUM_DUMP_DISK:
		name_event(s, e);
		break;
	default:
		break;
	}
}

/* ---------------------------------------------------------------- the end */

static void share_merge(struct summary *s, struct sum_share *from)
{
	struct sum_share *into = share_get(s, sum_proc_root(from->key.proc), whole_of(from->key.disk));

	for (int op = 0; op < SUM_NR_OPS; op++) {
		into->io[op].count += from->io[op].count;
		into->io[op].bytes += from->io[op].bytes;
		into->io[op].errors += from->io[op].errors;
		sum_hist_merge(&into->io[op].latency, &from->io[op].latency);
		sum_hist_clear(&from->io[op].latency);
	}
	into->guessed += from->guessed;
}

/* What never completed is counted; what threads of yet unknown processes did goes to these. */
void sum_block_finish(struct summary *s)
{
	struct sum_share *sh, *tmp;
	struct sum_disk *d, *dtmp;

	HASH_ITER(hh, s->disks, d, dtmp) {
		for (unsigned int i = 0; i < d->nr_bios; i++)
			bio_give_up(d, d->bios[i]);
		d->nr_bios = 0;
		while (d->rqs)
			rq_give_up(d, &d->rqs);
		for (unsigned int i = 0; i < d->nr_flushes; i++)
			free(d->flushes[i]);
		d->unfinished += d->nr_flushes;
		d->nr_flushes = 0;
	}
	HASH_ITER(hh, s->shares, sh, tmp) {
		if (sum_proc_root(sh->key.proc) == sh->key.proc && sh->key.disk->whole == sh->key.disk)
			continue;
		share_merge(s, sh);
		HASH_DEL(s->shares, sh);
		free(sh);
	}
}

static void io_clear(struct sum_io io[SUM_NR_OPS])
{
	for (int op = 0; op < SUM_NR_OPS; op++) {
		sum_hist_clear(&io[op].latency);
		sum_hist_clear(&io[op].service);
	}
}

void sum_block_free(struct summary *s)
{
	struct sum_share *sh, *tmp;
	struct sum_disk *d, *dtmp;

	sum_block_finish(s);
	HASH_ITER(hh, s->shares, sh, tmp) {
		HASH_DEL(s->shares, sh);
		io_clear(sh->io);
		free(sh);
	}
	HASH_ITER(hh, s->disks, d, dtmp) {
		HASH_DEL(s->disks, d);
		io_clear(d->io);
		free(d->bios);
		free(d->flushes);
		free(d);
	}
}
