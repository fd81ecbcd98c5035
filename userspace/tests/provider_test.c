// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library's provider half against a fake module: macros and run-time events, every type, batches, activity ids,
 * callbacks by thread and by loop, a module that comes late, fork, closed descriptors, errors. It must not know the
 * library's insides.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <etw/provider.h>

#include "provider_fake.h"
#include "tap.h"

#define KW_A 0x1
#define KW_B 0x2

ETW_PROVIDER(early, "Test-Early", ETW_KEYWORD("a", KW_A), ETW_KEYWORD("b", KW_B),
	     ETW_PROVIDER_GUID("b3864c38-4273-58c5-545b-8b3608343471"));
ETW_PROVIDER(plain, "Test-Plain");
ETW_PROVIDER(wrong, "not a name");
ETW_VALUE_MAP(states, { 0, "idle" }, { 7, "busy" });
ETW_FLAG_MAP(rights, { 1, "read" }, { 2, "write" });

static unsigned int evaluated;

static unsigned int count(void)
{
	return ++evaluated;
}

static int same(const char *is, const char *should)
{
	if (strcmp(is, should))
		printf("# is     %s\n# should %s\n", is, should);
	return !strcmp(is, should);
}

/* Within two seconds. */
#define soon(condition) \
	({ \
		int tries_ = 200; \
		while (!(condition) && tries_--) \
			usleep(10000); \
		tries_ >= 0; \
	})

static struct etw_provider_status status_of(struct etw_provider *p)
{
	struct etw_provider_status s = { .size = sizeof(s) };

	etw_provider_status(p, &s);
	return s;
}

static unsigned int threads(void)
{
	char text[4096], *line;
	FILE *f = fopen("/proc/self/status", "r");
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	fclose(f);
	text[n] = 0;
	line = strstr(text, "\nThreads:");
	return line ? strtoul(line + 9, NULL, 10) : 0;
}

/* ---- before there is a module ---- */

static void write_early(unsigned int n)
{
	ETW_WRITE(early, "Early", ETW_LEVEL_INFO, KW_A, etw_u32("n", n), etw_u32("counted", count()));
}

static int exit_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void no_module(void)
{
	struct etw_provider_options o = { .size = sizeof(o), .name = "Test-Loop" };
	struct etw_provider *looped, *none;
	unsigned int before = threads();
	struct pollfd p = { .events = POLLIN };
	pid_t child;

	ok(!status_of(&early).attached && status_of(&early).error == -ENODEV && status_of(&wrong).error == -EINVAL,
	   "without a module programs run; a wrong name is told");
	ok(etw_provider_attach(&early) == 0, "there is nothing to attach to");
	ok(threads() == before, "no thread as long as no event is come to");
	errno = 77;
	write_early(1);
	ok(!evaluated && errno == 77, "nothing is evaluated, errno is kept");
	ok(soon(threads() == before + 1), "now one thread waits for the module");
	write_early(2);
	ok(threads() == before + 1, "and only one");

	ok(!etw_provider_register(&o, &looped), "a provider of a program with a loop");
	p.fd = etw_provider_fd(looped);
	ok(p.fd >= 0 && poll(&p, 1, 0) == 1 && etw_provider_dispatch(looped) == 0 && poll(&p, 1, 0) == 0,
	   "its descriptor is quiet after the first dispatch");
	o.name = "Test-None";
	o.flags = ETW_PROVIDER_NO_THREAD;
	ok(!etw_provider_register(&o, &none), "a provider that wants no thread");

	/* A child has no thread: its first event looks anew. */
	fflush(stdout);
	child = fork();
	if (!child) {
		write_early(3);
		_exit(soon(threads() == 2) && !evaluated ? 0 : 1);
	}
	ok(exit_of(child) == 0, "a child has its own thread wait");

	/* One that does nothing of it: events look, without a thread. */
	child = fork();
	if (!child) {
		setenv("ETW_NO_THREAD", "1", 1);
		write_early(4);
		if (threads() != 1)
			_exit(1);
		fake_load();
		for (int i = 0; i < 200 && !status_of(&early).attached; i++) {
			usleep(10000);
			write_early(5);
		}
		_exit(status_of(&early).attached ? 0 : 2);
	}
	ok(exit_of(child) == 0, "without threads the events themselves find the module within seconds");

	fake_load();
	ok(soon(status_of(&early).attached) && soon(status_of(&plain).attached),
	   "the module comes: the thread attaches");
	ok(soon(threads() == before), "and ends");
	ok(poll(&p, 1, 2000) == 1 && etw_provider_dispatch(looped) == 0 && status_of(looped).attached,
	   "the loop is woken and attaches");
	ok(!status_of(none).attached && etw_provider_attach(none) == 1 && status_of(none).attached,
	   "the third one is attached by hand");
	ok(status_of(&early).nr_events >= 1, "events come to before are known");
	etw_provider_unregister(looped);
	etw_provider_unregister(none);
	etw_provider_unregister(NULL);
}

/* ---- the macros ---- */

static void enabled_or_not(void)
{
	fake_clear();
	evaluated = 0;
	write_early(1);
	ok(!evaluated && !fake_events(), "nobody listens: nothing is evaluated or written");
	fake_enable("test-early", ETW_LEVEL_WARNING, 0);
	write_early(2);
	ok(!evaluated && !fake_events(), "nor if the level is too low");
	fake_enable("Test-Early", ETW_LEVEL_INFO, KW_B);
	write_early(3);
	ok(!evaluated && !fake_events(), "or the keyword another");
	fake_enable("Test-Early", 0, KW_A);
	errno = 55;
	write_early(4);
	ok(evaluated == 1 && fake_events() == 1 && errno == 55, "else once, and errno is kept");
	ok(same(fake_event(0), "Test-Early Early n=4 counted=1"), "its fields");
	fake_disable("Test-Early");
	write_early(5);
	fake_enable("Test-Early", 5, 0);
	write_early(6);
	ok(fake_events() == 2 && evaluated == 2, "disabled and enabled again");
}

enum { RED, GREEN };

