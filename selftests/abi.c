// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every command with one thing wrong: size, tail, reserved field, flag, pointer, file, value. It must give the errno of
 * uapi/ABI.md and leave everything as it was. It must not know what the commands are for.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "emitter.h"
#include "etw_test.h"

enum file { CONTROL, SESSION, RELAY, PROVIDER, NR_FILES };

#define MAX_SIZE 512

union arg {
	unsigned char bytes[MAX_SIZE];
	__u32 size;
	struct etw_version version;
	struct etw_session_create create;
	struct etw_session_open open;
	struct etw_session_query query;
	struct etw_provider_list provider_list;
	struct etw_event_list event_list;
	struct etw_cpu_query cpu;
	struct etw_provider_query provider;
	struct etw_class_query class;
	struct etw_enable enable;
	struct etw_provider_ref ref;
	struct etw_session_update update;
	struct etw_flush flush;
	struct etw_schema_read schema;
	struct etw_relay_open relay;
	struct etw_subbuf subbuf;
	struct etw_provider_register provider_register;
	struct etw_event_register event_register;
	struct etw_enabled_query enabled;
	struct etw_capture_query capture;
	struct etw_answer answer;
};

#define MUST_BE_ZERO(type, field) { offsetof(type, field), sizeof(((type *)0)->field) }

struct command {
	const char *name;
	unsigned int cmd;
	enum file file;
	unsigned int size;		/* 0: no argument */
	bool out;			/* it fills in the structure */
	bool in;			/* it reads more than @size */
	bool makes_file;
	struct {
		unsigned int at, len;
	} zero[3];			/* must be zero in a call */
};

static const struct command commands[] = {
	{ "VERSION", ETW_IOC_VERSION, CONTROL, sizeof(struct etw_version), true },
	{ "SESSION_CREATE", ETW_IOC_SESSION_CREATE, CONTROL, sizeof(struct etw_session_create), false, true, true },
	{ "SESSION_OPEN", ETW_IOC_SESSION_OPEN, CONTROL, sizeof(struct etw_session_open), false, true, true,
	  { MUST_BE_ZERO(struct etw_session_open, flags) } },
	{ "SESSION_LIST", ETW_IOC_SESSION_LIST, CONTROL, sizeof(struct etw_session_query), true, true },
	{ "PROVIDER_LIST", ETW_IOC_PROVIDER_LIST, CONTROL, sizeof(struct etw_provider_list), true, true, false,
	  { MUST_BE_ZERO(struct etw_provider_list, flags) } },
	{ "EVENT_LIST", ETW_IOC_EVENT_LIST, CONTROL, sizeof(struct etw_event_list), true, true, false,
	  { MUST_BE_ZERO(struct etw_event_list, flags) } },
	{ "PROVIDER_REGISTER", ETW_IOC_PROVIDER_REGISTER, CONTROL, sizeof(struct etw_provider_register), false, true, true,
	  { MUST_BE_ZERO(struct etw_provider_register, flags), MUST_BE_ZERO(struct etw_provider_register, reserved) } },
	{ "PROVIDER_EVENT", ETW_IOC_PROVIDER_EVENT, PROVIDER, sizeof(struct etw_event_register), false, true, false,
	  { MUST_BE_ZERO(struct etw_event_register, flags), MUST_BE_ZERO(struct etw_event_register, reserved) } },
	{ "PROVIDER_ENABLED", ETW_IOC_PROVIDER_ENABLED, PROVIDER, sizeof(struct etw_enabled_query), true, true, false,
	  { MUST_BE_ZERO(struct etw_enabled_query, flags) } },
	{ "PROVIDER_CAPTURE", ETW_IOC_PROVIDER_CAPTURE, PROVIDER, sizeof(struct etw_capture_query), true, true, false,
	  { MUST_BE_ZERO(struct etw_capture_query, flags) } },
	{ "PROVIDER_ANSWER", ETW_IOC_PROVIDER_ANSWER, PROVIDER, sizeof(struct etw_answer), false, true, false,
	  { MUST_BE_ZERO(struct etw_answer, flags), MUST_BE_ZERO(struct etw_answer, reserved) } },
	{ "SESSION_QUERY", ETW_IOC_SESSION_QUERY, SESSION, sizeof(struct etw_session_query), true },
	{ "SESSION_QUERY_CPU", ETW_IOC_SESSION_QUERY_CPU, SESSION, sizeof(struct etw_cpu_query), true, true },
	{ "SESSION_QUERY_PROVIDER", ETW_IOC_SESSION_QUERY_PROVIDER, SESSION, sizeof(struct etw_provider_query), true, true,
	  false,
	  { MUST_BE_ZERO(struct etw_provider_query, flags) } },
	{ "SESSION_QUERY_CLASS", ETW_IOC_SESSION_QUERY_CLASS, SESSION, sizeof(struct etw_class_query), true, true },
	{ "SESSION_ENABLE", ETW_IOC_SESSION_ENABLE, SESSION, sizeof(struct etw_enable), false, true, false,
	  { MUST_BE_ZERO(struct etw_enable, reserved) } },
	{ "SESSION_DISABLE", ETW_IOC_SESSION_DISABLE, SESSION, sizeof(struct etw_provider_ref), false, true, false,
	  { MUST_BE_ZERO(struct etw_provider_ref, flags) } },
	{ "SESSION_CAPTURE_STATE", ETW_IOC_SESSION_CAPTURE_STATE, SESSION, sizeof(struct etw_provider_ref), false, true,
	  false,
	  { MUST_BE_ZERO(struct etw_provider_ref, flags) } },
	{ "SESSION_UPDATE", ETW_IOC_SESSION_UPDATE, SESSION, sizeof(struct etw_session_update), false, true, false,
	  { MUST_BE_ZERO(struct etw_session_update, reserved) } },
	{ "SESSION_FLUSH", ETW_IOC_SESSION_FLUSH, SESSION, sizeof(struct etw_flush), true, true, false,
	  { MUST_BE_ZERO(struct etw_flush, reserved) } },
	{ "SESSION_SCHEMA_READ", ETW_IOC_SESSION_SCHEMA_READ, SESSION, sizeof(struct etw_schema_read), true, true },
	{ "SESSION_RELAY_OPEN", ETW_IOC_SESSION_RELAY_OPEN, SESSION, sizeof(struct etw_relay_open), false, true, true },
	{ "RELAY_SUBBUF_GET", ETW_IOC_RELAY_SUBBUF_GET, RELAY, sizeof(struct etw_subbuf), true },
	/* STOP ends what the others need, so tests of valid calls make it the last. */
	{ "RELAY_SUBBUF_PUT", ETW_IOC_RELAY_SUBBUF_PUT, RELAY, 0 },
	{ "SESSION_STOP", ETW_IOC_SESSION_STOP, SESSION, 0 },
};

FIXTURE(abi)
{
	int files[NR_FILES];
	struct relay relay;
	char name[ETW_NAME_SIZE];
	unsigned char schema[64 << 10];
};

/* Of the fixture's session. */
static __u64 asked;

