// SPDX-License-Identifier: GPL-2.0-only
/* Tracepoints by name: found once, attached while some session wants the class. */
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "hook.h"
#include "objects.h"

struct search {
	struct etw_class *const *classes;
	u32 nr;
};

static void match_tracepoint(struct tracepoint *tp, void *data)
{
	struct search *search = data;
	u32 i;

	for (i = 0; i < search->nr; i++)
		if (search->classes[i]->tracepoint && !strcmp(search->classes[i]->tracepoint, tp->name))
			search->classes[i]->tp = tp;
}

void etw_hook_find(struct etw_class *const *classes, u32 nr)
{
	struct search search = { classes, nr };
	u32 i;

	for_each_kernel_tracepoint(match_tracepoint, &search);
	for (i = 0; i < nr; i++)
		if (classes[i]->tracepoint && !classes[i]->tp)
			classes[i]->unavailable = "this kernel has no such tracepoint";
}

int etw_hook_attach(struct etw_class *class)
{
	int err;

	if (!class->tp)
		return 0;
	err = tracepoint_probe_register(class->tp, class->probe, class);
	if (!err)
		etw_objects_made(ETW_OBJECT_HOOK, 1);
	return err;
}

void etw_hook_detach(struct etw_class *class)
{
	if (!class->tp)
		return;
	tracepoint_probe_unregister(class->tp, class->probe, class);
	etw_objects_gone(ETW_OBJECT_HOOK, 1);
}

void etw_hook_synchronize(void)
{
	tracepoint_synchronize_unregister();
	synchronize_rcu();	/* preempt-off readers: not part of the former on every kernel */
}
