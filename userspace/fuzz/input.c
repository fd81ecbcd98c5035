// SPDX-License-Identifier: GPL-2.0-only
/* Inputs of the fuzz targets as directories, lines and events (input.h). */
#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {
	"kernel/chan_0", "kernel/chan_1", "kernel/chan_2", "kernel/metadata", "kernel/other", "schema", "session.json", "progress",
	"ring/0.0", "ring/0.1", "ring/1.0",
};

static char root[64];

volatile uint64_t input_sink;

static void empty(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), entry->d_name, 0) && errno == EISDIR) {
			empty(dirfd(d), entry->d_name);
			unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
		}
	}
	if (d)
		closedir(d);
}

static void remove_root(void)
{
	empty(AT_FDCWD, root);
	rmdir(root);
}

static void make_root(void)
{
	static const char *const below[] = { "/dev/shm", "/tmp" };
	unsigned int i;

	if (*root) {
		empty(AT_FDCWD, root);
		return;
	}
	for (i = 0; i < 2; i++) {
		snprintf(root, sizeof(root), "%s/etw-fuzz.XXXXXX", below[i]);
		if (mkdtemp(root)) {
			atexit(remove_root);
			return;
		}
	}
	abort();
}

void input_file(const char *name, const void *data, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* The part that begins at or after @p: its name's index, where its bytes begin; or -1. */
static int next_part(const uint8_t *p, const uint8_t *end, const uint8_t **mark, const uint8_t **begin)
{
	unsigned int i;

	for (; (p = memmem(p, end - p, "==== ", 5)); p++) {
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t len = strlen(names[i]);

			if ((size_t)(end - p) < 5 + len + 1 || memcmp(p + 5, names[i], len) || p[5 + len] != '\n')
				continue;
			*mark = p;
			*begin = p + 5 + len + 1;
			return i;
		}
	}
	return -1;
}

const char *input_directory(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *mark, *begin, *next_mark, *next_begin;
	char path[128];
	int i, next;

	make_root();
	snprintf(path, sizeof(path), "%s/kernel", root);
	mkdir(path, 0777);
	for (i = next_part(data, end, &mark, &begin); i >= 0; i = next) {
		next = next_part(begin, end, &next_mark, &next_begin);
		if (next < 0)
			next_mark = end;
		else if (next_mark > begin && next_mark[-1] == '\n')
			next_mark--;
		if (!strncmp(names[i], "ring/", 5)) {
			snprintf(path, sizeof(path), "%s/ring", root);
			mkdir(path, 0777);
		}
		input_file(names[i], begin, next_mark - begin);
		begin = next_begin;
	}
	return root;
}

void input_event(const struct etw_event *event)
{
	char text[512];
	size_t len;
	int i;

	for (i = -1; i <= (int)event->cls->nr_fields; i++) {
		const uint8_t *bytes;
		unsigned int k, nr;

		input_sink += etw_event_uint(event, i) + etw_event_int(event, i) + (etw_event_double(event, i) > 1);
		len = 0;
		bytes = (const void *)etw_event_string(event, i, &len);
		while (len)
			input_sink += bytes[--len];
		bytes = etw_event_bytes(event, i, &len);
		if (bytes)
			while (len)
				input_sink += bytes[--len];
		nr = etw_event_count(event, i);
		for (k = 0; k < nr && k < 64; k++)
			input_sink += etw_event_element(event, i, k);
		input_sink += nr ? etw_event_element(event, i, nr - 1) + etw_event_element(event, i, nr) : 0;
		len = etw_event_format(event, i, text, sizeof(text));
		FUZZ_CHECK(strlen(text) == (len < sizeof(text) ? len : sizeof(text) - 1));
		etw_event_format(event, i, text, 3);
		etw_event_format(event, i, NULL, 0);
	}
}

unsigned int input_read(const char *dir)
{
	const struct etw_event *e;
	struct etw_consumer *c;
	unsigned int events = 0, i;
	int64_t last = INT64_MIN;

	if (etw_consumer_new(NULL, &c))
		abort();
	if (etw_consumer_add_trace(c, dir, 0) >= 0) {
		while (etw_consumer_next(c, &e, 0) == 1) {
			FUZZ_CHECK(e->epoch >= last);
			last = e->epoch;
			input_event(e);
			events++;
		}
		for (i = 0; i < etw_consumer_nr_damages(c); i++)
			FUZZ_CHECK(*etw_consumer_damage(c, i)->what);
		for (i = 0; i < etw_consumer_nr_losses(c); i++)
			FUZZ_CHECK(etw_consumer_loss(c, i)->begin <= etw_consumer_loss(c, i)->end);
		for (i = 0; i < etw_consumer_nr_traces(c); i++)
			FUZZ_CHECK(*etw_consumer_trace(c, i)->path);
	}
	etw_consumer_free(c);
	return events;
}

int input_line(const uint8_t **data, size_t *size, char *line, size_t room)
{
	const uint8_t *end;
	size_t len;

	if (!*size)
		return 0;
	end = memchr(*data, '\n', *size);
	len = end ? (size_t)(end - *data) : *size;
	snprintf(line, room, "%.*s", (int)(len < room ? len : room - 1), (const char *)*data);
	*data += len + !!end;
	*size -= len + !!end;
	return 1;
}
