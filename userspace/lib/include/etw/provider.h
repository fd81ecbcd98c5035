/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The public interface for providers: macros to declare one and write its events, functions for language bindings,
 * enable callbacks, activity ids. It knows the ABI (linux/etw.h) and must not know how the library reaches the
 * module.
 *
 *	ETW_PROVIDER(shop, "Example-Shop", ETW_KEYWORD("orders", 0x1));
 *
 *	ETW_WRITE(shop, "Order", ETW_LEVEL_INFO, 0x1, etw_u32("count", n), etw_str("customer", name));
 *
 * While no session wants an event, its ETW_WRITE is one load, a compare and a branch, and nothing of it is evaluated.
 * The same goes for a machine without the module; when that is loaded later, the program's providers attach by
 * themselves.
 *
 * Conventions are those of etw/etw.h, but for threads: everything here may be called by several threads at once,
 * except that nobody may use what another one is unregistering. Writing keeps errno, and is no cancellation point.
 */
#ifndef ETW_PROVIDER_H
#define ETW_PROVIDER_H

#include <string.h>
#include <sys/uio.h>

#include <etw/etw.h>

#ifdef __cplusplus
#if __cplusplus < 201703L
#error "etw/provider.h needs C++17"
#endif
#include <string_view>
#include <type_traits>
extern "C" {
#endif

/* ---------------------------------------------------------------- providers */

/**
 * struct etw_provider - a provider of this program: one that ETW_PROVIDER() made, or etw_provider_register()
 *
 * Its insides are the library's.
 */
struct etw_provider_item {
	__u32 kind;
	const char *text;
	__u64 value;
};
struct etw_provider {
	__u32 size;
	__u32 nr_items;
	const struct etw_provider_item *items;
	struct etw_registration *registration;
	void *reserved;
	int fd;				/* -1: there is nowhere to write to */
	int reserved2;
};
struct etw_user_event;

/*
 * ETW_PROVIDER(SYMBOL, "Name", ...) at file scope defines the provider SYMBOL, a variable of type struct
 * etw_provider. It registers when the program or the shared library is loaded, and unregisters when that is unloaded.
 * Behind the name may stand up to 64 keyword names, ETW_KEYWORD("name", mask), and ETW_PROVIDER_GUID("text"), else
 * the GUID is ETW's hash of the name. ETW_PROVIDER_DECLARE(SYMBOL) makes it known in other files.
 */
#define ETW_KEYWORD(name, mask)		{ ETW_ITEM_KEYWORD, name, mask }
#define ETW_PROVIDER_GUID(text)		{ ETW_ITEM_GUID, text, 0 }
#define ETW_PROVIDER_DECLARE(symbol)	extern struct etw_provider symbol
#define ETW_PROVIDER(symbol, ...) \
	ETW_PROVIDER_(ETW_CAT_(ETW_ITEMS_, ETW_ONE_OR_MORE_(__VA_ARGS__)), symbol, __VA_ARGS__)

/* Flags of providers. */
#define ETW_PROVIDER_NO_THREAD	(1U << 0)	/* no thread is started on its account: see etw_provider_attach() */

/**
 * struct etw_provider_options - a provider made at run time
 * @name: see ETW_NAME_SIZE. @guid: 16 bytes, NULL = ETW's hash of the name. @keywords: @nr_keywords of them.
 * @flags: ETW_PROVIDER_NO_THREAD.
 */
struct etw_provider_options {
	size_t size;
	const char *name;
	const __u8 *guid;
	const struct etw_keyword *keywords;
	__u32 nr_keywords;
	__u32 flags;
};

/*
 * Make a provider. 0 also when there is no module yet (etw_provider_status() tells). -EINVAL malformed; -EPERM the
 * name is reserved; -EDQUOT the user has as many as allowed; -ENOMEM.
 */
ETW_API int etw_provider_register(const struct etw_provider_options *options, struct etw_provider **provider);
/* Waits for a callback that is running, unless called from it; afterwards none comes, and its events are gone. */
ETW_API void etw_provider_unregister(struct etw_provider *provider);

/**
 * etw_provider_attach - try now to reach the module, where that has not been possible yet
 *
 * Nobody has to call it. A process whose providers found no module has it looked for when it first comes to one of
 * their events, by a thread that sleeps until something appears in /dev and ends then. With ETW_PROVIDER_NO_THREAD,
 * or where threads cannot be made, or with the variable ETW_NO_THREAD in the environment, events that are come to
 * look themselves, once a second at most; this function and etw_provider_dispatch() do it at once. @provider NULL:
 * all of the process. A program that closed the library's descriptors has them opened anew by it.
 *
 * Returns 1 attached (or already), 0 there is no module. Others: as etw_provider_register(), -EACCES.
 */
ETW_API int etw_provider_attach(struct etw_provider *provider);

/**
 * struct etw_provider_status - a provider, and what became of its writes
 * @attached: 1 the module knows it. @error: negative errno why not, or of the first event it refused; 0.
 * @nr_events: classes known to the module.
 * @no_room: writes that some session lost for lack of room or over the rate (ENOBUFS). @too_large: for which some
 *	session's buffers, or the limit ETW_MAX_PAYLOAD, are too small. @failed: others.
 */
struct etw_provider_status {
	size_t size;
	__u32 attached;
	__s32 error;
	__u32 nr_events;
	__u32 reserved;
	__u64 no_room;
	__u64 too_large;
	__u64 failed;
};
/* Set status->size. */
ETW_API int etw_provider_status(struct etw_provider *provider, struct etw_provider_status *status);

/* ---------------------------------------------------------------- enable callback */

#define ETW_CODE_DISABLE	0	/* no session is left */
#define ETW_CODE_ENABLE		1	/* a session enabled it, changed how, or one of several disabled it */
#define ETW_CODE_CAPTURE	2	/* write the state there is: a session asks for it */

/**
 * struct etw_enabled - what sessions want of a provider, all together
 * @code: ETW_CODE_*. @nr_sessions: that have it enabled.
 * @level: the highest, 255 every level. @any: all bits that one of them asks for. @all: those that all ask for. With
 * ETW_CODE_CAPTURE these three are of the session that asks.
 * @capture: with ETW_CODE_CAPTURE, for etw_answer_begin().
 */
struct etw_enabled {
	size_t size;
	__u32 code;
	__u32 nr_sessions;
	__u32 level;
	__u32 reserved;
	__u64 any;
	__u64 all;
	__u64 capture;
};

typedef void (*etw_enable_fn)(struct etw_provider *provider, const struct etw_enabled *enabled, void *arg);

#define ETW_CALLBACK_THREAD	(1U << 0)	/* by the library's own thread, else by etw_provider_dispatch() */

/*
 * Have @fn called at each change, and for the state now if a session has the provider already. Changes that follow
 * each other fast may be told as one. @fn NULL: no more; waits as etw_provider_unregister(). -EAGAIN: no thread could
 * be made.
 */
ETW_API int etw_provider_on_enable(struct etw_provider *provider, etw_enable_fn fn, void *arg, unsigned int flags);
/*
 * For poll: POLLIN etw_provider_dispatch() has something to do, be it that the module has come. Until unregister; in a
 * child made by fork the same number is its own. If the program has closed it this gives another.
 */
ETW_API int etw_provider_fd(struct etw_provider *provider);
/* Never waits. Calls the callback if there is a reason, attaches if it can. How many calls, or an error. */
ETW_API int etw_provider_dispatch(struct etw_provider *provider);

/* What sessions want now. -ENODEV: not attached. Set enabled->size; its code is then ENABLE or DISABLE. */
ETW_API int etw_provider_query(struct etw_provider *provider, struct etw_enabled *enabled);
/*
 * 1 if some session would take events of this level and keyword: to skip work that only serves events. Asks the
 * module, but only if one of the provider's events is wanted at all. A session's filters may still reject them.
 */
ETW_API int etw_provider_enabled(struct etw_provider *provider, unsigned int level, __u64 keyword);

/*
 * From etw_answer_begin() to etw_answer_end() what the calling thread writes of @provider goes to the session alone that
 * asked with this number, and events of its batch that it has kept till then are written before. A callback with
 * ETW_CODE_CAPTURE is called in between; these are for a program that answers later or in another thread. A session
 * that is gone meanwhile, or has asked again, gets nothing: functions that write give -ENOENT. -EINVAL.
 *
 * A signal handler that writes of @provider in between, in this thread, is part of the answer: other sessions do not
 * get its event. Block the signal where that matters. A child made by fork in between does not answer.
 */
ETW_API int etw_answer_begin(struct etw_provider *provider, __u64 capture);
ETW_API void etw_answer_end(void);

/* ---------------------------------------------------------------- activity ids */

/*
 * Each thread has a current activity id, at first zero (none). While it is not zero, events carry it, in their first
 * field ETW_FIELD_ACTIVITY. An id is a random number of the process and a count: no two are the same, and only a
 * process's first takes a system call.
 */
ETW_API void etw_activity_get(__u8 id[16]);
ETW_API void etw_activity_set(const __u8 id[16]);
ETW_API void etw_activity_create(__u8 id[16]);
/* Makes @id current and leaves the one before in it. */
ETW_API void etw_activity_swap(__u8 id[16]);
/* Makes a new id current and returns the one before, for etw_activity_set() at the end. */
ETW_API void etw_activity_create_set(__u8 previous[16]);

/* ---------------------------------------------------------------- events at run time */

/* Items of an event that are no fields: see the macros of these names in lower case. */
#define ETW_ITEM_END		0
#define ETW_ITEM_OPCODE		240
#define ETW_ITEM_TASK		241
#define ETW_ITEM_ID		242
#define ETW_ITEM_VERSION	243
#define ETW_ITEM_DESCRIPTION	244
#define ETW_ITEM_NAME		245
#define ETW_ITEM_KEYWORD	246
#define ETW_ITEM_GUID		247

/**
 * struct etw_field_info - one field of an event
 * @map: names of its values, or NULL. @count, @type, @array, @format: as in struct etw_schema_field.
 */
struct etw_field_info {
	const char *name;
	const struct etw_map *map;
	__u32 count;
	__u8 type;
	__u8 array;
	__u8 format;
	__u8 reserved;
};

/**
 * struct etw_user_event - an event that this program can write
 * @enabled: where its enable byte is. The rest is the library's.
 */
struct etw_user_event {
	const unsigned char *enabled;
	struct etw_provider *provider;
	const char *name;
	const struct etw_field_info *fields;	/* up to ETW_ITEM_END */
	__u64 keyword;
	__u8 level;
	__u8 unknown;				/* ETW_BYTE_ASK; @enabled points here until it is known */
	__u8 reserved;
	__u8 state;
	__u16 index[3];				/* with no activity id, with one, with a related one too */
	__u64 head;				/* of the first form with no fields, and ETW_HEAD_* */
};

/**
 * struct etw_event_options - an event to be defined
 * @id, @task, @version, @level, @opcode, @keyword: its descriptor. @description: one line, or NULL.
 * @fields: @nr_fields of them, at most ETW_MAX_FIELDS.
 */
struct etw_event_options {
	size_t size;
	const char *name;
	const char *description;
	const struct etw_field_info *fields;
	__u32 nr_fields;
	__u16 id;
	__u16 task;
	__u8 version;
	__u8 level;
	__u8 opcode;
	__u8 reserved;
	__u64 keyword;
};

/*
 * Add an event; it lives as long as @provider. The same content gives the same event. Everything of @options is
 * copied. -EINVAL malformed; -E2BIG too many fields or bytes; -ENOSPC ETW_MAX_EVENTS; -EDQUOT; -ENOMEM.
 */
ETW_API int etw_event_define(struct etw_provider *provider, const struct etw_event_options *options,
			     struct etw_user_event **event);

#if defined(__SANITIZE_THREAD__)
#define ETW_BYTE_(event)	__atomic_load_n(__atomic_load_n(&(event)->enabled, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED)
#else
#define ETW_BYTE_(event)	(*(event)->enabled)
#endif

/* Not 0 while some session wants the event: one load of its enable byte, anew in each call. */
static inline int etw_event_enabled(struct etw_user_event *event)
{
	__asm__ volatile("" : "+m"(event->enabled));
	return __builtin_expect(ETW_BYTE_(event) != 0, 0);
}

/*
 * Write one event. @payload: its fields, packed, as linux/etw.h has them. The thread's current activity id is added
 * if the event has no such field itself. Returns 0: every session that wants it has it, or none wants it. -ENOBUFS
 * and -EMSGSIZE: not every session. -EINVAL: not what the event's fields say. -E2BIG. These are also counted, see
 * etw_provider_status().
 */
ETW_API int etw_event_write(struct etw_user_event *event, const void *payload, size_t size);
ETW_API int etw_event_writev(struct etw_user_event *event, const struct iovec *iov, int nr);

/* One event of several. @activity, @related: 16 bytes each, or NULL for the thread's current id and none. */
struct etw_event_data {
	struct etw_user_event *event;
	const struct iovec *iov;
	__u32 nr;
	__u32 reserved;
	const __u8 *activity;
	const __u8 *related;
};
/*
 * Write @nr events of one provider by as few system calls as 4096 bytes each allow; events of one call have one time
 * stamp. Those that nobody wants are left out. Returns as etw_event_write(), the first failure.
 */
ETW_API int etw_event_write_many(const struct etw_event_data *events, unsigned int nr);

/**
 * struct etw_batch - events of this thread that are kept to be written together
 *
 * Between etw_batch_begin() and etw_batch_end() the calling thread's events, ETW_WRITE's too, are collected in @buf,
 * and written when it is full (no more than 8192 bytes of it are used), at etw_batch_flush(), or at the end: then they
 * get their time stamp, so keep it short.
 * Batches can be nested; the outer one goes on afterwards. A child made by fork has none of its parent's events.
 */
struct etw_batch {
	__u8 *at;			/* behind the last event */
	long room;			/* for what can be added without looking further */
	struct etw_registration *registration;
	struct etw_batch *outer;
	__u8 *buf;
	size_t size;
	int error;
	int reserved;
};
/* At least 1024 bytes of room; -EINVAL. */
ETW_API int etw_batch_begin(struct etw_batch *batch, void *buf, size_t size);
/* 0, or the first failure of its writes. */
ETW_API int etw_batch_flush(struct etw_batch *batch);
ETW_API int etw_batch_end(struct etw_batch *batch);

/* ---------------------------------------------------------------- what the macros call */

#define ETW_BYTE_ASK ETW_ENABLED_ASK	/* an enable byte, the library's too: look first whether the module is there */
#define ETW_WRITING_PREFIX	40	/* room before an event's fields, for its head and two activity ids */
#define ETW_WRITING_ROOM	256	/* larger events take another buffer */
/* Loads the byte again: kept in a register it would cost the test before it an instruction. */
static inline int etw_writing_asks(struct etw_user_event *event)
{
	__asm__ volatile("" : "+m"(event->enabled));
	return ETW_BYTE_(event) == ETW_BYTE_ASK;
}

/* 1: a session wants it, go on. */
ETW_API int etw_writing_ready(struct etw_user_event *event);
/* Room for @size bytes of fields, for etw_writing_end_large(); NULL: they are too large. */
ETW_API __u8 *etw_writing_room(struct etw_user_event *event, size_t size);
ETW_API void etw_writing_end(struct etw_user_event *event, __u8 *fields, size_t size);
ETW_API void etw_writing_end_large(struct etw_user_event *event, __u8 *fields, size_t size);
ETW_API void etw_provider_start(struct etw_provider *provider, struct etw_user_event **begin,
				struct etw_user_event **end);
ETW_API void etw_provider_stop(struct etw_provider *provider);
/* Of this program or shared library: what ETW_LINK_ gathered. */
extern struct etw_user_event *__start_etw_events[] __attribute__((weak, visibility("hidden")));
extern struct etw_user_event *__stop_etw_events[] __attribute__((weak, visibility("hidden")));

/* Bits of a head where the module wants zeros: what has to be done for this event or in this thread before it is written. */
#define ETW_HEAD_SLOW	(1ULL << 63)	/* anything */
#define ETW_HEAD_IDS	(1ULL << 62)	/* perhaps an activity id, or the event was not known a moment ago */

/* What a field's value is, for the packing. */
#define ETW_PACK_NONE		0
#define ETW_PACK_NUMBER	1	/* @size bytes of @number */
#define ETW_PACK_BYTES		2	/* as they are */
#define ETW_PACK_TEXT		3	/* and a NUL */
#define ETW_PACK_COUNTED	4	/* behind @count as u32 */
#define ETW_PACK_CHARS		5	/* up to the first NUL, padded with zeros */
struct etw_value {
	const void *data;
	__u64 number;
	size_t size;				/* in the payload */
	__u32 kind;
	__u32 count;
};

static inline struct etw_value etw_value_make(__u32 kind, const void *data, __u64 number, size_t size, __u32 count)
{
	struct etw_value v;

	v.data = data;
	v.number = number;
	v.size = size;
	v.kind = kind;
	v.count = count;
	return v;
}

static inline struct etw_value etw_value_f32(float value)
{
	__u32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return etw_value_make(ETW_PACK_NUMBER, NULL, bits, sizeof(bits), 0);
}

static inline struct etw_value etw_value_f64(double value)
{
	__u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return etw_value_make(ETW_PACK_NUMBER, NULL, bits, sizeof(bits), 0);
}

static inline struct etw_value etw_value_str(const char *text)
{
	if (!text)
		text = "";
	return etw_value_make(ETW_PACK_TEXT, text, 0, strlen(text) + 1, 0);
}

/* Up to the first NUL: strnlen(), which C11 does not have. */
static inline size_t etw_value_length(const char *text, size_t size)
{
	const char *end = size ? (const char *)memchr(text, 0, size) : NULL;

	return end ? (size_t)(end - text) : size;
}

static inline struct etw_value etw_value_strn(const char *text, size_t size)
{
	return etw_value_make(ETW_PACK_TEXT, text, 0, (text ? etw_value_length(text, size) : 0) + 1, 0);
}

static inline struct etw_value etw_value_chars(const char *text, size_t size)
{
	return etw_value_make(ETW_PACK_CHARS, text ? text : "", 0, size, 0);
}

/* What does not fit into 32 bits does not fit into an event either: etw_writing_room() says so. */
static inline struct etw_value etw_value_bin(const void *data, size_t size)
{
	if (!data)
		size = 0;
	return etw_value_make(ETW_PACK_COUNTED, data, 0, size + 4, (__u32)size);
}

static inline struct etw_value etw_value_bytes(const void *data, size_t size)
{
	return etw_value_make(ETW_PACK_BYTES, data, 0, size, 0);
}

static inline struct etw_value etw_value_array(const void *data, size_t nr, size_t element)
{
	size_t bytes;

	if (!data)
		nr = 0;
	if (__builtin_mul_overflow(nr, element, &bytes) || bytes > (size_t)1 << 40)
		bytes = (size_t)1 << 40;
	return etw_value_make(ETW_PACK_COUNTED, data, 0, bytes + 4, (__u32)nr);
}

static inline struct etw_value etw_value_none(void)
{
	return etw_value_make(ETW_PACK_NONE, NULL, 0, 0, 0);
}

static inline __attribute__((always_inline)) __u8 *etw_value_put(__u8 *to, struct etw_value value)
{
	size_t n;

	switch (value.kind) {
	case ETW_PACK_NUMBER:
		memcpy(to, &value.number, value.size);
		break;
	case ETW_PACK_BYTES:
		if (value.data)
			memcpy(to, value.data, value.size);
		else
			memset(to, 0, value.size);
		break;
	case ETW_PACK_TEXT:
		if (value.size > 1)
			memcpy(to, value.data, value.size - 1);
		to[value.size - 1] = 0;
		break;
	case ETW_PACK_COUNTED:
		memcpy(to, &value.count, 4);
		if (value.size > 4)
			memcpy(to + 4, value.data, value.size - 4);
		break;
	case ETW_PACK_CHARS:
		n = etw_value_length((const char *)value.data, value.size);
		memcpy(to, value.data, n);
		memset(to + n, 0, value.size - n);
		break;
	}
	return to + value.size;
}

#ifdef __cplusplus
}

