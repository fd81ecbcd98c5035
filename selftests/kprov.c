// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel providers tell the truth: their schemas are those of the trace contract, each event says what tracefs
 * says of the same event, and the rundowns say what /proc and /sys say. Knows the kernel's text of each event; nothing
 * of relays.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "etw_test.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A provider's events enabled into a session with room for everything a test makes. */
FIXTURE(kprov)
{
	int dev;
	int session;
	struct reader reader;
};

static struct etw_session_create session_roomy(const char *name, uint32_t flags)
{
	struct etw_session_create create = session_small(name);

	create.subbuf_size = 1 << 18;
	create.nr_subbufs = 32;
	create.flags = flags;
	return create;
}

FIXTURE_SETUP(kprov)
{
	struct etw_session_create create = session_roomy(unique("kprov"), ETW_SESSION_ADDRESSES);

	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->session = session_make(self->dev, &create);
	ASSERT_GE(self->session, 0);
}

FIXTURE_TEARDOWN(kprov)
{
	close(self->session);
	close(self->dev);
}

/* ---- the schemas ---- */

struct golden {
	const char *provider;
	const char *alias;
	unsigned int id;
	const char *name;
	const char *ctf_name;
	const char *fields;
};

/* From the trace contract, not from the module. Ids and names never change; fields may only grow at the end. */
static const struct golden golden[] = {
	{ "Linux-Kernel-Process", "process", 1, "sched_process_fork", "sched_process_fork",
	  "parent_comm c16, parent_tid i32, parent_pid i32, parent_ns_inum u32, child_comm c16, child_tid i32, "
	  "vtids i32[], child_pid i32, child_ns_inum u32" },
	{ "Linux-Kernel-Process", "process", 2, "sched_process_exec", "sched_process_exec",
	  "filename str, tid i32, old_tid i32" },
	{ "Linux-Kernel-Process", "process", 3, "sched_process_exit", "sched_process_exit",
	  "comm c16, tid i32, prio i32, exit_code i32" },
	{ "Linux-Kernel-Process", "process", 4, "sched_process_free", "sched_process_free",
	  "comm c16, tid i32, prio i32" },
	{ "Linux-Kernel-Process", "process", 5, "task_rename", "task_rename",
	  "tid i32, oldcomm c16, newcomm c16, oom_score_adj i16" },
	{ "Linux-Kernel-Process", "process", 6, "rundown_start", "lttng_statedump_start", "" },
	{ "Linux-Kernel-Process", "process", 7, "process_state", "lttng_statedump_process_state",
	  "tid i32, pid i32, ppid i32, name c16, type i32, mode i32, submode i32, status i32, cpu u32, prio i32, "
	  "start_time u64, uid u32, vtid i32, ns_inum u32" },
	{ "Linux-Kernel-Process", "process", 8, "rundown_end", "lttng_statedump_end", "" },
	{ "Linux-Kernel-Sched", "sched", 1, "sched_switch", "sched_switch",
	  "prev_comm c16, prev_tid i32, prev_prio i32, prev_state i64, next_comm c16, next_tid i32, next_prio i32, "
	  "preempt u8" },
	{ "Linux-Kernel-Sched", "sched", 2, "sched_waking", "sched_waking",
	  "comm c16, tid i32, prio i32, target_cpu i32" },
	{ "Linux-Kernel-Sched", "sched", 3, "sched_wakeup", "sched_wakeup",
	  "comm c16, tid i32, prio i32, target_cpu i32" },
	{ "Linux-Kernel-Sched", "sched", 4, "sched_wakeup_new", "sched_wakeup_new",
	  "comm c16, tid i32, prio i32, target_cpu i32" },
	{ "Linux-Kernel-Sched", "sched", 5, "sched_migrate_task", "sched_migrate_task",
	  "comm c16, tid i32, prio i32, orig_cpu i32, dest_cpu i32" },
	{ "Linux-Kernel-Block", "block", 1, "block_rq_insert", "block_rq_insert",
	  "dev u32, sector u64, nr_sector u32, bytes u32, tid i32, rwbs u32, comm c16" },
	{ "Linux-Kernel-Block", "block", 2, "block_rq_issue", "block_rq_issue",
	  "dev u32, sector u64, nr_sector u32, bytes u32, tid i32, rwbs u32, comm c16" },
	{ "Linux-Kernel-Block", "block", 3, "block_rq_complete", "block_rq_complete",
	  "dev u32, sector u64, nr_sector u32, error i32, rwbs u32" },
	{ "Linux-Kernel-Block", "block", 4, "block_rq_merge", "block_rq_merge",
	  "dev u32, sector u64, nr_sector u32, bytes u32, tid i32, rwbs u32, comm c16" },
	{ "Linux-Kernel-Block", "block", 5, "block_bio_queue", "block_bio_queue",
	  "dev u32, sector u64, nr_sector u32, rwbs u32, tid i32, comm c16" },
	{ "Linux-Kernel-Block", "block", 6, "block_bio_complete", "block_bio_complete",
	  "dev u32, sector u64, nr_sector u32, error i32, rwbs u32" },
	{ "Linux-Kernel-Block", "block", 7, "rundown_start", "lttng_statedump_start", "" },
	{ "Linux-Kernel-Block", "block", 8, "block_device", "lttng_statedump_block_device",
	  "dev u32, diskname str, disk u32, start u64, nr_sectors u64" },
	{ "Linux-Kernel-Block", "block", 9, "rundown_end", "lttng_statedump_end", "" },
	{ "Linux-Kernel-Fault", "fault", 1, "page_fault_user", "x86_exceptions_page_fault_user",
	  "address u64x, ip u64x, error_code u8x" },
	{ "Linux-Kernel-Fault", "fault", 2, "page_fault_kernel", "x86_exceptions_page_fault_kernel",
	  "address u64x, ip u64x, error_code u8x" },
};

static const uint8_t guids[][17] = {
	"\x0d\xc0\x68\x46\x3f\x38\x5f\x93\x72\x5d\x1e\xc6\x65\x0e\xe2\xb3",
	"\x51\x6a\x1d\x97\x20\xf3\x54\x8b\x1e\xab\x51\x77\x27\xfc\xf5\xb2",
	"\x38\x6f\xa7\xff\xbc\x52\x5e\x77\x71\x11\xe4\x74\x5e\x29\x97\xa1",
	"\x8f\x7b\xc4\xa1\x3c\xd5\x5a\x76\x8e\x37\x32\x65\xcd\x1f\xa3\x5e",
};

static const char *type_text(const struct field *field)
{
	static const char *const numbers[] = {
		[ETW_TYPE_U8] = "u8", [ETW_TYPE_U16] = "u16", [ETW_TYPE_U32] = "u32", [ETW_TYPE_U64] = "u64",
		[ETW_TYPE_S8] = "i8", [ETW_TYPE_S16] = "i16", [ETW_TYPE_S32] = "i32", [ETW_TYPE_S64] = "i64",
		[ETW_TYPE_POINTER] = "u64", [ETW_TYPE_STRING] = "str", [ETW_TYPE_BOOL] = "u8",
	};
	static char text[32];
	bool hex = field->type == ETW_TYPE_POINTER ||
		   (field->format == ETW_FORMAT_HEX && (field->type == ETW_TYPE_U64 || field->type == ETW_TYPE_U8));

	if (field->type == ETW_TYPE_CHARS)
		snprintf(text, sizeof(text), "c%u", field->count);
	else
		snprintf(text, sizeof(text), "%s%s%s", field->type < ARRAY_LEN(numbers) && numbers[field->type] ?
			 numbers[field->type] : "?", hex ? "x" : "", field->array == ETW_ARRAY_COUNTED ? "[]" : "");
	return text;
}

