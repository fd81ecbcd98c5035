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

/* What a user can have saved up: a tenth of a second's worth, and the long way takes one event that costs more. */
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
		 "events of up to 256 bytes a second that one user without CAP_PERFMON may record in one session on one CPU; 0 = no limit");

/*
 * A leaky bucket as one word: until when this user has spent the time of this CPU. The clock is that of the whole
 * machine, so @now can be a little behind. @most: @now + BURST_NS. @cost: see cost_of().
 */
static __always_inline bool within_rate(const struct etw_target *t, u64 now, u64 most, u64 cost)
{
	const u64 spent = max(__this_cpu_read(*t->rate), now) + cost;

	if (unlikely(spent > most))
		return false;
	__this_cpu_write(*t->rate, spent);
	return true;
}

/* @nr events of @bytes together, headers and payloads: by number, or if they are large by bytes. */
static __always_inline u64 cost_of(u32 nr, u32 bytes)
{
	const u64 ns = READ_ONCE(etw_untrusted_ns);

	return likely(bytes <= nr * ETW_RATE_BYTES) ? nr * ns : bytes * ns / ETW_RATE_BYTES;
}

/* Of a full relay the last quarter is left to those who are trusted. */
static __always_inline bool leaves_room(const struct etw_relay *r, u32 bytes)
{
	return READ_ONCE(r->reserve) + bytes - READ_ONCE(r->consumed) <= r->untrusted;
}

