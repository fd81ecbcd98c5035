// SPDX-License-Identifier: GPL-2.0-only
/*
 * Provider files at their edges: every length, heads and schemas that are nearly right, limits of rate, room and
 * number, and what is told when not every session took an event. It knows the ABI only.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"

#define SOMEBODY 1235
#define RATE "/sys/module/etw/parameters/untrusted_rate"

/* What came of the texts that were written: of each length how many, and those that were not as written. */
struct texts {
	unsigned int seen[1024];
	unsigned int wrong;
};

FIXTURE(edges)
{
	int dev;
	int fd;
	int p;
	char name[ETW_NAME_SIZE];
	struct texts texts;
	struct reader reader;
	struct schema_maker m;
};

static char letter(unsigned int len, unsigned int i)
{
	return 'a' + (len + i) % 26;
}

static void look_at(const struct event *event, void *arg)
{
	struct texts *texts = arg;
	unsigned int i;

	if (!event_is(event, "line"))
		return;
	for (i = 0; i + 1 < event->size; i++)
		texts->wrong += event->payload[i] != letter(event->size - 1, i);
	texts->wrong += event->payload[i] != 0;
	texts->seen[event->size - 1]++;
}

static int session_of(int dev, const char *what, unsigned int subbuf_size, unsigned int nr)
{
	struct etw_session_create create = session_small(unique(what));

	create.subbuf_size = subbuf_size;
	create.nr_subbufs = nr;
	return session_make(dev, &create);
}

/* An event of one field. */
static int one_field(struct schema_maker *m, int p, const char *event, uint8_t type)
{
	schema_begin(m, event, 1);
	schema_field(m, 0, "data", type);
	return provider_event(p, m->bytes, schema_done(m));
}

FIXTURE_SETUP(edges)
{
	ASSERT_EQ(0, pin(0));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_of(self->dev, "edges", 16 << 10, 32);
	ASSERT_GE(self->fd, 0);
	snprintf(self->name, sizeof(self->name), "Test-Edges-%d", getpid());
	self->p = provider_register(self->dev, self->name);
	ASSERT_GE(self->p, 0);
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, look_at, &self->texts));
}

FIXTURE_TEARDOWN(edges)
{
	reader_close(&self->reader);
	close(self->p);
	close(self->fd);
	close(self->dev);
}

#define DRAIN() ASSERT_ALL_READ(self->fd, &self->reader)

#define FAILS(error, x) do {						\
	errno = 0;							\
	EXPECT_EQ(-1, x);						\
	EXPECT_EQ(error, errno);					\
} while (0)

static size_t add_line(uint8_t *buf, size_t used, int index, unsigned int len)
{
	char text[1024] = {};

	for (unsigned int i = 0; i < len; i++)
		text[i] = letter(len, i);
	return write_add(buf, used, index, text, len + 1);
}

