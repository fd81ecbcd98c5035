// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The relays of a session, opened and mapped for reading. It must not know what becomes of the packets. */
#include "relays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "control.h"
#include "error.h"

static int busy(const struct relays *r)
{
	struct etw_session_query q;

	if (etw_session_query(r->session, &q) || q.reader_pid == 0)
		return etw_error(-EBUSY, "session %s has a reader already: end that one, or make another session",
				 etw_session_name(r->session));
	if (q.reader_pid < 0)
		return etw_error(
			-EBUSY,
			"session %s is read by a process of another pid namespace: end that one, or make another session",
			etw_session_name(r->session));
	return etw_error(-EBUSY, "session %s is read by process %d: end that one, or make another session",
			 etw_session_name(r->session), q.reader_pid);
}

static int open_one(struct relays *r, __u32 cpu)
{
	struct etw_relay_open open = { .size = sizeof(open), .cpu = cpu };
	struct relay *relay;
	void *map, *mem;
	int fd;

	fd = etw_ioctl(etw_session_fd(r->session), ETW_IOC_SESSION_RELAY_OPEN, &open);
	if (fd == -EBUSY)
		return busy(r);
	if (fd < 0)
		return etw_error_errno(fd, "session %s: relay of CPU %u", etw_session_name(r->session), cpu);
	map = mmap(NULL, r->map_size, PROT_READ, MAP_SHARED, fd, 0);
	mem = map == MAP_FAILED ? NULL : realloc(r->list, (r->nr + 1) * sizeof(*r->list));
	if (!mem) {
		int err = map == MAP_FAILED ? -errno : -ENOMEM;

		if (map != MAP_FAILED)
			munmap(map, r->map_size);
		close(fd);
		return etw_error_errno(err, "session %s: mapping the relay of CPU %u", etw_session_name(r->session),
				       cpu);
	}
	r->list = mem;
	relay = &r->list[r->nr++];
	*relay = (struct relay){ .cpu = cpu, .fd = fd, .map = map };
	return 0;
}

int etw_relays_more(struct relays *r)
{
	struct etw_cpu_query q = { .cpu = 0 };
	int ret, added = 0;

	while ((ret = etw_session_query_cpu(r->session, &q)) > 0) {
		unsigned int i;

		for (i = 0; i < r->nr && r->list[i].cpu != q.cpu; i++)
			;
		if (i == r->nr) {
			ret = open_one(r, q.cpu);
			if (ret)
				return ret;
			added++;
		}
		q.cpu++;
	}
	return ret < 0 ? ret : added;
}

int etw_relays_open(struct relays *r, struct etw_session *session)
{
	struct etw_session_query q;
	int ret;

	memset(r, 0, sizeof(*r));
	r->session = session;
	ret = etw_session_query(session, &q);
	if (ret)
		return ret;
	r->subbuf_size = q.subbuf_size;
	r->map_size = (size_t)(q.nr_subbufs + 1) * q.subbuf_size;
	ret = etw_relays_more(r);
	if (ret < 0)
		etw_relays_close(r);
	return ret < 0 ? ret : 0;
}

int etw_relay_get(struct relays *r, struct relay *relay, struct etw_subbuf *subbuf, const __u8 **bytes)
{
	int err;

	memset(subbuf, 0, sizeof(*subbuf));
	subbuf->size = sizeof(*subbuf);
	err = etw_ioctl(relay->fd, ETW_IOC_RELAY_SUBBUF_GET, subbuf);
	if (err == -ENODATA)
		relay->ended = true;
	if (err == -EAGAIN || err == -ENODATA)
		return 0;
	if (err < 0)
		return etw_error_errno(err, "session %s: packet of CPU %u", etw_session_name(r->session), relay->cpu);
	if (subbuf->packet_size > r->subbuf_size || (size_t)(subbuf->index + 1) * r->subbuf_size > r->map_size)
		return etw_error(-EBADMSG,
				 "session %s: the module says sub-buffer %u of %u bytes for CPU %u, which cannot be",
				 etw_session_name(r->session), subbuf->index, subbuf->packet_size, relay->cpu);
	*bytes = relay->map + (size_t)subbuf->index * r->subbuf_size;
	return 1;
}

int etw_relay_put(struct relays *r, struct relay *relay)
{
	int err = etw_ioctl(relay->fd, ETW_IOC_RELAY_SUBBUF_PUT, NULL);

	if (err < 0)
		return etw_error_errno(err, "session %s: giving back a packet of CPU %u", etw_session_name(r->session),
				       relay->cpu);
	return 0;
}

bool etw_relays_ended(const struct relays *r)
{
	unsigned int i;

	for (i = 0; i < r->nr; i++)
		if (!r->list[i].ended)
			return false;
	return true;
}

void etw_relays_close(struct relays *r)
{
	unsigned int i;

	for (i = 0; i < r->nr; i++) {
		munmap((void *)r->list[i].map, r->map_size);
		close(r->list[i].fd);
	}
	free(r->list);
	r->list = NULL;
	r->nr = 0;
}
