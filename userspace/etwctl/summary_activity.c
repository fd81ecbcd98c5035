// SPDX-License-Identifier: GPL-2.0-only
/*
 * Activities: what lies between a start and a stop event with one activity id, which threads worked for it, and what
 * these did meanwhile. It must not know how states of threads and I/Os are found out, nor who provides activities.
 *
 * A stop belongs to the innermost open activity with its id and provider: of the same name (without Start and Stop)
 * if there is one, else of the same task, else to any.
 *
 * A thread works for an activity from its event with this id on, until the activity stops or the thread writes an
 * event with the id of another one, or with id 0, or a suspend event. Then it goes back to what it worked for when
 * it started this one, unless another thread has taken that up. Several threads can work for one activity, and what
 * is done for an activity is done for those around it: its parent, named by the related id, or another one open with
 * the same id. (One that is started in between and names no parent may as well have nothing to do with it, as in a
 * program whose one thread serves many.)
 *
 * A new process works for what the thread that made it works for. One that took an activity up and exits leaves it to that
 * thread: so a script's steps are activities, although other programs write its events, and do its work.
 *
 * At any moment an activity does what the busiest of its threads does, so the times add up to its duration.
 */
#include "summary_block.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_OPEN	65536U	/* more are those of a provider that does not stop any: the oldest are given up */
#define MAX_DEPTH	32U	/* of activities in one another */

struct sum_act_id {
	uint8_t id[16];
	struct sum_activity *top;	/* innermost */
	UT_hash_handle hh;
};

static const uint8_t none[16];

static bool is_id(const uint8_t *id)
{
	return id && memcmp(id, none, sizeof(none));
}

/* ---------------------------------------------------------------- life of an activity */

static void put(struct sum_activity *a)
{
	while (a && !--a->refs) {
		struct sum_activity *parent = a->parent;

		a->proc->refs--;
		free(a->start_fields);
		free(a->stop_fields);
		free(a->ios);
		free(a->disks);
		free(a);
		a = parent;
	}
}

static struct sum_activity *get(struct sum_activity *a)
{
	if (a)
		a->refs++;
	return a;
}

/* Is @a @outer, or inside it? */
static bool within(const struct sum_activity *a, const struct sum_activity *outer)
{
	while (a && a != outer)
		a = a->parent;
	return a;
}

static void account(struct sum_activity *a, uint64_t time)
{
	int d = 0;

	if (time <= a->at)
		return;
	while (d < SUM_IDLE && !a->doing[d])
		d++;
	a->ns[d] += time - a->at;
	a->cpu_ns += (time - a->at) * a->doing[SUM_ON_CPU];
	a->at = time;
}

static size_t base_len(const char *name)
{
	size_t len = strlen(name);

	if (len >= 5 && !strcasecmp(name + len - 5, "start"))
		len -= 5;
	else if (len >= 4 && !strcasecmp(name + len - 4, "stop"))
		len -= 4;
	else
		return len;
	while (len && strchr("_.-", name[len - 1]))
		len--;
	return len;
}

static bool is_base(const struct sum_act_kind *k, const char *name)
{
	size_t len = base_len(name);

	return strlen(k->name) == len && !strncmp(k->name, name, len);
}

static struct sum_act_kind *kind_get(struct summary *s, const char *provider, const char *name)
{
	struct sum_act_kind *k;
	size_t len;

	for (k = s->act_kinds; k; k = k->next)
		if (!strcmp(k->provider, provider) && is_base(k, name))
			return k;
	k = sum_alloc(1, sizeof(*k));
	len = base_len(name);
	k->provider = provider;
	k->name = sum_alloc(len + 1, 1);
	memcpy(k->name, name, len);
	*s->act_kinds_tail = k;
	s->act_kinds_tail = &k->next;
	return k;
}

static char *copy(struct sum_text text)
{
	char *to = NULL;

	if (text.len) {
		to = sum_alloc(text.len + 1, 1);
		memcpy(to, text.s, text.len);
	}
	return to;
}

