// SPDX-License-Identifier: GPL-2.0-only
/*
 * The properties R1 to R8 of the relay, in both modes, seen from user space; each test carries the number of what it
 * proves. It must not know how the relay works inside.
 *
 * Each was seen to fail with a module that makes the mistake named:
 *   R1_any_context				reserves by a plain store, on the long or the short way; the closer delivers
 *   R2_idle_makes_a_long_stamp			an extended header only after four times 2^32
 *   R2_monotone_under_load			stamps that go back by 0.1 ms now and then
 *   R3_packet_in_hand_does_not_change		GET without the exchange; consumed published at GET
 *   R3_reader_sees_whole_packets		sequence numbers by twos
 *   R3_gaps_are_what_was_overwritten		one record too many counted as overwritten
 *   R4_sums, R4_sums_with_reader		a loss not counted; taken packets counted as overwritten
 *   R5_flush_from_another_cpu			the local operations done from another CPU
 *   R6_mmap_rights, R6_mmap_fork_and_write	write permitted; VM_MAYWRITE left; VM_DONTCOPY left out
 *   R7_one_wake_per_packet			no wake-up at delivery
 *   R7_timer_brings_a_single_event		the timer acts in overwrite mode
 *   R7_timer_closes_no_more_than_needed	... without a reader; though a packet is ready
 *   R8_cpu_goes_and_comes, R8_late_cpu		nobody flushes for a dead CPU; a CPU's relay is not announced
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "etw_test.h"

#define NAP_NS 1000000L
#define SECONDS 3	/* how long a test under load goes on ... */
#define MOST_SECONDS 200	/* ... but longer until what it is about has happened, on a busy machine */
#define GOES_ON(begin, seconds, happened)							\
	(now_ns() < (begin) + (seconds) * 1000000000ULL ||					\
	 (!(happened) && now_ns() < (begin) + MOST_SECONDS * 1000000000ULL))

FIXTURE(relay)
{
	int dev;
	int fd;
	struct etw_session_create create;
	struct log log;
	struct reader reader;
};

FIXTURE_VARIANT(relay)
{
	__u32 flags;
	__u32 nr_subbufs;
};

FIXTURE_VARIANT_ADD(relay, discard) { 0, 4 };
FIXTURE_VARIANT_ADD(relay, overwrite) { ETW_SESSION_OVERWRITE, 4 };
FIXTURE_VARIANT_ADD(relay, overwrite_smallest) { ETW_SESSION_OVERWRITE, 2 };

static struct etw_session_create describe(const char *name, __u32 flags, __u32 nr_subbufs)
{
	struct etw_session_create create = session_small(unique(name));

	create.flags = flags;
	create.subbuf_size = 4096;
	create.nr_subbufs = nr_subbufs;
	return create;
}

FIXTURE_SETUP(relay)
{
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->create = describe("relay", variant->flags, variant->nr_subbufs);
	self->fd = session_make(self->dev, &self->create);
	ASSERT_GE(self->fd, 0);
	self->log.only = RENAMED;
	self->log.text_field = "newcomm";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(relay)
{
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

/* Page faults, forks, switches and many renames on one CPU ... */
static void mix_for_ever(void *cpu)
{
	pin((intptr_t)cpu);
	for (;;) {
		work_touch(16);
		work_rename("mix", 0, 4000);
		work_fork(1);
		work_pingpong(2, -1);
	}
}

/*
 * ... and sleepers whom one interrupt of the timer wakes together, in the middle of any of them: it writes enough records to
 * turn a packet that the interrupted one is still writing to.
 */
static void nap_for_ever(void *cpu)
{
	struct timespec ts;

	pin((intptr_t)cpu);
	prctl(PR_SET_NAME, "nap");
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += NAP_NS - ts.tv_nsec % NAP_NS;
		if (ts.tv_nsec >= 1000000000) {
			ts.tv_nsec -= 1000000000;
			ts.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

/* The number in the text that work_rename() made. */
static unsigned int number_of(const char *text)
{
	return atoi(text + strcspn(text, "0123456789"));
}

static uint64_t sum_lost(const __u64 *lost)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ETW_NR_LOST; i++)
		sum += lost[i];
	return sum;
}

#define STOP_AND_DRAIN() do {							\
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));		\
	ASSERT_SUMS(self->fd);							\
	ASSERT_DRAINED(&self->reader);						\
	ASSERT_SUMS(self->fd);							\
	EXPECT_EQ(0, session_query(self->fd).unread);				\
	EXPECT_EQ(self->reader.records, session_query(self->fd).delivered);	\
} while (0)

