// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs that read events: dump (directories), watch (live), and repair of a directory. They must not know how an
 * event is printed or filtered.
 */
#include "dev.h"
#include "etwctl.h"
#include "filter.h"
#include "print.h"
#include "spec.h"
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { OPT_WATCH_FLUSH = OPT_PRIVATE };

/* Bounds of how often a session that is followed is flushed: soon enough to be live, seldom enough not to disturb. */
#define ASK_MIN_MS 20
#define ASK_MAX_MS 1000
/* How long a writer may take from making its session to saying where it writes. */
#define START_MS 5000

/* --event and --pid of watch are the read-side filters, so it takes -p and --profile only. */
const struct opt opts_watch[] = {
	{ "flush-ms", OPT_WATCH_FLUSH, "MS", "with -p: events appear at most this late (100)", NULL },
	{}
};

struct reader {
	struct etw_consumer *consumer;
	struct tasks *tasks;
	struct filter filter;
	struct filter_reported reported;
	struct print print;
	uint64_t limit, shown;
	bool live;
	struct etw_session *followed;	/* whose writer's directory is read */
	int ask_ms;		/* how often to have it flushed */
	bool hide_etw;		/* the session's own events were not asked for */
};

/* Unfinished traces: what is missing at their end is not in any packet. */
static int report_unfinished(struct etw_consumer *consumer)
{
	int status = STATUS_OK;

	for (unsigned int i = 0; i < etw_consumer_nr_traces(consumer); i++) {
		const struct etw_trace *t = etw_consumer_trace(consumer, i);

		if (t->live || t->finished)
			continue;
		if (json) {
			struct json_object *obj = json_object_new_object(), *what = json_object_new_object();

			json_text(what, "trace", t->path);
			json_text(what, "what", "its writer did not finish it");
			json_object_object_add(obj, "damage", what);
			json_line(obj);
		} else {
			note("%s: its writer did not finish it (killed, power lost, or still at work); etwctl repair makes it whole for other tools",
			     t->path);
		}
		status = STATUS_LOSS;
	}
	return status;
}

static int show(struct reader *r, const struct etw_event *event)
{
	int verdict;

	tasks_event(r->tasks, event);
	verdict = filter_event(&r->filter, r->tasks, event);
	if (verdict != FILTER_YES)
		return verdict;
	if (r->hide_etw && !r->filter.events && !strcasecmp(event->cls->provider, "etw"))
		return FILTER_NO;
	if (r->hide_etw && !r->filter.events && !strcasecmp(provider_short(event->cls->provider), "etw"))
		return FILTER_NO;
	print_event(&r->print, r->tasks, event);
	return ++r->shown == r->limit ? FILTER_END : FILTER_YES;
}

/* Reads to the end, a signal or the limit. */
static int read_all(struct reader *r)
{
	const struct etw_event *event;
	int status = STATUS_OK, ret;
	bool printed = false;

	for (;;) {
		/* Events that are there are printed together; before waiting, what was printed goes out. */
		ret = etw_consumer_next(r->consumer, &event, r->live ? 0 : -1);
		if (ret == -EAGAIN && r->live) {
			if (printed)
				print_flush();
			printed = false;
			/* A loss is news that cannot wait for the end. */
			status = filter_report(r->consumer, false, &r->reported);
			ret = etw_consumer_next(r->consumer, &event, r->followed ? r->ask_ms : -1);
		}
		if (ret == -EAGAIN) {
			/*
			 * A CPU without events has no packets, so nobody knows how far it is: a flush makes the kernel
			 * say so to the writer, and the writer to us.
			 */
			if (r->followed)
				etw_session_flush(r->followed, 1000, NULL);
			continue;
		}
		if (ret != 1)
			break;
		printed = true;
		if (show(r, event) == FILTER_END)
			break;
		if (ferror(stdout))
			return STATUS_FAILED;	/* nobody reads any more */
	}
	print_flush();
	status = filter_report(r->consumer, false, &r->reported);
	if (ret < 0 && ret != -EINTR)
		status = worse(fail_etw(ret, NULL), status);
	return status;
}

/* For dump and watch; the rest of an option is the caller's. */
static int read_option(struct reader *r, int key, const char *arg)
{
	switch (key) {
	case OPT_FILTERS:
		return filter_option(&r->filter, key, arg);
	case OPT_TIME:
		return print_time_option(&r->print, arg);
	case 'n':
		return parse_u64("--limit", arg, 1, UINT64_MAX, &r->limit);
	}
	return STATUS_USAGE;
}

int cmd_dump(int argc, char **argv)
{
	struct reader r = {};
	int key, status;

	while ((key = opt_next(argc, argv)) != -1) {
		status = read_option(&r, key, optarg);
		if (status)
			return status;
	}
	status = filter_open(&r.filter, argv + optind, false, &r.reported, &r.consumer);
	if (!r.consumer)
		return status;
	status = worse(status, report_unfinished(r.consumer));
	r.print.start = r.filter.start;
	r.print.trace = argc - optind > 1;
	r.tasks = tasks_new();
	status = worse(status, read_all(&r));
	filter_free(&r.filter, r.consumer);
	tasks_free(r.tasks);
	etw_consumer_free(r.consumer);
	return status;
}

