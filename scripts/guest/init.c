// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's first process: prepares the guest, loads modules, runs one command, hands back what it wrote and its
 * status, and reboots (QEMU is told to exit then).
 *
 * What to do comes in the initramfs under /etw:
 *   config   lines "name value": timeout (seconds, 0 for none), disks (how many to wait for), unload (1: etw.ko must
 *            be removable at the end), leaks (1: and leave nothing allocated, as kmemleak sees it), poweroff (1: end so,
 *            not by a reboot), tty (1: the command gets the terminal), rows, cols, and the channels
 *   modules  lines "file parameters", in the order to load
 *   argv     the command, each argument ended by a zero byte
 * Channels to the host, each a device or the name of a virtio port: out, err (the command's output), tar (what is under
 * /out), and verdict, which is none of the console's, so that nothing there can look like one:
 *   "status N" the command's exit status, "timeout" it ran out of time, "failed WHY" it was not run or its guest is bad;
 *   then "end", without which the rest does not count.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

struct config {
	int timeout, disks, unload, leaks, poweroff, tty, rows, cols;
	char out[32], err[32], tar[32], verdict[32];
};

struct pump {
	int from, to;
};

static struct config config;
static char verdict[512] = "failed init did not get that far\n";

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "<5>etw-init: ");
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	if (fd < 0)
		return;
	if (write(fd, line, strlen(line)) < 0)
		perror("/dev/kmsg");
	close(fd);
}

static void write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			buf += n;
			len -= n;
		}
	}
}

static int open_device(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	struct termios t;

	if (fd >= 0 && !tcgetattr(fd, &t)) {
		cfmakeraw(&t);
		tcsetattr(fd, TCSANOW, &t);
	}
	return fd;
}

/* Writes the verdict and leaves; the only way out. */
static void finish(void)
{
	int fd = open_device(config.verdict);

	sync();
	if (fd >= 0) {
		write_all(fd, verdict, strlen(verdict));
		write_all(fd, "end\n", 4);
		tcdrain(fd);
	}
	reboot(config.poweroff ? RB_POWER_OFF : RB_AUTOBOOT);
	for (;;)
		pause();
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(verdict, sizeof(verdict), "failed ");
	va_start(ap, fmt);
	n += vsnprintf(verdict + n, sizeof(verdict) - n - 2, fmt, ap);
	va_end(ap);
	note("%s", verdict);
	strcat(verdict, "\n");
	finish();
	__builtin_unreachable();
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where, *options;
	} mounts[] = {
		{ "proc", "/proc", "" },
		{ "sysfs", "/sys", "" },
		{ "devtmpfs", "/dev", "" },
		{ "devpts", "/dev/pts", "" },
		{ "tmpfs", "/dev/shm", "" },
		{ "tmpfs", "/tmp", "mode=1777,size=90%" },
		{ "tmpfs", "/run", "mode=755" },
		{ "tmpfs", "/out", "mode=777,size=90%" },
		{ "debugfs", "/sys/kernel/debug", "" },
		{ "tracefs", "/sys/kernel/tracing", "" },
		{ "cgroup2", "/sys/fs/cgroup", "" },
		{ "bpf", "/sys/fs/bpf", "" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].where, 0755);
		/* Some kernels lack some of these; whoever needs one will say so. */
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options) && i < 3)
			fail("cannot mount %s: %s", mounts[i].where, strerror(errno));
	}
}

static void read_config(struct config *c)
{
	const struct {
		const char *name;
		int *number;
		char *text;
	} settings[] = {
		{ "timeout", &c->timeout, NULL }, { "disks", &c->disks, NULL }, { "unload", &c->unload, NULL },
		{ "leaks", &c->leaks, NULL }, { "poweroff", &c->poweroff, NULL }, { "tty", &c->tty, NULL },
		{ "rows", &c->rows, NULL }, { "cols", &c->cols, NULL },
		{ "out", NULL, c->out }, { "err", NULL, c->err }, { "tar", NULL, c->tar }, { "verdict", NULL, c->verdict },
	};
	FILE *f = fopen("/etw/config", "re");
	char name[32], value[32];

	if (!f)
		fail("no /etw/config");
	while (fscanf(f, "%31s %31s", name, value) == 2) {
		size_t i = 0;

		while (i < sizeof(settings) / sizeof(settings[0]) && strcmp(settings[i].name, name))
			i++;
		if (i == sizeof(settings) / sizeof(settings[0]))
			fail("/etw/config: unknown name %s", name);
		if (settings[i].number)
			*settings[i].number = atoi(value);
		else
			strcpy(settings[i].text, value);
	}
	fclose(f);
}

