# SPDX-License-Identifier: GPL-2.0-only
# Damaged traces: dump names file and offset, shows what can be shown, and exits with 5; repair makes them whole. Needs no module.

NAME cut_in_a_packet
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 5000 t/kernel/chan_0
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; etwctl dump t >again; echo "again $?"; cmp out again && echo same
EXPECT t/kernel/chan_0: offset 4352: the file is cut off here: it ends 648 bytes into a packet of 1216
EXPECT ^status 5$
EXPECT ^249$
EXPECT ^again 0$
EXPECT ^same$

NAME cut_in_a_packet_header
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 8330 t/kernel/chan_0
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; etwctl dump t >again; echo "again $?"; cmp out again && echo same
EXPECT t/kernel/chan_0: offset 8320: the file ends inside a packet's header
EXPECT ^status 5$
EXPECT ^292$
EXPECT ^again 0$
EXPECT ^same$

NAME cut_as_json
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 5000 t/kernel/chan_0
RUN etwctl dump --json t
EXPECT ^\{"damage":\{"trace":"t","file":"t/kernel/chan_0","offset":4352,"bytes":648,"what":"the file is cut off here.*"\}\}$
EXPECT ^\{"time":
RETURN_CODE 5

NAME summary_of_a_cut_packet
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 5000 t/kernel/chan_0
RUN etwctl summary t; echo "status $?"; etwctl summary --json t
EXPECT t/kernel/chan_0: offset 4352: the file is cut off here: it ends 648 bytes into a packet of 1216
EXPECT ^249 events, 
EXPECT ^status 5$
EXPECT "damage":\[\{"trace":0,"file":"t/kernel/chan_0","offset":4352,"bytes":648,"what":"the file is cut off here
RETURN_CODE 5

NAME flipped_magic
WHERE host
RUN cp -r $DATA/traces/small t; printf '\0' | dd of=t/kernel/chan_0 bs=1 seek=8320 conv=notrunc 2>/dev/null
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/kernel/chan_0: offset 8320: no packet begins here
EXPECT packets are missing in 1 place
EXPECT ^status 5$
EXPECT ^414$

NAME flipped_uuid
WHERE host
RUN cp -r $DATA/traces/small t; printf '\0' | dd of=t/kernel/chan_0 bs=1 seek=8324 conv=notrunc 2>/dev/null
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/kernel/chan_0: offset 8320: the packet belongs to another trace
EXPECT ^status 5$
EXPECT ^414$

NAME flipped_packet_size
WHERE host
RUN cp -r $DATA/traces/small t; printf '\377\377\377\377\377\377\377\377' | dd of=t/kernel/chan_0 bs=1 seek=4400 conv=notrunc 2>/dev/null
RUN etwctl dump t >out; echo "status $?"; etwctl repair t >/dev/null; etwctl dump t >again; cmp out again && echo same
EXPECT t/kernel/chan_0: offset 4352
EXPECT ^status 5$
EXPECT ^same$

NAME missing_stream
WHERE host
RUN cp -r $DATA/traces/small t; rm t/kernel/chan_1
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT kernel/chan_1: offset 0: the stream of CPU 1 is missing
EXPECT ^status 5$
EXPECT ^219$

NAME missing_metadata
WHERE host
RUN cp -r $DATA/traces/small t; rm t/kernel/metadata
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; cmp t/kernel/metadata $DATA/traces/small/kernel/metadata && echo same
EXPECT t/kernel/metadata: offset 0: the metadata is missing
EXPECT ^status 5$
EXPECT ^418$
EXPECT ^same$

NAME cut_metadata
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 1000 t/kernel/metadata
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; cmp t/kernel/metadata $DATA/traces/small/kernel/metadata && echo same
EXPECT t/kernel/metadata: offset 1000: the metadata is cut off here
EXPECT ^status 5$
EXPECT ^418$
EXPECT ^same$

NAME missing_schema
WHERE host
RUN cp -r $DATA/traces/small t; rm t/schema
RUN etwctl dump t
EXPECT t/schema is missing: without it the events cannot be decoded here
RETURN_CODE 5

NAME cut_schema
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 2000 t/schema
RUN etwctl dump t
EXPECT t/schema: offset 1920: schema entry: 240 bytes long, and cut off after 80
RETURN_CODE 5

NAME missing_facts
WHERE host
RUN cp -r $DATA/traces/small t; rm t/session.json
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; etwctl dump t >again; echo "again $?"; cmp out again && echo same
EXPECT t/session.json: offset 0: the facts of the trace are missing
EXPECT ^status 5$
EXPECT ^418$
EXPECT ^again 0$
EXPECT ^same$

NAME damaged_facts
WHERE host
RUN cp -r $DATA/traces/small t; echo '{' >t/session.json
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/session.json: offset 0: the facts of the trace are damaged
EXPECT ^status 5$
EXPECT ^418$

NAME foreign_file
WHERE host
RUN cp -r $DATA/traces/small t; echo hello >t/kernel/notes.txt
RUN etwctl dump t >out; echo "status $?"; wc -l <out; etwctl repair t; ls t/kernel
EXPECT t/kernel/notes.txt: offset 0: this does not belong to the trace
EXPECT ^status 5$
EXPECT ^418$
EXPECT_NOT ^notes.txt$

NAME foreign_stream
WHERE host
RUN cp -r $DATA/traces/small t; cp $DATA/traces/second/kernel/chan_0 t/kernel/chan_0
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/kernel/chan_0: offset 0: the packet belongs to another trace
EXPECT ^status 5$
EXPECT ^199$

NAME garbage_stream
WHERE host
RUN cp -r $DATA/traces/small t; head -c 5000 /dev/urandom >t/kernel/chan_0
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/kernel/chan_0: offset 0: no packet begins here
EXPECT ^status 5$
EXPECT ^199$

NAME empty_stream
WHERE host
RUN cp -r $DATA/traces/small t; : >t/kernel/chan_0
RUN etwctl dump t >out; echo "status $?"; wc -l <out
EXPECT t/kernel/chan_0: offset 0: the stream holds no packet
EXPECT ^status 5$
EXPECT ^199$

NAME swapped_streams
WHERE host
RUN cp -r $DATA/traces/small t; mv t/kernel/chan_0 x; mv t/kernel/chan_1 t/kernel/chan_0; mv x t/kernel/chan_1
RUN etwctl dump t >out; echo "status $?"
EXPECT t/kernel/chan_0: offset 0: the packet says CPU 1, the file is that of CPU 0
EXPECT ^status 5$

# Whatever is in the file, the reader comes to an end with a documented status.
NAME every_byte_of_a_packet_flipped
WHERE host
TIMEOUT 120
RUN cp -r $DATA/traces/small t; i=0; while [ $i -lt 160 ]; do cp $DATA/traces/small/kernel/chan_0 t/kernel/chan_0
RUN printf '\377' | dd of=t/kernel/chan_0 bs=1 seek=$((4352 + i)) conv=notrunc 2>/dev/null; etwctl dump t >/dev/null 2>&1; s=$?; [ $s = 0 ] || [ $s = 5 ] || echo "byte $i: status $s"; i=$((i + 1)); done
EXPECT_NOT status

NAME every_length
WHERE host
TIMEOUT 120
RUN i=0; while [ $i -le 4352 ]; do rm -rf t; cp -r $DATA/traces/small t; truncate -s $i t/kernel/chan_0; etwctl dump t >/dev/null 2>&1; s=$?; [ $s = 5 ] || echo "length $i: status $s"; i=$((i + 97)); done
EXPECT_NOT status

NAME every_length_of_the_schema
WHERE host
TIMEOUT 120
RUN i=0; while [ $i -lt 5400 ]; do rm -rf t; cp -r $DATA/traces/small t; truncate -s $i t/schema; etwctl dump t >/dev/null 2>&1; s=$?; [ $s = 5 ] || echo "length $i: status $s"; i=$((i + 97)); done
EXPECT_NOT status

NAME repair_says_what_as_json
WHERE host
RUN cp -r $DATA/traces/small t; truncate -s 5000 t/kernel/chan_0; etwctl repair --json t
EXPECT ^\{"repair":\{"file":"t/kernel/chan_0","offset":4352,
