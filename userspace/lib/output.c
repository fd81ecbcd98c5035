// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A trace directory being written from packets, whoever made them: schemas and metadata before the packet that needs
 * them, streams of whole packets, the pieces of circular mode, the facts. It decodes no record and must not know
 * /dev/etw.
 */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "closing.h"
#include "error.h"
#include "files.h"
#include "metadata.h"
#include "packet.h"
#include "ring.h"

/* Kept free so that the closing packets and the facts still fit when the disk is full: a block for each and some. */
#define RESERVE_BASE	(64U << 10)
#define RESERVE_CPU	(8U << 10)

/* A stretch of one CPU's packets in one file: the whole stream, or a piece of the ring. */
struct piece {
	__u64 number;
	__u64 bytes;
	__u64 events;
	__u64 last_end;
	struct piece *next;	/* of closed pieces, oldest first */
};

struct stream {
	__u32 cpu;
	int fd;
	char *path;
	struct piece current;
	struct piece *closed;
	__u64 bytes;		/* all pieces */
	bool any;
	__u64 first_begin;
	__u64 last_end;
	__u64 last_seq;		/* the module's number of the last packet */
	__u64 last_overwritten;
	/* Numbers in the file = the module's - base. */
	__u64 base_seq;
	__u64 base_lost;
	__u64 overwritten;	/* added to the discard counter */
	__u64 discarded;	/* of the last packet, as written */
};

/* A file that only grows by whole blocks of text or entries. */
struct appended {
	char *path;
	int fd;
	__u64 bytes;
};

struct output {
	char *dir;
	struct facts facts;
	struct output_options options;
	struct appended schema;
	struct appended metadata;
	unsigned int nr_classes;
	int progress_fd;
	struct stream *streams;
	unsigned int nr_streams;
	struct etw_writer_stats stats;
	bool finished;
};

static int append(struct appended *file, const void *buf, size_t len)
{
	int err = etw_write_all(file->fd, buf, len);

	if (!err && fdatasync(file->fd))
		err = -errno;
	if (err) {
		/* Back to the last whole block. */
		if (ftruncate(file->fd, file->bytes) || lseek(file->fd, file->bytes, SEEK_SET) < 0)
			return etw_error_errno(-errno, "%s", file->path);
		return etw_error_errno(err, "%s", file->path);
	}
	file->bytes += len;
	return 0;
}

static int append_open(struct appended *file, const char *dir, const char *name)
{
	file->path = etw_path(dir, name);
	if (!file->path)
		return etw_error_errno(-ENOMEM, "%s", dir);
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return file->fd < 0 ? etw_error_errno(-errno, "%s", file->path) : 0;
}

static int reserve_make(const struct output *o)
{
	char *path = etw_path(o->dir, FILE_RESERVE);
	int fd, err;

	if (!path)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	err = fd < 0 ? errno : posix_fallocate(fd, 0, RESERVE_BASE + o->options.nr_cpus * RESERVE_CPU);
	if (fd >= 0)
		close(fd);
	if (err)
		etw_error_errno(-err, "%s", path);
	free(path);
	return -err;
}

static void reserve_drop(const struct output *o)
{
	char *path = etw_path(o->dir, FILE_RESERVE);

	if (path)
		unlink(path);
	free(path);
}

static int facts_write(struct output *o)
{
	char *text = etw_facts_print(&o->facts);
	int err;

	if (!text)
		return etw_error_errno(-ENOMEM, "%s/" FILE_FACTS, o->dir);
	err = etw_replace_file(o->dir, FILE_FACTS, text, strlen(text));
	free(text);
	return err;
}

static int metadata_begin(struct output *o)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return etw_error_errno(-errno, "%s", o->metadata.path);
	etw_metadata_begin(out, &o->facts);
	err = fclose(out) ? etw_error_errno(-ENOMEM, "%s", o->metadata.path) : append(&o->metadata, text, len);
	free(text);
	return err;
}

static int make_dir(const char *path)
{
	struct dirent *entry;
	int found = 0;
	DIR *d;

	if (!mkdir(path, 0777))
		return 0;
	if (errno != EEXIST)
		return etw_error_errno(-errno, "%s", path);
	d = opendir(path);
	while (d && (entry = readdir(d)))
		found |= strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (d)
		closedir(d);
	if (!d || found)
		return etw_error(-EEXIST, "%s exists and is not an empty directory: give another one or remove it",
				 path);
	return 0;
}

