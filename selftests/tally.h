/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs need to use /dev/etw-test (see generator/generator.c), to check what it wrote, and to account for every
 * event. It asserts nothing.
 */
#ifndef ETW_TALLY_H
#define ETW_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

enum level { TASK, SOFTIRQ, HARDIRQ, NMI, NR_CONTEXTS };
enum kind { FIXED, SIZED, LARGE, POINTER, NR_KINDS, STATE = NR_KINDS };

#define MAX_CPUS 8

typedef unsigned long long llu;		/* for printf */

extern const char *const context_names[];
extern const char *const kind_names[];

/* What was emitted so far. */
struct emitted {
	uint64_t nr[MAX_CPUS][NR_CONTEXTS][NR_KINDS];
	uint64_t rundown_written;
	uint64_t rundown_refused;
	unsigned int held[MAX_CPUS];
};

/* 0 or -errno; the arguments are those of printf, the command is that of write(2). */
int generate(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Exits loudly if there is no generator. */
void emitted_read(struct emitted *emitted);
bool generator_there(void);
bool nmi_there(void);

/* What a reader has seen of the provider "test", by CPU, context and class. Zero-initialised is nothing. */
struct tally {
	struct {
		uint64_t read;
		uint64_t first;
		uint64_t next;		/* one above the highest number seen */
		uint64_t missing;	/* between first and next */
	} seen[MAX_CPUS][NR_CONTEXTS][NR_KINDS];
	uint64_t state[MAX_CPUS];
	uint64_t other;			/* of other providers */
	uint64_t last_round;
	uint32_t deepest;		/* writers on one CPU, one in the other */
	int32_t only_pid;		/* not 0: whose records alone there may be */
	bool addresses;
	char error[256];		/* what broke first */
};

/* An event_fn whose @arg is a struct tally: checks contents and order of each record. */
void tally_event(const struct event *event, void *arg);
uint64_t tally_read(const struct tally *tally, unsigned int cpu);
uint64_t tally_missing(const struct tally *tally, unsigned int cpu);

/*
 * R4 to the event, for a stopped and drained @session that had all of "test", or some of its levels or keywords, enabled
 * between two moments when nobody wrote, @from and @to: each event emitted is counted as written, filtered or lost, in its
 * class and on its CPU; each one written is in @tally or was overwritten; none else is. @filtered: it picks tasks, and then
 * what was filtered is known by class only. NULL, or what does not hold.
 */
const char *tally_broken(int session, const struct tally *tally, const struct emitted *from, const struct emitted *to,
			 bool filtered);

#endif
