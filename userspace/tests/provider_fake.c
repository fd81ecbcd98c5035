// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes the place of the library's calls to the device. A provider file is the read end of a pipe, which is readable
 * when the real one is; a file in memory has its enable bytes. It must not know how the library is built.
 */
#include "provider_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "class.h"
#include "provider_int.h"

#define MAX_FILES 32
#define MAX_LOG	  4096

struct file {
	bool used;
	char name[ETW_NAME_SIZE];
	dev_t dev;
	__u64 registration;
	ino_t ino;
	int write_end;
	int bytes;
	unsigned char *map;
	struct etw_class *classes[ETW_MAX_EVENTS];
	void *blobs[ETW_MAX_EVENTS];
	unsigned int nr;
	__u64 changes, told, captures;
};

struct logged {
	__u32 file;
	__u32 index;
	__u32 at;
	__u32 size;
};

/* What a session wants; one a name. */
struct wish {
	char name[ETW_NAME_SIZE];
	bool on;
	unsigned int level;
	__u64 any;
};

static struct file *files;
static struct wish wishes[16];
/* Seen by children. */
static struct {
	bool loaded;
	unsigned int nr, writes, registrations, used, answers;
	struct logged log[MAX_LOG];
	__u8 bytes[4 << 20];
} * shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char dir[64];

int fake_open_error, fake_register_error, fake_event_error, fake_write_error;

static int once(int *error)
{
	int err = *error;

	*error = 0;
	return err;
}

static void clean(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/etw", dir);
	unlink(path);
	rmdir(dir);
}

void fake_init(void)
{
	files = calloc(MAX_FILES, sizeof(*files));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy(dir, "/tmp/provider-test-XXXXXX");
	if (!files || shared == MAP_FAILED || !mkdtemp(dir))
		abort();
	atexit(clean);
}

void fake_load(void)
{
	char path[96];
	int fd;

	shared->loaded = true;
	snprintf(path, sizeof(path), "%s/etw", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static struct file *file_of(int fd)
{
	struct stat st;
	int i;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	for (i = 0; i < MAX_FILES; i++)
		if (files[i].used && files[i].dev == st.st_dev && files[i].ino == st.st_ino)
			return &files[i];
	return NULL;
}

static struct wish *wish_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < 15 && wishes[i].name[0] && strcasecmp(wishes[i].name, name); i++)
		;
	if (!wishes[i].name[0])
		strcpy(wishes[i].name, name);
	return &wishes[i];
}

static void set_bytes(struct file *f)
{
	const struct wish *w = wish_of(f->name);
	unsigned int i;

	for (i = 0; i < f->nr; i++) {
		const struct etw_class *c = f->classes[i];

		f->map[i] = w->on && (!w->level || c->level <= w->level) &&
			    (!c->keyword || !w->any || (c->keyword & w->any));
	}
}

static void changed(const char *name, bool captured)
{
	int i;

	for (i = 0; i < MAX_FILES; i++) {
		struct file *f = &files[i];

		if (!f->used || strcasecmp(f->name, name))
			continue;
		set_bytes(f);
		/* Nobody may have it open any more. */
		if (f->changes == f->told && write(f->write_end, "x", 1) != 1)
			continue;
		f->changes++;
		f->captures += captured;
	}
}

void fake_enable(const char *provider, unsigned int level, __u64 any)
{
	struct wish *w;

	pthread_mutex_lock(&mutex);
	w = wish_of(provider);
	w->on = true;
	w->level = level;
	w->any = any;
	changed(provider, false);
	pthread_mutex_unlock(&mutex);
}

void fake_disable(const char *provider)
{
	pthread_mutex_lock(&mutex);
	wish_of(provider)->on = false;
	changed(provider, false);
	pthread_mutex_unlock(&mutex);
}

void fake_capture(const char *provider)
{
	pthread_mutex_lock(&mutex);
	changed(provider, true);
	pthread_mutex_unlock(&mutex);
}

