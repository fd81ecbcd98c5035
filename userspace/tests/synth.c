// SPDX-License-Identifier: GPL-2.0-only
/* Schemas, packets and traces made without the module, for host tests. It must not know what is tested. */
#include "synth.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "files.h"

const struct synth_field synth_switch_fields[SYNTH_NR_SWITCH_FIELDS] = {
	{ .name = "prev_comm", .type = ETW_TYPE_CHARS, .count = 16 },
	{ .name = "prev_tid", .type = ETW_TYPE_S32 },
	{ .name = "prev_prio", .type = ETW_TYPE_S32 },
	{ .name = "prev_state", .type = ETW_TYPE_S64 },
	{ .name = "next_comm", .type = ETW_TYPE_CHARS, .count = 16 },
	{ .name = "next_tid", .type = ETW_TYPE_S32 },
	{ .name = "next_prio", .type = ETW_TYPE_S32 },
	{ .name = "preempt", .type = ETW_TYPE_BOOL },
};

static const struct synth_field started_fields[] = {
	{ .name = "count", .type = ETW_TYPE_U32 },
	{ .name = "what", .type = ETW_TYPE_STRING },
	{ .name = "data", .type = ETW_TYPE_BINARY },
};

static const struct synth_field tick_fields[] = {
	{ .name = "n", .type = ETW_TYPE_U64 },
	{ .name = "when", .type = ETW_TYPE_U64, .format = ETW_FORMAT_HEX },
};

const struct synth_class synth_classes[SYNTH_NR_CLASSES] = {
	{ "Linux-Kernel-Sched", "sched_switch", "sched_switch", 0, 2, synth_switch_fields, SYNTH_NR_SWITCH_FIELDS },
	{ "Demo", "Started", NULL, 4, 1, started_fields, 3 },
	{ "Demo", "Tick", NULL, 0, 0, tick_fields, 2 },
};

const __u8 synth_switch[57] = {
	's', 'w', 'a', 'p', 'p', 'e', 'r', '/', '0', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,  0, 0, 0, 0, 0,
	0,   0,	  0,   'a', 0,	 0,   0,   0,	0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0,  0, 0, 20, 0, 0, 0, 0,
};

const __u8 synth_started[13] = { 5, 0, 0, 0, 'h', 'i', 0, 2, 0, 0, 0, 0x01, 0xff };

const __u8 synth_uuid[16] = {
	0x8a, 0x6f, 0x0c, 0x5e, 0x2b, 0x1d, 0x4e, 0x7a, 0x9c, 0x3f, 0x5d, 0x0e, 0x1b, 0x2a, 0x3c, 0x4d,
};

/* Put a string behind what is there; its offset. */
static __u32 put_string(__u8 *buf, size_t *len, const char *s)
{
	__u32 at = *len;

	memcpy(buf + *len, s, strlen(s) + 1);
	*len += strlen(s) + 1;
	return at;
}

size_t synth_schema(void *out, __u32 class_id, const struct synth_class *cls)
{
	__u8 *buf = out;
	struct etw_schema schema = {
		.class_id = class_id, .keyword = cls->keyword,
		.level = cls->level, .opcode = cls->opcode, .nr_fields = cls->nr_fields, .fields = sizeof(schema),
	};
	size_t len = sizeof(schema) + cls->nr_fields * sizeof(struct etw_schema_field);
	__u32 i, k;

	etw_guid_from_name(cls->provider, schema.guid);
	schema.provider = put_string(buf, &len, cls->provider);
	schema.name = put_string(buf, &len, cls->name);
	schema.ctf_name = cls->ctf_name ? put_string(buf, &len, cls->ctf_name) : 0;
	for (i = 0; i < cls->nr_fields; i++) {
		const struct synth_field *f = &cls->fields[i];
		struct etw_schema_field raw = {
			.type = f->type, .array = f->array, .format = f->format, .count = f->count,
		};

		raw.name = put_string(buf, &len, f->name);
		if (f->map) {
			struct etw_schema_map map = { .kind = f->map_kind };
			struct etw_schema_value value;

			while (f->map[map.nr])
				map.nr++;
			len = (len + 7) & ~7UL;
			raw.map = len;
			memcpy(buf + len, &map, sizeof(map));
			len += sizeof(map) + map.nr * sizeof(value);
			for (k = 0; k < map.nr; k++) {
				value = (struct etw_schema_value){
					.value = f->map_kind == ETW_MAP_FLAGS ? 1ULL << k : k,
					.name = put_string(buf, &len, f->map[k]),
				};
				memcpy(buf + raw.map + sizeof(map) + k * sizeof(value), &value, sizeof(value));
			}
		}
		memcpy(buf + schema.fields + i * sizeof(raw), &raw, sizeof(raw));
	}
	while (len % 8)
		buf[len++] = 0;
	schema.size = len;
	memcpy(buf, &schema, sizeof(schema));
	return len;
}

struct etw_classes *synth_table(void)
{
	static __u8 buf[65536];
	struct etw_classes *table;
	__u32 i;

	if (etw_classes_new(&table))
		abort();
	for (i = 0; i < SYNTH_NR_CLASSES; i++)
		if (etw_classes_add(table, buf, synth_schema(buf, i, &synth_classes[i])) != 1)
			abort();
	return table;
}

