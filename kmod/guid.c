// SPDX-License-Identifier: GPL-2.0-only
/* A name's GUID, with a SHA-1 of its own: the kernel's is an option that not every kernel has, and differs between them. */
#include <linux/bitops.h>
#include <linux/ctype.h>
#include <linux/etw.h>
#include <linux/string.h>

#include "guid.h"

#define BLOCK 64

/* FIPS 180-4, 6.1.2. */
static void sha1_block(u32 h[5], const u8 *block)
{
	static const u32 k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	u32 w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	int t;

	for (t = 0; t < 16; t++)
		w[t] = (u32)block[4 * t] << 24 | block[4 * t + 1] << 16 | block[4 * t + 2] << 8 | block[4 * t + 3];
	for (; t < 80; t++)
		w[t] = rol32(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (t = 0; t < 80; t++) {
		const u32 f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
		const u32 next = rol32(a, 5) + f + e + k[t / 20] + w[t];

		e = d;
		d = c;
		c = rol32(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void etw_guid_of_name(const char *name, uuid_t *guid)
{
	static const u8 name_space[16] = { 0x48, 0x2c, 0x2d, 0xb2, 0xc3, 0x90, 0x47, 0xc8,
					   0x87, 0xf8, 0x1a, 0x15, 0xbf, 0xc1, 0x30, 0xfb };
	u32 h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	u8 text[3 * BLOCK] = {}, b[16];
	u32 i, n = 16, blocks;

	memcpy(text, name_space, sizeof(name_space));
	for (; *name && n < sizeof(name_space) + 2 * (ETW_NAME_SIZE - 1); name++) {
		text[n++] = 0;
		text[n++] = toupper(*name);
	}
	text[n] = 0x80;
	blocks = (n + 9 + BLOCK - 1) / BLOCK;
	text[blocks * BLOCK - 2] = n * 8 >> 8;
	text[blocks * BLOCK - 1] = n * 8;
	for (i = 0; i < blocks; i++)
		sha1_block(h, text + i * BLOCK);
	for (i = 0; i < 16; i++)
		b[i] = h[i / 4] >> (24 - i % 4 * 8);
	b[7] = (b[7] & 0x0f) | 0x50;
	/* the first three groups are little-endian numbers; ours are bytes in the order of the text */
	*guid = UUID_INIT(b[3] << 24 | b[2] << 16 | b[1] << 8 | b[0], b[5] << 8 | b[4], b[7] << 8 | b[6],
			  b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}
