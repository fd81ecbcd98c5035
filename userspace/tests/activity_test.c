// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `etwctl summary` says of activities, on made-up traces with known answers: one of which a request waits for a disk, and
 * the same without its end. It runs the command, and knows nothing of how that works.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "synth.h"
#include "tap.h"

static const struct synth_field wake_fields[] = {
	{ .name = "comm", .type = ETW_TYPE_CHARS, .count = 16 },
	{ .name = "tid", .type = ETW_TYPE_S32 },
};

static const struct synth_field block_fields[] = {
	{ .name = "dev", .type = ETW_TYPE_U32, .format = ETW_FORMAT_DEV },
	{ .name = "sector", .type = ETW_TYPE_U64 },
	{ .name = "nr_sector", .type = ETW_TYPE_U32 },
	{ .name = "rwbs", .type = ETW_TYPE_U32 },
};

static const struct synth_field disk_fields[] = {
	{ .name = "dev", .type = ETW_TYPE_U32, .format = ETW_FORMAT_DEV },
	{ .name = "diskname", .type = ETW_TYPE_STRING },
};

static const struct synth_field start_fields[] = {
	{ .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID },
	{ .name = "path", .type = ETW_TYPE_STRING },
};

static const struct synth_field nested_fields[] = {
	{ .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID },
	{ .name = ETW_FIELD_RELATED, .type = ETW_TYPE_GUID },
};

static const struct synth_field stop_fields[] = {
	{ .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID },
	{ .name = "status", .type = ETW_TYPE_U16 },
};

/* An id that is not the first field, or not a GUID, is none. */
static const struct synth_field odd_fields[] = {
	{ .name = "n", .type = ETW_TYPE_U32 },
	{ .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID },
};

enum { SWITCH, WAKING, QUEUE, ISSUE, COMPLETE, DISK, START, QUERY, QUERY_STOP, STEP, STOP, ODD, NR };

static const struct synth_class classes[NR] = {
	{ "Linux-Kernel-Sched", "sched_switch", "sched_switch", 4, 0, synth_switch_fields, SYNTH_NR_SWITCH_FIELDS },
	{ "Linux-Kernel-Sched", "sched_waking", "sched_waking", 4, 0, wake_fields, 2 },
	{ "Linux-Kernel-Block", "block_bio_queue", "block_bio_queue", 4, 0, block_fields, 4 },
	{ "Linux-Kernel-Block", "block_rq_issue", "block_rq_issue", 4, 0, block_fields, 4 },
	{ "Linux-Kernel-Block", "block_rq_complete", "block_rq_complete", 4, 0, block_fields, 4 },
	{ "Linux-Kernel-Block", "block_device", "lttng_statedump_block_device", 4, 0, disk_fields, 2 },
	{ "Shop", "RequestStart", NULL, 4, 1, start_fields, 2, .opcode = ETW_OPCODE_START },
	{ "Shop", "Query", NULL, 4, 1, nested_fields, 2, .opcode = ETW_OPCODE_START },
	{ "Shop", "Query", NULL, 4, 1, nested_fields, 1, .opcode = ETW_OPCODE_STOP },
	{ "Shop", "Step", NULL, 4, 1, nested_fields, 1 },
	{ "Shop", "RequestStop", NULL, 4, 1, stop_fields, 2, .opcode = ETW_OPCODE_STOP },
	{ "Shop", "Odd", NULL, 4, 1, odd_fields, 2, .opcode = ETW_OPCODE_START },
};

#define MS	1000000ULL
#define VDB	(254U << 20 | 16)

static struct synth_packet packet;
static __u8 payload[256];
static size_t used;

static void put(const void *bytes, size_t len)
{
	memcpy(payload + used, bytes, len);
	used += len;
}

static void put_u(__u64 value, size_t len)
{
	put(&value, len);
}

static void put_id(char c)
{
	__u8 id[16] = { 0 };

	memset(id, c, 15);
	put(id, 16);
}

