/* SPDX-License-Identifier: GPL-2.0-only */
/* User memory on the host: the test's own, up to an end that it sets. */
#ifndef ETW_HOST_LINUX_UACCESS_H
#define ETW_HOST_LINUX_UACCESS_H

#include <etw-host.h>

/* The byte from which on there is nothing. One source file at a time: the test sets it for all by a common symbol. */
extern const u8 *etw_host_user_end;
const u8 *etw_host_user_end __attribute__((weak));

static inline size_t etw_host_user_there(const void *p, size_t n)
{
	const u8 *at = p;

	if (!at || at >= etw_host_user_end)
		return 0;
	return n < (size_t)(etw_host_user_end - at) ? n : (size_t)(etw_host_user_end - at);
}

/* As the kernel's: the bytes that were not copied. */
static inline size_t copy_to_user(void *to, const void *from, size_t n)
{
	size_t there = etw_host_user_there(to, n);

	if (there)
		memcpy(to, from, there);
	return n - there;
}

static inline size_t copy_from_user(void *to, const void *from, size_t n)
{
	size_t there = etw_host_user_there(from, n);

	if (there)
		memcpy(to, from, there);
	memset((char *)to + there, 0, n - there);
	return n - there;
}

static inline size_t clear_user(void *to, size_t n)
{
	size_t there = etw_host_user_there(to, n);

	if (there)
		memset(to, 0, there);
	return n - there;
}

#define get_user(x, p)	(copy_from_user(&(x), p, sizeof(x)) ? -EFAULT : 0)

static inline int copy_struct_from_user(void *to, size_t size, const void *from, size_t user_size)
{
	const u8 *rest = (const u8 *)from + size;
	size_t i;

	for (i = 0; i + size < user_size; i++) {
		if (!etw_host_user_there(rest + i, 1))
			return -EFAULT;
		if (rest[i])
			return -E2BIG;
	}
	if (user_size < size)
		memset((char *)to + user_size, 0, size - user_size);
	return copy_from_user(to, from, user_size < size ? user_size : size) ? -EFAULT : 0;
}

#endif
