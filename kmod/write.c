// SPDX-License-Identifier: GPL-2.0-only
/*
 * Filters at event time, and the long way of a record to its targets: any size, any clock, the turn of a packet.
 * Takes no lock.
 */
#include <linux/kernel.h>
#include <linux/pid.h>

#include "compat.h"
#include "filter.h"
#include "predicate.h"
#include "relay.h"
#include "session.h"
#include "write.h"

DEFINE_PER_CPU(int, etw_nesting);

static const struct etw_filter nobody;
static DEFINE_PER_CPU(struct etw_counts, unwanted);

struct etw_targets etw_no_targets = {
	.usual_nesting = ETW_MAX_NESTING,
	.unusual = true,
	.filter_hash = nobody.hash,
	.t = {
		{ .relays = &etw_no_relays, .true_relays = &etw_no_relays, .counts = &unwanted, .filter = &nobody },
		{ .relays = NULL },
	},
};

notrace void etw_copy(u8 *to, const u8 *from, u32 len)
{
	etw_copy_payload(to, from, len);
}

/*
 * The writer's process has one of the @nr names. Its main thread may be gone, and the memory with it, once this thread is no
 * longer among its threads: then its own name must do.
 */
static notrace bool process_is_named(const char *names, u32 nr)
{
	const struct task_struct *task = current;
	char comm[TASK_COMM_LEN];

	if (task->group_leader != task && pid_alive(task))
		task = READ_ONCE(task->group_leader);
	data_race(memcpy(comm, task->comm, sizeof(comm)));	/* a name that changes meanwhile may come out mixed of both */
	comm[sizeof(comm) - 1] = '\0';
	return etw_name_listed(comm, names, nr, sizeof(comm));
}

/* The writer, or the task the event is about, is among the filter's. */
static notrace bool has_task(const struct etw_filter *f, const struct task_struct *subject)
{
	return etw_filter_has(f, current->pid) || etw_filter_has(f, current->tgid) ||
	       (subject && (etw_filter_has(f, subject->pid) || etw_filter_has(f, subject->tgid)));
}

notrace bool etw_target_wants(const struct etw_target *t, const struct task_struct *subject, const struct etw_vec *vec, u32 nr)
{
	const struct etw_matcher *m = t->matcher;

	if (t->filter && !has_task(t->filter, subject))
		return false;
	return !m || ((!m->nr_processes || process_is_named(m->processes, m->nr_processes)) && etw_matcher_passes(m, vec, nr));
}

/*
 * Copy the first part of a payload without the kernel addresses in it. They must not even pass through the relay, which
 * the reader sees while it is written. The kernel's half of the address space only: a user address is no secret.
 */
static notrace void copy_scrubbed(u8 *to, const struct etw_vec *first, const struct etw_class *class)
{
	u8 clean[ETW_SCRUB_SIZE];
	u32 i, len = min_t(u32, first->len, sizeof(clean));

	memcpy(clean, first->data, len);
	for (i = 0; i < class->nr_scrub; i++) {
		u64 *p = (u64 *)(clean + class->scrub[i]);

		if ((s64)get_unaligned(p) < 0)
			put_unaligned(0ULL, p);
	}
	memcpy(to, clean, len);
	memcpy(to + len, first->data + len, first->len - len);
}

static notrace u8 *put_header(const struct etw_reservation *res, u32 id, pid_t tid, pid_t tgid)
{
	struct etw_record_compact *compact = (void *)res->to;

	if (res->extended) {
		struct etw_record_extended *h = (void *)res->to;

		*h = (struct etw_record_extended){ ETW_ID_EXTENDED, id, res->ts, tid, tgid };
		return (u8 *)(h + 1);
	}
	*compact = (struct etw_record_compact){ id, res->ts, tid, tgid };
	return (u8 *)(compact + 1);
}

