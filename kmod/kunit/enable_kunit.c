// SPDX-License-Identifier: GPL-2.0-only
/*
 * enable.c and what it rests on: several sessions enable, change, disable and stop the same classes at random, and after
 * each step a naive model says who is to get what, which probes there are, and what each session's table holds. Runs in
 * a kernel with KUnit, and on the host under sanitizers. Must not know files, nor how the answer is found.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/etw.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "../enable.h"
#include "../objects.h"
#include "../provider.h"
#include "../relay_mem.h"
#include "../self.h"

#define SEED		20261130U
#define NR_SESSIONS	4
#define NR_PROVIDERS	2
#define NR_CLASSES	10
#define ELSEWHERE	1234567		/* no task of this test */

#ifdef __KERNEL__
#define ROUNDS		200		/* each waits for grace periods */
#else
#define ROUNDS		20000
#endif

static void probe(void *data)
{
}

#define HOOKED		.tracepoint = "module_free", .probe = probe

static struct etw_class classes[NR_CLASSES] = {
	{ .name = "always", .level = 0, .keyword = 0, HOOKED },
	{ .name = "info", .level = 4, .keyword = 1, HOOKED },
	{ .name = "verbose", .level = 5, .keyword = 2, HOOKED },
	{ .name = "error", .level = 2, .keyword = 0x8000000000000001ULL, HOOKED },
	{ .name = "state", .level = 3, .keyword = 3, .rundown = true },
	{ .name = "absent", .level = 3, .keyword = 3, .tracepoint = "etw_no_such_tracepoint", .probe = probe },
	{ .name = "unhooked", .level = 4, .keyword = 4 },
	{ .name = "other", .level = 4, .keyword = 1, HOOKED },
	{ .name = "critical", .level = 1, .keyword = 2, HOOKED },
	{ .name = "nothing", .level = 255, .keyword = 0, HOOKED },
};

static struct etw_class *const of_one[] = {
	&classes[0], &classes[1], &classes[2], &classes[3], &classes[4], &classes[5], &classes[6],
};

static struct etw_class *const of_two[] = { &classes[7], &classes[8], &classes[9] };

static int rundown(struct etw_session *s);

static struct etw_provider providers[NR_PROVIDERS] = {
	{
		.guid = UUID_INIT(0x11111111, 0x2222, 0x3333, 1, 2, 3, 4, 5, 6, 7, 8),
		.name = "Test-Enable-One", .alias = "one", .classes = of_one, .nr_classes = ARRAY_SIZE(of_one),
		.rundown = rundown,
	}, {
		.guid = UUID_INIT(0x11111111, 0x2222, 0x3333, 1, 2, 3, 4, 5, 6, 7, 9),
		.name = "Test-Enable-Two", .alias = "two", .classes = of_two, .nr_classes = ARRAY_SIZE(of_two),
	},
};

/* What one session has asked of one provider. */
struct model_enable {
	bool enabled, ignore_0, filtered, here;		/* here: the filter has the writer */
	u32 level, mode, listed;			/* listed: bits of class numbers */
	u64 any, all;
};

struct model_session {
	struct etw_session *s;
	bool stopped;
	struct model_enable enables[NR_PROVIDERS];
	u32 table[NR_CLASSES], nr_table;
	u64 written[NR_CLASSES], rejected[NR_CLASSES];
};

static struct {
	struct model_session sessions[NR_SESSIONS];
	u32 seed, names;
	const char *wrong;
	u32 wrong_a, wrong_b;
	unsigned long enables, disables, stops, checks;
	bool started;
} w;

static u32 pick(u32 below)
{
	w.seed = w.seed * 1664525 + 1013904223;
	return (w.seed >> 8) % below;
}

static void wrong(const char *what, u32 a, u32 b)
{
	if (w.wrong)
		return;
	w.wrong = what;
	w.wrong_a = a;
	w.wrong_b = b;
}

#define CHECK(x, a, b)	((x) ? (void)0 : wrong(#x, a, b))

static u32 provider_of(u32 class)
{
	return class < ARRAY_SIZE(of_one) ? 0 : 1;
}

/* ---- the model ---- */

/* ETW's rule as its text says it, and the list of names. */
static bool wanted(const struct model_session *m, u32 number)
{
	const struct model_enable *e = &m->enables[provider_of(number)];
	const struct etw_class *class = &classes[number];

	if (!m->s || m->stopped || !e->enabled || !strcmp(class->name, "absent"))
		return false;
	if (e->level != 0 && class->level > e->level)
		return false;
	if (class->keyword == 0) {
		if (e->ignore_0)
			return false;
	} else if (e->any != 0) {
		if (!(class->keyword & e->any) || (class->keyword & e->all) != e->all)
			return false;
	}
	if (class->rundown || e->mode == ETW_EVENTS_ALL)
		return true;
	return (e->listed >> number & 1) == (e->mode == ETW_EVENTS_IN);
}

