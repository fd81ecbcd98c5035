// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is there now, as text: see state.h. It asserts nothing and does not know the test harness.
 */
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define CENSUS "/sys/kernel/debug/etw/objects"

__attribute__((format(printf, 2, 3))) static void add(struct state *state, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(state->text + state->len, STATE_ROOM - state->len, format, args);
	va_end(args);
	if (n < 0 || state->len + n >= STATE_ROOM) {
		printf("# struct state is too small\n");
		abort();
	}
	state->len += n;
}

/* Only what lives counts, not how many there were. */
static void add_census(struct state *state)
{
	char text[2048], *line, *rest = text, kind[32];
	long made, gone;

	if (file_read(CENSUS, text, sizeof(text)) < 0) {
		add(state, "no %s\n", CENSUS);
		return;
	}
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%31s %ld %ld", kind, &made, &gone) == 3)
			add(state, "%s %ld\n", kind, made - gone);
}

long objects_alive(const char *kind)
{
	char text[2048], *line, *rest = text, name[32];
	long made, gone;
	int n = file_read(CENSUS, text, sizeof(text));

	if (n < 0)
		return n;
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%31s %ld %ld", name, &made, &gone) == 3 && !strcmp(name, kind))
			return made - gone;
	return -ENOENT;
}

static void add_descriptors(struct state *state)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[128];
	struct dirent *e;
	ssize_t n;

	while (dir && (e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		if (n > 0 && atoi(e->d_name) != dirfd(dir))
			add(state, "fd %s %.*s\n", e->d_name, (int)n, target);
	}
	if (dir)
		closedir(dir);
}

void state_module(struct state *state, int device)
{
	struct etw_session_query session;
	struct etw_provider_list provider;
	struct etw_version version;
	char text[32] = "";
	__u64 id;

	state->len = 0;
	poison(version);
	call(device, ETW_IOC_VERSION, &version);
	add(state, "memory_used %llu\n", (unsigned long long)version.memory_used);
	file_read("/sys/module/etw/refcnt", text, sizeof(text));
	add(state, "users %s", text);
	add_census(state);
	for (id = 0;; id = session.id) {
		poison(session);
		session.id = id;
		if (call(device, ETW_IOC_SESSION_LIST, &session))
			break;
		add(state, "session %s\n", session.name);
	}
	for (id = 0;; id = provider.id) {
		memset(&provider, 0, sizeof(provider));
		provider.size = sizeof(provider);
		provider.id = id;
		if (call(device, ETW_IOC_PROVIDER_LIST, &provider))
			break;
		add(state, "provider %s sessions %u\n", provider.alias, provider.nr_sessions);
	}
	add_descriptors(state);
}

void state_session(struct state *state, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	struct etw_session_query q = session_query(fd);
	struct etw_provider_query provider;
	struct etw_class_query class;
	__u64 id;

	state->len = 0;
	add(state, "flags %x state %u reason %u flush_ms %u\n", q.flags, q.state, q.stop_reason, q.flush_ms);
	add(state, "relays %u memory %llu classes %u enabled %u reader %d\n", q.nr_relays, (unsigned long long)q.memory,
	    q.nr_classes, q.nr_enabled, q.reader_pid);
	poll(&p, 1, 0);
	add(state, "poll %x\n", p.revents);
	for (id = 0;; id = provider.id) {
		poison(provider);
		provider.id = id;
		provider.flags = 0;
		if (call(fd, ETW_IOC_SESSION_QUERY_PROVIDER, &provider))
			break;
		add(state, "provider %llu %s flags %x level %u any %llx all %llx events %u %u pids %u enabled %u\n",
		    (unsigned long long)provider.id, provider.name, provider.flags, provider.level,
		    (unsigned long long)provider.any, (unsigned long long)provider.all, provider.event_mode,
		    provider.nr_events, provider.nr_pids, provider.enabled);
	}
	poison(class);
	for (class.id = 0; !call(fd, ETW_IOC_SESSION_QUERY_CLASS, &class); class.id++)
		;
	add(state, "class %u is none\n", class.id);
}

const char *state_differs(const struct state *before, const struct state *after)
{
	const char *a = before->text, *b = after->text;
	static char text[512];

	for (;;) {
		size_t m = strcspn(a, "\n"), n = strcspn(b, "\n");

		if (m != n || memcmp(a, b, m)) {
			snprintf(text, sizeof(text), "before \"%.*s\", after \"%.*s\"", (int)m, a, (int)n, b);
			return text;
		}
		if (!a[m] && !b[n])
			return NULL;
		a += m + !!a[m];
		b += n + !!b[n];
	}
}
