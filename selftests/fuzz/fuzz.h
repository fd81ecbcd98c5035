/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the fuzzer share. A program is a list of calls, a call an operation and numbers; what a number means
 * its argument's kind says. It must not know what the module does with them.
 */
#ifndef ETW_FUZZ_H
#define ETW_FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define MAX_CALLS 20
#define MAX_ARGS 28

/* What a number of a call means. */
enum kind {
	KIND_END,
	KIND_NUMBER,		/* itself */
	KIND_FILE,		/* a place in the table of files, or past its end: no file */
	KIND_NEW,		/* the place where a new file goes */
	KIND_MAPPING,		/* a place in the table of mappings */
	KIND_POINTER,		/* WHERE_*, and in the bits above 8 how far */
	KIND_SIZE,		/* the structure's first field */
	KIND_SESSION,		/* a session's name */
	KIND_PROVIDER,		/* a provider's name */
	KIND_GUID,
	KIND_PIDS,		/* an array of pids: WHERE_* and, above bit 16, which */
	KIND_EVENTS,		/* an array of event names, the same */
	KIND_IDS,		/* of event ids */
	KIND_PROCESSES,		/* of process names */
	KIND_PREDICATES,
	KIND_SCHEMA,		/* of an event */
	KIND_ROOM,		/* room for an answer, the same */
};

/* Where memory given to the kernel lies. */
enum where {
	WHERE_OK,
	WHERE_NULL,
	WHERE_LOW,
	WHERE_HOLE,		/* no canonical address */
	WHERE_KERNEL,
	WHERE_EDGE,		/* ends in a page that is not there */
	WHERE_READ_ONLY,
	WHERE_CROSS,		/* ends in a page that is read-only */
	WHERE_CHANGING,		/* another thread changes it */
	WHERE_FLICKERING,	/* another thread takes its page away and gives it back */
	WHERE_ODD,		/* misaligned */
	WHERE_MAPPING,		/* in a mapping of a relay */
	NR_WHERE
};

struct arg {
	const char *name;
	enum kind kind;
	uint16_t offset;	/* in the structure, if it is a field */
	uint8_t bytes;		/* 0: no field */
	const uint64_t *pool;	/* numbers worth trying, or NULL */
	unsigned int nr_pool;
};

enum files { FILES_CONTROL, FILES_SESSION, FILES_RELAY, FILES_OTHER, FILES_PROVIDER, NR_FILES };

#define NR_PLACES 30		/* files in a table: 4 control, 6 session, 6 relay, 8 others, 6 provider */
#define FIRST_SESSION 4
#define NR_MAPPINGS 6

struct op {
	const char *name;
	const char *command;		/* of an ioctl: ETW_IOC_..., without the prefix */
	uint32_t cmd;
	uint32_t size;			/* of its structure, 0 none */
	enum files files;		/* what it is meant for */
	const char *errors;		/* that the ABI names for it, beside those of every command */
	unsigned int weight;
	struct arg args[MAX_ARGS];
};

extern const struct op ops[];
extern const unsigned int nr_ops;

/* Operations that are no ioctl of ours, by number; those of ours come before. */
enum other_op {
	OP_IOCTL, OP_OPEN, OP_OPEN_OTHER, OP_CLOSE, OP_DUP, OP_MMAP, OP_MUNMAP, OP_MPROTECT, OP_MREMAP, OP_MADVISE, OP_TOUCH,
	OP_POLL, OP_EPOLL, OP_READ, OP_WRITE, OP_SEEK, OP_SEND, OP_RECEIVE, OP_FORK, OP_USER, OP_CPU, OP_WORK, OP_PAUSE,
	OP_SIGNAL, OP_EMIT, NR_OTHER_OPS
};
extern const unsigned int first_other_op;

struct call {
	uint32_t op;
	uint64_t arg[MAX_ARGS];
};

struct program {
	uint32_t nr;
	struct call calls[MAX_CALLS];
};

/* ---- grammar.c: programs made, changed, written and read ---- */

/* xorshift; each thread has its own. */
struct random {
	uint64_t state;
};
uint64_t random_next(struct random *r);
uint32_t random_below(struct random *r, uint32_t n);

/* @cheap: only of calls that take microseconds. */
void program_make(struct program *p, bool cheap, struct random *r);
/* Changes @p a little; @other is material. */
void program_mutate(struct program *p, const struct program *other, struct random *r);
/* One call a line. */
void program_print(const struct program *p, FILE *out);
/* NULL, or what is wrong; programs in a file are separated by empty lines, 0 calls at its end. */
const char *program_read(struct program *p, FILE *in);

struct text {
	const char *label;
	const char *bytes;
	uint8_t len;
};
extern const struct text sessions[], providers[], events[];
extern const unsigned int nr_sessions, nr_good_sessions, nr_providers, nr_events;
void guid_fill(uint64_t which, uint8_t guid[16]);

/* Shapes of events: those below are right for the schema of the same number, and batches of them; then come lies. */
#define NR_SHAPES 16
#define NR_GOOD_SCHEMAS 4

/* ---- execute.c: calls done ---- */

/* Files and mappings, which several threads may use at once. */
struct table {
	_Atomic int files[NR_PLACES];
	struct {
		uintptr_t at;
		size_t size;
	} mappings[NR_MAPPINGS];
};

#define MAX_ERRNO 134

/* Shared with the children. */
struct op_count {
	_Atomic uint64_t executed;
	_Atomic uint64_t succeeded;
	_Atomic uint64_t failed[MAX_ERRNO];
};

struct worker;

/* A thread's own memory and state for executing. */
struct worker *worker_new(unsigned int number, struct op_count *counts);
/*
 * Does the calls of @p with @table; after each calls @after (not in a forked child), which may say to stop. Number of calls
 * done.
 */
unsigned int worker_run(struct worker *w, const struct program *p, struct table *table,
			bool (*after)(void *arg, unsigned int done), void *arg);
void table_close(struct table *table);
void worker_drain(struct worker *w);
/* When no worker runs any more. */
void close_everything(struct worker *const *workers, unsigned int nr);
/* What should not be, as said by any thread; NULL if nothing. */
const char *complaint(void);
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void racer_start(void);
void racer_stop(void);
/* Keeps file numbers below this free for programs. */
#define PRIVATE_FILES 700
int private_fd(int fd);

/* ---- kcov.c ---- */

struct kcov;

/* Can coverage be had here? Reads where the module is. */
bool kcov_init(void);
struct kcov *kcov_open(void);
void kcov_begin(struct kcov *k);
/* Edges nobody has seen yet in what this thread did since kcov_begin() */
unsigned int kcov_end(struct kcov *k, uint32_t op);
unsigned int kcov_edges(void);
unsigned int kcov_blocks(void);
/* Blocks reached by an operation. */
unsigned int kcov_op_blocks(uint32_t op);
/* Blocks the module has; 0 not known. */
unsigned int kcov_total(void);
/* Names functions of which nothing was reached. */
void kcov_print_unreached(FILE *out);

#endif
