// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generator seen from user space: see tally.h. It must not share code with the kernel's side, whose mistakes it has to
 * find.
 */
#include "tally.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE "/dev/etw-test"
#define DATA_STARTS 64

const char *const context_names[] = { "task", "softirq", "hardirq", "nmi" };
const char *const kind_names[] = { "fixed", "sized", "large", "pointer", "state" };

int generate(const char *format, ...)
{
	char line[256];
	va_list args;
	int fd, len, err = 0;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fd = open(DEVICE, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, line, len) != len)
		err = -errno;
	close(fd);
	return err;
}

bool generator_there(void)
{
	return !access(DEVICE, F_OK);
}

bool nmi_there(void)
{
	return !generate("burst context=nmi");
}

static int index_of(const char *name, const char *const *names, int nr)
{
	while (nr-- && strcmp(name, names[nr]))
		;
	return nr;
}

void emitted_read(struct emitted *e)
{
	char line[128], context[16], kind[16];
	unsigned long long nr, refused;
	FILE *f = fopen(DEVICE, "re");
	unsigned int cpu;

	memset(e, 0, sizeof(*e));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "emitted %u %15s %15s %llu", &cpu, context, kind, &nr) == 4 && cpu < MAX_CPUS)
			e->nr[cpu][index_of(context, context_names, NR_CONTEXTS)]
			     [index_of(kind, kind_names, NR_KINDS)] = nr;
		else if (sscanf(line, "held %u %llu", &cpu, &nr) == 2 && cpu < MAX_CPUS)
			e->held[cpu] = nr;
		else if (sscanf(line, "rundown %llu %llu", &nr, &refused) == 2) {
			e->rundown_written = nr;
			e->rundown_refused = refused;
		}
	}
	if (!f) {
		printf("# %s: %s\n", DEVICE, strerror(errno));
		abort();
	}
	fclose(f);
}

