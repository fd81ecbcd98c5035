/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of relays: accounting against the module's limit, and the buffers' pages. Knows no positions. */
#ifndef ETW_RELAY_MEM_H
#define ETW_RELAY_MEM_H

#include "relay.h"

struct vm_area_struct;

/* Module parameter memory_limit_mb, in bytes; 0 in the parameter means a quarter of the machine's memory. */
u64 etw_memory_limit(void);
u64 etw_memory_used(void);

/* Insert all buffers, one after the other, into @vma, which has exactly their size. */
int etw_relay_map(struct etw_relay *relay, struct vm_area_struct *vma);

#endif
