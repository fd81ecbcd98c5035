/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How code in a guest tells the plugin (plugin/stores.c) what it is about to do: by instructions that do nothing but have a number
 * in them. It knows neither side.
 */
#ifndef ETW_BENCH_MARKS_H
#define ETW_BENCH_MARKS_H

/* nopl NUMBER(%rax): three bytes, then the number. The numbers' upper half says that they are ours. */
#define MARK_OPCODE	{ 0x0f, 0x1f, 0x80 }
#define MARK_MAGIC	0x45540000u

/* Stores of this CPU belong to the path @n, of 1 to MARK_PATHS - 1, until the end. */
#define MARK_PATHS	16
#define MARK_PATH(n)	(n)
#define MARK_PATH_END	MARK_PATHS
/* From here on, all other stores of modules count as the surroundings of path @n; to the end. */
#define MARK_AROUND(n)	(2 * MARK_PATHS + (n))
#define MARK_AROUND_END	(2 * MARK_PATHS)

#define MARK(number)	__asm__ volatile("nopl %c0(%%rax)" : : "i" (MARK_MAGIC + (number)) : "memory")

#endif
