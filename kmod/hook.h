/* SPDX-License-Identifier: GPL-2.0-only */
/* Attaches a class's probe to its tracepoint. Knows classes and tracepoints only. */
#ifndef ETW_HOOK_H
#define ETW_HOOK_H

#include "class.h"

/* Look up the tracepoints of @nr classes by name; those missing get the reason in class->unavailable. */
void etw_hook_find(struct etw_class *const *classes, u32 nr);
/* Under etw_control, process context. A class without a tracepoint is always attached. */
int etw_hook_attach(struct etw_class *class);
/* The probe may still run until the next grace period. */
void etw_hook_detach(struct etw_class *class);
/*
 * After it no probe detached before is running, and no reader holds targets unpublished before. Process context, no
 * lock held.
 */
void etw_hook_synchronize(void);

#endif
