// SPDX-License-Identifier: GPL-2.0-only
/*
 * Provider files: what a program registers and writes, who may, what sessions see of it, and how it ends. It knows the ABI
 * only.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"

#define SOMEBODY 1234
#define MANY 1000

FIXTURE(provider)
{
	int dev;
	int fd;
	char name[ETW_NAME_SIZE];
	struct log log;
	struct reader reader;
	struct schema_maker m;
};

static int session_new(int dev, const char *what)
{
	struct etw_session_create create = session_small(unique(what));

	create.subbuf_size = 16 << 10;
	create.nr_subbufs = 32;
	return session_make(dev, &create);
}

FIXTURE_SETUP(provider)
{
	ASSERT_EQ(0, pin(0));	/* events of one CPU come in their order */
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_new(self->dev, "prov");
	ASSERT_GE(self->fd, 0);
	snprintf(self->name, sizeof(self->name), "Test-Prov-%d", getpid());
	self->log.number_field = "n";
	self->log.text_field = "text";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(provider)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

#define DRAIN() ASSERT_ALL_READ(self->fd, &self->reader)

/* Registered and enabled in either order, an event comes with its values, its time and its writer. */
TEST_F(provider, first_event)
{
	/* at first it is in no session's table */
	for (int before = 1; before >= 0; before--) {
		uint64_t from, to;
		int p, e;

		if (before)
			ASSERT_EQ(0, enable_all(self->fd, self->name));
		p = provider_register(self->dev, self->name);
		ASSERT_GE(p, 0);
		e = provider_counter(p, "tick", 1);
		ASSERT_EQ(0, e);
		if (!before)
			ASSERT_EQ(1, enable_all(self->fd, self->name));
		from = session_query(self->fd).now;
		ASSERT_EQ(16, write_number(p, e, 41 + before));
		to = session_query(self->fd).now;
		DRAIN();
		ASSERT_EQ(1, self->log.nr);
		EXPECT_STREQ("tick", self->log.events[0].name);
		EXPECT_STREQ(self->name, self->log.events[0].provider);
		EXPECT_EQ(41 + before, self->log.events[0].number);
		EXPECT_EQ(getpid(), self->log.events[0].pid);
		EXPECT_EQ(getpid(), self->log.events[0].tid);
		EXPECT_LE(from, self->log.events[0].time);
		EXPECT_GE(to, self->log.events[0].time);
		self->log.nr = 0;
		ASSERT_EQ(0, disable(self->fd, self->name));
		close(p);
	}
	/* the same class both times */
	EXPECT_EQ(1, self->reader.schema.nr);
}

