// SPDX-License-Identifier: GPL-2.0-only
/* A session file: copies and checks what user space asks of a session, and fills in the answers. */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "enable.h"
#include "files.h"
#include "objects.h"
#include "provider.h"
#include "schema.h"
#include "session.h"
#include "uarg.h"

struct session_file {
	u64 id;				/* never used again, as an address may be */
	struct etw_session *session;
	bool owner;			/* the session stops when this file is released */
};

/* ---- queries ---- */

static s32 visible_pid(struct pid *pid)
{
	return pid_nr_ns(pid, task_active_pid_ns(current));
}

static void put_counts(const struct etw_counts *c, __u64 *written, __u64 *filtered, __u64 *lost)
{
	*written = c->written;
	if (filtered)
		*filtered = c->filtered;
	memcpy(lost, c->lost, sizeof(c->lost));
}

void etw_session_file_query(struct etw_session *s, struct etw_session_query *q)
{
	struct etw_session_class *entry;
	struct etw_counts sum = {};
	struct etw_enabling *e;
	u64 complete = ~0ULL;
	u32 i, cpu;

	*q = (struct etw_session_query){
		.size = q->size,
		.flags = s->flags,
		.id = s->id,
		.subbuf_size = s->subbuf_size,
		.nr_subbufs = s->nr_subbufs,
		.flush_ms = READ_ONCE(s->flush_ms),
		.clock = s->clock,
		.nr_cpus = nr_cpu_ids,
		.start_time = s->start_time,
		.clock_offset = s->clock_offset,
		.owner_pid = visible_pid(s->owner),
		.owner_uid = from_kuid_munged(current_user_ns(), s->owner_uid),
	};
	strscpy(q->name, s->name, sizeof(q->name));
	memcpy(q->uuid, s->uuid, sizeof(q->uuid));

	mutex_lock(&s->lock);
	q->state = s->state;
	q->stop_reason = s->state == ETW_SESSION_STOPPED ? s->stop_reason : ETW_STOP_NONE;
	q->stop_time = s->stop_time;
	q->stopper_pid = s->stopper ? visible_pid(s->stopper) : 0;
	q->nr_classes = s->nr_classes;
	list_for_each_entry(e, &s->enables, node)
		q->nr_enabled += e->enabled;
	mutex_unlock(&s->lock);

	spin_lock(&s->reader_lock);
	if (s->reader)
		q->reader_pid = visible_pid(s->reader_pid) ?: -1;
	spin_unlock(&s->reader_lock);

	for (i = 0; (entry = etw_session_class(s, i)); i++)
		etw_counts_add(&sum, entry->counts);
	put_counts(&sum, &q->written, &q->filtered, q->lost);

	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct etw_relay *r = etw_session_relay(s, cpu);

		if (!r)
			continue;
		q->nr_relays++;
		q->memory += r->memory;
		mutex_lock(&r->lock);
		q->overwritten += READ_ONCE(r->overwritten);
		q->delivered += r->delivered;
		q->unread += etw_relay_unread(r);
		complete = min(complete, etw_relay_complete_up_to(r));
		mutex_unlock(&r->lock);
	}
	q->complete_up_to = q->nr_relays ? complete : 0;
	q->now = etw_session_now(s);
	q->clock_freq = s->clock_freq;
}

static long query(struct etw_session *s, void __user *arg)
{
	struct etw_session_query q;
	int err = etw_uarg_size(&q, ETW_SESSION_QUERY_FIRST, arg);

	if (err)
		return err;
	etw_session_file_query(s, &q);
	return etw_uarg_put(arg, &q, sizeof(q));
}

