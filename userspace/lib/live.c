// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A live session as input of the consumer. Packets are copied out of the relays as they come, because a relay lends
 * only one at a time and an idle CPU must not hold up the others' space. What the module promises about time is asked
 * before the relays are drained. It must not know records or the order of events.
 */
#include "consumer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "class.h"
#include "control.h"
#include "error.h"
#include "relays.h"

/* Packets held for order at most; beyond it the relays fill up and the module counts what is lost. */
#define HELD_MAX (256ULL << 20)
/* A CPU that says nothing for this long is asked by a flush; also bounds how late an event can be shown. */
#define ASK_MIN_MS 20
#define ASK_MAX_MS 200

struct held {
	struct held *next;
	struct packet packet;
	__u8 bytes[];
};

struct live_cursor {
	struct cursor cursor;		/* first */
	struct held *first;
	struct held **last;
	struct held *reading;
};

struct live_input {
	struct input input;		/* first */
	struct relays relays;
	struct etw_session *session;
	struct etw_classes *classes;
	__u64 held;			/* bytes */
	__u64 asked;			/* ms: last flush */
	unsigned int ask_ms;
};

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static int live_load(struct cursor *cursor)
{
	struct live_cursor *s = (struct live_cursor *)cursor;
	struct live_input *in = (struct live_input *)cursor->input;

	if (s->reading) {
		in->held -= s->reading->packet.size;
		free(s->reading);
	}
	s->reading = s->first;
	if (!s->first) {
		if (in->input.bound == TIME_END)
			cursor->ended = true;
		return 0;
	}
	s->first = s->first->next;
	if (!s->first)
		s->last = &s->first;
	etw_cursor_set(cursor, &s->reading->packet, s->reading->bytes, in->input.path, 0);
	return 1;
}

static int cursors_more(struct live_input *in)
{
	unsigned int i;

	for (i = 0; i < in->relays.nr; i++) {
		struct live_cursor *s;
		int err;

		if (in->relays.list[i].user)
			continue;
		s = calloc(1, sizeof(*s));
		if (!s)
			return etw_error_errno(-ENOMEM, "session %s", in->input.path);
		s->last = &s->first;
		err = etw_cursor_add(&in->input, &s->cursor, in->relays.list[i].cpu);
		if (err) {
			free(s);
			return err;
		}
		in->relays.list[i].user = s;
	}
	return 0;
}

static int classes_more(struct live_input *in)
{
	int ret = etw_session_read_classes(in->session, in->classes);
	unsigned int i;

	for (i = in->input.nr_slots; ret >= 0 && i < etw_classes_count(in->classes); i++) {
		const struct etw_class *cls = etw_classes_get(in->classes, i);

		ret = etw_input_classes(&in->input, cls->schema, cls->schema->size);
	}
	return ret < 0 ? ret : 0;
}

static int packet_hold(struct live_input *in, struct relay *relay, const struct etw_subbuf *subbuf, const __u8 *bytes)
{
	struct live_cursor *s = relay->user;
	struct held *held;
	const char *what;
	int err = 0;

	if (subbuf->nr_classes > in->input.nr_slots)
		err = classes_more(in);
	if (err)
		return err;
	held = malloc(sizeof(*held) + subbuf->packet_size);
	if (!held)
		return etw_error_errno(-ENOMEM, "session %s", in->input.path);
	memcpy(held->bytes, bytes, subbuf->packet_size);
	held->next = NULL;
	what = etw_packet_parse(held->bytes, subbuf->packet_size, in->input.facts.uuid, &held->packet);
	if (what) {
		free(held);
		return etw_error(-EBADMSG, "session %s: the packet of CPU %u is malformed: %s", in->input.path,
				 relay->cpu, what);
	}
	err = etw_relay_put(&in->relays, relay);
	if (err) {
		free(held);
		return err;
	}
	etw_cursor_packet(&s->cursor, &held->packet);
	*s->last = held;
	s->last = &held->next;
	in->held += held->packet.size;
	return 0;
}

/*
 * Everything that is ready, or when that is too much at least one packet of each relay. *promise: what was promised of
 * drained relays; lowered to what is known of the others.
 */
