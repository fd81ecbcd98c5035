// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Events of all inputs in time order: decodes records, merges streams by a heap, and holds events back until nothing
 * earlier can come. It must not know how an input gets its packets.
 */
#include "consumer.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#include "class.h"
#include "error.h"
#include "record.h"

/* Waiting: how often inputs without a descriptor are asked. */
#define POLL_MS 100
#define MAX_REPORTS 65536U

/* A class of content not seen before; the key is its entry without the number. */
struct known_class {
	struct etw_class *cls;
	bool wanted;
	void *key;
	UT_hash_handle hh;
};

struct etw_consumer {
	struct etw_consumer_options options;
	struct input **inputs;
	__u32 nr_inputs;
	struct cursor **heap;		/* cursors with an event, the earliest first */
	__u32 nr_heap;
	__u32 room_heap;
	struct cursor *current;		/* whose event was returned last */
	struct known_class *known;
	struct known_class **classes;	/* by index */
	__u32 nr_classes;
	struct etw_loss *losses;
	__u32 nr_losses;
	struct etw_damage *damages;
	__u32 nr_damages;
	bool started;
};

/* Room for one more in an array that doubles. */
static int grow(void *array, __u32 nr, size_t size)
{
	void **p = array, *mem;

	if (nr & (nr - 1) || (nr && nr < 16))
		return 0;
	mem = realloc(*p, (nr ? 2 * (size_t)nr : 16) * size);
	if (!mem)
		return etw_error_errno(-ENOMEM, "consumer");
	*p = mem;
	return 0;
}

int etw_consumer_new(const struct etw_consumer_options *options, struct etw_consumer **consumer)
{
	struct etw_consumer *c = calloc(1, sizeof(*c));

	if (!c)
		return etw_error_errno(-ENOMEM, "consumer");
	if (options)
		c->options = *options;
	*consumer = c;
	return 0;
}

void etw_consumer_free(struct etw_consumer *c)
{
	__u32 i, k;

	if (!c)
		return;
	for (i = 0; i < c->nr_inputs; i++) {
		struct input *input = c->inputs[i];

		input->ops->free(input);
		for (k = 0; k < input->nr_cursors; k++)
			free(input->cursors[k]);
		free(input->cursors);
		free(input->slots);
		etw_facts_free(&input->facts);
		free(input->path);
		free(input);
	}
	HASH_CLEAR(hh, c->known);
	for (i = 0; i < c->nr_classes; i++) {
		etw_class_free(c->classes[i]->cls);
		free(c->classes[i]->key);
		free(c->classes[i]);
	}
	for (i = 0; i < c->nr_damages; i++) {
		free((char *)c->damages[i].file);
		free((char *)c->damages[i].what);
	}
	free(c->damages);
	free(c->losses);
	free(c->classes);
	free(c->heap);
	free(c->inputs);
	free(c);
}

/* ---- inputs and classes ---- */

static void pub_from_facts(struct input *input)
{
	struct etw_trace *t = &input->pub;
	const struct facts *f = &input->facts;

	t->path = input->path;
	t->name = f->name;
	memcpy(t->uuid, f->uuid, 16);
	t->finished = f->finished;
	t->clock = f->clock;
	t->flags = f->flags;
	t->offset = f->offset;
	t->start = input_ns(input, f->start);
	if (f->stop)
		t->stop = input_ns(input, f->stop);
	t->subbuf_size = f->subbuf_size;
	t->nr_subbufs = f->nr_subbufs;
	t->flush_ms = f->flush_ms;
	memcpy(t->lost, f->lost, sizeof(t->lost));
	t->written = f->written;
	t->filtered = f->filtered;
	t->overwritten = f->overwritten;
	t->boot_id = f->boot_id;
	t->hostname = f->hostname;
	t->kernel = f->kernel_release;
	t->command = f->command ? f->command : "";
	t->nr_providers = f->nr_providers;
	t->providers = f->providers;
}

