// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Makes a damaged or unfinished trace directory one that other tools read: whole packets that follow each other,
 * records that their classes describe, closed streams, true metadata. It keeps everything that is sound, and must not
 * know how a consumer reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <etw/etw.h>

#include "class.h"
#include "closing.h"
#include "error.h"
#include "files.h"
#include "metadata.h"
#include "record.h"
#include "ring.h"
#include "scan.h"
#include "tracedir.h"

#define FILE_REMOVED "removed"

struct repair {
	struct tracedir dir;
	struct etw_classes *classes;
	void (*report)(void *arg, const struct etw_damage *damage);
	void *arg;
	int changes;
};

__attribute__((format(printf, 6, 7))) static void tell(struct repair *r, __u32 cpu, const char *file, __u64 offset,
						       __u64 bytes, const char *fmt, ...)
{
	struct etw_damage damage = { .cpu = cpu, .file = file, .offset = offset, .bytes = bytes };
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	damage.what = text;
	r->changes++;
	if (r->report)
		r->report(r->arg, &damage);
}

static void ignore_dir(void *arg, const char *file, __u64 offset, __u64 bytes, const char *what)
{
	(void)arg, (void)file, (void)offset, (void)bytes, (void)what;
}

/* ---- one stream ---- */

/* What a scan found wrong with a stream. */
struct stream_state {
	struct repair *repair;
	const char *path;
	__u32 cpu;
	bool damaged;
};

static void stream_report(void *arg, __u64 offset, __u64 bytes, const char *what)
{
	struct stream_state *s = arg;

	s->damaged = true;
	tell(s->repair, s->cpu, s->path, offset, bytes, "%s", what);
}

/* The bytes of the packet that hold sound records, header included. */
static __u32 records_good(const struct repair *r, const __u8 *bytes, const struct packet *packet, const char **what,
			  __u64 *last_time)
{
	static __thread __u32 offsets[ETW_MAX_FIELDS + 1];
	__u64 last = packet->begin;
	__u32 at = PACKET_HEADER_SIZE;

	*what = NULL;
	*last_time = packet->begin;
	while (at < packet->content) {
		const struct etw_class *cls;
		struct record record;
		size_t room = packet->content - at;
		unsigned int head = record_head(bytes + at, room, last, &record), bad;
		long size;

		if (!head) {
			*what = "a record is cut off";
			break;
		}
		cls = etw_classes_get(r->classes, record.id);
		if (!cls) {
			*what = "a record is of a class that the schema does not have";
			break;
		}
		size = etw_class_walk(cls, bytes + at + head, room - head, offsets, &bad);
		if (size < 0) {
			*what = "a record is cut off or its length is wrong";
			break;
		}
		if (record.time < last || record.time > packet->end) {
			*what = "the time of a record lies outside its packet or before the record in front of it";
			break;
		}
		*last_time = last = record.time;
		at += head + size;
	}
	return at;
}