static long query_cpu(struct etw_session *s, void __user *arg)
{
	struct etw_session_class *entry;
	struct etw_counts sum = {};
	struct etw_relay *r = NULL;
	struct etw_cpu_query q;
	u32 cpu, i;
	int err = etw_uarg_get(&q, sizeof(q), arg);

	if (err)
		return err;
	for (cpu = q.cpu; cpu < nr_cpu_ids && !r; cpu++)
		r = etw_session_relay(s, array_index_nospec(cpu, nr_cpu_ids));
	if (!r)
		return -ENOENT;
	q = (struct etw_cpu_query){ .size = q.size, .cpu = r->cpu };
	for (i = 0; (entry = etw_session_class(s, i)); i++)
		etw_counts_add_cpu(&sum, entry->counts, r->cpu);
	put_counts(&sum, &q.written, NULL, q.lost);
	q.next_seq = etw_relay_next_seq(r);
	q.lost_total = READ_ONCE(r->lost);
	q.open_bytes = etw_relay_offset(r, READ_ONCE(r->reserve));
	mutex_lock(&r->lock);
	q.overwritten = READ_ONCE(r->overwritten);
	q.delivered = r->delivered;
	q.unread = etw_relay_unread(r);
	q.first_seq = etw_relay_first_seq(r);
	q.complete_up_to = etw_relay_complete_up_to(r);
	mutex_unlock(&r->lock);
	return etw_uarg_put(arg, &q, sizeof(q));
}

static long query_provider(struct etw_session *s, void __user *arg)
{
	struct etw_session_class *entry;
	struct etw_provider_query q;
	struct etw_counts sum = {};
	struct etw_enabling *e;
	u32 i;
	int err = etw_uarg_get(&q, sizeof(q), arg);

	if (err)
		return err;
	if (q.flags)
		return -EINVAL;
	mutex_lock(&etw_control);	/* for whether it is registered */
	mutex_lock(&s->lock);
	e = etw_enabling_after(s, q.id);
	if (!e) {
		mutex_unlock(&s->lock);
		mutex_unlock(&etw_control);
		return -ENOENT;
	}
	q = (struct etw_provider_query){
		.size = q.size,
		.flags = e->flags,
		.id = e->id,
		.level = e->level,
		.any = e->any,
		.all = e->all,
		.event_mode = e->event_mode,
		.nr_events = e->nr_events,
		.nr_pids = e->filter ? e->filter->nr : 0,
		.enabled = e->enabled,
		.nr_ids = e->nr_ids,
		.id_mode = e->id_mode,
		.nr_processes = e->nr_processes,
		.nr_predicates = e->conditions ? e->conditions->nr : 0,
	};
	strscpy(q.name, e->name, sizeof(q.name));
	memcpy(q.guid, &e->guid, sizeof(q.guid));
	for (i = 0; (entry = etw_session_class(s, i)); i++)
		if (etw_enabling_counts(s, e, entry->class->provider))
			etw_counts_add(&sum, entry->counts);
	q.registered = etw_enabling_registered(e);
	mutex_unlock(&s->lock);
	mutex_unlock(&etw_control);
	put_counts(&sum, &q.written, &q.filtered, q.lost);
	return etw_uarg_put(arg, &q, sizeof(q));
}

static long query_class(struct etw_session *s, void __user *arg)
{
	struct etw_session_class *entry;
	struct etw_counts sum = {};
	struct etw_class_query q;
	int err = etw_uarg_get(&q, sizeof(q), arg);

	if (err)
		return err;
	entry = etw_session_class(s, q.id);
	if (!entry)
		return -ENOENT;
	etw_counts_add(&sum, entry->counts);
	put_counts(&sum, &q.written, &q.filtered, q.lost);
	return etw_uarg_put(arg, &q, sizeof(q));
}

/* ---- enabling ---- */

/* The numbers of the initial namespace for those of the caller's. */
static int translate_pids(s32 *pids, u32 nr)
{
	struct pid *pid;
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!pids[i])	/* the idle tasks have no struct pid */
			continue;
		pid = pids[i] > 0 ? find_get_pid(pids[i]) : NULL;
		if (!pid)
			return pids[i] > 0 ? -ESRCH : -EINVAL;
		pids[i] = pid_nr(pid);
		put_pid(pid);
	}
	return 0;
}

static int copy_filter(struct etw_enabling *e, const struct etw_enable *arg)
{
	const size_t bytes = arg->nr_pids * sizeof(e->filter->pids[0]);
	int err;

	if (!arg->nr_pids)
		return arg->pids ? -EINVAL : 0;
	if (arg->nr_pids > ETW_MAX_PIDS)
		return -E2BIG;
	e->filter = etw_object_new(ETW_OBJECT_FILTER, kvzalloc(struct_size(e->filter, pids, arg->nr_pids), ETW_GFP));
	if (!e->filter)
		return -ENOMEM;
	if (copy_from_user(e->filter->pids, u64_to_user_ptr(arg->pids), bytes))
		return -EFAULT;
	err = translate_pids(e->filter->pids, arg->nr_pids);
	if (!err)
		etw_filter_init(e->filter, arg->nr_pids);
	return err;
}

