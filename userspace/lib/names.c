// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The words for the numbers of the ABI: loss causes, clocks, levels, types, formats. Knows nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <etw/etw.h>

#include "error.h"

#define NAME_OF(table, i) ((i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : "unknown")

int etw_name_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t len = strlen(name);

	return len > 0 && len < ETW_NAME_SIZE && strchr(letters, name[0]) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

const char *etw_lost_name(unsigned int cause)
{
	static const char *const names[ETW_NR_LOST] = {
		[ETW_LOST_NO_ROOM] = "no_room",
		[ETW_LOST_WRAPPED] = "wrapped",
		[ETW_LOST_NESTED] = "nested",
		[ETW_LOST_TOO_LARGE] = "too_large",
		[ETW_LOST_CPU] = "cpu",
		[ETW_LOST_RATE] = "rate",
	};

	return NAME_OF(names, cause);
}

const char *etw_lost_text(unsigned int cause)
{
	static const char *const texts[ETW_NR_LOST] = {
		[ETW_LOST_NO_ROOM] = "no free sub-buffer: use more or larger ones",
		[ETW_LOST_WRAPPED] = "a writer was interrupted for a whole lap: use more or larger sub-buffers",
		[ETW_LOST_NESTED] = "nested too deep",
		[ETW_LOST_TOO_LARGE] = "larger than a sub-buffer takes",
		[ETW_LOST_CPU] = "the CPU had no relay yet",
		[ETW_LOST_RATE] = "over the rate of an untrusted writer",
	};

	return NAME_OF(texts, cause);
}

static const char *const clocks[] = {
	[ETW_CLOCK_DEFAULT] = "monotonic",
	[ETW_CLOCK_MONOTONIC] = "monotonic",
	[ETW_CLOCK_BOOT] = "boot",
	[ETW_CLOCK_REAL] = "real",
	[ETW_CLOCK_CYCLES] = "cycles",
};

const char *etw_clock_name(unsigned int clock)
{
	return NAME_OF(clocks, clock);
}

int etw_clock_parse(const char *text)
{
	int i;

	for (i = ETW_CLOCK_MONOTONIC; i <= ETW_CLOCK_CYCLES; i++)
		if (!strcasecmp(text, clocks[i]))
			return i;
	return etw_error(-EINVAL, "\"%s\" is not a clock: use monotonic, boot, real or cycles", text);
}

const char *etw_level_name(unsigned int level)
{
	static const char *const names[] = { "always", "critical", "error", "warning", "info", "verbose" };

	return level < sizeof(names) / sizeof(names[0]) ? names[level] : NULL;
}

int etw_level_parse(const char *text)
{
	static const struct {
		const char *name;
		int level;
	} names[] = {
		{ "always", 0 }, { "all", 0 }, { "critical", 1 }, { "crit", 1 }, { "error", 2 }, { "err", 2 },
		{ "warning", 3 }, { "warn", 3 }, { "info", 4 }, { "information", 4 }, { "verbose", 5 },
	};
	unsigned long n;
	size_t i;
	char *end;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(text, names[i].name))
			return names[i].level;
	n = strtoul(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || n > 255)
		return etw_error(-EINVAL,
				 "\"%s\" is not a level: use critical, error, warning, info, verbose or 0 to 255",
				 text);
	return n;
}

const char *etw_type_name(unsigned int type)
{
	static const char *const names[ETW_NR_TYPES] = {
		[ETW_TYPE_U8] = "u8",	      [ETW_TYPE_U16] = "u16",	  [ETW_TYPE_U32] = "u32",
		[ETW_TYPE_U64] = "u64",	      [ETW_TYPE_S8] = "s8",	  [ETW_TYPE_S16] = "s16",
		[ETW_TYPE_S32] = "s32",	      [ETW_TYPE_S64] = "s64",	  [ETW_TYPE_POINTER] = "pointer",
		[ETW_TYPE_F32] = "f32",	      [ETW_TYPE_F64] = "f64",	  [ETW_TYPE_BOOL] = "bool",
		[ETW_TYPE_CHARS] = "chars",   [ETW_TYPE_STRING] = "string", [ETW_TYPE_BINARY] = "binary",
		[ETW_TYPE_GUID] = "guid",     [ETW_TYPE_IPV4] = "ipv4",	  [ETW_TYPE_IPV6] = "ipv6",
		[ETW_TYPE_MAC] = "mac",
	};

	return NAME_OF(names, type);
}

const char *etw_format_name(unsigned int format)
{
	static const char *const names[ETW_NR_FORMATS] = {
		[ETW_FORMAT_DEFAULT] = "default", [ETW_FORMAT_HEX] = "hex",	[ETW_FORMAT_ERRNO] = "errno",
		[ETW_FORMAT_PID] = "pid",	  [ETW_FORMAT_TIME] = "time",	[ETW_FORMAT_OCTAL] = "octal",
		[ETW_FORMAT_DEV] = "dev",
	};

	return NAME_OF(names, format);
}
