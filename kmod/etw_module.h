/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface of etw.ko for other kernel modules: to be a provider. It stands alone: a driver needs this file and
 * uapi/linux/etw.h, and links against etw.ko. It must not know how the module works inside.
 *
 *	static const struct etw_module_field opened_fields[] = {
 *		{ "minor", ETW_TYPE_U32 },
 *		{ "name", ETW_TYPE_STRING },
 *	};
 *	static struct etw_module_event opened = ETW_MODULE_EVENT("opened", ETW_LEVEL_INFO, 0x1, opened_fields);
 *	static struct etw_module_event *const events[] = { &opened };
 *	static struct etw_module_provider provider = { .name = "My-Driver", .events = events, .nr_events = ARRAY_SIZE(events) };
 *
 *	err = etw_module_register(&provider);			in module_init, say
 *	if (etw_module_enabled(&opened))			a nop while nobody listens
 *		etw_module_write(&opened, &record, sizeof(record));
 *	etw_module_unregister(&provider);			in module_exit
 */
#ifndef ETW_MODULE_H
#define ETW_MODULE_H

#include <linux/jump_label.h>
#include <linux/types.h>

#include <linux/etw.h>

struct etw_class;
struct etw_registration;

struct etw_module_field {
	const char *name;
	u8 type;			/* ETW_TYPE_* but POINTER */
	u8 array;			/* ETW_ARRAY_* */
	u8 format;			/* ETW_FORMAT_* */
	u32 count;			/* of CHARS and fixed arrays */
};

struct etw_module_event {
	const char *name;
	const char *description;	/* NULL none */
	const struct etw_module_field *fields;
	u32 nr_fields;
	u64 keyword;
	u16 id;
	u16 task;
	u8 level;
	u8 opcode;
	u8 version;
	/* etw.ko's: */
	struct static_key_false wanted;
	struct etw_class *class;
};

#define ETW_MODULE_EVENT(event, event_level, keywords, list)	{			\
	.name = event, .level = event_level, .keyword = keywords,			\
	.fields = list, .nr_fields = ARRAY_SIZE(list), .wanted = STATIC_KEY_FALSE_INIT }

struct etw_module_keyword {
	const char *name;
	u64 mask;
};

struct etw_module_provider {
	const char *name;		/* shorter than ETW_NAME_SIZE; [A-Za-z][A-Za-z0-9_.-]* */
	const u8 *guid;			/* 16 bytes in text order, NULL: ETW's hash of the name */
	const struct etw_module_keyword *keywords;
	u32 nr_keywords;
	struct etw_module_event *const *events;
	u32 nr_events;
	/* etw.ko's: */
	struct etw_registration *registration;
};

/*
 * Register @provider with all its events, which stay the caller's and must live until etw_module_unregister(). Sessions
 * that have enabled the name get the events at once. Process context, may sleep. EINVAL a name or field is malformed; EEXIST a
 * provider of a module has the name, or two of its events are the same; E2BIG, ENOSPC, ENOMEM.
 */
int etw_module_register(struct etw_module_provider *provider);
/* When it returns nobody is in etw_module_write() with an event of @provider any more. Process context, may sleep. */
void etw_module_unregister(struct etw_module_provider *provider);

/* Does a session want @event? Patched code: costs nothing while none does. Any context. */
#define etw_module_enabled(event) static_branch_unlikely(&(event)->wanted)

/*
 * Write one event: @len bytes, the fields one after the other, packed. Any context, NMI included. 0 also if nobody wanted it;
 * EINVAL it is not what the fields say; ENODEV it is not registered.
 */
int etw_module_write(const struct etw_module_event *event, const void *payload, u32 len);

#endif
