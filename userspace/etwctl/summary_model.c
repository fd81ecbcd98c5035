// SPDX-License-Identifier: GPL-2.0-only
/*
 * The analysis as a whole: hands each event to the parts it concerns. It must not know how they count.
 */
#include "summary_model.h"

#include <stdlib.h>
#include <string.h>

static struct sum_proc *special(struct summary *s, int32_t pid, const char *name)
{
	struct sum_proc *p = sum_proc_new(s, pid);

	memcpy(p->name, name, strlen(name));
	p->named_by_leader = true;
	p->kernel = true;
	return p;
}

struct summary *summary_new(const struct sum_filter *filter, const struct sum_gap *gaps, unsigned int nr_gaps)
{
	struct summary *s = sum_alloc(1, sizeof(*s));

	if (filter)
		s->filter = *filter;
	if (!s->filter.to)
		s->filter.to = SUM_FOREVER;
	s->all_tail = &s->all;
	s->act_kinds_tail = &s->act_kinds;
	s->idle = special(s, 0, "idle");
	s->writeback = special(s, -1, "writeback");
	s->writeback->writeback = true;
	if (nr_gaps) {
		s->gaps = sum_alloc(nr_gaps, sizeof(*gaps));
		memcpy(s->gaps, gaps, nr_gaps * sizeof(*gaps));
		s->nr_gaps = nr_gaps;
	}
	return s;
}

static struct sum_cpu *cpu_get(struct summary *s, uint32_t cpu)
{
	if (cpu >= s->nr_cpus) {
		s->cpus = sum_realloc(s->cpus, cpu + 1, sizeof(*s->cpus));
		memset(&s->cpus[s->nr_cpus], 0, (cpu + 1 - s->nr_cpus) * sizeof(*s->cpus));
		for (uint32_t c = s->nr_cpus; c <= cpu; c++)
			s->cpus[c].cur = s->cpus[c].other = SUM_NOBODY;
		s->nr_cpus = cpu + 1;
	}
	return &s->cpus[cpu];
}

void summary_sched_from(struct summary *s, uint64_t time)
{
	if (!s->sched_from || time < s->sched_from)
		s->sched_from = time;
}

void summary_cpu_end(struct summary *s, uint32_t cpu, uint64_t time)
{
	cpu_get(s, cpu)->end = time;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3ULL;
	return h;
}

/* What tells events of one kind, CPU and time apart. */
static uint64_t key_of(const struct sum_event *e)
{
	switch (e->kind) {
	case SUM_SWITCH:
		return (uint64_t)e->sw.prev_tid << 32 | (uint32_t)e->sw.next_tid;
	case SUM_WAKING:
	case SUM_WAKEUP:
	case SUM_WAKEUP_NEW:
	case SUM_RENAME:
	case SUM_EXIT:
	case SUM_FREE:
	case SUM_EXEC:
	case SUM_DUMP_TASK:
		return e->task.tid;
	case SUM_FORK:
		return e->fork.child_tid;
	case SUM_FAULT_USER:
	case SUM_FAULT_KERNEL:
		return e->fault.address ^ e->fault.ip;
	case SUM_DUMP_DISK:
		return e->disk.dev;
	case SUM_START:
	case SUM_STOP:
	case SUM_WORK:
	case SUM_SUSPEND:
		return hash(hash(e->tid, e->act.id, 16), e->act.name, strlen(e->act.name));
	default:
		return e->blk.sector ^ (uint64_t)e->blk.dev << 40 ^ e->blk.nr;
	}
}

/* Two sessions on one machine record the same event with the same time; it must count once. */
static bool is_duplicate(struct sum_cpu *c, const struct sum_event *e)
{
	uint64_t key;
	unsigned int i;

	if (e->kind == SUM_OTHER || e->kind == SUM_FOREIGN)
		return false;
	key = key_of(e);
	if (c->time != e->time) {
		c->time = e->time;
		c->nr_at_time = 0;
	}
	for (i = 0; i < c->nr_at_time; i++)
		if (c->at_time[i].kind == e->kind && c->at_time[i].key == key && c->at_time[i].source != e->source)
			return true;
	if (i < sizeof(c->at_time) / sizeof(c->at_time[0])) {
		c->at_time[i] = (struct sum_seen){ .kind = e->kind, .source = e->source, .key = key };
		c->nr_at_time++;
	}
	return false;
}

bool summary_event(struct summary *s, const struct sum_event *e)
{
	struct sum_cpu *c = cpu_get(s, e->cpu);

	while (s->next_gap < s->nr_gaps && s->gaps[s->next_gap].from < e->time) {
		cpu_get(s, s->gaps[s->next_gap].cpu);
		sum_sched_gap(s, &s->gaps[s->next_gap++]);
		c = cpu_get(s, e->cpu);
	}
	if (!s->first)
		s->first = e->time;
	s->last = e->time;
	if (is_duplicate(c, e)) {
		s->duplicates++;
		return false;
	}
	s->kind_count[e->kind]++;
	sum_task_event(s, e);
	sum_sched_event(s, e);
	if (e->kind >= SUM_BIO_QUEUE && e->kind <= SUM_RQ_COMPLETE)
		sum_block_event(s, e);
	else if (e->kind == SUM_DUMP_DISK)
		sum_block_event(s, e);
	else if (e->kind == SUM_FAULT_USER || e->kind == SUM_FAULT_KERNEL)
		sum_fault_event(s, e);
	else if (e->kind >= SUM_START && e->kind <= SUM_SUSPEND)
		sum_activity_event(s, e);
	sum_proc_forget(s);
	return true;
}

void summary_finish(struct summary *s, uint64_t end)
{
	if (end < s->last)
		end = s->last;
	sum_sched_finish(s, end);
	sum_activity_finish(s, end);
	sum_block_finish(s);
}

void summary_free(struct summary *s)
{
	if (!s)
		return;
	sum_block_free(s);
	sum_task_free(s);
	sum_activity_free(s);
	sum_proc_free(s);
	free(s->cpus);
	free(s->gaps);
	free(s);
}