void synth_begin(struct synth_packet *p, __u32 cpu, __u64 begin, __u64 seq, __u64 discarded)
{
	struct etw_packet_header h = {
		.magic = ETW_CTF_MAGIC,
		.timestamp_begin = begin,
		.packet_seq_num = seq,
		.events_discarded = discarded,
		.cpu_id = cpu,
	};

	memset(p, 0, sizeof(*p));
	memcpy(h.uuid, synth_uuid, 16);
	memcpy(p->bytes, &h, sizeof(h));
	p->len = sizeof(h);
}

void synth_record(struct synth_packet *p, __u32 id, __u64 time, __s32 tid, __s32 pid, const void *payload, size_t len,
		  bool extended)
{
	if (extended || !p->records || time - p->last >= 1ULL << 32) {
		struct etw_record_extended r = {
			.id_extended = ETW_ID_EXTENDED, .id = id, .timestamp = time, .tid = tid, .pid = pid,
		};

		memcpy(p->bytes + p->len, &r, sizeof(r));
		p->len += sizeof(r);
	} else {
		struct etw_record_compact r = { .id = id, .timestamp = time, .tid = tid, .pid = pid };

		memcpy(p->bytes + p->len, &r, sizeof(r));
		p->len += sizeof(r);
	}
	memcpy(p->bytes + p->len, payload, len);
	p->len += len;
	p->last = time;
	p->records++;
}

void synth_tick(struct synth_packet *p, __u64 time, __s32 tid, __u64 n)
{
	__u64 payload[2] = { n, time };

	synth_record(p, SYNTH_TICK, time, tid, tid, payload, sizeof(payload), false);
}

void synth_end(struct synth_packet *p, __u64 end)
{
	struct etw_packet_header h;

	memcpy(&h, p->bytes, sizeof(h));
	h.timestamp_end = end;
	h.content_size = p->len * 8;
	p->len = (p->len + 7) & ~7UL;
	h.packet_size = p->len * 8;
	memcpy(p->bytes, &h, sizeof(h));
}

void synth_facts(struct facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	strcpy(facts->name, "example");
	memcpy(facts->uuid, synth_uuid, 16);
	facts->clock = ETW_CLOCK_MONOTONIC;
	facts->freq = 1000000000;
	facts->offset = 1700000000000000000;
	facts->start = 1000;
	facts->subbuf_size = 4096;
	facts->nr_subbufs = 4;
	strcpy(facts->boot_id, "11111111-2222-4333-8444-555555555555");
	strcpy(facts->hostname, "box");
	strcpy(facts->kernel_release, "6.1.0-57-amd64");
	strcpy(facts->kernel_version, "#1 SMP");
	strcpy(facts->writer, etw_library_version());
}

static char base[64];
static unsigned int dirs;

const char *synth_dir(void)
{
	static char path[128];

	if (!base[0]) {
		/* In memory if possible: the library syncs its files often. */
		snprintf(base, sizeof(base), "%s/etw-host-test-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		if (!mkdtemp(base))
			abort();
	}
	snprintf(path, sizeof(path), "%s/%u", base, dirs++);
	return path;
}

void synth_clean(void)
{
	char *text;

	if (base[0])
		synth_run(&text, "rm -rf '%s'", base), free(text);
}

int synth_run(char **text, const char *fmt, ...)
{
	char command[1024], buf[4096];
	size_t len = 0, n;
	va_list args;
	FILE *p;
	int status;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	*text = calloc(1, 1);
	p = popen(command, "r");
	while (p && (n = fread(buf, 1, sizeof(buf), p))) {
		*text = realloc(*text, len + n + 1);
		memcpy(*text + len, buf, n);
		len += n;
		(*text)[len] = 0;
	}
	status = p ? pclose(p) : -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void synth_copy(const char *from, const char *to)
{
	static const char *const dirs_of_a_trace[] = { "", "/kernel", "/removed" };
	char source[512], target[512], *bytes;
	size_t len, i;

	/* One level of files each; a shell's cp would take most of the tests' time. */
	for (i = 3; i-- > 0;) {
		struct dirent *entry;
		DIR *d;

		snprintf(target, sizeof(target), "%s%s", to, dirs_of_a_trace[i]);
		d = opendir(target);
		while (d && (entry = readdir(d))) {
			snprintf(target, sizeof(target), "%s%s/%s", to, dirs_of_a_trace[i], entry->d_name);
			unlink(target);
		}
		if (d)
			closedir(d);
	}
	for (i = 0; i < 2; i++) {
		struct dirent *entry;
		DIR *d;

		snprintf(source, sizeof(source), "%s%s", from, dirs_of_a_trace[i]);
		snprintf(target, sizeof(target), "%s%s", to, dirs_of_a_trace[i]);
		mkdir(target, 0777);
		d = opendir(source);
		if (!d)
			abort();
		while ((entry = readdir(d))) {
			int fd;

			if (entry->d_type != DT_REG)
				continue;
			snprintf(source, sizeof(source), "%s%s/%s", from, dirs_of_a_trace[i], entry->d_name);
			snprintf(target, sizeof(target), "%s%s/%s", to, dirs_of_a_trace[i], entry->d_name);
			if (etw_read_file(source, &bytes, &len))
				abort();
			fd = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0666);
			if (fd < 0 || etw_write_all(fd, bytes, len))
				abort();
			close(fd);
			free(bytes);
		}
		closedir(d);
	}
}
