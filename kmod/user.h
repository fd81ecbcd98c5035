/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who registers providers, and how many one user, and all that are not trusted together, may have. Knows neither providers nor
 * sessions.
 */
#ifndef ETW_USER_H
#define ETW_USER_H

#include <linux/types.h>
#include <linux/uidgid.h>

/* Of registrations and event classes; who can control sessions has no limit but memory. */
#define ETW_USER_REGISTRATIONS	256U
#define ETW_USER_CLASSES	8192U
#define ETW_ALL_REGISTRATIONS	4096U
#define ETW_ALL_CLASSES		32768U		/* leaves half of a session's table to the kernel and root */

/* One for each user id that has registered something. All calls under etw_control; NULL stands for kernel modules. */
struct etw_user {
	struct list_head node;
	kuid_t uid;
	u32 refs;
	u32 nr_registrations;		/* that are not trusted */
	u32 nr_classes;
	u64 class_bytes;
};

/* With a reference. ENOMEM. */
struct etw_user *etw_user_of(kuid_t uid);
/* Without one: NULL if this user has nothing. */
struct etw_user *etw_user_find(kuid_t uid);
struct etw_user *etw_user_get(struct etw_user *user);
void etw_user_put(struct etw_user *user);

/* May @user have another, of a class one that takes @bytes? EDQUOT. */
int etw_user_may_register(const struct etw_user *user);
int etw_user_may_add_class(const struct etw_user *user, u32 bytes);
void etw_user_charge_registration(struct etw_user *user, int nr);
/* @nr classes of @bytes in all, negative for those that go. */
void etw_user_charge_class(struct etw_user *user, int nr, s64 bytes);

#endif