/* Signals that end a watch become readable: the consumer's stop_fd. */
static int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Finds where the events of a live session can be had: its writer's directory, or the session itself. */
static int watch_named(struct reader *r, const char *name, struct etw_control *control, struct etw_session **session)
{
	struct etw_session_query q = {};
	struct state *s;
	int status, err;

	status = open_session(control, name, session);
	if (status)
		return status;
	err = etw_session_query(*session, &q);
	if (err)
		return fail_etw(err, name);
	/* A writer that has just made the session says in a moment where it writes. */
	s = state_read(name, q.owner_uid);
	for (int waited = 0; s && s->life == STATE_ALIVE && !*s->dir && waited < START_MS; waited += 10) {
		state_free(s);
		usleep(10000);
		s = state_read(name, q.owner_uid);
	}
	err = etw_session_query(*session, &q);
	if (err) {
		state_free(s);
		return fail_etw(err, name);
	}
	if (s && s->life == STATE_ALIVE && s->pid == q.reader_pid) {
		err = etw_consumer_add_trace(r->consumer, s->dir, ETW_TRACE_FOLLOW);
		r->followed = *session;
		r->ask_ms = q.flush_ms / 2 < ASK_MIN_MS ? ASK_MIN_MS :
			    q.flush_ms / 2 > ASK_MAX_MS ? ASK_MAX_MS :
							  (int)q.flush_ms / 2;
	} else {
		if (q.flags & ETW_SESSION_OVERWRITE)
			note("%s is a flight recorder: what is watched is not in later snapshots", name);
		err = etw_consumer_add_session(r->consumer, *session);
	}
	state_free(s);
	return err < 0 ? fail_etw(err, NULL) : STATUS_OK;
}

/* Makes a session of its own. */
static int watch_providers(struct reader *r, struct specs *specs, uint32_t flush_ms, struct etw_control *control,
			   struct etw_session **session)
{
	struct etw_session_options o = { .size = sizeof(o), .flush_ms = flush_ms };
	char name[ETW_NAME_SIZE];
	int status, err;

	r->hide_etw = true;
	for (unsigned int i = 0; i < specs->nr; i++)
		r->hide_etw &= strcasecmp(specs->list[i].provider, "etw") != 0;
	status = specs_settle(specs, control);
	if (status)
		return status;
	snprintf(name, sizeof(name), "watch-%d", getpid());
	err = etw_session_create(control, name, &o, session);
	if (err)
		return fail_etw(err, NULL);
	err = etw_consumer_add_session(r->consumer, *session);
	if (err < 0)
		return fail_etw(err, NULL);
	return specs_enable(specs, *session, NULL, NULL);
}

int cmd_watch(int argc, char **argv)
{
	struct etw_consumer_options o = { .size = sizeof(o) };
	struct specs specs = {};
	struct reader r = { .live = true };
	struct etw_control *control = NULL;
	struct etw_session *session = NULL;
	uint32_t flush_ms = 100;
	int key, status;
	bool began;

	while ((key = opt_next(argc, argv)) != -1) {
		switch (key) {
		case 'p':
		case OPT_PROFILE:
		case OPT_NO_ETW:
		case OPT_LIVE:
			status = specs_option(&specs, key, optarg);
			break;
		case OPT_WATCH_FLUSH:
			status = parse_ms("--flush-ms", optarg, ETW_FLUSH_MS_MAX, 0, &flush_ms);
			break;
		default:
			status = read_option(&r, key, optarg);
		}
		if (status)
			return status;
	}
	if (argc - optind > 1)
		return usage("'%s' is one word too many", argv[optind + 1]);
	if ((optind < argc) == (specs.nr > 0))
		return usage("what? a session's NAME, or -p PROVIDER for a session of its own");
	if (optind < argc && specs_filtered(&specs))
		return usage(
			"--process, --where, --id and --uid are for what is recorded: with -p, or by etwctl enable %s ...",
			argv[optind]);
	status = open_control(&control);
	if (status)
		return status;
	o.stop_fd = stop_signals();
	if (etw_consumer_new(&o, &r.consumer))
		return fail(STATUS_FAILED, "%s", etw_last_error());
	r.tasks = tasks_new();
	if (optind < argc)
		status = watch_named(&r, argv[optind], control, &session);
	else
		status = watch_providers(&r, &specs, flush_ms, control, &session);
	began = !status;
	if (began) {
		struct timespec now;

		filter_start(&r.filter, r.consumer);
		r.print.start = r.filter.start;
		/* What was there before is read for the names in it, and shown only if asked for. */
		if (!r.filter.from.set && optind < argc) {
			clock_gettime(CLOCK_REALTIME, &now);
			r.filter.from.set = true;
			r.filter.from.epoch = now.tv_sec * 1000000000LL + now.tv_nsec;
		}
		status = read_all(&r);
	}
	/* What was not read says nothing about the patterns. */
	filter_free(&r.filter, began ? r.consumer : NULL);
	tasks_free(r.tasks);
	etw_consumer_free(r.consumer);
	etw_session_close(session);
	etw_control_close(control);
	specs_free(&specs);
	return status;
}

static void report_repair(void *arg, const struct etw_damage *d)
{
	(void)arg;
	if (json) {
		struct json_object *obj = json_object_new_object(), *repair = json_object_new_object();

		json_text(repair, "file", d->file);
		json_u64(repair, "offset", d->offset);
		json_u64(repair, "bytes", d->bytes);
		json_text(repair, "what", d->what);
		json_object_object_add(obj, "repair", repair);
		json_line(obj);
	} else {
		char what[512];

		printf("%s: offset %" PRIu64 ": %s\n", d->file, (uint64_t)d->offset,
		       text_safe(what, d->what, strnlen(d->what, sizeof(what) / 4 - 1)));
	}
}

int cmd_repair(int argc, char **argv)
{
	int status = STATUS_OK;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	if (optind == argc)
		return usage("which trace? name one directory or more");
	for (; optind < argc; optind++) {
		int n = etw_trace_repair(argv[optind], report_repair, NULL);

		if (n < 0)
			status = worse(status, fail_etw(n, NULL));
		else if (!json)
			printf(n ? "%s: %d changes; it is readable for other tools now\n" : "%s: nothing to repair\n",
			       argv[optind], n);
	}
	return status;
}
