// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Writing: an event's head and ids put before its fields, and one system call, or a place in the thread's batch. It
 * must not know how an event came to be defined.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/mman.h>

#include "error.h"
#include "provider_int.h"

#define LARGE (ETW_WRITING_PREFIX + ETW_MAX_PAYLOAD + SLACK)

/* A head is put together as one number. */
_Static_assert(sizeof(struct etw_write) == sizeof(__u64) && offsetof(struct etw_write, index) == 4 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the head of an event");

/* ---- results ---- */

/* Counts a failed write; returns it. */
static __attribute__((cold, noinline)) int failed(struct etw_registration *reg, int err)
{
	__u64 *count = err == -ENOBUFS			 ? &reg->no_room :
		       err == -EMSGSIZE || err == -E2BIG ? &reg->too_large :
							   &reg->failed;

	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return err;
}

/* The program closed our descriptor: register anew. */
static __attribute__((cold, noinline)) bool attach_again(struct etw_registration *reg)
{
	int saved = errno;
	bool again = false;

	if (!etw_lock())
		return false;
	if (reg->provider && reg->fd >= 0) {
		struct etw_enabled_query query;

		if (etw_ask_module(reg, &query))
			etw_detach(reg);
		again = etw_attach(reg) == 1;
	}
	etw_unlock();
	errno = saved;
	return again;
}

static __attribute__((cold, noinline)) int not_written(struct etw_registration *reg, const void *buf, size_t size,
						       int err)
{
	ssize_t ret;

	if (err == -EBADF && attach_again(reg)) {
		ret = etw_device_write(__atomic_load_n(&reg->fd, __ATOMIC_RELAXED), buf, size);
		if (ret >= 0)
			return 0;
		err = ret;
	}
	return failed(reg, err);
}

/* To the session alone that asked; that it is gone is nobody's failure. */
static __attribute__((cold, noinline)) int write_answer(struct etw_registration *reg, const void *buf, size_t size)
{
	struct etw_answer answer = {
		.size = sizeof(answer),
		.id = etw_thread.capture,
		.events = (__u64)(uintptr_t)buf,
		.bytes = size,
	};
	int saved = errno;
	int err = etw_device_ioctl(__atomic_load_n(&reg->fd, __ATOMIC_RELAXED), ETW_IOC_PROVIDER_ANSWER, &answer);

	if (err == -EBADF && attach_again(reg))
		err = etw_device_ioctl(__atomic_load_n(&reg->fd, __ATOMIC_RELAXED), ETW_IOC_PROVIDER_ANSWER, &answer);
	errno = saved;
	return !err || err == -ENOENT ? err : failed(reg, err);
}

static inline int write_out(struct etw_registration *reg, const void *buf, size_t size)
{
	ssize_t ret;

	if (__builtin_expect(etw_thread.answering == reg, 0))
		return write_answer(reg, buf, size);
	ret = etw_device_write(__atomic_load_n(&reg->fd, __ATOMIC_RELAXED), buf, size);

	return __builtin_expect(ret >= 0, 1) ? 0 : not_written(reg, buf, size, ret);
}

/* ---- batches ---- */

/* What copy() may write behind the event. */
#define SLACK 48
/* Of a larger buffer no more is used: the smallest events are then as many as one write may have. */
#define BATCH_MOST (ETW_MAX_BATCH * sizeof(struct etw_write))

static void set_room(struct etw_batch *b)
{
	__asm__ volatile("" ::: "memory");
	b->room = (long)(b->buf + b->size - b->at) - SLACK;
}

void etw_batch_empty(struct etw_batch *b)
{
	b->at = b->buf;
	set_room(b);
}

static int flush(struct etw_batch *b)
{
	int err;

	if (b->at == b->buf)
		return 0;
	err = write_out(b->registration, b->buf, b->at - b->buf);
	b->at = b->buf;
	if (err && !b->error)
		b->error = err;
	return err;
}

static __attribute__((noinline)) int batch_make_room(struct etw_batch *b, struct etw_registration *reg,
						     const void *event, size_t size)
{
	int err = 0;

	/* It is being changed, by whom a signal interrupted. */
	if (b->room == BATCH_BUSY)
		return write_out(reg, event, size);
	b->room = BATCH_BUSY;
	__asm__ volatile("" ::: "memory");
	if (b->registration != reg || size > (size_t)(b->buf + b->size - b->at))
		err = flush(b);
	b->registration = reg;
	if (size > b->size) {
		err = write_out(reg, event, size);
	} else {
		memcpy(b->at, event, size);
		b->at += size;
	}
	set_room(b);
	return err;
}

/* Without a call, which costs more than it copies; both sides have room for SLACK more. */
static inline void copy(__u8 *to, const __u8 *from, size_t size)
{
	size_t i;

	memcpy(to, from, 16);
	memcpy(to + 16, from + 16, 16);
	memcpy(to + 32, from + 32, 16);
	for (i = 48; i < size; i += 16)
		memcpy(to + i, from + i, 16);
}

/* @event is in a buffer that goes on behind it. */
static inline int batch_add(struct etw_batch *b, struct etw_registration *reg, const void *event, size_t size)
{
	const long room = b->room;

	if (b->registration != reg || (long)size > room)
		return batch_make_room(b, reg, event, size);
	b->room = BATCH_BUSY;
	__asm__ volatile("" ::: "memory");
	copy(b->at, event, size);
	b->at += size;
	__asm__ volatile("" ::: "memory");
	b->room = room - size;
	return 0;
}

int etw_batch_begin(struct etw_batch *batch, void *buf, size_t size)
{
	if (size < 1024)
		return etw_error(-EINVAL, "a batch needs at least 1024 bytes of room");
	memset(batch, 0, sizeof(*batch));
	batch->buf = buf;
	batch->size = size > BATCH_MOST ? BATCH_MOST : size;
	batch->outer = etw_thread.batch;
	etw_batch_empty(batch);
	etw_thread.batch = batch;
	etw_thread_changed();
	return 0;
}

int etw_batch_flush(struct etw_batch *batch)
{
	int err;

	batch->room = BATCH_BUSY;
	__asm__ volatile("" ::: "memory");
	flush(batch);
	set_room(batch);
	err = batch->error;
	batch->error = 0;
	return err ? etw_error_errno(err, "events of a batch") : 0;
}

int etw_batch_end(struct etw_batch *batch)
{
	struct etw_batch **p = &etw_thread.batch;

	while (*p && *p != batch)
		p = &(*p)->outer;
	if (*p)
		*p = batch->outer;
	etw_thread_changed();
	return etw_batch_flush(batch);
}

void etw_answer(struct etw_registration *reg, __u64 capture)
{
	struct etw_batch *b;

	/* What was collected before is not part of it, and what it collected is. */
	for (b = etw_thread.batch; b; b = b->outer) {
		b->room = BATCH_BUSY;
		__asm__ volatile("" ::: "memory");
		flush(b);
		set_room(b);
	}
	etw_thread.answering = reg;
	etw_thread.capture = capture;
	etw_thread_changed();
}

int etw_answer_begin(struct etw_provider *provider, __u64 capture)
{
	struct etw_registration *reg = __atomic_load_n(&provider->registration, __ATOMIC_ACQUIRE);

	if (!reg || !capture)
		return etw_error(-EINVAL, "an answer is to what a callback got with ETW_CODE_CAPTURE");
	etw_answer(reg, capture);
	return 0;
}

void etw_answer_end(void)
{
	etw_answer(NULL, 0);
}

static inline int commit(struct etw_registration *reg, struct etw_batch *b, const void *event, size_t size)
{
	return __builtin_expect(!b, 1) ? write_out(reg, event, size) : batch_add(b, reg, event, size);
}

/* The event's head before its fields, and the ids that are there already. */
static inline int finish(struct etw_registration *reg, struct etw_batch *b, __u8 *at, unsigned int index, size_t size)
{
	const struct etw_write head = { sizeof(head) + size, index, 0 };

	at -= sizeof(head);
	memcpy(at, &head, sizeof(head));
	return commit(reg, b, at, sizeof(head) + size);
}

/* ---- the macros ---- */

/* Where there can be no thread, events look for the module: at most once a second. */
static bool too_soon(const struct etw_registration *reg)
{
	static __u64 next;
	struct timespec now;
	__u64 ns, due = __atomic_load_n(&next, __ATOMIC_RELAXED);

	if (reg->fd >= 0 || etw_forked)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	ns = (__u64)now.tv_sec * 1000000000 + now.tv_nsec;
	return ns < due ||
	       !__atomic_compare_exchange_n(&next, &due, ns + 1000000000, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static __attribute__((cold, noinline)) bool not_ready(struct etw_user_event *ev, unsigned int form)
{
	struct etw_registration *reg = __atomic_load_n(&ev->provider->registration, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&ev->state, __ATOMIC_RELAXED) & EVENT_FAILED)
		return true;
	if (reg && (__atomic_load_n(&ev->state, __ATOMIC_RELAXED) & EVENT_KNOWN) && too_soon(reg))
		return true;
	return etw_event_ready(ev, form) || !etw_event_enabled(ev);
}

int etw_writing_ready(struct etw_user_event *ev)
{
	return !not_ready(ev, 0);
}

/* With the thread's current activity id, if the event is one that takes it. */
static __attribute__((noinline)) int end_with_id(struct etw_user_event *ev, __u8 *fields, size_t size)
{
	struct etw_registration *reg = __atomic_load_n(&ev->provider->registration, __ATOMIC_ACQUIRE);
	struct etw_thread *t = &etw_thread;
	unsigned int state, index, prefix = 0;

	if (!reg)
		return 0;
	/* Behind the enable byte that let it pass. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	state = __atomic_load_n(&ev->state, __ATOMIC_RELAXED);
	index = ev->index[0];
	if (state & EVENT_HALF) {
		prefix = 16;
	} else if (!(state & EVENT_OWN) && (t->activity[0] | t->activity[1])) {
		/* An event that cannot have the id is better than none. */
		if ((state & EVENT_ACTIVITY) || !etw_event_ready(ev, 1)) {
			index = ev->index[1];
			prefix = 16;
		}
	}
	if (size > ETW_MAX_PAYLOAD - prefix)
		return failed(reg, -E2BIG);
	memcpy(fields - prefix, t->activity, prefix);
	return finish(reg, t->batch, fields - prefix, index, prefix + size);
}

static __attribute__((cold, noinline)) int end_not_written(struct etw_provider *provider, const void *buf, size_t size,
							   int err)
{
	struct etw_registration *reg = __atomic_load_n(&provider->registration, __ATOMIC_ACQUIRE);

	return reg ? not_written(reg, buf, size, err) : 0;
}

static inline __attribute__((always_inline)) int end(struct etw_user_event *ev, __u8 *fields, size_t size)
{
	struct etw_provider *provider = ev->provider;
	struct etw_registration *reg;
	/* What is special has this in the bit that decides. */
	__u64 head = __atomic_load_n(&ev->head, __ATOMIC_RELAXED) | etw_thread.head;
	const bool special = (__s64)head < 0;
	ssize_t ret;

	if (special && (head & ETW_HEAD_IDS))
		return end_with_id(ev, fields, size);
	head = (head & ~ETW_HEAD_SLOW) + size;
	fields -= sizeof(head);
	memcpy(fields, &head, sizeof(head));
	size += sizeof(head);
	if (special) {
		reg = __atomic_load_n(&provider->registration, __ATOMIC_ACQUIRE);
		return reg ? commit(reg, etw_thread.batch, fields, size) : 0;
	}
	ret = etw_device_write(__atomic_load_n(&provider->fd, __ATOMIC_RELAXED), fields, size);
	return __builtin_expect(ret >= 0, 1) ? 0 : end_not_written(provider, fields, size, ret);
}

void etw_writing_end(struct etw_user_event *ev, __u8 *fields, size_t size)
{
	end(ev, fields, size);
}

static void free_large(void *large)
{
	munmap(large, LARGE);
}

/* Other destructors of the thread may still write. */
static void thread_ends(void *large)
{
	etw_thread.large = NULL;
	free_large(large);
}

static pthread_key_t large_key;
static pthread_once_t large_once = PTHREAD_ONCE_INIT;
static bool large_kept;

static void make_large_key(void)
{
	large_kept = !pthread_key_create(&large_key, thread_ends);
}

static __u8 *map_large(void)
{
	void *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return large == MAP_FAILED ? NULL : large;
}

static __attribute__((destructor)) void forget_large(void)
{
	if (large_kept)
		pthread_key_delete(large_key);
}

/* A thread keeps its buffer for large events; one that a signal handler needs meanwhile is for once. */
__u8 *etw_writing_room(struct etw_user_event *ev, size_t size)
{
	struct etw_registration *reg = __atomic_load_n(&ev->provider->registration, __ATOMIC_ACQUIRE);
	int saved = errno;
	__u8 *large = NULL;

	if (!reg)
		return NULL;
	if (size > ETW_MAX_PAYLOAD) {
		failed(reg, -E2BIG);
		return NULL;
	}
	if (!etw_thread.large_used) {
		pthread_once(&large_once, make_large_key);
		if (!etw_thread.large && large_kept) {
			etw_thread.large = map_large();
			if (etw_thread.large && pthread_setspecific(large_key, etw_thread.large)) {
				free_large(etw_thread.large);
				etw_thread.large = NULL;
			}
		}
		large = etw_thread.large;
		etw_thread.large_used = large;
	}
	if (!large)
		large = map_large();
	errno = saved;
	if (!large) {
		failed(reg, -ENOMEM);
		return NULL;
	}
	return large + ETW_WRITING_PREFIX;
}

static void give_room_back(__u8 *fields)
{
	int saved = errno;

	if (fields == etw_thread.large + ETW_WRITING_PREFIX)
		etw_thread.large_used = false;
	else
		free_large(fields - ETW_WRITING_PREFIX);
	errno = saved;
}

void etw_writing_end_large(struct etw_user_event *ev, __u8 *fields, size_t size)
{
	end(ev, fields, size);
	give_room_back(fields);
}

/* ---- at run time ---- */

static size_t iov_size(const struct iovec *iov, int nr)
{
	size_t size = 0;

	while (nr-- > 0) {
		size_t len = (iov++)->iov_len;

		size = len > ETW_MAX_WRITE || size > ETW_MAX_WRITE ? ETW_MAX_WRITE + 1 : size + len;
	}
	return size;
}

static void iov_copy(__u8 *to, const struct iovec *iov, int nr)
{
	for (; nr > 0; nr--, iov++) {
		if (iov->iov_len)
			memcpy(to, iov->iov_base, iov->iov_len);
		to += iov->iov_len;
	}
}

/* With the ids that the caller gives. */
static int end_with_ids(const struct etw_event_data *d, __u8 *fields, size_t size)
{
	struct etw_user_event *ev = d->event;
	struct etw_registration *reg = __atomic_load_n(&ev->provider->registration, __ATOMIC_ACQUIRE);
	const __u8 *activity = d->activity ? d->activity : (const __u8 *)etw_thread.activity;
	const unsigned int form = d->related ? 2 : 1;
	int err = 0;

	if (!reg)
		return 0;
	if (ev->state & (EVENT_OWN | EVENT_HALF))
		err = etw_error(-EINVAL, "event %s has activity ids among its fields", ev->name);
	else if (!(ev->state & (form == 2 ? EVENT_RELATED : EVENT_ACTIVITY)))
		err = etw_event_ready(ev, form);
	if (!err && size > ETW_MAX_PAYLOAD - form * 16)
		err = -E2BIG;
	if (err)
		return failed(reg, err);
	fields -= form * 16;
	memcpy(fields, activity, 16);
	if (form == 2)
		memcpy(fields + 16, d->related, 16);
	return finish(reg, etw_thread.batch, fields, ev->index[form], form * 16 + size);
}

static int write_one(const struct etw_event_data *d)
{
	__u8 buf[ETW_WRITING_PREFIX + ETW_WRITING_ROOM], *fields = buf + ETW_WRITING_PREFIX;
	const size_t size = iov_size(d->iov, d->nr);
	int err;

	if (!etw_event_enabled(d->event) || (etw_writing_asks(d->event) && !etw_writing_ready(d->event)))
		return 0;
	if (size > ETW_WRITING_ROOM) {
		fields = etw_writing_room(d->event, size);
		if (!fields)
			return -E2BIG;
	}
	iov_copy(fields, d->iov, d->nr);
	err = d->activity || d->related ? end_with_ids(d, fields, size) : end(d->event, fields, size);
	if (size > ETW_WRITING_ROOM)
		give_room_back(fields);
	return err;
}

/* The text of what went wrong; errno as it was. */
static int result(const struct etw_user_event *ev, int err, int saved)
{
	if (err)
		etw_error_errno(err, "event %s", ev->name);
	errno = saved;
	return err;
}

int etw_event_write(struct etw_user_event *event, const void *payload, size_t size)
{
	const struct iovec iov = { (void *)payload, size };
	const struct etw_event_data data = { .event = event, .iov = &iov, .nr = 1 };

	if (!etw_event_enabled(event))
		return 0;
	return result(event, write_one(&data), errno);
}

int etw_event_writev(struct etw_user_event *event, const struct iovec *iov, int nr)
{
	const struct etw_event_data data = { .event = event, .iov = iov, .nr = nr < 0 ? 0 : nr };

	if (!etw_event_enabled(event))
		return 0;
	return result(event, write_one(&data), errno);
}

/* Without a batch of the caller's, one of ours. */
int etw_event_write_many(const struct etw_event_data *events, unsigned int nr)
{
	__u8 room[4096];
	struct etw_batch batch;
	int saved = errno, err = 0, ret;
	unsigned int i, bad = 0;

	for (i = 1; i < nr; i++)
		if (events[i].event->provider != events[0].event->provider)
			return etw_error(-EINVAL, "events of one write are of one provider; %s and %s are not",
					 events[0].event->name, events[i].event->name);
	etw_batch_begin(&batch, room, sizeof(room));
	for (i = 0; i < nr; i++) {
		ret = write_one(&events[i]);
		if (ret && !err) {
			err = ret;
			bad = i;
		}
	}
	ret = etw_batch_end(&batch);
	if (!err)
		err = ret;
	errno = saved;
	return err ? result(events[bad].event, err, saved) : 0;
}
