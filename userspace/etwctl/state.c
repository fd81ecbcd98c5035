// SPDX-License-Identifier: GPL-2.0-only
/* What a writer leaves for other runs of etwctl (state.h). It must not know how a trace is written. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_MAX 65536

/* The directories, the one to write first; @i from 0, NULL at the end. Free the result. */
static char *run_dir(int i, int uid)
{
	const char *own = getenv("ETWCTL_RUN");
	const char *user = getenv("XDG_RUNTIME_DIR");

	if (own && *own)
		return i ? NULL : xstrdup(own);
	switch (i) {
	case 0:
		return xstrdup("/run/etw");
	case 1:
		return user && *user ? xasprintf("%s/etw", user) : xstrdup("");
	case 2:
		return uid > 0 ? xasprintf("/run/user/%d/etw", uid) : xstrdup("");
	}
	return NULL;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* An open-file-description lock goes with the file, not the process: it survives the fork to the background. */
static struct flock whole_file(short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET };
}

static bool locked(int fd)
{
	struct flock lock = whole_file(F_RDLCK);

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static void take_text(struct json_object *obj, const char *key, char **text)
{
	struct json_object *value;

	if (json_object_object_get_ex(obj, key, &value) && json_object_is_type(value, json_type_string)) {
		free(*text);
		*text = xstrdup(json_object_get_string(value));
	}
}

static int64_t take_number(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) ? json_object_get_int64(value) : 0;
}

/* Reads the file again. A file that says nothing sensible is that of a writer that died while it began. */
static void reload(struct state *s)
{
	char *text = xmalloc(STATE_MAX + 1);
	ssize_t n = pread(s->fd, text, STATE_MAX, 0);
	struct json_object *obj = n > 0 ? json_tokener_parse(text) : NULL;
	bool alive = locked(s->fd);

	s->life = alive ? STATE_ALIVE : STATE_DIED;
	if (obj && json_object_is_type(obj, json_type_object)) {
		take_text(obj, "directory", &s->dir);
		take_text(obj, "uuid", &s->uuid);
		take_text(obj, "reason", &s->reason);
		s->pid = take_number(obj, "pid");
		s->started = take_number(obj, "started");
		s->ended = take_number(obj, "ended");
		s->status = take_number(obj, "status");
		s->events = take_number(obj, "events");
		s->bytes = take_number(obj, "bytes");
		s->lost = take_number(obj, "lost");
		if (!alive && s->ended)
			s->life = STATE_ENDED;
	}
	json_object_put(obj);
	free(text);
}

static struct state *new_state(const char *path, int fd)
{
	struct state *s = xmalloc(sizeof(*s));
	const char *base = strrchr(path, '/') + 1;

	s->path = xstrdup(path);
	s->name = xstrdup(base);
	s->name[strlen(base) - strlen(".json")] = 0;
	s->dir = xstrdup("");
	s->uuid = xstrdup("");
	s->reason = xstrdup("");
	s->fd = fd;
	return s;
}

struct state *state_make(const char *name, int *taken)
{
	char *dir = NULL, *path = NULL;
	struct stat here, there;
	struct state *s;
	int fd = -1, err = 0;

	*taken = 0;
	for (int i = 0; fd < 0 && (dir = run_dir(i, -1)); i++) {
		if (*dir && (!mkdir(dir, 0755) || errno == EEXIST)) {
			free(path);
			path = xasprintf("%s/%s.json", dir, name);
			/* Another run may remove the file between open and lock. */
			for (int tries = 0; fd < 0 && tries < 100; tries++) {
				fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
				if (fd < 0)
					break;
				struct flock lock = whole_file(F_WRLCK);

				if (fcntl(fd, F_OFD_SETLK, &lock)) {
					s = new_state(path, fd);
					reload(s);
					*taken = s->pid ? s->pid : -1;
					state_free(s);
					free(path);
					free(dir);
					return NULL;
				}
				if (fstat(fd, &here) || stat(path, &there) || here.st_ino != there.st_ino) {
					close(fd);
					fd = -1;
				}
			}
		}
		if (fd < 0 && (*dir || !err))
			err = errno;
		free(dir);
	}
	if (fd < 0) {
		note("%s: %s; status and stop will not know where the trace is (ETWCTL_RUN names another directory)",
		     path ? path : "/run/etw", strerror(err));
		free(path);
		return NULL;
	}
	s = new_state(path, fd);
	free(path);
	if (ftruncate(fd, 0))
		note("%s: %s", s->path, strerror(errno));
	s->life = STATE_ALIVE;
	return s;
}

