/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an event class and a provider are: descriptions, the list of targets that a class is written to, and how long
 * those live that are made while the module runs. Knows no session.
 */
#ifndef ETW_CLASS_H
#define ETW_CLASS_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/uuid.h>

#include <linux/etw.h>

struct etw_session;
struct etw_targets;
struct etw_user;
struct tracepoint;

struct etw_value {
	u64 value;
	const char *name;
};

struct etw_map {
	u32 kind;			/* ETW_MAP_* */
	u32 nr;
	const struct etw_value *values;
};

struct etw_field {
	const char *name;
	const struct etw_map *map;
	u8 type;			/* ETW_TYPE_* */
	u8 array;			/* ETW_ARRAY_* */
	u8 format;			/* ETW_FORMAT_* */
	u32 count;			/* of CHARS and fixed arrays */
};

/* Kernel pointers of a class, and the part of its payload they lie in, which a probe writes as one piece. */
#define ETW_MAX_SCRUB 2
#define ETW_SCRUB_SIZE 64

/*
 * One class of events. All but @targets and what registration fills in is constant.
 * @targets changes under etw_control, is read with preemption off, and is never NULL once the class is registered.
 */
struct etw_class {
	struct etw_targets __rcu *targets;
	u8 nr_scrub;			/* kernel pointers to hide, from registration */
	u16 scrub[ETW_MAX_SCRUB];	/* their offsets in the payload; classes with pointers have a fixed layout up to these */

	const char *name;
	const char *ctf_name;		/* NULL: Provider:Event;keywords; */
	const char *description;
	const struct etw_field *fields;
	u32 nr_fields;
	u64 keyword;
	u16 event_id;
	u16 task;
	u8 version;
	u8 level;
	u8 opcode;
	bool rundown;			/* only ever written by rundown and direct writes */

	const char *tracepoint;		/* NULL: no hook needed */
	void *probe;
	struct tracepoint *tp;		/* found at registration */
	const char *unavailable;	/* NULL, or why this kernel cannot produce it */

	struct etw_provider *provider;
	u64 id;				/* for EVENT_LIST */
	u32 fixed_size;			/* of every payload of this class; ETW_SIZE_VARIES: it must be walked */

	/* a made class only, under etw_control: */
	bool made;			/* from a schema, and not by the compiler */
	bool charged;			/* to its provider's user */
	u32 memory;			/* bytes of it and its schema */
	u32 registrations;		/* that have it; without one nobody writes it */
	u32 refs;			/* registrations and sessions' tables */
	const struct etw_schema *schema;	/* what it was made from; names and values point into it */
	struct hlist_node by_content;
	u32 place;			/* in its provider's classes */
};

#define ETW_SIZE_VARIES 0xffffffffU

struct etw_keyword_name {
	u64 mask;
	const char *name;
};

struct etw_provider {
	struct list_head node;		/* in the registry, under etw_control */
	u64 id;
	uuid_t guid;			/* bytes in text order: UUID_INIT() */
	const char *name;
	const char *alias;
	const struct etw_keyword_name *keywords;
	u32 nr_keywords;
	struct etw_class *const *classes;
	u32 nr_classes;
	/*
	 * Writes what is there already to one session, with etw_write_direct(); process context, may sleep, no lock
	 * of ours but the session's direct lock. Stops early with -EINTR when etw_rundown_interrupted() says so.
	 * NULL: nothing to say.
	 */
	int (*rundown)(struct etw_session *session);

	/* while its targets are being changed, under etw_control: */
	struct etw_targets **fresh;
	u32 nr_attached;

	/* a made provider only, under etw_control; it lives while it has a registration or a class */
	bool made;
	struct etw_user *user;		/* whose it is; NULL: a kernel module's */
	struct list_head registrations;
	u32 nr_registrations;
};

/* Has somebody registered it who can write it? */
static inline bool etw_provider_live(const struct etw_provider *p)
{
	return !p->made || p->nr_registrations;
}

#endif