static bool in_table(const struct model_session *m, u32 number, u32 *at)
{
	for (*at = 0; *at < m->nr_table; ++*at)
		if (m->table[*at] == number)
			return true;
	return false;
}

static void model_number(struct model_session *m, u32 provider)
{
	u32 i, at;

	for (i = 0; i < NR_CLASSES; i++)
		if (provider_of(i) == provider && wanted(m, i) && !in_table(m, i, &at))
			m->table[m->nr_table++] = i;
}

/* ---- what there is, against it ---- */

static u32 probes(const struct etw_class *class)
{
	struct tracepoint_func *f = class->tp ? (struct tracepoint_func *)rcu_access_pointer(class->tp->funcs) : NULL;
	u32 n = 0;

	for (; f && f->func; f++)
		n += f->data == class;
	return n;
}

/* Of the sessions that want the class the most usual clock: among those without a filter, if there are such. */
static u32 model_source(u32 number)
{
	bool boot[2] = {}, monotonic[2] = {};		/* [without a filter] */
	u32 i;

	for (i = 0; i < NR_SESSIONS; i++) {
		const struct model_session *m = &w.sessions[i];
		const bool plain = !m->enables[provider_of(number)].filtered;

		if (!wanted(m, number))
			continue;
		if (m->s->clock == ETW_CLOCK_BOOT)
			boot[plain] = true;
		else
			monotonic[plain] = true;
	}
	if (monotonic[true] || boot[true])
		return monotonic[true] ? ETW_SOURCE_MONOTONIC : ETW_SOURCE_BOOT;
	return monotonic[false] ? ETW_SOURCE_MONOTONIC : ETW_SOURCE_BOOT;
}

static void check_target(const struct etw_target *t, const struct model_session *m, u32 number)
{
	const struct model_enable *e = &m->enables[provider_of(number)];
	u32 at;

	CHECK(in_table(m, number, &at) && t->class_id == at, number, t->class_id);
	CHECK(t->counts == etw_session_class(m->s, t->class_id)->counts, number, 0);
	CHECK(!t->filter == !e->filtered, number, e->filtered);
	CHECK(t->source == (m->s->clock == ETW_CLOCK_BOOT ? ETW_SOURCE_BOOT : ETW_SOURCE_MONOTONIC), number, t->source);
	CHECK(t->special == (e->filtered || t->source != model_source(number)), number, t->special);
	CHECK(t->relays == (t->special ? &etw_no_relays : m->s->cpu_relay), number, t->special);
}

/* Some target's filter may have the tasks of a slot, or none has. Another slot each time. */
static void check_filter_hash(const struct etw_targets *targets)
{
	const u32 slot = w.checks % ETW_FILTER_HASH;
	u32 i, k, has = 0;

	if (!targets->filter_hash)
		return;
	for (i = 0; i < targets->nr; i++) {
		const struct etw_filter *f = targets->t[i].filter;

		for (k = 0; k < f->nr; k++)
			CHECK(etw_filter_may_have(targets->filter_hash, f->pids[k]), i, f->pids[k]);
		has |= f->hash[slot];
	}
	CHECK(!targets->filter_hash[slot] == !has, slot, has);
}

static void check_class(u32 number)
{
	const struct etw_targets *targets = rcu_access_pointer(classes[number].targets);
	const int usual = targets->source == ETW_SOURCE_MONOTONIC ? ETW_MAX_NESTING : 0;
	u32 i, k, nr = 0, with_filter = 0, special = 0;

	for (i = 0; i < NR_SESSIONS; i++) {
		const struct model_session *m = &w.sessions[i];
		u32 found = 0;

		if (!m->s)
			continue;
		for (k = 0; k < targets->nr; k++) {
			if (targets->t[k].true_relays != m->s->cpu_relay)
				continue;
			check_target(&targets->t[k], m, number);
			found++;
		}
		CHECK(found == (wanted(m, number) && !classes[number].rundown), number, i);
		nr += found;
		with_filter += found && m->enables[provider_of(number)].filtered;
	}
	CHECK(targets->nr == nr, targets->nr, nr);
	CHECK(!nr || targets->source == model_source(number), number, targets->source);
	CHECK(targets->usual_nesting == usual, number, targets->usual_nesting);
	CHECK((targets == &etw_no_targets) == !nr, number, nr);
	CHECK(!!targets->filter_hash == (with_filter == nr), with_filter, nr);
	CHECK(targets->unusual == (targets->filter_hash || targets->source != ETW_SOURCE_MONOTONIC), with_filter, targets->source);
	CHECK(!targets->t[nr ?: 1].relays, number, nr);	/* where there is none, one that rejects all */
	check_filter_hash(targets);
	for (k = 0; k < nr; k++) {
		CHECK(!special || targets->t[k].special, number, k);
		special += targets->t[k].special;
	}
	CHECK(probes(&classes[number]) == (nr && classes[number].tracepoint), number, probes(&classes[number]));
}

