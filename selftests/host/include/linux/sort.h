/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library's sort under the kernel's name, for pure code of the module compiled in user space. */
#include <stdlib.h>
#define sort(base, num, size, cmp, swap) qsort(base, num, size, cmp)