unsigned int fake_files(const char *provider)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		struct file *f = file_of(fd);

		n += f && !strcasecmp(f->name, provider);
	}
	return n;
}

unsigned int fake_registrations(void)
{
	return shared->registrations;
}

unsigned int fake_writes(void)
{
	return shared->writes;
}

/* ---- the calls ---- */

const char *etw_device_dir(void)
{
	return dir;
}

const char *etw_device_name(void)
{
	return "etw";
}

int etw_device_open(void)
{
	int err = once(&fake_open_error);

	if (err)
		return err;
	return shared && shared->loaded ? open("/dev/null", O_RDWR | O_CLOEXEC) : -ENOENT;
}

/* Nobody has it open. */
static bool is_dead(const struct file *f)
{
	struct pollfd p = { .fd = f->write_end };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

static void forget(struct file *f)
{
	unsigned int i;

	for (i = 0; i < f->nr; i++) {
		etw_class_free(f->classes[i]);
		free(f->blobs[i]);
	}
	close(f->write_end);
	close(f->bytes);
	munmap(f->map, ETW_MAX_EVENTS);
	memset(f, 0, sizeof(*f));
}

/* Not taken for a file of the library's, nor in the place of one of the program's. */
static int out_of_the_way(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 1024);

	close(fd);
	return high;
}

