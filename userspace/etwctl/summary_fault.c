// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page faults by process, kind of access and place. It must not know how they are shown.
 */
#include "summary_model.h"

/* Bits of the x86 page fault error code. */
#define PF_PRESENT	0x01
#define PF_WRITE	0x02
#define PF_EXEC		0x10

/*
 * The usual x86-64 layout with 47-bit addresses, from the top: the stack, at most 16 GiB below the end by randomisation
 * and as large as its limit (8 MiB by default, at most 128 MiB assumed here); the mmap area, growing down from a terabyte
 * of randomisation below it; position-independent programs from two thirds of the address space on, again within a
 * terabyte, the heap after them; other programs from 4 MiB on, with their heap, in the first 4 GiB.
 */
#define USER_END	0x7ffffffff000ULL
#define STACK_FROM	(USER_END - (16ULL << 30) - (128ULL << 20))
#define MMAP_FROM	0x700000000000ULL
#define PIE_FROM	0x555555554000ULL
#define PIE_TO		(PIE_FROM + (1ULL << 40) + (64ULL << 30))
#define IMAGE_TO	(4ULL << 30)
#define NULL_TO		(64ULL << 10)
#define KERNEL_FROM	0xff00000000000000ULL	/* with 5-level tables; user addresses end at 2^56 there */

enum sum_access sum_fault_access(uint32_t error_code)
{
	if (error_code & PF_EXEC)
		return SUM_EXEC_ACCESS;
	return error_code & PF_WRITE ? SUM_WRITE_ACCESS : SUM_READ_ACCESS;
}

enum sum_area sum_fault_area(uint64_t address, uint32_t error_code)
{
	if (address >= KERNEL_FROM)
		return SUM_AREA_KERNEL;
	if (error_code & PF_EXEC)
		return SUM_AREA_CODE;
	if (address < NULL_TO)
		return SUM_AREA_NULL;
	if (address >= STACK_FROM && address < USER_END)
		return SUM_AREA_STACK;
	if (address >= MMAP_FROM && address < STACK_FROM)
		return SUM_AREA_MAPPED;
	if ((address >= PIE_FROM && address < PIE_TO) || address < IMAGE_TO)
		return SUM_AREA_IMAGE;
	return SUM_AREA_OTHER;
}

static void count(struct sum_faults *f, const struct sum_event *e)
{
	enum sum_area area = sum_fault_area(e->fault.address, e->fault.error_code);

	/* A session that does not show kernel addresses has 0 for those, and for the instruction that faulted. */
	if (e->kind == SUM_FAULT_KERNEL && !e->fault.address && !e->fault.ip)
		area = SUM_AREA_HIDDEN;
	f->n[area][sum_fault_access(e->fault.error_code)]++;
	f->total++;
	f->by_kernel += e->kind == SUM_FAULT_KERNEL;
	f->protection += e->fault.error_code & PF_PRESENT;
}

void sum_fault_event(struct summary *s, const struct sum_event *e)
{
	struct sum_proc *p;

	if (!sum_in_window(s, e->time) || !sum_cpu_wanted(s, e->cpu))
		return;
	if (e->tid > 0) {
		struct sum_thread *t = sum_thread_get(s, e->tid);

		if (!t->wanted)
			return;
		p = t->proc;
	} else {
		if (s->filter.nr_pids || s->filter.nr_comms)
			return;
		p = s->idle;
	}
	if (!p->faults)
		p->faults = sum_alloc(1, sizeof(*p->faults));
	count(p->faults, e);
	count(&s->faults, e);
}