template <size_t bytes, class T>
static inline struct etw_value etw_value_int(T value)
{
	static_assert(std::is_integral<T>::value ||
			      (std::is_enum<T>::value && std::is_convertible<T, long long>::value),
		      "etw: the value of an integer field is no integer");
	static_assert(sizeof(+value) <= (bytes < sizeof(int) ? sizeof(int) : bytes),
		      "etw: the value is wider than its field");
	return etw_value_make(ETW_PACK_NUMBER, NULL, (__u64)value, bytes, 0);
}

template <class T>
static inline struct etw_value etw_value_bool(T value)
{
	static_assert(std::is_integral<T>::value || std::is_pointer<T>::value || std::is_enum<T>::value,
		      "etw: the value of a bool field is none");
	return etw_value_make(ETW_PACK_NUMBER, NULL, value ? 1 : 0, 1, 0);
}

template <class T>
static inline double etw_value_float(T value)
{
	static_assert(std::is_floating_point<T>::value, "etw: the value of a floating point field is none");
	return (double)value;
}

static inline struct etw_value etw_value_str(std::string_view text)
{
	return etw_value_strn(text.data(), text.size());
}

template <size_t bytes, bool real, bool sign, class T>
static inline const void *etw_value_elements(const T *data)
{
	static_assert(sizeof(T) == bytes && std::is_floating_point<T>::value == real &&
			      (std::is_integral<T>::value || real) &&
			      (std::is_signed<T>::value == sign || std::is_same<T, char>::value),
		      "etw: the array's elements have another type than the field");
	return data;
}

