// SPDX-License-Identifier: GPL-2.0-only
/* Creates, accounts, maps and frees relays. */
#include <linux/atomic.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "objects.h"
#include "relay_mem.h"

static unsigned int memory_limit_mb;
module_param(memory_limit_mb, uint, 0444);
MODULE_PARM_DESC(memory_limit_mb, "most memory for all relays together, in MiB (0: a quarter of the machine's)");

static atomic64_t used;

u64 etw_memory_limit(void)
{
	return memory_limit_mb ? (u64)memory_limit_mb << 20 : (u64)totalram_pages() << PAGE_SHIFT >> 2;
}

u64 etw_memory_used(void)
{
	return atomic64_read(&used);
}

/*
 * A sixteenth of the machine stays over, and an eighth of the relay for page tables and KASAN's shadow: vmap() takes those
 * with the OOM killer if it must.
 */
static bool available(u64 bytes)
{
	return bytes + bytes / 8 + ((u64)totalram_pages() << PAGE_SHIFT >> 4) <= (u64)si_mem_available() << PAGE_SHIFT;
}

static int charge(u64 bytes)
{
	int err = -EDQUOT;

	if (atomic64_add_return(bytes, &used) <= etw_memory_limit()) {
		if (available(bytes))
			return 0;
		err = -ENOMEM;
	}
	atomic64_sub(bytes, &used);
	return err;
}

static void free_buffer(struct etw_buffer *b, u32 nr_pages)
{
	u32 i;

	if (!b->base)
		return;
	if (b->vmapped) {
		vunmap(b->base);
		for (i = 0; i < nr_pages; i++)
			__free_page(b->pages[i]);
	} else {
		__free_pages(b->pages[0], get_order((size_t)nr_pages << PAGE_SHIFT));
	}
	etw_objects_gone(ETW_OBJECT_PAGE, nr_pages);
	kvfree(b->pages);
	b->base = NULL;
}

/* One block of the linear map if there is one, else single pages side by side in the vmalloc area. */
static int alloc_buffer(struct etw_buffer *b, u32 nr_pages, int node)
{
	const gfp_t gfp = ETW_GFP | __GFP_ZERO;
	struct page *block;
	u32 i;

	b->pages = kvcalloc(nr_pages, sizeof(*b->pages), ETW_GFP);
	if (!b->pages)
		return -ENOMEM;
	/* compound: vm_insert_pages() refuses the tail pages of any other block from 6.12 on */
	block = alloc_pages_node(node, gfp | __GFP_NORETRY | __GFP_COMP, get_order((size_t)nr_pages << PAGE_SHIFT));
	if (block) {
		for (i = 0; i < nr_pages; i++)
			b->pages[i] = block + i;
		b->base = page_address(block);
		etw_objects_made(ETW_OBJECT_PAGE, nr_pages);
		return 0;
	}
	for (i = 0; i < nr_pages; i++) {
		b->pages[i] = alloc_pages_node(node, gfp | __GFP_NORETRY, 0);
		if (!b->pages[i])
			goto free_pages;
	}
	b->base = vmap(b->pages, nr_pages, VM_MAP, PAGE_KERNEL);
	if (!b->base)
		goto free_pages;
	b->vmapped = true;
	etw_objects_made(ETW_OBJECT_PAGE, nr_pages);
	return 0;

free_pages:
	while (i--)
		__free_page(b->pages[i]);
	kvfree(b->pages);
	b->pages = NULL;
	return -ENOMEM;
}

static void wake_readers(struct irq_work *work)
{
	struct etw_relay *r = container_of(work, struct etw_relay, irq_work);

	WRITE_ONCE(r->waiting, 0);
	WRITE_ONCE(*r->session_waiting, 0);
	wake_up_all(&r->wait);
	wake_up_all(r->session_wait);
}

