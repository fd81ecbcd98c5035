/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test programs share: calls on /dev/etw that give -errno, a reader of all relays of a session, workloads,
 * waiting with a deadline. It asserts nothing and does not know the test harness.
 */
#ifndef ETW_SELFTEST_UTIL_H
#define ETW_SELFTEST_UTIL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <linux/etw.h>

#include "packet.h"

#define POISON 0xcc

/* Fills @what with POISON and sets its size. */
#define poison(what) poison_bytes(&(what), sizeof(what))
void poison_bytes(void *what, size_t size);

/* ioctl(2), but a failure is -errno. */
int call(int fd, unsigned int cmd, const void *arg);

/* /dev/etw, or -errno. */
int device_open(void);

/* A name no other test uses: @what with the caller's pid. Valid until the eighth call after this one. */
const char *unique(const char *what);

/* Fills in a valid session description with small, quick settings: 8 sub-buffers of 16 KiB, no flush timer. */
struct etw_session_create session_small(const char *name);
/* Session fds, or -errno. */
int session_make(int device, const struct etw_session_create *create);
int session_open(int device, const char *name);
/* Asks for the sums of @session; exits loudly if even that fails. */
struct etw_session_query session_query(int session);
bool session_cpu(int session, unsigned int cpu, struct etw_cpu_query *query);
/* Counts of the provider with this name in @session; all zero if it has none. */
struct etw_provider_query session_provider(int session, const char *provider);
/* Delivers what was recorded so far; the promised time, or 0 with errno set. */
uint64_t session_flush(int session);

/*
 * The sums that hold exactly while nothing is recorded: written = delivered + overwritten + unread for the session and each
 * relay, and the session's sums are those of its relays, its providers and its classes. NULL, or the one that does not hold.
 * Asked once more where the session's counts changed meanwhile.
 */
const char *sums_broken(int session);

/* Enables all of a provider. 1, 0 (remembered), or -errno. */
int enable_all(int session, const char *provider);
/* Enables only the events named, a comma-separated list; not the provider's rundown, which has no keyword. */
int enable_events(int session, const char *provider, const char *events);
/* Enables the renaming of the threads of process @pid only: events that come when the test asks for them, no others. */
int enable_renames(int session, pid_t pid);
/* Fills in a valid ENABLE of everything. */
struct etw_enable enable_make(const char *provider);
int disable(int session, const char *provider);

/* A relay file with its mapping. */
struct relay {
	int fd;
	uint32_t cpu;
	const uint8_t *map;
	size_t map_size;
	uint32_t subbuf_size;
};

/* 0, or -errno with nothing left open. */
int relay_open(struct relay *relay, int session, uint32_t cpu);
void relay_close(struct relay *relay);
/* 0, or -errno: GET without anything else. */
int relay_get(struct relay *relay, struct etw_subbuf *sb);
int relay_put(struct relay *relay);

/*
 * The event of any provider after the one in @list, which is zero at first. The caller frees it; its entry is at list->buf until
 * the next call. NULL: *@err is -ENOENT at the end, -EPROTO of a malformed one, or what EVENT_LIST says.
 */
struct class *event_next(int dev, struct etw_event_list *list, int *err);

/* All relays of a session, each packet checked. */
struct reader {
	int session;
	struct etw_session_query query;
	struct schema schema;
	unsigned int nr;
	struct relay *relays;
	struct stream *streams;
	event_fn fn;
	void *arg;
	uint64_t packets;
	uint64_t records;
	const char *error;	/* the rule that was broken, and where */
};

/* Opens the relays of @session. 0, or -errno with nothing left open. */
int reader_open(struct reader *reader, int session, event_fn fn, void *arg);
/* Opens those that came since: of CPUs that were away. 0, or -errno. */
int reader_open_late(struct reader *reader);
/*
 * poll() of one file within scaled(@ms). One that was not woken looks once more when its time is over, and is -ETIME here
 * whatever it then finds.
 */
int poll_woken(struct pollfd *p, int ms);
/*
 * Reads what is there, but no more than a relay can hold: who writes faster than we read does not keep us. Packets read,
 * or -1 with reader->error set.
 */
int reader_drain(struct reader *reader);
/* Waits at most @ms for a packet in any relay; true if there is one. */
bool reader_wait(struct reader *reader, int ms);
/* Sequence numbers missing so far in all relays. */
uint64_t reader_gaps(const struct reader *reader);
void reader_close(struct reader *reader);

/* Events kept for looking at later. */
struct kept {
	uint64_t time;
	uint64_t seq;
	uint32_t cpu;
	int32_t tid;
	int32_t pid;
	bool extended;
	char name[64];
	char provider[64];
	int64_t number;		/* of the field that the log was told to keep */
	char text[64];
};

struct log {
	const char *number_field;
	const char *text_field;
	const char *only;	/* event name, NULL all */
	struct kept *events;
	size_t nr;
	size_t room;
};

/* An event_fn whose @arg is a struct log. */
void log_event(const struct event *event, void *arg);
size_t log_count(const struct log *log, const char *name);
/* This process's only: kernel threads fork and rename themselves at any time. */
size_t log_count_ours(const struct log *log, const char *name);
void log_free(struct log *log);

/* Workloads. Every one returns when it is done. */
#define RENAMED "task_rename"
/* @nr events task_rename of the calling thread, named "<tag><number>" from @first on; @tag has at most 6 characters. */
void work_rename(const char *tag, unsigned int first, unsigned int nr);
/* For spawn(): on a CPU, as fast as it goes; and one every millisecond, anywhere. */
void rename_for_ever(void *cpu);
void rename_slowly(void *unused);
void work_fork(unsigned int nr);
/* @nr round trips between two processes; they share a CPU if @cpu is not negative. */
void work_pingpong(unsigned int nr, int cpu);
void work_touch(unsigned int pages);
/* @nr reads of 4096 bytes, O_DIRECT, from a block device. 0 or -errno. */
int work_read(const char *disk, unsigned int nr);

/* The calling thread runs on @cpu only. 0 or -errno. */
int pin(int cpu);
/* Brings a CPU, or takes it away. 0, or -errno. */
int cpu_online(unsigned int cpu, bool online);
/* Does this kernel do that at all? */
bool cpus_can_go(void);
unsigned int cpus_online(void);
/* A process that runs @fn(@arg) until it is killed, and dies with its parent. @group: its number of CPUs to spread over. */
pid_t spawn(void (*fn)(void *), void *arg);
void reap(pid_t pid);

/* Milliseconds, scaled for this machine (environment variable ETW_SCALE: tenths; three times if it does not say). */
int scaled(int ms);
uint64_t clock_ns(clockid_t id);
uint64_t now_ns(void);			/* of the monotonic clock */
void sleep_ms(int ms);
/* Waits until @condition, looking every few milliseconds, at most scaled(@ms). False if it never came true. */
#define wait_until(ms, condition) ({						\
	uint64_t _end = now_ns() + scaled(ms) * 1000000ULL;			\
	bool _ok;								\
	while (!(_ok = (condition)) && now_ns() < _end)				\
		sleep_ms(5);							\
	_ok; })

/* Reads or writes a small file. Bytes, or -errno. */
int file_read(const char *path, char *text, size_t room);
int file_write(const char *path, const char *text);

/* The letter that /proc gives a thread's state: 'S' it sleeps. 0: there is none. */
char task_state(pid_t tid);

/* Modules: a file, and one that is loaded. 0, or -errno; unloading does not wait. */
int module_load(const char *path, const char *parameters);
int module_unload(const char *name);

#endif
