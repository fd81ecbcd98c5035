// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A digest by which damage to a file is seen (not forgery). It must not know files. */
#include "digest.h"

#include <stdint.h>
#include <sys/types.h>

#include <sha1.h>

void etw_digest(const void *bytes, size_t len, char text[DIGEST_TEXT_SIZE])
{
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, bytes, len);
	SHA1End(&ctx, text);
}
