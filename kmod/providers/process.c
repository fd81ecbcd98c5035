// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider Linux-Kernel-Process: processes and threads as they come, change and go, and by rundown all there are.
 * Knows no session but to hand it on.
 */
#include <linux/binfmts.h>
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/uidgid.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "../event.h"
#include "providers.h"
#include "task.h"

#define KEYWORD_FORK	BIT_ULL(0)
#define KEYWORD_EXEC	BIT_ULL(1)
#define KEYWORD_EXIT	BIT_ULL(2)
#define KEYWORD_RENAME	BIT_ULL(3)

static const struct etw_keyword_name keywords[] = {
	{ KEYWORD_FORK, "fork" },
	{ KEYWORD_EXEC, "exec" },
	{ KEYWORD_EXIT, "exit" },
	{ KEYWORD_RENAME, "rename" },
};

ETW_DECLARE_PROBE(sched_process_fork, struct task_struct *parent, struct task_struct *child);
ETW_DECLARE_PROBE(sched_process_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm);
ETW_DECLARE_PROBE(sched_process_free, struct task_struct *p);
ETW_DECLARE_PROBE(task_rename, struct task_struct *task, const char *comm);

/* Since 7.3 the kernel tells probes whether the last thread of the process goes. */
#define EXIT_PLAIN	ETW_TP_IS(sched_process_exit, struct task_struct *)
#define EXIT_GROUP	ETW_TP_IS(sched_process_exit, struct task_struct *, bool)
static_assert(EXIT_PLAIN + EXIT_GROUP == 1, "tracepoint sched_process_exit has another prototype in this kernel");
static void probe_exit_plain(void *data, struct task_struct *p);
static void probe_exit_group(void *data, struct task_struct *p, bool group_dead);

#define SCHED_PROCESS_FORK(F)				\
	F(COMM, parent_comm, DEFAULT, NULL)		\
	F(S32, parent_tid, PID, NULL)			\
	F(S32, parent_pid, PID, NULL)			\
	F(U32, parent_ns_inum, DEFAULT, NULL)		\
	F(COMM, child_comm, DEFAULT, NULL)		\
	F(S32, child_tid, PID, NULL)			\
	F(SEQ_S32, vtids, PID, NULL)			\
	F(S32, child_pid, PID, NULL)			\
	F(U32, child_ns_inum, DEFAULT, NULL)

ETW_EVENT(sched_process_fork, SCHED_PROCESS_FORK, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_FORK,
	  .opcode = ETW_OPCODE_START, .ctf_name = "sched_process_fork",
	  .description = "A thread made another, or a process; vtids are its numbers from the outermost pid namespace to its own",
	  ETW_HOOK(sched_process_fork));

#define SCHED_PROCESS_EXEC(F)				\
	F(STRING, filename, DEFAULT, NULL)		\
	F(S32, tid, PID, NULL)				\
	F(S32, old_tid, PID, NULL)

ETW_EVENT(sched_process_exec, SCHED_PROCESS_EXEC, .event_id = 2, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_EXEC,
	  .ctf_name = "sched_process_exec", .description = "A process runs another program now",
	  ETW_HOOK(sched_process_exec));

#define SCHED_PROCESS_EXIT(F)				\
	F(COMM, comm, DEFAULT, NULL)			\
	F(S32, tid, PID, NULL)				\
	F(S32, prio, DEFAULT, NULL)			\
	F(S32, exit_code, HEX, NULL)

ETW_EVENT(sched_process_exit, SCHED_PROCESS_EXIT, .event_id = 3, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_EXIT,
	  .opcode = ETW_OPCODE_STOP, .ctf_name = "sched_process_exit",
	  .description = "A thread ends; exit_code is as wait() tells it",
	  .tracepoint = "sched_process_exit", .probe = EXIT_GROUP ? (void *)probe_exit_group : (void *)probe_exit_plain);

#define SCHED_PROCESS_FREE(F)				\
	F(COMM, comm, DEFAULT, NULL)			\
	F(S32, tid, PID, NULL)				\
	F(S32, prio, DEFAULT, NULL)

ETW_EVENT(sched_process_free, SCHED_PROCESS_FREE, .event_id = 4, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_EXIT,
	  .ctf_name = "sched_process_free", .description = "A thread that ended is forgotten; its number may be used again",
	  ETW_HOOK(sched_process_free));

#define TASK_RENAME(F)					\
	F(S32, tid, PID, NULL)				\
	F(COMM, oldcomm, DEFAULT, NULL)			\
	F(COMM, newcomm, DEFAULT, NULL)			\
	F(S16, oom_score_adj, DEFAULT, NULL)

ETW_EVENT(task_rename, TASK_RENAME, .event_id = 5, .level = ETW_LEVEL_INFO, .keyword = KEYWORD_RENAME,
	  .ctf_name = "task_rename", .description = "A thread gets another name",
	  ETW_HOOK(task_rename));

