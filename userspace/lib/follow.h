/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A trace directory that is still being written, as input of the consumer. */
#ifndef ETW_FOLLOW_H
#define ETW_FOLLOW_H

#include <etw/etw.h>

/* @root: the directory that holds kernel/. Returns the input's number. */
int etw_follow_add(struct etw_consumer *consumer, const char *root);

#endif /* ETW_FOLLOW_H */
