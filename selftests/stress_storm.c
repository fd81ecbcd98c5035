// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once: every context of every CPU writes into many sessions of every kind, while they are read, flushed,
 * updated and captured, others come and go or are killed, CPUs go and come, and memory is short. Afterwards every event is
 * accounted for. Needs a test build of the module; it must not know how the relay works inside.
 *
 * ETW_STRESS_SECONDS is how long each storm goes on (20), or longer until everything has happened; counts are comments in
 * the output.
 */
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "etw_test.h"
#include "tally.h"

#undef ETW_TIMEOUT
#define ETW_TIMEOUT 1200

enum reading { EAGER, SLOW, LATE };

/* The sessions that live through the storm. */
static const struct plan {
	const char *name;
	__u32 flags, subbuf_size, nr_subbufs, clock;
	enum reading reading;
	__u32 level;
	__u64 any;
	bool picked;			/* one task only */
} plans[] = {
	{ "eager", 0, 65536, 8, ETW_CLOCK_MONOTONIC, EAGER },
	{ "full", 0, 4096, 2, ETW_CLOCK_MONOTONIC, LATE },
	{ "lap", ETW_SESSION_OVERWRITE, 4096, 2, ETW_CLOCK_MONOTONIC, SLOW },
	{ "recorder", ETW_SESSION_OVERWRITE, 16384, 8, ETW_CLOCK_REAL, LATE },
	{ "boot", 0, 16384, 4, ETW_CLOCK_BOOT, EAGER },
	{ "shown", ETW_SESSION_OVERWRITE | ETW_SESSION_ADDRESSES, 4096, 4, ETW_CLOCK_BOOT, EAGER },
	{ "picked", 0, 16384, 8, ETW_CLOCK_MONOTONIC, EAGER, .picked = true },
	{ "level", 0, 16384, 8, ETW_CLOCK_REAL, SLOW, .level = ETW_LEVEL_INFO, .any = 0x5 },
};

#define NR_PLANS ARRAY_SIZE(plans)
#define NR_CHURNS 3

/* What the processes of a storm share. */
struct shared {
	int stop;			/* writers and all who disturb */
	int finish;			/* readers: the sessions have stopped */
	struct tally tallies[NR_PLANS];
	uint64_t bursts, sessions, whole, refused, killed, flushes, late_flushes, updates, enables, captures, queries;
	uint64_t toggles, packets, short_kb;
	char error[400];
};

static struct shared *shared;
static int dev, fds[NR_PLANS];
static pid_t picked;

#define COUNT(what) __atomic_fetch_add(&shared->what, 1, __ATOMIC_RELAXED)

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	static int first;
	va_list args;

	if (__atomic_fetch_add(&first, 1, __ATOMIC_RELAXED) || shared->error[0])
		return;
	va_start(args, format);
	vsnprintf(shared->error, sizeof(shared->error), format, args);
	va_end(args);
}

