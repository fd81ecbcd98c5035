/* SPDX-License-Identifier: GPL-2.0-only */
/* Sized structures to and from user space, as the head of the ABI header promises. Knows no object. */
#ifndef ETW_UARG_H
#define ETW_UARG_H

#include <linux/types.h>

/*
 * Copy in a structure that begins with its size. EFAULT; EINVAL shorter than @size; E2BIG an unknown tail that is not
 * zero, or over a page.
 */
int etw_uarg_get(void *to, size_t size, const void __user *from);
/* The same of a structure whose first version had @first bytes; what the caller does not have is zero. */
int etw_uarg_get_grown(void *to, size_t size, size_t first, const void __user *from);
/*
 * The size field alone, of a structure that is output only: what the caller has in the rest does not matter. EFAULT,
 * EINVAL, E2BIG.
 */
int etw_uarg_size(void *to, size_t size, const void __user *from);
/* Copy out @size bytes of @from, which begins with a size field; zero what the caller has beyond. EFAULT. */
int etw_uarg_put(void __user *to, void *from, size_t size);
/* A name of ETW_NAME_SIZE bytes: terminated, zero-padded, of the permitted characters; "" only if @empty. EINVAL. */
int etw_uarg_name(const u8 *name, bool empty);

#endif