static void all_types(void)
{
	static const __u8 id[16] = { 0xb3, 0x86, 0x4c, 0x38, 0x42, 0x73, 0x58, 0xc5,
				     0x54, 0x5b, 0x8b, 0x36, 8,	   0x34, 0x34, 0x71 };
	static const __u8 mac[6] = { 0, 0, 0x5e, 0, 0x53, 1 };
	static const uint64_t big[] = { 1, 2, UINT64_MAX };
	static const __s16 small[] = { -1, 0, 1 };
	static const double reals[] = { 1.5, -2.25 };
	static const bool flags[] = { true, false };
	struct {
		unsigned int bits : 3;
	} bf = { 5 };
	char text[16] = "to\0be cut", *p = text;
	struct in6_addr a6;
	struct in_addr a4;
	int i = -5;

	inet_pton(AF_INET, "192.0.2.1", &a4);
	inet_pton(AF_INET6, "2001:db8::1", &a6);
	fake_clear();
	ETW_WRITE(early, "Integers", ETW_LEVEL_INFO, 0, etw_u8("a", 255), etw_u16("b", 65535),
		  etw_u32("c", 4294967295U), etw_u64("d", UINT64_MAX), etw_s8("e", -128), etw_s16("f", -32768),
		  etw_s32("g", i), etw_s64("h", INT64_MIN), etw_hex8("i", 0x1f), etw_hex16("j", 0xff),
		  etw_hex32("k", bf.bits), etw_hex64("l", 1ULL << 63), etw_octal("m", 0644), etw_errno("n", -2),
		  etw_pid("o", 77), etw_dev("p", 8 << 20 | 1), etw_time("q", 1000000002ULL), etw_u8("r", GREEN),
		  etw_ptr("s", (void *)0x1000));
	ok(same(fake_event(0),
		"Test-Early Integers a=255 b=65535 c=4294967295 d=18446744073709551615 e=-128 f=-32768 g=-5 h=-9223372036854775808 i=0x1f j=0xff k=0x5 l=0x8000000000000000 m=0644 n=-ENOENT o=77 p=8:1 q=1970-01-01T00:00:01.000000002Z r=1 s=0x1000"),
	   "integers of all sizes and formats");
	ETW_WRITE(early, "Others", ETW_LEVEL_INFO, 0, etw_f32("a", 1.5f), etw_f64("b", -0.25), etw_bool("c", p),
		  etw_bool("d", 0), etw_str("e", text), etw_strn("f", "abcdef", 3), etw_strn("g", text, sizeof(text)),
		  etw_chars("h", "chars", 8), etw_bin("i", mac, 3), etw_guid("j", id), etw_ipv4("k", &a4),
		  etw_ipv6("l", &a6), etw_mac("m", mac), etw_str("n", ""));
	ok(same(fake_event(1),
		"Test-Early Others a=1.5 b=-0.25 c=true d=false e=to f=abc g=to h=chars i=00005e j=b3864c38-4273-58c5-545b-8b3608343471 k=192.0.2.1 l=2001:db8::1 m=00:00:5e:00:53:01 n="),
	   "everything else");
	ETW_WRITE(early, "Arrays", ETW_LEVEL_INFO, 0, etw_u64_array("a", big, 3), etw_s16_fixed("b", small, 3),
		  etw_f64_array("c", reals, 2), etw_bool_array("d", flags, 2), etw_u8_array("e", mac, 0),
		  etw_as(ETW_FORMAT_HEX, etw_u64_fixed("f", big, 2)));
	ok(same(fake_event(2),
		"Test-Early Arrays a=[1, 2, 18446744073709551615] b=[-1, 0, 1] c=[1.5, -2.25] d=[true, false] e=[] f=[0x1, 0x2]"),
	   "arrays");
	ETW_WRITE(early, "Maps", ETW_LEVEL_INFO, 0, etw_named(states, etw_u8("a", 7)),
		  etw_named(states, etw_u32("b", 8)), etw_named(rights, etw_u32("c", 3)),
		  etw_as(ETW_FORMAT_HEX, etw_named(rights, etw_u64("d", 4))));
	ok(same(fake_event(3), "Test-Early Maps a=busy b=8 c=read|write d=0x4"), "names of values and flags");
	ETW_WRITE(early, "Nulls", ETW_LEVEL_INFO, 0, etw_str("a", (char *)NULL), etw_strn("b", (char *)NULL, 5),
		  etw_chars("c", (char *)NULL, 4), etw_bin("d", (void *)NULL, 9), etw_guid("e", (__u8 *)NULL),
		  etw_u32_array("f", (__u32 *)NULL, 3), etw_u16_fixed("g", (__u16 *)NULL, 2));
	ok(same(fake_event(4), "Test-Early Nulls a= b= c= d= e=00000000-0000-0000-0000-000000000000 f=[] g=[0, 0]"),
	   "null pointers are empty, not fatal");
	ETW_WRITE(early, "Nothing", ETW_LEVEL_INFO, 0);
	ok(same(fake_event(5), "Test-Early Nothing"), "an event without fields");
	ETW_WRITE(early, "Items", ETW_LEVEL_ERROR, KW_A | KW_B, etw_opcode(ETW_OPCODE_START), etw_task(300),
		  etw_id(65535), etw_version(9), etw_description("what it is for"), etw_u8("a", 1));
	ok(same(fake_event(6), "Test-Early Items a=1") && fake_events() == 7, "items are no fields");
}

#define F(i) etw_u8("f" #i, i)
static void many_fields(void)
{
	fake_clear();
	ETW_WRITE(early, "Many", ETW_LEVEL_INFO, 0, F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10),
		  F(11), F(12), F(13), F(14), F(15), F(16), F(17), F(18), F(19), F(20), F(21), F(22), F(23), F(24),
		  F(25), F(26), F(27), F(28), F(29), F(30), F(31), F(32), F(33), F(34), F(35), F(36), F(37), F(38),
		  F(39), F(40), F(41), F(42), F(43), F(44), F(45), F(46), F(47), F(48), F(49), F(50), F(51), F(52),
		  F(53), F(54), F(55), F(56), F(57), F(58), F(59), F(60), F(61), F(62), F(63), F(64));
	ok(same(fake_field(0, "f1"), "1") && same(fake_field(0, "f64"), "64"), "64 fields");
}

static void sizes(void)
{
	static char text[ETW_MAX_PAYLOAD + 16];
	volatile size_t huge = (size_t)1 << 33;
	struct etw_provider_status before = status_of(&early);

	memset(text, 'x', sizeof(text) - 1);
	fake_clear();
	for (unsigned int n = 250; n < 262; n++)
		ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, n), etw_u32("n", n));
	ok(fake_events() == 12 && same(fake_field(0, "n"), "250") && same(fake_field(11, "n"), "261"),
	   "around the size of the stack's room");
	fake_clear();
	ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, ETW_MAX_PAYLOAD - 5), etw_u32("n", 1));
	ok(fake_events() == 1 && same(fake_field(0, "n"), "1"), "the largest");
	ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, ETW_MAX_PAYLOAD - 4), etw_u32("n", 1));
	ETW_WRITE(early, "Huge", ETW_LEVEL_INFO, 0, etw_bin("all", text, huge));
	ETW_WRITE(early, "Huge2", ETW_LEVEL_INFO, 0, etw_u64_array("all", (__u64 *)text, huge << 28));
	ok(fake_events() == 1 && status_of(&early).too_large == before.too_large + 3,
	   "one more is not written, and counted");
	fake_write_error = -ENOBUFS;
	ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, 4), etw_u32("n", 1));
	fake_write_error = -EMSGSIZE;
	ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, 4), etw_u32("n", 1));
	fake_write_error = -EINVAL;
	ETW_WRITE(early, "Size", ETW_LEVEL_INFO, 0, etw_strn("text", text, 4), etw_u32("n", 1));
	ok(status_of(&early).no_room == before.no_room + 1 && status_of(&early).too_large == before.too_large + 4 &&
		   status_of(&early).failed == before.failed + 1,
	   "what the module says is counted by cause");
}

