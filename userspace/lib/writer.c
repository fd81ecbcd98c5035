// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Moves a session's packets into a trace directory, undecoded. It must not know how either is laid out. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <etw/etw.h>

#include "control.h"
#include "error.h"
#include "facts.h"
#include "output.h"
#include "relays.h"
#include "ticks.h"

/* How long a stopped session may take to hand over its last packets. */
#define FINISH_MS 30000

struct etw_writer {
	struct etw_session *session;
	struct relays relays;
	struct etw_classes *classes;
	struct output *output;
	struct etw_writer_options options;
	struct etw_session_query query;
	/* Snapshot: what is to be read. */
	__u64 snapshot_time;
	__u64 *targets;			/* by index in relays.list: packets below this number */
	unsigned int nr_targets;
	int error;			/* of a step; nothing is written after it */
	__u64 unwritten;
	bool finished;
};

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static bool is_snapshot(const struct etw_writer *w)
{
	return w->options.flags & ETW_WRITER_SNAPSHOT;
}

/* Fix what a snapshot contains: all that was recorded before now. */
static int snapshot_begin(struct etw_writer *w)
{
	struct etw_cpu_query cpu = { .cpu = 0 };
	int ret = 0;

	if (w->query.state == ETW_SESSION_RUNNING) {
		if (!(w->options.flags & ETW_WRITER_NO_CAPTURE))
			ret = etw_session_capture_state(w->session, NULL);
		if (!ret)
			ret = etw_session_flush_ticks(w->session, 0, &w->snapshot_time);
		/* It may have stopped in between: then everything is there already. */
		if (ret && ret != -ESHUTDOWN)
			return ret;
	}
	w->targets = calloc(w->relays.nr + 1, sizeof(*w->targets));
	if (!w->targets)
		return etw_error_errno(-ENOMEM, "session %s", etw_session_name(w->session));
	w->nr_targets = w->relays.nr;
	while ((ret = etw_session_query_cpu(w->session, &cpu)) > 0) {
		unsigned int i;

		for (i = 0; i < w->relays.nr; i++)
			if (w->relays.list[i].cpu == cpu.cpu)
				w->targets[i] = cpu.next_seq;
		cpu.cpu++;
	}
	return ret;
}

int etw_writer_create(struct etw_session *session, const char *dir, const struct etw_writer_options *options,
		      struct etw_writer **writer)
{
	static const struct etw_writer_options defaults = { .size = sizeof(defaults) };
	struct output_options out = { 0 };
	struct facts facts = { .finished = false };
	struct etw_writer *w = calloc(1, sizeof(*w));
	unsigned int i;
	int err;

	if (!w)
		return etw_error_errno(-ENOMEM, "%s", dir);
	w->session = session;
	w->options = options ? *options : defaults;
	err = etw_classes_new(&w->classes);
	if (!err)
		err = etw_relays_open(&w->relays, session);
	if (!err)
		err = etw_session_query_ticks(session, &w->query);
	if (!err && is_snapshot(w))
		err = snapshot_begin(w);
	if (err)
		goto fail;
	etw_facts_host(&facts);
	etw_facts_session(&facts, &w->query);
	facts.snapshot = is_snapshot(w);
	facts.stop = 0;
	facts.command = (char *)w->options.command;
	out.max_size = w->options.max_size;
	out.circular = w->options.flags & ETW_WRITER_CIRCULAR;
	out.nr_cpus = w->relays.nr ? w->relays.nr : 1;
	err = etw_output_create(dir, &facts, &out, &w->output);
	if (!err)
		err = etw_session_read_classes(session, w->classes);
	if (err >= 0)
		err = etw_output_classes(w->output, w->classes, etw_classes_count(w->classes));
	for (i = 0; !err && i < w->relays.nr; i++)
		err = etw_output_cpu(w->output, w->relays.list[i].cpu);
	if (err)
		goto fail;
	*writer = w;
	return 0;
fail:
	etw_writer_free(w);
	return err;
}

