// SPDX-License-Identifier: GPL-2.0-only
/* The verb start: a session in memory, or with a writer in the background. It must not know the format of a trace. */
#include "dev.h"
#include "etwctl.h"
#include "run.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct opt opts_start[] = {
	{ "flight-recorder", OPT_FLIGHT_RECORDER, NULL, "keep the newest events in memory, for etwctl snapshot", NULL },
	{ "quiet", 'q', NULL, "print errors only", NULL },
	{}
};

/* The background writer, already a process of its own. @ready: where the parent waits for the exit status. */
static int writer_main(struct run *r, int ready)
{
	struct etw_writer_stats stats = {};
	char *sentence = NULL;
	unsigned char byte;
	int status, err, null;

	r->background = true;
	status = run_signals(r);
	if (!status)
		status = open_control(&r->control);
	if (!status)
		status = run_announce(r);
	if (!status)
		status = run_begin(r);
	if (status) {
		run_undo(r, status);
		/* Before the caller hears of it the session must be gone. */
		run_free(r);
	}
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
		/* What the caller had open is not ours to keep. */
		if (ready[1] > 3)
			close_range(3, ready[1] - 1, 0);
		close_range(ready[1] + 1, ~0U, 0);
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
		return usage(optind == argc ? "the session needs a name" : "'%s' is one word too many",
			     argv[optind + 1]);
	if (!r.shown_dir && !r.flight_recorder)
		return usage(
			"where do the events go? -o DIR writes them, --flight-recorder keeps the newest in memory");
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
