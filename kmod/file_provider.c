// SPDX-License-Identifier: GPL-2.0-only
/* A provider file: copies and checks what a program registers and writes. Nothing is reserved before all of it is right. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "enable.h"
#include "files.h"
#include "objects.h"
#include "payload.h"
#include "provider.h"
#include "registration.h"
#include "uarg.h"
#include "write_user.h"

struct provider_file {
	struct etw_registration *reg;
	u64 told;			/* changes that the last query on this file told of */
};

/* ---- writing ---- */

/* Most writes are small; theirs need no allocation. */
#define SMALL 768

/* Is @payload what the schema of @class says? */
static __always_inline bool check_payload(const struct etw_class *class, const u8 *payload, u32 len)
{
	if (likely(class->fixed_size != ETW_SIZE_VARIES))
		return likely(len == class->fixed_size);
	return !etw_payload_check(class->fields, class->nr_fields, payload, len, NULL);
}

/* The class of the event at @at, and its @size; NULL: it is not what it should be. */
static const struct etw_class *check_event(const struct etw_registration *reg, const u8 *at, size_t left, u32 *size)
{
	const struct etw_class *class;
	struct etw_write head;

	if (left < sizeof(head))
		return NULL;
	memcpy(&head, at, sizeof(head));
	if (head.size < sizeof(head) || head.size > left || head.flags)
		return NULL;
	*size = head.size;
	if (!etw_registration_has(reg, head.index))
		return NULL;
	class = etw_registration_class(reg, head.index);
	return check_payload(class, at + sizeof(head), head.size - sizeof(head)) ? class : NULL;
}

/*
 * All of a write, before anything of it is written. A head like that of the event before needs no second look if the class
 * has a fixed size; one of zeros, which @seen has when there is none, is never right. *@nr: the events; @uniform: they are
 * all of one class.
 */
static int check_all(const struct etw_registration *reg, const u8 *buf, size_t len, u32 *nr, bool *uniform)
{
	const u16 index = get_unaligned(&((const struct etw_write *)buf)->index);
	u64 head, seen = 0;
	size_t at;
	u32 size = 0;

	*nr = 0;
	*uniform = true;
	for (at = 0; at < len; at += size) {
		const struct etw_class *class;

		if (++*nr > ETW_MAX_BATCH)
			return -E2BIG;
		if (len - at < sizeof(head))
			return -EINVAL;
		head = get_unaligned((const u64 *)(buf + at));
		if (head && head == seen && size <= len - at)
			continue;
		class = check_event(reg, buf + at, len - at, &size);
		if (!class)
			return -EINVAL;
		if (size - sizeof(struct etw_write) > ETW_MAX_PAYLOAD)
			return -E2BIG;
		*uniform &= get_unaligned(&((const struct etw_write *)(buf + at))->index) == index;
		seen = class->fixed_size != ETW_SIZE_VARIES ? head : 0;
	}
	return 0;
}

/* The events from @at on that are of one class, which has the number @index. */
static void next_run(const u8 *buf, size_t len, size_t at, struct etw_run *run, u16 *index)
{
	const struct etw_write *first = (const void *)(buf + at);

	*index = get_unaligned(&first->index);
	*run = (struct etw_run){ .first = buf + at };
	do {
		const struct etw_write *head = (const void *)(buf + at);

		if (get_unaligned(&head->index) != *index)
			break;
		run->bytes += get_unaligned(&head->size);
		run->nr++;
		at += get_unaligned(&head->size);
	} while (at < len);
}

/* Preemption off, and counted as a writer before a clock is read, as in etw_begin(); process context, so never too deep. */
static __always_inline void writing_begin(void)
{
	preempt_disable_notrace();
	__this_cpu_inc(etw_nesting);
}

static __always_inline void writing_end(void)
{
	__this_cpu_dec(etw_nesting);
	preempt_enable_notrace();
}

/* Events to all that want them, or if @only is not NULL to those of them with these relays. */
static __always_inline ssize_t write_all(const struct etw_registration *reg, const u8 *buf, size_t len,
					 struct etw_relay *__percpu *only)
{
	u16 index = get_unaligned(&((const struct etw_write *)buf)->index);
	struct etw_moment moment = {};
	struct etw_run run;
	int worst = 0, err;
	bool uniform;
	size_t at;