static int make_sub_dir(const struct output *o, const char *name)
{
	char *path = etw_path(o->dir, name);
	int err = !path ? -ENOMEM : mkdir(path, 0777) ? -errno : 0;

	if (err)
		etw_error_errno(err, "%s/%s", o->dir, name);
	free(path);
	return err;
}

static int progress_make(struct output *o)
{
	struct progress progress = { .magic = PROGRESS_MAGIC };
	char *path = etw_path(o->dir, FILE_PROGRESS);
	int err = 0;

	if (!path)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	o->progress_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (o->progress_fd < 0 || flock(o->progress_fd, LOCK_EX | LOCK_NB))
		err = -errno;
	else
		err = etw_write_all(o->progress_fd, &progress, sizeof(progress));
	if (err)
		etw_error_errno(err, "%s", path);
	free(path);
	return err;
}

int etw_output_create(const char *dir, const struct facts *facts, const struct output_options *options,
		      struct output **output)
{
	struct output *o;
	char *parent;
	int err;

	if (options->circular && !options->max_size)
		return etw_error(-EINVAL, "%s: circular mode needs a maximum size", dir);
	if (options->circular && options->max_size < 4ULL * facts->subbuf_size * options->nr_cpus)
		return etw_error(-EINVAL,
				 "%s: circular mode needs at least four sub-buffers for each CPU: %llu bytes here",
				 dir, 4ULL * facts->subbuf_size * options->nr_cpus);
	o = calloc(1, sizeof(*o));
	if (!o || !(o->dir = strdup(dir))) {
		free(o);
		return etw_error_errno(-ENOMEM, "%s", dir);
	}
	o->facts = *facts;
	o->facts.providers = NULL;
	o->facts.nr_providers = 0;
	o->facts.cpus = NULL;
	o->facts.nr_cpus = 0;
	o->facts.command = facts->command ? strdup(facts->command) : NULL;
	o->facts.circular = options->circular;
	o->options = *options;
	o->schema.fd = o->metadata.fd = o->progress_fd = -1;
	err = make_dir(dir);
	if (!err)
		err = progress_make(o);
	if (!err)
		err = make_sub_dir(o, FILE_KERNEL);
	if (!err && options->circular)
		err = make_sub_dir(o, FILE_RING);
	if (!err)
		err = reserve_make(o);
	if (!err)
		err = append_open(&o->schema, dir, FILE_SCHEMA);
	if (!err)
		err = append_open(&o->metadata, dir, FILE_METADATA);
	if (!err)
		err = metadata_begin(o);
	if (!err)
		err = facts_write(o);
	/* The names of the new files must survive a power cut too. */
	parent = etw_path(dir, FILE_KERNEL);
	if (!err && parent)
		etw_sync_dir(parent);
	free(parent);
	parent = etw_path(dir, "..");
	if (!err && parent)
		etw_sync_dir(parent);
	free(parent);
	if (err) {
		etw_output_free(o);
		return err;
	}
	*output = o;
	return 0;
}

struct facts *etw_output_facts(struct output *output)
{
	return &output->facts;
}

int etw_output_classes(struct output *o, const struct etw_classes *table, unsigned int nr)
{
	char *entries = NULL, *text = NULL;
	size_t entries_len = 0, text_len = 0;
	FILE *schema, *metadata;
	unsigned int i;
	int err;

	if (nr <= o->nr_classes)
		return 0;
	if (nr > etw_classes_count(table))
		return etw_error(-EBADMSG, "session %s: a packet needs %u event classes, its table has %u",
				 o->facts.name, nr, etw_classes_count(table));
	schema = open_memstream(&entries, &entries_len);
	metadata = open_memstream(&text, &text_len);
	if (!schema || !metadata)
		goto no_memory;
	for (i = o->nr_classes; i < nr; i++) {
		const struct etw_class *cls = etw_classes_get(table, i);

		fwrite(cls->schema, 1, cls->schema->size, schema);
		etw_metadata_event(metadata, cls, i);
	}
	err = fclose(schema);
	schema = NULL;
	err |= fclose(metadata);
	metadata = NULL;
	if (err)
		goto no_memory;
	/* The schema first: metadata can be made again from it. */
	err = append(&o->schema, entries, entries_len);
	if (!err)
		err = append(&o->metadata, text, text_len);
	if (!err)
		o->nr_classes = nr;
	free(entries);
	free(text);
	return err;
no_memory:
	if (schema)
		fclose(schema);
	if (metadata)
		fclose(metadata);
	free(entries);
	free(text);
	return etw_error_errno(-ENOMEM, "%s", o->metadata.path);
}