static void fields_text(const struct class *class, char *text, size_t room)
{
	size_t len = 0;
	unsigned int i;

	text[0] = '\0';
	for (i = 0; i < class->nr_fields && len < room; i++)
		len += snprintf(text + len, room - len, "%s%s %s", i ? ", " : "", class->fields[i].name,
				type_text(&class->fields[i]));
}

TEST(schemas_are_the_contract)
{
	bool found[ARRAY_LEN(golden)] = { false };
	struct etw_event_list list = { 0 };
	unsigned int i, guid = 0;
	struct class *class;
	char fields[512];
	int dev = device_open(), err;

	ASSERT_GE(dev, 0);
	while ((class = event_next(dev, &list, &err))) {
		for (i = 0; i < ARRAY_LEN(golden); i++) {
			const struct golden *g = &golden[i];
			bool rundown = g->fields[0] == '\0' || strstr(g->ctf_name, "statedump");

			if (strcmp(class->provider, g->provider) || strcmp(class->name, g->name))
				continue;
			found[i] = true;
			fields_text(class, fields, sizeof(fields));
			EXPECT_STREQ(g->fields, fields);
			EXPECT_STREQ(g->ctf_name, class->ctf_name);
			EXPECT_EQ(g->id, class->event_id);
			EXPECT_EQ(ETW_LEVEL_INFO, class->level);
			EXPECT_EQ(rundown, !class->keyword) TH_LOG("%s: keyword %#llx", g->name, (__u64)class->keyword);
			EXPECT_EQ(0, class->keyword >> 48);
			EXPECT_EQ(rundown, !!(list.flags & ETW_EVENT_RUNDOWN));
			EXPECT_TRUE(list.flags & ETW_EVENT_AVAILABLE) TH_LOG("%s: %s", g->name, list.reason);
			EXPECT_NE(0, ((struct etw_schema *)(uintptr_t)list.buf)->description);
			while (guid < 3 && memcmp(class->guid, guids[guid], 16))
				guid++;
			EXPECT_EQ(0, memcmp(class->guid, guids[guid], 16)) TH_LOG("%s: GUID", g->provider);
			guid = 0;
		}
		free(class);
	}
	ASSERT_EQ(-ENOENT, err);
	for (i = 0; i < ARRAY_LEN(golden); i++)
		EXPECT_TRUE(found[i]) TH_LOG("%s is missing", golden[i].name);
	close(dev);
}

/* ---- events against tracefs ---- */

#define MAX_CPUS 16

/* Lines of one CPU, of one of the two traces. */
struct lines {
	char **text;
	size_t nr;
	size_t room;
};

static void lines_add(struct lines *lines, const char *text)
{
	if (lines->nr == lines->room) {
		lines->room = lines->room ? 2 * lines->room : 256;
		lines->text = realloc(lines->text, lines->room * sizeof(*lines->text));
	}
	lines->text[lines->nr++] = strdup(text);
}

static void lines_free(struct lines *lines)
{
	while (lines->nr)
		free(lines->text[--lines->nr]);
	free(lines->text);
	lines->text = NULL;
	lines->room = 0;
}

static int64_t num(const struct event *event, const char *field)
{
	int64_t value = INT64_MIN;

	event_number(event, field, &value);
	return value;
}

static const char *rwbs_text(uint32_t rwbs)
{
	static char text[16];
	char *p = text;

	if (rwbs & 0x400)
		*p++ = 'F';
	if (rwbs & 1)
		*p++ = 'W';
	else if (rwbs & 2)
		*p++ = 'D';
	else if (rwbs & 4)
		*p++ = 'R';
	else if (rwbs & 0x100)
		*p++ = 'F';
	else
		*p++ = 'N';
	if (rwbs & 0x80)
		*p++ = 'E';
	if (rwbs & 0x200)
		*p++ = 'F';
	if (rwbs & 8)
		*p++ = 'A';
	if (rwbs & 0x20)
		*p++ = 'S';
	if (rwbs & 0x40)
		*p++ = 'M';
	*p = '\0';
	return text;
}

static const char *state_text(int64_t state, bool preempt)
{
	if (preempt)
		return state ? "preempted, yet state is not 0" : "R+";
	switch (state) {
	case 0:
		return "R";
	case 1:
		return "S";
	case 2:
		return "D";
	case 4:
		return "T";
	case 8:
		return "t";
	case 0x10:		/* its parent may take notice between two probes: dead and zombie are one here */
	case 0x20:
		return "Z";
	case 0x40:
		return "P";
	case 0x402:
		return "I";
	}
	return "no such state";
}

/* @event as tracefs prints it, less what tracefs says more (see tracefs_trim()). */
static void event_line(const struct event *e, char *to, size_t room)
{
	const char *name = e->class->name;
	uint32_t dev = num(e, "dev");
	int n = snprintf(to, room, "%s: ", name);

	to += n;
	room -= n;
	if (event_is(e, "sched_switch"))
		snprintf(to, room,
			 "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> "
			 "next_comm=%s next_pid=%d next_prio=%d",
			 event_text(e, "prev_comm"), (int)num(e, "prev_tid"), (int)num(e, "prev_prio") + 100,
			 state_text(num(e, "prev_state"), num(e, "preempt")), event_text(e, "next_comm"),
			 (int)num(e, "next_tid"), (int)num(e, "next_prio") + 100);
	else if (event_is(e, "sched_migrate_task"))
		snprintf(to, room, "comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", event_text(e, "comm"),
			 (int)num(e, "tid"), (int)num(e, "prio") + 100, (int)num(e, "orig_cpu"),
			 (int)num(e, "dest_cpu"));
	else if (!strncmp(name, "sched_wak", 9))
		snprintf(to, room, "comm=%s pid=%d prio=%d target_cpu=%03d", event_text(e, "comm"),
			 (int)num(e, "tid"), (int)num(e, "prio") + 100, (int)num(e, "target_cpu"));
	else if (event_is(e, "sched_process_fork"))
		snprintf(to, room, "comm=%s pid=%d child_comm=%s child_pid=%d", event_text(e, "parent_comm"),
			 (int)num(e, "parent_tid"), event_text(e, "child_comm"), (int)num(e, "child_tid"));
	else if (event_is(e, "sched_process_exec"))
		snprintf(to, room, "filename=%s pid=%d old_pid=%d", (const char *)e->payload, (int)num(e, "tid"),
			 (int)num(e, "old_tid"));
	else if (event_is(e, "sched_process_exit") || event_is(e, "sched_process_free"))
		snprintf(to, room, "comm=%s pid=%d prio=%d", event_text(e, "comm"), (int)num(e, "tid"),
			 (int)num(e, "prio") + 100);
	else if (event_is(e, "task_rename"))
		snprintf(to, room, "pid=%d oldcomm=%s newcomm=%s oom_score_adj=%d", (int)num(e, "tid"),
			 event_text(e, "oldcomm"), event_text(e, "newcomm"), (int)num(e, "oom_score_adj"));
	else if (event_is(e, "block_rq_complete"))
		snprintf(to, room, "%u,%u %s () %llu + %u [%d]", dev >> 20, dev & 0xfffff, rwbs_text(num(e, "rwbs")),
			 (unsigned long long)num(e, "sector"), (unsigned int)num(e, "nr_sector"), (int)num(e, "error"));
	else if (event_is(e, "block_bio_complete"))
		snprintf(to, room, "%u,%u %s %llu + %u [%d]", dev >> 20, dev & 0xfffff, rwbs_text(num(e, "rwbs")),
			 (unsigned long long)num(e, "sector"), (unsigned int)num(e, "nr_sector"), (int)num(e, "error"));
	else if (event_is(e, "block_bio_queue"))
		snprintf(to, room, "%u,%u %s %llu + %u [%s]", dev >> 20, dev & 0xfffff, rwbs_text(num(e, "rwbs")),
			 (unsigned long long)num(e, "sector"), (unsigned int)num(e, "nr_sector"),
			 event_text(e, "comm"));
	else if (!strncmp(name, "block_rq_", 9))
		snprintf(to, room, "%u,%u %s %u () %llu + %u [%s]", dev >> 20, dev & 0xfffff, rwbs_text(num(e, "rwbs")),
			 (unsigned int)num(e, "bytes"), (unsigned long long)num(e, "sector"),
			 (unsigned int)num(e, "nr_sector"), event_text(e, "comm"));
	else if (event_is(e, "page_fault_user"))
		snprintf(to, room, "address=%#llx ip=%#llx error_code=%#llx", (long long)num(e, "address"),
			 (long long)num(e, "ip"), (long long)num(e, "error_code"));
	else if (event_is(e, "page_fault_kernel"))
		snprintf(to, room, "address=%#llx error_code=%#llx", (long long)num(e, "address"),
			 (long long)num(e, "error_code"));
}

