// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What lies in a trace directory beside its streams: found, read and checked. It must not know packets. */
#include "tracedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "class.h"
#include "error.h"
#include "files.h"
#include "metadata.h"
#include "packet.h"
#include "ring.h"

static bool exists(const char *dir, const char *name)
{
	char *path = etw_path(dir, name);
	bool found = path && !access(path, F_OK);

	free(path);
	return found;
}

char *etw_tracedir_find(const char *dir, int *err)
{
	char *root;

	*err = 0;
	if (access(dir, R_OK)) {
		*err = etw_error_errno(-errno, "%s", dir);
		return NULL;
	}
	root = strdup(dir);
	while (root && strlen(root) > 1 && root[strlen(root) - 1] == '/')
		root[strlen(root) - 1] = 0;
	if (root && !exists(root, FILE_KERNEL) && !exists(root, FILE_SCHEMA) && exists(root, "../" FILE_SCHEMA)) {
		/* DIR/kernel was given. */
		char *parent = etw_path(root, "..");

		free(root);
		root = parent;
	}
	if (!root) {
		*err = etw_error_errno(-ENOMEM, "%s", dir);
		return NULL;
	}
	if (exists(root, FILE_SCHEMA))
		return root;
	if (exists(root, FILE_KERNEL) && exists(root, FILE_FACTS))
		*err = etw_error(-EBADMSG,
				 "%s/" FILE_SCHEMA
				 " is missing: without it the events cannot be decoded here; babeltrace2 may "
				 "still read %s/" FILE_KERNEL,
				 root, root);
	else if (exists(root, FILE_METADATA) || exists(root, "metadata"))
		*err = etw_error(-EBADMSG,
				 "%s is a CTF trace, but not one of ours (it has no file \"" FILE_SCHEMA
				 "\"): read it with babeltrace2",
				 dir);
	else
		*err = etw_error(-ENOENT, "%s holds no trace: give the directory that a recording was written to", dir);
	free(root);
	return NULL;
}

bool etw_tracedir_alive(const char *dir)
{
	char *path = etw_path(dir, FILE_PROGRESS);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool alive = false;

	free(path);
	if (fd < 0)
		return false;
	if (flock(fd, LOCK_SH | LOCK_NB))
		alive = errno == EWOULDBLOCK;
	close(fd);
	return alive;
}

/* ---- the streams ---- */

static int stream_add(struct tracedir *t, __u32 cpu, bool piece, char *path)
{
	void *mem = path ? realloc(t->streams, (t->nr_streams + 1) * sizeof(*t->streams)) : NULL;

	if (!mem) {
		free(path);
		return etw_error_errno(-ENOMEM, "%s", t->dir);
	}
	t->streams = mem;
	t->streams[t->nr_streams++] = (struct stream_file){ .cpu = cpu, .piece = piece, .path = path };
	return 0;
}

/* By CPU, the pieces of the ring last and in the order in which they were added. */
static int by_cpu(const void *a, const void *b)
{
	const struct stream_file *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->piece - y->piece;
}

static int streams_find(struct tracedir *t, tracedir_report report, void *arg)
{
	char *kernel = etw_path(t->dir, FILE_KERNEL);
	struct ring_piece *pieces;
	struct dirent *entry;
	int err = 0, nr, i;
	DIR *d;

	d = kernel ? opendir(kernel) : NULL;
	if (!d)
		report(arg, kernel ? kernel : t->dir, 0, 0, "the directory of the streams is missing");
	while (!err && d && (entry = readdir(d))) {
		char *path = etw_path(kernel, entry->d_name);
		long cpu = etw_stream_cpu(entry->d_name);
		struct stat st;

		if (!path || stat(path, &st)) {
			free(path);
			continue;
		}
		if (cpu >= 0 && S_ISREG(st.st_mode)) {
			err = stream_add(t, cpu, false, path);
			continue;
		}
		/* Other readers refuse a trace for these, or for what they hold. */
		if (strcmp(entry->d_name, "metadata") && entry->d_name[0] != '.')
			report(arg, path, 0, 0, "this does not belong to the trace");
		free(path);
	}
	if (d)
		closedir(d);
	free(kernel);
	nr = etw_ring_list(t->dir, &pieces);
	for (i = 0; !err && i < nr; i++) {
		err = stream_add(t, pieces[i].cpu, true, pieces[i].path);
		pieces[i].path = NULL;
	}
	if (nr >= 0)
		etw_ring_free(pieces, nr);
	if (!err && t->nr_streams) {
		/* qsort is not stable: give pieces their order by their place in the array. */
		unsigned int done, k;

		for (done = 1; done < t->nr_streams; done++) {
			struct stream_file moving = t->streams[done];

			for (k = done; k && by_cpu(&t->streams[k - 1], &moving) > 0; k--)
				t->streams[k] = t->streams[k - 1];
			t->streams[k] = moving;
		}
	}
	return err;
}