static void check_session(const struct model_session *m)
{
	u32 i, at;

	CHECK(etw_session_nr_classes(m->s) == m->nr_table, etw_session_nr_classes(m->s), m->nr_table);
	CHECK(m->s->nr_staged == m->nr_table, m->s->nr_staged, m->nr_table);
	for (i = 0; i < m->nr_table && !w.wrong; i++) {
		struct etw_session_class *entry = etw_session_class(m->s, i);
		struct etw_counts sum = {};

		CHECK(entry->class == &classes[m->table[i]], i, m->table[i]);
		/* what was enabled when the session stopped stays on record */
		CHECK(m->stopped || entry->enabled == wanted(m, m->table[i]), i, m->table[i]);
		etw_counts_add(&sum, entry->counts);
		CHECK(sum.written == m->written[m->table[i]], (u32)sum.written, (u32)m->written[m->table[i]]);
		CHECK(sum.filtered == m->rejected[m->table[i]], (u32)sum.filtered, (u32)m->rejected[m->table[i]]);
	}
	for (i = 0; i < NR_CLASSES; i++)
		CHECK(!m->written[i] || in_table(m, i, &at), i, 0);
}

static void check_all(void)
{
	u32 i, k, users;

	for (i = 0; i < NR_CLASSES; i++)
		check_class(i);
	for (i = 0; i < NR_SESSIONS; i++)
		if (w.sessions[i].s)
			check_session(&w.sessions[i]);
	for (i = 0; i < NR_PROVIDERS; i++) {
		struct etw_enabled_query q;

		for (k = 0, users = 0; k < NR_SESSIONS; k++)
			users += w.sessions[k].s && !w.sessions[k].stopped && w.sessions[k].enables[i].enabled;
		mutex_lock(&etw_control);
		etw_enabled_query(&providers[i], &q);
		mutex_unlock(&etw_control);
		CHECK(q.nr_sessions == users, q.nr_sessions, users);
	}
	w.checks++;
}

/* ---- the steps ---- */

/* The provider says what is there to the session that asks, and only if that wants it. */
static int rundown(struct etw_session *s)
{
	struct etw_vec vec = { "x", 1 };
	u32 i;

	for (i = 0; i < NR_SESSIONS && w.sessions[i].s != s; i++)
		;
	CHECK(i < NR_SESSIONS, i, 0);
	if (i < NR_SESSIONS && etw_write_direct(s, &classes[4], 1, 1, &vec, 1))
		w.sessions[i].written[4]++;
	return 0;
}

static void write_one(u32 number)
{
	const struct etw_targets *targets;
	struct etw_vec vec = { "y", 1 };
	struct etw_event event;
	u32 i;

	preempt_disable();
	targets = etw_targets_of(&classes[number]);
	if (!etw_rejected(targets, NULL, 1) && etw_begin(&event, targets, NULL))
		etw_end_vec(&event, &vec, 1);
	preempt_enable();
	for (i = 0; i < NR_SESSIONS; i++) {
		struct model_session *m = &w.sessions[i];
		const struct model_enable *e = &m->enables[provider_of(number)];

		if (!wanted(m, number) || classes[number].rundown)
			continue;
		if (e->filtered && !e->here)
			m->rejected[number]++;
		else
			m->written[number]++;
	}
}

static void name_one(struct etw_enabling *e, u32 provider)
{
	switch (pick(3)) {
	case 0:
		strscpy(e->name, providers[provider].name, sizeof(e->name));
		break;
	case 1:
		strscpy(e->name, providers[provider].alias, sizeof(e->name));
		break;
	default:
		e->guid = providers[provider].guid;
	}
}