/* The byte of an event says whether any session wants it; what nobody wants goes nowhere. */
TEST_F(provider, enable_bytes)
{
	struct etw_enable enable = enable_make(self->name);
	const volatile uint8_t *bytes;
	int other = session_new(self->dev, "other"), p, low, high;

	p = provider_register(self->dev, self->name);
	ASSERT_GE(p, 0);
	bytes = provider_map(p);
	ASSERT_NE(NULL, bytes);
	low = provider_counter(p, "low", 0x1);
	high = provider_counter(p, "high", 0x10);
	ASSERT_EQ(0, low);
	ASSERT_EQ(1, high);
	EXPECT_EQ(0, bytes[low] + bytes[high]);
	ASSERT_EQ(16, write_number(p, low, 1));

	enable.any = 0x10;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(0, bytes[low]);
	EXPECT_NE(0, bytes[high]);
	ASSERT_EQ(16, write_number(p, low, 2));
	ASSERT_EQ(16, write_number(p, high, 3));
	enable.any = 0x1;
	ASSERT_EQ(1, call(other, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_NE(0, bytes[low]);
	ASSERT_EQ(16, write_number(p, low, 4));
	/* an event that comes while it is wanted */
	EXPECT_EQ(2, provider_counter(p, "late", 0x11));
	EXPECT_NE(0, bytes[2]);
	ASSERT_EQ(16, write_number(p, 2, 5));
	close(other);
	EXPECT_EQ(0, bytes[low]);
	EXPECT_NE(0, bytes[high]);
	ASSERT_EQ(0, disable(self->fd, self->name));
	EXPECT_EQ(0, bytes[high] + bytes[2]);
	ASSERT_EQ(16, write_number(p, high, 6));
	DRAIN();
	ASSERT_EQ(2, self->log.nr);
	EXPECT_EQ(3, self->log.events[0].number);
	EXPECT_EQ(5, self->log.events[1].number);
	munmap((void *)bytes, 4096);
	close(p);
}

/* Several events of one write: one time stamp, their order, wherever the iovecs are cut. */
TEST_F(provider, batch)
{
	uint8_t buf[4096];
	struct iovec iov[64];
	size_t used = 0;
	int p, a, b, n = 0;

	p = provider_register(self->dev, self->name);
	ASSERT_GE(p, 0);
	a = provider_counter(p, "a", 0);
	b = provider_counter(p, "b", 0);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	for (uint64_t i = 0; i < 40; i++)
		used = write_add(buf, used, i % 8 == 7 ? b : a, &i, sizeof(i));
	ASSERT_EQ(used, write(p, buf, used));
	for (size_t at = 0; at < used; n++) {
		size_t len = 1 + (n * 7) % 29;

		if (n == 63 || len > used - at)
			len = used - at;
		iov[n] = (struct iovec){ buf + at, len };
		at += len;
	}
	ASSERT_EQ(used, writev(p, iov, n));
	DRAIN();
	ASSERT_EQ(80, self->log.nr);
	for (unsigned int i = 0; i < 80; i++) {
		EXPECT_EQ(i % 40, self->log.events[i].number);
		EXPECT_STREQ(i % 8 == 7 ? "b" : "a", self->log.events[i].name);
		EXPECT_EQ(self->log.events[i / 40 * 40].time, self->log.events[i].time);
	}
	EXPECT_EQ(80, session_provider(self->fd, self->name).written);
	close(p);
}

/* Larger than what a sub-buffer holds: split into what fits, of one time still, and what never fits is an error and counted. */
TEST_F(provider, large)
{
	static uint8_t buf[ETW_MAX_WRITE], payload[ETW_MAX_PAYLOAD];
	const uint32_t most = (16 << 10) - 128;
	struct iovec iov[2];
	size_t used = 0;
	uint32_t len;
	int p, e;

	p = provider_register(self->dev, self->name);
	schema_begin(&self->m, "blob", 1);
	schema_field(&self->m, 0, "data", ETW_TYPE_BINARY);
	e = provider_event(p, self->m.bytes, schema_done(&self->m));
	ASSERT_EQ(0, e);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	while (used + 5000 < sizeof(buf)) {
		len = 4000;
		memcpy(payload, &len, sizeof(len));
		used = write_add(buf, used, e, payload, len + 4);
	}
	ASSERT_EQ(used, write(p, buf, used));
	DRAIN();
	EXPECT_EQ(used / 4012, self->log.nr);
	for (unsigned int i = 0; i < self->log.nr; i++)
		EXPECT_EQ(self->log.events[0].time, self->log.events[i].time);
	for (int more = 0; more < 2; more++) {
		len = most - 4 + more;
		memcpy(payload, &len, sizeof(len));
		used = write_add(buf, 0, e, payload, len + 4);
		errno = 0;
		EXPECT_EQ(more ? -1 : (ssize_t)used, write(p, buf, used));
		EXPECT_EQ(more ? EMSGSIZE : 0, errno);
	}
	DRAIN();
	EXPECT_EQ(1, session_provider(self->fd, self->name).lost[ETW_LOST_TOO_LARGE]);
	/* and what no session could hold is refused before anybody is asked */
	len = ETW_MAX_PAYLOAD - 4;
	memcpy(payload, &len, sizeof(len));
	used = write_add(buf, 0, e, payload, len + 4);
	EXPECT_EQ(-1, write(p, buf, used));
	EXPECT_EQ(EMSGSIZE, errno);
	iov[0] = (struct iovec){ buf, sizeof(buf) };
	iov[1] = (struct iovec){ buf, 1 };
	EXPECT_EQ(-1, writev(p, iov, 2));
	EXPECT_EQ(E2BIG, errno);
	schema_begin(&self->m, "nothing", 0);
	e = provider_event(p, self->m.bytes, schema_done(&self->m));
	for (used = 0; used < ETW_MAX_BATCH * sizeof(struct etw_write);)
		used = write_add(buf, used, e, payload, 0);
	EXPECT_EQ(used, write(p, buf, used));
	used = write_add(buf, used, e, payload, 0);
	EXPECT_EQ(-1, write(p, buf, used));
	EXPECT_EQ(E2BIG, errno);
	close(p);
}

/* Every type there is, and what its bytes must not be. */
TEST_F(provider, payloads)
{
	struct etw_schema_field *f;
	uint8_t buf[512], payload[256];
	uint32_t two = 2;
	size_t len = 0;
	int p, e, type;

	p = provider_register(self->dev, self->name);
	schema_begin(&self->m, "all", ETW_NR_TYPES + 1);
	for (type = ETW_TYPE_U8; type < ETW_NR_TYPES; type++) {
		static char names[ETW_NR_TYPES][8];
		const int as = type == ETW_TYPE_POINTER ? ETW_TYPE_U64 : type;

		snprintf(names[type], sizeof(names[type]), "t%d", type);
		f = schema_field(&self->m, type - 1, names[type], as);
		if (type == ETW_TYPE_CHARS)
			f->count = 3;
	}
	f = schema_field(&self->m, ETW_NR_TYPES - 1, "counted", ETW_TYPE_S16);
	f->array = ETW_ARRAY_COUNTED;
	f = schema_field(&self->m, ETW_NR_TYPES, "fixed", ETW_TYPE_U32);
	f->array = ETW_ARRAY_FIXED;
	f->count = 2;
	e = provider_event(p, self->m.bytes, schema_done(&self->m));
	ASSERT_EQ(0, e);
	ASSERT_EQ(1, enable_all(self->fd, self->name));

	memset(payload, 1, sizeof(payload));
	len = 1 + 2 + 4 + 8 + 1 + 2 + 4 + 8 + 8 + 4 + 8;
	const size_t boolean = len;
	len += 1 + 3;
	memcpy(payload + len, "text", 5);
	len += 5;
	const size_t binary = len;
	memcpy(payload + len, &two, 4);
	len += 4 + 2 + 16 + 4 + 16 + 6;
	const size_t counted = len;
	memcpy(payload + len, &two, 4);
	len += 4 + 4 + 8;
	ASSERT_EQ(len + 8, write(p, buf, write_add(buf, 0, e, payload, len)));
#define WRONG(error, ...) do {							\
	__VA_ARGS__;								\
	EXPECT_EQ(-1, write(p, buf, write_add(buf, 0, e, payload, len)));	\
	EXPECT_EQ(error, errno);						\
} while (0)
	WRONG(EINVAL, len++);
	WRONG(EINVAL, len -= 2);
	len++;
	WRONG(EINVAL, payload[boolean] = 2);
	payload[boolean] = 1;
	WRONG(EINVAL, payload[binary] = 3);
	WRONG(EINVAL, payload[binary + 3] = 0xff);
	payload[binary] = 2;
	payload[binary + 3] = 0;
	WRONG(EINVAL, payload[counted + 3] = 0x80);
	payload[counted + 3] = 0;
	WRONG(EINVAL, memset(payload + boolean + 4, 'x', len - boolean - 4));
	DRAIN();
	EXPECT_EQ(1, self->log.nr);
	EXPECT_EQ(1, session_provider(self->fd, self->name).written);
	close(p);
}

/* Heads that lie: nothing is written of a write of which anything is wrong. */
TEST_F(provider, heads)
{
	uint8_t buf[64], *volatile bad;
	uint64_t n = 7;
	size_t used;
	int p, e;

	p = provider_register(self->dev, self->name);
	e = provider_counter(p, "tick", 0);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	static const struct etw_write wrong[] = {
		{ 16, 1, 0 }, { 16, 0xffff, 0 }, { 16, 0, 1 }, { 7, 0, 0 }, { 0, 0, 0 }, { 8, 0, 0 }, { 15, 0, 0 }, { 17, 0, 0 },
		{ 0xffffffff, 0, 0 }, { 0x80000010, 0, 0 },
	};
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		used = write_add(buf, 0, e, &n, sizeof(n));
		memcpy(buf + used, &wrong[i], sizeof(wrong[i]));
		/* after a good one, and alone */
		EXPECT_EQ(-1, write(p, buf, used + 16));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(-1, write(p, buf + used, 16));
		EXPECT_EQ(EINVAL, errno);
	}
	for (size_t len = 1; len < 16; len++) {
		EXPECT_EQ(-1, write(p, buf, len));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(-1, write(p, buf, 0));
	EXPECT_EQ(EINVAL, errno);
	bad = (void *)8;
	EXPECT_EQ(-1, write(p, bad, 16));
	EXPECT_EQ(EFAULT, errno);
	DRAIN();
	EXPECT_EQ(0, self->log.nr);
	close(p);
}

/* A page that is not there is faulted in; one that cannot be is an error, and nothing was written. */
TEST_F(provider, pages)
{
	const long size = sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t n = 5;
	int p, e;

	ASSERT_NE(MAP_FAILED, map);
	p = provider_register(self->dev, self->name);
	e = provider_counter(p, "tick", 0);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	write_add(map + size - 8, 0, e, &n, sizeof(n));
	madvise(map + size, size, MADV_PAGEOUT);
	EXPECT_EQ(16, write(p, map + size - 8, 16));
	EXPECT_EQ(0, munmap(map + size, size));
	EXPECT_EQ(-1, write(p, map + size - 8, 16));
	EXPECT_EQ(EFAULT, errno);
	DRAIN();
	EXPECT_EQ(1, self->log.nr);
	munmap(map, size);
	close(p);
}

/* Schemas that lie. */
TEST_F(provider, schemas)
{
	static const struct map_value values[] = { { 1, "one" }, { 2, "two" }, { 0, NULL } };
	uint32_t size;
	int p;

	p = provider_register(self->dev, self->name);
	ASSERT_GE(p, 0);
#define MAKE() do {									\
	schema_begin(&self->m, "event", 2);						\
	schema_field(&self->m, 0, "n", ETW_TYPE_U32);					\
	schema_field(&self->m, 1, "text", ETW_TYPE_STRING);				\
	schema_map(&self->m, 0, ETW_MAP_VALUES, values);				\
	size = schema_done(&self->m);							\
} while (0)
#define REFUSED(error, ...) do {							\
	struct etw_schema *h;								\
	struct etw_schema_field *f;							\
	struct etw_schema_map *map;							\
	MAKE();										\
	h = schema_head(&self->m);							\
	f = (struct etw_schema_field *)(h + 1);						\
	map = (struct etw_schema_map *)(self->m.bytes + f->map);			\
	(void)map;									\
	__VA_ARGS__;									\
	EXPECT_EQ(error, provider_event(p, self->m.bytes, size)) TH_LOG("%s", #__VA_ARGS__);	\
} while (0)
	REFUSED(-EINVAL, h->size--);
	REFUSED(-EINVAL, h->size++);
	REFUSED(-EINVAL, h->class_id = 1);
	REFUSED(-EINVAL, h->guid[15] = 1);
	REFUSED(-EINVAL, h->provider = h->name);
	REFUSED(-EINVAL, h->ctf_name = h->name);
	REFUSED(-EINVAL, h->reserved = 1);
	REFUSED(-EINVAL, h->name = 0);
	REFUSED(-EINVAL, h->name = size);
	REFUSED(-EINVAL, h->name = 0xffffffff);
	REFUSED(-EINVAL, h->description = size - 1 + 1);
	REFUSED(-EINVAL, h->fields = size - 8);
	REFUSED(-EINVAL, h->fields = 0xfffffff8);
	REFUSED(-E2BIG, h->nr_fields = ETW_MAX_FIELDS + 1);
	REFUSED(-EINVAL, f[0].type = 0);
	REFUSED(-EINVAL, f[0].type = ETW_NR_TYPES);
	REFUSED(-EINVAL, f[0].type = ETW_TYPE_POINTER);
	REFUSED(-EINVAL, f[0].array = 3);
	REFUSED(-EINVAL, f[0].array = ETW_ARRAY_FIXED);
	REFUSED(-EINVAL, f[0].array = ETW_ARRAY_FIXED; f[0].count = 65536);
	REFUSED(-EINVAL, f[0].count = 1);
	REFUSED(-EINVAL, f[0].format = ETW_NR_FORMATS);
	REFUSED(-EINVAL, f[1].format = ETW_FORMAT_HEX);
	REFUSED(-EINVAL, f[1].array = ETW_ARRAY_COUNTED);
	REFUSED(-EINVAL, f[0].reserved = 1);
	REFUSED(-EINVAL, f[0].name = f[1].name);
	REFUSED(-EINVAL, f[0].name = size);
	REFUSED(-EINVAL, self->m.bytes[f[0].name] = '1');
	REFUSED(-EINVAL, f[1].map = f[0].map);
	REFUSED(-EINVAL, f[0].map = size - 4);
	REFUSED(-EINVAL, map->kind = 2);
	REFUSED(-EINVAL, map->nr = 0);
	REFUSED(-EINVAL, map->nr = 1000);
	REFUSED(-E2BIG, map->nr = 0xffffffff);
	REFUSED(-EINVAL, map->values[1].reserved = 1);
	REFUSED(-EINVAL, map->values[1].name = 0);
	MAKE();
	EXPECT_EQ(-E2BIG, provider_event(p, self->m.bytes, ETW_MAX_SCHEMA + 8));
	EXPECT_EQ(-EINVAL, provider_event(p, self->m.bytes, 8));
	EXPECT_EQ(-EFAULT, provider_event(p, (void *)8, size));
	/* nothing of it was kept; the same class has the same number */
	EXPECT_EQ(0, provider_event(p, self->m.bytes, size));
	EXPECT_EQ(0, provider_event(p, self->m.bytes, size));
	MAKE();
	schema_head(&self->m)->level = 5;
	EXPECT_EQ(1, provider_event(p, self->m.bytes, size));
	close(p);
}

