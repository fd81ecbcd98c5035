# SPDX-License-Identifier: GPL-2.0-only
# watch: of a session of its own, of one in memory, of one with a writer.

NAME watch_own_session
RUN etwctl watch -p process --event sched_process_exec -n 1 >out & pid=$!
RUN until etwctl list sessions --names | grep -q "watch-$pid"; do sleep 0.1; done
RUN while kill -0 $pid 2>/dev/null; do ls / >/dev/null; sleep 0.2; done; wait $pid; rc=$?
RUN cat out; etwctl list sessions --names; exit $rc
EXPECT ^\[[0-9:]{8}\.[0-9]{9}\] \(\+0\.000000000\) cpu [0-9]+ [0-9]+/[0-9]+ [^ ]+ Process/sched_process_exec filename="[^"]+" tid=
EXPECT_NOT ^watch-

NAME watch_ends_with_sigint
RUN etwctl watch -p sched >out & pid=$!
RUN until [ -s out ]; do sleep 0.1; done
RUN kill -INT $pid; wait $pid; echo "status $?"; etwctl list sessions --names; grep -c Sched/ out
EXPECT ^status 0$
EXPECT ^[1-9][0-9]*$
EXPECT_NOT ^watch-

NAME watch_hides_the_sessions_own_events
RUN etwctl watch -p sched -n 50 >out; grep -c Etw/ out; etwctl watch -p etw -n 2 | grep -c Etw/
EXPECT ^0$
EXPECT ^2$