static void *page_at(uint64_t page)
{
	return mmap((void *)(page * 4096), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* The last page that can be a program's, or, if the kernel has something there, one with nothing behind it. */
static void *last_page(void)
{
	uint64_t low = 1 << 10, high = 1UL << (56 - 12);
	void *last;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		void *page = page_at(middle);

		if (page == MAP_FAILED && errno != EEXIST) {
			high = middle;
			continue;
		}
		low = middle;
		if (page != MAP_FAILED)
			munmap(page, 4096);
	}
	last = page_at(low);
	if (last == MAP_FAILED) {
		last = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(last + 4096, 4096);
	}
	return last;
}

/* Whatever its length, and however it comes, each byte arrives. */
TEST_F(edges, lengths)
{
	static uint8_t buf[4096];
	struct iovec iov[2];
	uint8_t *last;
	size_t used;
	int line = one_field(&self->m, self->p, "line", ETW_TYPE_STRING);

	ASSERT_EQ(0, line);
	for (unsigned int len = 0; len < 1000; len += len < 300 ? 1 : 41) {
		used = add_line(buf, 0, line, len);
		ASSERT_EQ(used, write(self->p, buf, used));
		iov[0] = (struct iovec){ buf, used / 2 };
		iov[1] = (struct iovec){ buf + used / 2, used - used / 2 };
		ASSERT_EQ(used, writev(self->p, iov, 2));
		used = add_line(buf, used, line, len);
		ASSERT_EQ(used, write(self->p, buf, used));
		DRAIN();
		EXPECT_EQ(4, self->texts.seen[len]) TH_LOG("length %u", len);
	}
	last = last_page();
	ASSERT_NE(MAP_FAILED, last);
	used = add_line(buf, 0, line, 40);
	memcpy(last + 4096 - used, buf, used);
	EXPECT_EQ(used, write(self->p, last + 4096 - used, used));
	FAILS(EFAULT, write(self->p, last + 4096 - used + 1, used));
	DRAIN();
	EXPECT_EQ(5, self->texts.seen[40]);
	EXPECT_EQ(0, self->texts.wrong);
}

/* A head that is alone may lie as well, and one whose size is no more than said by what follows it. */
TEST_F(edges, heads)
{
	static const struct etw_write alone[] = {
		{ 16, 1, 0 }, { 16, 0, 1 }, { 16, 0, 0x8000 }, { 8, 0, 0 }, { 17, 0, 0 }, { 0, 0, 0 },
	};
	uint8_t buf[256] = {};
	uint32_t count;
	size_t used;
	int tick, blob;

	tick = provider_counter(self->p, "tick", 0);
	ASSERT_EQ(0, tick);
	for (unsigned int i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		memcpy(buf, &alone[i], sizeof(alone[i]));
		FAILS(EINVAL, write(self->p, buf, 16));
	}
	for (unsigned int len = 8; len < 32; len++) {
		memcpy(buf, &(struct etw_write){ len, tick, 0 }, 8);
		if (len != 16)
			FAILS(EINVAL, write(self->p, buf, len));
	}
	blob = one_field(&self->m, self->p, "blob", ETW_TYPE_BINARY);
	ASSERT_EQ(1, blob);
	for (int second = 0; second < 2; second++) {
		used = second ? write_add(buf, 0, tick, &(uint64_t){ 7 }, 8) : 0;
		/* a hundred bytes that were not written */
		count = 100;
		memcpy(buf + used, &(struct etw_write){ 8 + 4 + 100, blob, 0 }, 8);
		memcpy(buf + used + 8, &count, 4);
		FAILS(EINVAL, write(self->p, buf, used + 12));
		/* less than nothing, of which there is as much as it says */
		count = -12;
		memcpy(buf + used, &(struct etw_write){ 0, blob, 0 }, 8);
		memcpy(buf + used + 8, &count, 4);
		FAILS(EINVAL, write(self->p, buf, used + 12));
	}
	EXPECT_EQ(0, session_query(self->fd).written);
}

/* Events whose heads are all the same are looked at one by one nonetheless, to the last byte. */
TEST_F(edges, same_heads)
{
	uint8_t buf[256];
	size_t used;
	int tick, line;

	tick = provider_counter(self->p, "tick", 0);
	line = one_field(&self->m, self->p, "line", ETW_TYPE_STRING);
	ASSERT_EQ(1, line);
	for (int nr = 2; nr < 5; nr++) {
		used = 0;
		for (uint64_t n = 0; n < nr; n++)
			used = write_add(buf, used, tick, &n, sizeof(n));
		for (size_t cut = 1; cut < 16; cut++)
			FAILS(EINVAL, write(self->p, buf, used - cut));
		used = 0;
		for (int i = 0; i < nr - 1; i++)
			used = write_add(buf, used, line, "end", 4);
		used = write_add(buf, used, line, "ends", 4);
		FAILS(EINVAL, write(self->p, buf, used));
		used = write_add(buf, used - 12, line, "e\0d", 4);
		FAILS(EINVAL, write(self->p, buf, used));
		memset(buf + used - 12, 0, 12);
		FAILS(EINVAL, write(self->p, buf, used));
	}
	EXPECT_EQ(0, session_query(self->fd).written);
}

/* Memory that is not there, for writes of every kind. */
TEST_F(edges, pointers)
{
	static uint8_t buf[4096], payload[2000];
	void *volatile bad = (void *)8;
	const uint32_t count = sizeof(payload) - 4;
	struct iovec iov[2];
	size_t used;
	int blob = one_field(&self->m, self->p, "blob", ETW_TYPE_BINARY);

	ASSERT_EQ(0, blob);
	memcpy(payload, &count, sizeof(count));
	used = write_add(buf, 0, blob, payload, sizeof(payload));
	ASSERT_EQ(used, write(self->p, buf, used));
	FAILS(EFAULT, write(self->p, bad, 16));
	FAILS(EFAULT, write(self->p, bad, used));
	iov[0] = (struct iovec){ buf, used - 8 };
	iov[1] = (struct iovec){ bad, 8 };
	FAILS(EFAULT, writev(self->p, iov, 2));
	iov[0] = (struct iovec){ buf, 8 };
	iov[1] = (struct iovec){ bad, 8 };
	FAILS(EFAULT, writev(self->p, iov, 2));
	EXPECT_EQ(1, session_query(self->fd).written);
}

/* What is too much for every session is refused, alone or not; what is for one is told, whatever else went well. */
TEST_F(edges, too_large)
{
	static uint8_t buf[ETW_MAX_WRITE], payload[ETW_MAX_PAYLOAD + 4];
	int other = session_of(self->dev, "larger", 64 << 10, 4), tick, blob;
	uint32_t count = ETW_MAX_PAYLOAD;
	size_t used;

	ASSERT_GE(other, 0);
	tick = provider_counter(self->p, "tick", 0);
	blob = one_field(&self->m, self->p, "blob", ETW_TYPE_BINARY);
	memcpy(payload, &count, sizeof(count));
	used = write_add(buf, 0, blob, payload, count + 4);
	FAILS(E2BIG, write(self->p, buf, used));
	used = write_add(buf, used, tick, &(uint64_t){ 1 }, 8);
	FAILS(E2BIG, write(self->p, buf, used));
	EXPECT_EQ(0, session_query(self->fd).written);

	ASSERT_EQ(1, enable_all(other, self->name));
	count = 20000;
	memcpy(payload, &count, sizeof(count));
	used = write_add(buf, 0, blob, payload, count + 4);
	FAILS(EMSGSIZE, write(self->p, buf, used));
	used = write_add(buf, used, tick, &(uint64_t){ 1 }, 8);
	FAILS(EMSGSIZE, write(self->p, buf, used));
	EXPECT_EQ(1, session_query(self->fd).written);
	EXPECT_EQ(2, session_query(self->fd).lost[ETW_LOST_TOO_LARGE]);
	EXPECT_EQ(3, session_query(other).written);
	close(other);
}

/* Of one size always, and yet to be looked at. */
TEST_F(edges, booleans)
{
	uint8_t buf[16], value;
	int flag = one_field(&self->m, self->p, "flag", ETW_TYPE_BOOL);
	ssize_t ret;

	ASSERT_EQ(0, flag);
	for (int i = 0; i < 256; i++) {
		value = i;
		ret = write(self->p, buf, write_add(buf, 0, flag, &value, 1));
		EXPECT_EQ(i < 2 ? 9 : -1, ret) TH_LOG("%d", i);
	}
	EXPECT_EQ(2, session_query(self->fd).written);
}

/* Strings that go on to the end of a schema, an address, payloads that no packet holds, a description of two lines. */
TEST_F(edges, schema_ends)
{
	struct etw_schema *head = schema_head(&self->m);
	struct etw_schema_field *field;
	uint32_t size;

#define MAKE() do {									\
	schema_begin(&self->m, "event", 1);						\
	field = schema_field(&self->m, 0, "last", ETW_TYPE_U64);			\
	size = schema_done(&self->m);							\
} while (0)
	MAKE();
	memset(self->m.bytes + field->name, 'a', size - field->name);
	EXPECT_EQ(-EINVAL, provider_event(self->p, self->m.bytes, size));
	MAKE();
	field->type = ETW_TYPE_POINTER;
	EXPECT_EQ(-EINVAL, provider_event(self->p, self->m.bytes, size));
	MAKE();
	field->array = ETW_ARRAY_FIXED;
	field->count = ETW_MAX_PAYLOAD / 8 + 1;
	EXPECT_EQ(-EINVAL, provider_event(self->p, self->m.bytes, size));
	field->count--;
	EXPECT_EQ(0, provider_event(self->p, self->m.bytes, size));
	for (int lines = 2; lines; lines--) {
		MAKE();
		memcpy(self->m.bytes + size, lines == 2 ? "of\ntwo" : "of one", 7);
		head->description = size;
		size += 8;
		head->size = size;
		EXPECT_EQ(lines == 2 ? -EINVAL : 1, provider_event(self->p, self->m.bytes, size));
	}
	MAKE();
	memset(self->m.bytes + size, 'd', 256);
	memset(self->m.bytes + size + 256, 0, 8);
	head->description = size;
	size += 264;
	head->size = size;
	EXPECT_EQ(-EINVAL, provider_event(self->p, self->m.bytes, size));
#undef MAKE
}

