// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider Linux-Kernel-Block: requests and bios on their way through the block layer, and by rundown all disks
 * and partitions. Knows no session but to hand it on.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/device/class.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <trace/events/block.h>

#include "../event.h"
#include "providers.h"
#include "task.h"

#define KEYWORD_REQUEST	BIT_ULL(0)
#define KEYWORD_BIO	BIT_ULL(1)

static const struct etw_keyword_name keywords[] = {
	{ KEYWORD_REQUEST, "request" },
	{ KEYWORD_BIO, "bio" },
};

#define RWBS_WRITE	0x001U
#define RWBS_DISCARD	0x002U
#define RWBS_READ	0x004U
#define RWBS_RAHEAD	0x008U
#define RWBS_SYNC	0x020U
#define RWBS_META	0x040U
#define RWBS_SECURE	0x080U
#define RWBS_FLUSH	0x100U
#define RWBS_FUA	0x200U
#define RWBS_PREFLUSH	0x400U

static const struct etw_value rwbs_names[] = {
	{ RWBS_WRITE, "write" },
	{ RWBS_DISCARD, "discard" },
	{ RWBS_READ, "read" },
	{ RWBS_RAHEAD, "readahead" },
	{ 0x010, "barrier" },
	{ RWBS_SYNC, "sync" },
	{ RWBS_META, "meta" },
	{ RWBS_SECURE, "secure" },
	{ RWBS_FLUSH, "flush" },
	{ RWBS_FUA, "fua" },
	{ RWBS_PREFLUSH, "preflush" },
};

static const struct etw_map rwbs_map = { ETW_MAP_FLAGS, ARRAY_SIZE(rwbs_names), rwbs_names };

ETW_DECLARE_PROBE(block_rq_insert, struct request *rq);
ETW_DECLARE_PROBE(block_rq_issue, struct request *rq);
ETW_DECLARE_PROBE(block_rq_merge, struct request *rq);
ETW_DECLARE_PROBE(block_rq_complete, struct request *rq, blk_status_t error, unsigned int nr_bytes);
ETW_DECLARE_PROBE(block_bio_queue, struct bio *bio);
ETW_DECLARE_PROBE(block_bio_complete, struct request_queue *q, struct bio *bio);

#define BLOCK_RQ(F)					\
	F(U32, dev, DEV, NULL)				\
	F(U64, sector, DEFAULT, NULL)			\
	F(U32, nr_sector, DEFAULT, NULL)		\
	F(U32, bytes, DEFAULT, NULL)			\
	F(S32, tid, PID, NULL)				\
	F(U32, rwbs, HEX, &rwbs_map)			\
	F(COMM, comm, DEFAULT, NULL)

ETW_EVENT(block_rq_insert, BLOCK_RQ, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_REQUEST,
	  .ctf_name = "block_rq_insert", .description = "A request goes into the queue of its device's scheduler",
	  ETW_HOOK(block_rq_insert));
ETW_EVENT(block_rq_issue, BLOCK_RQ, .event_id = 2, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_REQUEST,
	  .opcode = ETW_OPCODE_START, .ctf_name = "block_rq_issue", .description = "A request goes to the driver",
	  ETW_HOOK(block_rq_issue));
ETW_EVENT(block_rq_merge, BLOCK_RQ, .event_id = 4, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_REQUEST,
	  .ctf_name = "block_rq_merge", .description = "A request in the queue is merged into its neighbour",
	  ETW_HOOK(block_rq_merge));

#define BLOCK_COMPLETE(F)				\
	F(U32, dev, DEV, NULL)				\
	F(U64, sector, DEFAULT, NULL)			\
	F(U32, nr_sector, DEFAULT, NULL)		\
	F(S32, error, ERRNO, NULL)			\
	F(U32, rwbs, HEX, &rwbs_map)

ETW_EVENT(block_rq_complete, BLOCK_COMPLETE, .event_id = 3, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_REQUEST,
	  .opcode = ETW_OPCODE_STOP, .ctf_name = "block_rq_complete",
	  .description = "The driver has done a request, or a part of it",
	  ETW_HOOK(block_rq_complete));