static void put_comm(const char *name)
{
	char comm[16] = { 0 };

	strncpy(comm, name, sizeof(comm) - 1);
	put(comm, sizeof(comm));
}

/* What was put is an event at @ms on the only CPU. */
static void event(int cls, __u64 ms, __s32 tid)
{
	synth_record(&packet, cls, ms * MS, tid, tid > 20 ? 20 : tid, payload, used, false);
	used = 0;
}

static void switch_to(__u64 ms, __s32 prev, __s64 state, __s32 next)
{
	put_comm(prev ? "worker" : "swapper/0");
	put_u(prev, 4);
	put_u(20, 4);
	put_u(state, 8);
	put_comm(next ? "worker" : "swapper/0");
	put_u(next, 4);
	put_u(20, 4);
	put_u(0, 1);
	event(SWITCH, ms, prev);
}

static void block(int cls, __u64 ms, __s32 tid, __u64 sector)
{
	put_u(VDB, 4);
	put_u(sector, 8);
	put_u(8, 4);
	put_u(4, 4);
	event(cls, ms, tid);
}

/*
 * /report: on the CPU from 100 to 110, waits for sector 8192 of vdb from 110 to 160, runnable to 165, runs up to 200. Inside it
 * a query from 105 to 170. /front, by the same thread: from 210 to 230. /late is never stopped.
 */
static void make(const char *dir, bool whole)
{
	struct etw_classes *table;
	struct output_options options = { .nr_cpus = 1 };
	struct output *output;
	struct facts facts;
	static __u8 buf[65536];

	synth_facts(&facts);
	if (etw_classes_new(&table))
		abort();
	for (__u32 i = 0; i < NR; i++)
		if (etw_classes_add(table, buf, synth_schema(buf, i, &classes[i])) != 1)
			abort();
	if (etw_output_create(dir, &facts, &options, &output) || etw_output_classes(output, table, NR) ||
	    etw_output_cpu(output, 0)) {
		printf("Bail out! %s\n", etw_last_error());
		exit(1);
	}
	synth_begin(&packet, 0, 1 * MS, 0, 0);
	put_u(VDB, 4);
	put("vdb", 4);
	event(DISK, 1, 5);
	switch_to(50, 0, 0, 21);
	put_id('R');
	put("/report", 8);
	event(START, 100, 21);
	put_id('Q');
	put_id('R');
	event(QUERY, 105, 21);
	block(QUEUE, 110, 21, 8192);
	block(ISSUE, 110, 21, 8192);
	switch_to(110, 21, 2, 0);
	block(COMPLETE, 160, 0, 8192);
	put_comm("worker");
	put_u(21, 4);
	event(WAKING, 160, 0);
	switch_to(165, 0, 0, 21);
	put_id('Q');
	event(QUERY_STOP, 170, 21);
	put_u(7, 4);
	put_id('O');
	event(ODD, 180, 21);
	put_id('R');
	put_u(200, 2);
	event(STOP, 200, 21);
	synth_end(&packet, 200 * MS);
	if (etw_output_packet(output, 0, packet.bytes, packet.len, packet.records, 0))
		abort();
	synth_begin(&packet, 0, 200 * MS, 1, 0);
	put_id('F');
	put("/front", 7);
	event(START, 210, 21);
	put_id('F');
	put_u(404, 2);
	event(STOP, 230, 21);
	put_id('L');
	put("/late", 6);
	event(START, 240, 21);
	put_id('L');
	event(STEP, 250, 21);
	switch_to(260, 21, 1, 0);
	synth_end(&packet, 300 * MS);
	if (etw_output_packet(output, 0, packet.bytes, packet.len, packet.records, 0))
		abort();
	if (whole)
		etw_output_finish(output, 300 * MS, NULL, 0);
	etw_output_free(output);
	etw_classes_free(table);
}

static char etwctl[512];
static char *text;

static int summary(const char *arguments)
{
	int status;

	free(text);
	status = synth_run(&text, "%s summary %s", etwctl, arguments);
	/* columns are not what is tested */
	for (char *from = text, *to = text; (*to = *from); from++)
		if (*from != ' ' || from[1] != ' ')
			to++;
	return status;
}