/* What a full relay does not take of a write of several is counted event by event. */
TEST_F(edges, full)
{
	struct etw_session_query q;
	uint8_t buf[50 * 16];
	size_t used = 0;
	unsigned int whole = 0;
	int tick = provider_counter(self->p, "tick", 0);

	for (uint64_t i = 0; i < 50; i++)
		used = write_add(buf, used, tick, &i, sizeof(i));
	for (int i = 0; i < 1000; i++) {
		const ssize_t ret = write(self->p, buf, used);

		if (ret < 0)
			ASSERT_EQ(ENOBUFS, errno);
		whole += ret > 0;
	}
	q = session_query(self->fd);
	EXPECT_GT(q.written, 0);
	EXPECT_LE(whole * 50, q.written);
	EXPECT_GT(q.lost[ETW_LOST_NO_ROOM], 0);
	EXPECT_EQ(50 * 1000, q.written + q.lost[ETW_LOST_NO_ROOM]);
	ASSERT_SUMS(self->fd);
	DRAIN();
}

/* As somebody: @nr events with payloads of @size, so many @together. The time that it took. */
static uint64_t write_many(int dev, const char *name, unsigned int nr, unsigned int together, uint32_t size)
{
	static uint8_t buf[ETW_MAX_WRITE], payload[ETW_MAX_PAYLOAD];
	uint64_t *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), time;
	const uint32_t count = size - sizeof(count);
	const pid_t pid = fork();
	struct schema_maker m;
	size_t used = 0;

	if (!pid) {
		int p = become_user(SOMEBODY) ? -1 : provider_register(dev, name);
		const int blob = one_field(&m, p, "blob", ETW_TYPE_BINARY);

		memcpy(payload, &count, sizeof(count));
		for (unsigned int i = 0; i < together; i++)
			used = write_add(buf, used, blob, payload, size);
		time = now_ns();
		for (unsigned int i = 0; i < nr / together; i++)
			if (write(p, buf, used) < 0 && errno != ENOBUFS)
				_exit(1);
		*took = now_ns() - time;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	time = *took;
	munmap(took, 4096);
	return time;
}

