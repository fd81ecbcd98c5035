// SPDX-License-Identifier: GPL-2.0-only
/* /dev/etw: versions, lists, and the making and finding of sessions. */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "enable.h"
#include "files.h"
#include "objects.h"
#include "provider.h"
#include "registration.h"
#include "relay_mem.h"
#include "schema.h"
#include "session.h"
#include "uarg.h"
#include "user.h"

int etw_permitted(void)
{
	return perfmon_capable() ? 0 : -EPERM;
}

int etw_permitted_addresses(void)
{
	if (!capable(CAP_SYSLOG) || security_locked_down(LOCKDOWN_KCORE))
		return -EPERM;
	return 0;
}

int etw_file_install(const char *name, const struct file_operations *fops, void *private, int flags)
{
	return anon_inode_getfd(name, fops, private, flags | O_CLOEXEC);
}

static long version(void __user *arg)
{
	struct etw_version v;
	int err = etw_uarg_size(&v, sizeof(v), arg);

	if (err)
		return err;
	v = (struct etw_version){
		.size = v.size,
		.abi = ETW_ABI_VERSION,
		.record = ETW_RECORD_VERSION,
		.memory_limit = etw_memory_limit(),
		.memory_used = etw_memory_used(),
	};
	return etw_uarg_put(arg, &v, sizeof(v));
}

static bool valid_geometry(const struct etw_session_create *c)
{
	if (c->subbuf_size && (!is_power_of_2(c->subbuf_size) || c->subbuf_size < max_t(u32, ETW_SUBBUF_SIZE_MIN, PAGE_SIZE) ||
			       c->subbuf_size > ETW_SUBBUF_SIZE_MAX))
		return false;
	if (c->nr_subbufs && (!is_power_of_2(c->nr_subbufs) || c->nr_subbufs < ETW_NR_SUBBUFS_MIN ||
			      c->nr_subbufs > ETW_NR_SUBBUFS_MAX))
		return false;
	return c->flush_ms <= ETW_FLUSH_MS_MAX || c->flush_ms == ETW_FLUSH_MS_NEVER;
}

static long session_create(void __user *arg)
{
	struct etw_session_create c;
	struct etw_session *s;
	int fd, err = etw_uarg_get(&c, sizeof(c), arg);

	if (err)
		return err;
	if ((c.flags & ~ETW_SESSION_FLAGS) || c.clock > ETW_CLOCK_CYCLES || etw_uarg_name(c.name, false) || !valid_geometry(&c))
		return -EINVAL;
	err = etw_permitted();
	if (!err && (c.flags & ETW_SESSION_ADDRESSES))
		err = etw_permitted_addresses();
	if (err)
		return err;
	s = etw_session_create(&c);
	if (IS_ERR(s))
		return PTR_ERR(s);
	fd = etw_session_file_open(s, !(c.flags & ETW_SESSION_PERSIST));
	if (fd < 0)
		etw_session_stop(s, ETW_STOP_CLOSED);	/* also one that persists: nobody was told of it */
	etw_session_put(s);
	return fd;
}

static long session_open(void __user *arg)
{
	struct etw_session_open o;
	struct etw_session *s;
	int err = etw_uarg_get(&o, sizeof(o), arg);

	if (err)
		return err;
	if (o.flags || etw_uarg_name(o.name, false))
		return -EINVAL;
	err = etw_permitted();
	if (err)
		return err;
	s = etw_session_find(o.name);
	if (!s)
		return -ENOENT;
	if (s->flags & ETW_SESSION_ADDRESSES)
		err = etw_permitted_addresses();
	if (!err)
		err = etw_session_file_open(s, false);
	etw_session_put(s);
	return err;
}

static long session_list(void __user *arg)
{
	struct etw_session_query q;
	struct etw_session *s;
	int err = etw_uarg_get_grown(&q, sizeof(q), ETW_SESSION_QUERY_FIRST, arg);

	if (!err)
		err = etw_permitted();
	if (err)
		return err;
	s = etw_session_after(q.id);
	if (!s)
		return -ENOENT;
	etw_session_file_query(s, &q);
	etw_session_put(s);
	return etw_uarg_put(arg, &q, sizeof(q));
}

/* Whose providers the caller may see: NULL all, or its own, of which there may be none (ENOENT). etw_control held. */
static struct etw_user *whose(bool all)
{
	struct etw_user *user;

	if (all)
		return NULL;
	user = etw_user_find(current_uid());
	return user ?: ERR_PTR(-ENOENT);
}