static int copy_events(struct etw_enabling *e, const struct etw_enable *arg)
{
	const size_t bytes = (size_t)arg->nr_events * ETW_NAME_SIZE;
	u32 i;

	e->event_mode = arg->event_mode;
	e->nr_events = arg->nr_events;
	if (arg->event_mode == ETW_EVENTS_ALL)
		return arg->nr_events || arg->events ? -EINVAL : 0;
	if (arg->event_mode > ETW_EVENTS_OUT || !arg->nr_events)
		return -EINVAL;
	if (arg->nr_events > ETW_MAX_EVENT_NAMES)
		return -E2BIG;
	e->events = kvmalloc(bytes, ETW_GFP);
	if (!e->events)
		return -ENOMEM;
	if (copy_from_user(e->events, u64_to_user_ptr(arg->events), bytes))
		return -EFAULT;
	for (i = 0; i < arg->nr_events; i++)
		if (etw_uarg_name(e->events + i * ETW_NAME_SIZE, false))
			return -EINVAL;
	return 0;
}

static int copy_ids(struct etw_enabling *e, const struct etw_enable *arg)
{
	const size_t bytes = arg->nr_ids * sizeof(*e->ids);

	e->id_mode = arg->id_mode;
	if (arg->id_mode == ETW_EVENTS_ALL)
		return arg->nr_ids || arg->ids ? -EINVAL : 0;
	if (arg->id_mode > ETW_EVENTS_OUT || !arg->nr_ids)
		return -EINVAL;
	if (arg->nr_ids > ETW_MAX_EVENT_IDS)
		return -E2BIG;
	e->ids = etw_object_new(ETW_OBJECT_FILTER, kvmalloc(bytes, ETW_GFP));
	if (!e->ids)
		return -ENOMEM;
	if (copy_from_user(e->ids, u64_to_user_ptr(arg->ids), bytes))
		return -EFAULT;
	e->nr_ids = arg->nr_ids;
	return 0;
}

static int copy_processes(struct etw_enabling *e, const struct etw_enable *arg)
{
	static_assert(TASK_COMM_LEN == 16);	/* the ABI says so */
	char name[ETW_NAME_SIZE];
	u32 i, len;

	if (!arg->nr_processes)
		return arg->processes ? -EINVAL : 0;
	if (arg->nr_processes > ETW_MAX_PROCESS_NAMES)
		return -E2BIG;
	e->processes = etw_object_new(ETW_OBJECT_FILTER, kvzalloc(arg->nr_processes * TASK_COMM_LEN, ETW_GFP));
	if (!e->processes)
		return -ENOMEM;
	for (i = 0; i < arg->nr_processes; i++) {
		if (copy_from_user(name, u64_to_user_ptr(arg->processes) + i * sizeof(name), sizeof(name)))
			return -EFAULT;
		len = strnlen(name, sizeof(name));
		if (!len || len == sizeof(name) || memchr_inv(name + len, 0, sizeof(name) - len))
			return -EINVAL;
		memcpy(e->processes + i * TASK_COMM_LEN, name, min_t(u32, len, TASK_COMM_LEN - 1));
	}
	e->nr_processes = arg->nr_processes;
	return 0;
}

static int copy_predicates(struct etw_enabling *e, const struct etw_enable *arg)
{
	struct etw_condition *c;
	int err;
	u32 i;

	if (!arg->nr_predicates)
		return arg->predicates ? -EINVAL : 0;
	if (arg->nr_predicates > ETW_MAX_PREDICATES)
		return -E2BIG;
	e->conditions = etw_object_new(ETW_OBJECT_FILTER, kvzalloc(struct_size(e->conditions, c, arg->nr_predicates), ETW_GFP));
	if (!e->conditions)
		return -ENOMEM;
	e->conditions->nr = arg->nr_predicates;
	e->conditions->any = arg->flags & ETW_ENABLE_ANY_PREDICATE;
	for (i = 0; i < arg->nr_predicates; i++) {
		c = &e->conditions->c[i];
		if (copy_from_user(&c->p, u64_to_user_ptr(arg->predicates) + i * sizeof(c->p), sizeof(c->p)))
			return -EFAULT;
		err = etw_condition_init(c);
		if (err)
			return err;
	}
	return 0;
}

