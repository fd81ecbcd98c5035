/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A digest by which damage to a file is seen (not forgery). It must not know files. */
#ifndef ETW_DIGEST_H
#define ETW_DIGEST_H

#include <stddef.h>

#define DIGEST_TEXT_SIZE 41

void etw_digest(const void *bytes, size_t len, char text[DIGEST_TEXT_SIZE]);

#endif /* ETW_DIGEST_H */
