// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns what the kernel logged while the test module was loaded into results: a line for each case of the module's KUnit
 * suites. Which suites there are, and how many cases each has, comes from their sources, so that none can be missing
 * unnoticed: on 6.1 KUnit prints no plan for a module, and loading succeeds whatever failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct suite {
	const char *name;
	int cases;
	int runs, plan, results;
	bool ended;
} suites[] = {
#include "kunit_suites.h"
};

#define NR_SUITES (sizeof(suites) / sizeof(suites[0]))

static int number, failed;

static void result(bool ok, const char *suite, const char *what, const char *rest)
{
	printf("%sok %d %s.%s%s\n", ok ? "" : "not ", ++number, suite, what, rest);
	failed |= !ok;
}

static struct suite *find(const char *name)
{
	size_t i;

	for (i = 0; i < NR_SUITES; i++)
		if (!strcmp(suites[i].name, name))
			return &suites[i];
	return NULL;
}

static struct suite *begin(const char *name)
{
	struct suite *s = find(name);

	if (!s) {
		result(false, name, "is_no_suite_of_the_module", "");
		return NULL;
	}
	s->runs++;
	return s;
}

/* "ok 3 - name", "not ok 3 name # SKIP why": one case, or with no blanks before it the suite itself. */
static bool take_result(struct suite **current, const char *line, int indent)
{
	bool ok = !strncmp(line, "ok ", 3);
	const char *skip;
	char name[128];
	int n, at = 0;

	if (!ok && strncmp(line, "not ok ", 7))
		return false;
	if (sscanf(line + (ok ? 3 : 7), "%d%n", &n, &at) != 1)
		return false;
	line += (ok ? 3 : 7) + at;
	while (*line == ' ' || *line == '-')
		line++;
	if (sscanf(line, "%127s", name) != 1)
		return false;
	skip = strstr(line, "# SKIP");
	if (!*current) {
		result(false, name, "reports_outside_its_suite", "");
	} else if (indent) {
		if (n != ++(*current)->results)
			result(false, (*current)->name, "results_are_not_in_order", "");
		result(ok, (*current)->name, name, skip ? skip - 1 : "");
	} else if (strcmp(name, (*current)->name)) {
		result(false, name, "ended_before_it_began", "");
	} else {
		(*current)->ended = true;
		if (!ok && !failed)
			result(false, name, "failed_though_no_case_did", "");
		*current = NULL;
	}
	return true;
}

static void take_line(struct suite **current, const char *line)
{
	int indent = strspn(line, " ");
	char name[128];
	int plan;

	line += indent;
	if (sscanf(line, "# Subtest: %127s", name) == 1) {
		*current = begin(name);
	} else if (*current && sscanf(line, "1..%d", &plan) == 1) {
		(*current)->plan = plan;
	} else if (!take_result(current, line, indent) && *current && *line == '#' && strncmp(line, "# Totals", 8)) {
		printf("%s\n", line);
	}
}

static void check(const struct suite *s)
{
	if (s->runs != 1)
		result(false, s->name, s->runs ? "ran_twice" : "did_not_run", "");
	else if (!s->ended)
		result(false, s->name, "did_not_end", "");
	else if (s->plan != s->cases)
		result(false, s->name, "has_another_plan_than_its_source", "");
	else if (s->results != s->cases)
		result(false, s->name, "has_fewer_results_than_its_plan", "");
}

int main(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	struct suite *current = NULL;
	char record[8192];
	size_t i;
	ssize_t n;

	if (fd < 0) {
		perror("/dev/kmsg");
		return 1;
	}
	for (;;) {
		char *text;

		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE) {
			result(false, "kunit_run", "some_of_the_log_was_overwritten", "");
			continue;
		}
		if (n <= 0)
			break;
		record[n] = '\0';
		text = strchr(record, ';');
		if (!text)
			continue;
		/* further lines are properties */
		text[strcspn(text, "\n")] = '\0';
		take_line(&current, text + 1);
	}
	for (i = 0; i < NR_SUITES; i++)
		check(&suites[i]);
	printf("1..%d\n", number);
	return failed;
}
