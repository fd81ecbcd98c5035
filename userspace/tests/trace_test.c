// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traces of several CPUs written and read back: order, values, numbers, losses, circular mode, followed directories;
 * the files' own rules; and that babeltrace2 reads the same events without a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "packet.h"
#include "ring.h"
#include "synth.h"
#include "tap.h"

#define CPUS 4

static struct etw_classes *table;
static struct synth_packet packets[CPUS];

static struct output *create(const char *dir, const struct facts *facts, __u64 circular)
{
	struct output_options options = { .nr_cpus = CPUS, .max_size = circular, .circular = circular != 0 };
	struct output *output;
	__u32 i;

	if (etw_output_create(dir, facts, &options, &output) ||
	    etw_output_classes(output, table, SYNTH_NR_CLASSES)) {
		printf("Bail out! %s\n", etw_last_error());
		exit(1);
	}
	for (i = 0; i < CPUS; i++)
		etw_output_cpu(output, i);
	return output;
}

/*
 * @events ticks on random CPUs (never on @idle), each later than the one before by up to @step ns, in packets of up to
 * @per_packet records. n counts the events.
 */
static __u64 fill(struct output *output, unsigned int seed, __u64 time, __u64 step, __u32 events, __u32 per_packet,
		  __u32 idle)
{
	__u64 seq[CPUS] = { 0 }, ends[CPUS];
	__u32 i, cpu;

	srand(seed);
	for (cpu = 0; cpu < CPUS; cpu++) {
		ends[cpu] = time;
		packets[cpu].records = 0;
	}
	for (i = 0; i < events; i++) {
		struct synth_packet *p;

		cpu = rand() % CPUS;
		if (cpu == idle)
			cpu = (cpu + 1) % CPUS;
		p = &packets[cpu];
		time += step ? (unsigned int)rand() % step : 0;
		if (!p->records)
			synth_begin(p, cpu, ends[cpu], seq[cpu]++, 0);
		synth_tick(p, time, 100 + cpu, i);
		if (p->records == per_packet) {
			synth_end(p, time);
			ends[cpu] = time;
			if (etw_output_packet(output, cpu, p->bytes, p->len, p->records, 0))
				ok(false, "%s", etw_last_error());
			p->records = 0;
		}
	}
	for (cpu = 0; cpu < CPUS; cpu++) {
		if (!packets[cpu].records)
			continue;
		synth_end(&packets[cpu], time);
		if (etw_output_packet(output, cpu, packets[cpu].bytes, packets[cpu].len, packets[cpu].records, 0))
			ok(false, "%s", etw_last_error());
	}
	return time;
}

/* All events come in order, and n from @first on without a gap (unless times are equal). Returns how many. */
static long read_ticks(const char *dir, __u64 first, bool ties, unsigned int *damages, unsigned int *losses)
{
	struct etw_consumer *c;
	const struct etw_event *e;
	__u64 last = 0;
	long nr = 0;
	int ret, field = -1;

	if (etw_consumer_new(NULL, &c))
		return -1;
	ret = etw_consumer_add_trace(c, dir, 0);
	if (ret < 0)
		printf("# %s\n", etw_last_error());
	while (ret >= 0 && (ret = etw_consumer_next(c, &e, -1)) > 0) {
		if (strcmp(e->cls->name, "Tick"))
			continue;
		if (field < 0)
			field = etw_class_field(e->cls, "n");
		if ((!ties && etw_event_uint(e, field) != first + nr) || e->time < last ||
		    etw_event_uint(e, field + 1) != e->time || e->tid != 100 + (int)e->cpu) {
			printf("# event %ld: n %llu time %llu after %llu\n", nr, etw_event_uint(e, field), e->time,
			       last);
			nr = -1;
			break;
		}
		last = e->time;
		nr++;
	}
	*damages = etw_consumer_nr_damages(c);
	*losses = etw_consumer_nr_losses(c);
	for (unsigned int i = 0; i < *damages && i < 5; i++)
		printf("# damage: %s at %llu: %s\n", etw_consumer_damage(c, i)->file, etw_consumer_damage(c, i)->offset,
		       etw_consumer_damage(c, i)->what);
	etw_consumer_free(c);
	return nr;
}

