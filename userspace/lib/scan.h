/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The packets of one stream file, found in its bytes, whole or damaged. It must not know records. */
#ifndef ETW_SCAN_H
#define ETW_SCAN_H

#include <stddef.h>

#include "packet.h"

/* Every packet that can be used, in file order. @packet.size may be less than the header says, if that was wrong. */
struct scan_packet {
	__u64 offset;
	struct packet packet;
};

typedef void (*scan_report)(void *arg, __u64 offset, __u64 bytes, const char *what);

/* A way through the packets that keeps none of them: a file may have any number. */
struct scan_walk {
	const __u8 *bytes;
	size_t len;
	const __u8 *uuid;	/* [16] */
	__u32 cpu;		/* what the file's name says */
	size_t at;		/* where the next packet is looked for */
	bool any;		/* there was one before: */
	struct packet before;
};

/* @uuid stays the caller's. The packets at and behind offset @at, which is 0 or that of one. */
void etw_scan_begin(struct scan_walk *walk, const __u8 *bytes, size_t len, const __u8 *uuid, __u32 cpu, size_t at);
/* False: there is none any more. Damage is reported as it is met; @report may be NULL. */
bool etw_scan_next(struct scan_walk *walk, struct scan_packet *packet, scan_report report, void *arg);

/* All packets at once. */
struct scan {
	struct scan_packet *packets;
	size_t nr;
	size_t room;
};

/* -ENOMEM is the only error; damage is reported. */
int etw_scan(const __u8 *bytes, size_t len, const __u8 uuid[16], __u32 cpu, scan_report report, void *arg,
	     struct scan *scan);
void etw_scan_free(struct scan *scan);

#endif /* ETW_SCAN_H */
