/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library's memory, for pure code of the module compiled in user space. */
#include <stdlib.h>
