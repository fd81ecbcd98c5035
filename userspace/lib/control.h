/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What of the control file and of sessions the library keeps to itself. It must not know packets. */
#ifndef ETW_CONTROL_H
#define ETW_CONTROL_H

#include <etw/etw.h>

/* ioctl() that retries after a signal and returns a negative errno. */
int etw_ioctl(int fd, unsigned long command, void *arg);

/* Times of @query, in ticks of the session's clock, as nanoseconds. */
void etw_query_ns(struct etw_session_query *query);
/* What etw_session_query() and etw_session_flush() say, but in ticks, as packets have their times. */
int etw_session_query_ticks(struct etw_session *session, struct etw_session_query *query);
int etw_session_flush_ticks(struct etw_session *session, unsigned int timeout_ms, __u64 *time);

/* Why a session ended by itself: the rest of a sentence about it. */
#define ETW_CLOCK_FAILED                                                                                               \
	"its clock, the cycle counter, can be relied on no more (the kernel says so, or the machine slept), and so it has " \
	"ended: use the clock monotonic"

/* Split provider text into the two ways the ABI takes it: a name, or a GUID. -EINVAL with a text. */
int etw_provider_text(const char *text, __u8 name[ETW_NAME_SIZE], __u8 guid[16]);

#endif /* ETW_CONTROL_H */
