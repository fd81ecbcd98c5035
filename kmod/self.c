// SPDX-License-Identifier: GPL-2.0-only
/* The provider "etw": session start and stop, enables, clock snapshots and losses, as events. Knows no file. */
#include <linux/atomic.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "enable.h"
#include "event.h"
#include "self.h"

#define KW_SESSION	0x1
#define KW_ENABLE	0x2
#define KW_CLOCK	0x4
#define KW_LOSS		0x8

static const struct etw_keyword_name keywords[] = {
	{ KW_SESSION, "session" },
	{ KW_ENABLE, "enable" },
	{ KW_CLOCK, "clock" },
	{ KW_LOSS, "loss" },
};

static const struct etw_value clock_values[] = {
	{ ETW_CLOCK_MONOTONIC, "monotonic" }, { ETW_CLOCK_BOOT, "boot" }, { ETW_CLOCK_REAL, "real" },
	{ ETW_CLOCK_CYCLES, "cycles" },
};

static const struct etw_map clock_map = { ETW_MAP_VALUES, ARRAY_SIZE(clock_values), clock_values };

static const struct etw_value reason_values[] = {
	{ ETW_STOP_REQUEST, "request" }, { ETW_STOP_CLOSED, "closed" }, { ETW_STOP_CLOCK, "clock" },
};

static const struct etw_map reason_map = { ETW_MAP_VALUES, ARRAY_SIZE(reason_values), reason_values };

static const struct etw_value cause_values[] = {
	{ ETW_LOST_NO_ROOM, "no_room" }, { ETW_LOST_WRAPPED, "wrapped" }, { ETW_LOST_NESTED, "nested" },
	{ ETW_LOST_TOO_LARGE, "too_large" }, { ETW_LOST_CPU, "cpu" }, { ETW_LOST_RATE, "rate" },
};

static const struct etw_map cause_map = { ETW_MAP_VALUES, ARRAY_SIZE(cause_values), cause_values };

static const struct etw_value flag_values[] = {
	{ ETW_SESSION_PERSIST, "persist" }, { ETW_SESSION_OVERWRITE, "overwrite" }, { ETW_SESSION_ADDRESSES, "addresses" },
};

static const struct etw_map flag_map = { ETW_MAP_FLAGS, ARRAY_SIZE(flag_values), flag_values };

#define SESSION_STATE(F)			\
	F(U64, session_id, DEFAULT, NULL)	\
	F(GUID, trace_uuid, DEFAULT, NULL)	\
	F(S32, owner, PID, NULL)		\
	F(U32, flags, HEX, &flag_map)		\
	F(U32, clock, DEFAULT, &clock_map)	\
	F(U32, subbuf_size, DEFAULT, NULL)	\
	F(U32, subbufs, DEFAULT, NULL)		\
	F(U64, start, DEFAULT, NULL)		\
	F(STRING, session, DEFAULT, NULL)
ETW_EVENT(session_start, SESSION_STATE, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = KW_SESSION, .opcode = ETW_OPCODE_START,
	  .description = "a session was created");
ETW_EVENT(session_state, SESSION_STATE, .event_id = 2, .opcode = ETW_OPCODE_DC_START, .rundown = true,
	  .description = "this session, as it is");

#define SESSION_STOP(F)				\
	F(U64, session_id, DEFAULT, NULL)	\
	F(U32, reason, DEFAULT, &reason_map)	\
	F(S32, stopper, PID, NULL)		\
	F(STRING, session, DEFAULT, NULL)
ETW_EVENT(session_stop, SESSION_STOP, .event_id = 3, .level = ETW_LEVEL_INFO, .keyword = KW_SESSION, .opcode = ETW_OPCODE_STOP,
	  .description = "a session was stopped");

#define PROVIDER_ENABLE(F)			\
	F(U64, session_id, DEFAULT, NULL)	\
	F(GUID, provider_guid, DEFAULT, NULL)	\
	F(U32, level, DEFAULT, NULL)		\
	F(U64, any, HEX, NULL)			\
	F(U64, all, HEX, NULL)			\
	F(U32, flags, HEX, NULL)		\
	F(U32, pids, DEFAULT, NULL)		\
	F(STRING, provider, DEFAULT, NULL)
ETW_EVENT(provider_enable, PROVIDER_ENABLE, .event_id = 4, .level = ETW_LEVEL_INFO, .keyword = KW_ENABLE,
	  .opcode = ETW_OPCODE_START, .description = "a session enabled a provider, or changed how");
ETW_EVENT(provider_disable, PROVIDER_ENABLE, .event_id = 5, .level = ETW_LEVEL_INFO, .keyword = KW_ENABLE,
	  .opcode = ETW_OPCODE_STOP, .description = "a session disabled a provider");

#define CLOCKS(F)				\
	F(U64, monotonic, DEFAULT, NULL)	\
	F(U64, boot, DEFAULT, NULL)		\
	F(U64, real, TIME, NULL)		\
	F(U64, tai, DEFAULT, NULL)		\
	F(U64, cycles, DEFAULT, NULL)
ETW_EVENT(clock_snapshot, CLOCKS, .event_id = 6, .level = ETW_LEVEL_INFO, .keyword = KW_CLOCK,
	  .description = "the clocks, read together");

#define LOST(F)					\
	F(U32, cpu, DEFAULT, NULL)		\
	F(U32, cause, DEFAULT, &cause_map)	\
	F(U64, count, DEFAULT, NULL)		\
	F(U64, first, DEFAULT, NULL)		\
	F(U64, last, DEFAULT, NULL)