static int drain(struct live_input *in, __u64 *promise)
{
	unsigned int i;

	for (i = 0; i < in->relays.nr; i++) {
		struct relay *relay = &in->relays.list[i];

		while (!relay->ended) {
			struct live_cursor *s = relay->user;
			struct etw_subbuf subbuf;
			const __u8 *bytes;
			int ret;

			if (in->held > HELD_MAX && s->first) {
				if (s->cursor.packets_end < *promise)
					*promise = s->cursor.packets_end;
				break;
			}
			ret = etw_relay_get(&in->relays, relay, &subbuf, &bytes);
			if (ret < 0)
				return ret;
			if (!ret)
				break;
			ret = packet_hold(in, relay, &subbuf, bytes);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int live_refill(struct input *input)
{
	struct live_input *in = (struct live_input *)input;
	struct etw_session_query q;
	__u64 promise;
	int ret;

	ret = etw_session_query_ticks(in->session, &q);
	if (ret)
		return ret;
	if (q.nr_relays != in->relays.nr) {
		ret = etw_relays_more(&in->relays);
		if (ret >= 0)
			ret = cursors_more(in);
		if (ret < 0)
			return ret;
	}
	promise = q.complete_up_to;
	/* Idle CPUs deliver nothing by themselves. */
	if (q.state == ETW_SESSION_RUNNING && now_ms() - in->asked >= in->ask_ms) {
		__u64 time;

		in->asked = now_ms();
		ret = etw_session_flush_ticks(in->session, 1000, &time);
		if (!ret && time > promise)
			promise = time;
		else if (ret && ret != -ESHUTDOWN && ret != -ETIMEDOUT && ret != -EINTR)
			return ret;
	}
	ret = drain(in, &promise);
	if (ret < 0)
		return ret;
	if (q.state == ETW_SESSION_STOPPED && etw_relays_ended(&in->relays)) {
		if (q.stop_reason == ETW_STOP_CLOCK)
			etw_consumer_damaged(input, ~0U, input->path, 0, 0, ETW_CLOCK_FAILED);
		input->bound = TIME_END;
	} else if (promise > input->bound) {
		input->bound = promise;
	}
	return 0;
}

static int live_wait_fd(struct input *input, int *max_ms)
{
	struct live_input *in = (struct live_input *)input;
	__u64 since = now_ms() - in->asked;

	*max_ms = since < in->ask_ms ? in->ask_ms - since : 0;
	if (!*max_ms)
		*max_ms = 1;
	return etw_session_fd(in->session);
}

static void live_facts(struct input *input)
{
	struct live_input *in = (struct live_input *)input;
	struct etw_session_query q;

	if (etw_session_query_ticks(in->session, &q))
		return;
	etw_facts_session(&input->facts, &q);
	input->facts.stop = q.stop_time ? q.stop_time : q.now;
	etw_facts_counts(&input->facts, in->session);
}

static void live_free(struct input *input)
{
	struct live_input *in = (struct live_input *)input;
	__u32 i;

	for (i = 0; i < input->nr_cursors; i++) {
		struct live_cursor *s = (struct live_cursor *)input->cursors[i];

		free(s->reading);
		while (s->first) {
			struct held *held = s->first;

			s->first = held->next;
			free(held);
		}
	}
	etw_relays_close(&in->relays);
	etw_classes_free(in->classes);
}

static const struct input_ops live_ops = {
	.load = live_load,
	.refill = live_refill,
	.wait_fd = live_wait_fd,
	.facts = live_facts,
	.free = live_free,
};

int etw_consumer_add_session(struct etw_consumer *consumer, struct etw_session *session)
{
	struct live_input *in = calloc(1, sizeof(*in));
	struct etw_session_query q;
	int err;

	if (!in || !(in->input.path = strdup(etw_session_name(session)))) {
		free(in);
		return etw_error_errno(-ENOMEM, "session %s", etw_session_name(session));
	}
	in->session = session;
	in->input.ops = &live_ops;
	in->input.pub.live = 1;
	err = etw_relays_open(&in->relays, session);
	if (!err)
		err = etw_classes_new(&in->classes);
	if (!err)
		err = etw_session_query_ticks(session, &q);
	if (!err) {
		etw_facts_host(&in->input.facts);
		etw_facts_session(&in->input.facts, &q);
		in->ask_ms = q.flush_ms / 2 < ASK_MIN_MS   ? ASK_MIN_MS
			     : q.flush_ms / 2 > ASK_MAX_MS ? ASK_MAX_MS
							   : q.flush_ms / 2;
		err = etw_input_add(consumer, &in->input);
	}
	if (err) {
		live_free(&in->input);
		etw_facts_free(&in->input.facts);
		free(in->input.path);
		free(in);
		return err;
	}
	err = cursors_more(in);
	if (!err)
		err = classes_more(in);
	return err ? err : (int)in->input.number;
}
