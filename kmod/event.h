/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a kernel event is declared: one list of fields gives the record's struct and its schema, and one probe is
 * checked against the tracepoint's prototype. Knows no session and no file.
 *
 *	#define SCHED_SWITCH(F)					one line a field: type, name, format, map
 *		F(COMM, prev_comm, DEFAULT, NULL)
 *		F(S32, prev_tid, PID, NULL)
 *		...
 *	ETW_EVENT(sched_switch, SCHED_SWITCH, .event_id = 1, .level = ETW_LEVEL_INFO, .keyword = SCHED_KW_SWITCH);
 *
 *	ETW_PROBE(sched_switch, next,
 *		  TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state),
 *		  TP_ARGS(preempt, prev, next, prev_state))
 *	{
 *		struct sched_switch_record r;
 *		struct etw_event event;
 *
 *		if (!etw_begin(&event, targets, next))
 *			return;
 *		r.prev_tid = prev->pid; ...
 *		etw_end(&event, &r, sizeof(r));
 *	}
 *
 * Types of variable length (STRING, SEQ_S32) have a place in the schema and none in the struct: the probe writes the
 * parts before, between and after them with etw_end_vec().
 */
#ifndef ETW_EVENT_H
#define ETW_EVENT_H

#include <linux/build_bug.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "class.h"
#include "write.h"

#define ETW_MEMBER_U8(n)	u8 n;
#define ETW_MEMBER_U16(n)	u16 n;
#define ETW_MEMBER_U32(n)	u32 n;
#define ETW_MEMBER_U64(n)	u64 n;
#define ETW_MEMBER_S8(n)	s8 n;
#define ETW_MEMBER_S16(n)	s16 n;
#define ETW_MEMBER_S32(n)	s32 n;
#define ETW_MEMBER_S64(n)	s64 n;
#define ETW_MEMBER_POINTER(n)	u64 n;
#define ETW_MEMBER_BOOL(n)	u8 n;
#define ETW_MEMBER_GUID(n)	u8 n[16];
#define ETW_MEMBER_COMM(n)	char n[TASK_COMM_LEN];
#define ETW_MEMBER_STRING(n)
#define ETW_MEMBER_SEQ_S32(n)

#define ETW_KIND_U8		.type = ETW_TYPE_U8
#define ETW_KIND_U16		.type = ETW_TYPE_U16
#define ETW_KIND_U32		.type = ETW_TYPE_U32
#define ETW_KIND_U64		.type = ETW_TYPE_U64
#define ETW_KIND_S8		.type = ETW_TYPE_S8
#define ETW_KIND_S16		.type = ETW_TYPE_S16
#define ETW_KIND_S32		.type = ETW_TYPE_S32
#define ETW_KIND_S64		.type = ETW_TYPE_S64
#define ETW_KIND_POINTER	.type = ETW_TYPE_POINTER
#define ETW_KIND_BOOL		.type = ETW_TYPE_BOOL
#define ETW_KIND_GUID		.type = ETW_TYPE_GUID
#define ETW_KIND_COMM		.type = ETW_TYPE_CHARS, .count = TASK_COMM_LEN
#define ETW_KIND_STRING		.type = ETW_TYPE_STRING
#define ETW_KIND_SEQ_S32	.type = ETW_TYPE_S32, .array = ETW_ARRAY_COUNTED

#define ETW_MEMBER(type, name, format, map)	ETW_MEMBER_##type(name)
#define ETW_FIELD(kind, field, fmt, values)	{ .name = #field, .map = values, ETW_KIND_##kind, .format = ETW_FORMAT_##fmt },

/*
 * The class @event##_class and the struct @event##_record; further members of struct etw_class follow the field list.
 */
#define ETW_EVENT(event, FIELDS, ...)									\
	struct event##_record { FIELDS(ETW_MEMBER) } __packed;						\
	static const struct etw_field event##_fields[] = { FIELDS(ETW_FIELD) };				\
	static struct etw_class event##_class = {							\
		.name = #event,										\
		.fields = event##_fields,								\
		.nr_fields = ARRAY_SIZE(event##_fields),						\
		__VA_ARGS__										\
	}

/* True if tracepoint @tp of the kernel being built for calls its probes with these arguments. */
#define ETW_TP_IS(tp, ...)										\
	__builtin_types_compatible_p(typeof(check_trace_callback_type_##tp), void (void (*)(void *, ##__VA_ARGS__)))

/*
 * The probe of @tp, whose own type is that of the assertion, so a prototype that changed on some kernel breaks the
 * build there. It looks whether anybody wants the record, about the writer or about @subject (NULL: the writer only),
 * and saves no registers for that; the body that follows the macro builds the record for @targets. Wire it up with
 * ETW_HOOK(tp) in ETW_EVENT().
 */
#define ETW_PROBE(tp, subject, proto, args)								\
	static_assert(ETW_TP_IS(tp, PARAMS(proto)), "tracepoint " #tp " has another prototype in this kernel");	\
	ETW_PROBE_NAMED(tp, subject, PARAMS(proto), PARAMS(args))

/*
 * The same without the assertion, for a probe that is chosen by type. Three functions, so that the usual way is two
 * jumps.
 */
#define ETW_PROBE_NAMED(name, subject, proto, args)							\
	static noinline notrace void write_##name(const struct etw_targets *targets, proto);		\
	static noinline notrace void filter_##name(const struct etw_targets *targets, proto)		\
	{												\
		if (!etw_reject(targets, subject, 1))							\
			write_##name(targets, args);							\
	}												\
	static notrace void probe_##name(void *data, proto)						\
	{												\
		const struct etw_targets *targets;							\
													\
		etw_probe_preempt_disable();								\
		targets = etw_targets_of(data);								\
		if (unlikely(targets->filter_hash))							\
			filter_##name(targets, args);							\
		else											\
			write_##name(targets, args);							\
		etw_probe_preempt_enable();								\
	}												\
	static noinline notrace void write_##name(const struct etw_targets *targets, proto)

#define ETW_DECLARE_PROBE(tp, ...)	static void probe_##tp(void *data, ##__VA_ARGS__)
#define ETW_HOOK(tp)			.tracepoint = #tp, .probe = probe_##tp

#endif
