// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the calls of a program: lays out the memory they point to, counts what came of them, and watches what must hold of
 * any single call. A racer thread changes memory while the kernel reads it. It must not know coverage.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/etw.h>

#include "fuzz.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PAGE 4096UL
#define MAX_STRUCT 4096
#define GUARD 64
#define GUARD_BYTE 0xa5

/* Memory of a worker that the kernel is shown: one region for structures, one for what they point to. */
struct region {
	uint8_t *ok;		/* OK_SIZE bytes */
	uint8_t *edge;		/* EDGE_PAGES pages, then one that is not there */
	uint8_t *read_only;	/* RO_PAGES that can be read only, and where the same can be written */
	uint8_t *read_only_alias;
	uint8_t *cross;		/* RO_PAGES that can be written, then as many that cannot, and the same writable */
	uint8_t *cross_alias;
	uint8_t *flicker;	/* RO_PAGES */
};

#define OK_SIZE (1UL << 20)
#define RO_PAGES 8
#define EDGE_PAGES 8

enum race { RACE_NONE, RACE_CHANGE, RACE_FLICKER };

/* What the racer is to do for a worker. */
struct race_order {
	pthread_mutex_t lock;
	_Atomic int what;
	_Atomic unsigned int rounds;
	uint8_t *at;
	size_t size;
	_Atomic pid_t signal;		/* a thread that wants one */
};

struct worker {
	unsigned int number;
	struct op_count *counts;
	struct region region[2];
	struct race_order *order;
	int pair[2];			/* a socket to itself, for files under way */
	pid_t children[8];
	unsigned int nr_children;
	bool changed_user;
	bool changed_cpu;
};

#define MAX_WORKERS 8
static struct race_order orders[MAX_WORKERS];
static _Atomic int racer_running;
static pthread_t racer;

static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t may_escape;
static __thread const char *volatile doing;	/* the call */

static _Atomic(const char *) first_complaint;

const char *complaint(void)
{
	return atomic_load(&first_complaint);
}

void complain(const char *fmt, ...)
{
	const char *none = NULL;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) >= 0 && !atomic_compare_exchange_strong(&first_complaint, &none, text))
		free(text);
	va_end(ap);
}

/* Out of the way of the numbers that programs close. */
int private_fd(int fd)
{
	int moved;

	if (fd < 0)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, PRIVATE_FILES);
	close(fd);
	return moved;
}

/* ---- the racer ---- */

static void race_once(struct race_order *o, struct random *r)
{
	static const uint32_t values[] = { 0, 1, 0xffffffff, 4096, 4097, 0x7fffffff };
	uint32_t at, n, old;

	if (atomic_load(&o->what) == RACE_CHANGE) {
		at = random_below(r, o->size / 4) * 4;
		memcpy(&old, o->at + at, 4);
		n = random_below(r, 8);
		n = n < ARRAY_SIZE(values) ? values[n] : n == 6 ? old + 1 : random_next(r);
		for (int i = 0; i < 20; i++)
			*(volatile uint32_t *)(o->at + at) = i & 1 ? old : n;
	} else if (random_below(r, 2)) {
		mprotect(o->at, o->size, PROT_NONE);
		mprotect(o->at, o->size, PROT_READ | PROT_WRITE);
	} else {
		madvise(o->at, o->size, MADV_DONTNEED);
	}
	atomic_fetch_add(&o->rounds, 1);
}

static void *racer_main(void *arg)
{
	struct random r = { 0x9e3779b97f4a7c15ULL };
	unsigned int i, idle = 0;

	while (atomic_load(&racer_running)) {
		bool worked = false;

		for (i = 0; i < MAX_WORKERS; i++) {
			struct race_order *o = &orders[i];
			pid_t tid = atomic_exchange(&o->signal, 0);

			if (tid)
				syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
			if (!atomic_load(&o->what))
				continue;
			pthread_mutex_lock(&o->lock);
			if (atomic_load(&o->what)) {
				race_once(o, &r);
				worked = true;
			}
			pthread_mutex_unlock(&o->lock);
		}
		idle = worked ? 0 : idle + 1;
		if (idle > 2)
			usleep(200);
	}
	return arg;
}

void racer_start(void)
{
	unsigned int i;

	for (i = 0; i < MAX_WORKERS; i++)
		pthread_mutex_init(&orders[i].lock, NULL);
	atomic_store(&racer_running, 1);
	pthread_create(&racer, NULL, racer_main, NULL);
}

void racer_stop(void)
{
	atomic_store(&racer_running, 0);
	pthread_join(racer, NULL);
}

/* The racer is at it when this returns, or has been too slow to come. */
static void race_begin(struct worker *w, enum race what, uint8_t *at, size_t size)
{
	unsigned int i, rounds = atomic_load(&w->order->rounds);

	pthread_mutex_lock(&w->order->lock);
	w->order->at = at;
	w->order->size = size;
	atomic_store(&w->order->what, what);
	pthread_mutex_unlock(&w->order->lock);
	for (i = 0; i < 50 && atomic_load(&w->order->rounds) == rounds; i++)
		usleep(20);
}