FIXTURE_SETUP(abi)
{
	struct etw_session_create create = session_small(unique("abi"));
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "Abi-Test" };
	struct etw_capture_query capture = { .size = sizeof(capture) };
	static struct schema_maker maker;

	strcpy(self->name, (char *)create.name);
	create.subbuf_size = 4096;
	self->files[CONTROL] = device_open();
	ASSERT_GE(self->files[CONTROL], 0);
	self->files[SESSION] = session_make(self->files[CONTROL], &create);
	ASSERT_GE(self->files[SESSION], 0);
	ASSERT_EQ(0, relay_open(&self->relay, self->files[SESSION], 0));
	self->files[RELAY] = self->relay.fd;
	self->files[PROVIDER] = provider_register(self->files[CONTROL], "Abi-Test");
	ASSERT_GE(self->files[PROVIDER], 0);
	schema_begin(&maker, "event", 0);
	ASSERT_EQ(0, provider_event(self->files[PROVIDER], maker.bytes, schema_done(&maker)));
	ASSERT_EQ(1, enable_all(self->files[SESSION], "Abi-Test"));
	ASSERT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	ASSERT_EQ(0, call(self->files[PROVIDER], ETW_IOC_PROVIDER_CAPTURE, &capture));
	asked = capture.id;
	/* GET has something to return. */
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_events(self->files[SESSION], "process", RENAMED));
	work_rename("abi", 0, 10);
	ASSERT_NE(0, session_flush(self->files[SESSION]));
}

FIXTURE_TEARDOWN(abi)
{
	relay_close(&self->relay);
	close(self->files[PROVIDER]);
	close(self->files[SESSION]);
	close(self->files[CONTROL]);
}

/* A call that succeeds: what it reads is right, what it writes is poisoned. */
static void fill(union arg *arg, const struct command *c, const char *name, void *schema)
{
	static const struct etw_write nothing = { sizeof(nothing), 0, 0 };
	static struct schema_maker maker;
	static unsigned int nr;

	memset(arg, 0, sizeof(*arg));
	if (c->out)
		memset(arg, POISON, c->size);
	arg->size = c->size;
	switch (c->cmd) {
	case ETW_IOC_SESSION_CREATE:
		arg->create = session_small("x");
		sprintf((char *)arg->create.name, "abi-new%u-%d", nr++, getpid());
		break;
	case ETW_IOC_SESSION_OPEN:
		strcpy((char *)arg->open.name, name);
		break;
	case ETW_IOC_SESSION_LIST:
		arg->query.id = 0;
		break;
	case ETW_IOC_PROVIDER_LIST:
		arg->provider_list.id = 0;
		arg->provider_list.flags = 0;
		arg->provider_list.keywords = 0;
		arg->provider_list.nr_keywords = 0;
		break;
	case ETW_IOC_EVENT_LIST:
		arg->event_list.id = 0;
		arg->event_list.flags = 0;
		arg->event_list.buf = (uintptr_t)schema;
		arg->event_list.buf_size = 64 << 10;
		break;
	case ETW_IOC_PROVIDER_REGISTER:
		strcpy((char *)arg->provider_register.name, "Abi-More");
		break;
	case ETW_IOC_PROVIDER_EVENT:
		schema_begin(&maker, "event", 0);
		arg->event_register.schema_size = schema_done(&maker);
		arg->event_register.schema = (uintptr_t)maker.bytes;
		break;
	case ETW_IOC_PROVIDER_ENABLED:
		arg->enabled.flags = 0;
		break;
	case ETW_IOC_PROVIDER_CAPTURE:
		arg->capture.flags = 0;
		arg->capture.id = 0;
		break;
	case ETW_IOC_PROVIDER_ANSWER:
		arg->answer.id = asked;
		arg->answer.events = (uintptr_t)&nothing;
		arg->answer.bytes = sizeof(nothing);
		break;
	case ETW_IOC_SESSION_QUERY_CPU:
		arg->cpu.cpu = 0;
		break;
	case ETW_IOC_SESSION_QUERY_PROVIDER:
		arg->provider.id = 0;
		arg->provider.flags = 0;
		break;
	case ETW_IOC_SESSION_QUERY_CLASS:
		arg->class.id = 0;
		break;
	case ETW_IOC_SESSION_ENABLE:
		arg->enable = enable_make("block");
		break;
	case ETW_IOC_SESSION_DISABLE:
		strcpy((char *)arg->ref.name, "block");
		break;
	case ETW_IOC_SESSION_CAPTURE_STATE:
		strcpy((char *)arg->ref.name, "process");
		break;
	case ETW_IOC_SESSION_UPDATE:
		arg->update.what = ETW_UPDATE_FLUSH_MS;
		arg->update.flush_ms = ETW_FLUSH_MS_NEVER;
		break;
	case ETW_IOC_SESSION_FLUSH:
		arg->flush.timeout_ms = 0;
		arg->flush.reserved = 0;
		break;
	case ETW_IOC_SESSION_SCHEMA_READ:
		arg->schema.from = 0;
		arg->schema.buf = (uintptr_t)schema;
		arg->schema.buf_size = 64 << 10;
		break;
	case ETW_IOC_SESSION_RELAY_OPEN:
		arg->relay.cpu = 1;
		break;
	}
}

/* What no refused call may change. */
struct state {
	int free_fd;
	unsigned int sessions;
	__u64 memory;
	__u32 nr_enabled, flags, flush_ms, state;
};

static struct state look(int control, int session)
{
	struct state s = { 0 };
	struct etw_session_query q = session_query(session);
	struct etw_version v;

	s.nr_enabled = q.nr_enabled;
	s.flush_ms = q.flush_ms;
	s.state = q.state;
	s.flags = q.flags;
	poison(v);
	call(control, ETW_IOC_VERSION, &v);
	s.memory = v.memory_used;
	for (q.id = 0;; s.sessions++) {
		__u64 id = q.id;

		poison(q);
		q.id = id;
		if (call(control, ETW_IOC_SESSION_LIST, &q))
			break;
	}
	s.free_fd = dup(0);
	close(s.free_fd);
	return s;
}

#define BEGIN_REFUSED() struct state _before = look(self->files[CONTROL], self->files[SESSION]), _after
#define END_REFUSED(c) do {								\
	_after = look(self->files[CONTROL], self->files[SESSION]);			\
	if (memcmp(&_before, &_after, sizeof(_before)))					\
		TH_LOG("%s changed something although it was refused", (c)->name);	\
	EXPECT_EQ(0, memcmp(&_before, &_after, sizeof(_before)));			\
} while (0)

#define EXPECT_CALL(err, c, arg) do {							\
	int _err = call(self->files[(c)->file], (c)->cmd, arg);				\
	if (_err != (err))								\
		TH_LOG("%s: %s, not %s", (c)->name, strerror(_err < 0 ? -_err : 0),	\
		       strerror(-(err)));						\
	EXPECT_EQ(err, _err);								\
	if (_err >= 0 && (c)->makes_file)						\
		close(_err);								\
} while (0)

