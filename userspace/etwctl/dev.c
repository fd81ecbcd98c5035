// SPDX-License-Identifier: GPL-2.0-only
/* From libetw's errors to exit statuses and words that help (dev.h). It must not know verbs. */
#include "dev.h"

#include <errno.h>
#include <string.h>

int status_of(int err)
{
	switch (err) {
	case 0:
		return STATUS_OK;
	case -ENODEV:
	case -ENXIO:
	case -EPROTO:
		return STATUS_NO_MODULE;
	case -EACCES:
	case -EPERM:
		return STATUS_DENIED;
	default:
		return STATUS_FAILED;
	}
}

int fail_etw(int err, const char *what)
{
	return fail(status_of(err), "%s%s%s", what ? what : "", what ? ": " : "", etw_last_error());
}

int open_control(struct etw_control **control)
{
	int err = etw_control_open(control);

	return err ? fail_etw(err, NULL) : STATUS_OK;
}

int open_session(struct etw_control *control, const char *name, struct etw_session **session)
{
	struct etw_session_query q = {};
	char names[256] = "";
	size_t len = 0;
	int err;

	err = etw_session_open(control, name, session);
	if (err != -ENOENT)
		return err ? fail_etw(err, NULL) : STATUS_OK;
	while (len < sizeof(names) && etw_control_next_session(control, &q) == 1)
		len += snprintf(names + len, sizeof(names) - len, " %s", (const char *)q.name);
	if (len >= sizeof(names))
		strcpy(names + sizeof(names) - 5, " ...");
	return fail(STATUS_FAILED, "there is no session '%s'; %s%s", name,
		    *names ? "there are:" : "there is none now, start one with etwctl start", names);
}
