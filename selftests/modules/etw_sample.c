// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver that is a provider, to be read and copied: a device that stores one line, and tells of each open, write and expiry. It
 * shows what kmod/etw_module.h is for: a registration, an event built only if somebody wants it, an event from a timer.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

#include "../../kmod/compat.h"
#include "../../kmod/etw_module.h"

#define KW_FILE		0x1
#define KW_TIMER	0x2

static const struct etw_module_keyword keywords[] = {
	{ "file", KW_FILE },
	{ "timer", KW_TIMER },
};

static const struct etw_module_field opened_fields[] = {
	{ "flags", ETW_TYPE_U32, .format = ETW_FORMAT_OCTAL },
};

/* An event has its fields packed, in their order. */
struct opened_record {
	u32 flags;
} __packed;

static const struct etw_module_field stored_fields[] = {
	{ "seconds", ETW_TYPE_U32 },
	{ "line", ETW_TYPE_STRING },
};

static const struct etw_module_field expired_fields[] = {
	{ "lines", ETW_TYPE_U64 },
};

static struct etw_module_event opened = ETW_MODULE_EVENT("opened", ETW_LEVEL_VERBOSE, KW_FILE, opened_fields);
static struct etw_module_event stored = ETW_MODULE_EVENT("stored", ETW_LEVEL_INFO, KW_FILE, stored_fields);
static struct etw_module_event expired = ETW_MODULE_EVENT("expired", ETW_LEVEL_INFO, KW_TIMER, expired_fields);

static struct etw_module_event *const events[] = { &opened, &stored, &expired };

static struct etw_module_provider provider = {
	.name = "Etw-Sample-Driver",
	.keywords = keywords,
	.nr_keywords = ARRAY_SIZE(keywords),
	.events = events,
	.nr_events = ARRAY_SIZE(events),
};

#define LINE 100

static DEFINE_MUTEX(lock);
static char line[LINE];
static u64 lines;
static unsigned int seconds = 1;
module_param(seconds, uint, 0644);
MODULE_PARM_DESC(seconds, "how long a line is kept");

static void expire(struct timer_list *unused)
{
	const u64 count = READ_ONCE(lines);

	if (etw_module_enabled(&expired))
		etw_module_write(&expired, &count, sizeof(count));
}

static DEFINE_TIMER(timer, expire);

static int sample_open(struct inode *inode, struct file *file)
{
	if (etw_module_enabled(&opened)) {
		struct opened_record r = { file->f_flags };

		etw_module_write(&opened, &r, sizeof(r));
	}
	return 0;
}

static ssize_t sample_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	const size_t taken = min_t(size_t, len, LINE - 1);

	mutex_lock(&lock);
	memset(line, 0, sizeof(line));
	if (copy_from_user(line, from, taken)) {
		mutex_unlock(&lock);
		return -EFAULT;
	}
	WRITE_ONCE(lines, lines + 1);
	if (etw_module_enabled(&stored)) {
		/* a number, and a string with its NUL behind it */
		u8 record[sizeof(u32) + LINE];
		const u32 s = READ_ONCE(seconds);
		const size_t n = strlen(line) + 1;

		memcpy(record, &s, sizeof(s));
		memcpy(record + sizeof(s), line, n);
		etw_module_write(&stored, record, sizeof(s) + n);
	}
	mutex_unlock(&lock);
	mod_timer(&timer, jiffies + READ_ONCE(seconds) * HZ);
	return len;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = sample_open,
	.write = sample_write,
};

static struct miscdevice device = { .minor = MISC_DYNAMIC_MINOR, .name = "etw-sample", .fops = &fops, .mode = 0666 };

static int __init sample_init(void)
{
	int err = etw_module_register(&provider);

	if (err)
		return err;
	err = misc_register(&device);
	if (err)
		etw_module_unregister(&provider);
	return err;
}

static void __exit sample_exit(void)
{
	misc_deregister(&device);
	/* what writes must have ended, or look the event's class up in vain: etw_module_unregister() waits for it */
	etw_timer_delete_sync(&timer);
	etw_module_unregister(&provider);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("A driver that is an ETW provider");
MODULE_AUTHOR("The ETW for Linux authors");
MODULE_LICENSE("GPL");
