/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many bytes a value takes, for the naive models of the suites: written from the ABI header alone, so it must not call the
 * code that they test.
 */
#ifndef ETW_KUNIT_WIDTH_H
#define ETW_KUNIT_WIDTH_H

#include <linux/etw.h>
#include <linux/types.h>

/* Of one element, or one byte of what is counted in bytes; 0 of strings. */
static inline u32 width(u8 type)
{
	switch (type) {
	case ETW_TYPE_U8:
	case ETW_TYPE_S8:
	case ETW_TYPE_BOOL:
	case ETW_TYPE_CHARS:
	case ETW_TYPE_BINARY:
		return 1;
	case ETW_TYPE_U16:
	case ETW_TYPE_S16:
		return 2;
	case ETW_TYPE_U32:
	case ETW_TYPE_S32:
	case ETW_TYPE_F32:
	case ETW_TYPE_IPV4:
		return 4;
	case ETW_TYPE_MAC:
		return 6;
	case ETW_TYPE_U64:
	case ETW_TYPE_S64:
	case ETW_TYPE_F64:
	case ETW_TYPE_POINTER:
		return 8;
	case ETW_TYPE_GUID:
	case ETW_TYPE_IPV6:
		return 16;
	}
	return 0;
}

#endif
