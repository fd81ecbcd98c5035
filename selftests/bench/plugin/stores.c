// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that lists which cache lines the guest's CPUs store to between two marks (marks.h), and by which instructions.
 * It knows no function's name, nor what may be shared: selftests/bench/stores judges.
 *
 *   -plugin FILE.so,out=FILE
 *
 * At QEMU's end FILE has, in hexadecimal, a line for each different
 *
 *   PATH CPU LINE PC STORES		LINE: physical address; PATH from 20 on: by modules, in the surroundings of path PATH - 20
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../marks.h"
#include "qemu.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_VCPUS 64
#define LINE_SHIFT 6
/* Where x86 puts modules, and the kernel itself. */
#define MODULES_FROM 0xffffffffc0000000u
#define KERNEL_FROM 0xffff800000000000u

struct entry {
	uint64_t line;
	uint64_t pc;
	uint64_t count;
	uint32_t path;		/* 0: the entry is free */
};

/* One writer each, so there is no lock. */
static struct vcpu {
	struct entry *entries;
	size_t size;		/* a power of two */
	size_t used;
	uint32_t path;		/* 0: outside of marks */
} __attribute__((aligned(128))) vcpus[MAX_VCPUS];

static volatile uint32_t around;	/* 0, or the path above whose surroundings this is */
static char *out;

static struct entry *find(struct vcpu *v, uint32_t path, uint64_t line, uint64_t pc)
{
	size_t i = (line * 0x9e3779b97f4a7c15u ^ pc * 0xff51afd7ed558ccdu ^ path * 0xc4ceb9fe1a85ec53u) >> 20;
	struct entry *e;

	for (;; i++) {
		e = &v->entries[i & (v->size - 1)];
		if (!e->path || (e->path == path && e->line == line && e->pc == pc))
			return e;
	}
}

static void grow(struct vcpu *v)
{
	struct entry *old = v->entries;
	const size_t size = v->size;

	v->size = size ? size * 2 : 1 << 12;
	v->entries = calloc(v->size, sizeof(*old));
	if (!v->entries) {
		fprintf(stderr, "stores: out of memory\n");
		abort();
	}
	for (size_t i = 0; i < size; i++)
		if (old[i].path)
			*find(v, old[i].path, old[i].line, old[i].pc) = old[i];
	free(old);
}

static void count(struct vcpu *v, uint32_t path, uint64_t line, uint64_t pc)
{
	struct entry *e;

	if (v->used * 2 >= v->size)
		grow(v);
	e = find(v, path, line, pc);
	if (!e->path) {
		*e = (struct entry){ line, pc, 0, path };
		v->used++;
	}
	e->count++;
}

static void on_store(unsigned int vcpu, uint32_t info, uint64_t address, void *data)
{
	struct vcpu *v = &vcpus[vcpu];
	const uint64_t pc = (uintptr_t)data, last = address + (1u << qemu_plugin_mem_size_shift(info)) - 1;
	const uint32_t path = v->path ? v->path : pc < MODULES_FROM ? 0 : around;
	struct qemu_plugin_hwaddr *hw;
	uint64_t physical;

	if (!path)
		return;
	hw = qemu_plugin_get_hwaddr(info, address);
	/* A device's register is no memory: each CPU has its own interrupt controller, all at one address. */
	if (!hw || qemu_plugin_hwaddr_is_io(hw))
		return;
	physical = qemu_plugin_hwaddr_phys_addr(hw);
	count(v, path, physical >> LINE_SHIFT, pc);
	if (address >> LINE_SHIFT != last >> LINE_SHIFT)
		count(v, path, (physical + (last - address)) >> LINE_SHIFT, pc);
}

static void on_mark(unsigned int vcpu, void *data)
{
	const uint32_t mark = (uintptr_t)data;

	if (mark < MARK_PATHS)
		vcpus[vcpu].path = mark;
	else if (mark == MARK_PATH_END)
		vcpus[vcpu].path = 0;
	else
		around = mark == MARK_AROUND_END ? 0 : mark;
}

/* The number in the instruction, 0 if it is no mark. */
static uint32_t mark_of(const struct qemu_plugin_insn *insn)
{
	static const uint8_t opcode[] = MARK_OPCODE;
	uint8_t bytes[sizeof(opcode) + 4];
	uint32_t number;

	if (qemu_plugin_insn_size(insn) != sizeof(bytes) || qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    memcmp(bytes, opcode, sizeof(opcode)))
		return 0;
	memcpy(&number, bytes + sizeof(opcode), sizeof(number));
	number -= MARK_MAGIC;
	return number < MARK_AROUND(MARK_PATHS) ? number : 0;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint64_t pc = qemu_plugin_insn_vaddr(insn);
		uint32_t mark;

		if (pc < KERNEL_FROM)
			continue;
		mark = mark_of(insn);
		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, CB_NO_REGS, (void *)(uintptr_t)mark);
		else
			qemu_plugin_register_vcpu_mem_cb(insn, on_store, CB_NO_REGS, MEM_W, (void *)(uintptr_t)pc);
	}
}

static void on_exit_of_qemu(uint64_t id, void *unused)
{
	FILE *f = fopen(out, "w");

	(void)id;
	(void)unused;
	if (!f) {
		perror(out);
		return;
	}
	for (unsigned int cpu = 0; cpu < MAX_VCPUS; cpu++)
		for (size_t i = 0; i < vcpus[cpu].size; i++) {
			const struct entry *e = &vcpus[cpu].entries[i];

			if (e->path)
				fprintf(f, "%x %x %lx %lx %lx\n", e->path, cpu, e->line << LINE_SHIFT, e->pc, e->count);
		}
	if (fclose(f))
		perror(out);
}

EXPORT int qemu_plugin_version = PLUGIN_API;

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	if (!out) {
		fprintf(stderr, "stores: out=FILE is missing\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
	return 0;
}
