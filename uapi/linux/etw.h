/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The whole ABI of /dev/etw: objects, commands, structures, record and packet layout. It must not know how the module
 * or the library works inside. ABI.md beside it has the errno table and the promises.
 *
 * Conventions
 *   - Every structure begins with @size, set by the caller to the size it was compiled with. A shorter one than the first
 *     version is EINVAL, one over 4096 bytes E2BIG. Inputs (in whole or in part): a longer structure is accepted if the tail
 *     the kernel does not know is zero (else E2BIG). Outputs (VERSION, SESSION_QUERY and SUBBUF_GET are nothing else): the
 *     kernel fills min(its size, caller's size), zeroes the rest and stores its own size in @size.
 *   - Fields named reserved, and unknown flag bits, must be zero (EINVAL).
 *   - Strings are NUL-terminated inside their array (EINVAL otherwise) and zero-padded on output.
 *   - Pointers to user memory are __u64. Times are of the session's clock: nanoseconds, or cycles
 *     (struct etw_session_query, @clock_freq). In payloads they are nanoseconds. Sizes are bytes.
 *   - New file descriptors are the return value of the command and close-on-exec.
 *   - A fault while copying is EFAULT; an unknown command is ENOTTY. On any error nothing has changed.
 */
#ifndef _UAPI_LINUX_ETW_H
#define _UAPI_LINUX_ETW_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define ETW_ABI_VERSION		1
#define ETW_RECORD_VERSION	1

/* Commands: type byte and number only; a grown structure stays the same command. */
#define ETW_IOC_TYPE		0xE7

/* on the control file, /dev/etw */
#define ETW_IOC_VERSION			_IO(ETW_IOC_TYPE, 0x00)	/* struct etw_version */
#define ETW_IOC_SESSION_CREATE		_IO(ETW_IOC_TYPE, 0x01)	/* struct etw_session_create -> session fd */
#define ETW_IOC_SESSION_OPEN		_IO(ETW_IOC_TYPE, 0x02)	/* struct etw_session_open -> session fd */
#define ETW_IOC_SESSION_LIST		_IO(ETW_IOC_TYPE, 0x03)	/* struct etw_session_query, by id */
#define ETW_IOC_PROVIDER_LIST		_IO(ETW_IOC_TYPE, 0x04)	/* struct etw_provider_list, by id */
#define ETW_IOC_EVENT_LIST		_IO(ETW_IOC_TYPE, 0x05)	/* struct etw_event_list, by id */
#define ETW_IOC_PROVIDER_REGISTER	_IO(ETW_IOC_TYPE, 0x06)	/* struct etw_provider_register -> provider fd */

/* on a session file */
#define ETW_IOC_SESSION_QUERY		_IO(ETW_IOC_TYPE, 0x20)	/* struct etw_session_query */
#define ETW_IOC_SESSION_QUERY_CPU	_IO(ETW_IOC_TYPE, 0x21)	/* struct etw_cpu_query */
#define ETW_IOC_SESSION_QUERY_PROVIDER	_IO(ETW_IOC_TYPE, 0x22)	/* struct etw_provider_query */
#define ETW_IOC_SESSION_QUERY_CLASS	_IO(ETW_IOC_TYPE, 0x23)	/* struct etw_class_query */
#define ETW_IOC_SESSION_ENABLE		_IO(ETW_IOC_TYPE, 0x24)	/* struct etw_enable */
#define ETW_IOC_SESSION_DISABLE		_IO(ETW_IOC_TYPE, 0x25)	/* struct etw_provider_ref */
#define ETW_IOC_SESSION_CAPTURE_STATE	_IO(ETW_IOC_TYPE, 0x26)	/* struct etw_provider_ref */
#define ETW_IOC_SESSION_UPDATE		_IO(ETW_IOC_TYPE, 0x27)	/* struct etw_session_update */
#define ETW_IOC_SESSION_FLUSH		_IO(ETW_IOC_TYPE, 0x28)	/* struct etw_flush */
#define ETW_IOC_SESSION_STOP		_IO(ETW_IOC_TYPE, 0x29)	/* no argument: 0 */
#define ETW_IOC_SESSION_SCHEMA_READ	_IO(ETW_IOC_TYPE, 0x2a)	/* struct etw_schema_read */
#define ETW_IOC_SESSION_RELAY_OPEN	_IO(ETW_IOC_TYPE, 0x2b)	/* struct etw_relay_open -> relay fd */

/* on a relay file */
#define ETW_IOC_RELAY_SUBBUF_GET	_IO(ETW_IOC_TYPE, 0x40)	/* struct etw_subbuf */
#define ETW_IOC_RELAY_SUBBUF_PUT	_IO(ETW_IOC_TYPE, 0x41)	/* no argument: 0 */

/* on a provider file */
#define ETW_IOC_PROVIDER_EVENT		_IO(ETW_IOC_TYPE, 0x60)	/* struct etw_event_register -> number */
#define ETW_IOC_PROVIDER_ENABLED	_IO(ETW_IOC_TYPE, 0x61)	/* struct etw_enabled_query */
#define ETW_IOC_PROVIDER_CAPTURE	_IO(ETW_IOC_TYPE, 0x62)	/* struct etw_capture_query, by id */
#define ETW_IOC_PROVIDER_ANSWER		_IO(ETW_IOC_TYPE, 0x63)	/* struct etw_answer */

/* Limits. */
#define ETW_NAME_SIZE		64		/* a name with its NUL; [A-Za-z][A-Za-z0-9_.-]* */
#define ETW_SUBBUF_SIZE_MIN	4096U
#define ETW_SUBBUF_SIZE_MAX	(4U << 20)
#define ETW_SUBBUF_SIZE_DEFAULT	(128U << 10)
#define ETW_NR_SUBBUFS_MIN	2U
#define ETW_NR_SUBBUFS_MAX	4096U
#define ETW_NR_SUBBUFS_DEFAULT	8U
#define ETW_FLUSH_MS_DEFAULT	1000U
#define ETW_FLUSH_MS_MAX	3600000U	/* one hour */
#define ETW_FLUSH_MS_NEVER	0xffffffffU	/* only full sub-buffers, FLUSH and STOP deliver */
#define ETW_MAX_SESSIONS	256U
#define ETW_MAX_PAYLOAD		65536U		/* and at most sub-buffer size minus 128 */
#define ETW_MAX_PIDS		4096U		/* in one filter */
#define ETW_MAX_EVENT_NAMES	256U		/* in one filter */
#define ETW_MAX_CLASSES		65535U		/* in one session */
#define ETW_MAX_ENABLES		1024U		/* providers one session has ever enabled, unknown ones too */
#define ETW_MAX_FIELDS		128U		/* in one class */
#define ETW_MAX_KEYWORDS	64U		/* with a name, of one provider */
#define ETW_MAX_SCHEMA		65536U		/* bytes of one struct etw_schema with all that belongs to it */
#define ETW_MAX_EVENTS		4096U		/* of one provider file */
#define ETW_USER_CLASS_BYTES	(16U << 20)	/* kernel memory of the event classes of a user who is not trusted */
#define ETW_ALL_CLASS_BYTES	(64U << 20)	/* of all such users together */
#define ETW_MAX_WRITE		131072U		/* bytes of one write to a provider file */
#define ETW_MAX_BATCH		1024U		/* events of one write: nothing else runs on the CPU meanwhile */
#define ETW_RATE_BYTES		256U		/* a larger event counts as one for each so many bytes */
#define ETW_MAX_PREDICATES	16U		/* in one filter */
#define ETW_MAX_EVENT_IDS	256U		/* in one filter */
#define ETW_MAX_PROCESS_NAMES	64U		/* in one filter */

/**
 * struct etw_version - what the loaded module is (VERSION; needs no privilege)
 * @abi: ETW_ABI_VERSION of the module. @record: ETW_RECORD_VERSION.
 * @features: none defined yet.
 * @memory_limit: most bytes that all relays together may take. @memory_used: bytes they take now.
 */
struct etw_version {
	__u32 size;
	__u32 abi;
	__u32 record;
	__u32 reserved;
	__u64 features;
	__u64 memory_limit;
	__u64 memory_used;
};

/* Session clocks. Every session records times of one clock. */
#define ETW_CLOCK_DEFAULT	0	/* monotonic */
#define ETW_CLOCK_MONOTONIC	1
#define ETW_CLOCK_BOOT		2	/* monotonic that counts suspend */
#define ETW_CLOCK_REAL		3	/* monotonic plus the offset to UTC at session start: never steps */
#define ETW_CLOCK_CYCLES	4	/* the CPU's cycle counter, which nobody adjusts; where the kernel relies on it */

/* Session flags. */
#define ETW_SESSION_PERSIST	(1U << 0)	/* outlives the file that created it; ended by STOP and last close */
#define ETW_SESSION_OVERWRITE	(1U << 1)	/* flight recorder: the newest data replaces the oldest */
#define ETW_SESSION_ADDRESSES	(1U << 2)	/* show kernel addresses; needs CAP_SYSLOG and a kernel not locked down */
#define ETW_SESSION_FLAGS	(ETW_SESSION_PERSIST | ETW_SESSION_OVERWRITE | ETW_SESSION_ADDRESSES)

/**
 * struct etw_session_create - make a session; it runs at once, with nothing enabled
 * @flags: ETW_SESSION_*. @name: unique among live sessions, case matters.
 * @subbuf_size: power of two, ETW_SUBBUF_SIZE_MIN..MAX, 0 = default.
 * @nr_subbufs: power of two per CPU, 2..ETW_NR_SUBBUFS_MAX, 0 = default; one more is allocated for the reader.
 * @flush_ms: 1..ETW_FLUSH_MS_MAX, 0 = default, ETW_FLUSH_MS_NEVER.
 * @clock: ETW_CLOCK_*.
 *
 * Returns a session file. Without PERSIST the session stops and ends when this open file (not a duplicate of the
 * session made by SESSION_OPEN) is released. EINVAL a field is out of range; EPERM no CAP_PERFMON or CAP_SYS_ADMIN,
 * or ADDRESSES without CAP_SYSLOG or under lockdown; EEXIST the name is in use; ENOSPC ETW_MAX_SESSIONS exist; EDQUOT
 * the module's memory limit would be passed; ENOMEM the machine has less to spare (a sixteenth of it stays over); EOPNOTSUPP the
 * kernel does not rely on the cycle counter of this machine, so there is no ETW_CLOCK_CYCLES.
 */
struct etw_session_create {
	__u32 size;
	__u32 flags;
	__u8  name[ETW_NAME_SIZE];
	__u32 subbuf_size;
	__u32 nr_subbufs;
	__u32 flush_ms;
	__u32 clock;
};

/**
 * struct etw_session_open - another file on a live session
 * @flags: must be 0.
 *
 * EINVAL malformed name; EPERM as for create (and CAP_SYSLOG if the session shows addresses); ENOENT no such session;
 * ENOMEM.
 */
struct etw_session_open {
	__u32 size;
	__u32 flags;
	__u8  name[ETW_NAME_SIZE];
};

/*
 * Why records were lost, index of the lost[] arrays. Filtered records are not lost; overwritten ones are counted
 * apart.
 */
#define ETW_LOST_NO_ROOM	0	/* discard mode: no free sub-buffer */
#define ETW_LOST_WRAPPED	1	/* the slot still has a writer that was interrupted a whole lap ago */
#define ETW_LOST_NESTED		2	/* nested deeper than task, softirq, hardirq, NMI and machine check */
#define ETW_LOST_TOO_LARGE	3	/* larger than ETW_MAX_PAYLOAD or sub-buffer size minus 128 */
#define ETW_LOST_CPU		4	/* the CPU had no relay yet */
#define ETW_LOST_RATE		5	/* over the rate of an untrusted writer */
#define ETW_NR_LOST		6

#define ETW_SESSION_RUNNING	1
#define ETW_SESSION_STOPPED	2

#define ETW_STOP_NONE		0	/* running */
#define ETW_STOP_REQUEST	1	/* by STOP */
#define ETW_STOP_CLOSED		2	/* its owner's file was closed, or its owner died */
/* Its clock, ETW_CLOCK_CYCLES, can be relied on no more: by the kernel itself. One with PERSIST stays, stopped, until STOP. */
#define ETW_STOP_CLOCK		3

/**
 * struct etw_session_query - a session's settings, state and sums
 * @id: QUERY: out. SESSION_LIST: in, the id after which to look (0 at first); out, the id found, ENOENT at the end.
 * @flags: as created. @uuid: of the trace, in every packet header.
 * @state: ETW_SESSION_RUNNING or _STOPPED. @stop_reason: ETW_STOP_*.
 * @nr_cpus: CPU numbers are below this. @nr_relays: CPUs that have a relay. @nr_classes: length of the class table.
 * @memory: bytes allocated for relays.
 * @start_time, @stop_time: of the session's clock; stop_time 0 while it runs.
 * @clock_offset: nanoseconds to add to the session's clock (to its nanoseconds) for time since the epoch, taken at start.
 * @clock_freq: of the session's clock, ticks in a second: 1000000000, but of ETW_CLOCK_CYCLES that of the counter. A time is
 *	ticks * 1000000000 / @clock_freq nanoseconds, rounded down.
 * @owner_pid, @owner_uid: creator, in the caller's namespaces (0 / overflow id if not visible there).
 * @reader_pid: process holding the reader role in the caller's pid namespace, 0 none, -1 one outside that namespace.
 * @stopper_pid: process that stopped it, 0 none (ETW_STOP_CLOCK).
 * @written: records reserved = committed. @filtered, @lost, @overwritten, @delivered (counted at PUT), @unread. At
 * rest, exactly,
 *	written = delivered + overwritten + unread.
 * @complete_up_to: smallest of the relays' (see struct etw_cpu_query).
 *
 * SESSION_LIST: EPERM no CAP_PERFMON or CAP_SYS_ADMIN; ENOENT no further session.
 */
struct etw_session_query {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u8  name[ETW_NAME_SIZE];
	__u8  uuid[16];
	__u32 state;
	__u32 stop_reason;
	__u32 subbuf_size;
	__u32 nr_subbufs;
	__u32 flush_ms;
	__u32 clock;
	__u32 nr_cpus;
	__u32 nr_relays;
	__u32 nr_classes;
	__u32 nr_enabled;
	__u64 memory;
	__u64 start_time;
	__u64 stop_time;
	__s64 clock_offset;
	__s32 owner_pid;
	__u32 owner_uid;
	__s32 reader_pid;
	__s32 stopper_pid;
	__u64 written;
	__u64 filtered;
	__u64 lost[ETW_NR_LOST];
	__u64 overwritten;
	__u64 delivered;
	__u64 unread;
	__u64 complete_up_to;
	__u64 now;		/* the session's clock at the time of the query */
	__u64 clock_freq;
};

/**
 * struct etw_cpu_query - one relay
 * @cpu: in, look for the first relay of this CPU or a higher one; out, the CPU found. ENOENT none.
 * @next_seq: packet_seq_num of the next packet to be opened. @lost_total: the relay's running count of lost records,
 * as packets carry it.
 * @open_bytes: bytes in the packet not yet closed.
 * @complete_up_to: every record of this CPU with a lower time is in a packet that GET has returned or returns before
 * it says EAGAIN.
 * @first_seq: packet_seq_num of the packet that GET would return next at the earliest.
 */
struct etw_cpu_query {
	__u32 size;
	__u32 cpu;
	__u64 written;
	__u64 lost[ETW_NR_LOST];
	__u64 overwritten;
	__u64 delivered;
	__u64 unread;
	__u64 next_seq;
	__u64 first_seq;
	__u64 lost_total;
	__u64 open_bytes;
	__u64 complete_up_to;
};

/* Enable flags. */
#define ETW_ENABLE_IGNORE_KEYWORD_0	0x10U	/* events without a keyword do not pass */
#define ETW_ENABLE_UID			0x100U	/* only what a user with @uid registered; the kernel's providers are nobody's */
#define ETW_ENABLE_ANY_PREDICATE	0x200U	/* one predicate is enough; without it all must hold */
#define ETW_ENABLE_FLAGS		(ETW_ENABLE_IGNORE_KEYWORD_0 | ETW_ENABLE_UID | ETW_ENABLE_ANY_PREDICATE)

#define ETW_EVENTS_ALL		0
#define ETW_EVENTS_IN		1	/* only the events named */
#define ETW_EVENTS_OUT		2	/* all but the events named */

/* What a predicate asks of a field. Numbers are compared as the field's type, signed or not; floats as floats. */
#define ETW_OP_EQ		1
#define ETW_OP_NE		2
#define ETW_OP_LT		3	/* numbers only, as the next three */
#define ETW_OP_LE		4
#define ETW_OP_GT		5
#define ETW_OP_GE		6
#define ETW_OP_BITS		7	/* integers: field & value is not 0 */
#define ETW_OP_PREFIX		8	/* strings and CHARS */
#define ETW_OP_CONTAINS		9	/* strings and CHARS */
#define ETW_NR_OPS		10

#define ETW_VALUE_NUMBER	0	/* @value; suits single numbers, EQ .. BITS */
#define ETW_VALUE_TEXT		1	/* @text; suits strings and CHARS; EQ, NE, PREFIX, CONTAINS */
#define ETW_VALUE_BYTES		2	/* @text, as the payload has them; suits GUID, IPV4, IPV6 and MAC; EQ, NE */

/**
 * struct etw_predicate - a condition on one field of the events of an enable
 * @field: its name. An event that has no such field, or one of a type that the operator or the value does not suit, does
 *	not pass.
 * @op: ETW_OP_*. @kind: ETW_VALUE_*; an operator that it does not suit is EINVAL.
 * @value: compared as what it is, cut to nothing: one that the field's type cannot hold makes EQ false. For F32 and F64
 *	the bits of a double. A kernel address that the session does not show is compared as the 0 it is recorded as.
 * @text: at most 63 bytes and zeros. Text ends at the first NUL, in the field too.
 */
struct etw_predicate {
	__u8  field[ETW_NAME_SIZE];
	__u32 op;
	__u32 kind;
	__u64 value;		/* 0 with another kind */
	__u8  text[ETW_NAME_SIZE];	/* zeros with another kind */
};

/**
 * struct etw_enable - enable a provider in the session, or replace its level, keywords and filters
 * @name: provider name or alias, "" = by @guid (then zero-filled names are looked up by GUID only).
 * @level: 0..255, 0 = every level. An event passes if its level is 0 or at most @level.
 * @any, @all: keyword masks; @any 0 = every keyword, and @all is then not used.
 * @event_mode: ETW_EVENTS_*; @events points to @nr_events names of ETW_NAME_SIZE bytes each.
 * @pids: @nr_pids numbers (__s32) of the caller's pid namespace, each a thread or a process (0 the idle tasks); @nr_pids 0
 *	and @pids 0 = no filter. An event passes if its writer's tid or pid, or for scheduler events its subject's (next, wakee,
 *	child), is among them.
 * @ids, @id_mode: as @events and @event_mode, but event ids (__u16). An event passes if both lists let it pass.
 * @processes: @nr_processes names of ETW_NAME_SIZE bytes. An event passes if the writer's process has one of them: the
 *	name of its main thread, which exec sets to the first 15 bytes of the executable's; of the names here no more count.
 * @predicates: @nr_predicates struct etw_predicate, all of which, or with ETW_ENABLE_ANY_PREDICATE one of which, must hold.
 * @uid: with ETW_ENABLE_UID, in the caller's user namespace.
 *
 * Several providers can have one name: each user's own. An enable by name is of all of them, also of those that come later.
 * It replaces the one by the same name or GUID; only of the kernel's providers name, alias and GUID are the same.
 *
 * Synchronous: on return events flow, and the provider's rundown has been written to this session; no list or filter
 * holds it back. Returns 1 if such a provider exists, 0 if not: the enable is remembered and takes effect when it
 * registers. EINVAL a field is out of range, a name is malformed, both or neither of name and GUID, a list without
 * its number or its mode, a negative pid; ESRCH a pid does not exist here; E2BIG a list is too long; ESHUTDOWN the
 * session has stopped; ENOSPC the class table is full, or ETW_MAX_ENABLES; ENOMEM.
 */
struct etw_enable {
	__u32 size;
	__u32 flags;
	__u8  name[ETW_NAME_SIZE];
	__u8  guid[16];
	__u32 level;
	__u32 event_mode;
	__u64 any;
	__u64 all;
	__u64 pids;
	__u64 events;
	__u32 nr_pids;
	__u32 nr_events;
	__u64 ids;
	__u64 processes;
	__u64 predicates;
	__u32 nr_ids;
	__u32 id_mode;
	__u32 nr_processes;
	__u32 nr_predicates;
	__u32 uid;
	__u32 reserved;
};

/**
 * struct etw_provider_ref - a provider of this session (DISABLE, CAPTURE_STATE)
 * @name, @guid: as in struct etw_enable. CAPTURE_STATE: both empty = every enabled provider.
 *
 * CAPTURE_STATE has the kernel's providers write what is there before it returns, and asks programs to, which may answer when
 * they like: to this session alone.
 *
 * DISABLE of one that is not enabled succeeds without effect. EINVAL a malformed name, both name and GUID, or for
 * DISABLE neither; CAPTURE_STATE: ENOENT it is not enabled, EINTR the caller is being killed. ESHUTDOWN the session
 * has stopped (STOP says so too).
 */
struct etw_provider_ref {
	__u32 size;
	__u32 flags;
	__u8  name[ETW_NAME_SIZE];
	__u8  guid[16];
};

/**
 * struct etw_session_update - change a live session
 * @what: bits of the fields to change: ETW_UPDATE_FLUSH_MS. @flush_ms: as for create, but not 0.
 *
 * EINVAL @what is 0 or has an unknown bit, or a field is out of range; ESHUTDOWN the session has stopped.
 */
#define ETW_UPDATE_FLUSH_MS	(1U << 0)
struct etw_session_update {
	__u32 size;
	__u32 what;
	__u32 flush_ms;
	__u32 reserved;
};

/**
 * struct etw_flush - deliver everything recorded so far
 * @timeout_ms: 1..600000, 0 = 10 seconds.
 * @time: out, the promise: every record with a lower time has been delivered.
 * @cpu: out on ETIMEDOUT, a CPU that did not finish.
 *
 * EINVAL @timeout_ms is too large; ETIMEDOUT a record before @time is still being written; EINTR a signal came.
 */
struct etw_flush {
	__u32 size;
	__u32 timeout_ms;
	__u64 time;
	__u32 cpu;
	__u32 reserved;
};

/**
 * struct etw_provider_query - one provider enabled in the session, and its counts
 * @id: in, the id after which to look (0 at first); out, the id found; ENOENT at the end. An id belongs to this
 * session only.
 * @flags: in, 0 (EINVAL); out, as enabled. @registered: 1 if such a provider exists now. @level .. @nr_events,
 * @nr_ids .. @nr_predicates: as enabled. @filtered: what pids, processes and predicates rejected; what a class can never
 * pass (event names and ids, predicates that do not suit it) is not counted, it has no cost.
 */
struct etw_provider_query {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u8  name[ETW_NAME_SIZE];
	__u8  guid[16];
	__u32 level;
	__u32 registered;
	__u64 any;
	__u64 all;
	__u32 event_mode;
	__u32 nr_events;
	__u32 nr_pids;
	__u32 enabled;		/* 0: was enabled once, counts kept */
	__u64 written;
	__u64 filtered;
	__u64 lost[ETW_NR_LOST];
	__u32 nr_ids;
	__u32 id_mode;
	__u32 nr_processes;
	__u32 nr_predicates;
};

/**
 * struct etw_class_query - the counts of one class of the session's table
 * @id: in, the class number. ENOENT beyond the table.
 */
struct etw_class_query {
	__u32 size;
	__u32 id;
	__u64 written;
	__u64 filtered;
	__u64 lost[ETW_NR_LOST];
};

/* Field types. Multi-byte values are little-endian and packed; what the bytes mean is @format. */
#define ETW_TYPE_U8	1
#define ETW_TYPE_U16	2
#define ETW_TYPE_U32	3
#define ETW_TYPE_U64	4
#define ETW_TYPE_S8	5
#define ETW_TYPE_S16	6
#define ETW_TYPE_S32	7
#define ETW_TYPE_S64	8
#define ETW_TYPE_POINTER 9	/* u64, a kernel address: 0 unless the session shows addresses */
#define ETW_TYPE_F32	10
#define ETW_TYPE_F64	11
#define ETW_TYPE_BOOL	12	/* u8, 0 or 1 */
#define ETW_TYPE_CHARS	13	/* @count bytes of UTF-8, zero-padded, not necessarily terminated */
#define ETW_TYPE_STRING	14	/* UTF-8 with its NUL */
#define ETW_TYPE_BINARY	15	/* u32 length, then that many bytes */
#define ETW_TYPE_GUID	16	/* 16 bytes in text order */
#define ETW_TYPE_IPV4	17	/* 4 bytes, network order */
#define ETW_TYPE_IPV6	18	/* 16 bytes */
#define ETW_TYPE_MAC	19	/* 6 bytes */
#define ETW_NR_TYPES	20

/* Arrays of the number types U8 .. BOOL. */
#define ETW_ARRAY_NONE	0
#define ETW_ARRAY_FIXED	1	/* @count elements */
#define ETW_ARRAY_COUNTED 2	/* u32 number of elements, then these */

#define ETW_FORMAT_DEFAULT 0	/* decimal; pointers hexadecimal */
#define ETW_FORMAT_HEX	1
#define ETW_FORMAT_ERRNO 2
#define ETW_FORMAT_PID	3
#define ETW_FORMAT_TIME	4	/* nanoseconds since the epoch */
#define ETW_FORMAT_OCTAL 5
#define ETW_FORMAT_DEV	6	/* block device: major << 20 | minor */
#define ETW_NR_FORMATS	7

/**
 * struct etw_schema_field - one field of a class
 * @name: offset of its name in the entry. @map: offset of a struct etw_schema_map in the entry, 0 = none.
 */
struct etw_schema_field {
	__u32 name;
	__u32 map;
	__u8  type;
	__u8  array;
	__u8  format;
	__u8  reserved;
	__u32 count;
};

#define ETW_MAP_VALUES	0	/* a value has one name */
#define ETW_MAP_FLAGS	1	/* each bit set has a name */

struct etw_schema_value {
	__u64 value;
	__u32 name;		/* offset in the entry */
	__u32 reserved;
};

struct etw_schema_map {
	__u32 kind;		/* ETW_MAP_* */
	__u32 nr;
	struct etw_schema_value values[];
};

/**
 * struct etw_schema - one event class, self-contained: offsets count from the start of the entry
 * @size: bytes of the whole entry, a multiple of 8. @class_id: number in the session's table (EVENT_LIST: 0).
 * @guid, @event_id .. @keyword: provider and descriptor. @provider, @name: offsets of the names.
 * @ctf_name: offset of the name the event has in a CTF trace, 0 = Provider:Event;keywords; as the consumer makes it.
 * @fields: offset of @nr_fields struct etw_schema_field.
 */
struct etw_schema {
	__u32 size;
	__u32 class_id;
	__u8  guid[16];
	__u64 keyword;
	__u16 event_id;
	__u16 task;
	__u8  version;
	__u8  level;
	__u8  opcode;
	__u8  reserved;
	__u32 provider;
	__u32 name;
	__u32 ctf_name;
	__u32 description;	/* offset of one line of text, 0 = none */
	__u32 fields;
	__u32 nr_fields;
};

/* Opcodes: those that the kernel's own providers use, and ETW's for activities that wait and go on. */
#define ETW_OPCODE_INFO		0
#define ETW_OPCODE_START	1
#define ETW_OPCODE_STOP		2
#define ETW_OPCODE_DC_START	3	/* rundown: the state of something that was there already */
#define ETW_OPCODE_RESUME	7
#define ETW_OPCODE_SUSPEND	8

#define ETW_LEVEL_CRITICAL	1
#define ETW_LEVEL_ERROR		2
#define ETW_LEVEL_WARNING	3
#define ETW_LEVEL_INFO		4
#define ETW_LEVEL_VERBOSE	5

/**
 * struct etw_schema_read - classes of the session's table, from number @from on, as many as fit
 * @buf, @buf_size: room for struct etw_schema entries. @used: out, bytes filled. @nr: out, entries. @nr_classes: out,
 * length of the table.
 *
 * The table only grows; a class is in it before any packet can hold its records. EMSGSIZE not even one entry fits:
 * @used is then the room it needs (at most 64 KiB). Reading at the end gives nr 0. EINVAL @from is beyond the end;
 * ENOMEM.
 */
struct etw_schema_read {
	__u32 size;
	__u32 from;
	__u64 buf;
	__u32 buf_size;
	__u32 used;
	__u32 nr;
	__u32 nr_classes;
};

struct etw_keyword {
	__u64 mask;
	__u8  name[32];
};

#define ETW_PROVIDER_KERNEL	(1U << 0)	/* of the module or of another one */
#define ETW_PROVIDER_TRUSTED	(1U << 1)	/* who registered it could also control sessions */

/**
 * struct etw_provider_list - one provider
 * @id: in, the id after which to look (0 at first); out, the id found; ENOENT at the end.
 * @flags: in, 0 (EINVAL); out, ETW_PROVIDER_*. @alias: short name, may be empty. @nr_sessions: sessions that have it
 * enabled.
 * @nr_events, @nr_unavailable: classes, and those whose source this kernel lacks.
 * @keywords: 0, or room for @nr_keywords struct etw_keyword; @nr_keywords: out, how many there are.
 *
 * Without CAP_PERFMON or CAP_SYS_ADMIN only the caller's own providers are there (EVENT_LIST: and their events). ENOMEM.
 */
struct etw_provider_list {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u8  name[ETW_NAME_SIZE];
	__u8  alias[ETW_NAME_SIZE];
	__u8  guid[16];
	__u32 nr_events;
	__u32 nr_unavailable;
	__u32 nr_sessions;
	__u32 nr_keywords;
	__u64 keywords;
	__u32 uid;		/* who registered it, in the caller's user namespace; 0 of the kernel's */
	__u32 nr_registrations;	/* provider files; 0 of the kernel's */
	__s32 pid;		/* who registered it last, in the caller's pid namespace; 0 of the kernel's, or not visible */
	__u32 reserved;
};

#define ETW_EVENT_AVAILABLE	(1U << 0)
#define ETW_EVENT_RUNDOWN	(1U << 1)	/* written by rundown only */

/**
 * struct etw_event_list - one event class of any provider
 * @id: in, the id after which to look (0 at first); out, the id found; ENOENT at the end. Ids of a provider's events
 * follow each other.
 * @flags: in, 0 (EINVAL); out, ETW_EVENT_*. @reason: out, why it is not available.
 * @buf, @buf_size: room for its struct etw_schema. @used: out, bytes filled.
 *
 * EMSGSIZE @buf is too small, @used is then the room it needs; ENOMEM.
 */
struct etw_event_list {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u64 provider_id;
	__u64 buf;
	__u32 buf_size;
	__u32 used;
	__u8  reason[ETW_NAME_SIZE];
};

/**
 * struct etw_relay_open - the relay of one CPU
 * @cpu: CPU number. ENODEV no relay for it (yet); EINVAL not a CPU number; EBUSY another session file holds the
 * reader role (QUERY
 *	tells whose), or this relay is open already; ENOMEM.
 *
 * The session file that opens a relay takes the session's reader role, and keeps it until the last of its relay files
 * is closed. mmap of a relay file: offset 0, length (nr_subbufs + 1) * subbuf_size, PROT_READ, MAP_SHARED; sub-buffer
 * i is at i * subbuf_size. EPERM writable or executable; EINVAL another length or offset, or private. poll: POLLIN a packet can be
 * got; POLLHUP the session has stopped and everything is read. On a session file: POLLIN some relay has a packet,
 * POLLPRI a relay came with its CPU and was not opened yet, POLLHUP stopped.
 */
struct etw_relay_open {
	__u32 size;
	__u32 cpu;
};

/**
 * struct etw_subbuf - one packet, lent to the reader until PUT
 * @index: which sub-buffer of the mapping. @content_size, @packet_size: bytes; write packet_size bytes to a file.
 * @nr_classes: classes of the session's table that are needed to read the packet, at most.
 * @seq: packet_seq_num. @begin, @end: its times. @records: how many. @lost: running count of the relay at its end.
 *
 * GET repeated without PUT returns the same packet. EAGAIN nothing is ready; ENODATA nothing is ready and the session
 * has stopped. PUT without GET by this file is EINVAL.
 */
struct etw_subbuf {
	__u32 size;
	__u32 index;
	__u32 content_size;
	__u32 packet_size;
	__u32 nr_classes;
	__u32 records;
	__u64 seq;
	__u64 begin;
	__u64 end;
	__u64 lost;
};

/**
 * struct etw_provider_register - make a provider of the caller's own; needs no privilege
 * @flags: must be 0. @name: see ETW_NAME_SIZE. @guid: 0 = ETW's hash of the name.
 * @keywords: @nr_keywords struct etw_keyword, at most ETW_MAX_KEYWORDS; the mask not 0, the name a name.
 *
 * Returns a provider file. Files with the same name, GUID and user id are registrations of one provider, which is there
 * as long as one of them is: until the last close and the end of the last mapping. The keywords are those of the latest.
 * Whoever holds the file may write; records carry the ids of the thread that does. A process that cannot control sessions
 * (CAP_PERFMON or CAP_SYS_ADMIN) when it registers is not trusted: its records take at most three quarters of a relay, and
 * are limited to a rate for each user, session and CPU (module parameter untrusted_rate): so many events a second, and not
 * more than ETW_RATE_BYTES for each of these, header and payload. What was not used of a tenth of a second can be made up for,
 * and one event is always as much as that. In overwrite mode nothing is full, so the rate alone is what they are held to.
 *
 * EINVAL a malformed name, keyword or number; E2BIG too many keywords; EPERM the name (in any case) or GUID is one of the
 * kernel's, or begins with "Linux-"; EDQUOT the user, or all users together, have as many as they may; ENOMEM.
 */
struct etw_provider_register {
	__u32 size;
	__u32 flags;
	__u8  name[ETW_NAME_SIZE];
	__u8  guid[16];
	__u64 keywords;
	__u32 nr_keywords;
	__u32 reserved;
};

/*
 * Fields of these names and of type GUID, if they are the first of a class, are ETW's activity id and related activity id
 * of the event. A class has none, the first, or both, in this order.
 */
#define ETW_FIELD_ACTIVITY	"activity_id"
#define ETW_FIELD_RELATED	"related_activity_id"

/**
 * struct etw_event_register - add an event class to a provider file
 * @flags: must be 0.
 * @schema: a struct etw_schema of @schema_size = its own size bytes, with fields, maps and strings behind it; @class_id,
 *	@guid, @provider and @ctf_name are 0. Nothing of the type ETW_TYPE_POINTER. Names of fields, values and the event
 *	are names as in ETW_NAME_SIZE; field names differ. Fields can have one map together; maps of the same content are one.
 * @reserved: must be 0.
 *
 * Returns the event's number in this file, from 0 on: the index of its enable byte, and what a write says. A class that is
 * registered again has the same number. When the command returns, sessions that have the provider
 * enabled get the event. mmap of a provider file: offset 0, one page, PROT_READ, shared or private; one byte for each event
 * number, not 0 while some session wants it (with filters it may still be rejected): 1, or ETW_ENABLED_ASK from when somebody,
 * a child that ends too, closed a descriptor of the file until the next PROVIDER_ENABLED. Then the number that a program has
 * noted may be another file's. The mapping stays where it is, has
 * room for all events, and is inherited by fork. EPERM writable or executable; EINVAL another length or offset.
 *
 * EINVAL malformed; E2BIG more than ETW_MAX_FIELDS fields or ETW_MAX_SCHEMA bytes; ENOSPC ETW_MAX_EVENTS; EDQUOT the user,
 * or all users together, have as many as they may or ETW_USER_CLASS_BYTES or ETW_ALL_CLASS_BYTES of memory (a class takes about
 * twice what its schema has), or a session has as many; ENOMEM.
 */
#define ETW_ENABLED_ASK	255
struct etw_event_register {
	__u32 size;
	__u32 flags;
	__u64 schema;
	__u32 schema_size;
	__u32 reserved;
};

/**
 * struct etw_enabled_query - what sessions want of a provider file's provider
 * @flags: must be 0.
 * @changes: rises with each ENABLE, DISABLE, end of a session and CAPTURE_STATE that concerns the provider. poll says POLLIN
 *	while it is not what the last query on this file said.
 * @captures: how many CAPTURE_STATE there were: if it has risen, the program should write what is there, to who asked:
 *	PROVIDER_CAPTURE.
 * @nr_sessions: that have it enabled; 0: these three are 0. @level: the highest, 255 every level. @any: all bits that one of
 *	them asks for. @all: those that all ask for.
 * @registration: what tells the file from every other one that there is or was.
 */
struct etw_enabled_query {
	__u32 size;
	__u32 flags;
	__u64 changes;
	__u64 captures;
	__u32 nr_sessions;
	__u32 level;
	__u64 any;
	__u64 all;
	__u64 registration;
};

/**
 * struct etw_capture_query - a session's CAPTURE_STATE of a provider file's provider: its latest, while it has it enabled
 * @id: in, the id after which to look (0 at first); out, the id found; ENOENT at the end. Later requests have higher ids.
 * @flags: in, 0 (EINVAL). @level, @any, @all: what the session wants, level 255 every one.
 */
struct etw_capture_query {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u32 level;
	__u32 reserved;
	__u64 any;
	__u64 all;
};

/**
 * struct etw_answer - write events to the session alone that asked for them
 * @flags: must be 0. @id: of struct etw_capture_query.
 * @events: @bytes of events, as in a write; its rules and limits hold, filters of the session too.
 *
 * ENOENT nobody asked this provider with that id, the session has asked again since, has it enabled no more, or is gone.
 * EINVAL, E2BIG, ENOMEM, ENOBUFS and EMSGSIZE as for a write.
 */
struct etw_answer {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u64 events;
	__u32 bytes;
	__u32 reserved;
};

/**
 * struct etw_write - head of one event in a write to a provider file
 * @size: bytes of the event, this head included. @index: of the class. @flags: must be 0.
 *
 * A write or writev is one or more events, each a head and the fields of its class, packed, without anything between
 * them; how they are spread over iovecs does not matter. Either all are taken or none: the result is the number of bytes.
 * The events of one write have one time stamp, in their order.
 *
 * EINVAL not what the schema says, or an unknown index; E2BIG more than ETW_MAX_PAYLOAD, ETW_MAX_WRITE or ETW_MAX_BATCH;
 * EFAULT; ENOMEM. All the same taken, but not by every session that wants them: ENOBUFS a session lost some for lack of
 * room or over the rate; EMSGSIZE for one they are too large. These are in the sessions' counts.
 */
struct etw_write {
	__u32 size;
	__u16 index;
	__u16 flags;
};

/*
 * Packets and records, CTF 1.8, little-endian, packed: the bytes in a sub-buffer.
 *
 *   packet header 24, packet context 52, then records: header 6 (compact) or 14 (extended), context 8, payload.
 *   The first record of a packet is extended, and any 2^32 ns (ticks of the clock) or more after the one before it.
 */
#define ETW_CTF_MAGIC		0xC1FC1FC1U
#define ETW_ID_EXTENDED		0xffff

struct etw_packet_header {
	__u32 magic;
	__u8  uuid[16];
	__u32 stream_id;		/* 0 */
	__u64 timestamp_begin;
	__u64 timestamp_end;
	__u64 content_size;		/* bits */
	__u64 packet_size;		/* bits */
	__u64 packet_seq_num;
	__u64 events_discarded;
	__u32 cpu_id;
} __attribute__((packed));

struct etw_record_compact {
	__u16 id;
	__u32 timestamp;		/* low half */
	__s32 tid;
	__s32 pid;
} __attribute__((packed));

struct etw_record_extended {
	__u16 id_extended;		/* ETW_ID_EXTENDED */
	__u32 id;
	__u64 timestamp;
	__s32 tid;
	__s32 pid;
} __attribute__((packed));

#endif /* _UAPI_LINUX_ETW_H */
