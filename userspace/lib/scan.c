// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The packets of one stream file, found in its bytes. A packet says where the next begins; where that does not hold,
 * the next magic number with the right uuid does. It must not know records.
 */
#include "scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

/* The next offset from @at on where a header of this trace is, or @len. */
static size_t next_header(const __u8 *bytes, size_t len, size_t at, const __u8 uuid[16])
{
	static const __u8 magic[4] = { 0xc1, 0x1f, 0xfc, 0xc1 };
	struct packet packet;

	while (at < len) {
		const __u8 *p = memmem(bytes + at, len - at, magic, sizeof(magic));
		const char *what;

		if (!p)
			return len;
		at = p - bytes;
		what = etw_packet_parse(p, len - at, uuid, &packet);
		if (!what || (etw_packet_is_cut(what) && packet.size))
			return at;
		at++;
	}
	return len;
}

static int add(struct scan *scan, __u64 offset, const struct packet *packet)
{
	if (scan->nr == scan->room) {
		size_t room = scan->room ? 2 * scan->room : 64;
		void *mem = realloc(scan->packets, room * sizeof(*scan->packets));

		if (!mem)
			return etw_error_errno(-ENOMEM, "index of packets");
		scan->packets = mem;
		scan->room = room;
	}
	scan->packets[scan->nr].offset = offset;
	scan->packets[scan->nr++].packet = *packet;
	return 0;
}

static int all_zero(const __u8 *p, size_t len)
{
	return len && !*p && !memcmp(p, p + 1, len - 1);
}

static void check(const struct scan *scan, const struct packet *p, __u64 offset, __u32 cpu, scan_report report,
		  void *arg)
{
	const struct packet *before = scan->nr ? &scan->packets[scan->nr - 1].packet : NULL;
	char text[160];

	if (p->cpu != cpu) {
		snprintf(text, sizeof(text), "the packet says CPU %u, the file is that of CPU %u", p->cpu, cpu);
		report(arg, offset, 0, text);
	}
	if (!before)
		return;
	if (p->begin < before->end)
		report(arg, offset, 0, "the packet begins before the one before it has ended");
	if (p->seq <= before->seq)
		report(arg, offset, 0, "the packet's number does not follow that of the packet before");
	if (p->discarded < before->discarded)
		report(arg, offset, 0, "the packet's count of discarded events is below that of the packet before");
}

int etw_scan(const __u8 *bytes, size_t len, const __u8 uuid[16], __u32 cpu, scan_report report, void *arg,
	     struct scan *scan)
{
	size_t at = 0, next;
	char text[160];

	memset(scan, 0, sizeof(*scan));
	while (at < len) {
		struct packet packet;
		const char *what = etw_packet_parse(bytes + at, len - at, uuid, &packet);

		if (what && !(etw_packet_is_cut(what) && packet.size)) {
			next = next_header(bytes, len, at + 1, uuid);
			if (all_zero(bytes + at, next - at))
				what = "only zeros from here on: the data did not reach the disk";
			report(arg, at, next - at, what);
			at = next;
			continue;
		}
		/* Is its size true? Then the file ends behind it, or the next packet begins. */
		next = at + packet.size;
		if (next > len ||
		    (next < len && etw_packet_parse(bytes + next, len - next, uuid, &(struct packet){ 0 }))) {
			size_t found = next_header(bytes, len, at + PACKET_HEADER_SIZE, uuid);

			if (found < next && found < len) {
				report(arg, at, 0, "the packet's size is wrong: another packet begins inside it");
				packet.size = found - at;
				if (packet.content > packet.size)
					packet.content = packet.size;
			} else if (next > len) {
				snprintf(text, sizeof(text),
					 "the file is cut off here: it ends %zu bytes into a packet of %u", len - at,
					 packet.size);
				report(arg, at, len - at, text);
				return 0;
			}
		}
		check(scan, &packet, at, cpu, report, arg);
		if (add(scan, at, &packet))
			return -ENOMEM;
		at += packet.size;
	}
	return 0;
}

void etw_scan_free(struct scan *scan)
{
	free(scan->packets);
	memset(scan, 0, sizeof(*scan));
}
