// SPDX-License-Identifier: GPL-2.0-only
/*
 * A call that waits for its caller's memory holds nobody up: whoever reads or writes an argument of any command finds its
 * page missing, or not writable, and until it comes (userfaultfd) everything else is done, mmap too. So no lock of the
 * module is held while user memory is touched. It must not know which locks there are.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "etw_test.h"

#define PAGE 4096UL
/* The structure, and two things it can point to. */
enum { STRUCT, FIRST, SECOND, NR_PAGES };

FIXTURE(copy)
{
	int dev;
	int session;
	int relay;
	int uffd;
	const char *name;
	unsigned char *pages;		/* NR_PAGES, that come when we say so */
	unsigned char content[NR_PAGES][PAGE];
	unsigned int faults;
	/* the call in its thread */
	int fd;
	unsigned int cmd;
	int result;
	bool done;
	bool late;			/* everything else was held up */
};

typedef struct _test_data_copy self_t;

FIXTURE_SETUP(copy)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP };
	struct etw_session_create create;
	struct etw_relay_open open = { .size = sizeof(open) };

	ASSERT_EQ(0, pin(0));
	self->name = unique("copy");
	create = session_small(self->name);
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->session = session_make(self->dev, &create);
	ASSERT_GE(self->session, 0);
	ASSERT_EQ(1, enable_renames(self->session, getpid()));
	self->relay = call(self->session, ETW_IOC_SESSION_RELAY_OPEN, &open);
	ASSERT_GE(self->relay, 0);
	self->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ASSERT_GE(self->uffd, 0);
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_API, &api));
	self->pages = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pages);
	reg.range.start = (uintptr_t)self->pages;
	reg.range.len = NR_PAGES * PAGE;
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &reg));
}

FIXTURE_TEARDOWN(copy)
{
	close(self->uffd);
	munmap(self->pages, NR_PAGES * PAGE);
	close(self->relay);
	close(self->session);
	close(self->dev);
}

