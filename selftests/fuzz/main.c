// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes /dev/etw: threads that run, change and keep programs of calls, led by KCOV to what no program did before, while
 * others cause events. Prints KTAP: every command of the ABI must have succeeded at least once, nothing may be left in
 * the end. What the kernel complains about the guest's verdict tells.
 *
 *   etw_fuzz [--seconds N] [--calls N] [--threads N] [--seed N] [--seeds DIR] [--keep FILE] [--trace FILE] [--blind]
 *
 *   --seconds  how long (60); also -t
 *   --calls    go on until there were so many, but at most three times as long; fail with fewer
 *   --seeds    programs to begin with (beside the program)
 *   --keep     what had news, as text
 *   --trace    every program before it runs
 *   --blind    without KCOV
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/etw.h>

#include "fuzz.h"

#define MAX_THREADS 8
#define MAX_CORPUS 2048
#define FIXED_SEED 1

static struct {
	unsigned int seconds, threads;
	uint64_t calls, seed;
	const char *seeds, *keep, *trace;
	bool blind;
} options = { .seconds = 60, .threads = 3 };

static struct program *corpus;
static unsigned int nr_corpus, nr_seeds, nr_found;
static pthread_mutex_t corpus_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int next_seed;
static FILE *keep, *trace;

static struct op_count *counts;
static _Atomic uint64_t programs;
static _Atomic bool over;

static unsigned int tests, failures;

struct thread {
	pthread_t thread;
	unsigned int number;
	struct random random;
	struct table table;
	struct worker *worker;
	struct kcov *kcov;
	struct program program;
	unsigned int news_at;		/* calls up to the last that had news */
};

static struct thread threads[MAX_THREADS];

