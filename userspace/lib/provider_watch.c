// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Who waits: for the module to come, and for sessions that enable and disable. One thread for all that need one,
 * asleep in epoll_wait(), or the program's own loop by a descriptor for each provider. It must not know events.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include "error.h"
#include "provider_int.h"

/* The thread, and what it sleeps on. */
static struct {
	bool running; /* from its start until it has decided to end */
	bool joinable;
	bool quit;
	pthread_t thread;
	unsigned int generation; /* of the thread: another one's descriptors are gone */
	int epoll;
	int inotify;
	int wake;
} watch = { .epoll = -1, .inotify = -1, .wake = -1 };

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int watch_dir(void)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd >= 0 && inotify_add_watch(fd, etw_device_dir(), IN_CREATE | IN_MOVED_TO | IN_ATTRIB) < 0)
		shut(&fd);
	return fd;
}

/* Takes what there is; whether the device is among it. */
static bool drain_dir(int fd)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool found = false;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		const char *p = buf;

		while (p < buf + n) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			if ((e->mask & IN_Q_OVERFLOW) || (e->len && !strcmp(e->name, etw_device_name())))
				found = true;
			p += sizeof(*e) + e->len;
		}
	}
	return found;
}

static void drain(int fd)
{
	__u64 n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

static bool add(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll >= 0 && fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

/*
 * Not so if the program closed one of them and has a file of its own in this place, which is none of ours to use: an
 * epoll knows its files by file and number.
 */
static bool has(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll >= 0 && fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e);
}

static void poke(int epoll, int fd)
{
	const __u64 one = 1;
	int saved = errno;

	while (has(epoll, fd) && write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = saved;
}

static void remove_from(int epoll, int fd)
{
	if (epoll >= 0 && fd >= 0)
		epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* What is in an epoll together with the eventfd that wakes who sleeps on it; what is ours of it. */
static void shut_ours(int *epoll, int *wake, int *inotify)
{
	const bool ours = has(*epoll, *wake);

	if (has(*epoll, *inotify))
		close(*inotify);
	if (ours) {
		close(*wake);
		close(*epoll);
	}
	*epoll = *wake = *inotify = -1;
}

/* In numbers that programs seldom come to. */
static bool open_pair(int *epoll, int *wake, unsigned int count)
{
	int err;

	*epoll = etw_raise_fd(epoll_create1(EPOLL_CLOEXEC));
	*wake = etw_raise_fd(eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK));
	if (add(*epoll, *wake))
		return true;
	err = errno;
	shut(epoll);
	shut(wake);
	errno = err;
	return false;
}

static bool by_thread(const struct etw_registration *reg)
{
	return reg->provider && reg->fn && (reg->fn_flags & ETW_CALLBACK_THREAD);
}

/* ---- callbacks ---- */

/*
 * Calls back with the lock released; not to be cancelled, or others would wait for its end for ever. false: the
 * registration is another one now.
 */
static bool call(struct etw_registration *reg, const struct etw_enabled *enabled)
{
	const unsigned int serial = reg->serial;
	const int cancel_state = etw_thread.cancel_state;
	struct etw_provider *provider = reg->provider;
	etw_enable_fn fn = reg->fn;
	void *arg = reg->arg;

	reg->running = true;
	reg->runner = pthread_self();
	etw_thread.cancel_state = PTHREAD_CANCEL_DISABLE;
	etw_unlock();
	if (enabled->capture)
		etw_answer(reg, enabled->capture);
	fn(provider, enabled, arg);
	if (enabled->capture)
		etw_answer(NULL, 0);
	etw_lock();
	etw_thread.cancel_state = cancel_state;
	if (reg->serial != serial)
		return false;
	reg->running = false;
	etw_broadcast();
	return true;
}

static bool call_changed(struct etw_registration *reg, const struct etw_enabled_query *q)
{
	const struct etw_enabled enabled = {
		.size = sizeof(enabled),
		.code = q->nr_sessions ? ETW_CODE_ENABLE : ETW_CODE_DISABLE,
		.nr_sessions = q->nr_sessions,
		.level = q->level,
		.any = q->any,
		.all = q->all,
	};

	return call(reg, &enabled);
}

static bool call_capture(struct etw_registration *reg, const struct etw_capture_query *q, unsigned int nr_sessions)
{
	const struct etw_enabled enabled = {
		.size = sizeof(enabled),
		.code = ETW_CODE_CAPTURE,
		.nr_sessions = nr_sessions,
		.level = q->level,
		.any = q->any,
		.all = q->all,
		.capture = q->id,
	};

	return call(reg, &enabled);
}

/* Requests of before are nobody's to answer. */
static void skip_captures(struct etw_registration *reg)
{
	struct etw_capture_query q;

	while (!etw_ask_capture(reg, reg->told_capture, &q))
		reg->told_capture = q.id;
}

/* How many calls were made. */
static int deliver(struct etw_registration *reg)
{
	struct etw_capture_query capture;
	struct etw_enabled_query q;
	bool enabled, captured, changed;
	int calls = 0;

	/* One at a time, and in order. */
	if (!reg->fn || reg->fd < 0 || reg->running || etw_ask_module(reg, &q))
		return 0;
	enabled = q.nr_sessions;
	captured = q.captures != reg->told_captures;
	changed = q.changes - reg->told_changes != q.captures - reg->told_captures;
	if (q.changes == reg->told_changes && enabled == reg->told_enabled)
		return 0;
	if (enabled != reg->told_enabled)
		changed = true;
	else if (!enabled)
		changed = false;
	reg->told_changes = q.changes;
	reg->told_captures = q.captures;
	reg->told_enabled = enabled;
	if (changed) {
		calls++;
		if (!call_changed(reg, &q))
			return calls;
	}
	while (captured && reg->fn && !etw_ask_capture(reg, reg->told_capture, &capture)) {
		reg->told_capture = capture.id;
		calls++;
		if (!call_capture(reg, &capture, q.nr_sessions))
			break;
	}
	return calls;
}

/* ---- the thread ---- */

static bool look_at_all(bool module)
{
	struct etw_registration *reg;
	bool needed = false;

	for (reg = etw_registrations; reg; reg = reg->next) {
		if (etw_unattached(reg) && !(reg->flags & ETW_PROVIDER_NO_THREAD)) {
			if (module)
				etw_attach(reg);
			needed |= etw_unattached(reg) && reg->poll_fd < 0 && watch.inotify >= 0;
		}
		if (by_thread(reg)) {
			deliver(reg);
			needed |= by_thread(reg); /* the callback can take itself away */
		}
	}
	return needed;
}

static void close_all(void)
{
	shut_ours(&watch.epoll, &watch.wake, &watch.inotify);
}

static bool open_all(void)
{
	struct etw_registration *reg;

	if (!open_pair(&watch.epoll, &watch.wake, 0))
		return false;
	watch.inotify = etw_raise_fd(watch_dir());
	add(watch.epoll, watch.inotify);
	for (reg = etw_registrations; reg; reg = reg->next)
		if (by_thread(reg))
			add(watch.epoll, reg->fd);
	return true;
}

/* What has their numbers now is the program's. */
static void forget_all(void)
{
	watch.epoll = watch.inotify = watch.wake = -1;
}

static bool all_ours(void)
{
	return has(watch.epoll, watch.wake);
}

static void *run(void *arg)
{
	const unsigned int generation = (uintptr_t)arg;
	bool module = true;

	pthread_setname_np(pthread_self(), "etw");
	for (;;) {
		struct epoll_event e[16];
		int epoll, n, i;

		etw_lock();
		if (watch.generation != generation) {
			etw_unlock();
			return NULL;
		}
		if (!all_ours()) {
			forget_all();
			if (!open_all())
				break;
			module = true;
		}
		if (watch.quit || !look_at_all(module))
			break;
		epoll = watch.epoll;
		etw_unlock();
		n = epoll_wait(epoll, e, 16, -1);
		module = false;
		for (i = 0; i < n; i++) {
			if (!has(epoll, e[i].data.fd))
				continue;
			if (e[i].data.fd == watch.inotify)
				module = drain_dir(watch.inotify);
			else if (e[i].data.fd == watch.wake)
				drain(watch.wake);
		}
	}
	watch.running = false;
	close_all();
	etw_unlock();
	return NULL;
}

/* One that has ended by itself leaves only its number. */
static void join_ended(void)
{
	if (watch.joinable && !watch.running) {
		pthread_join(watch.thread, NULL);
		watch.joinable = false;
	}
}

static bool start(void)
{
	sigset_t all, old;
	int err;

	/* One that sleeps on descriptors that were closed under it wakes no more. */
	if (watch.running && !all_ours()) {
		forget_all();
		pthread_detach(watch.thread);
		watch.joinable = watch.running = false;
		watch.generation++;
	}
	if (watch.running)
		return true;
	join_ended();
	watch.quit = false;
	if (!open_all())
		return false;
	/* Signals are the program's, but for those that are a fault of what runs here. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&watch.thread, NULL, run, (void *)(uintptr_t)watch.generation);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	watch.running = watch.joinable = !err;
	if (err)
		close_all();
	return !err;
}

bool etw_watch_module(void)
{
	/* Without a watch on the directory a thread is of no use. */
	if (secure_getenv("ETW_NO_THREAD") || !start() || watch.inotify < 0)
		return false;
	poke(watch.epoll, watch.wake);
	return true;
}

/* Before the code of the thread is unmapped. At the end of the process a callback that hangs does not hold it up. */
static __attribute__((destructor)) void stop(void)
{
	struct timespec until;

	if (!etw_lock())
		return;
	watch.quit = true;
	if (watch.running)
		poke(watch.epoll, watch.wake);
	etw_unlock();
	if (!watch.joinable || pthread_equal(watch.thread, pthread_self()))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (!pthread_timedjoin_np(watch.thread, NULL, &until))
		watch.joinable = false;
}

void etw_watch_forked(void)
{
	watch.running = false;
	watch.joinable = false;
	close_all();
}

/* ---- for provider.c ---- */

static bool has_loop(const struct etw_registration *reg)
{
	return has(reg->poll_fd, reg->nudge);
}

static void attach_poll(struct etw_registration *reg)
{
	if (!has_loop(reg))
		return;
	if (reg->fd >= 0) {
		if (has(reg->poll_fd, reg->inotify))
			close(reg->inotify);
		reg->inotify = -1;
		add(reg->poll_fd, reg->fd);
	} else if (reg->inotify < 0) {
		reg->inotify = etw_raise_fd(watch_dir());
		add(reg->poll_fd, reg->inotify);
	}
}

void etw_watch_attached(struct etw_registration *reg)
{
	/* A new file counts anew. */
	reg->told_changes = 0;
	reg->told_captures = 0;
	skip_captures(reg);
	attach_poll(reg);
	if (by_thread(reg) && watch.running && !pthread_equal(watch.thread, pthread_self()))
		start();
	if (by_thread(reg) && watch.running)
		add(watch.epoll, reg->fd);
	etw_watch_nudge(reg);
}

void etw_watch_detaching(struct etw_registration *reg)
{
	if (has_loop(reg))
		remove_from(reg->poll_fd, reg->fd);
	if (watch.running && all_ours())
		remove_from(watch.epoll, reg->fd);
}

void etw_watch_nudge(struct etw_registration *reg)
{
	poke(reg->poll_fd, reg->nudge);
	if (by_thread(reg) && watch.running && !pthread_equal(watch.thread, pthread_self()))
		poke(watch.epoll, watch.wake);
}

static void wait_for_callback(struct etw_registration *reg)
{
	const unsigned int serial = reg->serial;

	while (reg->serial == serial && reg->running && !pthread_equal(reg->runner, pthread_self()))
		etw_wait_unlocked();
}

void etw_watch_give_up(struct etw_registration *reg)
{
	const unsigned int serial = reg->serial;

	reg->fn = NULL;
	wait_for_callback(reg);
	if (reg->serial != serial)
		return;
	shut_ours(&reg->poll_fd, &reg->nudge, &reg->inotify);
	/* The thread may have nothing left to do. */
	if (watch.running && !pthread_equal(watch.thread, pthread_self()))
		poke(watch.epoll, watch.wake);
}

/* What the loop polls is the parent's too. Whoever polls has its number, unless the program closed that. */
static void renew(struct etw_registration *reg)
{
	const bool ours = has_loop(reg);
	const int old = reg->poll_fd;
	int epoll, wake;

	if (!open_pair(&epoll, &wake, 1))
		epoll = wake = -1;
	if (ours) {
		if (has(old, reg->inotify))
			close(reg->inotify);
		close(reg->nudge);
		if (epoll >= 0 && dup3(epoll, old, O_CLOEXEC) == old) {
			close(epoll);
			epoll = old;
		}
	}
	reg->poll_fd = epoll;
	reg->nudge = wake;
	reg->inotify = -1;
	attach_poll(reg);
}

void etw_watch_after_fork(struct etw_registration *reg)
{
	if (reg->poll_fd >= 0)
		renew(reg);
	if (by_thread(reg))
		start();
}

/* ---- for programs ---- */

int etw_provider_on_enable(struct etw_provider *provider, etw_enable_fn fn, void *arg, unsigned int flags)
{
	struct etw_enabled_query q;
	struct etw_registration *reg;
	int err = 0;

	if (flags & ~ETW_CALLBACK_THREAD)
		return etw_error(-EINVAL, "enable callback: unknown flags %#x", flags);
	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not set a callback");
	etw_after_fork();
	reg = provider->registration;
	if (!reg) {
		etw_unlock();
		return etw_error(-EINVAL, "enable callback: the provider is not registered");
	}
	reg->fn = NULL;
	wait_for_callback(reg);
	if (provider->registration != reg) {
		etw_unlock();
		return etw_error(-EINVAL, "enable callback: the provider was unregistered meanwhile");
	}
	if (watch.running && all_ours())
		remove_from(watch.epoll, reg->fd);
	reg->fn = fn;
	reg->arg = arg;
	reg->fn_flags = flags;
	reg->told_enabled = false;
	if (reg->fd >= 0 && fn && !etw_ask_module(reg, &q)) {
		reg->told_changes = q.changes;
		reg->told_captures = q.captures;
		skip_captures(reg);
	}
	if (by_thread(reg)) {
		/* A thread that runs already does not know of this one. */
		if (watch.running && all_ours())
			add(watch.epoll, reg->fd);
		if (!start()) {
			reg->fn = NULL;
			err = etw_error(-EAGAIN, "enable callback: no thread could be made for it");
		}
	}
	etw_watch_nudge(reg);
	etw_unlock();
	return err;
}

int etw_provider_fd(struct etw_provider *provider)
{
	struct etw_registration *reg;
	int fd = -EINVAL;

	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not ask for a provider's descriptor");
	etw_after_fork();
	reg = provider->registration;
	if (reg && !has_loop(reg)) {
		/* Not asked for yet, or closed by the program. */
		shut_ours(&reg->poll_fd, &reg->nudge, &reg->inotify);
		if (open_pair(&reg->poll_fd, &reg->nudge, 1))
			attach_poll(reg);
		else
			fd = -errno;
	}
	if (reg && reg->poll_fd >= 0)
		fd = reg->poll_fd;
	etw_unlock();
	return fd >= 0 ? fd : etw_error_errno(fd, "descriptor of the provider");
}

int etw_provider_dispatch(struct etw_provider *provider)
{
	struct etw_registration *reg;
	struct etw_enabled_query q;
	int ret = 0;

	if (!etw_lock())
		return etw_error(-EDEADLK, "a signal handler must not dispatch");
	etw_after_fork();
	reg = provider->registration;
	if (!reg) {
		etw_unlock();
		return etw_error(-EINVAL, "the provider is not registered");
	}
	if (has_loop(reg))
		drain(reg->nudge);
	if (has(reg->poll_fd, reg->inotify))
		drain_dir(reg->inotify);
	if (etw_unattached(reg))
		etw_attach(reg);
	if (reg->fn && !(reg->fn_flags & ETW_CALLBACK_THREAD))
		ret = deliver(reg);
	else if (reg->fd >= 0 && !reg->fn)
		etw_ask_module(reg, &q); /* or the descriptor would stay readable */
	etw_unlock();
	return ret;
}