	err = check_all(reg, buf, len, &run.nr, &uniform);
	if (err)
		return err;
	run.first = buf;
	run.bytes = len;
	writing_begin();
	for (at = 0; at < len; at += run.bytes) {
		if (!uniform)
			next_run(buf, len, at, &run, &index);
		if (only)
			err = etw_write_run_to(etw_registration_class(reg, index), &run, &moment, reg->trusted, only);
		else
			err = etw_write_run(etw_registration_class(reg, index), &run, &moment, reg->trusted);
		worst = worst ?: err;
	}
	writing_end();
	return worst ?: len;
}

static noinline ssize_t write_batch(const struct etw_registration *reg, const u8 *buf, size_t len)
{
	return write_all(reg, buf, len, NULL);
}

/* Events in the kernel's memory, at least a head and not more than SMALL bytes. */
static __always_inline ssize_t write_events(const struct etw_registration *reg, const u8 *buf, size_t len)
{
	const struct etw_write *head = (const void *)buf;
	/* flags make it a number that there is not */
	const u32 index = get_unaligned((const u32 *)&head->index);
	const struct etw_class *class;
	int err;

	BUILD_BUG_ON(SMALL > ETW_WRITE_ONE);
	if (unlikely(get_unaligned(&head->size) != len))
		return write_batch(reg, buf, len);
	if (!etw_registration_has(reg, index))
		return -EINVAL;
	class = etw_registration_class(reg, index);
	if (unlikely(!check_payload(class, buf + sizeof(*head), len - sizeof(*head))))
		return -EINVAL;
	writing_begin();
	err = etw_write_one(class, buf, len, reg->trusted);
	writing_end();
	return unlikely(err) ? err : len;
}

static int check_length(size_t len)
{
	if (len > ETW_MAX_WRITE)
		return -E2BIG;
	return len < sizeof(struct etw_write) ? -EINVAL : 0;
}

/* A copy of what @from has, to be freed with kvfree(). */
static u8 *copy_events(const u8 __user *from, size_t len)
{
	const int err = check_length(len);
	u8 *buf;

	if (err)
		return ERR_PTR(err);
	buf = kvmalloc(len, ETW_GFP_USER);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	if (!copy_from_user(buf, from, len))
		return buf;
	kvfree(buf);
	return ERR_PTR(-EFAULT);
}

static noinline ssize_t write_unusual(const struct etw_registration *reg, const u8 __user *from, size_t len)
{
	u8 *buf = copy_events(from, len);
	ssize_t ret;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = write_batch(reg, buf, len);
	kvfree(buf);
	return ret;
}

static noinline ssize_t write_small(const struct etw_registration *reg, const u8 __user *from, size_t len)
{
	u8 buf[SMALL] __aligned(8) __uninitialized;
	size_t at;

	if (!user_read_access_begin(from, SMALL))	/* a constant is quicker; it may go beyond what is the user's */
		return write_unusual(reg, from, len);
	/*
	 * By words, which for a small event is a third of what the copying function takes; the last one over the one before, as
	 * a write has at least one. A page that is not there is faulted in.
	 */
	for (at = 0; at + 32 <= len; at += 32) {
		unsafe_get_user(*(u64 *)(buf + at), (const u64 __user *)(from + at), fault);
		unsafe_get_user(*(u64 *)(buf + at + 8), (const u64 __user *)(from + at + 8), fault);
		unsafe_get_user(*(u64 *)(buf + at + 16), (const u64 __user *)(from + at + 16), fault);
		unsafe_get_user(*(u64 *)(buf + at + 24), (const u64 __user *)(from + at + 24), fault);
	}
	if (len & 16) {
		unsafe_get_user(*(u64 *)(buf + at), (const u64 __user *)(from + at), fault);
		unsafe_get_user(*(u64 *)(buf + at + 8), (const u64 __user *)(from + at + 8), fault);
		at += 16;
	}
	if (len & 8)
		unsafe_get_user(*(u64 *)(buf + at), (const u64 __user *)(from + at), fault);
	if (len & 7)
		unsafe_get_user(*(u64 *)(buf + len - 8), (const u64 __user *)(from + len - 8), fault);
	user_read_access_end();
	return write_events(reg, buf, len);
fault:
	user_read_access_end();
	return -EFAULT;
}

static ssize_t write_iter_small(const struct etw_registration *reg, struct iov_iter *from, size_t len)
{
	u8 buf[SMALL] __aligned(8) __uninitialized;

	return copy_from_iter_full(buf, len, from) ? write_events(reg, buf, len) : -EFAULT;
}

