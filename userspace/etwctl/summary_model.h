/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analysis behind `etwctl summary`: what is kept about tasks, CPUs, disks and faults, and the functions that feed it.
 * Pure code: it must not know libetw, files or output. Times are nanoseconds of one clock for all CPUs; events come in
 * the order of their times.
 *
 * Memory grows with the number of live processes and threads, devices, (process, device) pairs of these, and activities that are
 * open or kept, not with the trace; where all rows are to be shown also with the number of all processes.
 */
#ifndef ETWCTL_SUMMARY_MODEL_H
#define ETWCTL_SUMMARY_MODEL_H

#include "summary_hist.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uthash.h>

#define SUM_COMM	16
#define SUM_FOREVER	UINT64_MAX

/* ---------------------------------------------------------------- input */

enum sum_kind {
	SUM_OTHER,		/* no meaning of its own; says that its tid runs on its cpu */
	SUM_FOREIGN,		/* the same without that: written on behalf of another task */
	SUM_SWITCH,
	SUM_WAKING,
	SUM_WAKEUP,
	SUM_WAKEUP_NEW,
	SUM_FORK,
	SUM_EXEC,
	SUM_RENAME,
	SUM_EXIT,		/* by the thread itself; it runs on for a moment */
	SUM_FREE,
	SUM_BIO_QUEUE,
	SUM_BIO_COMPLETE,
	SUM_RQ_INSERT,
	SUM_RQ_ISSUE,
	SUM_RQ_COMPLETE,
	SUM_FAULT_USER,
	SUM_FAULT_KERNEL,
	SUM_DUMP_TASK,
	SUM_DUMP_DISK,
	SUM_START,		/* of an activity */
	SUM_STOP,
	SUM_WORK,		/* any other event with an activity id */
	SUM_SUSPEND,		/* the thread leaves the activity, which goes on */
	SUM_NR_KINDS
};

/* Text of an event: not terminated. */
struct sum_text {
	const char *s;
	size_t len;
};

/**
 * struct sum_event - one event, as far as the analysis needs it
 * @time: ns. @cpu, @tid, @pid: where and by whom it was written. @source: number of the trace it came from.
 */
struct sum_event {
	enum sum_kind kind;
	uint64_t time;
	uint32_t cpu;
	uint32_t source;
	int32_t tid;
	int32_t pid;
	union {
		struct {		/* SWITCH */
			struct sum_text prev_comm, next_comm;
			int32_t prev_tid, next_tid;
			int64_t prev_state;
			bool preempt;
		} sw;
		struct {		/* WAKING, WAKEUP, WAKEUP_NEW, RENAME, FREE, EXEC (name is a path), DUMP_TASK */
			struct sum_text name;
			int32_t tid;
			int32_t pid;	/* DUMP_TASK: its process */
			int32_t old_tid;	/* EXEC */
			bool kernel;	/* DUMP_TASK: a kernel thread */
		} task;
		struct {		/* FORK */
			struct sum_text child_name;
			int32_t parent_tid, child_tid, child_pid;
		} fork;
		struct {		/* BIO_*, RQ_* */
			struct sum_text comm;
			uint64_t sector;
			uint32_t dev;	/* major << 20 | minor */
			uint32_t nr;	/* sectors of 512 bytes */
			uint32_t rwbs;
			int32_t error;
			int32_t tid;
		} blk;
		struct {		/* FAULT_* */
			uint64_t address, ip;
			uint32_t error_code;
		} fault;
		struct {		/* DUMP_DISK */
			struct sum_text name;
			uint32_t dev;
			uint32_t whole;	/* of a partition: its disk; else itself, or 0 not known */
		} disk;
		struct {		/* START, STOP, WORK, SUSPEND */
			const char *provider, *name;
			const uint8_t *id, *related;	/* 16 bytes; @related NULL or zeroes: none */
			struct sum_text fields;	/* START, STOP: what else it says, for people */
			uint16_t task;	/* number of the descriptor, 0 none */
		} act;
	};
};

/* Bits of rwbs as lttng-modules defines them. */
#define SUM_RWBS_WRITE		0x001
#define SUM_RWBS_DISCARD	0x002
#define SUM_RWBS_READ		0x004
#define SUM_RWBS_FLUSH		0x100
#define SUM_RWBS_PREFLUSH	0x400

/* ---------------------------------------------------------------- tasks */

struct sum_run {
	uint64_t cpu_ns;
	uint64_t wait_ns;		/* runnable, not running */
	uint64_t switches;		/* times it left a CPU */
	uint64_t preempted;		/* of these, still runnable */
	struct sum_hist wakeup;		/* woken (or forked) to running */
};