template <size_t bytes, class T>
static inline const void *etw_value_address(const T *data)
{
	static_assert(std::is_void<T>::value || sizeof(std::conditional_t<std::is_void<T>::value, char, T>) == 1 ||
			      sizeof(std::conditional_t<std::is_void<T>::value, char, T>) == bytes,
		      "etw: a pointer to something of another size than the field");
	return data;
}

#define ETW_INT_(value, bytes)			etw_value_int<bytes>(value)
#define ETW_BOOL_(value)			etw_value_bool(value)
#define ETW_REAL_(value)			etw_value_float(value)
#define ETW_TEXT_(text)				(text)
#define ETW_ELEMENTS_(data, bytes, real, sign)	etw_value_elements<bytes, real, sign>(data)
#define ETW_ADDRESS_(data, bytes)		etw_value_address<bytes>(data)
#define ETW_LINK_(event)
#define ETW_ASSERT_(condition, text)		static_assert(condition, text)
#else
/* An expression of value 0 that does not compile unless @condition holds. */
#define ETW_CHECK_(condition, text) \
	(0 * sizeof(struct { _Static_assert(condition, "etw: " text); int etw_unused; }))
#define ETW_IS_INT_(value) _Generic((value), _Bool: 1, char: 1, signed char: 1, unsigned char: 1, short: 1, \
	unsigned short: 1, int: 1, unsigned int: 1, long: 1, unsigned long: 1, long long: 1, \
	unsigned long long: 1, default: 0)