/* Every rule about packets, by an own decoder. */
static bool files_keep_rules(const char *dir, __u64 *begin_out, __u64 *end_out)
{
	__u64 begin = 0, end = 0;
	__u32 cpu;

	for (cpu = 0; cpu < CPUS; cpu++) {
		char name[32], *path, *bytes;
		size_t len, at = 0;
		__u64 last_end = 0, seq = 0, discarded = 0;

		snprintf(name, sizeof(name), "kernel/chan_%u", cpu);
		path = etw_path(dir, name);
		if (etw_read_file(path, &bytes, &len))
			return false;
		free(path);
		while (at < len) {
			struct etw_packet_header h;

			memcpy(&h, bytes + at, sizeof(h));
			if (len - at < sizeof(h) || h.magic != 0xc1fc1fc1 || h.stream_id || h.cpu_id != cpu ||
			    h.packet_seq_num != seq || h.events_discarded < discarded ||
			    h.content_size > h.packet_size || h.packet_size % 8 || h.packet_size / 8 > len - at ||
			    h.timestamp_end < h.timestamp_begin || h.timestamp_begin < last_end) {
				printf("# %s: packet at %zu\n", name, at);
				free(bytes);
				return false;
			}
			if (!at && cpu && h.timestamp_begin != begin)
				printf("# %s begins at another time\n", name);
			if (!at && cpu && h.timestamp_begin != begin)
				return false;
			if (!at)
				begin = h.timestamp_begin;
			last_end = h.timestamp_end;
			seq++;
			discarded = h.events_discarded;
			at += h.packet_size / 8;
		}
		free(bytes);
		if (!len || (cpu && last_end != end)) {
			printf("# %s ends at %llu, not %llu\n", name, last_end, end);
			return false;
		}
		end = last_end;
	}
	*begin_out = begin;
	*end_out = end;
	return true;
}

static void babeltrace(const char *dir, long events, const char *what)
{
	char *text, *errors;
	int status = synth_run(&text, "babeltrace2 '%s' 2>'%s.err' | wc -l", dir, dir);
	long count = atol(text);

	free(text);
	synth_run(&errors, "cat '%s.err'", dir);
	if (!ok(status == 0 && count == events && !*errors, "%s: babeltrace2 reads %ld of %ld events, silently", what,
		count, events))
		printf("# %.300s\n", errors);
	free(errors);
}

static void test_plain(unsigned int seed, __u64 step, __u32 per_packet, __u32 idle, const char *what)
{
	char *dir = strdup(synth_dir());
	unsigned int damages, losses;
	struct output *output;
	struct facts facts;
	__u64 begin, end, last;
	long nr;

	synth_facts(&facts);
	output = create(dir, &facts, 0);
	last = fill(output, seed, 1000, step, 3000, per_packet, idle);
	ok(!etw_output_finish(output, last + 500, NULL, 0), "%s: finish", what);
	etw_output_free(output);
	nr = read_ticks(dir, 0, step == 0, &damages, &losses);
	ok(nr == 3000 && !damages && !losses, "%s: %ld events in order, %u damages, %u losses", what, nr, damages,
	   losses);
	ok(files_keep_rules(dir, &begin, &end) && begin == 1000 && end == last + 500, "%s: the files keep the rules",
	   what);
	babeltrace(dir, 3000, what);
	free(dir);
}