/* Write a stream anew from its sound packets. */
static int stream_rewrite(const char *path, const __u8 *bytes, struct scan *scan)
{
	const char *slash = strrchr(path, '/');
	char *tmp;
	size_t i;
	int err, fd;

	if (asprintf(&tmp, "%.*s/.%s.new", (int)(slash - path), path, slash + 1) < 0)
		return etw_error_errno(-ENOMEM, "%s", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	err = fd < 0 ? -errno : 0;
	for (i = 0; !err && i < scan->nr; i++)
		err = etw_write_all(fd, bytes + scan->packets[i].offset, scan->packets[i].packet.size);
	if (!err && fsync(fd))
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (!err && rename(tmp, path))
		err = -errno;
	if (err) {
		if (fd >= 0)
			unlink(tmp);
		etw_error_errno(err, "%s", tmp);
	}
	free(tmp);
	return err;
}

/*
 * A number so high that those of the packets behind it, and of the one that closes the stream, cannot follow is none: the
 * one before the next packet's takes its place.
 */
static void seq_mend(struct scan *scan, size_t i)
{
	const __u64 highest = ~0ULL - (scan->nr - i);
	struct packet *packet = &scan->packets[i].packet;

	if (packet->seq <= highest)
		return;
	packet->seq = 0;
	if (i + 1 < scan->nr && scan->packets[i + 1].packet.seq && scan->packets[i + 1].packet.seq <= highest)
		packet->seq = scan->packets[i + 1].packet.seq - 1;
}

/* Headers that follow from each other, whatever they said; content that ends with a sound record. */
static int headers_mend(struct repair *r, const struct stream_file *file, int fd, const __u8 *bytes, struct scan *scan)
{
	const struct packet *before = NULL;
	__u64 at = 0;
	size_t i;

	for (i = 0; i < scan->nr; i++) {
		const __u8 *raw = bytes + scan->packets[i].offset;
		struct packet *packet = &scan->packets[i].packet;
		struct etw_packet_header header, old;
		const char *what;
		__u64 last;
		__u32 good;

		memcpy(&old, raw, sizeof(old));
		seq_mend(scan, i);
		if (i + 1 < scan->nr && packet->end > scan->packets[i + 1].packet.begin) {
			/* One of the two is wrong; if the records allow it, it is this one's end. */
			records_good(r, raw, packet, &what, &last);
			if (!what && last <= scan->packets[i + 1].packet.begin)
				packet->end = scan->packets[i + 1].packet.begin;
		}
		if (before) {
			if (packet->begin < before->end)
				packet->begin = before->end;
			if (packet->end < packet->begin)
				packet->end = packet->begin;
			if (packet->seq <= before->seq)
				packet->seq = before->seq + 1;
			if (packet->discarded < before->discarded)
				packet->discarded = before->discarded;
		}
		good = records_good(r, raw, packet, &what, &last);
		if (what) {
			tell(r, file->cpu, file->path, at + good, packet->content - good,
			     "%s: the rest of this packet is given up", what);
			packet->content = good;
		}
		packet->cpu = file->cpu;
		header = old;
		header.timestamp_begin = packet->begin;
		header.timestamp_end = packet->end;
		header.content_size = packet->content * 8ULL;
		header.packet_size = packet->size * 8ULL;
		header.packet_seq_num = packet->seq;
		header.events_discarded = packet->discarded;
		header.cpu_id = packet->cpu;
		if (memcmp(&header, &old, sizeof(header)) && pwrite(fd, &header, sizeof(header), at) != sizeof(header))
			return etw_error_errno(-errno, "%s", file->path);
		at += packet->size;
		before = packet;
	}
	return 0;
}

static int remove_file(struct repair *r, const char *path, const char *what)
{
	char *dir = etw_path(r->dir.dir, FILE_REMOVED), *to = NULL;
	int err = -ENOMEM;

	if (dir && (!mkdir(dir, 0777) || errno == EEXIST) && (to = etw_path(dir, strrchr(path, '/') + 1)))
		err = rename(path, to) ? -errno : 0;
	if (err)
		etw_error_errno(err, "%s", path);
	else
		tell(r, ~0U, path, 0, 0, "%s: moved to %s", what, to);
	free(to);
	free(dir);
	return err;
}

/* One stream file: what is left of it is described in *c, which keeps it open. */
static int stream_mend(struct repair *r, const struct stream_file *file, struct closing *c)
{
	struct stream_state state = { .repair = r, .path = file->path, .cpu = file->cpu };
	struct scan scan = { .nr = 0 };
	__u8 *bytes = NULL;
	struct stat st;
	bool gaps = false;
	__u64 total = 0;
	size_t i;
	int err = 0;

	*c = (struct closing){ .path = file->path, .cpu = file->cpu };
	c->fd = open(file->path, O_RDWR | O_CLOEXEC);
	if (c->fd < 0 || fstat(c->fd, &st))
		return etw_error_errno(-errno, "%s", file->path);
	if (!st.st_size)
		return 0;
	bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, c->fd, 0);
	if (bytes == MAP_FAILED)
		return etw_error_errno(-errno, "%s", file->path);
	err = etw_scan(bytes, st.st_size, r->dir.facts.uuid, file->cpu, stream_report, &state, &scan);
	for (i = 0; i < scan.nr; i++) {
		gaps |= scan.packets[i].offset != total;
		total += scan.packets[i].packet.size;
	}
	if (!err && gaps) {
		err = stream_rewrite(file->path, bytes, &scan);
		close(c->fd);
		c->fd = open(file->path, O_RDWR | O_CLOEXEC);
		if (!err && c->fd < 0)
			err = etw_error_errno(-errno, "%s", file->path);
	}
	if (!err)
		err = headers_mend(r, file, c->fd, bytes, &scan);
	munmap(bytes, st.st_size);
	if (!err && !gaps && total < (__u64)st.st_size && ftruncate(c->fd, total))
		err = etw_error_errno(-errno, "%s", file->path);
	if (!err && scan.nr) {
		const struct packet *last = &scan.packets[scan.nr - 1].packet;

		c->any = true;
		c->bytes = total;
		c->first_begin = scan.packets[0].packet.begin;
		c->last_end = last->end;
		c->next_seq = last->seq + 1;
		c->discarded = c->final_discarded = last->discarded;
	}
	etw_scan_free(&scan);
	return err;
}

