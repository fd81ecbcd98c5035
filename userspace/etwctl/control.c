// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs that change a live session: stop, enable, disable, update, flush, capture-state, snapshot. They must not
 * know how a session was started.
 */
#include "dev.h"
#include "etwctl.h"
#include "spec.h"
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
	OPT_FLUSH = OPT_PRIVATE,
	OPT_TIMEOUT,
	OPT_NO_CAPTURE,
};

const struct opt opts_update[] = {
	{ "flush-ms", OPT_FLUSH, "MS", "deliver what is recorded at least this often, or never", "never" },
	{}
};

const struct opt opts_flush[] = {
	{ "timeout", OPT_TIMEOUT, "MS", "give up after this time (10000)", NULL },
	{}
};

const struct opt opts_snapshot[] = {
	{ "output", 'o', "DIR", "write the snapshot into DIR, which must not exist or be empty", "@dir" },
	{ "no-capture-state", OPT_NO_CAPTURE, NULL,
	  "without asking the providers for their state (names of what is there) first", NULL },
	{ "quiet", 'q', NULL, "print errors only", NULL },
	{}
};

/* For verbs whose first operand is a session, and that need at least @more operands behind it. */
static int open_named(int argc, char **argv, int more, const char *what, struct etw_control **control,
		      struct etw_session **session)
{
	int status;

	*control = NULL;
	*session = NULL;
	if (optind == argc)
		return usage("which session? etwctl list sessions shows them");
	if (argc - optind - 1 < more)
		return usage("%s", what);
	status = open_control(control);
	if (!status)
		status = open_session(*control, argv[optind], session);
	if (status) {
		etw_control_close(*control);
		*control = NULL;
	}
	return status;
}

static void close_both(struct etw_control *control, struct etw_session *session)
{
	etw_session_close(session);
	etw_control_close(control);
}

static int no_operand(int argc, char **argv, int operands)
{
	return argc - optind > operands ? usage("'%s' is one word too many", argv[optind + operands]) : 0;
}

/* What stop says at the end: the writer's own account, or the session's counts. */
static int say_stopped(const char *name, const struct state *s, const struct etw_session_query *q)
{
	uint64_t lost = 0;
	int status = STATUS_OK;

	for (unsigned int i = 0; q && i < ETW_NR_LOST; i++)
		lost += q->lost[i];
	if (s && s->life == STATE_ENDED) {
		status = s->status;
		lost = s->lost;
	} else if (s) {
		status = STATUS_LOSS;
	} else if (lost) {
		status = STATUS_LOSS;
	}
	if (q && q->stop_reason == ETW_STOP_CLOCK)
		status = worse(status, STATUS_FAILED);
	if (json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "session", name);
		if (s) {
			json_text(obj, "directory", s->dir);
			json_text(obj, "end", s->life == STATE_ENDED ? s->reason : "its writer died");
		}
		if (s && s->life == STATE_ENDED) {
			json_u64(obj, "events", s->events);
			json_u64(obj, "bytes", s->bytes);
		} else if (q) {
			json_u64(obj, "events", q->written);
			json_u64(obj, "unread", q->unread);
		}
		json_u64(obj, "lost", lost);
		json_s64(obj, "status", status);
		json_line(obj);
		return status;
	}
	if (lost)
		note("LOST %s events", show_count(lost));
	if (q && q->stop_reason == ETW_STOP_CLOCK)
		note("%s had stopped by itself: the cycle counter can be relied on no more; use --clock monotonic", name);
	if (s && s->life == STATE_ENDED)
		note("%s: %s events, %s, %s lost, in %s (%s)", name, show_count(s->events), show_bytes(s->bytes),
		     show_count(lost), s->dir, s->reason);
	else if (s)
		note("%s: its writer (process %d) died and the session with it; %s holds what was written: etwctl repair %s",
		     name, s->pid, s->dir, s->dir);
	else if (q)
		note("%s: stopped; %s events written, %s lost%s", name, show_count(q->written), show_count(lost),
		     q->unread ? "; what was not read is gone with it" : "");
	return status;
}

