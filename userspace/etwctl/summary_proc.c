// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes from their first event to their row of the report: which live, which have ended and so have their final figures,
 * in what order they are shown. It must not know threads, or how anything is counted.
 *
 * Where a report shows the first so many rows of each list, an ended process that has so many others that have ended before
 * it in each of them can be forgotten: whatever comes, it will be in none. Only its rows are counted.
 */
#include "summary_model.h"

#include <stdlib.h>
#include <string.h>

#define FORGET_AFTER	256	/* have ended, at least */

/* ---------------------------------------------------------------- life */

struct sum_proc *sum_proc_new(struct summary *s, int32_t pid)
{
	struct sum_proc *p = sum_alloc(1, sizeof(*p));

	p->pid = pid;
	*s->all_tail = p;
	s->all_tail = &p->next;
	s->nr_all++;
	return p;
}

struct sum_proc *sum_proc_find(struct summary *s, int32_t pid)
{
	struct sum_proc *p;

	HASH_FIND_INT(s->procs, &pid, p);
	return p;
}

struct sum_proc *sum_proc_get(struct summary *s, int32_t pid)
{
	struct sum_proc *p = sum_proc_find(s, pid);

	if (!p) {
		p = sum_proc_new(s, pid);
		HASH_ADD_INT(s->procs, pid, p);
	}
	return p;
}

void sum_proc_end(struct summary *s, struct sum_proc *p)
{
	if (!p->provisional)
		HASH_DEL(s->procs, p);
	p->ended = true;
	s->nr_ended++;
}

void sum_proc_leave(struct summary *s, struct sum_proc *p)
{
	if (!--p->alive && !p->ended && (p->provisional || p->leader_freed))
		sum_proc_end(s, p);
}

/* Threads that are freed after the first are still to come. */
void sum_proc_leader_freed(struct summary *s, struct sum_proc *p)
{
	p->leader_freed = true;
	if (!p->alive)
		sum_proc_end(s, p);
}

struct sum_proc *sum_proc_root(struct sum_proc *p)
{
	return p->root ? p->root : p;
}

static void faults_merge(struct sum_proc *into, const struct sum_proc *from)
{
	if (!from->faults)
		return;
	if (!into->faults)
		into->faults = sum_alloc(1, sizeof(*into->faults));
	for (int a = 0; a < SUM_NR_AREAS; a++)
		for (int x = 0; x < SUM_NR_ACCESS; x++)
			into->faults->n[a][x] += from->faults->n[a][x];
	into->faults->total += from->faults->total;
	into->faults->by_kernel += from->faults->by_kernel;
	into->faults->protection += from->faults->protection;
}

static void proc_clear(struct sum_proc *p)
{
	sum_hist_clear(&p->run.wakeup);
	memset(&p->run, 0, sizeof(p->run));
	free(p->faults);
	p->faults = NULL;
}

void sum_proc_found(struct sum_proc *p, struct sum_proc *root)
{
	root->run.cpu_ns += p->run.cpu_ns;
	root->run.wait_ns += p->run.wait_ns;
	root->run.switches += p->run.switches;
	root->run.preempted += p->run.preempted;
	sum_hist_merge(&root->run.wakeup, &p->run.wakeup);
	faults_merge(root, p);
	proc_clear(p);
	root->kernel |= p->kernel;
	root->refs++;
	p->root = root;
}

void sum_proc_free(struct summary *s)
{
	HASH_CLEAR(hh, s->procs);
	while (s->all) {
		struct sum_proc *p = s->all;

		s->all = p->next;
		proc_clear(p);
		free(p);
	}
}

/* ---------------------------------------------------------------- order of the rows */

bool sum_proc_has_run(const struct sum_proc *p)
{
	return p->run.cpu_ns || p->run.switches || p->run.wakeup.count || p->run.wait_ns;
}

bool sum_proc_has_faults(const struct sum_proc *p)
{
	return p->faults;
}

