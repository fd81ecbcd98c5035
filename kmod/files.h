/* SPDX-License-Identifier: GPL-2.0-only */
/* The files that user space holds. User memory is touched in these files and in uarg.c only, never under a lock. */
#ifndef ETW_FILES_H
#define ETW_FILES_H

#include <linux/fs.h>
#include <linux/types.h>

struct etw_session;
struct etw_session_file;

extern const struct file_operations etw_control_fops;

/* A file descriptor for @session. @owner: the session stops when the file is released. ENOMEM, EMFILE, ENFILE. */
int etw_session_file_open(struct etw_session *session, bool owner);
/* Fills *@query for the caller; user_size is left alone. */
struct etw_session_query;
#define ETW_SESSION_QUERY_FIRST offsetof(struct etw_session_query, clock_freq)	/* size of its first version */
void etw_session_file_query(struct etw_session *session, struct etw_session_query *query);

/* A file descriptor for @cpu's relay, in the reader role of the session file with id @who. */
int etw_relay_file_open(struct etw_session *session, u64 who, u32 cpu);

/* PROVIDER_REGISTER: a file descriptor. */
long etw_provider_file_register(void __user *user);

/* CAP_PERFMON or CAP_SYS_ADMIN. EPERM. */
int etw_permitted(void);
/* CAP_SYSLOG, and the kernel is not locked down against it. EPERM. */
int etw_permitted_addresses(void);

/* Make @file's descriptor from the pieces of anon_inode_getfd(), as one call: O_CLOEXEC, installed last. */
int etw_file_install(const char *name, const struct file_operations *fops, void *private, int flags);

#endif
