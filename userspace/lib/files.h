/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The files of a trace directory: their names, whole reads and writes, syncing. It must not know what is in them. */
#ifndef ETW_FILES_H
#define ETW_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <linux/types.h>

/*
 *   DIR/kernel/metadata, DIR/kernel/chan_<cpu>	the CTF trace, nothing else
 *   DIR/schema		struct etw_schema entries in the order of the session's table, append-only
 *   DIR/session.json	the facts
 *   DIR/progress	struct progress, only while a writer is at work, who holds a lock on it
 *   DIR/ring/<cpu>.<n>	circular mode: pieces of the stream of one CPU, in order
 */
#define FILE_KERNEL   "kernel"
#define FILE_METADATA "kernel/metadata"
#define FILE_SCHEMA   "schema"
#define FILE_FACTS    "session.json"
#define FILE_PROGRESS "progress"
#define FILE_RESERVE  ".reserve"
#define FILE_RING     "ring"

#define PROGRESS_MAGIC 0x676f727057544545ULL

/* What a reader that follows must know. Written in place; each word is read and written whole. */
struct progress {
	__u64 magic;
	__u64 complete_up_to;	/* every event with a lower time (session clock) is in the files */
	__u64 bytes;		/* of all streams, to see that something changed */
};

/* "DIR/name"; NULL without memory. */
char *etw_path(const char *dir, const char *name);

/* All of @len or a negative errno. */
int etw_write_all(int fd, const void *buf, size_t len);

/* Whole file into memory (malloc, one NUL behind it). -errno. */
int etw_read_file(const char *path, char **text, size_t *len);

/* Replace a file by a synced new one, so that there is always one whole version. */
int etw_replace_file(const char *dir, const char *name, const void *buf, size_t len);

/* fsync of a directory. */
int etw_sync_dir(const char *dir);

/* chan_<cpu>: the number of a stream file's name, or -1. */
long etw_stream_cpu(const char *name);

#endif /* ETW_FILES_H */
