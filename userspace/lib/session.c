// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A session's file: thin wrappers over its commands, with errors that name the session. It must not know packets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <etw/etw.h>

#include "class.h"
#include "control.h"
#include "error.h"
#include "ticks.h"

struct etw_session {
	int fd;
	char name[ETW_NAME_SIZE];
	__u64 freq;		/* of its clock, 0: not asked yet */
	void *entries;		/* buffer of SCHEMA_READ */
};

static int name_copy(__u8 to[ETW_NAME_SIZE], const char *name, const char *what)
{
	if (!etw_name_valid(name))
		return etw_error(-EINVAL,
				 "\"%s\" cannot be the name of %s: a letter, then letters, digits, _ . -, at most %u",
				 name, what, ETW_NAME_SIZE - 1);
	memset(to, 0, ETW_NAME_SIZE);
	memcpy(to, name, strlen(name));
	return 0;
}

static int session_make(int fd, const char *name, struct etw_session **session)
{
	struct etw_session *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return etw_error_errno(-ENOMEM, "session %s", name);
	}
	s->fd = fd;
	memcpy(s->name, name, strlen(name));
	*session = s;
	return 0;
}

static int power_of_two(__u32 n)
{
	return (n & (n - 1)) == 0;
}

int etw_session_create(struct etw_control *control, const char *name, const struct etw_session_options *options,
		       struct etw_session **session)
{
	static const struct etw_session_options defaults = { .size = sizeof(defaults) };
	const struct etw_session_options *o = options ? options : &defaults;
	struct etw_session_create create = {
		.size = sizeof(create), .flags = o->flags, .subbuf_size = o->subbuf_size, .nr_subbufs = o->nr_subbufs,
		.flush_ms = o->flush_ms, .clock = o->clock,
	};
	struct etw_version v;
	int fd = name_copy(create.name, name, "a session");

	if (fd)
		return fd;
	fd = etw_ioctl(etw_control_fd(control), ETW_IOC_SESSION_CREATE, &create);
	if (fd >= 0)
		return session_make(fd, name, session);
	switch (fd) {
	case -EEXIST:
		return etw_error(fd, "session %s exists already: take another name, or stop that one", name);
	case -EPERM:
		if (o->flags & ETW_SESSION_ADDRESSES)
			return etw_error(
				fd,
				"session %s: kernel addresses need CAP_SYSLOG and a kernel that is not locked down",
				name);
		return etw_error(fd, "session %s: creating sessions needs CAP_PERFMON or CAP_SYS_ADMIN: become root",
				 name);
	case -ENOSPC:
		return etw_error(fd, "session %s: %u sessions exist already: stop one", name, ETW_MAX_SESSIONS);
	case -EDQUOT:
		if (!etw_control_version(control, &v))
			return etw_error(
				fd,
				"session %s: its buffers would pass the module's limit of %llu bytes (%llu in use): "
				"make them smaller or raise the module's limit",
				name, (unsigned long long)v.memory_limit, (unsigned long long)v.memory_used);
		return etw_error(fd, "session %s: its buffers would pass the module's memory limit", name);
	case -EINVAL:
		if (o->subbuf_size && (!power_of_two(o->subbuf_size) || o->subbuf_size < ETW_SUBBUF_SIZE_MIN ||
				       o->subbuf_size > ETW_SUBBUF_SIZE_MAX))
			return etw_error(fd, "session %s: sub-buffer size %u: must be a power of two from %u to %u",
					 name, o->subbuf_size, ETW_SUBBUF_SIZE_MIN, ETW_SUBBUF_SIZE_MAX);
		if (o->nr_subbufs && (!power_of_two(o->nr_subbufs) || o->nr_subbufs < ETW_NR_SUBBUFS_MIN ||
				      o->nr_subbufs > ETW_NR_SUBBUFS_MAX))
			return etw_error(fd, "session %s: %u sub-buffers: must be a power of two from %u to %u", name,
					 o->nr_subbufs, ETW_NR_SUBBUFS_MIN, ETW_NR_SUBBUFS_MAX);
		if (o->flush_ms > ETW_FLUSH_MS_MAX && o->flush_ms != ETW_FLUSH_MS_NEVER)
			return etw_error(fd, "session %s: flush interval %u ms: must be 1 to %u, or never", name,
					 o->flush_ms, ETW_FLUSH_MS_MAX);
		return etw_error(fd, "session %s: the module does not accept these settings", name);
	case -ENOMEM:
		return etw_error(fd, "session %s: no memory for its buffers: make them smaller or fewer", name);
	case -EOPNOTSUPP:
		return etw_error(fd,
				 "session %s: the kernel does not rely on the cycle counter of this machine: "
				 "use the clock monotonic",
				 name);
	}
	return etw_error_errno(fd, "session %s", name);
}

