// SPDX-License-Identifier: GPL-2.0-only
/* The provider Linux-Kernel-Fault: page faults of user and kernel code. Knows no session. */
#include <linux/kernel.h>
#include <linux/ptrace.h>
#ifdef ETW_EXCEPTIONS_H
#include ETW_EXCEPTIONS_H
#define HAVE_PAGE_FAULTS	1
#else
#define HAVE_PAGE_FAULTS	0	/* an architecture without them: both are listed as unavailable */
#endif

#include "../event.h"
#include "providers.h"

#define KEYWORD_USER	BIT_ULL(0)
#define KEYWORD_KERNEL	BIT_ULL(1)

static const struct etw_keyword_name keywords[] = {
	{ KEYWORD_USER, "user" },
	{ KEYWORD_KERNEL, "kernel" },
};

/* The bits of the x86 error code. Without "protection" the page was not present. */
static const struct etw_value error_bits[] = {
	{ 0x01, "protection" },
	{ 0x02, "write" },
	{ 0x04, "user" },
	{ 0x08, "reserved" },
	{ 0x10, "fetch" },
	{ 0x20, "key" },
	{ 0x40, "shadow stack" },
};

static const struct etw_map errors = { ETW_MAP_FLAGS, ARRAY_SIZE(error_bits), error_bits };

#if HAVE_PAGE_FAULTS
#define HOOK(tp)	ETW_HOOK(tp)
ETW_DECLARE_PROBE(page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code);
ETW_DECLARE_PROBE(page_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error_code);
#else
#define HOOK(tp)	.tracepoint = #tp
#endif

#define PAGE_FAULT_USER(F)				\
	F(U64, address, HEX, NULL)			\
	F(U64, ip, HEX, NULL)				\
	F(U8, error_code, HEX, &errors)

ETW_EVENT(page_fault_user, PAGE_FAULT_USER, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_USER,
	  .ctf_name = "x86_exceptions_page_fault_user", .description = "User code touched a page it could not use at once",
	  HOOK(page_fault_user));

#define PAGE_FAULT_KERNEL(F)				\
	F(POINTER, address, HEX, NULL)			\
	F(POINTER, ip, HEX, NULL)			\
	F(U8, error_code, HEX, &errors)

ETW_EVENT(page_fault_kernel, PAGE_FAULT_KERNEL, .event_id = 2, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_KERNEL,
	  .ctf_name = "x86_exceptions_page_fault_kernel", .description = "Kernel code touched a page it could not use at once",
	  HOOK(page_fault_kernel));

#if HAVE_PAGE_FAULTS
static __always_inline void write_fault(const struct etw_targets *targets, unsigned long address, const struct pt_regs *regs,
					unsigned long error_code)
{
	struct page_fault_user_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, NULL))
		return;
	r.address = address;
	r.ip = instruction_pointer((struct pt_regs *)regs);
	r.error_code = error_code;
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(page_fault_user, NULL, TP_PROTO(unsigned long address, struct pt_regs *regs, unsigned long error_code),
	  TP_ARGS(address, regs, error_code))
{
	write_fault(targets, address, regs, error_code);
}

ETW_PROBE(page_fault_kernel, NULL, TP_PROTO(unsigned long address, struct pt_regs *regs, unsigned long error_code),
	  TP_ARGS(address, regs, error_code))
{
	write_fault(targets, address, regs, error_code);
}
#endif

static struct etw_class *const classes[] = { &page_fault_user_class, &page_fault_kernel_class };

struct etw_provider etw_provider_fault = {
	.guid = UUID_INIT(0x8f7bc4a1, 0x3cd5, 0x5a76, 0x8e, 0x37, 0x32, 0x65, 0xcd, 0x1f, 0xa3, 0x5e),
	.name = "Linux-Kernel-Fault",
	.alias = "fault",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = classes,
	.nr_classes = ARRAY_SIZE(classes),
};