static void test_loss(void)
{
	char *dir = strdup(synth_dir());
	struct output_cpu cpus[2] = { { .cpu = 0, .lost = 12 }, { .cpu = 1, .lost = 3 } };
	const struct etw_loss *loss;
	struct etw_consumer *c;
	struct output *output;
	struct facts facts;
	char *text;

	synth_facts(&facts);
	output = create(dir, &facts, 0);
	synth_begin(&packets[0], 0, 1000, 0, 5);
	synth_tick(&packets[0], 2000, 100, 0);
	synth_end(&packets[0], 3000);
	etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 0);
	synth_begin(&packets[0], 0, 3000, 1, 5);
	synth_tick(&packets[0], 3500, 100, 1);
	synth_end(&packets[0], 4000);
	etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 0);
	/* Two packets are missing. */
	synth_begin(&packets[0], 0, 6000, 4, 9);
	synth_tick(&packets[0], 6500, 100, 2);
	synth_end(&packets[0], 7000);
	etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 0);
	ok(!etw_output_finish(output, 9000, cpus, 2), "loss: finish");
	etw_output_free(output);
	etw_consumer_new(NULL, &c);
	ok(etw_consumer_add_trace(c, dir, 0) == 0 && etw_consumer_nr_losses(c) == 3,
	   "loss: known before the first event");
	loss = etw_consumer_loss(c, 0);
	ok(loss && loss->cpu == 0 && loss->begin == 1000 && loss->end == 3000 && loss->events == 5,
	   "loss: in the first packet");
	loss = etw_consumer_loss(c, 1);
	ok(loss && loss->cpu == 0 && loss->begin == 4000 && loss->end == 9000 && loss->events == 7 &&
		   loss->packets == 2,
	   "loss: missing packets, and behind the last one, as one window");
	loss = etw_consumer_loss(c, 2);
	ok(loss && loss->cpu == 1 && loss->begin == 1000 && loss->end == 9000 && loss->events == 3,
	   "loss: on a CPU without events");
	ok(etw_consumer_trace(c, 0)->discarded == 15, "loss: %llu in all", etw_consumer_trace(c, 0)->discarded);
	etw_consumer_free(c);
	synth_run(&text, "babeltrace2 '%s' 2>&1 >/dev/null | grep -c -i discarded", dir);
	ok(atoi(text) >= 3, "loss: babeltrace2 sees it");
	free(text);
	free(dir);
}

/* The end of a flight recorder's ring: numbers in the middle, nothing lost. */
static void test_snapshot(void)
{
	char *dir = strdup(synth_dir());
	struct output_cpu cpus[2] = { { .cpu = 0, .lost = 77, .next_seq = 502 },
				      { .cpu = 2, .lost = 8, .next_seq = 9 } };
	unsigned int damages, losses;
	struct output *output;
	struct facts facts;
	__u64 begin, end;
	long nr;

	synth_facts(&facts);
	facts.flags = ETW_SESSION_OVERWRITE;
	facts.snapshot = true;
	output = create(dir, &facts, 0);
	synth_begin(&packets[1], 1, 70000, 3, 0);
	synth_tick(&packets[1], 71000, 101, 40);
	synth_end(&packets[1], 72000);
	etw_output_packet(output, 1, packets[1].bytes, packets[1].len, 1, 1000);
	synth_begin(&packets[0], 0, 80000, 500, 77);
	synth_tick(&packets[0], 81000, 100, 41);
	synth_end(&packets[0], 82000);
	etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 5000);
	synth_begin(&packets[0], 0, 82000, 501, 77);
	synth_tick(&packets[0], 83000, 100, 42);
	synth_end(&packets[0], 84000);
	etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 5000);
	ok(!etw_output_finish(output, 90000, cpus, 2), "snapshot: finish");
	etw_output_free(output);
	nr = read_ticks(dir, 40, false, &damages, &losses);
	ok(nr == 3 && !damages && !losses, "snapshot: %ld events, %u damages, %u losses", nr, damages, losses);
	ok(files_keep_rules(dir, &begin, &end) && begin == 70000 && end == 90000,
	   "snapshot: begins at 0 and at one time");
	babeltrace(dir, 3, "snapshot");
	free(dir);
}

