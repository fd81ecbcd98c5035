// SPDX-License-Identifier: GPL-2.0-only
/* GUIDs: the public vectors of ETW's name hash, text forms. */
#include <errno.h>
#include <string.h>

#include <etw/etw.h>

#include "tap.h"

int main(void)
{
	static const struct {
		const char *name;
		const char *guid;
	} vectors[] = {
		{ "MyProvider", "b3864c38-4273-58c5-545b-8b3608343471" },
		{ "myprovider", "b3864c38-4273-58c5-545b-8b3608343471" },
		{ "MYPROVIDER", "b3864c38-4273-58c5-545b-8b3608343471" },
		{ "Microsoft-Diagnostics-DiagnosticSource", "adb401e1-5296-51f8-c125-5fda75826144" },
		{ "Microsoft-Extensions-Logging", "3ac73b97-af73-50e9-0822-5da4367920d0" },
		{ "Calculator", "5534a855-95dc-5099-33e3-5b8e79fed6fa" },
	};
	static const char *const bad[] = {
		"", "b3864c38", "b3864c38-4273-58c5-545b-8b360834347", "b3864c38-4273-58c5-545b-8b36083434711",
		"b3864c38-4273-58c5-545b-8b360834347g", "b3864c3804273-58c5-545b-8b3608343471",
		"{b3864c38-4273-58c5-545b-8b3608343471", "b3864c38-4273-58c5-545b-8b3608343471}",
	};
	char text[ETW_GUID_TEXT_SIZE];
	__u8 guid[16], again[16];
	size_t i;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		memset(text, 0, sizeof(text));
		if (!etw_guid_from_name(vectors[i].name, guid))
			etw_guid_format(guid, text);
		ok(!strcmp(text, vectors[i].guid), "hash of %s is %s", vectors[i].name, text);
	}
	ok(etw_guid_from_name("", guid) == -EINVAL, "an empty name has no hash");
	ok(etw_guid_from_name("Gr\xc3\xbc\xc3\x9f" "e", guid) == -EINVAL, "a name outside ASCII has no hash");
	ok(!etw_guid_parse("{B3864C38-4273-58C5-545B-8B3608343471}", again) &&
		   !etw_guid_parse(vectors[0].guid, guid) && !memcmp(guid, again, 16) && guid[0] == 0xb3 &&
		   guid[15] == 0x71,
	   "braces and case do not matter; bytes are in text order");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(guid, 0xaa, 16);
		memset(again, 0xaa, 16);
		ok(etw_guid_parse(bad[i], guid) == -EINVAL && !memcmp(guid, again, 16), "\"%s\" is refused", bad[i]);
	}
	ok(etw_name_valid("a") && etw_name_valid("Linux-Kernel_a.9") && !etw_name_valid("") && !etw_name_valid("9a") &&
		   !etw_name_valid("a b") && !etw_name_valid("a:") &&
		   !etw_name_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	   "names");
	ok(etw_level_parse("warn") == 3 && etw_level_parse("255") == 255 && etw_level_parse("256") == -EINVAL &&
		   etw_level_parse("-1") == -EINVAL && etw_level_parse("") == -EINVAL,
	   "levels");
	return tap_done();
}
