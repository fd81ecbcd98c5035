/* SPDX-License-Identifier: GPL-2.0-only */
/* uuid_t, for pure code of the module compiled in user space. */
#ifndef ETW_HOST_LINUX_UUID_H
#define ETW_HOST_LINUX_UUID_H
typedef struct {
	unsigned char b[16];
} uuid_t;
#endif
