// SPDX-License-Identifier: GPL-2.0-only
/* Counts objects by kind. */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "objects.h"

static const char *const names[ETW_NR_OBJECTS] = {
	[ETW_OBJECT_SESSION] = "session",
	[ETW_OBJECT_SESSION_FILE] = "session_file",
	[ETW_OBJECT_RELAY_FILE] = "relay_file",
	[ETW_OBJECT_RELAY] = "relay",
	[ETW_OBJECT_PAGE] = "page",
	[ETW_OBJECT_ENABLING] = "enabling",
	[ETW_OBJECT_FILTER] = "filter",
	[ETW_OBJECT_CLASS] = "class",
	[ETW_OBJECT_TARGETS] = "targets",
	[ETW_OBJECT_HOOK] = "hook",
	[ETW_OBJECT_USER] = "user",
	[ETW_OBJECT_PROVIDER] = "provider",
	[ETW_OBJECT_SCHEMA] = "schema",
	[ETW_OBJECT_REGISTRATION] = "registration",
	[ETW_OBJECT_PROVIDER_FILE] = "provider_file",
	[ETW_OBJECT_RATE] = "rate",
};

static struct {
	atomic_long_t made, gone;
} census[ETW_NR_OBJECTS];

static struct dentry *directory;

void etw_objects_made(enum etw_object kind, unsigned long nr)
{
	atomic_long_add(nr, &census[kind].made);
}

void etw_objects_gone(enum etw_object kind, unsigned long nr)
{
	atomic_long_add(nr, &census[kind].gone);
}

void etw_object_free(enum etw_object kind, const void *p)
{
	if (p)
		etw_objects_gone(kind, 1);
	kvfree(p);
}

static int objects_show(struct seq_file *m, void *unused)
{
	int i;

	for (i = 0; i < ETW_NR_OBJECTS; i++) {
		long gone = atomic_long_read(&census[i].gone);	/* first, so that it is never the larger */

		seq_printf(m, "%s %ld %ld\n", names[i], atomic_long_read(&census[i].made), gone);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

/* Without debugfs only the look at the end remains. */
void etw_objects_init(void)
{
	directory = debugfs_create_dir("etw", NULL);
	debugfs_create_file("objects", 0400, directory, NULL, &objects_fops);
}

bool etw_objects_left(void)
{
	bool left = false;
	int i;

	debugfs_remove(directory);
	for (i = 0; i < ETW_NR_OBJECTS; i++) {
		long made = atomic_long_read(&census[i].made), gone = atomic_long_read(&census[i].gone);

		if (made == gone)
			continue;
		pr_err("etw: of %ld objects \"%s\" %ld are gone\n", made, names[i], gone);
		left = true;
	}
	return left;
}