enum sum_access { SUM_READ_ACCESS, SUM_WRITE_ACCESS, SUM_EXEC_ACCESS, SUM_NR_ACCESS };

/*
 * Where an address lies, from the address and the error code alone, for the usual x86-64 layout (memory maps are not in
 * the trace): see sum_fault_area().
 */
enum sum_area {
	SUM_AREA_CODE,			/* an instruction fetch */
	SUM_AREA_STACK,			/* the main thread's stack */
	SUM_AREA_MAPPED,		/* mmap: libraries, files, anonymous memory, stacks of other threads */
	SUM_AREA_IMAGE,			/* the program, its data and its heap */
	SUM_AREA_NULL,			/* the first 64 KiB */
	SUM_AREA_OTHER,			/* elsewhere in user space */
	SUM_AREA_KERNEL,
	SUM_AREA_HIDDEN,		/* a kernel address that the session does not show */
	SUM_NR_AREAS
};

struct sum_faults {
	uint64_t n[SUM_NR_AREAS][SUM_NR_ACCESS];
	uint64_t total;
	uint64_t by_kernel;		/* taken while the kernel worked for the process */
	uint64_t protection;		/* the page was there: copy on write, or a wrong access */
};

struct sum_proc {
	int32_t pid;			/* 0 idle, -1 the writeback of all kernel workers */
	char name[SUM_COMM];		/* of its first thread, the latest */
	bool named_by_leader;
	bool kernel;
	bool provisional;		/* made for a thread whose process is not known */
	bool writeback;
	bool leader_freed;		/* its first thread */
	bool ended;			/* whoever has its number now is another */
	bool kept;			/* while the ended are looked through */
	struct sum_proc *root;		/* a provisional one that turned out to be part of another */
	uint32_t threads;		/* seen */
	uint32_t alive;			/* of these */
	uint32_t refs;			/* of bios under way, activities, and provisional ones */
	struct sum_share *only;		/* while the ended are looked through: of the only disk it used, or NULL */
	struct sum_run run;
	struct sum_faults *faults;	/* NULL: none */
	struct sum_proc *next;		/* in order of appearance */
	UT_hash_handle hh;		/* by pid, those not ended */
};

enum sum_state { SUM_UNKNOWN, SUM_RUNNING, SUM_RUNNABLE, SUM_SLEEPING };

/* What a thread does for an activity, and an activity at one moment: what comes first here of what its threads do. */
enum sum_doing {
	SUM_ON_CPU,
	SUM_WAITING,			/* runnable */
	SUM_ON_DISK,			/* asleep, not to be disturbed, while an I/O of its own is under way */
	SUM_BLOCKED,			/* asleep otherwise */
	SUM_UNTOLD,			/* no event told */
	SUM_IDLE,			/* of an activity: no thread works for it */
	SUM_NR_DOING
};

struct sum_thread {
	int32_t tid;
	char comm[SUM_COMM];
	struct sum_proc *proc;
	enum sum_state state;
	bool woken;			/* RUNNABLE by a wake-up, not by preemption */
	bool wanted;			/* passes --pid and --comm */
	uint64_t since;			/* in this state */
	uint64_t early;			/* woken while still on its way off the CPU, 0 no */
	bool deep;			/* SLEEPING uninterruptibly */
	enum sum_doing doing;
	uint64_t disk_since;		/* SUM_ON_DISK: what waiting is not yet given to an I/O began then */
	uint64_t seq;			/* no other thread's, ever */
	int32_t parent;			/* the thread that made its process; 0: this is not its first, or not known */
	uint64_t parent_seq;
	unsigned int ios;		/* its own, under way */
	unsigned int io_gaps;		/* ... since this loss of events */
	struct sum_activity **work;	/* what it works for; the last one counts, the others go on after it */
	unsigned int nr_work;
	struct sum_thread *beside;	/* the next one that works for the same */
	UT_hash_handle hh;
};

#define SUM_NOBODY	(-1)

struct sum_cpu {
	bool seen;
	bool lossy;			/* events of it were lost */
	bool lost;			/* ... since the last event that agrees with cur */
	uint64_t lossy_to;		/* end of the last such time that has begun */
	int32_t cur;			/* tid or SUM_NOBODY */
	uint64_t since;			/* cur runs since then, or nobody is known since then */
	uint64_t last;			/* last event that agrees with cur */
	uint64_t end;			/* nothing is known after this, 0 = end of trace */
	int32_t other;			/* who runs according to an event that disagrees, SUM_NOBODY none did */
	uint64_t other_first, other_last;
	uint64_t busy_ns, idle_ns, unknown_ns, switches;
	struct sum_seen {		/* events of this very time, to know the same event in another trace */
		enum sum_kind kind;
		uint32_t source;
		uint64_t key;
	} at_time[64];
	uint64_t time;
	unsigned int nr_at_time;
};