static ssize_t provider_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	const struct provider_file *f = file->private_data;

	if (unlikely(len - sizeof(struct etw_write) > SMALL - sizeof(struct etw_write)))
		return write_unusual(f->reg, (const u8 __user *)from, len);
	return write_small(f->reg, (const u8 __user *)from, len);
}

static ssize_t provider_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	const struct provider_file *f = iocb->ki_filp->private_data;
	const size_t len = iov_iter_count(from);
	ssize_t ret = check_length(len);
	u8 *buf;

	if (ret)
		return ret;
	if (len <= SMALL)
		return write_iter_small(f->reg, from, len);
	buf = kvmalloc(len, ETW_GFP_USER);
	if (!buf)
		return -ENOMEM;
	ret = copy_from_iter_full(buf, len, from) ? write_batch(f->reg, buf, len) : -EFAULT;
	kvfree(buf);
	return ret;
}

/* ---- events ---- */

static long event_register(struct etw_registration *reg, void __user *user)
{
	struct etw_event_register a;
	void *schema;
	int ret = etw_uarg_get(&a, sizeof(a), user);

	if (ret)
		return ret;
	if (a.flags || a.reserved)
		return -EINVAL;
	if (a.schema_size > ETW_MAX_SCHEMA)
		return -E2BIG;
	if (a.schema_size < sizeof(struct etw_schema))
		return -EINVAL;
	schema = kvmalloc(a.schema_size, ETW_GFP_USER);
	if (!schema)
		return -ENOMEM;
	if (copy_from_user(schema, u64_to_user_ptr(a.schema), a.schema_size))
		ret = -EFAULT;
	else
		ret = etw_registration_add(reg, schema, a.schema_size, NULL);
	kvfree(schema);
	return ret;
}

static long enabled_query(struct provider_file *f, void __user *user)
{
	struct etw_enabled_query q;
	int err = etw_uarg_get(&q, sizeof(q), user);

	if (err)
		return err;
	if (q.flags)
		return -EINVAL;
	mutex_lock(&etw_control);
	q.changes = f->reg->changes;
	q.captures = f->reg->captures;
	q.registration = f->reg->id;
	etw_enabled_query(f->reg->provider, &q);
	WRITE_ONCE(f->told, q.changes);
	etw_registration_ask(f->reg, false);
	mutex_unlock(&etw_control);
	return etw_uarg_put(user, &q, sizeof(q));
}

static long capture_query(struct etw_registration *reg, void __user *user)
{
	struct etw_capture_query q;
	int err = etw_uarg_get(&q, sizeof(q), user);

	if (err)
		return err;
	if (q.flags)
		return -EINVAL;
	mutex_lock(&etw_control);
	err = etw_capture_query(reg->provider, &q);
	mutex_unlock(&etw_control);
	q.reserved = 0;
	return err ?: etw_uarg_put(user, &q, sizeof(q));
}

/* Under the lock, so that the session stays and has the provider enabled while it is written to. */
static long answer(struct etw_registration *reg, void __user *user)
{
	struct etw_session *s;
	struct etw_answer a;
	long ret = etw_uarg_get(&a, sizeof(a), user);
	u8 *buf;

	if (ret)
		return ret;
	if (a.flags || a.reserved)
		return -EINVAL;
	buf = copy_events(u64_to_user_ptr(a.events), a.bytes);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	mutex_lock(&etw_control);
	s = etw_capture_session(reg->provider, a.id);
	ret = s ? write_all(reg, buf, a.bytes, s->cpu_relay) : -ENOENT;
	mutex_unlock(&etw_control);
	kvfree(buf);
	return min(ret, 0L);
}