NAME watch_json
RUN etwctl watch -p sched --json -n 3
EXPECT ^\{"time":[0-9]+,"epoch":[0-9]+,"cpu":[0-9]+,"tid":[0-9]+,"pid":[0-9]+,("comm":"[^"]*",)?"provider":"Linux-Kernel-Sched","event":"sched_[a-z_]+","ctf":"sched_[a-z_]+","level":4,"fields":\{.*\}\}$

# Two CPUs work, the others have nothing to say; a reader that waits for them, or does not wait, shows itself here.
NAME watch_is_strictly_in_order
TIMEOUT 60
RUN etwctl watch -p sched -p process --json -n 3000 >out & pid=$!
RUN for c in 0 1; do taskset $((1 << c)) sh -c 'while :; do /bin/true; done' & echo $!; done >busy
RUN wait $pid; rc=$?; kill $(cat busy)
RUN sed 's/^{"time":\([0-9]*\),.*"cpu":\([0-9]*\),"tid".*/\1 \2/' out >times
RUN awk '$1 < last { bad++ } { last = $1; cpus[$2] = 1 } END { n = 0; for (c in cpus) n++; print NR " lines", bad + 0 " out of order", (n > 1 ? "several CPUs" : "one CPU") }' times
RUN exit $rc
EXPECT ^3000 lines 0 out of order several CPUs$

# Nothing but this one event ever comes, on one of several CPUs.
NAME watch_shows_one_event_by_the_flush_timer
RUN mkfifo go; sh -c 'read x <go; exec /bin/true' & pid=$!
RUN etwctl start mine -q --no-etw -p process --event sched_process_exec --pid $pid --flush-ms 50 -o trace || exit 99
RUN etwctl watch mine --from +0 --event sched_process_exec -n 1 >out & watch=$!
RUN sleep 1; wc -l <out; echo >go; wait $watch
RUN grep -c 'sched_process_exec filename="/bin/true"' out; etwctl stop mine; etwctl dump --event '!*statedump*' trace | wc -l
EXPECT ^0
EXPECT ^1$

NAME watch_own_session_shows_one_event_by_the_flush_timer
RUN mkfifo go; sh -c 'read x <go; exec /bin/true' & pid=$!
RUN etwctl watch --no-etw -p process:info:exec --event '*exec' --pid $pid --flush-ms 50 -n 1 >out & watch=$!
RUN sleep 1; echo >go; wait $watch
RUN grep -c 'sched_process_exec filename="/bin/true"' out
EXPECT ^1$

NAME watch_a_session_with_a_writer
RUN etwctl start mine -q -p process --flush-ms 100 -o trace
RUN etwctl watch mine --event sched_process_exec -n 1 >out & pid=$!
RUN while kill -0 $pid 2>/dev/null; do ls / >/dev/null; sleep 0.2; done
RUN wait $pid; echo "status $?"; cat out; etwctl status mine --json; etwctl stop mine
EXPECT ^status 0$
EXPECT Process/sched_process_exec
EXPECT "reader_pid":[1-9]
EXPECT mine: [0-9,]+ events

NAME watch_ends_when_the_session_stops
RUN etwctl start mine -q -p process -o trace
RUN etwctl watch mine --from +0 >out & pid=$!
RUN until [ -s out ]; do sleep 0.1; done
RUN etwctl stop mine; wait $pid; echo "status $?"; tail -n 1 out
EXPECT ^status 0$
EXPECT Etw/session_stop

# As soon as the session can be found, while providers are still being enabled.
NAME watch_a_record
RUN etwctl record -q --name rec --flush-ms 100 -o trace -- sh -c 'until [ -e enough ]; do ls / >/dev/null; sleep 0.1; done' & rec=$!
RUN until etwctl list sessions --names | grep -q rec; do :; done
RUN etwctl watch rec --event sched_process_exec -n 2; >enough; wait $rec
EXPECT Process/sched_process_exec

NAME watch_in_memory
RUN etwctl start box -q --flight-recorder -p sched
RUN (sleep 2; etwctl flush box; etwctl stop box) >/dev/null 2>&1 & etwctl watch box --from +0 >out; echo "status $?"; grep -c Sched/ out
EXPECT ^status 0$
EXPECT box is a flight recorder
EXPECT ^[1-9][0-9]*$

NAME watch_unknown
RUN etwctl watch nobody
EXPECT there is no session 'nobody'
RETURN_CODE 1

NAME watch_reader_taken
RUN etwctl watch -p sched >/dev/null & pid=$!
RUN until etwctl list sessions --names | grep -q "watch-$pid"; do sleep 0.1; done
RUN sleep 0.5; etwctl watch watch-$pid; rc=$?; kill $pid; exit $rc
EXPECT process [0-9]+|[0-9]+ (holds|has|reads)
RETURN_CODE 1

NAME watch_filters_by_comm
RUN etwctl watch -p sched -p process --comm 'swapper*' -n 20 | grep -vc ' swapper/'
EXPECT ^0$
RETURN_CODE 1

NAME watch_filters_by_pid
RUN sh -c 'while :; do /bin/true; done' & pid=$!
RUN etwctl watch -p sched -p process --json --pid $pid -n 50 >out; rc=$?; kill $pid
RUN wc -l <out; grep -Evc "[a-z]id\":$pid[,}]" out; exit $rc
EXPECT ^50$
EXPECT ^0$

NAME watch_filters_by_cpu
RUN for c in 0 1; do taskset $((1 << c)) sh -c 'while :; do /bin/true; done' & echo $!; done >busy
RUN etwctl watch -p sched --cpu 1 -n 50 >out; rc=$?; kill $(cat busy)
RUN wc -l <out; grep -vc ' cpu 1 ' out; exit $rc
EXPECT ^50$
EXPECT ^0$

NAME watch_ends_at_a_time
RUN etwctl watch -p sched --time start --to +5 >out; echo "status $?"
RUN sed 's/^\[\([0-9.]*\)\].*/\1/' out | awk '$1 < 5 { within++ } $1 >= 5 { late++ } END { print (within ? "some" : "none"), late + 0 " late" }'
EXPECT ^status 0$
EXPECT ^some 0 late$

NAME watch_of_a_damaged_directory
RUN etwctl start mine -q -p sched -o trace; etwctl flush mine >/dev/null; ls / >/dev/null; etwctl flush mine >/dev/null
RUN until [ $(stat -c %s trace/kernel/chan_0) -gt 4096 ]; do sleep 0.1; done
RUN at=$(($(od -An -tu8 -j 48 -N 8 trace/kernel/chan_0) / 8)); printf '\0' | dd of=trace/kernel/chan_0 bs=1 seek=$at conv=notrunc 2>/dev/null
RUN etwctl watch mine --from +0 >out 2>err & pid=$!
RUN i=0; until [ -s err ] || [ $i -ge 50 ]; do sleep 0.1; i=$((i + 1)); done
RUN etwctl stop mine >/dev/null; wait $pid; echo "status $?"; sed "s/offset $at:/offset of the second packet:/" err; grep -c Sched/ out
EXPECT trace/kernel/chan_0: offset of the second packet: no packet begins here
EXPECT ^status 5$
EXPECT ^[1-9][0-9]*$

NAME watch_broken_pipe_ends
RUN etwctl watch -p sched | head -n 2 | grep -c Sched; etwctl list sessions --names
EXPECT ^2$
EXPECT_NOT watch-

NAME watch_where_and_process
RUN etwctl watch -p process:info:task_rename --event task_rename --where 'newcomm ^= keep' --process keep,sh -n 3 >out & pid=$!
RUN until etwctl list sessions --names | grep -q "watch-$pid"; do sleep 0.1; done
RUN while kill -0 $pid 2>/dev/null; do sh -c 'for n in keep1 other keep2; do printf $n >/proc/$$/comm; done'; sleep 0.2; done; wait $pid; rc=$?
RUN cat out; exit $rc
EXPECT Process/task_rename .*newcomm="keep1"
EXPECT_NOT newcomm="(other|sh|sleep|keep2)"

NAME watch_where_is_not_for_a_session_of_somebody
RUN etwctl start rec --flight-recorder -p sched; etwctl watch rec --where 'next_tid == 5'; rc=$?; etwctl stop rec; exit $rc
EXPECT --process, --where, --id and --uid are for what is recorded: with -p, or by etwctl enable rec \.\.\.
RETURN_CODE 2
