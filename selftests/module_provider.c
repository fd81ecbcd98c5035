// SPDX-License-Identifier: GPL-2.0-only
/*
 * Other kernel modules as providers: those of selftests/modules, loaded and unloaded while sessions want them. Needs a test
 * build of the module. It knows the ABI, and what these modules promise.
 */
#include <fcntl.h>

#include "emitter.h"
#include "etw_test.h"

#define EMIT "/sys/module/etw_emit/parameters/"
#define COUNT 500

static int load_with(const char *name, const char *parameters)
{
	char path[64];

	snprintf(path, sizeof(path), "/etw/%s.ko", name);
	return module_load(path, parameters);
}

static int load(const char *name)
{
	return load_with(name, "");
}

FIXTURE(module_provider)
{
	int dev;
	int fd;
	struct log log;
	struct reader reader;
};

FIXTURE_SETUP(module_provider)
{
	struct etw_session_create create = session_small(unique("modules"));

	create.subbuf_size = 64 << 10;
	ASSERT_EQ(0, pin(0));
	self->dev = device_open();
	ASSERT_GE(self->dev, 0);
	self->fd = session_make(self->dev, &create);
	ASSERT_GE(self->fd, 0);
	self->log.number_field = "n";
	self->log.text_field = "line";
	ASSERT_EQ(0, reader_open(&self->reader, self->fd, log_event, &self->log));
}

FIXTURE_TEARDOWN(module_provider)
{
	module_unload("etw_emit");
	module_unload("etw_sample");
	reader_close(&self->reader);
	log_free(&self->log);
	close(self->fd);
	close(self->dev);
}

#define DRAIN() ASSERT_ALL_READ(self->fd, &self->reader)

static unsigned int number_in(const char *path)
{
	char text[16] = "";

	return file_read(path, text, sizeof(text)) > 0 ? atoi(text) : 999;
}

static unsigned int wrong(void)
{
	return number_in(EMIT "wrong");
}

static unsigned int contexts(void)
{
	return number_in(EMIT "contexts");
}

static unsigned int wanted(void)
{
	return number_in(EMIT "wanted");
}

/* Enabled before the module is there, it comes to life with it; every event from every context is there, in its order. */
TEST_F(module_provider, known_number)
{
	uint64_t next[4] = {}, n = 0;
	unsigned int nr = 0;
	char count[16];

	ASSERT_EQ(0, enable_all(self->fd, "Etw-Emit-Module"));
	snprintf(count, sizeof(count), "%d", COUNT);
	for (int round = 0; round < 3; round++) {
		ASSERT_EQ(0, load("etw_emit"));
		ASSERT_EQ(0, file_write(EMIT "emit", count));
		EXPECT_EQ(0, wrong());
		DRAIN();
		nr = contexts();
#ifdef __x86_64__
		ASSERT_EQ(4, nr);
#else
		ASSERT_EQ(3, nr);
#endif
		ASSERT_EQ(nr * COUNT, self->log.nr);
		memset(next, 0, sizeof(next));
		for (unsigned int i = 0; i < self->log.nr; i++) {
			/* the contexts follow each other */
			EXPECT_EQ(next[i / COUNT]++, self->log.events[i].number);
			EXPECT_STREQ("Etw-Emit-Module", self->log.events[i].provider);
		}
		self->log.nr = 0;
		ASSERT_EQ(0, module_unload("etw_emit"));
	}
	n = session_provider(self->fd, "Etw-Emit-Module").written;
	EXPECT_EQ(3 * nr * COUNT, n);
	/* the same class each time; its schema outlives the module */
	EXPECT_EQ(1, self->reader.schema.nr);
}

/* Nobody listens: nothing is written. Then somebody does, and then not again. */
TEST_F(module_provider, on_and_off)
{
	ASSERT_EQ(0, load("etw_emit"));
	EXPECT_EQ(0, wanted());
	ASSERT_EQ(0, file_write(EMIT "emit", "10"));
	ASSERT_EQ(1, enable_all(self->fd, "Etw-Emit-Module"));
	EXPECT_EQ(1, wanted());
	ASSERT_EQ(0, file_write(EMIT "emit", "10"));
	ASSERT_EQ(0, disable(self->fd, "Etw-Emit-Module"));
	EXPECT_EQ(0, wanted());
	ASSERT_EQ(0, file_write(EMIT "emit", "10"));
	EXPECT_EQ(0, wrong());
	DRAIN();
	ASSERT_EQ(10 * contexts(), self->log.nr);
	EXPECT_EQ(10, self->log.events[0].number);
}