#define OTHERS 7
#define NAPS 10

/* Records written by an interrupt while somebody else ran: the wake-ups of the sleepers, counted in @arg. */
static void count_nested(const struct event *event, void *arg)
{
	int64_t woken;

	if (event_is(event, "sched_waking") && event_number(event, "tid", &woken) && woken != event->tid &&
	    !strncmp(event_text(event, "comm"), "nap", 3))
		++*(uint64_t *)arg;
}

/*
 * Contexts nest on every CPU, the smallest sub-buffers are switched thousands of times, every packet keeps every rule. With
 * several sessions a writer spends most of its time where being interrupted matters.
 */
TEST_F(relay, R1_any_context)
{
	unsigned int cpus = cpus_online(), i;
	struct reader readers[OTHERS];
	int fds[OTHERS + 1];
	pid_t pids[(NAPS + 1) * 8];
	uint64_t begin, nested = 0;

	if (cpus > 8)
		cpus = 8;
	for (i = 0; i <= OTHERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "nest%u", i);
		self->create = describe(name, variant->flags, variant->nr_subbufs);
		fds[i] = i < OTHERS ? session_make(self->dev, &self->create) : self->fd;
		ASSERT_GE(fds[i], 0);
		if (i < OTHERS)
			ASSERT_EQ(0, reader_open(&readers[i], fds[i], count_nested, &nested));
		ASSERT_EQ(1, enable_all(fds[i], "sched"));
		ASSERT_EQ(1, enable_events(fds[i], "process", RENAMED));
		ASSERT_EQ(1, enable_all(fds[i], "fault"));
	}
	for (i = 0; i < (NAPS + 1) * cpus; i++)
		pids[i] = spawn(i < cpus ? mix_for_ever : nap_for_ever, (void *)(intptr_t)(i % cpus));
	for (begin = now_ns(); GOES_ON(begin, 2 * SECONDS, self->reader.packets > 20 && nested > 100); sleep_ms(20)) {
		for (i = 0; i < OTHERS; i++)
			ASSERT_DRAINED(&readers[i]);
		ASSERT_DRAINED(&self->reader);
	}
	for (i = 0; i < (NAPS + 1) * cpus; i++)
		reap(pids[i]);
	EXPECT_GT(self->reader.packets, 20);
	STOP_AND_DRAIN();
	for (i = 0; i <= OTHERS; i++) {
		struct etw_session_query q;

		if (i < OTHERS) {
			ASSERT_EQ(0, call(fds[i], ETW_IOC_SESSION_STOP, NULL));
			ASSERT_DRAINED(&readers[i]);
			reader_close(&readers[i]);
		}
		ASSERT_SUMS(fds[i]);
		q = session_query(fds[i]);
		EXPECT_EQ(0, q.unread);
		EXPECT_EQ(0, q.lost[ETW_LOST_NESTED]);
		EXPECT_EQ(0, q.lost[ETW_LOST_TOO_LARGE]);
		/* It takes a lap of records in interrupts nested in one writer; these interrupts write a few. */
		EXPECT_EQ(0, q.lost[ETW_LOST_WRAPPED]);
		if (i < OTHERS)
			close(fds[i]);
	}
	TH_LOG("%llu records of interrupts", (unsigned long long)nested);
	EXPECT_GT(nested, 100);
}