/* "" goes by the GUID, which then must not be zero; a name must not come with one. */
static int check_ref(const u8 *name, const u8 *guid, bool empty)
{
	static const u8 none[16];
	bool has_guid = memcmp(guid, none, sizeof(none));

	if (etw_uarg_name(name, true) || (name[0] && has_guid))
		return -EINVAL;
	return name[0] || has_guid || empty ? 0 : -EINVAL;
}

static long enable(struct etw_session *s, void __user *user)
{
	struct etw_enabling *e;
	struct etw_enable arg;
	kuid_t uid;
	int err = etw_uarg_get(&arg, sizeof(arg), user);

	if (err)
		return err;
	uid = make_kuid(current_user_ns(), arg.uid);
	if ((arg.flags & ~ETW_ENABLE_FLAGS) || arg.level > 255 || check_ref(arg.name, arg.guid, false) || arg.reserved)
		return -EINVAL;
	if (arg.flags & ETW_ENABLE_UID ? !uid_valid(uid) : arg.uid)
		return -EINVAL;
	e = etw_object_new(ETW_OBJECT_ENABLING, kzalloc(sizeof(*e), ETW_GFP));
	if (!e)
		return -ENOMEM;
	strscpy(e->name, arg.name, sizeof(e->name));
	memcpy(&e->guid, arg.guid, sizeof(e->guid));
	e->flags = arg.flags;
	e->level = arg.level;
	e->any = arg.any;
	e->all = arg.all;
	e->uid = uid;
	etw_rule_init(&e->rule, arg.level, arg.any, arg.all, arg.flags & ETW_ENABLE_IGNORE_KEYWORD_0);
	err = copy_events(e, &arg) ?: copy_filter(e, &arg) ?: copy_ids(e, &arg) ?: copy_processes(e, &arg) ?:
	      copy_predicates(e, &arg);
	if (err) {
		etw_enabling_free(e);
		return err;
	}
	return etw_session_enable(s, e);
}

static int get_ref(struct etw_provider_ref *ref, void __user *user, bool empty)
{
	int err = etw_uarg_get(ref, sizeof(*ref), user);

	if (err)
		return err;
	return ref->flags ? -EINVAL : check_ref(ref->name, ref->guid, empty);
}

static long disable(struct etw_session *s, void __user *user)
{
	struct etw_provider_ref ref;
	int err = get_ref(&ref, user, false);

	return err ?: etw_session_disable(s, ref.name, (const uuid_t *)ref.guid);
}

static long capture_state(struct etw_session *s, void __user *user)
{
	struct etw_provider_ref ref;
	int err = get_ref(&ref, user, true);

	return err ?: etw_session_capture_state(s, ref.name, (const uuid_t *)ref.guid);
}

/* ---- the rest ---- */

static long update(struct etw_session *s, void __user *user)
{
	struct etw_session_update u;
	int err = etw_uarg_get(&u, sizeof(u), user);

	if (err)
		return err;
	if (u.what != ETW_UPDATE_FLUSH_MS || u.reserved || !u.flush_ms ||
	    (u.flush_ms > ETW_FLUSH_MS_MAX && u.flush_ms != ETW_FLUSH_MS_NEVER))
		return -EINVAL;
	mutex_lock(&s->lock);
	if (s->stopping)
		err = -ESHUTDOWN;
	else
		etw_session_set_flush_ms(s, u.flush_ms);
	mutex_unlock(&s->lock);
	return err;
}

static long flush(struct etw_session *s, void __user *user)
{
	struct etw_flush f;
	int err = etw_uarg_get(&f, sizeof(f), user), result;

	if (err)
		return err;
	if (f.timeout_ms > 600000 || f.reserved)
		return -EINVAL;
	result = etw_session_flush(s, f.timeout_ms ?: 10000, &f.time, &f.cpu);
	return etw_uarg_put(user, &f, sizeof(f)) ?: result;
}

#define SCHEMA_CHUNK 65536