notrace void etw_target_lose(const struct etw_target *t, unsigned int cause, u32 nr)
{
	struct etw_relay *r = __this_cpu_read(*t->true_relays);
	u32 i;

	if (r != &etw_no_relay)
		for (i = 0; i < nr; i++)
			etw_relay_lose(r, cause, etw_relay_now(r, t->source));
	etw_cpu_add(etw_cpu(), t->counts->lost[cause], nr);
}

/* Nested deeper than contexts can nest: something we call is traced. */
notrace void etw_nested(const struct etw_targets *targets)
{
	const struct etw_target *t;

	for (t = targets->t; t->relays; t++)
		etw_target_lose(t, ETW_LOST_NESTED, 1);
	__this_cpu_dec(etw_nesting);
}

/* @now: of the target's source, without the session's offset. */
static notrace bool write_target(const struct etw_class *class, const struct etw_target *t, u64 now, pid_t tid, pid_t tgid,
				 const struct etw_vec *vec, unsigned int nr)
{
	struct etw_relay *r = __this_cpu_read(*t->true_relays);
	struct etw_reservation res;
	u32 i, records, len = 0;
	u8 *to;

	for (i = 0; i < nr; i++)
		len += vec[i].len;
	if (r == &etw_no_relay) {
		etw_target_lose(t, ETW_LOST_CPU, 1);
		return false;
	}
	if (len > min_t(u64, ETW_MAX_PAYLOAD, r->size - 128)) {
		etw_target_lose(t, ETW_LOST_TOO_LARGE, 1);
		return false;
	}
	etw_relay_reserve(r, now + r->clock_offset, t->source, len, &res);
	if (!res.to) {
		etw_cpu_add(etw_cpu(), t->counts->lost[res.cause], 1);
		return false;
	}
	to = put_header(&res, t->class_id, tid, tgid);
	ETW_STEP(r, HEADER, res.at);
	for (i = 0; i < nr; to += vec[i++].len) {
		if (t->scrub && !i)
			copy_scrubbed(to, &vec[0], class);
		else
			memcpy(to, vec[i].data, vec[i].len);
		ETW_STEP(r, PART, res.at);
	}
	records = etw_relay_commit(r, &res);
	if (records)
		etw_relay_deliver(r, res.slot, res.at, records);
	etw_cpu_add(etw_cpu(), t->counts->written, 1);
	return true;
}

/* The long way, for the targets from @from on. */
notrace void etw_write(const struct etw_event *event, const struct etw_target *from, const struct etw_vec *vec, unsigned int nr)
{
	const struct etw_target *t;

	for (t = from; t->relays; t++) {
		if (t->filtered && !etw_target_wants(t, event->subject, vec, nr)) {
			etw_cpu_add(etw_cpu(), t->counts->filtered, 1);
			continue;
		}
		write_target(event->targets->class, t, t->source == event->targets->source ? event->now : etw_clock_read(t->source),
			     current->pid, current->tgid, vec, nr);
	}
}

notrace void etw_write_rest(const struct etw_rest *rest)
{
	const struct etw_vec vec = { rest->payload, rest->len };

	if (rest->records)
		etw_relay_deliver(rest->relay, rest->slot, rest->at, rest->records);
	etw_write(&rest->event, rest->t, &vec, 1);
}

bool etw_write_direct(struct etw_session *session, const struct etw_class *class, pid_t tid, pid_t tgid,
		      const struct etw_vec *vec, unsigned int nr)
{
	struct etw_target t;
	bool written = false;

	preempt_disable_notrace();	/* before the look at what is enabled: DISABLE waits for us */
	if (etw_session_direct_target(session, class, &t)) {
		__this_cpu_inc(etw_nesting);	/* process context, so never too deep */
		written = write_target(class, &t, etw_clock_read(t.source), tid, tgid, vec, nr);
		__this_cpu_dec(etw_nesting);
	}
	preempt_enable_notrace();
	return written;
}
