// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A trace directory that is still being written, as input of the consumer. The writer's file "progress" says up to
 * which time everything is in the files; when its lock is gone the trace is complete. Packets are read, not mapped,
 * because a writer may still shorten its files. It must not know records or the order of events.
 */
#include "follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "class.h"
#include "consumer.h"
#include "error.h"
#include "files.h"
#include "ring.h"

#define FOLLOW_MS 50

struct follow_cursor {
	struct cursor cursor;		/* first */
	int fd;
	bool piece;			/* of the ring, else the CPU's chan file */
	__u64 number;
	char *path;
	__u64 offset;
	__u64 skip_to;			/* packets that end at or before this were read from the ring */
	__u8 *buffer;
	size_t room;
};

struct follow_input {
	struct input input;		/* first */
	char *root;
	int progress_fd;
	int schema_fd;
	__u64 schema_read;
	bool final;			/* the writer is gone */
};

/* Entries that were appended to the schema since. */
static int schema_more(struct follow_input *in)
{
	struct stat st;
	__u8 *buf, *p;
	size_t len, good = 0;
	int ret = 0;

	if (fstat(in->schema_fd, &st) || (__u64)st.st_size <= in->schema_read)
		return 0;
	len = st.st_size - in->schema_read;
	buf = malloc(len);
	if (!buf)
		return etw_error_errno(-ENOMEM, "%s/" FILE_SCHEMA, in->root);
	if (pread(in->schema_fd, buf, len, in->schema_read) != (ssize_t)len)
		ret = etw_error_errno(-EIO, "%s/" FILE_SCHEMA, in->root);
	/* The last entry may not be whole yet. */
	for (p = buf; !ret && len - good >= sizeof(__u32);) {
		__u32 size;

		memcpy(&size, p + good, sizeof(size));
		if (size > len - good || !size)
			break;
		good += size;
	}
	if (!ret && good)
		ret = etw_input_classes(&in->input, buf, good);
	if (ret >= 0)
		in->schema_read += good;
	free(buf);
	return ret < 0 ? ret : 0;
}

static int file_open(struct follow_cursor *s, char *path, bool piece, __u64 number)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0) {
		free(path);
		return 0;
	}
	if (s->fd >= 0)
		close(s->fd);
	/* Reports keep no pointer to the path. */
	free(s->path);
	s->fd = fd;
	s->path = path;
	s->piece = piece;
	s->number = number;
	s->offset = 0;
	return 1;
}

/* The ring's next piece of this CPU behind @after (or the first). 1 if there is one and it was opened. */
static int piece_next(struct follow_cursor *s, const char *root, bool first)
{
	struct ring_piece *pieces;
	int nr = etw_ring_list(root, &pieces), i, ret = 0;

	for (i = 0; i < nr && !ret; i++) {
		if (pieces[i].cpu == s->cursor.cpu && (first || pieces[i].number > s->number)) {
			ret = file_open(s, pieces[i].path, true, pieces[i].number);
			pieces[i].path = NULL;
		}
	}
	if (nr >= 0)
		etw_ring_free(pieces, nr);
	return ret;
}

static char *chan_path(const char *root, __u32 cpu)
{
	char *path;

	return asprintf(&path, "%s/" FILE_KERNEL "/chan_%u", root, cpu) < 0 ? NULL : path;
}

/* At the end of a file: 1 if there is another to go on with. */
static int file_next(struct follow_cursor *s, const struct follow_input *in)
{
	struct stat st;

	if (s->fd < 0)
		return piece_next(s, in->root, true) || file_open(s, chan_path(in->root, s->cursor.cpu), false, 0);
	if (!s->piece || fstat(s->fd, &st))
		return 0;
	/* A later piece means that this one is complete; the caller has just seen its end, but before that. */
	if ((__u64)st.st_size > s->offset)
		return 1;
	if (piece_next(s, in->root, false))
		return 1;
	if (st.st_nlink)
		return 0;
	/* The ring was put together: go on behind what was read. */
	s->skip_to = s->cursor.packets_end;
	if (!file_open(s, chan_path(in->root, s->cursor.cpu), false, 0))
		return 0;
	etw_cursor_renumber(&s->cursor);
	return 1;
}