static void has(const char *what)
{
	if (!ok(strstr(text, what), "%.*s", (int)strcspn(what, "\n"), what))
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			printf("# %s\n", line);
}

int main(void)
{
	char dir[128], arguments[256];
	ssize_t len = readlink("/proc/self/exe", etwctl, sizeof(etwctl) - 64);

	/* build/host-tests/THIS and build/bin/etwctl */
	for (int i = 0; i < 2 && len > 0; i++)
		while (--len > 0 && etwctl[len] != '/')
			;
	strcpy(etwctl + (len > 0 ? len : 0), "/bin/etwctl");
	if (access(etwctl, X_OK)) {
		skip("activities of a trace", "etwctl is not built");
		return tap_done();
	}
	strcpy(dir, synth_dir());
	make(dir, true);
	ok(summary(dir) == 0, "a whole trace");
	has("Shop:Request 2 20.1 ms 100 ms 100 ms 54.2 4.2 41.7 0.0 0.0 0.0\n");
	has("1 of them waited for a read of vdb, 50.0 ms in all, 50.0 ms at most\n");
	has("1 were not stopped in the trace\n");
	has("Shop:Query 1 65.0 ms");
	has("100 ms 45.0 ms 5.00 ms 50.0 ms - - - +0.099000 Request path=/report status=200\n");
	has(" 52525252-5252-5252-5252-525252525200 worker (20)\n");
	has(" waited 50.0 ms for a read of vdb, 4.00 KiB at sector 8192, took 50.0 ms; thread worker (21)\n");
	has("65.0 ms 10.0 ms 5.00 ms 50.0 ms - - - +0.104000 Query\n");
	has(" worker (20), in Request\n");
	has("20.0 ms 20.0 ms - - - - - +0.209000 Request path=/front status=404\n");
	has("60.0 ms 20.0 ms - - 40.0 ms - - +0.239000 Request path=/late (not stopped)\n");
	ok(!strstr(text, "Shop:Odd"), "an id at another place is none");

	snprintf(arguments, sizeof(arguments), "--top 1 %s", dir);
	ok(summary(arguments) == 0 && strstr(text, "/report") && !strstr(text, "/late"), "only the longest");
	snprintf(arguments, sizeof(arguments), "--from +0.203 --to +0.233 --json %s", dir);
	ok(summary(arguments) == 0, "as JSON, a part of it");
	has("\"activities\":[{\"provider\":\"Shop\",\"activity\":\"Request\",\"id\":\"46464646-4646-4646-4646-464646464600\",\"parent_id\":null,"
	    "\"parent\":null,\"start_fields\":\"path=/front\",\"stop_fields\":\"status=404\"");
	has("\"duration_ns\":20000000,\"on_cpu_ns\":20000000,\"runnable_ns\":0,\"disk_ns\":0,\"blocked_ns\":0,\"unknown_ns\":0,\"idle_ns\":0");
	ok(!strstr(text, "report"), "what ended before is not there");
	snprintf(arguments, sizeof(arguments), "--json %s", dir);
	ok(summary(arguments) == 0, "as JSON");
	has("\"disks\":[{\"disk\":\"vdb\",\"operation\":\"read\",\"count\":1,\"bytes\":4096,\"errors\":0,\"waited_ns\":50000000,"
	    "\"longest_ns\":50000000}],\"ios\":[{\"disk\":\"vdb\",\"major\":254,\"minor\":16,\"operation\":\"read\",\"sector\":8192,"
	    "\"bytes\":4096,\"error\":false,");
	has("\"took_ns\":50000000,\"waited_ns\":50000000,\"tid\":21,\"thread\":\"worker\"}]");

	strcpy(dir, synth_dir());
	make(dir, false);
	ok(summary(dir) == 5, "a trace without its end");
	has("Shop:Request 2 20.1 ms");
	has("waited 50.0 ms for a read of vdb, 4.00 KiB at sector 8192,");
	free(text);
	synth_clean();
	return tap_done();
}
