// SPDX-License-Identifier: GPL-2.0-only
/*
 * uarg.c: structures of every size from user space and back, tails that are not zero, and memory that ends at every byte.
 * Runs in a kernel with KUnit, in the address space of whoever loads the module, and on the host under sanitizers. Must
 * not know any structure of the ABI.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/etw.h>
#include <linux/slab.h>
#include <linux/string.h>

#ifdef __KERNEL__
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#else
#include <linux/uaccess.h>
#endif

#include "../uarg.h"

struct sized {
	u32 size;
	u8 body[36];
};

#define SIZE		((u32)sizeof(struct sized))
#define MEMORY		(2 * PAGE_SIZE)		/* of user space; the byte behind it is not there */

static struct {
	u8 __user *user;
	u8 *seen;		/* room to look at all of it */
#ifdef __KERNEL__
	struct mm_struct *mm;
#endif
} w;

#ifdef __KERNEL__
/* The cases run in kernel threads, which have no user space: lend them the loader's. */
static int suite_start(struct kunit_suite *suite)
{
	w.mm = current->mm;
	if (!w.mm)
		return -ENODEV;
	mmget(w.mm);
	return 0;
}

static void suite_end(struct kunit_suite *suite)
{
	if (w.mm)
		mmput(w.mm);
	w.mm = NULL;
}

static bool user_begin(void)
{
	unsigned long at;

	kthread_use_mm(w.mm);
	at = vm_mmap(NULL, 0, MEMORY + PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(at)) {
		kthread_unuse_mm(w.mm);
		return false;
	}
	vm_munmap(at + MEMORY, PAGE_SIZE);
	w.user = (u8 __user *)at;
	return true;
}

static void user_end(void)
{
	vm_munmap((unsigned long)w.user, MEMORY);
	kthread_unuse_mm(w.mm);
}
#else
static int suite_start(struct kunit_suite *suite)
{
	return 0;
}

static void suite_end(struct kunit_suite *suite)
{
}

static bool user_begin(void)
{
	w.user = calloc(1, MEMORY);
	etw_host_user_end = w.user + MEMORY;
	return true;
}

static void user_end(void)
{
	free(w.user);
}
#endif

/* User memory becomes 0x5a, but for a structure at @to that says it has @size bytes and goes on with zeros. */
static bool put_struct(u8 __user *to, u32 size, u32 zeros)
{
	u32 i;

	memset(w.seen, 0x5a, MEMORY);
	if (copy_to_user(w.user, w.seen, MEMORY))
		return false;
	for (i = 0; i < SIZE; i++)
		w.seen[i] = i + 1;
	memcpy(w.seen, &size, sizeof(size));
	memset(w.seen + SIZE, 0, zeros);
	return !copy_to_user(to, w.seen, min_t(u32, SIZE + zeros, w.user + MEMORY - to));
}

static bool poke(u8 __user *to, u8 value)
{
	return !copy_to_user(to, &value, 1);
}

/* Every size the caller may give, the rest of the memory being zero. */
static u32 wrong_sizes_in(void)
{
	struct sized s;
	u32 size, wrong = 0;

	for (size = 0; size <= PAGE_SIZE + 64; size++) {
		int want = size < SIZE ? -EINVAL : size > PAGE_SIZE ? -E2BIG : 0;
		u32 i;

		if (size > 2 * SIZE && size < PAGE_SIZE - SIZE && size % 61)
			continue;
		wrong += !(put_struct(w.user, size, PAGE_SIZE + 64 - SIZE));
		memset(&s, 0xcc, sizeof(s));
		wrong += etw_uarg_get(&s, SIZE, w.user) != want;
		if (want)
			continue;
		wrong += s.size != size;
		for (i = 4; i < SIZE; i++)
			wrong += ((u8 *)&s)[i] != i + 1;
	}
	for (size = 0xffffffff; size > 0x7fffffff; size -= 0x11111111) {
		wrong += !(put_struct(w.user, size, 0));
		wrong += etw_uarg_get(&s, SIZE, w.user) != -E2BIG;
	}
	return wrong;
}

/* A tail that the kernel does not know must be zero at every byte, and what is behind it does not matter. */
static u32 wrong_tails_in(void)
{
	struct sized s;
	u32 extra, at, wrong = 0;

	for (extra = 1; extra < 40; extra++) {
		for (at = 0; at < extra + 3; at++) {
			wrong += !(put_struct(w.user, SIZE + extra, 64) && poke(w.user + SIZE + at, 1));
			wrong += etw_uarg_get(&s, SIZE, w.user) != (at < extra ? -E2BIG : 0);
		}
	}
	wrong += !(put_struct(w.user, PAGE_SIZE, PAGE_SIZE) && poke(w.user + PAGE_SIZE - 1, 0x80));
	wrong += etw_uarg_get(&s, SIZE, w.user) != -E2BIG;
	return wrong;
}