int etw_session_open(struct etw_control *control, const char *name, struct etw_session **session)
{
	struct etw_session_open open = { .size = sizeof(open) };
	int fd = name_copy(open.name, name, "a session");

	if (fd)
		return fd;
	fd = etw_ioctl(etw_control_fd(control), ETW_IOC_SESSION_OPEN, &open);
	if (fd >= 0)
		return session_make(fd, name, session);
	if (fd == -ENOENT)
		return etw_error(fd, "there is no session %s: see the list of sessions", name);
	if (fd == -EPERM)
		return etw_error(
			fd,
			"session %s: opening it needs CAP_PERFMON or CAP_SYS_ADMIN, and CAP_SYSLOG if it shows kernel addresses",
			name);
	return etw_error_errno(fd, "session %s", name);
}

void etw_session_close(struct etw_session *session)
{
	if (!session)
		return;
	close(session->fd);
	free(session->entries);
	free(session);
}

int etw_session_fd(const struct etw_session *session)
{
	return session->fd;
}

const char *etw_session_name(const struct etw_session *session)
{
	return session->name;
}

/* Errors that several commands share. */
static int session_error(const struct etw_session *session, int err, const char *what)
{
	if (err == -ESHUTDOWN)
		return etw_error(err, "session %s has stopped: %s is not possible any more", session->name, what);
	return etw_error_errno(err, "session %s: %s", session->name, what);
}

/* Names as the ABI has them, NULL for none; *@err: why not. */
static void *names_copy(const char *const *names, __u32 nr, int (*copy)(__u8 to[ETW_NAME_SIZE], const char *name), int *err)
{
	__u8 (*list)[ETW_NAME_SIZE] = nr ? calloc(nr, sizeof(*list)) : NULL;
	__u32 i;

	if (nr && !list)
		*err = etw_error_errno(-ENOMEM, "names of a filter");
	for (i = 0; list && !*err && i < nr; i++)
		*err = copy(list[i], names[i]);
	return list;
}

static int event_copy(__u8 to[ETW_NAME_SIZE], const char *name)
{
	return name_copy(to, name, "an event");
}

static int process_copy(__u8 to[ETW_NAME_SIZE], const char *name)
{
	if (!*name || strlen(name) >= ETW_NAME_SIZE)
		return etw_error(-EINVAL, "\"%s\" cannot be the name of a process: 1 to %u bytes", name,
				 ETW_NAME_SIZE - 1);
	memcpy(to, name, strlen(name));
	return 0;
}

static int enable_limits(const struct etw_enable_options *o)
{
	const struct {
		__u32 nr, most;
		const char *what;
	} lists[] = {
		{ o->nr_events, ETW_MAX_EVENT_NAMES, "event names" },
		{ o->nr_pids, ETW_MAX_PIDS, "pids" },
		{ o->nr_ids, ETW_MAX_EVENT_IDS, "event ids" },
		{ o->nr_processes, ETW_MAX_PROCESS_NAMES, "process names" },
		{ o->nr_predicates, ETW_MAX_PREDICATES, "predicates" },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].nr > lists[i].most)
			return etw_error(-E2BIG, "%s: %u %s, more than %u", o->provider, lists[i].nr, lists[i].what,
					 lists[i].most);
	return 0;
}

