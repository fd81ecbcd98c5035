/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The relays of a session, opened and mapped for reading. It must not know what becomes of the packets. */
#ifndef ETW_RELAYS_H
#define ETW_RELAYS_H

#include <stdbool.h>

#include <etw/etw.h>

/* One relay. @ended: stopped and everything read. */
struct relay {
	__u32 cpu;
	int fd;
	const __u8 *map;
	bool ended;
	void *user;
};

struct relays {
	struct etw_session *session;
	__u32 subbuf_size;
	size_t map_size;
	struct relay *list;
	unsigned int nr;
};

/* Open the relays of all CPUs. -EBUSY names who reads the session. */
int etw_relays_open(struct relays *relays, struct etw_session *session);

/* Open those that were added since. Returns how many. */
int etw_relays_more(struct relays *relays);

/*
 * The next packet of a relay: 1 and *subbuf, *bytes (valid until put); 0 nothing ready (sets ended). A
 * packet not put is returned again.
 */
int etw_relay_get(struct relays *relays, struct relay *relay, struct etw_subbuf *subbuf, const __u8 **bytes);
int etw_relay_put(struct relays *relays, struct relay *relay);

bool etw_relays_ended(const struct relays *relays);
void etw_relays_close(struct relays *relays);

#endif /* ETW_RELAYS_H */
