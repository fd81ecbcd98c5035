/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A packet's header and context: decode and check, make an empty one. It must not know records or files. */
#ifndef ETW_PACKET_H
#define ETW_PACKET_H

#include <stdbool.h>

#include <etw/etw.h>

#define PACKET_HEADER_SIZE 76U		/* header 24, context 52 */
#define PACKET_EMPTY_SIZE  80U		/* rounded up to 8 */
#define PACKET_SIZE_MAX	   (64U << 20)	/* bytes; ours are at most ETW_SUBBUF_SIZE_MAX */

/* Where the fields that a writer changes are. */
#define PACKET_BEGIN_AT	    24U
#define PACKET_SEQ_AT	    56U		/* packet_seq_num, then events_discarded */

struct packet {
	__u64 begin;
	__u64 end;
	__u64 seq;
	__u64 discarded;
	__u32 content;		/* bytes, header included */
	__u32 size;		/* bytes */
	__u32 cpu;
};

/*
 * Decode the header at @p with @avail bytes behind it. @uuid NULL: any. Returns NULL, or what is wrong (one phrase);
 * then *packet is valid only if the result is packet_is_cut().
 */
const char *etw_packet_parse(const void *p, size_t avail, const __u8 *uuid, struct packet *packet);

/* 1 if this result means that the packet would be good but its bytes end too early. */
bool etw_packet_is_cut(const char *what);

/* An empty packet of PACKET_EMPTY_SIZE bytes. Uses begin, end, seq, discarded and cpu. */
void etw_packet_empty(__u8 out[PACKET_EMPTY_SIZE], const __u8 uuid[16], const struct packet *packet);

#endif /* ETW_PACKET_H */