static struct sum_act_id *id_find(struct summary *s, const uint8_t *id)
{
	struct sum_act_id *entry;

	HASH_FIND(hh, s->act_ids, id, 16, entry);
	return entry;
}

/* The innermost one that is open with this id, of @provider if there is one. */
static struct sum_activity *open_find(struct summary *s, const uint8_t *id, const char *provider)
{
	struct sum_act_id *entry = id_find(s, id);

	for (struct sum_activity *a = entry ? entry->top : NULL; a; a = a->outer)
		if (!strcmp(a->kind->provider, provider))
			return a;
	return entry ? entry->top : NULL;
}

static struct sum_activity *stopped_by(struct summary *s, const struct sum_event *e)
{
	struct sum_act_id *entry = id_find(s, e->act.id);
	struct sum_activity *same_task = NULL, *any = NULL;

	for (struct sum_activity *a = entry ? entry->top : NULL; a; a = a->outer) {
		if (strcmp(a->kind->provider, e->act.provider))
			continue;
		if (is_base(a->kind, e->act.name))
			return a;
		if (!same_task && e->act.task && a->task == e->act.task)
			same_task = a;
		if (!any)
			any = a;
	}
	return same_task ? same_task : any;
}

static void open_remove(struct summary *s, struct sum_activity *a)
{
	struct sum_act_id *entry = id_find(s, a->id);
	struct sum_activity **link = &entry->top;

	while (*link != a)
		link = &(*link)->outer;
	*link = a->outer;
	if (!entry->top) {
		HASH_DEL(s->act_ids, entry);
		free(entry);
	}
	*(a->older ? &a->older->newer : &s->oldest) = a->newer;
	*(a->newer ? &a->newer->older : &s->newest) = a->older;
	s->nr_open--;
	a->open = false;
}

static void open_add(struct summary *s, struct sum_activity *a)
{
	struct sum_act_id *entry = id_find(s, a->id);

	if (!entry) {
		entry = sum_alloc(1, sizeof(*entry));
		memcpy(entry->id, a->id, sizeof(entry->id));
		HASH_ADD(hh, s->act_ids, id, sizeof(entry->id), entry);
	}
	a->outer = entry->top;
	entry->top = a;
	a->older = s->newest;
	*(a->older ? &a->older->newer : &s->oldest) = a;
	s->newest = a;
	s->nr_open++;
	a->open = true;
}

/* ---------------------------------------------------------------- threads at work */

static struct sum_activity *work_of(const struct sum_thread *t)
{
	return t->nr_work ? t->work[t->nr_work - 1] : NULL;
}

/* @t begins to work for the last of its list. */
static void begin_work(struct sum_thread *t, uint64_t time)
{
	struct sum_activity *top = work_of(t);

	if (!top)
		return;
	for (struct sum_activity *a = top; a; a = a->parent) {
		if (!a->open)
			continue;
		account(a, time);
		a->doing[t->doing]++;
		a->wanted |= t->wanted;
	}
	t->beside = top->threads;
	top->threads = t;
}

/* It stays in @t's list. */
static void end_work(struct sum_thread *t, uint64_t time)
{
	struct sum_activity *top = work_of(t);
	struct sum_thread **link;

	if (!top)
		return;
	for (struct sum_activity *a = top; a; a = a->parent) {
		if (!a->open)
			continue;
		account(a, time);
		a->doing[t->doing]--;
		a->wanted |= t->wanted;
	}
	for (link = &top->threads; *link != t; link = &(*link)->beside)
		;
	*link = t->beside;
}

static void work_push(struct sum_thread *t, struct sum_activity *a)
{
	if (!t->work)
		t->work = sum_alloc(MAX_DEPTH, sizeof(struct sum_activity *));
	if (t->nr_work == MAX_DEPTH) {
		put(t->work[0]);
		memmove(t->work, t->work + 1, --t->nr_work * sizeof(struct sum_activity *));
	}
	t->work[t->nr_work++] = get(a);
}

