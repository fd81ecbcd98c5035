// SPDX-License-Identifier: GPL-2.0-only
/* The verb record: a recording in the foreground, with or without a command. It must not know the format of a trace. */
#include "dev.h"
#include "etwctl.h"
#include "run.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const struct opt opts_record[] = {
	{ "name", OPT_NAME, "NAME", "name of the session (record-PID)", NULL },
	{ "duration", 'd', "SECONDS", "end after this time", NULL },
	{ "exit-status", OPT_EXIT_STATUS, NULL, "exit with the command's status", NULL },
	{ "quiet", 'q', NULL, "print errors only", NULL },
	{}
};

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
	status = run_signals(&r);
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
