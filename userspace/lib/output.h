/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A trace directory being written from packets, whoever made them. It must not know /dev/etw. */
#ifndef ETW_OUTPUT_H
#define ETW_OUTPUT_H

#include <etw/etw.h>

#include "facts.h"

struct output;

struct output_options {
	__u64 max_size;		/* circular mode keeps below this; 0 = no limit */
	bool circular;
	unsigned int nr_cpus;	/* for sizing pieces and the reserve */
};

/* What the session says of a CPU at the end. */
struct output_cpu {
	__u32 cpu;
	__u64 next_seq;
	__u64 lost;		/* running count, as packets carry it */
	__u64 unread;		/* records that could not be written */
};

/* Make the directory with all its files. *facts is copied but for its pointers, which stay the caller's. */
int etw_output_create(const char *dir, const struct facts *facts, const struct output_options *options,
		      struct output **output);

/* The facts to be written at the end; the caller may change them. */
struct facts *etw_output_facts(struct output *output);

/* Make sure that the first @nr classes of @table are in the directory, synced. */
int etw_output_classes(struct output *output, const struct etw_classes *table, unsigned int nr);

/* Make sure that this CPU has a stream. */
int etw_output_cpu(struct output *output, __u32 cpu);

/*
 * Append one packet as the module made it: @bytes of @size. @records: how many events. @overwritten: the relay's count
 * of overwritten records, which matters only where packets are missing.
 */
int etw_output_packet(struct output *output, __u32 cpu, const void *bytes, size_t size, __u32 records,
		      __u64 overwritten);

/* Tell followers that every event below this time is in the files. */
void etw_output_progress(struct output *output, __u64 complete_up_to);

/*
 * Close all streams up to @stop (a later packet's end if there is one) and write the facts; @cpus, @nr: may leave CPUs
 * out. Does as much as it can and returns the first error.
 */
int etw_output_finish(struct output *output, __u64 stop, const struct output_cpu *cpus, unsigned int nr);

void etw_output_stats(const struct output *output, struct etw_writer_stats *stats);
void etw_output_free(struct output *output);

#endif /* ETW_OUTPUT_H */
