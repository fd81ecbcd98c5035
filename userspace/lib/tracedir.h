/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What lies in a trace directory beside its streams: found, read and checked. It must not know packets. */
#ifndef ETW_TRACEDIR_H
#define ETW_TRACEDIR_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "facts.h"

/* One stream file. @cpu from its name. @piece: of the ring; in reading order after the CPU's chan file. */
struct stream_file {
	__u32 cpu;
	bool piece;
	char *path;
};

/*
 * @dir: the directory that holds kernel/. @schema, @metadata: whole files, NULL if missing. @facts_bad, @schema_bad
 * ...: what is wrong, or NULL. @alive: a writer is at work in it.
 */
struct tracedir {
	char *dir;
	struct facts facts;
	bool facts_missing;
	bool schema_changed;	/* it is not what the writer left, whatever it says */
	char *schema;
	size_t schema_len;
	char *metadata;
	size_t metadata_len;
	struct stream_file *streams;
	unsigned int nr_streams;
	bool alive;
};

/* @cpu is ~0 here. */
typedef void (*tracedir_report)(void *arg, const char *file, __u64 offset, __u64 bytes, const char *what);

/* -ENOENT no trace there, -EBADMSG not ours. Damage is reported. */
int etw_tracedir_open(struct tracedir *t, const char *dir, tracedir_report report, void *arg);
void etw_tracedir_close(struct tracedir *t);

/* Whether a writer holds DIR/progress. */
bool etw_tracedir_alive(const char *dir);

/* The directory that holds kernel/, for DIR or DIR/kernel; NULL if there is none (with an error text). */
char *etw_tracedir_find(const char *dir, int *err);

/* The metadata as our writer makes it from the schema's first @len bytes (malloc). */
char *etw_tracedir_metadata(const struct tracedir *t, size_t len, size_t *out_len);

/* Bytes of whole, sound entries at the beginning of the schema; what is wrong behind them in *what, or NULL. */
size_t etw_tracedir_schema_good(const struct tracedir *t, const char **what);

#endif /* ETW_TRACEDIR_H */
