// SPDX-License-Identifier: GPL-2.0-only
/*
 * demo-web: a small server in the manner of HTTP/1.0 whose requests are events of the provider Demo-Web, a client for it, and
 * where a file lies on its disk. It shows how a program of several threads becomes a provider, and knows nothing of who listens.
 *
 *	demo-web serve SOCKET WORKERS PATH=WHAT ...	until somebody gets /stop
 *	demo-web get SOCKET PATH N			get it N times, one after the other
 *	demo-web where FILE				the sectors of its disk that it takes
 *
 * WHAT is a file, read from the disk each time (O_DIRECT), "memory", or "MS ms": that much CPU time. Every other path is 404.
 * What was done is printed as "key=value" words on one line for each path.
 *
 * One thread accepts requests and gives each an activity id; one of WORKERS threads takes it up, by an event with this id. Reading
 * a file is an activity of its own, part of the request.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/fiemap.h>
#include <linux/fs.h>

#include <etw/provider.h>

#define KEYWORD_REQUEST	0x1
#define KEYWORD_READ	0x2
ETW_PROVIDER(web, "Demo-Web", ETW_KEYWORD("request", KEYWORD_REQUEST), ETW_KEYWORD("read", KEYWORD_READ));

#define BLOCK		4096
#define PAGE_SIZE	16384	/* bytes of a page from memory */
#define MAX_PATHS	16
#define MAX_WORKERS	16
#define MAX_QUEUE	64

struct page {
	const char *path, *what;
	unsigned long ms;		/* of CPU time, 0: it is a file or memory */
	bool memory;
	unsigned int served;
	uint64_t longest;
};

struct request {
	int fd;
	unsigned int number;
	char path[64];
	__u8 activity[16];
	uint64_t begin;
};

static struct page pages[MAX_PATHS];
static unsigned int nr_pages;
static struct request queue[MAX_QUEUE];
static unsigned int head, tail;		/* of the queue, counting on for ever */
static bool ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text)
		errx(2, "'%s' is not a number", text);
	return n;
}

/* All of it, or the other side is gone, which is its affair. */
static bool send_all(int fd, const void *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes = (const char *)bytes + n;
		len -= n;
	}
	return true;
}

/* ---------------------------------------------------------------- the server's work */

static size_t send_file(int to, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	size_t sent = 0;
	ssize_t n = 0;
	void *buf;

	if (fd < 0 || posix_memalign(&buf, BLOCK, BLOCK))
		err(1, "%s", path);
	while ((n = read(fd, buf, BLOCK)) > 0 && send_all(to, buf, n))
		sent += n;
	if (n < 0)
		warn("%s", path);
	free(buf);
	close(fd);
	return sent;
}

/* Reading is part of what the thread does now. */
static size_t read_page(int to, const struct page *page)
{
	__u8 request[16];
	size_t sent;

	etw_activity_create_set(request);
	ETW_WRITE(web, "ReadStart", ETW_LEVEL_VERBOSE, KEYWORD_READ, etw_opcode(ETW_OPCODE_START), etw_related(request),
		  etw_str("file", page->what));
	sent = send_file(to, page->what);
	ETW_WRITE(web, "ReadStop", ETW_LEVEL_VERBOSE, KEYWORD_READ, etw_opcode(ETW_OPCODE_STOP), etw_u64("bytes", sent));
	etw_activity_set(request);
	return sent;
}

static size_t compute_page(int to, const struct page *page)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + page->ms * 1000000;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	return send_all(to, page->what, strlen(page->what)) ? strlen(page->what) : 0;
}

static size_t memory_page(int to)
{
	static const char text[PAGE_SIZE];

	return send_all(to, text, sizeof(text)) ? sizeof(text) : 0;
}