static int register_provider(const struct etw_provider_register *r)
{
	int err = once(&fake_register_error), ends[2], i;
	struct file *f;
	struct stat st;

	if (err)
		return err;
	if (r->size != sizeof(*r) || !etw_name_valid((const char *)r->name) || r->flags || r->reserved ||
	    !r->keywords != !r->nr_keywords)
		return -EINVAL;
	for (i = 0; i < MAX_FILES && files[i].used; i++)
		;
	for (i = i < MAX_FILES ? i : 0; i < MAX_FILES && files[i].used && !is_dead(&files[i]); i++)
		;
	if (i < MAX_FILES && files[i].used)
		forget(&files[i]);
	if (i == MAX_FILES || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -EDQUOT;
	f = &files[i];
	fstat(ends[0], &st);
	strcpy(f->name, (const char *)r->name);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->write_end = out_of_the_way(ends[1]);
	f->bytes = out_of_the_way(memfd_create("bytes", MFD_CLOEXEC));
	if (f->write_end < 0 || f->bytes < 0 || ftruncate(f->bytes, ETW_MAX_EVENTS))
		abort();
	f->map = mmap(NULL, ETW_MAX_EVENTS, PROT_READ | PROT_WRITE, MAP_SHARED, f->bytes, 0);
	f->used = true;
	f->changes = wish_of(f->name)->on ? 1 : 0;
	if (f->changes && write(f->write_end, "x", 1) != 1)
		abort();
	f->registration = ++shared->registrations;
	return ends[0];
}

/* The entry with the provider's name in it, as the module's own would have it. */
static struct etw_class *parse(const struct file *f, const struct etw_schema *s)
{
	const size_t size = s->size + ETW_NAME_SIZE;
	struct etw_schema *own = calloc(1, size);
	struct etw_class *class = NULL;

	memcpy(own, s, s->size);
	own->size = size;
	own->provider = s->size;
	strcpy((char *)own + s->size, f->name);
	if (s->class_id || s->provider || s->ctf_name || s->reserved || s->size % 8 ||
	    etw_class_parse(own, size, NULL, &class))
		class = NULL;
	free(own);
	return class;
}

static int register_event(struct file *f, struct etw_event_register *e)
{
	const struct etw_schema *s = (const void *)(uintptr_t)e->schema;
	int err = once(&fake_event_error);
	unsigned int i;

	if (err)
		return err;
	if (e->size != sizeof(*e) || e->flags || e->reserved || e->schema_size != s->size)
		return -EINVAL;
	for (i = 0; i < f->nr; i++)
		if (((struct etw_schema *)f->blobs[i])->size == s->size && !memcmp(f->blobs[i], s, s->size))
			return i;
	f->classes[i] = parse(f, s);
	if (!f->classes[i])
		return -EINVAL;
	f->blobs[i] = malloc(s->size);
	memcpy(f->blobs[i], s, s->size);
	f->nr++;
	set_bytes(f);
	return i;
}

static int query(struct file *f, struct etw_enabled_query *q)
{
	const struct wish *w = wish_of(f->name);

	f->told = f->changes;
	q->changes = f->changes;
	q->captures = f->captures;
	q->registration = f->registration;
	q->nr_sessions = w->on;
	q->level = w->on ? (w->level ? w->level : 255) : 0;
	q->any = w->on ? (w->any ? w->any : ~0ULL) : 0;
	q->all = 0;
	return 0;
}

/* The session's last request, by its number of all. */
static int query_capture(struct file *f, struct etw_capture_query *q)
{
	const struct wish *w = wish_of(f->name);

	if (!w->on || q->id >= f->captures)
		return -ENOENT;
	q->id = f->captures;
	q->level = w->level ? w->level : 255;
	q->any = w->any ? w->any : ~0ULL;
	q->all = 0;
	return 0;
}

static ssize_t take(struct file *f, const __u8 *buf, size_t size);

static int take_answer(struct file *f, const struct etw_answer *a)
{
	unsigned int before = shared->nr;
	ssize_t ret;

	if (a->flags || a->reserved)
		return -EINVAL;
	if (!wish_of(f->name)->on || a->id != f->captures)
		return -ENOENT;
	ret = take(f, (const __u8 *)(uintptr_t)a->events, a->bytes);
	shared->answers += shared->nr - before;
	return ret < 0 ? ret : 0;
}

int etw_device_ioctl(int fd, unsigned long command, void *arg)
{
	struct file *f;
	char c[16];
	int ret = -EBADF;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	pthread_mutex_lock(&mutex);
	f = file_of(fd);
	switch (command) {
	case ETW_IOC_VERSION:
		((struct etw_version *)arg)->abi = ETW_ABI_VERSION;
		ret = 0;
		break;
	case ETW_IOC_PROVIDER_REGISTER:
		ret = register_provider(arg);
		break;
	case ETW_IOC_PROVIDER_EVENT:
		ret = f ? register_event(f, arg) : -ENOTTY;
		break;
	case ETW_IOC_PROVIDER_CAPTURE:
		ret = f ? query_capture(f, arg) : -ENOTTY;
		break;
	case ETW_IOC_PROVIDER_ANSWER:
		ret = f ? take_answer(f, arg) : -ENOTTY;
		break;
	case ETW_IOC_PROVIDER_ENABLED:
		ret = f ? query(f, arg) : -ENOTTY;
		if (f)
			while (read(fd, c, sizeof(c)) > 0)
				;
		break;
	default:
		ret = -ENOTTY;
	}
	pthread_mutex_unlock(&mutex);
	return ret;
}

int etw_device_map(int fd, void *at, size_t size)
{
	const struct file *f = file_of(fd);

	if (!f)
		return -ENODEV;
	return mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, f->bytes, 0) == MAP_FAILED ? -errno : 0;
}

