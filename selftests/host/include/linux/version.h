/* SPDX-License-Identifier: GPL-2.0-only */
/* The host tests' kernel is one of the newest. */
#define KERNEL_VERSION(a, b, c)	(((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE	KERNEL_VERSION(7, 3, 0)
