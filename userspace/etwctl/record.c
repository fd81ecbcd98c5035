// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs that write a running session into a directory, record and start, and start's flight recorder: settings, the writer's
 * loop, and what is said at its end. It must not know the format of a trace.
 */
#include "dev.h"
#include "etwctl.h"
#include "spec.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC 1000000000ULL

enum {
	OPT_SUBBUF_SIZE = OPT_PRIVATE,
	OPT_SUBBUFS,
	OPT_FLUSH_MS,
	OPT_CLOCK,
	OPT_MAX_SIZE,
	OPT_CIRCULAR,
	OPT_OVERWRITE,
	OPT_ADDRESSES,
	OPT_NAME,
	OPT_EXIT_STATUS,
	OPT_FLIGHT_RECORDER,
};

const struct opt opts_session[] = {
	{ "subbuf-size", OPT_SUBBUF_SIZE, "SIZE", "size of a sub-buffer, 4K to 4M, a power of two (128K)", NULL },
	{ "subbufs", OPT_SUBBUFS, "N", "sub-buffers for each CPU, 2 to 4096, a power of two (8)", NULL },
	{ "flush-ms", OPT_FLUSH_MS, "MS", "deliver what is recorded at least this often, or never (1000)", "never" },
	{ "clock", OPT_CLOCK, "NAME", "monotonic, boot (counts suspend) or real (monotonic)", "monotonic boot real" },
	{ "overwrite", OPT_OVERWRITE, NULL, "when the buffers are full lose the oldest events, not the newest", NULL },
	{ "kernel-addresses", OPT_ADDRESSES, NULL, "show kernel addresses (needs CAP_SYSLOG)", NULL },
	{}
};

const struct opt opts_file[] = {
	{ "output", 'o', "DIR", "write the trace into DIR, which must not exist or be empty", "@dir" },
	{ "max-size", OPT_MAX_SIZE, "SIZE", "end when the trace has this size", NULL },
	{ "circular", OPT_CIRCULAR, NULL, "with --max-size: go on and keep the newest events", NULL },
	{}
};

const struct opt opts_record[] = {
	{ "name", OPT_NAME, "NAME", "name of the session (record-PID)", NULL },
	{ "duration", 'd', "SECONDS", "end after this time", NULL },
	{ "exit-status", OPT_EXIT_STATUS, NULL, "exit with the command's status", NULL },
	{ "quiet", 'q', NULL, "print errors only", NULL },
	{}
};

const struct opt opts_start[] = {
	{ "flight-recorder", OPT_FLIGHT_RECORDER, NULL, "keep the newest events in memory, for etwctl snapshot", NULL },
	{ "quiet", 'q', NULL, "print errors only", NULL },
	{}
};

/* One recording. */
struct run {
	/* asked for */
	struct specs specs;
	struct etw_session_options session_opts;
	char name[ETW_NAME_SIZE];
	char *dir;		/* absolute */
	const char *shown_dir;	/* as written */
	uint64_t max_size;
	bool circular;
	bool flight_recorder;
	bool pass_status;
	uint64_t duration_ms;
	char **command;
	/* running */
	struct etw_control *control;
	struct etw_session *session;
	struct etw_writer *writer;
	struct state *state;
	int signals;		/* signalfd */
	pid_t child;
	int child_go;		/* closing it without a byte: do not start */
	int child_err;		/* errno of exec, if it failed */
	int child_status;	/* of wait; -1 not ended */
	bool terminal;
	bool background;
	struct timespec began;
	const char *reason;	/* why it ended */
};

static uint64_t elapsed_ms(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
}