static void serve(struct request *r)
{
	static const char fine[] = "HTTP/1.0 200 OK\r\n\r\n", none[] = "HTTP/1.0 404 Not Found\r\n\r\n";
	struct page *page = NULL;
	unsigned int status = 404;
	size_t bytes = 0;

	etw_activity_set(r->activity);
	ETW_WRITE(web, "RequestTaken", ETW_LEVEL_INFO, KEYWORD_REQUEST, etw_opcode(ETW_OPCODE_RESUME));
	for (unsigned int i = 0; i < nr_pages; i++)
		if (!strcmp(pages[i].path, r->path))
			page = &pages[i];
	if (page) {
		status = 200;
		send_all(r->fd, fine, strlen(fine));
		bytes = page->ms ? compute_page(r->fd, page) : page->memory ? memory_page(r->fd) : read_page(r->fd, page);
	} else {
		send_all(r->fd, none, strlen(none));
	}
	ETW_WRITE(web, "RequestStop", ETW_LEVEL_INFO, KEYWORD_REQUEST, etw_opcode(ETW_OPCODE_STOP), etw_u16("status", status),
		  etw_u64("bytes", bytes));
	etw_activity_set((const __u8[16]){ 0 });
	if (page) {
		uint64_t took = now(CLOCK_MONOTONIC) - r->begin;

		pthread_mutex_lock(&lock);
		page->served++;
		if (took > page->longest)
			page->longest = took;
		pthread_mutex_unlock(&lock);
	}
	close(r->fd);
}

static void *work(void *arg)
{
	struct request r;
	char name[16];

	snprintf(name, sizeof(name), "web-%u", (unsigned int)(uintptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		pthread_mutex_lock(&lock);
		while (head == tail && !ending)
			pthread_cond_wait(&more, &lock);
		if (head == tail) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		r = queue[tail++ % MAX_QUEUE];
		pthread_cond_signal(&room);
		pthread_mutex_unlock(&lock);
		serve(&r);
	}
}

/* ---------------------------------------------------------------- accepting */

/* The path of a request; false if it is none. */
static bool read_request(int fd, char path[64])
{
	char text[1024];
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, text + len, sizeof(text) - 1 - len);
		if (n <= 0)
			return false;
		len += n;
		text[len] = 0;
	} while (!strstr(text, "\r\n\r\n"));
	return sscanf(text, "GET %63s HTTP/", path) == 1;
}

/* False: it was the last one. */
static bool accept_request(int listener, unsigned int number)
{
	struct request r = { .number = number, .fd = accept(listener, NULL, NULL) };
	__u8 before[16];

	if (r.fd < 0)
		err(1, "accept");
	if (!read_request(r.fd, r.path)) {
		close(r.fd);
		return true;
	}
	if (!strcmp(r.path, "/stop")) {
		close(r.fd);
		return false;
	}
	r.begin = now(CLOCK_MONOTONIC);
	etw_activity_create_set(before);
	etw_activity_get(r.activity);
	ETW_WRITE(web, "RequestStart", ETW_LEVEL_INFO, KEYWORD_REQUEST, etw_opcode(ETW_OPCODE_START), etw_str("path", r.path),
		  etw_u32("number", r.number));
	ETW_WRITE(web, "RequestQueued", ETW_LEVEL_INFO, KEYWORD_REQUEST, etw_opcode(ETW_OPCODE_SUSPEND));
	etw_activity_set(before);
	pthread_mutex_lock(&lock);
	while (head - tail == MAX_QUEUE)
		pthread_cond_wait(&room, &lock);
	queue[head++ % MAX_QUEUE] = r;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	return true;
}

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		errx(2, "%s: too long for a socket", path);
	strcpy(a.sun_path, path);
	return a;
}

static void add_page(char *text)
{
	struct page *p = &pages[nr_pages++];
	char *what = strchr(text, '=');
	size_t len;

	if (!what || nr_pages > MAX_PATHS)
		errx(2, "%s: not PATH=WHAT, or too many of them", text);
	*what++ = 0;
	p->path = text;
	p->what = what;
	p->memory = !strcmp(what, "memory");
	len = strlen(what);
	if (len > 3 && !strcmp(what + len - 3, " ms")) {
		what[len - 3] = 0;
		p->ms = number(what);
		what[len - 3] = ' ';
	} else if (!p->memory && access(what, R_OK)) {
		err(1, "%s", what);
	}
}