/* 2^32 ns and more without a record: the next has a whole stamp, and it is right. One second is told by the short one. */
TEST_F(relay, R2_idle_makes_a_long_stamp)
{
	static const int idle[] = { 0, 1000, 4200, 4400, 0 };
	uint64_t before[5], after[5];
	unsigned int i;

	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 0; i < ARRAY_SIZE(idle); i++) {
		sleep_ms(idle[i]);
		before[i] = now_ns();
		work_rename("idle", i, 1);
		after[i] = now_ns();
	}
	STOP_AND_DRAIN();
	ASSERT_EQ(ARRAY_SIZE(idle), self->log.nr);
	for (i = 0; i < ARRAY_SIZE(idle); i++) {
		EXPECT_LE(before[i], self->log.events[i].time);
		EXPECT_LE(self->log.events[i].time, after[i]);
		bool far = !i || self->log.events[i].time - self->log.events[i - 1].time >= 1ULL << 32;

		EXPECT_EQ(far, self->log.events[i].extended);
	}
	EXPECT_TRUE(self->log.events[3].extended);
	EXPECT_EQ(1, self->reader.packets);
}

/* Time never goes back within a relay, and the order of what one thread did is the order of its records. */
TEST_F(relay, R2_monotone_under_load)
{
	unsigned int cpus = cpus_online(), i, rounds;
	pid_t pids[64];
	const struct kept *last = NULL;

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	for (i = 0; i < cpus; i++)
		pids[i] = spawn(rename_for_ever, (void *)(intptr_t)i);
	for (rounds = 0; rounds < 200; rounds++) {
		ASSERT_DRAINED(&self->reader);	/* packet_walk() looks at every stamp */
		reader_wait(&self->reader, 10);
	}
	for (i = 0; i < cpus; i++)
		reap(pids[i]);
	STOP_AND_DRAIN();
	for (i = 0; i < self->log.nr; i++) {
		const struct kept *e = &self->log.events[i];

		if (e->tid != pids[0])
			continue;
		if (last) {
			ASSERT_LE(last->time, e->time);
			ASSERT_LT(number_of(last->text), number_of(e->text));
		}
		last = e;
	}
	EXPECT_NE(NULL, last);
}

/* What GET lends does not change until PUT, however often writers come round. */
TEST_F(relay, R3_packet_in_hand_does_not_change)
{
	struct relay *relay = &self->reader.relays[0];
	static uint8_t copy[4096];
	struct etw_subbuf sb;
	uint64_t begin;
	unsigned int nr = 0;
	pid_t pid;

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	pid = spawn(rename_for_ever, (void *)0);
	for (begin = now_ns(); GOES_ON(begin, SECONDS, nr > 20);) {
		if (relay_get(relay, &sb)) {
			reader_wait(&self->reader, 100);
			continue;
		}
		memcpy(copy, relay->map + (size_t)sb.index * 4096, 4096);
		sleep_ms(nr % 20);
		ASSERT_EQ(0, memcmp(copy, relay->map + (size_t)sb.index * 4096, 4096));
		ASSERT_EQ(0, relay_put(relay));
		nr++;
	}
	reap(pid);
	EXPECT_GT(nr, 20);
}

/* No torn packet while writers overtake the reader again and again. */
TEST_F(relay, R3_reader_sees_whole_packets)
{
	unsigned int cpus = cpus_online(), i;
	struct etw_session_query q;
	pid_t pids[64];
	uint64_t begin;

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	for (i = 0; i < cpus; i++)
		pids[i] = spawn(rename_for_ever, (void *)(intptr_t)i);
	for (begin = now_ns(); GOES_ON(begin, SECONDS, self->reader.packets > 20);)
		ASSERT_DRAINED(&self->reader);
	for (i = 0; i < cpus; i++)
		reap(pids[i]);
	STOP_AND_DRAIN();
	q = session_query(self->fd);
	TH_LOG("%llu packets, %llu missing, %llu records, %llu overwritten, %llu lost",
	       (unsigned long long)self->reader.packets, (unsigned long long)reader_gaps(&self->reader), q.written,
	       q.overwritten, (unsigned long long)sum_lost(q.lost));
	EXPECT_GT(self->reader.packets, 20);
	if (!(variant->flags & ETW_SESSION_OVERWRITE)) {
		EXPECT_EQ(0, q.overwritten);
		EXPECT_EQ(0, reader_gaps(&self->reader));
	}
}