/* Takes out of a line what our events do not say: the I/O priority, the symbol of kernel code, the end of a group. */
static void tracefs_trim(char *line)
{
	char *at, *end;

	line[strcspn(line, "\n")] = '\0';
	at = strstr(line, " prev_state=X ==> ");
	if (at)
		at[strlen(" prev_state=")] = 'Z';
	at = strstr(line, " group_dead=");
	if (at)
		*at = '\0';
	if (!strncmp(line, "page_fault_kernel", 17) && (at = strstr(line, " ip=")) &&
	    (end = strstr(at, " error_code=")))
		memmove(at, end, strlen(end) + 1);
	if (!strncmp(line, "block_rq_", 9) && (at = strstr(line, " + "))) {
		at += 3;
		at += strspn(at, "0123456789");
		end = strstr(at, " [");
		if (end)
			memmove(at, end, strlen(end) + 1);
	}
}

/* The events of one tracefs instance with the same events enabled. */
#define TRACEFS "/sys/kernel/tracing"
#define INSTANCE TRACEFS "/instances/etw-kprov"

static int instance_write(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), INSTANCE "/%s", file);
	return file_write(path, text);
}

/* 0, or -errno. @events: "system/event", comma separated. */
static int instance_start(const char *events)
{
	char path[128];
	int err;

	if (access(TRACEFS "/instances", F_OK) && mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return -errno;
	rmdir(INSTANCE);
	if (mkdir(INSTANCE, 0700))
		return -errno;
	err = instance_write("buffer_size_kb", "8192");
	if (!err)
		err = instance_write("options/context-info", "0");
	if (!err)
		err = instance_write("options/overwrite", "0");
	while (!err && *events) {
		int len = strcspn(events, ",");

		snprintf(path, sizeof(path), "events/%.*s/enable", len, events);
		err = instance_write(path, "1");
		events += len + !!events[len];
	}
	return err;
}

static void instance_stop(void)
{
	instance_write("events/enable", "0");
	instance_write("tracing_on", "0");
}

/* All lines of @cpu. 0, or -errno; -ENOBUFS if some were lost. */
static int instance_read(unsigned int cpu, struct lines *lines)
{
	char path[128], line[8192];
	unsigned long in, written;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), INSTANCE "/per_cpu/cpu%u/trace", cpu);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "# entries-in-buffer/entries-written: %lu/%lu", &in, &written) == 2 && in != written)
			err = -ENOBUFS;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		tracefs_trim(line);
		lines_add(lines, line);
	}
	fclose(f);
	return err;
}

struct both {
	struct lines ours[MAX_CPUS];
	struct lines theirs[MAX_CPUS];
};

static void both_event(const struct event *event, void *arg)
{
	struct both *both = arg;
	char line[8192];

	if (event->cpu >= MAX_CPUS)
		return;
	event_line(event, line, sizeof(line));
	lines_add(&both->ours[event->cpu], line);
}

/* One rename on each CPU: the same place in both traces. */
static void mark_cpus(const char *mark)
{
	unsigned int cpu;
	char name[16];

	for (cpu = 0; cpu < cpus_online() && cpu < MAX_CPUS; cpu++) {
		if (pin(cpu))
			continue;
		snprintf(name, sizeof(name), "%.10s%hhu", mark, (unsigned char)cpu);
		prctl(PR_SET_NAME, name);
	}
}

static void unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	sched_setaffinity(0, sizeof(set), &set);
}

/* An interrupt between the two probes of one event changes the order: lines are compared sorted. */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keeps what lies between the two marks, without them. */
static bool lines_cut(struct lines *lines)
{
	size_t i, from = SIZE_MAX, to = SIZE_MAX;

	for (i = 0; i < lines->nr; i++) {
		if (strstr(lines->text[i], "newcomm=kprov-from"))
			from = i;
		if (strstr(lines->text[i], "newcomm=kprov-to"))
			to = i;
	}
	if (from == SIZE_MAX || to == SIZE_MAX || to < from)
		return false;
	for (i = 0; i < lines->nr; i++)
		if (i <= from || i >= to)
			free(lines->text[i]);
	memmove(lines->text, lines->text + from + 1, (to - from - 1) * sizeof(*lines->text));
	lines->nr = to - from - 1;
	qsort(lines->text, lines->nr, sizeof(*lines->text), by_text);
	return true;
}

/* Lines that one has and the other has not. Prints the first few if @print. */
static unsigned int lines_differ(const struct lines *a, const struct lines *b, unsigned int cpu, bool print)
{
	unsigned int differences = 0;
	size_t i = 0, j = 0;

	while (i < a->nr || j < b->nr) {
		int order = i == a->nr ? 1 : j == b->nr ? -1 : strcmp(a->text[i], b->text[j]);

		if (order && ++differences <= 10 && print)
			printf("# CPU %u: only %s: %s\n", cpu, order < 0 ? "etw" : "tracefs",
			       order < 0 ? a->text[i] : b->text[j]);
		i += order <= 0;
		j += order >= 0;
	}
	return differences;
}

static bool any_line(const struct both *both, const char *start)
{
	unsigned int cpu;
	size_t i;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		for (i = 0; i < both->ours[cpu].nr; i++)
			if (!strncmp(both->ours[cpu].text[i], start, strlen(start)))
				return true;
	return false;
}

struct comparison {
	const char *provider;
	const char *events;		/* names, comma separated */
	const char *tracefs;		/* the same with their systems */
	const char *expected;		/* of them, those that must have come */
	void (*work)(void);
};