/* A rate is what a user may record in a second, a tenth of it but at least one at once, one by one or together; 0 is no limit. */
TEST_F(edges, rate)
{
	static const unsigned int rates[] = { 0, 1000, 5, 1 };
	const unsigned int nr = 2000;
	struct etw_provider_query q;
	char text[16] = "", name[ETW_NAME_SIZE];
	uint64_t time;

	EXPECT_EQ(-EINVAL, file_write(RATE, "1000000001"));
	EXPECT_EQ(-EINVAL, file_write(RATE, "-1"));
	ASSERT_LT(0, file_read(RATE, text, sizeof(text)));
	EXPECT_EQ(100000, atoi(text));
	for (int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const unsigned int rate = rates[i], once = rate < 10 ? 1 : rate / 10;

		snprintf(name, sizeof(name), "Rate-%u-%d", rate, getpid());
		ASSERT_EQ(0, enable_all(self->fd, name));
		snprintf(text, sizeof(text), "%u", rate);
		ASSERT_EQ(0, file_write(RATE, text));
		sleep_ms(300);	/* what was spent has come back */
		time = write_many(self->dev, name, nr, 10, 8);
		file_write(RATE, "100000");
		ASSERT_NE(0, time);
		q = session_provider(self->fd, name);
		EXPECT_EQ(nr, q.written + q.lost[ETW_LOST_RATE]);
		if (rate) {
			EXPECT_LE(once, q.written);
			EXPECT_GE(once + time * rate / 1000000000 + 1, q.written);
		} else {
			EXPECT_EQ(nr, q.written);
		}
		ASSERT_SUMS(self->fd);
	}
}

