// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider Linux-Kernel-Block: requests and bios on their way through the block layer, and by rundown all disks and partitions.
 * Knows no session but to hand it on.
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
	  .opcode = ETW_OPCODE_STOP, .ctf_name = "block_rq_complete", .description = "The driver has done a request, or a part of it",
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

/* What an operation is to a reader of the trace; the others, as those of a driver's own, are neither. */
static const u16 op_bits[] = {
	[REQ_OP_READ] = RWBS_READ,
	[REQ_OP_WRITE] = RWBS_WRITE,
	[REQ_OP_FLUSH] = RWBS_FLUSH,
	[REQ_OP_DISCARD] = RWBS_DISCARD,
	[REQ_OP_SECURE_ERASE] = RWBS_DISCARD | RWBS_SECURE,
	[REQ_OP_ZONE_APPEND] = RWBS_WRITE,
	[REQ_OP_WRITE_ZEROES] = RWBS_WRITE,
};

/* Bits are constant powers of two: a mask and a shift, one for both where the kernel's lie as far apart as ours. */
#define MOVE_BIT(flags, from, to)	(((flags) & (from)) / (from) * (to))
#define MOVE_BITS(flags, from1, to1, from2, to2)					\
	((from1) / (to1) == (from2) / (to2) && (from1) % (to1) == 0 ?			\
	 ((flags) / ((from1) / (to1))) & ((to1) | (to2)) :				\
	 MOVE_BIT(flags, from1, to1) | MOVE_BIT(flags, from2, to2))

static __always_inline u32 rwbs_of(blk_opf_t opf)
{
	u32 f = (__force u32)opf, op = f & REQ_OP_MASK;

	return (likely(op < ARRAY_SIZE(op_bits)) ? op_bits[op] : 0) | MOVE_BIT(f, (__force u32)REQ_RAHEAD, RWBS_RAHEAD) |
	       MOVE_BITS(f, (__force u32)REQ_SYNC, RWBS_SYNC, (__force u32)REQ_META, RWBS_META) |
	       MOVE_BITS(f, (__force u32)REQ_FUA, RWBS_FUA, (__force u32)REQ_PREFLUSH, RWBS_PREFLUSH);
}

/* major << 20 | minor, which is what a dev_t is inside the kernel. A queue of pass-through requests may have no disk. */
static __always_inline u32 dev_of(const struct request *rq)
{
	const struct gendisk *disk = rq->q->disk;

	return likely(disk) ? disk_devt((struct gendisk *)disk) : 0;
}

static __always_inline void write_rq(const struct etw_class *class, struct request *rq)
{
	struct block_rq_insert_record r __uninitialized;

	if (!etw_begin(class, NULL))
		return;
	r.dev = dev_of(rq);
	r.sector = blk_rq_trace_sector(rq);
	r.nr_sector = blk_rq_trace_nr_sectors(rq);
	r.bytes = blk_rq_bytes(rq);
	r.tid = current->pid;
	r.rwbs = rwbs_of(rq->cmd_flags);
	etw_copy_comm(r.comm, current);
	etw_end(class, &r, sizeof(r), NULL);
}

ETW_PROBE(block_rq_insert, struct request *rq)
{
	write_rq(&block_rq_insert_class, rq);
}

ETW_PROBE(block_rq_issue, struct request *rq)
{
	write_rq(&block_rq_issue_class, rq);
}

ETW_PROBE(block_rq_merge, struct request *rq)
{
	write_rq(&block_rq_merge_class, rq);
}

ETW_PROBE(block_rq_complete, struct request *rq, blk_status_t error, unsigned int nr_bytes)
{
	struct block_rq_complete_record r __uninitialized;

	if (!etw_begin(&block_rq_complete_class, NULL))
		return;
	r.dev = dev_of(rq);
	r.sector = blk_rq_pos(rq);
	r.nr_sector = nr_bytes >> SECTOR_SHIFT;
	r.error = unlikely(error) ? blk_status_to_errno(error) : 0;
	r.rwbs = rwbs_of(rq->cmd_flags);
	etw_end(&block_rq_complete_class, &r, sizeof(r), NULL);
}

ETW_PROBE(block_bio_queue, struct bio *bio)
{
	struct block_bio_queue_record r __uninitialized;

	if (!etw_begin(&block_bio_queue_class, NULL))
		return;
	r.dev = bio_dev(bio);
	r.sector = bio->bi_iter.bi_sector;
	r.nr_sector = bio_sectors(bio);
	r.rwbs = rwbs_of(bio->bi_opf);
	r.tid = current->pid;
	etw_copy_comm(r.comm, current);
	etw_end(&block_bio_queue_class, &r, sizeof(r), NULL);
}

ETW_PROBE(block_bio_complete, struct request_queue *q, struct bio *bio)
{
	struct block_bio_complete_record r __uninitialized;

	if (!etw_begin(&block_bio_complete_class, NULL))
		return;
	r.dev = bio_dev(bio);
	r.sector = bio->bi_iter.bi_sector;
	r.nr_sector = bio_sectors(bio);
	r.error = unlikely(bio->bi_status) ? blk_status_to_errno(bio->bi_status) : 0;
	r.rwbs = rwbs_of(bio->bi_opf);
	etw_end(&block_bio_complete_class, &r, sizeof(r), NULL);
}

/* How a disk is allocated, by type: one of the two is NULL. */
typedef struct gendisk *alloc_by_node(int node, struct lock_class_key *key);
typedef struct gendisk *alloc_by_limits(struct queue_limits *limits, int node, struct lock_class_key *key);
#define BY_NODE		__same_type(__blk_alloc_disk, alloc_by_node)
static alloc_by_node *const by_node = __builtin_choose_expr(BY_NODE, __blk_alloc_disk, NULL);
static alloc_by_limits *const by_limits = __builtin_choose_expr(BY_NODE, NULL, __blk_alloc_disk);

static struct gendisk *alloc_disk(void)
{
	static struct lock_class_key key;

	return by_node ? by_node(NUMA_NO_NODE, &key) : by_limits(NULL, NUMA_NO_NODE, &key);
}

/*
 * The class of all disks and partitions is not exported, and no device is sure to exist from which it could be read. But every disk
 * points to it from its allocation on, also one that is never added, and nobody sees such a disk. The class itself is never freed.
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
