// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The process's registrations: made, attached to the module when there is one, and their events. An event has its
 * number and its enable byte from its definition on, module or not: the bytes are memory of our own until the
 * module's are mapped over them, and the classes are told to the module in the order of their numbers. It must not
 * know how events are packed or who waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "error.h"
#include "provider_int.h"

/* Descriptors are kept where a program that closes "all" of its own, or opens a few, does not come. */
#define HIGH_FD 768

struct etw_registration *etw_registrations;
int etw_forked;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool is_left = true; /* the parent of this process, by its child: see in_child() */
static const unsigned char nobody; /* the enable byte of what cannot be written */

/*
 * Descriptors of given-up registrations: kept busy, lest a late writer's event go into another file. They are the reading
 * end of a pipe, of which no file of the program's has the inode.
 */
static int *parked;
static unsigned int nr_parked;
static dev_t parked_dev;
static ino_t parked_ino;

/* Who is cancelled is so afterwards: inside are cancellation points. */
bool etw_lock(void)
{
	int state;

	if (etw_thread.inside)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	etw_thread.inside = true;
	etw_thread.cancel_state = state;
	pthread_mutex_lock(&mutex);
	return true;
}

void etw_unlock(void)
{
	const int state = etw_thread.cancel_state;

	pthread_mutex_unlock(&mutex);
	/* From here on a signal handler may lock. */
	etw_thread.inside = false;
	pthread_setcancelstate(state, NULL);
}

void etw_wait_unlocked(void)
{
	pthread_cond_wait(&cond, &mutex);
}

void etw_broadcast(void)
{
	pthread_cond_broadcast(&cond);
}

/* A handler's fork can come in the middle of its thread's, or of another call on the library. */
static void before_fork(void)
{
	if (!etw_lock())
		etw_thread.forks_inside++;
}

static void in_parent(void)
{
	if (etw_thread.forks_inside)
		etw_thread.forks_inside--;
	else
		etw_unlock();
}

static size_t bytes_size(void)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return page > ETW_MAX_EVENTS ? page : ETW_MAX_EVENTS;
}

