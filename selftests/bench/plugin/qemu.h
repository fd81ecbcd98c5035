/* SPDX-License-Identifier: GPL-2.0-only */
/* Of QEMU's interface for plugins (its version 4: QEMU 9.2 and later) what stores.c uses; Debian does not package the header. */
#ifndef ETW_BENCH_QEMU_H
#define ETW_BENCH_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_API 4

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

enum { CB_NO_REGS = 0 };
enum { MEM_W = 2 };

typedef void (*tb_trans_fn)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*exec_fn)(unsigned int vcpu, void *data);
typedef void (*mem_fn)(unsigned int vcpu, uint32_t info, uint64_t address, void *data);
typedef void (*exit_fn)(uint64_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, tb_trans_fn fn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_fn fn, int flags, int which, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_fn fn, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

unsigned int qemu_plugin_mem_size_shift(uint32_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hwaddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hwaddr);

#endif
