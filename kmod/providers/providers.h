/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel providers, one per file of this folder. Knows only their descriptions. */
#ifndef ETW_PROVIDERS_H
#define ETW_PROVIDERS_H

#include "../class.h"

extern struct etw_provider etw_provider_process;
extern struct etw_provider etw_provider_sched;
extern struct etw_provider etw_provider_block;
extern struct etw_provider etw_provider_fault;

#endif
