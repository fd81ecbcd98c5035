// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hand-overs: packets that one CPU writes, a flush closes and another CPU gets, checks and puts, all at once and as many
 * as it is asked for. It needs the provider "test"; it must not know how the relay works inside.
 *
 * On User-Mode Linux writer and reader are two threads of the host, so this is a real race, in the order of memory that
 * the host's processor has. ETW_HANDOVERS: how many in each mode (200000).
 *
 * Each packet in hand must be the next (R3), whole, with every record as it was emitted and in its order (R1, R2), must
 * not change until it is put (R3), and in the end every event emitted was delivered, overwritten or counted as lost (R4).
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "etw_test.h"
#include "tally.h"

#define SIZE 4096
#define WRITER_CPU 0
#define READER_CPU 1
#define TESTS 6		/* in each mode */
#define MISSES 50	/* then the machine has no time for the writers: give way */

/* Between the processes: writers, the reader, and the tests, which are processes too. */
static struct {
	_Atomic unsigned long total;	/* hand-overs of all tests */
	_Atomic unsigned long done;	/* of this one */
} *shared;

__attribute__((constructor)) static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

FIXTURE(handover)
{
	int dev;
	int fd;
	struct reader reader;
	struct tally tally;
	struct emitted before;
	unsigned long wanted;
	unsigned long late;		/* GET found nothing yet */
	uint8_t copy[SIZE];
	pid_t pids[8];
	unsigned int nr_pids;
};

FIXTURE_VARIANT(handover)
{
	__u32 flags;
	__u32 nr_subbufs;
};

FIXTURE_VARIANT_ADD(handover, discard) { 0, 4 };
FIXTURE_VARIANT_ADD(handover, discard_smallest) { 0, 2 };
FIXTURE_VARIANT_ADD(handover, overwrite) { ETW_SESSION_OVERWRITE, 4 };
FIXTURE_VARIANT_ADD(handover, overwrite_smallest) { ETW_SESSION_OVERWRITE, 2 };

FIXTURE_SETUP(handover)
{
	const char *number = getenv("ETW_HANDOVERS");
	struct etw_session_create create = session_small(unique("handover"));

	self->wanted = (number ? strtoul(number, NULL, 10) : 200000) / TESTS + 1;
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	if (!generator_there())
		SKIP(return, "the provider \"test\" is in test builds only");
	if (cpus_online() < 2)
		SKIP(return, "one CPU only");
	shared->done = 0;
	create.flags = variant->flags;
	create.subbuf_size = SIZE;
	create.nr_subbufs = variant->nr_subbufs;
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, generate("rundown count=0"));
	ASSERT_EQ(1, enable_all(self->fd, "test"));
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, tally_event, &self->tally));
	emitted_read(&self->before);
	ASSERT_EQ(0, pin(READER_CPU));
}

FIXTURE_TEARDOWN(handover)
{
	while (self->nr_pids)
		reap(self->pids[--self->nr_pids]);
	reader_close(&self->reader);
	close(self->fd);
	close(self->dev);
}

/*
 * Its command again and again, from the CPU of the writers. When it is well ahead of the reader it gives way for a
 * moment: events that find no room prove nothing, and take the processor from the reader where there are not two.
 */
static void write_for_ever(void *command)
{
	unsigned int i;

	pin(WRITER_CPU);
	for (;;) {
		unsigned long done = shared->done;

		if (generate("%s", (const char *)command))
			_exit(1);
		for (i = 0; i < 50 && shared->done - done < 3; i++)
			usleep(20);
	}
}

static void flush_for_ever(void *session)
{
	pin(READER_CPU);
	for (;;) {
		session_flush((intptr_t)session);
		usleep(50);
	}
}

#define START(fn, arg) (self->pids[self->nr_pids++] = spawn(fn, (void *)(intptr_t)(arg)))

/* One packet of relay @i: 1, 0 if there is none yet, -1 with reader->error set. */
static int hand_over(struct reader *reader, unsigned int i, uint8_t *copy, unsigned int hold)
{
	struct relay *relay = &reader->relays[i];
	struct etw_subbuf sb;
	const uint8_t *data;
	const char *why = NULL;
	static char text[300];
	int err = relay_get(relay, &sb);

	if (err == -EAGAIN || err == -ENODATA)
		return 0;
	data = relay->map + (size_t)sb.index * SIZE;
	if (err)
		why = strerror(-err);
	else if (sb.index > reader->query.nr_subbufs)
		why = "index outside the mapping";
	else if (sb.nr_classes > reader->schema.nr && schema_update(&reader->schema, reader->session, &why))
		why = why ? why : "SCHEMA_READ failed";
	if (!why) {
		memcpy(copy, data, SIZE);
		why = packet_walk(&reader->streams[i], &sb, data, &reader->schema, reader->fn, reader->arg);
		while (hold--)
			asm volatile("" ::: "memory");
		if (!why && memcmp(copy, data, SIZE))
			why = "changed while it was in hand";
	}
	if (!why && relay_put(relay))
		why = "PUT failed";
	if (why) {
		snprintf(text, sizeof(text), "CPU %u, packet %llu: %s", relay->cpu, (unsigned long long)sb.seq, why);
		reader->error = text;
		return -1;
	}
	reader->packets++;
	reader->records += sb.records;
	return 1;
}