static void test_circular(void)
{
	char *dir = strdup(synth_dir());
	struct etw_writer_stats stats;
	unsigned int damages, losses;
	struct output *output;
	struct facts facts;
	__u64 begin, end, last;
	char *text;
	long nr;

	synth_facts(&facts);
	facts.subbuf_size = 4096;
	output = create(dir, &facts, 200000);
	last = fill(output, 7, 1000, 1000, 50000, 100, 1);
	etw_output_stats(output, &stats);
	ok(stats.bytes <= 200000 && stats.bytes > 100000 && stats.dropped_events > 30000, "circular: %llu bytes kept",
	   stats.bytes);
	ok(!etw_output_finish(output, last, NULL, 0), "circular: finish");
	etw_output_free(output);
	nr = 50000 - stats.dropped_events;
	synth_run(&text, "ls '%s' | tr '\\n' ' '", dir);
	ok(!strcmp(text, "kernel schema session.json "),
	   "circular: one file for each CPU in the end, and nothing else: %s", text);
	free(text);
	ok(files_keep_rules(dir, &begin, &end) && end == last, "circular: the files keep the rules");
	babeltrace(dir, nr, "circular");
	/* The oldest are dropped CPU by CPU, so n has gaps only at the beginning: the last thousands are all there. */
	synth_run(&text,
		  "babeltrace2 -n payload '%s' | grep -o '_\\?n = [0-9]*' | awk '{print $3}' | sort -n | tail -2000 | "
		  "awk 'NR == 1 {f = $1} {l = $1} END {print l - f + 1, l}'",
		  dir);
	ok(!strcmp(text, "2000 49999\n"), "circular: the newest are there: %s", text);
	free(text);
	{
		struct etw_consumer *c;
		const struct etw_event *e;
		__u64 time = 0;
		long got = 0;
		bool sorted = true;

		etw_consumer_new(NULL, &c);
		etw_consumer_add_trace(c, dir, 0);
		while (etw_consumer_next(c, &e, -1) > 0) {
			sorted &= e->time >= time;
			time = e->time;
			got++;
		}
		damages = etw_consumer_nr_damages(c);
		losses = etw_consumer_nr_losses(c);
		ok(got == nr && sorted && !damages && !losses, "circular: %ld of %ld events, %u damages, %u losses",
		   got, nr, damages, losses);
		etw_consumer_free(c);
	}
	free(dir);
}

/* The writer died in the middle of circular mode: the pieces are read, and repair puts them together. */
static void test_circular_killed(void)
{
	char *dir = strdup(synth_dir());
	struct etw_consumer *c;
	const struct etw_event *e;
	struct etw_writer_stats stats;
	struct output *output;
	struct facts facts;
	__u64 begin, end;
	long nr, got = 0;
	int ret;

	synth_facts(&facts);
	output = create(dir, &facts, 200000);
	fill(output, 8, 1000, 1000, 50000, 100, CPUS);
	etw_output_stats(output, &stats);
	etw_output_free(output);
	nr = 50000 - stats.dropped_events;
	etw_consumer_new(NULL, &c);
	etw_consumer_add_trace(c, dir, 0);
	while (etw_consumer_next(c, &e, -1) > 0)
		got++;
	ok(got == nr && etw_consumer_nr_damages(c) == 1 && !etw_consumer_nr_losses(c),
	   "circular, killed: %ld of %ld events, %u damages", got, nr, etw_consumer_nr_damages(c));
	ok(!etw_consumer_trace(c, 0)->finished, "circular, killed: not finished");
	etw_consumer_free(c);
	ret = etw_trace_repair(dir, NULL, NULL);
	ok(ret > 0, "circular, killed: repair %d %s", ret, ret < 0 ? etw_last_error() : "");
	ok(files_keep_rules(dir, &begin, &end), "circular, killed: the files keep the rules after it");
	babeltrace(dir, nr, "circular, killed");
	ret = etw_trace_repair(dir, NULL, NULL);
	ok(ret == 0, "circular, killed: there is nothing more to repair (%d)", ret);
	free(dir);
}

/* A CPU that fell silent early keeps nothing older than what the others keep. */
static void test_circular_silent(void)
{
	char *dir = strdup(synth_dir());
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	__u64 time = 2000, first = 0, silent = 0;
	__u32 i;

	synth_facts(&facts);
	output = create(dir, &facts, 100000);
	synth_begin(&packets[3], 3, 1000, 0, 0);
	synth_tick(&packets[3], 1500, 103, 0);
	synth_end(&packets[3], 1600);
	etw_output_packet(output, 3, packets[3].bytes, packets[3].len, 1, 0);
	for (i = 0; i < 5000; i++, time += 100) {
		synth_begin(&packets[0], 0, time, i, 0);
		synth_tick(&packets[0], time + 50, 100, i);
		synth_end(&packets[0], time + 100);
		etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 1, 0);
	}
	etw_output_finish(output, time, NULL, 0);
	etw_output_free(output);
	etw_consumer_new(NULL, &c);
	etw_consumer_add_trace(c, dir, 0);
	while (etw_consumer_next(c, &e, -1) > 0) {
		first = first ? first : e->time;
		silent += e->cpu == 3;
	}
	ok(!silent && first > 100000, "circular: a silent CPU keeps nothing older than the others (%llu, %llu)",
	   silent, first);
	etw_consumer_free(c);
	free(dir);
}

