/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The text of the last error of a thread. It must not know what failed. */
#ifndef ETW_ERROR_H
#define ETW_ERROR_H

/* Keep the text, return @err (a negative errno). */
__attribute__((format(printf, 2, 3))) int etw_error(int err, const char *fmt, ...);

/* The same, with ": " and the system's text for @err behind. */
__attribute__((format(printf, 2, 3))) int etw_error_errno(int err, const char *fmt, ...);

#endif /* ETW_ERROR_H */