#define for_each_command(c) \
	for (const struct command *c = commands; c < commands + ARRAY_SIZE(commands); c++)

static const struct command *command_of(unsigned int cmd)
{
	for_each_command(c)
		if (c->cmd == cmd)
			return c;
	abort();
}

/* The calls that the other tests spoil do succeed. */
TEST_F(abi, valid)
{
	union arg arg;

	for_each_command(c) {
		int err;

		if (c->cmd == ETW_IOC_SESSION_RELAY_OPEN && cpus_online() < 2)
			continue;
		fill(&arg, c, self->name, self->schema);
		err = call(self->files[c->file], c->cmd, c->size ? &arg : NULL);
		if (err < 0)
			TH_LOG("%s: %s", c->name, strerror(-err));
		EXPECT_GE(err, 0);
		if (c->out && err >= 0)
			EXPECT_EQ(c->size, arg.size);
		if (!c->makes_file) {
			EXPECT_EQ(c->cmd == ETW_IOC_SESSION_ENABLE, err);
			continue;
		}
		EXPECT_EQ(FD_CLOEXEC, fcntl(err, F_GETFD));
		close(err);
	}
}

/* Of a structure that has grown. */
static unsigned int first_size(const struct command *c)
{
	const bool grown = c->cmd == ETW_IOC_SESSION_QUERY || c->cmd == ETW_IOC_SESSION_LIST;

	return grown ? offsetof(struct etw_session_query, clock_freq) : c->size;
}

TEST_F(abi, size_short)
{
	union arg arg;

	for_each_command(c) {
		static const int cut[] = { 0, 1, 3, 4, 8, -8, -4, -1 };
		BEGIN_REFUSED();

		for (unsigned int i = 0; c->size && i < ARRAY_SIZE(cut); i++) {
			int size = cut[i] < 0 ? (int)first_size(c) + cut[i] : cut[i];

			if (size >= (int)first_size(c))
				continue;
			fill(&arg, c, self->name, self->schema);
			arg.size = size;
			EXPECT_CALL(-EINVAL, c, &arg);
		}
		END_REFUSED(c);
	}
}

/* A program from before it grew gets what it knows, and not a byte more. */
TEST_F(abi, size_first)
{
	union arg arg;

	for_each_command(c) {
		const unsigned int first = first_size(c);

		if (first == c->size)
			continue;
		fill(&arg, c, self->name, self->schema);
		arg.size = first;
		memset(arg.bytes + first, POISON, c->size - first);
		EXPECT_EQ(0, call(self->files[c->file], c->cmd, &arg));
		EXPECT_EQ(c->size, arg.size);
		EXPECT_EQ(ETW_CLOCK_MONOTONIC, arg.query.clock);
		for (unsigned int i = first; i < c->size; i++)
			EXPECT_EQ(POISON, arg.bytes[i]);
	}
}

TEST_F(abi, size_long)
{
	union arg arg;

	for_each_command(c) {
		if (!c->size || !c->in)
			continue;
		for (unsigned int at = c->size; at < c->size + 64; at += 7) {
			BEGIN_REFUSED();

			fill(&arg, c, self->name, self->schema);
			arg.size = c->size + 64;
			arg.bytes[at] = 1;
			EXPECT_CALL(-E2BIG, c, &arg);
			END_REFUSED(c);
		}
	}
}

/* No structure will ever be larger than a page of the smallest size. */
TEST_F(abi, size_huge)
{
	static const __u32 sizes[] = { 4097, 1 << 20, ~0U };
	char *room = calloc(1, 1 << 20);

	for_each_command(c) {
		BEGIN_REFUSED();

		for (unsigned int i = 0; c->size && i < ARRAY_SIZE(sizes); i++) {
			fill((union arg *)room, c, self->name, self->schema);
			memcpy(room, &sizes[i], 4);
			EXPECT_CALL(-E2BIG, c, room);
		}
		END_REFUSED(c);
	}
	free(room);
}

/* A program built against a later header: what it knows more is zero, and comes back zero. */
TEST_F(abi, size_long_zero_tail)
{
	union arg arg;

	for_each_command(c) {
		unsigned int wrong = 0;
		int err;

		if (!c->size || (c->cmd == ETW_IOC_SESSION_RELAY_OPEN && cpus_online() < 2))
			continue;
		fill(&arg, c, self->name, self->schema);
		arg.size = c->size + 64;
		if (!c->in)
			memset(arg.bytes + c->size, POISON, 64);
		err = call(self->files[c->file], c->cmd, &arg);
		if (err < 0)
			TH_LOG("%s: %s", c->name, strerror(-err));
		EXPECT_GE(err, 0);
		if (c->makes_file)
			close(err);
		for (unsigned int i = c->size; i < MAX_SIZE; i++)
			if (arg.bytes[i])
				wrong++;
		EXPECT_EQ(0, wrong);
		if (c->out)
			EXPECT_EQ(c->size, arg.size);
	}
}

TEST_F(abi, reserved)
{
	union arg arg;

	for_each_command(c) {
		for (unsigned int i = 0; i < ARRAY_SIZE(c->zero); i++)
			for (unsigned int bit = 0; bit < c->zero[i].len * 8; bit++) {
				BEGIN_REFUSED();

				fill(&arg, c, self->name, self->schema);
				arg.bytes[c->zero[i].at + bit / 8] |= 1 << bit % 8;
				EXPECT_CALL(-EINVAL, c, &arg);
				END_REFUSED(c);
			}
	}
}

TEST_F(abi, bad_pointer)
{
	long page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union arg arg;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, mprotect(pages + page, page, PROT_NONE));
	for_each_command(c) {
		BEGIN_REFUSED();

		if (!c->size)
			continue;
		EXPECT_CALL(-EFAULT, c, NULL);
		EXPECT_CALL(-EFAULT, c, pages + page);
		EXPECT_CALL(-EFAULT, c, (void *)~0x7ffUL);
		fill(&arg, c, self->name, self->schema);
		/* Ends behind the page: the size alone, and all but the last byte. */
		memcpy(pages + page - 4, &arg, 4);
		EXPECT_CALL(-EFAULT, c, pages + page - 4);
		memcpy(pages + page - c->size + 1, &arg, c->size - 1);
		EXPECT_CALL(-EFAULT, c, pages + page - c->size + 1);
		END_REFUSED(c);
	}
	munmap(pages, 3 * page);
}

/* A structure that can be read but not filled in. */
TEST_F(abi, bad_pointer_readonly)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	for_each_command(c) {
		BEGIN_REFUSED();

		if (!c->out)
			continue;
		ASSERT_EQ(0, mprotect(p, page, PROT_READ | PROT_WRITE));
		fill((union arg *)p, c, self->name, self->schema);
		ASSERT_EQ(0, mprotect(p, page, PROT_READ));
		EXPECT_CALL(-EFAULT, c, p);
		END_REFUSED(c);
	}
	munmap(p, page);
}

