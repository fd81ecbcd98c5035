// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The control file: opening it, its version, and the lists. It must not know what a session does. */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "class.h"
#include "error.h"

#define DEVICE "/dev/etw"

struct etw_control {
	int fd;
	struct etw_keyword *keywords;
	unsigned int nr_keywords;	/* room */
	void *entry;
	size_t entry_size;
	struct etw_class *cls;
};

int etw_ioctl(int fd, unsigned long command, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, command, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

int etw_provider_text(const char *text, __u8 name[ETW_NAME_SIZE], __u8 guid[16])
{
	memset(name, 0, ETW_NAME_SIZE);
	memset(guid, 0, 16);
	if (etw_name_valid(text)) {
		/* A GUID can look like a name: b3864c38-4273-... */
		if (strlen(text) == ETW_GUID_TEXT_SIZE - 1 && !etw_guid_parse(text, guid))
			return 0;
		memcpy(name, text, strlen(text));
		return 0;
	}
	if (!etw_guid_parse(text, guid))
		return 0;
	return etw_error(
		-EINVAL,
		"\"%s\" is neither a provider name (a letter, then letters, digits, _ . -, at most %u) nor a GUID",
		text, ETW_NAME_SIZE - 1);
}

int etw_control_open(struct etw_control **control)
{
	struct etw_version version = { .size = sizeof(version) };
	struct etw_control *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return etw_error_errno(-ENOMEM, DEVICE);
	c->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (c->fd < 0) {
		err = -errno;
		free(c);
		if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
			return etw_error(-ENODEV, "there is no " DEVICE ": load the module first (insmod etw.ko)");
		if (err == -EACCES || err == -EPERM)
			return etw_error(
				-EACCES, DEVICE
				" may not be opened by this user: become root, or have the file's mode changed");
		return etw_error_errno(err, DEVICE);
	}
	err = etw_ioctl(c->fd, ETW_IOC_VERSION, &version);
	if (err < 0) {
		etw_control_close(c);
		return etw_error(
			-EPROTO,
			DEVICE
			" does not answer as the etw module does (%s): load the module that belongs to this program",
			strerror(-err));
	}
	if (version.abi != ETW_ABI_VERSION || version.record != ETW_RECORD_VERSION) {
		etw_control_close(c);
		return etw_error(
			-EPROTO,
			"the loaded module has ABI %u and record format %u, this program needs %u and %u: use a module and a program of one build",
			version.abi, version.record, ETW_ABI_VERSION, ETW_RECORD_VERSION);
	}
	*control = c;
	return 0;
}

void etw_control_close(struct etw_control *control)
{
	if (!control)
		return;
	close(control->fd);
	free(control->keywords);
	free(control->entry);
	etw_class_free(control->cls);
	free(control);
}

int etw_control_fd(const struct etw_control *control)
{
	return control->fd;
}

int etw_control_version(struct etw_control *control, struct etw_version *version)
{
	int err;

	memset(version, 0, sizeof(*version));
	version->size = sizeof(*version);
	err = etw_ioctl(control->fd, ETW_IOC_VERSION, version);
	return err < 0 ? etw_error_errno(err, "version of the module") : 0;
}

static int list_error(int err, const char *what)
{
	if (err == -EPERM || err == -EACCES)
		return etw_error(err, "listing %s needs CAP_PERFMON or CAP_SYS_ADMIN: become root", what);
	return etw_error_errno(err, "list of %s", what);
}

int etw_control_next_session(struct etw_control *control, struct etw_session_query *info)
{
	__u64 id = info->id;
	int err;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->id = id;
	err = etw_ioctl(control->fd, ETW_IOC_SESSION_LIST, info);
	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return list_error(err, "sessions");
	etw_query_ns(info);
	return 1;
}

int etw_control_next_provider(struct etw_control *control, struct etw_provider_list *info,
			      const struct etw_keyword **keywords)
{
	__u64 id = info->id;
	int err;

	for (;;) {
		memset(info, 0, sizeof(*info));
		info->size = sizeof(*info);
		info->id = id;
		if (keywords) {
			info->keywords = (__u64)(uintptr_t)control->keywords;
			info->nr_keywords = control->nr_keywords;
		}
		err = etw_ioctl(control->fd, ETW_IOC_PROVIDER_LIST, info);
		if (err == -ENOENT)
			return 0;
		if (err < 0)
			return list_error(err, "providers");
		if (!keywords)
			return 1;
		if (info->nr_keywords <= control->nr_keywords) {
			*keywords = control->keywords;
			return 1;
		}
		free(control->keywords);
		control->keywords = calloc(info->nr_keywords, sizeof(*control->keywords));
		control->nr_keywords = control->keywords ? info->nr_keywords : 0;
		if (!control->keywords)
			return etw_error_errno(-ENOMEM, "keywords of %s", info->name);
	}
}

int etw_control_next_event(struct etw_control *control, struct etw_event_list *info, const struct etw_class **cls)
{
	__u64 id = info->id;
	int err;

	if (!control->entry) {
		control->entry = malloc(CLASS_ENTRY_MAX);
		if (!control->entry)
			return etw_error_errno(-ENOMEM, "list of events");
	}
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->id = id;
	info->buf = (__u64)(uintptr_t)control->entry;
	info->buf_size = CLASS_ENTRY_MAX;
	err = etw_ioctl(control->fd, ETW_IOC_EVENT_LIST, info);
	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return list_error(err, "events");
	if (!cls)
		return 1;
	etw_class_free(control->cls);
	control->cls = NULL;
	err = etw_class_parse(control->entry, info->used, NULL, &control->cls);
	if (err)
		return err;
	*cls = control->cls;
	return 1;
}

int etw_control_find_provider(struct etw_control *control, const char *text, struct etw_provider_list *info,
			      const struct etw_keyword **keywords)
{
	__u8 name[ETW_NAME_SIZE], guid[16];
	int ret = etw_provider_text(text, name, guid);

	if (ret)
		return ret;
	memset(info, 0, sizeof(*info));
	while ((ret = etw_control_next_provider(control, info, keywords)) > 0) {
		if (name[0] ? !strcasecmp((char *)name, (char *)info->name) ||
				      !strcasecmp((char *)name, (char *)info->alias) :
			      !memcmp(guid, info->guid, 16))
			return 0;
	}
	return ret ? ret : etw_error(-ENOENT, "there is no provider \"%s\" now: see the list of providers", text);
}