/* ---- the directory ---- */

/* Streams that the facts name and the directory lacks. */
static int streams_missing(struct repair *r)
{
	__u32 i;
	unsigned int k;

	for (i = 0; i < r->dir.facts.nr_cpus; i++) {
		char *path;
		void *mem;
		int fd;

		for (k = 0; k < r->dir.nr_streams && r->dir.streams[k].cpu != r->dir.facts.cpus[i]; k++)
			;
		if (k < r->dir.nr_streams)
			continue;
		mem = realloc(r->dir.streams, (r->dir.nr_streams + 1) * sizeof(*r->dir.streams));
		if (!mem || asprintf(&path, "%s/" FILE_KERNEL "/chan_%u", r->dir.dir, r->dir.facts.cpus[i]) < 0)
			return etw_error_errno(-ENOMEM, "%s", r->dir.dir);
		r->dir.streams = mem;
		r->dir.streams[r->dir.nr_streams++] = (struct stream_file){ .cpu = r->dir.facts.cpus[i], .path = path };
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			return etw_error_errno(-errno, "%s", path);
		close(fd);
		tell(r, r->dir.facts.cpus[i], path, 0, 0,
		     "the stream of CPU %u is missing: an empty one takes its place", r->dir.facts.cpus[i]);
	}
	return 0;
}

static int streams_mend(struct repair *r)
{
	struct closing *closings = calloc(r->dir.nr_streams + 1, sizeof(*closings));
	unsigned int i, nr = 0, closed = 0;
	__u64 stop = r->dir.facts.finished ? r->dir.facts.stop : 0;
	int err = 0;

	if (!closings)
		return etw_error_errno(-ENOMEM, "%s", r->dir.dir);
	for (i = 0; !err && i < r->dir.nr_streams; i++) {
		const struct stream_file *file = &r->dir.streams[i];

		err = stream_mend(r, file, &closings[nr++]);
	}
	if (!err && stop < r->dir.facts.start)
		stop = r->dir.facts.start;
	if (!err)
		err = etw_close_streams(closings, nr, r->dir.facts.uuid, r->dir.facts.start, &stop, &closed);
	if (!err && closed)
		tell(r, ~0U, r->dir.dir, 0, 0, "%u stream%s closed, so that all span the same time", closed,
		     closed == 1 ? " was" : "s were");
	for (i = 0; i < nr; i++) {
		if (closings[i].fd < 0)
			continue;
		if (!err && fdatasync(closings[i].fd))
			err = etw_error_errno(-errno, "%s", closings[i].path);
		close(closings[i].fd);
	}
	r->dir.facts.stop = stop;
	free(closings);
	return err;
}

