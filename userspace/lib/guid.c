// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* GUIDs as 16 bytes in text order: text to bytes and back. Knows nothing else. */
#include <errno.h>
#include <string.h>

#include <etw/etw.h>

#include "error.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int etw_guid_parse(const char *text, __u8 guid[16])
{
	const char *p = text;
	int braces = *p == '{';
	__u8 out[16];
	int i;

	p += braces;
	for (i = 0; i < 16; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *p++ != '-')
			goto bad;
		high = hex_digit(p[0]);
		low = high < 0 ? -1 : hex_digit(p[1]);
		if (low < 0)
			goto bad;
		out[i] = high << 4 | low;
		p += 2;
	}
	if ((braces && *p++ != '}') || *p)
		goto bad;
	memcpy(guid, out, 16);
	return 0;
bad:
	return etw_error(-EINVAL, "\"%s\" is not a GUID: give it as b3864c38-4273-58c5-545b-8b3608343471", text);
}

void etw_guid_format(const __u8 guid[16], char text[ETW_GUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*text++ = '-';
		*text++ = digits[guid[i] >> 4];
		*text++ = digits[guid[i] & 15];
	}
	*text = 0;
}