/* Differences, -1 if something went wrong (said on stdout). What came is checked to be there. */
static int compare_once(int dev, const struct comparison *c, bool print)
{
	struct etw_session_create create = session_roomy(unique("compare"), ETW_SESSION_ADDRESSES);
	int session = session_make(dev, &create), differences = -1, err;
	struct both both = { };
	struct reader reader;
	const char *event;
	unsigned int cpu;
	char events[512], tracefs[1024], name[64];

	if (session < 0)
		return -1;
	snprintf(tracefs, sizeof(tracefs), "task/task_rename,%s", c->tracefs);
	snprintf(events, sizeof(events), "task_rename%s%s", strcmp(c->provider, "process") ? "" : ",",
		 strcmp(c->provider, "process") ? "" : c->events);
	err = instance_start(tracefs);
	if (err) {
		printf("# tracefs: %s\n", strerror(-err));
		goto out;
	}
	if (enable_events(session, "process", events) != 1 ||
	    (strcmp(c->provider, "process") && enable_events(session, c->provider, c->events) != 1)) {
		printf("# cannot enable %s\n", c->provider);
		goto out;
	}
	mark_cpus("kprov-from");
	unpin();
	c->work();
	mark_cpus("kprov-to");
	unpin();
	instance_stop();
	disable(session, c->provider);
	disable(session, "process");
	session_flush(session);
	if (reader_open(&reader, session, both_event, &both))
		goto out;
	differences = reader_drain(&reader) < 0 ? -1 : 0;
	if (differences)
		printf("# %s\n", reader.error);
	reader_close(&reader);
	for (cpu = 0; cpu < cpus_online() && cpu < MAX_CPUS && differences >= 0; cpu++) {
		err = instance_read(cpu, &both.theirs[cpu]);
		if (err || !lines_cut(&both.ours[cpu]) || !lines_cut(&both.theirs[cpu])) {
			printf("# CPU %u: %s\n", cpu, err ? strerror(-err) : "a mark is missing");
			differences = -1;
			break;
		}
		differences += lines_differ(&both.ours[cpu], &both.theirs[cpu], cpu, print);
		if (print)
			printf("# CPU %u: %zu events, tracefs %zu\n", cpu, both.ours[cpu].nr, both.theirs[cpu].nr);
	}
	for (event = c->expected; *event && !differences; event += strcspn(event, ","), event += *event == ',') {
		snprintf(name, sizeof(name), "%.*s: ", (int)strcspn(event, ","), event);
		if (!any_line(&both, name)) {
			printf("# no event %s\n", name);
			differences = -1;
		}
	}
out:
	close(session);
	instance_stop();
	rmdir(INSTANCE);
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		lines_free(&both.ours[cpu]);
		lines_free(&both.theirs[cpu]);
	}
	return differences;
}

/* An interrupt may fall between the two probes of a mark and belong to one trace only: three attempts. */
static int compare(int dev, const struct comparison *c)
{
	int i, differences = 0;

	for (i = 0; i < 3; i++) {
		differences = compare_once(dev, c, true);
		if (differences <= 0)
			break;
	}
	return differences;
}

/* Sleeps, wakes, is preempted, waits, moves, stops, dies: all that a thread can do. */
static void sched_work(void)
{
	volatile unsigned long spin;
	unsigned int i;
	pid_t pid;

	work_pingpong(50, -1);
	unpin();
	work_pingpong(50, 0);
	unpin();
	for (i = 0; i < 4; i++) {
		pin(i % cpus_online());
		sched_yield();
	}
	unpin();
	for (i = 0; i < 3; i++) {
		pid = fork();
		if (!pid) {
			setpriority(PRIO_PROCESS, 0, i);
			pin(0);
			for (spin = 0; spin < 30000000; spin++)
				;
			_exit(0);
		}
	}
	pid = fork();
	if (!pid) {
		struct sched_param param = { .sched_priority = 10 };

		sched_setscheduler(0, SCHED_FIFO, &param);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGCONT);
	while (wait(NULL) > 0)
		;
}

static void *thread(void *arg)
{
	prctl(PR_SET_NAME, "a thread");
	return NULL;
}

static void *exec_self(void *path)
{
	execl(path, "kprov", "-h", NULL);
	_exit(1);
}