static long provider_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct provider_file *f = file->private_data;

	switch (command) {
	case ETW_IOC_PROVIDER_EVENT:
		return event_register(f->reg, (void __user *)arg);
	case ETW_IOC_PROVIDER_ENABLED:
		return enabled_query(f, (void __user *)arg);
	case ETW_IOC_PROVIDER_CAPTURE:
		return capture_query(f->reg, (void __user *)arg);
	case ETW_IOC_PROVIDER_ANSWER:
		return answer(f->reg, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t provider_poll(struct file *file, poll_table *wait)
{
	struct provider_file *f = file->private_data;
	__poll_t events = EPOLLOUT | EPOLLWRNORM;

	poll_wait(file, &f->reg->wait, wait);
	if (READ_ONCE(f->reg->changes) != READ_ONCE(f->told))
		events |= EPOLLIN | EPOLLRDNORM;
	return events;
}

/* Runs under mmap_lock, so takes none of our locks. */
static int provider_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct provider_file *f = file->private_data;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	return vm_insert_page(vma, vma->vm_start, f->reg->page);
}

/* A descriptor is closed, by whoever has one. */
static int provider_flush(struct file *file, fl_owner_t id)
{
	struct provider_file *f = file->private_data;

	mutex_lock(&etw_control);
	etw_registration_ask(f->reg, true);
	mutex_unlock(&etw_control);
	return 0;
}

static int provider_release(struct inode *inode, struct file *file)
{
	struct provider_file *f = file->private_data;

	etw_registration_end(f->reg);
	etw_object_free(ETW_OBJECT_PROVIDER_FILE, f);
	return 0;
}

static const struct file_operations provider_fops = {
	.owner = THIS_MODULE,
	.flush = provider_flush,
	.release = provider_release,
	.unlocked_ioctl = provider_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.write = provider_write,
	.write_iter = provider_write_iter,
	.poll = provider_poll,
	.mmap = provider_mmap,
	.llseek = noop_llseek,
};

/* Takes @reg over, also on failure. */
static int provider_file_open(struct etw_registration *reg)
{
	struct provider_file *f = etw_object_new(ETW_OBJECT_PROVIDER_FILE, kzalloc(sizeof(*f), ETW_GFP_USER));
	struct file *file;
	int fd;

	if (!f) {
		etw_registration_end(reg);
		return -ENOMEM;
	}
	f->reg = reg;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		goto end;
	file = anon_inode_getfile("[etw-provider]", &provider_fops, f, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		fd = PTR_ERR(file);
		goto end;
	}
	stream_open(file_inode(file), file);	/* no position, so none to be locked */
	file->f_mode |= FMODE_NONOTIFY;		/* nobody can watch it */
	fd_install(fd, file);
	return fd;

end:
	etw_registration_end(reg);
	etw_object_free(ETW_OBJECT_PROVIDER_FILE, f);
	return fd;
}

/* ---- registering ---- */

/* Keywords with their names behind them, in one allocation. */
static struct etw_keyword_name *copy_keywords(const struct etw_provider_register *a)
{
	const u32 nr = a->nr_keywords;
	struct etw_keyword_name *keywords;
	struct etw_keyword *given;
	u32 i;

	if (!nr)
		return a->keywords ? ERR_PTR(-EINVAL) : NULL;
	if (nr > ETW_MAX_KEYWORDS)
		return ERR_PTR(-E2BIG);
	keywords = kzalloc(nr * (sizeof(*keywords) + sizeof(*given)), ETW_GFP_USER);
	if (!keywords)
		return ERR_PTR(-ENOMEM);
	given = (struct etw_keyword *)(keywords + nr);
	if (copy_from_user(given, u64_to_user_ptr(a->keywords), nr * sizeof(*given))) {
		kfree(keywords);
		return ERR_PTR(-EFAULT);
	}
	for (i = 0; i < nr; i++) {
		if (!given[i].mask || !etw_name_valid(given[i].name, sizeof(given[i].name))) {
			kfree(keywords);
			return ERR_PTR(-EINVAL);
		}
		keywords[i] = (struct etw_keyword_name){ given[i].mask, given[i].name };
	}
	return keywords;
}

long etw_provider_file_register(void __user *user)
{
	struct etw_provider_register a;
	struct etw_provider_names names;
	struct etw_registration *reg;
	int err = etw_uarg_get(&a, sizeof(a), user);

	if (err)
		return err;
	if (a.flags || a.reserved || etw_uarg_name(a.name, false))
		return -EINVAL;
	names = (struct etw_provider_names){
		.name = a.name,
		.guid = memchr_inv(a.guid, 0, sizeof(a.guid)) ? (const uuid_t *)a.guid : NULL,
		.keywords = copy_keywords(&a),
		.nr_keywords = a.nr_keywords,
	};
	if (IS_ERR(names.keywords))
		return PTR_ERR(names.keywords);
	reg = etw_registration_make(&names, !etw_permitted(), false);
	if (IS_ERR(reg)) {
		kfree(names.keywords);
		return PTR_ERR(reg);
	}
	return provider_file_open(reg);
}
