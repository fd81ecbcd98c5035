/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the files of the provider half share: the process's registrations, the device behind them, a thread's state.
 * It must not know sessions, consumers or traces: a program that only writes events links nothing of those.
 */
#ifndef ETW_PROVIDER_INT_H
#define ETW_PROVIDER_INT_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <etw/provider.h>

/* ---- the device: what a test replaces ---- */

/* Each returns a negative errno. */
int etw_device_open(void);
int etw_device_ioctl(int fd, unsigned long command, void *arg);
int etw_device_map(int fd, void *at, size_t size);
#ifdef ETW_FAKE_DEVICE
ssize_t etw_device_write(int fd, const void *buf, size_t size);
#endif
/* Where the device appears, and as what. */
const char *etw_device_dir(void);
const char *etw_device_name(void);

#ifndef ETW_FAKE_DEVICE
/* Without errno, and no cancellation point. */
static inline ssize_t etw_device_write(int fd, const void *buf, size_t size)
{
	long ret;

#if defined(__x86_64__) && defined(__LP64__)
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_write), "D"(fd), "S"(buf), "d"(size)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_write, x0 __asm__("x0") = fd, x2 __asm__("x2") = size;
	register const void *x1 __asm__("x1") = buf;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2)
			 : "memory");
	ret = x0;
#else
	{
		int saved = errno;

		ret = syscall(SYS_write, fd, buf, size);
		if (ret < 0)
			ret = -errno;
		errno = saved;
	}
#endif
	return ret;
}
#endif

/* ---- a thread ---- */

struct etw_thread {
	__u64 head;			/* ETW_HEAD_* of all its events: etw_thread_changed() */
	__u64 activity[2];
	struct etw_batch *batch;
	struct etw_registration *answering;	/* NULL: all that want it get what is written */
	__u64 capture;			/* whom it answers */
	bool inside;			/* holds the lock, or waits for it */
	int cancel_state;		/* while it is inside: what it has outside */
	unsigned int forks_inside;	/* that are being made by handlers that came while it was */
	bool large_used;
	__u8 *large;			/* for events that the stack has no room for */
};
extern __thread struct etw_thread etw_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Its activity id, its batch or whom it answers is another one now. */
static inline void etw_thread_changed(void)
{
	struct etw_thread *t = &etw_thread;

	t->head = t->activity[0] | t->activity[1] ? ETW_HEAD_SLOW | ETW_HEAD_IDS :
		  t->batch || t->answering	  ? ETW_HEAD_SLOW :
						    0;
}

/* Nobody may add to it now. */
#define BATCH_BUSY	LONG_MIN
void etw_batch_empty(struct etw_batch *batch);
/* What this thread writes from now on answers @capture of @reg; NULL and 0: nobody. Without the lock. */
void etw_answer(struct etw_registration *reg, __u64 capture);

/* ---- descriptions ---- */

#define WITH_ACTIVITY	1U
#define WITH_RELATED	2U	/* with both */

/*
 * The struct etw_schema of an event, to be freed. @fields: to ETW_ITEM_END; items in it override @options, whose
 * fields are not used. @with: which ids stand before the fields. A negative errno with a text.
 */
int etw_describe(const struct etw_event_options *options, const struct etw_field_info *fields, unsigned int with,
		 struct etw_schema **schema);

/* ---- registrations ---- */

/* Bits of struct etw_user_event.state. */
#define EVENT_KNOWN	1U	/* index[0] is valid */
#define EVENT_ACTIVITY	2U	/* index[1] */
#define EVENT_RELATED	4U	/* index[2] */
#define EVENT_OWN	8U	/* has its own activity field */
#define EVENT_HALF	16U	/* has its own related field, before which the current activity id belongs */
#define EVENT_FAILED	32U	/* cannot be defined */
#define EVENT_HEAP	64U	/* of etw_event_define() */

/* One event of etw_event_define(), and the descriptions of its forms. */
struct heap_event {
	struct etw_user_event event;
	struct heap_event *next;
	struct etw_schema *forms[3];
};

struct etw_registration {
	struct etw_registration *next;
	struct etw_provider *provider;		/* NULL: free to be used again */
	struct etw_provider own;		/* of etw_provider_register() */
	int fd;					/* -1: not attached */
	__u64 file;				/* what the module calls it, 0 not asked yet */
	int error;
	bool refused;				/* the module does not want it: not tried again by itself */
	unsigned int flags;
	unsigned int serial;			/* rises when it is given up */
	unsigned char *bytes;			/* the enable bytes; stays where it is */
	bool writable;				/* these are memory of our own */
	struct etw_provider_register what;
	struct etw_keyword *keywords;
	struct etw_schema **classes;
	unsigned int nr_classes;
	unsigned int nr_known;			/* of these to the module */
	unsigned int room;
	struct heap_event *events;
	__u64 no_room;
	__u64 too_large;
	__u64 failed;

	/* callback */
	etw_enable_fn fn;
	void *arg;
	unsigned int fn_flags;
	bool running;
	pthread_t runner;
	bool told_enabled;
	__u64 told_changes;
	__u64 told_captures;
	__u64 told_capture;			/* the latest that was passed on */
	int poll_fd;				/* epoll of the program's loop; -1 */
	int nudge;				/* eventfd in it */
	int inotify;				/* in it, while there is no module */
};

extern struct etw_registration *etw_registrations;
extern int etw_forked;				/* this is a child that has not looked yet */

/* false: this thread holds it already, interrupted by a signal. */
bool etw_lock(void);
void etw_unlock(void);
void etw_wait_unlocked(void);			/* for etw_broadcast() */
void etw_broadcast(void);

/* All of these with the lock held. */
int etw_attach(struct etw_registration *reg);	/* 1, 0 no module, or an error with a text */
void etw_detach(struct etw_registration *reg);
void etw_after_fork(void);
int etw_raise_fd(int fd);			/* the same in a number that programs seldom come to */
/* Also an error if the descriptor is another file now. */
int etw_ask_module(struct etw_registration *reg, struct etw_enabled_query *query);
/* The first request for state behind @after. */
int etw_ask_capture(struct etw_registration *reg, __u64 after, struct etw_capture_query *query);
bool etw_unattached(const struct etw_registration *reg);	/* and would like to be */

/* Makes the event ready to be written in the form with @with; 0 or a negative errno. Takes the lock. */
int etw_event_ready(struct etw_user_event *event, unsigned int with);

/* ---- waiting, for provider.c; with the lock held ---- */

void etw_watch_attached(struct etw_registration *reg);
void etw_watch_detaching(struct etw_registration *reg);
void etw_watch_nudge(struct etw_registration *reg);
void etw_watch_give_up(struct etw_registration *reg);	/* waits for a callback */
/* Have somebody look for the module. false: nobody can. */
bool etw_watch_module(void);
void etw_watch_forked(void);			/* in the child, in the handler of fork */
void etw_watch_after_fork(struct etw_registration *reg);

#endif /* ETW_PROVIDER_INT_H */