/* Records all have one size, so that packets that nobody flushed have the same number of them. */
TEST_F(relay, R3_gaps_are_what_was_overwritten)
{
	struct etw_session_query q;
	unsigned int round, per_packet = 0;

	if (!(variant->flags & ETW_SESSION_OVERWRITE))
		SKIP(return, "nothing is overwritten in discard mode");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (round = 0; round < 20; round++) {
		struct etw_subbuf sb;

		work_rename("gap", 0, 100 + 137 * round);
		if (!relay_get(&self->reader.relays[0], &sb))
			per_packet = sb.records;
		ASSERT_DRAINED(&self->reader);
		q = session_query(self->fd);
		ASSERT_EQ(q.written, q.delivered + q.overwritten + q.unread);
		ASSERT_EQ(q.overwritten, reader_gaps(&self->reader) * per_packet);
	}
	EXPECT_GT(q.overwritten, 0);
	STOP_AND_DRAIN();
}

/* emitted = written + lost; the oldest are kept in discard mode, the newest in overwrite mode, and none twice. */
TEST_F(relay, R4_sums)
{
	const unsigned int nr = 5000;
	struct etw_session_query q;
	struct etw_cpu_query cpu;
	unsigned int i, quiet = 0;
	uint64_t filtered;

	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	for (i = 0; i < nr; i += 10) {
		filtered = session_query(self->fd).filtered;
		work_rename("sum", i, 10);
		quiet += session_query(self->fd).filtered == filtered;
	}
	ASSERT_SUMS(self->fd);
	q = session_query(self->fd);
	EXPECT_EQ(nr, q.written + sum_lost(q.lost));
	/* none of ours; a kernel thread may rename itself now and then */
	EXPECT_GE(quiet, nr / 10 - 20);
	EXPECT_EQ(0, q.delivered);
	STOP_AND_DRAIN();
	ASSERT_TRUE(session_cpu(self->fd, 0, &cpu));
	EXPECT_EQ(sum_lost(q.lost), cpu.lost_total);
	EXPECT_EQ(0, cpu.open_bytes);
	q = session_query(self->fd);
	ASSERT_GT(self->log.nr, 100);
	EXPECT_EQ(q.delivered, self->log.nr);
	if (variant->flags & ETW_SESSION_OVERWRITE) {
		EXPECT_EQ(nr, q.written);
		EXPECT_EQ(nr - self->log.nr, q.overwritten);
		for (i = 0; i < self->log.nr; i++)
			ASSERT_EQ(nr - self->log.nr + i, number_of(self->log.events[i].text));
	} else {
		EXPECT_EQ(nr - self->log.nr, q.lost[ETW_LOST_NO_ROOM]);
		EXPECT_EQ(self->log.nr, q.written);
		EXPECT_EQ(sum_lost(q.lost), self->reader.streams[0].last_lost);
		for (i = 0; i < self->log.nr; i++)
			ASSERT_EQ(i, number_of(self->log.events[i].text));
	}
}

/* The same with a reader at work: after the writers have ended and everything was read, nothing is missing. */
TEST_F(relay, R4_sums_with_reader)
{
	const unsigned int nr = 20000;
	struct etw_session_query q;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		pin(0);
		raise(SIGSTOP);
		work_rename("sum", 0, nr);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_EQ(1, enable_renames(self->fd, pid));
	kill(pid, SIGCONT);
	while (!waitpid(pid, &status, WNOHANG))
		ASSERT_DRAINED(&self->reader);
	STOP_AND_DRAIN();
	q = session_query(self->fd);
	EXPECT_EQ(nr, q.written + sum_lost(q.lost));
	EXPECT_EQ(q.written, q.delivered + q.overwritten);
	EXPECT_EQ(self->log.nr, q.delivered);
}

