// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads and the processes they belong to, as the events tell them. It must not know what is counted for them.
 */
#include "summary_model.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static void set_name(char to[SUM_COMM], struct sum_text name)
{
	size_t len = name.len < SUM_COMM ? name.len : SUM_COMM - 1;

	memcpy(to, name.s, len);
	memset(to + len, 0, SUM_COMM - len);
}

/* Kernel workers, which write back dirty pages among other things. */
bool sum_name_is_worker(const char *name)
{
	return !strncmp(name, "kworker/", 8);
}

static void decide_wanted(struct summary *s, struct sum_thread *t)
{
	const struct sum_filter *f = &s->filter;
	bool wanted = !f->nr_pids;

	for (unsigned int i = 0; i < f->nr_pids && !wanted; i++)
		wanted = f->pids[i] == t->tid || (!t->proc->provisional && f->pids[i] == t->proc->pid);
	if (wanted && f->nr_comms) {
		wanted = false;
		for (unsigned int i = 0; i < f->nr_comms && !wanted; i++)
			wanted = !fnmatch(f->comms[i], t->comm, 0);
	}
	t->wanted = wanted;
}

struct sum_thread *sum_thread_find(struct summary *s, int32_t tid)
{
	struct sum_thread *t;

	HASH_FIND_INT(s->threads, &tid, t);
	return t;
}

static struct sum_thread *thread_new(struct summary *s, int32_t tid, struct sum_proc *proc)
{
	struct sum_thread *t = sum_alloc(1, sizeof(*t));

	t->tid = tid;
	t->seq = ++s->thread_seq;
	t->doing = SUM_UNTOLD;
	t->proc = proc;
	proc->threads++;
	proc->alive++;
	HASH_ADD_INT(s->threads, tid, t);
	decide_wanted(s, t);
	return t;
}

static void name_proc(struct sum_thread *t)
{
	struct sum_proc *p = t->proc;
	bool leader = p->provisional || p->pid == t->tid;

	if (!t->comm[0] || (p->named_by_leader && !leader) || (p->name[0] && !leader))
		return;
	memcpy(p->name, t->comm, SUM_COMM);
	p->named_by_leader = leader;
}

static void thread_pid(struct summary *s, struct sum_thread *t, int32_t pid)
{
	struct sum_proc *p;

	if (pid <= 0 || (!t->proc->provisional && t->proc->pid == pid))
		return;
	p = sum_proc_get(s, pid);
	p->threads++;
	p->alive++;
	if (t->proc->provisional)
		sum_proc_found(t->proc, p);
	sum_proc_leave(s, t->proc);
	t->proc = p;
	name_proc(t);
	decide_wanted(s, t);
}

/* The thread @tid of the process @pid, 0 not known: a new one has a process of its own only then. */
static struct sum_thread *thread_of(struct summary *s, int32_t tid, int32_t pid)
{
	struct sum_thread *t = sum_thread_find(s, tid);
	struct sum_proc *p;

	if (t) {
		thread_pid(s, t, pid);
		return t;
	}
	if (pid > 0) {
		p = sum_proc_get(s, pid);
	} else {
		p = sum_proc_new(s, tid);
		p->provisional = true;
	}
	return thread_new(s, tid, p);
}

struct sum_thread *sum_thread_get(struct summary *s, int32_t tid)
{
	return thread_of(s, tid, 0);
}

void sum_thread_name(struct summary *s, struct sum_thread *t, struct sum_text name)
{
	char comm[SUM_COMM];

	if (!name.len)
		return;
	set_name(comm, name);
	if (!memcmp(comm, t->comm, SUM_COMM))
		return;
	memcpy(t->comm, comm, SUM_COMM);
	name_proc(t);
	decide_wanted(s, t);
}

/* The number may be used again by another thread, and the process's with it. */
void sum_thread_end(struct summary *s, int32_t tid)
{
	struct sum_thread *t = sum_thread_find(s, tid);
	struct sum_proc *p;

	if (!t)
		return;
	sum_activity_thread_end(s, t);
	HASH_DEL(s->threads, t);
	sum_proc_leave(s, t->proc);
	free(t);
	p = sum_proc_find(s, tid);
	if (p)
		p->named_by_leader = true;
}

