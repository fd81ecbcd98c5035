/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The public interface of libetw: controller, schemas, consumer, writer, repair. It knows the ABI of /dev/etw
 * (linux/etw.h) and must not know how the library or the module works inside.
 *
 * Conventions
 *   - Functions that can fail return a negative errno; etw_last_error() then has one line that names the thing and the
 *     way out. Functions that step through a list return 1 for an item and 0 for the end.
 *   - Every *_free and *_close accepts NULL. Option structures begin with @size: set it with sizeof, zero the rest
 *     (`struct etw_writer_options o = { .size = sizeof(o) };`); a NULL pointer means all defaults.
 *   - Structures that the library fills or owns (struct etw_class, etw_field, etw_event, etw_trace ...) are read-only
 *     and may grow at their end; never allocate or copy arrays of them.
 *   - Times are nanoseconds, also where the session's clock ticks in cycles, and also in struct etw_session_query and
 *     struct etw_cpu_query. "Session clock" is the clock of one session; "epoch" is nanoseconds since 1970 UTC.
 *   - One object belongs to one thread at a time; different objects are independent. The error text is per thread.
 */
#ifndef ETW_ETW_H
#define ETW_ETW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/etw.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ETW_API __attribute__((visibility("default")))

struct etw_control;		/* /dev/etw, open */
struct etw_session;		/* one file on a live session */
struct etw_classes;		/* a table of event classes, by number */
struct etw_consumer;		/* events of sessions and directories in time order */
struct etw_writer;		/* a session being written into a directory */

/* Version of the library, "major.minor.patch". */
ETW_API const char *etw_library_version(void);

/* What went wrong in the last failed call of this thread; never NULL, one line without newline. */
ETW_API const char *etw_last_error(void);

/* ---------------------------------------------------------------- names, GUIDs */

#define ETW_GUID_TEXT_SIZE 37	/* "b3864c38-4273-58c5-545b-8b3608343471" and its NUL */

/* Text with or without braces, any case, to 16 bytes in text order. -EINVAL. */
ETW_API int etw_guid_parse(const char *text, __u8 guid[16]);
ETW_API void etw_guid_format(const __u8 guid[16], char text[ETW_GUID_TEXT_SIZE]);

/* ETW's hash of a provider name (any case). -EINVAL: not ASCII or empty. */
ETW_API int etw_guid_from_name(const char *name, __u8 guid[16]);

/* 1 if @name is [A-Za-z][A-Za-z0-9_.-]* and shorter than ETW_NAME_SIZE, else 0. */
ETW_API int etw_name_valid(const char *name);

/* "no_room", "wrapped" ...; "unknown" for a cause this library does not know. */
ETW_API const char *etw_lost_name(unsigned int cause);
/* The same for people: "no free sub-buffer: reader too slow or buffers too small" ... */
ETW_API const char *etw_lost_text(unsigned int cause);
ETW_API const char *etw_clock_name(unsigned int clock);	/* "monotonic", "boot", "real", "cycles" */
ETW_API int etw_clock_parse(const char *text);		/* ETW_CLOCK_*, -EINVAL */
ETW_API const char *etw_level_name(unsigned int level);	/* "always", "critical" ... "verbose", NULL above 5 */
ETW_API int etw_level_parse(const char *text);		/* a name (info, warn, warning ...) or 0..255, -EINVAL */
ETW_API const char *etw_type_name(unsigned int type);	/* "u8", "chars" ... */
ETW_API const char *etw_format_name(unsigned int format);	/* "default", "hex" ... */

/* ---------------------------------------------------------------- schemas */

#define ETW_SIZE_VARIES 0xffffffffU

struct etw_map_value {
	__u64 value;
	const char *name;
};

struct etw_map {
	__u32 kind;			/* ETW_MAP_* */
	__u32 nr;
	const struct etw_map_value *values;
};