static int stream_file(struct output *o, struct stream *s)
{
	free(s->path);
	s->path = NULL;
	if (o->options.circular)
		s->path = etw_ring_path(o->dir, s->cpu, s->current.number);
	else if (asprintf(&s->path, "%s/" FILE_KERNEL "/chan_%u", o->dir, s->cpu) < 0)
		s->path = NULL;
	if (!s->path)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	s->fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return s->fd < 0 ? etw_error_errno(-errno, "%s", s->path) : 0;
}

static struct stream *stream_get(struct output *o, __u32 cpu)
{
	unsigned int i;
	void *mem;

	for (i = 0; i < o->nr_streams; i++)
		if (o->streams[i].cpu == cpu)
			return &o->streams[i];
	mem = realloc(o->streams, (o->nr_streams + 1) * sizeof(*o->streams));
	if (!mem) {
		etw_error_errno(-ENOMEM, "%s", o->dir);
		return NULL;
	}
	o->streams = mem;
	memset(&o->streams[i], 0, sizeof(o->streams[i]));
	o->streams[i].cpu = cpu;
	if (stream_file(o, &o->streams[i]))
		return NULL;
	o->nr_streams++;
	return &o->streams[i];
}

int etw_output_cpu(struct output *o, __u32 cpu)
{
	errno = 0;
	return stream_get(o, cpu) ? 0 : errno ? -errno : -ENOMEM;
}

/* ---- circular mode ---- */

static int piece_close(struct output *o, struct stream *s)
{
	struct piece *p = malloc(sizeof(*p)), **end = &s->closed;

	if (!p)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	*p = s->current;
	p->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = p;
	close(s->fd);
	s->fd = -1;
	s->current = (struct piece){ .number = p->number + 1 };
	return stream_file(o, s);
}

static int piece_drop(struct output *o, struct stream *s)
{
	struct piece *p = s->closed;
	char *path = etw_ring_path(o->dir, s->cpu, p->number);
	int err = !path ? -ENOMEM : unlink(path) ? -errno : 0;

	if (err)
		etw_error_errno(err, "%s", path ? path : o->dir);
	free(path);
	s->closed = p->next;
	s->bytes -= p->bytes;
	o->stats.bytes -= p->bytes;
	o->stats.dropped_bytes += p->bytes;
	o->stats.dropped_events += p->events;
	free(p);
	return err;
}

/* Give up the oldest piece, and of the other CPUs what is older still, so that all begin at about the same time. */
static int ring_drop_oldest(struct output *o)
{
	struct stream *oldest = NULL;
	unsigned int i;
	__u64 end;
	int err;

	for (i = 0; i < o->nr_streams; i++) {
		struct stream *s = &o->streams[i];

		if (s->closed && (!oldest || s->closed->last_end < oldest->closed->last_end))
			oldest = s;
	}
	if (!oldest)
		return 0;
	end = oldest->closed->last_end;
	for (i = 0; i < o->nr_streams; i++) {
		struct stream *s = &o->streams[i];

		if (s->current.bytes && s->current.last_end <= end) {
			err = piece_close(o, s);
			if (err)
				return err;
		}
		while (s->closed && s->closed->last_end <= end) {
			err = piece_drop(o, s);
			if (err)
				return err;
		}
	}
	return 1;
}

static int ring_make_room(struct output *o, struct stream *s, size_t size)
{
	__u64 piece = o->options.max_size / (4 * o->options.nr_cpus);
	int ret = 0;

	if (s->current.bytes && s->current.bytes + size > piece)
		ret = piece_close(o, s);
	while (ret >= 0 && o->stats.bytes + size > o->options.max_size) {
		ret = ring_drop_oldest(o);
		if (!ret)
			break;
	}
	return ret < 0 ? ret : 0;
}

/* ---- packets ---- */