/* One option that record and start share; 0 or a status. */
static int run_option(struct run *r, int key, const char *arg)
{
	uint64_t value;
	int n;

	switch (key) {
	case OPT_SPECS:
		return specs_option(&r->specs, key, arg);
	case OPT_SUBBUF_SIZE:
		if (parse_size("--subbuf-size", arg, ETW_SUBBUF_SIZE_MIN, ETW_SUBBUF_SIZE_MAX, &value))
			return STATUS_USAGE;
		if (value & (value - 1))
			return usage("--subbuf-size: %s is not a power of two; 64K, 128K and 256K are", arg);
		r->session_opts.subbuf_size = value;
		return 0;
	case OPT_SUBBUFS:
		if (parse_u64("--subbufs", arg, ETW_NR_SUBBUFS_MIN, ETW_NR_SUBBUFS_MAX, &value))
			return STATUS_USAGE;
		if (value & (value - 1))
			return usage("--subbufs: %s is not a power of two; 4, 8 and 16 are", arg);
		r->session_opts.nr_subbufs = value;
		return 0;
	case OPT_FLUSH_MS:
		return parse_ms("--flush-ms", arg, ETW_FLUSH_MS_MAX, ETW_FLUSH_MS_NEVER, &r->session_opts.flush_ms);
	case OPT_CLOCK:
		n = etw_clock_parse(arg);
		if (n < 0)
			return usage("--clock: '%s' is not monotonic, boot or real", arg);
		r->session_opts.clock = n;
		return 0;
	case OPT_OVERWRITE:
		r->session_opts.flags |= ETW_SESSION_OVERWRITE;
		return 0;
	case OPT_ADDRESSES:
		r->session_opts.flags |= ETW_SESSION_ADDRESSES;
		return 0;
	case 'o':
		r->shown_dir = arg;
		return *arg ? 0 : usage("--output: a directory needs a name");
	case OPT_MAX_SIZE:
		return parse_size("--max-size", arg, 4096, UINT64_MAX, &r->max_size);
	case OPT_CIRCULAR:
		r->circular = true;
		return 0;
	case 'q':
		quiet = true;
		return 0;
	}
	return STATUS_USAGE;	/* '?': reported */
}

/* What can be said to be wrong before anything is made. */
static int run_check(struct run *r)
{
	struct stat st;
	char cwd[PATH_MAX];

	if (r->circular && !r->max_size)
		return usage("--circular needs --max-size: how much to keep");
	if (r->flight_recorder && (r->shown_dir || r->max_size))
		return usage("--flight-recorder keeps events in memory; without -o and --max-size, and etwctl snapshot writes them");
	if (!etw_name_valid(r->name))
		return usage("'%s' is not a session name: a letter, then letters, digits, '_', '.' or '-', at most %d in all", r->name,
			     ETW_NAME_SIZE - 1);
	if (!r->specs.nr) {
		int status = specs_profile(&r->specs, "default");

		if (status)
			return status;
	}
	if (r->flight_recorder)
		return 0;
	if (!lstat(r->shown_dir, &st) && !S_ISDIR(st.st_mode))
		return fail(STATUS_FAILED, "%s is there and not a directory; choose another name", r->shown_dir);
	/* The background writer leaves this directory. */
	if (*r->shown_dir == '/')
		r->dir = xstrdup(r->shown_dir);
	else if (getcwd(cwd, sizeof(cwd)))
		r->dir = xasprintf("%s/%s", cwd, r->shown_dir);
	else
		return fail(STATUS_FAILED, "the current directory: %s; give -o a path from /", strerror(errno));
	return 0;
}

/* CPUs that will have a relay: those online. */
static unsigned int nr_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? n : 1;
}

static void say_memory(struct run *r)
{
	uint64_t size = r->session_opts.subbuf_size ? r->session_opts.subbuf_size : ETW_SUBBUF_SIZE_DEFAULT;
	uint64_t nr = r->session_opts.nr_subbufs ? r->session_opts.nr_subbufs : ETW_NR_SUBBUFS_DEFAULT;
	unsigned int cpus = nr_cpus();

	note("session %s takes %s of memory: %u CPU%s, each %" PRIu64 "+1 sub-buffers of %s", r->name, show_bytes(cpus * (nr + 1) * size),
	     cpus, cpus == 1 ? "" : "s", nr, show_bytes(size));
}

/* The device, the providers, the memory: everything up to but without the session. */
static int run_prepare(struct run *r)
{
	int status = open_control(&r->control);

	if (!status)
		status = specs_settle(&r->specs, r->control);
	if (!status)
		say_memory(r);
	return status;
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

/* Makes session and writer and enables the providers; when it returns 0, events flow into the directory. */
static int run_begin(struct run *r)
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
	clock_gettime(CLOCK_MONOTONIC, &r->began);
	status = specs_enable(&r->specs, r->session, drain, r);
	if (status) {
		if (r->flight_recorder)
			etw_session_stop(r->session);	/* it would persist */
		return status;
	}
	if (r->state && !etw_session_query(r->session, &q)) {
		etw_guid_format(q.uuid, uuid);
		state_running(r->state, r->dir, uuid);
	}
	return 0;
}