/**
 * struct etw_field - one field of a class
 * @name: as declared. @ctf_name: as in CTF without the leading underscore; unique in the class.
 * @type, @array, @format, @count: as in struct etw_schema_field. @map: names of values, or NULL.
 * @element_size: bytes of one element (of the whole value for CHARS, GUID, IPV4, IPV6, MAC; 1 for STRING and BINARY).
 * @size: bytes in the payload, or ETW_SIZE_VARIES. @offset: from the start of the payload, or ETW_SIZE_VARIES.
 */
struct etw_field {
	const char *name;
	const char *ctf_name;
	const struct etw_map *map;
	__u8 type;
	__u8 array;
	__u8 format;
	__u8 reserved;
	__u32 count;
	__u32 element_size;
	__u32 size;
	__u32 offset;
};

/**
 * struct etw_class - one event class
 * @class_id: its number in the table it came from. @index: in a consumer: dense, unique over all inputs, so that
 *	callers keep their own arrays by it (classes of equal content from several inputs are one class); in a table:
 *	class_id.
 * @ctf_name: the name in a CTF trace, always set. @description: one line or "".
 * @payload_size: bytes, or ETW_SIZE_VARIES.
 * @schema: the entry as it came from the kernel, schema->size bytes.
 */
struct etw_class {
	__u32 class_id;
	__u32 index;
	const char *provider;
	const char *name;
	const char *ctf_name;
	const char *description;
	__u8 guid[16];
	__u64 keyword;
	__u16 event_id;
	__u16 task;
	__u8 version;
	__u8 level;
	__u8 opcode;
	__u8 reserved;
	__u32 nr_fields;
	__u32 payload_size;
	const struct etw_field *fields;
	const struct etw_schema *schema;
};

/*
 * Make a class of one entry of at most @len bytes; everything in it is checked, the bytes are copied. @used (may be
 * NULL): bytes the entry takes. -EBADMSG: malformed, the text says where.
 */
ETW_API int etw_class_parse(const void *entry, size_t len, size_t *used, struct etw_class **cls);
ETW_API void etw_class_free(struct etw_class *cls);

/* Index of the field called @name (declared or CTF name), or -1. */
ETW_API int etw_class_field(const struct etw_class *cls, const char *name);

/*
 * Prepared look-up: index[i] = index of the field names[i], or -1. Returns how many are missing. Do it once for each
 * class, keep the result by cls->index, and use it for every event.
 */
ETW_API int etw_class_fields(const struct etw_class *cls, const char *const *names, int *index, unsigned int nr);

/*
 * 1 if the shell pattern @text (fnmatch) matches the class's name, its CTF name, "Provider:name", or, when
 * @text is "Provider:" with nothing behind, its provider; else 0.
 */
ETW_API int etw_class_match(const struct etw_class *cls, const char *text);

/* A table of classes, numbered from 0 in the order they were added. */
ETW_API int etw_classes_new(struct etw_classes **table);
ETW_API void etw_classes_free(struct etw_classes *table);
/*
 * Parse the entries in @buf, one after the other, and append them; class_id must continue the table. Number added,
 * -EBADMSG.
 */
ETW_API int etw_classes_add(struct etw_classes *table, const void *buf, size_t len);
ETW_API unsigned int etw_classes_count(const struct etw_classes *table);
ETW_API const struct etw_class *etw_classes_get(const struct etw_classes *table, unsigned int class_id);
/* The first class with this provider (NULL = any) and name or CTF name; NULL if there is none. */
ETW_API const struct etw_class *etw_classes_find(const struct etw_classes *table, const char *provider,
						 const char *name);

/* ---------------------------------------------------------------- controller */

/**
 * etw_control_open - open /dev/etw and check its ABI
 *
 * -ENODEV: no such device, the module is not loaded. -EACCES: the device may not be opened by this user.
 * -EPROTO: the module has another ABI than this library. etw_last_error() says what to do.
 */
ETW_API int etw_control_open(struct etw_control **control);
ETW_API void etw_control_close(struct etw_control *control);
ETW_API int etw_control_fd(const struct etw_control *control);
ETW_API int etw_control_version(struct etw_control *control, struct etw_version *version);

