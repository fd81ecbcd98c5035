// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Keeps one line of text for each thread about its last failed call. It must not know what failed. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <etw/etw.h>

static __thread char last_error[768];

const char *etw_last_error(void)
{
	return last_error[0] ? last_error : "no error";
}

const char *etw_library_version(void)
{
	return ETW_LIBRARY_VERSION;
}

int etw_error(int err, const char *fmt, ...)
{
	char text[sizeof(last_error)];
	va_list args;

	/* An argument may be the old text. */
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	memcpy(last_error, text, sizeof(text));
	return err;
}

int etw_error_errno(int err, const char *fmt, ...)
{
	char text[sizeof(last_error)];
	va_list args;
	size_t n;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n = strlen(text);
	snprintf(text + n, sizeof(text) - n, ": %s", strerror(-err));
	memcpy(last_error, text, sizeof(text));
	return err;
}
