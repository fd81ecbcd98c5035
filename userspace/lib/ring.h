/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The pieces of streams that circular mode keeps: names, and making one stream file of them. It must not know
 * sessions.
 */
#ifndef ETW_RING_H
#define ETW_RING_H

#include <linux/types.h>

struct ring_piece {
	__u32 cpu;
	__u64 number;
	char *path;
};

/* The pieces in DIR/ring by CPU and number, and how many; 0 if there is no ring. -errno. */
int etw_ring_list(const char *dir, struct ring_piece **pieces);
void etw_ring_free(struct ring_piece *pieces, int nr);

/* "DIR/ring/<cpu>.<number>"; NULL without memory. */
char *etw_ring_path(const char *dir, __u32 cpu, __u64 number);

/*
 * Append the packets of all pieces to kernel/chan_<cpu>, numbered from the stream's first packet on, and remove the
 * pieces one by one. It can be interrupted anywhere and called again: a packet that is there already is not appended
 * again. *moved (may be NULL): pieces used up.
 */
int etw_ring_assemble(const char *dir, const __u8 uuid[16], unsigned int *moved);

#endif /* ETW_RING_H */
