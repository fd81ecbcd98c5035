// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damaged traces: every file of a small trace cut at every byte and every byte of it flipped. The reader never crashes
 * (the sanitizers watch), names what it finds, shows what is whole; after repair nothing is left to repair, no whole
 * packet was lost, and babeltrace2 reads the rest.
 */
#include <errno.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "files.h"
#include "synth.h"
#include "tap.h"

#define PACKETS 4
#define RECORDS 3

static char good[128], bad[128];
static struct etw_classes *table;

/*
 * A whole trace: two CPUs with packets of three kinds of records, one CPU without. Unfinished: as a killed writer
 * leaves it.
 */
static void make(const char *dir, bool finish)
{
	struct output_options options = { .nr_cpus = 3 };
	static struct synth_packet p;
	struct output *output;
	struct facts facts;
	__u32 cpu, i, k;

	synth_facts(&facts);
	if (etw_output_create(dir, &facts, &options, &output))
		exit(1);
	etw_output_classes(output, table, SYNTH_NR_CLASSES);
	for (cpu = 0; cpu < 3; cpu++)
		etw_output_cpu(output, cpu);
	for (i = 0; i < PACKETS; i++) {
		for (cpu = 0; cpu < 2; cpu++) {
			__u64 begin = 1000 + i * 1000;

			synth_begin(&p, cpu, begin, i, 0);
			for (k = 0; k < RECORDS; k++) {
				if (k == 0)
					synth_record(&p, SYNTH_SWITCH, begin + 100 + cpu, 7, 7, synth_switch,
						     sizeof(synth_switch), false);
				else if (k == 1)
					synth_record(&p, SYNTH_STARTED, begin + 200 + cpu, 7, 7, synth_started,
						     sizeof(synth_started), false);
				else
					synth_tick(&p, begin + 300 + cpu, 7, i);
			}
			synth_end(&p, begin + 1000);
			etw_output_packet(output, cpu, p.bytes, p.len, p.records, 0);
		}
	}
	if (finish)
		etw_output_finish(output, 9000, NULL, 0);
	etw_output_free(output);
}

struct result {
	int added;
	int end;
	unsigned int events;
	unsigned int damages;
	unsigned int losses;
	bool sorted;
	char first[256];	/* damage: "file:offset: what" */
};

static void read_all(const char *dir, struct result *r)
{
	struct etw_consumer *c;
	const struct etw_event *e;
	__u64 last = 0;
	char text[256];
	__u32 i;

	memset(r, 0, sizeof(*r));
	r->sorted = true;
	etw_consumer_new(NULL, &c);
	r->added = etw_consumer_add_trace(c, dir, 0);
	while (r->added >= 0 && (r->end = etw_consumer_next(c, &e, 1000)) > 0) {
		r->events++;
		r->sorted &= e->time >= last;
		last = e->time;
		for (i = 0; i < e->cls->nr_fields; i++)
			etw_event_format(e, i, text, sizeof(text));
	}
	r->damages = etw_consumer_nr_damages(c);
	r->losses = etw_consumer_nr_losses(c);
	if (r->damages) {
		const struct etw_damage *d = etw_consumer_damage(c, 0);

		snprintf(r->first, sizeof(r->first), "%s:%llu: %s", d->file, d->offset, d->what);
	}
	etw_consumer_free(c);
}

static const char *const files[] = {
	"kernel/chan_0", "kernel/chan_1", "kernel/chan_2", "kernel/metadata", "schema", "session.json",
};

#define SCHEMA 4

static void put(const char *dir, const char *name, const char *bytes, size_t len)
{
	char *path = etw_path(dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || etw_write_all(fd, bytes, len))
		abort();
	close(fd);
	free(path);
}

static void remove_tree(const char *dir)
{
	char *text;

	synth_run(&text, "rm -rf '%s'", dir);
	free(text);
}

/* Whether babeltrace2 reads it without a word, and how many events. */
static long babeltrace(const char *dir)
{
	char *text, *end;
	long nr;

	synth_run(
		&text,
		"babeltrace2 '%s' 2>&1 | awk '/^\\[/ { n++; next } /WARNING: Tracer discarded/ { next } { print } END { print n + 0 }'",
		dir);
	nr = strtol(text, &end, 10);
	if (*end != '\n' || end[1]) {
		printf("# babeltrace2: %.200s\n", text);
		nr = -1;
	}
	free(text);
	return nr;
}

/* Read, repair, read again. */
static bool repaired(const char *what, unsigned int least, const struct result *before, bool other_tool)
{
	struct result after;
	int ret = etw_trace_repair(bad, NULL, NULL);
	long nr;

	if (ret < 0) {
		printf("# %s: repair: %s\n", what, etw_last_error());
		return false;
	}
	read_all(bad, &after);
	if (after.added < 0 || after.end || after.damages || after.events < least ||
	    after.events + RECORDS < before->events || !after.sorted) {
		printf("# %s: after repair %u events (before %u, at least %u), %u damages %s\n", what, after.events,
		       before->events, least, after.damages, after.first);
		return false;
	}
	ret = etw_trace_repair(bad, NULL, NULL);
	if (ret) {
		printf("# %s: a second repair changes %d things\n", what, ret);
		return false;
	}
	if (!other_tool)
		return true;
	nr = babeltrace(bad);
	if (nr != (long)after.events) {
		printf("# %s: babeltrace2 reads %ld events, we %u\n", what, nr, after.events);
		return false;
	}
	return true;
}