static int follow_end(struct follow_cursor *s, const struct follow_input *in)
{
	if (in->final)
		s->cursor.ended = true;
	return 0;
}

static int follow_load(struct cursor *cursor)
{
	struct follow_cursor *s = (struct follow_cursor *)cursor;
	struct follow_input *in = (struct follow_input *)cursor->input;

	for (;;) {
		struct packet packet;
		__u8 header[PACKET_HEADER_SIZE];
		struct stat st;
		const char *what;
		ssize_t n = -1;
		int ret;

		if (s->fd >= 0)
			n = pread(s->fd, header, sizeof(header), s->offset);
		if (n != sizeof(header)) {
			if (n > 0 && in->final)
				etw_consumer_damaged(&in->input, cursor->cpu, s->path, s->offset, n,
						     "the file is cut off here");
			if (!file_next(s, in))
				return follow_end(s, in);
			continue;
		}
		if (fstat(s->fd, &st))
			return etw_error_errno(-errno, "%s", s->path);
		what = etw_packet_parse(header, st.st_size - s->offset, in->input.facts.uuid, &packet);
		if (what && !etw_packet_is_cut(what)) {
			etw_consumer_damaged(&in->input, cursor->cpu, s->path, s->offset, 0, "%s", what);
			cursor->ended = true;
			return 0;
		}
		if (what) {
			if (in->final)
				etw_consumer_damaged(&in->input, cursor->cpu, s->path, s->offset,
						     st.st_size - s->offset, "the file is cut off here");
			return follow_end(s, in);
		}
		if (packet.end <= s->skip_to) {
			s->offset += packet.size;
			continue;
		}
		etw_cursor_packet(cursor, &packet);
		if (etw_consumer_before(in->input.consumer, &in->input, packet.end)) {
			s->offset += packet.size;
			continue;
		}
		if (packet.size > s->room) {
			free(s->buffer);
			s->buffer = malloc(packet.size);
			s->room = s->buffer ? packet.size : 0;
			if (!s->buffer)
				return etw_error_errno(-ENOMEM, "%s", s->path);
		}
		if (pread(s->fd, s->buffer, packet.size, s->offset) != (ssize_t)packet.size)
			return etw_error_errno(-EIO, "%s", s->path);
		ret = schema_more(in);
		if (ret)
			return ret;
		etw_cursor_set(cursor, &packet, s->buffer, s->path, s->offset);
		s->offset += packet.size;
		return 1;
	}
}

static int cpu_add(struct follow_input *in, __u32 cpu)
{
	struct follow_cursor *s;
	__u32 i;
	int err;

	for (i = 0; i < in->input.nr_cursors; i++)
		if (in->input.cursors[i]->cpu == cpu)
			return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return etw_error_errno(-ENOMEM, "%s", in->root);
	s->fd = -1;
	err = etw_cursor_add(&in->input, &s->cursor, cpu);
	if (err)
		free(s);
	return err;
}

static int cpus_find(struct follow_input *in)
{
	char *kernel = etw_path(in->root, FILE_KERNEL);
	DIR *d = kernel ? opendir(kernel) : NULL;
	struct ring_piece *pieces;
	struct dirent *entry;
	int err = 0, nr, i;

	free(kernel);
	while (!err && d && (entry = readdir(d)))
		if (etw_stream_cpu(entry->d_name) >= 0)
			err = cpu_add(in, etw_stream_cpu(entry->d_name));
	if (d)
		closedir(d);
	nr = etw_ring_list(in->root, &pieces);
	for (i = 0; !err && i < nr; i++)
		err = cpu_add(in, pieces[i].cpu);
	if (nr >= 0)
		etw_ring_free(pieces, nr);
	return err;
}

