/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program's or another module's hold on a provider: its numbered events, and how it learns what is enabled. Knows no user
 * memory.
 */
#ifndef ETW_REGISTRATION_H
#define ETW_REGISTRATION_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/wait.h>

#include "class.h"

#define ETW_EVENT_CHUNK 64

struct etw_registration {
	struct list_head node;		/* in provider->registrations, under etw_control */
	struct etw_provider *provider;
	u64 id;
	bool trusted;
	bool asks;			/* under etw_control: a descriptor was closed since its holders last asked */
	struct pid *pid;
	struct page *page;		/* of enable bytes, by event number */
	u8 *enabled;
	struct etw_class **chunks[ETW_MAX_EVENTS / ETW_EVENT_CHUNK];
	struct static_key_false **keys;	/* by event number; NULL: a program's */
	u32 nr_events;			/* released after the entry; only grows */
	u64 changes;			/* under etw_control */
	u64 captures;
	wait_queue_head_t wait;
};

struct etw_provider_names {
	const char *name;
	const uuid_t *guid;		/* NULL: the hash of the name */
	const struct etw_keyword_name *keywords;	/* their names in the same allocation; taken over if it succeeds */
	u32 nr_keywords;
};

/*
 * Registers a provider of the caller's user (@kernel: of a module). EPERM a reserved name or GUID, EDQUOT, ENOMEM. Process
 * context, no lock held; never waits for a grace period.
 */
struct etw_registration *etw_registration_make(const struct etw_provider_names *names, bool trusted, bool kernel);
/* Nobody writes any more. The same contexts. */
void etw_registration_end(struct etw_registration *reg);

/*
 * Adds an event, whose schema is the kernel's copy: its number. See struct etw_event_register. @key: NULL, or what is to be
 * enabled like the event's byte; a kernel's registration has one for every event, and EEXIST is an event that it has already.
 */
int etw_registration_add(struct etw_registration *reg, const void *schema, u32 size, struct static_key_false *key);

/* Any context. */
static inline bool etw_registration_has(const struct etw_registration *reg, u32 index)
{
	return likely(index < smp_load_acquire(&reg->nr_events));	/* pairs with etw_registration_add() */
}

/* Of an event that it has. */
static inline struct etw_class *etw_registration_class(const struct etw_registration *reg, u32 index)
{
	index &= ETW_MAX_EVENTS - 1;	/* user space's choice: a CPU that guesses stays within the chunks, too */
	return reg->chunks[index / ETW_EVENT_CHUNK][index % ETW_EVENT_CHUNK];
}

/*
 * A descriptor of @reg is being closed while others, or a mapping, may keep it; or (@closed false) somebody asked by one that is
 * there. Between the two enable bytes that are not 0 say so: who wrote to the number of a closed one would write elsewhere.
 */
void etw_registration_ask(struct etw_registration *reg, bool closed);

/* etw_control held: the enable bytes as the targets are; somebody enabled or disabled @p, or asks for its state. */
void etw_registrations_mark(struct etw_provider *p);
void etw_registrations_notify(struct etw_provider *p, bool capture);

#endif