/* Lists: start with id = 0 in @info, call until 0 is returned. -EPERM without privilege. */
ETW_API int etw_control_next_session(struct etw_control *control, struct etw_session_query *info);
/* @keywords (may be NULL): info->nr_keywords of them, valid until the next call on @control. */
ETW_API int etw_control_next_provider(struct etw_control *control, struct etw_provider_list *info,
				      const struct etw_keyword **keywords);
/* @cls (may be NULL): valid until the next call on @control. */
ETW_API int etw_control_next_event(struct etw_control *control, struct etw_event_list *info,
				   const struct etw_class **cls);
/* Look up one provider by name, alias (any case) or GUID text: fills @info (and @keywords). -ENOENT. */
ETW_API int etw_control_find_provider(struct etw_control *control, const char *text, struct etw_provider_list *info,
				      const struct etw_keyword **keywords);

/**
 * struct etw_session_options - settings of a new session, 0 = the module's default
 * @flags: ETW_SESSION_*. @subbuf_size: bytes. @flush_ms: or ETW_FLUSH_MS_NEVER. @clock: ETW_CLOCK_*.
 */
struct etw_session_options {
	size_t size;
	__u32 flags;
	__u32 subbuf_size;
	__u32 nr_subbufs;
	__u32 flush_ms;
	__u32 clock;
};

/* Errors as in linux/etw.h. The session ends with etw_session_close() or this process, unless ETW_SESSION_PERSIST. */
ETW_API int etw_session_create(struct etw_control *control, const char *name, const struct etw_session_options *options,
			       struct etw_session **session);
ETW_API int etw_session_open(struct etw_control *control, const char *name, struct etw_session **session);
ETW_API void etw_session_close(struct etw_session *session);
/* For poll: POLLIN some relay has a packet, POLLPRI a relay was added, POLLHUP stopped. */
ETW_API int etw_session_fd(const struct etw_session *session);
ETW_API const char *etw_session_name(const struct etw_session *session);

/**
 * struct etw_enable_options - how to enable a provider
 * @provider: name, alias or GUID text.
 * @level, @any, @all, @flags: as in struct etw_enable (level 0 and any 0 = everything).
 * @event_mode: ETW_EVENTS_*; @events: @nr_events names.
 * @pids: @nr_pids threads or processes, 0 = no filter.
 * @id_mode: ETW_EVENTS_*; @ids: @nr_ids event ids.
 * @processes: @nr_processes names of programs, of which 15 bytes count, 0 = no filter.
 * @predicates: @nr_predicates conditions on fields, 0 = no filter; all must hold, or with ETW_ENABLE_ANY_PREDICATE one.
 * @uid: with ETW_ENABLE_UID.
 */
struct etw_enable_options {
	size_t size;
	const char *provider;
	__u32 flags;
	__u32 level;
	__u64 any;
	__u64 all;
	__u32 event_mode;
	__u32 nr_events;
	const char *const *events;
	const __s32 *pids;
	__u32 nr_pids;
	__u32 id_mode;
	const __u16 *ids;
	const char *const *processes;
	const struct etw_predicate *predicates;
	__u32 nr_ids;
	__u32 nr_processes;
	__u32 nr_predicates;
	__u32 uid;
};

/* Returns 1: events flow. 0: no such provider yet, remembered. */
ETW_API int etw_session_enable(struct etw_session *session, const struct etw_enable_options *options);
ETW_API int etw_session_disable(struct etw_session *session, const char *provider);
/* @provider NULL = every enabled one. */
ETW_API int etw_session_capture_state(struct etw_session *session, const char *provider);
ETW_API int etw_session_update_flush_ms(struct etw_session *session, __u32 flush_ms);
/*
 * @time (may be NULL): every record with a lower time of the session clock has been delivered. -ETIMEDOUT names a CPU.
 */
ETW_API int etw_session_flush(struct etw_session *session, unsigned int timeout_ms, __u64 *time);
ETW_API int etw_session_stop(struct etw_session *session);

