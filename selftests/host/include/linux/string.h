/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library's strings, for pure code of the module compiled in user space. */
#include <string.h>