int etw_output_packet(struct output *o, __u32 cpu, const void *bytes, size_t size, __u32 records, __u64 overwritten)
{
	struct etw_packet_header header;
	struct packet packet;
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (char *)bytes + sizeof(header), size - sizeof(header) },
	};
	struct stream *s = stream_get(o, cpu);
	const char *what;
	__u64 lost;
	ssize_t n;
	int err;

	if (!s)
		return -errno;
	what = etw_packet_parse(bytes, size, o->facts.uuid, &packet);
	if (what || packet.size != size)
		return etw_error(-EBADMSG, "session %s: the packet of CPU %u is malformed: %s", o->facts.name, cpu,
				 what ? what : "its size is not the one announced");
	if (o->options.circular) {
		err = ring_make_room(o, s, size);
		if (err)
			return err;
	}
	if (!s->any) {
		s->base_seq = packet.seq;
		/* What came before the first packet is not this trace's loss; the very first packet's own is. */
		s->base_lost = packet.seq ? packet.discarded : 0;
		s->first_begin = packet.begin;
	} else if (packet.seq != s->last_seq + 1 && overwritten > s->last_overwritten) {
		/* Some readers see lost packets only by this counter. */
		s->overwritten += overwritten - s->last_overwritten;
	}

	/* Times and counters never go back, whatever the module says: readers refuse the whole trace if they do. */
	memcpy(&header, bytes, sizeof(header));
	header.packet_seq_num = packet.seq - s->base_seq;
	lost = packet.discarded - s->base_lost + s->overwritten;
	header.events_discarded = lost > s->discarded ? lost : s->discarded;
	if (s->any && header.timestamp_begin < s->last_end)
		header.timestamp_begin = s->last_end;
	if (header.timestamp_end < header.timestamp_begin)
		header.timestamp_end = header.timestamp_begin;
	header.cpu_id = cpu;

	do {
		n = pwritev(s->fd, iov, 2, s->current.bytes);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size) {
		err = n < 0 ? -errno : -ENOSPC;
		if (ftruncate(s->fd, s->current.bytes))
			err = -errno;
		if (err == -ENOSPC || err == -EDQUOT)
			return etw_error(err, "%s: the disk is full; what was written before is a whole trace",
					 s->path);
		return etw_error_errno(err, "%s", s->path);
	}
	o->stats.lost += header.events_discarded - s->discarded;
	o->stats.bytes += size;
	o->stats.events += records;
	o->stats.packets++;
	s->any = true;
	s->discarded = header.events_discarded;
	s->last_end = header.timestamp_end;
	s->last_seq = packet.seq;
	s->last_overwritten = overwritten;
	s->bytes += size;
	s->current.bytes += size;
	s->current.events += records;
	s->current.last_end = header.timestamp_end;
	return 0;
}

void etw_output_progress(struct output *o, __u64 complete_up_to)
{
	struct progress progress = {
		.magic = PROGRESS_MAGIC,
		.complete_up_to = complete_up_to,
		.bytes = o->stats.bytes + o->stats.dropped_bytes,
	};

	/* Only followers read this; a recording does not fail for them. */
	if (pwrite(o->progress_fd, &progress, sizeof(progress), 0) != sizeof(progress))
		return;
}

/* ---- the end ---- */

static int stream_closing(const struct output *o, const struct stream *s, const struct output_cpu *cpu,
			  struct closing *c)
{
	char *path;

	if (asprintf(&path, "%s/" FILE_KERNEL "/chan_%u", o->dir, s->cpu) < 0)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	*c = (struct closing){
		.path = path, .cpu = s->cpu, .any = s->any, .bytes = s->bytes, .first_begin = s->first_begin,
		.last_end = s->last_end, .discarded = s->discarded, .final_discarded = s->discarded,
		.next_seq = s->any ? s->last_seq + 1 - s->base_seq : 0,
	};
	c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (c->fd < 0)
		return etw_error_errno(-errno, "%s", path);
	if (cpu && s->any) {
		__u64 final = cpu->lost - s->base_lost + s->overwritten + cpu->unread;

		if (final > s->discarded)
			c->final_discarded = final;
		if (cpu->unread && cpu->next_seq > s->last_seq + 1)
			c->next_seq = cpu->next_seq - s->base_seq;
	} else if (cpu && !o->facts.snapshot) {
		c->final_discarded = cpu->lost + cpu->unread;
	}
	if (o->options.circular) {
		/* The file was put together from pieces: its packets tell. */
		struct packet packet;
		__u8 header[PACKET_HEADER_SIZE];
		__u64 at = 0, lost_after = c->final_discarded - s->discarded, packets_after = c->next_seq;

		packets_after -= s->any ? s->last_seq + 1 - s->base_seq : 0;
		c->any = false;
		c->discarded = c->next_seq = 0;
		while (pread(c->fd, header, sizeof(header), at) == sizeof(header)) {
			const char *what = etw_packet_parse(header, sizeof(header), o->facts.uuid, &packet);

			if (what && !etw_packet_is_cut(what))
				return etw_error(-EBADMSG, "%s: %s", path, what);
			if (!c->any)
				c->first_begin = packet.begin;
			c->any = true;
			c->last_end = packet.end;
			c->next_seq = packet.seq + 1;
			c->discarded = packet.discarded;
			at += packet.size;
		}
		c->bytes = at;
		c->final_discarded = c->discarded + lost_after;
		c->next_seq += packets_after;
	}
	return 0;
}