/* Interrupted while the pieces were put together: some are in the stream already, and still there as pieces. */
static void test_circular_interrupted(void)
{
	char *dir = strdup(synth_dir()), *other = strdup(synth_dir()), *path, *bytes, *text;
	struct etw_writer_stats stats;
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	__u64 begin, end;
	long nr, got = 0;
	size_t len;
	int fd;

	synth_facts(&facts);
	output = create(dir, &facts, 200000);
	fill(output, 11, 1000, 1000, 50000, 100, CPUS);
	etw_output_stats(output, &stats);
	etw_output_free(output);
	nr = 50000 - stats.dropped_events;
	synth_run(&text, "cp -a '%s' '%s'", dir, other);
	free(text);
	if (etw_ring_assemble(other, synth_uuid, NULL))
		ok(false, "%s", etw_last_error());
	/* Some packets and a part of one. */
	path = etw_path(other, "kernel/chan_2");
	if (etw_read_file(path, &bytes, &len))
		exit(1);
	free(path);
	path = etw_path(dir, "kernel/chan_2");
	fd = open(path, O_WRONLY | O_CREAT, 0666);
	if (fd < 0 || etw_write_all(fd, bytes, len / 2 + 100))
		exit(1);
	close(fd);
	free(path);
	free(bytes);
	etw_consumer_new(NULL, &c);
	etw_consumer_add_trace(c, dir, 0);
	while (etw_consumer_next(c, &e, -1) > 0)
		got++;
	ok(got == nr && !etw_consumer_nr_losses(c), "circular, interrupted: %ld of %ld events, %u losses", got, nr,
	   etw_consumer_nr_losses(c));
	etw_consumer_free(c);
	ok(etw_trace_repair(dir, NULL, NULL) > 0 && files_keep_rules(dir, &begin, &end),
	   "circular, interrupted: the files keep the rules after repair");
	babeltrace(dir, nr, "circular, interrupted");
	free(dir);
	free(other);
}

/* Two traces of one boot whose offsets to the epoch differ: one clock decides. */
static void test_merge(void)
{
	char *dirs[2] = { strdup(synth_dir()), strdup(synth_dir()) };
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	__u64 last = 0;
	long nr[2] = { 0 }, ties = 0;
	bool sorted = true, epoch = true;
	int i;

	for (i = 0; i < 2; i++) {
		synth_facts(&facts);
		facts.offset += i * 5000;
		facts.uuid[15] = synth_uuid[15];
		output = create(dirs[i], &facts, 0);
		fill(output, 3, 1000, 2000, 1000, 50, CPUS);
		etw_output_finish(output, 9000000, NULL, 0);
		etw_output_free(output);
	}
	etw_consumer_new(NULL, &c);
	ok(etw_consumer_add_trace(c, dirs[0], 0) == 0 && etw_consumer_add_trace(c, dirs[1], 0) == 1,
	   "merge: two traces");
	while (etw_consumer_next(c, &e, -1) > 0) {
		sorted &= e->time >= last;
		ties += e->time == last;
		epoch &= e->epoch == (__s64)(1700000000000000000 + e->time);
		last = e->time;
		nr[e->trace]++;
	}
	ok(nr[0] == 1000 && nr[1] == 1000 && sorted && epoch && ties >= 1000,
	   "merge: the same events side by side (%ld, %ld, %ld ties)", nr[0], nr[1], ties);
	ok(etw_consumer_nr_classes(c) == SYNTH_NR_CLASSES, "merge: equal classes are one");
	etw_consumer_free(c);
	free(dirs[0]);
	free(dirs[1]);
}

#define FREQ 2596135000ULL

static __u64 cycles_ns(__u64 cycles)
{
	return (unsigned __int128)cycles * 1000000000 / FREQ;
}

