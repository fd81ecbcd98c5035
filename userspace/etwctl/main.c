// SPDX-License-Identifier: GPL-2.0-only
/*
 * The start of etwctl: finds the verb, reads its options by its table, and answers help, version and completion from
 * the same tables. It must not know what a verb does.
 */
#include "etwctl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct verb *verb;

#define MAX_OPTS 64

static struct option longs[MAX_OPTS];
static char shorts[2 * MAX_OPTS + 4];

/* Walks the options of a verb: for (o = NULL; (o = each_opt(v, o)); ) */
static const struct opt *each_opt(const struct verb *v, const struct opt *o)
{
	int group = 0;

	if (o) {
		if (o[1].name)
			return o + 1;
		/* The group that @o ends: the tables are small, so it is searched. */
		for (group = 0; group < MAX_OPT_GROUPS && v->opts[group]; group++) {
			const struct opt *last = v->opts[group];

			while (last->name && last != o)
				last++;
			if (last->name)
				break;
		}
		group++;
	}
	return group < MAX_OPT_GROUPS && v->opts[group] ? v->opts[group] : NULL;
}

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

/* Fills what getopt_long() wants from the verb's table. */
static void prepare_opts(const struct verb *v)
{
	const struct opt *o;
	char *s = shorts;
	int n = 0;

	/* '+': a command's own options are its own. ':' tells a missing argument from an unknown option. */
	if (v->command)
		*s++ = '+';
	*s++ = ':';
	for (o = NULL; (o = each_opt(v, o)) && n < MAX_OPTS - 1;) {
		longs[n].name = o->name;
		longs[n].has_arg = o->arg ? required_argument : no_argument;
		longs[n].flag = NULL;
		longs[n++].val = o->key;
		if (o->key < 256) {
			*s++ = o->key;
			if (o->arg)
				*s++ = ':';
		}
	}
	memset(&longs[n], 0, sizeof(longs[n]));
	*s = 0;
}

int opt_next(int argc, char **argv)
{
	const struct opt *o;
	int key;

	for (;;) {
		opterr = 0;
		key = getopt_long(argc, argv, shorts, longs, NULL);
		switch (key) {
		case OPT_JSON:
			json = true;
			continue;
		case ':':
			for (o = NULL; (o = each_opt(verb, o));)
				if (o->key == optopt) {
					usage("--%s needs %s", o->name, o->arg);
					return '?';
				}
			usage("'%s' needs an argument", argv[optind - 1]);
			return '?';
		case '?':
			if (optopt && optopt < 256)
				usage("there is no option -%c", optopt);
			else if (optopt)
				usage("'%s' takes no argument", argv[optind - 1]);
			else
				usage("there is no option '%s', or it is short for several", argv[optind - 1]);
			return '?';
		}
		return key;
	}
}

static void help_opts(FILE *f, const struct verb *v)
{
	const struct opt *o;
	char left[80];

	for (o = NULL; (o = each_opt(v, o));) {
		if (o->key < 256)
			snprintf(left, sizeof(left), "-%c, --%s%s%s", o->key, o->name, o->arg ? " " : "",
				 o->arg ? o->arg : "");
		else
			snprintf(left, sizeof(left), "    --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		if (strlen(left) > 26)
			fprintf(f, "  %s\n  %-26s %s\n", left, "", o->help);
		else
			fprintf(f, "  %-26s %s\n", left, o->help);
	}
}

void help_verb(FILE *f, const struct verb *v)
{
	fprintf(f, "Usage: etwctl %s [OPTIONS]%s%s\n%s.\n", v->name, *v->args ? " " : "", v->args, v->brief);
	if (v->opts[0]) {
		fputs("\nOptions:\n", f);
		help_opts(f, v);
	}
	if (v->examples) {
		fputs("\nExamples:\n", f);
		for (const char *const *e = v->examples; *e; e++)
			fprintf(f, "  %s\n", *e);
	}
}

static void help_all(FILE *f)
{
	fputs("Usage: etwctl VERB [OPTIONS] [OPERANDS]\n"
	      "Traces a Linux system with providers, sessions and consumers, as Event Tracing for Windows does.\n\nVerbs:\n",
	      f);
	for (const struct verb *v = verbs; v->name; v++)
		if (v->name[0] != '_')
			fprintf(f, "  %-14s %s\n", v->name, v->brief);
	fputs("\nExamples:\n"
	      "  etwctl record -o trace -- make -j8     record the default profile while a command runs\n"
	      "  etwctl summary trace                   who ran, waited, read and wrote, faulted\n"
	      "  etwctl dump --pid 4711 trace           the events of one process, in time order\n"
	      "  etwctl watch -p sched:info:switch      live\n"
	      "\n'etwctl help VERB' and etwctl(1) say more.\n",
	      f);
}

int cmd_help(int argc, char **argv)
{
	const struct verb *v;
	int key;

	while ((key = opt_next(argc, argv)) != -1)
		return STATUS_USAGE;
	if (argc - optind > 1)
		return usage("'%s' is one word too many", argv[optind + 1]);
	if (argc - optind == 0) {
		help_all(stdout);
		return STATUS_OK;
	}
	v = find_verb(argv[optind]);
	if (!v || v->name[0] == '_')
		return usage("there is no verb '%s'", argv[optind]);
	help_verb(stdout, v);
	return STATUS_OK;
}

/*
 * The hidden verb behind completion: '__complete' alone prints the tables, one line a verb or option, for the checks;
 * with the words of a command line, the last one unfinished, it prints what could stand there, one a line, where a line
 * "@dir" and so on asks the shell for the files.
 */
static void complete_words(const char *words)
{
	static const struct {
		const char *words, *list;
	} ask[] = {
		{ "@session", "sessions" },
		{ "@provider", "providers" },
		{ "@event", "events" },
		{ "@profile", "profiles" },
	};

	if (!words)
		return;
	for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++)
		if (!strcmp(words, ask[i].words)) {
			char *argv[] = { "list", (char *)ask[i].list, "--names", NULL };

			/* No module, no permission: nothing to offer, and no message in a command line. */
			if (!freopen("/dev/null", "w", stderr))
				return;
			verb = find_verb("list");
			prepare_opts(verb);
			optind = 0;
			verb->run(3, argv);
			return;
		}
	for (const char *p = words; *p;) {
		int n = strcspn(p, " ");

		printf("%.*s\n", n, p);
		p += n;
		p += *p == ' ';
	}
}

