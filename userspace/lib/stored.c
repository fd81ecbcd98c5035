// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A trace directory as input of the consumer: its stream files are mapped and all packets' headers are looked at when
 * it is added, so that what is lost or damaged is known before the first event. What is behind the reader is given back, and
 * no packet is remembered, so memory does not grow with the trace. It must not know records or the order of events.
 */
#include "consumer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "error.h"
#include "follow.h"
#include "scan.h"
#include "tracedir.h"

/* The mapping is given back in pieces of this size. */
#define RELEASE (256U << 10)

struct stored_file {
	const char *path;
	__u8 *bytes;
	size_t len;
	size_t released;		/* from the mapping's beginning to here */
	struct scan_walk walk;		/* to the next packet */
	__u64 last_end;			/* of its last packet */
	bool any;			/* there is one */
};

struct stored_cursor {
	struct cursor cursor;		/* first */
	struct stored_file *files;
	unsigned int nr_files;
	unsigned int file;		/* where the next packet is */
};

struct stored_input {
	struct input input;		/* first */
	struct tracedir dir;
};

/* For reports of one file. */
struct report {
	struct input *input;
	__u32 cpu;
	const char *file;
};

static void report_scan(void *arg, __u64 offset, __u64 bytes, const char *what)
{
	struct report *r = arg;

	etw_consumer_damaged(r->input, r->cpu, r->file, offset, bytes, "%s", what);
}

static void report_dir(void *arg, const char *file, __u64 offset, __u64 bytes, const char *what)
{
	etw_consumer_damaged(arg, ~0U, file, offset, bytes, "%s", what);
}

/* Packets before @offset are not looked at any more, or from their beginning. They are in the page cache still. */
static void file_release(struct stored_file *f, size_t offset)
{
	offset -= offset % RELEASE;
	if (offset <= f->released)
		return;
	madvise(f->bytes + f->released, offset - f->released, MADV_DONTNEED);
	f->released = offset;
}

static int stored_load(struct cursor *cursor)
{
	struct stored_cursor *s = (struct stored_cursor *)cursor;
	struct scan_packet p;

	while (s->file < s->nr_files) {
		struct stored_file *f = &s->files[s->file];

		/* Its damage is known: cursor_scan() has been here. */
		while (etw_scan_next(&f->walk, &p, NULL, NULL)) {
			file_release(f, p.offset);
			if (etw_consumer_before(cursor->input->consumer, cursor->input, p.packet.end))
				continue;
			etw_cursor_set(cursor, &p.packet, f->bytes + p.offset, f->path, p.offset);
			return 1;
		}
		s->file++;
	}
	cursor->ended = true;
	return 0;
}

static void stored_free(struct input *input)
{
	struct stored_input *in = (struct stored_input *)input;
	__u32 i, k;

	for (i = 0; i < input->nr_cursors; i++) {
		struct stored_cursor *s = (struct stored_cursor *)input->cursors[i];

		for (k = 0; k < s->nr_files; k++) {
			if (s->files[k].bytes)
				munmap(s->files[k].bytes, s->files[k].len);
		}
		free(s->files);
	}
	etw_tracedir_close(&in->dir);
}

static const struct input_ops stored_ops = {
	.load = stored_load,
	.free = stored_free,
};

static int file_map(struct stored_file *f, struct report *r)
{
	struct stat st;
	int fd = open(f->path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
	} else if (st.st_size) {
		f->bytes = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (f->bytes == MAP_FAILED) {
			err = -errno;
			f->bytes = NULL;
		} else {
			f->len = st.st_size;
		}
	}
	if (fd >= 0)
		close(fd);
	if (err)
		etw_consumer_damaged(r->input, r->cpu, f->path, 0, 0, "it cannot be read: %s", strerror(-err));
	return err;
}

/* All packets of one file: what is damaged and what is lost. Reading will begin with the first that is not in @before already. */
static void file_scan(struct stored_input *in, struct stored_cursor *s, struct stored_file *f, const struct stored_file *before,
		      struct report *r)
{
	size_t begin = f->len;
	struct scan_packet p;

	etw_scan_begin(&f->walk, f->bytes, f->len, in->dir.facts.uuid, s->cursor.cpu, 0);
	while (etw_scan_next(&f->walk, &p, report_scan, r)) {
		file_release(f, p.offset);
		if (!f->any && before && p.packet.end <= before->last_end)
			continue;
		if (!f->any)
			begin = p.offset;
		f->any = true;
		f->last_end = p.packet.end;
		etw_cursor_packet(&s->cursor, &p.packet);
	}
	etw_scan_begin(&f->walk, f->bytes, f->len, in->dir.facts.uuid, s->cursor.cpu, begin);
}