static bool racing(const struct worker *w)
{
	return atomic_load(&w->order->what);
}

static void race_end(struct worker *w)
{
	pthread_mutex_lock(&w->order->lock);
	atomic_store(&w->order->what, RACE_NONE);
	pthread_mutex_unlock(&w->order->lock);
}

/* ---- memory ---- */

static uint8_t *map(size_t size, int prot, int flags, int fd, off_t offset)
{
	void *at = mmap(NULL, size, prot, flags, fd, offset);

	if (at == MAP_FAILED) {
		perror("fuzz: mmap");
		exit(1);
	}
	return at;
}

static void region_make(struct region *r)
{
	const size_t size = RO_PAGES * PAGE;
	int fd = syscall(SYS_memfd_create, "fuzz", 0);

	if (fd < 0 || ftruncate(fd, 2 * size)) {
		perror("fuzz: memfd_create");
		exit(1);
	}
	r->ok = map(OK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r->edge = map((EDGE_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(r->edge + EDGE_PAGES * PAGE, PAGE, PROT_NONE);
	r->read_only = map(size, PROT_READ, MAP_SHARED, fd, 0);
	r->read_only_alias = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r->cross_alias = map(2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r->cross = map(2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	mprotect(r->cross + size, size, PROT_READ);
	r->flicker = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	close(fd);
}

/* Where @data of @size bytes lies for the kernel. @size is at most RO_PAGES pages. */
static uint64_t place(struct worker *w, unsigned int which, uint64_t where, const void *data, size_t size, struct table *table)
{
	struct region *r = &w->region[which];
	const size_t pages = RO_PAGES * PAGE;
	size_t more = where >> 8, at;
	uintptr_t mapping;

	/* the racer has one order at a time, and may be at work in its memory */
	if (racing(w) && ((where & 0xff) == WHERE_CHANGING || (where & 0xff) == WHERE_FLICKERING))
		where = WHERE_OK;
	switch (where & 0xff) {
	case WHERE_NULL:
		return 0;
	case WHERE_LOW:
		return 1 + more;
	case WHERE_HOLE:
		return 0x8000000000000000ULL + more;
	case WHERE_KERNEL:
		return 0xffffffff81000000ULL + more;
	case WHERE_EDGE:
		/* @more bytes of it are in the page that is not there */
		more = more % (size + 1);
		memcpy(r->edge + EDGE_PAGES * PAGE - (size - more), data, size - more);
		return (uintptr_t)r->edge + EDGE_PAGES * PAGE - (size - more);
	case WHERE_READ_ONLY:
		at = more & 0xff8 & (pages - size) & ~7UL;
		memcpy(r->read_only_alias + at, data, size);
		return (uintptr_t)r->read_only + at;
	case WHERE_CROSS:
		more = more % (size + 1);
		memcpy(r->cross_alias + pages - (size - more), data, size);
		return (uintptr_t)r->cross + pages - (size - more);
	case WHERE_CHANGING:
		memcpy(r->ok, data, size);
		memset(r->ok + size, 0, 256);
		if (size >= 4)
			race_begin(w, RACE_CHANGE, r->ok, size);
		return (uintptr_t)r->ok;
	case WHERE_FLICKERING:
		memcpy(r->flicker, data, size);
		race_begin(w, RACE_FLICKER, r->flicker, pages);
		return (uintptr_t)r->flicker;
	case WHERE_ODD:
		memcpy(r->ok + 1 + more % 7, data, size);
		memset(r->ok + 1 + more % 7 + size, GUARD_BYTE, GUARD);
		return (uintptr_t)r->ok + 1 + more % 7;
	case WHERE_MAPPING:
		mapping = table->mappings[more % NR_MAPPINGS].at;
		return mapping ? mapping + (more & 0xff8) : 8;
	default:
		memcpy(r->ok, data, size);
		memset(r->ok + size, GUARD_BYTE, GUARD);
		return (uintptr_t)r->ok;
	}
}

/* 8 pages of pids at most: 4096 numbers take 4; or of names: 257 take a little more than 4. */
static size_t make_pids(uint64_t which, void *to)
{
	int32_t *pids = to;
	unsigned int i;

	for (i = 0; i < 4097; i++) {
		switch (which % 8) {
		case 0:
			pids[i] = getpid();
			break;
		case 1:
			pids[i] = i % 3;
			break;
		case 2:
			pids[i] = i & 1 ? -(int)i : 0;
			break;
		case 3:
			pids[i] = 1 << 22;
			break;
		case 4:
			pids[i] = i ? 1 : (int)syscall(SYS_gettid);
			break;
		case 5:
			pids[i] = INT32_MAX - i;
			break;
		default:
			pids[i] = 0;
		}
	}
	return 4097 * sizeof(*pids);
}

static size_t make_events(uint64_t which, void *to)
{
	unsigned int i;

	for (i = 0; i < 257; i++) {
		const struct text *t = &events[which >= 13 ? (which + i) % nr_events : which < 9 ? (which + i) % 9 : which - 1];

		memset((char *)to + i * ETW_NAME_SIZE, 0, ETW_NAME_SIZE);
		memcpy((char *)to + i * ETW_NAME_SIZE, t->bytes, t->len);
	}
	return 257 * ETW_NAME_SIZE;
}

static size_t make_ids(uint64_t which, void *to)
{
	uint16_t *ids = to;
	unsigned int i;

	for (i = 0; i < 257; i++)
		ids[i] = which % 4 == 3 ? 65535 - i : which + i;
	return 257 * sizeof(*ids);
}

static size_t make_processes(uint64_t which, void *to)
{
	static const char *const names[] = { "etw_fuzz", "swapper/0", "kworker/0:1", "etw_fuzz_whose_name_is_long", "" };
	unsigned int i;

	memset(to, 0, 65 * ETW_NAME_SIZE);
	for (i = 0; i < 65; i++)
		strcpy((char *)to + i * ETW_NAME_SIZE, names[(which + i) % (which < 12 ? 4 : 5)]);
	if (which == 14)
		memset(to, 'x', 65 * ETW_NAME_SIZE);
	return 65 * ETW_NAME_SIZE;
}

/* Fields that kernel events have, of every kind; in the end also what is no predicate. */
static size_t make_predicates(uint64_t which, void *to)
{
	static const struct etw_predicate good[] = {
		{ "comm", ETW_OP_CONTAINS, ETW_VALUE_TEXT, 0, "fuz" }, { "newcomm", ETW_OP_PREFIX, ETW_VALUE_TEXT, 0, "etw" },
		{ "tid", ETW_OP_GT, ETW_VALUE_NUMBER, 1, "" }, { "prev_state", ETW_OP_BITS, ETW_VALUE_NUMBER, 3, "" },
		{ "filename", ETW_OP_NE, ETW_VALUE_TEXT, 0, "x" }, { "address", ETW_OP_GE, ETW_VALUE_NUMBER, 1ULL << 63, "" },
		{ "vtids", ETW_OP_EQ, ETW_VALUE_NUMBER, 1, "" }, { "child_pid", ETW_OP_LE, ETW_VALUE_NUMBER, ~0ULL, "" },
		{ "exit_code", ETW_OP_EQ, ETW_VALUE_NUMBER, 0, "" }, { "next_comm", ETW_OP_EQ, ETW_VALUE_TEXT, 0, "etw_fuzz" },
		{ "nobody", ETW_OP_EQ, ETW_VALUE_BYTES, 0, "" },
	};
	const unsigned int nr = sizeof(good) / sizeof(good[0]);
	struct etw_predicate *p = to;
	unsigned int i;

	for (i = 0; i < 17; i++)
		p[i] = good[(which + i) % nr];
	switch (which) {
	case 12:
		p[1].op = 0;
		break;
	case 13:
		memset(p[0].text, 'x', sizeof(p[0].text));
		break;
	case 14:
		p[0].kind = 3;
		break;
	case 15:
		memset(p[0].field, 'x', sizeof(p[0].field));
	}
	return 17 * sizeof(*p);
}

/* A schema of one field, of none, or with a lie in it. */
static size_t make_schema(uint64_t which, void *to)
{
	static const uint8_t types[NR_GOOD_SCHEMAS] = { ETW_TYPE_U64, ETW_TYPE_STRING, ETW_TYPE_BINARY, 0 };
	struct etw_schema *s = to;
	struct etw_schema_field *f = (struct etw_schema_field *)(s + 1);
	const uint8_t type = types[which % NR_GOOD_SCHEMAS];
	char *text;

	memset(to, 0, 256);
	s->level = which % 6;
	s->keyword = which & 3;
	s->event_id = which;
	s->fields = sizeof(*s);
	s->nr_fields = !!type;
	f->type = type;
	text = (char *)(f + 1);
	s->name = text - (char *)to;
	text += sprintf(text, "event%u", (unsigned int)which % NR_GOOD_SCHEMAS) + 1;
	f->name = text - (char *)to;
	text += sprintf(text, "field") + 1;
	s->size = ((text - (char *)to) + 7) & ~7UL;
	switch (which) {
	case 10:
		s->nr_fields = 128;
		break;
	case 11:
		f->map = sizeof(*s);
		break;
	case 12:
		s->name = s->size - 1;
		break;
	case 13:
		f->name = 0xfffffff0;
		break;
	case 14:
		f->array = ETW_ARRAY_FIXED;
		f->count = 0xffffffff;
		break;
	case 15:
		s->fields = s->size;
	}
	return s->size;
}

static size_t add_event(uint8_t *to, uint64_t number, unsigned int schema)
{
	struct etw_write head = { .index = number };
	uint8_t *at = to + sizeof(head);
	const uint32_t len = 20;

	switch (schema) {
	case 0:
		memcpy(at, &number, 8);
		at += 8;
		break;
	case 1:
		strcpy((char *)at, "fuzzed");
		at += 7;
		break;
	case 2:
		memcpy(at, &len, 4);
		memset(at + 4, 0x5a, len);
		at += 4 + len;
	}
	head.size = at - to;
	memcpy(to, &head, sizeof(head));
	return head.size;
}

/* What is written to a provider file. */
static size_t make_write(uint64_t number, uint64_t shape, uint8_t *to)
{
	struct etw_write *first = (struct etw_write *)to;
	size_t size = add_event(to, number, shape % NR_GOOD_SCHEMAS);

	/* batches, of one class and of several */
	if (shape >= 4 && shape < 12)
		for (unsigned int i = 0; i < 30; i++)
			size += shape < 8 ? add_event(to + size, number, shape % NR_GOOD_SCHEMAS) :
					    add_event(to + size, (number + i) % 4, (shape + i) % NR_GOOD_SCHEMAS);
	switch (shape) {
	case 12:
		first->size += 4;
		break;
	case 13:
		first->size = 0xfffffff8;
		break;
	case 14:
		first->flags = 1;
		break;
	case 15:
		first->size = 4;
	}
	return size;
}

/* The address of what a structure points to. */
static uint64_t place_array(struct worker *w, const struct arg *a, uint64_t v, struct table *table)
{
	static __thread uint8_t data[RO_PAGES * PAGE];
	uint64_t where = v & 0xffff;
	size_t size;

	/* nothing to lay out */
	if ((where & 0xff) == WHERE_NULL)
		return 0;
	if (a->kind == KIND_PIDS)
		size = make_pids(v >> 16, data);
	else if (a->kind == KIND_EVENTS)
		size = make_events(v >> 16, data);
	else if (a->kind == KIND_IDS)
		size = make_ids(v >> 16, data);
	else if (a->kind == KIND_PROCESSES)
		size = make_processes(v >> 16, data);
	else if (a->kind == KIND_PREDICATES)
		size = make_predicates(v >> 16, data);
	else if (a->kind == KIND_SCHEMA)
		size = make_schema(v >> 16, data);
	else
		size = 512;
	return place(w, 1, where, data, size, table);
}

static void put(uint8_t *at, uint64_t v, unsigned int bytes)
{
	memcpy(at, &v, bytes);	/* little-endian */
}

static uint32_t schema_size(const struct call *c, const struct op *op)
{
	_Alignas(8) uint8_t schema[256];

	for (unsigned int i = 0; i < MAX_ARGS && op->args[i].kind != KIND_END; i++)
		if (op->args[i].kind == KIND_SCHEMA)
			return make_schema(c->arg[i] >> 16, schema);
	return 0;
}

static int file_at(struct table *t, uint64_t place)
{
	if (place < NR_PLACES)
		return atomic_load(&t->files[place]);
	switch (place - NR_PLACES) {
	case 0:
		return -1;
	case 1:
		return 1 << 20;
	case 2:
		return PRIVATE_FILES - 1;
	default:
		return -100;
	}
}

/* A small address stands for events of this shape, with their size; an id of 0 for one that was asked for. */
static void make_answer(struct etw_answer *a, int file)
{
	static __thread uint8_t events[4096];
	struct etw_capture_query q = { .size = sizeof(q) };
	size_t size;

	if (a->events < NR_SHAPES) {
		size = make_write(a->events % 2, a->events, events);
		a->events = (uintptr_t)events;
		a->bytes = a->bytes ?: size;
	}
	if (!a->id && !ioctl(file, ETW_IOC_PROVIDER_CAPTURE, &q))
		a->id = q.id;
}

/* The structure of an ioctl in @s; how many bytes it has for the kernel to see. */
static size_t make_struct(struct worker *w, const struct op *op, const struct call *c, uint8_t *s, struct table *table)
{
	uint64_t tail = 0;
	size_t size = op->size;
	unsigned int i;

	memset(s, 0, op->size);
	for (i = 0; i < MAX_ARGS && op->args[i].kind != KIND_END; i++) {
		const struct arg *a = &op->args[i];
		const struct text *t;
		uint64_t v = c->arg[i];

		switch (a->kind) {
		case KIND_SIZE:
			put(s, v, 4);
			if ((uint32_t)v > size)
				size = (uint32_t)v > MAX_STRUCT ? MAX_STRUCT : (uint32_t)v;
			break;
		case KIND_SESSION:
			t = &sessions[v % nr_sessions];
			memcpy(s + a->offset, t->bytes, t->len);
			break;
		case KIND_PROVIDER:
			t = &providers[v % nr_providers];
			memcpy(s + a->offset, t->bytes, t->len);
			break;
		case KIND_GUID:
			guid_fill(v, s + a->offset);
			break;
		case KIND_PIDS:
		case KIND_EVENTS:
		case KIND_IDS:
		case KIND_PROCESSES:
		case KIND_PREDICATES:
		case KIND_SCHEMA:
		case KIND_ROOM:
			put(s + a->offset, place_array(w, a, v, table), 8);
			break;
		default:
			if (a->bytes)
				put(s + a->offset, v, a->bytes);
			else if (!strcmp(a->name, "tail"))
				tail = v;
		}
	}
	/* "its own size", which only the schema knows */
	if (op->cmd == ETW_IOC_PROVIDER_EVENT && !((struct etw_event_register *)s)->schema_size)
		((struct etw_event_register *)s)->schema_size = schema_size(c, op);
	if (op->cmd == ETW_IOC_PROVIDER_ANSWER)
		make_answer((struct etw_answer *)s, file_at(table, c->arg[0]));
	memset(s + op->size, tail, size - op->size);
	return size;
}

/* ---- calls ---- */

static void file_put(struct table *t, uint64_t place, int fd)
{
	int old;

	if (fd < 0)
		return;
	old = atomic_exchange(&t->files[place % NR_PLACES], fd);
	if (old >= 0)
		close(old);
}

static uint64_t arg_of(const struct op *op, const struct call *c, const char *name)
{
	unsigned int i;

	for (i = 0; i < MAX_ARGS && op->args[i].kind != KIND_END; i++)
		if (!strcmp(op->args[i].name, name))
			return c->arg[i];
	return 0;
}

static void count(struct worker *w, uint32_t op, long result, int error)
{
	struct op_count *n = &w->counts[op];

	atomic_fetch_add_explicit(&n->executed, 1, memory_order_relaxed);
	if (result >= 0)
		atomic_fetch_add_explicit(&n->succeeded, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&n->failed[error < MAX_ERRNO ? error : 0], 1, memory_order_relaxed);
}

static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word))) {
		if ((p == list || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
		p += len;
	}
	return false;
}

/* The ABI says which errors a command has. */
static void check_error(const struct op *op, int error)
{
	const char *name = strerrorname_np(error);

	if (error == EBADF || error == ENOTTY || error == EINVAL)
		return;
	if (op->size && (error == EFAULT || error == E2BIG))
		return;
	if (!name || !listed(op->errors, name))
		complain("%s gave %s, which the ABI does not name for it", op->name, name ? name : "an unknown error");
}

static void our_ioctl(struct worker *w, const struct call *c, struct table *table)
{
	const struct op *op = &ops[c->op];
	int fd = file_at(table, arg_of(op, c, "file")), result, error, times = 1;
	uint64_t address = arg_of(op, c, "argument"), where = 0;
	uint8_t s[MAX_STRUCT];
	size_t size = 0, i;

	if (op->size) {
		size = make_struct(w, op, c, s, table);
		where = arg_of(op, c, "at");
		address = place(w, 0, where, s, size, table);
	}
	if (racing(w))
		times = 4;
	while (times--) {
		result = ioctl(fd, op->cmd, address);
		error = errno;
		count(w, c->op, result, error);
		if (result < 0)
			check_error(op, error);
		else if (op->args[1].kind == KIND_NEW)
			file_put(table, arg_of(op, c, "new"), result);
	}
	if (op->size && !racing(w) && ((where & 0xff) == WHERE_OK || (where & 0xff) == WHERE_ODD))
		for (i = 0; i < GUARD; i++)
			if (((uint8_t *)address)[size + i] != GUARD_BYTE) {
				complain("%s wrote behind its structure", op->name);
				break;
			}
}

/* A place's address and size belong together, or what another thread put there is never unmapped. */
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static void mapping_put(struct table *t, uint64_t which, uintptr_t at, size_t size)
{
	uintptr_t old;
	size_t old_size;

	which %= NR_MAPPINGS;
	pthread_mutex_lock(&mappings_lock);
	old = t->mappings[which].at;
	old_size = t->mappings[which].size;
	t->mappings[which].at = at;
	t->mappings[which].size = size;
	pthread_mutex_unlock(&mappings_lock);
	if (old)
		munmap((void *)old, old_size);
}

/* Part of a mapping; false if there is none. @length 0: all of it. */
static bool part(struct table *t, const struct op *op, const struct call *c, const char *length_name, uint8_t **at, size_t *length)
{
	uint64_t which = arg_of(op, c, "mapping") % NR_MAPPINGS, from = arg_of(op, c, "from");
	uintptr_t base;
	size_t size;

	pthread_mutex_lock(&mappings_lock);
	base = t->mappings[which].at;
	size = t->mappings[which].size;
	pthread_mutex_unlock(&mappings_lock);
	if (!base || from >= size)
		return false;
	*at = (uint8_t *)base + from;
	*length = arg_of(op, c, length_name);
	if (!*length || *length > size - from)
		*length = size - from;
	return true;
}

/*
 * Where programs' mappings lie: far from what the C library and the kernel take for the fuzzer itself, since programs unmap,
 * protect and write at addresses that are no longer theirs.
 */
#define ROOMS_AT (1UL << 44)
#define ROOM_SIZE (256UL << 20)
#define NR_ROOMS 4096

static void *next_room(void)
{
	static _Atomic unsigned int next;

	return (void *)(ROOMS_AT + atomic_fetch_add(&next, 1) % NR_ROOMS * ROOM_SIZE);
}

static long do_mmap(struct table *t, const struct op *op, const struct call *c)
{
	size_t size = arg_of(op, c, "subbufs") * arg_of(op, c, "subbuf_size");
	int prot = arg_of(op, c, "prot"), flags = arg_of(op, c, "flags") & ~(MAP_FIXED_NOREPLACE | MAP_ANONYMOUS);
	int fd = file_at(t, arg_of(op, c, "file"));
	void *at;

	if (size > 64UL << 20)
		size = 64UL << 20;
	at = mmap(next_room(), size, prot, flags | MAP_FIXED, fd, arg_of(op, c, "offset"));
	if (at == MAP_FAILED)
		return -1;
	mapping_put(t, arg_of(op, c, "mapping"), (uintptr_t)at, size);
	return 0;
}

/* Is @at in a mapping of a relay that has one of the rights @rights? Another thread may have put something else there. */
static bool relay_has(const void *at, const char *rights)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char line[512], have[8];
	bool has = false;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &begin, &end, have) == 3 && (uintptr_t)at >= begin && (uintptr_t)at < end)
			has = strstr(line, "etw-relay") && strpbrk(have, rights);
	if (f)
		fclose(f);
	return has;
}