static uint64_t get(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

__attribute__((format(printf, 3, 4))) static void wrong(struct tally *t, const struct event *e, const char *format, ...)
{
	va_list args;
	int n;

	if (t->error[0])
		return;
	n = snprintf(t->error, sizeof(t->error), "CPU %u, packet %llu, %s: ", e->cpu, (llu)e->seq, e->class->name);
	va_start(args, format);
	vsnprintf(t->error + n, sizeof(t->error) - n, format, args);
	va_end(args);
}

static void check_state(struct tally *t, const struct event *e)
{
	uint64_t round = get(e->payload, 8);
	uint32_t number = get(e->payload + 8, 4), of = get(e->payload + 12, 4);

	if (e->size != 16 || number >= of)
		wrong(t, e, "number %u of %u, %u bytes", number, of, e->size);
	t->state[e->cpu]++;
	t->last_round = round;
}

static void check_data(struct tally *t, const struct event *e, uint64_t seq, uint32_t from, uint32_t nr)
{
	uint32_t i, first = seq % DATA_STARTS;

	for (i = 0; i < nr; i++)
		if (get(e->payload + from + 4 * i, 4) != (first + i) * 2654435761U) {
			wrong(t, e, "number %llu, element %u of %u is %#x", (llu)seq, i, nr,
			      (uint32_t)get(e->payload + from + 4 * i, 4));
			return;
		}
}

void tally_event(const struct event *e, void *arg)
{
	const unsigned int kind = e->class->event_id - 1;
	struct tally *t = arg;
	uint64_t seq;
	uint32_t cpu, context, nr;

	if (strcmp(e->class->provider, "Linux-Kernel-Test")) {
		t->other++;
		return;
	}
	if (kind == STATE) {
		check_state(t, e);
		return;
	}
	if (kind > STATE || e->size < 13 || e->cpu >= MAX_CPUS) {
		wrong(t, e, "event %u, %u bytes", kind + 1, e->size);
		return;
	}
	seq = get(e->payload, 8);
	cpu = get(e->payload + 8, 4);
	context = e->payload[12];
	if (cpu != e->cpu || context >= NR_CONTEXTS) {
		wrong(t, e, "says CPU %u, context %u", cpu, context);
		return;
	}
	if (t->only_pid && e->pid != t->only_pid && e->tid != t->only_pid)
		wrong(t, e, "of task %d of process %d", e->tid, e->pid);
	switch (kind) {
	case FIXED:
		if (get(e->payload + 14, 4) != ((uint32_t)seq * 2654435761U ^ cpu << 8 ^ context))
			wrong(t, e, "number %llu has the check %#x", (llu)seq, (uint32_t)get(e->payload + 14, 4));
		if (e->payload[13] > t->deepest)
			t->deepest = e->payload[13];
		break;
	case SIZED:
	case LARGE:
		nr = get(e->payload + 13, 4);
		if (e->size != 17 + 4 * nr)
			wrong(t, e, "%u elements in %u bytes", nr, e->size);
		else
			check_data(t, e, seq, 17, nr);
		break;
	case POINTER:
		if (!get(e->payload + 13, 8) == t->addresses)
			wrong(t, e, "address %#llx", (llu)get(e->payload + 13, 8));
		break;
	}
	if (!t->seen[cpu][context][kind].read)
		t->seen[cpu][context][kind].first = seq;
	else if (seq < t->seen[cpu][context][kind].next)
		wrong(t, e, "%s number %llu after %llu", context_names[context], (llu)seq,
		      (llu)t->seen[cpu][context][kind].next - 1);
	else
		t->seen[cpu][context][kind].missing += seq - t->seen[cpu][context][kind].next;
	t->seen[cpu][context][kind].next = seq + 1;
	t->seen[cpu][context][kind].read++;
}

uint64_t tally_read(const struct tally *t, unsigned int cpu)
{
	uint64_t sum = 0;
	unsigned int context, kind;

	for (context = 0; context < NR_CONTEXTS; context++)
		for (kind = 0; kind < NR_KINDS; kind++)
			sum += t->seen[cpu][context][kind].read;
	return sum;
}

uint64_t tally_missing(const struct tally *t, unsigned int cpu)
{
	uint64_t sum = 0;
	unsigned int context, kind;

	for (context = 0; context < NR_CONTEXTS; context++)
		for (kind = 0; kind < NR_KINDS; kind++)
			sum += t->seen[cpu][context][kind].missing;
	return sum;
}

/* ---- R4 ---- */

__attribute__((format(printf, 1, 2))) static const char *broken(const char *format, ...)
{
	static char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

/* The counts of the provider's classes that @session has. */
struct classes {
	bool has[NR_KINDS + 1];
	struct etw_class_query of[NR_KINDS + 1];
};

static uint64_t all_lost(const __u64 *lost)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < ETW_NR_LOST; i++)
		sum += lost[i];
	return sum;
}

static const char *classes_read(struct classes *c, int session)
{
	struct schema schema = { 0 };
	const char *why = NULL;
	uint32_t i;
	int err;

	memset(c, 0, sizeof(*c));
	err = schema_update(&schema, session, &why);
	for (i = 0; !err && i < schema.nr; i++) {
		unsigned int kind = schema.classes[i]->event_id - 1;

		if (strcmp(schema.classes[i]->provider, "Linux-Kernel-Test"))
			continue;
		poison(c->of[kind]);
		c->of[kind].id = i;
		err = call(session, ETW_IOC_SESSION_QUERY_CLASS, &c->of[kind]);
		c->has[kind] = true;
	}
	schema_free(&schema);
	return err ? broken("SCHEMA_READ or QUERY_CLASS: %s", why ? why : strerror(-err)) : NULL;
}

/* Each class: all that was emitted is in its counts. */
static const char *classes_broken(const struct classes *c, const struct emitted *from, const struct emitted *to)
{
	unsigned int kind, cpu, context;

	for (kind = 0; kind < NR_KINDS; kind++) {
		const struct etw_class_query *q = &c->of[kind];
		uint64_t emitted = 0;

		if (!c->has[kind])
			continue;
		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			for (context = 0; context < NR_CONTEXTS; context++)
				emitted += to->nr[cpu][context][kind] - from->nr[cpu][context][kind];
		if (emitted != q->written + q->filtered + all_lost(q->lost))
			return broken("%s: %llu emitted, but %llu written, %llu filtered, %llu lost", kind_names[kind],
				      (llu)emitted, q->written, q->filtered, (llu)all_lost(q->lost));
	}
	return NULL;
}

