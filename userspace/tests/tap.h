/* SPDX-License-Identifier: GPL-2.0-only */
/* Results of host tests as TAP. It must not know what is tested. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned int tap_count, tap_failed;

/* One result; the text is printf's. Returns the condition. */
#define ok(condition, ...) tap_result((condition), __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 4, 5), unused)) static bool tap_result(bool good, const char *file, int line,
								     const char *fmt, ...)
{
	__builtin_va_list args;

	printf("%sok %u - ", good ? "" : "not ", ++tap_count);
	__builtin_va_start(args, fmt);
	vprintf(fmt, args);
	__builtin_va_end(args);
	printf("\n");
	if (!good) {
		tap_failed++;
		printf("# %s:%d\n", file, line);
	}
	fflush(stdout);
	return good;
}

__attribute__((unused)) static void skip(const char *what, const char *why)
{
	printf("ok %u - %s # SKIP %s\n", ++tap_count, what, why);
}

/* What main() returns. */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%u\n", tap_count);
	return tap_failed != 0;
}

#endif /* TAP_H */