/* 0 if it is none: only a constant 0 is a null pointer, and takes the other's type. */
#define ETW_CONSTANT_(value) \
	_Generic((1 ? (void *)((long)(value) * 0L) : (int *)8), int *: (value), default: 0)
#define ETW_IS_TEXT_(value) _Generic((value), char *: 1, const char *: 1, signed char *: 1, const signed char *: 1, \
	unsigned char *: 1, const unsigned char *: 1, void *: 1, const void *: 1, default: 0)
#define ETW_TEXT_(text) \
	((void)ETW_CHECK_(ETW_IS_TEXT_(text), "the value of a text field is no text"), (text))
#define ETW_IS_REAL_(value)	_Generic((value), float: 1, double: 1, default: 0)
#define ETW_INT_(value, bytes) etw_value_make(ETW_PACK_NUMBER, NULL, (__u64)(value), (bytes) + \
	ETW_CHECK_(ETW_IS_INT_(+(value)), "the value of an integer field is no integer") + \
	ETW_CHECK_(sizeof(+(value)) <= ((bytes) < sizeof(int) ? sizeof(int) : (bytes)), \
		   "the value is wider than its field") + \
	ETW_CHECK_((bytes) > 2 || ((long long)ETW_CONSTANT_(value) >= ((bytes) == 1 ? -128 : -32768) && \
				   (long long)ETW_CONSTANT_(value) <= ((bytes) == 1 ? 255 : 65535)), \
		   "the constant does not fit into its field"), 0)
#define ETW_BOOL_(value)	etw_value_make(ETW_PACK_NUMBER, NULL, (value) ? 1 : 0, 1, 0)
#define ETW_REAL_(value) \
	((value) + (int)ETW_CHECK_(ETW_IS_REAL_(value), "the value of a floating point field is none"))
/* char is either, as the machine has it. */
#define ETW_HAS_SIGN_(value, sign) _Generic((value), char: 1, signed char: (sign), short: (sign), int: (sign), \
	long: (sign), long long: (sign), float: (sign), double: (sign), default: !(sign))
#define ETW_ELEMENTS_(data, bytes, real, sign) \
	((void)ETW_CHECK_(sizeof(*(data)) == (bytes) && ((real) ? ETW_IS_REAL_(*(data)) : ETW_IS_INT_(*(data))) && \
			  ETW_HAS_SIGN_(*(data), sign), \
			  "the array's elements have another type than the field"), \
	 (const void *)(data))
#define ETW_ADDRESS_(data, bytes) \
	((void)ETW_CHECK_(sizeof(*(data)) == 1 || sizeof(*(data)) == (bytes), \
			  "a pointer to something of another size than the field"), (const void *)(data))
/* Makes the event known when the program is loaded, not only when it is first come to. */
#define ETW_LINK_(event) \
	static struct etw_user_event *etw_link_ __attribute__((section("etw_events"), used)) = &event
#define ETW_ASSERT_(condition, text)	_Static_assert(condition, text)
#endif

/* ---------------------------------------------------------------- fields */

