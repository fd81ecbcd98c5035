/* SPDX-License-Identifier: GPL-2.0-only */
/* ALIGN(), for pure code of the module compiled in user space. */
#define ALIGN(x, a) (((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
