/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracers side by side in nanoseconds: see native.c. */
#ifndef ETW_BENCH_NATIVE_H
#define ETW_BENCH_NATIVE_H

#ifdef CONFIG_UML
/* Frees what the parameter native has left. */
void bench_native_exit(void);
#else
static inline void bench_native_exit(void)
{
}
#endif

#endif