static int packet_write(struct etw_writer *w, struct relay *relay, const struct etw_subbuf *subbuf, const __u8 *bytes)
{
	__u64 overwritten = 0;
	int err = 0;

	if (subbuf->nr_classes > etw_classes_count(w->classes))
		err = etw_session_read_classes(w->session, w->classes);
	if (err >= 0)
		err = etw_output_classes(w->output, w->classes, subbuf->nr_classes);
	if (!err && w->query.flags & ETW_SESSION_OVERWRITE) {
		struct etw_cpu_query cpu = { .cpu = relay->cpu };

		err = etw_session_query_cpu(w->session, &cpu);
		overwritten = cpu.overwritten;
		err = err < 0 ? err : 0;
	}
	if (!err)
		err = etw_output_packet(w->output, relay->cpu, bytes, subbuf->packet_size, subbuf->records,
					overwritten);
	if (!err)
		err = etw_relay_put(&w->relays, relay);
	return err;
}

static bool full(const struct etw_writer *w)
{
	struct etw_writer_stats stats;

	if (!w->options.max_size || (w->options.flags & ETW_WRITER_CIRCULAR))
		return false;
	etw_output_stats(w->output, &stats);
	return stats.bytes >= w->options.max_size;
}

/* What one relay has, but not for ever. Returns 1 if there may be more, 0, or an error. */
static int relay_drain(struct etw_writer *w, unsigned int i)
{
	struct relay *relay = &w->relays.list[i];
	struct etw_subbuf subbuf;
	const __u8 *bytes;
	__u32 turns = w->query.nr_subbufs + 1;
	int ret;

	/* A snapshot is of what was there when it began. */
	while (turns-- && !(is_snapshot(w) && (i >= w->nr_targets || relay->ended))) {
		ret = etw_relay_get(&w->relays, relay, &subbuf, &bytes);
		if (ret <= 0) {
			if (!ret && is_snapshot(w))
				relay->ended = true;
			return ret;
		}
		if (is_snapshot(w) && w->snapshot_time && subbuf.seq >= w->targets[i]) {
			relay->ended = true;
			return 0;
		}
		ret = packet_write(w, relay, &subbuf, bytes);
		if (ret)
			return ret;
		if (full(w) && !w->finished)
			return 0;
	}
	return !relay->ended;
}

/* A round over all relays. Returns 1 if some may have more, 0 if all were drained, or an error. */
static int drain(struct etw_writer *w)
{
	unsigned int i;
	int ret, more = 0;

	for (i = 0; i < w->relays.nr; i++) {
		if (w->relays.list[i].ended)
			continue;
		ret = relay_drain(w, i);
		if (ret < 0)
			return ret;
		more |= ret;
	}
	return more;
}

/* A round without waiting. */
static int turn(struct etw_writer *w)
{
	unsigned int i;
	int ret;

	/* Asked before draining: what it promises is then drained. */
	ret = etw_session_query_ticks(w->session, &w->query);
	if (ret)
		return ret;
	if (!is_snapshot(w) && w->query.nr_relays != w->relays.nr) {
		ret = etw_relays_more(&w->relays);
		for (i = 0; ret > 0 && i < w->relays.nr; i++)
			if (etw_output_cpu(w->output, w->relays.list[i].cpu))
				ret = -EIO;
		if (ret < 0)
			return ret;
	}
	ret = drain(w);
	if (ret < 0)
		return ret;
	if (!ret)
		etw_output_progress(w->output, w->query.complete_up_to);
	if (etw_relays_ended(&w->relays) && (is_snapshot(w) || w->query.state == ETW_SESSION_STOPPED)) {
		if (w->query.state == ETW_SESSION_STOPPED && w->query.stop_reason == ETW_STOP_CLOCK)
			return etw_error(-ECANCELED, "session %s: %s", etw_session_name(w->session), ETW_CLOCK_FAILED);
		return ETW_WRITER_ENDED;
	}
	return full(w) ? ETW_WRITER_FULL : ETW_WRITER_MORE;
}

int etw_writer_step(struct etw_writer *writer, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = etw_session_fd(writer->session), .events = POLLIN | POLLPRI },
		{ .fd = writer->options.stop_fd > 0 ? writer->options.stop_fd : -1, .events = POLLIN },
	};
	int ret;

	if (writer->error) {
		etw_error(writer->error, "session %s: the writer has failed before", etw_session_name(writer->session));
		return writer->error;
	}
	if (!is_snapshot(writer) && poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return etw_error_errno(-errno, "waiting for session %s", etw_session_name(writer->session));
	ret = turn(writer);
	if (ret < 0)
		writer->error = ret;
	return ret;
}

