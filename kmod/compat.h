/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels this module builds for: the only file with version tests. Knows nothing of the module. */
#ifndef ETW_COMPAT_H
#define ETW_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "etw needs Linux 6.1 or later"
#endif
#ifndef CONFIG_64BIT
#error "etw needs a 64-bit kernel"
#endif
#ifdef CONFIG_CPU_BIG_ENDIAN
#error "etw needs a little-endian kernel: its records are little-endian"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "etw needs CONFIG_TRACEPOINTS"
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define etw_hrtimer_setup(timer, function, clock, mode)	hrtimer_setup(timer, function, clock, mode)
#else
#define etw_hrtimer_setup(timer, callback, clock, mode)		\
	do {							\
		hrtimer_init(timer, clock, mode);		\
		(timer)->function = callback;			\
	} while (0)
#endif

#endif
