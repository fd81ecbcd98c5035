/* SPDX-License-Identifier: GPL-2.0-only */
/* Schemas, packets and traces made without the module, for host tests. It must not know what is tested. */
#ifndef SYNTH_H
#define SYNTH_H

#include <etw/etw.h>

#include "facts.h"
#include "output.h"

struct synth_field {
	const char *name;
	__u8 type;
	__u8 array;
	__u8 format;
	__u32 count;
	__u8 map_kind;
	const char *const *map;		/* names of the values 0, 1 ... (bits 0, 1 ...), ends with NULL; or NULL */
};

struct synth_class {
	const char *provider;
	const char *name;
	const char *ctf_name;		/* or NULL */
	__u8 level;
	__u64 keyword;
	const struct synth_field *fields;
	__u32 nr_fields;
	__u8 opcode;
};

/* One struct etw_schema entry into @buf (64 KiB); its size. */
size_t synth_schema(void *buf, __u32 class_id, const struct synth_class *cls);

/* The classes of the contract's example, and its payloads. */
extern const struct synth_class synth_classes[];
#define SYNTH_NR_CLASSES 3
#define SYNTH_SWITCH	 0
#define SYNTH_STARTED	 1
#define SYNTH_TICK	 2	/* u64 n, time u64 */
/* Of sched_switch, as the kernel's has them. */
#define SYNTH_NR_SWITCH_FIELDS 8
extern const struct synth_field synth_switch_fields[SYNTH_NR_SWITCH_FIELDS];
extern const __u8 synth_switch[57];
extern const __u8 synth_started[13];

extern const __u8 synth_uuid[16];

struct etw_classes *synth_table(void);

/* A packet being filled. */
struct synth_packet {
	__u8 bytes[131072];
	size_t len;
	__u64 last;		/* 0: no record yet */
	__u32 records;
};

void synth_begin(struct synth_packet *p, __u32 cpu, __u64 begin, __u64 seq, __u64 discarded);
/* Extended when the format demands it, or @extended. */
void synth_record(struct synth_packet *p, __u32 id, __u64 time, __s32 tid, __s32 pid, const void *payload, size_t len,
		  bool extended);
void synth_tick(struct synth_packet *p, __u64 time, __s32 tid, __u64 n);
/* Rounds the size up to 8. */
void synth_end(struct synth_packet *p, __u64 end);

/* Facts of a session of the example. */
void synth_facts(struct facts *facts);

/* A directory name that does not exist yet, below a directory that synth_clean() removes. */
const char *synth_dir(void);
void synth_clean(void);

/* Run a command by the shell; its status, and what it printed (stdout and stderr) in *text (free it). */
int synth_run(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copy a directory tree. */
void synth_copy(const char *from, const char *to);

#endif /* SYNTH_H */