static int follow_refill(struct input *input)
{
	struct follow_input *in = (struct follow_input *)input;
	struct progress progress;
	int err;

	/* In this order: what was true of the lock and the bound is then true of the files. */
	if (!flock(in->progress_fd, LOCK_SH | LOCK_NB)) {
		flock(in->progress_fd, LOCK_UN);
		in->final = true;
	}
	if (pread(in->progress_fd, &progress, sizeof(progress), 0) != sizeof(progress) ||
	    progress.magic != PROGRESS_MAGIC)
		progress.complete_up_to = input->bound;
	err = cpus_find(in);
	if (err)
		return err;
	if (in->final)
		input->bound = TIME_END;
	else if (progress.complete_up_to > input->bound && progress.complete_up_to != TIME_END)
		input->bound = progress.complete_up_to;
	return 0;
}

static int follow_wait_fd(struct input *input, int *max_ms)
{
	(void)input;
	*max_ms = FOLLOW_MS;
	return -1;
}

static void follow_facts(struct input *input)
{
	struct follow_input *in = (struct follow_input *)input;
	char *path = etw_path(in->root, FILE_FACTS), *text;
	struct facts facts = { .finished = false };
	size_t len;

	if (path && !etw_read_file(path, &text, &len)) {
		if (!etw_facts_parse(&facts, text, len)) {
			etw_facts_free(&input->facts);
			input->facts = facts;
		} else {
			etw_facts_free(&facts);
		}
		free(text);
	}
	free(path);
}

static void follow_free(struct input *input)
{
	struct follow_input *in = (struct follow_input *)input;
	__u32 i;

	for (i = 0; i < input->nr_cursors; i++) {
		struct follow_cursor *s = (struct follow_cursor *)input->cursors[i];

		if (s->fd >= 0)
			close(s->fd);
		free(s->path);
		free(s->buffer);
	}
	if (in->progress_fd >= 0)
		close(in->progress_fd);
	if (in->schema_fd >= 0)
		close(in->schema_fd);
	free(in->root);
}

static const struct input_ops follow_ops = {
	.load = follow_load,
	.refill = follow_refill,
	.wait_fd = follow_wait_fd,
	.facts = follow_facts,
	.free = follow_free,
};

static int file_of(const char *root, const char *name)
{
	char *path = etw_path(root, name);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		etw_error_errno(path ? -errno : -ENOMEM, "%s/%s", root, name);
	free(path);
	return fd;
}

int etw_follow_add(struct etw_consumer *consumer, const char *root)
{
	struct follow_input *in = calloc(1, sizeof(*in));
	char *text = NULL, *path = etw_path(root, FILE_FACTS);
	const char *what;
	size_t len;
	int err = -ENOMEM;

	if (in) {
		in->progress_fd = in->schema_fd = -1;
		in->root = strdup(root);
		in->input.path = strdup(root);
	}
	if (!in || !in->root || !in->input.path || !path) {
		etw_error_errno(err, "%s", root);
		goto fail;
	}
	err = etw_read_file(path, &text, &len);
	if (err)
		goto fail;
	what = etw_facts_parse(&in->input.facts, text, len);
	if (what) {
		err = etw_error(-EBADMSG, "%s: %s", path, what);
		goto fail;
	}
	in->progress_fd = file_of(root, FILE_PROGRESS);
	in->schema_fd = file_of(root, FILE_SCHEMA);
	if (in->progress_fd < 0 || in->schema_fd < 0) {
		err = -ENOENT;
		goto fail;
	}
	in->input.ops = &follow_ops;
	err = etw_input_add(consumer, &in->input);
	if (err)
		goto fail;
	free(text);
	free(path);
	err = schema_more(in);
	return err ? err : (int)in->input.number;
fail:
	free(text);
	free(path);
	if (in) {
		follow_free(&in->input);
		etw_facts_free(&in->input.facts);
		free(in->input.path);
	}
	free(in);
	return err;
}