static bool map_zeros(struct etw_registration *reg, int protection)
{
	return mmap(reg->bytes, bytes_size(), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Puts memory of our own, zeros, where the module's enable bytes may be. */
static bool map_own(struct etw_registration *reg)
{
	reg->writable |= map_zeros(reg, PROT_READ | PROT_WRITE);
	return reg->writable;
}

/* Enable bytes of a registration that is not attached. Without memory for them they stay as they are. */
static void set_bytes(struct etw_registration *reg, int value)
{
	if (reg->writable || map_own(reg))
		memset(reg->bytes, value, bytes_size());
}

/* Whoever waited or called back is not here. */
static void leave_parent(void)
{
	struct etw_registration *reg;

	cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	etw_watch_forked();
	for (reg = etw_registrations; reg; reg = reg->next) {
		reg->running = false;
		/* Who has a callback needs a file of its own: see etw_after_fork(). */
		if (reg->fn && reg->fd >= 0 && map_own(reg))
			set_bytes(reg, ETW_BYTE_ASK);
		else if (etw_unattached(reg))
			set_bytes(reg, ETW_BYTE_ASK);
	}
}

static void in_child(void)
{
	struct etw_batch *batch;

	for (batch = etw_thread.batch; batch; batch = batch->outer)
		etw_batch_empty(batch);
	/* It is the parent that was asked. */
	etw_thread.answering = NULL;
	etw_thread.capture = 0;
	etw_thread_changed();
	etw_forked = 1;
	/* What a handler's fork came into is not to be changed: left to etw_after_fork(). */
	is_left = !etw_thread.forks_inside;
	if (is_left)
		leave_parent();
	in_parent();
}

static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

bool etw_unattached(const struct etw_registration *reg)
{
	return reg->provider && reg->fd < 0 && !reg->refused;
}

/* ---- descriptors ---- */

int etw_raise_fd(int fd)
{
	struct rlimit limit;
	int high = HIGH_FD;

	if (fd < 0)
		return fd;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < HIGH_FD / 3 * 4)
		high = limit.rlim_cur / 4 * 3;
	high = fcntl(fd, F_DUPFD_CLOEXEC, high);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* The program may have closed it, and have a file of its own there. */
static bool is_parked(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == parked_dev && st.st_ino == parked_ino;
}

/* Leaves those that still are at the end; false: none is. */
static bool any_parked(void)
{
	while (nr_parked && !is_parked(parked[nr_parked - 1]))
		nr_parked--;
	return nr_parked;
}

/* For the module's files only: a late writer would write into what is there. */
static int raise_file(int fd)
{
	while (any_parked()) {
		int old = parked[--nr_parked];

		if (dup3(fd, old, O_CLOEXEC) == old) {
			close(fd);
			return old;
		}
	}
	return etw_raise_fd(fd);
}

static int open_parked(void)
{
	struct stat st;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	close(ends[1]);
	if (!fstat(ends[0], &st)) {
		parked_dev = st.st_dev;
		parked_ino = st.st_ino;
	}
	return ends[0];
}

/* Ends what @fd is, and keeps its number. */
static void park_fd(int fd)
{
	const bool any = any_parked();
	int *more = realloc(parked, (nr_parked + 1) * sizeof(*parked));
	int as = -1;

	if (more) {
		parked = more;
		as = any ? parked[nr_parked - 1] : open_parked();
	}
	if (as >= 0 && dup3(as, fd, O_CLOEXEC) == fd)
		parked[nr_parked++] = fd;
	else
		close(fd);
	if (as >= 0 && !any)
		close(as);
}

/* ---- attaching ---- */

int etw_ask_module(struct etw_registration *reg, struct etw_enabled_query *query)
{
	int err;

	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	err = etw_device_ioctl(reg->fd, ETW_IOC_PROVIDER_ENABLED, query);
	if (!err && reg->file && query->registration != reg->file)
		err = -EBADF;
	return err;
}

int etw_ask_capture(struct etw_registration *reg, __u64 after, struct etw_capture_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->id = after;
	return etw_device_ioctl(reg->fd, ETW_IOC_PROVIDER_CAPTURE, query);
}

static int tell_class(struct etw_registration *reg, int fd, unsigned int nr)
{
	struct etw_event_register event = {
		.size = sizeof(event),
		.schema = (__u64)(uintptr_t)reg->classes[nr],
		.schema_size = reg->classes[nr]->size,
	};
	const char *name = (const char *)reg->classes[nr] + reg->classes[nr]->name;
	int ret = etw_device_ioctl(fd, ETW_IOC_PROVIDER_EVENT, &event);

	if (ret == -EDQUOT)
		return etw_error(ret,
				 "event %s of %s: this user, or all together, have as many events, or as much in them, as they may",
				 name, reg->what.name);
	if (ret < 0)
		return etw_error_errno(ret, "event %s of %s", name, reg->what.name);
	if ((unsigned int)ret != nr)
		return etw_error(-EPROTO, "event %s of %s: the module gave it the number %d, not %u", name,
				 reg->what.name, ret, nr);
	return 0;
}

/* Those that the module does not know yet, in order; up to the first that it refuses. */
static int tell_classes(struct etw_registration *reg, int fd)
{
	int err = 0;

	while (reg->nr_known < reg->nr_classes && !err) {
		err = tell_class(reg, fd, reg->nr_known);
		if (!err)
			reg->nr_known++;
	}
	return err;
}

static int open_module(void)
{
	struct etw_version version = { .size = sizeof(version) };
	int fd = etw_device_open(), err;

	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV || fd == -ENOTDIR)
		return -ENODEV;
	if (fd == -EACCES || fd == -EPERM)
		return etw_error(-EACCES, "/dev/etw may not be opened by this user: have the file's mode changed");
	if (fd < 0)
		return etw_error_errno(fd, "/dev/etw");
	err = etw_device_ioctl(fd, ETW_IOC_VERSION, &version);
	if (!err && version.abi == ETW_ABI_VERSION)
		return fd;
	close(fd);
	return etw_error(-EPROTO, "the loaded module has another ABI than this program's library (%u)",
			 ETW_ABI_VERSION);
}

static int register_error(struct etw_registration *reg, int err)
{
	const char *name = (const char *)reg->what.name;

	switch (err) {
	case -EPERM:
		return etw_error(err, "provider %s: this name or GUID is the kernel's", name);
	case -EDQUOT:
		return etw_error(err, "provider %s: this user, or all together, have as many providers as they may",
				 name);
	default:
		return etw_error_errno(err, "provider %s", name);
	}
}

/* A module is there or not, or may come in a form that suits, or a descriptor may be free; anything else is an answer. */
static bool may_come(int err)
{
	return err == -ENODEV || err == -EACCES || err == -EPROTO || err == -EMFILE || err == -ENFILE;
}

/* Whoever sees an enable byte set must find the file. */
static void set_fd(struct etw_registration *reg, int fd)
{
	__atomic_store_n(&reg->fd, fd, __ATOMIC_RELEASE);
	__atomic_store_n(&reg->provider->fd, fd, __ATOMIC_RELEASE);
}

int etw_attach(struct etw_registration *reg)
{
	struct etw_enabled_query query;
	int control, fd, err;

	if (reg->fd >= 0)
		return 1;
	control = open_module();
	if (control < 0) {
		reg->error = control;
		reg->refused = !may_come(control);
		if (reg->refused)
			set_bytes(reg, 0);
		return control == -ENODEV ? 0 : control;
	}
	reg->what.keywords = reg->what.nr_keywords ? (__u64)(uintptr_t)reg->keywords : 0;
	fd = etw_device_ioctl(control, ETW_IOC_PROVIDER_REGISTER, &reg->what);
	close(control);
	if (fd < 0) {
		reg->error = fd;
		reg->refused = !may_come(fd);
		if (reg->refused)
			set_bytes(reg, 0);
		return register_error(reg, fd);
	}
	fd = raise_file(fd);
	reg->nr_known = 0;
	reg->refused = false;
	reg->error = tell_classes(reg, fd);
	set_fd(reg, fd);
	reg->file = 0;
	if (!etw_ask_module(reg, &query))
		reg->file = query.registration;
	reg->writable = false;
	err = etw_device_map(fd, reg->bytes, bytes_size());
	if (err) {
		etw_detach(reg);
		reg->error = err;
		reg->refused = true;
		return etw_error_errno(err, "enable bytes of %s", reg->what.name);
	}
	etw_watch_attached(reg);
	return 1;
}

/* The descriptor may have been closed by the program, and be a file of its own now. */
static bool is_ours(struct etw_registration *reg)
{
	struct etw_enabled_query query;

	return !etw_ask_module(reg, &query);
}

void etw_detach(struct etw_registration *reg)
{
	int fd = reg->fd;

	if (fd < 0)
		return;
	/* Zeros that cannot be changed need no memory, which there may be none of. */
	if (!map_own(reg))
		map_zeros(reg, PROT_READ);
	etw_watch_detaching(reg);
	if (is_ours(reg))
		park_fd(fd);
	set_fd(reg, -1);
	reg->nr_known = 0;
}

/* The file is shared with the parent, and so is what it says of changes: who is called needs one of its own. */
void etw_after_fork(void)
{
	struct etw_registration *reg;

	if (!etw_forked)
		return;
	etw_forked = 0;
	if (!is_left)
		leave_parent();
	is_left = true;
	for (reg = etw_registrations; reg; reg = reg->next) {
		if (!reg->provider)
			continue;
		/* First, or it would be the parent's epoll that the file is taken out of. */
		etw_watch_after_fork(reg);
		if (reg->fn && reg->fd >= 0) {
			etw_detach(reg);
			etw_attach(reg);
		}
	}
}

/* ---- making and giving up ---- */

static struct etw_registration *reg_new(void)
{
	struct etw_registration *reg;

	for (reg = etw_registrations; reg; reg = reg->next)
		if (!reg->provider)
			return reg;
	reg = calloc(1, sizeof(*reg));
	if (!reg)
		return NULL;
	reg->bytes = mmap(NULL, bytes_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reg->bytes == MAP_FAILED) {
		free(reg);
		return NULL;
	}
	reg->writable = true;
	reg->fd = -1;
	reg->poll_fd = -1;
	reg->nudge = -1;
	reg->inotify = -1;
	reg->next = etw_registrations;
	etw_registrations = reg;
	return reg;
}

static void free_events(struct etw_registration *reg)
{
	struct heap_event *h;
	unsigned int i;

	while ((h = reg->events)) {
		reg->events = h->next;
		for (i = 0; i < 3; i++)
			free(h->forms[i]);
		free(h);
	}
	for (i = 0; i < reg->nr_classes; i++)
		free(reg->classes[i]);
	free(reg->classes);
	free(reg->keywords);
}

/* Its memory stays, for writers that come too late: they find no file. */
static void give_up(struct etw_registration *reg)
{
	struct etw_registration empty = {
		.next = reg->next,
		.serial = reg->serial + 1,
		.bytes = reg->bytes,
		.writable = reg->writable,
		.fd = -1,
		.poll_fd = -1,
		.nudge = -1,
		.inotify = -1,
	};

	etw_watch_give_up(reg);
	if (reg->serial + 1 != empty.serial)
		return;
	__atomic_store_n(&reg->provider->registration, NULL, __ATOMIC_RELEASE);
	etw_detach(reg);
	set_bytes(reg, 0);
	free_events(reg);
	*reg = empty;
}

static int check_options(const struct etw_provider_options *o)
{
	unsigned int i;

	if (!o->name || !etw_name_valid(o->name))
		return etw_error(
			-EINVAL,
			"\"%s\" is no name for a provider: a letter, then letters, digits, _ . -, at most %u",
			o->name ? o->name : "", ETW_NAME_SIZE - 1);
	if (o->flags & ~ETW_PROVIDER_NO_THREAD)
		return etw_error(-EINVAL, "provider %s: unknown flags %#x", o->name, o->flags);
	if (o->nr_keywords > ETW_MAX_KEYWORDS)
		return etw_error(-EINVAL, "provider %s: more than %u names of keywords", o->name, ETW_MAX_KEYWORDS);
	for (i = 0; i < o->nr_keywords; i++) {
		const struct etw_keyword *k = &o->keywords[i];

		if (!memchr(k->name, 0, sizeof(k->name)) || !etw_name_valid((const char *)k->name) || !k->mask)
			return etw_error(
				-EINVAL,
				"provider %s: keyword %u, \"%.31s\", needs a name of at most 31 characters and bits",
				o->name, i, k->name);
	}
	return 0;
}

/* Nobody has to wait for a module that the program's loop looks for, and nobody asks for one that refused. */
static void ask_or_not(struct etw_registration *reg)
{
	if (reg->fd < 0)
		set_bytes(reg, etw_unattached(reg) && reg->poll_fd < 0 ? ETW_BYTE_ASK : 0);
}

static int reg_make(const struct etw_provider_options *o, struct etw_provider *provider,
		    struct etw_registration **out)
{
	struct etw_registration *reg;
	int err = check_options(o);

	if (err)
		return err;
	reg = reg_new();
	if (!reg)
		return etw_error_errno(-ENOMEM, "provider %s", o->name);
	reg->keywords = calloc(o->nr_keywords + 1, sizeof(*reg->keywords));
	if (!reg->keywords)
		return etw_error_errno(-ENOMEM, "provider %s", o->name);
	if (o->nr_keywords)
		memcpy(reg->keywords, o->keywords, o->nr_keywords * sizeof(*reg->keywords));
	memset(&reg->what, 0, sizeof(reg->what));
	reg->what.size = sizeof(reg->what);
	memcpy(reg->what.name, o->name, strlen(o->name));
	if (o->guid)
		memcpy(reg->what.guid, o->guid, 16);
	reg->what.nr_keywords = o->nr_keywords;
	reg->flags = o->flags;
	reg->provider = provider ? provider : &reg->own;
	reg->own.size = sizeof(reg->own);
	reg->provider->fd = -1;
	*out = reg;
	return 0;
}

int etw_provider_register(const struct etw_provider_options *options, struct etw_provider **provider)
{
	struct etw_provider_options o = { .size = sizeof(o) };
	struct etw_registration *reg;
	int err;

	if (!options || options->size < offsetof(struct etw_provider_options, flags))
		return etw_error(-EINVAL, "provider options: set their size with sizeof");
	memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not register a provider");
	etw_after_fork();
	err = reg_make(&o, NULL, &reg);
	if (!err) {
		__atomic_store_n(&reg->own.registration, reg, __ATOMIC_RELEASE);
		*provider = &reg->own;
		err = etw_attach(reg);
		/* That there is none, or none for us, can change. */
		if (err >= 0 || may_come(err))
			err = 0;
		else
			give_up(reg);
	}
	if (!err)
		ask_or_not(reg);
	etw_unlock();
	return err;
}

void etw_provider_unregister(struct etw_provider *provider)
{
	struct etw_registration *reg;

	if (!provider || !etw_lock())
		return;
	etw_after_fork();
	reg = provider->registration;
	if (provider->items)
		provider->reserved = provider;
	if (reg)
		give_up(reg);
	etw_unlock();
}

/* ---- of the macros ---- */

static int start_locked(struct etw_provider *provider)
{
	struct etw_keyword keywords[ETW_MAX_KEYWORDS] = {};
	struct etw_provider_options o = { .size = sizeof(o), .name = provider->items[0].text, .keywords = keywords };
	struct etw_registration *reg;
	__u8 guid[16];
	unsigned int i;
	int err;

	if (provider->registration)
		return 0;
	for (i = 1; i < provider->nr_items; i++) {
		const struct etw_provider_item *item = &provider->items[i];

		if (item->kind == ETW_ITEM_GUID) {
			err = etw_guid_parse(item->text, guid);
			if (err)
				return err;
			o.guid = guid;
			continue;
		}
		if (o.nr_keywords == ETW_MAX_KEYWORDS || strlen(item->text) >= sizeof(keywords[0].name))
			return etw_error(-EINVAL,
					 "provider %s: keyword %s is one too many or longer than 31 characters",
					 o.name, item->text);
		strcpy((char *)keywords[o.nr_keywords].name, item->text);
		keywords[o.nr_keywords++].mask = item->value;
	}
	err = reg_make(&o, provider, &reg);
	if (err)
		return err;
	provider->reserved = NULL;
	__atomic_store_n(&provider->registration, reg, __ATOMIC_RELEASE);
	err = etw_attach(reg);
	ask_or_not(reg);
	return err < 0 ? err : 0;
}

/* What goes wrong where nobody can be told: for who looks for it. */
static void complain(int err)
{
	if (err < 0 && secure_getenv("ETW_DEBUG"))
		fprintf(stderr, "libetw: %s\n", etw_last_error());
}

static int add_class(struct etw_registration *reg, struct etw_schema *schema);

/* Numbers for an event of the macros. */
static int define_form(struct etw_registration *reg, struct etw_user_event *ev, unsigned int form)
{
	static const unsigned int with[] = { 0, WITH_ACTIVITY, WITH_ACTIVITY | WITH_RELATED };
	struct etw_event_options o = { .name = ev->name, .level = ev->level, .keyword = ev->keyword };
	struct etw_schema *schema;
	int ret;

	if (ev->state & EVENT_HEAP) {
		struct heap_event *h = (struct heap_event *)ev;

		schema = malloc(h->forms[form]->size);
		if (!schema)
			return etw_error_errno(-ENOMEM, "event %s", ev->name);
		memcpy(schema, h->forms[form], h->forms[form]->size);
	} else {
		unsigned int ids = form || !(ev->state & EVENT_HALF) ? with[form] : WITH_ACTIVITY;

		ret = etw_describe(&o, ev->fields, ids, &schema);
		if (ret)
			return ret;
	}
	ret = add_class(reg, schema);
	if (ret >= 0)
		ev->index[form] = ret;
	return ret;
}

static unsigned int own_ids(const struct etw_field_info *fields)
{
	for (; fields->type != ETW_ITEM_END; fields++) {
		if (fields->type >= ETW_NR_TYPES)
			continue;
		if (fields->type != ETW_TYPE_GUID || !fields->name)
			return 0;
		return !strcmp(fields->name, ETW_FIELD_ACTIVITY) ? EVENT_OWN :
		       !strcmp(fields->name, ETW_FIELD_RELATED)	 ? EVENT_HALF :
								   0;
	}
	return 0;
}

static void publish(struct etw_registration *reg, struct etw_user_event *ev)
{
	const __u64 slow = ev->state & EVENT_HALF ? ETW_HEAD_SLOW | ETW_HEAD_IDS : 0;

	__atomic_store_n(&ev->head, (__u64)ev->index[0] << 32 | sizeof(struct etw_write) | slow, __ATOMIC_RELEASE);
	__atomic_store_n(&ev->state, ev->state | EVENT_KNOWN, __ATOMIC_RELEASE);
	__atomic_store_n(&ev->enabled, reg->bytes + ev->index[0], __ATOMIC_RELEASE);
}

static void fail_event(struct etw_registration *reg, struct etw_user_event *ev, int err)
{
	__atomic_store_n(&ev->state, ev->state | EVENT_FAILED, __ATOMIC_RELEASE);
	__atomic_store_n(&ev->enabled, &nobody, __ATOMIC_RELEASE);
	if (reg && !reg->error)
		reg->error = err;
	complain(err);
}

static int make_known(struct etw_registration *reg, struct etw_user_event *ev)
{
	int ret;

	if (ev->state & (EVENT_KNOWN | EVENT_FAILED))
		return 0;
	ev->state |= own_ids(ev->fields);
	ret = define_form(reg, ev, 0);
	if (ret < 0)
		fail_event(reg, ev, ret);
	else
		publish(reg, ev);
	return ret;
}

void etw_provider_start(struct etw_provider *provider, struct etw_user_event **begin, struct etw_user_event **end)
{
	int saved = errno, err;

	if (!etw_lock())
		return;
	etw_after_fork();
	err = start_locked(provider);
	if (!may_come(err))
		complain(err);
	if (provider->registration)
		for (; begin != end; begin++)
			if (*begin && (*begin)->provider == provider)
				make_known(provider->registration, *begin);
	etw_unlock();
	errno = saved;
}

void etw_provider_stop(struct etw_provider *provider)
{
	int saved = errno;

	if (!etw_lock())
		return;
	etw_after_fork();
	provider->reserved = provider; /* not to be started by a late event */
	if (provider->registration)
		give_up(provider->registration);
	etw_unlock();
	errno = saved;
}

/* ---- events ---- */

/* The number of the class in @reg, which then owns @schema; frees it otherwise. */
static int add_class(struct etw_registration *reg, struct etw_schema *schema)
{
	struct etw_schema **more;
	unsigned int i;
	int err = 0;

	for (i = 0; i < reg->nr_classes; i++)
		if (reg->classes[i]->size == schema->size && !memcmp(reg->classes[i], schema, schema->size)) {
			free(schema);
			return i;
		}
	if (reg->nr_classes == ETW_MAX_EVENTS) {
		free(schema);
		return etw_error(-ENOSPC, "provider %s has its %u events already", reg->what.name, ETW_MAX_EVENTS);
	}
	if (reg->nr_classes == reg->room) {
		more = realloc(reg->classes, (reg->room * 2 + 8) * sizeof(*more));
		if (!more) {
			free(schema);
			return etw_error_errno(-ENOMEM, "provider %s", reg->what.name);
		}
		reg->classes = more;
		reg->room = reg->room * 2 + 8;
	}
	reg->classes[reg->nr_classes++] = schema;
	if (reg->fd >= 0)
		err = tell_classes(reg, reg->fd);
	if (err) {
		/* The program closed the descriptor: the next event that is written attaches anew. */
		if (err == -EBADF)
			return reg->nr_classes - 1;
		reg->nr_classes--;
		free(schema);
		return err;
	}
	return reg->nr_classes - 1;
}

static bool same_event(const struct heap_event *h, const struct etw_schema *schema)
{
	return h->forms[0]->size == schema->size && !memcmp(h->forms[0], schema, schema->size);
}

static int define_locked(struct etw_registration *reg, const struct etw_event_options *o,
			 const struct etw_field_info *fields, struct etw_user_event **event)
{
	struct heap_event *h = calloc(1, sizeof(*h)), *old;
	unsigned int own = own_ids(fields), i;
	int err;

	if (!h)
		return etw_error_errno(-ENOMEM, "event");
	err = etw_describe(o, fields, own & EVENT_HALF ? WITH_ACTIVITY : 0, &h->forms[0]);
	for (old = reg->events; !err && old; old = old->next)
		if (same_event(old, h->forms[0])) {
			*event = &old->event;
			free(h->forms[0]);
			free(h);
			return 0;
		}
	/* Without ids of its own it has two more forms. They may be one or two fields too large. */
	if (!err && !own && etw_describe(o, fields, WITH_ACTIVITY, &h->forms[1]))
		h->forms[1] = NULL;
	if (!err && !own && etw_describe(o, fields, WITH_ACTIVITY | WITH_RELATED, &h->forms[2]))
		h->forms[2] = NULL;
	if (!err) {
		h->event.provider = reg->provider;
		h->event.name = (const char *)h->forms[0] + h->forms[0]->name;
		h->event.level = o->level;
		h->event.keyword = o->keyword;
		h->event.state = own | EVENT_HEAP;
		err = define_form(reg, &h->event, 0);
	}
	if (err < 0) {
		for (i = 0; i < 3; i++)
			free(h->forms[i]);
		free(h);
		return err;
	}
	h->next = reg->events;
	reg->events = h;
	publish(reg, &h->event);
	*event = &h->event;
	return 0;
}

int etw_event_define(struct etw_provider *provider, const struct etw_event_options *options,
		     struct etw_user_event **event)
{
	struct etw_event_options o = { .size = sizeof(o) };
	struct etw_field_info *fields;
	unsigned int i;
	int err;

	if (!options || options->size < offsetof(struct etw_event_options, keyword))
		return etw_error(-EINVAL, "event options: set their size with sizeof");
	memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	if (o.nr_fields > ETW_MAX_FIELDS)
		return etw_error(-E2BIG, "event %s: more than %u fields", o.name ? o.name : "", ETW_MAX_FIELDS);
	fields = calloc(o.nr_fields + 1, sizeof(*fields));
	if (!fields)
		return etw_error_errno(-ENOMEM, "event");
	if (o.nr_fields)
		memcpy(fields, o.fields, o.nr_fields * sizeof(*fields));
	for (i = 0; i < o.nr_fields; i++)
		if (!fields[i].type || fields[i].type >= ETW_NR_TYPES) {
			free(fields);
			return etw_error(-EINVAL, "event %s: field %u has no type there is", o.name ? o.name : "", i);
		}
	if (!etw_lock()) {
		free(fields);
		return etw_error(-EDEADLK, "a signal handler must not define an event");
	}
	etw_after_fork();
	if (provider->registration)
		err = define_locked(provider->registration, &o, fields, event);
	else
		err = etw_error(-EINVAL, "event %s: its provider is not registered", o.name ? o.name : "");
	etw_unlock();
	free(fields);
	return err;
}

/* ---- when an event cannot just be written ---- */

/* Somebody else does it and events need not ask again, or it is done now. */
static void look_for_module(struct etw_registration *reg)
{
	struct etw_registration *r;
	bool watched;

	if (reg->poll_fd >= 0) {
		set_bytes(reg, 0); /* the program's loop does */
		return;
	}
	watched = !(reg->flags & ETW_PROVIDER_NO_THREAD) && etw_watch_module();
	for (r = etw_registrations; r; r = r->next) {
		if (!etw_unattached(r))
			continue;
		if (!watched)
			etw_attach(r);
		else if (!(r->flags & ETW_PROVIDER_NO_THREAD))
			set_bytes(r, 0);
	}
}

/* Somebody closed a descriptor of the file, perhaps a child that ended, perhaps this process ours. */
static void check_file(struct etw_registration *reg)
{
	struct etw_enabled_query query;

	if (etw_ask_module(reg, &query)) {
		etw_detach(reg);
		etw_attach(reg);
		ask_or_not(reg);
	} else if (reg->fn && query.changes != reg->told_changes) {
		etw_watch_nudge(reg);
	}
}

static int ready_locked(struct etw_user_event *ev, unsigned int form)
{
	struct etw_provider *provider = ev->provider;
	struct etw_registration *reg;
	int err;

	etw_after_fork();
	if (!provider->registration) {
		/* Before its constructor, or after its destructor. */
		if (provider->reserved || !provider->items)
			return -ENODEV;
		err = start_locked(provider);
		if (!provider->registration) {
			fail_event(NULL, ev, err);
			return err;
		}
	}
	reg = provider->registration;
	err = make_known(reg, ev);
	if (err < 0)
		return err;
	if (etw_unattached(reg))
		look_for_module(reg);
	if (reg->fd >= 0 && etw_event_enabled(ev) && etw_writing_asks(ev))
		check_file(reg);
	if (reg->fd < 0)
		return -ENODEV;
	if (form && !(ev->state & (form == 1 ? EVENT_ACTIVITY : EVENT_RELATED))) {
		if ((ev->state & EVENT_HEAP) && !((struct heap_event *)ev)->forms[form])
			return etw_error(-E2BIG, "event %s has no field left for an activity id", ev->name);
		err = define_form(reg, ev, form);
		if (err < 0)
			return err;
		__atomic_store_n(&ev->state, ev->state | (form == 1 ? EVENT_ACTIVITY : EVENT_RELATED),
				 __ATOMIC_RELEASE);
	}
	return 0;
}

int etw_event_ready(struct etw_user_event *ev, unsigned int form)
{
	int saved = errno, err = -EDEADLK;

	if (etw_lock()) {
		err = ready_locked(ev, form);
		etw_unlock();
	}
	errno = saved;
	return err;
}

/* ---- asking ---- */

static int attach_now(struct etw_registration *reg)
{
	int ret;

	if (reg->fd >= 0)
		check_file(reg);
	ret = etw_attach(reg);
	ask_or_not(reg);
	return ret;
}

int etw_provider_attach(struct etw_provider *provider)
{
	struct etw_registration *reg;
	int ret = 0, err;

	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not attach providers");
	etw_after_fork();
	if (provider) {
		reg = provider->registration;
		ret = reg ? attach_now(reg) : etw_error(-EINVAL, "the provider is not registered");
	}
	for (reg = etw_registrations; !provider && reg; reg = reg->next) {
		if (!reg->provider)
			continue;
		err = attach_now(reg);
		ret = ret < 0 || (ret == 1 && !err) ? ret : err;
	}
	etw_unlock();
	return ret;
}

int etw_provider_status(struct etw_provider *provider, struct etw_provider_status *status)
{
	struct etw_provider_status s = { .size = sizeof(s) };
	struct etw_registration *reg;
	size_t size = status->size;

	if (size < offsetof(struct etw_provider_status, no_room))
		return etw_error(-EINVAL, "provider status: set its size with sizeof");
	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not ask for a provider's status");
	reg = provider->registration;
	if (reg) {
		s.attached = reg->fd >= 0;
		s.error = reg->error;
		s.nr_events = reg->nr_known;
		s.no_room = __atomic_load_n(&reg->no_room, __ATOMIC_RELAXED);
		s.too_large = __atomic_load_n(&reg->too_large, __ATOMIC_RELAXED);
		s.failed = __atomic_load_n(&reg->failed, __ATOMIC_RELAXED);
	} else {
		s.error = -EINVAL;
	}
	etw_unlock();
	memset(status, 0, size);
	memcpy(status, &s, size < sizeof(s) ? size : sizeof(s));
	status->size = size;
	return 0;
}

int etw_provider_query(struct etw_provider *provider, struct etw_enabled *enabled)
{
	struct etw_enabled e = { .size = sizeof(e) };
	struct etw_enabled_query query;
	struct etw_registration *reg;
	size_t size = enabled->size;
	int err = -ENODEV;

	if (size < offsetof(struct etw_enabled, capture))
		return etw_error(-EINVAL, "struct etw_enabled: set its size with sizeof");
	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not ask for a provider's state");
	etw_after_fork();
	reg = provider->registration;
	if (reg && reg->fd >= 0) {
		err = etw_ask_module(reg, &query);
		/* The file says no more that there is a change. */
		if (!err && reg->fn && query.changes != reg->told_changes)
			etw_watch_nudge(reg);
	}
	etw_unlock();
	if (err == -ENODEV)
		return etw_error(err, "the provider is not attached: there is no module");
	if (err)
		return etw_error_errno(err, "state of the provider");
	e.code = query.nr_sessions ? ETW_CODE_ENABLE : ETW_CODE_DISABLE;
	e.nr_sessions = query.nr_sessions;
	e.level = query.level;
	e.any = query.any;
	e.all = query.all;
	memset(enabled, 0, size);
	memcpy(enabled, &e, size < sizeof(e) ? size : sizeof(e));
	enabled->size = size;
	return 0;
}

int etw_provider_enabled(struct etw_provider *provider, unsigned int level, __u64 keyword)
{
	struct etw_registration *reg = __atomic_load_n(&provider->registration, __ATOMIC_ACQUIRE);
	struct etw_enabled e = { .size = sizeof(e) };
	unsigned int i;

	if (!reg || reg->fd < 0)
		return 0;
	for (i = 0; i < reg->nr_known && !__atomic_load_n(&reg->bytes[i], __ATOMIC_RELAXED); i++)
		;
	if (i == reg->nr_known || etw_provider_query(provider, &e) || !e.nr_sessions)
		return 0;
	if (level > e.level)
		return 0;
	return !keyword || ((keyword & e.any) && (keyword & e.all) == e.all);
}