/* Large events are limited by their bytes, one by one or together, also where nothing is ever full; one always can. */
TEST_F(edges, rate_of_bytes)
{
	const unsigned int rate = 1000, nr = 30;
	struct etw_session_create create = session_small(unique("ring"));
	struct etw_provider_query q;
	char name[ETW_NAME_SIZE];
	uint64_t time;
	int ring;

	create.flags = ETW_SESSION_OVERWRITE;
	create.subbuf_size = 64 << 10;
	create.nr_subbufs = 4;
	ring = session_make(self->dev, &create);
	ASSERT_GE(ring, 0);
	for (int i = 0; i < 3; i++) {
		const unsigned int size = i < 2 ? 20000 : 50000, worth = size / ETW_RATE_BYTES;

		snprintf(name, sizeof(name), "Bytes-%d-%d", i, getpid());
		ASSERT_EQ(0, enable_all(ring, name));
		ASSERT_EQ(0, file_write(RATE, "1000"));
		sleep_ms(400);	/* what was spent has come back */
		time = write_many(self->dev, name, nr, i == 1 ? 3 : 1, size);
		file_write(RATE, "100000");
		ASSERT_NE(0, time);
		q = session_provider(ring, name);
		EXPECT_EQ(nr, q.written + q.lost[ETW_LOST_RATE]);
		EXPECT_LE(1, q.written);
		EXPECT_GE((worth > rate / 10 ? worth : rate / 10) + time * rate / 1000000000 + 1, q.written * worth);
	}
	close(ring);
}

/* The level that a program is told is the highest, whoever asked for it and when. */
TEST_F(edges, highest_level)
{
	struct etw_enable e = enable_make(self->name);
	int other = session_of(self->dev, "lower", 16 << 10, 4);

	ASSERT_GE(other, 0);
	for (int round = 0; round < 2; round++) {
		e.level = round ? 0 : 3;
		ASSERT_EQ(1, call(other, ETW_IOC_SESSION_ENABLE, &e));
		EXPECT_EQ(2, provider_query(self->p).nr_sessions);
		EXPECT_EQ(255, provider_query(self->p).level);
		e.level = 4;
		ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
		EXPECT_EQ(round ? 255 : 4, provider_query(self->p).level);
		e.level = 0;
		ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	}
	close(other);
}

static void *write_two(void *arg)
{
	write_number(*(int *)arg, 0, 2);
	return NULL;
}

/* A filter of processes has their threads. */
TEST_F(edges, threads)
{
	struct etw_enable e = enable_make(self->name);
	__s32 pids[] = { getpid() };
	pthread_t thread;

	ASSERT_EQ(0, provider_counter(self->p, "tick", 0));
	e.pids = (uintptr_t)pids;
	e.nr_pids = 1;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(16, write_number(self->p, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_two, &self->p));
	pthread_join(thread, NULL);
	EXPECT_EQ(2, session_provider(self->fd, self->name).written);
	pids[0] = getppid();
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(16, write_number(self->p, 0, 1));
	EXPECT_EQ(2, session_provider(self->fd, self->name).written);
	EXPECT_EQ(1, session_provider(self->fd, self->name).filtered);
}