/* What is in the files of one CPU. */
static int cursor_scan(struct stored_input *in, struct stored_cursor *s)
{
	struct report r = { .input = &in->input, .cpu = s->cursor.cpu };
	const struct facts *facts = &in->dir.facts;
	const struct stored_file *before = NULL, *last = NULL;
	unsigned int i;

	for (i = 0; i < s->nr_files; i++) {
		struct stored_file *f = &s->files[i];

		r.file = f->path;
		if (file_map(f, &r) || !f->bytes)
			continue;
		/* Headers are far apart. */
		madvise(f->bytes, f->len, MADV_RANDOM);
		/*
		 * A ring that was being put together: what is there already is not read again, and numbers begin anew.
		 */
		if (i && s->files[0].any)
			before = &s->files[0];
		if (i == 1 && before)
			etw_cursor_renumber(&s->cursor);
		file_scan(in, s, f, before, &r);
		madvise(f->bytes, f->len, MADV_DONTNEED);
		madvise(f->bytes, f->len, MADV_SEQUENTIAL);
		f->released = 0;
		if (f->any)
			last = f;
	}
	if (facts->finished && (!last || last->last_end < facts->stop)) {
		const struct stored_file *f = &s->files[s->nr_files - 1];

		etw_consumer_damaged(&in->input, s->cursor.cpu, f->path, f->len, 0,
				     last ? "the stream ends before the trace does: packets at its end are missing" :
					    "the stream holds no packet");
	}
	return 0;
}

static int stored_streams(struct stored_input *in)
{
	unsigned int i, k;
	int err;

	for (i = 0; i < in->dir.nr_streams; i = k) {
		struct stored_cursor *s = calloc(1, sizeof(*s));

		for (k = i; k < in->dir.nr_streams && in->dir.streams[k].cpu == in->dir.streams[i].cpu; k++)
			;
		if (s)
			s->files = calloc(k - i, sizeof(*s->files));
		if (!s || !s->files) {
			free(s);
			return etw_error_errno(-ENOMEM, "%s", in->dir.dir);
		}
		for (; s->nr_files < k - i; s->nr_files++)
			s->files[s->nr_files].path = in->dir.streams[i + s->nr_files].path;
		err = etw_cursor_add(&in->input, &s->cursor, in->dir.streams[i].cpu);
		if (err) {
			free(s->files);
			free(s);
			return err;
		}
		err = cursor_scan(in, s);
		if (err)
			return err;
	}
	for (i = 0; i < in->dir.facts.nr_cpus; i++) {
		for (k = 0; k < in->dir.nr_streams && in->dir.streams[k].cpu != in->dir.facts.cpus[i]; k++)
			;
		if (k == in->dir.nr_streams) {
			char name[64];

			snprintf(name, sizeof(name), "kernel/chan_%u", in->dir.facts.cpus[i]);
			etw_consumer_damaged(&in->input, in->dir.facts.cpus[i], name, 0, 0,
					     "the stream of CPU %u is missing", in->dir.facts.cpus[i]);
		}
	}
	return 0;
}

int etw_consumer_add_trace(struct etw_consumer *consumer, const char *dir, unsigned int flags)
{
	struct stored_input *in;
	const char *what;
	int err;

	if (flags & ~ETW_TRACE_FOLLOW)
		return etw_error(-EINVAL, "%s: unknown flags 0x%x", dir, flags);
	if (flags & ETW_TRACE_FOLLOW) {
		char *root = etw_tracedir_find(dir, &err);

		if (!root)
			return err;
		if (etw_tracedir_alive(root)) {
			err = etw_follow_add(consumer, root);
			free(root);
			return err;
		}
		free(root);
	}
	in = calloc(1, sizeof(*in));
	if (!in || !(in->input.path = strdup(dir))) {
		free(in);
		return etw_error_errno(-ENOMEM, "%s", dir);
	}
	in->input.ops = &stored_ops;
	in->input.bound = TIME_END;
	in->input.consumer = consumer;
	in->input.number = etw_consumer_nr_traces(consumer);
	err = etw_tracedir_open(&in->dir, dir, report_dir, in);
	if (!err) {
		/* The facts belong to the input; the directory keeps a view of them. */
		in->input.facts = in->dir.facts;
		err = etw_input_add(consumer, &in->input);
	}
	if (err) {
		etw_tracedir_close(&in->dir);
		free(in->input.path);
		free(in);
		return err;
	}
	in->dir.facts.command = NULL;
	in->dir.facts.providers = NULL;
	err = etw_input_classes(&in->input, in->dir.schema, etw_tracedir_schema_good(&in->dir, &what));
	if (err >= 0)
		err = stored_streams(in);
	in->dir.facts.cpus = NULL;
	if (err < 0)
		return err;
	if (in->dir.schema_len && !in->input.nr_slots)
		return etw_error(-EBADMSG, "%s/schema cannot be read: no event can be decoded", dir);
	return in->input.number;
}
