/* SPDX-License-Identifier: GPL-2.0-only */
/* What every fuzz target has: its entry, and a way to say that something is wrong. It must not know what is tested. */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run as a crash, and says so where the target's own output does not go. */
void fuzz_failed(const char *file, int line, const char *what) __attribute__((noreturn));

#define FUZZ_CHECK(condition)						\
	do {								\
		if (!(condition))					\
			fuzz_failed(__FILE__, __LINE__, #condition);	\
	} while (0)

#endif