/* etw_control held. */
static void fill_provider(struct etw_provider_list *l, const struct etw_provider *p)
{
	struct etw_enabled_query q;
	u32 i;

	etw_enabled_query(p, &q);
	*l = (struct etw_provider_list){
		.size = l->size,
		.flags = p->user ? 0 : ETW_PROVIDER_KERNEL,
		.id = p->id,
		.nr_sessions = q.nr_sessions,
		.nr_keywords = p->nr_keywords,
		.keywords = l->keywords,
		.uid = p->user ? from_kuid_munged(current_user_ns(), p->user->uid) : 0,
		.nr_registrations = p->made ? p->nr_registrations : 0,
	};
	strscpy(l->name, p->name, sizeof(l->name));
	if (p->alias)
		strscpy(l->alias, p->alias, sizeof(l->alias));
	memcpy(l->guid, &p->guid, sizeof(l->guid));
	for (i = 0; i < p->nr_classes; i++) {
		l->nr_events += !p->classes[i]->made || p->classes[i]->registrations;
		l->nr_unavailable += !!p->classes[i]->unavailable;
	}
	if (p->user) {
		const struct etw_registration *last = list_last_entry(&p->registrations, struct etw_registration, node);

		l->pid = pid_nr_ns(last->pid, task_active_pid_ns(current));
		l->flags |= last->trusted ? ETW_PROVIDER_TRUSTED : 0;
	}
}

static long provider_list(void __user *arg)
{
	const bool all = !etw_permitted();
	struct etw_provider_list l;
	struct etw_keyword *keywords;
	struct etw_provider *p;
	struct etw_user *user;
	u32 i, room, nr;
	int err = etw_uarg_get(&l, sizeof(l), arg);

	if (err)
		return err;
	if (l.flags)
		return -EINVAL;
	room = l.keywords ? min_t(u32, l.nr_keywords, ETW_MAX_KEYWORDS) : 0;
	keywords = kcalloc(ETW_MAX_KEYWORDS, sizeof(*keywords), ETW_GFP);
	if (!keywords)
		return -ENOMEM;
	mutex_lock(&etw_control);
	user = whose(all);
	p = IS_ERR(user) ? NULL : etw_provider_after(l.id, user);
	if (!p) {
		mutex_unlock(&etw_control);
		kfree(keywords);
		return -ENOENT;
	}
	fill_provider(&l, p);
	nr = min(p->nr_keywords, room);
	for (i = 0; i < nr; i++) {
		keywords[i].mask = p->keywords[i].mask;
		strscpy(keywords[i].name, p->keywords[i].name, sizeof(keywords[i].name));
	}
	mutex_unlock(&etw_control);
	if (nr && copy_to_user(u64_to_user_ptr(l.keywords), keywords, nr * sizeof(*keywords)))
		err = -EFAULT;
	kfree(keywords);
	return err ?: etw_uarg_put(arg, &l, sizeof(l));
}

static long event_list(void __user *arg)
{
	const bool all = !etw_permitted();
	struct etw_event_list l;
	struct etw_class *class;
	struct etw_user *user;
	void *schema = NULL;
	u32 size = 0;
	int err = etw_uarg_get(&l, sizeof(l), arg);

	if (err)
		return err;
	if (l.flags)
		return -EINVAL;
	mutex_lock(&etw_control);
	user = whose(all);
	class = IS_ERR(user) ? NULL : etw_class_after(l.id, user);
	if (!class) {
		err = -ENOENT;
	} else {
		size = etw_schema_size(class);
		if (size > l.buf_size)
			err = -EMSGSIZE;
		else
			schema = kvmalloc(size, ETW_GFP);
		if (!err && !schema)
			err = -ENOMEM;
	}
	if (!err) {
		etw_schema_fill(schema, class, 0);
		l.id = class->id;
		l.provider_id = class->provider->id;
		l.flags = (class->unavailable ? 0 : ETW_EVENT_AVAILABLE) | (class->rundown ? ETW_EVENT_RUNDOWN : 0);
		memset(l.reason, 0, sizeof(l.reason));
		if (class->unavailable)
			strscpy(l.reason, class->unavailable, sizeof(l.reason));
	}
	mutex_unlock(&etw_control);
	if (err && err != -EMSGSIZE)
		return err;
	if (!err && copy_to_user(u64_to_user_ptr(l.buf), schema, size))
		err = -EFAULT;
	kvfree(schema);
	l.used = size;
	if (err != -EFAULT && etw_uarg_put(arg, &l, sizeof(l)))
		err = -EFAULT;
	return err;
}

static long control_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (command) {
	case ETW_IOC_VERSION:
		return version(user);
	case ETW_IOC_SESSION_CREATE:
		return session_create(user);
	case ETW_IOC_SESSION_OPEN:
		return session_open(user);
	case ETW_IOC_SESSION_LIST:
		return session_list(user);
	case ETW_IOC_PROVIDER_LIST:
		return provider_list(user);
	case ETW_IOC_EVENT_LIST:
		return event_list(user);
	case ETW_IOC_PROVIDER_REGISTER:
		return etw_provider_file_register(user);
	default:
		return -ENOTTY;
	}
}

const struct file_operations etw_control_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
