// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many events a trace holds and how many bytes they take, the packets' headers left out: "EVENTS BYTES LOST", - where the
 * format does not say. It must not know who recorded it.
 *
 *   bytes etw DIR EVENT...	a trace of this project, of these events
 *   bytes lttng DIR		CTF streams of LTTng below DIR; their events are not counted in them
 *   bytes perf FILE		perf.data
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etw/etw.h>

static unsigned long long events, bytes, lost;

static int etw(const char *dir, char **names)
{
	struct etw_consumer *consumer;
	const struct etw_event *event;
	int n;

	if (etw_consumer_new(NULL, &consumer) || etw_consumer_add_trace(consumer, dir, 0) < 0)
		goto failed;
	while ((n = etw_consumer_next(consumer, &event, 0)) > 0)
		for (char **name = names; *name; name++)
			if (!strcmp(event->cls->name, *name)) {
				events++;
				bytes += event->record_size;
			}
	if (n < 0)
		goto failed;
	etw_consumer_free(consumer);
	printf("%llu %llu", events, bytes);
	return 0;
failed:
	fprintf(stderr, "bytes: %s: %s\n", dir, etw_last_error());
	return 1;
}

#define LTTNG_HEADER 84		/* magic, uuid, stream, its instance, six numbers of 64 bits, CPU */

static int stream(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	uint8_t head[LTTNG_HEADER];
	uint64_t at = 0, content, size, discarded = 0;
	FILE *f;

	if (type != FTW_F || strstr(path, "/index/") || !strncmp(name, "metadata", 8))
		return 0;
	f = fopen(path, "r");
	if (!f)
		return 0;
	while (!fseek(f, at, SEEK_SET) && fread(head, sizeof(head), 1, f) == 1) {
		memcpy(&content, head + 48, 8);
		memcpy(&size, head + 56, 8);
		memcpy(&discarded, head + 72, 8);
		bytes += content / 8 - LTTNG_HEADER;
		if (!size)
			break;
		at += size / 8;
	}
	lost += discarded;
	fclose(f);
	return 0;
}

#define PERF_LOST 2
#define PERF_SAMPLE 9
#define PERF_LOST_SAMPLES 13

static int perf(const char *path)
{
	uint64_t head[13], count;
	struct {
		uint32_t type;
		uint16_t misc, size;
	} record;
	uint64_t at, end;
	FILE *f = fopen(path, "r");

	if (!f || fread(head, sizeof(head), 1, f) != 1) {
		perror(path);
		return 1;
	}
	/* where the data section is and how long */
	at = head[5];
	end = at + head[6];
	while (at < end && !fseek(f, at, SEEK_SET) && fread(&record, sizeof(record), 1, f) == 1 && record.size >= 8) {
		if (record.type == PERF_SAMPLE) {
			events++;
			bytes += record.size;
		} else if (record.type == PERF_LOST || record.type == PERF_LOST_SAMPLES) {
			fseek(f, record.type == PERF_LOST ? 8 : 0, SEEK_CUR);
			if (fread(&count, sizeof(count), 1, f) == 1)
				lost += count;
		}
		at += record.size;
	}
	fclose(f);
	printf("%llu %llu %llu\n", events, bytes, lost);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "etw"))
		return etw(argv[2], argv + 3);
	if (argc == 3 && !strcmp(argv[1], "perf"))
		return perf(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "lttng")) {
		nftw(argv[2], stream, 16, FTW_PHYS);
		printf("- %llu %llu\n", bytes, lost);
		return 0;
	}
	fprintf(stderr, "usage: bytes etw DIR EVENT... | lttng DIR | perf FILE\n");
	return 2;
}