/* FLUSH from another CPU, hundreds of times into a running writer. */
TEST_F(relay, R5_flush_from_another_cpu)
{
	unsigned int i, cpus = cpus_online();
	uint64_t begin = now_ns(), time = 0, next;
	pid_t pid;

	ASSERT_EQ(1, enable_events(self->fd, "process", RENAMED));
	pid = spawn(rename_for_ever, (void *)0);
	ASSERT_EQ(0, pin(cpus - 1));
	for (i = 0; i < 300 || GOES_ON(begin, 0, self->reader.packets > 100); i++) {
		next = session_flush(self->fd);
		ASSERT_NE(0, next);
		ASSERT_GE(next, time);
		time = next;
		ASSERT_DRAINED(&self->reader);
	}
	reap(pid);
	STOP_AND_DRAIN();
	EXPECT_GT(self->reader.packets, 100);	/* one each time, more or less */
}

/* In user memory nothing can be changed: the table of mapping attempts. */
TEST_F(relay, R6_mmap_rights)
{
	struct relay *relay = &self->reader.relays[0];
	size_t size = relay->map_size, page = sysconf(_SC_PAGESIZE);
	void *p, *q;

	munmap((void *)relay->map, size);
	relay->map = NULL;

#define MAP(err, len, prot, flags, at) do {					\
	p = mmap(NULL, len, prot, flags, relay->fd, at);			\
	EXPECT_EQ(err, p == MAP_FAILED ? errno : 0);				\
	if (p != MAP_FAILED)							\
		munmap(p, len);							\
} while (0)
	MAP(EPERM, size, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	MAP(EPERM, size, PROT_WRITE, MAP_SHARED, 0);
	MAP(EPERM, size, PROT_READ | PROT_EXEC, MAP_SHARED, 0);
	MAP(EINVAL, size, PROT_READ, MAP_PRIVATE, 0);
	MAP(EINVAL, size + page, PROT_READ, MAP_SHARED, 0);
	MAP(EINVAL, size - page, PROT_READ, MAP_SHARED, 0);
	MAP(EINVAL, page, PROT_READ, MAP_SHARED, 0);
	MAP(EINVAL, size, PROT_READ, MAP_SHARED, page);
	MAP(EINVAL, size - page, PROT_READ, MAP_SHARED, page);
	MAP(EINVAL, size, PROT_READ, MAP_SHARED, 0x7ffffffff000L);
	MAP(0, size, PROT_READ, MAP_SHARED, 0);
#undef MAP
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, relay->fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, size, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(p, size, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(p, size, size + page, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	/* A second mapping is as good as the first. */
	q = mmap(NULL, size, PROT_READ, MAP_SHARED, relay->fd, 0);
	ASSERT_NE(MAP_FAILED, q);
	EXPECT_EQ(0, memcmp(p, q, size));
	/* Not a fault of ours: moving it and unmapping a part are allowed. */
	p = mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (char *)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	EXPECT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, munmap(p, page));
	munmap((char *)p + page, size - page);
	munmap(q, size);
	/* A file opened for reading could not be anything else. */
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, PROT_READ, MAP_SHARED, self->dev, 0));
	EXPECT_EQ(ENODEV, errno);
}

/* A child does not inherit the mapping; write(2) can take data straight from it. */
TEST_F(relay, R6_mmap_fork_and_write)
{
	struct relay *relay = &self->reader.relays[0];
	int file = open("/tmp/etw-map", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status = 0;
	static char back[4096];
	pid_t pid;

	ASSERT_GE(file, 0);
	EXPECT_EQ(4096, write(file, relay->map, 4096));
	EXPECT_EQ(4096, pread(file, back, 4096, 0));
	EXPECT_EQ(0, memcmp(back, relay->map, 4096));
	close(file);
	unlink("/tmp/etw-map");
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile const char *)relay->map & 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGSEGV, WTERMSIG(status));
}

