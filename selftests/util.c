// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the test programs share: see util.h. It asserts nothing and does not know the test harness.
 */
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void poison_bytes(void *what, size_t size)
{
	__u32 declared = size;

	memset(what, POISON, size);
	memcpy(what, &declared, sizeof(declared));
}

int call(int fd, unsigned int cmd, const void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int device_open(void)
{
	int fd = open("/dev/etw", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

const char *unique(const char *what)
{
	static char names[8][ETW_NAME_SIZE];
	static unsigned int turn;
	char *name = names[turn++ & 7];

	snprintf(name, ETW_NAME_SIZE, "%s-%d", what, getpid());
	return name;
}

struct etw_session_create session_small(const char *name)
{
	struct etw_session_create create;

	memset(&create, 0, sizeof(create));
	create.size = sizeof(create);
	snprintf((char *)create.name, sizeof(create.name), "%s", name);
	create.subbuf_size = 16384;
	create.nr_subbufs = 8;
	create.flush_ms = ETW_FLUSH_MS_NEVER;
	return create;
}

int session_make(int device, const struct etw_session_create *create)
{
	return call(device, ETW_IOC_SESSION_CREATE, create);
}

int session_open(int device, const char *name)
{
	struct etw_session_open open;

	memset(&open, 0, sizeof(open));
	open.size = sizeof(open);
	snprintf((char *)open.name, sizeof(open.name), "%s", name);
	return call(device, ETW_IOC_SESSION_OPEN, &open);
}

struct etw_session_query session_query(int session)
{
	struct etw_session_query query;
	int err;

	poison(query);
	err = call(session, ETW_IOC_SESSION_QUERY, &query);
	if (err) {
		printf("# QUERY of fd %d: %s\n", session, strerror(-err));
		abort();
	}
	return query;
}

bool session_cpu(int session, unsigned int cpu, struct etw_cpu_query *query)
{
	poison(*query);
	query->cpu = cpu;
	return !call(session, ETW_IOC_SESSION_QUERY_CPU, query) && query->cpu == cpu;
}

struct etw_provider_query session_provider(int session, const char *provider)
{
	struct etw_provider_query query;
	struct etw_provider_list list;
	__u64 id = 0, list_id = 0;
	char alias[ETW_NAME_SIZE];

	for (;;) {
		poison(query);
		query.id = id;
		query.flags = 0;
		if (call(session, ETW_IOC_SESSION_QUERY_PROVIDER, &query))
			break;
		if (!strcmp((char *)query.name, provider))
			return query;
		/* Perhaps it is known to us by its alias. */
		for (list_id = 0;; list_id = list.id) {
			int dev = device_open(), err;

			memset(&list, 0, sizeof(list));
			list.size = sizeof(list);
			list.id = list_id;
			err = call(dev, ETW_IOC_PROVIDER_LIST, &list);
			close(dev);
			if (err)
				break;
			memcpy(alias, list.alias, sizeof(alias));
			if (!memcmp(list.guid, query.guid, 16) && !strcmp(alias, provider))
				return query;
		}
		id = query.id;
	}
	memset(&query, 0, sizeof(query));
	return query;
}

uint64_t session_flush(int session)
{
	struct etw_flush flush;
	int err;

	poison(flush);
	flush.timeout_ms = 60000;
	flush.reserved = 0;
	err = call(session, ETW_IOC_SESSION_FLUSH, &flush);
	errno = -err;
	return err ? 0 : flush.time;
}

static const char *differ(const char *what, const char *of, uint64_t a, uint64_t b)
{
	static char text[128];

	if (a == b)
		return NULL;
	snprintf(text, sizeof(text), "%s: the session says %llu, %s %llu", what, (unsigned long long)a, of,
		 (unsigned long long)b);
	return text;
}

/* Compares the session's written and lost with the sums of its relays, providers or classes. */
static const char *sums_differ(const struct etw_session_query *q, const char *of, uint64_t written, const uint64_t *lost)
{
	const char *why = differ("written", of, q->written, written);
	unsigned int i;

	for (i = 0; !why && i < ETW_NR_LOST; i++)
		why = differ("lost", of, q->lost[i], lost[i]);
	return why;
}

static const char *sums_of(int session, struct etw_session_query q)
{
	struct etw_provider_query provider;
	struct etw_class_query class;
	struct etw_cpu_query cpu;
	uint64_t written = 0, overwritten = 0, delivered = 0, unread = 0, filtered = 0;
	uint64_t lost[ETW_NR_LOST] = { 0 };
	const char *why;
	unsigned int i, nr = 0;
	__u64 id = 0;

	why = differ("written", "delivered + overwritten + unread", q.written, q.delivered + q.overwritten + q.unread);
	if (why)
		return why;
	for (cpu.cpu = 0; !why; cpu.cpu++) {
		__u32 from = cpu.cpu;
		uint64_t sum = 0;

		poison(cpu);
		cpu.cpu = from;
		if (call(session, ETW_IOC_SESSION_QUERY_CPU, &cpu))
			break;
		nr++;
		why = differ("written of a relay", "delivered + overwritten + unread", cpu.written,
			     cpu.delivered + cpu.overwritten + cpu.unread);
		for (i = 0; i < ETW_NR_LOST; i++) {
			lost[i] += cpu.lost[i];
			sum += cpu.lost[i];
		}
		if (!why)
			why = differ("lost_total of a relay", "the sum of its causes", cpu.lost_total, sum);
		written += cpu.written;
		overwritten += cpu.overwritten;
		delivered += cpu.delivered;
		unread += cpu.unread;
	}
	/* A CPU that found no memory for its relay has lost what no relay knows of. */
	if (nr < sysconf(_SC_NPROCESSORS_CONF) && q.lost[ETW_LOST_CPU] > lost[ETW_LOST_CPU])
		lost[ETW_LOST_CPU] = q.lost[ETW_LOST_CPU];
	if (!why)
		why = sums_differ(&q, "its relays", written, lost);
	if (!why)
		why = differ("overwritten", "its relays", q.overwritten, overwritten);
	if (!why)
		why = differ("delivered", "its relays", q.delivered, delivered);
	if (!why)
		why = differ("unread", "its relays", q.unread, unread);
	if (!why)
		why = differ("relays", "there are", q.nr_relays, nr);
	if (why)
		return why;

	memset(lost, 0, sizeof(lost));
	for (written = 0;; id = provider.id) {
		poison(provider);
		provider.id = id;
		provider.flags = 0;
		if (call(session, ETW_IOC_SESSION_QUERY_PROVIDER, &provider))
			break;
		written += provider.written;
		filtered += provider.filtered;
		for (i = 0; i < ETW_NR_LOST; i++)
			lost[i] += provider.lost[i];
	}
	why = sums_differ(&q, "its providers", written, lost);
	if (!why)
		why = differ("filtered", "its providers", q.filtered, filtered);
	if (why)
		return why;

	memset(lost, 0, sizeof(lost));
	for (written = filtered = nr = 0;; nr++) {
		poison(class);
		class.id = nr;
		if (call(session, ETW_IOC_SESSION_QUERY_CLASS, &class))
			break;
		written += class.written;
		filtered += class.filtered;
		for (i = 0; i < ETW_NR_LOST; i++)
			lost[i] += class.lost[i];
	}
	why = sums_differ(&q, "its classes", written, lost);
	if (!why)
		why = differ("filtered", "its classes", q.filtered, filtered);
	return why ? why : differ("classes", "there are", q.nr_classes, nr);
}

static bool counts_alike(const struct etw_session_query *a, const struct etw_session_query *b)
{
	return a->written == b->written && a->filtered == b->filtered && a->delivered == b->delivered &&
	       a->overwritten == b->overwritten && a->unread == b->unread && !memcmp(a->lost, b->lost, sizeof(a->lost)) &&
	       a->nr_relays == b->nr_relays && a->nr_classes == b->nr_classes;
}

const char *sums_broken(int session)
{
	struct etw_session_query q = session_query(session), after;
	const char *why;
	int i;

	/* A kernel thread renames itself, and a session of all tasks counts it between two of the questions. */
	for (i = 0; i < 1000; i++, q = after) {
		why = sums_of(session, q);
		after = session_query(session);
		if (!why || counts_alike(&q, &after))
			return why;
	}
	return "the session's counts are never at rest";
}

struct etw_enable enable_make(const char *provider)
{
	struct etw_enable enable;

	memset(&enable, 0, sizeof(enable));
	enable.size = sizeof(enable);
	snprintf((char *)enable.name, sizeof(enable.name), "%s", provider);
	return enable;
}

int enable_all(int session, const char *provider)
{
	struct etw_enable enable = enable_make(provider);

	return call(session, ETW_IOC_SESSION_ENABLE, &enable);
}

int enable_events(int session, const char *provider, const char *events)
{
	struct etw_enable enable = enable_make(provider);
	char names[16][ETW_NAME_SIZE];
	size_t len;

	memset(names, 0, sizeof(names));
	while (*events) {
		len = strcspn(events, ",");
		memcpy(names[enable.nr_events++], events, len);
		events += len + !!events[len];
	}
	enable.flags = ETW_ENABLE_IGNORE_KEYWORD_0;
	enable.event_mode = ETW_EVENTS_IN;
	enable.events = (uintptr_t)names;
	return call(session, ETW_IOC_SESSION_ENABLE, &enable);
}

int enable_renames(int session, pid_t pid)
{
	struct etw_enable enable = enable_make("process");
	char name[ETW_NAME_SIZE] = RENAMED;
	__s32 pids[1] = { pid };

	enable.flags = ETW_ENABLE_IGNORE_KEYWORD_0;
	enable.event_mode = ETW_EVENTS_IN;
	enable.events = (uintptr_t)name;
	enable.nr_events = 1;
	enable.pids = (uintptr_t)pids;
	enable.nr_pids = 1;
	return call(session, ETW_IOC_SESSION_ENABLE, &enable);
}

int disable(int session, const char *provider)
{
	struct etw_provider_ref ref;

	memset(&ref, 0, sizeof(ref));
	ref.size = sizeof(ref);
	snprintf((char *)ref.name, sizeof(ref.name), "%s", provider);
	return call(session, ETW_IOC_SESSION_DISABLE, &ref);
}

int relay_open(struct relay *relay, int session, uint32_t cpu)
{
	struct etw_session_query q = session_query(session);
	struct etw_relay_open open = { .size = sizeof(open), .cpu = cpu };
	void *map;
	int err;

	memset(relay, 0, sizeof(*relay));
	relay->cpu = cpu;
	relay->subbuf_size = q.subbuf_size;
	relay->map_size = (size_t)(q.nr_subbufs + 1) * q.subbuf_size;
	relay->fd = call(session, ETW_IOC_SESSION_RELAY_OPEN, &open);
	if (relay->fd < 0)
		return relay->fd;
	map = mmap(NULL, relay->map_size, PROT_READ, MAP_SHARED, relay->fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		close(relay->fd);
		relay->fd = -1;
		return err;
	}
	relay->map = map;
	return 0;
}

void relay_close(struct relay *relay)
{
	if (relay->map)
		munmap((void *)relay->map, relay->map_size);
	if (relay->fd >= 0)
		close(relay->fd);
	relay->map = NULL;
	relay->fd = -1;
}

int relay_get(struct relay *relay, struct etw_subbuf *sb)
{
	poison(*sb);
	return call(relay->fd, ETW_IOC_RELAY_SUBBUF_GET, sb);
}

int relay_put(struct relay *relay)
{
	return call(relay->fd, ETW_IOC_RELAY_SUBBUF_PUT, NULL);
}

struct class *event_next(int dev, struct etw_event_list *list, int *err)
{
	static uint8_t buf[64 << 10];
	const __u64 id = list->id;
	struct class *class;
	const char *why;

	memset(list, 0, sizeof(*list));
	list->size = sizeof(*list);
	list->id = id;
	list->buf = (uintptr_t)buf;
	list->buf_size = sizeof(buf);
	*err = call(dev, ETW_IOC_EVENT_LIST, list);
	if (*err)
		return NULL;
	class = schema_parse(buf, list->used, &why);
	if (!class) {
		printf("# event %llu: %s\n", (unsigned long long)list->id, why);
		*err = -EPROTO;
	}
	return class;
}

int reader_open(struct reader *reader, int session, event_fn fn, void *arg)
{
	int err;

	memset(reader, 0, sizeof(*reader));
	reader->session = session;
	reader->query = session_query(session);
	reader->fn = fn;
	reader->arg = arg;
	err = reader_open_late(reader);
	if (err)
		reader_close(reader);
	return err;
}

static bool is_open(const struct reader *reader, __u32 cpu)
{
	unsigned int i;

	for (i = 0; i < reader->nr; i++)
		if (reader->relays[i].cpu == cpu)
			return true;
	return false;
}

int reader_open_late(struct reader *reader)
{
	struct etw_cpu_query cpu;
	struct stream *s;
	__u32 next = 0;
	int err;

	for (;; next = cpu.cpu + 1) {
		poison(cpu);
		cpu.cpu = next;
		if (call(reader->session, ETW_IOC_SESSION_QUERY_CPU, &cpu))
			return 0;
		if (is_open(reader, cpu.cpu))
			continue;
		reader->relays = realloc(reader->relays, (reader->nr + 1) * sizeof(*reader->relays));
		reader->streams = realloc(reader->streams, (reader->nr + 1) * sizeof(*reader->streams));
		err = relay_open(&reader->relays[reader->nr], reader->session, cpu.cpu);
		if (err)
			return err;
		s = memset(&reader->streams[reader->nr++], 0, sizeof(*s));
		s->cpu = cpu.cpu;
		s->subbuf_size = reader->query.subbuf_size;
		s->overwrite = reader->query.flags & ETW_SESSION_OVERWRITE;
		s->start_time = reader->query.start_time;
		memcpy(s->uuid, reader->query.uuid, 16);
	}
}

static int broken(struct reader *reader, unsigned int i, const char *why)
{
	static char text[400];

	snprintf(text, sizeof(text), "CPU %u, packet %llu: %s", reader->relays[i].cpu,
		 (unsigned long long)reader->streams[i].packets, why);
	reader->error = text;
	return -1;
}

static int drain_relay(struct reader *reader, unsigned int i)
{
	struct relay *relay = &reader->relays[i];
	struct etw_subbuf sb;
	const char *why = NULL;
	int err, packets = 0;

	while (packets <= (int)reader->query.nr_subbufs) {
		err = relay_get(relay, &sb);
		if (err)
			return err == -EAGAIN || err == -ENODATA ? packets : broken(reader, i, strerror(-err));
		if (sb.size != sizeof(sb))
			return broken(reader, i, "GET did not store its own size");
		if (sb.nr_classes > reader->schema.nr && schema_update(&reader->schema, reader->session, &why))
			return broken(reader, i, why ? why : "SCHEMA_READ failed");
		if ((size_t)(sb.index + 1) * relay->subbuf_size > relay->map_size)
			return broken(reader, i, "index outside the mapping");
		why = packet_walk(&reader->streams[i], &sb, relay->map + (size_t)sb.index * relay->subbuf_size,
				  &reader->schema, reader->fn, reader->arg);
		if (why)
			return broken(reader, i, why);
		reader->packets++;
		reader->records += sb.records;
		packets++;
		if (relay_put(relay))
			return broken(reader, i, "PUT failed");
	}
	return packets;
}

int reader_drain(struct reader *reader)
{
	unsigned int i;
	int packets = 0;

	for (i = 0; i < reader->nr; i++) {
		int got = drain_relay(reader, i);

		if (got < 0)
			return -1;
		packets += got;
	}
	return packets;
}

int poll_woken(struct pollfd *p, int ms)
{
	uint64_t begin = now_ns();
	int nr = poll(p, 1, 2 * scaled(ms));

	return now_ns() - begin < scaled(ms) * 1000000ULL ? nr : -ETIME;
}

bool reader_wait(struct reader *reader, int ms)
{
	struct pollfd fds[64];
	unsigned int i;

	for (i = 0; i < reader->nr && i < 64; i++)
		fds[i] = (struct pollfd){ .fd = reader->relays[i].fd, .events = POLLIN };
	if (poll(fds, i, ms) <= 0)
		return false;
	for (i = 0; i < reader->nr && i < 64; i++)
		if (fds[i].revents & POLLIN)
			return true;
	return false;
}

uint64_t reader_gaps(const struct reader *reader)
{
	uint64_t gaps = 0;
	unsigned int i;

	for (i = 0; i < reader->nr; i++)
		gaps += reader->streams[i].gaps;
	return gaps;
}

void reader_close(struct reader *reader)
{
	while (reader->nr)
		relay_close(&reader->relays[--reader->nr]);
	schema_free(&reader->schema);
	free(reader->relays);
	free(reader->streams);
	reader->relays = NULL;
	reader->streams = NULL;
}

void log_event(const struct event *event, void *arg)
{
	struct log *log = arg;
	struct kept *kept;

	if (log->only && !event_is(event, log->only))
		return;
	if (log->nr == log->room) {
		log->room = log->room ? 2 * log->room : 1024;
		log->events = realloc(log->events, log->room * sizeof(*log->events));
	}
	kept = &log->events[log->nr++];
	memset(kept, 0, sizeof(*kept));
	kept->time = event->time;
	kept->seq = event->seq;
	kept->cpu = event->cpu;
	kept->tid = event->tid;
	kept->pid = event->pid;
	kept->extended = event->extended;
	snprintf(kept->name, sizeof(kept->name), "%s", event->class->name);
	snprintf(kept->provider, sizeof(kept->provider), "%s", event->class->provider);
	if (log->number_field && !event_number(event, log->number_field, &kept->number))
		kept->number = INT64_MIN;
	if (log->text_field)
		snprintf(kept->text, sizeof(kept->text), "%.63s", event_text(event, log->text_field));
}

/* @pid 0: anybody's */
static size_t count_of(const struct log *log, const char *name, pid_t pid)
{
	size_t i, nr = 0;

	for (i = 0; i < log->nr; i++)
		nr += (!pid || log->events[i].pid == pid) && !strcmp(log->events[i].name, name);
	return nr;
}

size_t log_count(const struct log *log, const char *name)
{
	return count_of(log, name, 0);
}

size_t log_count_ours(const struct log *log, const char *name)
{
	return count_of(log, name, getpid());
}

void log_free(struct log *log)
{
	free(log->events);
	log->events = NULL;
	log->nr = log->room = 0;
}

void work_rename(const char *tag, unsigned int first, unsigned int nr)
{
	char name[16];

	for (; nr--; first++) {
		snprintf(name, sizeof(name), "%.6s%u", tag, first % 1000000000U);
		prctl(PR_SET_NAME, name);
	}
}

void rename_for_ever(void *cpu)
{
	unsigned int nr = 0;

	pin((intptr_t)cpu);
	for (;;)
		work_rename("load", nr++, 1);
}

void rename_slowly(void *unused)
{
	(void)unused;
	for (;;) {
		work_rename("other", 0, 1);
		usleep(1000);
	}
}

void work_fork(unsigned int nr)
{
	while (nr--) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

void work_pingpong(unsigned int nr, int cpu)
{
	int there[2], back[2];
	unsigned int i;
	pid_t pid;
	char c = 0;

	if (pipe(there) || pipe(back))
		return;
	if (cpu >= 0)
		pin(cpu);
	pid = fork();
	if (!pid) {
		for (i = 0; i < nr; i++)
			if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
				break;
		_exit(0);
	}
	for (i = 0; i < nr; i++)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			break;
	waitpid(pid, NULL, 0);
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
}

void work_touch(unsigned int pages)
{
	size_t size = pages * 4096UL;
	volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (p == MAP_FAILED)
		return;
	madvise((void *)p, size, MADV_NOHUGEPAGE);
	for (i = 0; i < size; i += 4096)
		p[i] = 1;
	munmap((void *)p, size);
}

int work_read(const char *disk, unsigned int nr)
{
	static char buf[4096] __attribute__((aligned(4096)));
	int fd = open(disk, O_RDONLY | O_DIRECT | O_CLOEXEC), err = 0;
	unsigned int i;

	if (fd < 0)
		return -errno;
	for (i = 0; !err && i < nr; i++)
		if (pread(fd, buf, sizeof(buf), (i % 64) * 4096L) != sizeof(buf))
			err = -errno;
	close(fd);
	return err;
}

int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

unsigned int cpus_online(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

int cpu_online(unsigned int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	return file_write(path, online ? "1" : "0");
}

bool cpus_can_go(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpus_online() - 1);
	return !access(path, W_OK);
}

pid_t spawn(void (*fn)(void *), void *arg)
{
	pid_t parent = getpid(), pid = fork();

	/* A group of its own, so that reap() gets its children too; set on both sides, whichever runs first. */
	if (pid) {
		setpgid(pid, pid);
		return pid;
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		fn(arg);
	_exit(0);
}

void reap(pid_t pid)
{
	/* not all that is reaped was made by spawn() */
	if (kill(-pid, SIGKILL))
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int scaled(int ms)
{
	const char *scale = getenv("ETW_SCALE");
	int tenths = scale ? atoi(scale) : 0;

	return ms / 10 * (tenths >= 10 ? tenths : 30);
}

uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void sleep_ms(int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

int file_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return n;
}

char task_state(pid_t tid)
{
	char path[64], text[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (file_read(path, text, sizeof(text)) < 0)
		return 0;
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int module_load(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return err;
}

int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}