/* Buffers that the structure points to. */
TEST_F(abi, bad_inner_pointer)
{
	union arg arg;

	for_each_command(c) {
		BEGIN_REFUSED();

		fill(&arg, c, self->name, self->schema);
		switch (c->cmd) {
		case ETW_IOC_SESSION_SCHEMA_READ:
			arg.schema.buf = 8;
			break;
		case ETW_IOC_EVENT_LIST:
			arg.event_list.buf = 8;
			break;
		case ETW_IOC_PROVIDER_LIST:
			arg.provider_list.keywords = 8;
			arg.provider_list.nr_keywords = 64;
			break;
		case ETW_IOC_SESSION_ENABLE:
			arg.enable.pids = 8;
			arg.enable.nr_pids = 1;
			EXPECT_CALL(-EFAULT, c, &arg);
			arg.enable.pids = 0;
			EXPECT_CALL(-EFAULT, c, &arg);
			arg.enable.nr_pids = 0;
			arg.enable.events = 8;
			arg.enable.nr_events = 1;
			arg.enable.event_mode = ETW_EVENTS_IN;
			break;
		default:
			continue;
		}
		EXPECT_CALL(-EFAULT, c, &arg);
		END_REFUSED(c);
	}
}

TEST_F(abi, wrong_file)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	union arg arg;

	ASSERT_GE(null, 0);
	for_each_command(c) {
		BEGIN_REFUSED();

		for (unsigned int file = 0; file < NR_FILES; file++) {
			if (file == c->file)
				continue;
			fill(&arg, c, self->name, self->schema);
			EXPECT_EQ(-ENOTTY, call(self->files[file], c->cmd, c->size ? &arg : NULL));
		}
		EXPECT_EQ(-ENOTTY, call(null, c->cmd, c->size ? &arg : NULL));
		EXPECT_EQ(-EBADF, call(null + 100, c->cmd, c->size ? &arg : NULL));
		END_REFUSED(c);
	}
	close(null);
}

TEST_F(abi, unknown_command)
{
	union arg arg;

	for (unsigned int file = 0; file < NR_FILES; file++)
		for (unsigned int nr = 0; nr < 256; nr++) {
			bool known = false;

			for_each_command(c)
				known |= c->cmd == _IO(ETW_IOC_TYPE, nr);
			memset(&arg, 0, sizeof(arg));
			arg.size = 64;
			if (!known)
				EXPECT_EQ(-ENOTTY, call(self->files[file], _IO(ETW_IOC_TYPE, nr), &arg));
			/* The same number with a direction and a size, or another type, is another command. */
			EXPECT_EQ(-ENOTTY, call(self->files[file], _IOC(_IOC_READ | _IOC_WRITE, ETW_IOC_TYPE, nr, 8), &arg));
			EXPECT_EQ(-ENOTTY, call(self->files[file], _IO(ETW_IOC_TYPE + 1, nr), &arg));
		}
}

/* A command without argument does not take one, so that it can get one later. */
TEST_F(abi, no_argument)
{
	for_each_command(c) {
		BEGIN_REFUSED();

		if (c->size)
			continue;
		EXPECT_CALL(-EINVAL, c, (void *)1);
		END_REFUSED(c);
	}
}

/* Neither a session nor a relay is left behind when there is no number for its file. */
TEST_F(abi, no_free_fd)
{
	struct rlimit limit, none;
	union arg arg;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	for_each_command(c) {
		BEGIN_REFUSED();

		if (!c->makes_file || (c->cmd == ETW_IOC_SESSION_RELAY_OPEN && cpus_online() < 2))
			continue;
		none = limit;
		none.rlim_cur = _before.free_fd;
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
		fill(&arg, c, self->name, self->schema);
		EXPECT_CALL(-EMFILE, c, &arg);
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
		END_REFUSED(c);
		fill(&arg, c, self->name, self->schema);
		int fd = call(self->files[c->file], c->cmd, &arg);

		EXPECT_GE(fd, 0);
		close(fd);
	}
}

/* A session that persists would be there for ever, and nobody would have been told. */
TEST_F(abi, no_free_fd_persist)
{
	const char *name = unique("nofile");
	struct etw_session_create create = session_small(name);
	struct rlimit limit, none;
	int fd = dup(self->files[0]);

	ASSERT_GE(fd, 0);
	close(fd);
	create.flags |= ETW_SESSION_PERSIST;
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = fd;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	fd = call(self->files[0], ETW_IOC_SESSION_CREATE, &create);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, fd);
	EXPECT_EQ(-ENOENT, session_open(self->files[0], name));
}

/* read, write and their like are not for these files. */
TEST_F(abi, no_read_write)
{
	char c = 0;

	for (unsigned int file = 0; file < NR_FILES; file++) {
		EXPECT_EQ(-1, read(self->files[file], &c, 1));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(-1, write(self->files[file], &c, 1));
		EXPECT_EQ(EINVAL, errno);
	}
}

TEST_F(abi, version)
{
	struct etw_version v;

	poison(v);
	ASSERT_EQ(0, call(self->files[CONTROL], ETW_IOC_VERSION, &v));
	EXPECT_EQ(sizeof(v), v.size);
	EXPECT_EQ(ETW_ABI_VERSION, v.abi);
	EXPECT_EQ(ETW_RECORD_VERSION, v.record);
	EXPECT_EQ(0, v.reserved);
	EXPECT_EQ(0, v.features);
	EXPECT_GT(v.memory_limit, v.memory_used);
	EXPECT_GE(v.memory_used, self->relay.map_size);
}

/*
 * Values
 */
TEST_F(abi, create_names)
{
	static const char *const bad[] = {
		"", "1a", "-a", ".a", "_a", " a", "a b", "a/b", "a:b", "a\n", "\xc3\xa4", "a\xc3\xa4", "a*", "a,b",
	};
	static const char *const good[] = { "a", "Z", "a-", "a.", "a_", "a9", "A.b-c_9" };
	struct etw_session_create create;
	int fd;
	BEGIN_REFUSED();

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		create = session_small(bad[i]);
		EXPECT_EQ(-EINVAL, session_make(self->files[CONTROL], &create)) {
			TH_LOG("\"%s\"", bad[i]);
		}
	}
	/* Not terminated; longest that is. */
	create = session_small("x");
	memset(create.name, 'x', sizeof(create.name));
	EXPECT_EQ(-EINVAL, session_make(self->files[CONTROL], &create));
	END_REFUSED(command_of(ETW_IOC_SESSION_CREATE));
	create.name[ETW_NAME_SIZE - 1] = '\0';
	fd = session_make(self->files[CONTROL], &create);
	EXPECT_GE(fd, 0);
	close(fd);
	for (unsigned int i = 0; i < ARRAY_SIZE(good); i++) {
		create = session_small(good[i]);
		fd = session_make(self->files[CONTROL], &create);
		EXPECT_GE(fd, 0) {
			TH_LOG("\"%s\"", good[i]);
		}
		EXPECT_EQ(0, strcmp(good[i], (char *)session_query(fd).name));
		close(fd);
	}
}

