// SPDX-License-Identifier: GPL-2.0-only
/* Loads and unloads the module: each part in order, and back. */
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "files.h"
#include "hook.h"
#include "objects.h"
#include "provider.h"
#include "providers/providers.h"
#include "relay_mem.h"
#include "self.h"
#include "session.h"
#include "test.h"

static struct etw_provider *const providers[] = {
	&etw_provider_self,
	&etw_provider_process,
	&etw_provider_sched,
	&etw_provider_block,
	&etw_provider_fault,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "etw",
	.fops = &etw_control_fops,
	.mode = 0666,	/* each command checks its own right; user providers need none */
};

static void unregister_providers(u32 nr)
{
	while (nr--)
		etw_provider_unregister(providers[nr]);
}

/* Of what was made, all is gone. */
static void check_objects(void)
{
	bool left = etw_objects_left();

	WARN(left || etw_memory_used(), "etw: it leaves %s behind\n", left ? "objects" : "charged memory");
}

static int __init etw_init(void)
{
	u32 nr;
	int err;

	etw_relay_init();
	etw_objects_init();
	err = etw_session_init();
	if (err)
		goto objects;
	for (nr = 0; nr < ARRAY_SIZE(providers); nr++) {
		err = etw_provider_register(providers[nr]);
		if (err)
			goto unregister;
	}
	err = etw_test_init();
	if (err)
		goto unregister;
	err = misc_register(&device);
	if (err)
		goto exit_test;
	return 0;

exit_test:
	etw_test_exit();
unregister:
	unregister_providers(nr);
	etw_session_exit();
objects:
	check_objects();
	return err;
}

/* Files and persistent sessions hold the module, so nothing of theirs is left here. */
static void __exit etw_exit(void)
{
	misc_deregister(&device);
	etw_test_exit();
	unregister_providers(ARRAY_SIZE(providers));
	etw_session_exit();
	etw_hook_synchronize();
	check_objects();
}

module_init(etw_init);
module_exit(etw_exit);
MODULE_DESCRIPTION("Event Tracing for Linux: providers, sessions and per-CPU relays");
MODULE_AUTHOR("The ETW for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