/* ---- activity ids ---- */

static void *other_thread(void *arg)
{
	__u8 id[16], *out = arg;
	static const __u8 none[16];

	etw_activity_get(id);
	out[16] = !memcmp(id, none, 16);
	etw_activity_create(out);
	return NULL;
}

static void with_activity(void)
{
	ETW_WRITE(plain, "Step", ETW_LEVEL_INFO, 0, etw_u32("n", 1));
}

static void activities(void)
{
	static const __u8 none[16];
	__u8 a[16], b[16], old[16], thread[17];
	char text[ETW_GUID_TEXT_SIZE], want[200];
	pthread_t t;
	int pipes[2];
	pid_t child;

	etw_activity_get(a);
	ok(!memcmp(a, none, 16), "a thread begins without one");
	etw_activity_create(a);
	etw_activity_create(b);
	etw_activity_get(old);
	ok(memcmp(a, none, 16) && memcmp(a, b, 16) && !memcmp(old, none, 16), "new ones differ, and are not current");
	pthread_create(&t, NULL, other_thread, thread);
	pthread_join(t, NULL);
	ok(thread[16] && memcmp(thread, a, 16) && memcmp(thread, b, 16), "another thread has none, and makes others");
	if (pipe(pipes))
		abort();
	child = fork();
	if (!child) {
		etw_activity_create(b);
		_exit(write(pipes[1], b, 16) != 16);
	}
	ok(exit_of(child) == 0 && read(pipes[0], old, 16) == 16 && memcmp(old, a, 8), "so does a child");
	close(pipes[0]);
	close(pipes[1]);

	fake_enable("Test-Plain", 0, 0);
	fake_clear();
	with_activity();
	etw_activity_set(a);
	with_activity();
	etw_guid_format(a, text);
	snprintf(want, sizeof(want), "Test-Plain Step activity_id=%s n=1", text);
	ok(same(fake_event(0), "Test-Plain Step n=1") && same(fake_event(1), want),
	   "an event carries the thread's current id");

	memcpy(old, b, 16);
	etw_activity_swap(old);
	ok(!memcmp(old, a, 16), "swap gives the one before");
	etw_activity_create_set(old);
	etw_activity_get(a);
	ok(!memcmp(old, b, 16) && memcmp(a, b, 16), "so does create and set");
	etw_guid_format(a, text);
	ETW_WRITE(plain, "Sub", ETW_LEVEL_INFO, 0, etw_related(b), etw_u32("n", 2));
	ok(same(fake_field(2, "activity_id"), text), "before a related id stands the current one");
	etw_guid_format(b, text);
	ok(same(fake_field(2, "related_activity_id"), text) && same(fake_field(2, "n"), "2"),
	   "and the related one behind");
	ETW_WRITE(plain, "Own", ETW_LEVEL_INFO, 0, etw_activity(b), etw_related(a), etw_u32("n", 3));
	ok(same(fake_field(3, "activity_id"), text) && same(fake_field(3, "n"), "3"),
	   "an event can say its id itself");
	etw_activity_set(none);
	ETW_WRITE(plain, "Sub", ETW_LEVEL_INFO, 0, etw_related(b), etw_u32("n", 4));
	ok(same(fake_field(4, "activity_id"), "00000000-0000-0000-0000-000000000000") &&
		   same(fake_field(4, "n"), "4"),
	   "without a current one it is zero");
	with_activity();
	ok(same(fake_event(5), "Test-Plain Step n=1"), "and then events have none again");
}

/* ---- at run time ---- */

static struct etw_provider *make(const char *name)
{
	struct etw_keyword keywords[] = { { 1, "one" }, { 2, "two" } };
	struct etw_provider_options o = { .size = sizeof(o), .name = name, .keywords = keywords, .nr_keywords = 2 };
	struct etw_provider *p = NULL;

	ok(!etw_provider_register(&o, &p) && status_of(p).attached, "%s registers", name);
	return p;
}

static void run_time(void)
{
	const struct etw_field_info fields[] = {
		{ .name = "n", .type = ETW_TYPE_U32 },
		{ .name = "text", .type = ETW_TYPE_STRING },
	};
	struct etw_event_options o = {
		.size = sizeof(o),
		.name = "Run",
		.fields = fields,
		.nr_fields = 2,
		.level = 4,
		.id = 7,
		.description = "text",
	};
	struct etw_provider *p = make("Test-Run");
	struct etw_user_event *e, *again, *other;
	__u8 payload[16] = { 5, 0, 0, 0, 'h', 'i', 0 }, id[16], rel[16];
	struct iovec iov[3] = { { payload, 4 }, { payload + 4, 1 }, { payload + 5, 2 } };
	struct etw_event_data many[20];
	char text[ETW_GUID_TEXT_SIZE];
	unsigned int before;

	ok(!etw_event_define(p, &o, &e) && !etw_event_define(p, &o, &again) && e == again,
	   "the same event again is the same");
	o.level = 5;
	ok(!etw_event_define(p, &o, &other) && other != e, "another level makes another");
	fake_clear();
	ok(!etw_event_enabled(e) && !etw_event_write(e, payload, 7) && !fake_events(), "nobody listens");
	fake_enable("Test-Run", 4, 0);
	ok(etw_event_enabled(e) && !etw_event_enabled(other), "one of them is wanted");
	ok(!etw_event_write(e, payload, 7) && same(fake_event(0), "Test-Run Run n=5 text=hi"), "write");
	ok(!etw_event_writev(e, iov, 3) && same(fake_event(1), "Test-Run Run n=5 text=hi"), "from a vector");
	ok(etw_event_write(e, payload, 6) == -EINVAL && status_of(p).failed == 1 && strstr(etw_last_error(), "Run"),
	   "what is not its fields is refused and counted");
	etw_activity_create(id);
	etw_activity_create(rel);
	etw_activity_set(id);
	ok(!etw_event_write(e, payload, 7), "with the current id");
	etw_activity_set((const __u8[16]){ 0 });
	etw_guid_format(id, text);
	ok(same(fake_field(2, "activity_id"), text), "which it carries");

	memset(many, 0, sizeof(many));
	for (int i = 0; i < 20; i++) {
		many[i].event = i % 5 ? e : other;
		many[i].iov = iov;
		many[i].nr = 3;
	}
	many[1].activity = id;
	many[2].activity = id;
	many[2].related = rel;
	many[3].related = rel;
	fake_clear();
	before = fake_writes();
	ok(!etw_event_write_many(many, 20) && fake_events() == 16 && fake_writes() == before + 1,
	   "many events, without those that nobody wants, by one call");
	ok(same(fake_field(0, "activity_id"), text) && same(fake_field(1, "activity_id"), text),
	   "with their activity");
	etw_guid_format(rel, text);
	ok(same(fake_field(1, "related_activity_id"), text) && same(fake_field(2, "related_activity_id"), text),
	   "and the related one");
	many[4].event = NULL;
	fake_write_error = -ENOBUFS;
	ok(etw_event_write_many(many, 2) == -ENOBUFS && status_of(p).no_room == 1, "a loss is told");
	etw_provider_unregister(p);
	ok(!fake_files("Test-Run"), "unregistered, its file is closed");
}

