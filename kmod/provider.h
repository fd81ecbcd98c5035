/* SPDX-License-Identifier: GPL-2.0-only */
/* The registry of providers. Knows no session. */
#ifndef ETW_PROVIDER_H
#define ETW_PROVIDER_H

#include <linux/mutex.h>

#include "class.h"

/*
 * Rank 1 of the locks: the registry, the list of sessions, and the targets and users of every class. After it come a
 * session's lock (2), the CPU hotplug lock (3) and a relay's lock (4). No lock is held across a grace period or a
 * copy to or from user space.
 */
extern struct mutex etw_control;

/* Give ids, find the tracepoints, make visible. EINVAL a class is malformed. */
int etw_provider_register(struct etw_provider *provider);
void etw_provider_unregister(struct etw_provider *provider);

/* By name or alias, or if @name is "" by GUID. etw_control held. */
struct etw_provider *etw_provider_find(const char *name, const uuid_t *guid);
/* The first with an id above @id, or NULL. etw_control held. */
struct etw_provider *etw_provider_after(u64 id);
struct etw_class *etw_class_after(u64 id);

#endif