#define BLOCK_BIO(F)					\
	F(U32, dev, DEV, NULL)				\
	F(U64, sector, DEFAULT, NULL)			\
	F(U32, nr_sector, DEFAULT, NULL)		\
	F(U32, rwbs, HEX, &rwbs_map)			\
	F(S32, tid, PID, NULL)				\
	F(COMM, comm, DEFAULT, NULL)

ETW_EVENT(block_bio_queue, BLOCK_BIO, .event_id = 5, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_BIO,
	  .opcode = ETW_OPCODE_START, .ctf_name = "block_bio_queue",
	  .description = "A thread submits I/O; dev may be a partition, sector counts from the start of the disk",
	  ETW_HOOK(block_bio_queue));
ETW_EVENT(block_bio_complete, BLOCK_COMPLETE, .event_id = 6, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_BIO,
	  .opcode = ETW_OPCODE_STOP, .ctf_name = "block_bio_complete",
	  .description = "I/O is done by a driver that takes no requests; sector + nr_sector is where it ended",
	  ETW_HOOK(block_bio_complete));

#define NO_FIELDS(F)

ETW_EVENT(rundown_start, NO_FIELDS, .event_id = 7, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_START, .rundown = true,
	  .ctf_name = "lttng_statedump_start", .description = "Rundown of block devices begins");

#define BLOCK_DEVICE(F)					\
	F(U32, dev, DEV, NULL)				\
	F(STRING, diskname, DEFAULT, NULL)		\
	F(U32, disk, DEV, NULL)				\
	F(U64, start, DEFAULT, NULL)			\
	F(U64, nr_sectors, DEFAULT, NULL)

ETW_EVENT(block_device, BLOCK_DEVICE, .event_id = 8, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_DC_START, .rundown = true,
	  .ctf_name = "lttng_statedump_block_device",
	  .description = "A disk, or the part from start of the disk it names, in sectors of 512 bytes");

ETW_EVENT(rundown_end, NO_FIELDS, .event_id = 9, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_STOP, .rundown = true,
	  .ctf_name = "lttng_statedump_end", .description = "Rundown of block devices is complete");

/*
 * What an operation is to a reader of the trace; those not named are neither read nor write. Of all there can be: no
 * bound to test.
 */
#define OP_MASK		((__force u32)REQ_OP_MASK)
static const u16 op_bits[OP_MASK + 1] = {
	[REQ_OP_READ] = RWBS_READ,
	[REQ_OP_WRITE] = RWBS_WRITE,
	[REQ_OP_FLUSH] = RWBS_FLUSH,
	[REQ_OP_DISCARD] = RWBS_DISCARD,
	[REQ_OP_SECURE_ERASE] = RWBS_DISCARD | RWBS_SECURE,
	[REQ_OP_ZONE_APPEND] = RWBS_WRITE,
	[REQ_OP_WRITE_ZEROES] = RWBS_WRITE,
};

/* Bits are constant powers of two, so this is a mask and a shift. */
#define MOVE_BIT(flags, from, to)	(((flags) & (__force u32)(from)) / (__force u32)(from) * (to))

/* Flags that few requests have, and the bit that only a driver's own operations have. */
#define DRIVER_BIT	32
#define UNUSUAL		((__force u32)(REQ_RAHEAD | REQ_META | REQ_FUA | REQ_PREFLUSH) | DRIVER_BIT)
static_assert(((__force u32)REQ_OP_DRV_IN & DRIVER_BIT) && ((__force u32)REQ_OP_DRV_OUT & DRIVER_BIT) &&
	      (__force u32)REQ_OP_ZONE_RESET_ALL < DRIVER_BIT);

static __always_inline u32 usual_rwbs(u32 opf)
{
	return op_bits[opf & OP_MASK] | MOVE_BIT(opf, REQ_SYNC, RWBS_SYNC);
}

static noinline notrace u32 unusual_rwbs(u32 opf)
{
	return usual_rwbs(opf) | MOVE_BIT(opf, REQ_RAHEAD, RWBS_RAHEAD) | MOVE_BIT(opf, REQ_META, RWBS_META) |
	       MOVE_BIT(opf, REQ_FUA, RWBS_FUA) | MOVE_BIT(opf, REQ_PREFLUSH, RWBS_PREFLUSH);
}

