// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of verbs, from which parser, help, completion and the check of the manual page are made, and version. It
 * must not know what a verb does.
 */
#include "dev.h"
#include "etwctl.h"
#include "filter.h"
#include "print.h"
#include "spec.h"

#include <json-c/json.h>
#include <string.h>

const struct opt opts_json[] = {
	{ "json", OPT_JSON, NULL, "objects instead of text, one a line; errors too", NULL },
	{}
};

#define EXAMPLES(...) (const char *const[]){ __VA_ARGS__, NULL }

const struct verb verbs[] = {
	{
		"record", cmd_record, "[--] [COMMAND ...]",
		"Write events into a directory until COMMAND ends, or Ctrl-C", NULL,
		{ opts_providers, opts_enable, opts_live, opts_file, opts_session, opts_record, opts_json },
		EXAMPLES("etwctl record -o trace -- make -j8",
			 "etwctl record -p sched:info:switch+wakeup -p block --pid 4711 -o trace",
			 "etwctl record --max-size 1G --circular -o trace"),
		.command = true,
	}, {
		"start", cmd_start, "NAME", "Start a session that goes on in the background", NULL,
		{ opts_providers, opts_enable, opts_live, opts_file, opts_session, opts_start, opts_json },
		EXAMPLES("etwctl start mine -o trace", "etwctl start box --flight-recorder --subbufs 32"),
	}, {
		"stop", cmd_stop, "NAME", "Stop a session, and wait until the last of it is written", "@session",
		{ opts_json }, NULL,
	}, {
		"status", cmd_status, "[NAME ...]",
		"Show sessions: settings, memory, events written, filtered, lost", "@session",
		{ opts_json }, NULL,
	}, {
		"list", cmd_list, "sessions | providers [PROVIDER ...] | events [PROVIDER ...] | profiles",
		"Show what there is",
		"sessions providers events profiles|@provider",
		{ opts_list, opts_json }, EXAMPLES("etwctl list providers", "etwctl list events sched"),
	}, {
		"enable", cmd_enable, "NAME PROVIDER[:LEVEL[:WHAT[:ALL]]] ...",
		"Enable providers in a live session, or change how", "@session|@provider",
		{ opts_enable, opts_live, opts_json },
		EXAMPLES("etwctl enable mine block:info", "etwctl enable mine block --where 'nr_sector >= 64'"),
	}, {
		"disable", cmd_disable, "NAME PROVIDER ...",
		"Disable providers in a live session", "@session|@provider",
		{ opts_json }, NULL,
	}, {
		"update", cmd_update, "NAME", "Change settings of a live session", "@session",
		{ opts_update, opts_json }, EXAMPLES("etwctl update mine --flush-ms 100"),
	}, {
		"flush", cmd_flush, "NAME", "Deliver everything a session has recorded so far", "@session",
		{ opts_flush, opts_json }, NULL,
	}, {
		"capture-state", cmd_capture_state, "NAME [PROVIDER ...]",
		"Ask a session's providers to record the state they are in", "@session|@provider",
		{ opts_json }, NULL,
	}, {
		"snapshot", cmd_snapshot, "NAME", "Write what a flight recorder holds; it goes on", "@session",
		{ opts_snapshot, opts_json }, EXAMPLES("etwctl snapshot box -o trace"),
	}, {
		"watch", cmd_watch, "[NAME]",
		"Print events live, in time order: of a session, or with -p of one of its own", "@session",
		{ opts_providers, opts_live, opts_watch, opts_filter, opts_print, opts_json },
		EXAMPLES("etwctl watch mine", "etwctl watch -p sched:info:switch --comm 'nginx*'"),
	}, {
		"dump", cmd_dump, "DIR ...", "Print the events of traces, merged in time order", "@dir",
		{ opts_filter, opts_print, opts_json },
		EXAMPLES("etwctl dump --event 'block_*' trace", "etwctl dump --from +1.5 --to +2 --cpu 0 trace"),
	}, {
		"summary", cmd_summary, "DIR ...",
		"Sum up traces: who ran, waited, read and wrote, faulted; activities; and what was lost", "@dir",
		{ opts_filter, opts_summary, opts_json }, EXAMPLES("etwctl summary trace"),
	}, {
		"emit", cmd_emit, "PROVIDER EVENT [FIELD[:TYPE]=VALUE ...]",
		"Write an event of a provider of one's own, as from a script", NULL,
		{ opts_emit, opts_json },
		EXAMPLES("etwctl emit Backup FileCopied path=/etc/fstab bytes=1234 took_s=0.25",
			 "id=$(etwctl emit --activity new --opcode start Backup Run)",
			 "etwctl emit --stdin Backup < events"),
	}, {
		"repair", cmd_repair, "DIR ...", "Make traces whole that their writer could not finish", "@dir",
		{ opts_json }, NULL,
	}, {
		"help", cmd_help, "[VERB]", "Show help", NULL,
		{ NULL }, NULL,
	}, {
		"version", cmd_version, "", "Show the versions of etwctl, its library and the module", NULL,
		{ opts_json }, NULL,
	},
	{ "__complete", cmd_complete, "", "", NULL, { NULL }, NULL, .command = true },
	{}
};

int cmd_version(int argc, char **argv)
{
	struct etw_control *control;
	struct etw_version v = {};
	int err;

	while (opt_next(argc, argv) != -1)
		return STATUS_USAGE;
	err = etw_control_open(&control);
	if (!err)
		err = etw_control_version(control, &v);
	if (json) {
		struct json_object *obj = json_object_new_object();

		json_text(obj, "library", etw_library_version());
		json_u64(obj, "abi", ETW_ABI_VERSION);
		json_u64(obj, "record_format", ETW_RECORD_VERSION);
		if (!err) {
			struct json_object *module = json_object_new_object();

			json_u64(module, "abi", v.abi);
			json_u64(module, "record_format", v.record);
			json_u64(module, "memory_limit", v.memory_limit);
			json_u64(module, "memory_used", v.memory_used);
			json_object_object_add(obj, "module", module);
		} else {
			json_text(obj, "module_error", etw_last_error());
		}
		json_line(obj);
	} else {
		printf("etwctl %s, ABI %d, record format %d\n", etw_library_version(), ETW_ABI_VERSION,
		       ETW_RECORD_VERSION);
		if (!err) {
			printf("module: ABI %u, record format %u, ", v.abi, v.record);
			printf("%s of at most %s of memory used\n", show_bytes(v.memory_used),
			       show_bytes(v.memory_limit));
		} else {
			printf("module: %s\n", etw_last_error());
		}
	}
	/* The question is answered even without a module. */
	return STATUS_OK;
}