/* A session that has it enabled does not keep the module, and the other way round. */
TEST_F(module_provider, comes_and_goes)
{
	struct etw_session_create create = session_small(unique("other"));
	int other = session_make(self->dev, &create);
	unsigned int n;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, load("etw_emit"));
	ASSERT_EQ(1, enable_all(self->fd, "Etw-Emit-Module"));
	ASSERT_EQ(1, enable_all(other, "Etw-Emit-Module"));
	close(other);
	ASSERT_EQ(0, file_write(EMIT "emit", "5"));
	n = 5 * contexts();
	ASSERT_EQ(0, module_unload("etw_emit"));
	EXPECT_EQ(0, session_provider(self->fd, "Etw-Emit-Module").registered);
	DRAIN();
	EXPECT_EQ(n, self->log.nr);
	/* its name is the kernel's only while it is loaded */
	ASSERT_EQ(0, load("etw_emit"));
	EXPECT_EQ(-EPERM, provider_register(self->dev, "etw-EMIT-module"));
	EXPECT_EQ(-EEXIST, load("etw_emit"));
}

/* Two events of one content: both cannot be told from each other, so it is refused, and nothing stays of it. */
TEST_F(module_provider, twins)
{
	ASSERT_EQ(0, enable_all(self->fd, "Etw-Emit-Module"));
	EXPECT_EQ(-ENOTUNIQ, load_with("etw_emit", "twin=1"));
	EXPECT_EQ(0, session_provider(self->fd, "Etw-Emit-Module").registered);
	ASSERT_EQ(0, load("etw_emit"));
	EXPECT_EQ(1, wanted());
	ASSERT_EQ(0, file_write(EMIT "emit", "5"));
	EXPECT_EQ(0, wrong());
	DRAIN();
	EXPECT_EQ(5 * contexts(), self->log.nr);
}

static void storm(void *arg)
{
	for (;;)
		file_write(EMIT "emit", "50");
}

/* Enabled, disabled and unloaded while it writes in all contexts. */
TEST_F(module_provider, races)
{
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, load("etw_emit"));
		pid = spawn(storm, NULL);
		for (int k = 0; k < 3; k++) {
			ASSERT_EQ(1, enable_all(self->fd, "Etw-Emit-Module"));
			sleep_ms(i % 7);
			ASSERT_EQ(0, disable(self->fd, "Etw-Emit-Module"));
		}
		ASSERT_EQ(1, enable_all(self->fd, "Etw-Emit-Module"));
		EXPECT_EQ(0, wrong());
		kill(pid, SIGKILL);
		reap(pid);
		EXPECT_TRUE(wait_until(5000, !module_unload("etw_emit")));
		DRAIN();
		self->log.nr = 0;
	}
}

/* The driver to be copied does what it says. */
TEST_F(module_provider, sample)
{
	int fd;

	ASSERT_EQ(0, load("etw_sample"));
	ASSERT_EQ(1, enable_all(self->fd, "Etw-Sample-Driver"));
	ASSERT_EQ(0, file_write("/sys/module/etw_sample/parameters/seconds", "0"));
	fd = open("/dev/etw-sample", O_WRONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(5, write(fd, "hello", 5));
	close(fd);
	EXPECT_TRUE(wait_until(2000, session_provider(self->fd, "Etw-Sample-Driver").written == 3));
	DRAIN();
	ASSERT_EQ(3, self->log.nr);
	EXPECT_STREQ("opened", self->log.events[0].name);
	EXPECT_STREQ("stored", self->log.events[1].name);
	EXPECT_STREQ("hello", self->log.events[1].text);
	EXPECT_EQ(1, log_count(&self->log, "expired"));
}

TEST_HARNESS_MAIN