static void list_events(struct etw_enabling *e, struct model_enable *m)
{
	u32 i;

	m->mode = pick(3);
	m->listed = m->mode == ETW_EVENTS_ALL ? 0 : 1 + pick(BIT(NR_CLASSES) - 1);
	e->event_mode = m->mode;
	if (!m->listed)
		return;
	e->events = kvzalloc(NR_CLASSES * ETW_NAME_SIZE, GFP_KERNEL);
	for (i = 0; e->events && i < NR_CLASSES; i++)
		if (m->listed >> i & 1)
			strscpy(e->events + e->nr_events++ * ETW_NAME_SIZE, classes[i].name, ETW_NAME_SIZE);
}

static void filter_tasks(struct etw_enabling *e, struct model_enable *m)
{
	m->filtered = !pick(3);
	m->here = pick(2);
	if (!m->filtered)
		return;
	e->filter = etw_object_new(ETW_OBJECT_FILTER, kvzalloc(struct_size(e->filter, pids, 2), GFP_KERNEL));
	if (!e->filter)
		return;
	e->filter->pids[0] = ELSEWHERE;
	e->filter->pids[1] = m->here ? current->pid : ELSEWHERE + 1;
	etw_filter_init(e->filter, 2);
}

static void enable(struct model_session *m, u32 provider)
{
	static const u64 masks[] = { 0, 0, 1, 2, 3, 4, 0x8000000000000000ULL, ~0ULL };
	struct etw_enabling *e = etw_object_new(ETW_OBJECT_ENABLING, kzalloc(sizeof(*e), GFP_KERNEL));
	struct model_enable want = { .enabled = true };
	int got;

	if (!e) {
		wrong("no memory", 0, 0);
		return;
	}
	name_one(e, provider);
	want.level = pick(7);
	want.any = masks[pick(ARRAY_SIZE(masks))];
	want.all = masks[pick(4)];
	want.ignore_0 = pick(2);
	list_events(e, &want);
	filter_tasks(e, &want);
	e->level = want.level;
	e->any = want.any;
	e->all = want.all;
	e->flags = want.ignore_0 ? ETW_ENABLE_IGNORE_KEYWORD_0 : 0;
	etw_rule_init(&e->rule, want.level, want.any, want.all, want.ignore_0);
	if (!m->stopped) {
		m->enables[provider] = want;
		model_number(m, provider);
	}
	got = etw_session_enable(m->s, e);
	CHECK(got == (m->stopped ? -ESHUTDOWN : 1), got, m->stopped);
	w.enables++;
}

static void disable(struct model_session *m, u32 provider)
{
	struct etw_enabling e = {};
	int got;

	name_one(&e, provider);
	if (!m->stopped)
		m->enables[provider].enabled = false;
	got = etw_session_disable(m->s, e.name, &e.guid);
	CHECK(got == (m->stopped ? -ESHUTDOWN : 0), got, m->stopped);
	w.disables++;
}

static void create(struct model_session *m)
{
	struct etw_session_create args = {
		.size = sizeof(args), .flags = ETW_SESSION_OVERWRITE, .subbuf_size = PAGE_SIZE, .nr_subbufs = 2,
		.clock = pick(2) ? ETW_CLOCK_MONOTONIC : ETW_CLOCK_BOOT,
	};
	struct etw_session *s;

	memcpy(args.name, "kunit", 5);
	args.name[5] = 'a' + w.names % 26;
	args.name[6] = 'a' + w.names / 26 % 26;
	w.names++;
	*m = (struct model_session){};
	s = etw_session_create(&args);
	if (IS_ERR(s))
		wrong("create", PTR_ERR(s), 0);
	else
		m->s = s;
}

static void stop(struct model_session *m)
{
	int got;

	got = etw_session_stop(m->s, ETW_STOP_REQUEST);
	CHECK(got == (m->stopped ? -ESHUTDOWN : 0), got, m->stopped);
	m->stopped = true;
	w.stops++;
}

static void end(struct model_session *m)
{
	if (!m->stopped)
		stop(m);
	etw_session_put(m->s);
	m->s = NULL;
}

static void step(void)
{
	struct model_session *m = &w.sessions[pick(NR_SESSIONS)];
	u32 provider = pick(NR_PROVIDERS);

	if (!m->s) {
		create(m);
		return;
	}
	switch (pick(12)) {
	case 0 ... 6:
		enable(m, provider);
		break;
	case 7 ... 9:
		disable(m, provider);
		break;
	case 10:
		stop(m);
		break;
	default:
		end(m);
	}
}

/* ---- the cases ---- */

