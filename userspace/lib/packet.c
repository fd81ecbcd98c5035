// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A packet's header and context: decode and check, make an empty one. It must not know records or files. */
#include "packet.h"

#include <string.h>

static const char cut_header[] = "the file ends inside a packet's header";
static const char cut_packet[] = "the file ends inside a packet";

bool etw_packet_is_cut(const char *what)
{
	return what == cut_header || what == cut_packet;
}

const char *etw_packet_parse(const void *p, size_t avail, const __u8 *uuid, struct packet *packet)
{
	struct etw_packet_header h;

	memset(packet, 0, sizeof(*packet));
	if (avail < sizeof(h.magic))
		return cut_header;
	memcpy(&h, p, avail < sizeof(h) ? avail : sizeof(h));
	if (h.magic != ETW_CTF_MAGIC)
		return "no packet begins here (wrong magic number)";
	if (avail < sizeof(h))
		return cut_header;
	if (uuid && memcmp(h.uuid, uuid, 16))
		return "the packet belongs to another trace (wrong uuid)";
	if (h.stream_id)
		return "the packet belongs to another stream class (its stream_id is not 0)";
	if (h.content_size % 8 || h.content_size < PACKET_HEADER_SIZE * 8)
		return "the packet's content_size is not possible";
	if (h.packet_size % 8 || h.packet_size < h.content_size || h.packet_size > PACKET_SIZE_MAX * 8ULL)
		return "the packet's packet_size is not possible";
	if (h.timestamp_end < h.timestamp_begin)
		return "the packet ends before it begins";
	packet->begin = h.timestamp_begin;
	packet->end = h.timestamp_end;
	packet->seq = h.packet_seq_num;
	packet->discarded = h.events_discarded;
	packet->content = h.content_size / 8;
	packet->size = h.packet_size / 8;
	packet->cpu = h.cpu_id;
	return packet->size > avail ? cut_packet : NULL;
}

void etw_packet_empty(__u8 out[PACKET_EMPTY_SIZE], const __u8 uuid[16], const struct packet *packet)
{
	struct etw_packet_header h = {
		.magic = ETW_CTF_MAGIC,
		.timestamp_begin = packet->begin,
		.timestamp_end = packet->end,
		.content_size = PACKET_HEADER_SIZE * 8,
		.packet_size = PACKET_EMPTY_SIZE * 8,
		.packet_seq_num = packet->seq,
		.events_discarded = packet->discarded,
		.cpu_id = packet->cpu,
	};

	memcpy(h.uuid, uuid, 16);
	memset(out, 0, PACKET_EMPTY_SIZE);
	memcpy(out, &h, sizeof(h));
}