/* The numbers are those of LTTng's state dump, which its readers know. */
enum { TYPE_USER, TYPE_KERNEL };
enum { STATUS_UNNAMED, STATUS_WAIT_FORK, STATUS_WAIT_CPU, STATUS_EXIT, STATUS_ZOMBIE, STATUS_WAIT, STATUS_RUN, STATUS_DEAD };
#define MODE_UNKNOWN	5
#define SUBMODE_NONE	1

static const struct etw_value type_names[] = {
	{ TYPE_USER, "user" },
	{ TYPE_KERNEL, "kernel" },
};

static const struct etw_value status_names[] = {
	{ STATUS_UNNAMED, "unnamed" },
	{ STATUS_WAIT_FORK, "wait fork" },
	{ STATUS_WAIT_CPU, "wait cpu" },
	{ STATUS_EXIT, "exit" },
	{ STATUS_ZOMBIE, "zombie" },
	{ STATUS_WAIT, "wait" },
	{ STATUS_RUN, "run" },
	{ STATUS_DEAD, "dead" },
};

static const struct etw_map types = { ETW_MAP_VALUES, ARRAY_SIZE(type_names), type_names };
static const struct etw_map statuses = { ETW_MAP_VALUES, ARRAY_SIZE(status_names), status_names };

#define NO_FIELDS(F)

ETW_EVENT(rundown_start, NO_FIELDS, .event_id = 6, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_START, .rundown = true,
	  .ctf_name = "lttng_statedump_start", .description = "Rundown of processes begins");

#define PROCESS_STATE(F)				\
	F(S32, tid, PID, NULL)				\
	F(S32, pid, PID, NULL)				\
	F(S32, ppid, PID, NULL)				\
	F(COMM, name, DEFAULT, NULL)			\
	F(S32, type, DEFAULT, &types)			\
	F(S32, mode, DEFAULT, NULL)			\
	F(S32, submode, DEFAULT, NULL)			\
	F(S32, status, DEFAULT, &statuses)		\
	F(U32, cpu, DEFAULT, NULL)			\
	F(S32, prio, DEFAULT, NULL)			\
	F(U64, start_time, DEFAULT, NULL)		\
	F(U32, uid, DEFAULT, NULL)			\
	F(S32, vtid, PID, NULL)				\
	F(U32, ns_inum, DEFAULT, NULL)

ETW_EVENT(process_state, PROCESS_STATE, .event_id = 7, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_DC_START, .rundown = true,
	  .ctf_name = "lttng_statedump_process_state",
	  .description = "A thread that exists; start_time in ns since boot, vtid its number in its pid namespace ns_inum");

ETW_EVENT(rundown_end, NO_FIELDS, .event_id = 8, .level = ETW_LEVEL_INFO, .opcode = ETW_OPCODE_STOP, .rundown = true,
	  .ctf_name = "lttng_statedump_end", .description = "Rundown of processes is complete");

static u32 pid_ns_inum(const struct pid *pid)
{
	return pid ? pid->numbers[pid->level].ns->ns.inum : 0;
}

ETW_PROBE(sched_process_fork, child, TP_PROTO(struct task_struct *parent, struct task_struct *child),
	  TP_ARGS(parent, child))
{
	struct {
		u32 nr;
		s32 vtids[MAX_PID_NS_LEVEL + 1];
	} seq __uninitialized;
	const struct pid *pid = task_pid(child);
	struct sched_process_fork_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, child))
		return;
	etw_copy_comm(r.parent_comm, parent);
	r.parent_tid = parent->pid;
	r.parent_pid = parent->tgid;
	r.parent_ns_inum = pid_ns_inum(task_pid(parent));
	etw_copy_comm(r.child_comm, child);
	r.child_tid = child->pid;
	r.child_pid = child->tgid;
	r.child_ns_inum = pid_ns_inum(pid);
	for (seq.nr = 0; pid && seq.nr <= pid->level && seq.nr < ARRAY_SIZE(seq.vtids); seq.nr++)
		seq.vtids[seq.nr] = pid->numbers[seq.nr].nr;
	etw_end_vec(&event, (const struct etw_vec[]) {
		{ &r, offsetof(struct sched_process_fork_record, child_pid) },
		{ &seq, sizeof(seq.nr) + seq.nr * sizeof(seq.vtids[0]) },
		{ &r.child_pid, sizeof(r) - offsetof(struct sched_process_fork_record, child_pid) },
	}, 3);
}

ETW_PROBE(sched_process_exec, NULL, TP_PROTO(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm),
	  TP_ARGS(p, old_pid, bprm))
{
	struct sched_process_exec_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, NULL))
		return;
	r.tid = p->pid;
	r.old_tid = old_pid;
	etw_end_vec(&event, (const struct etw_vec[]) {
		{ bprm->filename, strnlen(bprm->filename, PATH_MAX - 1) },
		{ "", 1 },
		{ &r, sizeof(r) },
	}, 3);
}