/* Each session that rejects the writer counts each event once: alone, and beside one that takes them; one by one and in runs. */
TEST_F(edges, rejected)
{
	struct etw_enable e = enable_make(self->name);
	int second = session_of(self->dev, unique("second"), 4096, 4);
	static uint8_t buf[4096];
	__s32 pids[] = { getppid() };
	size_t used = 0;

	ASSERT_GE(second, 0);
	ASSERT_EQ(0, provider_counter(self->p, "tick", 0));
	ASSERT_EQ(1, provider_counter(self->p, "tock", 0));
	for (__u64 i = 0; i < 8; i++)
		used = write_add(buf, used, i == 7, &i, sizeof(i));
	/* its packet is open */
	ASSERT_EQ(1, enable_all(self->fd, self->name));
	ASSERT_EQ(16, write_number(self->p, 0, 1));
	e.pids = (uintptr_t)pids;
	e.nr_pids = 1;
	ASSERT_EQ(1, call(self->fd, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(1, call(second, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(16, write_number(self->p, 0, 1));
	ASSERT_EQ((ssize_t)used, write(self->p, buf, used));
	EXPECT_EQ(9, session_provider(self->fd, self->name).filtered);
	EXPECT_EQ(9, session_provider(second, self->name).filtered);
	pids[0] = getpid();
	ASSERT_EQ(1, call(second, ETW_IOC_SESSION_ENABLE, &e));
	ASSERT_EQ(16, write_number(self->p, 0, 1));
	ASSERT_EQ((ssize_t)used, write(self->p, buf, used));
	EXPECT_EQ(18, session_provider(self->fd, self->name).filtered);
	EXPECT_EQ(1, session_provider(self->fd, self->name).written);
	EXPECT_EQ(9, session_provider(second, self->name).filtered);
	EXPECT_EQ(9, session_provider(second, self->name).written);
	close(second);
}

/* Who sleeps in poll is woken by the change itself. */
TEST_F(edges, poll_wakes)
{
	int status;
	pid_t pid;

	provider_query(self->p);
	pid = fork();
	if (!pid) {
		struct pollfd fd = { .fd = self->p, .events = POLLIN };

		_exit(poll_woken(&fd, 15000) != 1 || fd.revents != POLLIN);
	}
	sleep_ms(300);
	ASSERT_EQ(0, disable(self->fd, self->name));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Names whose hash takes more than one block. */
TEST_F(edges, guids)
{
	static const struct {
		const char *name;
		__u8 guid[16];
	} vectors[] = {
		{ "Nineteen-Characters",
		  { 0x9a, 0xc7, 0x19, 0x6c, 0x44, 0x05, 0x59, 0x25, 0x5d, 0xd2, 0x22, 0x86, 0x2f, 0x14, 0xe2, 0xd7 } },
		{ "Twenty-Characters-99",
		  { 0xad, 0xab, 0x9f, 0xec, 0x7f, 0x65, 0x57, 0xa5, 0x97, 0xb2, 0xfa, 0xcb, 0x26, 0x41, 0x4d, 0x89 } },
		{ "Pqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
		  { 0x6b, 0xfe, 0x5d, 0x3e, 0x12, 0xd7, 0x5e, 0x0c, 0x45, 0x46, 0x0b, 0xba, 0xab, 0x32, 0x16, 0xd1 } },
	};

	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct etw_provider_list l = {};
		__u64 id = 0;
		int p = provider_register(self->dev, vectors[i].name);

		ASSERT_GE(p, 0);
		do {
			memset(&l, 0, sizeof(l));
			l.size = sizeof(l);
			l.id = id;
			ASSERT_EQ(0, call(self->dev, ETW_IOC_PROVIDER_LIST, &l));
			id = l.id;
		} while (strcmp((char *)l.name, vectors[i].name));
		EXPECT_EQ(0, memcmp(vectors[i].guid, l.guid, 16)) TH_LOG("%s", vectors[i].name);
		close(p);
	}
}

/* Enabled twice before it is there, it is enabled once. */
TEST_F(edges, remembered_once)
{
	ASSERT_EQ(0, enable_all(self->fd, "Test-Nobody"));
	ASSERT_EQ(0, enable_all(self->fd, "Test-Nobody"));
	EXPECT_EQ(2, session_query(self->fd).nr_enabled);
	ASSERT_EQ(0, disable(self->fd, "Test-Nobody"));
	EXPECT_EQ(1, session_query(self->fd).nr_enabled);
}

/* Enabled again while nobody has it registered, and registered again. */
TEST_F(edges, enabled_in_between)
{
	int tick = provider_counter(self->p, "tick", 0);

	ASSERT_EQ(16, write_number(self->p, tick, 1));
	close(self->p);
	ASSERT_EQ(0, enable_all(self->fd, self->name));
	self->p = provider_register(self->dev, self->name);
	ASSERT_EQ(0, provider_counter(self->p, "tick", 0));
	ASSERT_EQ(16, write_number(self->p, 0, 2));
	DRAIN();
	EXPECT_EQ(2, session_provider(self->fd, self->name).written);
	EXPECT_EQ(1, session_query(self->fd).nr_classes);
}

#define USERS 16
#define EACH 256

/* What all who have no rights may register together. */
TEST_F(edges, all_users)
{
	int ready[2], hold[2], status;
	pid_t pids[USERS + 1];
	char byte;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(hold));
	for (int u = 0; u <= USERS; u++) {
		pids[u] = fork();
		if (!pids[u]) {
			int nr = 0, last = -1;

			close(hold[1]);
			if (become_user(SOMEBODY + 1 + u))
				_exit(2);
			while (nr < EACH && (last = provider_register(self->dev, self->name)) >= 0)
				nr++;
			if (write(ready[1], &byte, 1) != 1 || read(hold[0], &byte, 1))
				_exit(3);
			_exit(u < USERS ? nr != EACH : nr != 0 || last != -EDQUOT);
		}
		ASSERT_EQ(1, read(ready[0], &byte, 1));
	}
	close(hold[1]);
	for (int u = 0; u <= USERS; u++) {
		ASSERT_EQ(pids[u], waitpid(pids[u], &status, 0));
		EXPECT_EQ(0, status) TH_LOG("user %d", u);
	}
	close(hold[0]);
	close(ready[0]);
	close(ready[1]);
}

TEST_HARNESS_MAIN