ETW_EVENT(records_lost, LOST, .event_id = 7, .level = ETW_LEVEL_WARNING, .keyword = KW_LOSS,
	  .description = "records this session lost on one CPU: how many, why, and the times of the first and the last");

static struct etw_class *const classes[] = {
	&session_start_class, &session_state_class, &session_stop_class, &provider_enable_class, &provider_disable_class,
	&clock_snapshot_class, &records_lost_class,
};

static bool write_self(struct etw_session *s, const struct etw_class *class, const struct etw_vec *vec, unsigned int nr)
{
	return etw_write_direct(s, class, current->pid, current->tgid, vec, nr);
}

static void broadcast(const struct etw_class *class, const struct etw_vec *vec, unsigned int nr)
{
	const struct etw_targets *targets;
	struct etw_event event;

	preempt_disable();
	targets = etw_targets_of(class);
	if (!etw_rejected(targets, NULL, 1) && etw_begin(&event, targets, NULL))
		etw_end_vec(&event, vec, nr);
	preempt_enable();
}

static void session_state(struct etw_session *s, struct session_state_record *r)
{
	*r = (struct session_state_record){
		.session_id = s->id,
		.owner = pid_nr(s->owner),
		.flags = s->flags,
		.clock = s->clock,
		.subbuf_size = s->subbuf_size,
		.subbufs = s->nr_subbufs,
		.start = etw_session_ns(s, s->start_time),
	};
	memcpy(r->trace_uuid, s->uuid, sizeof(r->trace_uuid));
}

void etw_self_session_start(struct etw_session *about)
{
	struct session_state_record r;
	struct etw_vec vec[] = { { &r, sizeof(r) }, { about->name, strlen(about->name) + 1 } };

	session_state(about, &r);
	broadcast(&session_start_class, vec, ARRAY_SIZE(vec));
}

static int rundown(struct etw_session *s)
{
	struct session_state_record r;
	struct etw_vec vec[] = { { &r, sizeof(r) }, { s->name, strlen(s->name) + 1 } };

	session_state(s, &r);
	write_self(s, &session_state_class, vec, ARRAY_SIZE(vec));
	etw_self_clock(s);
	return 0;
}

static void stop_record(struct etw_session *s, u32 reason, struct session_stop_record *r)
{
	*r = (struct session_stop_record){ .session_id = s->id, .reason = reason };
	if (s->stopper)
		r->stopper = pid_nr(s->stopper);
}

void etw_self_session_stop(struct etw_session *about, u32 reason)
{
	struct session_stop_record r;
	struct etw_vec vec[] = { { &r, sizeof(r) }, { about->name, strlen(about->name) + 1 } };

	stop_record(about, reason, &r);
	broadcast(&session_stop_class, vec, ARRAY_SIZE(vec));
}

void etw_self_stopped(struct etw_session *s, u32 reason)
{
	struct session_stop_record r;
	struct etw_vec vec[] = { { &r, sizeof(r) }, { s->name, strlen(s->name) + 1 } };

	stop_record(s, reason, &r);
	write_self(s, &session_stop_class, vec, ARRAY_SIZE(vec));
}

void etw_self_provider_enable(struct etw_session *about, const struct etw_enabling *e, bool enable)
{
	struct provider_enable_record r = {
		.session_id = about->id,
		.level = e->level,
		.any = e->any,
		.all = e->all,
		.flags = e->flags,
		.pids = e->filter ? e->filter->nr : 0,
	};
	struct etw_vec vec[] = { { &r, sizeof(r) }, { e->name, strlen(e->name) + 1 } };

	memcpy(r.provider_guid, &e->guid, sizeof(r.provider_guid));
	broadcast(enable ? &provider_enable_class : &provider_disable_class, vec, ARRAY_SIZE(vec));
}

void etw_self_clock(struct etw_session *s)
{
	struct clock_snapshot_record r;
	struct etw_vec vec = { &r, sizeof(r) };
	struct etw_clocks c;

	etw_clocks_read(&c);
	r = (struct clock_snapshot_record){ c.monotonic, c.boot, c.real, c.tai, c.cycles };
	write_self(s, &clock_snapshot_class, &vec, 1);
	s->last_snapshot = etw_session_now(s);
}

/* What finds no room stays to be reported, with its first time. */
static void report_loss(struct etw_session *s, u32 cpu, u32 cause, struct etw_loss *loss)
{
	const u64 count = READ_ONCE(loss->count);
	struct records_lost_record r = { .cpu = cpu, .cause = cause, .count = count - loss->reported };
	struct etw_vec vec = { &r, sizeof(r) };
	u64 first;

	if (!r.count)
		return;
	first = xchg(&loss->first, 0);
	if (!loss->pending_first)
		loss->pending_first = first;
	r.last = etw_session_ns(s, READ_ONCE(loss->last));
	r.first = loss->pending_first ? etw_session_ns(s, loss->pending_first) : r.last;
	if (!write_self(s, &records_lost_class, &vec, 1))
		return;
	loss->reported = count;
	loss->pending_first = 0;
}

void etw_self_losses(struct etw_session *s)
{
	u32 cpu, cause;

	lockdep_assert_held(&s->direct);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = etw_session_relay(s, cpu);

		for (cause = 0; r && cause < ETW_NR_LOST; cause++)
			report_loss(s, cpu, cause, &r->losses[cause]);
	}
}

struct etw_provider etw_provider_self = {
	.guid = UUID_INIT(0x08862630, 0x317c, 0x5f80, 0xb5, 0x56, 0x65, 0xf8, 0x40, 0x09, 0x53, 0xa4),
	.name = "Linux-Kernel-Etw",
	.alias = "etw",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.classes = classes,
	.nr_classes = ARRAY_SIZE(classes),
	.rundown = rundown,
};