TEST_F(abi, create_exists)
{
	struct etw_session_create create = session_small(self->name);
	BEGIN_REFUSED();

	EXPECT_EQ(-EEXIST, session_make(self->files[CONTROL], &create));
	END_REFUSED(command_of(ETW_IOC_SESSION_CREATE));
	/* Case matters. */
	create.name[0] = 'A';
	close(session_make(self->files[CONTROL], &create));
	EXPECT_EQ(-EEXIST, session_make(self->files[CONTROL], (create.name[0] = 'a', &create)));
}

/* The kernel relies on the counter of a CPU with certain flags. No guest's has them; clock_cycles lends it some. */
TEST_F(abi, create_cycles)
{
	struct etw_session_create create = session_small(unique("cycles"));
	char *cpus = NULL;
	size_t room = 0;
	FILE *f = fopen("/proc/cpuinfo", "r");

	ASSERT_NE(NULL, f);
	ASSERT_GT(getdelim(&cpus, &room, 0, f), 0);
	fclose(f);
	if (strstr(cpus, "nonstop_tsc"))
		SKIP(free(cpus); return, "this CPU has a counter that can be relied on");
	free(cpus);
	create.clock = ETW_CLOCK_CYCLES;
	BEGIN_REFUSED();
	EXPECT_EQ(-EOPNOTSUPP, session_make(self->files[CONTROL], &create));
	END_REFUSED(command_of(ETW_IOC_SESSION_CREATE));
}

TEST_F(abi, create_values)
{
	static const struct {
		unsigned int at;
		__u32 value;
		int err;
	} cases[] = {
#define FIELD(f) offsetof(struct etw_session_create, f)
		{ FIELD(subbuf_size), 1, -EINVAL }, { FIELD(subbuf_size), 2048, -EINVAL },
		{ FIELD(subbuf_size), 4095, -EINVAL }, { FIELD(subbuf_size), 4097, -EINVAL },
		{ FIELD(subbuf_size), 12288, -EINVAL }, { FIELD(subbuf_size), 8 << 20, -EINVAL },
		{ FIELD(subbuf_size), 1U << 31, -EINVAL }, { FIELD(subbuf_size), 0xffffffff, -EINVAL },
		{ FIELD(subbuf_size), 4096, 0 }, { FIELD(subbuf_size), 65536, 0 }, { FIELD(subbuf_size), 4 << 20, 0 },
		{ FIELD(nr_subbufs), 1, -EINVAL }, { FIELD(nr_subbufs), 3, -EINVAL }, { FIELD(nr_subbufs), 6, -EINVAL },
		{ FIELD(nr_subbufs), 8192, -EINVAL }, { FIELD(nr_subbufs), 1U << 31, -EINVAL },
		{ FIELD(nr_subbufs), 0xffffffff, -EINVAL },
		{ FIELD(nr_subbufs), 2, 0 }, { FIELD(nr_subbufs), 16, 0 },
		{ FIELD(flush_ms), ETW_FLUSH_MS_MAX + 1, -EINVAL }, { FIELD(flush_ms), 0xfffffffe, -EINVAL },
		{ FIELD(flush_ms), 1, 0 }, { FIELD(flush_ms), ETW_FLUSH_MS_MAX, 0 },
		{ FIELD(flush_ms), ETW_FLUSH_MS_NEVER, 0 },
		{ FIELD(clock), ETW_CLOCK_CYCLES + 1, -EINVAL }, { FIELD(clock), 0xffffffff, -EINVAL },
		{ FIELD(clock), ETW_CLOCK_MONOTONIC, 0 }, { FIELD(clock), ETW_CLOCK_BOOT, 0 },
		{ FIELD(clock), ETW_CLOCK_REAL, 0 },
		{ FIELD(flags), 8, -EINVAL }, { FIELD(flags), 1U << 31, -EINVAL }, { FIELD(flags), 0x100, -EINVAL },
		{ FIELD(flags), ETW_SESSION_OVERWRITE, 0 },
#undef FIELD
	};
	struct etw_session_create create;
	int fd;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		BEGIN_REFUSED();

		create = session_small(unique("values"));
		create.nr_subbufs = 2;
		memcpy((char *)&create + cases[i].at, &cases[i].value, 4);
		fd = session_make(self->files[CONTROL], &create);
		EXPECT_EQ(cases[i].err, fd < 0 ? fd : 0) {
			TH_LOG("offset %u = %#x", cases[i].at, cases[i].value);
		}
		if (fd >= 0) {
			struct etw_session_query q = session_query(fd);

			EXPECT_EQ(create.subbuf_size, q.subbuf_size);
			EXPECT_EQ(create.nr_subbufs, q.nr_subbufs);
			EXPECT_EQ(create.flush_ms, q.flush_ms);
			EXPECT_EQ(create.flags, q.flags);
			EXPECT_EQ(create.clock ? create.clock : ETW_CLOCK_MONOTONIC, q.clock);
			close(fd);
		}
		END_REFUSED(command_of(ETW_IOC_SESSION_CREATE));
	}
}

TEST_F(abi, create_defaults)
{
	struct etw_session_create create = { .size = sizeof(create), .name = "defaults" };
	int fd = session_make(self->files[CONTROL], &create);
	struct etw_session_query q;

	ASSERT_GE(fd, 0);
	q = session_query(fd);
	EXPECT_EQ(ETW_SUBBUF_SIZE_DEFAULT, q.subbuf_size);
	EXPECT_EQ(ETW_NR_SUBBUFS_DEFAULT, q.nr_subbufs);
	EXPECT_EQ(ETW_FLUSH_MS_DEFAULT, q.flush_ms);
	EXPECT_EQ(ETW_CLOCK_MONOTONIC, q.clock);
	EXPECT_EQ(0, q.flags);
	EXPECT_EQ(ETW_SESSION_RUNNING, q.state);
	EXPECT_EQ(ETW_STOP_NONE, q.stop_reason);
	EXPECT_EQ(0, q.stop_time);
	EXPECT_EQ(0, q.nr_enabled);
	EXPECT_EQ(0, q.nr_classes);
	EXPECT_EQ(0, q.written);
	EXPECT_EQ(0, q.reader_pid);
	EXPECT_EQ(0, q.stopper_pid);
	EXPECT_EQ(getpid(), q.owner_pid);
	EXPECT_EQ(getuid(), q.owner_uid);
	EXPECT_EQ(cpus_online(), q.nr_relays);
	EXPECT_GE(q.nr_cpus, q.nr_relays);
	EXPECT_GE(q.memory, (__u64)q.nr_relays * (q.nr_subbufs + 1) * q.subbuf_size);
	EXPECT_LE(q.start_time, q.now);
	close(fd);
}

TEST_F(abi, open_values)
{
	struct etw_session_open open = { .size = sizeof(open) };
	BEGIN_REFUSED();

	EXPECT_EQ(-EINVAL, call(self->files[CONTROL], ETW_IOC_SESSION_OPEN, &open));
	memset(open.name, 'a', sizeof(open.name));
	EXPECT_EQ(-EINVAL, call(self->files[CONTROL], ETW_IOC_SESSION_OPEN, &open));
	EXPECT_EQ(-EINVAL, session_open(self->files[CONTROL], "a b"));
	EXPECT_EQ(-ENOENT, session_open(self->files[CONTROL], "nobody"));
	END_REFUSED(command_of(ETW_IOC_SESSION_OPEN));
}

