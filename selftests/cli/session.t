# SPDX-License-Identifier: GPL-2.0-only
# Life of sessions: record, start, stop, status, list, and what goes wrong with them.

NAME record_command
RUN etwctl record -o trace -- sh -c 'ls / >/dev/null'
RUN [ -s trace/kernel/metadata ] && [ -s trace/kernel/chan_0 ]
EXPECT session record-[0-9]+ takes [0-9.]+ MiB of memory: [0-9]+ CPUs?, each 8\+1 sub-buffers of 128 KiB
EXPECT [0-9,]+ events, [0-9.]+ [KM]iB in [0-9.]+ s, 0 lost, in trace \(the command ended\)

NAME record_default_directory
RUN etwctl record -q true
RUN ls -d etw-*/kernel
EXPECT ^etw-[0-9]{8}-[0-9]{6}/kernel$

NAME record_is_quiet
RUN etwctl record -q -o trace true 2>&1 | wc -c
EXPECT ^0$

NAME record_json_summary
RUN etwctl record --json -q -o trace true
EXPECT ^\{"session":"record-[0-9]+","directory":"/.*/trace","end":"the command ended","milliseconds":[0-9]+,"events":[0-9]+,"bytes":[0-9]+,.*"lost":0,.*"status":0\}$

NAME record_exit_status_is_ours
RUN etwctl record -q -o trace -- sh -c 'exit 7'

NAME record_exit_status_is_passed_on
RUN etwctl record -q --exit-status -o trace -- sh -c 'exit 7'
RETURN_CODE 7

NAME record_exit_status_of_a_signal
RUN etwctl record -q --exit-status -o trace -- sh -c 'kill -9 $$'
RETURN_CODE 137

NAME record_options_of_the_command_are_its_own
RUN etwctl record -q -o trace sh -c 'echo "$0 $1"' --json -o
EXPECT ^--json -o$

NAME record_command_cannot_run
RUN etwctl record -o trace -- ./no-such-command
EXPECT cannot run ./no-such-command: No such file or directory
RETURN_CODE 1

NAME record_duration
RUN etwctl record -o trace -d 1
EXPECT in 1\.[0-9] s, 0 lost, in trace \(the time is over\)

NAME record_sigint_ends_normally
RUN etwctl record --name rec -o trace & pid=$!
RUN until etwctl status rec >/dev/null 2>&1; do sleep 0.1; done
RUN kill -INT $pid; wait $pid
EXPECT [0-9,]+ events, .*, in trace \(a signal asked for the end\)

NAME record_sigterm_reaches_the_command
RUN etwctl record --exit-status -o trace -- sh -c 'trap "echo got it; exit 3" TERM; echo ready >up; while :; do sleep 0.1; done' & pid=$!
RUN until [ -s up ]; do sleep 0.1; done
RUN kill -TERM $pid; wait $pid
EXPECT ^got it$
EXPECT a signal asked for the end
RETURN_CODE 3

NAME record_refuses_a_full_directory
RUN mkdir trace; echo x >trace/x
RUN etwctl record -o trace true
EXPECT trace
RETURN_CODE 1

NAME record_refuses_a_file
RUN echo x >trace
RUN etwctl record -o trace true
EXPECT trace is there and not a directory
RETURN_CODE 1

NAME record_takes_an_empty_directory
RUN mkdir trace
RUN etwctl record -q -o trace true && ls trace/kernel
EXPECT ^metadata$

NAME record_that_does_not_start_leaves_nothing
RUN etwctl record -o trace --pid 99999999 true
RUN ls; etwctl list sessions --names
EXPECT 99999999
EXPECT_NOT ^trace$
EXPECT_NOT ^record-

NAME record_always_has_etw
RUN etwctl record -q --name rec -p sched -o trace -- etwctl status rec
EXPECT Linux-Kernel-Etw
EXPECT Linux-Kernel-Sched
EXPECT_NOT Linux-Kernel-Block

NAME record_no_etw
RUN etwctl record -q --name rec --no-etw -p sched -o trace -- etwctl status rec
EXPECT_NOT Linux-Kernel-Etw

NAME record_settings_reach_the_session
RUN etwctl record --name rec --subbuf-size 16K --subbufs 4 --flush-ms 250 --clock boot -o trace -- etwctl status rec --json
EXPECT each 4\+1 sub-buffers of 16 KiB
EXPECT "clock":"boot","subbuf_size":16384,"subbufs":4,"flush_ms":250,

