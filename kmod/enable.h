/* SPDX-License-Identifier: GPL-2.0-only */
/* The relation provider x session: what a session has enabled, and the targets of every class that follow from it. */
#ifndef ETW_ENABLE_H
#define ETW_ENABLE_H

#include "filter.h"
#include "predicate.h"
#include "session.h"

/* What one ENABLE asked for. Owned by the session's list, under its lock and etw_control. */
struct etw_enabling {
	struct list_head node;
	u64 id;
	char name[ETW_NAME_SIZE];	/* as asked for, but of the module's own providers the full name */
	uuid_t guid;			/* as asked for, but of the kernel's providers theirs */
	kuid_t uid;			/* with ETW_ENABLE_UID: whose providers */
	bool enabled;			/* false: disabled, kept for its counts */
	u64 asked;			/* id of the last CAPTURE_STATE, 0 none */
	u32 flags;
	struct etw_rule rule;
	u32 level;			/* as asked for */
	u64 any;
	u64 all;
	u32 event_mode;
	u32 nr_events;
	char *events;			/* nr_events * ETW_NAME_SIZE */
	struct etw_filter *filter;	/* NULL: every task */
	u32 id_mode;
	u32 nr_ids;
	u16 *ids;
	u32 nr_processes;
	char *processes;		/* nr_processes * TASK_COMM_LEN */
	struct etw_conditions *conditions;	/* NULL: whatever the fields are */
};

/*
 * Takes @want over, also on failure. Returns 1 if the provider exists, 0 if the enable is remembered. Synchronous;
 * writes the rundown. ESHUTDOWN, ENOSPC, ENOMEM.
 */
int etw_session_enable(struct etw_session *session, struct etw_enabling *want);
/* Of a provider by name or GUID. Synchronous. */
int etw_session_disable(struct etw_session *session, const char *name, const uuid_t *guid);
/*
 * For STOP: take the session out of all targets and wait until no event can come. What was enabled stays on record.
 * Cannot fail.
 */
void etw_session_disable_all(struct etw_session *session);
/* Of one provider, or with an empty name and GUID of all that are enabled. ENOENT not enabled, ESHUTDOWN. */
int etw_session_capture_state(struct etw_session *session, const char *name, const uuid_t *guid);
/* The rundown of every enabled provider, direct lock held. */
void etw_session_rundown_all(struct etw_session *session);

/* Does @e mean @p? */
bool etw_enabling_of(const struct etw_enabling *e, const struct etw_provider *p);
/* Is what @s has of @p counted as @e's? Of all that mean it one is. etw_control and s->lock held. */
bool etw_enabling_counts(struct etw_session *s, const struct etw_enabling *e, const struct etw_provider *p);
/* Is there such a provider now? etw_control held. */
bool etw_enabling_registered(const struct etw_enabling *e);
void etw_enabling_free(struct etw_enabling *enabling);
/* The first with an id above @id, or NULL; session->lock held. */
struct etw_enabling *etw_enabling_after(struct etw_session *session, u64 id);

/*
 * For made providers; etw_control held, and no grace period is waited for. The first registration has come to @class: all
 * sessions that want it get it, or none. ENOSPC a session's table is full, ENOMEM.
 */
int etw_class_comes(struct etw_class *class);
/* The last one has gone, so nobody is writing: no session has it any more. */
void etw_class_goes(struct etw_class *class);

/* What all sessions together want of @p, into *@q but its changes and captures; etw_control held. */
void etw_enabled_query(const struct etw_provider *p, struct etw_enabled_query *q);
/* The oldest CAPTURE_STATE of @p above q->id, into *@q. ENOENT. etw_control held. */
int etw_capture_query(const struct etw_provider *p, struct etw_capture_query *q);
/* Whose is the CAPTURE_STATE @id of @p? NULL: nobody's, or not the last any more. etw_control held. */
struct etw_session *etw_capture_session(const struct etw_provider *p, u64 id);

#endif
