/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of etwctl share: exit statuses, the verb and option tables, messages, numbers in text. It must not
 * know what any verb does.
 */
#ifndef ETWCTL_H
#define ETWCTL_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, documented in etwctl(1). */
enum status {
	STATUS_OK = 0,
	STATUS_FAILED = 1,	/* refused or failed */
	STATUS_USAGE = 2,	/* the command line is wrong */
	STATUS_NO_MODULE = 3,	/* no /dev/etw, or a module of another ABI */
	STATUS_DENIED = 4,	/* no permission */
	STATUS_LOSS = 5,	/* done, but events were lost or the trace is damaged */
};

/*
 * One option of a verb. @key is what opt_next() returns for it: a letter (then it is also the short option) or a value
 * from 256 on. @arg is the name of its argument in the help, NULL for none. @words, for the completion, is either a
 * list of words divided by blanks or one of "@dir", "@file", "@session", "@provider", "@event", "@profile"; NULL:
 * nothing.
 */
struct opt {
	const char *name;
	int key;
	const char *arg;
	const char *help;
	const char *words;
};

#define MAX_OPT_GROUPS 7

/*
 * One verb: parser, help, completion and the manual page's check all read this. @args names its operands for the help;
 * @words completes them as in struct opt; each of @opts ends with a NULL name; @examples ends with NULL.
 */
struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *args;
	const char *brief;
	const char *words;
	const struct opt *opts[MAX_OPT_GROUPS];
	const char *const *examples;
	bool command;		/* the first operand begins a command line of its own */
};

extern const struct verb verbs[];	/* ends with a NULL name */
extern const struct verb *verb;		/* the running one */

/* Options that several verbs have; keys they use. */
enum {
	OPT_JSON = 256,
	OPT_EVENT,
	OPT_PID,
	OPT_COMM,
	OPT_CPU,
	OPT_FROM,
	OPT_TO,
	OPT_PRIVATE		/* a verb's own options count from here */
};
extern const struct opt opts_json[];	/* --json */
extern const struct opt opts_session[], opts_file[], opts_record[], opts_start[]; /* record.c, settings.c, start.c */
extern const struct opt opts_update[], opts_flush[], opts_snapshot[];	/* control.c */
extern const struct opt opts_list[], opts_watch[], opts_summary[], opts_emit[];

/*
 * The running verb's next option: its key with the argument in @optarg, -1 when only operands are left, from
 * argv[optind]. A wrong option has been reported when it returns '?': return STATUS_USAGE. --json is handled here (sets
 * @json).
 */
int opt_next(int argc, char **argv);

extern bool json;		/* --json: objects instead of text */

/*
 * Messages. fail() says what is wrong and how to get out, to stderr, or with --json as an object {"error", "status"} to
 * stdout; it returns @status. note() says something that does not change the outcome (stderr; with --json too).
 */
__attribute__((format(printf, 2, 3))) int fail(int status, const char *fmt, ...);
__attribute__((format(printf, 1, 2))) int usage(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void note(const char *fmt, ...);
extern bool quiet;		/* note() says nothing */
extern bool progress_shown;	/* the terminal's line is not at its beginning: messages clear it first */

/* The worse of two results: any failure over STATUS_LOSS over STATUS_OK; of two failures the first. */
int worse(int a, int b);

/*
 * Text to numbers. Each returns 0, or reports the misuse, naming @what, and returns STATUS_USAGE.
 * parse_size() takes K, M, G (1024 each) at the end; parse_ms() takes a number of ms, or one with "ms" or "s", or
 * "never" if @never is not 0, which is then the result.
 */
int parse_u64(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int parse_ms(const char *what, const char *text, uint32_t max, uint32_t never, uint32_t *value);

/* Splits @text at commas into a NULL-ended array, for list_free(); NULL if it has an empty part (reported). */
char **list_split(const char *what, const char *text);
void list_free(char **list);
size_t list_len(char *const *list);

/* The next part of *@text up to @divider, which becomes a NUL; NULL when there is none left. */
char *text_part(char **text, char divider);

/* Numbers to text, in one of a few static buffers: "1.5 MiB", "12,345". */
const char *show_bytes(uint64_t bytes);
const char *show_count(uint64_t n);

/*
 * A string that came from a trace or the kernel, fit to print: text_utf8() gives valid UTF-8 (other bytes become
 * U+FFFD), text_safe() also writes control characters as \xNN. @buf holds at least 4 * @len + 1 bytes; both return it.
 */
char *text_utf8(char *buf, const char *text, size_t len);
char *text_safe(char *buf, const char *text, size_t len);

void *xmalloc(size_t size);	/* zeroed; ends the program when there is no memory */
char *xstrdup(const char *text);
__attribute__((format(printf, 1, 2))) char *xasprintf(const char *fmt, ...);

/* json-c, kept out of the header's users that do not need it. */
struct json_object;
void json_line(struct json_object *obj);	/* one line to stdout, and puts the object */
void json_text(struct json_object *obj, const char *key, const char *text);	/* any bytes, made valid */
void json_u64(struct json_object *obj, const char *key, uint64_t value);
void json_s64(struct json_object *obj, const char *key, int64_t value);

void help_verb(FILE *f, const struct verb *v);

int cmd_record(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_enable(int argc, char **argv);
int cmd_disable(int argc, char **argv);
int cmd_update(int argc, char **argv);
int cmd_flush(int argc, char **argv);
int cmd_capture_state(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_summary(int argc, char **argv);
int cmd_emit(int argc, char **argv);
int cmd_repair(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_complete(int argc, char **argv);

#endif