/*
 * A field is (type, array, format, count, map, name, value): what ETW_WRITE makes a description and the packing of.
 * Where a field takes a pointer and the number of bytes or elements, that number is evaluated once; NULL is an empty
 * string.
 *
 *	etw_u8 .. etw_u64, etw_s8 .. etw_s64(name, value)	integers; etw_hex8 .. etw_hex64 are shown in hexadecimal
 *	etw_errno, etw_pid(name, value)				s32; etw_time(name, ns) u64, since the epoch
 *	etw_octal(name, value)					u32; etw_dev(name, value) u32, major << 20 | minor
 *	etw_ptr(name, pointer)					u64 in hexadecimal
 *	etw_f32, etw_f64, etw_bool(name, value)
 *	etw_str(name, text)		up to its NUL; in C++ also std::string_view
 *	etw_strn(name, text, n)		up to its NUL, at most n bytes
 *	etw_chars(name, text, n)	always n bytes, a constant
 *	etw_bin(name, data, n)		bytes, counted
 *	etw_guid, etw_ipv4, etw_ipv6, etw_mac(name, pointer)	16, 4, 16 and 6 bytes, addresses in network order
 *	etw_u8_array ..(name, pointer, n)	n elements, counted: u8 .. u64, s8 .. s64, f32, f64, bool
 *	etw_u8_fixed ..(name, pointer, n)	always n elements, a constant
 *	etw_as(format, field)		shown as ETW_FORMAT_* says
 *	etw_named(map, field)		values have names: ETW_VALUE_MAP(map, { 0, "idle" }, { 1, "busy" }); at file
 *					scope, or ETW_FLAG_MAP() if each bit has one
 *	etw_activity(pointer)		first of all: this activity id instead of the thread's current one
 *	etw_related(pointer)		next: the activity id that this one comes from
 *
 * Items that are no fields, each at most once: etw_opcode(n), etw_task(n), etw_id(n), etw_version(n) of the
 * descriptor, constants, and etw_description("one line").
 */
#define etw_u8(name, value) \
	(ETW_TYPE_U8, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 1))
#define etw_u16(name, value) \
	(ETW_TYPE_U16, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 2))
#define etw_u32(name, value) \
	(ETW_TYPE_U32, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 4))
#define etw_u64(name, value) \
	(ETW_TYPE_U64, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 8))
#define etw_s8(name, value) \
	(ETW_TYPE_S8, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 1))
#define etw_s16(name, value) \
	(ETW_TYPE_S16, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 2))
#define etw_s32(name, value) \
	(ETW_TYPE_S32, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 4))
#define etw_s64(name, value) \
	(ETW_TYPE_S64, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_INT_(value, 8))
#define etw_hex8(name, value) \
	(ETW_TYPE_U8, ETW_ARRAY_NONE, ETW_FORMAT_HEX, 0, NULL, name, ETW_INT_(value, 1))
#define etw_hex16(name, value) \
	(ETW_TYPE_U16, ETW_ARRAY_NONE, ETW_FORMAT_HEX, 0, NULL, name, ETW_INT_(value, 2))
#define etw_hex32(name, value) \
	(ETW_TYPE_U32, ETW_ARRAY_NONE, ETW_FORMAT_HEX, 0, NULL, name, ETW_INT_(value, 4))
#define etw_hex64(name, value) \
	(ETW_TYPE_U64, ETW_ARRAY_NONE, ETW_FORMAT_HEX, 0, NULL, name, ETW_INT_(value, 8))
#define etw_errno(name, value) \
	(ETW_TYPE_S32, ETW_ARRAY_NONE, ETW_FORMAT_ERRNO, 0, NULL, name, ETW_INT_(value, 4))
#define etw_pid(name, value) \
	(ETW_TYPE_S32, ETW_ARRAY_NONE, ETW_FORMAT_PID, 0, NULL, name, ETW_INT_(value, 4))
#define etw_time(name, value) \
	(ETW_TYPE_U64, ETW_ARRAY_NONE, ETW_FORMAT_TIME, 0, NULL, name, ETW_INT_(value, 8))
#define etw_octal(name, value) \
	(ETW_TYPE_U32, ETW_ARRAY_NONE, ETW_FORMAT_OCTAL, 0, NULL, name, ETW_INT_(value, 4))
#define etw_dev(name, value) \
	(ETW_TYPE_U32, ETW_ARRAY_NONE, ETW_FORMAT_DEV, 0, NULL, name, ETW_INT_(value, 4))
#define etw_ptr(name, pointer) \
	(ETW_TYPE_U64, ETW_ARRAY_NONE, ETW_FORMAT_HEX, 0, NULL, name, ETW_INT_((uintptr_t)(pointer), 8))
#define etw_f32(name, value) \
	(ETW_TYPE_F32, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_f32((float)ETW_REAL_(value)))
#define etw_f64(name, value) \
	(ETW_TYPE_F64, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_f64(ETW_REAL_(value)))
#define etw_bool(name, value) \
	(ETW_TYPE_BOOL, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, ETW_BOOL_(value))
#define etw_str(name, text) \
	(ETW_TYPE_STRING, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_str(ETW_TEXT_(text)))
#define etw_strn(name, text, n) \
	(ETW_TYPE_STRING, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_strn(text, n))
#define etw_chars(name, text, n) \
	(ETW_TYPE_CHARS, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, n, NULL, name, etw_value_chars(text, n))
#define etw_bin(name, data, n) \
	(ETW_TYPE_BINARY, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_bin(data, n))
#define etw_guid(name, pointer) \
	(ETW_TYPE_GUID, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, \
	 etw_value_bytes(ETW_ADDRESS_(pointer, 16), 16))
#define etw_ipv4(name, pointer) \
	(ETW_TYPE_IPV4, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_bytes(ETW_ADDRESS_(pointer, 4), 4))
#define etw_ipv6(name, pointer) \
	(ETW_TYPE_IPV6, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, \
	 etw_value_bytes(ETW_ADDRESS_(pointer, 16), 16))
#define etw_mac(name, pointer) \
	(ETW_TYPE_MAC, ETW_ARRAY_NONE, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_bytes(ETW_ADDRESS_(pointer, 6), 6))
#define ETW_COUNTED_(type, name, data, n, bytes) \
	(type, ETW_ARRAY_COUNTED, ETW_FORMAT_DEFAULT, 0, NULL, name, etw_value_array(data, n, bytes))
#define ETW_FIXED_(type, name, data, n, bytes) \
	(type, ETW_ARRAY_FIXED, ETW_FORMAT_DEFAULT, n, NULL, name, etw_value_bytes(data, (size_t)(n) * (bytes)))