int etw_session_enable(struct etw_session *session, const struct etw_enable_options *options)
{
	struct etw_enable_options o = {};
	struct etw_enable enable = { .size = sizeof(enable) };
	void *events = NULL, *processes = NULL;
	int ret;

	if (options->size < offsetof(struct etw_enable_options, id_mode))
		return etw_error(-EINVAL, "the size of the options of an enable is not set");
	memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	ret = etw_provider_text(o.provider, enable.name, enable.guid);
	if (!ret)
		ret = enable_limits(&o);
	if (!ret)
		events = names_copy(o.events, o.nr_events, event_copy, &ret);
	if (!ret)
		processes = names_copy(o.processes, o.nr_processes, process_copy, &ret);
	if (ret) {
		free(events);
		free(processes);
		return ret;
	}
	enable.flags = o.flags;
	enable.level = o.level;
	enable.any = o.any;
	enable.all = o.all;
	enable.event_mode = o.event_mode;
	enable.events = (uintptr_t)events;
	enable.nr_events = o.nr_events;
	enable.pids = (uintptr_t)o.pids;
	enable.nr_pids = o.nr_pids;
	enable.id_mode = o.id_mode;
	enable.ids = (uintptr_t)o.ids;
	enable.nr_ids = o.nr_ids;
	enable.processes = (uintptr_t)processes;
	enable.nr_processes = o.nr_processes;
	enable.predicates = (uintptr_t)o.predicates;
	enable.nr_predicates = o.nr_predicates;
	enable.uid = o.uid;
	ret = etw_ioctl(session->fd, ETW_IOC_SESSION_ENABLE, &enable);
	free(events);
	free(processes);
	switch (ret) {
	case -EINVAL:
		return etw_error(ret, "%s: the module does not accept this level (0 to 255), keywords or filter",
				 o.provider);
	case -ESRCH:
		return etw_error(ret, "%s: a pid of the filter does not exist", o.provider);
	case -ENOSPC:
		return etw_error(ret, "session %s: its table of %u event classes is full", session->name,
				 ETW_MAX_CLASSES);
	}
	return ret < 0 ? session_error(session, ret, "enabling a provider") : ret;
}

static int provider_command(struct etw_session *session, unsigned long command, const char *provider, const char *what)
{
	struct etw_provider_ref ref = { .size = sizeof(ref) };
	int ret = 0;

	if (provider)
		ret = etw_provider_text(provider, ref.name, ref.guid);
	if (ret)
		return ret;
	ret = etw_ioctl(session->fd, command, &ref);
	if (ret == -ENOENT)
		return etw_error(ret, "%s is not enabled in session %s: enable it first", provider, session->name);
	return ret < 0 ? session_error(session, ret, what) : 0;
}

int etw_session_disable(struct etw_session *session, const char *provider)
{
	return provider_command(session, ETW_IOC_SESSION_DISABLE, provider, "disabling a provider");
}

int etw_session_capture_state(struct etw_session *session, const char *provider)
{
	return provider_command(session, ETW_IOC_SESSION_CAPTURE_STATE, provider, "capturing state");
}

int etw_session_update_flush_ms(struct etw_session *session, __u32 flush_ms)
{
	struct etw_session_update update = {
		.size = sizeof(update), .what = ETW_UPDATE_FLUSH_MS, .flush_ms = flush_ms,
	};
	int err = etw_ioctl(session->fd, ETW_IOC_SESSION_UPDATE, &update);

	if (err == -EINVAL)
		return etw_error(err, "session %s: flush interval %u ms: must be 1 to %u, or never", session->name,
				 flush_ms, ETW_FLUSH_MS_MAX);
	return err < 0 ? session_error(session, err, "changing its settings") : 0;
}

int etw_session_flush_ticks(struct etw_session *session, unsigned int timeout_ms, __u64 *time)
{
	struct etw_flush flush = { .size = sizeof(flush), .timeout_ms = timeout_ms };
	int err = etw_ioctl(session->fd, ETW_IOC_SESSION_FLUSH, &flush);

	if (err == -ETIMEDOUT)
		return etw_error(err, "session %s: CPU %u did not finish its records in time", session->name,
				 flush.cpu);
	if (err < 0)
		return session_error(session, err, "flushing");
	*time = flush.time;
	return 0;
}