/* Until the name is free: its writer has said all, but its files are closed one after the other. Somebody else may keep it. */
static void wait_gone(const struct etw_session_query *stopped)
{
	struct etw_control *control;

	if (etw_control_open(&control))
		return;
	for (int waited = 0; waited < 1000; waited += 5) {
		struct etw_session_query q = {};
		bool there = false;

		while (etw_control_next_session(control, &q) == 1)
			there |= q.id == stopped->id;
		if (!there)
			break;
		usleep(5000);
	}
	etw_control_close(control);
}

int cmd_stop(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_session *session = NULL;
	struct etw_session_query q = {}, *query = NULL;
	struct state *s;
	const char *name;
	int status, err;
	bool live;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	if (optind == argc)
		return usage("which session? etwctl list sessions shows them");
	if (no_operand(argc, argv, 1))
		return STATUS_USAGE;
	name = argv[optind];
	status = open_control(&control);
	if (status)
		return status;
	err = etw_session_open(control, name, &session);
	if (err && err != -ENOENT) {
		status = fail_etw(err, NULL);
		etw_control_close(control);
		return status;
	}
	if (!err && !etw_session_query(session, &q))
		query = &q;
	s = state_read(name, query ? (int)q.owner_uid : -1);
	if (!session && !s) {
		status = open_session(control, name, &session);	/* says which sessions there are */
		etw_control_close(control);
		return status;
	}
	if (session) {
		err = etw_session_stop(session);
		if (!err && !etw_session_query(session, &q))
			query = &q;
		if (err && err != -ESHUTDOWN) {
			status = fail_etw(err, NULL);
			close_both(control, session);
			state_free(s);
			return status;
		}
	}
	live = session;
	/* Our file must not keep the session alive when its writer is done. */
	close_both(control, session);
	if (s && s->life == STATE_ALIVE) {
		if (state_wait(s, 3000)) {
			note("waiting for process %d to write the rest into %s", s->pid, s->dir);
			state_wait(s, -1);
		}
		if (query)
			wait_gone(query);
	} else if (s && live && s->life == STATE_ENDED) {
		/* Of an earlier session with this name, not of the one just stopped. */
		state_remove(s);
		state_free(s);
		s = NULL;
	}
	status = say_stopped(name, s, query);
	state_remove(s);
	state_free(s);
	return status;
}

int cmd_enable(int argc, char **argv)
{
	struct specs specs = { .no_etw = true };
	struct etw_control *control;
	struct etw_session *session;
	int key, status;

	while ((key = opt_next(argc, argv)) != -1) {
		if (key == '?')
			return STATUS_USAGE;
		status = specs_option(&specs, key, optarg);
		if (status)
			return status;
	}
	for (int i = optind + 1; i < argc; i++) {
		status = specs_add(&specs, argv[i]);
		if (status)
			return status;
	}
	status = open_named(argc, argv, 1, "which provider? etwctl list providers shows them", &control, &session);
	if (!status)
		status = specs_settle(&specs, control);
	if (!status)
		status = specs_enable(&specs, session, NULL, NULL);
	close_both(control, session);
	specs_free(&specs);
	return status;
}

int cmd_disable(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_session *session;
	int status, err = 0;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	status =
		open_named(argc, argv, 1, "which provider? etwctl status shows those of a session", &control, &session);
	if (status)
		return status;
	for (int i = optind + 1; !err && i < argc; i++) {
		struct etw_provider_query p = {};
		struct etw_provider_list info = {};
		const char *name = argv[i];
		bool there = false;

		/* To take a word that is no provider for a success would hide the mistake. */
		if (etw_control_find_provider(control, name, &info, NULL) == 0)
			name = (const char *)info.name;
		while (etw_session_next_provider(session, &p) == 1)
			there |= !strcasecmp((const char *)p.name, name);
		if (!there && !*info.name) {
			status = fail(
				STATUS_FAILED,
				"'%s' is not a provider, and not enabled in %s; etwctl status %s shows those that are",
				argv[i], argv[optind], argv[optind]);
			break;
		}
		err = etw_session_disable(session, name);
		if (err)
			status = fail_etw(err, argv[i]);
	}
	close_both(control, session);
	return status;
}