static void *volatile touched;

/* Reading a page may raise a signal; writing must. */
static long do_touch(struct table *t, const struct op *op, const struct call *c)
{
	uint8_t *at;
	size_t length;

	if (!part(t, op, c, "length", &at, &length)) {
		errno = ENXIO;
		return -1;
	}
	if (sigsetjmp(escape, 1)) {
		may_escape = 0;
		errno = EFAULT;
		return -1;
	}
	may_escape = 1;
	if (arg_of(op, c, "write")) {
		*(volatile uint8_t *)at = 0;
		may_escape = 0;
		if (relay_has(at, "w"))
			complain("a mapping of a relay was written to");
		return 0;
	}
	touched = (void *)(uintptr_t)*(volatile uint8_t *)at;
	may_escape = 0;
	return 0;
}

static long do_mprotect(struct table *t, const struct op *op, const struct call *c)
{
	int prot = arg_of(op, c, "prot");
	uint8_t *at;
	size_t length;

	if (!part(t, op, c, "length", &at, &length)) {
		errno = ENXIO;
		return -1;
	}
	if (mprotect(at, length, prot))
		return -1;
	if ((prot & (PROT_WRITE | PROT_EXEC)) && relay_has(at, "wx"))
		complain("mprotect(%d) of a mapping of a relay", prot);
	return 0;
}

