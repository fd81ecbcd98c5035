// SPDX-License-Identifier: GPL-2.0-only
/* A recording at work (run.h): session, writer, signals, the end. It must not know options. */
#include "run.h"

#include "dev.h"
#include "etwctl.h"
#include "state.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t elapsed_ms(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
}

/* Relays must not fill while several providers dump what is there. */
static void drain(void *arg)
{
	struct run *r = arg;

	if (r->writer)
		etw_writer_step(r->writer, 0);
}

static int progress(void *arg, const struct etw_writer_stats *stats)
{
	struct run *r = arg;
	uint64_t ms = elapsed_ms(&r->began);

	if (r->terminal && !quiet && !json) {
		fprintf(stderr, "\r%" PRIu64 ".%" PRIu64 " s, %s events, %s, %s lost\033[K", ms / 1000, ms / 100 % 10,
			show_count(stats->events), show_bytes(stats->bytes), show_count(stats->lost));
		progress_shown = true;
	}
	return r->duration_ms && ms >= r->duration_ms;
}

int run_begin(struct run *r)
{
	struct etw_writer_options o = {
		.size = sizeof(o),
		.flags = r->circular ? ETW_WRITER_CIRCULAR : 0,
		.stop_fd = r->signals,
		.max_size = r->max_size,
		.progress_ms = r->duration_ms && r->duration_ms < 1000 ? r->duration_ms : 200,
		.progress = progress,
		.arg = r,
	};
	struct etw_session_query q = {};
	char uuid[ETW_GUID_TEXT_SIZE];
	char *command = NULL;
	int err, status;

	r->session_opts.size = sizeof(r->session_opts);
	if (r->flight_recorder)
		r->session_opts.flags |= ETW_SESSION_PERSIST | ETW_SESSION_OVERWRITE;
	err = etw_session_create(r->control, r->name, &r->session_opts, &r->session);
	if (err)
		return fail_etw(err, NULL);
	if (!r->flight_recorder) {
		if (r->command) {
			command = xstrdup("");
			for (char **word = r->command; *word; word++) {
				char *more = xasprintf("%s%s%s", command, *command ? " " : "", *word);

				free(command);
				command = more;
			}
			o.command = command;
		}
		err = etw_writer_create(r->session, r->dir, &o, &r->writer);
		free(command);
		if (err)
			return fail_etw(err, NULL);
	}
	/* Before enabling, which takes its time: whoever finds the session finds its trace. */
	if (r->state && !etw_session_query(r->session, &q)) {
		etw_guid_format(q.uuid, uuid);
		state_running(r->state, r->dir, uuid);
	}
	clock_gettime(CLOCK_MONOTONIC, &r->began);
	status = specs_enable(&r->specs, r->session, drain, r);
	if (status) {
		if (r->flight_recorder)
			etw_session_stop(r->session);	/* it would persist */
	}
	return status;
}

int run_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? fail(STATUS_FAILED, "signalfd: %s", strerror(errno)) : 0;
}

/* Reads what the signal file has; true when the recording shall end. */
static bool signals_end(struct run *r)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			if (r->child > 0 && waitpid(r->child, &r->child_status, WNOHANG) == r->child) {
				r->child = 0;
				r->reason = "the command ended";
				end = true;
			}
			break;
		case SIGHUP:
			/* A background writer belongs to no terminal any more. */
			if (r->background)
				break;
			/* fall through */
		default:
			/* From the terminal the command has got it too. */
			if (r->child > 0 && info.ssi_code != SI_KERNEL)
				kill(r->child, info.ssi_signo);
			r->reason = "a signal asked for the end";
			end = true;
		}
	}
	return end;
}

int run_loop(struct run *r)
{
	for (;;) {
		int ret = etw_writer_run(r->writer);

		switch (ret) {
		case ETW_WRITER_STOPPED:
			if (signals_end(r))
				return 0;
			if (r->duration_ms && elapsed_ms(&r->began) >= r->duration_ms) {
				r->reason = "the time is over";
				return 0;
			}
			break;
		case ETW_WRITER_ENDED:
			r->reason = "the session was stopped";
			return 0;
		case ETW_WRITER_FULL:
			r->reason = "the trace has its maximum size";
			return 0;
		default:
			if (ret == -EINTR)
				break;
			return ret;
		}
	}
}

/* Adds "N: why" to a list. */
static void add_cause(char **text, uint64_t n, const char *why)
{
	char *more;

	if (!n)
		return;
	more = xasprintf("%s%s%s: %s", *text, **text ? "; " : "", show_count(n), why);
	free(*text);
	*text = more;
}

