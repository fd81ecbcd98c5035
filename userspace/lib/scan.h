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

struct scan {
	struct scan_packet *packets;
	size_t nr;
	size_t room;
};

typedef void (*scan_report)(void *arg, __u64 offset, __u64 bytes, const char *what);

/* -ENOMEM is the only error; damage is reported. @cpu: what the file's name says. */
int etw_scan(const __u8 *bytes, size_t len, const __u8 uuid[16], __u32 cpu, scan_report report, void *arg,
	     struct scan *scan);
void etw_scan_free(struct scan *scan);

#endif /* ETW_SCAN_H */
