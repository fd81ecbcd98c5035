/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conditions on the fields of an event: made ready once for an enable, once more for each class, and asked of a payload
 * before it is written. Pure: no locks, no allocation; also compiled in user space by the host tests. Knows classes only.
 */
#ifndef ETW_PREDICATE_H
#define ETW_PREDICATE_H

#include "class.h"

/* A payload is parts of memory, one behind the other. */
struct etw_vec {
	const void *data;
	u32 len;
};

/* One predicate of an enable. */
struct etw_condition {
	struct etw_predicate p;
	u8 len;				/* bytes of p.text that count */
	u8 back[ETW_NAME_SIZE];		/* CONTAINS: how much of the text still matches when its byte after i + 1 does not */
	u64 order;			/* p.value as a double, see order_of_double() */
	bool ordered;			/* it is a number */
};

struct etw_conditions {
	u32 nr;
	bool any;			/* one is enough */
	struct etw_condition c[];
};

/* A condition on a field of one class. */
struct etw_match {
	const struct etw_condition *condition;
	u32 offset;			/* in the payload, or ETW_OFFSET_VARIES */
	u16 field;
	u8 how;
};

#define ETW_OFFSET_VARIES	0xffffffffU

/* All that is asked of the records of one class for one session. */
struct etw_matcher {
	const char *processes;		/* names of TASK_COMM_LEN bytes */
	u32 nr_processes;		/* 0: every process */
	const struct etw_field *fields;
	bool any;
	bool scrub;			/* kernel addresses count as 0 */
	u32 first;			/* the first field of variable size, and where it is */
	u32 first_offset;
	u32 nr;
	struct etw_match match[];	/* by field */
};

/* Takes @c->p and completes the condition. EINVAL: malformed, or an operator that does not suit the value. */
int etw_condition_init(struct etw_condition *c);

/* Is there a payload of @class that passes? If not, it need not be looked at. */
bool etw_conditions_possible(const struct etw_conditions *conditions, const struct etw_class *class);

/* Makes ready what etw_conditions_possible() says is possible; @m has room for @conditions->nr. @conditions may be NULL. */
void etw_matcher_init(struct etw_matcher *m, const struct etw_conditions *conditions, const struct etw_class *class, bool scrub);

/*
 * Does this payload of the class pass the conditions? Any context. One that is not as the class says has no fields from there
 * on. Work is bounded by the payload and ETW_MAX_PREDICATES: it is walked once, and each value is looked at once for each
 * condition on it.
 */
bool etw_matcher_passes(const struct etw_matcher *m, const struct etw_vec *vec, u32 nr);

#endif
