/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The control file, for session.c. It must not know sessions. */
#ifndef ETW_CONTROL_H
#define ETW_CONTROL_H

#include <etw/etw.h>

/* ioctl() that retries after a signal and returns a negative errno. */
int etw_ioctl(int fd, unsigned long command, void *arg);

/* Split provider text into the two ways the ABI takes it: a name, or a GUID. -EINVAL with a text. */
int etw_provider_text(const char *text, __u8 name[ETW_NAME_SIZE], __u8 guid[16]);

#endif /* ETW_CONTROL_H */
