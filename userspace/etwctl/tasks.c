// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of threads as a stream of events tells them (tasks.h). It must not know who prints or sums.
 */
#include "tasks.h"

#include "etwctl.h"

#include <stdlib.h>
#include <string.h>
/* Keys are thread ids, which differ in their low bits. */
#define HASH_FUNCTION(key, size, hash) ((hash) = *(const __s32 *)(key) * 0x9e3779b1U)
#include <uthash.h>

#define COMM_SIZE 16

struct task {
	__s32 tid;
	__s32 pid;
	char comm[COMM_SIZE];
	UT_hash_handle hh;
};

/* What one kind of event says: up to two threads, each by the names of its fields. */
struct source {
	const char *event;	/* CTF name */
	struct {
		const char *tid, *pid, *comm;
		bool path;	/* @comm is a path whose last part becomes the name */
		bool subject;	/* not the writer itself */
	} who[2];
};

static const struct source sources[] = {
	{ "sched_switch",
	  { { "prev_tid", NULL, "prev_comm", false, false }, { "next_tid", NULL, "next_comm", false, true } } },
	{ "sched_waking", { { "tid", NULL, "comm", false, true } } },
	{ "sched_wakeup", { { "tid", NULL, "comm", false, true } } },
	{ "sched_wakeup_new", { { "tid", NULL, "comm", false, true } } },
	{ "sched_migrate_task", { { "tid", NULL, "comm", false, true } } },
	{ "sched_process_fork",
	  { { "parent_tid", "parent_pid", "parent_comm", false, false },
	    { "child_tid", "child_pid", "child_comm", false, true } } },
	{ "sched_process_exec", { { "tid", NULL, "filename", true, false } } },
	{ "sched_process_exit", { { "tid", NULL, "comm", false, false } } },
	{ "sched_process_free", { { "tid", NULL, "comm", false, true } } },
	{ "task_rename", { { "tid", NULL, "newcomm", false, true } } },
	{ "block_rq_insert", { { "tid", NULL, "comm", false, true } } },
	{ "block_rq_issue", { { "tid", NULL, "comm", false, true } } },
	{ "block_bio_queue", { { "tid", NULL, "comm", false, true } } },
	{ "lttng_statedump_process_state", { { "tid", "pid", "name", false, true } } },
};

/* The same with the fields' places in one class; nothing is looked up by name for an event. */
struct plan {
	const struct source *source;
	int tid[2], pid[2], comm[2];
};

struct tasks {
	struct task *by_tid;
	struct plan *plans;		/* by class index */
	unsigned int nr_plans;
	char idle[COMM_SIZE];		/* of @idle_cpu */
	__u32 idle_cpu;
};

struct tasks *tasks_new(void)
{
	return xmalloc(sizeof(struct tasks));
}

void tasks_free(struct tasks *t)
{
	struct task *task, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->by_tid, task, next) {
		HASH_DEL(t->by_tid, task);
		free(task);
	}
	free(t->plans);
	free(t);
}

static void make_plan(struct plan *p, const struct etw_class *cls)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strcmp(sources[i].event, cls->ctf_name))
			p->source = &sources[i];
	for (int i = 0; i < 2; i++) {
		p->tid[i] = p->pid[i] = p->comm[i] = -1;
		if (!p->source || !p->source->who[i].tid)
			continue;
		p->tid[i] = etw_class_field(cls, p->source->who[i].tid);
		p->comm[i] = etw_class_field(cls, p->source->who[i].comm);
		if (p->source->who[i].pid)
			p->pid[i] = etw_class_field(cls, p->source->who[i].pid);
	}
}

static const struct plan *plan_of(struct tasks *t, const struct etw_class *cls)
{
	if (cls->index >= t->nr_plans) {
		unsigned int nr = cls->index + 32;
		struct plan *plans = xmalloc(nr * sizeof(*plans));

		if (t->nr_plans)
			memcpy(plans, t->plans, t->nr_plans * sizeof(*plans));
		/* A plan not made yet has tid[0] = 0, which no made one without a source has. */
		free(t->plans);
		t->plans = plans;
		t->nr_plans = nr;
	}
	if (!t->plans[cls->index].source && !t->plans[cls->index].tid[0])
		make_plan(&t->plans[cls->index], cls);
	return &t->plans[cls->index];
}

static struct task *task_get(struct tasks *t, __s32 tid)
{
	struct task *task;

	HASH_FIND_INT(t->by_tid, &tid, task);
	if (!task) {
		task = xmalloc(sizeof(*task));
		task->tid = tid;
		HASH_ADD_INT(t->by_tid, tid, task);
	}
	return task;
}

void tasks_event(struct tasks *t, const struct etw_event *event)
{
	const struct plan *p = plan_of(t, event->cls);

	if (event->pid > 0 && event->tid > 0)
		task_get(t, event->tid)->pid = event->pid;
	if (!p->source)
		return;
	for (int i = 0; i < 2; i++) {
		struct task *task;
		const char *comm;
		size_t len;
		__s32 tid;

		if (p->tid[i] < 0)
			continue;
		tid = etw_event_int(event, p->tid[i]);
		if (tid <= 0)
			continue;
		task = task_get(t, tid);
		if (p->pid[i] >= 0)
			task->pid = etw_event_int(event, p->pid[i]);
		comm = etw_event_string(event, p->comm[i], &len);
		if (!len)
			continue;
		if (p->source->who[i].path) {
			const char *slash = memrchr(comm, '/', len);

			if (slash) {
				len -= slash + 1 - comm;
				comm = slash + 1;
			}
		}
		if (len >= COMM_SIZE)
			len = COMM_SIZE - 1;
		memcpy(task->comm, comm, len);
		task->comm[len] = 0;
	}
}

const char *tasks_comm(struct tasks *t, __s32 tid, __u32 cpu)
{
	struct task *task;

	if (!tid) {
		if (cpu != t->idle_cpu || !t->idle[0])
			snprintf(t->idle, sizeof(t->idle), "swapper/%u", cpu);
		t->idle_cpu = cpu;
		return t->idle;
	}
	HASH_FIND_INT(t->by_tid, &tid, task);
	return task && task->comm[0] ? task->comm : NULL;
}

__s32 tasks_pid(struct tasks *t, __s32 tid)
{
	struct task *task;

	HASH_FIND_INT(t->by_tid, &tid, task);
	return task ? task->pid : 0;
}

int tasks_subjects(struct tasks *t, const struct etw_event *event, __s32 tids[2])
{
	const struct plan *p = plan_of(t, event->cls);
	int n = 0;

	for (int i = 0; p->source && i < 2; i++)
		if (p->tid[i] >= 0 && p->source->who[i].subject)
			tids[n++] = etw_event_int(event, p->tid[i]);
	return n;
}