/* A buffer is zero before its first use: nothing of the kernel's old memory is shown. */
TEST_F(relay, R6_mapping_is_zeroed)
{
	const size_t dirty = 64 << 20;
	struct relay relay;
	char *old;
	size_t i;
	int fd;

	/* Memory that is free now has something in it, unless the kernel clears all that it hands out. */
	old = mmap(NULL, dirty, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, old);
	memset(old, 0xa5, dirty);
	munmap(old, dirty);
	self->create = describe("zeroed", variant->flags, variant->nr_subbufs);
	fd = session_make(self->dev, &self->create);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, relay_open(&relay, fd, cpus_online() - 1));
	for (i = 0; i < relay.map_size; i++)
		if (relay.map[i])
			break;
	EXPECT_EQ(relay.map_size, i);
	relay_close(&relay);
	close(fd);
}

static unsigned long sleeps(pid_t tid)
{
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (file_read(path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	return at ? strtoul(at + 25, NULL, 10) : 0;
}

struct waiter {
	struct reader *reader;
	volatile unsigned int rounds;
	volatile bool end;
	volatile bool failed;
	volatile pid_t tid;
};

static void *wait_and_read(void *arg)
{
	struct waiter *w = arg;

	w->tid = gettid();
	while (!w->end) {
		reader_wait(w->reader, -1);
		w->rounds++;
		if (reader_drain(w->reader) < 0)
			w->failed = w->end = true;
	}
	return NULL;
}

/* Half a packet wakes nobody; each full one wakes the waiting reader once. */
TEST_F(relay, R7_one_wake_per_packet)
{
	struct waiter w = { &self->reader };
	unsigned long before, after;
	unsigned int i, per_packet, rounds;
	struct etw_cpu_query cpu;
	pthread_t thread;

	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	/* How many records fill a packet? */
	for (i = 0; i < 1000; i++) {
		work_rename("fill", i, 1);
		ASSERT_TRUE(session_cpu(self->fd, 0, &cpu));
		if (cpu.next_seq == 2)
			break;
	}
	per_packet = i;
	ASSERT_GT(per_packet, 10);
	ASSERT_LT(per_packet, 200);
	ASSERT_DRAINED(&self->reader);
	ASSERT_EQ(1, self->reader.packets);

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_and_read, &w));
	ASSERT_TRUE(wait_until(5000, w.tid && task_state(w.tid) == 'S'));
	before = sleeps(w.tid);
	work_rename("half", 0, per_packet / 2);
	sleep_ms(100);
	EXPECT_EQ(before, sleeps(w.tid));
	EXPECT_EQ(0, w.rounds);
	for (i = 0; i < 20; i++) {
		rounds = w.rounds;
		work_rename("full", 0, per_packet);
		ASSERT_TRUE(wait_until(10000, w.rounds > rounds && task_state(w.tid) == 'S'));
	}
	after = sleeps(w.tid);
	EXPECT_EQ(20, w.rounds);
	EXPECT_LE(after - before, 22);
	EXPECT_FALSE(w.failed);
	w.end = true;
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(NULL, self->reader.error);
}

static int set_timer(int session, __u32 ms)
{
	struct etw_session_update u = { .size = sizeof(u), .what = ETW_UPDATE_FLUSH_MS, .flush_ms = ms };

	return call(session, ETW_IOC_SESSION_UPDATE, &u);
}

