// SPDX-License-Identifier: GPL-2.0-only
/* A program's side of provider files (emitter.h). */
#include "emitter.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

static void add_string(struct schema_maker *m, uint32_t at, const char *text)
{
	m->strings[m->nr_strings].at = at;
	m->strings[m->nr_strings++].text = text;
}

struct etw_schema *schema_head(struct schema_maker *m)
{
	return (struct etw_schema *)m->bytes;
}

void schema_begin(struct schema_maker *m, const char *event, unsigned int nr_fields)
{
	struct etw_schema *head = schema_head(m);

	memset(m, 0, sizeof(*m));
	head->level = ETW_LEVEL_INFO;
	head->fields = sizeof(*head);
	head->nr_fields = nr_fields;
	m->used = sizeof(*head) + nr_fields * sizeof(struct etw_schema_field);
	add_string(m, offsetof(struct etw_schema, name), event);
}

struct etw_schema_field *schema_field(struct schema_maker *m, unsigned int i, const char *name, uint8_t type)
{
	const uint32_t at = sizeof(struct etw_schema) + i * sizeof(struct etw_schema_field);
	struct etw_schema_field *f = (struct etw_schema_field *)(m->bytes + at);

	f->type = type;
	add_string(m, at + offsetof(struct etw_schema_field, name), name);
	return f;
}

void schema_map(struct schema_maker *m, unsigned int i, uint32_t kind, const struct map_value *values)
{
	struct etw_schema_field *f = (struct etw_schema_field *)(m->bytes + sizeof(struct etw_schema)) + i;
	struct etw_schema_map *map;

	m->used = (m->used + 7) & ~7U;
	map = (struct etw_schema_map *)(m->bytes + m->used);
	f->map = m->used;
	map->kind = kind;
	m->used += sizeof(*map);
	for (; values->name; values++, map->nr++) {
		struct etw_schema_value *v = (struct etw_schema_value *)(m->bytes + m->used);

		v->value = values->value;
		add_string(m, m->used + offsetof(struct etw_schema_value, name), values->name);
		m->used += sizeof(*v);
	}
}

uint32_t schema_done(struct schema_maker *m)
{
	for (unsigned int i = 0; i < m->nr_strings; i++) {
		const size_t len = strlen(m->strings[i].text) + 1;

		memcpy(m->bytes + m->strings[i].at, &m->used, sizeof(m->used));
		memcpy(m->bytes + m->used, m->strings[i].text, len);
		m->used += len;
	}
	m->used = (m->used + 7) & ~7U;
	schema_head(m)->size = m->used;
	return m->used;
}

int provider_register(int device, const char *name)
{
	struct etw_provider_register a = { .size = sizeof(a) };

	strncpy((char *)a.name, name, sizeof(a.name) - 1);
	return call(device, ETW_IOC_PROVIDER_REGISTER, &a);
}

int provider_event(int provider, const void *schema, uint32_t size)
{
	struct etw_event_register a = { .size = sizeof(a), .schema = (uintptr_t)schema, .schema_size = size };

	return call(provider, ETW_IOC_PROVIDER_EVENT, &a);
}

int provider_counter(int provider, const char *event, uint64_t keyword)
{
	static struct schema_maker m;

	schema_begin(&m, event, 1);
	schema_head(&m)->keyword = keyword;
	schema_field(&m, 0, "n", ETW_TYPE_U64);
	return provider_event(provider, m.bytes, schema_done(&m));
}

const volatile uint8_t *provider_map(int provider)
{
	void *map = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, provider, 0);

	return map == MAP_FAILED ? NULL : map;
}

struct etw_enabled_query provider_query(int provider)
{
	struct etw_enabled_query q;

	memset(&q, 0, sizeof(q));
	q.size = sizeof(q);
	if (call(provider, ETW_IOC_PROVIDER_ENABLED, &q))
		memset(&q, 0xff, sizeof(q));
	return q;
}

size_t write_add(void *buf, size_t used, unsigned int index, const void *payload, uint32_t len)
{
	const struct etw_write head = { .size = sizeof(head) + len, .index = index };

	memcpy((uint8_t *)buf + used, &head, sizeof(head));
	memcpy((uint8_t *)buf + used + sizeof(head), payload, len);
	return used + head.size;
}

ssize_t write_number(int provider, unsigned int index, uint64_t n)
{
	uint8_t buf[32];
	ssize_t ret = write(provider, buf, write_add(buf, 0, index, &n, sizeof(n)));

	return ret < 0 ? -errno : ret;
}

int become_user(uid_t uid)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}