static void *caller(void *arg)
{
	self_t *self = arg;

	self->result = call(self->fd, self->cmd, self->pages);
	__atomic_store_n(&self->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The page comes, at first not writable; or becomes writable. */
static void resolve(self_t *self, const struct uffd_msg *m)
{
	uintptr_t at = m->arg.pagefault.address & ~(PAGE - 1);
	struct uffdio_writeprotect unprotect = { .range = { at, PAGE } };
	struct uffdio_copy copy = {
		.dst = at,
		.src = (uintptr_t)self->content[(at - (uintptr_t)self->pages) / PAGE],
		.len = PAGE,
		.mode = UFFDIO_COPY_MODE_WP,
	};

	if (m->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
		ioctl(self->uffd, UFFDIO_WRITEPROTECT, &unprotect);
	else
		ioctl(self->uffd, UFFDIO_COPY, &copy);
}

struct watch {
	self_t *self;
	struct uffd_msg message;
	bool over;
};

/* Lets the call go on, so that what waits for it ends, if everything else has not been done in time. */
static void *watch(void *arg)
{
	struct watch *w = arg;

	if (!wait_until(20000, __atomic_load_n(&w->over, __ATOMIC_ACQUIRE))) {
		w->self->late = true;
		resolve(w->self, &w->message);
	}
	return NULL;
}

/* Everything that takes a lock: on the same files, on others, of memory. 0, or the line of what went wrong. */
static int everything(self_t *self)
{
	struct etw_provider_query provider;
	struct etw_schema_read schema;
	struct etw_provider_list list;
	struct etw_session_create create = session_small("copy-other");
	char room[16384];
	struct relay relay;
	void *map;
	int fd;

	session_query(self->session);
	poison(provider);
	provider.id = 0;
	provider.flags = 0;
	if (call(self->session, ETW_IOC_SESSION_QUERY_PROVIDER, &provider))
		return __LINE__;
	poison(schema);
	schema.from = 0;
	schema.buf = (uintptr_t)room;
	schema.buf_size = sizeof(room);
	if (call(self->session, ETW_IOC_SESSION_SCHEMA_READ, &schema))
		return __LINE__;
	memset(&list, 0, sizeof(list));
	list.size = sizeof(list);
	if (call(self->dev, ETW_IOC_PROVIDER_LIST, &list))
		return __LINE__;
	if (enable_all(self->session, "etw") != 1 || disable(self->session, "etw"))
		return __LINE__;
	if (!session_flush(self->session))
		return __LINE__;
	fd = session_make(self->dev, &create);
	if (fd < 0 || relay_open(&relay, fd, 0))
		return __LINE__;
	relay_close(&relay);
	close(fd);
	map = mmap(NULL, 9 * 16384, PROT_READ, MAP_SHARED, self->relay, 0);
	if (map == MAP_FAILED || munmap(map, 9 * 16384))
		return __LINE__;
	return 0;
}

/* What went wrong, or NULL. The call finds @self->content, and every time it has to wait everything else is done. */
static const char *stepwise(self_t *self, int fd, unsigned int cmd, int expected)
{
	struct pollfd p = { .fd = self->uffd, .events = POLLIN };
	static char text[200];
	pthread_t thread, watcher;
	struct watch w;
	int line = 0;

	self->fd = fd;
	self->cmd = cmd;
	self->faults = 0;
	self->done = self->late = false;
	madvise(self->pages, NR_PAGES * PAGE, MADV_DONTNEED);
	pthread_create(&thread, NULL, caller, self);
	while (!__atomic_load_n(&self->done, __ATOMIC_ACQUIRE)) {
		if (poll(&p, 1, 10) != 1)
			continue;
		w = (struct watch){ .self = self };
		if (read(self->uffd, &w.message, sizeof(w.message)) != sizeof(w.message))
			break;
		self->faults++;
		pthread_create(&watcher, NULL, watch, &w);
		line = everything(self) ?: line;
		__atomic_store_n(&w.over, true, __ATOMIC_RELEASE);
		pthread_join(watcher, NULL);
		if (!self->late)
			resolve(self, &w.message);
	}
	pthread_join(thread, NULL);
	if (self->late)
		snprintf(text, sizeof(text), "wait %u of the call made others wait", self->faults);
	else if (line)
		snprintf(text, sizeof(text), "line %d failed in wait %u of the call", line, self->faults);
	else if (self->result < 0 ? self->result != expected : expected < 0)
		snprintf(text, sizeof(text), "the call gave %d", self->result);
	else
		return NULL;
	return text;
}

/* Ends the test, so is a macro. @waits: the reads and writes of pages there must be at least. */
#define STEPWISE(fd, cmd, expected, waits) do {					\
	const char *_why = stepwise(self, fd, cmd, expected);			\
										\
	if (_why)								\
		TH_LOG(#cmd ": %s", _why);					\
	ASSERT_EQ(NULL, _why);							\
	EXPECT_GE(self->faults, waits);						\
} while (0)

#define content(type) ({							\
	memset(self->content, 0, sizeof(self->content));			\
	*(__u32 *)self->content[STRUCT] = sizeof(type);				\
	(type *)self->content[STRUCT]; })
#define at(page) ((uintptr_t)(self->pages + (page) * PAGE))

TEST_F(copy, control)
{
	struct etw_provider_list *list;
	struct etw_session_create *create;
	struct etw_event_list *events;

	content(struct etw_version);
	STEPWISE(self->dev, ETW_IOC_VERSION, 0, 2);
	create = content(struct etw_session_create);
	*create = session_small("copy-made");
	STEPWISE(self->dev, ETW_IOC_SESSION_CREATE, 0, 1);
	close(self->result);
	strcpy((char *)content(struct etw_session_open)->name, self->name);
	STEPWISE(self->dev, ETW_IOC_SESSION_OPEN, 0, 1);
	close(self->result);
	content(struct etw_session_query);
	STEPWISE(self->dev, ETW_IOC_SESSION_LIST, 0, 2);
	list = content(struct etw_provider_list);
	list->keywords = at(FIRST);
	list->nr_keywords = 64;
	STEPWISE(self->dev, ETW_IOC_PROVIDER_LIST, 0, 3);
	events = content(struct etw_event_list);
	events->buf = at(FIRST);
	events->buf_size = PAGE;
	STEPWISE(self->dev, ETW_IOC_EVENT_LIST, 0, 3);
}

TEST_F(copy, session)
{
	struct etw_session_update *update;
	struct etw_schema_read *schema;
	struct etw_enable *enable;

	content(struct etw_session_query);
	STEPWISE(self->session, ETW_IOC_SESSION_QUERY, 0, 2);
	content(struct etw_cpu_query);
	STEPWISE(self->session, ETW_IOC_SESSION_QUERY_CPU, 0, 2);
	content(struct etw_provider_query);
	STEPWISE(self->session, ETW_IOC_SESSION_QUERY_PROVIDER, 0, 2);
	content(struct etw_class_query);
	STEPWISE(self->session, ETW_IOC_SESSION_QUERY_CLASS, 0, 2);
	enable = content(struct etw_enable);
	*enable = enable_make("sched");
	enable->event_mode = ETW_EVENTS_IN;
	enable->events = at(FIRST);
	enable->nr_events = 1;
	enable->pids = at(SECOND);
	enable->nr_pids = 1;
	strcpy((char *)self->content[FIRST], "sched_switch");
	*(__s32 *)self->content[SECOND] = getpid();
	STEPWISE(self->session, ETW_IOC_SESSION_ENABLE, 1, 3);
	strcpy((char *)content(struct etw_provider_ref)->name, "sched");
	STEPWISE(self->session, ETW_IOC_SESSION_CAPTURE_STATE, 0, 1);
	strcpy((char *)content(struct etw_provider_ref)->name, "sched");
	STEPWISE(self->session, ETW_IOC_SESSION_DISABLE, 0, 1);
	update = content(struct etw_session_update);
	update->what = ETW_UPDATE_FLUSH_MS;
	update->flush_ms = ETW_FLUSH_MS_NEVER;
	STEPWISE(self->session, ETW_IOC_SESSION_UPDATE, 0, 1);
	content(struct etw_flush);
	STEPWISE(self->session, ETW_IOC_SESSION_FLUSH, 0, 2);
	schema = content(struct etw_schema_read);
	schema->buf = at(FIRST);
	schema->buf_size = PAGE;
	STEPWISE(self->session, ETW_IOC_SESSION_SCHEMA_READ, 0, 3);
	content(struct etw_relay_open)->cpu = cpus_online() - 1;
	STEPWISE(self->session, ETW_IOC_SESSION_RELAY_OPEN, cpus_online() > 1 ? 0 : -EBUSY, 1);
	if (self->result >= 0)
		close(self->result);
}

TEST_F(copy, relay)
{
	work_rename("copy", 0, 3);
	ASSERT_NE(0, session_flush(self->session));
	content(struct etw_subbuf);
	STEPWISE(self->relay, ETW_IOC_RELAY_SUBBUF_GET, 0, 2);
	EXPECT_EQ(3, ((struct etw_subbuf *)self->pages)->records);
	EXPECT_EQ(0, call(self->relay, ETW_IOC_RELAY_SUBBUF_PUT, NULL));
}

TEST_HARNESS_MAIN