/* The structure lies so that only its first @there bytes are in memory. */
static u32 wrong_faults_in(void)
{
	struct sized s;
	u32 there, wrong = 0;

	for (there = 0; there <= SIZE + 16; there++) {
		u8 __user *at = w.user + MEMORY - there;

		wrong += !(put_struct(at, SIZE, 16));
		wrong += etw_uarg_get(&s, SIZE, at) != (there < SIZE ? -EFAULT : 0);
		wrong += etw_uarg_size(&s, SIZE, at) != (there < 4 ? -EFAULT : 0);
		/* longer by a zero tail that is partly there */
		wrong += !(put_struct(at, SIZE + 16, 16));
		wrong += etw_uarg_get(&s, SIZE, at) != (there < SIZE + 16 ? -EFAULT : 0);
	}
	wrong += etw_uarg_get(&s, SIZE, NULL) != -EFAULT;
	return wrong;
}

/* The size alone: nothing else of the structure is looked at. */
static u32 wrong_sizes_only(void)
{
	u32 size, found, wrong = 0;

	for (size = 0; size <= PAGE_SIZE + 2; size++) {
		int want = size < SIZE ? -EINVAL : size > PAGE_SIZE ? -E2BIG : 0;

		if (size > 2 * SIZE && size < PAGE_SIZE - 2 && size % 61)
			continue;
		wrong += !(put_struct(w.user, size, 0));
		found = 0xcccccccc;
		wrong += etw_uarg_size(&found, SIZE, w.user) != want;
		wrong += found != (want ? 0xcccccccc : size);
	}
	return wrong;
}

/* Out: no more than the caller has, zeros where it has more than the kernel, and not a byte beyond. */
static u32 wrong_sizes_out(void)
{
	u32 size, i, wrong = 0;

	for (size = 4; size < 3 * SIZE; size++) {
		struct sized s = { .size = size };

		memset(s.body, 0x77, sizeof(s.body));
		wrong += !(put_struct(w.user, size, 0));
		memset(w.seen, 0x5a, MEMORY);
		wrong += copy_to_user(w.user, w.seen, MEMORY) != 0;
		wrong += etw_uarg_put(w.user, &s, SIZE) != 0;
		wrong += copy_from_user(w.seen, w.user, MEMORY) != 0;
		wrong += *(u32 *)w.seen != SIZE;
		for (i = 4; i < MEMORY; i++)
			wrong += w.seen[i] != (i >= size ? 0x5a : i < SIZE ? 0x77 : 0);
	}
	return wrong;
}

static u32 wrong_faults_out(void)
{
	u32 there, wrong = 0;

	for (there = 0; there <= SIZE + 16; there++) {
		struct sized s = { .size = SIZE + 16 };

		wrong += etw_uarg_put(w.user + MEMORY - there, &s, SIZE) != (there < SIZE + 16 ? -EFAULT : 0);
		s.size = SIZE;
		wrong += etw_uarg_put(w.user + MEMORY - there, &s, SIZE) != (there < SIZE ? -EFAULT : 0);
	}
	return wrong;
}

/* In the address space from before to after: KUnit may clean up after a case in another thread. */
static void look(struct kunit *test, u32 (*count_wrong)(void))
{
	u32 wrong;

	w.seen = kunit_kzalloc(test, MEMORY, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w.seen);
	KUNIT_ASSERT_TRUE(test, user_begin());
	wrong = count_wrong();
	user_end();
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void sizes_in(struct kunit *test)
{
	look(test, wrong_sizes_in);
}

static void tails_in(struct kunit *test)
{
	look(test, wrong_tails_in);
}

static void faults_in(struct kunit *test)
{
	look(test, wrong_faults_in);
}

static void sizes_only(struct kunit *test)
{
	look(test, wrong_sizes_only);
}

static void sizes_out(struct kunit *test)
{
	look(test, wrong_sizes_out);
}

static void faults_out(struct kunit *test)
{
	look(test, wrong_faults_out);
}

static void names(struct kunit *test)
{
	u8 name[ETW_NAME_SIZE] = {};
	u32 i;

	KUNIT_EXPECT_EQ(test, etw_uarg_name(name, true), 0);
	KUNIT_EXPECT_EQ(test, etw_uarg_name(name, false), -EINVAL);
	for (i = 1; i < ETW_NAME_SIZE; i++) {
		memset(name, 0, sizeof(name));
		name[i] = 'a';		/* not empty, and not a name */
		KUNIT_EXPECT_EQ(test, etw_uarg_name(name, true), -EINVAL);
		memset(name, 'a', i);
		KUNIT_EXPECT_EQ(test, etw_uarg_name(name, false), i == ETW_NAME_SIZE - 1 ? -EINVAL : 0);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(sizes_in),
	KUNIT_CASE(tails_in),
	KUNIT_CASE(faults_in),
	KUNIT_CASE(sizes_only),
	KUNIT_CASE(sizes_out),
	KUNIT_CASE(faults_out),
	KUNIT_CASE(names),
	{}
};

static struct kunit_suite suite = {
	.name = "etw_uarg", .suite_init = suite_start, .suite_exit = suite_end,
	.test_cases = cases,
};

kunit_test_suite(suite);
