/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The ends of stream files: what makes all CPUs' streams span the same time. It must not know sessions. */
#ifndef ETW_CLOSING_H
#define ETW_CLOSING_H

#include <stdbool.h>

#include <linux/types.h>

/*
 * One stream file, open for writing, whose packets are whole. @any: it has packets; then @first_begin and @last_end are
 * theirs. @next_seq, @discarded: for a packet behind them. @final_discarded: running count at the end of the trace.
 * @bytes grows by what is added.
 */
struct closing {
	const char *path;
	int fd;
	__u32 cpu;
	bool any;
	__u64 bytes;
	__u64 first_begin;
	__u64 last_end;
	__u64 next_seq;
	__u64 discarded;
	__u64 final_discarded;
};

/*
 * Let every stream begin when the first of them does (at @start if there is no packet at all) and end at @stop or the
 * last packet's end, which is returned in *stop: by setting the first packet's begin and by empty packets. Goes on
 * after an error and returns the first; *changes (may be NULL) counts.
 */
int etw_close_streams(struct closing *streams, unsigned int nr, const __u8 uuid[16], __u64 start, __u64 *stop,
		      unsigned int *changes);

#endif /* ETW_CLOSING_H */