__attribute__((format(printf, 2, 3))) static void result(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %u - ", ok ? "" : "not ", ++tests);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	failures += !ok;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

static uint64_t now_ms(void)
{
	return now_us() / 1000;
}

/* ---- the corpus ---- */

static void corpus_add(const struct program *p, uint32_t nr, struct random *r)
{
	struct program *to;

	pthread_mutex_lock(&corpus_lock);
	nr_found++;
	to = &corpus[nr_corpus < MAX_CORPUS ? nr_corpus++ : nr_seeds + random_below(r, MAX_CORPUS - nr_seeds)];
	*to = *p;
	to->nr = nr;
	if (keep) {
		program_print(to, keep);
		fflush(keep);
	}
	pthread_mutex_unlock(&corpus_lock);
}

/* One ENABLE costs as much as hundreds of other calls: few programs keep more than one. */
static void drop_enables(struct program *p, struct random *r)
{
	uint32_t i, kept = 0;
	bool seen = false;

	for (i = 0; i < p->nr; i++) {
		if (ops[p->calls[i].op].cmd == ETW_IOC_SESSION_ENABLE) {
			if (seen && random_below(r, 8))
				continue;
			seen = true;
		}
		p->calls[kept++] = p->calls[i];
	}
	p->nr = kept;
}

/* The seeds first, each once; then mostly changed ones, more often of those found last. */
static void choose(struct thread *t)
{
	unsigned int seed = atomic_load(&next_seed), pick;
	static __thread struct program other;

	while (seed < nr_seeds)
		if (atomic_compare_exchange_strong(&next_seed, &seed, seed + 1)) {
			t->program = corpus[seed];
			return;
		}
	/* a session takes milliseconds to come and to go, what is asked of one microseconds */
	if (random_below(&t->random, 4)) {
		if (nr_seeds && atomic_load(&t->table.files[FIRST_SESSION]) < 0)
			t->program = corpus[random_below(&t->random, nr_seeds)];
		else
			program_make(&t->program, random_below(&t->random, 16), &t->random);
		drop_enables(&t->program, &t->random);
		return;
	}
	pthread_mutex_lock(&corpus_lock);
	pick = random_below(&t->random, nr_corpus);
	if (nr_corpus > 64 && random_below(&t->random, 2))
		pick = nr_corpus - 1 - random_below(&t->random, 64);
	t->program = corpus[pick];
	other = corpus[random_below(&t->random, nr_corpus)];
	pthread_mutex_unlock(&corpus_lock);
	program_mutate(&t->program, &other, &t->random);
	drop_enables(&t->program, &t->random);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_seeds(void)
{
	struct dirent **names;
	int i, nr = scandir(options.seeds, &names, NULL, by_name);
	bool good = nr > 0;

	for (i = 0; i < nr; i++) {
		char path[512];
		FILE *in;

		if (names[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", options.seeds, names[i]->d_name);
		in = fopen(path, "re");
		while (in && nr_corpus < MAX_CORPUS / 2) {
			const char *wrong = program_read(&corpus[nr_corpus], in);

			if (wrong) {
				printf("# %s: program %u: %s\n", path, nr_corpus, wrong);
				good = false;
				break;
			}
			if (!corpus[nr_corpus].nr)
				break;
			nr_corpus++;
		}
		good &= in != NULL;
		if (in)
			fclose(in);
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
	nr_seeds = nr_corpus;
	result(good && nr_seeds, "seeds can be read");
	printf("# %u seeds\n", nr_seeds);
}

/* ---- running ---- */

static bool after_call(void *arg, unsigned int done)
{
	struct thread *t = arg;

	if (t->kcov) {
		if (kcov_end(t->kcov, t->program.calls[done - 1].op))
			t->news_at = done;
		kcov_begin(t->kcov);
	}
	return !atomic_load_explicit(&over, memory_order_relaxed);
}

static void *fuzz(void *arg)
{
	struct thread *t = arg;

	if (!options.blind)
		t->kcov = kcov_open();
	while (!atomic_load(&over)) {
		struct table *table = &t->table;

		choose(t);
		/* as it would meet the files of another process that it shares them with */
		if (!random_below(&t->random, 4))
			table = &threads[random_below(&t->random, options.threads)].table;
		if (trace) {
			pthread_mutex_lock(&corpus_lock);
			fprintf(trace, "# thread %u\n", t->number);
			program_print(&t->program, trace);
			fflush(trace);
			pthread_mutex_unlock(&corpus_lock);
		}
		t->news_at = 0;
		if (t->kcov)
			kcov_begin(t->kcov);
		worker_run(t->worker, &t->program, table, after_call, t);
		atomic_fetch_add_explicit(&programs, 1, memory_order_relaxed);
		if (t->news_at)
			corpus_add(&t->program, t->news_at, &t->random);
		if (!random_below(&t->random, 8)) {
			table_close(&t->table);
			worker_drain(t->worker);
		}
	}
	table_close(&t->table);
	worker_drain(t->worker);
	return NULL;
}

/* The test build of the module has a provider that writes in any context. */
static void cause_test_events(unsigned int round)
{
	static const char *const contexts[] = { "task", "softirq", "hardirq", "nmi" };
	static const char *const classes[] = { "fixed", "sized", "large", "pointer" };
	const unsigned int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char text[128];
	int fd = open("/dev/etw-test", O_WRONLY | O_CLOEXEC), len;

	if (fd < 0)
		return;
	len = snprintf(text, sizeof(text), "burst context=%s cpu=%u count=20 class=%s", contexts[round % 4], round / 4 % cpus,
		       classes[round / 8 % 4]);
	if (write(fd, text, len) != len)
		perror("etw_fuzz: /dev/etw-test");
	close(fd);
}

/* Events of all kinds, a sixth of the time: the fuzzer needs the CPUs too. */
static void cause_events(void)
{
	static const char *const names[] = { "work-a", "work-b" };
	unsigned int i, round;
	uint64_t begin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (round = 0;; round++) {
		volatile char *at = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		begin = now_us();
		for (i = 0; i < 64; i++) {
			if (at != MAP_FAILED)
				at[i * 4096] = 1;
			prctl(PR_SET_NAME, names[i % 2]);
			sched_yield();
		}
		munmap((void *)at, 64 * 4096);
		if (round % 4 == 0)
			cause_test_events(round / 4);
		if (round % 32 == 0 && !fork())
			_exit(0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(4000 + 5 * (now_us() - begin));
	}
}

static uint64_t calls_done(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < nr_ops; i++)
		sum += counts[i].executed;
	return sum;
}

#define HOLDER "holder"		/* no program knows this name */

/* Many sessions make every event dear. Persistent ones live on; so now and then somebody stops them. */
static unsigned int stop_sessions(int device, bool all)
{
	struct etw_session_query q = { .size = sizeof(q) };
	struct etw_session_open o;
	unsigned int nr = 0;
	int fd;

	while (!ioctl(device, ETW_IOC_SESSION_LIST, &q)) {
		if (!strcmp((char *)q.name, HOLDER))
			continue;
		nr++;
		if (!all && nr <= 3)
			continue;
		o = (struct etw_session_open){ .size = sizeof(o) };
		memcpy(o.name, q.name, sizeof(o.name));
		fd = private_fd(ioctl(device, ETW_IOC_SESSION_OPEN, &o));
		if (fd < 0)
			continue;
		ioctl(fd, ETW_IOC_SESSION_STOP, 0);
		close(fd);
	}
	return nr;
}

/*
 * To attach to a tracepoint the kernel rewrites its code on all CPUs, which takes emulation longer than a thousand calls.
 * So most of the time a session has all providers enabled, and what the programs enable is attached already.
 */
static int hold_tracepoints(int device, int session, bool hold)
{
	static const char *const names[] = { "sched", "process", "block", "fault", "test" };
	struct etw_session_create c = {
		.size = sizeof(c), .flags = ETW_SESSION_OVERWRITE, .name = HOLDER, .subbuf_size = 4096, .nr_subbufs = 2,
	};
	struct etw_enable e = { .size = sizeof(e) };
	unsigned int i;

	if (hold == (session >= 0))
		return session;
	if (!hold) {
		close(session);
		return -1;
	}
	session = private_fd(ioctl(device, ETW_IOC_SESSION_CREATE, &c));
	for (i = 0; session >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		memset(e.name, 0, sizeof(e.name));
		strcpy((char *)e.name, names[i]);
		ioctl(session, ETW_IOC_SESSION_ENABLE, &e);
	}
	return session;
}

/* Grace periods that end soon three quarters of the time: else nearly all of it is spent waiting for them. */
static void hurry_grace_periods(unsigned int round)
{
	int fd = open("/sys/kernel/rcu_expedited", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, round % 4 ? "1" : "0", 1) < 0)
		perror("etw_fuzz: rcu_expedited");
	close(fd);
}

static void watch(int device)
{
	uint64_t begin = now_ms(), said = begin;
	unsigned int round = 16;
	int holder = -1;

	while (!complaint()) {
		uint64_t tenths = (now_ms() - begin) / 100 / options.seconds;

		if (tenths >= 30 || (tenths >= 10 && calls_done() >= options.calls))
			break;
		hurry_grace_periods(round / 4);
		holder = hold_tracepoints(device, holder, round++ / 16 % 4);
		usleep(250000);
		stop_sessions(device, false);
		if (now_ms() - said < 30000)
			continue;
		said = now_ms();
		printf("# after %llu s: %llu calls in %llu programs, %u programs kept, %u edges\n",
		       (unsigned long long)(said - begin) / 1000, (unsigned long long)calls_done(), (unsigned long long)programs,
		       nr_found, options.blind ? 0 : kcov_edges());
		fflush(stdout);
	}
	hold_tracepoints(device, holder, false);
	atomic_store(&over, true);
}

/* ---- the report ---- */

static void report_op(unsigned int i)
{
	const struct op *op = &ops[i];
	const struct op_count *n = &counts[i];
	unsigned int e;

	printf("# %s: %llu executed, %llu succeeded", op->name, (unsigned long long)n->executed, (unsigned long long)n->succeeded);
	for (e = 0; e < MAX_ERRNO; e++) {
		const char *name = strerrorname_np(e);

		if (n->failed[e])
			printf(", %llu %s", (unsigned long long)n->failed[e], e && name ? name : "of another error");
	}
	if (!options.blind)
		printf("; %u blocks", kcov_op_blocks(i));
	printf("\n");
}

static bool nothing_left(int device)
{
	struct etw_provider_list p = { .size = sizeof(p) };
	struct etw_version v = { .size = sizeof(v) };
	bool clean = true;
	unsigned int i;

	/* the last of a killed child may still be going */
	for (i = 0; i < 50; i++) {
		stop_sessions(device, true);
		v.size = sizeof(v);
		if (!ioctl(device, ETW_IOC_VERSION, &v) && !v.memory_used)
			break;
		usleep(100000);
	}
	if (v.memory_used) {
		printf("# %llu bytes of relays are left\n", (unsigned long long)v.memory_used);
		clean = false;
	}
	i = stop_sessions(device, true);
	if (i) {
		printf("# %u sessions are left\n", i);
		clean = false;
	}
	while (!ioctl(device, ETW_IOC_PROVIDER_LIST, &p)) {
		if (p.nr_sessions) {
			printf("# provider %s is enabled in %u sessions\n", p.name, p.nr_sessions);
			clean = false;
		}
		p.flags = 0;
		p.keywords = 0;
	}
	return clean;
}

static void report(int device, uint64_t ms)
{
	unsigned int i;

	for (i = 0; i < nr_ops; i++)
		report_op(i);
	printf("# executions: %llu calls in %llu programs, %llu s\n", (unsigned long long)calls_done(),
	       (unsigned long long)programs, (unsigned long long)ms / 1000);
	if (!options.blind) {
		kcov_print_unreached(stdout);
		printf("# coverage: %u edges, %u of %u blocks of the module; %u programs had news\n", kcov_edges(), kcov_blocks(),
		       kcov_total(), nr_found);
	}
	for (i = 0; i < nr_ops; i++) {
		/* none of our files has these */
		bool none = i >= first_other_op && (i - first_other_op == OP_IOCTL || i - first_other_op == OP_READ ||
						    i - first_other_op == OP_WRITE);

		result(none ? counts[i].executed : counts[i].succeeded, "%s was executed%s", ops[i].name,
		       none ? "" : " and succeeded");
	}
	result(calls_done() >= options.calls, "at least %llu calls", (unsigned long long)options.calls);
	if (!options.blind)
		result(kcov_edges() > 100 && nr_found > nr_seeds / 2, "coverage led the way");
	if (complaint())
		printf("# %s\n", complaint());
	result(!complaint(), "every call did what the ABI allows");
	result(nothing_left(device), "nothing is left");
}

static uint64_t random_seed(void)
{
	uint64_t seed = 0;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &seed, sizeof(seed)) != sizeof(seed))
		seed = now_ms();
	close(fd);
	return seed | 1;
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seconds", 1, NULL, 's' }, { "calls", 1, NULL, 'c' }, { "threads", 1, NULL, 'n' }, { "seed", 1, NULL, 'r' },
		{ "seeds", 1, NULL, 'd' }, { "keep", 1, NULL, 'k' }, { "trace", 1, NULL, 'l' }, { "blind", 0, NULL, 'b' }, {}
	};
	static char seeds[512];
	int key;

	snprintf(seeds, sizeof(seeds), "%s/seeds", dirname(strdup(argv[0])));
	options.seeds = seeds;
	while ((key = getopt_long(argc, argv, "t:", known, NULL)) != -1) {
		switch (key) {
		case 's':
		case 't':
			options.seconds = atoi(optarg);
			break;
		case 'c':
			options.calls = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			options.threads = atoi(optarg);
			break;
		case 'r':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			options.seeds = optarg;
			break;
		case 'k':
			options.keep = optarg;
			break;
		case 'l':
			options.trace = optarg;
			break;
		case 'b':
			options.blind = true;
			break;
		default:
			exit(2);
		}
	}
	if (!options.seconds || !options.threads || options.threads > MAX_THREADS) {
		fprintf(stderr, "etw_fuzz: --seconds is at least 1, --threads 1 to %u\n", MAX_THREADS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const struct rlimit files = { 1024, 1024 }, core = {};
	uint64_t begin;
	struct worker *workers[MAX_THREADS];
	unsigned int i, k;
	pid_t workload;
	int device;

	parse(argc, argv);
	/* Memory of the C library's must not come and go where a program maps and unmaps. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_CORE, &core);
	signal(SIGPIPE, SIG_IGN);

	printf("TAP version 13\n");
	device = private_fd(open("/dev/etw", O_RDWR | O_CLOEXEC));
	if (device < 0) {
		printf("Bail out! /dev/etw: %s\n", strerror(errno));
		return 1;
	}
	counts = mmap(NULL, nr_ops * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	corpus = calloc(MAX_CORPUS, sizeof(*corpus));
	if (counts == MAP_FAILED || !corpus)
		return 1;
	if (options.keep)
		keep = fopen(options.keep, "we");
	if (options.trace)
		trace = fopen(options.trace, "we");
	read_seeds();
	if (!options.blind)
		result(kcov_init(), "the kernel has KCOV");
	else
		printf("# without KCOV: what a program reached is not known, and so none is kept\n");
	if (failures)
		goto end;
	if (!options.seed)
		options.seed = random_seed();
	printf("# an execution is one call; a program is up to %u calls\n", MAX_CALLS);
	printf("# %u threads; seed %u for the first, 0x%llx for the others (--seed)\n", options.threads, FIXED_SEED,
	       (unsigned long long)options.seed);
	fflush(stdout);

	workload = fork();
	if (!workload)
		cause_events();
	begin = now_ms();
	racer_start();
	for (i = 0; i < options.threads; i++) {
		struct thread *t = &threads[i];

		t->number = i;
		t->random.state = i ? options.seed + i * 0x9e3779b97f4a7c15ULL : FIXED_SEED;
		for (k = 0; k < NR_PLACES; k++)
			atomic_store(&t->table.files[k], -1);
		t->worker = worker_new(i, counts);
	}
	for (i = 0; i < options.threads; i++)
		pthread_create(&threads[i].thread, NULL, fuzz, &threads[i]);
	watch(device);
	for (i = 0; i < options.threads; i++)
		pthread_join(threads[i].thread, NULL);
	/* others may have put files into a table that had been closed */
	for (i = 0; i < options.threads; i++) {
		table_close(&threads[i].table);
		workers[i] = threads[i].worker;
	}
	racer_stop();
	if (keep)
		fclose(keep);
	if (trace)
		fclose(trace);
	close_everything(workers, options.threads);
	kill(workload, SIGKILL);
	waitpid(workload, NULL, 0);
	report(device, now_ms() - begin);
end:
	printf("1..%u\n", tests);
	return failures != 0;
}
