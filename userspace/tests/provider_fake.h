/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A module that is not there: what provider files do, for tests of the library on a machine without one. It knows the
 * ABI and must not know the library's insides. What was written is seen by parent and child.
 */
#ifndef PROVIDER_FAKE_H
#define PROVIDER_FAKE_H

#include <stdbool.h>

#include <etw/etw.h>

/* Before anything of a provider is called. */
void fake_init(void);

/* As insmod: from now on the device can be opened, and it appears in its directory. */
void fake_load(void);

/* What the next calls return instead, once; 0: nothing. */
extern int fake_open_error, fake_register_error, fake_event_error, fake_write_error;

/* ENABLE, DISABLE and CAPTURE_STATE of one session: of every provider of this name, also later ones. */
void fake_enable(const char *provider, unsigned int level, __u64 any);
void fake_disable(const char *provider);
void fake_capture(const char *provider);

/* How many provider files there are with this name in this process, and have ever been registered by any. */
unsigned int fake_files(const char *provider);
unsigned int fake_registrations(void);
unsigned int fake_writes(void); /* system calls */

/* The events written since fake_clear(), by any process, in order. */
unsigned int fake_events(void);
unsigned int fake_answers(void); /* those of them that only the session which asked got */
void fake_clear(void);
/* "Provider Event field=text ..." of the event, in a static buffer; "" beyond the end. */
const char *fake_event(unsigned int i);
/* A field's text of it; "?" it has none. */
const char *fake_field(unsigned int i, const char *name);

#endif /* PROVIDER_FAKE_H */
