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

static int all_zero(const __u8 *p, size_t len)
{
	return len && !*p && !memcmp(p, p + 1, len - 1);
}

static void check(const struct scan_walk *walk, const struct packet *p, scan_report report, void *arg)
{
	const struct packet *before = &walk->before;
	const __u64 offset = walk->at;
	char text[160];

	if (p->cpu != walk->cpu) {
		snprintf(text, sizeof(text), "the packet says CPU %u, the file is that of CPU %u", p->cpu, walk->cpu);
		report(arg, offset, 0, text);
	}
	if (!walk->any)
		return;
	if (p->begin < before->end)
		report(arg, offset, 0, "the packet begins before the one before it has ended");
	if (p->seq <= before->seq)
		report(arg, offset, 0, "the packet's number does not follow that of the packet before");
	if (p->discarded < before->discarded)
		report(arg, offset, 0, "the packet's count of discarded events is below that of the packet before");
}

static void ignore(void *arg, __u64 offset, __u64 bytes, const char *what)
{
	(void)arg, (void)offset, (void)bytes, (void)what;
}

void etw_scan_begin(struct scan_walk *walk, const __u8 *bytes, size_t len, const __u8 *uuid, __u32 cpu, size_t at)
{
	*walk = (struct scan_walk){ .bytes = bytes, .len = len, .uuid = uuid, .cpu = cpu, .at = at };
}

bool etw_scan_next(struct scan_walk *walk, struct scan_packet *found, scan_report report, void *arg)
{
	const __u8 *bytes = walk->bytes, *uuid = walk->uuid;
	const size_t len = walk->len;
	char text[160];

	if (!report)
		report = ignore;
	while (walk->at < len) {
		const size_t at = walk->at;
		struct packet packet;
		const char *what = etw_packet_parse(bytes + at, len - at, uuid, &packet);
		size_t next;

		if (what && !(etw_packet_is_cut(what) && packet.size)) {
			next = next_header(bytes, len, at + 1, uuid);
			if (all_zero(bytes + at, next - at))
				what = "only zeros from here on: the data did not reach the disk";
			report(arg, at, next - at, what);
			walk->at = next;
			continue;
		}
		/* Is its size true? Then the file ends behind it, or the next packet begins. */
		next = at + packet.size;
		if (next > len ||
		    (next < len && etw_packet_parse(bytes + next, len - next, uuid, &(struct packet){ 0 }))) {
			size_t other = next_header(bytes, len, at + PACKET_HEADER_SIZE, uuid);

			if (other < next && other < len) {
				report(arg, at, 0, "the packet's size is wrong: another packet begins inside it");
				packet.size = other - at;
				if (packet.content > packet.size)
					packet.content = packet.size;
			} else if (next > len) {
				snprintf(text, sizeof(text),
					 "the file is cut off here: it ends %zu bytes into a packet of %u", len - at,
					 packet.size);
				report(arg, at, len - at, text);
				walk->at = len;
				return false;
			}
		}
		check(walk, &packet, report, arg);
		*found = (struct scan_packet){ .offset = at, .packet = packet };
		walk->at += packet.size;
		walk->any = true;
		walk->before = packet;
		return true;
	}
	return false;
}

static int add(struct scan *scan, const struct scan_packet *packet)
{
	if (scan->nr == scan->room) {
		size_t room = scan->room ? 2 * scan->room : 64;
		void *mem = realloc(scan->packets, room * sizeof(*scan->packets));

		if (!mem)
			return etw_error_errno(-ENOMEM, "index of packets");
		scan->packets = mem;
		scan->room = room;
	}
	scan->packets[scan->nr++] = *packet;
	return 0;
}

int etw_scan(const __u8 *bytes, size_t len, const __u8 uuid[16], __u32 cpu, scan_report report, void *arg,
	     struct scan *scan)
{
	struct scan_packet packet;
	struct scan_walk walk;

	memset(scan, 0, sizeof(*scan));
	etw_scan_begin(&walk, bytes, len, uuid, cpu, 0);
	while (etw_scan_next(&walk, &packet, report, arg))
		if (add(scan, &packet))
			return -ENOMEM;
	return 0;
}

void etw_scan_free(struct scan *scan)
{
	free(scan->packets);
	memset(scan, 0, sizeof(*scan));
}