static void load_modules(void)
{
	FILE *f = fopen("/etw/modules", "re");
	char line[2048];

	while (f && fgets(line, sizeof(line), f)) {
		char *params;
		int fd;

		line[strcspn(line, "\n")] = 0;
		params = line + strcspn(line, " ");
		if (*params)
			*params++ = 0;
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fail("no module %s", line);
		if (syscall(SYS_finit_module, fd, params, 0) && errno != EEXIST)
			fail("cannot load %s (parameters \"%s\"): %s", line, params, strerror(errno));
		close(fd);
	}
	if (f)
		fclose(f);
}

/* Opens a device, or the virtio port of that name; those appear some time after the driver. */
static int open_channel(const char *want)
{
	const char *dir = "/sys/class/virtio-ports";

	if (*want == '/') {
		int fd = open_device(want);

		if (fd < 0)
			fail("%s: %s", want, strerror(errno));
		return fd;
	}
	for (int tries = 0; tries < 1000; tries++) {
		DIR *d = opendir(dir);
		struct dirent *e;

		while (d && (e = readdir(d))) {
			char path[300], name[64] = "";
			FILE *f;
			int fd;

			snprintf(path, sizeof(path), "%s/%s/name", dir, e->d_name);
			f = fopen(path, "re");
			if (!f)
				continue;
			if (!fgets(name, sizeof(name), f))
				name[0] = 0;
			fclose(f);
			name[strcspn(name, "\n")] = 0;
			if (strcmp(name, want))
				continue;
			snprintf(path, sizeof(path), "/dev/%s", e->d_name);
			fd = open(path, O_WRONLY | O_CLOEXEC);
			if (fd >= 0) {
				closedir(d);
				return fd;
			}
		}
		if (d)
			closedir(d);
		pause_ms(10);
	}
	fail("no virtio port %s", want);
}

static void wait_for_disks(int n)
{
	for (int i = 0; i < n; i++) {
		char path[] = "/dev/vda";
		int tries = 0;

		path[7] = 'a' + i;
		while (access(path, F_OK)) {
			if (++tries == 1000)
				fail("no %s", path);
			pause_ms(10);
		}
	}
}

static char **read_argv(void)
{
	static char buf[64 * 1024];
	static char *argv[1024];
	int fd = open("/etw/argv", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, buf, sizeof(buf));
	int argc = 0;

	if (len <= 0 || buf[len - 1])
		fail("no command in /etw/argv");
	close(fd);
	for (char *p = buf; p < buf + len && argc < 1023; p += strlen(p) + 1)
		argv[argc++] = p;
	return argv;
}

static void child_setup(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	setenv("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LC_ALL", "C", 1);
	if (chdir("/root"))
		perror("/root");
}

static pid_t spawn(char **argv, const struct config *c, int out, int err)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	child_setup();
	if (c->tty) {
		struct winsize ws = { .ws_row = c->rows, .ws_col = c->cols };
		int fd = open("/dev/hvc0", O_RDWR);

		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		ioctl(0, TIOCSCTTY, 0);
		ioctl(0, TIOCSWINSZ, &ws);
		setenv("TERM", "linux", 0);
	} else {
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out, 1);
		dup2(err, 2);
	}
	execvp(argv[0], argv);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Moves what is there; false when there is nothing now. */
static bool move_output(struct pump *p)
{
	static char buf[64 * 1024];
	ssize_t n = read(p->from, buf, sizeof(buf));

	if (n == 0) {
		close(p->from);
		p->from = -1;
	}
	if (n <= 0)
		return false;
	write_all(p->to, buf, n);
	return true;
}

/* Exists to interrupt ppoll(). */
static void on_sigchld(int sig)
{
	(void)sig;
}

/* Runs until the child ends or its time is over; returns its wait status, or -1. */
static int supervise(pid_t pid, int timeout, struct pump *pumps)
{
	long long deadline = timeout ? now_ms() + timeout * 1000LL : 0;
	sigset_t normal, blocked;
	int status = -1;
	bool done = false;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &normal);
	while (!done) {
		struct pollfd fds[2] = {
			{ .fd = pumps[0].from, .events = POLLIN },
			{ .fd = pumps[1].from, .events = POLLIN },
		};
		long long left = deadline ? deadline - now_ms() : 1000000;
		struct timespec ts = { .tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000 };
		pid_t dead;
		int st;

		if (left <= 0) {
			note("the command ran out of its %d s", timeout);
			/* Its own handlers get a moment, to leave readable files behind. */
			kill(-pid, SIGTERM);
			for (int i = 0; i < 300 && waitpid(pid, &st, WNOHANG) != pid; i++)
				pause_ms(10);
			break;
		}
		ppoll(fds, 2, &ts, &normal);
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				move_output(&pumps[i]);
		while ((dead = waitpid(-1, &st, WNOHANG)) > 0) {
			if (dead == pid) {
				status = st;
				done = true;
			}
		}
	}
	sigprocmask(SIG_SETMASK, &normal, NULL);
	return status;
}

/* What is still in the pipes; processes left behind may hold them open, so do not wait for their end. */
static void drain(struct pump *pumps)
{
	for (int i = 0; i < 2; i++)
		while (pumps[i].from >= 0 && move_output(&pumps[i]))
			;
}

