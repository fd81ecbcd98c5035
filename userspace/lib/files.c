// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The files of a trace directory: their names, whole reads and writes, syncing. It must not know what is in them. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "error.h"

char *etw_path(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int etw_write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= n;
	}
	return 0;
}

int etw_read_file(const char *path, char **text, size_t *len)
{
	struct stat st;
	size_t have = 0;
	char *buf;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return etw_error_errno(-errno, "%s", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return etw_error(-EINVAL, "%s is not a regular file", path);
	}
	buf = malloc(st.st_size + 1);
	while (buf && have < (size_t)st.st_size) {
		ssize_t n = read(fd, buf + have, st.st_size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += n;
	}
	close(fd);
	if (!buf)
		err = -ENOMEM;
	if (err) {
		free(buf);
		return etw_error_errno(err, "%s", path);
	}
	buf[have] = 0;
	*text = buf;
	*len = have;
	return 0;
}

int etw_sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	/* Some file systems cannot sync a directory (EINVAL); there is nothing more to do on them. */
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

int etw_replace_file(const char *dir, const char *name, const void *buf, size_t len)
{
	char *path = etw_path(dir, name), *tmp = NULL;
	int err = -ENOMEM, fd;

	/* The leading dot hides it from readers that take every file for a stream. */
	if (path &&
	    asprintf(&tmp, "%.*s/.%s.new", (int)(strrchr(path, '/') - path), path, strrchr(path, '/') + 1) >= 0) {
		fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		err = fd < 0 ? -errno : etw_write_all(fd, buf, len);
		if (!err && fsync(fd))
			err = -errno;
		if (fd >= 0)
			close(fd);
		if (!err && rename(tmp, path))
			err = -errno;
		if (err && fd >= 0)
			unlink(tmp);
		if (!err) {
			*strrchr(tmp, '/') = 0;
			err = etw_sync_dir(tmp);
		}
		if (err)
			etw_error_errno(err, "%s", path);
	}
	free(tmp);
	free(path);
	return err;
}

long etw_stream_cpu(const char *name)
{
	char *end;
	long cpu;

	if (strncmp(name, "chan_", 5) || name[5] < '0' || name[5] > '9')
		return -1;
	cpu = strtol(name + 5, &end, 10);
	return *end || cpu > 1 << 20 ? -1 : cpu;
}