/* All of a write, or nothing. */
static ssize_t take(struct file *f, const __u8 *buf, size_t size)
{
	__u32 offsets[ETW_MAX_FIELDS + 1];
	unsigned int bad, nr = 0;
	struct etw_write head;
	size_t at;

	if (size > ETW_MAX_WRITE)
		return -E2BIG;
	for (at = 0; at < size; at += head.size) {
		const struct etw_class *c;
		long len;

		if (++nr > ETW_MAX_BATCH)
			return -E2BIG;
		if (size - at < sizeof(head))
			return -EINVAL;
		memcpy(&head, buf + at, sizeof(head));
		if (head.size < sizeof(head) || head.size > size - at || head.index >= f->nr || head.flags)
			return -EINVAL;
		if (head.size - sizeof(head) > ETW_MAX_PAYLOAD)
			return -E2BIG;
		c = f->classes[head.index];
		len = c->payload_size != ETW_SIZE_VARIES ?
			      c->payload_size :
			      etw_class_walk(c, buf + at + 8, head.size - 8, offsets, &bad);
		if (len != (long)(head.size - 8))
			return -EINVAL;
	}
	for (at = 0; at < size; at += head.size) {
		struct logged *l = &shared->log[shared->nr];

		memcpy(&head, buf + at, sizeof(head));
		if (!f->map[head.index] || shared->nr == MAX_LOG || shared->used + head.size > sizeof(shared->bytes))
			continue;
		*l = (struct logged){ f - files, head.index, shared->used, head.size - 8 };
		memcpy(shared->bytes + shared->used, buf + at + 8, head.size - 8);
		shared->used += head.size - 8;
		shared->nr++;
	}
	return size;
}

ssize_t etw_device_write(int fd, const void *buf, size_t size)
{
	struct file *f;
	ssize_t ret;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	pthread_mutex_lock(&mutex);
	f = file_of(fd);
	if (!f && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		pthread_mutex_unlock(&mutex);
		return -EBADF;
	}
	shared->writes++;
	ret = once(&fake_write_error);
	if (!ret)
		ret = f ? take(f, buf, size) : -EINVAL;
	pthread_mutex_unlock(&mutex);
	return ret;
}

/* ---- what was written ---- */

unsigned int fake_events(void)
{
	return shared->nr;
}

unsigned int fake_answers(void)
{
	return shared->answers;
}

void fake_clear(void)
{
	shared->nr = 0;
	shared->answers = 0;
	shared->used = 0;
}

/* A child's files are its own, but their classes are those that it inherited. */
static bool event_at(unsigned int i, struct etw_event *e, __u32 *offsets)
{
	const struct logged *l = &shared->log[i];
	unsigned int bad;

	if (i >= shared->nr || !files[l->file].used || l->index >= files[l->file].nr)
		return false;
	memset(e, 0, sizeof(*e));
	e->cls = files[l->file].classes[l->index];
	e->payload = shared->bytes + l->at;
	e->size = l->size;
	e->offsets = class_info(e->cls)->offsets;
	if (e->cls->payload_size == ETW_SIZE_VARIES) {
		etw_class_walk(e->cls, e->payload, e->size, offsets, &bad);
		e->offsets = offsets;
	}
	return true;
}

const char *fake_field(unsigned int i, const char *name)
{
	static char text[4][256];
	static unsigned int next;
	__u32 offsets[ETW_MAX_FIELDS + 1];
	struct etw_event e;
	char *buf = text[next++ % 4];

	if (!event_at(i, &e, offsets) || etw_class_field(e.cls, name) < 0)
		return "?";
	etw_event_format(&e, etw_class_field(e.cls, name), buf, sizeof(text[0]));
	return buf;
}

const char *fake_event(unsigned int i)
{
	static char text[4][2048];
	static unsigned int next;
	__u32 offsets[ETW_MAX_FIELDS + 1];
	char *buf = text[next++ % 4];
	struct etw_event e;
	size_t len;
	__u32 k;

	if (!event_at(i, &e, offsets))
		return "";
	len = snprintf(buf, sizeof(text[0]), "%s %s", e.cls->provider, e.cls->name);
	for (k = 0; k < e.cls->nr_fields && len < sizeof(text[0]) - 300; k++) {
		len += snprintf(buf + len, sizeof(text[0]) - len, " %s=", e.cls->fields[k].name);
		len += etw_event_format(&e, k, buf + len, 256);
	}
	return buf;
}
