// SPDX-License-Identifier: GPL-2.0-only
/* The two directions of sized copying, and names. */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <linux/etw.h>

#include "filter.h"
#include "uarg.h"

int etw_uarg_size(void *to, size_t size, const void __user *from)
{
	u32 user_size;

	if (get_user(user_size, (const u32 __user *)from))
		return -EFAULT;
	if (user_size < size)
		return -EINVAL;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	*(u32 *)to = user_size;
	return 0;
}

int etw_uarg_get_grown(void *to, size_t size, size_t first, const void __user *from)
{
	u32 user_size;
	int err = etw_uarg_size(&user_size, first, from);

	if (!err)
		err = copy_struct_from_user(to, size, from, user_size);
	if (!err)
		*(u32 *)to = user_size;		/* the one that was checked, whatever is there now */
	return err;
}

int etw_uarg_get(void *to, size_t size, const void __user *from)
{
	return etw_uarg_get_grown(to, size, size, from);
}

int etw_uarg_put(void __user *to, void *from, size_t size)
{
	const u32 user_size = *(u32 *)from;	/* as it came in */
	size_t common = min_t(size_t, user_size, size);

	*(u32 *)from = size;
	if (copy_to_user(to, from, common))
		return -EFAULT;
	if (user_size > common && clear_user(to + common, user_size - common))
		return -EFAULT;
	return 0;
}

int etw_uarg_name(const u8 *name, bool empty)
{
	static const u8 none[ETW_NAME_SIZE];

	if (empty && !memcmp(name, none, sizeof(none)))
		return 0;
	return etw_name_valid(name, ETW_NAME_SIZE) ? 0 : -EINVAL;
}
