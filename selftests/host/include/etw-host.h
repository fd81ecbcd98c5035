/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel as far as the module's code needs it, in user space, for host tests: one CPU, one thread, no interrupts but
 * those that a test makes up. What waits or is forbidden aborts. Knows nothing of the module.
 */
#ifndef ETW_HOST_H
#define ETW_HOST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

/* ---- the compiler ---- */

#define __user
#define __percpu
#define __packed			__attribute__((packed))
#define __uninitialized
#define __aligned(n)			__attribute__((aligned(n)))
#define ____cacheline_aligned_in_smp
#define notrace
#define noinline			__attribute__((noinline))
#define likely(x)			__builtin_expect(!!(x), 1)
#define unlikely(x)			__builtin_expect(!!(x), 0)
#define READ_ONCE(x)			(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)		(*(volatile __typeof__(x) *)&(x) = (v))
#define barrier()			__asm__ __volatile__("" : : : "memory")
#define BUILD_BUG_ON(x)			((void)sizeof(char[1 - 2 * !!(x)]))
#define BIT(n)				(1UL << (n))
#define BIT_ULL(n)			(1ULL << (n))
#define static_assert(x, ...)		_Static_assert(x, "" #x)
#define container_of(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))
#define struct_size(p, member, n)	(sizeof(*(p)) + sizeof((p)->member[0]) * (n))
#define array_size(n, size)		((size_t)(n) * (size))
#define min(a, b)			({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)			({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min_t(type, a, b)		min((type)(a), (type)(b))
#define ALIGN(x, a)			(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define is_power_of_2(n)		((n) && !((n) & ((n) - 1)))

static inline u32 ilog2(u64 n)
{
	return 63 - __builtin_clzll(n);
}