static int streams_finish(struct output *o, __u64 *stop, const struct output_cpu *cpus, unsigned int nr)
{
	struct closing *closings = calloc(o->nr_streams + 1, sizeof(*closings));
	unsigned int i, k, open = 0;
	int err = 0, ret;

	if (!closings)
		return etw_error_errno(-ENOMEM, "%s", o->dir);
	for (i = 0; i < o->nr_streams; i++) {
		const struct output_cpu *cpu = NULL;

		for (k = 0; k < nr; k++)
			if (cpus[k].cpu == o->streams[i].cpu)
				cpu = &cpus[k];
		ret = stream_closing(o, &o->streams[i], cpu, &closings[open]);
		if (ret) {
			free((char *)closings[open].path);
			if (closings[open].path && closings[open].fd >= 0)
				close(closings[open].fd);
			err = err ? err : ret;
			continue;
		}
		o->stats.lost += closings[open].final_discarded - closings[open].discarded;
		open++;
	}
	ret = etw_close_streams(closings, open, o->facts.uuid, o->facts.start, stop, NULL);
	err = err ? err : ret;
	for (i = 0; i < open; i++) {
		if (fdatasync(closings[i].fd) && !err)
			err = etw_error_errno(-errno, "%s", closings[i].path);
		close(closings[i].fd);
		free((char *)closings[i].path);
	}
	free(closings);
	return err;
}

static void facts_cpus(struct output *o)
{
	unsigned int i;

	free(o->facts.cpus);
	o->facts.cpus = calloc(o->nr_streams + 1, sizeof(*o->facts.cpus));
	for (i = 0; o->facts.cpus && i < o->nr_streams; i++)
		o->facts.cpus[o->facts.nr_cpus++] = o->streams[i].cpu;
}

static void facts_schema(struct output *o)
{
	size_t len;
	char *bytes;

	if (etw_read_file(o->schema.path, &bytes, &len))
		return;
	etw_digest(bytes, len, o->facts.schema_digest);
	free(bytes);
}

int etw_output_finish(struct output *o, __u64 stop, const struct output_cpu *cpus, unsigned int nr)
{
	char *path;
	int err = 0, ret;

	for (ret = 0; (unsigned int)ret < nr; ret++) {
		int made = etw_output_cpu(o, cpus[ret].cpu);

		err = err ? err : made;
	}
	reserve_drop(o);
	if (o->options.circular) {
		ret = etw_ring_assemble(o->dir, o->facts.uuid, NULL);
		err = err ? err : ret;
	}
	/* Without all pieces in place the streams are not complete, and repair must still see that. */
	if (!err || !o->options.circular) {
		ret = streams_finish(o, &stop, cpus, nr);
		err = err ? err : ret;
		o->facts.stop = stop;
		o->facts.finished = true;
		facts_cpus(o);
		facts_schema(o);
	}
	ret = facts_write(o);
	err = err ? err : ret;
	path = etw_path(o->dir, FILE_PROGRESS);
	etw_output_progress(o, ~0ULL);
	if (path)
		unlink(path);
	free(path);
	path = etw_path(o->dir, FILE_KERNEL);
	if (path)
		etw_sync_dir(path);
	free(path);
	o->finished = true;
	return err;
}

void etw_output_stats(const struct output *o, struct etw_writer_stats *stats)
{
	*stats = o->stats;
}

void etw_output_free(struct output *o)
{
	unsigned int i;

	if (!o)
		return;
	for (i = 0; i < o->nr_streams; i++) {
		struct stream *s = &o->streams[i];

		if (s->fd >= 0)
			close(s->fd);
		free(s->path);
		while (s->closed) {
			struct piece *p = s->closed;

			s->closed = p->next;
			free(p);
		}
	}
	free(o->streams);
	if (o->schema.fd >= 0)
		close(o->schema.fd);
	if (o->metadata.fd >= 0)
		close(o->metadata.fd);
	if (o->progress_fd >= 0)
		close(o->progress_fd);
	free(o->schema.path);
	free(o->metadata.path);
	etw_facts_free(&o->facts);
	free(o->dir);
	free(o);
}