NAME record_flush_never_and_overwrite
RUN etwctl record -q --name rec --overwrite --flush-ms never -o trace -- etwctl status rec --json
EXPECT "mode":"overwrite",.*"flush_ms":null,

NAME record_default_profile
RUN etwctl record -q --name rec -o trace -- etwctl status rec
EXPECT Linux-Kernel-Process
EXPECT Linux-Kernel-Sched
EXPECT Linux-Kernel-Block
EXPECT Linux-Kernel-Fault

NAME record_profile
RUN etwctl record -q --name rec --profile cpu -o trace -- etwctl status rec
EXPECT Linux-Kernel-Sched
EXPECT_NOT Linux-Kernel-Fault

NAME record_specs_with_names_and_pids
RUN etwctl record -q --name rec -p sched:info:switch+wakeup -p block --pid $$ -o trace -- etwctl status rec
EXPECT Linux-Kernel-Sched +4 .* 1 pids only 2 events
EXPECT Linux-Kernel-Block +every .* 1 pids

NAME spec_keywords_make_a_mask
RUN etwctl record -q --name rec -p sched::switch+migrate -o trace -- etwctl status rec --json
EXPECT "provider":"Linux-Kernel-Sched".*"any":5,"all":0,"pids":0,"event_mode":"all"

NAME spec_numbers_and_all
RUN etwctl record -q --name rec -p sched:5:0x7:0x1 -o trace -- etwctl status rec --json
EXPECT "provider":"Linux-Kernel-Sched".*"level":5,"any":7,"all":1,

NAME spec_unknown_word
RUN etwctl record -p sched:info:swotch -o trace true
EXPECT 'swotch' is no keyword and no event of sched; its keywords are switch, wake, migrate
RETURN_CODE 1

NAME spec_ambiguous_event
RUN etwctl record -p block:info:complete -o trace true
EXPECT 'complete' is the end of several events' names
RETURN_CODE 1

NAME spec_same_provider_by_two_names
RUN etwctl record -p sched -p Linux-Kernel-Sched -o trace true
EXPECT are the same provider
RETURN_CODE 2

NAME provider_not_there_is_remembered
RUN etwctl record -p Some-Provider:info:0x3 -o trace true
EXPECT Some-Provider:info:0x3 is not registered; it will be recorded when it is

NAME provider_not_there_has_no_keywords
RUN etwctl record -p Some-Provider:info:words -o trace true
EXPECT Some-Provider is not registered, so only numbers can be keywords
RETURN_CODE 1

NAME event_list_in
RUN etwctl record -q --name rec --event sched_switch,fork -o trace -- etwctl status rec
EXPECT Linux-Kernel-Sched .* only 1 events
EXPECT Linux-Kernel-Process .* only 1 events
EXPECT_NOT Linux-Kernel-Fault

NAME event_list_out
RUN etwctl record -q --name rec --event '!sched_switch' -o trace -- etwctl status rec
EXPECT Linux-Kernel-Sched .* without 1 events
EXPECT Linux-Kernel-Fault

NAME event_list_unknown
RUN etwctl record --event sched_swotch -o trace true
EXPECT none of the providers chosen has an event 'sched_swotch'
RETURN_CODE 1

NAME memory_limit
RUN etwctl record --subbuf-size 4M --subbufs 4096 -o trace true
EXPECT takes [0-9.]+ GiB of memory
RETURN_CODE 1

NAME start_status_stop
RUN etwctl start mine -o trace || exit 99
RUN etwctl list sessions --names
RUN etwctl status mine
RUN etwctl stop mine
RUN etwctl list sessions --names; ls $ETWCTL_RUN
EXPECT ^etwctl start: mine runs, into trace$
EXPECT ^mine$
EXPECT written into /.*/trace by process
EXPECT mine: [0-9,]+ events, .*, 0 lost, in /.*/trace \(the session was stopped\)
EXPECT_NOT mine.json

NAME start_returns_when_the_writer_holds_the_relays
RUN etwctl start mine -q -o trace && etwctl status mine --json; etwctl stop mine
EXPECT "reader_pid":[1-9]