static void work_pop(struct sum_thread *t)
{
	put(t->work[--t->nr_work]);
}

/* Drops what @t, which works for nothing just now, will not go back to after @a: another thread has it. */
static void work_trim(struct sum_thread *t, const struct sum_activity *a)
{
	struct sum_activity *top;

	while ((top = work_of(t)) && (!top->open || (top->last_thread != t->seq && !within(a, top))))
		work_pop(t);
}

static void work_clear(struct sum_thread *t, uint64_t time)
{
	end_work(t, time);
	while (t->nr_work)
		work_pop(t);
}

/* Where in @t's list @a is; its length if it is not. */
static unsigned int work_index(const struct sum_thread *t, const struct sum_activity *a)
{
	unsigned int i;

	for (i = 0; i < t->nr_work && t->work[i] != a; i++)
		;
	return i;
}

static void taken_up(struct sum_activity *a, const struct sum_thread *t)
{
	a->moves += a->last_thread && a->last_thread != t->seq;
	a->last_thread = t->seq;
}

/* Beside what it works for, to which it may go back. */
static void works_also_for(struct sum_thread *t, struct sum_activity *a, uint64_t time)
{
	end_work(t, time);
	work_trim(t, a);
	work_push(t, a);
	taken_up(a, t);
	begin_work(t, time);
}

static void works_for(struct sum_thread *t, struct sum_activity *a, uint64_t time)
{
	unsigned int i = work_index(t, a);

	taken_up(a, t);
	if (work_of(t) == a)
		return;
	end_work(t, time);
	if (i < t->nr_work) {
		while (work_of(t) != a)
			work_pop(t);
	} else {
		while (t->nr_work && !within(a, work_of(t)))
			work_pop(t);
		work_push(t, a);
	}
	begin_work(t, time);
}

static void leaves_work(struct sum_thread *t, struct sum_activity *a, uint64_t time)
{
	for (unsigned int i = 0; i + 1 < t->nr_work; i++)
		if (t->work[i] == a) {
			put(a);
			memmove(&t->work[i], &t->work[i + 1], (--t->nr_work - i) * sizeof(struct sum_activity *));
			return;
		}
	if (work_of(t) != a)
		return;
	end_work(t, time);
	get(a);
	work_pop(t);
	work_trim(t, a);
	put(a);
	begin_work(t, time);
}

static void set_doing(struct sum_thread *t, enum sum_doing doing, uint64_t time)
{
	if (doing == t->doing)
		return;
	for (struct sum_activity *a = work_of(t); a; a = a->parent) {
		if (!a->open)
			continue;
		account(a, time);
		a->doing[t->doing]--;
		a->doing[doing]++;
	}
	t->doing = doing;
	if (doing == SUM_ON_DISK)
		t->disk_since = time;
}

void sum_activity_thread(struct summary *s, struct sum_thread *t, uint64_t time)
{
	static const enum sum_doing doing[] = {
		[SUM_UNKNOWN] = SUM_UNTOLD, [SUM_RUNNING] = SUM_ON_CPU, [SUM_RUNNABLE] = SUM_WAITING, [SUM_SLEEPING] = SUM_BLOCKED,
	};
	bool disk = t->state == SUM_SLEEPING && t->deep && t->ios && t->io_gaps == s->next_gap;

	if (time < s->filter.to)
		set_doing(t, disk ? SUM_ON_DISK : doing[t->state], time);
}

void sum_activity_fork(struct summary *s, struct sum_thread *t, int32_t parent, uint64_t time)
{
	struct sum_thread *p = parent > 0 ? sum_thread_find(s, parent) : NULL;

	if (!p || p == t)
		return;
	t->parent = p->tid;
	t->parent_seq = p->seq;
	if (!p->nr_work || time >= s->filter.to)
		return;
	work_push(t, work_of(p));
	begin_work(t, time);
}