/* A child becomes this program once more, named by @path; by its first thread or by another. */
static void work_exec(const char *path, bool by_thread)
{
	pid_t pid = fork();
	pthread_t t;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		if (!by_thread)
			exec_self((void *)path);
		if (!pthread_create(&t, NULL, exec_self, (void *)path))
			pthread_join(t, NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void process_work(void)
{
	char path[3000] = "/proc/self";
	pthread_t t;
	pid_t pid;

	work_fork(20);
	if (!pthread_create(&t, NULL, thread, NULL))
		pthread_join(t, NULL);
	work_exec("/proc/self/exe", false);
	work_exec("/proc/self/exe", true);
	while (strlen(path) < sizeof(path) - 20)
		strcat(path, "/../self");
	strcat(path, "/exe");
	work_exec(path, false);
	pid = vfork();
	if (!pid)
		_exit(7);
	waitpid(pid, NULL, 0);
	/* A name set from outside, and an oom_score_adj. */
	file_write("/proc/self/oom_score_adj", "-17");
	snprintf(path, sizeof(path), "/proc/%d/comm", getpid());
	file_write(path, "0123456789abcdef");
	file_write("/proc/self/oom_score_adj", "0");
	/* The dead are freed after a grace period. */
	sleep_ms(500);
}

static const char *test_disk;

/*
 * Six writes at once to a disk that takes two requests at a time. While it is busy with the first two, the third may
 * have left the scheduler to be the next, two more wait in it, and the last closes the gap between them: all three
 * become one request.
 */
static void merging_writes(int fd, void *buf)
{
	static const long pages[] = { 1000, 2000, 3000, 10, 12, 11 };
	struct io_event events[ARRAY_LEN(pages)];
	struct iocb iocbs[ARRAY_LEN(pages)], *p;
	aio_context_t context = 0;
	unsigned int i;

	if (syscall(SYS_io_setup, ARRAY_LEN(pages), &context))
		return;
	memset(iocbs, 0, sizeof(iocbs));
	for (i = 0; i < ARRAY_LEN(pages); i++) {
		p = &iocbs[i];
		p->aio_lio_opcode = IOCB_CMD_PWRITE;
		p->aio_fildes = fd;
		p->aio_buf = (uintptr_t)buf;
		p->aio_nbytes = 4096;
		p->aio_offset = pages[i] * 4096;
		syscall(SYS_io_submit, context, 1, &p);
	}
	syscall(SYS_io_getevents, context, ARRAY_LEN(pages), ARRAY_LEN(pages), events, NULL);
	syscall(SYS_io_destroy, context);
}

/* Reads, writes, synchronous and not, neighbours that merge, a flush, a discard. */
/* Of the made disk, far behind everything that is read or written there. */
#define BAD_SECTOR 98304
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

static void block_work(void)
{
	static char buf[1 << 16] __attribute__((aligned(4096)));
	int fd, i;

	memset(buf, 'k', sizeof(buf));
	/* A request of a driver's own, where there is such a disk. */
	file_read("/sys/block/vda/serial", buf, sizeof(buf));
	fd = open(test_disk, O_RDWR | O_DIRECT | O_CLOEXEC);
	/* A pause of this program at the wrong moment, and nothing has to wait: so more than once. */
	for (i = 0; i < 20; i++)
		merging_writes(fd, buf);
	for (i = 0; i < 20; i++) {
		if (pread(fd, buf, 4096, i * 8192L) != 4096 || pwrite(fd, buf, 8192, i * 65536L) != 8192)
			break;
	}
	fdatasync(fd);
	/* A request that fails, where the disk has such a place. */
	(void)!pread(fd, buf, 4096, BAD_SECTOR * 512L);
	close(fd);
	fd = open(test_disk, O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC);
	if (pwrite(fd, buf, 4096, 8192) != 4096)
		perror("# write through");
	close(fd);
	fd = open(test_disk, O_RDWR | O_CLOEXEC);
	for (i = 0; i < 32; i++)
		if (pwrite(fd, buf, 4096, 1048576 + i * 4096L) != 4096)
			break;
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (i = 0; i < 16; i++)
		if (read(fd, buf, sizeof(buf)) <= 0)
			break;
	if (i) {
		uint64_t range[2] = { 1048576, 65536 };

		ioctl(fd, BLKDISCARD, range);
	}
	close(fd);
}

static void fault_work(void)
{
	char *p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	work_touch(200);
	/* The kernel touches the pages itself. */
	if (read(fd, p, 32 * 4096) < 0)
		perror("# read");
	/* Read only, then no access at all. */
	mprotect(p, 4096, PROT_READ);
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)p = 1;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	munmap(p, 64 * 4096);
	close(fd);
}

#define SCHED_EVENTS "sched_switch,sched_waking,sched_wakeup,sched_wakeup_new,sched_migrate_task"

TEST_F(kprov, sched_is_what_tracefs_says)
{
	const struct comparison c = {
		"sched", SCHED_EVENTS,
		"sched/sched_switch,sched/sched_waking,sched/sched_wakeup,sched/sched_wakeup_new,"
		"sched/sched_migrate_task",
		cpus_online() > 1 ? SCHED_EVENTS : "sched_switch,sched_waking,sched_wakeup,sched_wakeup_new",
		sched_work,
	};

	EXPECT_EQ(0, compare(self->dev, &c));
}

TEST_F(kprov, process_is_what_tracefs_says)
{
	const struct comparison c = {
		"process", "sched_process_fork,sched_process_exec,sched_process_exit,sched_process_free",
		"sched/sched_process_fork,sched/sched_process_exec,sched/sched_process_exit,sched/sched_process_free",
		"sched_process_fork,sched_process_exec,sched_process_exit,sched_process_free,task_rename", process_work,
	};

	EXPECT_EQ(0, compare(self->dev, &c));
}

/* Disks in memory to write to: one takes requests, two at a time and slowly, the other bios. NULL: there is none. */
#define NULLB "/sys/kernel/config/nullb"
#define RAMDISK "/dev/ram0"

static const char *disk_make(void)
{
	if (access(NULLB, F_OK)) {
		if (system("modprobe configfs 2>/dev/null; modprobe null_blk nr_devices=0 2>/dev/null"))
			return NULL;
		mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	}
	if (mkdir(NULLB "/kprov", 0700))
		return NULL;
	file_write(NULLB "/kprov/size", "64");
	file_write(NULLB "/kprov/memory_backed", "1");
	file_write(NULLB "/kprov/discard", "1");
	file_write(NULLB "/kprov/badblocks", "+" STRING(BAD_SECTOR) "-" STRING(BAD_SECTOR));
	file_write(NULLB "/kprov/cache_size", "8");	/* MiB: something to flush, and to write through */
	file_write(NULLB "/kprov/irqmode", "2");
	file_write(NULLB "/kprov/completion_nsec", "10000000");
	file_write(NULLB "/kprov/hw_queue_depth", "2");
	file_write(NULLB "/kprov/submit_queues", "1");
	if (file_write(NULLB "/kprov/power", "1"))
		return NULL;
	if (!wait_until(5000, !access("/dev/kprov", F_OK) || !access("/dev/nullb0", F_OK)))
		return NULL;
	return access("/dev/kprov", F_OK) ? "/dev/nullb0" : "/dev/kprov";
}

static void disk_remove(void)
{
	file_write(NULLB "/kprov/power", "0");
	rmdir(NULLB "/kprov");
}

static const char *ramdisk_make(void)
{
	if (access(RAMDISK, F_OK) && system("modprobe brd rd_nr=1 rd_size=65536 2>/dev/null"))
		return NULL;
	return wait_until(5000, !access(RAMDISK, F_OK)) ? RAMDISK : NULL;
}

/* A scheduler lets requests wait and merge. False if the kernel has none to offer. */
static bool disk_schedule(const char *disk)
{
	char path[128], text[128];

	/* Where it is built in there is no module to load; the file below decides. */
	(void)!system("modprobe mq-deadline 2>/dev/null");
	snprintf(path, sizeof(path), "/sys/block/%s/queue/scheduler", strrchr(disk, '/') + 1);
	file_write(path, "mq-deadline");
	if (file_read(path, text, sizeof(text)) <= 0 || !strstr(text, "[mq-deadline]"))
		return false;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/nr_requests", strrchr(disk, '/') + 1);
	if (file_write(path, "64"))
		return false;
	/* Writes may have all of them; some kernels keep the limit that belongs to the old number, here or there. */
	snprintf(path, sizeof(path), "/sys/block/%s/queue/iosched/async_depth", strrchr(disk, '/') + 1);
	if (!file_write(path, "64"))
		return true;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/async_depth", strrchr(disk, '/') + 1);
	return !file_write(path, "64");
}

#define BLOCK_EVENTS "block_rq_insert,block_rq_issue,block_rq_complete,block_rq_merge," \
		     "block_bio_queue,block_bio_complete"
#define BLOCK_TRACEFS "block/block_rq_insert,block/block_rq_issue,block/block_rq_complete,block/block_rq_merge," \
		      "block/block_bio_queue,block/block_bio_complete"

TEST_F(kprov, block_requests_are_what_tracefs_says)
{
	const struct comparison c = {
		"block", BLOCK_EVENTS, BLOCK_TRACEFS,
		"block_rq_insert,block_rq_issue,block_rq_complete,block_rq_merge,block_bio_queue", block_work,
	};

	test_disk = disk_make();
	if (!test_disk)
		SKIP(return, "no null_blk: no disk to write to");
	if (!disk_schedule(test_disk)) {
		disk_remove();
		SKIP(return, "no mq-deadline: requests are neither inserted nor merged");
	}
	EXPECT_EQ(0, compare(self->dev, &c));
	disk_remove();
}

/* Only a driver without requests tells when a bio is done. */
TEST_F(kprov, block_bios_are_what_tracefs_says)
{
	const struct comparison c = {
		"block", BLOCK_EVENTS, BLOCK_TRACEFS, "block_bio_queue,block_bio_complete", block_work,
	};

	test_disk = ramdisk_make();
	if (!test_disk)
		SKIP(return, "no brd: no disk without requests");
	EXPECT_EQ(0, compare(self->dev, &c));
}

TEST_F(kprov, fault_is_what_tracefs_says)
{
	const struct comparison c = {
		"fault", "page_fault_user,page_fault_kernel", "exceptions/page_fault_user,exceptions/page_fault_kernel",
		"page_fault_user,page_fault_kernel", fault_work,
	};

	EXPECT_EQ(0, compare(self->dev, &c));
}

/* ---- single facts ---- */

struct fault_facts {
	pid_t pid;
	unsigned int kernel;
	unsigned int kernel_ip;		/* with an address of the kernel as ip */
	unsigned int kernel_ip_zero;
};

static void fault_event(const struct event *e, void *arg)
{
	struct fault_facts *facts = arg;

	if (!event_is(e, "page_fault_kernel") || e->pid != facts->pid)
		return;
	facts->kernel++;
	facts->kernel_ip += num(e, "ip") < 0;
	facts->kernel_ip_zero += num(e, "ip") == 0;
}

/* Addresses of kernel code are for sessions that may see them; those of the program are no secret. */
TEST_F(kprov, fault_hides_kernel_addresses)
{
	uint32_t flags;

	for (flags = 0; flags <= ETW_SESSION_ADDRESSES; flags += ETW_SESSION_ADDRESSES) {
		struct etw_session_create create = session_roomy(unique("scrub"), flags);
		struct fault_facts facts = { .pid = getpid() };
		struct reader reader;
		int session = session_make(self->dev, &create);

		ASSERT_GE(session, 0);
		ASSERT_EQ(1, enable_events(session, "fault", "page_fault_kernel"));
		fault_work();
		disable(session, "fault");
		session_flush(session);
		ASSERT_EQ(0, reader_open(&reader, session, fault_event, &facts));
		ASSERT_DRAINED(&reader);
		reader_close(&reader);
		close(session);
		EXPECT_LE(32, facts.kernel);
		EXPECT_EQ(flags ? facts.kernel : 0, facts.kernel_ip);
		EXPECT_EQ(flags ? 0 : facts.kernel, facts.kernel_ip_zero);
	}
}

struct subject_facts {
	pid_t pid;
	unsigned int foreign;		/* events that are not about it, and not by it */
	unsigned int wakes, switches;	/* about it, written by another */
	unsigned int by_itself;
};

static void subject_event(const struct event *e, void *arg)
{
	struct subject_facts *facts = arg;
	bool about = num(e, event_is(e, "sched_switch") ? "next_tid" : "tid") == facts->pid;

	if (!strcmp(e->class->provider, "Linux-Kernel-Process"))
		return;
	facts->foreign += !about && e->tid != facts->pid;
	if (about && e->tid != facts->pid && event_is(e, "sched_switch"))
		facts->switches++;
	else if (about && e->tid != facts->pid)
		facts->wakes++;
	facts->by_itself += e->tid == facts->pid;
}

static void naps(void *arg)
{
	for (;;)
		sleep_ms(10);
}

/* A pid filter lets through what the process does and what is done to it: its wake-ups and its turns on a CPU. */
TEST_F(kprov, pid_filter_knows_the_subject)
{
	struct etw_enable enable = enable_make("sched");
	pid_t pid = spawn(naps, NULL);
	struct subject_facts facts = { .pid = pid };
	__s32 pids[1] = { pid };

	enable.pids = (uintptr_t)pids;
	enable.nr_pids = 1;
	ASSERT_EQ(1, call(self->session, ETW_IOC_SESSION_ENABLE, &enable));
	sleep_ms(500);
	disable(self->session, "sched");
	reap(pid);
	session_flush(self->session);
	ASSERT_EQ(0, reader_open(&self->reader, self->session, subject_event, &facts));
	ASSERT_DRAINED(&self->reader);
	reader_close(&self->reader);
	EXPECT_EQ(0, facts.foreign);
	EXPECT_LE(5, facts.wakes);
	EXPECT_LE(5, facts.switches);
	EXPECT_LE(5, facts.by_itself);
}

struct fork_facts {
	pid_t parent;
	pid_t child;
	unsigned int forks;
	uint32_t nr_vtids;
	int32_t vtids[4];
	uint32_t parent_ns, child_ns;
	pid_t child_tid, child_pid;
	int64_t exit_code;
};

static void fork_event(const struct event *e, void *arg)
{
	struct fork_facts *facts = arg;

	if (event_is(e, "sched_process_fork") && num(e, "parent_tid") == facts->parent) {
		facts->forks++;
		facts->child_tid = num(e, "child_tid");
		facts->child_pid = num(e, "child_pid");
		facts->parent_ns = num(e, "parent_ns_inum");
		facts->child_ns = num(e, "child_ns_inum");
		memcpy(&facts->nr_vtids, e->payload + 48, 4);
		memcpy(facts->vtids, e->payload + 52, 4 * (facts->nr_vtids < 4 ? facts->nr_vtids : 4));
	}
	if (event_is(e, "sched_process_exit") && num(e, "tid") == facts->child)
		facts->exit_code = num(e, "exit_code");
}

static uint32_t ns_inum(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

TEST_F(kprov, fork_tells_every_namespace)
{
	struct fork_facts facts = { .parent = getpid(), .exit_code = -1 };
	uint32_t child_ns;
	int go[2], status;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(1, enable_events(self->session, "process", "sched_process_fork,sched_process_exit"));
	pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(read(go[0], &c, 1) == 1 && getpid() == 1 ? 3 : 4);
	child_ns = ns_inum(pid);
	ASSERT_EQ(1, write(go[1], "g", 1));
	waitpid(pid, &status, 0);
	facts.child = pid;
	session_flush(self->session);
	ASSERT_EQ(0, reader_open(&self->reader, self->session, fork_event, &facts));
	ASSERT_DRAINED(&self->reader);
	reader_close(&self->reader);
	EXPECT_EQ(1, facts.forks);
	EXPECT_EQ(pid, facts.child_tid);
	EXPECT_EQ(pid, facts.child_pid);
	EXPECT_EQ(2, facts.nr_vtids);
	EXPECT_EQ(pid, facts.vtids[0]);
	EXPECT_EQ(1, facts.vtids[1]);
	EXPECT_EQ(ns_inum(getpid()), facts.parent_ns);
	EXPECT_EQ(child_ns, facts.child_ns);
	EXPECT_EQ(status, facts.exit_code);
	EXPECT_EQ(3, WEXITSTATUS(status));
}

/* ---- rundown ---- */

/* A provider's rundown and none of its events. */
static int rundown_of(int session, const char *provider)
{
	struct etw_enable enable = enable_make(provider);
	char none[ETW_NAME_SIZE] = "none";
	int ret;

	enable.event_mode = ETW_EVENTS_IN;
	enable.events = (uintptr_t)none;
	enable.nr_events = 1;
	ret = call(session, ETW_IOC_SESSION_ENABLE, &enable);
	disable(session, provider);
	return ret;
}

struct state {
	int32_t tid, pid, ppid, type, mode, submode, status, prio, vtid;
	uint32_t cpu, uid, ns;
	uint64_t start;
	int32_t context_tid, context_pid;
	char name[17];
	unsigned int times;
};

struct states {
	struct state *states;
	size_t nr;
	unsigned int starts, ends, outside;
};

static void state_event(const struct event *e, void *arg)
{
	struct states *s = arg;
	struct state *state;

	if (strcmp(e->class->provider, "Linux-Kernel-Process"))
		return;
	s->starts += event_is(e, "rundown_start");
	s->ends += event_is(e, "rundown_end");
	if (!event_is(e, "process_state"))
		return;
	s->states = realloc(s->states, (s->nr + 1) * sizeof(*s->states));
	state = &s->states[s->nr++];
	*state = (struct state) {
		.tid = num(e, "tid"), .pid = num(e, "pid"), .ppid = num(e, "ppid"), .type = num(e, "type"),
		.mode = num(e, "mode"), .submode = num(e, "submode"), .status = num(e, "status"),
		.prio = num(e, "prio"),
		.vtid = num(e, "vtid"), .cpu = num(e, "cpu"), .uid = num(e, "uid"), .ns = num(e, "ns_inum"),
		.start = num(e, "start_time"), .context_tid = e->tid, .context_pid = e->pid,
	};
	snprintf(state->name, sizeof(state->name), "%s", event_text(e, "name"));
}

static struct state *state_of(struct states *s, pid_t tid)
{
	struct state *found = NULL;
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->states[i].tid == tid) {
			if (!found)
				found = &s->states[i];
			found->times++;
		}
	return found;
}

/* What /proc says of a thread. False if there is none. */
static bool proc_state(pid_t pid, pid_t tid, struct state *state)
{
	char path[64], text[1024], *p;
	unsigned long long start;
	long prio, nice, threads;
	unsigned int flags;
	int cpu;

	memset(state, 0, sizeof(*state));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (file_read(path, text, sizeof(text)) <= 0)
		return false;
	p = strrchr(text, ')');
	snprintf(state->name, sizeof(state->name), "%.*s", (int)(p - strchr(text, '(') - 1), strchr(text, '(') + 1);
	if (sscanf(p + 2, "%*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %ld %ld %ld %*d %llu",
		   &state->ppid, &flags, &prio, &nice, &threads, &start) != 6)
		return false;
	p += 2;
	for (cpu = 0; cpu < 36; cpu++)
		p = strchr(p, ' ') + 1;
	state->cpu = atoi(p);
	state->tid = tid;
	state->pid = pid;
	state->type = !!(flags & 0x00200000);		/* PF_KTHREAD */
	state->prio = prio;				/* /proc counts from the same zero */
	state->start = start;				/* in 100ths of a second */
	return true;
}

static struct states rundown(struct __test_metadata *_metadata, int dev, int session)
{
	struct states states = { };
	struct reader reader;

	ASSERT_EQ(1, rundown_of(session, "process"));
	session_flush(session);
	ASSERT_EQ(0, reader_open(&reader, session, state_event, &states));
	ASSERT_DRAINED(&reader);
	reader_close(&reader);
	return states;
}

/* Calls @fn for every thread of the system. */
static void each_thread(void (*fn)(pid_t pid, pid_t tid, void *arg), void *arg)
{
	DIR *proc = opendir("/proc"), *tasks;
	struct dirent *p, *t;
	char path[300];

	while ((p = readdir(proc))) {
		if (p->d_name[0] < '0' || p->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", p->d_name);
		tasks = opendir(path);
		while (tasks && (t = readdir(tasks)))
			if (t->d_name[0] != '.')
				fn(atoi(p->d_name), atoi(t->d_name), arg);
		if (tasks)
			closedir(tasks);
	}
	closedir(proc);
}

static void remember(pid_t pid, pid_t tid, void *arg)
{
	struct states *s = arg;
	struct state state;

	if (!proc_state(pid, tid, &state))
		return;
	s->states = realloc(s->states, (s->nr + 1) * sizeof(*s->states));
	s->states[s->nr++] = state;
}

static void *sleep_for_ever(void *arg)
{
	prctl(PR_SET_NAME, "kprov-thread");
	for (;;)
		pause();
	return NULL;
}

static void two_threads(void *arg)
{
	pthread_t t;

	setpriority(PRIO_PROCESS, 0, 5);
	if (setgid(1234) || setuid(1234))
		_exit(1);
	prctl(PR_SET_NAME, "kprov-two");
	pthread_create(&t, NULL, sleep_for_ever, NULL);
	for (;;)
		pause();
}

static void spinner(void *arg)
{
	for (;;)
		;
}

static bool process_is(pid_t pid, char letter, unsigned int threads)
{
	char path[64], text[1024], *p;
	long prio, nice, nr;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(path, text, sizeof(text)) <= 0 || !(p = strrchr(text, ')')))
		return false;
	return p[2] == letter &&
	       sscanf(p + 4, "%*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %ld %ld %ld",
		      &prio, &nice, &nr) == 3 &&
	       nr == threads;
}

TEST_F(kprov, rundown_has_every_thread)
{
	struct states before = { }, after = { }, got;
	pid_t two = spawn(two_threads, NULL), zombie, inner, stopped = spawn(naps, NULL), spin = spawn(spinner, NULL);
	unsigned int compared = 0, kernel = 0;
	struct state *s, *p;
	size_t i;

	inner = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!inner)
		naps(NULL);
	zombie = fork();
	if (!zombie)
		_exit(0);
	kill(stopped, SIGSTOP);
	ASSERT_TRUE(wait_until(10000, process_is(two, 'S', 2)));
	ASSERT_TRUE(wait_until(10000, process_is(zombie, 'Z', 1)));
	ASSERT_TRUE(wait_until(10000, process_is(stopped, 'T', 1)));

	each_thread(remember, &before);
	got = rundown(_metadata, self->dev, self->session);
	each_thread(remember, &after);

	EXPECT_EQ(1, got.starts);
	EXPECT_EQ(1, got.ends);
	for (i = 0; i < before.nr; i++) {
		p = state_of(&after, before.states[i].tid);
		if (!p || p->start != before.states[i].start)
			continue;
		s = state_of(&got, p->tid);
		ASSERT_NE(NULL, s) TH_LOG("thread %d of %d (%s) is missing", p->tid, p->pid, p->name);
		compared++;
		kernel += s->type;
		EXPECT_EQ(1, s->times) TH_LOG("thread %d", p->tid);
		EXPECT_EQ(p->pid, s->pid);
		EXPECT_EQ(p->ppid, s->ppid);
		EXPECT_EQ(p->type, s->type) TH_LOG("thread %d (%s)", p->tid, p->name);
		/* /proc shows long names of kernel threads, and what a worker is at instead of its name. */
		if (strncmp(p->name, "kworker", 7))
			EXPECT_EQ(0, strncmp(p->name, s->name, 15)) TH_LOG("'%s' is '%s'", p->name, s->name);
		EXPECT_EQ(p->prio, s->prio) TH_LOG("thread %d (%s)", p->tid, p->name);
		EXPECT_EQ(p->start, s->start / 10000000);
		EXPECT_EQ(5, s->mode);
		EXPECT_EQ(1, s->submode);
		EXPECT_LT(s->cpu, MAX_CPUS);
		EXPECT_EQ(s->tid, s->context_tid);
		EXPECT_EQ(s->pid, s->context_pid);
		if (p->tid == inner)
			continue;
		EXPECT_EQ(ns_inum(1), s->ns);
		EXPECT_EQ(s->tid, s->vtid);
	}
	EXPECT_LE(10, compared);
	EXPECT_LE(5, kernel);

	s = state_of(&got, inner);
	ASSERT_NE(NULL, s);
	EXPECT_EQ(1, s->vtid);
	EXPECT_EQ(ns_inum(inner), s->ns);

	s = state_of(&got, zombie);
	ASSERT_NE(NULL, s);
	EXPECT_EQ(4, s->status);
	EXPECT_EQ(getpid(), s->ppid);
	s = state_of(&got, stopped);
	ASSERT_NE(NULL, s);
	EXPECT_EQ(5, s->status);
	s = state_of(&got, spin);
	ASSERT_NE(NULL, s);
	EXPECT_TRUE(s->status == 2 || s->status == 6) TH_LOG("status %d", s->status);
	s = state_of(&got, getpid());
	ASSERT_NE(NULL, s);
	EXPECT_EQ(6, s->status);
	EXPECT_EQ(0, s->uid);
	s = state_of(&got, two);
	ASSERT_NE(NULL, s);
	EXPECT_STREQ("kprov-two", s->name);
	EXPECT_EQ(25, s->prio);
	EXPECT_EQ(1234, s->uid);
	EXPECT_EQ(5, s->status);
	for (i = 0; i < got.nr; i++)
		if (got.states[i].pid == two && got.states[i].tid != two)
			break;
	ASSERT_LT(i, got.nr);
	EXPECT_STREQ("kprov-thread", got.states[i].name);

	reap(two);
	reap(inner);
	reap(stopped);
	reap(spin);
	waitpid(zombie, NULL, 0);
	free(before.states);
	free(after.states);
	free(got.states);
}