/* ---------------------------------------------------------------- disks */

enum sum_op { SUM_READ, SUM_WRITE, SUM_DISCARD, SUM_FLUSH, SUM_NR_OPS };

struct sum_io {
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	struct sum_hist latency;	/* submitted to completed */
	struct sum_hist service;	/* issued to completed; of devices only */
};

/* A bio between block_bio_queue and its last sector's completion. */
struct sum_bio {
	struct sum_proc *proc;
	uint64_t queued;
	uint64_t seq;			/* order of arrival */
	uint64_t sector;
	uint32_t nr;
	uint32_t to_issue;		/* sectors not yet in a request */
	uint32_t to_complete;
	enum sum_op op;
	bool guessed;			/* its submission was not seen: the process is that of the request's event */
	bool wanted;
	bool failed;
	bool issued;			/* flushes: a flush was issued after it came */
	int32_t tid;
	struct sum_activity *work;	/* that its thread worked for */
	uint64_t thread;		/* the thread's seq, 0 none */
	unsigned int gaps;		/* losses before it */
};

/* A request between its issue and its completion, and the pieces of bios in it. */
struct sum_rq {
	uint64_t sector;		/* of what is left */
	uint32_t nr;			/* that is left */
	uint32_t total;
	uint64_t issued;
	enum sum_op op;
	bool wanted;			/* something in it is */
	unsigned int nr_parts;
	unsigned int part;		/* first that is left */
	struct sum_part {
		struct sum_bio *bio;
		uint32_t nr;
	} *parts;
	struct sum_rq *next;
};

struct sum_disk {
	uint32_t dev;
	char name[32];			/* "" if no event told it: show major:minor */
	struct sum_disk *whole;		/* the disk this is a partition of, or itself */
	bool has_requests;		/* not a partition, not a bio-based device */
	struct sum_bio **bios;		/* not wholly issued, by sector and age */
	unsigned int nr_bios, max_bios;
	uint32_t largest;		/* sectors of the largest bio seen */
	struct sum_bio **flushes;
	unsigned int nr_flushes, max_flushes;
	uint64_t flush_issued;		/* 0: none under way */
	struct sum_rq *rqs, **rqs_tail;	/* in flight, oldest first */
	unsigned int nr_rqs;
	struct sum_io io[SUM_NR_OPS];	/* requests; bios if there are none */
	uint64_t requeued;
	uint64_t started_before;	/* completed, and issued before the trace */
	uint64_t unfinished;		/* not completed in the trace, or their completion was lost */
	UT_hash_handle hh;
};

/* What one process did on one disk. */
struct sum_share {
	struct {
		struct sum_proc *proc;
		struct sum_disk *disk;
	} key;
	struct sum_io io[SUM_NR_OPS];
	uint64_t guessed;		/* of these, attributed by the request only */
	UT_hash_handle hh;
};

/* ---------------------------------------------------------------- activities */

/* One I/O of an activity. */
struct sum_act_io {
	struct sum_disk *disk;
	enum sum_op op;
	bool failed;
	uint32_t nr;			/* sectors */
	uint64_t sector;
	uint64_t begin;			/* submitted */
	uint64_t took;			/* from then to its end */
	uint64_t waited;		/* of it, time the thread slept for it */
	int32_t tid;
	char comm[SUM_COMM];
};

/* All I/Os of one operation on one disk, of an activity or of all of a kind. */
struct sum_act_disk {
	struct sum_disk *disk;
	enum sum_op op;
	uint64_t count, bytes, errors;
	uint64_t waited, longest;
	uint64_t activities;		/* of a kind: how many waited */
};

/* Activities of one provider and name. */
struct sum_act_kind {
	const char *provider;
	char *name;			/* of the start event, without "Start" at its end */
	uint64_t unfinished;		/* never stopped */
	uint64_t started_before;	/* stopped, and started before the trace */
	uint64_t lossy;			/* of those counted in @duration: events were lost meanwhile */
	struct sum_hist duration;
	uint64_t ns[SUM_NR_DOING];
	uint64_t cpu_ns;
	struct sum_act_disk *disks;
	unsigned int nr_disks;
	struct sum_act_kind *next;
};

#define SUM_ACT_IOS 8			/* kept of one activity: those that were waited for longest */