int etw_input_add(struct etw_consumer *c, struct input *input)
{
	__u32 i;
	int err = grow(&c->inputs, c->nr_inputs, sizeof(*c->inputs));

	if (err)
		return err;
	input->consumer = c;
	input->number = c->nr_inputs;
	/*
	 * Two sessions of one boot took their offsets to the epoch at different times; their clock is the same, so one
	 * offset must serve both, or the order between them would be wrong.
	 */
	input->freq = ticks_valid(input->facts.freq) ? input->facts.freq : TICKS_NSEC;
	input->key_offset = input->facts.offset;
	for (i = 0; i < c->nr_inputs; i++) {
		const struct input *other = c->inputs[i];

		if (input->facts.boot_id[0] && !strcmp(other->facts.boot_id, input->facts.boot_id) &&
		    other->facts.clock == input->facts.clock && other->freq == input->freq &&
		    input->facts.clock != ETW_CLOCK_REAL) {
			input->key_offset = other->key_offset;
			break;
		}
	}
	pub_from_facts(input);
	c->inputs[c->nr_inputs++] = input;
	c->started = false;
	return 0;
}

int etw_cursor_add(struct input *input, struct cursor *cursor, __u32 cpu)
{
	int err = grow(&input->cursors, input->nr_cursors, sizeof(*input->cursors));

	if (err)
		return err;
	cursor->input = input;
	cursor->cpu = cpu;
	cursor->event.trace = input->number;
	cursor->event.cpu = cpu;
	input->cursors[input->nr_cursors++] = cursor;
	input->pub.nr_cpus = input->nr_cursors;
	return 0;
}

static struct known_class *class_known(struct etw_consumer *c, const void *entry, size_t size)
{
	struct known_class *known;
	struct etw_schema *key;
	int err;

	if (grow(&c->classes, c->nr_classes, sizeof(*c->classes)))
		return NULL;
	key = malloc(size);
	if (!key) {
		etw_error_errno(-ENOMEM, "consumer");
		return NULL;
	}
	memcpy(key, entry, size);
	key->class_id = 0;
	HASH_FIND(hh, c->known, key, size, known);
	if (known) {
		free(key);
		return known;
	}
	known = calloc(1, sizeof(*known));
	err = known ? etw_class_parse(entry, size, NULL, &known->cls) : etw_error_errno(-ENOMEM, "consumer");
	if (err) {
		free(key);
		free(known);
		return NULL;
	}
	known->key = key;
	known->cls->index = c->nr_classes;
	c->classes[c->nr_classes++] = known;
	HASH_ADD_KEYPTR(hh, c->known, known->key, size, known);
	known->wanted = !c->options.want || c->options.want(c->options.arg, known->cls);
	return known;
}

int etw_input_classes(struct input *input, const void *entries, size_t len)
{
	const __u8 *p = entries;
	int added = 0;

	while (len) {
		const struct known_class *known;
		struct class_slot *slot;
		struct etw_class *cls;
		size_t used;
		int err;

		/* Parsed twice: once to know that it is sound, and by class_known() if it is new. */
		err = etw_class_parse(p, len, &used, &cls);
		if (err)
			return err;
		if (cls->class_id != input->nr_slots || input->nr_slots >= ETW_MAX_CLASSES)
			err = etw_error(-EBADMSG, "schema entry %u: number %u was expected", cls->class_id,
					input->nr_slots);
		etw_class_free(cls);
		if (!err)
			err = grow(&input->slots, input->nr_slots, sizeof(*input->slots));
		if (err)
			return err;
		known = class_known(input->consumer, p, used);
		if (!known)
			return -ENOMEM;
		slot = &input->slots[input->nr_slots++];
		slot->cls = known->cls;
		slot->size = known->cls->payload_size;
		slot->offsets = class_info(known->cls)->offsets;
		slot->wanted = known->wanted;
		p += used;
		len -= used;
		added++;
	}
	return added;
}

/* ---- reports ---- */

int etw_consumer_damaged(struct input *input, __u32 cpu, const char *file, __u64 offset, __u64 bytes, const char *fmt,
			 ...)
{
	struct etw_consumer *c = input->consumer;
	struct etw_damage *d;
	va_list args;
	char *what = NULL, *name;

	if (c->nr_damages >= MAX_REPORTS || grow(&c->damages, c->nr_damages, sizeof(*c->damages)))
		return -ENOMEM;
	va_start(args, fmt);
	if (vasprintf(&what, fmt, args) < 0)
		what = NULL;
	va_end(args);
	name = strdup(file);
	if (!what || !name) {
		free(what);
		free(name);
		return -ENOMEM;
	}
	d = &c->damages[c->nr_damages++];
	*d = (struct etw_damage){
		.trace = input->number, .cpu = cpu, .file = name, .offset = offset, .bytes = bytes, .what = what,
	};
	return 0;
}