ETW_API int etw_session_query(struct etw_session *session, struct etw_session_query *query);
/* In: the lowest CPU wanted in query->cpu; so loop with `q.cpu++`. 1 found, 0 no more. */
ETW_API int etw_session_query_cpu(struct etw_session *session, struct etw_cpu_query *query);
/* By query->id, as the lists of the control file. */
ETW_API int etw_session_next_provider(struct etw_session *session, struct etw_provider_query *query);
/* 1, or 0 beyond the table. */
ETW_API int etw_session_query_class(struct etw_session *session, __u32 class_id, struct etw_class_query *query);
/* Read the classes that @table does not have yet. Returns how many were added. */
ETW_API int etw_session_read_classes(struct etw_session *session, struct etw_classes *table);

/* ---------------------------------------------------------------- events */

/**
 * struct etw_event - one event, valid until the next call on its consumer
 * @time: session clock. @epoch: since 1970; events of all inputs come in the order of this, and within one boot
 *	and clock all inputs use one offset, so that differences are exact.
 * @cpu: where it was written. @tid, @pid: writing thread and its process, initial pid namespace.
 * @trace: number of the input it came from (order of etw_consumer_add_*).
 * @payload, @size: its fields, packed. @offsets: the library's.
 */
struct etw_event {
	const struct etw_class *cls;
	__u64 time;
	__s64 epoch;
	__u32 cpu;
	__s32 tid;
	__s32 pid;
	__u32 trace;
	const __u8 *payload;
	__u32 size;
	__u32 record_size;		/* bytes in the stream, header and contexts included */
	const __u32 *offsets;
};

/*
 * Field access. @field is an index into cls->fields; a negative or too large one, or one of another kind, gives 0,
 * "" or NULL, so that an absent field needs no special case. Integers are widened as their type says; a bool is 0
 * or 1.
 */
ETW_API __u64 etw_event_uint(const struct etw_event *event, int field);
ETW_API __s64 etw_event_int(const struct etw_event *event, int field);
ETW_API double etw_event_double(const struct etw_event *event, int field);
/* CHARS and STRING; not terminated: @len has its length (up to the first NUL). Never NULL. */
ETW_API const char *etw_event_string(const struct etw_event *event, int field, size_t *len);
/* The value's bytes without a length prefix: BINARY, GUID, addresses, arrays, strings without NUL, numbers. */
ETW_API const void *etw_event_bytes(const struct etw_event *event, int field, size_t *len);
/* Arrays: number of elements (1 for what is no array), and one of them. */
ETW_API unsigned int etw_event_count(const struct etw_event *event, int field);
ETW_API __u64 etw_event_element(const struct etw_event *event, int field, unsigned int i);
/*
 * As text, as the field's type, format and map say; control characters and invalid UTF-8 as \xNN. Like snprintf:
 * returns the length it needs without NUL, writes at most @size bytes.
 */
ETW_API size_t etw_event_format(const struct etw_event *event, int field, char *buf, size_t size);

/* ---------------------------------------------------------------- consumer */

/**
 * struct etw_consumer_options
 * @stop_fd: when it becomes readable a waiting etw_consumer_next() returns -EINTR; 0 = none.
 * @from, @to: epoch times, 0 = open: only events with from <= epoch < to are returned, packets outside are not touched.
 * @want: called once for each class when it is first seen; returns 0: its events are skipped. NULL = all.
 */
struct etw_consumer_options {
	size_t size;
	int stop_fd;
	__s64 from;
	__s64 to;
	int (*want)(void *arg, const struct etw_class *cls);
	void *arg;
};

ETW_API int etw_consumer_new(const struct etw_consumer_options *options, struct etw_consumer **consumer);
ETW_API void etw_consumer_free(struct etw_consumer *consumer);

#define ETW_TRACE_FOLLOW	(1U << 0)	/* it is still being written: wait for more until its writer is done */

/*
 * Add a trace directory: DIR, or its DIR/kernel. All packets' headers are read now, so that losses and damage of
 * packets are known before the first event (not with FOLLOW). Damage is no error: what can be read is. -ENOENT: no
 * such trace. -EBADMSG: it is not ours (no schema file) or nothing of it can be read. Returns the input's number.
 */