struct etw_relay *etw_relay_create(u32 cpu, const struct etw_relay_config *config)
{
	const u32 nr_pages = config->subbuf_size >> PAGE_SHIFT, nr_buffers = config->nr_subbufs + 1;
	const u64 memory = (u64)config->subbuf_size * nr_buffers;
	int node = cpu_to_node(cpu), err;
	struct etw_relay *r;
	u32 i;

	err = charge(memory);
	if (err)
		return ERR_PTR(err);
	r = etw_object_new(ETW_OBJECT_RELAY, kzalloc_node(sizeof(*r), ETW_GFP, node));
	if (!r)
		goto uncharge;
	r->slots = kvzalloc_node(array_size(config->nr_subbufs, sizeof(*r->slots)), ETW_GFP, node);
	r->buffers = kvcalloc(nr_buffers, sizeof(*r->buffers), ETW_GFP);
	if (!r->slots || !r->buffers)
		goto free;
	for (i = 0; i < nr_buffers; i++)
		if (alloc_buffer(&r->buffers[i], nr_pages, node))
			goto free;

	r->cpu = cpu;
	r->mask = config->subbuf_size - 1;
	r->size = config->subbuf_size;
	r->shift = ilog2(config->subbuf_size);
	r->nr_slots = config->nr_subbufs;
	r->lap_shift = r->shift + ilog2(config->nr_subbufs);
	r->overwrite = config->overwrite;
	/* in overwrite mode nothing is ever full; beside its payload a record takes at most so much */
	r->untrusted = config->overwrite ? ~0ULL : ((u64)config->nr_subbufs * config->subbuf_size) / 4 * 3 -
			sizeof(struct etw_packet_header) - sizeof(struct etw_record_extended);
	r->clock_offset = config->clock_offset;
	r->nr_classes = config->nr_classes;
	r->uuid = config->uuid;
	r->session_wait = config->wait;
	r->session_waiting = config->waiting;
	r->start = config->start;
	r->last_seen = config->start;
	r->extend_at = config->start + ETW_COMPACT_RANGE;
	r->reserve = 1ULL << r->lap_shift;	/* lap 0 means "never used" */
	r->consumed = r->reserve;
	r->next = r->reserve;
	r->spare = config->nr_subbufs;
	for (i = 0; i < config->nr_subbufs; i++)
		r->slots[i].word = ETW_SLOT_TAKEN | (u64)i << ETW_SLOT_INDEX_SHIFT;
	r->current_slot = r->slots;
	r->memory = memory;
	mutex_init(&r->lock);
	init_waitqueue_head(&r->wait);
	init_irq_work(&r->irq_work, wake_readers);
	return r;

free:
	for (i = 0; r->buffers && i < nr_buffers; i++)
		free_buffer(&r->buffers[i], nr_pages);
	kvfree(r->buffers);
	kvfree(r->slots);
	etw_object_free(ETW_OBJECT_RELAY, r);
uncharge:
	atomic64_sub(memory, &used);
	return ERR_PTR(-ENOMEM);
}

void etw_relay_destroy(struct etw_relay *r)
{
	u32 i;

	if (!r)
		return;
	irq_work_sync(&r->irq_work);
	for (i = 0; i <= r->nr_slots; i++)
		free_buffer(&r->buffers[i], r->size >> PAGE_SHIFT);
	atomic64_sub(r->memory, &used);
	kvfree(r->buffers);
	kvfree(r->slots);
	etw_object_free(ETW_OBJECT_RELAY, r);
}

int etw_relay_map(struct etw_relay *r, struct vm_area_struct *vma)
{
	unsigned long at = vma->vm_start;
	u32 i;

	for (i = 0; i <= r->nr_slots; i++) {
		unsigned long left = r->size >> PAGE_SHIFT;
		int err = vm_insert_pages(vma, at, r->buffers[i].pages, &left);

		if (err)
			return err == -EFAULT ? -ENOMEM : err;	/* so it calls a page directory it cannot have */
		at += r->size;
	}
	return 0;
}