/* A kernel goes on after a warning, a test does not. */
#define WARN_ON(x)										\
	({											\
		if (x) {									\
			printf("# warning: %s:%d: %s\n", __FILE__, __LINE__, #x);		\
			fflush(stdout);								\
			abort();								\
		}										\
		0;										\
	})
#define WARN_ON_ONCE(x)			WARN_ON(x)
#define BUG_ON(x)			WARN_ON(x)

#define IS_ERR(p)			((unsigned long)(p) >= (unsigned long)-4095)
#define IS_ERR_OR_NULL(p)		(!(p) || IS_ERR(p))
#define ERR_PTR(e)			((void *)(long)(e))
#define PTR_ERR(p)			((long)(p))
#define ENOTSUPP			524

#define get_unaligned(p)		(((const struct { __typeof__(*(p)) v; } __packed *)(p))->v)
#define put_unaligned(x, p)		((void)(((struct { __typeof__(*(p)) v; } __packed *)(p))->v = (x)))

/* ---- atomics: one thread, so what counts is the order in the program ---- */

struct host_long {
	long v;
};

struct host_s64 {
	s64 v;
};

typedef struct host_long local_t;
typedef struct host_long atomic_long_t;
typedef struct host_s64 local64_t;
typedef struct host_s64 atomic64_t;

#define cmpxchg64(p, old, new)		__sync_val_compare_and_swap(p, old, new)
#define cmpxchg64_local(p, old, new)	__sync_val_compare_and_swap(p, old, new)
#define xchg(p, new)			__atomic_exchange_n(p, new, __ATOMIC_SEQ_CST)
#define smp_load_acquire(p)		READ_ONCE(*(p))
#define smp_store_release(p, v)		WRITE_ONCE(*(p), v)
#define smp_mb()			barrier()
#define smp_rmb()			barrier()
#define local_read(l)			((l)->v)
#define local_set(l, x)			((void)((l)->v = (x)))
#define local_add_return(x, l)		((l)->v += (x))
#define local64_add(x, l)		((void)((l)->v += (x)))
#define local64_inc(l)			((void)(l)->v++)
#define atomic64_read(a)		((a)->v)
#define atomic64_add_return(x, a)	((a)->v += (x))
#define atomic64_sub(x, a)		((void)((a)->v -= (x)))
#define atomic_long_read(a)		((a)->v)
#define atomic_long_add(x, a)		((void)((a)->v += (x)))

/* ---- one CPU ---- */

#define DECLARE_PER_CPU(type, name)	extern type name
#define DEFINE_PER_CPU(type, name)	type name
#define per_cpu(name, cpu)		name
#define per_cpu_ptr(p, cpu)		((void)(cpu), (p))
#define raw_cpu_ptr(p)			(p)
#define this_cpu_ptr(p)			(p)
#define this_cpu_read(x)		(x)
#define __this_cpu_read(x)		(x)
#define this_cpu_add(x, n)		((void)((x) += (n)))
#define this_cpu_sub(x, n)		((void)((x) -= (n)))
#define this_cpu_inc(x)			((void)(x)++)
#define this_cpu_dec(x)			((void)(x)--)
#define __this_cpu_inc(x)		((void)(x)++)
#define __this_cpu_dec(x)		((void)(x)--)
#define alloc_percpu(type)		((type *)calloc(1, sizeof(type)))
#define free_percpu(p)			free(p)
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define nr_cpu_ids			1U
#define smp_processor_id()		0
#define raw_smp_processor_id()		0
#define cpu_to_node(cpu)		((void)(cpu), 0)
#define preempt_disable()		barrier()
#define preempt_enable()		barrier()
#define preempt_disable_notrace()	barrier()
#define preempt_enable_notrace()	barrier()
#define cond_resched()			((void)0)

struct task_struct {
	s32 pid __aligned(8);
	s32 tgid;
};

static struct task_struct etw_host_task __attribute__((unused)) = { .pid = 4711, .tgid = 4700 };
#define current (&etw_host_task)

/* ---- time that stands still: a relay's clock offset makes it pass ---- */

typedef s64 ktime_t;

#define NSEC_PER_SEC			1000000000LL
#define ktime_get_mono_fast_ns()	(1000000ULL)
#define ktime_get_boot_fast_ns()	(2000000ULL)

/* ---- locks: nobody else is there ---- */

struct mutex {
	int held;
};

typedef struct mutex spinlock_t;

#define DEFINE_MUTEX(name)		struct mutex name
#define mutex_init(m)			((void)((m)->held = 0))
#define mutex_lock(m)			((void)WARN_ON((m)->held++))
#define mutex_unlock(m)			((void)WARN_ON(--(m)->held))
#define spin_lock_init(m)		mutex_init(m)
#define spin_lock(m)			mutex_lock(m)
#define spin_unlock(m)			mutex_unlock(m)
#define lockdep_is_held(m)		((m)->held)
#define lockdep_assert_held(m)		((void)WARN_ON(!(m)->held))

#define __rcu
#define rcu_dereference_raw(p)			READ_ONCE(p)
#define rcu_dereference_protected(p, c)		({ WARN_ON(!(c)); READ_ONCE(p); })
#define rcu_access_pointer(p)			READ_ONCE(p)
#define rcu_assign_pointer(p, v)		WRITE_ONCE(p, v)
#define RCU_INIT_POINTER(p, v)			WRITE_ONCE(p, v)

typedef struct {
	int woken;
} wait_queue_head_t;

#define init_waitqueue_head(w)		((void)((w)->woken = 0))
#define wake_up_all(w)			((void)(w)->woken++)

/* At once: what has interrupts off on a kernel is over before a test looks. */
struct irq_work {
	void (*func)(struct irq_work *work);
};

#define init_irq_work(w, f)		((void)((w)->func = (f)))
#define irq_work_queue(w)		((w)->func(w))
#define irq_work_sync(w)		((void)(w))

/* ---- only to be named ---- */

struct kref {
	int refs;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hrtimer {
	int unused;
};

struct work_struct {
	int unused;
};

typedef struct {
	u32 val;
} kuid_t;

/* ---- memory ---- */

#ifndef PAGE_SHIFT
#define PAGE_SHIFT			12
#endif
#define PAGE_SIZE			(1UL << PAGE_SHIFT)

typedef unsigned int gfp_t;

#define GFP_KERNEL			0U
#define __GFP_NOWARN			0U
#define __GFP_ZERO			0U
#define __GFP_NORETRY			0U
#define __GFP_COMP			0U
#define __GFP_NOFAIL			0U

#define kmalloc(size, gfp)		({ (void)(gfp); malloc(size); })
#define kzalloc(size, gfp)		({ (void)(gfp); calloc(1, size); })
#define kcalloc(n, size, gfp)		({ (void)(gfp); calloc(n, size); })
#define kvzalloc(size, gfp)		({ (void)(gfp); calloc(1, size); })
#define kvcalloc(n, size, gfp)		({ (void)(gfp); calloc(n, size); })
#define kzalloc_node(size, gfp, node)	({ (void)(gfp); (void)(node); calloc(1, size); })
#define kvzalloc_node(size, gfp, node)	({ (void)(gfp); (void)(node); calloc(1, size); })
#define kfree(p)			free((void *)(p))
#define kvfree(p)			free((void *)(p))

/* A block's pages side by side, so that the sanitizer sees what leaves them. */
struct page {
	void *memory;
};

static inline unsigned int get_order(size_t size)
{
	unsigned int order = 0;

	while ((PAGE_SIZE << order) < size)
		order++;
	return order;
}

static inline struct page *alloc_pages_node(int node, gfp_t gfp, unsigned int order)
{
	struct page *pages = calloc(1UL << order, sizeof(*pages));

	(void)node;
	(void)gfp;
	pages->memory = calloc(PAGE_SIZE, 1UL << order);
	return pages;
}

static inline void __free_pages(struct page *pages, unsigned int order)
{
	(void)order;
	free(pages->memory);
	free(pages);
}

#define __free_page(page)		__free_pages(page, 0)
#define page_address(page)		((page)->memory)
#define totalram_pages()		((64UL << 20) >> PAGE_SHIFT)
#define VM_MAP				0
#define PAGE_KERNEL			0
#define vmap(pages, nr, flags, prot)	({ (void)(pages); (void)(nr); (void *)NULL; })
#define vunmap(p)			abort()

struct vm_area_struct {
	unsigned long vm_start, vm_flags;
};

static inline int vm_insert_pages(struct vm_area_struct *vma, unsigned long at, struct page **pages, unsigned long *nr)
{
	(void)vma;
	(void)at;
	(void)pages;
	*nr = 0;
	return 0;
}

/* ---- a module ---- */

#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define pr_err(...)			printf("# " __VA_ARGS__)

struct dentry;

#define debugfs_create_dir(name, parent)			((struct dentry *)NULL)
#define debugfs_create_file(name, mode, parent, data, fops)	((void)(parent))
#define debugfs_remove(d)					((void)(d))
struct seq_file;
#define seq_printf(m, ...)		((void)(m), (void)printf("# " __VA_ARGS__))
#define DEFINE_SHOW_ATTRIBUTE(name)								\
	static int (*const name##_fops)(struct seq_file *m, void *p) __attribute__((unused)) = name##_show

#endif