static void define_errors(void)
{
	static const struct {
		const char *what;
		struct etw_field_info f[3];
		unsigned int nr;
	} bad[] = {
		{ "a name with a blank", { { .name = "a b", .type = ETW_TYPE_U8 } }, 1 },
		{ "no name", { { .type = ETW_TYPE_U8 } }, 1 },
		{ "no type", { { .name = "a" } }, 1 },
		{ "a type there is not", { { .name = "a", .type = ETW_NR_TYPES } }, 1 },
		{ "a kernel pointer", { { .name = "a", .type = ETW_TYPE_POINTER } }, 1 },
		{ "two fields of one name", { { .name = "a", .type = 1 }, { .name = "a", .type = 2 } }, 2 },
		{ "an array of strings",
		  { { .name = "a", .type = ETW_TYPE_STRING, .array = ETW_ARRAY_COUNTED } },
		  1 },
		{ "a fixed array of nothing", { { .name = "a", .type = 1, .array = ETW_ARRAY_FIXED } }, 1 },
		{ "a count without array", { { .name = "a", .type = 1, .count = 3 } }, 1 },
		{ "a format of a string", { { .name = "a", .type = ETW_TYPE_STRING, .format = ETW_FORMAT_HEX } }, 1 },
		{ "a format there is not", { { .name = "a", .type = 1, .format = ETW_NR_FORMATS } }, 1 },
		{ "names of a float", { { .name = "a", .type = ETW_TYPE_F32, .map = &states } }, 1 },
		{ "a related id alone behind",
		  { { .name = "a", .type = 1 }, { .name = ETW_FIELD_RELATED, .type = ETW_TYPE_GUID } },
		  2 },
		{ "an activity id behind",
		  { { .name = "a", .type = 1 }, { .name = ETW_FIELD_ACTIVITY, .type = ETW_TYPE_GUID } },
		  2 },
		{ "more than an event can hold",
		  { { .name = "a", .type = ETW_TYPE_U64, .array = ETW_ARRAY_FIXED, .count = 9000 } },
		  1 },
	};
	struct etw_provider *p = make("Test-Errors"), *none;
	struct etw_event_options o = { .size = sizeof(o), .name = "Bad" };
	struct etw_provider_options po = { .size = sizeof(po), .name = "Test-Refused" };
	struct etw_keyword bits = { 0, "none" };
	struct etw_field_info fields[ETW_MAX_FIELDS + 1];
	char names[ETW_MAX_FIELDS + 1][8];
	struct etw_user_event *e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.fields = bad[i].f;
		o.nr_fields = bad[i].nr;
		ok(etw_event_define(p, &o, &e) == -EINVAL && strstr(etw_last_error(), "Bad"), "%s: %s", bad[i].what,
		   etw_last_error());
	}
	memset(fields, 0, sizeof(fields));
	for (unsigned int i = 0; i <= ETW_MAX_FIELDS; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		fields[i].name = names[i];
		fields[i].type = ETW_TYPE_U8;
	}
	o.fields = fields;
	o.nr_fields = ETW_MAX_FIELDS + 1;
	ok(etw_event_define(p, &o, &e) == -E2BIG, "too many fields");
	o.nr_fields = ETW_MAX_FIELDS;
	ok(!etw_event_define(p, &o, &e), "just as many as there may be");
	fake_enable("Test-Errors", 0, 0);
	etw_activity_set((const __u8 *)"0123456789abcdef");
	fake_clear();
	ok(!etw_event_write(e, names, ETW_MAX_FIELDS) && fake_events() == 1,
	   "which then has no room for an activity id, and goes without");
	etw_activity_set((const __u8[16]){ 0 });
	o.nr_fields = 1;
	o.name = "9";
	ok(etw_event_define(p, &o, &e) == -EINVAL, "no name for an event");
	o.name = "Line";
	o.description = "two\nlines";
	ok(etw_event_define(p, &o, &e) == -EINVAL, "a description of two lines");
	o.description = NULL;
	o.size = 4;
	ok(etw_event_define(p, &o, &e) == -EINVAL, "options without their size");
	o.size = sizeof(o);
	fake_event_error = -EDQUOT;
	ok(etw_event_define(p, &o, &e) == -EDQUOT && strstr(etw_last_error(), "Line"), "refused by the module: %s",
	   etw_last_error());
	ok(!etw_event_define(p, &o, &e) && etw_event_enabled(e), "later taken");
	etw_provider_unregister(p);

	fake_register_error = -EPERM;
	ok(etw_provider_register(&po, &none) == -EPERM && strstr(etw_last_error(), "Test-Refused"),
	   "a provider refused: %s", etw_last_error());
	po.name = "";
	ok(etw_provider_register(&po, &none) == -EINVAL, "no name for a provider");
	po.name = "Test-Refused";
	po.flags = 0x80;
	ok(etw_provider_register(&po, &none) == -EINVAL, "unknown flags");
	po.flags = 0;
	po.keywords = &bits;
	po.nr_keywords = 1;
	ok(etw_provider_register(&po, &none) == -EINVAL, "a keyword without bits");
	po.nr_keywords = 0;
	fake_open_error = -EACCES;
	ok(!etw_provider_register(&po, &none) && status_of(none).error == -EACCES,
	   "a device that may not be opened can become so");
	ok(etw_provider_attach(none) == 1, "and then it attaches");
	etw_provider_unregister(none);
}