static void leave_to_parent(struct summary *s, const struct sum_thread *t, struct sum_activity *a, uint64_t time)
{
	struct sum_thread *p = t->parent ? sum_thread_find(s, t->parent) : NULL;

	if (p && a && p->seq == t->parent_seq && a->open && a->last_thread == t->seq && work_index(p, a) == p->nr_work)
		works_also_for(p, a, time);
}

void sum_activity_exit(struct summary *s, struct sum_thread *t, uint64_t time)
{
	if (time < s->filter.to)
		leave_to_parent(s, t, work_of(t), time);
}

void sum_activity_thread_end(struct summary *s, struct sum_thread *t)
{
	uint64_t time = s->last < s->filter.to ? s->last : s->filter.to;
	struct sum_activity *a = get(work_of(t));

	work_clear(t, time);
	free(t->work);
	t->work = NULL;
	/* where the trace does not say when it exits */
	leave_to_parent(s, t, a, time);
	put(a);
}

/* ---------------------------------------------------------------- I/O */

static struct sum_act_disk *disk_get(struct sum_act_disk **list, unsigned int *nr, struct sum_disk *disk,
				     enum sum_op op)
{
	struct sum_act_disk *d;

	for (unsigned int i = 0; i < *nr; i++)
		if ((*list)[i].disk == disk && (*list)[i].op == op)
			return &(*list)[i];
	if (!(*nr & (*nr - 1)))
		*list = sum_realloc(*list, *nr ? 2 * *nr : 1, sizeof(**list));
	d = &(*list)[(*nr)++];
	*d = (struct sum_act_disk){ .disk = disk, .op = op };
	return d;
}

static void add_io(struct sum_activity *a, const struct sum_act_io *io)
{
	struct sum_act_disk *d = disk_get(&a->disks, &a->nr_disks, io->disk, io->op);
	unsigned int i;

	d->count++;
	d->bytes += io->nr * 512ULL;
	d->errors += io->failed;
	d->waited += io->waited;
	if (io->waited > d->longest)
		d->longest = io->waited;
	if (!a->ios)
		a->ios = sum_alloc(SUM_ACT_IOS, sizeof(*a->ios));
	for (i = a->nr_ios; i; i--) {
		const struct sum_act_io *before = &a->ios[i - 1];

		if (before->waited > io->waited || (before->waited == io->waited && before->took >= io->took))
			break;
	}
	if (i == SUM_ACT_IOS)
		return;
	a->nr_ios += a->nr_ios < SUM_ACT_IOS;
	memmove(&a->ios[i + 1], &a->ios[i], (a->nr_ios - 1 - i) * sizeof(*a->ios));
	a->ios[i] = *io;
}

void sum_activity_io(struct summary *s, struct sum_bio *bio)
{
	struct sum_thread *t = sum_thread_find(s, bio->tid);

	if (!t)
		return;
	if (t->io_gaps != s->next_gap) {
		t->io_gaps = s->next_gap;
		t->ios = 0;
	}
	t->ios++;
	bio->gaps = t->io_gaps;
	bio->thread = t->seq;
	bio->work = get(work_of(t));
}

void sum_activity_io_end(struct summary *s, struct sum_bio *bio, struct sum_disk *d, uint64_t time)
{
	struct sum_thread *t = bio->thread ? sum_thread_find(s, bio->tid) : NULL;
	struct sum_act_io io = {
		.disk = d, .op = bio->op, .failed = bio->failed, .nr = bio->nr, .sector = bio->sector, .begin = bio->queued,
		.tid = bio->tid,
	};
	struct sum_activity *waits = NULL, *a;

	if (t && t->seq != bio->thread)
		t = NULL;
	if (time >= s->filter.to)
		d = NULL;
	if (d) {
		io.took = time - bio->queued;
		if (t)
			memcpy(io.comm, t->comm, SUM_COMM);
		/* Asleep, so its work is still that for which it went to sleep. */
		if (t && t->doing == SUM_ON_DISK && t->io_gaps == bio->gaps) {
			io.waited = time > t->disk_since ? time - t->disk_since : 0;
			t->disk_since = time;
			waits = work_of(t);
		}
		for (a = waits; a; a = a->parent)
			if (a->open)
				add_io(a, &io);
		io.waited = 0;
		for (a = bio->work; a && !within(waits, a); a = a->parent)
			if (a->open)
				add_io(a, &io);
	}
	put(bio->work);
	bio->work = NULL;
	bio->thread = 0;
	if (!t || t->io_gaps != bio->gaps || !t->ios)
		return;
	t->ios--;
	if (d && t->state == SUM_SLEEPING)
		sum_activity_thread(s, t, time);
}

