// SPDX-License-Identifier: GPL-2.0-only
/*
 * A relay file: maps one CPU's sub-buffers read-only and hands packets out. User space holds no position that is
 * believed.
 */
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "compat.h"
#include "files.h"
#include "objects.h"
#include "relay_mem.h"
#include "session.h"
#include "uarg.h"

struct relay_file {
	struct etw_session *session;
	struct etw_relay *relay;
	bool got;			/* this file's reader holds the packet in hand; relay->lock */
};

static long subbuf_get(struct relay_file *f, void __user *arg)
{
	struct etw_relay *r = f->relay;
	const struct etw_buffer *b;
	struct etw_subbuf out;
	bool stopped;
	int index, err = etw_uarg_size(&out, sizeof(out), arg);

	if (err)
		return err;
	stopped = etw_session_stopped(f->session);	/* before looking: then nothing can be delivered in between */
	mutex_lock(&r->lock);
	index = etw_relay_get(r);
	if (index < 0) {
		mutex_unlock(&r->lock);
		return stopped ? -ENODATA : -EAGAIN;
	}
	f->got = true;
	b = &r->buffers[index];
	out = (struct etw_subbuf){
		.size = out.size,
		.index = index,
		.content_size = b->content,
		.packet_size = ALIGN(b->content, 8),
		.nr_classes = b->classes,
		.records = b->records,
		.seq = (b->position >> r->shift) - r->nr_slots,
		.begin = b->begin,
		.end = b->end,
		.lost = b->lost,
	};
	mutex_unlock(&r->lock);
	return etw_uarg_put(arg, &out, sizeof(out));	/* on a fault the packet stays in hand: GET again */
}

static long subbuf_put(struct relay_file *f)
{
	struct etw_relay *r = f->relay;
	long err = -EINVAL;

	mutex_lock(&r->lock);
	if (f->got) {
		f->got = false;
		etw_relay_put(r);
		err = 0;
	}
	mutex_unlock(&r->lock);
	return err;
}

static long relay_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct relay_file *f = file->private_data;

	switch (command) {
	case ETW_IOC_RELAY_SUBBUF_GET:
		return subbuf_get(f, (void __user *)arg);
	case ETW_IOC_RELAY_SUBBUF_PUT:
		return arg ? -EINVAL : subbuf_put(f);
	default:
		return -ENOTTY;
	}
}

static __poll_t relay_poll(struct file *file, poll_table *wait)
{
	struct relay_file *f = file->private_data;
	bool stopped;

	poll_wait(file, &f->relay->wait, wait);
	etw_relay_wait(f->relay);
	/* after the queue, so that STOP wakes us; before the packets, so that none can come after it */
	stopped = etw_session_stopped(f->session);
	if (etw_relay_ready(f->relay))
		return EPOLLIN | EPOLLRDNORM;
	return stopped ? EPOLLHUP : 0;
}

/* Runs under mmap_lock, so takes none of our locks. Pages carry references: a mapping may outlive the relay. */
static int relay_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct relay_file *f = file->private_data;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff || vma->vm_end - vma->vm_start != f->relay->memory)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	return etw_relay_map(f->relay, vma);
}

static int relay_release(struct inode *inode, struct file *file)
{
	struct relay_file *f = file->private_data;

	mutex_lock(&f->relay->lock);
	f->relay->opened = false;	/* a packet in hand stays for the next reader */
	mutex_unlock(&f->relay->lock);
	etw_session_reader_put(f->session);
	etw_session_put(f->session);
	etw_object_free(ETW_OBJECT_RELAY_FILE, f);
	return 0;
}

static const struct file_operations relay_fops = {
	.owner = THIS_MODULE,
	.release = relay_release,
	.unlocked_ioctl = relay_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = relay_poll,
	.mmap = relay_mmap,
	.llseek = noop_llseek,
};

int etw_relay_file_open(struct etw_session *s, u64 who, u32 cpu)
{
	struct etw_relay *r;
	struct relay_file *f;
	int err;

	if (cpu >= nr_cpu_ids)
		return -EINVAL;
	r = etw_session_relay(s, array_index_nospec(cpu, nr_cpu_ids));
	if (!r)
		return -ENODEV;
	f = etw_object_new(ETW_OBJECT_RELAY_FILE, kzalloc(sizeof(*f), ETW_GFP));
	if (!f)
		return -ENOMEM;
	err = etw_session_reader_get(s, who);
	if (err)
		goto free;
	mutex_lock(&r->lock);
	if (r->opened)
		err = -EBUSY;
	else
		r->opened = true;
	mutex_unlock(&r->lock);
	if (err)
		goto put_reader;
	f->session = s;
	f->relay = r;
	kref_get(&s->ref);
	err = etw_file_install("[etw-relay]", &relay_fops, f, O_RDWR);
	if (err >= 0) {
		WRITE_ONCE(r->announce, false);
		return err;
	}

	etw_session_put(s);
	mutex_lock(&r->lock);
	r->opened = false;
	mutex_unlock(&r->lock);
put_reader:
	etw_session_reader_put(s);
free:
	etw_object_free(ETW_OBJECT_RELAY_FILE, f);
	return err;
}