/* A file may have so many events and no more, in memory that anybody may take. */
TEST_F(provider, many_events)
{
	char name[16];
	int p;

	p = provider_register(self->dev, self->name);
	ASSERT_EQ(0, enable_all(self->fd, self->name) - 1);
	for (unsigned int i = 0; i < ETW_MAX_EVENTS; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		ASSERT_EQ(i, provider_counter(p, name, 0));
	}
	EXPECT_EQ(-ENOSPC, provider_counter(p, "more", 0));
	EXPECT_EQ(ETW_MAX_EVENTS, session_query(self->fd).nr_classes);
	ASSERT_EQ(16, write_number(p, ETW_MAX_EVENTS - 1, 77));
	DRAIN();
	ASSERT_EQ(1, self->log.nr);
	EXPECT_STREQ("e4095", self->log.events[0].name);
	close(p);
	/* closed, its classes stay readable, and go with the session */
	EXPECT_EQ(ETW_MAX_EVENTS, session_query(self->fd).nr_classes);
}

TEST_F(provider, names)
{
	static const char *const wrong[] = { "", "1a", "a b", "-a", "a/b" };
	static const char *const reserved[] = { "sched", "Sched", "ETW", "Linux-Kernel-Sched", "linux-kernel-SCHED", "Linux-", "LINUX-Mine" };
	struct etw_provider_register a = { .size = sizeof(a) };
	struct etw_provider_list l = { .size = sizeof(l) };
	struct etw_keyword words[ETW_MAX_KEYWORDS + 1];

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		EXPECT_EQ(-EINVAL, provider_register(self->dev, wrong[i]));
	for (unsigned int i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		EXPECT_EQ(-EPERM, provider_register(self->dev, reserved[i])) TH_LOG("%s", reserved[i]);
	}
	/* a GUID of the kernel's under another name */
	ASSERT_EQ(0, call(self->dev, ETW_IOC_PROVIDER_LIST, &l));
	strcpy((char *)a.name, self->name);
	memcpy(a.guid, l.guid, sizeof(a.guid));
	EXPECT_EQ(-EPERM, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	memset(a.guid, 0, sizeof(a.guid));
	a.flags = 1;
	EXPECT_EQ(-EINVAL, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	a.flags = 0;
	a.reserved = 1;
	EXPECT_EQ(-EINVAL, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	a.reserved = 0;
	memset(words, 0, sizeof(words));
	for (int i = 0; i <= ETW_MAX_KEYWORDS; i++) {
		words[i].mask = 1;
		strcpy((char *)words[i].name, "word");
	}
	a.keywords = (uintptr_t)words;
	EXPECT_EQ(-EINVAL, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	a.nr_keywords = ETW_MAX_KEYWORDS + 1;
	EXPECT_EQ(-E2BIG, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	a.nr_keywords = 2;
	words[1].mask = 0;
	EXPECT_EQ(-EINVAL, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	words[1].mask = 2;
	words[1].name[0] = '-';
	EXPECT_EQ(-EINVAL, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
	a.keywords = 8;
	EXPECT_EQ(-EFAULT, call(self->dev, ETW_IOC_PROVIDER_REGISTER, &a));
}

static bool find_provider(int dev, const char *name, struct etw_provider_list *l)
{
	__u64 id = 0;

	for (;;) {
		memset(l, 0, sizeof(*l));
		l->size = sizeof(*l);
		l->id = id;
		if (call(dev, ETW_IOC_PROVIDER_LIST, l))
			return false;
		if (!strcmp((char *)l->name, name))
			return true;
		id = l->id;
	}
}

/* The GUID is ETW's hash of the name, whatever its case; the vector is public. */
TEST_F(provider, guid)
{
	static const __u8 want[16] = { 0xb3, 0x86, 0x4c, 0x38, 0x42, 0x73, 0x58, 0xc5,
				       0x54, 0x5b, 0x8b, 0x36, 0x08, 0x34, 0x34, 0x71 };
	struct etw_provider_list l;
	int p, q;

	p = provider_register(self->dev, "MyProvider");
	q = provider_register(self->dev, "MYPROVIDER");
	ASSERT_GE(p, 0);
	ASSERT_GE(q, 0);
	ASSERT_TRUE(find_provider(self->dev, "MyProvider", &l));
	EXPECT_EQ(0, memcmp(want, l.guid, 16));
	EXPECT_EQ(ETW_PROVIDER_TRUSTED, l.flags);
	EXPECT_EQ(getpid(), l.pid);
	EXPECT_EQ(1, l.nr_registrations);
	ASSERT_TRUE(find_provider(self->dev, "MYPROVIDER", &l));
	EXPECT_EQ(0, memcmp(want, l.guid, 16));
	close(p);
	EXPECT_FALSE(find_provider(self->dev, "MyProvider", &l));
	close(q);
}

/* The same provider from several processes is one; each event says who wrote it. */
TEST_F(provider, several_processes)
{
	pid_t pids[3];
	int status;

	ASSERT_EQ(0, enable_all(self->fd, self->name));
	for (unsigned int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			int p = provider_register(self->dev, self->name);

			_exit(provider_counter(p, "tick", 0) || write_number(p, 0, i) != 16);
		}
	}
	for (unsigned int i = 0; i < 3; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	DRAIN();
	ASSERT_EQ(3, self->log.nr);
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_EQ(pids[self->log.events[i].number], self->log.events[i].pid);
	EXPECT_EQ(1, self->reader.schema.nr);
	EXPECT_EQ(0, session_provider(self->fd, self->name).registered);
}

/* fork, dup and passing the file on: the registration is there until the last of them is closed. */
TEST_F(provider, shared_files)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct etw_provider_list l;
	struct cmsghdr *c;
	int p, copy, pair[2], status;
	pid_t pid;

	p = provider_register(self->dev, self->name);
	ASSERT_EQ(0, provider_counter(p, "tick", 0));
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	copy = dup(p);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		/* the child writes with what it inherited, and with what it is sent */
		int sent;

		close(pair[0]);
		if (write_number(p, 0, 1) != 16)
			_exit(1);
		close(p);
		close(copy);
		if (recvmsg(pair[1], &msg, 0) != 1)
			_exit(2);
		memcpy(&sent, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(sent));
		if (write_number(sent, 0, 2) != 16 || write(pair[1], &byte, 1) != 1)
			_exit(3);
		_exit(read(pair[1], &byte, 1) != 0);
	}
	close(pair[1]);
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &copy, sizeof(copy));
	ASSERT_EQ(1, sendmsg(pair[0], &msg, 0));
	ASSERT_EQ(1, read(pair[0], &byte, 1));
	close(p);
	close(copy);
	/* the child has it still */
	EXPECT_TRUE(find_provider(self->dev, self->name, &l));
	close(pair[0]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_FALSE(find_provider(self->dev, self->name, &l));
	DRAIN();
	ASSERT_EQ(2, self->log.nr);
	EXPECT_EQ(pid, self->log.events[0].pid);
	EXPECT_EQ(pid, self->log.events[1].pid);
}

/* The file does not outlive exec; a mapping holds the registration until it is gone. */
TEST_F(provider, exec_and_mapping)
{
	struct etw_provider_list l;
	const volatile uint8_t *bytes;
	int p, status;
	pid_t pid;

	p = provider_register(self->dev, self->name);
	bytes = provider_map(p);
	ASSERT_NE(NULL, bytes);
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	EXPECT_TRUE(find_provider(self->dev, self->name, &l));
	EXPECT_EQ(FD_CLOEXEC, fcntl(p, F_GETFD));
	close(p);
	EXPECT_TRUE(find_provider(self->dev, self->name, &l));
	EXPECT_EQ(0, bytes[0]);
	munmap((void *)bytes, 4096);
	EXPECT_FALSE(find_provider(self->dev, self->name, &l));
}

TEST_F(provider, mapping_rules)
{
	const long page = sysconf(_SC_PAGESIZE);
	int p = provider_register(self->dev, self->name);
	void *map;

	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, p, 0));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, p, 0));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, p, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ, MAP_SHARED, p, page));
	EXPECT_EQ(EINVAL, errno);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, p, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, page, PROT_READ | PROT_WRITE));
	munmap(map, page);
	close(p);
}

