// SPDX-License-Identifier: GPL-2.0-only
/* Filters at event time and the fan-out of one record to its targets. Knows no file and takes no lock. */
#include <linux/kernel.h>
#include <linux/smp.h>

#include "compat.h"
#include "filter.h"
#include "relay.h"
#include "session.h"
#include "write.h"

DEFINE_PER_CPU(int, etw_nesting);

static __always_inline bool filter_passes(const struct etw_filter *f, const struct task_struct *subject)
{
	return etw_filter_has(f, current->pid) || etw_filter_has(f, current->tgid) ||
	       (subject && (etw_filter_has(f, subject->pid) || etw_filter_has(f, subject->tgid)));
}

/* All targets have filters: does one let the record through? If none does, it is counted as filtered in each. */
notrace bool etw_filters_pass(const struct etw_targets *targets, const struct task_struct *subject)
{
	u32 i;

	for (i = 0; i < targets->nr; i++)
		if (filter_passes(targets->t[i].filter, subject))
			return true;
	for (i = 0; i < targets->nr; i++)
		this_cpu_inc(targets->t[i].counts->filtered);
	return false;
}

/* Words, not memcpy(): a record is some tens of bytes, for which a call and "rep movsb" cost more than the copy. */
static __always_inline u8 *copy(u8 *to, const u8 *from, u32 len)
{
	for (; len >= 8; to += 8, from += 8, len -= 8)
		put_unaligned(get_unaligned((const u64 *)from), (u64 *)to);
	if (len & 4) {
		put_unaligned(get_unaligned((const u32 *)from), (u32 *)to);
		to += 4;
		from += 4;
	}
	if (len & 2) {
		put_unaligned(get_unaligned((const u16 *)from), (u16 *)to);
		to += 2;
		from += 2;
	}
	if (len & 1)
		*to++ = *from;
	return to;
}

/* The kernel's half of the address space; a user address in such a field is no secret. */
static notrace void scrub(u8 *payload, const struct etw_class *class)
{
	u32 i;

	for (i = 0; i < class->nr_scrub; i++) {
		u64 *p = (u64 *)(payload + class->scrub[i]);

		if ((s64)get_unaligned(p) < 0)
			put_unaligned(0ULL, p);
	}
}

static __always_inline u8 *put_header(u8 *to, const struct etw_reservation *res, u32 id, pid_t tid, pid_t tgid)
{
	if (unlikely(res->extended)) {
		struct etw_record_extended *h = (void *)to;

		h->id_extended = ETW_ID_EXTENDED;
		h->id = id;
		h->timestamp = res->ts;
		h->tid = tid;
		h->pid = tgid;
		return to + sizeof(*h);
	} else {
		struct etw_record_compact *h = (void *)to;

		h->id = id;
		h->timestamp = res->ts;
		h->tid = tid;
		h->pid = tgid;
		return to + sizeof(*h);
	}
}

static __always_inline void lose(const struct etw_target *t, struct etw_relay *r, unsigned int cause, u64 ts)
{
	if (r)
		etw_relay_lose(r, cause, ts);
	this_cpu_inc(t->counts->lost[cause]);
}

static notrace void lose_nested(const struct etw_target *t)
{
	struct etw_relay *r = *this_cpu_ptr(t->relays);

	lose(t, r, ETW_LOST_NESTED, r ? etw_relay_now(r, t->boot_clock) : 0);
}

static __always_inline bool write_target(const struct etw_class *class, const struct etw_target *t, u64 now, pid_t tid, pid_t tgid,
					 const struct etw_vec *vec, unsigned int nr, u32 len)
{
	struct etw_relay *r = *this_cpu_ptr(t->relays);
	struct etw_reservation res;
	u8 *to, *payload;
	unsigned int i;

	if (unlikely(!r)) {
		lose(t, NULL, ETW_LOST_CPU, 0);
		return false;
	}
	now += r->clock_offset;
	if (unlikely(len > min_t(u64, ETW_MAX_PAYLOAD, r->mask + 1 - 128))) {
		lose(t, r, ETW_LOST_TOO_LARGE, now);
		return false;
	}
	to = etw_relay_reserve(r, now, t->boot_clock, len, &res);
	if (unlikely(!to)) {
		this_cpu_inc(t->counts->lost[res.cause]);
		return false;
	}
	to = payload = put_header(to, &res, t->class_id, tid, tgid);
	for (i = 0; i < nr; i++)
		to = copy(to, vec[i].data, vec[i].len);
	if (unlikely(t->scrub))
		scrub(payload, class);
	etw_relay_commit(r, &res);
	this_cpu_inc(t->counts->written);
	return true;
}

static __always_inline u32 length(const struct etw_vec *vec, unsigned int nr)
{
	u32 i, len = 0;

	for (i = 0; i < nr; i++)
		len += vec[i].len;
	return len;
}

/* Between etw_begin() and the end of preemption's pause. One reading of each clock serves all targets that use it. */
notrace void etw_write(const struct etw_class *class, const struct etw_vec *vec, unsigned int nr, const struct task_struct *subject)
{
	const struct etw_targets *targets = rcu_dereference_raw(class->targets);
	const u32 len = length(vec, nr);
	u64 mono = 0, boot = 0, *now;
	u32 i;

	if (unlikely(!targets))
		return;
	if (unlikely(__this_cpu_inc_return(etw_nesting) > ETW_MAX_NESTING)) {
		for (i = 0; i < targets->nr; i++)
			lose_nested(&targets->t[i]);
		goto out;
	}
	for (i = 0; i < targets->nr; i++) {
		const struct etw_target *t = &targets->t[i];

		if (unlikely(t->filter) && !filter_passes(t->filter, subject)) {
			this_cpu_inc(t->counts->filtered);
			continue;
		}
		now = unlikely(t->boot_clock) ? &boot : &mono;
		if (!*now)
			*now = etw_clock_read(t->boot_clock);
		write_target(class, t, *now, current->pid, current->tgid, vec, nr, len);
	}
out:
	__this_cpu_dec(etw_nesting);
}

bool etw_write_direct(struct etw_session *session, const struct etw_class *class, pid_t tid, pid_t tgid,
		      const struct etw_vec *vec, unsigned int nr)
{
	struct etw_target t;
	bool written;

	if (!etw_session_direct_target(session, class, &t))
		return false;
	preempt_disable_notrace();
	__this_cpu_inc(etw_nesting);	/* process context, so never too deep */
	written = write_target(class, &t, etw_clock_read(t.boot_clock), tid, tgid, vec, nr, length(vec, nr));
	__this_cpu_dec(etw_nesting);
	preempt_enable_notrace();
	return written;
}
