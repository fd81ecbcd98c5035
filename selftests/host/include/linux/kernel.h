/* SPDX-License-Identifier: GPL-2.0-only */
/* Little helpers, for pure code of the module compiled in user space. */
#include <linux/types.h>
