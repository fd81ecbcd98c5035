// SPDX-License-Identifier: GPL-2.0-only
/* Counts by user id. */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "objects.h"
#include "provider.h"
#include "user.h"

static LIST_HEAD(users);
static u32 all_registrations, all_classes;
static u64 all_class_bytes;

struct etw_user *etw_user_find(kuid_t uid)
{
	struct etw_user *user;

	lockdep_assert_held(&etw_control);
	list_for_each_entry(user, &users, node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

struct etw_user *etw_user_of(kuid_t uid)
{
	struct etw_user *user = etw_user_find(uid);

	if (user)
		return etw_user_get(user);
	user = etw_object_new(ETW_OBJECT_USER, kzalloc(sizeof(*user), ETW_GFP_USER));
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->uid = uid;
	user->refs = 1;
	list_add(&user->node, &users);
	return user;
}

struct etw_user *etw_user_get(struct etw_user *user)
{
	if (user)
		user->refs++;
	return user;
}

void etw_user_put(struct etw_user *user)
{
	lockdep_assert_held(&etw_control);
	if (!user || --user->refs)
		return;
	list_del(&user->node);
	etw_object_free(ETW_OBJECT_USER, user);
}

int etw_user_may_register(const struct etw_user *user)
{
	return user->nr_registrations >= ETW_USER_REGISTRATIONS || all_registrations >= ETW_ALL_REGISTRATIONS ? -EDQUOT : 0;
}

int etw_user_may_add_class(const struct etw_user *user, u32 bytes)
{
	if (user->class_bytes + bytes > ETW_USER_CLASS_BYTES || all_class_bytes + bytes > ETW_ALL_CLASS_BYTES)
		return -EDQUOT;
	return user->nr_classes >= ETW_USER_CLASSES || all_classes >= ETW_ALL_CLASSES ? -EDQUOT : 0;
}

void etw_user_charge_registration(struct etw_user *user, int nr)
{
	user->nr_registrations += nr;
	all_registrations += nr;
}

void etw_user_charge_class(struct etw_user *user, int nr, s64 bytes)
{
	user->class_bytes += bytes;
	all_class_bytes += bytes;
	user->nr_classes += nr;
	all_classes += nr;
}
