/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The places between every two steps of the write path, the flush and the reader, where a test can let something else
 * run. Nothing of it is in a module built without ETW_TEST. Knows no relay.
 */
#ifndef ETW_STEP_H
#define ETW_STEP_H

#ifdef ETW_TEST

#include <linux/compiler.h>
#include <linux/types.h>

/* Each is reached right after the step it names, but those _BEFORE one. In the order of the code. */
#define ETW_STEPS(S)										\
	S(BEGUN) S(SHORT_POSITION) S(SHORT_SEEN) S(SHORT_SLOT) S(SHORT_HINT) S(SHORT_TIME)	\
	S(SHORT_EXTEND) S(SHORT_BASE) S(SHORT_RESERVED) S(SHORT_STAMPED)			\
	S(HEADER) S(PART) S(COMMITTED) S(COUNTED)						\
	S(POSITION) S(SEEN) S(TIME) S(EXTEND) S(ROOM_BEFORE) S(WORD_BEFORE) S(DECIDED)		\
	S(SAMPLE_BEFORE) S(SAMPLED) S(RESERVED) S(STAMPED) S(SLOT)				\
	S(LOST_BEFORE) S(LOST_FIRST) S(LOST_LAST) S(LOST_TOTAL) S(LOST)				\
	S(OPEN_WORD) S(OPENED) S(OPEN_COUNTED) S(OPEN_BASE) S(OPEN_HINT)			\
	S(BEGIN_BUFFER) S(BEGIN_HEADER)								\
	S(CLOSE_BUFFER) S(CLOSE_PADDED) S(CLOSE_HEADER) S(CLOSE_COMMITTED)			\
	S(DELIVER_INDEX) S(DELIVER_RECORDS) S(DELIVER_CLASSES) S(DELIVER_RESET) S(DELIVERED) S(DELIVER_FENCE)	\
	S(FLUSH_POSITION) S(FLUSH_SEEN) S(FLUSH_TIME) S(FLUSH_SAMPLE_BEFORE) S(FLUSH_SAMPLED) S(FLUSHED)	\
	S(OLDEST_WORD) S(GET_NEXT) S(GET_WORD) S(GOT) S(GET_SPARE) S(GET_PASSED) S(GET_HAND)	\
	S(PUT_HAND) S(PUT_COUNTED) S(PUT)

#define ETW_STEP_ENUM(name)	ETW_STEP_##name,
enum etw_step { ETW_STEPS(ETW_STEP_ENUM) ETW_NR_STEPS };

struct etw_relay;

/* NULL: nobody listens. Called in any context. */
extern void (*etw_step_hook)(struct etw_relay *relay, enum etw_step step, u64 position);

static __always_inline void etw_step(struct etw_relay *relay, enum etw_step step, u64 position)
{
	void (*hook)(struct etw_relay *relay, enum etw_step step, u64 position) = READ_ONCE(etw_step_hook);

	if (unlikely(hook))
		hook(relay, step, position);
}

#define ETW_STEP(relay, name, position)	etw_step(relay, ETW_STEP_##name, position)
#else
#define ETW_STEP(relay, name, position)	do { } while (0)
#endif

#endif