static int server(const char *socket_path, unsigned long workers, char **paths)
{
	struct sockaddr_un a = address(socket_path);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t threads[MAX_WORKERS];
	unsigned int number = 0;

	if (!workers || workers > MAX_WORKERS)
		errx(2, "1 to %u workers", MAX_WORKERS);
	while (*paths)
		add_page(*paths++);
	for (unsigned long i = 0; i < workers; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			errx(1, "no thread for a worker");
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, MAX_QUEUE))
		err(1, "%s", socket_path);
	while (accept_request(listener, number))
		number++;
	pthread_mutex_lock(&lock);
	ending = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (unsigned long i = 0; i < workers; i++)
		pthread_join(threads[i], NULL);
	unlink(socket_path);
	for (unsigned int i = 0; i < nr_pages; i++)
		printf("served=%s pid=%d requests=%u longest_ms=%.3f\n", pages[i].path, getpid(), pages[i].served,
		       pages[i].longest / 1e6);
	return 0;
}

/* ---------------------------------------------------------------- the client, and files */

/* Bytes of the answer. The server may be about to begin. */
static size_t get(const struct sockaddr_un *a, const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), tries = 0;
	char buf[PAGE_SIZE];
	size_t bytes = 0;
	ssize_t n;

	if (fd < 0)
		err(1, "a socket");
	while (connect(fd, (const struct sockaddr *)a, sizeof(*a))) {
		if ((errno != ENOENT && errno != ECONNREFUSED) || ++tries > 1000)
			err(1, "%s", a->sun_path);
		usleep(10000);
	}
	n = snprintf(buf, sizeof(buf), "GET %s HTTP/1.0\r\n\r\n", path);
	if (!send_all(fd, buf, n))
		err(1, "%s", path);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		bytes += n;
	close(fd);
	return bytes;
}

static int client(const char *socket_path, const char *path, unsigned long times)
{
	const struct sockaddr_un a = address(socket_path);
	uint64_t longest = 0, total = 0;
	size_t bytes = 0;

	for (unsigned long i = 0; i < times; i++) {
		uint64_t begin = now(CLOCK_MONOTONIC), took;

		bytes += get(&a, path);
		took = now(CLOCK_MONOTONIC) - begin;
		total += took;
		if (took > longest)
			longest = took;
	}
	printf("path=%s requests=%lu bytes=%zu mean_ms=%.3f longest_ms=%.3f\n", path, times, bytes,
	       times ? total / 1e6 / times : 0.0, longest / 1e6);
	return 0;
}

static int where(const char *path)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extents[16];
	} m = { .map = { .fm_length = FIEMAP_MAX_OFFSET, .fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 16 } };
	int fd = open(path, O_RDONLY);

	if (fd < 0 || ioctl(fd, FS_IOC_FIEMAP, &m))
		err(1, "%s", path);
	for (unsigned int i = 0; i < m.map.fm_mapped_extents; i++)
		printf("from=%llu to=%llu\n", m.map.fm_extents[i].fe_physical / 512,
		       (m.map.fm_extents[i].fe_physical + m.map.fm_extents[i].fe_length) / 512);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 4 && !strcmp(argv[1], "serve"))
		return server(argv[2], number(argv[3]), argv + 4);
	if (argc == 5 && !strcmp(argv[1], "get"))
		return client(argv[2], argv[3], number(argv[4]));
	if (argc == 3 && !strcmp(argv[1], "where"))
		return where(argv[2]);
	errx(2, "usage: demo-web serve SOCKET WORKERS PATH=WHAT... | get SOCKET PATH N | where FILE");
}