/* Windows that touch are one. The times of a damaged packet may go back; a window's do not. In nanoseconds. */
static void lost(struct cursor *cursor, __u64 begin, __u64 end, __u64 events, __u64 packets)
{
	struct etw_consumer *c = cursor->input->consumer;
	struct etw_loss *loss = cursor->last_loss ? &c->losses[cursor->last_loss - 1] : NULL;

	if (!loss || (loss->end != begin && c->nr_losses < MAX_REPORTS)) {
		if (grow(&c->losses, c->nr_losses, sizeof(*c->losses)))
			return;
		loss = &c->losses[c->nr_losses++];
		if (begin > end)
			begin = end;
		*loss = (struct etw_loss){ .trace = cursor->input->number, .cpu = cursor->cpu, .begin = begin };
		cursor->last_loss = c->nr_losses;
	}
	if (end > loss->end)
		loss->end = end;
	loss->events += events;
	loss->packets += packets;
	cursor->input->pub.discarded += events;
}

void etw_cursor_renumber(struct cursor *cursor)
{
	cursor->counted = false;
	cursor->next_seq = 0;
	cursor->discarded = 0;
}

int etw_cursor_packet(struct cursor *cursor, const struct packet *packet)
{
	struct etw_trace *t = &cursor->input->pub;
	__u64 begin = input_ns(cursor->input, packet->begin), end = input_ns(cursor->input, packet->end);
	__u64 events = 0, packets = 0;

	if (!cursor->counted) {
		/* Numbers that do not begin at 0 are those of a session read from its middle on. */
		if (packet->seq == 0)
			events = packet->discarded;
	} else {
		if (packet->discarded > cursor->discarded)
			events = packet->discarded - cursor->discarded;
		if (packet->seq > cursor->next_seq)
			packets = packet->seq - cursor->next_seq;
	}
	if (events || packets)
		lost(cursor, input_ns(cursor->input, cursor->packets_end ? cursor->packets_end : packet->begin), end, events,
		     packets);
	cursor->counted = true;
	cursor->next_seq = packet->seq + 1;
	cursor->discarded = packet->discarded;
	cursor->packets_end = packet->end;
	t->nr_packets++;
	t->bytes += packet->size;
	if (!t->first || begin < t->first)
		t->first = begin;
	if (!cursor->input->facts.stop && end > t->stop)
		t->stop = end;
	return 0;
}

unsigned int etw_consumer_nr_losses(const struct etw_consumer *c)
{
	return c->nr_losses;
}

const struct etw_loss *etw_consumer_loss(const struct etw_consumer *c, unsigned int i)
{
	return i < c->nr_losses ? &c->losses[i] : NULL;
}

unsigned int etw_consumer_nr_damages(const struct etw_consumer *c)
{
	return c->nr_damages;
}

const struct etw_damage *etw_consumer_damage(const struct etw_consumer *c, unsigned int i)
{
	return i < c->nr_damages ? &c->damages[i] : NULL;
}

unsigned int etw_consumer_nr_classes(const struct etw_consumer *c)
{
	return c->nr_classes;
}

const struct etw_class *etw_consumer_class(const struct etw_consumer *c, unsigned int index)
{
	return index < c->nr_classes ? c->classes[index]->cls : NULL;
}

unsigned int etw_consumer_nr_traces(const struct etw_consumer *c)
{
	return c->nr_inputs;
}

const struct etw_trace *etw_consumer_trace(const struct etw_consumer *c, unsigned int trace)
{
	struct input *input;

	if (trace >= c->nr_inputs)
		return NULL;
	input = c->inputs[trace];
	if (input->ops->facts) {
		input->ops->facts(input);
		pub_from_facts(input);
	}
	return &input->pub;
}

/* ---- records ---- */

bool etw_consumer_before(const struct etw_consumer *c, const struct input *input, __u64 end)
{
	return c->options.from && (__s64)input_ns(input, end) + input->key_offset < c->options.from;
}

void etw_cursor_set(struct cursor *cursor, const struct packet *packet, const __u8 *bytes, const char *file,
		    __u64 offset)
{
	cursor->packet = bytes;
	cursor->pos = bytes + PACKET_HEADER_SIZE;
	cursor->end = bytes + packet->content;
	cursor->packet_begin = packet->begin;
	cursor->packet_end = packet->end;
	cursor->last = packet->begin;
	cursor->file = file;
	cursor->file_offset = offset;
	cursor->time_damaged = false;
}