static void print_tables(void)
{
	const struct opt *o;

	for (const struct verb *v = verbs; v->name; v++) {
		if (v->name[0] == '_')
			continue;
		printf("verb %s %s\n", v->name, v->args);
		for (o = NULL; (o = each_opt(v, o));) {
			printf("option %s --%s %s\n", v->name, o->name, o->arg ? o->arg : "");
			if (o->key < 256)
				printf("option %s -%c %s\n", v->name, o->key, o->arg ? o->arg : "");
		}
	}
}

/* The option that @word is, or NULL. */
static const struct opt *opt_of_word(const struct verb *v, const char *word)
{
	const struct opt *o;

	for (o = NULL; (o = each_opt(v, o));)
		if ((word[0] == '-' && word[1] == '-' && !strcmp(word + 2, o->name)) ||
		    (word[0] == '-' && o->key < 256 && word[1] == o->key && !word[2]))
			return o;
	return NULL;
}

int cmd_complete(int argc, char **argv)
{
	const char *last = argv[argc - 1];
	const struct verb *v;
	const struct opt *o;

	if (argc == 1) {
		print_tables();
		return STATUS_OK;
	}
	if (argc == 2) {
		for (v = verbs; v->name; v++)
			if (v->name[0] != '_')
				puts(v->name);
		return STATUS_OK;
	}
	v = find_verb(argv[1]);
	if (!v)
		return STATUS_OK;
	o = argc > 3 ? opt_of_word(v, argv[argc - 2]) : NULL;
	if (o && o->arg) {
		complete_words(o->words);
	} else if (last[0] == '-') {
		for (o = NULL; (o = each_opt(v, o));)
			printf("--%s\n", o->name);
	} else if (v->run == cmd_help) {
		for (v = verbs; v->name; v++)
			if (v->name[0] != '_')
				puts(v->name);
	} else if (v->words && strchr(v->words, '|')) {
		/* The first operand is one thing, the others are another. */
		int n = strcspn(v->words, "|"), operands = 0;
		char first[128];

		for (int i = 2; i < argc - 1; i++)
			operands += argv[i][0] != '-';
		snprintf(first, sizeof(first), "%.*s", n, v->words);
		complete_words(operands ? v->words + n + 1 : first);
	} else {
		complete_words(v->words);
	}
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	int status;

	/* A reader that went away ends us at the next write; not a crash worth a signal's status. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		help_all(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		argv[1] = "help";
	else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		argv[1] = "version";
	for (int i = 2; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;	/* also for errors of the options before it */
		const struct verb *v = find_verb(argv[1]);

		if (v && !v->command && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))) {
			help_verb(stdout, v);
			return STATUS_OK;
		}
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return usage("there is no verb '%s'", argv[1]);
	if (verb->command && argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		help_verb(stdout, verb);
		return STATUS_OK;
	}
	prepare_opts(verb);
	optind = 0;
	status = verb->run(argc - 1, argv + 1);
	if (fflush(stdout) || ferror(stdout))
		return status == STATUS_OK ? STATUS_FAILED : status;
	return status;
}