static long do_mremap(struct table *t, const struct op *op, const struct call *c)
{
	size_t length = arg_of(op, c, "length"), old;
	int flags = arg_of(op, c, "flags") & ~MREMAP_FIXED;
	void *moved;
	uint8_t *at;

	if (!part(t, op, c, "old", &at, &old)) {
		errno = ENXIO;
		return -1;
	}
	if (flags & MREMAP_MAYMOVE) {
		flags |= MREMAP_FIXED;
		if (length > ROOM_SIZE)
			length = ROOM_SIZE;
	}
	moved = mremap(at, old, length ? length : old, flags, next_room());
	if (moved == MAP_FAILED)
		return -1;
	/* what is left of the old place is unmapped with it */
	mapping_put(t, arg_of(op, c, "mapping"), (uintptr_t)moved, length ? length : old);
	return 0;
}

static long do_open_other(struct table *t, const struct op *op, const struct call *c)
{
	int fd, fds[2];

	switch (arg_of(op, c, "what") % 6) {
	case 0:
		fd = epoll_create1(EPOLL_CLOEXEC);
		break;
	case 1:
		fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		break;
	case 2:
		if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
			return -1;
		close(fds[1]);
		fd = fds[0];
		break;
	case 3:
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	case 4:
		fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		break;
	default:
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	file_put(t, arg_of(op, c, "new"), fd);
	return fd;
}

static long do_send(struct worker *w, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {
		.header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(w->pair[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int do_receive(struct worker *w)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(w->pair[1], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	if (CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	errno = EBADF;
	return fd;
}

void worker_drain(struct worker *w)
{
	int fd;

	while ((fd = do_receive(w)) >= 0)
		close(fd);
}

static void do_work(uint64_t kind, uint64_t times)
{
	static const char *const names[] = { "fuzz-a", "fuzz-b" };
	volatile uint8_t *at;
	uint64_t i;

	times %= 256;
	switch (kind % 3) {
	case 0:
		for (i = 0; i < times; i++)
			prctl(PR_SET_NAME, names[i % 2]);
		break;
	case 1:
		at = mmap(NULL, (times + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			return;
		for (i = 0; i < times; i++)
			at[i * PAGE] = 1;
		munmap((void *)at, (times + 1) * PAGE);
		break;
	default:
		for (i = 0; i < times; i++)
			sched_yield();
	}
}

static void set_cpu(int cpu)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < 64; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Not more than a few a second: a fork takes thousands of times longer than a call. In the child 0. */
static pid_t do_fork(struct worker *w)
{
	static _Atomic uint64_t last;
	uint64_t before = atomic_load(&last), now;
	struct timespec ts;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
	if (now - before < 400 || w->nr_children == ARRAY_SIZE(w->children) ||
	    !atomic_compare_exchange_strong(&last, &before, now)) {
		errno = EAGAIN;
		return -1;
	}
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		/* another thread may have held it, and is not here */
		pthread_mutex_init(&mappings_lock, NULL);
		pthread_mutex_init(&w->order->lock, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		w->nr_children = 0;
	} else if (pid > 0) {
		w->children[w->nr_children++] = pid;
	}
	return pid;
}

static void reap(struct worker *w)
{
	while (w->nr_children)
		while (waitpid(w->children[w->nr_children - 1], NULL, 0) >= 0 || errno != EINTR) {
			w->nr_children--;
			break;
		}
}

/* One that is not an ioctl of ours. True: the caller is a forked child now. */
static bool other_call(struct worker *w, const struct call *c, struct table *t)
{
	const struct op *op = &ops[c->op];
	int fd = file_at(t, arg_of(op, c, "file"));
	struct epoll_event event = {};
	struct pollfd polled[2];
	uint8_t *at, *buf = w->region[0].ok;
	size_t length;
	long result = -1;
	bool child = false;

	errno = ENXIO;
	switch (c->op - first_other_op) {
	case OP_IOCTL:
		memset(buf, 0, 256);
		put(buf, arg_of(op, c, "word"), 8);
		result = ioctl(fd, arg_of(op, c, "command"), place(w, 1, arg_of(op, c, "at"), buf, 256, t));
		break;
	case OP_OPEN:
		result = open("/dev/etw", (arg_of(op, c, "flags") & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC);
		file_put(t, arg_of(op, c, "new"), result);
		break;
	case OP_OPEN_OTHER:
		result = do_open_other(t, op, c);
		break;
	case OP_CLOSE:
		if (arg_of(op, c, "file") < NR_PLACES)
			fd = atomic_exchange(&t->files[arg_of(op, c, "file")], -1);
		result = close(fd);
		break;
	case OP_DUP:
		result = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		file_put(t, arg_of(op, c, "new"), result);
		break;
	case OP_MMAP:
		result = do_mmap(t, op, c);
		break;
	case OP_MUNMAP:
		if (part(t, op, c, "length", &at, &length))
			result = munmap(at, length);
		break;
	case OP_MPROTECT:
		result = do_mprotect(t, op, c);
		break;
	case OP_MREMAP:
		result = do_mremap(t, op, c);
		break;
	case OP_MADVISE:
		/* a machine check is not what is tested */
		if (arg_of(op, c, "advice") == MADV_HWPOISON || arg_of(op, c, "advice") == MADV_HWPOISON + 1)
			errno = EINVAL;
		else if (part(t, op, c, "length", &at, &length))
			result = madvise(at, length, arg_of(op, c, "advice"));
		break;
	case OP_TOUCH:
		result = do_touch(t, op, c);
		break;
	case OP_POLL:
		polled[0] = (struct pollfd){ fd, arg_of(op, c, "events") };
		polled[1] = (struct pollfd){ file_at(t, arg_of(op, c, "second")), arg_of(op, c, "events") };
		result = poll(polled, 2, arg_of(op, c, "ms") % 4);
		break;
	case OP_EPOLL:
		event.events = arg_of(op, c, "events");
		result = epoll_ctl(file_at(t, arg_of(op, c, "epoll")), arg_of(op, c, "op"), fd, &event);
		epoll_wait(file_at(t, arg_of(op, c, "epoll")), &event, 1, arg_of(op, c, "ms") % 4);
		break;
	case OP_READ:
		polled[0] = (struct pollfd){ fd, POLLIN };
		/* what is neither ours nor ready would block */
		if (poll(polled, 1, 0) >= 0)
			result = preadv2(fd, &(struct iovec){ buf, arg_of(op, c, "length") % 8192 }, 1, -1, RWF_NOWAIT);
		break;
	case OP_WRITE:
		result = pwritev2(fd, &(struct iovec){ buf, arg_of(op, c, "length") % 8192 }, 1, -1, RWF_NOWAIT);
		break;
	case OP_EMIT: {
		static __thread uint8_t events[4096];
		size_t size = make_write(arg_of(op, c, "number"), arg_of(op, c, "shape") % NR_SHAPES, events);
		const size_t cut = arg_of(op, c, "cut");
		const void *from;

		size = cut < size ? size - cut : size;
		from = (void *)place(w, 0, arg_of(op, c, "at") & 0xff, events, size, t);
		for (int times = racing(w) ? 4 : 1; times; times--)
			result = write(fd, from, size);
		break;
	}
	case OP_SEEK:
		result = lseek(fd, arg_of(op, c, "to"), arg_of(op, c, "whence"));
		break;
	case OP_SEND:
		result = do_send(w, fd);
		break;
	case OP_RECEIVE:
		result = do_receive(w);
		file_put(t, arg_of(op, c, "new"), result);
		break;
	case OP_FORK:
		result = do_fork(w);
		child = !result;
		if (result > 0 && arg_of(op, c, "wait"))
			reap(w);
		break;
	case OP_USER:
		/* of this thread only, as the C library's own would not be */
		result = syscall(SYS_setresuid, -1, arg_of(op, c, "id") ? 65534 : 0, -1);
		w->changed_user = true;
		break;
	case OP_CPU:
		set_cpu(arg_of(op, c, "number") % 4);
		w->changed_cpu = true;
		result = 0;
		break;
	case OP_WORK:
		do_work(arg_of(op, c, "kind"), arg_of(op, c, "times"));
		result = 0;
		break;
	case OP_PAUSE:
		result = usleep(arg_of(op, c, "us") % 1000);
		break;
	case OP_SIGNAL:
		atomic_store(&w->order->signal, syscall(SYS_gettid));
		result = 0;
		break;
	}
	if (!child)
		count(w, c->op, result, errno);
	return child;
}

/* A fault where none may be is a mistake of the fuzzer, or of a kernel that wrote elsewhere: say where. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	char text[256];
	int len;

	if (may_escape)
		siglongjmp(escape, 1);
	len = snprintf(text, sizeof(text), "\nBail out! signal %d at %p, instruction %#llx, in %s\n", signal, info->si_addr,
		       u->uc_mcontext.gregs[REG_RIP], doing ? doing : "no call");
	_exit(write(STDOUT_FILENO, text, len) < 0 ? 98 : 99);
}

static void on_signal(int signal)
{
}

struct worker *worker_new(unsigned int number, struct op_count *counts)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, other = { .sa_handler = on_signal };
	struct worker *w = calloc(1, sizeof(*w));

	if (!w || number >= MAX_WORKERS)
		exit(1);
	w->number = number;
	w->counts = counts;
	w->order = &orders[number];
	region_make(&w->region[0]);
	region_make(&w->region[1]);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, w->pair)) {
		perror("fuzz: socketpair");
		exit(1);
	}
	w->pair[0] = private_fd(w->pair[0]);
	w->pair[1] = private_fd(w->pair[1]);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGUSR1, &other, NULL);
	return w;
}

unsigned int worker_run(struct worker *w, const struct program *p, struct table *table,
			bool (*after)(void *arg, unsigned int done), void *arg)
{
	bool child = false, go = true;
	unsigned int i;

	for (i = 0; i < p->nr && go; i++) {
		doing = ops[p->calls[i].op].name;
		if (p->calls[i].op < first_other_op)
			our_ioctl(w, &p->calls[i], table);
		else
			child |= other_call(w, &p->calls[i], table);
		if (racing(w))
			race_end(w);
		doing = NULL;
		if (!child)
			go = after(arg, i + 1);
	}
	if (child)
		_exit(0);
	if (w->changed_user) {
		syscall(SYS_setresuid, -1, 0, -1);
		w->changed_user = false;
	}
	if (w->changed_cpu) {
		set_cpu(-1);
		w->changed_cpu = false;
	}
	reap(w);
	return i;
}

void table_close(struct table *table)
{
	unsigned int i;

	for (i = 0; i < NR_PLACES; i++) {
		int fd = atomic_exchange(&table->files[i], -1);

		if (fd >= 0)
			close(fd);
	}
	for (i = 0; i < NR_MAPPINGS; i++)
		mapping_put(table, i, 0, 0);
}

/* What threads that used one table at once lost sight of, and what was sent and not received. */
void close_everything(struct worker *const *workers, unsigned int nr)
{
	unsigned long begin, end;
	char line[512];
	bool again;
	FILE *f;

	while (nr--) {
		close(workers[nr]->pair[0]);
		close(workers[nr]->pair[1]);
	}
	syscall(SYS_close_range, 3, PRIVATE_FILES - 1, 0);
	do {
		again = false;
		f = fopen("/proc/self/maps", "re");
		while (f && !again && fgets(line, sizeof(line), f))
			if (strstr(line, "etw-relay") && sscanf(line, "%lx-%lx", &begin, &end) == 2)
				again = !munmap((void *)begin, end - begin);
		if (f)
			fclose(f);
	} while (again);
}