/* ---------------------------------------------------------------- what is kept */

/* The shorter, of equal ones the later, goes first. */
static bool goes_before(const struct sum_activity *a, const struct sum_activity *b)
{
	uint64_t x = a->end - a->begin, y = b->end - b->begin;

	return x != y ? x < y : a->begin > b->begin;
}

static void keep(struct summary *s, struct sum_activity *a)
{
	unsigned int max = s->filter.top, i;

	if (!max || s->nr_acts < max) {
		if (s->nr_acts == s->max_acts) {
			s->max_acts = s->max_acts ? 2 * s->max_acts : 64;
			s->acts = sum_realloc(s->acts, s->max_acts, sizeof(struct sum_activity *));
		}
		for (i = s->nr_acts++; max && i && goes_before(a, s->acts[(i - 1) / 2]); i = (i - 1) / 2)
			s->acts[i] = s->acts[(i - 1) / 2];
		s->acts[i] = get(a);
		return;
	}
	if (goes_before(a, s->acts[0]))
		return;
	put(s->acts[0]);
	for (i = 0;;) {
		unsigned int k = 2 * i + 1;

		if (k >= max)
			break;
		if (k + 1 < max && goes_before(s->acts[k + 1], s->acts[k]))
			k++;
		if (!goes_before(s->acts[k], a))
			break;
		s->acts[i] = s->acts[k];
		i = k;
	}
	s->acts[i] = get(a);
}

static void add_up(struct sum_activity *a)
{
	struct sum_act_kind *k = a->kind;

	sum_hist_add(&k->duration, a->end - a->begin);
	k->lossy += a->lossy;
	k->cpu_ns += a->cpu_ns;
	for (int d = 0; d < SUM_NR_DOING; d++)
		k->ns[d] += a->ns[d];
	for (unsigned int i = 0; i < a->nr_disks; i++) {
		const struct sum_act_disk *from = &a->disks[i];
		struct sum_act_disk *to = disk_get(&k->disks, &k->nr_disks, from->disk, from->op);

		to->count += from->count;
		to->bytes += from->bytes;
		to->errors += from->errors;
		to->waited += from->waited;
		to->activities += from->waited != 0;
		if (from->longest > to->longest)
			to->longest = from->longest;
	}
}

/* @a is over, or not heard of again. Who worked for it goes back to what it did before. */
static void end_activity(struct summary *s, struct sum_activity *a, uint64_t time)
{
	account(a, time);
	a->end = a->at;
	a->lossy = s->gap_end > a->begin;
	for (struct sum_thread *t = a->threads; t; t = t->beside)
		a->wanted |= t->wanted;
	open_remove(s, a);
	while (a->threads) {
		struct sum_thread *t = a->threads;

		end_work(t, time);
		get(a);
		work_pop(t);
		work_trim(t, a);
		put(a);
		begin_work(t, time);
	}
}

/* ---------------------------------------------------------------- events */

/*
 * May another one be inside @a? Parents that are over are of no use to an activity that begins, and would make a chain
 * that never ends.
 */
static bool may_contain(struct sum_activity *a)
{
	unsigned int depth = 0;

	for (; a; a = a->parent, depth++)
		while (a->parent && !a->parent->open) {
			struct sum_activity *over = a->parent;

			a->parent = get(over->parent);
			put(over);
		}
	return depth && depth < MAX_DEPTH;
}

