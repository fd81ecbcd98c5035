/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A trace's CTF metadata as text. It must not know files. */
#ifndef ETW_METADATA_H
#define ETW_METADATA_H

#include <stdio.h>

#include <etw/etw.h>

#include "facts.h"

struct metadata_env {
	const char *key;
	const char *value;
};

/* All but the events. @env: @nr keys behind those that readers need. */
void etw_metadata_head(FILE *out, const struct facts *facts, const struct metadata_env *env, unsigned int nr);

/* The same with the keys that our writer sets. */
void etw_metadata_begin(FILE *out, const struct facts *facts);

/* One event block. */
void etw_metadata_event(FILE *out, const struct etw_class *cls, __u32 id);

/* Read back what our own text says: uuid, clock, offset, names. For traces whose session.json is gone. */
void etw_metadata_facts(const char *text, struct facts *facts);

#endif /* ETW_METADATA_H */