/* The signals that end a recording, and the end of the command, become readable. */
static int signals_open(struct run *r)
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

/* Runs the writer until there is a reason to end; then @reason is set. Returns a negative errno of the writer. */
static int run_loop(struct run *r)
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

static void child_main(struct run *r, int go, int err)
{
	sigset_t set;
	char byte;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(127);
	execvp(r->command[0], r->command);
	if (write(err, &errno, sizeof(errno)) != sizeof(errno))
		_exit(126);
	_exit(127);
}

/* Forks the command, which waits for child_start(). */
static int child_make(struct run *r)
{
	int go[2], err[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return fail(STATUS_FAILED, "pipe: %s", strerror(errno));
	r->child = fork();
	if (r->child < 0)
		return fail(STATUS_FAILED, "fork: %s", strerror(errno));
	if (!r->child) {
		close(go[1]);
		close(err[0]);
		child_main(r, go[0], err[1]);
	}
	close(go[0]);
	close(err[1]);
	r->child_go = go[1];
	r->child_err = err[0];
	return 0;
}

/* Lets the command run; an errno if it cannot be executed. */
static int child_start(struct run *r)
{
	int err = 0;

	if (write(r->child_go, "", 1) != 1)
		err = errno;
	close(r->child_go);
	r->child_go = -1;
	if (!err && read(r->child_err, &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(r->child_err);
	r->child_err = -1;
	if (err) {
		waitpid(r->child, &r->child_status, 0);
		r->child = 0;
	}
	return err;
}

/* What was lost, by cause, as " (x no_room: ..., y ...)". */
static char *lost_causes(const struct etw_session_query *q)
{
	char *text = xstrdup(""), *more;

	for (unsigned int i = 0; i < ETW_NR_LOST; i++) {
		if (!q->lost[i])
			continue;
		more = xasprintf("%s%s%s: %s", text, *text ? "; " : "", show_count(q->lost[i]), etw_lost_text(i));
		free(text);
		text = more;
	}
	return text;
}

/*
 * Ends the trace and says what is in it. @err: what the writer's loop returned. Returns the exit status, and in @stats what was
 * written.
 */
static int run_end(struct run *r, int err, struct etw_writer_stats *stats, char **sentence)
{
	struct etw_session_query q = {};
	int status = STATUS_OK, ret;
	uint64_t lost = 0, ms = elapsed_ms(&r->began);
	char *causes;

	*sentence = NULL;
	if (err) {
		/* finish() may set another text. */
		*sentence = xstrdup(etw_last_error());
		status = err == -ENOSPC || err == -EDQUOT || err == -EIO ? STATUS_FAILED : status_of(err);
		fail(status, "%s; the recording ends, %s holds what was written", *sentence, r->shown_dir);
	}
	ret = etw_writer_finish(r->writer);
	if (ret && !err) {
		*sentence = xstrdup(etw_last_error());
		status = status_of(ret);
		fail(status, "%s; %s holds what was written", *sentence, r->shown_dir);
	}
	etw_writer_stats(r->writer, stats);
	stats->events -= stats->dropped_events;	/* what the trace holds */
	if (!etw_session_query(r->session, &q))
		for (unsigned int i = 0; i < ETW_NR_LOST; i++)
			lost += q.lost[i];
	if (lost < stats->lost)
		lost = stats->lost;
	stats->lost = lost;
	if (lost || q.overwritten)
		status = worse(status, STATUS_LOSS);
	if (!*sentence)
		*sentence = xstrdup(r->reason ? r->reason : "the session was stopped");
	causes = lost_causes(&q);
	if (json) {
		struct json_object *obj = json_object_new_object(), *by = json_object_new_object();

		json_text(obj, "session", r->name);
		json_text(obj, "directory", r->dir);
		json_text(obj, "end", *sentence);
		json_u64(obj, "milliseconds", ms);
		json_u64(obj, "events", stats->events);
		json_u64(obj, "bytes", stats->bytes);
		json_u64(obj, "packets", stats->packets);
		json_u64(obj, "lost", lost);
		for (unsigned int i = 0; i < ETW_NR_LOST; i++)
			json_u64(by, etw_lost_name(i), q.lost[i]);
		json_object_object_add(obj, "lost_by_cause", by);
		json_u64(obj, "overwritten", q.overwritten);
		json_u64(obj, "dropped", stats->dropped_events);
		json_s64(obj, "status", status);
		json_line(obj);
	} else {
		bool was_quiet = quiet;

		quiet = false;	/* a loss is not to be missed */
		if (lost)
			note("LOST %s events (%s); larger or more sub-buffers (--subbuf-size, --subbufs) or fewer events help",
			     show_count(lost), *causes ? causes : "cause not known");
		quiet = was_quiet;
		if (q.overwritten)
			note("%s events were overwritten before they were read", show_count(q.overwritten));
		if (stats->dropped_events)
			note("circular: the oldest %s events (%s) were given up", show_count(stats->dropped_events),
			     show_bytes(stats->dropped_bytes));
		note("%s events, %s in %" PRIu64 ".%" PRIu64 " s, %s lost, in %s (%s)", show_count(stats->events), show_bytes(stats->bytes),
		     ms / 1000, ms / 100 % 10, show_count(lost), r->shown_dir, *sentence);
	}
	free(causes);
	return status;
}

static void run_free(struct run *r)
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

/* A recording that did not start leaves nothing behind. */
static void run_undo(struct run *r, int status)
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

/* The file for status, stop and watch; 0, or a status if the name is in use. */
static int run_announce(struct run *r)
{
	int taken;

	r->state = state_make(r->name, &taken);
	if (taken)
		return fail(STATUS_FAILED, "a session '%s' is being written by process %d; choose another name, or etwctl stop %s", r->name, taken,
			    r->name);
	return 0;
}

int cmd_record(int argc, char **argv)
{
	struct run r = { .signals = -1, .child_go = -1, .child_err = -1, .child_status = -1 };
	struct etw_writer_stats stats = {};
	char dir[64], *sentence = NULL;
	int key, status, err = 0;
	uint64_t seconds;
	time_t now = time(NULL);
	struct tm tm;

	snprintf(r.name, sizeof(r.name), "record-%d", getpid());
	strftime(dir, sizeof(dir), "etw-%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	r.shown_dir = dir;
	while ((key = opt_next(argc, argv)) != -1) {
		switch (key) {
		case OPT_NAME:
			snprintf(r.name, sizeof(r.name), "%s", strlen(optarg) < sizeof(r.name) ? optarg : "?");
			break;
		case 'd':
			if (parse_u64("--duration", optarg, 1, 365 * 86400, &seconds))
				return STATUS_USAGE;
			r.duration_ms = seconds * 1000;
			break;
		case OPT_EXIT_STATUS:
			r.pass_status = true;
			break;
		default:
			status = run_option(&r, key, optarg);
			if (status)
				return status;
		}
	}
	if (optind < argc)
		r.command = argv + optind;
	if (r.pass_status && !r.command)
		return usage("--exit-status needs a command");
	r.terminal = isatty(STDERR_FILENO);
	status = run_check(&r);
	if (status)
		return status;
	status = signals_open(&r);
	if (!status)
		status = run_prepare(&r);
	if (!status)
		status = run_announce(&r);
	/* Before the session, so that the fork is not the first thing recorded, and its memory not copied. */
	if (!status && r.command)
		status = child_make(&r);
	if (!status)
		status = run_begin(&r);
	if (status) {
		run_undo(&r, status);
		run_free(&r);
		return status;
	}
	if (r.command) {
		err = child_start(&r);
		if (err) {
			status = fail(STATUS_FAILED, "cannot run %s: %s", r.command[0], strerror(err));
			r.reason = "the command could not be run";
		}
	} else {
		note("recording into %s; Ctrl-C ends it", r.shown_dir);
	}
	err = r.reason ? 0 : run_loop(&r);
	status = worse(status, run_end(&r, err, &stats, &sentence));
	state_ended(r.state, sentence, status, stats.events, stats.bytes, stats.lost, false);
	state_free(r.state);
	free(sentence);
	run_free(&r);
	if (r.child > 0) {
		note("waiting for %s", r.command[0]);
		/* A second Ctrl-C is for us as well. */
		sigset_t set;

		sigemptyset(&set);
		sigprocmask(SIG_SETMASK, &set, NULL);
		while (waitpid(r.child, &r.child_status, 0) < 0 && errno == EINTR)
			;
	}
	if (r.pass_status && r.child_status != -1)
		return WIFEXITED(r.child_status) ? WEXITSTATUS(r.child_status) : 128 + WTERMSIG(r.child_status);
	return status;
}

/* The background writer, already a process of its own. @ready: where the parent waits for the exit status. */
static int writer_main(struct run *r, int ready)
{
	struct etw_writer_stats stats = {};
	char *sentence = NULL;
	unsigned char byte;
	int status, err, null;

	r->background = true;
	status = signals_open(r);
	if (!status)
		status = open_control(&r->control);
	if (!status)
		status = run_announce(r);
	if (!status)
		status = run_begin(r);
	if (status)
		run_undo(r, status);
	byte = status;
	fflush(stdout);
	if (status)
		return write(ready, &byte, 1) == 1 ? status : STATUS_FAILED;
	/* From here on nobody listens; what happens is told by the state file. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || chdir("/"))
		return STATUS_FAILED;
	if (write(ready, &byte, 1) != 1)
		return STATUS_FAILED;
	close(ready);
	r->terminal = false;
	quiet = true;
	err = run_loop(r);
	status = run_end(r, err, &stats, &sentence);
	/* Whoever asked for the end reads how it was; kept for status and stop in any case. */
	state_ended(r->state, sentence, status, stats.events, stats.bytes, stats.lost, true);
	run_free(r);
	return status;
}

/* Becomes a process without terminal and parent that owns session and writer. */
static int start_writer(struct run *r)
{
	unsigned char byte;
	int ready[2], n, wstatus;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return fail(STATUS_FAILED, "pipe: %s", strerror(errno));
	fflush(NULL);
	/* Its own open of the device counts; this one's would be shared. */
	etw_control_close(r->control);
	r->control = NULL;
	pid = fork();
	if (pid < 0)
		return fail(STATUS_FAILED, "fork: %s", strerror(errno));
	if (!pid) {
		close(ready[0]);
		setsid();
		pid = fork();
		if (pid)
			_exit(pid < 0);
		for (int fd = 3; fd < 256; fd++)
			if (fd != ready[1])
				close(fd);
		_exit(writer_main(r, ready[1]));
	}
	close(ready[1]);
	while (waitpid(pid, &wstatus, 0) < 0 && errno == EINTR)
		;
	do
		n = read(ready[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	close(ready[0]);
	if (n != 1)
		return fail(STATUS_FAILED, "the background writer died before it was ready");
	return byte;
}

int cmd_start(int argc, char **argv)
{
	struct run r = { .signals = -1, .child_go = -1, .child_err = -1, .child_status = -1 };
	struct state *old;
	int key, status;

	while ((key = opt_next(argc, argv)) != -1) {
		if (key == OPT_FLIGHT_RECORDER) {
			r.flight_recorder = true;
			continue;
		}
		status = run_option(&r, key, optarg);
		if (status)
			return status;
	}
	if (optind + 1 != argc)
		return usage(optind == argc ? "the session needs a name" : "'%s' is one word too many", argv[optind + 1]);
	if (!r.shown_dir && !r.flight_recorder)
		return usage("where do the events go? -o DIR writes them, --flight-recorder keeps the newest in memory");
	snprintf(r.name, sizeof(r.name), "%s", strlen(argv[optind]) < sizeof(r.name) ? argv[optind] : "?");
	status = run_check(&r);
	if (!status)
		status = run_prepare(&r);
	if (!status && r.flight_recorder) {
		status = run_begin(&r);
		/* What an earlier session of this name left is of no interest any more. */
		old = status ? NULL : state_read(r.name, -1);
		if (old && old->life != STATE_ALIVE)
			state_remove(old);
		state_free(old);
	} else if (!status) {
		status = start_writer(&r);
	}
	if (!status && json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "session", r.name);
		json_text(obj, "directory", r.dir ? r.dir : "");
		json_s64(obj, "status", 0);
		json_line(obj);
	} else if (!status) {
		note(r.dir ? "%s runs, into %s" : "%s runs in memory", r.name, r.shown_dir);
	}
	run_free(&r);
	return status;
}