static bool going(void)
{
	return !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static unsigned int dice(unsigned int sides)
{
	static uint64_t state;

	if (!state)
		state = getpid() * 2862933555777941757ULL + 3037000493ULL;
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % sides;
}

static unsigned int seconds(void)
{
	const char *text = getenv("ETW_STRESS_SECONDS");
	int nr = text ? atoi(text) : 0;

	return nr > 0 ? nr : 20;
}

/* A storm goes on for its time and until @happened, but not for ever: what did not happen can still be said. */
#define STORM_GOES_ON(begin, happened)								\
	(!shared->error[0] && now_ns() < (begin) + (ETW_TIMEOUT - 300) * 1000000000ULL &&		\
	 (now_ns() < (begin) + seconds() * 1000000000ULL || !(happened)))

/* ---- who writes ---- */

struct writer {
	unsigned int cpu;
	enum level context;
};

/* Bursts of every class; now and then a chain of writers, one that is held up, or one too large for some. */
static void write_on(void *arg)
{
	struct writer *w = arg;
	const char *const where[] = { "begin", "record" }, *context = context_names[w->context];
	char place[32] = "";
	int err;

	if (w->context != TASK)
		snprintf(place, sizeof(place), "cpu=%u", w->cpu);
	while (going()) {
		const unsigned int what = dice(100), count = 20 + dice(200);

		if (w->context == TASK)
			pin(w->cpu);		/* again: a CPU that goes breaks it */
		if (what < 5)
			err = generate("burst context=%s %s count=3 depth=%u", context, place, 2 + dice(7));
		else if (what < 12)
			err = generate("burst context=%s %s count=2 hold_us=%u where=%s", context, place,
				       w->context >= HARDIRQ ? 100 : 1 + dice(3000), where[dice(2)]);
		else if (what < 17)
			err = generate("burst context=%s %s count=4 class=large size=%u", context, place,
				       3800 + 4 * dice(18000 / 4));
		else
			err = generate("burst context=%s %s count=%u chunk=%u every_us=%u class=%s", context, place,
				       w->context == NMI ? count / 4 : count, 1 + dice(12), 30 + dice(300),
				       kind_names[dice(NR_KINDS)]);
		COUNT(bursts);
		if (err == -ENXIO)		/* its CPU is away */
			sleep_ms(3);
		else if (err)
			fail("a burst: %s", strerror(-err));
	}
}

/* The one whose events alone the session "picked" wants: anywhere. */
static void write_anywhere(void *arg)
{
	while (going()) {
		generate("burst count=%u class=%s", 1 + dice(100), kind_names[dice(NR_KINDS)]);
		sched_yield();
	}
}

/* ---- who reads ---- */

static void broken_reader(struct tally *t, struct reader *r)
{
	if (!t->error[0])
		snprintf(t->error, sizeof(t->error), "%.250s", r->error);
}

static void drain_all(struct reader *r, struct tally *t)
{
	int n;

	while ((n = reader_drain(r)) > 0)
		;
	if (n < 0)
		broken_reader(t, r);
}

static void read_plan(void *arg)
{
	const unsigned int i = (intptr_t)arg;
	struct tally *t = &shared->tallies[i];
	struct etw_subbuf sb;
	struct reader r;

	if (reader_open(&r, fds[i], tally_event, t)) {
		snprintf(t->error, sizeof(t->error), "cannot be read");
		return;
	}
	while (!__atomic_load_n(&shared->finish, __ATOMIC_RELAXED) && !t->error[0]) {
		reader_wait(&r, 100);
		if (plans[i].reading == SLOW) {
			/* hold a packet, which must not change */
			relay_get(&r.relays[dice(r.nr)], &sb);
			sleep_ms(dice(60));
		}
		if (reader_drain(&r) < 0)
			broken_reader(t, &r);
	}
	drain_all(&r, t);
	__atomic_fetch_add(&shared->packets, r.packets, __ATOMIC_RELAXED);
	reader_close(&r);
}

/* ---- who disturbs ---- */

static bool no_memory(int err)
{
	return err == -ENOMEM || err == -EDQUOT;
}

static int enable_plan(unsigned int i)
{
	struct etw_enable e = enable_make("test");
	__s32 pids[1] = { picked };

	e.level = plans[i].level;
	e.any = plans[i].any;
	if (plans[i].picked) {
		e.pids = (uintptr_t)pids;
		e.nr_pids = 1;
	}
	return call(fds[i], ETW_IOC_SESSION_ENABLE, &e);
}

static int flush_within(int fd, unsigned int ms)
{
	struct etw_flush flush;

	poison(flush);
	flush.timeout_ms = ms;
	flush.reserved = 0;
	return call(fd, ETW_IOC_SESSION_FLUSH, &flush);
}

/* Everything that may be asked of a session and must not cost it an event: enabled again as it is, too. */
static void disturb(void *arg)
{
	while (going()) {
		const unsigned int i = dice(NR_PLANS);
		struct etw_session_update update = { .size = sizeof(update), .what = ETW_UPDATE_FLUSH_MS };
		struct etw_provider_ref ref = { .size = sizeof(ref), .name = "test" };
		int err = 0;

		switch (dice(6)) {
		case 0:
			err = enable_plan(i);
			COUNT(enables);
			break;
		case 1:
			err = flush_within(fds[i], 1 + dice(50));
			COUNT(flushes);
			if (err == -ETIMEDOUT) {
				COUNT(late_flushes);
				err = 0;
			}
			break;
		case 2:
			update.flush_ms = dice(4) ? 1 + dice(100) : ETW_FLUSH_MS_NEVER;
			err = call(fds[i], ETW_IOC_SESSION_UPDATE, &update);
			COUNT(updates);
			break;
		case 3:
			err = call(fds[i], ETW_IOC_SESSION_CAPTURE_STATE, &ref);
			COUNT(captures);
			break;
		default:
			session_query(fds[i]);
			COUNT(queries);
		}
		if (err < 0 && !no_memory(err))
			fail("session %s: %s", plans[i].name, strerror(-err));
		sleep_ms(dice(5));
	}
}

/* What a session that comes and goes must have; @e: the generator before and after ENABLE, before and after DISABLE. */
static const char *window_broken(int fd, const struct tally *t, const struct emitted *e)
{
	static char text[256];
	struct etw_session_query q = session_query(fd);
	unsigned int cpu, context, kind;
	bool lossless = !q.overwritten;
	uint64_t nr = 0;

	for (kind = 0; kind < ETW_NR_LOST; kind++)
		lossless &= !q.lost[kind];
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		for (context = 0; context < NR_CONTEXTS; context++)
			for (kind = 0; kind < NR_KINDS; kind++) {
				typeof(t->seen[0][0][0]) *s = &t->seen[cpu][context][kind];
				uint64_t at[4];
				const char *why = NULL;
				unsigned int i;

				for (i = 0; i < 4; i++)
					at[i] = e[i].nr[cpu][context][kind];
				nr += s->read;
				if (s->read && (s->first < at[0] || s->next > at[3]))
					why = "events from before ENABLE or after DISABLE";
				else if (lossless && s->missing)
					why = "a gap, but nothing lost";
				else if (lossless && at[2] > at[1] && (!s->read || s->first > at[1] || s->next < at[2]))
					why = "not all between ENABLE and DISABLE, but nothing lost";
				if (!why)
					continue;
				snprintf(text, sizeof(text),
					 "%s on CPU %u, %s, %s: read %llu..%llu, emitted %llu %llu %llu %llu", why, cpu,
					 context_names[context], kind_names[kind], (llu)s->first,
					 (llu)s->next, (llu)at[0], (llu)at[1],
					 (llu)at[2], (llu)at[3]);
				return text;
			}
	if (lossless && nr)
		COUNT(whole);
	return NULL;
}

static struct etw_session_create any_session(const char *name)
{
	struct etw_session_create create = session_small(unique(name));

	create.flags = dice(2) ? ETW_SESSION_OVERWRITE : 0;
	create.subbuf_size = 4096 << dice(6);
	create.nr_subbufs = 2 << dice(4);
	create.clock = dice(4);
	create.flush_ms = dice(2) ? 1 + dice(50) : ETW_FLUSH_MS_NEVER;
	/* and some with so much room that they lose nothing, on a slow machine too */
	if (!dice(4)) {
		create.flags = 0;
		create.subbuf_size = 128 << 10;
		create.nr_subbufs = 64;
	}
	return create;
}

static const char *const all_providers[] = { "process", "sched", "fault", "block", "etw" };

/* A session from its creation to its end: nothing that was enabled is missing, nothing else is there. */
static void one_session(void)
{
	struct etw_session_create create = any_session("churn");
	struct reader r = { 0 };
	struct tally t = { 0 };
	struct emitted e[4];
	const char *why = NULL;
	unsigned int step, steps = 1 + dice(8);
	int fd = session_make(dev, &create), err;

	if (fd < 0) {
		if (no_memory(fd))
			COUNT(refused);
		else
			fail("create: %s", strerror(-fd));
		return;
	}
	COUNT(sessions);
	emitted_read(&e[0]);
	err = enable_all(fd, "test");
	emitted_read(&e[1]);
	if (err == 1 && !dice(3))
		enable_all(fd, all_providers[dice(ARRAY_SIZE(all_providers))]);
	if (err == 1)
		err = reader_open(&r, fd, tally_event, &t);
	for (step = 0; !err && step < steps && going(); step++) {
		struct etw_session_update update = {
			.size = sizeof(update), .what = ETW_UPDATE_FLUSH_MS, .flush_ms = 1 + dice(100),
		};
		struct etw_provider_ref ref = { .size = sizeof(ref), .name = "test" };

		switch (dice(6)) {
		case 0:
			err = enable_all(fd, "test");
			err = err == 1 ? 0 : err;
			break;
		case 1:
			err = flush_within(fd, 2000);
			break;
		case 2:
			err = call(fd, ETW_IOC_SESSION_UPDATE, &update);
			break;
		case 3:
			err = call(fd, ETW_IOC_SESSION_CAPTURE_STATE, &ref);
			break;
		default:
			reader_wait(&r, 1 + dice(20));
			if (reader_drain(&r) < 0)
				err = -EPROTO;
		}
		if (err == -ETIMEDOUT || no_memory(err))
			err = 0;
	}
	emitted_read(&e[2]);
	if (!err)
		err = disable(fd, "test");
	emitted_read(&e[3]);
	if (!err)
		err = call(fd, ETW_IOC_SESSION_STOP, NULL);
	if (!err)
		err = reader_open_late(&r);
	while (!err && (err = reader_drain(&r)) > 0)
		err = 0;
	if (!err)
		why = sums_broken(fd);
	if (!err && !why)
		why = t.error[0] ? t.error : window_broken(fd, &t, e);
	if (why)
		fail("%s", why);
	else if (r.error)
		fail("%s", r.error);
	else if (err && !no_memory(err))
		fail("a session that comes and goes: %s", strerror(-err));
	reader_close(&r);
	close(fd);
}

static void churn(void *arg)
{
	while (going()) {
		one_session();
		sleep_ms(dice(20));
	}
}

/* Has everything and holds everything when it is killed. */
static void victim(void *arg)
{
	struct etw_session_create create = any_session("victim");
	struct etw_subbuf sb;
	struct reader r;
	unsigned int i;
	int fd = session_make(dev, &create);

	for (i = 0; fd >= 0 && i < ARRAY_SIZE(all_providers); i++)
		enable_all(fd, all_providers[i]);
	if (fd < 0 || enable_all(fd, "test") < 0 || reader_open(&r, fd, NULL, NULL))
		return;
	for (i = 0;; i++) {
		relay_get(&r.relays[i % r.nr], &sb);
		flush_within(fd, 100);
		if (i % 3 == 0)
			relay_put(&r.relays[i % r.nr]);
	}
}

static void kill_victims(void *arg)
{
	while (going()) {
		pid_t pid = spawn(victim, NULL);

		sleep_ms(10 + dice(200));
		reap(pid);
		COUNT(killed);
	}
}

static void toggle_cpu(void *arg)
{
	const unsigned int last = (intptr_t)arg;

	pin(0);
	while (going()) {
		cpu_online(last, false);
		sleep_ms(20 + dice(200));
		cpu_online(last, true);
		COUNT(toggles);
		sleep_ms(50 + dice(500));
	}
}

/* In KiB. */
static uint64_t meminfo(const char *name)
{
	char text[4096], *p;

	if (file_read("/proc/meminfo", text, sizeof(text)) <= 0)
		return 0;
	p = strstr(text, name);
	return p ? strtoull(p + strlen(name) + 1, NULL, 10) : 0;
}

#define HOG_STEP (1UL << 20)
#define HOG_FLOOR_KB (40UL << 10)

/* Keeps the machine short of memory and without large blocks: of what it touched it gives single pages back. */
static void hog(void *arg)
{
	char *at[4096];
	unsigned int nr = 0;
	size_t page;

	file_write("/proc/self/oom_score_adj", "1000");
	while (going()) {
		uint64_t left = meminfo("MemFree:");

		if (left > HOG_FLOOR_KB + 4096 && nr < ARRAY_SIZE(at)) {
			char *p = mmap(NULL, HOG_STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
				       -1, 0);

			if (p == MAP_FAILED)
				break;
			for (page = 0; page < HOG_STEP; page += 65536)
				madvise(p + page, 4096, MADV_DONTNEED);
			at[nr++] = p;
		} else if (left < HOG_FLOOR_KB && nr) {
			munmap(at[--nr], HOG_STEP);
		} else {
			if (!shared->short_kb || left < shared->short_kb)
				shared->short_kb = left;
			sleep_ms(20);
		}
	}
}

/* ---- the storm ---- */

#define MOST 64
static pid_t pids[MOST];
static unsigned int nr_pids;

static void begin(void (*fn)(void *), void *arg)
{
	pids[nr_pids++] = spawn(fn, arg);
}

/* All who look at shared->stop end. */
static bool end_all(unsigned int from)
{
	bool ok = true;

	while (nr_pids > from) {
		const pid_t pid = pids[--nr_pids];
		int status;

		if (!wait_until(60000, waitpid(pid, &status, WNOHANG) == pid)) {
			reap(pid);
			ok = false;
		} else {
			ok &= WIFEXITED(status) && !WEXITSTATUS(status);
		}
	}
	return ok;
}

FIXTURE(storm)
{
	unsigned int cpus, contexts;
};

FIXTURE_SETUP(storm)
{
	unsigned int cpu;

	ASSERT_TRUE(generator_there());
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	nr_pids = 0;
	dev = device_open();
	ASSERT_GE(dev, 0);
	/* A test that was killed may have left some away. */
	for (cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		cpu_online(cpu, true);
	self->cpus = cpus_online();
	ASSERT_LE(self->cpus, MAX_CPUS);
	self->contexts = nmi_there() ? NR_CONTEXTS : NMI;
}

FIXTURE_TEARDOWN(storm)
{
	while (nr_pids)
		reap(pids[--nr_pids]);
	if (self->cpus > 1)
		cpu_online(self->cpus - 1, true);
	close(dev);
	munmap(shared, sizeof(*shared));
}

static void write_all(unsigned int cpus, unsigned int contexts)
{
	static struct writer writers[MAX_CPUS * NR_CONTEXTS];
	unsigned int i;

	for (i = 0; i < cpus * contexts; i++) {
		writers[i] = (struct writer){ i / contexts, i % contexts };
		begin(write_on, &writers[i]);
	}
}

/* Of everything a storm is made of there must be some: what there is not, or NULL. */
static const char *missing(unsigned int cpus, unsigned int contexts, const struct emitted *from)
{
	struct emitted now;
	unsigned int cpu, context, kind;

	emitted_read(&now);
	for (context = 0; context < contexts; context++) {
		uint64_t nr = 0;

		for (cpu = 0; cpu < cpus; cpu++)
			for (kind = 0; kind < NR_KINDS; kind++)
				nr += now.nr[cpu][context][kind] - from->nr[cpu][context][kind];
		if (nr < 500)
			return context_names[context];
	}
#define MISSING(what, least) do { if (shared->what < (least)) return #what; } while (0)
	MISSING(bursts, 201);
	MISSING(sessions, 4);
	MISSING(whole, 1);
	MISSING(killed, 3);
	if (cpus > 1)
		MISSING(toggles, 2);
	MISSING(updates, 1);
	MISSING(enables, 1);
	MISSING(captures, 1);
	MISSING(flushes, 1);
	MISSING(queries, 1);
	MISSING(short_kb, 1);
	return NULL;
}

TEST_F(storm, account)
{
	struct emitted from, to;
	struct etw_session_query q;
	uint64_t begun, written = 0, lost[ETW_NR_LOST] = { 0 }, overwritten = 0, emitted = 0;
	unsigned int i, k, cpu, readers, deepest = 0;
	const char *why;

	for (i = 0; i < NR_PLANS; i++) {
		struct etw_session_create create = session_small(unique(plans[i].name));

		create.flags = plans[i].flags;
		create.subbuf_size = plans[i].subbuf_size;
		create.nr_subbufs = plans[i].nr_subbufs;
		create.clock = plans[i].clock;
		create.flush_ms = 10;
		fds[i] = session_make(dev, &create);
		ASSERT_GE(fds[i], 0);
		shared->tallies[i].addresses = plans[i].flags & ETW_SESSION_ADDRESSES;
	}
	for (i = 0; i < NR_PLANS; i++)
		if (plans[i].reading != LATE)
			begin(read_plan, (void *)(intptr_t)i);
	readers = nr_pids;
	begin(hog, NULL);
	/* stopped until its events are wanted */
	begin(write_anywhere, NULL);
	picked = pids[nr_pids - 1];
	kill(picked, SIGSTOP);
	ASSERT_TRUE(wait_until(10000, ({ char t[512], p[64]; snprintf(p, sizeof(p), "/proc/%d/stat", picked);
					file_read(p, t, sizeof(t)) > 0 && strstr(t, ") T "); })));
	emitted_read(&from);
	for (i = 0; i < NR_PLANS; i++) {
		ASSERT_EQ(1, enable_plan(i));
		shared->tallies[i].only_pid = plans[i].picked ? picked : 0;
	}
	kill(picked, SIGCONT);
	write_all(self->cpus, self->contexts);
	begin(disturb, NULL);
	begin(disturb, NULL);
	for (i = 0; i < NR_CHURNS; i++)
		begin(churn, NULL);
	begin(kill_victims, NULL);
	if (self->cpus > 1)
		begin(toggle_cpu, (void *)(intptr_t)(self->cpus - 1));

	for (begun = now_ns(); STORM_GOES_ON(begun, !missing(self->cpus, self->contexts, &from)); sleep_ms(50))
		;
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	ASSERT_TRUE(end_all(readers));
	if (shared->error[0])
		TH_LOG("%s", shared->error);
	ASSERT_EQ(0, shared->error[0]);

	for (i = 0; i < NR_PLANS; i++)
		ASSERT_EQ(0, disable(fds[i], "test"));
	emitted_read(&to);
	for (i = 0; i < NR_PLANS; i++)
		ASSERT_EQ(0, call(fds[i], ETW_IOC_SESSION_STOP, NULL));
	__atomic_store_n(&shared->finish, 1, __ATOMIC_RELAXED);
	ASSERT_TRUE(end_all(0));
	for (i = 0; i < NR_PLANS; i++)
		if (plans[i].reading == LATE)
			read_plan((void *)(intptr_t)i);

	for (i = 0; i < NR_PLANS; i++) {
		why = tally_broken(fds[i], &shared->tallies[i], &from, &to, plans[i].picked);
		if (!why)
			why = sums_broken(fds[i]);
		if (why)
			TH_LOG("session %s: %s", plans[i].name, why);
		EXPECT_EQ(NULL, why);
		q = session_query(fds[i]);
		TH_LOG("%-8s %llu written, %llu filtered, %llu overwritten; "
		       "lost %llu no room, %llu wrapped, %llu nested, %llu too large",
		       plans[i].name, q.written, q.filtered, q.overwritten, q.lost[ETW_LOST_NO_ROOM],
		       q.lost[ETW_LOST_WRAPPED], q.lost[ETW_LOST_NESTED], q.lost[ETW_LOST_TOO_LARGE]);
		written += q.written;
		overwritten += q.overwritten;
		for (k = 0; k < ETW_NR_LOST; k++)
			lost[k] += q.lost[k];
		if (shared->tallies[i].deepest > deepest)
			deepest = shared->tallies[i].deepest;
		close(fds[i]);
	}
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		for (i = 0; i < NR_CONTEXTS; i++)
			for (k = 0; k < NR_KINDS; k++)
				emitted += to.nr[cpu][i][k] - from.nr[cpu][i][k];
	TH_LOG("%llu events in %llu bursts, %llu records, %llu packets read, %u writers inside each other",
	       (llu)emitted, (llu)shared->bursts, (llu)written, (llu)shared->packets, deepest);
	TH_LOG("%llu sessions came and went, %llu of them without loss, %llu were refused, %llu killed; "
	       "%llu flushes, %llu late, %llu updates, %llu enables, %llu captures",
	       (llu)shared->sessions, (llu)shared->whole, (llu)shared->refused,
	       (llu)shared->killed,
	       (llu)shared->flushes, (llu)shared->late_flushes, (llu)shared->updates,
	       (llu)shared->enables, (llu)shared->captures);
	TH_LOG("CPU %u went %llu times; %llu KiB of memory were free", self->cpus - 1, (llu)shared->toggles,
	       (llu)shared->short_kb);
	why = missing(self->cpus, self->contexts, &from);
	if (why)
		TH_LOG("hardly any: %s", why);
	EXPECT_EQ(NULL, why);
	EXPECT_GT(lost[ETW_LOST_NO_ROOM], 0);
	EXPECT_GT(lost[ETW_LOST_NESTED], 0);
	EXPECT_GT(lost[ETW_LOST_TOO_LARGE], 0);
	EXPECT_GT(overwritten, 0);
	EXPECT_GE(deepest, 4);
}

/* ---- enabling and CPUs ---- */

static void enable_for_ever(void *arg)
{
	while (going()) {
		const unsigned int i = dice(2);
		int err = dice(3) ? enable_all(fds[i], "test") : disable(fds[i], "test");

		if (err < 0 && !no_memory(err))
			fail("enable or disable: %s", strerror(-err));
		if (!dice(3))
			enable_all(fds[i], all_providers[dice(ARRAY_SIZE(all_providers))]);
		COUNT(enables);
	}
}

/* Every answer goes to memory that is not there yet, so that the call faults inside, under whatever lock. */
static void ask_into_nothing(void *arg)
{
	while (going()) {
		const size_t size = 64 << 10;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct etw_session_query *q = (void *)p;
		struct etw_schema_read read = {
			.size = sizeof(read), .buf = (uintptr_t)p + 8192, .buf_size = size - 8192,
		};
		int err;

		if (p == MAP_FAILED)
			continue;
		q->size = sizeof(*q);
		err = call(fds[dice(2)], ETW_IOC_SESSION_QUERY, p);
		if (!err)
			err = call(fds[dice(2)], ETW_IOC_SESSION_SCHEMA_READ, &read);
		if (err && !no_memory(err))
			fail("QUERY or SCHEMA_READ: %s", strerror(-err));
		munmap(p, size);
		COUNT(queries);
	}
}

/* Each time a new reader, who goes on where the one before ended. */
static void map_for_ever(void *arg)
{
	const unsigned int i = (intptr_t)arg;
	struct reader r;

	while (going()) {
		struct tally t = { 0 };
		struct etw_cpu_query q;
		unsigned int k;

		if (reader_open(&r, fds[i], tally_event, &t))
			continue;
		for (k = 0; k < r.nr; k++) {
			if (!session_cpu(fds[i], r.relays[k].cpu, &q) || !q.first_seq)
				continue;
			r.streams[k].packets = 1;
			r.streams[k].last_seq = q.first_seq - 1;
		}
		if (reader_drain(&r) < 0)
			fail("%s", r.error);
		if (t.error[0])
			fail("%s", t.error);
		reader_close(&r);
	}
}

static void create_for_ever(void *arg)
{
	while (going())
		one_session();
}

/* A CPU goes and comes as fast as it can, under everything that takes the locks of enabling, creation and flush. */
TEST_F(storm, cpus_and_enable)
{
	uint64_t begun;
	unsigned int i, last = self->cpus - 1, toggles = 0;
	const char *why;

	if (!last)
		SKIP(return, "one CPU only");
	for (i = 0; i < 2; i++) {
		struct etw_session_create create = session_small(unique(i ? "over" : "disc"));

		create.flags = i ? ETW_SESSION_OVERWRITE : 0;
		create.flush_ms = 5;
		fds[i] = session_make(dev, &create);
		ASSERT_GE(fds[i], 0);
	}
	for (i = 0; i < 2; i++) {
		begin(enable_for_ever, NULL);
		begin(map_for_ever, (void *)(intptr_t)i);
	}
	begin(ask_into_nothing, NULL);
	begin(create_for_ever, NULL);
	write_all(self->cpus, self->contexts);
	pin(0);
	for (begun = now_ns(); STORM_GOES_ON(begun, toggles > 3 && shared->enables > 10 && shared->sessions); toggles++) {
		ASSERT_EQ(0, cpu_online(last, false));
		ASSERT_EQ(0, cpu_online(last, true));
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	ASSERT_TRUE(end_all(0));
	if (shared->error[0])
		TH_LOG("%s", shared->error);
	EXPECT_EQ(0, shared->error[0]);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, call(fds[i], ETW_IOC_SESSION_STOP, NULL));
		why = sums_broken(fds[i]);
		if (why)
			TH_LOG("%s", why);
		EXPECT_EQ(NULL, why);
		close(fds[i]);
	}
	TH_LOG("CPU %u went %u times; %llu enables, %llu queries, %llu sessions", last, toggles, (llu)shared->enables,
	       (llu)shared->queries, (llu)shared->sessions);
	EXPECT_GT(toggles, 3);
	EXPECT_GT(shared->enables, 10);
}

TEST_HARNESS_MAIN