/* A single event is brought by the flush timer alone, and not without it; in overwrite mode never. */
TEST_F(relay, R7_timer_brings_a_single_event)
{
	static const __u32 periods[] = { 1, 5, 19, 20, 100, 700 };
	unsigned int i;

	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	work_rename("one", 0, 1);
	EXPECT_FALSE(reader_wait(&self->reader, 500));
	if (variant->flags & ETW_SESSION_OVERWRITE) {
		ASSERT_EQ(0, set_timer(self->fd, 1));
		EXPECT_FALSE(reader_wait(&self->reader, 500));
		ASSERT_EQ(0, set_timer(self->fd, 50));
		EXPECT_FALSE(reader_wait(&self->reader, 500));
		STOP_AND_DRAIN();
		EXPECT_EQ(1, self->reader.packets);
		return;
	}
	/* A period longer than the test does nothing yet. */
	ASSERT_EQ(0, set_timer(self->fd, ETW_FLUSH_MS_MAX));
	EXPECT_FALSE(reader_wait(&self->reader, 300));
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		ASSERT_EQ(0, set_timer(self->fd, periods[i]));
		EXPECT_TRUE(reader_wait(&self->reader, scaled(10000)));
		ASSERT_DRAINED(&self->reader);
		EXPECT_EQ(i + 1, self->reader.records);
		work_rename("one", i + 1, 1);
	}
	ASSERT_EQ(0, set_timer(self->fd, ETW_FLUSH_MS_NEVER));
	ASSERT_NE(0, session_flush(self->fd));
	ASSERT_DRAINED(&self->reader);
	work_rename("one", i + 1, 1);
	EXPECT_FALSE(reader_wait(&self->reader, 1000));
	STOP_AND_DRAIN();
}

/* The timer leaves a relay alone whose reader has something to read already, and a session that nobody reads. */
TEST_F(relay, R7_timer_closes_no_more_than_needed)
{
	struct etw_cpu_query cpu;

	if (variant->flags & ETW_SESSION_OVERWRITE)
		SKIP(return, "the timer does not act in overwrite mode");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(1, enable_renames(self->fd, getpid()));
	ASSERT_EQ(0, set_timer(self->fd, 10));
	work_rename("one", 0, 1);
	ASSERT_TRUE(reader_wait(&self->reader, scaled(10000)));
	work_rename("two", 0, 1);
	sleep_ms(300);
	ASSERT_TRUE(session_cpu(self->fd, 0, &cpu));
	EXPECT_EQ(1, cpu.next_seq - cpu.first_seq - !!cpu.open_bytes);
	EXPECT_GT(cpu.open_bytes, 0);
	ASSERT_DRAINED(&self->reader);
	EXPECT_TRUE(reader_wait(&self->reader, scaled(10000)));
	ASSERT_DRAINED(&self->reader);
	EXPECT_EQ(2, self->reader.records);
	EXPECT_EQ(2, self->reader.packets);

	reader_close(&self->reader);
	work_rename("unread", 0, 1);
	sleep_ms(300);
	ASSERT_TRUE(session_cpu(self->fd, 0, &cpu));
	EXPECT_GT(cpu.open_bytes, 0);
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
	self->reader.streams[0].overwrite = true;	/* not its first packet */
	EXPECT_TRUE(reader_wait(&self->reader, scaled(10000)));
	ASSERT_DRAINED(&self->reader);
}

/* A CPU goes with an open packet and comes back: nothing is lost, and FLUSH reaches what it left. */
TEST_F(relay, R8_cpu_goes_and_comes)
{
	unsigned int last = cpus_online() - 1, i, nr = 0;

	if (!last)
		SKIP(return, "one CPU only");
	if (!cpus_can_go())
		SKIP(return, "CPUs cannot go and come here");
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pin(last));
		ASSERT_EQ(1, enable_renames(self->fd, getpid()));
		work_rename("hot", nr, 30);
		nr += 30;
		ASSERT_EQ(0, pin(0));
		ASSERT_EQ(0, cpu_online(last, false));
		if (i % 2) {
			ASSERT_NE(0, session_flush(self->fd));
			ASSERT_DRAINED(&self->reader);
			EXPECT_EQ(nr, self->log.nr);
		}
		ASSERT_EQ(0, cpu_online(last, true));
		ASSERT_DRAINED(&self->reader);
	}
	STOP_AND_DRAIN();
	ASSERT_EQ(nr, self->log.nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(i, number_of(self->log.events[i].text));
}