NAME start_is_a_daemon
RUN exec 7>kept; etwctl start mine -q -o trace
RUN pid=$(etwctl status mine --json | sed 's/.*"reader_pid":\([0-9]*\).*/\1/')
RUN set -- $(sed 's/.*) //' /proc/$pid/stat); echo "parent $2 session $4 terminal $5 pid $pid"
RUN for f in fd/0 fd/1 fd/2 cwd; do echo "$f $(readlink /proc/$pid/$f)"; done; ls -l /proc/$pid/fd | grep -c kept
RUN etwctl stop mine
EXPECT ^parent 1 session [1-9][0-9]* terminal 0 
EXPECT ^fd/0 /dev/null$
EXPECT ^fd/1 /dev/null$
EXPECT ^fd/2 /dev/null$
EXPECT ^cwd /$
EXPECT ^0$

NAME start_twice
RUN etwctl start mine -q -o trace && etwctl start mine -o other; rc=$?
RUN ls -d other; etwctl stop mine; exit $rc
EXPECT mine
EXPECT_NOT ^other$
RETURN_CODE 1

NAME start_bad_directory
RUN etwctl start mine -o /no/such/place/trace; rc=$?; etwctl list sessions --names; exit $rc
EXPECT /no/such/place
EXPECT_NOT ^mine$
RETURN_CODE 1

NAME start_json
RUN etwctl start mine -q --json -o trace; etwctl stop mine --json
EXPECT ^\{"session":"mine","directory":"/.*/trace","status":0\}$
EXPECT ^\{"session":"mine","directory":"/.*/trace","end":"the session was stopped","events":[0-9]+,"bytes":[0-9]+,"lost":0,"status":0\}$

NAME stop_has_everything_on_disk
RUN etwctl start mine -q --flush-ms never -o trace
RUN ls / >/dev/null; etwctl stop mine
RUN etwctl dump trace | grep -q session_stop && ls $ETWCTL_RUN | wc -l
EXPECT ^0$

NAME stop_frees_the_name
RUN for i in 1 2 3 4 5 6 7 8; do etwctl start mine -q --subbuf-size 1M -o trace$i && etwctl stop mine; etwctl list sessions --names; rm -rf trace$i; done
EXPECT_NOT exists
EXPECT_NOT ^mine$

NAME stop_unknown
RUN etwctl stop nobody
EXPECT there is no session 'nobody'; there is none now
RETURN_CODE 1

NAME stop_unknown_names_others
RUN etwctl start mine -q -o trace; etwctl stop nobody; rc=$?; etwctl stop mine; exit $rc
EXPECT there is no session 'nobody'; there are: mine
RETURN_CODE 1

NAME writer_death_ends_the_session
RUN etwctl start mine -q -o trace
RUN pid=$(etwctl status mine --json | sed 's/.*"reader_pid":\([0-9]*\).*/\1/')
RUN kill -9 $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done
RUN etwctl list sessions --names
RUN etwctl status
RUN etwctl status mine
EXPECT ^mine: DIED: its writer \(process [0-9]+, started .*\) was killed or crashed
EXPECT_NOT ^mine$
RETURN_CODE 5

NAME stop_after_writer_death
RUN etwctl start mine -q -o trace
RUN pid=$(etwctl status mine --json | sed 's/.*"reader_pid":\([0-9]*\).*/\1/')
RUN kill -9 $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done
RUN etwctl stop mine; echo "status $?"; etwctl stop mine
EXPECT mine: its writer \(process [0-9]+\) died and the session with it; /.*/trace holds what was written
EXPECT ^status 5$
EXPECT there is no session 'mine'
RETURN_CODE 1

NAME start_after_writer_death
RUN etwctl start mine -q -o trace
RUN pid=$(etwctl status mine --json | sed 's/.*"reader_pid":\([0-9]*\).*/\1/')
RUN kill -9 $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done
RUN etwctl start mine -o again && etwctl status mine --json && etwctl stop mine
EXPECT mine runs, into again
EXPECT "state":"running"

NAME stale_state_file_is_no_writer
RUN mkdir -p $ETWCTL_RUN; echo '{"name":"ghost","directory":"/nowhere","pid":1,"started":1}' >$ETWCTL_RUN/ghost.json
RUN etwctl status ghost --json
EXPECT ^\{"session":"ghost","state":"died","directory":"/nowhere","writer_pid":1\}$
RETURN_CODE 5