static __always_inline u32 rwbs_of(u32 opf)
{
	return likely(!(opf & UNUSUAL)) ? usual_rwbs(opf) : unusual_rwbs(opf);
}

/* major << 20 | minor, which is what a dev_t is inside the kernel. */
static __always_inline u32 dev_of(const struct request *rq)
{
	return disk_devt(rq->q->disk);
}

/* A queue of a driver's own requests may have no disk. */
static noinline notrace u32 dev_of_unusual(const struct request *rq)
{
	return rq->q->disk ? dev_of(rq) : 0;
}

static noinline notrace void unusual_rq(struct block_rq_insert_record *r, struct request *rq)
{
	r->rwbs = unusual_rwbs((__force u32)rq->cmd_flags);
	r->dev = dev_of_unusual(rq);
	r->sector = blk_rq_trace_sector(rq);
	r->nr_sector = blk_rq_trace_nr_sectors(rq);
}

static __always_inline void write_rq(const struct etw_targets *targets, struct request *rq)
{
	struct block_rq_insert_record r __uninitialized;
	struct etw_event event __uninitialized;
	u32 opf;

	if (!etw_begin(&event, targets, NULL))
		return;
	opf = (__force u32)rq->cmd_flags;
	r.bytes = blk_rq_bytes(rq);
	r.tid = current->pid;
	etw_copy_comm(r.comm, current);
	/* a flush without data has no place, and says so by ~0 */
	if (unlikely(opf & UNUSUAL) || unlikely(!r.bytes)) {
		unusual_rq(&r, rq);
	} else {
		r.rwbs = usual_rwbs(opf);
		r.dev = dev_of(rq);
		r.sector = blk_rq_pos(rq);
		r.nr_sector = r.bytes >> SECTOR_SHIFT;
	}
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(block_rq_insert, NULL, TP_PROTO(struct request *rq),
	  TP_ARGS(rq))
{
	write_rq(targets, rq);
}

ETW_PROBE(block_rq_issue, NULL, TP_PROTO(struct request *rq),
	  TP_ARGS(rq))
{
	write_rq(targets, rq);
}

ETW_PROBE(block_rq_merge, NULL, TP_PROTO(struct request *rq),
	  TP_ARGS(rq))
{
	write_rq(targets, rq);
}

ETW_PROBE(block_rq_complete, NULL, TP_PROTO(struct request *rq, blk_status_t error, unsigned int nr_bytes),
	  TP_ARGS(rq, error, nr_bytes))
{
	struct block_rq_complete_record r __uninitialized;
	struct etw_event event __uninitialized;
	u32 opf;

	if (!etw_begin(&event, targets, NULL))
		return;
	opf = (__force u32)rq->cmd_flags;
	r.rwbs = rwbs_of(opf);
	r.dev = likely(!(opf & DRIVER_BIT)) ? dev_of(rq) : dev_of_unusual(rq);
	r.sector = blk_rq_pos(rq);
	r.nr_sector = nr_bytes >> SECTOR_SHIFT;
	r.error = unlikely(error) ? blk_status_to_errno(error) : 0;
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(block_bio_queue, NULL, TP_PROTO(struct bio *bio),
	  TP_ARGS(bio))
{
	struct block_bio_queue_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, NULL))
		return;
	r.dev = bio_dev(bio);
	r.sector = bio->bi_iter.bi_sector;
	r.nr_sector = bio_sectors(bio);
	r.rwbs = rwbs_of((__force u32)bio->bi_opf);
	r.tid = current->pid;
	etw_copy_comm(r.comm, current);
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(block_bio_complete, NULL, TP_PROTO(struct request_queue *q, struct bio *bio),
	  TP_ARGS(q, bio))
{
	struct block_bio_complete_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, NULL))
		return;
	r.dev = bio_dev(bio);
	r.sector = bio->bi_iter.bi_sector;
	r.nr_sector = bio_sectors(bio);
	r.error = unlikely(bio->bi_status) ? blk_status_to_errno(bio->bi_status) : 0;
	r.rwbs = rwbs_of((__force u32)bio->bi_opf);
	etw_end(&event, &r, sizeof(r));
}