ETW_API int etw_consumer_add_trace(struct etw_consumer *consumer, const char *dir, unsigned int flags);
/*
 * Add a live session, which stays the caller's and must outlive the consumer. Takes its reader role: -EBUSY names the
 * process that has it. Returns the input's number.
 */
ETW_API int etw_consumer_add_session(struct etw_consumer *consumer, struct etw_session *session);

/**
 * etw_consumer_next - the next event of all inputs in time order
 * @timeout_ms: how long to wait when live inputs have nothing that is certainly next; -1 = for ever.
 *
 * 1: *event is set. 0: all inputs have ended. -EAGAIN: nothing yet. -EINTR: stop_fd or a signal. Others: an input
 * failed.
 */
ETW_API int etw_consumer_next(struct etw_consumer *consumer, const struct etw_event **event, int timeout_ms);

/* Classes seen so far; numbers are their index. */
ETW_API unsigned int etw_consumer_nr_classes(const struct etw_consumer *consumer);
ETW_API const struct etw_class *etw_consumer_class(const struct etw_consumer *consumer, unsigned int index);

/* What a session's provider was set to and counted, when the trace was finished (or now, of a live session). */
struct etw_trace_provider {
	char name[ETW_NAME_SIZE];
	__u8 guid[16];
	__u32 level;
	__u64 any;
	__u64 all;
	__u64 written;
	__u64 filtered;
	__u64 lost[ETW_NR_LOST];
};

/**
 * struct etw_trace - facts about one input
 * @path: directory, or the session's name if live.
 * @finished: the writer ended it normally. 0 for a trace still written, or whose writer died: @stop, counts and
 *	@providers are then what is known (stop = end of the last packet).
 * @start, @stop: session clock; add @offset for epoch. @first: begin of the first packet (later than start in a
 *	snapshot).
 * @discarded: events that the packets say were lost. @lost: by cause, from the session's own counts (0 if not
 *	@finished).
 * @bytes: stream bytes. @boot_id, @hostname, @kernel: of the machine traced, may be "".
 * @command: what was recorded (`etwctl record -- CMD`), or "".
 */
struct etw_trace {
	const char *path;
	const char *name;
	__u8 uuid[16];
	__u32 live;
	__u32 finished;
	__u32 clock;
	__u32 flags;			/* ETW_SESSION_* */
	__s64 offset;
	__u64 start;
	__u64 stop;
	__u64 first;
	__u32 subbuf_size;
	__u32 nr_subbufs;
	__u32 flush_ms;
	__u32 nr_cpus;			/* streams */
	__u64 nr_packets;
	__u64 bytes;
	__u64 discarded;
	__u64 lost[ETW_NR_LOST];
	__u64 written;
	__u64 filtered;
	__u64 overwritten;
	const char *boot_id;
	const char *hostname;
	const char *kernel;
	const char *command;
	__u32 nr_providers;
	const struct etw_trace_provider *providers;
};

ETW_API unsigned int etw_consumer_nr_traces(const struct etw_consumer *consumer);
ETW_API const struct etw_trace *etw_consumer_trace(const struct etw_consumer *consumer, unsigned int trace);

/* Events lost on one CPU between two times; windows that touch are one. */
struct etw_loss {
	__u32 trace;
	__u32 cpu;
	__u64 begin;			/* session clock */
	__u64 end;
	__u64 events;			/* 0 if only packets are known to be missing */
	__u64 packets;
};

/* Something in a file that is not as it must be. Text is one sentence; offset in bytes. */
struct etw_damage {
	__u32 trace;
	__u32 cpu;			/* ~0: not a stream */
	const char *file;
	__u64 offset;
	__u64 bytes;			/* that cannot be read because of it, 0 unknown */
	const char *what;
};

ETW_API unsigned int etw_consumer_nr_losses(const struct etw_consumer *consumer);
ETW_API const struct etw_loss *etw_consumer_loss(const struct etw_consumer *consumer, unsigned int i);
ETW_API unsigned int etw_consumer_nr_damages(const struct etw_consumer *consumer);
ETW_API const struct etw_damage *etw_consumer_damage(const struct etw_consumer *consumer, unsigned int i);