/* Now at once, now later: a writer that runs on comes round in the meantime, or waits for room. */
static unsigned int hold_for(unsigned long nr)
{
	return nr % 16 ? 0 : nr * 2654435761U % 20000;
}

#define ASSERT_WHOLE() do {							\
	if (self->reader.error || self->tally.error[0]) {			\
		TH_LOG("%s", self->reader.error ? self->reader.error : self->tally.error); \
		ASSERT_TRUE(false);						\
	}									\
} while (0)

/* What the writers write is handed over until there was enough. */
static void run(struct __test_metadata *_metadata, FIXTURE_DATA(handover) *self, const char *name)
{
	struct etw_session_query q;
	struct emitted after;
	uint64_t emitted = 0, lost = 0, begin = now_ns();
	unsigned int i, cpu, context, kind;
	int got = 0, misses = 0;

	while (shared->done < self->wanted) {
		got = hand_over(&self->reader, WRITER_CPU, self->copy, hold_for(shared->done));
		ASSERT_WHOLE();
		shared->done += got;
		self->late += !got;
		misses = got ? 0 : misses + 1;
		if (misses > MISSES)
			usleep(10);
	}
	while (self->nr_pids)
		reap(self->pids[--self->nr_pids]);
	ASSERT_EQ(0, call(self->fd, ETW_IOC_SESSION_STOP, NULL));
	for (i = 0; i < self->reader.nr; i++)
		while (hand_over(&self->reader, i, self->copy, 0) > 0)
			;
	ASSERT_WHOLE();
	ASSERT_SUMS(self->fd);

	emitted_read(&after);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		for (context = 0; context < NR_CONTEXTS; context++)
			for (kind = 0; kind < NR_KINDS; kind++)
				emitted += after.nr[cpu][context][kind] - self->before.nr[cpu][context][kind];
	q = session_query(self->fd);
	for (i = 0; i < ETW_NR_LOST; i++)
		lost += q.lost[i];
	EXPECT_EQ(emitted, q.written + lost);
	EXPECT_EQ(q.written, q.delivered + q.overwritten);
	EXPECT_EQ(q.delivered, self->reader.records);
	for (cpu = 0, got = 0; cpu < MAX_CPUS; cpu++)
		got += tally_read(&self->tally, cpu);
	EXPECT_EQ(q.delivered, (uint64_t)(unsigned int)got);
	EXPECT_EQ(lost, q.lost[ETW_LOST_NO_ROOM] + q.lost[ETW_LOST_WRAPPED]);
	shared->total += shared->done;
	TH_LOG("%lu hand-overs of %s in %llu ms, %llu records of %llu emitted; %llu overwritten, %llu lost; %lu times none yet; %lu hand-overs so far",
	       shared->done, name, (unsigned long long)(now_ns() - begin) / 1000000, (unsigned long long)self->reader.records,
	       (unsigned long long)emitted, q.overwritten, (unsigned long long)lost, self->late, shared->total);
}

/* Two writers that come round while a packet is in hand, and turn packets with every few records. */
TEST_F_TIMEOUT(handover, as_fast_as_they_can, 2 * ETW_TIMEOUT)
{
	START(write_for_ever, "burst class=fixed count=600");
	START(write_for_ever, "burst class=sized count=200");
	run(_metadata, self, "writers at full speed");
}

/* Writers in writers: interrupts turn packets that a task is still in, and a flush closes both. */
TEST_F_TIMEOUT(handover, nested_and_flushed, 2 * ETW_TIMEOUT)
{
	START(write_for_ever, "burst class=sized count=200");
	START(write_for_ever, "burst context=softirq class=large count=60 chunk=6 every_us=110");
	START(write_for_ever, "burst context=hardirq class=fixed count=1500 chunk=150 every_us=70");
	START(flush_for_ever, self->fd);
	run(_metadata, self, "nested writers");
}

/* Few records, each packet closed by a flush or by a large record: the reader waits for it and gets it at once. */
TEST_F_TIMEOUT(handover, reader_waits, 2 * ETW_TIMEOUT)
{
	START(write_for_ever, "burst context=hardirq class=large count=300 chunk=3 every_us=20");
	START(flush_for_ever, self->fd);
	run(_metadata, self, "a waiting reader");
}

TEST_HARNESS_MAIN