/* Lists end with ENOENT, and an id past the end is no error of its own. */
TEST_F(abi, list_end)
{
	struct etw_session_query q;
	struct etw_provider_list p;
	struct etw_event_list e;
	__u64 id;
	int nr, err;

	for (nr = 0, id = 0;; nr++, id = q.id) {
		poison(q);
		q.id = id;
		err = call(self->files[CONTROL], ETW_IOC_SESSION_LIST, &q);
		if (err)
			break;
		EXPECT_GT(q.id, id);
		EXPECT_EQ(sizeof(q), q.size);
	}
	EXPECT_EQ(-ENOENT, err);
	EXPECT_GE(nr, 1);
	for (nr = 0, id = 0;; nr++, id = p.id) {
		poison(p);
		p.id = id;
		p.flags = p.keywords = p.nr_keywords = 0;
		err = call(self->files[CONTROL], ETW_IOC_PROVIDER_LIST, &p);
		if (err)
			break;
		EXPECT_GT(p.id, id);
		EXPECT_EQ(nr < 5 ? ETW_PROVIDER_KERNEL : ETW_PROVIDER_TRUSTED, p.flags);
		EXPECT_LE(p.nr_unavailable, p.nr_events);
		EXPECT_NE(0, p.nr_events);
	}
	EXPECT_EQ(-ENOENT, err);
	EXPECT_EQ(6, nr);
	for (nr = 0, id = 0;; nr++, id = e.id) {
		poison(e);
		e.id = id;
		e.flags = 0;
		e.buf = (uintptr_t)self->schema;
		e.buf_size = sizeof(self->schema);
		err = call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e);
		if (err)
			break;
		EXPECT_GT(e.id, id);
	}
	EXPECT_EQ(-ENOENT, err);
	EXPECT_GT(nr, 20);

	poison(q);
	q.id = ~0ULL;
	EXPECT_EQ(-ENOENT, call(self->files[CONTROL], ETW_IOC_SESSION_LIST, &q));
	poison(p);
	p.id = ~0ULL;
	p.flags = p.keywords = p.nr_keywords = 0;
	EXPECT_EQ(-ENOENT, call(self->files[CONTROL], ETW_IOC_PROVIDER_LIST, &p));
	poison(e);
	e.id = ~0ULL;
	e.flags = 0;
	e.buf = (uintptr_t)self->schema;
	e.buf_size = sizeof(self->schema);
	EXPECT_EQ(-ENOENT, call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e));
}

/* Every provider: known names, stable GUID, unique keyword bits; every event parses, and has a reason if it is missing. */
TEST_F(abi, lists)
{
	static const struct {
		const char *alias;
		bool seen;
	} kernel[] = { { "process" }, { "sched" }, { "block" }, { "fault" }, { "etw" } };
	struct etw_keyword keywords[64];
	struct etw_provider_list p;
	struct etw_event_list e;
	__u64 id, event_id = 0;
	bool seen[ARRAY_SIZE(kernel)] = { false };

	for (id = 0;; id = p.id) {
		__u64 bits = 0;
		unsigned int events = 0, missing = 0;

		poison(p);
		memset(keywords, POISON, sizeof(keywords));
		p.id = id;
		p.flags = 0;
		p.keywords = (uintptr_t)keywords;
		p.nr_keywords = ARRAY_SIZE(keywords);
		if (call(self->files[CONTROL], ETW_IOC_PROVIDER_LIST, &p))
			break;
		for (unsigned int i = 0; i < ARRAY_SIZE(kernel); i++)
			seen[i] |= !strcmp((char *)p.alias, kernel[i].alias);
		ASSERT_LE(p.nr_keywords, ARRAY_SIZE(keywords));
		for (unsigned int i = 0; i < p.nr_keywords; i++) {
			EXPECT_NE(0, keywords[i].mask);
			EXPECT_NE(0, keywords[i].name[0]);
			EXPECT_EQ(0, keywords[i].name[31]);
			bits |= keywords[i].mask;
		}
		/* One keyword only: the rest of the array stays as it is, the number is still told. */
		if (p.nr_keywords > 1) {
			__u32 nr = p.nr_keywords;

			memset(keywords, POISON, sizeof(keywords));
			p.id = id;
			p.flags = 0;
			p.nr_keywords = 1;
			EXPECT_EQ(0, call(self->files[CONTROL], ETW_IOC_PROVIDER_LIST, &p));
			EXPECT_EQ(nr, p.nr_keywords);
			EXPECT_EQ(POISON, ((unsigned char *)&keywords[1])[0]);
		}
		for (;; event_id = e.id) {
			const char *why = NULL;
			struct class *class;

			poison(e);
			e.id = event_id;
			e.flags = 0;
			e.buf = (uintptr_t)self->schema;
			e.buf_size = sizeof(self->schema);
			if (call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e) || e.provider_id != p.id)
				break;
			class = schema_parse(self->schema, e.used, &why);
			if (!class)
				TH_LOG("%s: %s", p.name, why);
			ASSERT_NE(NULL, class);
			EXPECT_EQ(0, class->id);
			EXPECT_EQ(0, memcmp(class->guid, p.guid, 16));
			EXPECT_EQ(0, strcmp(class->provider, (char *)p.name));
			EXPECT_EQ(0, class->keyword & ~bits);
			EXPECT_EQ(!(e.flags & ETW_EVENT_AVAILABLE), !!e.reason[0]);
			events++;
			missing += !(e.flags & ETW_EVENT_AVAILABLE);
			free(class);
			/* Just enough room is enough; a byte less is not, and tells how much. */
			e.id = event_id;
			e.flags = 0;
			e.buf_size = e.used;
			EXPECT_EQ(0, call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e));
			__u32 used = e.used;

			e.id = event_id;
			e.flags = 0;
			e.buf_size = used - 1;
			EXPECT_EQ(-EMSGSIZE, call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e));
			EXPECT_EQ(used, e.used);
			EXPECT_EQ(event_id, e.id);
			e.id = event_id;
			e.flags = 0;
			e.buf_size = used;
			EXPECT_EQ(0, call(self->files[CONTROL], ETW_IOC_EVENT_LIST, &e));
		}
		EXPECT_EQ(p.nr_events, events);
		EXPECT_EQ(p.nr_unavailable, missing);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(kernel); i++)
		EXPECT_TRUE(seen[i]);
}

TEST_F(abi, query_end)
{
	struct etw_cpu_query cpu;
	struct etw_provider_query provider;
	struct etw_class_query class;

	poison(cpu);
	cpu.cpu = 1 << 20;
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_QUERY_CPU, &cpu));
	poison(cpu);
	cpu.cpu = ~0U;
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_QUERY_CPU, &cpu));
	poison(provider);
	provider.id = ~0ULL;
	provider.flags = 0;
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_QUERY_PROVIDER, &provider));
	poison(class);
	class.id = session_query(self->files[SESSION]).nr_classes;
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_QUERY_CLASS, &class));
	poison(class);
	class.id = ~0U;
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_QUERY_CLASS, &class));
}