static __always_inline u64 moment_at(struct etw_moment *moment, u8 source)
{
	if (!moment->now[source])
		moment->now[source] = etw_clock_read(source);
	return moment->now[source];
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

static __always_inline void copy_run(const struct etw_run *run, const struct etw_target *t, const struct etw_reservation *res,
				     bool extended)
{
	const u8 *from = run->first, *end = from + run->bytes;
	u8 *to = extended ? put_extended(res->to, t, res->ts) : put_compact(res->to, t, res->ts);

	for (;;) {
		const u32 size = get_unaligned((const u32 *)from);
		const u32 len = size - sizeof(struct etw_write);

		etw_copy_payload(to, from + sizeof(struct etw_write), len);
		from += size;
		if (from == end)
			break;
		to = put_compact(to + len, t, res->ts);
	}
}

/* Bytes of the records, the first with a compact header. */
static u32 run_size(const struct etw_run *run)
{
	return run->bytes + run->nr * (u32)(sizeof(struct etw_record_compact) - sizeof(struct etw_write));
}

/* Each event for itself: a filter chooses among them, or together they are too many. */
static int write_each(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool limited);

/* Whatever the target is and whatever comes up. @limited: rate and room of an untrusted user have to be looked at. */
static noinline int write_target(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool limited)
{
	struct etw_relay *r = __this_cpu_read(*t->true_relays);
	const u32 len = run_size(run) - sizeof(struct etw_record_compact);
	struct etw_reservation res;
	u32 records;

	if (t->filtered) {
		const struct etw_vec vec = { run->first + sizeof(struct etw_write), run->bytes - sizeof(struct etw_write) };

		if (run->nr > 1)
			return write_each(run, t, moment, limited);
		if (!etw_target_wants(t, NULL, &vec, 1)) {
			etw_cpu_add(etw_cpu(), t->counts->filtered, 1);
			return 0;
		}
	}
	if (r == &etw_no_relay) {
		etw_target_lose(t, ETW_LOST_CPU, run->nr);
		return -ENOBUFS;
	}
	if (len > min_t(u32, ETW_MAX_PAYLOAD, r->size - 128)) {
		if (run->nr > 1)
			return write_each(run, t, moment, limited);
		etw_target_lose(t, ETW_LOST_TOO_LARGE, 1);
		return -EMSGSIZE;
	}
	if (limited) {
		const bool room = leaves_room(r, len);
		const u64 cost = cost_of(run->nr, run_size(run)), saved = run->nr == 1 ? max_t(u64, BURST_NS, cost) : BURST_NS;
		const u64 monotonic = moment_at(moment, ETW_SOURCE_MONOTONIC);

		if (!room || !within_rate(t, monotonic, monotonic + saved, cost)) {
			if (run->nr > 1)
				return write_each(run, t, moment, limited);
			etw_target_lose(t, room ? ETW_LOST_RATE : ETW_LOST_NO_ROOM, 1);
			return -ENOBUFS;
		}
	}
	etw_relay_reserve(r, moment_at(moment, t->source) + r->clock_offset, t->source, len, &res);
	if (!res.to) {
		/* the relay counted one */
		for (records = 1; records < run->nr; records++)
			etw_relay_lose(r, res.cause, etw_relay_now(r, t->source));
		etw_cpu_add(etw_cpu(), t->counts->lost[res.cause], run->nr);
		return -ENOBUFS;
	}
	copy_run(run, t, &res, res.extended);
	records = etw_relay_commit_records(r, &res, run->nr);
	etw_cpu_add(etw_cpu(), t->counts->written, run->nr);
	if (records)
		etw_relay_deliver(r, res.slot, res.at, records);
	return 0;
}

static int write_each(const struct etw_run *run, const struct etw_target *t, struct etw_moment *moment, bool limited)
{
	struct etw_run one = *run;
	int worst = 0;
	u32 i;

	one.nr = 1;
	for (i = 0; i < run->nr; i++) {
		int err;

		one.bytes = get_unaligned((const u32 *)one.first);
		err = write_target(&one, t, moment, limited);
		worst = worst ?: err;
		one.first += one.bytes;
	}
	return worst;
}

/* May the run take the short way at @t? Rate and room have been seen to if it may. */
static __always_inline bool within_limits(const struct etw_target *t, const struct etw_relay *r, u64 monotonic, u64 most, u32 size,
					  u64 cost)
{
	return leaves_room(r, size) && within_rate(t, monotonic, most, cost);
}

/*
 * To all targets. @one: the run is a single event; that and @limited are worth code of their own. Nothing fits into a special
 * target's relay: then it is the long way's. @now: of the targets' source; @monotonic: for the rate, if @limited.
 */
static __always_inline int write_all(const struct etw_target *t, const struct etw_run *run, u32 size, const u64 now,
				     const u64 monotonic, struct etw_moment *moment, const bool limited, const bool one)
{
	const u64 ids = etw_ids(current);
	const u8 *payload = run->first + sizeof(struct etw_write);
	const u32 nr = one ? 1 : run->nr;
	const u64 cost = limited ? cost_of(nr, size) : 0;
	const struct etw_cpu cpu = etw_cpu();
	u64 most = monotonic + BURST_NS;
	int worst = 0, err;

	if (one)
		OPTIMIZER_HIDE_VAR(payload);	/* or two registers are taken where one does */
	OPTIMIZER_HIDE_VAR(most);		/* or it is computed for each target */
	for (; t->relays; t++) {
		struct etw_relay *r = etw_cpu_read(cpu, *t->relays);
		const bool checked = limited && within_limits(t, r, monotonic, most, size, cost);
		struct etw_reservation res __uninitialized;
		struct etw_record_compact *h;
		u32 records;

		if (unlikely(limited && !checked) || unlikely(!etw_relay_try_reserve(r, now + r->clock_offset, size, &res))) {
			/* copies, so that the originals stay in registers */
			if (one)
				err = write_target(&(struct etw_run){ payload - sizeof(struct etw_write), run->bytes, 1 }, t,
						   &(struct etw_moment){ { now } }, limited && !checked);
			else
				err = write_target(run, t, moment, limited && !checked);
			worst = worst ?: err;
			continue;
		}
		if (one) {
			h = (void *)res.to;
			h->id = t->class_id;
			h->timestamp = res.ts;
			put_unaligned(ids, (u64 *)(res.to + offsetof(struct etw_record_compact, tid)));
			etw_copy_payload((u8 *)(h + 1), payload, size - sizeof(*h));
		} else {
			copy_run(run, t, &res, false);
		}
		records = etw_relay_commit_records(r, &res, nr);
		etw_cpu_add(cpu, t->counts->written, nr);
		if (unlikely(records))
			etw_relay_deliver(r, res.slot, res.at, records);
	}
	return worst;
}

int etw_write_run(const struct etw_class *class, const struct etw_run *run, struct etw_moment *moment, bool trusted)
{
	const struct etw_targets *targets = etw_targets_of(class);
	const struct etw_target *t = targets->t;
	const u32 size = run_size(run);
	int worst = 0, err;
	u64 now;

	if (etw_rejected(targets, NULL, run->nr))
		return 0;
	if (likely(size <= ETW_SUBBUF_SIZE_MIN - 128)) {
		now = moment_at(moment, targets->source);
		return trusted ? write_all(t, run, size, now, 0, moment, false, false) :
				 write_all(t, run, size, now, moment_at(moment, ETW_SOURCE_MONOTONIC), moment, true, false);
	}
	for (; t->relays; t++) {
		err = write_target(run, t, moment, !trusted);
		worst = worst ?: err;
	}
	return worst;
}

int etw_write_run_to(const struct etw_class *class, const struct etw_run *run, struct etw_moment *moment, bool trusted,
		     struct etw_relay *__percpu *only)
{
	const struct etw_target *t = etw_targets_of(class)->t;

	for (; t->relays; t++)
		if (t->true_relays == only)
			return write_target(run, t, moment, !trusted);
	return 0;
}

static noinline int write_unusual(const struct etw_class *class, const u8 *first, u32 bytes, bool trusted)
{
	struct etw_moment moment = {};

	return etw_write_run(class, &(struct etw_run){ first, bytes, 1 }, &moment, trusted);
}

int etw_write_one(const struct etw_class *class, const u8 *first, u32 bytes, bool trusted)
{
	const struct etw_targets *targets = etw_targets_of(class);
	const u32 size = bytes + (u32)(sizeof(struct etw_record_compact) - sizeof(struct etw_write));
	const struct etw_run run = { first, bytes, 1 };
	u64 now;

	BUILD_BUG_ON(ETW_WRITE_ONE + sizeof(struct etw_record_compact) > ETW_SUBBUF_SIZE_MIN - 128);
	if (unlikely(targets->unusual))
		return write_unusual(class, first, bytes, trusted);
	now = etw_clock_read(ETW_SOURCE_MONOTONIC);
	return trusted ? write_all(targets->t, &run, size, now, now, NULL, false, true) :
			 write_all(targets->t, &run, size, now, now, NULL, true, true);
}