static int foreign_remove(struct repair *r, const char *path, bool *removed)
{
	struct stat st;
	__u8 *bytes;
	struct packet packet;
	struct scan scan = { .nr = 0 };
	struct stream_state state = { .repair = r };
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct repair quiet = { .changes = 0 };

	*removed = false;
	if (fd < 0 || fstat(fd, &st) || !st.st_size) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return etw_error_errno(-errno, "%s", path);
	state.repair = &quiet;
	state.path = path;
	/* A file that is only cut in its first packet is ours. */
	if (!etw_packet_is_cut(etw_packet_parse(bytes, st.st_size, r->dir.facts.uuid, &packet))) {
		err = etw_scan(bytes, st.st_size, r->dir.facts.uuid, 0, stream_report, &state, &scan);
		*removed = !err && !scan.nr;
	}
	munmap(bytes, st.st_size);
	etw_scan_free(&scan);
	return *removed ? remove_file(r, path, "no packet of this trace is in it") : err;
}

/* The names that tracedir reports as foreign come through its callback. */
struct foreign {
	struct repair *repair;
	int err;
};

static void foreign_report(void *arg, const char *file, __u64 offset, __u64 bytes, const char *what)
{
	struct foreign *f = arg;
	const char *name = strrchr(file, '/');

	(void)offset, (void)bytes;
	if (!f->err && name && !strncmp(what, "this does not belong", 20))
		f->err = remove_file(f->repair, file, what);
}

static int schema_mend(struct repair *r)
{
	char *path = etw_path(r->dir.dir, FILE_SCHEMA);
	const char *what;
	size_t good = etw_tracedir_schema_good(&r->dir, &what);
	int ret;

	if (!path)
		return etw_error_errno(-ENOMEM, "%s", r->dir.dir);
	if (good < r->dir.schema_len) {
		char text[200];

		snprintf(text, sizeof(text), "%s", what);
		tell(r, ~0U, path, good, r->dir.schema_len - good, "%s: it is cut here", text);
		if (truncate(path, good)) {
			ret = etw_error_errno(-errno, "%s", path);
			free(path);
			return ret;
		}
		r->dir.schema_len = good;
	}
	free(path);
	ret = etw_classes_add(r->classes, r->dir.schema, good);
	return ret < 0 ? ret : 0;
}

static int metadata_mend(struct repair *r)
{
	struct facts said = { .name = "" };
	size_t len = 0;
	char *text;
	bool cut;
	int err = 0;

	/* Who wrote a healthy trace stays; a word that one of the files contradicts does not. */
	if (r->dir.metadata)
		etw_metadata_facts(r->dir.metadata, &said);
	if (said.writer[0] && strcmp(said.writer, r->dir.facts.writer)) {
		tell(r, ~0U, FILE_FACTS, 0, 0, "it names another writer than the metadata: both were made again");
		snprintf(r->dir.facts.writer, sizeof(r->dir.facts.writer), "%s", etw_library_version());
	}
	if (!r->dir.facts.writer[0])
		snprintf(r->dir.facts.writer, sizeof(r->dir.facts.writer), "%s", etw_library_version());
	text = etw_tracedir_metadata(&r->dir, r->dir.schema_len, &len);
	if (!text)
		return etw_error_errno(-ENOMEM, "%s/" FILE_METADATA, r->dir.dir);
	/* Another version may have printed otherwise, but would not have stopped halfway. */
	cut = !r->dir.metadata || (r->dir.metadata_len < len && !memcmp(text, r->dir.metadata, r->dir.metadata_len));
	if (cut || (!strcmp(r->dir.facts.writer, etw_library_version()) &&
		    (len != r->dir.metadata_len || memcmp(text, r->dir.metadata, len)))) {
		err = etw_replace_file(r->dir.dir, FILE_METADATA, text, len);
		if (!err)
			tell(r, ~0U, FILE_METADATA, 0, 0, "the metadata was made again from the schema");
	}
	free(text);
	return err;
}