static void say_end(const struct run *r, const struct etw_writer_stats *stats, const struct etw_session_query *q,
		    const char *sentence)
{
	uint64_t ms = elapsed_ms(&r->began);
	char *causes = xstrdup("");
	bool was_quiet = quiet;

	for (unsigned int i = 0; i < ETW_NR_LOST; i++)
		add_cause(&causes, q->lost[i], etw_lost_text(i));
	add_cause(&causes, stats->unwritten, "recorded, but not written any more");
	quiet = false;	/* a loss is not to be missed */
	if (stats->lost)
		note("LOST %s events (%s)", show_count(stats->lost), *causes ? causes : "cause not known");
	quiet = was_quiet;
	free(causes);
	if (q->overwritten)
		note("%s events were overwritten before they were read", show_count(q->overwritten));
	if (stats->dropped_events)
		note("circular: the oldest %s events (%s) were given up", show_count(stats->dropped_events),
		     show_bytes(stats->dropped_bytes));
	note("%s events, %s in %" PRIu64 ".%" PRIu64 " s, %s lost, in %s (%s)", show_count(stats->events),
	     show_bytes(stats->bytes), ms / 1000, ms / 100 % 10, show_count(stats->lost), r->shown_dir, sentence);
}

static void json_end(const struct run *r, const struct etw_writer_stats *stats, const struct etw_session_query *q,
		     const char *sentence, int status)
{
	struct json_object *obj = json_object_new_object(), *by = json_object_new_object();

	json_text(obj, "session", r->name);
	json_text(obj, "directory", r->dir);
	json_text(obj, "end", sentence);
	json_u64(obj, "milliseconds", elapsed_ms(&r->began));
	json_u64(obj, "events", stats->events);
	json_u64(obj, "bytes", stats->bytes);
	json_u64(obj, "packets", stats->packets);
	json_u64(obj, "lost", stats->lost);
	for (unsigned int i = 0; i < ETW_NR_LOST; i++)
		json_u64(by, etw_lost_name(i), q->lost[i]);
	json_u64(by, "unwritten", stats->unwritten);
	json_object_object_add(obj, "lost_by_cause", by);
	json_u64(obj, "overwritten", q->overwritten);
	json_u64(obj, "dropped", stats->dropped_events);
	json_s64(obj, "status", status);
	json_line(obj);
}

int run_end(struct run *r, int err, struct etw_writer_stats *stats, char **sentence)
{
	struct etw_session_query q = {};
	int status = STATUS_OK, ret;
	uint64_t lost = 0;

	*sentence = NULL;
	if (err) {
		/* finish() may set another text. */
		*sentence = xstrdup(etw_last_error());
		status = fail(status_of(err), "%s; the recording ends, %s holds what was written", *sentence,
			      r->shown_dir);
	}
	ret = etw_writer_finish(r->writer);
	if (ret && !err) {
		*sentence = xstrdup(etw_last_error());
		status = fail(status_of(ret), "%s; %s holds what was written", *sentence, r->shown_dir);
	}
	etw_writer_stats(r->writer, stats);
	stats->events -= stats->dropped_events;	/* what the trace holds */
	/* The session knows losses that no packet tells of, the writer what it could not write. */
	if (!etw_session_query(r->session, &q))
		for (unsigned int i = 0; i < ETW_NR_LOST; i++)
			lost += q.lost[i];
	if (stats->lost < lost + stats->unwritten)
		stats->lost = lost + stats->unwritten;
	if (stats->lost || q.overwritten)
		status = worse(status, STATUS_LOSS);
	if (!*sentence)
		*sentence = xstrdup(r->reason ? r->reason : "the session was stopped");
	if (json)
		json_end(r, stats, &q, *sentence, status);
	else
		say_end(r, stats, &q, *sentence);
	return status;
}

void run_free(struct run *r)
{
	etw_writer_free(r->writer);
	etw_session_close(r->session);
	etw_control_close(r->control);
	specs_free(&r->specs);
	free(r->dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void run_undo(struct run *r, int status)
{
	/* The directory was new or empty when the writer took it, so all in it is its. */
	if (r->writer) {
		etw_writer_free(r->writer);
		r->writer = NULL;
		nftw(r->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	state_ended(r->state, "it did not start", status, 0, 0, 0, false);
	state_free(r->state);
	r->state = NULL;
}

int run_announce(struct run *r)
{
	int taken;

	r->state = state_make(r->name, &taken);
	if (taken)
		return fail(STATUS_FAILED,
			    "a session '%s' is being written by process %d; choose another name, or etwctl stop %s",
			    r->name, taken, r->name);
	return 0;
}