/* What babeltrace2 says of the times of all events, in order: how far it is off at most, or -1. */
static long babeltrace_times(const char *dir, const __s64 *epochs, long nr)
{
	char *text, *line;
	long i = 0, most = 0;

	synth_run(&text, "babeltrace2 --clock-seconds --no-delta '%s/kernel' 2>&1", dir);
	for (line = text; line && *line == '['; line = strchr(line, '\n'), line += line != NULL) {
		unsigned long long seconds, ns;
		long off;

		if (i == nr || sscanf(line, "[%llu.%9llu]", &seconds, &ns) != 2)
			break;
		off = labs((long)(seconds * 1000000000 + ns - epochs[i++]));
		most = off > most ? off : most;
	}
	free(text);
	return i == nr ? most : -1;
}

/* Ticks of a counter come out as nanoseconds, whatever is asked and whoever tells the frequency; beside another clock too. */
static void test_cycles(void)
{
	static __s64 epochs[3000];
	char *dirs[3] = { strdup(synth_dir()), strdup(synth_dir()), strdup(synth_dir()) }, *path, *text, *again = NULL;
	const __u64 begin = (1ULL << 52) + 12345, shown = 1000;
	struct etw_consumer_options window = { .size = sizeof(window) };
	const struct etw_trace *t;
	const struct etw_event *e;
	struct etw_consumer *c;
	struct output *output;
	struct facts facts, read;
	long nr = 0, off, by_trace[3] = { 0 };
	bool right = true, sorted = true;
	__u64 end = 0, first = 0, last = 0;
	size_t len;
	int i;

	for (i = 0; i < 3; i++) {
		synth_facts(&facts);
		facts.start = i == 2 ? cycles_ns(begin) : begin;
		facts.offset += 123456789;
		if (i < 2) {
			facts.clock = ETW_CLOCK_CYCLES;
			facts.freq = FREQ;
			facts.offset += i * 7000;	/* of another session of this boot, taken a little otherwise */
		}
		output = create(dirs[i], &facts, 0);
		end = fill(output, 5, facts.start, 100000, 3000, 50, CPUS);
		end += i == 2 ? 1000 : 2596;
		etw_output_finish(output, end, NULL, 0);
		etw_output_free(output);
		if (!i)
			last = end;
	}
	synth_facts(&facts);
	etw_consumer_new(NULL, &c);
	etw_consumer_add_trace(c, dirs[0], 0);
	while (etw_consumer_next(c, &e, -1) > 0 && nr < 3000) {
		__u64 ticks = etw_event_uint(e, etw_class_field(e->cls, "n") + 1);

		right &= e->time == cycles_ns(ticks) && e->epoch == (__s64)e->time + 1700000000123456789;
		epochs[nr++] = e->epoch;
	}
	t = etw_consumer_trace(c, 0);
	ok(nr == 3000 && right && !etw_consumer_nr_damages(c), "cycles: every time in nanoseconds (%ld)", nr);
	ok(t->clock == ETW_CLOCK_CYCLES && t->start == cycles_ns(begin) && t->first == cycles_ns(begin) &&
		   t->stop == cycles_ns(last),
	   "cycles: begin and end in nanoseconds");
	etw_consumer_free(c);

	off = babeltrace_times(dirs[0], epochs, nr);
	ok(off >= 0 && off <= 1, "cycles: babeltrace2 has the same times (off by %ld ns, it computes in floating point)", off);

	window.from = epochs[shown];
	window.to = epochs[2 * shown];
	etw_consumer_new(&window, &c);
	etw_consumer_add_trace(c, dirs[0], 0);
	for (nr = 0, right = true; etw_consumer_next(c, &e, -1) > 0; nr++)
		right &= e->epoch == epochs[shown + nr];
	ok(nr == shown && right, "cycles: from, to (%ld)", nr);
	etw_consumer_free(c);

	/* another session with the same counter, and the monotonic clock */
	etw_consumer_new(NULL, &c);
	for (i = 0; i < 3; i++)
		etw_consumer_add_trace(c, dirs[i], 0);
	for (right = true; etw_consumer_next(c, &e, -1) > 0; by_trace[e->trace]++) {
		sorted &= (__u64)e->epoch >= first;
		first = e->epoch;
		right &= e->epoch == (__s64)e->time + 1700000000123456789;
	}
	ok(by_trace[0] == 3000 && by_trace[1] == 3000 && by_trace[2] == 3000 && sorted && right,
	   "cycles: merged, one offset for both that have the counter");
	etw_consumer_free(c);

	path = etw_path(dirs[0], FILE_FACTS);
	if (etw_read_file(path, &text, &len))
		exit(1);
	memset(&read, 0, sizeof(read));
	ok(!etw_facts_parse(&read, text, len) && read.freq == FREQ && (again = etw_facts_print(&read)) && !strcmp(again, text),
	   "cycles: the facts are what they were");
	free(again);
	etw_facts_free(&read);
	if (strstr(text, "\"clock_freq\":2596135000"))
		memcpy(strstr(text, "\"clock_freq\":2596135000"), "\"clock_freq\":0000000000", 23);
	memset(&read, 0, sizeof(read));
	ok(etw_facts_parse(&read, text, len) && read.freq == 1000000000, "cycles: a frequency of nothing is refused");
	etw_facts_free(&read);
	free(text);
	unlink(path);
	free(path);
	etw_consumer_new(NULL, &c);
	etw_consumer_add_trace(c, dirs[0], 0);
	for (nr = 0, right = true; nr < 3000 && etw_consumer_next(c, &e, -1) > 0; nr++)
		right &= e->epoch == epochs[nr];
	ok(nr == 3000 && right, "cycles: without the facts the metadata says it all");
	etw_consumer_free(c);
	ok(etw_trace_repair(dirs[0], NULL, NULL) > 0 && babeltrace_times(dirs[0], epochs, nr) == off,
	   "cycles: repaired, the times are what they were");
	for (i = 0; i < 3; i++)
		free(dirs[i]);
}