/* The rest of the packet cannot be read. */
static void record_bad(struct cursor *cursor, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void record_bad(struct cursor *cursor, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	etw_consumer_damaged(cursor->input, cursor->cpu, cursor->file,
			     cursor->file_offset + (cursor->pos - cursor->packet), cursor->end - cursor->pos,
			     "%s; the rest of this packet is skipped", text);
	cursor->pos = cursor->end;
}

static void time_bad(struct cursor *cursor, const __u8 *record)
{
	if (!cursor->time_damaged)
		etw_consumer_damaged(cursor->input, cursor->cpu, cursor->file,
				     cursor->file_offset + (record - cursor->packet), 0,
				     "the time of this record lies outside its packet");
	cursor->time_damaged = true;
}

/* The cursor's next wanted event: 1, 0 none now, or an error. */
static int cursor_next(struct cursor *cursor)
{
	const struct input *input = cursor->input;
	const struct etw_consumer_options *options = &input->consumer->options;

	for (;;) {
		const __u8 *p = cursor->pos, *payload;
		const struct class_slot *slot;
		const __u32 *offsets;
		struct record r;
		size_t room = cursor->end - p;
		unsigned int head;
		__u64 time, ns;
		__u32 size;

		if (!room) {
			int ret;

			if (cursor->ended)
				return 0;
			ret = input->ops->load(cursor);
			if (ret <= 0)
				return ret;
			continue;
		}
		head = record_head(p, room, cursor->last, &r);
		if (!head) {
			record_bad(cursor, "a record is cut off");
			continue;
		}
		if (r.id >= input->nr_slots) {
			record_bad(cursor, "a record is of class %u, and there are %u", r.id, input->nr_slots);
			continue;
		}
		slot = &input->slots[r.id];
		payload = p + head;
		room -= head;
		size = slot->size;
		offsets = slot->offsets;
		if (size == ETW_SIZE_VARIES) {
			unsigned int bad = 0;
			long walked = etw_class_walk(slot->cls, payload, room, cursor->offsets, &bad);

			if (walked < 0) {
				record_bad(cursor, "field %s of %s does not end in the packet",
					   slot->cls->fields[bad].name, slot->cls->name);
				continue;
			}
			size = walked;
			offsets = cursor->offsets;
		} else if (size > room) {
			record_bad(cursor, "a record of %s is cut off", slot->cls->name);
			continue;
		}
		cursor->pos = payload + size;
		time = r.time;
		cursor->last = time;
		if (__builtin_expect(time > cursor->packet_end || time < cursor->packet_begin || time < cursor->floor,
				     0)) {
			if (time > cursor->packet_end || time < cursor->packet_begin)
				time_bad(cursor, p);
			if (time > cursor->packet_end) {
				time = cursor->packet_end;
				cursor->last = time;
			}
			if (time < cursor->floor)
				time = cursor->floor;
		}
		if (!slot->wanted)
			continue;
		ns = input_ns(input, time);
		cursor->key = (__s64)ns + input->key_offset;
		if (options->from && cursor->key < options->from)
			continue;
		if (options->to && cursor->key >= options->to) {
			cursor->ended = true;
			cursor->pos = cursor->end;
			return 0;
		}
		cursor->floor = time;
		cursor->event.cls = slot->cls;
		cursor->event.time = ns;
		cursor->event.epoch = cursor->key;
		cursor->event.tid = r.tid;
		cursor->event.pid = r.pid;
		cursor->event.payload = payload;
		cursor->event.size = size;
		cursor->event.record_size = head + size;
		cursor->event.offsets = offsets;
		return 1;
	}
}

/* ---- order ---- */

static inline bool earlier(const struct cursor *a, const struct cursor *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	if (a->input != b->input)
		return a->input->number < b->input->number;
	return a->cpu < b->cpu;
}

static void sift_down(struct etw_consumer *c)
{
	struct cursor **heap = c->heap, *moving = heap[0];
	__u32 at = 0, child;

	while ((child = 2 * at + 1) < c->nr_heap) {
		if (child + 1 < c->nr_heap && earlier(heap[child + 1], heap[child]))
			child++;
		if (!earlier(heap[child], moving))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moving;
}

static int heap_push(struct etw_consumer *c, struct cursor *cursor)
{
	__u32 at;
	int err = grow(&c->heap, c->nr_heap, sizeof(*c->heap));

	if (err)
		return err;
	at = c->nr_heap++;
	while (at && earlier(cursor, c->heap[(at - 1) / 2])) {
		c->heap[at] = c->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	c->heap[at] = cursor;
	cursor->in_heap = true;
	return 0;
}

/* Go on behind the event that was returned last. */
static int advance(struct etw_consumer *c)
{
	struct cursor *cursor = c->current;
	int ret;

	if (!cursor)
		return 0;
	c->current = NULL;
	ret = cursor_next(cursor);
	if (ret <= 0) {
		cursor->in_heap = false;
		c->heap[0] = c->heap[--c->nr_heap];
	}
	if (c->nr_heap)
		sift_down(c);
	return ret < 0 ? ret : 0;
}

/* Ask all inputs for more and take in what their cursors have. */
static int refill(struct etw_consumer *c)
{
	__u32 i, k;

	for (i = 0; i < c->nr_inputs; i++) {
		struct input *input = c->inputs[i];
		int ret = 0;

		if (input->ops->refill && input->bound != TIME_END)
			ret = input->ops->refill(input);
		if (ret < 0)
			return ret;
		for (k = 0; k < input->nr_cursors; k++) {
			struct cursor *cursor = input->cursors[k];

			if (cursor->in_heap || cursor->ended)
				continue;
			ret = cursor_next(cursor);
			if (ret > 0)
				ret = heap_push(c, cursor);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* Events below this may be returned. */
static __s64 bound(const struct etw_consumer *c)
{
	__s64 min = INT64_MAX;
	__u32 i;

	for (i = 0; i < c->nr_inputs; i++) {
		const struct input *input = c->inputs[i];
		__s64 key = (__s64)input_ns(input, input->bound) + input->key_offset;

		if (input->bound != TIME_END && key < min)
			min = key;
	}
	/* Nothing below the end of the wanted time can come any more. */
	return c->options.to && min >= c->options.to ? INT64_MAX : min;
}

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/* Wait until some input may have more. 1, 0 time is over, -EINTR. */
static int wait_more(struct etw_consumer *c, bool forever, __u64 deadline)
{
	struct pollfd fds[64];
	nfds_t nr = 0;
	int max_ms = POLL_MS, ret;
	__u64 now = now_ms();
	__u32 i;

	if (!forever && now >= deadline)
		return 0;
	if (c->options.stop_fd > 0)
		fds[nr++] = (struct pollfd){ .fd = c->options.stop_fd, .events = POLLIN };
	for (i = 0; i < c->nr_inputs && nr < sizeof(fds) / sizeof(fds[0]); i++) {
		struct input *input = c->inputs[i];
		int ms = POLL_MS, fd;

		if (input->bound == TIME_END || !input->ops->wait_fd)
			continue;
		fd = input->ops->wait_fd(input, &ms);
		if (ms < max_ms)
			max_ms = ms;
		if (fd >= 0)
			fds[nr++] = (struct pollfd){ .fd = fd, .events = POLLIN | POLLPRI };
	}
	if (!forever && deadline - now < (__u64)max_ms)
		max_ms = deadline - now;
	ret = poll(fds, nr, max_ms);
	if (ret < 0)
		return errno == EINTR ? etw_error(-EINTR, "interrupted") :
					etw_error_errno(-errno, "waiting for events");
	if (ret > 0 && c->options.stop_fd > 0 && fds[0].revents)
		return etw_error(-EINTR, "stopped");
	return 1;
}

int etw_consumer_next(struct etw_consumer *c, const struct etw_event **event, int timeout_ms)
{
	__u64 deadline = 0;
	int ret = advance(c);

	if (ret < 0)
		return ret;
	if (!c->started) {
		ret = refill(c);
		if (ret < 0)
			return ret;
		c->started = true;
	}
	for (;;) {
		__s64 limit = bound(c);

		if (c->nr_heap && c->heap[0]->key < limit) {
			c->current = c->heap[0];
			*event = &c->current->event;
			return 1;
		}
		if (limit == INT64_MAX) {
			if (!c->nr_heap)
				return 0;
			/* A time at the very end of time. */
			c->current = c->heap[0];
			*event = &c->current->event;
			return 1;
		}
		ret = refill(c);
		if (ret < 0)
			return ret;
		if (bound(c) > limit)
			continue;
		if (!deadline)
			deadline = now_ms() + (timeout_ms > 0 ? timeout_ms : 0);
		ret = wait_more(c, timeout_ms < 0, deadline);
		if (ret < 0)
			return ret;
		if (!ret)
			return etw_error(-EAGAIN, "no event yet");
	}
}
