/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The facts of a trace, session.json in memory. It must not know streams. */
#ifndef ETW_FACTS_H
#define ETW_FACTS_H

#include <stdbool.h>

#include <etw/etw.h>

#include "digest.h"

#define FACTS_TEXT 256

struct facts {
	char name[ETW_NAME_SIZE];
	__u8 uuid[16];
	__u32 clock;
	__u32 flags;
	__u64 freq;			/* ticks in a second */
	__s64 offset;			/* nanoseconds */
	__u64 start;			/* ticks, as in packets */
	__u64 stop;
	bool finished;
	bool snapshot;
	bool circular;
	__u32 subbuf_size;
	__u32 nr_subbufs;
	__u32 flush_ms;
	__u64 written;
	__u64 filtered;
	__u64 overwritten;
	__u64 lost[ETW_NR_LOST];
	char boot_id[ETW_GUID_TEXT_SIZE];
	char hostname[FACTS_TEXT];
	char kernel_release[FACTS_TEXT];
	char kernel_version[FACTS_TEXT];
	char writer[32];		/* version of the library that wrote the metadata */
	char schema_digest[DIGEST_TEXT_SIZE];	/* once finished, else empty */
	char *command;			/* or NULL */
	struct etw_trace_provider *providers;
	__u32 nr_providers;
	__u32 *cpus;			/* that have a stream, once finished */
	__u32 nr_cpus;
};

/* Fill boot_id, hostname, kernel_* and writer from this machine. */
void etw_facts_host(struct facts *facts);

/* From a query in ticks; providers and counts by etw_facts_counts(). */
void etw_facts_session(struct facts *facts, const struct etw_session_query *query);
int etw_facts_counts(struct facts *facts, struct etw_session *session);

/* As text (malloc), ending in a newline; NULL without memory. */
char *etw_facts_print(const struct facts *facts);

/* NULL, or what is wrong: then the facts that could be had are filled in. */
const char *etw_facts_parse(struct facts *facts, const char *text, size_t len);

void etw_facts_free(struct facts *facts);

#endif /* ETW_FACTS_H */