/* Bytes of the files below @dir that are mapped and in memory; their size in *@all. */
static size_t resident(const char *dir, size_t *all)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to, kb;
	char line[4352];
	size_t sum = 0;
	bool ours = false;

	*all = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			ours = strstr(line, dir);
			*all += ours ? to - from : 0;
		} else if (ours && sscanf(line, "Rss: %lu kB", &kb) == 1) {
			sum += kb << 10;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

/* What was read is given back, so that memory does not grow with the trace. */
static void test_large(void)
{
	const size_t enough = CPUS * (1U << 20);
	char *dir = strdup(synth_dir());
	size_t now, most = 0, all = 0, added;
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	long nr = 0;
	__u64 last;

	synth_facts(&facts);
	output = create(dir, &facts, 0);
	last = fill(output, 9, 1000, 2000, 800000, 4000, CPUS);
	ok(!etw_output_finish(output, last + 500, NULL, 0), "large: finish");
	etw_output_free(output);
	etw_consumer_new(NULL, &c);
	ok(etw_consumer_add_trace(c, dir, 0) == 0, "large: add");
	added = resident(dir, &all);
	ok(all > 5 * enough && added < enough, "large: of %zu bytes mapped %zu are in memory", all, added);
	while (etw_consumer_next(c, &e, -1) > 0) {
		if (++nr % 20000)
			continue;
		now = resident(dir, &all);
		most = now > most ? now : most;
	}
	ok(nr == 800000 && most < enough, "large: %ld events read, at most %zu bytes in memory", nr, most);
	etw_consumer_free(c);
	free(dir);
}

static int want_switch(void *arg, const struct etw_class *cls)
{
	++*(int *)arg;
	return etw_class_match(cls, "sched_*");
}

static void test_filters(void)
{
	char *dir = strdup(synth_dir());
	int asked = 0;
	struct etw_consumer_options options = { .size = sizeof(options), .want = want_switch, .arg = &asked };
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	__u64 last, n = 0, first = 0;

	synth_facts(&facts);
	output = create(dir, &facts, 0);
	last = fill(output, 9, 1000, 1000, 2000, 20, CPUS);
	etw_output_finish(output, last, NULL, 0);
	etw_output_free(output);
	etw_consumer_new(&options, &c);
	etw_consumer_add_trace(c, dir, 0);
	ok(etw_consumer_next(c, &e, -1) == 0 && asked == SYNTH_NR_CLASSES,
	   "want: asked once for each class, nothing returned");
	etw_consumer_free(c);
	options = (struct etw_consumer_options){
		.size = sizeof(options), .from = 1700000000000000000 + 300000, .to = 1700000000000000000 + 500000,
	};
	etw_consumer_new(&options, &c);
	etw_consumer_add_trace(c, dir, 0);
	while (etw_consumer_next(c, &e, -1) > 0) {
		if (!n++)
			first = e->time;
		last = e->time;
	}
	ok(n > 100 && first >= 300000 && first < 303000 && last < 500000 && last > 497000,
	   "from, to: %llu events, %llu to %llu", n, first, last);
	etw_consumer_free(c);
	free(dir);
}

/* A reader beside the writer sees everything below what the writer promised, in order, and then the end. */
static void test_follow(__u64 circular, const char *what)
{
	char *dir = strdup(synth_dir());
	struct etw_consumer *c;
	const struct etw_event *e;
	struct output *output;
	struct facts facts;
	__u64 n = 0, last = 0, ends[2] = { 1000, 1000 };
	bool sorted = true;
	int round, ret = 0;

	synth_facts(&facts);
	output = create(dir, &facts, circular);
	etw_consumer_new(NULL, &c);
	ok(etw_consumer_add_trace(c, dir, ETW_TRACE_FOLLOW) == 0, "%s: added", what);
	ok(etw_consumer_next(c, &e, 0) == -EAGAIN, "%s: nothing yet", what);
	for (round = 0; round < 200; round++) {
		__u64 time = 2000 + round * 1000;

		synth_begin(&packets[0], 0, ends[0], round, 0);
		synth_tick(&packets[0], time, 100, 2 * round);
		synth_tick(&packets[0], time + 500, 100, 2 * round + 1);
		synth_end(&packets[0], time + 600);
		ends[0] = time + 600;
		etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 2, 0);
		/* The second event of the round is not promised yet. */
		etw_output_progress(output, time + 500);
		while ((ret = etw_consumer_next(c, &e, 0)) > 0) {
			sorted &= e->time >= last && etw_event_uint(e, 0) == n;
			last = e->time;
			n++;
		}
		if (ret != -EAGAIN || n != 2u * round + 1)
			break;
	}
	ok(round == 200 && sorted && n == 399, "%s: %llu events, none before its time", what, n);
	/* More than a piece, unread when the writer ends. */
	for (; round < 400; round++) {
		__u64 time = 2000 + round * 1000;

		synth_begin(&packets[0], 0, ends[0], round, 0);
		synth_tick(&packets[0], time, 100, 2 * round);
		synth_tick(&packets[0], time + 500, 100, 2 * round + 1);
		synth_end(&packets[0], time + 600);
		ends[0] = time + 600;
		etw_output_packet(output, 0, packets[0].bytes, packets[0].len, 2, 0);
	}
	etw_output_finish(output, 900000, NULL, 0);
	etw_output_free(output);
	while ((ret = etw_consumer_next(c, &e, 1000)) > 0) {
		sorted &= e->time >= last && etw_event_uint(e, 0) == n;
		last = e->time;
		n++;
	}
	ok(ret == 0 && n == 800 && sorted, "%s: the end (%d, %llu)", what, ret, n);
	ok(etw_consumer_nr_damages(c) == 0 && etw_consumer_nr_losses(c) == 0 && etw_consumer_trace(c, 0)->finished == 1,
	   "%s: no damage, no loss, finished", what);
	if (etw_consumer_nr_damages(c))
		printf("# %s\n", etw_consumer_damage(c, 0)->what);
	etw_consumer_free(c);
	free(dir);
}

int main(void)
{
	table = synth_table();
	test_plain(1, 2000, 40, CPUS, "small packets");
	test_plain(2, 2000, 1500, CPUS, "large packets");
	test_plain(3, 2000, 40, 2, "an idle CPU");
	test_plain(4, 2000, 1, CPUS, "one event in a packet");
	test_plain(5, 0, 40, CPUS, "all at one time");
	test_plain(6, RAND_MAX, 1000, CPUS, "many wraps of 32 bits");
	test_loss();
	test_snapshot();
	test_circular();
	test_circular_killed();
	test_circular_silent();
	test_circular_interrupted();
	test_merge();
	test_cycles();
	test_large();
	test_filters();
	test_follow(0, "follow");
	test_follow(100000, "follow circular");
	etw_classes_free(table);
	synth_clean();
	return tap_done();
}