static void batches(void)
{
	static __u8 room[1024], outer_room[4096], large[ETW_MAX_WRITE];
	struct etw_batch batch, outer;
	unsigned int before;
	pid_t child;

	ok(etw_batch_begin(&batch, room, 100) == -EINVAL, "a batch needs room");
	fake_clear();
	before = fake_writes();
	ok(!etw_batch_begin(&batch, room, sizeof(room)), "a batch begins");
	for (int i = 0; i < 16; i++)
		ETW_WRITE(early, "Batch", ETW_LEVEL_INFO, 0, etw_u32("n", i), etw_str("text", "abc"));
	ok(!fake_events() && fake_writes() == before, "nothing is written yet");
	child = fork();
	if (!child)
		_exit(etw_batch_end(&batch) || fake_events());
	ok(exit_of(child) == 0, "a child has none of its parent's events");
	ok(!etw_batch_end(&batch) && fake_events() == 16 && fake_writes() == before + 1 &&
		   same(fake_field(15, "n"), "15"),
	   "16 events by one call, in order");
	fake_clear();
	etw_batch_begin(&batch, room, sizeof(room));
	for (int i = 0; i < 100; i++)
		ETW_WRITE(early, "Batch", ETW_LEVEL_INFO, 0, etw_u32("n", i), etw_str("text", "abc"));
	ok(fake_events() && fake_events() < 100, "a full one is written");
	ETW_WRITE(plain, "Other", ETW_LEVEL_INFO, 0, etw_u32("n", 0));
	ok(fake_events() == 100, "another provider's event has the rest written");
	ETW_WRITE(plain, "Large", ETW_LEVEL_INFO, 0, etw_bin("data", outer_room, 2000));
	ok(fake_events() == 102 && same(fake_event(100), "Test-Plain Other n=0"),
	   "a large one goes behind those before it");
	etw_batch_begin(&outer, outer_room, sizeof(outer_room));
	ETW_WRITE(plain, "Other", ETW_LEVEL_INFO, 0, etw_u32("n", 1));
	ok(!etw_batch_end(&outer) && fake_events() == 103, "a batch in a batch");
	ETW_WRITE(plain, "Other", ETW_LEVEL_INFO, 0, etw_u32("n", 2));
	fake_write_error = -ENOBUFS;
	ok(etw_batch_flush(&batch) == -ENOBUFS && !etw_batch_end(&batch), "a loss is told once");
	fake_clear();
	etw_batch_begin(&batch, large, sizeof(large));
	for (int i = 0; i < 3000; i++)
		ETW_WRITE(early, "Nothing", ETW_LEVEL_INFO, 0);
	ok(!etw_batch_end(&batch) && fake_events() == 3000, "no call has more events than there may be");
}

/* ---- callbacks ---- */

struct calls {
	unsigned int nr;
	__u32 code[32];
	__u32 level;
	__u64 any;
	pthread_t thread;
	struct etw_provider *provider;
	int slow;
	int done;
	int unregister;
};

static void on_enable(struct etw_provider *provider, const struct etw_enabled *enabled, void *arg)
{
	struct calls *c = arg;

	c->provider = provider;
	c->level = enabled->level;
	c->any = enabled->any;
	c->thread = pthread_self();
	if (c->unregister)
		etw_provider_unregister(provider);
	c->code[c->nr % 32] = enabled->code;
	__atomic_store_n(&c->nr, c->nr + 1, __ATOMIC_RELEASE);
	if (c->slow)
		usleep(200000);
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
}

static unsigned int nr_calls(struct calls *c)
{
	return __atomic_load_n(&c->nr, __ATOMIC_ACQUIRE);
}

static void by_thread(void)
{
	struct etw_provider *p = make("Test-Thread");
	struct calls c = {};
	unsigned int before = threads(), n;
	struct etw_enabled now = { .size = sizeof(now) };

	ok(!etw_provider_on_enable(p, on_enable, &c, ETW_CALLBACK_THREAD) && threads() == before + 1,
	   "a callback by a thread");
	usleep(50000);
	ok(!nr_calls(&c), "no call while nobody listens");
	fake_enable("Test-Thread", 3, 6);
	ok(soon(nr_calls(&c) == 1) && c.code[0] == ETW_CODE_ENABLE && c.level == 3 && c.any == 6 && c.provider == p &&
		   !pthread_equal(c.thread, pthread_self()),
	   "enabled, with level and keywords, in the thread");
	fake_enable("Test-Thread", 5, 0);
	ok(soon(nr_calls(&c) == 2) && c.level == 5 && c.any == ~0ULL, "changed");
	fake_capture("Test-Thread");
	ok(soon(nr_calls(&c) == 3) && c.code[2] == ETW_CODE_CAPTURE, "asked for its state");
	fake_disable("Test-Thread");
	ok(soon(nr_calls(&c) == 4) && c.code[3] == ETW_CODE_DISABLE, "disabled");
	/* The query takes the change from the thread, which must be told all the same. */
	fake_enable("Test-Thread", 4, 0);
	ok(!etw_provider_query(p, &now) && now.code == ETW_CODE_ENABLE && now.level == 4, "a query");
	ok(soon(nr_calls(&c) == 5), "does not take the change from the callback");
	c.slow = 1;
	c.done = 0;
	fake_enable("Test-Thread", 2, 0);
	ok(soon(nr_calls(&c) == 6), "a callback that takes its time");
	etw_provider_unregister(p);
	ok(c.done, "unregister waits for it");
	n = nr_calls(&c);
	fake_enable("Test-Thread", 1, 0);
	usleep(50000);
	ok(nr_calls(&c) == n, "none comes afterwards");
	ok(soon(threads() == before), "the thread ends");

	memset(&c, 0, sizeof(c));
	p = make("Test-Thread2");
	fake_enable("Test-Thread2", 1, 0);
	ok(!etw_provider_on_enable(p, on_enable, &c, ETW_CALLBACK_THREAD) && soon(nr_calls(&c) == 1),
	   "one that is set when it is enabled already is called");
	ok(!etw_provider_on_enable(p, NULL, NULL, 0), "taken back");
	fake_disable("Test-Thread2");
	usleep(50000);
	ok(nr_calls(&c) == 1, "it is not called any more");
	c.unregister = 1;
	fake_enable("Test-Thread2", 1, 0);
	ok(!etw_provider_on_enable(p, on_enable, &c, ETW_CALLBACK_THREAD) && soon(nr_calls(&c) == 2) &&
		   !fake_files("Test-Thread2"),
	   "a callback can unregister its provider");
	ok(soon(threads() == before), "and the thread ends");
}