/* How a disk is allocated, by type: one of the two is NULL. */
#define BY_NODE		__same_type(__blk_alloc_disk, struct gendisk *(int, struct lock_class_key *))
static struct gendisk *(*const by_node)(int, struct lock_class_key *) =
	__builtin_choose_expr(BY_NODE, __blk_alloc_disk, NULL);
static struct gendisk *(*const by_limits)(struct queue_limits *, int, struct lock_class_key *) =
	__builtin_choose_expr(BY_NODE, NULL, __blk_alloc_disk);

static struct gendisk *alloc_disk(void)
{
	static struct lock_class_key key;

	return by_node ? by_node(NUMA_NO_NODE, &key) : by_limits(NULL, NUMA_NO_NODE, &key);
}

/*
 * The class of all disks and partitions is not exported, and no device is sure to exist from which it could be read.
 * But every disk points to it from its allocation on, also one that is never added, and nobody sees such a disk. The
 * class itself is never freed.
 */
static const struct class *class_of_disks(void)
{
	static const struct class *class;

	if (!READ_ONCE(class)) {
		struct gendisk *disk = alloc_disk();

		if (IS_ERR_OR_NULL(disk))
			return NULL;
		WRITE_ONCE(class, disk_to_dev(disk)->class);
		put_disk(disk);
	}
	return class;
}

static void write_device(struct etw_session *session, struct device *dev)
{
	struct block_device *bdev = dev_to_bdev(dev);
	struct gendisk *disk = bdev->bd_disk;
	struct block_device_record r = {
		.dev = bdev == disk->part0 ? disk_devt(disk) : dev->devt,
		.disk = disk_devt(disk),
		.start = bdev->bd_start_sect,
		.nr_sectors = bdev_nr_sectors(bdev),
	};
	char name[DISK_NAME_LEN + 8];

	/* The device model writes '!' where the name has a slash. */
	strscpy(name, dev_name(dev), sizeof(name));
	strreplace(name, '!', '/');
	etw_write_direct(session, &block_device_class, current->pid, current->tgid, (const struct etw_vec[]) {
		{ &r, offsetof(struct block_device_record, disk) },
		{ name, strlen(name) + 1 },
		{ &r.disk, sizeof(r) - offsetof(struct block_device_record, disk) },
	}, 3);
}

static int rundown(struct etw_session *session)
{
	const struct class *class = class_of_disks();
	struct class_dev_iter iter;
	struct device *dev;
	int ret = 0;

	if (!class)
		return -ENOMEM;
	etw_write_direct(session, &rundown_start_class, current->pid, current->tgid, NULL, 0);
	/* The iterator holds the device it stands on, so it may sleep in between. */
	class_dev_iter_init(&iter, (struct class *)class, NULL, NULL);
	while (!ret && (dev = class_dev_iter_next(&iter))) {
		if (etw_rundown_interrupted(session))
			ret = -EINTR;
		else
			write_device(session, dev);
	}
	class_dev_iter_exit(&iter);
	if (!ret)
		etw_write_direct(session, &rundown_end_class, current->pid, current->tgid, NULL, 0);
	return ret;
}

static struct etw_class *const classes[] = {
	&block_rq_insert_class, &block_rq_issue_class, &block_rq_complete_class, &block_rq_merge_class,
	&block_bio_queue_class, &block_bio_complete_class, &rundown_start_class, &block_device_class, &rundown_end_class,
};

struct etw_provider etw_provider_block = {
	.guid = UUID_INIT(0x386fa7ff, 0xbc52, 0x5e77, 0x71, 0x11, 0xe4, 0x74, 0x5e, 0x29, 0x97, 0xa1),
	.name = "Linux-Kernel-Block",
	.alias = "block",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = classes,
	.nr_classes = ARRAY_SIZE(classes),
	.rundown = rundown,
};