NAME garbage_state_file
RUN mkdir -p $ETWCTL_RUN; echo 'garbage' >$ETWCTL_RUN/ghost.json
RUN etwctl status; etwctl start ghost -q -o trace && etwctl stop ghost
EXPECT ghost: DIED
EXPECT ghost: [0-9,]+ events

NAME enable_disable
RUN etwctl start mine -q -p process -o trace
RUN etwctl enable mine sched:info:switch block && etwctl status mine
RUN etwctl disable mine sched && etwctl status mine | sed 's/^/after /'
RUN etwctl stop mine
EXPECT ^  Linux-Kernel-Sched +4 +0x1 
EXPECT ^after   Linux-Kernel-Sched .*disabled

NAME enable_pid_and_event
RUN etwctl start mine -q -p process -o trace
RUN etwctl enable mine sched --pid $$ --event sched_switch && etwctl status mine; etwctl stop mine
EXPECT Linux-Kernel-Sched .* 1 pids only 1 events

NAME enable_needs_provider
RUN etwctl start mine -q -p process -o trace; etwctl enable mine; rc=$?; etwctl stop mine; exit $rc
EXPECT which provider
RETURN_CODE 2

NAME disable_unknown
RUN etwctl start mine -q -p process -o trace; etwctl disable mine nonsense; rc=$?; etwctl stop mine; exit $rc
EXPECT 'nonsense' is not a provider, and not enabled in mine
RETURN_CODE 1

NAME update_flush
RUN etwctl start mine -q -p process -o trace
RUN etwctl update mine --flush-ms 77 && etwctl status mine --json; etwctl update mine --flush-ms never && etwctl status mine; etwctl stop mine
EXPECT "flush_ms":77,
EXPECT flush never

NAME update_needs_a_change
RUN etwctl update mine
EXPECT nothing to change
RETURN_CODE 2

NAME flush_delivers
RUN etwctl start mine -q --flush-ms never -o trace; ls / >/dev/null
RUN etwctl flush mine --json && sleep 0.5 && etwctl dump --limit 3 trace | grep -c cpu; etwctl stop mine
EXPECT ^\{"session":"mine","complete_up_to":[0-9]+\}$
EXPECT ^3$

NAME capture_state_repeats_the_rundown
RUN etwctl start mine -q -p process -o trace; etwctl capture-state mine && etwctl capture-state mine process; etwctl stop mine
RUN n=$(etwctl dump --event lttng_statedump_process_state --pid 1 trace | grep -c 'tid=1 '); [ $n -ge 3 ] && echo enough
EXPECT ^enough$

NAME capture_state_unknown
RUN etwctl start mine -q -p process -o trace; etwctl capture-state mine sched; rc=$?; etwctl stop mine; exit $rc
EXPECT [Ss]ched
RETURN_CODE 1

NAME flight_recorder
RUN etwctl start box -q --flight-recorder || exit 99
RUN ls / >/dev/null; etwctl snapshot box -o one; ls -R /bin >/dev/null; etwctl snapshot box -o two
RUN etwctl status box --json; etwctl stop box
RUN etwctl dump one | grep -c statedump_start; etwctl dump two >/dev/null && echo read
EXPECT [0-9,]+ events, .*, in one; box goes on
EXPECT "state":"running",.*"mode":"overwrite","persist":true
EXPECT what was not read is gone with it
EXPECT ^read$

# What a snapshot has read is gone from memory, so each rundown in a later one was asked for by it.
NAME snapshots_repeat_the_rundown
RUN etwctl start box -q --flight-recorder -p process || exit 99
RUN etwctl snapshot box -q -o one; etwctl snapshot box -q -o two; etwctl snapshot box -q --no-capture-state -o none; etwctl stop box
RUN for d in one two none; do echo "$d $(etwctl dump --event lttng_statedump_process_state $d | grep -c process_state)"; done
EXPECT ^one [1-9][0-9]*$
EXPECT ^two [1-9][0-9]*$
EXPECT ^none 0$

