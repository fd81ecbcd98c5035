/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two files about disk I/O share: summary_bio.c has disks and waiting bios, summary_block.c requests. */
#ifndef ETWCTL_SUMMARY_BLOCK_H
#define ETWCTL_SUMMARY_BLOCK_H

#include "summary_model.h"

/* More bios or requests than this waiting on one disk are leftovers of lost completions: the oldest are given up. */
#define MAX_WAITING 65536U
#define MAX_IN_FLIGHT 4096U

enum sum_op sum_block_op(uint32_t rwbs, uint32_t nr);

/* Disks and partitions: requests are the disk's, a bio's device may be a partition of it. */
struct sum_disk *sum_disk_get(struct summary *s, uint32_t dev);
void sum_disk_set_whole(struct summary *s, struct sum_disk *part, struct sum_disk *disk);
bool sum_disk_may_be_part(const struct sum_disk *part, const struct sum_disk *disk);
void sum_disk_name(struct summary *s, const struct sum_event *e);

struct sum_share *sum_share_get(struct summary *s, struct sum_proc *p, struct sum_disk *d);
void sum_io_clear(struct sum_io io[SUM_NR_OPS]);
void sum_io_add(struct sum_io *io, uint64_t sectors, bool failed);

/* Bios. One that is in no request yet is in its disk's list; sum_bio_done() counts and frees it. */
struct sum_bio *sum_bio_new(struct summary *s, const struct sum_event *e, int32_t tid, bool guessed);
void sum_bio_free(struct summary *s, struct sum_bio *bio);
void sum_bio_insert(struct summary *s, struct sum_disk *d, struct sum_bio *bio);
void sum_bio_remove(struct sum_disk *d, unsigned int i);
void sum_bio_give_up(struct summary *s, struct sum_disk *d, struct sum_bio *bio);
struct sum_bio *sum_bio_covering(struct sum_disk *d, uint64_t sector, uint64_t end, enum sum_op op, unsigned int *at,
				 uint64_t *gap);
void sum_bio_done(struct summary *s, struct sum_disk *d, struct sum_bio *bio, uint64_t time);
void sum_bio_queue(struct summary *s, const struct sum_event *e);
void sum_bio_complete(struct summary *s, const struct sum_event *e);

#endif