static void end_everybody(void)
{
	kill(-1, SIGTERM);
	pause_ms(20);
	kill(-1, SIGKILL);
	for (int i = 0; i < 500; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0 && errno == ECHILD)
			break;
		if (pid <= 0)
			pause_ms(10);
	}
}

static int run_quietly(char *const argv[], int out)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		child_setup();
		if (out >= 0)
			dup2(out, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static void send_out(void)
{
	char *tar[] = { "busybox", "tar", "-cf", "-", "-C", "/out", ".", NULL };
	DIR *d = opendir("/out");
	struct dirent *e;
	bool any = false;
	int fd;

	while (d && (e = readdir(d)))
		any |= strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	if (!any)
		return;
	fd = open_channel(config.tar);
	if (run_quietly(tar, fd))
		fail("cannot pack /out");
	close(fd);
}

static void unload(void)
{
	for (int i = 0; i < 200; i++) {
		if (!syscall(SYS_delete_module, "etw", O_NONBLOCK) || errno == ENOENT)
			return;
		if (errno != EBUSY && errno != EAGAIN)
			break;
		pause_ms(10);
	}
	fail("etw.ko would not unload after all processes had ended: %s", strerror(errno));
}

/* Opened before the command runs: a kernel that it locked down opens it no more. */
static int kmemleak_fd;

static void kmemleak(const char *word)
{
	if (write(kmemleak_fd, word, strlen(word)) < 0)
		fail("%s: %s: %s", KMEMLEAK, word, strerror(errno));
}

/*
 * What was allocated after @since (ms) and that nothing refers to any more is a leak; what is older is not the
 * module's. The kernel's own messages get all that is known about it.
 */
static void look_for_leaks(long long since)
{
	long long age = (now_ms() - since) / 1000;
	char line[512], first[512] = "";
	int leaks = 0;
	bool ours = false;
	FILE *f;

	/* Memory freed after a grace period is gone by then, and kmemleak trusts nothing younger than five seconds. */
	pause_ms(6000);
	/* Two agree: a pointer that was in flight during the first is at its place in the second. */
	kmemleak("scan");
	kmemleak("scan");
	f = fdopen(kmemleak_fd, "r");
	if (!f)
		fail("%s: %s", KMEMLEAK, strerror(errno));
	age += 6;
	while (fgets(line, sizeof(line), f)) {
		char *at;

		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "unreferenced object", 19)) {
			snprintf(first, sizeof(first), "%s", line);
			ours = false;
			continue;
		}
		if (!strncmp(line, "  comm \"", 8)) {
			at = strstr(line, "(age ");
			/* Newer kernels do not say. */
			ours = !at || atoll(at + 5) <= age;
			leaks += ours;
			if (ours)
				note("leak: %s", first);
		}
		if (ours)
			note("leak: %s", line);
	}
	fclose(f);
	if (leaks)
		fail("%d objects allocated since the module was loaded are unreferenced: %.80s", leaks, first);
	note("no leak");
}

int main(void)
{
	long long loaded;
	struct pump pumps[2] = { { -1, -1 }, { -1, -1 } };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	char **argv;
	pid_t pid;
	int st;

	if (getpid() != 1) {
		fprintf(stderr, "this is a guest's init\n");
		return 1;
	}
	read_config(&config);
	mount_all();
	signal(SIGCHLD, on_sigchld);
	signal(SIGPIPE, SIG_IGN);
	loaded = now_ms();
	if (config.leaks)
		kmemleak_fd = open(KMEMLEAK, O_RDWR | O_CLOEXEC);
	if (kmemleak_fd < 0)
		fail("%s: %s", KMEMLEAK, strerror(errno));
	load_modules();
	wait_for_disks(config.disks);
	argv = read_argv();
	if (!config.tty) {
		pumps[0].to = open_channel(config.out);
		pumps[1].to = open_channel(config.err);
		/* Pipes, not the ports themselves: a port can be opened only once, and scripts write to /dev/stderr. */
		if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
			fail("pipe: %s", strerror(errno));
		pumps[0].from = out[0];
		pumps[1].from = err[0];
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(err[0], F_SETFL, O_NONBLOCK);
	}
	note("running %s", argv[0]);
	pid = spawn(argv, &config, out[1], err[1]);
	if (!config.tty) {
		close(out[1]);
		close(err[1]);
	}
	st = supervise(pid, config.timeout, pumps);
	drain(pumps);
	end_everybody();
	drain(pumps);
	if (st == -1)
		snprintf(verdict, sizeof(verdict), "timeout\n");
	else
		snprintf(verdict, sizeof(verdict), "status %d\n",
			 WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st));
	note("the command ended: %s", verdict);
	send_out();
	if (config.unload)
		unload();
	if (config.leaks)
		look_for_leaks(loaded);
	finish();
}
