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
#include "summary_block.h"

#include <stdlib.h>
#include <string.h>

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

static void rq_give_up(struct summary *s, struct sum_disk *d, struct sum_rq **link)
{
	struct sum_rq *rq = *link;

	for (unsigned int i = rq->part; i < rq->nr_parts; i++) {
		struct sum_bio *bio = rq->parts[i].bio;

		bio->to_complete -= rq->parts[i].nr;
		if (!bio->to_complete)
			sum_bio_free(s, bio);
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

		if (sum_disk_may_be_part(other, d) && other->nr_bios &&
		    sum_bio_covering(other, e->blk.sector, e->blk.sector + e->blk.nr,
				     sum_block_op(e->blk.rwbs, e->blk.nr), &at, &gap))
			sum_disk_set_whole(s, other, d);
	}
}

/* A bio in place of the sectors of a request that no bio was seen for. */
static struct sum_bio *bio_guess(struct summary *s, const struct sum_event *e, uint64_t sector, uint64_t end)
{
	struct sum_event g = *e;

	g.blk.sector = sector;
	g.blk.nr = end - sector;
	return sum_bio_new(s, &g, e->blk.tid, true);
}

static void flush_issue(struct summary *s, struct sum_disk *d, const struct sum_event *e)
{
	d->flush_issued = e->time;
	if (!d->nr_flushes) {
		struct sum_disk *other, *tmp;

		HASH_ITER(hh, s->disks, other, tmp)
			if (sum_disk_may_be_part(other, d) && other->nr_flushes)
				sum_disk_set_whole(s, other, d);
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
		sum_io_add(&d->io[SUM_FLUSH], 0, e->blk.error);
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
		sum_bio_done(s, d, bio, e->time);
	}
	d->nr_flushes = kept;
}

static void rq_issue(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_whole(sum_disk_get(s, e->blk.dev));
	uint64_t sector = e->blk.sector, end = sector + e->blk.nr, gap;
	enum sum_op op = sum_block_op(e->blk.rwbs, e->blk.nr);
	struct sum_bio *bio;
	struct sum_rq *rq;
	unsigned int at;

	d->has_requests = true;
	if (!e->blk.nr) {
		if (op == SUM_FLUSH)
			flush_issue(s, d, e);
		return;		/* else a command passed through */
	}
	bio = sum_bio_covering(d, sector, end, op, &at, &gap);
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

		bio = sum_bio_covering(d, sector, end, op, &at, &gap);
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
			sum_bio_remove(d, at);
		rq_part(rq, bio, upto - sector);
		sector = upto;
	}
	if (d->nr_rqs >= MAX_IN_FLIGHT)
		rq_give_up(s, d, &d->rqs);
	*d->rqs_tail = rq;
	d->rqs_tail = &rq->next;
	d->nr_rqs++;
}

static void rq_insert(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_whole(sum_disk_get(s, e->blk.dev));
	uint64_t end = e->blk.sector + e->blk.nr, gap;
	enum sum_op op = sum_block_op(e->blk.rwbs, e->blk.nr);
	unsigned int at;

	d->has_requests = true;
	if (!e->blk.nr)
		return;
	if (sum_bio_covering(d, e->blk.sector, end, op, &at, &gap) || gap != end)
		return;
	find_partition(s, d, e);
	if (sum_bio_covering(d, e->blk.sector, end, op, &at, &gap) || gap != end || rq_find(d, e->blk.sector, e->blk.nr, true))
		return;
	sum_bio_insert(s, d, bio_guess(s, e, e->blk.sector, end));
}

static void rq_complete(struct summary *s, const struct sum_event *e)
{
	struct sum_disk *d = sum_disk_whole(sum_disk_get(s, e->blk.dev));
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
			sum_bio_done(s, d, bio, e->time);
	}
	rq->sector += e->blk.nr;
	rq->nr -= e->blk.nr;
	if (rq->nr)
		return;
	if (rq->wanted && sum_in_window(s, e->time)) {
		sum_io_add(&d->io[rq->op], rq->total, e->blk.error);
		sum_hist_add(&d->io[rq->op].service, e->time - rq->issued);
	}
	rq_free(d, link);
}

void sum_block_event(struct summary *s, const struct sum_event *e)
{
	switch (e->kind) {
	case SUM_BIO_QUEUE:
		sum_bio_queue(s, e);
		break;
	case SUM_BIO_COMPLETE:
		sum_bio_complete(s, e);
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
		sum_disk_name(s, e);
		break;
	default:
		break;
	}
}

/* ---------------------------------------------------------------- the end */

static void share_merge(struct summary *s, struct sum_share *from)
{
	struct sum_share *into = sum_share_get(s, sum_proc_root(from->key.proc), sum_disk_whole(from->key.disk));

	for (int op = 0; op < SUM_NR_OPS; op++) {
		into->io[op].count += from->io[op].count;
		into->io[op].bytes += from->io[op].bytes;
		into->io[op].errors += from->io[op].errors;
		sum_hist_merge(&into->io[op].latency, &from->io[op].latency);
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
			sum_bio_give_up(s, d, d->bios[i]);
		d->nr_bios = 0;
		while (d->rqs)
			rq_give_up(s, d, &d->rqs);
		for (unsigned int i = 0; i < d->nr_flushes; i++)
			sum_bio_free(s, d->flushes[i]);
		d->unfinished += d->nr_flushes;
		d->nr_flushes = 0;
	}
	HASH_ITER(hh, s->shares, sh, tmp) {
		if (sum_proc_root(sh->key.proc) == sh->key.proc && sh->key.disk->whole == sh->key.disk)
			continue;
		share_merge(s, sh);
		sum_share_free(s, sh);
	}
}

void sum_block_free(struct summary *s)
{
	struct sum_share *sh, *tmp;
	struct sum_disk *d, *dtmp;

	sum_block_finish(s);
	HASH_ITER(hh, s->shares, sh, tmp)
		sum_share_free(s, sh);
	HASH_ITER(hh, s->disks, d, dtmp) {
		HASH_DEL(s->disks, d);
		sum_io_clear(d->io);
		free(d->bios);
		free(d->flushes);
		free(d);
	}
}
