// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The pieces of streams that circular mode keeps. Old pieces are simply removed while recording; in the end there must
 * be one file for each CPU (readers use the time that all files have in common), so the pieces are appended to each
 * other. It must not know sessions.
 */
#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "error.h"
#include "files.h"
#include "packet.h"
#include "scan.h"

char *etw_ring_path(const char *dir, __u32 cpu, __u64 number)
{
	char *path;

	return asprintf(&path, "%s/" FILE_RING "/%u.%llu", dir, cpu, (unsigned long long)number) < 0 ? NULL : path;
}

static int by_number(const void *a, const void *b)
{
	const struct ring_piece *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

int etw_ring_list(const char *dir, struct ring_piece **pieces)
{
	char *path = etw_path(dir, FILE_RING);
	struct ring_piece *list = NULL;
	struct dirent *entry;
	int nr = 0;
	DIR *d;

	*pieces = NULL;
	d = path ? opendir(path) : NULL;
	free(path);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while ((entry = readdir(d))) {
		unsigned long long number;
		struct ring_piece *more;
		unsigned int cpu;
		int end = 0;

		if (sscanf(entry->d_name, "%u.%llu%n", &cpu, &number, &end) != 2 || entry->d_name[end])
			continue;
		more = realloc(list, (nr + 1) * sizeof(*list));
		if (more)
			list = more;
		if (!more || !(list[nr].path = etw_ring_path(dir, cpu, number))) {
			closedir(d);
			etw_ring_free(list, nr);
			return etw_error_errno(-ENOMEM, "%s", dir);
		}
		list[nr].cpu = cpu;
		list[nr++].number = number;
	}
	closedir(d);
	if (nr)
		qsort(list, nr, sizeof(*list), by_number);
	*pieces = list;
	return nr;
}

void etw_ring_free(struct ring_piece *pieces, int nr)
{
	while (nr > 0)
		free(pieces[--nr].path);
	free(pieces);
}

/* The stream file of one CPU, being put together. */
struct target {
	int fd;
	__u64 bytes;
	bool any;
	__u64 last_end;
	__u64 next_seq;
	__u64 discarded;
	/* What to take off the numbers of the pieces' packets; known from the first packet on. */
	bool based;
	__u64 base_seq;
	__u64 base_discarded;
};

/* Map a whole file; NULL and *len = 0 for an empty one. */
static void *map_file(const char *path, size_t *len, int *err)
{
	struct stat st;
	void *mem = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*err = 0;
	*len = 0;
	if (fd < 0 || fstat(fd, &st)) {
		*err = -errno;
	} else if (st.st_size) {
		mem = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (mem == MAP_FAILED) {
			*err = -errno;
			mem = NULL;
		} else {
			*len = st.st_size;
		}
	}
	if (fd >= 0)
		close(fd);
	return mem;
}

/* Open kernel/chan_<cpu> and find the end of its whole packets. */
static int target_open(struct target *t, const char *dir, __u32 cpu, const __u8 uuid[16])
{
	struct packet packet;
	char *path = NULL;
	size_t len, at = 0;
	__u8 *mem;
	int err;

	memset(t, 0, sizeof(*t));
	if (asprintf(&path, "%s/" FILE_KERNEL "/chan_%u", dir, cpu) < 0)
		return etw_error_errno(-ENOMEM, "%s", dir);
	t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	mem = t->fd < 0 ? NULL : map_file(path, &len, &err);
	if (t->fd < 0)
		err = -errno;
	while (!err && at < len && !etw_packet_parse(mem + at, len - at, uuid, &packet)) {
		t->any = true;
		t->last_end = packet.end;
		t->next_seq = packet.seq + 1;
		t->discarded = packet.discarded;
		at += packet.size;
	}
	t->bytes = at;
	if (mem)
		munmap(mem, len);
	if (!err && ftruncate(t->fd, at))
		err = -errno;
	if (err)
		etw_error_errno(err, "%s", path);
	free(path);
	return err;
}

static int target_append(struct target *t, const __u8 *bytes, const struct packet *packet)
{
	struct etw_packet_header header;
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (void *)(bytes + sizeof(header)), packet->size - sizeof(header) },
	};

	memcpy(&header, bytes, sizeof(header));
	header.packet_seq_num = packet->seq - t->base_seq;
	header.events_discarded = packet->discarded - t->base_discarded;
	header.content_size = packet->content * 8ULL;
	header.packet_size = packet->size * 8ULL;
	if (pwritev(t->fd, iov, 2, t->bytes) != (ssize_t)packet->size) {
		int err = errno ? -errno : -EIO;

		if (ftruncate(t->fd, t->bytes))
			err = -errno;
		return err;
	}
	t->bytes += packet->size;
	t->any = true;
	t->last_end = packet->end;
	t->next_seq = header.packet_seq_num + 1;
	t->discarded = header.events_discarded;
	return 0;
}

static void scan_ignore(void *arg, __u64 offset, __u64 bytes, const char *what)
{
	(void)arg, (void)offset, (void)bytes, (void)what;
}

static int target_piece(struct target *t, const struct ring_piece *piece, const __u8 uuid[16])
{
	struct scan scan = { .nr = 0 };
	size_t len, i;
	__u8 *mem;
	int err;

	/* A damaged piece gives what is whole in it. */
	mem = map_file(piece->path, &len, &err);
	if (!err)
		err = etw_scan(mem, len, uuid, piece->cpu, scan_ignore, NULL, &scan);
	for (i = 0; !err && i < scan.nr; i++) {
		const struct packet *packet = &scan.packets[i].packet;

		if (t->any && packet->end <= t->last_end) {
			/* After an interruption: which number the last packet that is there had before. */
			t->base_seq = packet->seq - (t->next_seq - 1);
			t->base_discarded = packet->discarded - t->discarded;
			t->based = true;
			continue;
		}
		if (!t->based) {
			/* What the first packet itself lost is known only if it is the very first. */
			t->base_seq = packet->seq - t->next_seq;
			t->base_discarded = packet->seq || t->any ? packet->discarded - t->discarded : 0;
			t->based = true;
		}
		errno = 0;
		err = target_append(t, mem + scan.packets[i].offset, packet);
	}
	if (mem)
		munmap(mem, len);
	etw_scan_free(&scan);
	return err ? etw_error_errno(err, "%s", piece->path) : 0;
}

int etw_ring_assemble(const char *dir, const __u8 uuid[16], unsigned int *moved)
{
	struct target target = { .fd = -1 };
	struct ring_piece *pieces;
	int nr = etw_ring_list(dir, &pieces), i, err = 0;
	char *path;

	if (nr < 0)
		return etw_error_errno(nr, "%s/" FILE_RING, dir);
	for (i = 0; !err && i < nr; i++) {
		if (target.fd < 0)
			err = target_open(&target, dir, pieces[i].cpu, uuid);
		if (!err)
			err = target_piece(&target, &pieces[i], uuid);
		if (!err && unlink(pieces[i].path))
			err = etw_error_errno(-errno, "%s", pieces[i].path);
		if (!err && moved)
			++*moved;
		if (target.fd >= 0 && (err || i + 1 == nr || pieces[i + 1].cpu != pieces[i].cpu)) {
			close(target.fd);
			target.fd = -1;
		}
	}
	etw_ring_free(pieces, nr);
	path = etw_path(dir, FILE_RING);
	if (!err && path && rmdir(path) && errno != ENOENT)
		err = etw_error_errno(-errno, "%s", path);
	free(path);
	return err;
}
