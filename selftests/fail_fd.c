// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures that need no help from the kernel: no descriptor or no file left for a command that makes one, a caller that
 * is killed. The call says so, leaves nothing behind, and succeeds afterwards. It must not know how files are made.
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "etw_test.h"
#include "state.h"

#define FILE_MAX "/proc/sys/fs/file-max"

FIXTURE(fail_fd)
{
	int dev;
	int fd;
	struct etw_session_create create;	/* of another session */
	const char *name;			/* of this one */
	struct state empty;			/* without this session */
	struct state before;
	struct state session_before;
	struct state after;
};

FIXTURE_SETUP(fail_fd)
{
	struct etw_session_create create = session_small(unique("fail"));

	self->name = unique("fail");
	self->create = session_small(unique("other"));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	state_module(&self->empty, self->dev);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	state_module(&self->before, self->dev);
	state_session(&self->session_before, self->fd);
}

FIXTURE_TEARDOWN(fail_fd)
{
	const char *why;

	close(self->fd);
	/* A reference too many shows only now: the session would still be there. */
	state_module(&self->after, self->dev);
	why = state_differs(&self->empty, &self->after);
	if (why)
		TH_LOG("%s", why);
	EXPECT_EQ(NULL, why);
	close(self->dev);
}

/* Every command that makes a file, and open itself. */
enum { OPEN, SESSION_CREATE, SESSION_CREATE_PERSIST, SESSION_OPEN, RELAY_OPEN, NR_CALLS };

static int make_file(struct _test_data_fail_fd *self, int what)
{
	struct etw_relay_open open = { .size = sizeof(open) };

	switch (what) {
	case OPEN:
		return device_open();
	case SESSION_CREATE:
		self->create.flags = 0;
		return session_make(self->dev, &self->create);
	case SESSION_CREATE_PERSIST:
		self->create.flags = ETW_SESSION_PERSIST;
		return session_make(self->dev, &self->create);
	case SESSION_OPEN:
		return session_open(self->dev, self->name);
	default:
		return call(self->fd, ETW_IOC_SESSION_RELAY_OPEN, &open);
	}
}

/* Nothing has changed. */
#define EXPECT_UNCHANGED() do {							\
	const char *_why;							\
	state_module(&self->after, self->dev);					\
	_why = state_differs(&self->before, &self->after);			\
	if (!_why) {								\
		state_session(&self->after, self->fd);				\
		_why = state_differs(&self->session_before, &self->after);	\
	}									\
	if (_why)								\
		TH_LOG("%s", _why);						\
	EXPECT_EQ(NULL, _why);							\
} while (0)

#define EXPECT_ALL_SUCCEED() do {						\
	for (int _what = 0; _what < NR_CALLS; _what++) {			\
		int _fd = make_file(self, _what);				\
		EXPECT_GE(_fd, 0);						\
		if (_what == SESSION_CREATE_PERSIST)				\
			EXPECT_EQ(0, call(_fd, ETW_IOC_SESSION_STOP, NULL));	\
		close(_fd);							\
	}									\
	EXPECT_UNCHANGED();							\
} while (0)

TEST_F(fail_fd, no_descriptor)
{
	struct rlimit old, limit;
	int what, lowest;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
	/* The lowest number that is free is the first that is not allowed. */
	lowest = dup(self->dev);
	close(lowest);
	limit = (struct rlimit){ .rlim_cur = lowest, .rlim_max = old.rlim_max };
	for (what = 0; what < NR_CALLS; what++) {
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
		EXPECT_EQ(-EMFILE, make_file(self, what));
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
		EXPECT_UNCHANGED();
	}
	EXPECT_ALL_SUCCEED();
}

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* Without CAP_SYS_ADMIN, which knows no limit of files. */
static int lower_capabilities(bool lower)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	if (lower)
		data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

TEST_F(fail_fd, no_file)
{
	char old[32];
	int what, err;

	ASSERT_LT(0, file_read(FILE_MAX, old, sizeof(old)));
	for (what = 0; what < NR_CALLS; what++) {
		ASSERT_EQ(0, file_write(FILE_MAX, "0"));
		ASSERT_EQ(0, lower_capabilities(true));
		err = make_file(self, what);
		EXPECT_EQ(0, lower_capabilities(false));
		EXPECT_EQ(0, file_write(FILE_MAX, old));
		EXPECT_EQ(-ENFILE, err);
		EXPECT_UNCHANGED();
	}
	EXPECT_ALL_SUCCEED();
}

/* What could not be opened stays announced. */
TEST_F(fail_fd, late_relay_stays_announced)
{
	struct etw_relay_open open = { .size = sizeof(open), .cpu = cpus_online() - 1 };
	struct pollfd p = { .events = POLLPRI };
	struct rlimit old, limit;
	int fd;

	if (!open.cpu)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, cpu_online(open.cpu, false));
	p.fd = session_make(self->dev, &self->create);
	ASSERT_GE(p.fd, 0);
	ASSERT_EQ(0, cpu_online(open.cpu, true));
	EXPECT_EQ(1, poll_woken(&p, 5000));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
	limit = (struct rlimit){ .rlim_cur = p.fd + 1, .rlim_max = old.rlim_max };
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, call(p.fd, ETW_IOC_SESSION_RELAY_OPEN, &open));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
	EXPECT_EQ(1, poll(&p, 1, 0));
	fd = call(p.fd, ETW_IOC_SESSION_RELAY_OPEN, &open);
	EXPECT_GE(fd, 0);
	EXPECT_EQ(0, poll(&p, 1, 0));
	close(fd);
	close(p.fd);
}

struct victim {
	int session;
	const char *provider;
};

static void capture_state(void *arg)
{
	const struct victim *v = arg;
	struct etw_provider_ref ref = { .size = sizeof(ref) };

	strcpy((char *)ref.name, v->provider);
	for (;;)
		call(v->session, ETW_IOC_SESSION_CAPTURE_STATE, &ref);
}

/* The system call that a stopped process was in, and what it returned. */
static long last_call(pid_t pid, long *result)
{
	struct user_regs_struct regs;
	struct iovec vec = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &vec))
		return -1;
#ifdef __x86_64__
	*result = regs.rax;
	return regs.orig_rax;
#else
	*result = regs.regs[0];
	return regs.regs[8];
#endif
}

/*
 * The caller is being killed while its rundown waits for room: of one provider, and of all. It does not live to see the
 * result, but a tracer sees it in its registers.
 */
TEST_F(fail_fd, capture_state_killed)
{
	static const char *const providers[] = { "process", "" };
	struct etw_session_create create = session_small(unique("full"));
	struct reader reader;
	int i, fd, status;
	long result = 0;
	pid_t pid;

	create.subbuf_size = 4096;
	create.nr_subbufs = 2;
	fd = session_make(self->dev, &create);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_all(fd, "process"));
	ASSERT_EQ(0, reader_open(&reader, fd, NULL, NULL));
	work_rename("full", 0, 1000);
	for (i = 0; i < ARRAY_SIZE(providers); i++) {
		struct victim v = { fd, providers[i] };

		pid = spawn(capture_state, &v);
		ASSERT_EQ(0, ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT));
		EXPECT_TRUE(wait_until(10000, task_state(pid) == 'D'));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(PTRACE_EVENT_EXIT, status >> 16);
		EXPECT_EQ(SYS_ioctl, last_call(pid, &result));
		EXPECT_EQ(-EINTR, result);
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	reader_close(&reader);
	close(fd);
	EXPECT_UNCHANGED();
}

TEST_HARNESS_MAIN