/* What was emitted on @cpu, and how much of it is not in @tally; or what @tally should not have. */
static const char *cpu_emitted(const struct classes *c, unsigned int cpu, const struct tally *t,
			       const struct emitted *from, const struct emitted *to, uint64_t *emitted, uint64_t *gap)
{
	unsigned int kind, context;

	*emitted = *gap = 0;
	for (kind = 0; kind < NR_KINDS; kind++) {
		for (context = 0; context < NR_CONTEXTS; context++) {
			uint64_t first = from->nr[cpu][context][kind], end = to->nr[cpu][context][kind];
			typeof(t->seen[0][0][0]) *seen = &t->seen[cpu][context][kind];

			if (seen->read && (!c->has[kind] || seen->first < first || seen->next > end))
				return broken("CPU %u, %s, %s: %llu..%llu read, %llu..%llu emitted", cpu,
					      context_names[context], kind_names[kind], (llu)seen->first, (llu)seen->next,
					      (llu)first, (llu)end);
			if (!c->has[kind])
				continue;
			*emitted += end - first;
			*gap += end - first - seen->read;
		}
	}
	return NULL;
}

const char *tally_broken(int session, const struct tally *t, const struct emitted *from, const struct emitted *to,
			 bool filtered)
{
	struct etw_session_query q = session_query(session);
	uint64_t read = 0, state_lost, uncounted = 0, unseen = 0, without_relay = 0, lost_cpu = 0;
	struct classes c;
	const char *why = t->error[0] ? t->error : NULL;
	unsigned int cpu, kind;

	if (!why)
		why = classes_read(&c, session);
	if (!why)
		why = classes_broken(&c, from, to);
	if (why)
		return why;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		read += tally_read(t, cpu) + t->state[cpu];
	if (read + t->other != q.delivered || q.unread)
		return broken("%llu records read, %llu delivered, %llu unread", (llu)(read + t->other), q.delivered,
			      q.unread);
	if (filtered)
		return NULL;
	if (t->other)
		return broken("%llu records of other providers", (llu)t->other);

	/* state records are known by their class only: what of them is lost or overwritten may be missing anywhere */
	state_lost = c.has[STATE] ? c.of[STATE].written + all_lost(c.of[STATE].lost) : 0;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		state_lost -= t->state[cpu];
	for (kind = 0; kind <= NR_KINDS; kind++)
		lost_cpu += c.has[kind] ? c.of[kind].lost[ETW_LOST_CPU] : 0;
	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		uint64_t emitted, gap, counted, gone;
		struct etw_cpu_query r;

		why = cpu_emitted(&c, cpu, t, from, to, &emitted, &gap);
		if (why)
			return why;
		if (!session_cpu(session, cpu, &r)) {
			without_relay += emitted;
			if (gap != emitted)
				return broken("CPU %u has no relay, but %llu records", cpu, (llu)(emitted - gap));
			continue;
		}
		counted = r.written + all_lost(r.lost);
		gone = all_lost(r.lost) + r.overwritten;
		lost_cpu -= r.lost[ETW_LOST_CPU];
		if (counted < emitted + t->state[cpu] || counted > emitted + t->state[cpu] + state_lost)
			return broken("CPU %u: %llu emitted, %llu state records, but %llu written or lost", cpu,
				      (llu)emitted, (llu)t->state[cpu], (llu)counted);
		if (gap > gone || gap + state_lost < gone)
			return broken("CPU %u: %llu missing, but %llu lost or overwritten", cpu, (llu)gap,
				      (llu)gone);
		uncounted += counted - emitted - t->state[cpu];
		unseen += gone - gap;
	}
	if (uncounted != state_lost || unseen != state_lost)
		return broken("%llu state records missing, %llu or %llu by the CPUs", (llu)state_lost,
			      (llu)uncounted, (llu)unseen);
	if (lost_cpu != without_relay)
		return broken("%llu lost for want of a relay, %llu emitted there", (llu)lost_cpu,
			      (llu)without_relay);
	return NULL;
}