static void at_random(struct kunit *test)
{
	const u64 memory = etw_memory_used();
	u32 round, i;

	w.seed = SEED;
	for (round = 0; round < ROUNDS && !w.wrong; round++) {
		step();
		check_all();
		for (i = 0; i < NR_CLASSES; i++)
			write_one(i);
		check_all();
		cond_resched();
	}
	for (i = 0; i < NR_SESSIONS; i++)
		if (w.sessions[i].s)
			end(&w.sessions[i]);
	check_all();
	kunit_info(test, "seed %u: %lu enables, %lu disables, %lu stops, %lu looks at everything", SEED, w.enables, w.disables,
		   w.stops, w.checks);
	KUNIT_EXPECT_TRUE_MSG(test, !w.wrong, "%s: %u, %u, in round %u", w.wrong, w.wrong_a, w.wrong_b, round);
	KUNIT_EXPECT_EQ(test, etw_memory_used(), memory);
	for (i = 0; i < NR_CLASSES; i++)
		KUNIT_EXPECT_EQ(test, probes(&classes[i]), 0);
	w.wrong = NULL;
}

/* A provider that does not exist: remembered, counted, and nothing else. */
static void unknown_is_remembered(struct kunit *test)
{
	struct etw_enabling *e = etw_object_new(ETW_OBJECT_ENABLING, kzalloc(sizeof(*e), GFP_KERNEL));
	struct model_session *m = &w.sessions[0];
	uuid_t none = {};

	KUNIT_ASSERT_NOT_NULL(test, e);
	create(m);
	KUNIT_ASSERT_NOT_NULL(test, m->s);
	strscpy(e->name, "Test-Enable-Three", sizeof(e->name));
	KUNIT_EXPECT_EQ(test, etw_session_enable(m->s, e), 0);
	KUNIT_EXPECT_EQ(test, etw_session_disable(m->s, "Test-Enable-Three", &none), 0);
	KUNIT_EXPECT_EQ(test, etw_session_disable(m->s, "Test-Enable-Four", &none), 0);
	check_all();
	end(m);
	check_all();
	KUNIT_EXPECT_TRUE_MSG(test, !w.wrong, "%s: %u, %u", w.wrong, w.wrong_a, w.wrong_b);
	w.wrong = NULL;
}

/*
 * While a session stops another's change may take it out of the targets: whoever wrote with the old ones must have ended before
 * the last packets are delivered, though nothing is left to be taken out.
 */
static void stop_waits_for_who_wrote_before(struct kunit *test)
{
	struct model_session *stopping = &w.sessions[0], *other = &w.sessions[1];
	unsigned long before;

	w.seed = SEED;
	create(stopping);
	create(other);
	KUNIT_ASSERT_NOT_NULL(test, stopping->s);
	KUNIT_ASSERT_NOT_NULL(test, other->s);
	enable(stopping, 0);
	WRITE_ONCE(stopping->s->stopping, true);
	stopping->stopped = true;
	enable(other, 0);
	disable(other, 0);
	check_all();
	before = get_state_synchronize_rcu();
	etw_session_disable_all(stopping->s);
	KUNIT_EXPECT_TRUE(test, poll_state_synchronize_rcu(before));
	WRITE_ONCE(stopping->s->stopping, false);
	stopping->stopped = false;
	end(stopping);
	end(other);
	check_all();
	KUNIT_EXPECT_TRUE_MSG(test, !w.wrong, "%s: %u, %u", w.wrong, w.wrong_a, w.wrong_b);
	w.wrong = NULL;
}

/* On some kernels suites run before the module's own initialisation: then they do what of it they need, and undo it. */
static int suite_start(struct kunit_suite *suite)
{
	u32 i;
	int err;

#ifdef __KERNEL__
	w.started = THIS_MODULE->state != MODULE_STATE_LIVE;
#else
	w.started = true;
#endif
	etw_relay_init();
	if (w.started) {
		err = etw_session_init() ?: etw_provider_register(&etw_provider_self);
		if (err)
			return err;
	}
	for (i = 0; i < NR_PROVIDERS; i++) {
		err = etw_provider_register(&providers[i]);
		if (err)
			return err;
	}
	return 0;
}

static void suite_end(struct kunit_suite *suite)
{
	u32 i;

	for (i = 0; i < NR_PROVIDERS; i++)
		etw_provider_unregister(&providers[i]);
	if (w.started) {
		etw_provider_unregister(&etw_provider_self);
		etw_session_exit();
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(unknown_is_remembered),
	KUNIT_CASE(stop_waits_for_who_wrote_before),
	KUNIT_CASE(at_random),
	{}
};

static struct kunit_suite suite = {
	.name = "etw_enable", .suite_init = suite_start, .suite_exit = suite_end, .test_cases = cases,
};

kunit_test_suite(suite);