/* Without a true schema records cannot be judged: repair must not touch the streams, and other tools read the trace. */
static bool refused(const char *what)
{
	static unsigned int count;

	if (etw_trace_repair(bad, NULL, NULL) == -EBADMSG && (count++ % 97 || babeltrace(bad) == 2 * PACKETS * RECORDS))
		return true;
	printf("# %s: repair does not refuse, or has changed something\n", what);
	return false;
}

static void test_cuts(void)
{
	size_t f;

	for (f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		char *path = etw_path(good, files[f]), *bytes;
		unsigned int unnamed = 0, broken = 0, fewer = 0;
		size_t len, at;

		if (etw_read_file(path, &bytes, &len))
			exit(1);
		free(path);
		for (at = 0; at < len; at++) {
			struct result r;
			char what[160];
			/* Whole packets before the cut. */
			unsigned int least = 2 * PACKETS * RECORDS;

			snprintf(what, sizeof(what), "%s cut at %zu", files[f], at);
			synth_copy(good, bad);
			put(bad, files[f], bytes, at);
			read_all(bad, &r);
			if (f < 2)
				least = PACKETS * RECORDS + at / (len - 80) * PACKETS * RECORDS +
					(at < len - 80 ? at / ((len - 80) / PACKETS) * RECORDS : 0);
			if (f == SCHEMA)
				least = 0;
			if (!r.damages || !strstr(r.first, files[f])) {
				unnamed++;
				printf("# %s: %u damages, %s\n", what, r.damages, r.first);
			}
			if (r.events < least || !r.sorted || (r.added < 0 && f != SCHEMA)) {
				fewer++;
				printf("# %s: %u events of at least %u (%d, %d)\n", what, r.events, least, r.added,
				       r.end);
			}
			if (f == SCHEMA ? !refused(what) : !repaired(what, least, &r, at % 97 == 0))
				broken++;
		}
		ok(!unnamed, "%s cut at each of %zu bytes: the cut is named", files[f], len);
		ok(!fewer, "%s cut: every whole packet is read", files[f]);
		ok(!broken, "%s cut: repair mends it", files[f]);
		free(bytes);
	}
}

static void test_flips(void)
{
	size_t f;

	for (f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		char *path = etw_path(good, files[f]), *bytes;
		unsigned int broken = 0, named = 0;
		size_t len, at;

		if (etw_read_file(path, &bytes, &len))
			exit(1);
		free(path);
		for (at = 0; at < len; at++) {
			struct result r;
			unsigned int least;
			char what[160];

			snprintf(what, sizeof(what), "%s flipped at %zu", files[f], at);
			synth_copy(good, bad);
			bytes[at] ^= 1 << (at % 8);
			put(bad, files[f], bytes, len);
			bytes[at] ^= 1 << (at % 8);
			read_all(bad, &r);
			named += r.damages || r.losses || r.added < 0;
			if (!r.sorted) {
				broken++;
				printf("# %s: not in order\n", what);
			}
			/* One packet at most suffers. */
			least = f == SCHEMA ? 0 : 2 * PACKETS * RECORDS - (f < 3 ? RECORDS : 0);
			if (r.events < least) {
				broken++;
				printf("# %s: %u events of at least %u\n", what, r.events, least);
			}
			if (f == SCHEMA ? !refused(what) : !repaired(what, least, &r, at % 97 == 0))
				broken++;
		}
		/* Payloads may change without anybody being able to tell. */
		ok(f < 3 ? named > 0 : named == len, "%s with each of %zu bytes flipped: %u are named", files[f], len,
		   named);
		ok(!broken, "%s flipped: in order, and repair mends it", files[f]);
		free(bytes);
	}
}

static void test_missing(void)
{
	struct result r;
	size_t f;
	char *path;

	for (f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		synth_copy(good, bad);
		path = etw_path(bad, files[f]);
		unlink(path);
		free(path);
		read_all(bad, &r);
		if (!strcmp(files[f], "schema")) {
			ok(r.added == -EBADMSG && strstr(etw_last_error(), "schema is missing"), "no schema: %s",
			   etw_last_error());
			ok(etw_trace_repair(bad, NULL, NULL) == -EBADMSG, "no schema: repair refuses");
			continue;
		}
		ok(r.added == 0 && r.damages && strstr(r.first, files[f]) && r.events >= PACKETS * RECORDS,
		   "no %s: %u events, %s", files[f], r.events, r.first);
		ok(repaired(files[f], PACKETS * RECORDS, &r, true), "no %s: repair mends it", files[f]);
	}
}