struct sum_activity {
	uint8_t id[16];
	uint8_t parent_id[16];		/* all 0: none that was told */
	struct sum_act_kind *kind;
	struct sum_act_kind *parent_kind;	/* NULL: the parent was not open */
	uint16_t task;
	char *start_fields, *stop_fields;	/* or NULL */
	struct sum_proc *proc;		/* that started it */
	uint64_t begin, end;
	uint64_t at;			/* accounted up to there */
	uint64_t ns[SUM_NR_DOING];	/* their sum is end - begin */
	uint64_t cpu_ns;		/* of all its threads together */
	uint64_t moves;			/* times another thread than the one before took it up */
	uint64_t last_thread;		/* seq of the last that wrote an event with its id */
	bool open, finished, wanted, cpu_wanted, lossy;
	unsigned int doing[SUM_NR_DOING];	/* threads that work for it, or for one inside it */
	struct sum_thread *threads;	/* that work for it just now */
	struct sum_act_io *ios;		/* by @waited, @took; room for SUM_ACT_IOS, or NULL */
	unsigned int nr_ios;
	struct sum_act_disk *disks;
	unsigned int nr_disks;
	unsigned int refs;
	struct sum_activity *parent;
	struct sum_activity *outer;	/* the one that was open with this id */
	struct sum_activity *older, *newer;	/* among the open */
};

/* ---------------------------------------------------------------- the whole */

/* Events lost on one CPU; the state of that CPU is not known between the two times. */
struct sum_gap {
	uint32_t cpu;
	uint64_t from, to;
};

/**
 * struct sum_filter - what to count; everything is followed all the same
 * @from, @to: from <= time < to; an interval counts as far as it lies inside, an I/O, a wake-up or an activity if it ends
 *	inside.
 * @nr_pids: numbers of threads or processes, 0 all. @nr_comms: shell patterns for thread names. @nr_cpus: CPUs.
 * @top: the first rows of each list of processes, shares and activities to keep, 0 all. The others are counted.
 */
struct sum_filter {
	uint64_t from, to;
	const int32_t *pids;
	unsigned int nr_pids;
	char *const *comms;
	unsigned int nr_comms;
	const uint32_t *cpus;
	unsigned int nr_cpus;
	unsigned int top;
};

struct summary {
	struct sum_filter filter;
	struct sum_gap *gaps;		/* in order of their begin */
	unsigned int nr_gaps, next_gap;
	uint64_t gap_end;		/* end of the last gap that began: what was known before may be stale */
	uint64_t sched_from;		/* scheduler events are recorded since then, 0 not yet */
	uint64_t last_switch;		/* and at least until then: the last one seen on any CPU */
	uint64_t first, last;		/* times of the first and last event */
	uint64_t missed_switches;	/* places where a switch must have been missed */
	uint64_t duplicates;		/* events that several traces recorded */
	uint64_t bio_seq;
	struct sum_cpu *cpus;
	unsigned int nr_cpus;
	struct sum_thread *threads;
	struct sum_proc *procs;		/* by pid, living */
	struct sum_proc *all, **all_tail;
	unsigned int nr_all;
	unsigned int nr_ended;		/* since the ended were last looked through */
	struct {
		uint64_t runs, faulters, shares;	/* rows */
		uint64_t guessed;
	} forgotten;
	struct sum_proc *idle;
	struct sum_proc *writeback;
	struct sum_disk *disks;
	struct sum_share *shares;
	struct sum_faults faults;
	uint64_t thread_seq;
	struct sum_act_id *act_ids;	/* of open activities */
	struct sum_activity *oldest, *newest;	/* open */
	unsigned int nr_open;
	struct sum_act_kind *act_kinds, **act_kinds_tail;
	struct sum_activity **acts;	/* kept; if there is a limit, a heap whose shortest is the first */
	unsigned int nr_acts, max_acts;
	uint64_t kind_count[SUM_NR_KINDS];
};

/* @filter's arrays stay the caller's and must live as long as the summary. @gaps: copied. */
struct summary *summary_new(const struct sum_filter *filter, const struct sum_gap *gaps, unsigned int nr_gaps);
void summary_free(struct summary *s);

/* From @time on every switch is recorded (else: from the first one seen). */
void summary_sched_from(struct summary *s, uint64_t time);

/* Nothing of @cpu is in the trace after @time, though the trace goes on (a stream was cut). */
void summary_cpu_end(struct summary *s, uint32_t cpu, uint64_t time);

/* Feed one event. Returns false if it was a duplicate: another trace has given the same. */
bool summary_event(struct summary *s, const struct sum_event *e);

/* The trace ends at @end: settles what is open. Nothing may be fed afterwards. */
void summary_finish(struct summary *s, uint64_t end);

/* ---------------------------------------------------------------- between the files of the analysis */