/* A module from before there was a frequency has but clocks that tick in nanoseconds. */
static __u64 query_freq(const struct etw_session_query *query)
{
	return ticks_valid(query->clock_freq) ? query->clock_freq : TICKS_NSEC;
}

void etw_query_ns(struct etw_session_query *query)
{
	__u64 freq = query_freq(query);

	query->start_time = ticks_ns(query->start_time, freq);
	query->stop_time = ticks_ns(query->stop_time, freq);
	query->complete_up_to = ticks_ns(query->complete_up_to, freq);
	query->now = ticks_ns(query->now, freq);
}

static int session_freq(struct etw_session *session)
{
	struct etw_session_query query;

	return session->freq ? 0 : etw_session_query_ticks(session, &query);
}

int etw_session_flush(struct etw_session *session, unsigned int timeout_ms, __u64 *time)
{
	__u64 ticks;
	int err = session_freq(session);

	if (!err)
		err = etw_session_flush_ticks(session, timeout_ms, &ticks);
	if (!err && time)
		*time = ticks_ns(ticks, session->freq);
	return err;
}

int etw_session_stop(struct etw_session *session)
{
	int err = etw_ioctl(session->fd, ETW_IOC_SESSION_STOP, NULL);

	return err < 0 ? session_error(session, err, "stopping") : 0;
}

int etw_session_query_ticks(struct etw_session *session, struct etw_session_query *query)
{
	int err;

	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	err = etw_ioctl(session->fd, ETW_IOC_SESSION_QUERY, query);
	if (err < 0)
		return session_error(session, err, "query");
	query->clock_freq = query_freq(query);
	session->freq = query->clock_freq;
	return 0;
}

int etw_session_query(struct etw_session *session, struct etw_session_query *query)
{
	int err = etw_session_query_ticks(session, query);

	if (!err)
		etw_query_ns(query);
	return err;
}

int etw_session_query_cpu(struct etw_session *session, struct etw_cpu_query *query)
{
	__u32 cpu = query->cpu;
	int err = session_freq(session);

	if (err)
		return err;
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->cpu = cpu;
	err = etw_ioctl(session->fd, ETW_IOC_SESSION_QUERY_CPU, query);
	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return session_error(session, err, "query of a CPU");
	query->complete_up_to = ticks_ns(query->complete_up_to, session->freq);
	return 1;
}

int etw_session_next_provider(struct etw_session *session, struct etw_provider_query *query)
{
	__u64 id = query->id;
	int err;

	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->id = id;
	err = etw_ioctl(session->fd, ETW_IOC_SESSION_QUERY_PROVIDER, query);
	if (err == -ENOENT)
		return 0;
	return err < 0 ? session_error(session, err, "query of a provider") : 1;
}

int etw_session_query_class(struct etw_session *session, __u32 class_id, struct etw_class_query *query)
{
	int err;

	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->id = class_id;
	err = etw_ioctl(session->fd, ETW_IOC_SESSION_QUERY_CLASS, query);
	if (err == -ENOENT)
		return 0;
	return err < 0 ? session_error(session, err, "query of a class") : 1;
}

int etw_session_read_classes(struct etw_session *session, struct etw_classes *table)
{
	int total = 0;

	if (!session->entries) {
		session->entries = malloc(CLASS_ENTRY_MAX);
		if (!session->entries)
			return etw_error_errno(-ENOMEM, "session %s: schemas", session->name);
	}
	for (;;) {
		struct etw_schema_read read = {
			.size = sizeof(read),
			.from = etw_classes_count(table),
			.buf = (__u64)(uintptr_t)session->entries,
			.buf_size = CLASS_ENTRY_MAX,
		};
		int ret = etw_ioctl(session->fd, ETW_IOC_SESSION_SCHEMA_READ, &read);

		if (ret < 0)
			return session_error(session, ret, "reading schemas");
		if (!read.nr)
			return total;
		ret = etw_classes_add(table, session->entries, read.used);
		if (ret < 0)
			return ret;
		total += ret;
	}
}