static __always_inline void write_exit(const struct etw_targets *targets, struct task_struct *p)
{
	struct sched_process_exit_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, NULL))
		return;
	etw_copy_comm(r.comm, p);
	r.tid = p->pid;
	r.prio = etw_prio(p);
	r.exit_code = p->exit_code;
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE_NAMED(exit_plain, NULL, TP_PROTO(struct task_struct *p), TP_ARGS(p))
{
	write_exit(targets, p);
}

ETW_PROBE_NAMED(exit_group, NULL, TP_PROTO(struct task_struct *p, bool group_dead), TP_ARGS(p, group_dead))
{
	write_exit(targets, p);
}

ETW_PROBE(sched_process_free, p, TP_PROTO(struct task_struct *p),
	  TP_ARGS(p))
{
	struct sched_process_free_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, p))
		return;
	etw_copy_comm(r.comm, p);
	r.tid = p->pid;
	r.prio = etw_prio(p);
	etw_end(&event, &r, sizeof(r));
}

ETW_PROBE(task_rename, task, TP_PROTO(struct task_struct *task, const char *comm),
	  TP_ARGS(task, comm))
{
	struct task_rename_record r __uninitialized;
	struct etw_event event __uninitialized;

	if (!etw_begin(&event, targets, task))
		return;
	r.tid = task->pid;
	etw_copy_comm(r.oldcomm, task);
	strscpy_pad(r.newcomm, comm, sizeof(r.newcomm));
	r.oom_score_adj = task->signal->oom_score_adj;
	etw_end(&event, &r, sizeof(r));
}

static bool on_cpu(const struct task_struct *task)
{
#ifdef CONFIG_SMP
	return READ_ONCE(task->on_cpu);
#else
	return task == current;
#endif
}

static s32 status_of(const struct task_struct *task)
{
	int exit_state = READ_ONCE(task->exit_state);

	if (exit_state)
		return exit_state & EXIT_ZOMBIE ? STATUS_ZOMBIE : STATUS_DEAD;
	if (on_cpu(task))
		return STATUS_RUN;
	if (task->flags & PF_EXITING)
		return STATUS_EXIT;
	return READ_ONCE(task->__state) == TASK_RUNNING ? STATUS_WAIT_CPU : STATUS_WAIT;
}

/* Under rcu_read_lock(). */
static void write_state(struct etw_session *session, struct task_struct *task, const struct pid *pid)
{
	struct process_state_record r = {
		.tid = task->pid,
		.pid = task->tgid,
		.ppid = rcu_dereference(task->real_parent)->tgid,
		.type = task->flags & PF_KTHREAD ? TYPE_KERNEL : TYPE_USER,
		.mode = MODE_UNKNOWN,
		.submode = SUBMODE_NONE,
		.status = status_of(task),
		.cpu = task_cpu(task),
		.prio = etw_prio(task),
		.start_time = task->start_boottime,
		.uid = from_kuid(&init_user_ns, task_uid(task)),
		.vtid = pid->numbers[pid->level].nr,
		.ns_inum = pid_ns_inum(pid),
	};

	etw_copy_comm(r.name, task);
	etw_write_direct(session, &process_state_class, task->pid, task->tgid, &(struct etw_vec) { &r, sizeof(r) }, 1);
}

/* So many threads at a time, between two pauses and in one stretch of RCU. */
#define BATCH	32

/*
 * By pid number, which a walk can take up again after a pause: a thread that is there all the time is written exactly
 * once, one that comes or goes meanwhile at most once.
 */
static int rundown(struct etw_session *session)
{
	struct pid *pid;
	unsigned int i;
	int nr = 1;

	etw_write_direct(session, &rundown_start_class, current->pid, current->tgid, NULL, 0);
	do {
		if (etw_rundown_interrupted(session))
			return -EINTR;
		rcu_read_lock();
		for (i = 0; i < BATCH; i++) {
			struct task_struct *task;

			pid = find_ge_pid(nr, &init_pid_ns);
			if (!pid)
				break;
			task = pid_task(pid, PIDTYPE_PID);
			if (task)
				write_state(session, task, pid);
			nr = pid->numbers[0].nr + 1;
		}
		rcu_read_unlock();
	} while (pid);
	etw_write_direct(session, &rundown_end_class, current->pid, current->tgid, NULL, 0);
	return 0;
}

static struct etw_class *const classes[] = {
	&sched_process_fork_class, &sched_process_exec_class, &sched_process_exit_class, &sched_process_free_class,
	&task_rename_class, &rundown_start_class, &process_state_class, &rundown_end_class,
};

struct etw_provider etw_provider_process = {
	.guid = UUID_INIT(0x0dc06846, 0x3f38, 0x5f93, 0x72, 0x5d, 0x1e, 0xc6, 0x65, 0x0e, 0xe2, 0xb3),
	.name = "Linux-Kernel-Process",
	.alias = "process",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = classes,
	.nr_classes = ARRAY_SIZE(classes),
	.rundown = rundown,
};