TEST_F(abi, enable_values)
{
	static char names[ETW_MAX_EVENT_NAMES + 1][ETW_NAME_SIZE];
	static __s32 pids[ETW_MAX_PIDS + 1];
	const struct command *c = command_of(ETW_IOC_SESSION_ENABLE);
	struct etw_enable e;
	BEGIN_REFUSED();

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		snprintf(names[i], sizeof(names[i]), "event%u", i);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = getpid();

#define TRY(err, ...) do { e = enable_make("block"); __VA_ARGS__; EXPECT_CALL(err, c, &e); } while (0)
	for (unsigned int bit = 0; bit < 32; bit++)
		if (!(ETW_ENABLE_FLAGS & 1U << bit))
			TRY(-EINVAL, e.flags = 1U << bit);
	TRY(-EINVAL, e.level = 256);
	TRY(-EINVAL, e.level = 0xffffffff);
	TRY(-EINVAL, memset(e.name, 'a', sizeof(e.name)));
	TRY(-EINVAL, strcpy((char *)e.name, "a b"));
	TRY(-EINVAL, strcpy((char *)e.name, "9"));
	TRY(-EINVAL, e.name[0] = 0);				/* neither name nor GUID */
	TRY(-EINVAL, e.event_mode = 3; e.nr_events = 1; e.events = (uintptr_t)names);
	TRY(-EINVAL, e.event_mode = 0xffffffff);
	TRY(-EINVAL, e.event_mode = ETW_EVENTS_IN);		/* no names */
	TRY(-EINVAL, e.event_mode = ETW_EVENTS_OUT);
	TRY(-EINVAL, e.nr_events = 1; e.events = (uintptr_t)names);	/* names, but all events */
	TRY(-E2BIG, e.event_mode = ETW_EVENTS_IN; e.nr_events = ETW_MAX_EVENT_NAMES + 1; e.events = (uintptr_t)names);
	TRY(-E2BIG, e.event_mode = ETW_EVENTS_IN; e.nr_events = 0xffffffff; e.events = (uintptr_t)names);
	TRY(-E2BIG, e.nr_pids = ETW_MAX_PIDS + 1; e.pids = (uintptr_t)pids);
	TRY(-E2BIG, e.nr_pids = 0xffffffff; e.pids = (uintptr_t)pids);
	TRY(-EINVAL, e.event_mode = ETW_EVENTS_IN; e.nr_events = 1; e.events = (uintptr_t)"a b");
	{
		char longest[ETW_NAME_SIZE];

		memset(longest, 'a', sizeof(longest));
		TRY(-EINVAL, e.event_mode = ETW_EVENTS_IN; e.nr_events = 1; e.events = (uintptr_t)longest);
	}
	pids[1] = 0x7fffffff;
	TRY(-ESRCH, e.nr_pids = 2; e.pids = (uintptr_t)pids);
	pids[1] = -1;
	TRY(-EINVAL, e.nr_pids = 2; e.pids = (uintptr_t)pids);
	TRY(-EINVAL, e.pids = (uintptr_t)pids);			/* but none of them */
	TRY(-EINVAL, e.guid[3] = 1);				/* a name and a GUID */
	pids[1] = 0;						/* the idle tasks */
	END_REFUSED(c);
	TRY(1, e.event_mode = ETW_EVENTS_IN; e.nr_events = ETW_MAX_EVENT_NAMES; e.events = (uintptr_t)names);
	TRY(1, e.event_mode = ETW_EVENTS_OUT; e.nr_events = ETW_MAX_EVENT_NAMES; e.events = (uintptr_t)names);
	TRY(1, e.nr_pids = ETW_MAX_PIDS; e.pids = (uintptr_t)pids);
	TRY(1, e.level = 255);
	TRY(1, e.flags = ETW_ENABLE_IGNORE_KEYWORD_0);
	TRY(1, e.any = ~0ULL; e.all = ~0ULL);
#undef TRY
}

/* Name, alias and GUID mean the same provider; a GUID that nobody has is remembered like a name that nobody has. */
TEST_F(abi, by_guid)
{
	struct etw_provider_list p;
	struct etw_enable e;

	poison(p);
	p.id = 0;
	p.flags = p.keywords = p.nr_keywords = 0;
	ASSERT_EQ(0, call(self->files[CONTROL], ETW_IOC_PROVIDER_LIST, &p));
	e = enable_make("");
	memcpy(e.guid, p.guid, 16);
	EXPECT_EQ(1, call(self->files[SESSION], ETW_IOC_SESSION_ENABLE, &e));
	e.guid[15] ^= 1;
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_ENABLE, &e));
	/* By full name and by alias it is the same provider. */
	e = enable_make((char *)p.name);
	EXPECT_EQ(1, call(self->files[SESSION], ETW_IOC_SESSION_ENABLE, &e));
	e = enable_make((char *)p.alias);
	EXPECT_EQ(1, call(self->files[SESSION], ETW_IOC_SESSION_ENABLE, &e));
}

TEST_F(abi, ref_values)
{
	struct etw_provider_ref ref;
	BEGIN_REFUSED();

#define REF(n) (memset(&ref, 0, sizeof(ref)), ref.size = sizeof(ref), strcpy((char *)ref.name, n), &ref)
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, REF("")));
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, REF("a b")));
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("a b")));
	(void)REF("x");
	memset(ref.name, 'a', sizeof(ref.name));
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, &ref));
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, REF("block")));
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, REF("Nobody.At-all")));
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("block")));
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("Nobody.At-all")));
	END_REFUSED(command_of(ETW_IOC_SESSION_DISABLE));
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("")));
	ASSERT_EQ(1, enable_all(self->files[SESSION], "fault"));
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("fault")));
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, REF("fault")));
	EXPECT_EQ(-ENOENT, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, REF("fault")));
#undef REF
}

TEST_F(abi, update_values)
{
	struct etw_session_update u = { .size = sizeof(u), .what = ETW_UPDATE_FLUSH_MS };
	BEGIN_REFUSED();

	u.flush_ms = ETW_FLUSH_MS_MAX + 1;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	u.flush_ms = 0;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	u.flush_ms = 100;
	u.what = 0;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	for (unsigned int bit = 1; bit < 32; bit++) {
		u.what = ETW_UPDATE_FLUSH_MS | 1U << bit;
		EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	}
	END_REFUSED(command_of(ETW_IOC_SESSION_UPDATE));
	u.what = ETW_UPDATE_FLUSH_MS;
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	EXPECT_EQ(100, session_query(self->files[SESSION]).flush_ms);
}

