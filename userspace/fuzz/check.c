// SPDX-License-Identifier: GPL-2.0-only
/* Says what a target found to be wrong (check.h). */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int out = 2;

/* libFuzzer gives the target another standard error when it is told to keep it quiet. */
__attribute__((constructor)) static void keep_stderr(void)
{
	out = fcntl(2, F_DUPFD_CLOEXEC, 100);
}

void fuzz_failed(const char *file, int line, const char *what)
{
	dprintf(out, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}