static long schema_read(struct etw_session *s, void __user *user)
{
	struct etw_session_class *entry;
	struct etw_schema_read a;
	u8 *buf;
	int err = etw_uarg_get(&a, sizeof(a), user);

	if (err)
		return err;
	a.used = 0;
	a.nr = 0;
	a.nr_classes = etw_session_nr_classes(s);
	if (a.from > a.nr_classes)
		return -EINVAL;
	buf = kvmalloc(SCHEMA_CHUNK, ETW_GFP);
	if (!buf)
		return -ENOMEM;
	while ((entry = etw_session_class(s, a.from + a.nr))) {
		u32 size = etw_schema_size(entry->class);

		if (size > a.buf_size - a.used) {
			if (!a.nr) {
				a.used = size;
				err = -EMSGSIZE;
			}
			break;
		}
		if (size > SCHEMA_CHUNK)	/* descriptions are bounded far below */
			break;
		etw_schema_fill(buf, entry->class, a.from + a.nr);
		if (copy_to_user(u64_to_user_ptr(a.buf) + a.used, buf, size)) {
			err = -EFAULT;
			break;
		}
		a.used += size;
		a.nr++;
	}
	kvfree(buf);
	if (err != -EFAULT && etw_uarg_put(user, &a, sizeof(a)))
		err = -EFAULT;
	return err;
}

static long relay_open(struct session_file *f, void __user *user)
{
	struct etw_relay_open o;
	int err = etw_uarg_get(&o, sizeof(o), user);

	return err ?: etw_relay_file_open(f->session, f->id, o.cpu);
}

static long session_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct session_file *f = file->private_data;
	struct etw_session *s = f->session;
	void __user *user = (void __user *)arg;

	switch (command) {
	case ETW_IOC_SESSION_QUERY:
		return query(s, user);
	case ETW_IOC_SESSION_QUERY_CPU:
		return query_cpu(s, user);
	case ETW_IOC_SESSION_QUERY_PROVIDER:
		return query_provider(s, user);
	case ETW_IOC_SESSION_QUERY_CLASS:
		return query_class(s, user);
	case ETW_IOC_SESSION_ENABLE:
		return enable(s, user);
	case ETW_IOC_SESSION_DISABLE:
		return disable(s, user);
	case ETW_IOC_SESSION_CAPTURE_STATE:
		return capture_state(s, user);
	case ETW_IOC_SESSION_UPDATE:
		return update(s, user);
	case ETW_IOC_SESSION_FLUSH:
		return flush(s, user);
	case ETW_IOC_SESSION_STOP:
		return arg ? -EINVAL : etw_session_stop(s, ETW_STOP_REQUEST);
	case ETW_IOC_SESSION_SCHEMA_READ:
		return schema_read(s, user);
	case ETW_IOC_SESSION_RELAY_OPEN:
		return relay_open(f, user);
	default:
		return -ENOTTY;
	}
}

static __poll_t session_poll(struct file *file, poll_table *wait)
{
	struct session_file *f = file->private_data;
	struct etw_session *s = f->session;
	__poll_t events;

	poll_wait(file, &s->wait, wait);
	events = etw_session_stopped(s) ? EPOLLHUP : 0;
	if (etw_session_ready(s))
		events |= EPOLLIN | EPOLLRDNORM;
	if (etw_session_has_news(s))
		events |= EPOLLPRI;
	return events;
}

static int session_file_release(struct inode *inode, struct file *file)
{
	struct session_file *f = file->private_data;

	if (f->owner)
		etw_session_stop(f->session, ETW_STOP_CLOSED);	/* ESHUTDOWN: it had stopped */
	etw_session_put(f->session);
	etw_object_free(ETW_OBJECT_SESSION_FILE, f);
	return 0;
}

static const struct file_operations session_fops = {
	.owner = THIS_MODULE,
	.release = session_file_release,
	.unlocked_ioctl = session_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = session_poll,
	.llseek = noop_llseek,
};

int etw_session_file_open(struct etw_session *s, bool owner)
{
	static atomic64_t last_id;
	struct session_file *f = etw_object_new(ETW_OBJECT_SESSION_FILE, kzalloc(sizeof(*f), ETW_GFP));
	int fd;

	if (!f)
		return -ENOMEM;
	kref_get(&s->ref);
	f->id = atomic64_inc_return(&last_id);
	f->session = s;
	f->owner = owner;
	fd = etw_file_install("[etw-session]", &session_fops, f, O_RDWR);
	if (fd < 0) {
		etw_session_put(s);
		etw_object_free(ETW_OBJECT_SESSION_FILE, f);
	}
	return fd;
}