static void by_loop(void)
{
	struct etw_provider *p = make("Test-Loop2");
	struct pollfd fd = { .fd = etw_provider_fd(p), .events = POLLIN };
	struct calls c = {};
	unsigned int before = threads();
	struct etw_enabled now = { .size = sizeof(now) };

	ok(!etw_provider_on_enable(p, on_enable, &c, 0) && etw_provider_fd(p) == fd.fd && threads() == before,
	   "a callback by the program's loop, without a thread");
	etw_provider_dispatch(p);
	ok(!nr_calls(&c) && poll(&fd, 1, 0) == 0, "quiet");
	fake_enable("Test-Loop2", 3, 6);
	ok(poll(&fd, 1, 1000) == 1 && !nr_calls(&c), "readable, and nobody is called");
	ok(etw_provider_dispatch(p) == 1 && nr_calls(&c) == 1 && pthread_equal(c.thread, pthread_self()) &&
		   poll(&fd, 1, 0) == 0,
	   "but by dispatch");
	fake_capture("Test-Loop2");
	fake_enable("Test-Loop2", 2, 6);
	ok(etw_provider_dispatch(p) == 2 && c.code[1] == ETW_CODE_ENABLE && c.code[2] == ETW_CODE_CAPTURE,
	   "two reasons");
	ok(etw_provider_dispatch(p) == 0, "and no more");
	fake_enable("Test-Loop2", 1, 6);
	ok(etw_provider_enabled(p, 1, 2) == 0, "no event of it is wanted");
	etw_provider_query(p, &now);
	ok(poll(&fd, 1, 0) == 1 && etw_provider_dispatch(p) == 1, "a query leaves it readable");
	fake_disable("Test-Loop2");
	fake_enable("Test-Loop2", 2, 6);
	ok(etw_provider_dispatch(p) == 1, "off and on again is told as one");
	ok(etw_provider_on_enable(p, on_enable, &c, 0x10) == -EINVAL, "unknown flags");
	etw_provider_unregister(p);
}

/* ---- answers ---- */

ETW_PROVIDER(answering, "Test-Answering");

static __u64 asked;

static void write_state(unsigned int n)
{
	ETW_WRITE(answering, "State", ETW_LEVEL_INFO, 0, etw_u32("n", n));
}

static void answer(struct etw_provider *provider, const struct etw_enabled *enabled, void *arg)
{
	struct etw_batch batch;
	__u8 room[1024], old[16];

	(void)provider;
	(void)arg;
	if (enabled->code != ETW_CODE_CAPTURE)
		return;
	asked = enabled->capture;
	write_state(1);
	ETW_WRITE(early, "Other", ETW_LEVEL_INFO, 0, etw_u32("n", 1));
	etw_activity_create_set(old);
	write_state(2);
	etw_activity_set(old);
	etw_batch_begin(&batch, room, sizeof(room));
	write_state(3);
	write_state(4);
	etw_batch_end(&batch);
}

static void answers(void)
{
	struct etw_batch batch;
	__u8 room[1024];
	struct etw_provider_status before, after;
	struct etw_event_options o = { .size = sizeof(o), .name = "Late", .level = ETW_LEVEL_INFO };
	struct etw_user_event *e;
	pid_t child;

	fake_enable("Test-Answering", 4, 0);
	etw_provider_on_enable(&answering, answer, NULL, 0);
	etw_provider_dispatch(&answering);
	fake_clear();
	fake_capture("Test-Answering");
	etw_batch_begin(&batch, room, sizeof(room));
	write_state(0);
	ok(etw_provider_dispatch(&answering) == 1 && asked && fake_events() == 6 && fake_answers() == 4 &&
		   same(fake_field(0, "n"), "0"),
	   "what a callback writes of its provider is for the session that asked");
	write_state(5);
	etw_batch_end(&batch);
	ok(fake_events() == 7 && fake_answers() == 4, "and what is written afterwards for all");
	ok(!etw_event_define(&answering, &o, &e) && !etw_answer_begin(&answering, asked) && !etw_event_write(e, NULL, 0) &&
		   fake_answers() == 5,
	   "an answer given later");
	fake_capture("Test-Answering");
	before = status_of(&answering);
	errno = 0;
	ok(etw_event_write(e, NULL, 0) == -ENOENT && fake_answers() == 5 && !errno, "to who has asked again: none");
	after = status_of(&answering);
	ok(before.failed == after.failed, "which is no failure");
	etw_answer_end();
	ok(!etw_event_write(e, NULL, 0) && fake_events() == 9 && fake_answers() == 5, "the end of an answer");
	/* The number of the request that came meanwhile. */
	ok(!etw_answer_begin(&answering, asked + 1), "an answer in which a child is made");
	fake_clear();
	child = fork();
	if (!child)
		_exit(!!etw_event_write(e, NULL, 0));
	ok(exit_of(child) == 0 && fake_events() == 1 && !fake_answers(), "the child's events are for all");
	ok(!etw_event_write(e, NULL, 0) && fake_answers() == 1, "the parent goes on answering");
	etw_answer_end();
	ok(etw_answer_begin(&answering, 0) == -EINVAL, "an answer to nobody");
	etw_provider_on_enable(&answering, NULL, NULL, 0);
	etw_provider_unregister(&answering);
}

static void provider_enabled(void)
{
	fake_disable("Test-Early");
	ok(!etw_provider_enabled(&early, 0, 0), "off");
	fake_enable("Test-Early", 4, KW_A);
	ok(etw_provider_enabled(&early, 4, KW_A) && etw_provider_enabled(&early, 0, 0) &&
		   !etw_provider_enabled(&early, 5, KW_A) && !etw_provider_enabled(&early, 4, KW_B),
	   "level and keywords of all sessions together");
	fake_enable("Test-Early", 0, 0);
	ok(etw_provider_enabled(&early, 255, KW_B), "every level");
}

/* ---- fork, descriptors ---- */

static void forks(void)
{
	struct etw_provider *p = make("Test-Fork");
	unsigned int before = fake_registrations();
	struct calls c = {};
	pid_t child;

	fake_clear();
	child = fork();
	if (!child) {
		write_early(42);
		_exit(0);
	}
	ok(exit_of(child) == 0 && fake_events() == 1 && same(fake_field(0, "n"), "42") &&
		   fake_registrations() == before,
	   "a child writes by its parent's registration");
	ok(!etw_provider_on_enable(p, on_enable, &c, ETW_CALLBACK_THREAD), "a provider with a callback");
	child = fork();
	if (!child) {
		struct etw_user_event *e;
		struct etw_event_options o = { .size = sizeof(o), .name = "Child" };

		/* The thread did not come along; the next call on the library brings another, and a file of the
		 * child's own. */
		if (threads() != 1 || etw_event_define(p, &o, &e) || !soon(threads() == 2))
			_exit(1);
		if (fake_registrations() != before + 1 || fake_files("Test-Fork") != 1)
			_exit(2);
		fake_enable("Test-Fork", 1, 0);
		_exit(soon(nr_calls(&c) == 1) ? 0 : 3);
	}
	ok(exit_of(child) == 0, "a child's callback gets a thread and a registration of its own");
	fake_enable("Test-Fork", 1, 0);
	ok(soon(nr_calls(&c) == 1), "the parent's goes on");
	etw_provider_unregister(p);
}