static void store(struct state *s)
{
	struct json_object *obj = json_object_new_object();
	const char *text;
	size_t len;

	json_text(obj, "name", s->name);
	json_text(obj, "directory", s->dir);
	json_text(obj, "uuid", s->uuid);
	json_s64(obj, "pid", s->pid);
	json_s64(obj, "started", s->started);
	if (s->ended) {
		json_s64(obj, "ended", s->ended);
		json_text(obj, "reason", s->reason);
		json_s64(obj, "status", s->status);
		json_u64(obj, "events", s->events);
		json_u64(obj, "bytes", s->bytes);
		json_u64(obj, "lost", s->lost);
	}
	text = json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	len = strlen(text);
	/* The text only grows (the end's is longer): a reader in between sees a whole one or a bad one, no mixture. */
	if (pwrite(s->fd, text, len, 0) != (ssize_t)len || pwrite(s->fd, "\n", 1, len) != 1 ||
	    ftruncate(s->fd, len + 1))
		note("%s: %s", s->path, strerror(errno));
	json_object_put(obj);
}

void state_running(struct state *s, const char *dir, const char *uuid)
{
	if (!s)
		return;
	free(s->dir);
	free(s->uuid);
	s->dir = xstrdup(dir);
	s->uuid = xstrdup(uuid);
	s->pid = getpid();
	s->started = now_ns();
	store(s);
}

void state_ended(struct state *s, const char *reason, int status, uint64_t events, uint64_t bytes, uint64_t lost,
		 bool keep)
{
	if (!s)
		return;
	free(s->reason);
	s->reason = xstrdup(reason);
	s->status = status;
	s->events = events;
	s->bytes = bytes;
	s->lost = lost;
	s->ended = now_ns();
	store(s);
	if (!keep)
		unlink(s->path);
	close(s->fd);
	s->fd = -1;
}

static struct state *state_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct state *s;

	if (fd < 0)
		return NULL;
	s = new_state(path, fd);
	reload(s);
	return s;
}

struct state *state_read(const char *name, int uid)
{
	struct state *s = NULL;
	char *dir, *path;

	if (!*name || strchr(name, '/'))
		return NULL;
	for (int i = 0; !s && (dir = run_dir(i, uid)); i++) {
		path = xasprintf("%s/%s.json", dir, name);
		if (*dir)
			s = state_open(path);
		free(path);
		free(dir);
	}
	return s;
}

struct state **state_all(void)
{
	struct state **all = xmalloc(sizeof(*all));
	size_t n = 0;
	char *dir;

	for (int i = 0; (dir = run_dir(i, -1)); i++) {
		char *pattern = xasprintf("%s/*.json", dir);
		glob_t found;

		if (*dir && !glob(pattern, 0, NULL, &found)) {
			for (size_t k = 0; k < found.gl_pathc; k++) {
				struct state *s = state_open(found.gl_pathv[k]);

				if (!s)
					continue;
				all = realloc(all, (n + 2) * sizeof(*all));
				if (!all)
					abort();
				all[n++] = s;
				all[n] = NULL;
			}
			globfree(&found);
		}
		free(pattern);
		free(dir);
	}
	return all;
}

int state_wait(struct state *s, int timeout_ms)
{
	for (int waited = 0; locked(s->fd); waited += 10) {
		if (timeout_ms >= 0 && waited >= timeout_ms)
			return -ETIMEDOUT;
		usleep(10000);
	}
	reload(s);
	return 0;
}

void state_remove(struct state *s)
{
	if (s && !locked(s->fd))
		unlink(s->path);
}

void state_free(struct state *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	free(s->name);
	free(s->dir);
	free(s->uuid);
	free(s->reason);
	free(s);
}

void state_free_all(struct state **all)
{
	for (struct state **s = all; s && *s; s++)
		state_free(*s);
	free(all);
}
