/* SPDX-License-Identifier: GPL-2.0-only */
/* From libetw's errors to exit statuses and words that help. It must not know verbs. */
#ifndef ETWCTL_DEV_H
#define ETWCTL_DEV_H

#include <etw/etw.h>

#include "etwctl.h"

/* Opens /dev/etw; STATUS_OK, or a reported STATUS_NO_MODULE or STATUS_DENIED. */
int open_control(struct etw_control **control);

/* Opens a live session by name; a reported error names the sessions there are. */
int open_session(struct etw_control *control, const char *name, struct etw_session **session);

/* Reports what libetw said about the negative errno @err, with @what before it if not NULL; returns the exit status. */
int fail_etw(int err, const char *what);

/* The exit status for a negative errno. */
int status_of(int err);

#endif
