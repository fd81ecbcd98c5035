// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The ends of stream files. Readers that look only at the time all streams have in common must not miss anything, so
 * every stream spans the whole trace. It must not know sessions.
 */
#include "closing.h"

#include <errno.h>
#include <unistd.h>

#include "error.h"
#include "packet.h"

static int close_one(struct closing *s, const __u8 uuid[16], __u64 begin, __u64 stop, unsigned int *changes)
{
	struct packet empty = {
		.begin = s->any ? s->last_end : begin, .end = stop, .seq = s->next_seq, .discarded = s->final_discarded,
		.cpu = s->cpu,
	};
	__u8 bytes[PACKET_EMPTY_SIZE];
	ssize_t n;

	if (s->any && s->first_begin > begin) {
		n = pwrite(s->fd, &begin, sizeof(begin), PACKET_BEGIN_AT);
		if (n != sizeof(begin))
			return etw_error_errno(n < 0 ? -errno : -EIO, "%s", s->path);
		++*changes;
	}
	if (s->any && s->last_end >= stop && s->final_discarded <= s->discarded)
		return 0;
	if (empty.discarded < s->discarded)
		empty.discarded = s->discarded;
	etw_packet_empty(bytes, uuid, &empty);
	n = pwrite(s->fd, bytes, sizeof(bytes), s->bytes);
	if (n != sizeof(bytes)) {
		int err = n < 0 ? -errno : -ENOSPC;

		if (ftruncate(s->fd, s->bytes))
			err = -errno;
		return etw_error_errno(err, "%s", s->path);
	}
	s->bytes += sizeof(bytes);
	++*changes;
	return 0;
}

int etw_close_streams(struct closing *streams, unsigned int nr, const __u8 uuid[16], __u64 start, __u64 *stop,
		      unsigned int *changes)
{
	unsigned int i, ignored = 0;
	__u64 begin = ~0ULL;
	int err = 0;

	for (i = 0; i < nr; i++) {
		if (!streams[i].any)
			continue;
		if (streams[i].first_begin < begin)
			begin = streams[i].first_begin;
		if (streams[i].last_end > *stop)
			*stop = streams[i].last_end;
	}
	if (begin == ~0ULL)
		begin = start < *stop ? start : *stop;
	for (i = 0; i < nr; i++) {
		int ret = close_one(&streams[i], uuid, begin, *stop, changes ? changes : &ignored);

		if (!err)
			err = ret;
	}
	return err;
}