int cmd_update(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_session *session;
	uint32_t flush_ms = 0;
	int key, status, err;

	while ((key = opt_next(argc, argv)) != -1)
		if (key != OPT_FLUSH || parse_ms("--flush-ms", optarg, ETW_FLUSH_MS_MAX, ETW_FLUSH_MS_NEVER, &flush_ms))
			return STATUS_USAGE;
	if (!flush_ms)
		return usage("nothing to change; --flush-ms MS is what a live session can change");
	if (no_operand(argc, argv, 1))
		return STATUS_USAGE;
	status = open_named(argc, argv, 0, "", &control, &session);
	if (status)
		return status;
	err = etw_session_update_flush_ms(session, flush_ms);
	if (err)
		status = fail_etw(err, argv[optind]);
	close_both(control, session);
	return status;
}

int cmd_flush(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_session *session;
	uint32_t timeout = 0;
	int key, status, err;
	__u64 time = 0;

	while ((key = opt_next(argc, argv)) != -1)
		if (key != OPT_TIMEOUT || parse_ms("--timeout", optarg, 600000, 0, &timeout))
			return STATUS_USAGE;
	if (no_operand(argc, argv, 1))
		return STATUS_USAGE;
	status = open_named(argc, argv, 0, "", &control, &session);
	if (status)
		return status;
	err = etw_session_flush(session, timeout, &time);
	if (err) {
		status = fail_etw(err, argv[optind]);
	} else if (json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "session", argv[optind]);
		json_u64(obj, "complete_up_to", time);
		json_line(obj);
	}
	close_both(control, session);
	return status;
}

int cmd_capture_state(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_session *session;
	int status, err = 0;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	status = open_named(argc, argv, 0, "", &control, &session);
	if (status)
		return status;
	if (argc == optind + 1)
		err = etw_session_capture_state(session, NULL);
	for (int i = optind + 1; !err && i < argc; i++)
		err = etw_session_capture_state(session, argv[i]);
	if (err)
		status = fail_etw(err, NULL);
	close_both(control, session);
	return status;
}

int cmd_snapshot(int argc, char **argv)
{
	struct etw_writer_options o = { .size = sizeof(o), .flags = ETW_WRITER_SNAPSHOT };
	struct etw_writer_stats stats = {};
	struct etw_control *control;
	struct etw_session *session;
	struct etw_writer *writer = NULL;
	const char *dir = NULL;
	int key, status, err, ret;

	while ((key = opt_next(argc, argv)) != -1)
		switch (key) {
		case 'o':
			dir = optarg;
			break;
		case OPT_NO_CAPTURE:
			o.flags |= ETW_WRITER_NO_CAPTURE;
			break;
		case 'q':
			quiet = true;
			break;
		default:
			return STATUS_USAGE;
		}
	if (no_operand(argc, argv, 1))
		return STATUS_USAGE;
	if (optind < argc && (!dir || !*dir))
		return usage("where to? -o DIR");
	status = open_named(argc, argv, 0, "", &control, &session);
	if (status)
		return status;
	err = etw_writer_create(session, dir, &o, &writer);
	if (err) {
		status = fail_etw(err, NULL);
	} else {
		err = etw_writer_run(writer);
		if (err < 0)
			status = fail_etw(err, NULL);
		ret = etw_writer_finish(writer);
		if (ret < 0 && err >= 0)
			status = fail_etw(ret, NULL);
		etw_writer_stats(writer, &stats);
		if (stats.lost)
			status = worse(status, STATUS_LOSS);
		if (json) {
			struct json_object *obj = json_object_new_object();

			json_text(obj, "session", argv[optind]);
			json_text(obj, "directory", dir);
			json_u64(obj, "events", stats.events);
			json_u64(obj, "bytes", stats.bytes);
			json_u64(obj, "packets", stats.packets);
			json_u64(obj, "lost", stats.lost);
			json_s64(obj, "status", status);
			json_line(obj);
		} else {
			if (stats.lost)
				note("LOST %s events", show_count(stats.lost));
			note("%s events, %s, in %s; %s goes on", show_count(stats.events), show_bytes(stats.bytes), dir,
			     argv[optind]);
		}
	}
	etw_writer_free(writer);
	close_both(control, session);
	return status;
}
