// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program's event of 32 bytes costs, in guest instructions with everything that belongs to it, against the goals of the
 * project: by a write of its own and by ETW_WRITE; and how ENABLE grows with the events of a provider; TAP. It must run alone
 * on one CPU under -icount, where the time stamp counter counts instructions (cost.md). It knows the ABI and the library's
 * provider half.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <etw/provider.h>

#include "emitter.h"
#include "util.h"

#define REPS 9
#define WRITES 2048
#define BATCH 16
#define PAYLOAD 32

/* Instructions, each at most. */
#define GOAL_OFF 3
#define GOAL_EVENT 850
#define GOAL_BATCHED 200
#define GOAL_FURTHER 80
/* What ENABLE of eight times the events may take, in times: each as long as one of the few, or little longer. */
#define GOAL_ENABLE 9

static int test_nr, failed;

static void result(bool ok, const char *what, double is, double goal)
{
	printf("%sok %d - %s: %.1f of at most %.0f\n", ok ? "" : "not ", ++test_nr, what, is, goal);
	failed += !ok;
}

static void result_of(bool ok, const char *whose, const char *what)
{
	printf("%sok %d - %s: %s\n", ok ? "" : "not ", ++test_nr, whose, what);
	failed += !ok;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Instructions a call of @fn takes: the lower quartile of several series. */
static double measure(void (*fn)(void))
{
	double value[REPS];

	for (int r = -1; r < REPS; r++) {
		uint64_t begin;

		usleep(200000);	/* readers read, the kernel keeps house */
		begin = __rdtsc();
		for (int i = 0; i < WRITES; i++)
			fn();
		if (r >= 0)
			value[r] = (double)(__rdtsc() - begin) / WRITES;
	}
	qsort(value, REPS, sizeof(value[0]), compare);
	return value[REPS / 4];
}

static const uint8_t *byte;
static uint8_t one[8 + PAYLOAD], many[BATCH * sizeof(one)];
static int provider, null;
static uint64_t hits;

static void nothing(void)
{
	__asm__ volatile("");
}

static void off(void)
{
	__asm__ volatile("" ::: "memory");	/* it may have changed since the last look */
	if (__builtin_expect(*byte, 0))
		hits++;
}

static void write_null(void)
{
	hits += write(null, one + 8, PAYLOAD);
}

static void write_one(void)
{
	hits += write(provider, one, sizeof(one));
}

static void write_many(void)
{
	hits += write(provider, many, sizeof(many));
}

/* ---- by the library ---- */

ETW_PROVIDER(library, "Cost-Library");

static uint8_t room[4096];

static void library_one(void)
{
	ETW_WRITE(library, "event", ETW_LEVEL_INFO, 0x1, etw_u64("a", hits), etw_u64("b", 2), etw_u64("c", hits), etw_u64("d", 4));
}

static void library_many(void)
{
	struct etw_batch batch;

	etw_batch_begin(&batch, room, sizeof(room));
	for (int i = 0; i < BATCH; i++)
		ETW_WRITE(library, "event", ETW_LEVEL_INFO, 0x1, etw_u64("a", hits), etw_u64("b", 2), etw_u64("c", i),
			  etw_u64("d", 4));
	hits += etw_batch_end(&batch);
}

/* ---- */

static int session(int dev, const char *name)
{
	struct etw_session_create c = { .size = sizeof(c), .flags = ETW_SESSION_OVERWRITE };
	int fd;

	strcpy((char *)c.name, name);
	fd = session_make(dev, &c);
	if (fd < 0 || enable_all(fd, "Cost-Provider") != 1 || enable_all(fd, "Cost-Library") != 1) {
		printf("Bail out! session: %d\n", fd);
		exit(1);
	}
	return fd;
}

static uint64_t lost(int fd)
{
	const struct etw_session_query q = session_query(fd);
	uint64_t sum = 0;

	for (int i = 0; i < ETW_NR_LOST; i++)
		sum += q.lost[i];
	return sum;
}

/* All figures of a registration by root or by somebody without rights. */
static void costs(const char *whose, bool root)
{
	static struct schema_maker m;
	uint8_t payload[PAYLOAD] = {};
	double base, loop, single, batched, further, by_library, by_batch;
	struct etw_provider_status status = { .size = sizeof(status) };
	char what[128];
	int dev = device_open(), event, first, second;
	size_t used = 0;

	loop = measure(nothing);
	provider = provider_register(dev, "Cost-Provider");
	if (!root && (setresuid(0, 0, 0) || provider < 0)) {
		printf("Bail out! register as somebody: %d\n", provider);
		exit(1);
	}
	schema_begin(&m, "event", 4);
	schema_field(&m, 0, "a", ETW_TYPE_U64);
	schema_field(&m, 1, "b", ETW_TYPE_U64);
	schema_field(&m, 2, "c", ETW_TYPE_U64);
	schema_field(&m, 3, "d", ETW_TYPE_U64);
	event = provider_event(provider, m.bytes, schema_done(&m));
	byte = (const uint8_t *)provider_map(provider) + event;
	write_add(one, 0, event, payload, sizeof(payload));
	for (int i = 0; i < BATCH; i++)
		used = write_add(many, used, event, payload, sizeof(payload));

	base = measure(off) - loop;
	snprintf(what, sizeof(what), "%s: nobody listens, instructions", whose);
	result(base <= GOAL_OFF, what, base, GOAL_OFF);
	base = measure(library_one) - loop;
	snprintf(what, sizeof(what), "%s: nobody listens, by the library, instructions", whose);
	result(base <= GOAL_OFF, what, base, GOAL_OFF);
	first = session(dev, root ? "first" : "first-2");
	base = measure(write_null);
	single = measure(write_one) - loop;
	snprintf(what, sizeof(what), "%s: an event, instructions", whose);
	result(single <= GOAL_EVENT, what, single, GOAL_EVENT);
	batched = (measure(write_many) - loop) / BATCH;
	snprintf(what, sizeof(what), "%s: an event of %d in one write, instructions", whose, BATCH);
	result(batched <= GOAL_BATCHED, what, batched, GOAL_BATCHED);
	by_library = measure(library_one) - loop;
	snprintf(what, sizeof(what), "%s: an event by the library, instructions", whose);
	result(by_library <= GOAL_EVENT, what, by_library, GOAL_EVENT);
	by_batch = (measure(library_many) - loop) / BATCH;
	snprintf(what, sizeof(what), "%s: an event of a batch of %d by the library, instructions", whose, BATCH);
	result(by_batch <= GOAL_BATCHED, what, by_batch, GOAL_BATCHED);
	second = session(dev, root ? "second" : "second-2");
	further = measure(write_one) - loop - single;
	snprintf(what, sizeof(what), "%s: a further session, instructions", whose);
	result(further <= GOAL_FURTHER, what, further, GOAL_FURTHER);
	further = (measure(write_many) - loop) / BATCH - batched;
	printf("# %s, instructions an event: a bare write of %d bytes to /dev/null %.0f, one event %.0f, of %d %.0f, a further session of %d %.0f, by the library %.0f, of %d %.0f\n",
	       whose, PAYLOAD, base, single, BATCH, batched, BATCH, further, by_library, BATCH, by_batch);
	etw_provider_status(&library, &status);
	result_of(lost(first) + lost(second) + status.no_room + status.too_large + status.failed == 0, whose, "nothing was lost");
	result_of(session_query(first).written == (REPS + 1) * WRITES * (3ULL + 3 * BATCH), whose, "all that was written is there");
	close(first);
	close(second);
	close(provider);
}

/* Instructions that ENABLE of a provider of @nr events takes: the least of several. */
static double enabling(const char *name, unsigned int nr)
{
	const int dev = device_open(), p = provider_register(dev, name);
	struct etw_session_create c = { .size = sizeof(c) };
	double least = 1e18;
	char event[16];

	for (unsigned int i = 0; i < nr; i++) {
		snprintf(event, sizeof(event), "e%u", i);
		if (provider_counter(p, event, 0) != (int)i) {
			printf("Bail out! %s: event %u\n", name, i);
			exit(1);
		}
	}
	strcpy((char *)c.name, "enabling");
	for (int r = 0; r < REPS; r++) {
		const int fd = session_make(dev, &c);
		uint64_t begin = __rdtsc();

		if (enable_all(fd, name) != 1) {
			printf("Bail out! enable %s\n", name);
			exit(1);
		}
		begin = __rdtsc() - begin;
		if (begin < least)
			least = begin;
		close(fd);
	}
	close(p);
	close(dev);
	return least;
}

static void enable_scales(void)
{
	const double few = enabling("Cost-Few", 512), many = enabling("Cost-Many", 4096);

	result(many <= GOAL_ENABLE * few, "root: ENABLE of 4096 events, in times of 512", many / few, GOAL_ENABLE);
	printf("# root, instructions of ENABLE an event: of 512 events %.0f, of 4096 %.0f\n", few / 512, many / 4096);
}

/* What is measured of somebody is measured by a program that was started without rights, as the library registers then. */
int main(int argc, char **argv)
{
	char so_far[16], of_these[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	null = open("/dev/null", O_WRONLY);
	if (argc == 3) {
		test_nr = atoi(argv[1]);
		failed = atoi(argv[2]);
		costs("somebody", false);
		return failed != 0;
	}
	printf("TAP version 13\n1..19\n");
	costs("root", true);
	enable_scales();
	snprintf(so_far, sizeof(so_far), "%d", test_nr);
	snprintf(of_these, sizeof(of_these), "%d", failed);
	if (!setresuid(0, 1234, 0))
		execl("/proc/self/exe", argv[0], so_far, of_these, NULL);
	printf("Bail out! to become somebody: %s\n", strerror(errno));
	return 1;
}