/* One that runs is not over, whatever is said: the number may be used again already, and its last switch was missed. */
void sum_thread_freed(struct summary *s, int32_t tid)
{
	struct sum_thread *t = sum_thread_find(s, tid);
	struct sum_proc *p;

	if (t && t->state == SUM_RUNNING)
		return;
	sum_thread_end(s, tid);
	p = sum_proc_find(s, tid);
	if (p)
		sum_proc_leader_freed(s, p);
}

/* A new process takes the number: the one before, if any, is kept for the report only. */
static void fork_event(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *parent = sum_thread_find(s, e->fork.parent_tid), *t;
	bool kernel = e->fork.parent_tid == 2 || (parent && parent->proc->kernel && e->fork.child_tid == e->fork.child_pid);

	sum_thread_end(s, e->fork.child_tid);
	if (e->fork.child_tid == e->fork.child_pid) {
		struct sum_proc *old = sum_proc_find(s, e->fork.child_pid);

		if (old)
			sum_proc_end(s, old);
	}
	t = thread_of(s, e->fork.child_tid, e->fork.child_pid);
	sum_thread_name(s, t, e->fork.child_name);
	t->proc->kernel |= kernel;
	if (e->fork.child_tid == e->fork.child_pid)
		sum_activity_fork(s, t, e->fork.parent_tid, e->time);
}

/* When a thread other than the first calls exec, it takes over the process's number. */
static void exec_event(struct summary *s, const struct sum_event *e)
{
	struct sum_text name = e->task.name;
	const char *slash = memrchr(name.s, '/', name.len);
	struct sum_thread *t;

	if (e->task.old_tid > 0 && e->task.old_tid != e->task.tid) {
		struct sum_thread *old = sum_thread_find(s, e->task.old_tid);

		if (old) {
			sum_thread_end(s, e->task.tid);
			HASH_DEL(s->threads, old);
			old->tid = e->task.tid;
			HASH_ADD_INT(s->threads, tid, old);
		}
	}
	if (slash) {
		name.len -= slash + 1 - name.s;
		name.s = slash + 1;
	}
	t = sum_thread_get(s, e->task.tid);
	t->proc->kernel = false;
	sum_thread_name(s, t, name);
}

/* What an event says about identities, before anything is counted for it. */
void sum_task_event(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *t;

	switch (e->kind) {
	case SUM_FORK:
		fork_event(s, e);
		break;
	case SUM_EXEC:
		exec_event(s, e);
		break;
	case SUM_EXIT:
		t = sum_thread_find(s, e->task.tid);
		if (t)
			sum_activity_exit(s, t, e->time);
		break;
	case SUM_RENAME:
	case SUM_WAKING:
	case SUM_WAKEUP:
	case SUM_WAKEUP_NEW:
		if (e->task.tid > 0)
			sum_thread_name(s, sum_thread_get(s, e->task.tid), e->task.name);
		break;
	case SUM_DUMP_TASK:
		if (e->task.tid <= 0)
			break;
		t = thread_of(s, e->task.tid, e->task.pid);
		sum_thread_name(s, t, e->task.name);
		t->proc->kernel |= e->task.kernel;
		break;
	case SUM_SWITCH:
		if (e->sw.prev_tid > 0)
			sum_thread_name(s, sum_thread_get(s, e->sw.prev_tid), e->sw.prev_comm);
		if (e->sw.next_tid > 0)
			sum_thread_name(s, sum_thread_get(s, e->sw.next_tid), e->sw.next_comm);
		break;
	default:
		break;
	}
	if (e->kind != SUM_FOREIGN && e->kind != SUM_DUMP_TASK && e->kind != SUM_DUMP_DISK && e->tid > 0 && e->pid > 0)
		thread_of(s, e->tid, e->pid);
}

void sum_task_free(struct summary *s)
{
	struct sum_thread *t, *tmp;

	HASH_ITER(hh, s->threads, t, tmp) {
		sum_activity_thread_end(s, t);
		HASH_DEL(s->threads, t);
		free(t);
	}
}