NAME flight_recorder_wraps
RUN etwctl start box -q --flight-recorder --subbuf-size 4K --subbufs 2
RUN i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done
RUN etwctl snapshot box -o one --json; etwctl stop box >/dev/null 2>&1
RUN etwctl dump one | tail -n 1
EXPECT ^\{"session":"box","directory":"one","events":[1-9][0-9]*,"bytes":[1-9][0-9]*,"packets":[1-9][0-9]*,"lost":0,"status":0\}$
EXPECT ^\[

NAME snapshot_needs_a_directory
RUN etwctl snapshot box
EXPECT -o DIR
RETURN_CODE 2

NAME snapshot_of_a_session_with_a_writer
RUN etwctl start mine -q -o trace; etwctl snapshot mine -o other; rc=$?; etwctl stop mine; exit $rc
EXPECT [Rr]eader|process
RETURN_CODE 1

NAME max_size_ends_the_recording
TIMEOUT 60
RUN etwctl record --max-size 64K --subbuf-size 4K -o trace -- sh -c 'i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done; echo the command went on'
RUN du -k trace/kernel | cut -f1 | while read k; do [ $k -lt 512 ] && echo small; done
EXPECT \(the trace has its maximum size\)
EXPECT ^the command went on$
EXPECT ^small$

NAME max_size_ends_a_background_session
TIMEOUT 60
RUN etwctl start mine -q --max-size 64K --subbuf-size 4K -o trace
RUN i=0; while etwctl list sessions --names | grep -q mine && [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done
RUN etwctl status mine; etwctl stop mine >/dev/null 2>&1; etwctl status mine
EXPECT mine: ended .*: the trace has its maximum size
EXPECT there is no session 'mine'
RETURN_CODE 1

NAME circular_keeps_the_newest
TIMEOUT 90
RUN etwctl record --max-size 128K --circular --subbuf-size 4K -o trace -- sh -c 'i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done; /bin/echo last'
RUN du -k trace/kernel | cut -f1 | while read k; do [ $k -lt 1024 ] && echo small; done
RUN etwctl dump trace | tail -n 1 | grep -c session_stop
EXPECT circular: the oldest [0-9,]+ events
EXPECT ^small$
EXPECT ^1$

NAME full_disk
TIMEOUT 60
RUN mkdir disk; mount -t tmpfs -o size=512k tmpfs disk || exit 99
RUN etwctl record --subbuf-size 4K -o disk/trace -- sh -c 'i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done; echo the command went on'; rc=$?
RUN etwctl dump disk/trace >dump.txt; echo "dump $?"; wc -l <dump.txt
RUN umount disk; exit $rc
EXPECT disk is full
EXPECT disk/trace holds what was written
EXPECT ^the command went on$
EXPECT ^dump [05]$
RETURN_CODE 1

NAME full_disk_in_the_background
TIMEOUT 60
RUN mkdir disk; mount -t tmpfs -o size=512k tmpfs disk || exit 99
RUN etwctl start mine -q --subbuf-size 4K -o disk/trace
RUN i=0; while etwctl list sessions --names | grep -q mine && [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done
RUN etwctl status mine; etwctl stop mine; rc=$?; umount disk; exit $rc
EXPECT mine: ended .*: .*disk is full
RETURN_CODE 1

NAME no_permission
RUN cp "$(command -v etwctl)" /tmp/etwctl-nobody
RUN su -s /bin/sh nobody -c '/tmp/etwctl-nobody status; echo "status $?"; /tmp/etwctl-nobody list sessions --json'; rc=$?; rm /tmp/etwctl-nobody; exit $rc
EXPECT CAP_PERFMON
EXPECT ^status 4$
EXPECT ^\{"error":".*CAP_PERFMON.*","verb":"list","status":4\}$
RETURN_CODE 4

NAME only_what_is_ones_own_is_listed
RUN cp "$(command -v etwctl)" /tmp/etwctl-nobody
RUN su -s /bin/sh nobody -c '/tmp/etwctl-nobody list providers; echo "status $?"; /tmp/etwctl-nobody list events sched'; rc=$?; rm /tmp/etwctl-nobody; exit $rc
EXPECT only your own are shown; the others with CAP_PERFMON
EXPECT ^status 0$
EXPECT 'sched' is not a provider of yours; others are shown with CAP_PERFMON
EXPECT_NOT Linux-Kernel
RETURN_CODE 4

NAME other_device_in_its_place
RUN mount --bind /dev/null /dev/etw || exit 99
RUN etwctl status; rc=$?; etwctl version; umount /dev/etw; exit $rc
EXPECT /dev/etw does not answer as the etw module does
EXPECT ^etwctl [0-9.]+, ABI 1
RETURN_CODE 3

# The same program, but for the number in its header.
NAME module_of_another_abi
RUN /selftests/etwctl-other-abi status
EXPECT the loaded module has ABI 1 and record format 1, this program needs 99 and 1: use a module and a program of one build
RETURN_CODE 3

NAME device_missing
RUN mv /dev/etw /dev/etw-away
RUN etwctl record -o trace true; rc=$?; mv /dev/etw-away /dev/etw; exit $rc
EXPECT insmod|modprobe|load
RETURN_CODE 3

NAME terminal_shows_progress
RUN /selftests/pty etwctl record -d 2 -o trace | tr '\r' '\n'
EXPECT ^[0-9.]+ s, [0-9,]+ events, [0-9.]+ [KM]?i?B?(bytes)?, 0 lost
EXPECT [0-9,]+ events, .*, 0 lost, in trace \(the time is over\)

NAME terminal_ctrl_c_ends_the_recording
RUN /selftests/pty -c 2000 etwctl record -o trace | tr '\r' '\n'
EXPECT Ctrl-C ends it
EXPECT [0-9,]+ events, .*, in trace \(a signal asked for the end\)

# Both get the signal: the command may be gone before etwctl looks at its own.
NAME terminal_ctrl_c_reaches_the_command_once
RUN /selftests/pty -c 3000 etwctl record --exit-status -o trace sh -c 'trap "echo caught; exit 9" INT; while :; do sleep 0.1; done' >out; echo "status $?"
RUN grep -c caught out; cat out
EXPECT ^status 9$
EXPECT ^1$
EXPECT in trace \((a signal asked for the end|the command ended)\)

NAME circular_too_small
RUN etwctl record --circular --max-size 4K -o trace true
EXPECT at least four sub-buffers for each CPU
RETURN_CODE 1

NAME kernel_addresses
RUN etwctl record -q -p fault:info:kernel -o without ls >/dev/null; etwctl record -q --kernel-addresses -p fault:info:kernel -o with ls >/dev/null
RUN etwctl dump --event page_fault_kernel without | grep -c ' ip=0x0 '; etwctl dump --event page_fault_kernel with | grep -c ' ip=0xffff'
EXPECT ^[1-9][0-9]*$
EXPECT_NOT ^0$

NAME where_counts_what_it_rejects
RUN etwctl record -q --name rec -p process:info:task_rename --where 'newcomm ^= keep' -o trace -- sh -c 'for n in keep1 other keep2; do printf $n >/proc/$$/comm; done; etwctl status rec --json; etwctl status rec'
RUN etwctl dump --event task_rename trace
EXPECT "provider":"Linux-Kernel-Process".*"conditions":1,"any_condition":false,"written":[1-9][0-9]*,"filtered":[1-9]
EXPECT Linux-Kernel-Process .* only 1 events all of 1 conditions
EXPECT task_rename.*newcomm="keep1"
EXPECT task_rename.*newcomm="keep2"
EXPECT_NOT task_rename.*newcomm="(other|sh|etwctl)"

NAME where_any_is_enough
RUN etwctl record -q --name rec -p process:info:task_rename --where 'newcomm == "keep"' --where 'newcomm *= her' --where-any -o trace -- sh -c 'for n in keep other none; do printf $n >/proc/$$/comm; done; etwctl status rec'
RUN etwctl dump --event task_rename trace
EXPECT any of 2 conditions
EXPECT newcomm="keep"
EXPECT newcomm="other"
EXPECT_NOT newcomm="none"

NAME where_takes_names_of_values
RUN etwctl record -q --name rec -p sched:info:sched_switch --where 'prev_state == disk sleep' -o trace -- sh -c 'sync; sleep 0.2; etwctl status rec --json'
RUN etwctl dump --event sched_switch trace
EXPECT "provider":"Linux-Kernel-Sched".*"conditions":1,.*"filtered":[1-9]
EXPECT_NOT prev_state=(running|sleeping|idle)

NAME where_is_asked_of_one_provider
RUN etwctl record -q --name rec -p sched:info:sched_switch -p process:info:task_rename --where 'process/newcomm == keep' -o trace -- sh -c 'printf keep >/proc/$$/comm; sleep 0.1; etwctl status rec'
RUN etwctl dump trace
EXPECT Linux-Kernel-Process .* all of 1 conditions
EXPECT Linux-Kernel-Sched .* only 1 events $
EXPECT Sched/sched_switch
EXPECT newcomm="keep"

NAME where_leaves_out_who_has_no_such_field
RUN etwctl record --name rec -p sched -p process:info:task_rename --where 'newcomm == keep' -o trace -- etwctl status rec
EXPECT sched: none of its events has the field newcomm of --where, so nothing of it is recorded; .*'PROVIDER/newcomm \.\.\.'
EXPECT Linux-Kernel-Process
EXPECT_NOT Linux-Kernel-Sched

NAME where_no_such_field
RUN etwctl record -p process:info:task_rename --where 'nowcomm == keep' -o trace true
EXPECT --where 'nowcomm == keep': no event chosen has a field nowcomm; fields of process: tid, oldcomm, newcomm, oom_score_adj
RETURN_CODE 1

NAME where_no_such_provider
RUN etwctl record -p process --where 'block/dev == 5' -o trace true
EXPECT --where 'block/dev == 5': block is none of the providers chosen
RETURN_CODE 1

NAME where_no_such_name_of_a_value
RUN etwctl record -p block --where 'rwbs & wrote' -o trace true
EXPECT --where 'rwbs & wrote': 'wrote' is no value of rwbs; write a number or names joined by |: write, discard, read, .* \(event block_rq_insert of block\)
RETURN_CODE 1

NAME where_operator_does_not_suit
RUN etwctl record -p sched --where 'next_tid ^= 5' -o trace true
RUN etwctl record -p sched --where 'next_comm >= 5' -o trace true
EXPECT \^= is not for next_tid, a s32: == != < <= > >= & are \(event sched_switch of sched\)
EXPECT >= is not for next_comm, a chars: == != \^= \*= are
RETURN_CODE 1

NAME where_value_does_not_fit
RUN etwctl record -p sched --where 'preempt == 300' -o trace true
RUN etwctl record -p sched --where 'next_prio < -3000000000' -o trace true
RUN etwctl record -p sched --where 'next_tid == init' -o trace true
EXPECT '300' does not fit into preempt, a u8: 0 to 255
EXPECT '-3000000000' does not fit into next_prio, a s32: -2147483648 to 2147483647
EXPECT 'init' is no value of next_tid, a s32: write a number
RETURN_CODE 1

NAME where_of_who_is_not_there_goes_by_its_look
RUN etwctl record --name rec -p Some-Provider --where 'count >= 5' --where 'path ^= /tmp' --where 'id == b3864c38-4273-58c5-545b-8b3608343471' -o trace -- etwctl status rec
RUN etwctl record -p Some-Provider --where 'path >= /tmp' -o trace2 true
EXPECT Some-Provider .* not registered all of 3 conditions
EXPECT >= needs a number behind it, and '/tmp' is none
RETURN_CODE 1

NAME where_cannot_be_parsed
WHERE host
RUN etwctl record -p sched --where 'next_tid' -o trace true
RUN etwctl record -p sched --where '9x == 3' -o trace true
RUN etwctl record -p sched --where 'x ==' -o trace true
EXPECT --where 'next_tid' has no operator; write '\[PROVIDER/\]FIELD OP VALUE'
EXPECT --where '9x == 3': '9x' cannot be the name of a field
EXPECT --where 'x ==' has no value
RETURN_CODE 2

NAME where_too_many
WHERE host
RUN set --; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do set -- "$@" --where "x == $n"; done
RUN etwctl record -p sched "$@" -o trace true
EXPECT --where 'x == 17': more than the 16 conditions of one filter
RETURN_CODE 2

NAME where_any_without_where
RUN etwctl record -p sched --where-any -o trace true
EXPECT --where-any says that one --where is enough, and there is none
RETURN_CODE 2

NAME process_filter
RUN etwctl record -q --name rec -p sched:info:sched_switch --process /bin/sleep,a-name-that-is-too-long -o trace -- sh -c 'sleep 0.2; etwctl status rec'
RUN etwctl dump --event sched_switch trace
EXPECT Linux-Kernel-Sched .* only 1 events 2 process names
EXPECT prev_comm="sleep"
EXPECT_NOT prev_comm="(sh|etwctl|swapper)

NAME ids
RUN etwctl record -q --name rec -p sched -p process --id sched/1,sched/3-4 -o trace -- sh -c 'sleep 0.1; etwctl status rec'
RUN etwctl dump trace
EXPECT Linux-Kernel-Sched .* only 3 ids
EXPECT sched_switch
EXPECT_NOT sched_waking
EXPECT_NOT Linux-Kernel-Process

NAME ids_but_not_these
RUN etwctl record -q --name rec -p sched --id '!1' -o trace -- sh -c 'sleep 0.1; etwctl status rec --json'
RUN etwctl dump trace
EXPECT "id_mode":"out","ids":1,
EXPECT sched_waking
EXPECT_NOT sched_switch

NAME ids_are_listed
RUN etwctl list events sched
EXPECT ^Linux-Kernel-Sched:sched_switch  id 1, level 4 \(info\), keyword 0x
EXPECT ^Linux-Kernel-Sched:sched_waking  id [2-9]

NAME id_of_nobody
RUN etwctl record -p sched --id 777 -o trace true
EXPECT --id: none of the providers chosen has an event with the id '777'
RETURN_CODE 1

NAME uid_that_is_not_there
WHERE host
RUN etwctl record -p sched --uid no-such-user -o trace true
EXPECT --uid: there is no user 'no-such-user'
RETURN_CODE 2

NAME uid_of_the_kernel
RUN etwctl record -p sched --uid 0 -o trace true
EXPECT --uid: Linux-Kernel-Sched is the kernel's, which no user has registered
RETURN_CODE 1

NAME uid_chooses_whose_events
RUN cp "$(command -v etwctl)" /tmp/etwctl-of-nobody
RUN etwctl start rec --flight-recorder -p By-User --uid nobody; etwctl start all --flight-recorder -p By-User
RUN etwctl emit By-User Step whose=root; su -s /bin/sh nobody -c '/tmp/etwctl-of-nobody emit By-User Step whose=nobody'; etwctl emit By-User Step whose=root
RUN for s in rec all; do etwctl snapshot $s -q -o $s; etwctl stop $s; echo "of $s: $(etwctl dump $s | grep -c whose=)"; done; etwctl dump rec; rm /tmp/etwctl-of-nobody
EXPECT By-User is not registered by user [0-9]+; it will be
EXPECT By-User is not registered; it will be
EXPECT of rec: 1$
EXPECT of all: 3$
EXPECT By-User/Step .*whose="nobody"
EXPECT_NOT whose="root"

NAME uid_of_root
RUN cp "$(command -v etwctl)" /tmp/etwctl-of-nobody
RUN etwctl start rec --flight-recorder -p By-User --uid 0
RUN etwctl emit By-User Step whose=root; su -s /bin/sh nobody -c '/tmp/etwctl-of-nobody emit By-User Step whose=nobody'
RUN etwctl snapshot rec -q -o trace; etwctl stop rec; etwctl dump trace; rm /tmp/etwctl-of-nobody
EXPECT By-User/Step .*whose="root"
EXPECT_NOT whose="nobody"

NAME process_name_longer_than_a_task_has
RUN cp "$(command -v etwctl)" ./etwctl-with-a-long-name
RUN etwctl start rec --flight-recorder -p Long-Name --process etwctl-with-a-long-name
RUN ./etwctl-with-a-long-name emit Long-Name Step by=long; etwctl emit Long-Name Step by=short
RUN etwctl snapshot rec -q -o trace; etwctl stop rec; etwctl dump trace
EXPECT Long-Name/Step .*by="long"
EXPECT_NOT by="short"

NAME enable_replaces_filters
RUN etwctl start rec -p sched --where 'next_tid > 0' --process sh -o trace
RUN etwctl status rec; etwctl enable rec sched; etwctl status rec --json; etwctl stop rec
EXPECT Linux-Kernel-Sched .* 1 process names all of 1 conditions
EXPECT "provider":"Linux-Kernel-Sched".*"ids":0,"processes":0,"conditions":0,

NAME where_on_events_of_programs
RUN etwctl start rec --flight-recorder -p My-Script --where 'count >= 5' --where 'path ^= /tmp'
RUN for n in 3 7; do etwctl emit My-Script Step path=/tmp/$n count=$n; etwctl emit My-Script Step path=/home/$n count=$n; done
RUN etwctl status rec; etwctl snapshot rec -q -o trace; etwctl stop rec; etwctl dump trace
EXPECT My-Script .* 1 +3 .* all of 2 conditions
EXPECT My-Script/Step .*count=7
EXPECT_NOT count=3
EXPECT_NOT /home