/* ---------------------------------------------------------------- writer */

#define ETW_WRITER_CIRCULAR	(1U << 0)	/* with max_size: keep the newest */
#define ETW_WRITER_SNAPSHOT	(1U << 1)	/* what an overwrite session holds now; the session goes on */
#define ETW_WRITER_NO_CAPTURE	(1U << 2)	/* snapshot: do not ask for the rundown first */

struct etw_writer_stats {
	__u64 events;
	__u64 bytes;			/* written to stream files, and for circular mode still there */
	__u64 packets;
	__u64 lost;			/* by the running counts of the packets written so far */
	__u64 dropped_events;		/* circular mode: oldest ones given up */
	__u64 dropped_bytes;
	__u64 start;			/* session clock */
	__u64 now;
	__u64 unwritten; /* after finish: events that an error (disk full) kept in the relays; counted in lost */
};

/**
 * struct etw_writer_options
 * @flags: ETW_WRITER_*. @max_size: bytes of all stream files, 0 = no limit; without CIRCULAR the writer stops
 *	there (what the relays then hold is still written). With CIRCULAR at least four sub-buffers for each CPU.
 * @stop_fd: readable = etw_writer_run() ends; 0 = none.
 * @progress: called by etw_writer_run() every @progress_ms (0 = 1000); a non-zero return ends the run.
 * @command: recorded in session.json, or NULL.
 */
struct etw_writer_options {
	size_t size;
	__u32 flags;
	int stop_fd;
	__u64 max_size;
	unsigned int progress_ms;
	int (*progress)(void *arg, const struct etw_writer_stats *stats);
	void *arg;
	const char *command;
};

/*
 * Make DIR (it must not exist, or be an empty directory: else -EEXIST) and take the session's reader role
 * (-EBUSY). When it returns, all relays are held. The session stays the caller's and must outlive the writer.
 */
ETW_API int etw_writer_create(struct etw_session *session, const char *dir, const struct etw_writer_options *options,
			      struct etw_writer **writer);

/* Why the writer wants to end. */
#define ETW_WRITER_MORE		1	/* it does not */
#define ETW_WRITER_ENDED	0	/* session stopped and everything read, or snapshot complete */
#define ETW_WRITER_FULL		2	/* max_size reached */
#define ETW_WRITER_STOPPED	3	/* etw_writer_run: stop_fd or progress */

/*
 * Wait at most @timeout_ms for data and write what there is. Returns ETW_WRITER_*, or an error: -ENOSPC, -EDQUOT,
 * -EIO, -ECANCELED (the session's clock failed) ... After an error everything written so far is whole packets; call
 * etw_writer_finish() all the same.
 */
ETW_API int etw_writer_step(struct etw_writer *writer, int timeout_ms);
/* Step until there is a reason to end, and return it. */
ETW_API int etw_writer_run(struct etw_writer *writer);
/*
 * End the trace: stop the session (not with SNAPSHOT), write what is left, close every stream, write the facts.
 * After an error of a step it does what still can be done, and returns that error again.
 */
ETW_API int etw_writer_finish(struct etw_writer *writer);
ETW_API void etw_writer_stats(const struct etw_writer *writer, struct etw_writer_stats *stats);
/* Without etw_writer_finish() before, the directory is left as a killed writer leaves it. */
ETW_API void etw_writer_free(struct etw_writer *writer);

/* ---------------------------------------------------------------- repair */

/*
 * Make DIR readable for other tools: cut every stream after its last whole packet, restore the metadata, close the
 * streams.
 * @report (may be NULL): called for every change and for what could not be mended. Returns the number of changes
 *	(0: nothing was wrong), or an error: -EBADMSG not ours, -EBUSY a writer is still at work there.
 */
ETW_API int etw_trace_repair(const char *dir, void (*report)(void *arg, const struct etw_damage *damage), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* ETW_ETW_H */