static void test_foreign(void)
{
	static const char other[] =
		"This is no stream, whatever it is called, and long enough to be taken for one at first sight......";
	char *path, *bytes;
	struct result r;
	size_t len;

	synth_copy(good, bad);
	put(bad, "kernel/notes.txt", other, sizeof(other));
	read_all(bad, &r);
	ok(r.damages == 1 && strstr(r.first, "notes.txt") && r.events == 2 * PACKETS * RECORDS, "foreign file: %s",
	   r.first);
	ok(repaired("foreign file", 2 * PACKETS * RECORDS, &r, true), "foreign file: repair mends it");

	synth_copy(good, bad);
	put(bad, "kernel/chan_9", other, sizeof(other));
	read_all(bad, &r);
	ok(r.damages && strstr(r.first, "chan_9") && r.events == 2 * PACKETS * RECORDS, "foreign stream: %s", r.first);
	ok(repaired("foreign stream", 2 * PACKETS * RECORDS, &r, true), "foreign stream: repair mends it");

	/* A stream of another session. */
	path = etw_path(good, "kernel/chan_0");
	if (etw_read_file(path, &bytes, &len))
		exit(1);
	free(path);
	for (size_t at = 0; at + 24 < len; at += 8)
		if (!memcmp(bytes + at, "\xc1\x1f\xfc\xc1", 4))
			bytes[at + 10] ^= 0x55;
	synth_copy(good, bad);
	put(bad, "kernel/chan_1", bytes, len);
	free(bytes);
	read_all(bad, &r);
	ok(r.damages && strstr(r.first, "chan_1") && strstr(r.first, "another trace") && r.events == PACKETS * RECORDS,
	   "stream of another trace: %s", r.first);
	ok(repaired("stream of another trace", PACKETS * RECORDS, &r, true),
	   "stream of another trace: repair mends it");

	ok((read_all("/tmp", &r), r.added == -ENOENT) && strstr(etw_last_error(), "/tmp"), "no trace: %s",
	   etw_last_error());
	ok((read_all("/nonexistent/x", &r), r.added == -ENOENT), "no directory: %s", etw_last_error());
	synth_copy(good, bad);
	path = etw_path(bad, "schema");
	unlink(path);
	free(path);
	path = etw_path(bad, "session.json");
	unlink(path);
	free(path);
	ok((read_all(bad, &r), r.added == -EBADMSG) && strstr(etw_last_error(), "babeltrace2"), "another's CTF: %s",
	   etw_last_error());
}

/* Files as a killed writer or a power cut leaves them. */
static void test_killed(void)
{
	char *path, *bytes;
	struct result r;
	size_t len, at;
	unsigned int broken = 0;

	remove_tree(bad);
	make(bad, false);
	read_all(bad, &r);
	ok(r.events == 2 * PACKETS * RECORDS && r.damages == 1 && strstr(r.first, "not ended"), "killed: %s", r.first);
	ok(repaired("killed", 2 * PACKETS * RECORDS, &r, true), "killed: repair closes it");
	remove_tree(bad);
	make(bad, false);
	path = etw_path(bad, "schema");
	if (truncate(path, 400))
		abort();
	free(path);
	ok(refused("killed, schema cut"), "killed, schema cut: repair does not judge records by it");
	path = etw_path(good, "kernel/chan_0");
	if (etw_read_file(path, &bytes, &len))
		exit(1);
	free(path);
	len -= 80;
	for (at = 0; at <= len; at += 5) {
		unsigned int least = PACKETS * RECORDS + at / (len / PACKETS) * RECORDS;
		char *longer = calloc(1, len + 4096);

		remove_tree(bad);
		make(bad, false);
		/* File systems may leave zeros where data did not reach the disk. */
		memcpy(longer, bytes, at);
		put(bad, "kernel/chan_0", longer, at % 2 ? at : len + 4096);
		free(longer);
		read_all(bad, &r);
		if (r.events < least || !repaired("power cut", least, &r, at % 50 == 0)) {
			broken++;
			printf("# cut at %zu: %u of %u, %s\n", at, r.events, least, r.first);
		}
	}
	ok(!broken, "power cut at every fifth byte: whole packets are read and kept");
	free(bytes);
}

int main(void)
{
	struct result r;

	table = synth_table();
	snprintf(good, sizeof(good), "%s", synth_dir());
	snprintf(bad, sizeof(bad), "%s", synth_dir());
	make(good, true);
	read_all(good, &r);
	ok(r.added == 0 && r.end == 0 && r.events == 2 * PACKETS * RECORDS && !r.damages && !r.losses,
	   "the trace is whole: %s", r.first);
	ok(babeltrace(good) == 2 * PACKETS * RECORDS, "babeltrace2 reads it");
	ok(etw_trace_repair(good, NULL, NULL) == 0, "there is nothing to repair");
	test_missing();
	test_foreign();
	test_killed();
	test_cuts();
	test_flips();
	etw_classes_free(table);
	synth_clean();
	return tap_done();
}
