// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may do what: capabilities one by one, kernel addresses, lists. The last test locks the kernel down, which cannot be
 * undone: this program has a guest of its own.
 */
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "etw_test.h"

#define NOBODY 65534
#define CAP(cap) (1ULL << (cap))
#define NO_CAPS 0ULL

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* The calling process becomes nobody with exactly @caps. 0 or -errno. */
static int become(__u64 caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (prctl(PR_SET_KEEPCAPS, 1) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	data[0].effective = data[0].permitted = caps;
	data[1].effective = data[1].permitted = caps >> 32;
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

/* In a child with @caps: what @fn returns, a negative errno or a number up to 100. */
static int as(__u64 caps, int (*fn)(void *), void *arg)
{
	int status, err;
	pid_t pid = fork();

	if (!pid) {
		err = become(caps);
		err = err ? -120 : fn(arg);
		_exit(err < 0 ? 128 - err : err > 100 ? 100 : err);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1000;
	status = WEXITSTATUS(status);
	return status > 128 ? 128 - status : status;
}

FIXTURE(permission)
{
	int dev;
	int fd;		/* a session with nothing special */
	int shown;	/* one that shows addresses */
	char name[ETW_NAME_SIZE];
	char shown_name[ETW_NAME_SIZE];
};

FIXTURE_SETUP(permission)
{
	struct etw_session_create create = session_small(unique("perm"));

	strcpy(self->name, (char *)create.name);
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	create = session_small(unique("shown"));
	create.flags = ETW_SESSION_ADDRESSES;
	strcpy(self->shown_name, (char *)create.name);
	self->shown = session_make(self->dev, &create);
	ASSERT_GE(self->shown, 0);
}

FIXTURE_TEARDOWN(permission)
{
	close(self->shown);
	close(self->fd);
	close(self->dev);
}

static int do_version(void *arg)
{
	struct etw_version v;
	int dev = device_open();

	poison(v);
	return dev < 0 ? dev : call(dev, ETW_IOC_VERSION, &v);
}

static int do_create(void *flags)
{
	struct etw_session_create create = session_small(unique("as"));
	int dev = device_open(), fd;

	create.flags = (intptr_t)flags;
	fd = session_make(dev, &create);
	return fd < 0 ? fd : 0;
}

static int do_open(void *name)
{
	int dev = device_open(), fd = session_open(dev, name);

	return fd < 0 ? fd : 0;
}

static int do_session_list(void *arg)
{
	struct etw_session_query q;
	int dev = device_open();

	poison(q);
	q.id = 0;
	return call(dev, ETW_IOC_SESSION_LIST, &q);
}

static int do_provider_list(void *arg)
{
	struct etw_provider_list p = { .size = sizeof(p) };
	int dev = device_open();

	return call(dev, ETW_IOC_PROVIDER_LIST, &p);
}

static int do_event_list(void *arg)
{
	static char buf[64 << 10];
	struct etw_event_list e = { .size = sizeof(e), .buf = (uintptr_t)buf, .buf_size = sizeof(buf) };
	int dev = device_open();

	return call(dev, ETW_IOC_EVENT_LIST, &e);
}

/* Anybody may open the device, ask what it is, and see what they have registered, which is nothing here; that is all. */
TEST_F(permission, nobody)
{
	struct stat st;

	ASSERT_EQ(0, stat("/dev/etw", &st));
	EXPECT_EQ(0666, st.st_mode & 0777);
	EXPECT_EQ(0, as(NO_CAPS, do_version, NULL));
	EXPECT_EQ(-EPERM, as(NO_CAPS, do_create, NULL));
	EXPECT_EQ(-EPERM, as(NO_CAPS, do_open, self->name));
	EXPECT_EQ(-EPERM, as(NO_CAPS, do_session_list, NULL));
	EXPECT_EQ(-ENOENT, as(NO_CAPS, do_provider_list, NULL));
	EXPECT_EQ(-ENOENT, as(NO_CAPS, do_event_list, NULL));
	/* Every other capability is no help. */
	EXPECT_EQ(-EPERM, as(~(CAP(CAP_PERFMON) | CAP(CAP_SYS_ADMIN)) & ((1ULL << 41) - 1), do_create, NULL));
	/* Whether the name exists is not told. */
	EXPECT_EQ(-EPERM, as(NO_CAPS, do_open, "nobody"));
}

TEST_F(permission, perfmon_or_admin)
{
	static const __u64 caps[] = { CAP(CAP_PERFMON), CAP(CAP_SYS_ADMIN) };

	for (unsigned int i = 0; i < ARRAY_SIZE(caps); i++) {
		EXPECT_EQ(0, as(caps[i], do_create, NULL));
		EXPECT_EQ(0, as(caps[i], do_open, self->name));
		EXPECT_EQ(0, as(caps[i], do_session_list, NULL));
		EXPECT_EQ(0, as(caps[i], do_provider_list, NULL));
		EXPECT_EQ(0, as(caps[i], do_event_list, NULL));
	}
}

/* Kernel addresses need CAP_SYSLOG besides, to ask for them and to open a session that has them. */
TEST_F(permission, addresses)
{
	void *flag = (void *)(intptr_t)ETW_SESSION_ADDRESSES;

	EXPECT_EQ(-EPERM, as(CAP(CAP_PERFMON), do_create, flag));
	EXPECT_EQ(-EPERM, as(CAP(CAP_SYS_ADMIN), do_create, flag));
	EXPECT_EQ(-EPERM, as(CAP(CAP_SYSLOG), do_create, flag));
	EXPECT_EQ(0, as(CAP(CAP_PERFMON) | CAP(CAP_SYSLOG), do_create, flag));
	EXPECT_EQ(-EPERM, as(CAP(CAP_PERFMON), do_open, self->shown_name));
	EXPECT_EQ(-EPERM, as(CAP(CAP_SYS_ADMIN), do_open, self->shown_name));
	EXPECT_EQ(0, as(CAP(CAP_PERFMON) | CAP(CAP_SYSLOG), do_open, self->shown_name));
	EXPECT_EQ(ETW_SESSION_ADDRESSES, session_query(self->shown).flags);
}

/* A file is a right: who got a session file keeps it. */
static int do_use(void *fd)
{
	return enable_all((intptr_t)fd, "sched");
}

TEST_F(permission, passed_file)
{
	EXPECT_EQ(1, as(NO_CAPS, do_use, (void *)(intptr_t)self->fd));
}

/* A field of type POINTER may hold an address of user space: that is no secret. */
struct pointers {
	unsigned int zero, user, kernel;
};

static void count_pointers(const struct event *event, void *arg)
{
	struct pointers *p = arg;
	int64_t v;

	for (unsigned int i = 0; i < event->class->nr_fields; i++) {
		if (event->class->fields[i].type != ETW_TYPE_POINTER)
			continue;
		event_number(event, event->class->fields[i].name, &v);
		if (!v)
			p->zero++;
		else if (v > 0)
			p->user++;
		else
			p->kernel++;
	}
}

/* The kernel faults when it copies to a page that the process has not touched yet. */
static void kernel_faults(void)
{
	char *p = mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fds[2];

	if (p == MAP_FAILED || pipe(fds))
		return;
	for (unsigned int i = 0; i < 100; i++)
		if (write(fds[1], "x", 1) != 1 || read(fds[0], p + i * 4096, 1) != 1)
			break;
	munmap(p, 100 * 4096);
	close(fds[0]);
	close(fds[1]);
}

/* Without the flag kernel pointers are 0; with it they are not. Both sessions run at the same time. */
TEST_F(permission, addresses_are_zero)
{
	int fds[] = { self->fd, self->shown };
	struct pointers seen[2] = { 0 };

	if (access("/sys/kernel/tracing/events/exceptions", F_OK))
		SKIP(return, "this kernel has no page fault tracepoints");
	for (unsigned int i = 0; i < 2; i++)
		ASSERT_EQ(1, enable_events(fds[i], "fault", "page_fault_kernel"));
	kernel_faults();
	for (unsigned int i = 0; i < 2; i++) {
		struct reader reader;

		ASSERT_EQ(0, call(fds[i], ETW_IOC_SESSION_STOP, NULL));
		ASSERT_EQ(0, reader_open(&reader, fds[i], count_pointers, &seen[i]));
		ASSERT_DRAINED(&reader);
		reader_close(&reader);
	}
	EXPECT_GE(seen[0].zero, 50);
	EXPECT_EQ(0, seen[0].kernel);
	EXPECT_GE(seen[1].kernel, 50);
}

static int do_owner(void *arg)
{
	struct etw_session_create create = session_small(unique("owned"));
	int dev = device_open(), fd = session_make(dev, &create);
	struct etw_session_query q;

	if (fd < 0)
		return fd;
	q = session_query(fd);
	return q.owner_uid == NOBODY && q.owner_pid == getpid() ? 0 : 1;
}

TEST_F(permission, owner_is_told)
{
	EXPECT_EQ(0, as(CAP(CAP_PERFMON), do_owner, NULL));
}

/* Last: confidentiality keeps everybody from kernel addresses. */
TEST_F(permission, zz_lockdown)
{
	char text[128];

	mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	if (file_write("/sys/kernel/security/lockdown", "confidentiality") &&
	    (file_read("/sys/kernel/security/lockdown", text, sizeof(text)) < 0 || !strstr(text, "[confidentiality]")))
		SKIP(return, "this kernel cannot be locked down");
	EXPECT_EQ(-EPERM, as(CAP(CAP_PERFMON) | CAP(CAP_SYSLOG), do_create, (void *)(intptr_t)ETW_SESSION_ADDRESSES));
	EXPECT_EQ(-EPERM, do_create((void *)(intptr_t)ETW_SESSION_ADDRESSES));
	EXPECT_EQ(0, do_create(NULL));
}

TEST_HARNESS_MAIN
