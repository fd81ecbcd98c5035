/* SPDX-License-Identifier: GPL-2.0-only */
/* See etw-host.h. */
#include <etw-host.h>