/* The enable byte says when somebody closed a descriptor of the file, until somebody asks by one that is left. */
TEST_F(provider, closed_descriptor)
{
	int p = provider_register(self->dev, self->name), other = provider_register(self->dev, unique("other")), copy, tick;
	const volatile uint8_t *bytes;
	int status;
	pid_t pid;

	tick = provider_counter(p, "tick", 1);
	bytes = provider_map(p);
	ASSERT_NE(NULL, bytes);
	EXPECT_NE(provider_query(p).registration, provider_query(other).registration);
	copy = dup(p);
	EXPECT_EQ(provider_query(p).registration, provider_query(copy).registration);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	EXPECT_EQ(1, bytes[tick]);
	close(copy);
	EXPECT_EQ(ETW_ENABLED_ASK, bytes[tick]);
	EXPECT_EQ(1, provider_query(p).nr_sessions);
	EXPECT_EQ(1, bytes[tick]);
	ASSERT_EQ(0, disable(self->fd, self->name));
	close(dup(p));
	EXPECT_EQ(0, bytes[tick]);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	EXPECT_EQ(ETW_ENABLED_ASK, bytes[tick]);
	EXPECT_EQ(16, write_number(p, tick, 1));
	provider_query(p);
	pid = fork();
	if (!pid)
		_exit(bytes[tick]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(1, WEXITSTATUS(status));
	EXPECT_EQ(ETW_ENABLED_ASK, bytes[tick]);
	/* Nobody but the mapping has it any more; another one's question is not about it. */
	close(p);
	provider_query(other);
	EXPECT_EQ(ETW_ENABLED_ASK, bytes[tick]);
	munmap((void *)bytes, 4096);
	close(other);
}

static int capture_state(int session, const char *name)
{
	struct etw_provider_ref ref = { .size = sizeof(ref) };

	strcpy((char *)ref.name, name);
	return call(session, ETW_IOC_SESSION_CAPTURE_STATE, &ref);
}

/* The id of the first request above @after, or -errno. */
static int64_t request(int p, uint64_t after, struct etw_capture_query *q)
{
	struct etw_capture_query mine;
	int err;

	q = q ?: &mine;
	poison(*q);
	q->size = sizeof(*q);
	q->flags = 0;
	q->id = after;
	err = call(p, ETW_IOC_PROVIDER_CAPTURE, q);
	return err ? err : (int64_t)q->id;
}

static int answer(int p, uint64_t id, const void *events, size_t bytes)
{
	struct etw_answer a = { .size = sizeof(a), .id = id, .events = (uintptr_t)events, .bytes = bytes };

	return call(p, ETW_IOC_PROVIDER_ANSWER, &a);
}

/* Several sessions want the events; one asks, and it alone has the answer. */
TEST_F(provider, capture)
{
	static uint8_t large[ETW_MAX_WRITE + 64];
	int asks = session_new(self->dev, "asks"), small = session_new(self->dev, "small");
	struct etw_enable enable = enable_make(self->name);
	struct etw_capture_query q;
	uint8_t event[64];
	int p, foreign, tick;
	size_t used;
	int64_t id, next;

	p = provider_register(self->dev, self->name);
	foreign = provider_register(self->dev, unique("foreign"));
	tick = provider_counter(p, "tick", 3);
	provider_counter(foreign, "tick", 3);
	used = write_add(event, 0, tick, &(uint64_t){ 7 }, 8);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	enable.level = 4;
	enable.any = 0x3;
	enable.all = 0x2;
	ASSERT_EQ(1, call(asks, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(-ENOENT, request(p, 0, NULL));
	EXPECT_EQ(-ENOENT, answer(p, 0, event, used));
	EXPECT_EQ(-ENOENT, answer(p, 1, event, used));

	ASSERT_EQ(0, capture_state(asks, self->name));
	id = request(p, 0, &q);
	ASSERT_GT(id, 0);
	EXPECT_EQ(4, q.level);
	EXPECT_EQ(3, q.any);
	EXPECT_EQ(2, q.all);
	EXPECT_EQ(0, q.reserved);
	EXPECT_EQ(-ENOENT, request(p, id, NULL));
	EXPECT_EQ(-ENOENT, request(foreign, 0, NULL));
	EXPECT_EQ(0, answer(p, id, event, used));
	EXPECT_EQ(1, session_query(asks).written);
	EXPECT_EQ(0, session_query(self->fd).written);
	ASSERT_EQ(used, write(p, event, used));
	EXPECT_EQ(2, session_query(asks).written);
	EXPECT_EQ(1, session_query(self->fd).written);

	/* What it says must be right, and its number one that asked this provider. */
	EXPECT_EQ(-ENOENT, answer(foreign, id, event, used));
	EXPECT_EQ(-ENOENT, answer(p, id + 1, event, used));
	EXPECT_EQ(-ENOENT, answer(p, ~0ULL, event, used));
	EXPECT_EQ(-EINVAL, answer(p, id, event, used - 1));
	EXPECT_EQ(-EINVAL, answer(p, id, event, 0));
	EXPECT_EQ(-E2BIG, answer(p, id, large, ETW_MAX_WRITE + 1));
	EXPECT_EQ(-EFAULT, answer(p, id, (void *)8, used));

	/* Two ask; and one asks again before it was answered. */
	ASSERT_EQ(0, capture_state(self->fd, self->name));
	next = request(p, id, NULL);
	ASSERT_GT(next, id);
	ASSERT_EQ(0, capture_state(asks, self->name));
	EXPECT_EQ(-ENOENT, answer(p, id, event, used));
	EXPECT_EQ(0, answer(p, next, event, used));
	EXPECT_EQ(2, session_query(self->fd).written);
	EXPECT_EQ(2, session_query(asks).written);
	id = request(p, next, NULL);
	ASSERT_GT(id, next);
	/* What it wants may change meanwhile, and what it no longer wants it does not get. */
	enable.any = 0x8;
	enable.all = 0;
	ASSERT_EQ(1, call(asks, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(0, answer(p, id, event, used));
	EXPECT_EQ(2, session_query(asks).written);
	/* Nor what its filter rejects. */
	enable.any = 0;
	enable.pids = (uintptr_t)(__s32[]){ 1 };
	enable.nr_pids = 1;
	ASSERT_EQ(1, call(asks, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(0, answer(p, id, event, used));
	EXPECT_EQ(2, session_query(asks).written);
	EXPECT_EQ(1, session_provider(asks, self->name).filtered);
	ASSERT_EQ(0, disable(asks, self->name));
	EXPECT_EQ(-ENOENT, answer(p, id, event, used));
	EXPECT_EQ(-ENOENT, request(p, next, NULL));
	/* It ends before it is answered. */
	ASSERT_EQ(1, enable_all(asks, self->name));
	ASSERT_EQ(0, capture_state(asks, self->name));
	id = request(p, next, NULL);
	ASSERT_GT(id, next);
	close(asks);
	EXPECT_EQ(-ENOENT, answer(p, id, event, used));
	EXPECT_EQ(-ENOENT, request(p, next, NULL));

	/* Of two that want it the one that asked has no room: the other one loses nothing. */
	ASSERT_EQ(1, enable_all(small, self->name));
	ASSERT_EQ(0, capture_state(small, self->name));
	id = request(p, next, NULL);
	schema_begin(&self->m, "blob", 1);
	schema_field(&self->m, 0, "data", ETW_TYPE_BINARY);
	tick = provider_event(p, self->m.bytes, schema_done(&self->m));
	memcpy(large, &(struct etw_write){ 8 + 4 + 60000, tick, 0 }, 8);
	memcpy(large + 8, &(uint32_t){ 60000 }, 4);
	EXPECT_EQ(-EMSGSIZE, answer(p, id, large, 8 + 4 + 60000));
	for (int i = 0; i < 100000 && !answer(p, id, event, used); i++)
		;
	EXPECT_EQ(-ENOBUFS, answer(p, id, event, used));
	EXPECT_EQ(2, session_query(self->fd).written);
	EXPECT_EQ(0, session_query(self->fd).lost[ETW_LOST_NO_ROOM]);
	close(small);
	close(foreign);
	close(p);
}

/* poll and the query tell of every change, and of CAPTURE_STATE. */
TEST_F(provider, changes)
{
	struct etw_provider_ref ref = { .size = sizeof(ref) };
	struct etw_enable enable = enable_make(self->name);
	struct etw_enabled_query q;
	struct pollfd fd;
	int p, other = session_new(self->dev, "other");

	p = provider_register(self->dev, self->name);
	fd = (struct pollfd){ .fd = p, .events = POLLIN };
	provider_counter(p, "tick", 3);
	q = provider_query(p);
	EXPECT_EQ(0, q.nr_sessions + q.level + q.any + q.all + q.captures);
	EXPECT_EQ(0, poll(&fd, 1, 0));
	enable.level = 4;
	enable.any = 0x3;
	enable.all = 0x2;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(1, poll(&fd, 1, 0));
	EXPECT_EQ(1, poll(&fd, 1, 0));
	q = provider_query(p);
	EXPECT_EQ(1, q.nr_sessions);
	EXPECT_EQ(4, q.level);
	EXPECT_EQ(0x3, q.any);
	EXPECT_EQ(0x2, q.all);
	EXPECT_EQ(0, poll(&fd, 1, 0));
	enable.level = 0;
	enable.any = 0x14;
	enable.all = 0x6;
	ASSERT_EQ(1, call(other, ETW_IOC_SESSION_ENABLE, &enable));
	EXPECT_EQ(1, poll(&fd, 1, 0));
	q = provider_query(p);
	EXPECT_EQ(2, q.nr_sessions);
	EXPECT_EQ(255, q.level);
	EXPECT_EQ(0x17, q.any);
	EXPECT_EQ(0x2, q.all);
	strcpy((char *)ref.name, self->name);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	EXPECT_EQ(1, poll(&fd, 1, 0));
	EXPECT_EQ(1, provider_query(p).captures);
	close(other);
	EXPECT_EQ(1, poll(&fd, 1, 0));
	EXPECT_EQ(4, provider_query(p).level);
	ASSERT_EQ(0, disable(self->fd, self->name));
	EXPECT_EQ(1, poll(&fd, 1, 0));
	q = provider_query(p);
	EXPECT_EQ(0, q.nr_sessions + q.level + q.any + q.all);
	close(p);
}

/* Runs @fn as another user; its exit status. */
static int as_somebody(int (*fn)(int dev, const char *name), int dev, const char *name)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(become_user(SOMEBODY) ? 99 : fn(dev, name));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int take_all_registrations(int dev, const char *name)
{
	char one[ETW_NAME_SIZE];
	int p = 0;

	for (int i = 0; i < 256; i++) {
		snprintf(one, sizeof(one), "%s.%d", name, i % 200);
		p = provider_register(dev, one);
		if (p < 0)
			return 1;
	}
	if (provider_register(dev, "One.More") != -EDQUOT)
		return 2;
	close(p);
	return provider_register(dev, "One.More") < 0 ? 3 : 0;
}

static int take_all_classes(int dev, const char *name)
{
	int files[3];

	for (int f = 0; f < 3; f++)
		files[f] = provider_register(dev, name);
	for (int i = 0; i < 8192; i++) {
		char event[16];

		snprintf(event, sizeof(event), "e%d", i);
		if (provider_counter(files[i / 4096], event, 0) != i % 4096)
			return 1;
	}
	if (provider_counter(files[2], "more", 0) != -EDQUOT)
		return 2;
	/* one that is there already costs nothing */
	if (provider_counter(files[2], "e17", 0))
		return 3;
	close(files[0]);
	return provider_counter(files[2], "more", 0) == 1 ? 0 : 4;
}

/* An event of one field for each of @nr_fields, all with a map of @nr values; its size. */
static uint32_t with_map(struct schema_maker *m, const char *event, unsigned int nr_fields, unsigned int nr)
{
	static const char *const names[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7" };
	static struct map_value values[401];
	struct etw_schema_field *first;

	for (unsigned int i = 0; i < nr; i++)
		values[i] = (struct map_value){ i, "A-name-of-a-value-that-is-about-as-long-as-any-name-can-be" };
	values[nr].name = NULL;
	schema_begin(m, event, nr_fields);
	first = schema_field(m, 0, names[0], ETW_TYPE_U32);
	schema_map(m, 0, ETW_MAP_VALUES, values);
	for (unsigned int i = 1; i < nr_fields; i++)
		schema_field(m, i, names[i], ETW_TYPE_U32)->map = first->map;
	return schema_done(m);
}

static int take_all_memory(int dev, const char *name)
{
	static struct schema_maker m;
	/* with the last of somebody's registrations their account would go, whatever is on it */
	int stays = provider_register(dev, "Stays");
	int p = provider_register(dev, name), ret, nr = 0;
	char event[16];

	if (stays < 0)
		return 3;
	do {
		snprintf(event, sizeof(event), "e%d", nr);
		ret = provider_event(p, m.bytes, with_map(&m, event, 1, 400));
	} while (ret == nr && ++nr < 1000);
	if (ret != -EDQUOT)
		return 1;
	/* each takes 31,000 bytes of schema and not more than twice that in all */
	if (nr > ETW_USER_CLASS_BYTES / 30000 || nr < ETW_USER_CLASS_BYTES / 62000)
		return 2;
	/* all has room again when they have gone */
	close(p);
	p = provider_register(dev, name);
	return provider_event(p, m.bytes, with_map(&m, "more", 1, 400));
}

/* What somebody without rights may have, and that it does not add up over time. */
TEST_F(provider, quotas)
{
	for (int round = 0; round < 2; round++) {
		EXPECT_EQ(0, as_somebody(take_all_registrations, self->dev, self->name));
		EXPECT_EQ(0, as_somebody(take_all_classes, self->dev, self->name));
		EXPECT_EQ(0, as_somebody(take_all_memory, self->dev, self->name));
	}
}

static int look_around(int dev, const char *name)
{
	struct etw_event_list e = { .size = sizeof(e) };
	struct etw_provider_list l;
	static uint8_t buf[4096];
	int p;

	if (find_provider(dev, "Linux-Kernel-Sched", &l) || find_provider(dev, name, &l))
		return 1;
	if (call(dev, ETW_IOC_EVENT_LIST, &e) != -ENOENT)
		return 2;
	p = provider_register(dev, name);
	if (provider_counter(p, "mine", 0))
		return 3;
	if (!find_provider(dev, name, &l) || l.flags || l.uid != SOMEBODY)
		return 4;
	e.buf = (uintptr_t)buf;
	e.buf_size = sizeof(buf);
	e.id = 0;
	if (call(dev, ETW_IOC_EVENT_LIST, &e))
		return 5;
	e.flags = 0;
	return call(dev, ETW_IOC_EVENT_LIST, &e) == -ENOENT ? 0 : 6;
}

TEST_F(provider, lists)
{
	int p = provider_register(self->dev, self->name);

	provider_counter(p, "others", 0);
	EXPECT_EQ(0, as_somebody(look_around, self->dev, self->name));
	close(p);
}

/* The names of @provider's events, in order of their ids, one behind the other. */
static const char *event_names(int dev, const char *provider)
{
	struct etw_event_list e = { 0 };
	static char names[256];
	struct class *class;
	int err;

	names[0] = '\0';
	while ((class = event_next(dev, &e, &err))) {
		if (!strcmp(class->provider, provider) && strlen(names) + strlen(class->name) < sizeof(names))
			strcat(names, class->name);
		free(class);
	}
	return err == -ENOENT ? names : "?";
}

/* A map that fields have together is kept once, and one that was given twice is the same. */
TEST_F(provider, shared_map)
{
	static const struct map_value values[] = { { 1, "one" }, { 2, "two" }, { 0, NULL } };
	struct etw_event_list e = { 0 };
	uint32_t size = with_map(&self->m, "shared", 8, 50);
	int p = provider_register(self->dev, self->name);
	struct class *class = NULL;
	int err;

	ASSERT_EQ(0, provider_event(p, self->m.bytes, size));
	do {
		free(class);
		class = event_next(self->dev, &e, &err);
		ASSERT_NE(NULL, class);
	} while (strcmp(class->name, "shared"));
	free(class);
	EXPECT_LE(e.used, size + ETW_NAME_SIZE + 8);
	for (int i = 0; i < 2; i++) {
		schema_begin(&self->m, "twice", 2);
		schema_field(&self->m, 0, "a", ETW_TYPE_U32);
		schema_field(&self->m, 1, "b", ETW_TYPE_U32);
		schema_map(&self->m, 0, ETW_MAP_FLAGS, values);
		if (i)
			schema_map(&self->m, 1, ETW_MAP_FLAGS, values);
		else
			((struct etw_schema_field *)(schema_head(&self->m) + 1))[1].map =
				((struct etw_schema_field *)(schema_head(&self->m) + 1))[0].map;
		EXPECT_EQ(1, provider_event(p, self->m.bytes, schema_done(&self->m)));
	}
	close(p);
}

/* Events of several files go in another order than they came, and others come between. */
TEST_F(provider, events_come_and_go)
{
	int p[3];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			p[i] = provider_register(self->dev, self->name);
		provider_counter(p[0], "a", 0);
		provider_counter(p[0], "b", 0);
		provider_counter(p[1], "c", 0);
		provider_counter(p[1], "d", 0);
		provider_counter(p[2], "d", 0);
		EXPECT_STREQ("abcd", event_names(self->dev, self->name));
		close(p[0]);
		EXPECT_STREQ("cd", event_names(self->dev, self->name));
		provider_counter(p[2], "e", 0);
		EXPECT_STREQ("cde", event_names(self->dev, self->name));
		close(p[1]);
		EXPECT_STREQ("de", event_names(self->dev, self->name));
		close(p[2]);
		EXPECT_STREQ("", event_names(self->dev, self->name));
	}
}

static int write_one(int dev, const char *name)
{
	int p = provider_register(dev, name);

	return provider_counter(p, "tick", 0) || write_number(p, 0, 2) != 16;
}

/* Users' providers of one name are apart; an enable is of all of them, or of one user's. */
TEST_F(provider, users)
{
	struct etw_enable enable = enable_make(self->name);
	int p = provider_register(self->dev, self->name), sum;

	provider_counter(p, "tick", 0);
	for (int only = 0; only < 3; only++) {
		enable.flags = only ? ETW_ENABLE_UID : 0;
		enable.uid = only == 1 ? SOMEBODY : 0;
		ASSERT_LE(0, call(self->fd, ETW_IOC_SESSION_ENABLE, &enable));
		ASSERT_EQ(16, write_number(p, 0, 1));
		ASSERT_EQ(0, as_somebody(write_one, self->dev, self->name));
		DRAIN();
		ASSERT_EQ(only ? 1 : 2, self->log.nr);
		sum = 0;
		for (unsigned int i = 0; i < self->log.nr; i++)
			sum += self->log.events[i].number;
		EXPECT_EQ(only ? (only == 1 ? 2 : 1) : 3, sum);
		self->log.nr = 0;
	}
	enable.flags = 0;
	enable.uid = SOMEBODY;
	EXPECT_EQ(-EINVAL, call(self->fd, ETW_IOC_SESSION_ENABLE, &enable));
	close(p);
}

/* A provider of this name and GUID, of @uid. */
static int register_with(int dev, const char *name, __u8 guid, uid_t uid)
{
	struct etw_provider_register a = { .size = sizeof(a), .guid = { 0x77, guid } };
	int p = -1;

	strcpy((char *)a.name, name);
	if (setreuid(uid, 0))
		return -errno;
	p = call(dev, ETW_IOC_PROVIDER_REGISTER, &a);
	return setreuid(0, 0) ? -errno : p;
}

static struct etw_enable by_guid(__u8 guid)
{
	return (struct etw_enable){ .size = sizeof(struct etw_enable), .guid = { 0x77, guid } };
}

/* What the session counts for those with a name, or without one, together. */
static uint64_t written_by(int session, bool named)
{
	struct etw_provider_query q = { .size = sizeof(q) };
	uint64_t sum = 0;

	for (; !call(session, ETW_IOC_SESSION_QUERY_PROVIDER, &q); q.flags = 0)
		if (named == !!q.name[0])
			sum += q.written;
	return sum;
}

/* What was enabled by a GUID is not another's who registers that GUID under a name of their own, nor the other way round. */
TEST_F(provider, known_by)
{
	static const __u8 none[16];
	struct etw_enable victim = by_guid(1);
	int p = register_with(self->dev, self->name, 1, 0), q;

	ASSERT_EQ(0, provider_counter(p, "tick", 0));
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &victim));
	q = register_with(self->dev, "Test-Wanted", 1, SOMEBODY);
	ASSERT_EQ(0, provider_counter(q, "tick", 0));
	EXPECT_EQ(0, disable(self->fd, "Test-Wanted"));
	EXPECT_EQ(1, provider_query(p).nr_sessions);
	EXPECT_EQ(1, enable_all(self->fd, "Test-Wanted"));
	EXPECT_EQ(2, session_query(self->fd).nr_enabled);
	EXPECT_EQ(0, memcmp(none, session_provider(self->fd, "Test-Wanted").guid, 16));
	EXPECT_EQ(1, provider_query(p).nr_sessions);
	EXPECT_EQ(16, write_number(p, 0, 1));
	EXPECT_EQ(0, disable(self->fd, "Test-Wanted"));
	EXPECT_EQ(16, write_number(p, 0, 2));
	EXPECT_EQ(16, write_number(q, 0, 3));	/* it has the GUID */
	EXPECT_EQ(3, written_by(self->fd, false));
	EXPECT_EQ(0, written_by(self->fd, true));
	EXPECT_EQ(3, session_query(self->fd).written);
	close(p);
	close(q);
}

/* A name and a GUID of one provider, enabled before anybody has it: each event once, and counted once. */
TEST_F(provider, name_and_guid)
{
	struct etw_enable guid = by_guid(2);
	int p;

	ASSERT_EQ(0, enable_all(self->fd, self->name));
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_ENABLE, &guid));
	p = register_with(self->dev, self->name, 2, SOMEBODY);
	ASSERT_EQ(0, provider_counter(p, "tick", 0));
	EXPECT_EQ(1, provider_query(p).nr_sessions);
	EXPECT_EQ(16, write_number(p, 0, 1));
	EXPECT_EQ(16, write_number(p, 0, 2));
	EXPECT_EQ(2, session_query(self->fd).written);
	EXPECT_EQ(2, written_by(self->fd, true));
	EXPECT_EQ(0, written_by(self->fd, false));
	/* of a user that is meant no more it stays where it was */
	guid = enable_make(self->name);
	guid.flags = ETW_ENABLE_UID;
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_ENABLE, &guid));
	EXPECT_EQ(2, written_by(self->fd, true) + written_by(self->fd, false));
	close(p);
}

static int flood(int dev, const char *name)
{
	static uint8_t buf[64 << 10];
	uint64_t end = now_ns() + 1500000000ULL;
	size_t used = 0;
	int p = provider_register(dev, name);

	if (provider_counter(p, "flood", 0))
		return 1;
	for (uint64_t n = 0; n < ETW_MAX_BATCH; n++)
		used = write_add(buf, used, 0, &n, sizeof(n));
	while (now_ns() < end)
		if (write(p, buf, used) < 0 && errno != ENOBUFS)
			return 2;
	return 0;
}

/* A program that floods loses its own events; those of root's programs and of the kernel are all there. */
TEST_F(provider, flood)
{
	struct etw_provider_query q;
	int p = provider_register(self->dev, self->name), status;
	pid_t pid;

	provider_counter(p, "tick", 0);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	ASSERT_EQ(0, enable_all(self->fd, "Test-Flood"));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	pid = fork();
	if (!pid)
		_exit(become_user(SOMEBODY) ? 99 : flood(self->dev, "Test-Flood"));
	for (int i = 0; i < MANY; i++) {
		ASSERT_EQ(16, write_number(p, 0, i));
		if (i % 10 == 0)
			work_rename("f", i, 1);
		sleep_ms(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_SUMS(self->fd);
	q = session_provider(self->fd, self->name);
	EXPECT_EQ(MANY, q.written);
	for (int i = 0; i < ETW_NR_LOST; i++)
		EXPECT_EQ(0, q.lost[i]);
	q = session_provider(self->fd, "Linux-Kernel-Process");
	EXPECT_EQ(MANY / 10, q.written);
	q = session_provider(self->fd, "Test-Flood");
	printf("# of the flood %llu written, %llu over the rate, %llu no room\n", (unsigned long long)q.written,
	       (unsigned long long)q.lost[ETW_LOST_RATE], (unsigned long long)q.lost[ETW_LOST_NO_ROOM]);
	EXPECT_GT(q.written, 0);
	EXPECT_GT(q.lost[ETW_LOST_RATE] + q.lost[ETW_LOST_NO_ROOM], 0);
	close(p);
}

static void write_and_die(void *arg)
{
	int dev = device_open(), p = provider_register(dev, arg);
	uint64_t n = 0;

	provider_counter(p, "tick", 0);
	for (;;)
		write_number(p, 0, n++);
}

/* Death at any point leaves whole records and nothing behind. */
TEST_F(provider, killed)
{
	struct etw_provider_list l;

	ASSERT_EQ(0, enable_all(self->fd, self->name));
	for (int i = 0; i < 20; i++) {
		pid_t pid = spawn(write_and_die, self->name);

		sleep_ms(i * 3);
		kill(pid, SIGKILL);
		reap(pid);
	}
	EXPECT_FALSE(find_provider(self->dev, self->name, &l));
	DRAIN();
	EXPECT_GT(self->log.nr, 0);
}

TEST_HARNESS_MAIN