static void rests(void *arg)
{
	for (;;)
		pause();
}

/* What is written when the process provider is enabled: the rundown first, only once, to this session only. */
TEST_F(kprov, rundown_of_many_threads_in_one_piece)
{
	struct states got;
	pid_t pids[150];
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(pids); i++)
		pids[i] = spawn(rests, NULL);
	got = rundown(_metadata, self->dev, self->session);
	EXPECT_EQ(1, got.starts);
	EXPECT_EQ(1, got.ends);
	for (i = 0; i < ARRAY_LEN(pids); i++) {
		struct state *s = state_of(&got, pids[i]);

		ASSERT_NE(NULL, s);
		EXPECT_EQ(1, s->times);
		reap(pids[i]);
	}
	free(got.states);
}

static void forks(void *arg)
{
	for (;;)
		work_fork(10);
}

/* Who is there all the time is in each rundown once, whatever comes and goes meanwhile. */
TEST_F(kprov, rundown_while_threads_come_and_go)
{
	struct etw_enable enable = enable_make("process");
	char none[ETW_NAME_SIZE] = "none";
	struct etw_provider_ref ref = { .size = sizeof(ref), .name = "process" };
	struct states got = { };
	pid_t pids[3];
	unsigned int i;

	enable.event_mode = ETW_EVENTS_IN;
	enable.events = (uintptr_t)none;
	enable.nr_events = 1;
	for (i = 0; i < ARRAY_LEN(pids); i++)
		pids[i] = spawn(forks, NULL);
	ASSERT_EQ(0, reader_open(&self->reader, self->session, state_event, &got));
	ASSERT_EQ(1, call(self->session, ETW_IOC_SESSION_ENABLE, &enable));
	for (i = 1; i < 30; i++) {
		ASSERT_EQ(0, call(self->session, ETW_IOC_SESSION_CAPTURE_STATE, &ref));
		session_flush(self->session);
		ASSERT_DRAINED(&self->reader);
	}
	EXPECT_EQ(30, got.starts);
	EXPECT_EQ(30, got.ends);
	EXPECT_EQ(30, state_of(&got, getpid())->times);
	EXPECT_EQ(30, state_of(&got, 1)->times);
	for (i = 0; i < ARRAY_LEN(pids); i++) {
		ASSERT_NE(NULL, state_of(&got, pids[i]));
		reap(pids[i]);
	}
	reader_close(&self->reader);
	free(got.states);
}

