// SPDX-License-Identifier: GPL-2.0-only
/* The settings of a recording (run.h): from options, and what can be wrong with them. It makes nothing. */
#include "run.h"

#include "dev.h"
#include "etwctl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct opt opts_session[] = {
	{ "subbuf-size", OPT_SUBBUF_SIZE, "SIZE", "size of a sub-buffer, 4K to 4M, a power of two (128K)", NULL },
	{ "subbufs", OPT_SUBBUFS, "N", "sub-buffers for each CPU, 2 to 4096, a power of two (8)", NULL },
	{ "flush-ms", OPT_FLUSH_MS, "MS", "deliver what is recorded at least this often, or never (1000)", "never" },
	{ "clock", OPT_CLOCK, "NAME", "monotonic, boot (counts suspend), real or cycles (monotonic)",
	  "monotonic boot real cycles" },
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

int run_option(struct run *r, int key, const char *arg)
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
			return usage("--clock: '%s' is not monotonic, boot, real or cycles", arg);
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

int run_check(struct run *r)
{
	struct stat st;
	char cwd[PATH_MAX];

	if (r->circular && !r->max_size)
		return usage("--circular needs --max-size: how much to keep");
	if (r->flight_recorder && (r->shown_dir || r->max_size))
		return usage(
			"--flight-recorder keeps events in memory; without -o and --max-size, and etwctl snapshot writes them");
	if (!etw_name_valid(r->name))
		return usage(
			"'%s' is not a session name: a letter, then letters, digits, '_', '.' or '-', at most %d in all",
			r->name, ETW_NAME_SIZE - 1);
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

	note("session %s takes %s of memory: %u CPU%s, each %" PRIu64 "+1 sub-buffers of %s", r->name,
	     show_bytes(cpus * (nr + 1) * size), cpus, cpus == 1 ? "" : "s", nr, show_bytes(size));
}

int run_prepare(struct run *r)
{
	int status = open_control(&r->control);

	if (!status)
		status = specs_settle(&r->specs, r->control);
	if (!status)
		say_memory(r);
	return status;
}