static void start(struct summary *s, const struct sum_event *e, struct sum_thread *t)
{
	struct sum_activity *a = sum_alloc(1, sizeof(*a)), *parent = NULL;

	if (is_id(e->act.related))
		parent = open_find(s, e->act.related, e->act.provider);
	if (!parent)
		parent = open_find(s, e->act.id, e->act.provider);
	a->refs = 1;		/* as one that is open */
	memcpy(a->id, e->act.id, sizeof(a->id));
	if (is_id(e->act.related))
		memcpy(a->parent_id, e->act.related, sizeof(a->parent_id));
	else if (parent)
		memcpy(a->parent_id, parent->id, sizeof(a->parent_id));
	a->parent = may_contain(parent) ? get(parent) : NULL;
	a->parent_kind = parent ? parent->kind : NULL;
	a->kind = kind_get(s, e->act.provider, e->act.name);
	a->task = e->act.task;
	a->start_fields = copy(e->act.fields);
	a->proc = t ? t->proc : s->idle;
	a->proc->refs++;
	a->begin = a->at = e->time;
	a->cpu_wanted = sum_cpu_wanted(s, e->cpu);
	a->wanted = !s->filter.nr_pids && !s->filter.nr_comms;
	open_add(s, a);
	if (t)
		works_also_for(t, a, e->time);
	if (s->nr_open > MAX_OPEN) {
		a = s->oldest;
		end_activity(s, a, e->time);
		if (a->wanted && a->cpu_wanted)
			a->kind->unfinished++;
		put(a);
	}
}

static void stop(struct summary *s, const struct sum_event *e)
{
	struct sum_activity *a = stopped_by(s, e);

	if (!a) {
		if (sum_in_window(s, e->time) && !s->filter.nr_pids && !s->filter.nr_comms && sum_cpu_wanted(s, e->cpu))
			kind_get(s, e->act.provider, e->act.name)->started_before++;
		return;
	}
	end_activity(s, a, e->time);
	a->finished = true;
	if (a->wanted && a->cpu_wanted && sum_in_window(s, e->time)) {
		a->stop_fields = copy(e->act.fields);
		add_up(a);
		keep(s, a);
	}
	put(a);
}

void sum_activity_event(struct summary *s, const struct sum_event *e)
{
	struct sum_thread *t = e->tid > 0 ? sum_thread_get(s, e->tid) : NULL;
	struct sum_activity *a;

	if (e->time >= s->filter.to)
		return;
	/* Whoever writes runs; without scheduler events nobody knows for how long. */
	if (t && s->sched_from)
		set_doing(t, SUM_ON_CPU, e->time);
	if (!is_id(e->act.id)) {
		if (t && e->kind == SUM_WORK)
			work_clear(t, e->time);
		return;
	}
	switch (e->kind) {
	case SUM_START:
		start(s, e, t);
		break;
	case SUM_STOP:
		stop(s, e);
		break;
	default:
		a = open_find(s, e->act.id, e->act.provider);
		if (!a || !t)
			break;
		if (e->kind == SUM_WORK)
			works_for(t, a, e->time);
		else
			leaves_work(t, a, e->time);
	}
}

/* ---------------------------------------------------------------- the end */

void sum_activity_finish(struct summary *s, uint64_t end)
{
	if (s->filter.to < end)
		end = s->filter.to;
	while (s->oldest) {
		struct sum_activity *a = s->oldest;

		end_activity(s, a, end);
		if (a->wanted && a->cpu_wanted) {
			a->kind->unfinished++;
			keep(s, a);
		}
		put(a);
	}
}

/* Threads and I/Os are gone already. */
void sum_activity_free(struct summary *s)
{
	struct sum_act_kind *k, *next;

	while (s->oldest) {
		struct sum_activity *a = s->oldest;

		open_remove(s, a);
		put(a);
	}
	for (unsigned int i = 0; i < s->nr_acts; i++)
		put(s->acts[i]);
	free(s->acts);
	for (k = s->act_kinds; k; k = next) {
		next = k->next;
		sum_hist_clear(&k->duration);
		free(k->disks);
		free(k->name);
		free(k);
	}
}
