/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's census: every object of a kind that is made is counted, and every one that is gone, so that one forgotten is
 * seen while the module runs (debugfs, etw/objects) and when it goes. Nothing is counted per event. Knows no object.
 */
#ifndef ETW_OBJECTS_H
#define ETW_OBJECTS_H

#include <linux/gfp.h>
#include <linux/types.h>

enum etw_object {
	ETW_OBJECT_SESSION,
	ETW_OBJECT_SESSION_FILE,
	ETW_OBJECT_RELAY_FILE,
	ETW_OBJECT_RELAY,
	ETW_OBJECT_PAGE,		/* of relays' buffers: no leak checker of the kernel's sees these */
	ETW_OBJECT_ENABLING,
	ETW_OBJECT_FILTER,
	ETW_OBJECT_CLASS,		/* an entry of a session's class table, with its counts */
	ETW_OBJECT_TARGETS,
	ETW_OBJECT_HOOK,
	ETW_OBJECT_USER,
	ETW_OBJECT_PROVIDER,		/* made while the module runs, as the next four */
	ETW_OBJECT_SCHEMA,
	ETW_OBJECT_REGISTRATION,
	ETW_OBJECT_PROVIDER_FILE,
	ETW_OBJECT_RATE,		/* a user in a session */
	ETW_NR_OBJECTS
};

/* Who asks for too much learns it by errno, so the kernel need not complain as well. */
#define ETW_GFP (GFP_KERNEL | __GFP_NOWARN)
/* What anybody may have made is the caller's memory. */
#define ETW_GFP_USER (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

void etw_objects_made(enum etw_object kind, unsigned long nr);
void etw_objects_gone(enum etw_object kind, unsigned long nr);

/* @p, which may be NULL, is counted. Of a pointer to what kvfree() takes. */
#define etw_object_new(kind, p) ({		\
	typeof(p) _made = (p);			\
						\
	if (_made)				\
		etw_objects_made(kind, 1);	\
	_made; })
/* Frees @p, which may be NULL. */
void etw_object_free(enum etw_object kind, const void *p);

void etw_objects_init(void);
/* Complains about every kind of which not all that were made are gone; true if there is one. */
bool etw_objects_left(void);

#endif
