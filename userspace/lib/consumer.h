/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the consumer and its kinds of input (directory, followed directory, live session) share: inputs, cursors over
 * streams, reports. It must not know how any kind gets its packets.
 */
#ifndef ETW_CONSUMER_H
#define ETW_CONSUMER_H

#include <stdbool.h>

#include <etw/etw.h>

#include "facts.h"
#include "packet.h"
#include "ticks.h"

#define TIME_END (~0ULL)

struct input;
struct cursor;

/* One event class of an input. @cls belongs to the consumer. */
struct class_slot {
	const struct etw_class *cls;
	const __u32 *offsets;	/* if the payload's size is fixed */
	__u32 size;		/* of the payload, or ETW_SIZE_VARIES */
	bool wanted;
};

struct input_ops {
	/* The next packet into the cursor by cursor_set(): 1, 0 nothing now, or an error. */
	int (*load)(struct cursor *cursor);
	/*
	 * Learn of new packets, and set input->bound accordingly; 0 or an error. NULL: everything is there from the
	 * start.
	 */
	int (*refill)(struct input *input);
	/* A descriptor to wait on, -1 none; *max_ms: refill again after this at the latest. */
	int (*wait_fd)(struct input *input, int *max_ms);
	void (*facts)(struct input *input);	/* bring pub up to date; may be NULL */
	void (*free)(struct input *input);
};

/*
 * One trace being read. Times are ticks of the session's clock, @freq a second, but those of @pub nanoseconds. @bound:
 * every event below it can be had by load() now. @key_offset: what makes nanoseconds of the session's clock comparable
 * between inputs, and epoch time.
 */
struct input {
	const struct input_ops *ops;
	struct etw_consumer *consumer;
	__u32 number;
	struct etw_trace pub;
	struct facts facts;
	char *path;
	__s64 key_offset;
	__u64 freq;
	__u64 bound;
	struct class_slot *slots;
	__u32 nr_slots;
	__u32 room_slots;
	struct cursor **cursors;
	__u32 nr_cursors;
};

/* One stream being read. What loss is measured against: the last packet's numbers. */
struct cursor {
	struct input *input;
	__u32 cpu;
	const __u8 *packet;
	const __u8 *pos;
	const __u8 *end;
	__u64 packet_begin;
	__u64 packet_end;
	__u64 last;			/* time of the last record, as it decodes */
	__u64 floor;			/* time of the last event returned */
	__u64 file_offset;		/* of the packet */
	const char *file;
	bool time_damaged;		/* said so for this packet */
	bool ended;			/* nothing will come any more */
	__s64 key;
	bool in_heap;
	struct etw_event event;
	__u32 offsets[ETW_MAX_FIELDS + 1];
	bool counted;			/* there was a packet before */
	__u64 next_seq;
	__u64 discarded;
	__u64 packets_end;
	size_t last_loss;		/* index + 1 in the consumer's list */
};

static inline __u64 input_ns(const struct input *input, __u64 ticks)
{
	return ticks_ns(ticks, input->freq);
}

/* Fill in what all kinds need; on error the caller frees. */
int etw_input_add(struct etw_consumer *consumer, struct input *input);
/* Add a cursor; @cursor may be the first member of something larger, made with calloc. */
int etw_cursor_add(struct input *input, struct cursor *cursor, __u32 cpu);

/* Add classes (struct etw_schema entries) behind those that are there. How many, or -EBADMSG. */
int etw_input_classes(struct input *input, const void *entries, size_t len);

/* Account a packet: losses, counts in pub. */
int etw_cursor_packet(struct cursor *cursor, const struct packet *packet);
/* After this the next packet's numbers are not compared with those before. */
void etw_cursor_renumber(struct cursor *cursor);
/* Read from this packet next. */
void etw_cursor_set(struct cursor *cursor, const struct packet *packet, const __u8 *bytes, const char *file,
		    __u64 offset);

/* Report damage. @file is copied. @cpu ~0: no stream. */
__attribute__((format(printf, 6, 7))) int etw_consumer_damaged(struct input *input, __u32 cpu, const char *file,
							       __u64 offset, __u64 bytes, const char *fmt, ...);

bool etw_consumer_before(const struct etw_consumer *consumer, const struct input *input, __u64 end);

#endif /* ETW_CONSUMER_H */
