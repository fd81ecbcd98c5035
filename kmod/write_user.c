// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes runs of events to all targets: one reservation for a run where nothing speaks against it, else one for each event.
 * Takes no lock.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/time64.h>

#include "compat.h"
#include "relay.h"
#include "write.h"
#include "write_user.h"

/* What a record takes at most beside its payload. */
#define OVERHEAD (sizeof(struct etw_packet_header) + sizeof(struct etw_record_extended))

/* What a user can have saved up: a tenth of a second's worth. */
#define BURST_NS (NSEC_PER_SEC / 10)

#define RATE 100000
u32 etw_untrusted_ns = NSEC_PER_SEC / RATE;
static unsigned int untrusted_rate = RATE;

static int set_rate(const char *text, const struct kernel_param *param)
{
	unsigned int rate;
	int err = kstrtouint(text, 0, &rate);

	if (err)
		return err;
	if (rate > NSEC_PER_SEC)
		return -EINVAL;
	untrusted_rate = rate;
	WRITE_ONCE(etw_untrusted_ns, rate ? NSEC_PER_SEC / rate : 0);
	return 0;
}

static const struct kernel_param_ops rate_ops = { .set = set_rate, .get = param_get_uint };
module_param_cb(untrusted_rate, &rate_ops, &untrusted_rate, 0644);
MODULE_PARM_DESC(untrusted_rate,
		 "events a second that one user without CAP_PERFMON may record in one session on one CPU; 0 = no limit");

/*
 * A leaky bucket as one word: until when this user has spent the time of this CPU. The clock is that of the whole
 * machine, so @now can be a little behind.
 */
static bool within_rate(const struct etw_target *t, u64 now, u32 nr)
{
	const u64 cost = (u64)nr * READ_ONCE(etw_untrusted_ns);
	u64 spent = max(__this_cpu_read(*t->rate), now);

	if (spent + cost > now + BURST_NS)
		return false;
	__this_cpu_write(*t->rate, spent + cost);
	return true;
}

/* Of a full relay the last quarter is left to those who are trusted. */
static bool leaves_room(const struct etw_relay *r, u32 bytes)
{
	const u64 size = (u64)r->nr_slots << r->shift;

	return r->overwrite || READ_ONCE(r->reserve) + bytes - READ_ONCE(r->consumed) <= size / 4 * 3;
}

static u8 *put_compact(u8 *to, const struct etw_target *t, u64 ts)
{
	struct etw_record_compact *h = (void *)to;

	h->id = t->class_id;
	h->timestamp = ts;
	put_unaligned(etw_ids(current), (u64 *)(to + offsetof(struct etw_record_compact, tid)));
	return to + sizeof(*h);
}

static u8 *put_extended(u8 *to, const struct etw_target *t, u64 ts)
{
	struct etw_record_extended *h = (void *)to;

	*h = (struct etw_record_extended){ ETW_ID_EXTENDED, t->class_id, ts, current->pid, current->tgid };
	return to + sizeof(*h);
}

static void copy_run(const struct etw_run *run, const struct etw_target *t, const struct etw_reservation *res)
{
	const u8 *from = run->first;
	u8 *to = res->to;
	u32 i;

	for (i = 0; i < run->nr; i++) {
		const u32 size = get_unaligned((const u32 *)from);
		const u32 len = size - sizeof(struct etw_write);

		to = unlikely(!i && res->extended) ? put_extended(to, t, res->ts) : put_compact(to, t, res->ts);
		memcpy(to, from + sizeof(struct etw_write), len);
		to += len;
		from += size;
	}
}

/* Each event for itself: a filter chooses among them, or together they are too many. */
static int write_each(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool trusted);

static int write_target(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool trusted)
{
	struct etw_relay *r = this_cpu_read(*t->true_relays);
	const u32 payload = run->bytes - run->nr * sizeof(struct etw_write);
	const u32 len = payload + (run->nr - 1) * sizeof(struct etw_record_compact);	/* without the first header */
	struct etw_reservation res;
	u32 records;
	u64 now;

	if (t->filtered) {
		const struct etw_vec vec = { run->first + sizeof(struct etw_write), payload };

		if (run->nr > 1)
			return write_each(run, t, moment, trusted);
		if (!etw_target_wants(t, NULL, &vec, 1)) {
			this_cpu_inc(t->counts->filtered);
			return 0;
		}
	}
	if (unlikely(r == &etw_no_relay)) {
		etw_target_lose(t, ETW_LOST_CPU, run->nr);
		return -ENOBUFS;
	}
	if (unlikely(len > min_t(u32, ETW_MAX_PAYLOAD, r->size - 128))) {
		if (run->nr > 1)
			return write_each(run, t, moment, trusted);
		etw_target_lose(t, ETW_LOST_TOO_LARGE, 1);
		return -EMSGSIZE;
	}
	if (!trusted && t->rate) {
		if (!leaves_room(r, len + OVERHEAD) || !within_rate(t, moment->monotonic, run->nr)) {
			if (run->nr > 1)
				return write_each(run, t, moment, trusted);
			etw_target_lose(t, leaves_room(r, len + OVERHEAD) ? ETW_LOST_RATE : ETW_LOST_NO_ROOM, 1);
			return -ENOBUFS;
		}
	}
	now = moment->monotonic;
	if (t->boot_clock) {
		if (!moment->boot)
			moment->boot = etw_clock_read(true);
		now = moment->boot;
	}
	res.extended = false;
	if (t->boot_clock || !etw_relay_try_reserve(r, now + r->clock_offset, len + sizeof(struct etw_record_compact), &res)) {
		etw_relay_reserve(r, now + r->clock_offset, t->boot_clock, len, &res);
		if (!res.to) {
			/* the relay counted one */
			for (records = 1; records < run->nr; records++)
				etw_relay_lose(r, res.cause, etw_relay_now(r, t->boot_clock));
			this_cpu_add(t->counts->lost[res.cause], run->nr);
			return -ENOBUFS;
		}
	}
	copy_run(run, t, &res);
	records = etw_relay_commit_records(r, &res, run->nr);
	this_cpu_add(t->counts->written, run->nr);
	if (unlikely(records))
		etw_relay_deliver(r, res.slot, res.at, records);
	return 0;
}

static int write_each(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool trusted)
{
	struct etw_run one = *run;
	int worst = 0;
	u32 i;

	one.nr = 1;
	for (i = 0; i < run->nr; i++) {
		int err;

		one.bytes = get_unaligned((const u32 *)one.first);
		err = write_target(&one, t, moment, trusted);
		worst = worst ?: err;
		one.first += one.bytes;
	}
	return worst;
}

int etw_write_run(const struct etw_run *run, struct etw_moment *moment, bool trusted)
{
	const struct etw_target *t;
	int worst = 0;

	for (t = etw_targets_of(run->class)->t; t->relays; t++) {
		int err = write_target(run, t, moment, trusted);

		worst = worst ?: err;
	}
	return worst;
}
