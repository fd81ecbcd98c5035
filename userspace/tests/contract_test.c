// SPDX-License-Identifier: GPL-2.0-only
/* The example of the trace format's contract: metadata and bytes must come out of the library bit for bit. */
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "metadata.h"
#include "synth.h"
#include "tap.h"

static const char chan_0[] =
	"c11ffcc1" "8a6f0c5e2b1d4e7a9c3f5d0e1b2a3c4d" "00000000"
	"e803000000000000" "2823000000000000" "b005000000000000" "c005000000000000"
	"0000000000000000" "0000000000000000" "00000000"
	"ffff" "00000000" "d007000000000000" "00000000" "00000000"
	"737761707065722f3000000000000000" "00000000" "14000000" "0000000000000000"
	"61000000000000000000000000000000" "07000000" "14000000" "00"
	"0100" "b80b0000" "07000000" "07000000"
	"05000000" "686900" "02000000" "01ff"
	"0000";
static const char chan_1[] =
	"c11ffcc1" "8a6f0c5e2b1d4e7a9c3f5d0e1b2a3c4d" "00000000"
	"e803000000000000" "2823000000000000" "6002000000000000" "8002000000000000"
	"0000000000000000" "0000000000000000" "01000000"
	"00000000";

static void check_file(const char *dir, const char *name, const char *hex)
{
	char *path = etw_path(dir, name), *bytes = NULL, text[1024] = "";
	size_t len = 0, i;

	if (!etw_read_file(path, &bytes, &len))
		for (i = 0; i < len && i < 500; i++)
			sprintf(text + 2 * i, "%02x", (unsigned char)bytes[i]);
	if (!ok(!strcmp(text, hex), "%s is bit for bit that of the contract", name))
		printf("# want %s\n# have %s\n", hex, text);
	free(bytes);
	free(path);
}

int main(void)
{
	static const struct metadata_env env[] = { { "etw_version", "1.0" } };
	struct output_options options = { .nr_cpus = 2 };
	struct etw_classes *table = synth_table();
	const char *dir = synth_dir();
	char *want, *have = NULL;
	static struct synth_packet p;
	struct output *output;
	struct facts facts;
	size_t want_len, have_len, i;
	FILE *out;

	synth_facts(&facts);
	if (etw_read_file(TEST_DATA "/contract.metadata", &want, &want_len))
		return 1;
	out = open_memstream(&have, &have_len);
	etw_metadata_head(out, &facts, env, 1);
	etw_metadata_event(out, etw_classes_get(table, SYNTH_SWITCH), 0);
	etw_metadata_event(out, etw_classes_get(table, SYNTH_STARTED), 1);
	fclose(out);
	for (i = 0; i < want_len && i < have_len && want[i] == have[i]; i++)
		;
	if (!ok(want_len == have_len && i == want_len, "the metadata is bit for bit that of the contract"))
		printf("# differs at %zu of %zu: \"%.40s\" / \"%.40s\"\n", i, want_len, want + i, have + i);
	free(want);
	free(have);

	if (etw_output_create(dir, &facts, &options, &output)) {
		ok(false, "%s", etw_last_error());
		return tap_done();
	}
	ok(etw_output_classes(output, table, 2) == 0 && !etw_output_cpu(output, 0) && !etw_output_cpu(output, 1),
	   "classes, CPUs");
	synth_begin(&p, 0, 1000, 0, 0);
	synth_record(&p, SYNTH_SWITCH, 2000, 0, 0, synth_switch, sizeof(synth_switch), false);
	synth_record(&p, SYNTH_STARTED, 3000, 7, 7, synth_started, sizeof(synth_started), false);
	synth_end(&p, 9000);
	ok(!etw_output_packet(output, 0, p.bytes, p.len, p.records, 0), "packet");
	ok(!etw_output_finish(output, 9000, NULL, 0), "finish");
	etw_output_free(output);
	check_file(dir, "kernel/chan_0", chan_0);
	check_file(dir, "kernel/chan_1", chan_1);
	etw_classes_free(table);
	synth_clean();
	return tap_done();
}
