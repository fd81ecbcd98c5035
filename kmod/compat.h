/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels this module builds for: the only file with version tests. Knows nothing of the
 * module.
 */
#ifndef ETW_COMPAT_H
#define ETW_COMPAT_H

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/version.h>
#include <asm/local64.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "etw needs Linux 6.1 or later"
#endif
#ifndef CONFIG_64BIT
#error "etw needs a 64-bit kernel"
#endif
#ifdef CONFIG_CPU_BIG_ENDIAN
#error "etw needs a little-endian kernel: its records are little-endian"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "etw needs CONFIG_TRACEPOINTS"
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/*
 * Up to 6.12 a tracepoint pauses preemption around its probes; from 7.0 on, and for some before, it does not. The other
 * pair is what a tracepoint does, for probes that are called without one.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define etw_probe_preempt_disable()		preempt_disable_notrace()
#define etw_probe_preempt_enable()		preempt_enable_notrace()
#define etw_tracepoint_preempt_disable()	do { } while (0)
#define etw_tracepoint_preempt_enable()		do { } while (0)
#else
#define etw_probe_preempt_disable()		do { } while (0)
#define etw_probe_preempt_enable()		do { } while (0)
#define etw_tracepoint_preempt_disable()	preempt_disable_notrace()
#define etw_tracepoint_preempt_enable()		preempt_enable_notrace()
#endif

/* An exchange against interrupts of this CPU only; the flag of the instruction tells success. */
#ifdef try_cmpxchg64_local
#define etw_try_cmpxchg64_local(ptr, old, new)	try_cmpxchg64_local(ptr, old, new)
#elif defined(__raw_try_cmpxchg)
#define etw_try_cmpxchg64_local(ptr, old, new)	__raw_try_cmpxchg(ptr, old, new, 8, "")
#else
#define etw_try_cmpxchg64_local(ptr, old, new)							\
	({											\
		u64 _old = *(old), _seen = cmpxchg64_local(ptr, _old, new);			\
		*(old) = _seen;									\
		_seen == _old;									\
	})
#endif

/*
 * Where this CPU's variables are, with preemption off: found once for all that an event does there. x86 has it in a segment
 * register, and a single CPU needs none; elsewhere each access would ask for the CPU anew, which in User-Mode Linux is a call.
 * etw_cpu_add() is for counters, u64, that interrupts raise too: what User-Mode Linux has for that asks the host to hold back
 * signals, which takes longer than all the rest of an event.
 */
#if defined(CONFIG_SMP) && (!defined(CONFIG_X86_64) || defined(CONFIG_UML))
struct etw_cpu {
	unsigned long offset;
};

#define etw_cpu()				((struct etw_cpu){ __my_cpu_offset })
#define etw_cpu_ptr(cpu, pointer)		SHIFT_PERCPU_PTR(pointer, (cpu).offset)
#define etw_cpu_read(cpu, variable)		READ_ONCE(*etw_cpu_ptr(cpu, &(variable)))
#define etw_cpu_inc(cpu, variable)		(*etw_cpu_ptr(cpu, &(variable)) += 1)
#define etw_cpu_dec(cpu, variable)		(*etw_cpu_ptr(cpu, &(variable)) -= 1)
#define etw_cpu_add(cpu, variable, nr)		local64_add(nr, (local64_t *)etw_cpu_ptr(cpu, &(variable)))
#else
struct etw_cpu {
};

#define etw_cpu()				((struct etw_cpu){ })
#define etw_cpu_read(cpu, variable)		((void)(cpu), __this_cpu_read(variable))
#define etw_cpu_inc(cpu, variable)		do { (void)(cpu); __this_cpu_inc(variable); } while (0)
#define etw_cpu_dec(cpu, variable)		do { (void)(cpu); __this_cpu_dec(variable); } while (0)
#define etw_cpu_add(cpu, variable, nr)		do { (void)(cpu); this_cpu_add(variable, nr); } while (0)
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define etw_timer_delete_sync(timer)		timer_delete_sync(timer)
#else
#define etw_timer_delete_sync(timer)		del_timer_sync(timer)
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define etw_hrtimer_setup(timer, function, clock, mode)	hrtimer_setup(timer, function, clock, mode)
#else
#define etw_hrtimer_setup(timer, callback, clock, mode)		\
	do {							\
		hrtimer_init(timer, clock, mode);		\
		(timer)->function = callback;			\
	} while (0)
#endif

#endif