int sum_by_cpu_time(const void *a, const void *b)
{
	const struct sum_proc *x = *(struct sum_proc *const *)a, *y = *(struct sum_proc *const *)b;

	return SUM_ORDER(x->run.cpu_ns, y->run.cpu_ns, x->pid, y->pid);
}

int sum_by_faults(const void *a, const void *b)
{
	const struct sum_proc *x = *(struct sum_proc *const *)a, *y = *(struct sum_proc *const *)b;

	return SUM_ORDER(x->faults->total, y->faults->total, x->pid, y->pid);
}

int sum_by_share_bytes(const void *a, const void *b)
{
	const struct sum_share *x = *(struct sum_share *const *)a, *y = *(struct sum_share *const *)b;

	if (x->key.proc == y->key.proc)
		return SUM_ORDER(sum_io_bytes(x->io), sum_io_bytes(y->io), x->key.disk->dev, y->key.disk->dev);
	return SUM_ORDER(sum_io_bytes(x->io), sum_io_bytes(y->io), x->key.proc->pid, y->key.proc->pid);
}

/* ---------------------------------------------------------------- the ended */

/* Keeps the first of those @final that have a row in a list. @rows: room for all of them. */
static void keep_first(struct summary *s, struct sum_proc **final, unsigned int nr, struct sum_proc **rows,
		       bool (*has_row)(const struct sum_proc *p), int (*order)(const void *, const void *))
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nr; i++)
		if (has_row(final[i]))
			rows[n++] = final[i];
	qsort(rows, n, sizeof(*rows), order);
	for (unsigned int i = 0; i < n && i < s->filter.top; i++)
		rows[i]->kept = true;
}

static bool has_only_share(const struct sum_proc *p)
{
	return p->only;
}

static int by_only_share(const void *a, const void *b)
{
	const struct sum_proc *x = *(struct sum_proc *const *)a, *y = *(struct sum_proc *const *)b;

	return sum_by_share_bytes(&x->only, &y->only);
}

/*
 * Is all of @p known? Not of one that used several disks: partitions among them may turn out to be parts of one disk, and its
 * rows one row. Nor of one whose threads' first I/Os are a row of their own yet.
 */
static bool is_final(struct summary *s, struct sum_proc *p)
{
	const unsigned int at_most = p->root ? 0 : 1;

	return p->ended && !p->alive && !p->refs && sum_share_count(s, p, &p->only) <= at_most;
}

static void only_count(struct summary *s, struct sum_proc *p)
{
	s->forgotten.runs += sum_proc_has_run(p);
	s->forgotten.faulters += sum_proc_has_faults(p);
	if (p->only) {
		s->forgotten.shares++;
		s->forgotten.guessed += p->only->guessed;
		sum_share_free(s, p->only);
	}
	if (p->root)
		p->root->refs--;
	proc_clear(p);
	free(p);
	s->nr_all--;
}

/* Each has its turn in three lists, so none is forgotten before all are in order. */
static void forget_ended(struct summary *s)
{
	struct sum_proc **final = sum_alloc(s->nr_all, sizeof(*final)), **rows = sum_alloc(s->nr_all, sizeof(*rows));
	struct sum_proc **link = &s->all;
	unsigned int nr = 0;

	for (struct sum_proc *p = s->all; p; p = p->next) {
		p->kept = !is_final(s, p);
		if (!p->kept)
			final[nr++] = p;
	}
	keep_first(s, final, nr, rows, sum_proc_has_run, sum_by_cpu_time);
	keep_first(s, final, nr, rows, sum_proc_has_faults, sum_by_faults);
	keep_first(s, final, nr, rows, has_only_share, by_only_share);
	while (*link) {
		struct sum_proc *p = *link;

		if (p->kept) {
			link = &p->next;
		} else {
			*link = p->next;
			only_count(s, p);
		}
	}
	s->all_tail = link;
	free(rows);
	free(final);
}

void sum_proc_forget(struct summary *s)
{
	/* Not before there are many against those that stay: it looks at each. */
	if (!s->filter.top || s->nr_ended < FORGET_AFTER + s->nr_all / 2)
		return;
	forget_ended(s);
	s->nr_ended = 0;
}
