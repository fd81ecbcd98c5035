/* SPDX-License-Identifier: GPL-2.0-only */
/* The registry of providers. Knows no session. */
#ifndef ETW_PROVIDER_H
#define ETW_PROVIDER_H

#include <linux/mutex.h>

#include "class.h"

/*
 * Rank 1 of the locks: the registry, the list of sessions, and the targets and users of every class. After it come a
 * session's lock (2), the CPU hotplug lock (3) and a relay's lock (4); a session's direct lock comes before it. No lock
 * is held across a grace period or a copy to or from user space.
 */
extern struct mutex etw_control;

/* Give ids, find the tracepoints, make visible. EINVAL a class is malformed. */
int etw_provider_register(struct etw_provider *provider);
void etw_provider_unregister(struct etw_provider *provider);

/* Is @p the one, or one of those, that @name or alias, or if @name is "" @guid means? */
bool etw_provider_is(const struct etw_provider *p, const char *name, const uuid_t *guid);
/* The one such that is no user's. etw_control held. */
struct etw_provider *etw_provider_of_kernel(const char *name, const uuid_t *guid);
/* The first with an id above @id, or NULL. etw_control held. @user: NULL, or whose only. */
struct etw_provider *etw_provider_after(u64 id, const struct etw_user *user);
struct etw_class *etw_class_after(u64 id, const struct etw_user *user);
/* Every provider, those without a registration too; etw_control held. */
extern struct list_head etw_providers;

/*
 * Made providers and classes; etw_control held for all. An empty provider of @user (NULL: a kernel module's), or the one that
 * is there already. ENOMEM.
 */
struct etw_provider *etw_provider_make(const char *name, const uuid_t *guid, struct etw_user *user);
/* Frees @p if nothing holds it. */
void etw_provider_let_go(struct etw_provider *p);
/*
 * Adds @class to @p, which takes it over; or gives the one of the same content, and frees @class. Without a reference.
 * @charge: a new one counts for @p's user. ENOMEM, EDQUOT.
 */
struct etw_class *etw_provider_add(struct etw_provider *p, struct etw_class *class, bool charge);
/* References of a made class; nothing for others. */
void etw_class_get(struct etw_class *class);
void etw_class_put(struct etw_class *class);

#endif