static int facts_mend(struct repair *r)
{
	struct facts *facts = &r->dir.facts;
	bool was_finished = facts->finished && !r->dir.facts_missing;
	unsigned int i;
	char *text;
	int err;

	if (was_finished && !r->changes)
		return 0;
	free(facts->cpus);
	facts->nr_cpus = 0;
	facts->cpus = calloc(r->dir.nr_streams + 1, sizeof(*facts->cpus));
	for (i = 0; facts->cpus && i < r->dir.nr_streams; i++)
		facts->cpus[facts->nr_cpus++] = r->dir.streams[i].cpu;
	etw_digest(r->dir.schema, r->dir.schema_len, facts->schema_digest);
	facts->finished = true;
	text = etw_facts_print(facts);
	if (!text)
		return etw_error_errno(-ENOMEM, "%s/" FILE_FACTS, r->dir.dir);
	err = etw_replace_file(r->dir.dir, FILE_FACTS, text, strlen(text));
	free(text);
	if (!err && !was_finished)
		tell(r, ~0U, FILE_FACTS, 0, 0,
		     r->dir.facts_missing ? "the facts of the trace were made again from what is left" :
					    "the trace is marked as ended");
	return err;
}

/* Files that only a writer at work needs. */
static void leftovers_remove(const struct repair *r)
{
	static const char *const names[] = {
		FILE_PROGRESS, FILE_RESERVE, FILE_KERNEL "/.metadata.new", "." FILE_FACTS ".new",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = etw_path(r->dir.dir, names[i]);

		if (path)
			unlink(path);
		free(path);
	}
}

static int directory_open(struct repair *r, const char *root)
{
	unsigned int pieces = 0, i;
	struct foreign foreign = { .repair = r };
	int err = etw_tracedir_open(&r->dir, root, ignore_dir, NULL);

	if (err)
		return err;
	for (i = 0; i < r->dir.nr_streams && !r->dir.streams[i].piece; i++)
		;
	if (i < r->dir.nr_streams || r->dir.facts.circular) {
		err = etw_ring_assemble(r->dir.dir, r->dir.facts.uuid, &pieces);
		if (err)
			return err;
		if (pieces)
			tell(r, ~0U, FILE_RING, 0, 0, "%u piece%s of the ring put together", pieces,
			     pieces == 1 ? " was" : "s were");
	}
	/* Look again, at what is there now. */
	etw_tracedir_close(&r->dir);
	err = etw_tracedir_open(&r->dir, root, foreign_report, &foreign);
	return err ? err : foreign.err;
}

int etw_trace_repair(const char *dir, void (*report)(void *arg, const struct etw_damage *damage), void *arg)
{
	struct repair r = { .report = report, .arg = arg };
	unsigned int i;
	char *root;
	int err;

	root = etw_tracedir_find(dir, &err);
	if (!root)
		return err;
	if (etw_tracedir_alive(root)) {
		free(root);
		return etw_error(-EBUSY, "%s is still being written: stop its session first", dir);
	}
	err = etw_classes_new(&r.classes);
	if (!err)
		err = directory_open(&r, root);
	/* With a wrong schema sound records would look damaged, and be cut off. */
	if (!err && r.dir.schema_changed)
		err = etw_error(-EBADMSG,
				"%s/" FILE_SCHEMA
				" is damaged and cannot be made again; nothing was changed. babeltrace2 reads "
				"%s/" FILE_KERNEL " by its metadata",
				root, root);
	if (!err)
		err = schema_mend(&r);
	for (i = 0; !err && i < r.dir.nr_streams;) {
		bool removed;

		err = foreign_remove(&r, r.dir.streams[i].path, &removed);
		if (!removed) {
			i++;
			continue;
		}
		free(r.dir.streams[i].path);
		r.dir.nr_streams--;
		memmove(&r.dir.streams[i], &r.dir.streams[i + 1], (r.dir.nr_streams - i) * sizeof(r.dir.streams[0]));
	}
	if (!err)
		err = streams_missing(&r);
	if (!err)
		err = streams_mend(&r);
	if (!err)
		err = metadata_mend(&r);
	if (!err)
		err = facts_mend(&r);
	if (!err)
		leftovers_remove(&r);
	etw_tracedir_close(&r.dir);
	etw_classes_free(r.classes);
	free(root);
	return err ? err : r.changes;
}
