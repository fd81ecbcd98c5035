/* SPDX-License-Identifier: GPL-2.0-only */
/* ETW's GUID of a provider's name. Pure; knows nothing else. */
#ifndef ETW_GUID_H
#define ETW_GUID_H

#include <linux/uuid.h>

/*
 * SHA-1 of a fixed namespace and the name in capitals as big-endian UTF-16, with the version bits of Microsoft's
 * EventSource (the hash that TraceLogging and LinuxTracepoints use). @name: ASCII, shorter than ETW_NAME_SIZE.
 */
void etw_guid_of_name(const char *name, uuid_t *guid);

#endif