/* In a child, for what must not hang or kill the others: 0 it did what it should. */
#define alone(statements) \
	({ \
		pid_t child_; \
\
		fflush(stdout); \
		child_ = fork(); \
		if (!child_) { \
			alarm(10); \
			_exit(({ statements; })); \
		} \
		exit_of(child_); \
	})

static struct etw_user_event *define(struct etw_provider *p, const char *name)
{
	struct etw_event_options o = { .size = sizeof(o), .name = name, .level = ETW_LEVEL_INFO };
	struct etw_user_event *e = NULL;

	etw_event_define(p, &o, &e);
	return e;
}

/* A program that closes all it did not open, and then has many of its own. */
static ino_t taken_inode;

static int memory_file(void)
{
	int fd = memfd_create("own", MFD_CLOEXEC);

	if (write(fd, "0123456789abcdef", 16) != 16)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void take_all(int own)
{
	struct stat st;
	int fd;

	fstat(own, &st);
	taken_inode = st.st_ino;
	for (fd = 3; fd < 1024; fd++)
		if (fd != own)
			dup2(own, fd);
}

static bool all_taken(void)
{
	struct stat st;
	int fd;

	for (fd = 3; fd < 1024; fd++)
		if (fstat(fd, &st) || st.st_ino != taken_inode) {
			printf("# %d is no more the program's\n", fd);
			fflush(stdout);
			return false;
		}
	return true;
}

static int registers(const char *name)
{
	struct etw_provider_options o = { .size = sizeof(o), .name = name };
	struct etw_provider *p;

	return etw_provider_register(&o, &p);
}

static void descriptors(void)
{
	unsigned int before = fake_registrations();
	struct etw_provider *p;
	int fd, taken;

	/* A daemon that closes everything. */
	fake_clear();
	ok(fake_files("Test-Early") == 1, "one file");
	for (fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			close(fd);
	write_early(1);
	ok(fake_events() == 1 && fake_registrations() == before + 1 && fake_files("Test-Early") == 1,
	   "a program that closed all descriptors is registered anew, and no event lost");
	taken = open("/dev/null", O_RDWR | O_CLOEXEC);
	ok(taken < 64, "the library's descriptors are out of the way (%d)", taken);
	close(taken);

	/* A number that is another file now must not be closed. */
	p = make("Test-Taken");
	ok(alone(take_all(memory_file()); etw_provider_unregister(p); !all_taken()) == 0,
	   "nor is a file of the program's closed that has the number of one of ours");
	ok(alone(etw_provider_unregister(p); take_all(memory_file()); registers("Test-Again") || !all_taken()) == 0,
	   "or that had one");
	etw_provider_unregister(p);
}

/* Its event attaches anew, with all the cancellation points that are in that. */
static void *cancelled(void *event)
{
	struct etw_user_event *e = event;
	int old;

	pthread_cancel(pthread_self());
	etw_event_write(e, NULL, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old == PTHREAD_CANCEL_ENABLE ? e : NULL;
}

static void cancel_in_callback(struct etw_provider *provider, const struct etw_enabled *enabled, void *arg)
{
	(void)provider;
	(void)enabled;
	pthread_cancel(pthread_self());
	usleep(1000);
	*(bool *)arg = true;
}

static void *cancelled_in_callback(void *provider)
{
	etw_provider_dispatch(provider);
	pthread_testcancel();
	return NULL;
}

static int cancel_writer(struct etw_provider *p)
{
	struct etw_user_event *e = define(p, "Cancelled");
	void *result = NULL;
	pthread_t t;
	int fd;

	fake_enable("Test-Cancel", 4, 0);
	for (fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			close(fd);
	fake_clear();
	pthread_create(&t, NULL, cancelled, e);
	pthread_join(t, &result);
	if (result != e || fake_events() != 1)
		return 1;
	return etw_provider_attach(NULL) != 1;
}

static int cancel_callback(struct etw_provider *p)
{
	bool called = false;
	void *result;
	pthread_t t;

	fake_enable("Test-Cancel", 4, 0);
	etw_provider_on_enable(p, cancel_in_callback, &called, 0);
	pthread_create(&t, NULL, cancelled_in_callback, p);
	pthread_join(t, &result);
	if (result != PTHREAD_CANCELED || !called)
		return 1;
	etw_provider_unregister(p);
	return 0;
}

static void cancellation(void)
{
	struct etw_provider *p = make("Test-Cancel");

	ok(alone(cancel_writer(p)) == 0, "a cancelled thread's event is written, and the thread goes on behind it");
	ok(alone(cancel_callback(p)) == 0, "a callback runs to its end before its thread is cancelled");
	etw_provider_unregister(p);
}

/* Readable once for each change, and the callback is called then. */
static bool loop_works(struct etw_provider *p, const char *name, struct calls *c)
{
	struct pollfd fd = { .fd = etw_provider_fd(p), .events = POLLIN };
	unsigned int before;

	etw_provider_dispatch(p);
	before = nr_calls(c);
	fake_enable(name, 2 + before % 2, 0);
	return poll(&fd, 1, 1000) == 1 && etw_provider_dispatch(p) == 1 && nr_calls(c) == before + 1 &&
	       poll(&fd, 1, 0) == 0;
}

static int own_file(struct etw_provider *p, struct calls *c)
{
	int own = memory_file();

	take_all(own);
	etw_provider_dispatch(p);
	if (lseek(own, 0, SEEK_CUR) || lseek(own, 0, SEEK_END) != 16 || !all_taken())
		return 1;
	if (etw_provider_attach(p) != 1 || !loop_works(p, "Test-Loop3", c))
		return 2;
	etw_provider_unregister(p);
	return !all_taken();
}

static int own_eventfd(struct etw_provider *p)
{
	int own = eventfd(5, EFD_CLOEXEC | EFD_NONBLOCK);
	__u64 n = 0;

	take_all(own);
	etw_provider_dispatch(p);
	etw_provider_on_enable(p, NULL, NULL, 0);
	etw_provider_unregister(p);
	return read(own, &n, sizeof(n)) != sizeof(n) || n != 5 || fcntl(1023, F_GETFD) < 0;
}

static int own_files_after_fork(struct etw_provider *p, struct calls *c, struct etw_user_event *e)
{
	take_all(memory_file());
	etw_event_write(e, NULL, 0);
	return !all_taken() || !loop_works(p, "Test-Loop3", c) || !all_taken();
}

static void loops(void)
{
	struct etw_provider *p = make("Test-Loop3");
	struct etw_user_event *e = define(p, "Event");
	struct calls c = {};
	int fd = etw_provider_fd(p);

	fake_enable("Test-Loop3", 4, 0);
	etw_provider_on_enable(p, on_enable, &c, 0);
	ok(loop_works(p, "Test-Loop3", &c), "a loop");
	ok(alone(etw_event_write(e, NULL, 0) || etw_provider_fd(p) != fd || !loop_works(p, "Test-Loop3", &c)) == 0,
	   "a child's own, in the same place");
	ok(loop_works(p, "Test-Loop3", &c) && etw_provider_fd(p) == fd, "the parent's goes on");
	ok(alone(own_files_after_fork(p, &c, e)) == 0, "a child that has files of its own in all places keeps them");
	/* Their process has forked already as far as the library is concerned. */
	ok(alone(etw_provider_dispatch(p); own_file(p, &c)) == 0, "so does a program, and has another for its loop");
	ok(alone(etw_provider_dispatch(p); own_eventfd(p)) == 0, "its eventfd is not taken for the library's");
	ok(loop_works(p, "Test-Loop3", &c), "of all that the parent sees nothing");
	etw_provider_unregister(p);
}

/* Runs in the middle of a fork, when the library is prepared for it. */
static int (*in_fork)(void);

static void prepare_fork(void)
{
	int (*fn)(void) = in_fork;

	in_fork = NULL;
	if (fn && fn())
		_exit(99);
}

/* Those before the library's own come after it. */
static __attribute__((constructor(101))) void watch_forks(void)
{
	pthread_atfork(prepare_fork, NULL, NULL);
}

static volatile int handled;

static void fork_in_handler(int nr)
{
	pid_t child = fork();

	(void)nr;
	if (!child)
		_exit(0);
	handled = exit_of(child) ? -1 : 1;
}

static int by_handler_of_same(void)
{
	return raise(SIGUSR1) || handled != 1;
}

static int asking;

static void *asks(void *arg)
{
	struct etw_enabled e = { .size = sizeof(e) };

	__atomic_store_n(&asking, gettid(), __ATOMIC_RELEASE);
	return etw_provider_query(&early, &e) ? NULL : arg;
}

static bool sleeps(int tid)
{
	char path[64], text[256], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	state = strrchr(text, ')');
	return state && !strncmp(state, ") S", 3);
}

static int by_handler_of_other(void)
{
	pthread_t t;

	__atomic_store_n(&asking, 0, __ATOMIC_RELEASE);
	pthread_create(&t, NULL, asks, &early);
	/* It waits for the lock, which this thread has. */
	if (!soon(__atomic_load_n(&asking, __ATOMIC_ACQUIRE)) || !soon(sleeps(asking)))
		return 1;
	return pthread_kill(t, SIGUSR1) || !soon(handled) || handled != 1;
}

/* 0: after a fork in the middle of a fork, parent and child can use the library. */
static int fork_in_fork(int (*by)(void))
{
	pid_t child;

	in_fork = by;
	child = fork();
	if (!child)
		_exit(!asks(&child));
	return !asks(&child) || exit_of(child) || handled != 1;
}

/* The child of a handler that came while the library was at work, which comes out of both. */
static int child_of_handler(void)
{
	return raise(SIGUSR2);
}

static void leave_in_handler(int nr)
{
	pid_t child = fork();

	(void)nr;
	handled = child ? exit_of(child) ? -1 : 1 : 2;
}

static int child_comes_out(struct etw_provider *p)
{
	struct calls c = {};
	pid_t child;

	etw_provider_on_enable(p, on_enable, &c, ETW_CALLBACK_THREAD);
	in_fork = child_of_handler;
	child = fork();
	if (!child)
		_exit(0);
	if (exit_of(child))
		return 1;
	if (handled != 2)
		return handled != 1;
	/* Here the thread did not come along. */
	etw_provider_attach(p);
	fake_enable("Test-Handler", 4, 0);
	_exit(!soon(nr_calls(&c) == 1));
}

static void forks_in_forks(void)
{
	struct etw_provider *p = make("Test-Handler");

	signal(SIGUSR1, fork_in_handler);
	signal(SIGUSR2, leave_in_handler);
	ok(alone(fork_in_fork(by_handler_of_same)) == 0, "a handler forks while its thread does");
	ok(alone(fork_in_fork(by_handler_of_other)) == 0, "a handler of another thread forks");
	ok(alone(child_comes_out(p)) == 0, "its child is a child as any other when it comes out");
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	etw_provider_unregister(p);
}

static int without_memory(struct etw_provider *p, const volatile unsigned char *enabled)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_DATA, &none);
	etw_provider_unregister(p);
	return *enabled || fake_files("Test-Memory");
}

static void memory(void)
{
	struct etw_provider *p = make("Test-Memory");
	struct etw_user_event *e = define(p, "Event");

	fake_enable("Test-Memory", 4, 0);
	ok(etw_event_enabled(e) && alone(without_memory(p, e->enabled)) == 0, "unregistered where no memory is to be had");
	etw_provider_unregister(p);
}

static void *writer(void *arg)
{
	volatile int *stop = arg;

	while (!*stop)
		write_early(9);
	return NULL;
}

/* For the sanitizers: all at once. */
static void all_at_once(void)
{
	__u64 failed = status_of(&early).failed;
	volatile int stop = 0;
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, writer, (void *)&stop);
	for (i = 0; i < 50; i++) {
		struct etw_provider_options o = { .size = sizeof(o), .name = "Test-Brief" };
		struct etw_provider *p;

		fake_enable("Test-Early", i % 2 ? 5 : 1, 0);
		if (!etw_provider_register(&o, &p))
			etw_provider_unregister(p);
		fake_clear();
	}
	stop = 1;
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	ok(!fake_files("Test-Brief") && status_of(&early).failed == failed,
	   "writers, and providers that come and go");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	fake_init();
	no_module();
	enabled_or_not();
	all_types();
	many_fields();
	sizes();
	activities();
	run_time();
	define_errors();
	batches();
	by_thread();
	by_loop();
	answers();
	provider_enabled();
	forks();
	cancellation();
	memory();
	loops();
	forks_in_forks();
	all_at_once();
	descriptors();
	return tap_done();
}