static void toggle_for_ever(void *arg)
{
	unsigned int last = sysconf(_SC_NPROCESSORS_CONF) - 1;

	for (;;) {
		cpu_online(last, false);
		sleep_ms(20);
		cpu_online(last, true);
		sleep_ms(50);
	}
}

static void mix_unpinned(void *arg)
{
	for (;;) {
		work_fork(2);
		work_rename("hot", 0, 50);
		work_pingpong(20, -1);
	}
}

/* The same under load, with sessions coming and going meanwhile. */
TEST_F(relay, R8_cpu_toggles_under_load)
{
	unsigned int last = cpus_online() - 1, i, flushes = 0;
	pid_t toggle, load[2];
	uint64_t begin;

	if (!last)
		SKIP(return, "one CPU only");
	if (!cpus_can_go())
		SKIP(return, "CPUs cannot go and come here");
	ASSERT_EQ(1, enable_all(self->fd, "sched"));
	ASSERT_EQ(1, enable_all(self->fd, "process"));
	load[0] = spawn(mix_unpinned, NULL);
	load[1] = spawn(mix_unpinned, NULL);
	toggle = spawn(toggle_for_ever, NULL);
	for (begin = now_ns(); GOES_ON(begin, SECONDS, flushes > 2); flushes++) {
		struct etw_session_create create = describe("guest", variant->flags, 2);
		int other = session_make(self->dev, &create);

		ASSERT_GE(other, 0);
		EXPECT_EQ(1, enable_all(other, "sched"));
		ASSERT_NE(0, session_flush(self->fd));
		ASSERT_DRAINED(&self->reader);
		close(other);
	}
	reap(toggle);
	for (i = 0; i < 2; i++)
		reap(load[i]);
	cpu_online(last, true);
	STOP_AND_DRAIN();
	EXPECT_GT(flushes, 2);
}

/* A session that was there before a CPU gets its relay, says so, and misses nothing of it. */
TEST_F(relay, R8_late_cpu)
{
	unsigned int last = cpus_online() - 1;
	struct etw_session_query q;
	struct relay relay;
	struct etw_subbuf sb;
	struct pollfd p;
	int fd;

	if (!last)
		SKIP(return, "one CPU only");
	if (!cpus_can_go())
		SKIP(return, "CPUs cannot go and come here");
	ASSERT_EQ(0, pin(0));
	reader_close(&self->reader);
	ASSERT_EQ(0, cpu_online(last, false));
	self->create = describe("late", variant->flags, variant->nr_subbufs);
	fd = session_make(self->dev, &self->create);
	ASSERT_GE(fd, 0);
	q = session_query(fd);
	EXPECT_EQ(last, q.nr_relays);
	ASSERT_EQ(0, relay_open(&relay, fd, 0));
	p = (struct pollfd){ .fd = fd, .events = POLLIN | POLLPRI };
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(1, enable_renames(fd, getpid()));
	ASSERT_EQ(0, cpu_online(last, true));
	EXPECT_EQ(1, poll_woken(&p, 5000));
	EXPECT_EQ(POLLPRI, p.revents);
	EXPECT_EQ(last + 1, session_query(fd).nr_relays);
	EXPECT_GT(session_query(fd).memory, q.memory);
	ASSERT_EQ(0, pin(last));
	work_rename("late", 0, 10);
	relay_close(&relay);
	ASSERT_EQ(0, relay_open(&relay, fd, last));
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_NE(0, session_flush(fd));
	ASSERT_EQ(0, relay_get(&relay, &sb));
	EXPECT_EQ(10, sb.records);
	relay_close(&relay);
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
	close(fd);
}

TEST_HARNESS_MAIN