/* ---- schema, metadata, facts ---- */

size_t etw_tracedir_schema_good(const struct tracedir *t, const char **what)
{
	size_t good = 0, used;
	__u32 number = 0;

	*what = NULL;
	while (good < t->schema_len) {
		struct etw_class *cls;

		if (etw_class_parse(t->schema + good, t->schema_len - good, &used, &cls)) {
			*what = etw_last_error();
			break;
		}
		if (cls->class_id != number) {
			etw_error(-EBADMSG, "schema entry %u: number %u was expected", cls->class_id, number);
			*what = etw_last_error();
			etw_class_free(cls);
			break;
		}
		etw_class_free(cls);
		number++;
		good += used;
	}
	return good;
}

char *etw_tracedir_metadata(const struct tracedir *t, size_t len, size_t *out_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, out_len);
	size_t at = 0, used;
	__u32 id = 0;

	if (!out)
		return NULL;
	etw_metadata_begin(out, &t->facts);
	while (at < len) {
		struct etw_class *cls;

		if (etw_class_parse(t->schema + at, len - at, &used, &cls))
			break;
		etw_metadata_event(out, cls, id++);
		etw_class_free(cls);
		at += used;
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Once the trace is finished its digest tells; before, that a class is in the schema before it is in the metadata. */
static void schema_check(struct tracedir *t, tracedir_report report, void *arg)
{
	char digest[DIGEST_TEXT_SIZE], *path;

	if (!t->facts_missing && t->facts.finished) {
		etw_digest(t->schema, t->schema_len, digest);
		t->schema_changed = strcmp(digest, t->facts.schema_digest) != 0;
	} else if (t->metadata) {
		const char *p = t->metadata, *what;
		size_t at = 0, good = etw_tracedir_schema_good(t, &what);
		unsigned int blocks = 0, entries = 0;

		while ((p = strstr(p, "\nevent {\n"))) {
			blocks++;
			p++;
		}
		for (; at < good; entries++) {
			__u32 size;

			memcpy(&size, t->schema + at, sizeof(size));
			at += size;
		}
		t->schema_changed = blocks > entries;
	}
	path = etw_path(t->dir, FILE_SCHEMA);
	if (path && t->schema_changed)
		report(arg, path, 0, 0, "the schema is not as it was written: what is read by it may be wrong");
	free(path);
}

/* The metadata says again what schema and facts say, so each checks the others. */
static void metadata_check(const struct tracedir *t, const char *path, tracedir_report report, void *arg)
{
	struct facts said = { .name = "" };
	const char *what;
	size_t len = 0, same = 0;
	char *text;

	/* Another version may print otherwise (but would not stop halfway), and the two agree on which it was. */
	etw_metadata_facts(t->metadata, &said);
	if (said.writer[0] && strcmp(t->facts.writer, said.writer)) {
		report(arg, path, 0, 0,
		       "the metadata and \"" FILE_FACTS "\" are of different writers: one of them is damaged");
		return;
	}
	text = etw_tracedir_metadata(t, etw_tracedir_schema_good(t, &what), &len);
	if (!text)
		return;
	while (same < len && same < t->metadata_len && text[same] == t->metadata[same])
		same++;
	/* A writer that was killed, or is still at work, may be between the two files. */
	if (same < len && same == t->metadata_len && !t->facts.finished && t->alive)
		;
	else if (same < len && same == t->metadata_len)
		report(arg, path, same, len - same, "the metadata is cut off here");
	else if ((same < len || same < t->metadata_len) && !strcmp(t->facts.writer, etw_library_version()))
		report(arg, path, same, 0,
		       "from here on the metadata differs from what \"" FILE_SCHEMA "\" and \"" FILE_FACTS
		       "\" say: one of the three is damaged");
	free(text);
}

static void facts_read(struct tracedir *t, tracedir_report report, void *arg)
{
	char *path = etw_path(t->dir, FILE_FACTS), *text, what[160];
	const char *bad = NULL;
	size_t len;

	if (!path)
		return;
	if (etw_read_file(path, &text, &len)) {
		bad = "the facts of the trace are missing";
	} else {
		bad = etw_facts_parse(&t->facts, text, len);
		free(text);
		if (bad) {
			snprintf(what, sizeof(what), "the facts of the trace are damaged: %s", bad);
			bad = what;
		}
	}
	t->facts_missing = bad != NULL;
	if (bad) {
		report(arg, path, 0, 0, bad);
		etw_facts_free(&t->facts);
		memset(&t->facts, 0, sizeof(t->facts));
		if (t->metadata)
			etw_metadata_facts(t->metadata, &t->facts);
	} else if (!t->facts.finished && !t->alive) {
		report(arg, path, 0, 0, "the trace was not ended by its writer: its streams are not closed");
	}
	free(path);
}

/* Without session.json and metadata the uuid is that of the first packet found. */
static void uuid_guess(struct tracedir *t)
{
	static const __u8 none[16];
	unsigned int i;

	for (i = 0; i < t->nr_streams && !memcmp(t->facts.uuid, none, 16); i++) {
		struct packet packet;
		__u8 header[PACKET_HEADER_SIZE];
		int fd = open(t->streams[i].path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, header, sizeof(header)) == sizeof(header)) {
			const char *what = etw_packet_parse(header, sizeof(header), NULL, &packet);

			if (!what || etw_packet_is_cut(what))
				memcpy(t->facts.uuid, header + 4, 16);
		}
		if (fd >= 0)
			close(fd);
	}
}

