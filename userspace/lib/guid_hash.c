// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* ETW's hash of a provider name. Apart from guid.c, so that only who needs it links a SHA-1. Knows nothing else. */
#include <errno.h>

#include <sha1.h>

#include <etw/etw.h>

#include "error.h"

/* SHA-1 of a name space and the upper-case name as UTF-16BE, read as a GUID in Windows' memory order. */
int etw_guid_from_name(const char *name, __u8 guid[16])
{
	static const __u8 space[16] = {
		0x48, 0x2c, 0x2d, 0xb2, 0xc3, 0x90, 0x47, 0xc8, 0x87, 0xf8, 0x1a, 0x15, 0xbf, 0xc1, 0x30, 0xfb,
	};
	static const __u8 order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	__u8 digest[SHA1_DIGEST_LENGTH];
	SHA1_CTX ctx;
	const char *p;
	int i;

	if (!*name)
		return etw_error(-EINVAL, "a provider name must not be empty");
	SHA1Init(&ctx);
	SHA1Update(&ctx, space, sizeof(space));
	for (p = name; *p; p++) {
		__u8 unit[2] = { 0, (__u8)*p };

		/* Upper-casing differs between languages outside ASCII. */
		if ((unsigned char)*p >= 0x80)
			return etw_error(-EINVAL, "provider name \"%s\" is not ASCII: its GUID cannot be made from it",
					 name);
		if (*p >= 'a' && *p <= 'z')
			unit[1] = *p - 'a' + 'A';
		SHA1Update(&ctx, unit, 2);
	}
	SHA1Final(digest, &ctx);
	digest[7] = (digest[7] & 0x0f) | 0x50;
	for (i = 0; i < 16; i++)
		guid[i] = digest[order[i]];
	return 0;
}
