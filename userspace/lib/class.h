/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A parsed event class, as the library's own files see it. It must not know where entries come from. */
#ifndef ETW_CLASS_H
#define ETW_CLASS_H

#include <stdbool.h>

#include <etw/etw.h>

#define CLASS_ENTRY_MAX 65536U	/* bytes, as SCHEMA_READ promises */

/*
 * @pub must be first. @offsets: nr_fields + 1 offsets, the last is the payload's size; set if the size does not vary.
 * @own_ctf_name: the kernel gave the CTF name, else it was made of provider, event and keywords.
 */
struct class_info {
	struct etw_class pub;
	__u32 *offsets;
	bool own_ctf_name;
};

static inline struct class_info *class_info(const struct etw_class *cls)
{
	return (struct class_info *)cls;
}

/* Number of elements' bytes of one type; 1 for STRING and BINARY, 0 for CHARS (count) and unknown types. */
unsigned int etw_type_size(unsigned int type);

/*
 * Walk a payload whose size varies. Fills offsets[0 .. nr_fields]; the last is the size. Returns the size, or -1 with
 * the number of the field that does not fit in @bad.
 */
long etw_class_walk(const struct etw_class *cls, const __u8 *payload, size_t room, __u32 *offsets, unsigned int *bad);

#endif /* ETW_CLASS_H */