TEST_F(abi, flush_values)
{
	struct etw_flush f;
	BEGIN_REFUSED();

	poison(f);
	f.reserved = 0;
	f.timeout_ms = 600001;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_FLUSH, &f));
	f.timeout_ms = ~0U;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_FLUSH, &f));
	END_REFUSED(command_of(ETW_IOC_SESSION_FLUSH));
	poison(f);
	f.reserved = 0;
	f.timeout_ms = 600000;
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_FLUSH, &f));
	EXPECT_GT(f.time, session_query(self->files[SESSION]).start_time);
	EXPECT_LE(f.time, session_query(self->files[SESSION]).now);
}

TEST_F(abi, schema_read_values)
{
	struct etw_schema_read r;
	__u32 nr = session_query(self->files[SESSION]).nr_classes, need;

	ASSERT_GT(nr, 0);
	/* No room for one: how much one needs, exactly. */
	poison(r);
	r.from = 0;
	r.buf = (uintptr_t)self->schema;
	r.buf_size = 0;
	EXPECT_EQ(-EMSGSIZE, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
	need = r.used;
	ASSERT_GT(need, sizeof(struct etw_schema));
	ASSERT_LE(need, 64 << 10);
	r.from = 0;
	r.buf_size = need - 1;
	EXPECT_EQ(-EMSGSIZE, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
	EXPECT_EQ(need, r.used);
	memset(self->schema, POISON, sizeof(self->schema));
	r.buf_size = need;
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
	EXPECT_EQ(need, r.used);
	EXPECT_EQ(1, r.nr);
	EXPECT_EQ(nr, r.nr_classes);
	EXPECT_EQ(POISON, self->schema[need]);
	/* The end and beyond it. */
	r.buf_size = sizeof(self->schema);
	r.from = nr;
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
	EXPECT_EQ(0, r.nr);
	EXPECT_EQ(0, r.used);
	EXPECT_EQ(nr, r.nr_classes);
	r.from = nr + 1;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
	r.from = ~0U;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_SCHEMA_READ, &r));
}

TEST_F(abi, relay_open_values)
{
	struct etw_relay_open o = { .size = sizeof(o) };
	BEGIN_REFUSED();

	o.cpu = ~0U;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_RELAY_OPEN, &o));
	o.cpu = session_query(self->files[SESSION]).nr_cpus;
	EXPECT_EQ(-EINVAL, call(self->files[SESSION], ETW_IOC_SESSION_RELAY_OPEN, &o));
	o.cpu = 0;	/* open already, by this session file */
	EXPECT_EQ(-EBUSY, call(self->files[SESSION], ETW_IOC_SESSION_RELAY_OPEN, &o));
	END_REFUSED(command_of(ETW_IOC_SESSION_RELAY_OPEN));
}

/* A CPU that could come but is not there: the guest is started with room for one more. */
TEST_F(abi, relay_open_no_cpu)
{
	struct etw_session_query q = session_query(self->files[SESSION]);
	struct etw_relay_open o = { .size = sizeof(o) };
	struct etw_cpu_query cpu;

	for (o.cpu = 0; o.cpu < q.nr_cpus && session_cpu(self->files[SESSION], o.cpu, &cpu); o.cpu++)
		;
	if (o.cpu == q.nr_cpus)
		SKIP(return, "every possible CPU has a relay");
	EXPECT_EQ(-ENODEV, call(self->files[SESSION], ETW_IOC_SESSION_RELAY_OPEN, &o));
}

TEST_F(abi, put_without_get)
{
	struct etw_subbuf sb;

	EXPECT_EQ(-EINVAL, relay_put(&self->relay));
	ASSERT_EQ(0, relay_get(&self->relay, &sb));
	EXPECT_EQ(0, relay_put(&self->relay));
	EXPECT_EQ(-EINVAL, relay_put(&self->relay));
	EXPECT_EQ(-EAGAIN, relay_get(&self->relay, &sb));
	EXPECT_EQ(-EINVAL, relay_put(&self->relay));
	ASSERT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_STOP, NULL));
	while (!relay_get(&self->relay, &sb))
		ASSERT_EQ(0, relay_put(&self->relay));
	EXPECT_EQ(-ENODATA, relay_get(&self->relay, &sb));
}

/* GET twice is the same packet. */
TEST_F(abi, get_again)
{
	struct etw_subbuf a, b;

	ASSERT_EQ(0, relay_get(&self->relay, &a));
	ASSERT_EQ(0, relay_get(&self->relay, &b));
	EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)));
	EXPECT_EQ(0, relay_put(&self->relay));
}

TEST_F(abi, after_stop)
{
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "process" };
	struct etw_session_update u = { .size = sizeof(u), .what = ETW_UPDATE_FLUSH_MS, .flush_ms = 100 };
	struct etw_flush f = { .size = sizeof(f) };

	ASSERT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_STOP, NULL));
	EXPECT_EQ(-ESHUTDOWN, enable_all(self->files[SESSION], "sched"));
	EXPECT_EQ(-ESHUTDOWN, call(self->files[SESSION], ETW_IOC_SESSION_DISABLE, &ref));
	EXPECT_EQ(-ESHUTDOWN, call(self->files[SESSION], ETW_IOC_SESSION_CAPTURE_STATE, &ref));
	EXPECT_EQ(-ESHUTDOWN, call(self->files[SESSION], ETW_IOC_SESSION_UPDATE, &u));
	EXPECT_EQ(-ESHUTDOWN, call(self->files[SESSION], ETW_IOC_SESSION_STOP, NULL));
	/* Everything is delivered, as FLUSH wants it. */
	EXPECT_EQ(0, call(self->files[SESSION], ETW_IOC_SESSION_FLUSH, &f));
}

/*
 * A 32-bit caller: the commands by the compat entry, from this 64-bit program by int $0x80, arguments below 4 GiB.
 */
#ifdef __x86_64__
static long call32(int fd, unsigned int cmd, void *arg)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a"(ret)
		     : "a"(54), "b"((long)fd), "c"((long)cmd), "d"((long)arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}
#else
#define MAP_32BIT 0

static long call32(int fd, unsigned int cmd, void *arg)
{
	return -ENOSYS;
}
#endif

TEST_F(abi, caller_32_bit)
{
	union arg *arg = mmap(NULL, 128 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	void *schema = (char *)arg + (64 << 10);

	ASSERT_NE(MAP_FAILED, arg);
	if (call32(self->files[CONTROL], ETW_IOC_VERSION, NULL) == -ENOSYS)
		SKIP(return, "this kernel has no 32-bit system calls");
	for_each_command(c) {
		long err;

		if (c->cmd == ETW_IOC_SESSION_RELAY_OPEN && cpus_online() < 2)
			continue;
		fill(arg, c, self->name, schema);
		err = call32(self->files[c->file], c->cmd, c->size ? arg : NULL);
		if (err < 0)
			TH_LOG("%s: %s", c->name, strerror(-err));
		EXPECT_GE(err, 0);
		if (c->makes_file)
			close(err);
		if (!c->size)
			continue;
		fill(arg, c, self->name, schema);
		arg->size = 3;
		EXPECT_EQ(-EINVAL, call32(self->files[c->file], c->cmd, arg));
	}
}

TEST_HARNESS_MAIN
