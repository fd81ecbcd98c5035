/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's relay interface as a tracer: see relay.c. */
#ifndef ETW_BENCH_RELAY_H
#define ETW_BENCH_RELAY_H

#ifdef CONFIG_RELAY
/* Ends what the parameter relay has started, if anything. */
void bench_relay_stop(void);
#else
static inline void bench_relay_stop(void)
{
}
#endif

#endif