#define etw_u8_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_U8, name, ETW_ELEMENTS_(data, 1, 0, 0), n, 1)
#define etw_u8_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_U8, name, ETW_ELEMENTS_(data, 1, 0, 0), n, 1)
#define etw_u16_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_U16, name, ETW_ELEMENTS_(data, 2, 0, 0), n, 2)
#define etw_u16_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_U16, name, ETW_ELEMENTS_(data, 2, 0, 0), n, 2)
#define etw_u32_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_U32, name, ETW_ELEMENTS_(data, 4, 0, 0), n, 4)
#define etw_u32_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_U32, name, ETW_ELEMENTS_(data, 4, 0, 0), n, 4)
#define etw_u64_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_U64, name, ETW_ELEMENTS_(data, 8, 0, 0), n, 8)
#define etw_u64_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_U64, name, ETW_ELEMENTS_(data, 8, 0, 0), n, 8)
#define etw_s8_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_S8, name, ETW_ELEMENTS_(data, 1, 0, 1), n, 1)
#define etw_s8_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_S8, name, ETW_ELEMENTS_(data, 1, 0, 1), n, 1)
#define etw_s16_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_S16, name, ETW_ELEMENTS_(data, 2, 0, 1), n, 2)
#define etw_s16_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_S16, name, ETW_ELEMENTS_(data, 2, 0, 1), n, 2)
#define etw_s32_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_S32, name, ETW_ELEMENTS_(data, 4, 0, 1), n, 4)
#define etw_s32_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_S32, name, ETW_ELEMENTS_(data, 4, 0, 1), n, 4)
#define etw_s64_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_S64, name, ETW_ELEMENTS_(data, 8, 0, 1), n, 8)
#define etw_s64_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_S64, name, ETW_ELEMENTS_(data, 8, 0, 1), n, 8)
#define etw_f32_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_F32, name, ETW_ELEMENTS_(data, 4, 1, 1), n, 4)
#define etw_f32_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_F32, name, ETW_ELEMENTS_(data, 4, 1, 1), n, 4)
#define etw_f64_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_F64, name, ETW_ELEMENTS_(data, 8, 1, 1), n, 8)
#define etw_f64_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_F64, name, ETW_ELEMENTS_(data, 8, 1, 1), n, 8)
#define etw_bool_array(name, data, n) \
	ETW_COUNTED_(ETW_TYPE_BOOL, name, ETW_ELEMENTS_(data, 1, 0, 0), n, 1)
#define etw_bool_fixed(name, data, n) \
	ETW_FIXED_(ETW_TYPE_BOOL, name, ETW_ELEMENTS_(data, 1, 0, 0), n, 1)
#define etw_activity(pointer)	etw_guid(ETW_FIELD_ACTIVITY, pointer)
#define etw_related(pointer)	etw_guid(ETW_FIELD_RELATED, pointer)

#define etw_as(format, field)	ETW_AS_(format, ETW_OPEN_ field)
#define etw_named(map, field)	ETW_NAMED_(map, ETW_OPEN_ field)
#define ETW_OPEN_(...)		__VA_ARGS__
#define ETW_AS_(...)		ETW_AS_AGAIN_(__VA_ARGS__)
#define ETW_AS_AGAIN_(format, type, array, old, count, map, name, value) \
	(type, array, format, count, map, name, value)
#define ETW_NAMED_(...)		ETW_NAMED_AGAIN_(__VA_ARGS__)
#define ETW_NAMED_AGAIN_(map, type, array, format, count, none, name, value) \
	(type, array, format, count, &map, name, value)

#define ETW_ITEM_(kind, number, text)	(kind, 0, 0, number, NULL, text, etw_value_none())
/* A constant of 0..@max, else it does not compile. */
#define ETW_UP_TO_(number, max) \
	((__u32)(number) + 0 * sizeof(char[(number) >= 0 && (number) <= (max) ? 1 : -1]))
#define etw_opcode(number)		ETW_ITEM_(ETW_ITEM_OPCODE, ETW_UP_TO_(number, 255), NULL)
#define etw_task(number)		ETW_ITEM_(ETW_ITEM_TASK, ETW_UP_TO_(number, 65535), NULL)
#define etw_id(number)			ETW_ITEM_(ETW_ITEM_ID, ETW_UP_TO_(number, 65535), NULL)
#define etw_version(number)		ETW_ITEM_(ETW_ITEM_VERSION, ETW_UP_TO_(number, 255), NULL)
#define etw_description(text)		ETW_ITEM_(ETW_ITEM_DESCRIPTION, 0, text)