static inline bool sum_in_window(const struct summary *s, uint64_t time)
{
	return time >= s->filter.from && time < s->filter.to;
}

bool sum_cpu_wanted(const struct summary *s, uint32_t cpu);

/* summary_task.c */
struct sum_thread *sum_thread_get(struct summary *s, int32_t tid);
struct sum_thread *sum_thread_find(struct summary *s, int32_t tid);
void sum_thread_name(struct summary *s, struct sum_thread *t, struct sum_text name);
void sum_thread_end(struct summary *s, int32_t tid);
void sum_task_event(struct summary *s, const struct sum_event *e);
/* The task @tid does not exist any more. */
void sum_thread_freed(struct summary *s, int32_t tid);
bool sum_name_is_worker(const char *name);
void sum_task_free(struct summary *s);

/* summary_proc.c */
struct sum_proc *sum_proc_new(struct summary *s, int32_t pid);
struct sum_proc *sum_proc_find(struct summary *s, int32_t pid);
struct sum_proc *sum_proc_get(struct summary *s, int32_t pid);
/* Whom the report names: @p, or the process that it turned out to be part of. */
struct sum_proc *sum_proc_root(struct sum_proc *p);
/* The provisional @p is part of @root: what was counted for it is @root's. */
void sum_proc_found(struct sum_proc *p, struct sum_proc *root);
/* A thread of @p has ended, or belongs to another. */
void sum_proc_leave(struct summary *s, struct sum_proc *p);
void sum_proc_leader_freed(struct summary *s, struct sum_proc *p);
/* Another process has its number. */
void sum_proc_end(struct summary *s, struct sum_proc *p);
/* Between two events: frees what no row will be made of. */
void sum_proc_forget(struct summary *s);
void sum_proc_free(struct summary *s);

/* For qsort. Larger first; then by number, so that equal traces give equal reports. */
#define SUM_ORDER(x, y, nx, ny) ((x) != (y) ? ((x) > (y) ? -1 : 1) : (nx) != (ny) ? ((nx) < (ny) ? -1 : 1) : 0)
int sum_by_cpu_time(const void *a, const void *b);	/* struct sum_proc ** */
int sum_by_faults(const void *a, const void *b);	/* these have some */
int sum_by_share_bytes(const void *a, const void *b);	/* struct sum_share ** */
/* Has it a row in the list of that order? */
bool sum_proc_has_run(const struct sum_proc *p);
bool sum_proc_has_faults(const struct sum_proc *p);

/* summary_sched.c */
void sum_sched_event(struct summary *s, const struct sum_event *e);
void sum_sched_gap(struct summary *s, const struct sum_gap *gap);
void sum_sched_finish(struct summary *s, uint64_t end);

/* summary_block.c */
void sum_block_event(struct summary *s, const struct sum_event *e);
void sum_block_finish(struct summary *s);
void sum_block_free(struct summary *s);
struct sum_disk *sum_disk_find(struct summary *s, uint32_t dev);
struct sum_disk *sum_disk_whole(struct sum_disk *d);
uint64_t sum_io_bytes(const struct sum_io io[SUM_NR_OPS]);
/* Disks that @p used; *@one: the share of one of them, or NULL. */
unsigned int sum_share_count(struct summary *s, struct sum_proc *p, struct sum_share **one);
void sum_share_free(struct summary *s, struct sum_share *sh);

/* summary_activity.c */
void sum_activity_event(struct summary *s, const struct sum_event *e);
/* The state of @t has changed. */
void sum_activity_thread(struct summary *s, struct sum_thread *t, uint64_t time);
/* @t is the first thread of a new process, made by the thread @parent. */
void sum_activity_fork(struct summary *s, struct sum_thread *t, int32_t parent, uint64_t time);
/* @t exits: who waits for that may go on before the thread's last switch, which is its end. */
void sum_activity_exit(struct summary *s, struct sum_thread *t, uint64_t time);
void sum_activity_thread_end(struct summary *s, struct sum_thread *t);
/* An I/O of the thread bio->tid has been submitted; is over, on @d at @time, or with @d NULL will not be heard of again. */
void sum_activity_io(struct summary *s, struct sum_bio *bio);
void sum_activity_io_end(struct summary *s, struct sum_bio *bio, struct sum_disk *d, uint64_t time);
void sum_activity_finish(struct summary *s, uint64_t end);
void sum_activity_free(struct summary *s);

/* summary_fault.c */
void sum_fault_event(struct summary *s, const struct sum_event *e);
enum sum_area sum_fault_area(uint64_t address, uint32_t error_code);
enum sum_access sum_fault_access(uint32_t error_code);

#endif