struct disk {
	uint32_t dev, disk;
	char name[64];
	uint64_t start, sectors;
};

struct disks {
	struct disk disks[256];
	unsigned int nr;
	unsigned int starts, ends;
};

static void disk_event(const struct event *e, void *arg)
{
	struct disks *d = arg;
	struct disk *disk;

	d->starts += event_is(e, "rundown_start");
	d->ends += event_is(e, "rundown_end");
	if (!event_is(e, "block_device") || d->nr == ARRAY_LEN(d->disks))
		return;
	disk = &d->disks[d->nr++];
	disk->dev = num(e, "dev");
	disk->disk = num(e, "disk");
	disk->start = num(e, "start");
	disk->sectors = num(e, "nr_sectors");
	snprintf(disk->name, sizeof(disk->name), "%.63s", event_text(e, "diskname"));
}

static uint64_t sys_number(const char *name, const char *file)
{
	char path[512], text[64];

	snprintf(path, sizeof(path), "/sys/class/block/%s/%s", name, file);
	return file_read(path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

static uint32_t sys_dev(const char *name, const char *file)
{
	char path[512], text[64];
	unsigned int major, minor;

	snprintf(path, sizeof(path), "/sys/class/block/%s/%s", name, file);
	if (file_read(path, text, sizeof(text)) <= 0 || sscanf(text, "%u:%u", &major, &minor) != 2)
		return 0;
	return major << 20 | minor;
}

/* The second half of the disk becomes a partition, whatever is on it. */
static bool partition_add(const char *disk)
{
	struct blkpg_partition part = { .start = 32 << 20, .length = 16 << 20, .pno = 1 };
	struct blkpg_ioctl_arg arg = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(part), .data = &part };
	int fd = open(disk, O_RDWR | O_CLOEXEC), err;

	err = fd < 0 ? -1 : ioctl(fd, BLKPG, &arg);
	close(fd);
	return !err;
}

TEST_F(kprov, rundown_has_every_disk)
{
	DIR *dir = opendir("/sys/class/block");
	static struct disks got;
	unsigned int i, seen = 0, partitions = 0;
	const char *made = disk_make();
	bool partitioned = made && partition_add(made);
	struct dirent *d;

	if (!dir)
		SKIP(return, "no block devices in /sys");
	ASSERT_EQ(1, rundown_of(self->session, "block"));
	session_flush(self->session);
	memset(&got, 0, sizeof(got));
	ASSERT_EQ(0, reader_open(&self->reader, self->session, disk_event, &got));
	ASSERT_DRAINED(&self->reader);
	reader_close(&self->reader);
	EXPECT_EQ(1, got.starts);
	EXPECT_EQ(1, got.ends);
	while ((d = readdir(dir))) {
		bool partition = sys_number(d->d_name, "partition");

		if (d->d_name[0] == '.')
			continue;
		seen++;
		partitions += partition;
		for (i = 0; i < got.nr && strcmp(got.disks[i].name, d->d_name); i++)
			;
		ASSERT_LT(i, got.nr) TH_LOG("%s is missing", d->d_name);
		EXPECT_EQ(sys_dev(d->d_name, "dev"), got.disks[i].dev);
		EXPECT_EQ(sys_dev(d->d_name, partition ? "../dev" : "dev"), got.disks[i].disk);
		EXPECT_EQ(partition ? sys_number(d->d_name, "start") : 0, got.disks[i].start);
		EXPECT_EQ(sys_number(d->d_name, "size"), got.disks[i].sectors);
	}
	closedir(dir);
	EXPECT_EQ(seen, got.nr);
	if (partitioned)
		EXPECT_LE(1, partitions);
	printf("# %u block devices, %u of them partitions\n", seen, partitions);
	if (made)
		disk_remove();
}

TEST_HARNESS_MAIN