int etw_tracedir_open(struct tracedir *t, const char *dir, tracedir_report report, void *arg)
{
	char *path, text[256];
	const char *what;
	size_t good;
	int err;

	memset(t, 0, sizeof(*t));
	t->dir = etw_tracedir_find(dir, &err);
	if (!t->dir)
		return err;
	t->alive = etw_tracedir_alive(t->dir);
	path = etw_path(t->dir, FILE_SCHEMA);
	err = path ? etw_read_file(path, &t->schema, &t->schema_len) : -ENOMEM;
	if (err)
		goto fail;
	good = etw_tracedir_schema_good(t, &what);
	if (what) {
		snprintf(text, sizeof(text), "%s; events of this class and those after it cannot be read", what);
		report(arg, path, good, t->schema_len - good, text);
	}
	free(path);
	path = etw_path(t->dir, FILE_METADATA);
	if (path && etw_read_file(path, &t->metadata, &t->metadata_len)) {
		t->metadata = NULL;
		report(arg, path, 0, 0, "the metadata is missing: other tools cannot read this trace");
	}
	facts_read(t, report, arg);
	schema_check(t, report, arg);
	if (path && t->metadata && !t->facts_missing)
		metadata_check(t, path, report, arg);
	err = streams_find(t, report, arg);
	uuid_guess(t);
fail:
	free(path);
	if (err)
		etw_tracedir_close(t);
	return err;
}

void etw_tracedir_close(struct tracedir *t)
{
	unsigned int i;

	for (i = 0; i < t->nr_streams; i++)
		free(t->streams[i].path);
	free(t->streams);
	free(t->schema);
	free(t->metadata);
	etw_facts_free(&t->facts);
	free(t->dir);
	memset(t, 0, sizeof(*t));
}