int etw_writer_run(struct etw_writer *writer)
{
	unsigned int interval = writer->options.progress_ms ? writer->options.progress_ms : 1000;
	struct pollfd stop = { .fd = writer->options.stop_fd > 0 ? writer->options.stop_fd : -1, .events = POLLIN };
	struct etw_writer_stats stats;
	__u64 next = now_ms() + interval;

	for (;;) {
		__u64 now = now_ms();
		int ret = etw_writer_step(writer, now < next ? next - now : 0);

		if (ret != ETW_WRITER_MORE)
			return ret;
		if (poll(&stop, 1, 0) > 0)
			return ETW_WRITER_STOPPED;
		if (now_ms() < next)
			continue;
		next = now_ms() + interval;
		etw_writer_stats(writer, &stats);
		if (writer->options.progress && writer->options.progress(writer->options.arg, &stats))
			return ETW_WRITER_STOPPED;
	}
}

/* After the stop: everything up to the last packet. */
static int drain_all(struct etw_writer *w)
{
	__u64 deadline = now_ms() + FINISH_MS;
	struct pollfd fd = { .fd = etw_session_fd(w->session), .events = POLLIN };

	for (;;) {
		int ret = turn(w);

		if (ret < 0 || ret == ETW_WRITER_ENDED)
			return ret;
		if (now_ms() > deadline)
			return etw_error(-ETIMEDOUT, "session %s did not hand over its last packets within %d seconds",
					 etw_session_name(w->session), FINISH_MS / 1000);
		/* A stopped session's file is always ready; a little patience is enough. */
		if (!etw_relays_ended(&w->relays))
			poll(&fd, 1, 1);
	}
}

int etw_writer_finish(struct etw_writer *w)
{
	struct etw_cpu_query cpu = { .cpu = 0 };
	struct output_cpu *cpus = NULL;
	struct facts *facts = etw_output_facts(w->output);
	unsigned int nr = 0;
	char text[512] = "";
	int err = w->error, ret = 0;
	__u64 stop;

	if (w->finished)
		return err;
	if (err)
		snprintf(text, sizeof(text), "%s", etw_last_error());
	if (!is_snapshot(w)) {
		ret = etw_session_stop(w->session);
		if (ret == -ESHUTDOWN || ret == -EALREADY)
			ret = 0;
	}
	w->finished = true;
	if (!err && !ret)
		ret = drain_all(w);
	if (!err && ret) {
		err = ret;
		snprintf(text, sizeof(text), "%s", etw_last_error());
	}

	cpus = calloc(w->relays.nr + 1, sizeof(*cpus));
	while (cpus && etw_session_query_cpu(w->session, &cpu) > 0) {
		if (nr < w->relays.nr) {
			cpus[nr].cpu = cpu.cpu;
			cpus[nr].next_seq = cpu.next_seq;
			cpus[nr].lost = cpu.lost_total;
			w->unwritten += is_snapshot(w) ? 0 : cpu.unread;
			cpus[nr++].unread = is_snapshot(w) ? 0 : cpu.unread;
		}
		cpu.cpu++;
	}
	ret = etw_session_query_ticks(w->session, &w->query);
	if (!ret) {
		etw_facts_session(facts, &w->query);
		ret = etw_facts_counts(facts, w->session);
	}
	stop = is_snapshot(w) && w->snapshot_time ? w->snapshot_time : w->query.stop_time;
	if (!stop)
		stop = w->query.now;
	if (!ret)
		ret = etw_output_finish(w->output, stop, cpus, nr);
	free(cpus);
	if (err)
		return etw_error(err, "%s", text);
	w->error = ret;
	return ret;
}

void etw_writer_stats(const struct etw_writer *writer, struct etw_writer_stats *stats)
{
	etw_output_stats(writer->output, stats);
	stats->start = ticks_ns(writer->query.start_time, writer->query.clock_freq);
	stats->now = ticks_ns(writer->query.now, writer->query.clock_freq);
	stats->unwritten = writer->unwritten;
}

void etw_writer_free(struct etw_writer *writer)
{
	if (!writer)
		return;
	etw_relays_close(&writer->relays);
	etw_classes_free(writer->classes);
	etw_output_free(writer->output);
	free(writer->targets);
	free(writer);
}
