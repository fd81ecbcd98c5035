/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel as far as the module's code needs it, in user space, for host tests: one CPU, one thread, no interrupts but
 * those that a test makes up. What waits or is forbidden aborts. Knows nothing of the module.
 */
#ifndef ETW_HOST_H
#define ETW_HOST_H

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
#define data_race(x)			(x)
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
#define max_t(type, a, b)		max((type)(a), (type)(b))
#define rol32(x, n)			((u32)(x) << (n) | (u32)(x) >> (32 - (n)))
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
#define PTR_ERR_OR_ZERO(p)		(IS_ERR(p) ? PTR_ERR(p) : 0)
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
#define alloc_percpu_gfp(type, gfp)	({ (void)(gfp); alloc_percpu(type); })
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
	char comm[16];
	struct task_struct *group_leader;
};

static struct task_struct etw_host_task __attribute__((unused)) = { .pid = 4711, .tgid = 4700, .group_leader = &etw_host_task };
#define current (&etw_host_task)
#define TASK_COMM_LEN			16
#define pid_alive(task)			true

/* ---- time that stands still: a relay's clock offset makes it pass ---- */

typedef s64 ktime_t;

#define NSEC_PER_SEC			1000000000LL
#define div64_u64(n, by)		((u64)(n) / (by))
#define div64_u64_rem(n, by, rest)	(*(rest) = (u64)(n) % (by), (u64)(n) / (by))
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
#define mutex_trylock(m)		((m)->held ? 0 : ++(m)->held)
#define mutex_lock_interruptible(m)	((void)WARN_ON((m)->held++), 0)
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

/* ---- lists and references ---- */

#define LIST_HEAD_INIT(name)		{ &(name), &(name) }
#define LIST_HEAD(name)			struct list_head name = LIST_HEAD_INIT(name)
#define list_entry(p, type, member)	container_of(p, type, member)
#define list_first_entry(h, type, m)	list_entry((h)->next, type, m)
#define list_empty(h)			((h)->next == (h))
#define list_for_each_entry(p, h, m)									\
	for ((p) = list_entry((h)->next, __typeof__(*(p)), m); &(p)->m != (h);				\
	     (p) = list_entry((p)->m.next, __typeof__(*(p)), m))

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h;
	h->prev = h;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	node->prev = head->prev;
	node->next = head;
	node->prev->next = node;
	head->prev = node;
}

static inline void list_add(struct list_head *node, struct list_head *head)
{
	list_add_tail(node, head->next);
}

#define list_last_entry(h, type, m)	list_entry((h)->prev, type, m)

static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

static inline void list_replace(struct list_head *old, struct list_head *node)
{
	*node = *old;
	node->next->prev = node;
	node->prev->next = node;
}

struct hlist_node {
	struct hlist_node *next, **pprev;
};

#define hlist_entry(p, type, member)	container_of(p, type, member)

#define DEFINE_HASHTABLE(name, bits)	struct hlist_node *name[1 << (bits)]
#define DECLARE_HASHTABLE(name, bits)	DEFINE_HASHTABLE(name, bits)
#define hash_init(table)		memset(table, 0, sizeof(table))
#define hash_bucket(table, key)		(&(table)[(key) % (sizeof(table) / sizeof((table)[0]))])
#define hash_add(table, node, key)	etw_host_hash_add(hash_bucket(table, key), node)
#define hash_for_each_possible(table, p, m, key)								\
	for (struct hlist_node *_n = *hash_bucket(table, key); _n && (p = container_of(_n, typeof(*(p)), m), true); _n = _n->next)

static inline void etw_host_hash_add(struct hlist_node **bucket, struct hlist_node *node)
{
	node->next = *bucket;
	node->pprev = bucket;
	if (node->next)
		node->next->pprev = &node->next;
	*bucket = node;
}

static inline void hash_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

/* Not the kernel's function, which nobody must rely on. */
static inline u32 jhash(const void *key, u32 length, u32 initval)
{
	const u8 *p = key;

	while (length--)
		initval = initval * 31 + *p++;
	return initval;
}

#define array_index_nospec(index, size)	(index)

struct kref {
	int refs;
};

#define kref_init(k)			((void)((k)->refs = 1))
#define kref_get(k)			((void)(k)->refs++)
#define kref_get_unless_zero(k)		((k)->refs ? (k)->refs++ : 0)
#define kref_put(k, release)		((void)(--(k)->refs ? (void)0 : release(k)))

struct module;

#define THIS_MODULE			((struct module *)NULL)
#define __module_get(m)			((void)(m))
#define module_put(m)			((void)(m))

/* ---- what comes later does not come ---- */

struct hrtimer {
	int unused;
};

struct work_struct {
	int unused;
};

struct delayed_work {
	struct work_struct work;
};

struct workqueue_struct;
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };

#define hrtimer_setup(t, f, clock, mode)	((void)(t), (void)(f))
#define hrtimer_start(t, delay, mode)		((void)(t), (void)(delay))
#define hrtimer_cancel(t)			((void)(t))
#define hrtimer_forward_now(t, delay)		((void)(t), (void)(delay))
#define INIT_WORK(w, f)				((void)(w), (void)(f))
#define queue_work(q, w)			((void)(q), (void)(w))
#define cancel_work_sync(w)			((void)(w))
#define to_delayed_work(w)			container_of(w, struct delayed_work, work)
#define INIT_DELAYED_WORK(w, f)			((void)(w), (void)(f))
#define queue_delayed_work(q, w, delay)		((void)(q), (void)(w), (void)(delay))
#define cancel_delayed_work_sync(w)		((void)(w))
#define alloc_workqueue(name, flags, n)		((struct workqueue_struct *)calloc(1, 1))
#define destroy_workqueue(q)			free(q)
unsigned long etw_host_grace_periods __attribute__((weak));
#define synchronize_rcu()			((void)etw_host_grace_periods++)
#define get_state_synchronize_rcu()		etw_host_grace_periods
#define poll_state_synchronize_rcu(cookie)	(etw_host_grace_periods != (cookie))
#define wait_event_interruptible_timeout(wq, condition, timeout)	((void)(timeout), (condition) ? 1L : 0L)
#define msecs_to_jiffies(ms)			((unsigned long)(ms))
#define ms_to_ktime(ms)				((ktime_t)(ms) * 1000000)
#define ktime_compare(a, b)			((a) < (b) ? -1 : (a) > (b))
#define ktime_sub(a, b)				((a) - (b))
#define ktime_to_ns(t)				(t)
#define ktime_mono_to_real(t)			((t) + 77777777)
#define ktime_mono_to_any(t, offset)		((t) + 1000000)
#define ktime_get_real_fast_ns()		(77777777ULL)
#define ktime_get_tai_fast_ns()			(77777777ULL)
#define get_cycles()				(1ULL)
#define local_irq_save(flags)			((void)((flags) = 0))
#define local_irq_restore(flags)		((void)(flags))
#define fatal_signal_pending(task)		0
#define schedule_timeout_killable(t)		((void)(t))

/* ---- the one CPU is there from the start ---- */

enum cpuhp_state { CPUHP_BP_PREPARE_DYN };

static int (*etw_host_cpu_prepare)(unsigned int cpu, struct hlist_node *node) __attribute__((unused));

#define cpuhp_setup_state_multi(state, name, prepare, dead)	(etw_host_cpu_prepare = (prepare), (void)(dead), (int)(state))
#define cpuhp_remove_multi_state(state)				((void)(state), etw_host_cpu_prepare = NULL)
#define cpuhp_state_add_instance(state, node)			((void)(state), etw_host_cpu_prepare(0, node))
#define cpuhp_state_remove_instance_nocalls(state, node)	((void)(state), (void)(node))
#define cpu_online(cpu)						((cpu) == 0)
#define cpus_read_lock()					barrier()
#define cpus_read_unlock()					barrier()
#define smp_call_function_single(cpu, f, arg, wait)		((f)(arg))

/* ---- the one task ---- */

typedef struct {
	u32 val;
} kuid_t;

struct pid;

#define task_tgid(task)			((struct pid *)NULL)
#define get_pid(pid)			(pid)
#define put_pid(pid)			((void)(pid))
#define pid_nr(pid)			((void)(pid), 4700)
#define current_uid()			((kuid_t){ 0 })
#define uid_eq(a, b)			((a).val == (b).val)

static inline void generate_random_uuid(unsigned char *uuid)
{
	memset(uuid, 0x42, 16);
}

static inline long strscpy(char *to, const void *from, size_t size)
{
	const char *p = from;
	size_t n;

	for (n = 0; n < size - 1 && p[n]; n++)
		to[n] = p[n];
	memset(to + n, 0, size - n);
	return n;
}

/* ---- tracepoints: one, which never fires ---- */

struct tracepoint_func {
	void *func;
	void *data;
};

struct tracepoint {
	const char *name;
	struct tracepoint_func *funcs;	/* ends with a NULL func */
};

struct tracepoint_func etw_host_funcs[64] __attribute__((weak));
struct tracepoint etw_host_tracepoint __attribute__((weak)) = { "module_free", etw_host_funcs };

#define TP_PROTO(...)			__VA_ARGS__
#define TP_ARGS(...)			__VA_ARGS__
#define PARAMS(...)			__VA_ARGS__
#define TASK_COMM_LEN			16
#define for_each_kernel_tracepoint(f, data)	(f)(&etw_host_tracepoint, data)
#define tracepoint_synchronize_unregister()	((void)0)

static inline int tracepoint_probe_register(struct tracepoint *tp, void *probe, void *data)
{
	struct tracepoint_func *f = tp->funcs;

	for (; f->func; f++)
		if (f->data == data)
			return -EEXIST;
	*f = (struct tracepoint_func){ probe, data };
	return 0;
}

static inline int tracepoint_probe_unregister(struct tracepoint *tp, void *probe, void *data)
{
	struct tracepoint_func *f = tp->funcs;

	for (; f->func && f->data != data; f++)
		;
	if (!f->func)
		return -ENOENT;
	for (; f->func; f++)
		*f = f[1];
	return 0;
}

/* ---- memory ---- */

#ifndef PAGE_SHIFT
#define PAGE_SHIFT			12
#endif
#define PAGE_SIZE			(1UL << PAGE_SHIFT)

typedef unsigned int gfp_t;

#define GFP_KERNEL			0U
#define GFP_KERNEL_ACCOUNT		0U
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
#define kvmalloc(size, gfp)		({ (void)(gfp); malloc(size); })
#define krealloc(p, size, gfp)		({ (void)(gfp); realloc(p, size); })
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

#define alloc_page(gfp)			alloc_pages_node(0, gfp, 0)
#define __free_page(page)		__free_pages(page, 0)
#define page_address(page)		((page)->memory)
#define totalram_pages()		((64UL << 20) >> PAGE_SHIFT)
#define si_mem_available()		((long)totalram_pages())
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