#define ETW_VALUE_MAP(map, ...)		ETW_MAP_(map, ETW_MAP_VALUES, __VA_ARGS__)
#define ETW_FLAG_MAP(map, ...)		ETW_MAP_(map, ETW_MAP_FLAGS, __VA_ARGS__)
#define ETW_MAP_(map, kind, ...) \
	static const struct etw_map_value map##_values_[] = { __VA_ARGS__ }; \
	static const struct etw_map map __attribute__((unused)) = \
		{ kind, sizeof(map##_values_) / sizeof(map##_values_[0]), map##_values_ }

/* ---------------------------------------------------------------- writing */

/*
 * ETW_WRITE(PROVIDER, "Name", LEVEL, KEYWORD, fields ...) writes one event, a statement. Level and keyword are
 * constants; up to 64 fields and items; more can be written with etw_event_write(). Fields are evaluated, from left
 * to right, only if some session wants the event. What goes wrong harms nobody and is counted: see
 * etw_provider_status().
 */
#define ETW_WRITE(provider, name, ...) \
	ETW_WRITE_(ETW_CAT_(ETW_EACH_, ETW_COUNT_(__VA_ARGS__)), provider, name, __VA_ARGS__)
#define ETW_WRITE_(each, provider_, name_, ...) \
	do { \
		ETW_ASSERT_(sizeof(name_) > 1 && sizeof(name_) <= ETW_NAME_SIZE, \
			    "etw: an event's name has 1 to 63 characters"); \
		ETW_ASSERT_((ETW_FIRST_(__VA_ARGS__, 0)) >= 0 && (ETW_FIRST_(__VA_ARGS__, 0)) <= 255, \
			    "etw: levels are 0 to 255"); \
		static const struct etw_field_info etw_fields_[] = { \
			each(ETW_DESCRIBE_, __VA_ARGS__) { NULL, NULL, 0, ETW_ITEM_END, 0, 0, 0 } }; \
		static struct etw_user_event etw_event_ = { &etw_event_.unknown, &provider_, name_, etw_fields_, \
			ETW_SECOND_(__VA_ARGS__, 0, 0), ETW_FIRST_(__VA_ARGS__, 0), ETW_BYTE_ASK, 0, 0, { 0, 0, 0 }, \
			ETW_HEAD_SLOW | ETW_HEAD_IDS }; \
		ETW_LINK_(etw_event_); \
		if (etw_event_enabled(&etw_event_) && \
		    (!etw_writing_asks(&etw_event_) || etw_writing_ready(&etw_event_))) { \
			each(ETW_EVALUATE_, __VA_ARGS__) \
			const size_t etw_size_ = 0 each(ETW_ADD_, __VA_ARGS__); \
			__u8 etw_buf_[ETW_WRITING_PREFIX + ETW_WRITING_ROOM]; \
			__u8 *etw_at_ = etw_size_ <= ETW_WRITING_ROOM ? etw_buf_ + ETW_WRITING_PREFIX : \
				etw_writing_room(&etw_event_, etw_size_), *etw_to_ = etw_at_; \
			\
			if (etw_to_) { \
				each(ETW_PUT_, __VA_ARGS__) \
				(void)etw_to_; \
				if (etw_size_ <= ETW_WRITING_ROOM) \
					etw_writing_end(&etw_event_, etw_at_, etw_size_); \
				else \
					etw_writing_end_large(&etw_event_, etw_at_, etw_size_); \
			} \
		} \
	} while (0)

#define ETW_FIRST_(a, ...)	a
#define ETW_SECOND_(a, b, ...)	b
#define ETW_CAT_(a, b)		ETW_CAT_AGAIN_(a, b)
#define ETW_CAT_AGAIN_(a, b)	a##b

/* What is done with each field; @i tells them apart. */
#define ETW_DESCRIBE_(i, field)	ETW_DESCRIBE_FIELD_ field
#define ETW_DESCRIBE_FIELD_(type, array, format, count, map, name, value) \
	{ name, map, (__u32)(count), type, array, format, 0 },
#define ETW_EVALUATE_(i, field)	const struct etw_value etw_value_##i = ETW_VALUE_OF_ field;
#define ETW_VALUE_OF_(type, array, format, count, map, name, value)	value
#define ETW_ADD_(i, field)	+ etw_value_##i.size
#define ETW_PUT_(i, field)	etw_to_ = etw_value_put(etw_to_, etw_value_##i);

/* For each of 0 to 64 fields behind level and keyword. */
#define ETW_EACH_MANY(m, ...)	ETW_ASSERT_(0, "etw: at most 64 fields and items in ETW_WRITE");
#define ETW_PICK_( \
	a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, \
	a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, \
	a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, a65, a66, a67, a68, \
	a69, a70, a71, a72, a73, a74, a75, a76, a77, a78, a79, a80, a81, a82, a83, a84, a85, a86, a87, a88, a89, a90, \
	a91, a92, a93, a94, a95, a96, a97, a98, a99, a100, a101, a102, a103, a104, a105, a106, a107, a108, a109, a110, \
	a111, a112, a113, a114, a115, a116, a117, a118, a119, a120, a121, a122, a123, a124, a125, a126, a127, a128, n, \
	...) n
#define ETW_COUNT_(...) \
	ETW_PICK_(__VA_ARGS__, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, MANY, MANY, MANY, MANY, \
	MANY, MANY, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, \
	47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, \
	20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ETW_EACH_2(m, l, k)
#define ETW_EACH_3(m, l, k, x)	m(3, x)
#define ETW_EACH_4(m, l, k, x, ...)	m(4, x) ETW_EACH_3(m, l, k, __VA_ARGS__)
#define ETW_EACH_5(m, l, k, x, ...)	m(5, x) ETW_EACH_4(m, l, k, __VA_ARGS__)
#define ETW_EACH_6(m, l, k, x, ...)	m(6, x) ETW_EACH_5(m, l, k, __VA_ARGS__)
#define ETW_EACH_7(m, l, k, x, ...)	m(7, x) ETW_EACH_6(m, l, k, __VA_ARGS__)
#define ETW_EACH_8(m, l, k, x, ...)	m(8, x) ETW_EACH_7(m, l, k, __VA_ARGS__)
#define ETW_EACH_9(m, l, k, x, ...)	m(9, x) ETW_EACH_8(m, l, k, __VA_ARGS__)
#define ETW_EACH_10(m, l, k, x, ...)	m(10, x) ETW_EACH_9(m, l, k, __VA_ARGS__)
#define ETW_EACH_11(m, l, k, x, ...)	m(11, x) ETW_EACH_10(m, l, k, __VA_ARGS__)
#define ETW_EACH_12(m, l, k, x, ...)	m(12, x) ETW_EACH_11(m, l, k, __VA_ARGS__)
#define ETW_EACH_13(m, l, k, x, ...)	m(13, x) ETW_EACH_12(m, l, k, __VA_ARGS__)
#define ETW_EACH_14(m, l, k, x, ...)	m(14, x) ETW_EACH_13(m, l, k, __VA_ARGS__)
#define ETW_EACH_15(m, l, k, x, ...)	m(15, x) ETW_EACH_14(m, l, k, __VA_ARGS__)
#define ETW_EACH_16(m, l, k, x, ...)	m(16, x) ETW_EACH_15(m, l, k, __VA_ARGS__)
#define ETW_EACH_17(m, l, k, x, ...)	m(17, x) ETW_EACH_16(m, l, k, __VA_ARGS__)
#define ETW_EACH_18(m, l, k, x, ...)	m(18, x) ETW_EACH_17(m, l, k, __VA_ARGS__)
#define ETW_EACH_19(m, l, k, x, ...)	m(19, x) ETW_EACH_18(m, l, k, __VA_ARGS__)
#define ETW_EACH_20(m, l, k, x, ...)	m(20, x) ETW_EACH_19(m, l, k, __VA_ARGS__)
#define ETW_EACH_21(m, l, k, x, ...)	m(21, x) ETW_EACH_20(m, l, k, __VA_ARGS__)
#define ETW_EACH_22(m, l, k, x, ...)	m(22, x) ETW_EACH_21(m, l, k, __VA_ARGS__)
#define ETW_EACH_23(m, l, k, x, ...)	m(23, x) ETW_EACH_22(m, l, k, __VA_ARGS__)
#define ETW_EACH_24(m, l, k, x, ...)	m(24, x) ETW_EACH_23(m, l, k, __VA_ARGS__)
#define ETW_EACH_25(m, l, k, x, ...)	m(25, x) ETW_EACH_24(m, l, k, __VA_ARGS__)
#define ETW_EACH_26(m, l, k, x, ...)	m(26, x) ETW_EACH_25(m, l, k, __VA_ARGS__)
#define ETW_EACH_27(m, l, k, x, ...)	m(27, x) ETW_EACH_26(m, l, k, __VA_ARGS__)
#define ETW_EACH_28(m, l, k, x, ...)	m(28, x) ETW_EACH_27(m, l, k, __VA_ARGS__)
#define ETW_EACH_29(m, l, k, x, ...)	m(29, x) ETW_EACH_28(m, l, k, __VA_ARGS__)
#define ETW_EACH_30(m, l, k, x, ...)	m(30, x) ETW_EACH_29(m, l, k, __VA_ARGS__)
#define ETW_EACH_31(m, l, k, x, ...)	m(31, x) ETW_EACH_30(m, l, k, __VA_ARGS__)
#define ETW_EACH_32(m, l, k, x, ...)	m(32, x) ETW_EACH_31(m, l, k, __VA_ARGS__)
#define ETW_EACH_33(m, l, k, x, ...)	m(33, x) ETW_EACH_32(m, l, k, __VA_ARGS__)
#define ETW_EACH_34(m, l, k, x, ...)	m(34, x) ETW_EACH_33(m, l, k, __VA_ARGS__)
#define ETW_EACH_35(m, l, k, x, ...)	m(35, x) ETW_EACH_34(m, l, k, __VA_ARGS__)
#define ETW_EACH_36(m, l, k, x, ...)	m(36, x) ETW_EACH_35(m, l, k, __VA_ARGS__)
#define ETW_EACH_37(m, l, k, x, ...)	m(37, x) ETW_EACH_36(m, l, k, __VA_ARGS__)
#define ETW_EACH_38(m, l, k, x, ...)	m(38, x) ETW_EACH_37(m, l, k, __VA_ARGS__)
#define ETW_EACH_39(m, l, k, x, ...)	m(39, x) ETW_EACH_38(m, l, k, __VA_ARGS__)
#define ETW_EACH_40(m, l, k, x, ...)	m(40, x) ETW_EACH_39(m, l, k, __VA_ARGS__)
#define ETW_EACH_41(m, l, k, x, ...)	m(41, x) ETW_EACH_40(m, l, k, __VA_ARGS__)
#define ETW_EACH_42(m, l, k, x, ...)	m(42, x) ETW_EACH_41(m, l, k, __VA_ARGS__)
#define ETW_EACH_43(m, l, k, x, ...)	m(43, x) ETW_EACH_42(m, l, k, __VA_ARGS__)
#define ETW_EACH_44(m, l, k, x, ...)	m(44, x) ETW_EACH_43(m, l, k, __VA_ARGS__)
#define ETW_EACH_45(m, l, k, x, ...)	m(45, x) ETW_EACH_44(m, l, k, __VA_ARGS__)
#define ETW_EACH_46(m, l, k, x, ...)	m(46, x) ETW_EACH_45(m, l, k, __VA_ARGS__)
#define ETW_EACH_47(m, l, k, x, ...)	m(47, x) ETW_EACH_46(m, l, k, __VA_ARGS__)
#define ETW_EACH_48(m, l, k, x, ...)	m(48, x) ETW_EACH_47(m, l, k, __VA_ARGS__)
#define ETW_EACH_49(m, l, k, x, ...)	m(49, x) ETW_EACH_48(m, l, k, __VA_ARGS__)
#define ETW_EACH_50(m, l, k, x, ...)	m(50, x) ETW_EACH_49(m, l, k, __VA_ARGS__)
#define ETW_EACH_51(m, l, k, x, ...)	m(51, x) ETW_EACH_50(m, l, k, __VA_ARGS__)
#define ETW_EACH_52(m, l, k, x, ...)	m(52, x) ETW_EACH_51(m, l, k, __VA_ARGS__)
#define ETW_EACH_53(m, l, k, x, ...)	m(53, x) ETW_EACH_52(m, l, k, __VA_ARGS__)
#define ETW_EACH_54(m, l, k, x, ...)	m(54, x) ETW_EACH_53(m, l, k, __VA_ARGS__)
#define ETW_EACH_55(m, l, k, x, ...)	m(55, x) ETW_EACH_54(m, l, k, __VA_ARGS__)
#define ETW_EACH_56(m, l, k, x, ...)	m(56, x) ETW_EACH_55(m, l, k, __VA_ARGS__)
#define ETW_EACH_57(m, l, k, x, ...)	m(57, x) ETW_EACH_56(m, l, k, __VA_ARGS__)
#define ETW_EACH_58(m, l, k, x, ...)	m(58, x) ETW_EACH_57(m, l, k, __VA_ARGS__)
#define ETW_EACH_59(m, l, k, x, ...)	m(59, x) ETW_EACH_58(m, l, k, __VA_ARGS__)
#define ETW_EACH_60(m, l, k, x, ...)	m(60, x) ETW_EACH_59(m, l, k, __VA_ARGS__)
#define ETW_EACH_61(m, l, k, x, ...)	m(61, x) ETW_EACH_60(m, l, k, __VA_ARGS__)
#define ETW_EACH_62(m, l, k, x, ...)	m(62, x) ETW_EACH_61(m, l, k, __VA_ARGS__)
#define ETW_EACH_63(m, l, k, x, ...)	m(63, x) ETW_EACH_62(m, l, k, __VA_ARGS__)
#define ETW_EACH_64(m, l, k, x, ...)	m(64, x) ETW_EACH_63(m, l, k, __VA_ARGS__)
#define ETW_EACH_65(m, l, k, x, ...)	m(65, x) ETW_EACH_64(m, l, k, __VA_ARGS__)
#define ETW_EACH_66(m, l, k, x, ...)	m(66, x) ETW_EACH_65(m, l, k, __VA_ARGS__)

/* Providers without and with items behind their name. */
#define ETW_ONE_OR_MORE_(...) \
	ETW_PICK_(__VA_ARGS__, \
	N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, \
	N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, \
	N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, \
	N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, 1, 0)
#define ETW_ITEMS_1(name)	{ ETW_ITEM_NAME, name, 0 }
#define ETW_ITEMS_N(name, ...)	{ ETW_ITEM_NAME, name, 0 }, __VA_ARGS__
#define ETW_PROVIDER_(items, symbol, ...) \
	ETW_ASSERT_(sizeof(ETW_FIRST_(__VA_ARGS__, 0)) > 1 && sizeof(ETW_FIRST_(__VA_ARGS__, 0)) <= ETW_NAME_SIZE, \
		    "etw: a provider's name has 1 to 63 characters"); \
	extern struct etw_provider symbol; \
	static const struct etw_provider_item symbol##_items_[] = { items(__VA_ARGS__) }; \
	static __attribute__((constructor)) void symbol##_start_(void) \
	{ \
		etw_provider_start(&symbol, __start_etw_events, __stop_etw_events); \
	} \
	static __attribute__((destructor)) void symbol##_stop_(void) \
	{ \
		etw_provider_stop(&symbol); \
	} \
	struct etw_provider symbol = { sizeof(struct etw_provider), \
		sizeof(symbol##_items_) / sizeof(symbol##_items_[0]), symbol##_items_, NULL, NULL, -1, 0 }

#endif /* ETW_PROVIDER_H */
