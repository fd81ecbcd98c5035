# SPDX-License-Identifier: GPL-2.0-only
# dump of recorded traces: filters, times, merging, output. Needs no module. traces/small: two CPUs, 418 events of sched, process and
# etw while sh ran ls and sleep; traces/second: another session of the same boot, 74 events.

NAME dump_all
WHERE host
RUN etwctl dump $DATA/traces/small >out && wc -l <out
EXPECT ^418$

NAME dump_line
WHERE host
RUN TZ=UTC etwctl dump --event sched_process_fork -n 1 $DATA/traces/small
EXPECT ^\[15:54:55\.363811110\] \(\+0\.000000000\) cpu 1 94/94 sh Process/sched_process_fork parent_comm="sh" parent_tid=94 parent_pid=94 .* vtids=\[95\] child_pid=95 child_ns_inum=4026531836$

NAME dump_is_in_order
WHERE host
RUN etwctl dump --json $DATA/traces/small $DATA/traces/second | sed 's/.*"epoch":\([0-9]*\),.*/\1/' >times; sort -nc times && wc -l <times
EXPECT ^492$

NAME dump_several_traces_says_which
WHERE host
RUN etwctl dump $DATA/traces/small $DATA/traces/second >out; grep -c ' trace 0 cpu ' out; grep -c ' trace 1 cpu ' out
EXPECT ^418$
EXPECT ^74$

NAME dump_kernel_directory_itself
WHERE host
RUN etwctl dump $DATA/traces/small/kernel | wc -l
EXPECT ^418$

NAME dump_event_name
WHERE host
RUN etwctl dump --event sched_switch $DATA/traces/small >out; wc -l <out; grep -vc Sched/sched_switch out
EXPECT ^271$
EXPECT ^0$
RETURN_CODE 1

NAME dump_event_out
WHERE host
RUN etwctl dump --event '!sched_switch' $DATA/traces/small | wc -l
EXPECT ^147$

NAME dump_event_provider
WHERE host
RUN for e in Sched: Linux-Kernel-Sched: 'sched/*' 'Linux-Kernel-Sched:sched_switch' 'sched/sched_switch'; do etwctl dump --event "$e" $DATA/traces/small | wc -l; done | sort -u
EXPECT ^271$
EXPECT_NOT ^(0|1|3|4|147)

NAME dump_event_list_with_patterns
WHERE host
RUN etwctl dump --event '*_fork,*_exec' $DATA/traces/small | wc -l
EXPECT ^7$

NAME dump_event_by_ctf_name
WHERE host
RUN etwctl dump --event lttng_statedump_process_state -n 1 $DATA/traces/small
EXPECT Process/process_state

NAME dump_event_unknown_says_so
WHERE host
RUN etwctl dump --event sched_swotch $DATA/traces/small
EXPECT nothing here is called 'sched_swotch'

NAME dump_pid_and_subjects
WHERE host
RUN etwctl dump --pid 95 --event 'sched_process_*' $DATA/traces/small
EXPECT sched_process_fork .* child_tid=95
EXPECT sched_process_exit comm="ls" tid=95
EXPECT_NOT tid=96

NAME dump_pid_as_next
WHERE host
RUN etwctl dump --pid 95 --event sched_switch $DATA/traces/small | grep -c 'next_tid=95 '
EXPECT ^[1-9]

NAME dump_comm
WHERE host
RUN etwctl dump --comm 'sl*p,nothing' $DATA/traces/small >out; grep -c ' sleep [PS]' out; grep -vc ' sleep [PS]' out
EXPECT ^[1-9][0-9]*$
EXPECT ^0$
RETURN_CODE 1

NAME dump_cpu
WHERE host
RUN etwctl dump --cpu 1 $DATA/traces/small >out; wc -l <out; grep -vc ' cpu 1 ' out; etwctl dump --cpu 0-1 $DATA/traces/small | wc -l
EXPECT ^199$
EXPECT ^0$
EXPECT ^418$

NAME dump_from_to_relative
WHERE host
RUN etwctl dump --from +1.2 $DATA/traces/small | wc -l; etwctl dump --to +1.2 $DATA/traces/small | wc -l
EXPECT ^337$
EXPECT ^81$

NAME dump_from_to_other_ways
WHERE host
RUN export TZ=UTC; for t in +1.2 @1795967695.196675160 15:54:55.196675160 21.491830220; do etwctl dump --from $t $DATA/traces/small | wc -l; done | sort -u
EXPECT ^337$
EXPECT_NOT ^(0|418)$

NAME dump_from_knows_names_told_before
WHERE host
RUN etwctl dump --from +1.2 --event session_stop $DATA/traces/small
EXPECT 93/93 etwctl Etw/session_stop

NAME dump_times
WHERE host
RUN etwctl dump -n 1 --time utc $DATA/traces/small; etwctl dump -n 1 --time clock $DATA/traces/small
RUN etwctl dump -n 1 --time start $DATA/traces/small; etwctl dump -n 1 --time epoch $DATA/traces/small; TZ=UTC-3 etwctl dump -n 1 $DATA/traces/small
EXPECT ^\[15:54:54\.766405450\]
EXPECT ^\[21\.061560510\]
EXPECT ^\[0\.769730290\]
EXPECT ^\[1795967694\.766405450\]
EXPECT ^\[18:54:54\.766405450\]

NAME dump_bad_time_format
WHERE host
RUN etwctl dump --time never $DATA/traces/small
EXPECT 'never' is not local, utc, clock, start or epoch
RETURN_CODE 2

NAME dump_json
WHERE host
RUN etwctl dump --json --event sched_process_fork -n 1 $DATA/traces/small
EXPECT ^\{"time":21658966170,"epoch":1795967695363811110,"cpu":1,"tid":94,"pid":94,"comm":"sh","provider":"Linux-Kernel-Process","event":"sched_process_fork","ctf":"sched_process_fork","level":4,"fields":\{"parent_comm":"sh","parent_tid":94,"parent_pid":94,"parent_ns_inum":4026531836,"child_comm":"sh","child_tid":95,"vtids":\[95\],"child_pid":95,"child_ns_inum":4026531836\}\}$

NAME dump_same_trace_twice_is_merged
WHERE host
RUN etwctl dump $DATA/traces/small $DATA/traces/small | wc -l
EXPECT ^836$

NAME dump_into_closed_pipe
WHERE host
RUN etwctl dump $DATA/traces/small | head -n 1 | wc -l
EXPECT ^1$

NAME dump_not_a_directory
WHERE host
RUN echo x >file; etwctl dump file
EXPECT file
RETURN_CODE 1

NAME dump_not_a_trace
WHERE host
RUN mkdir dir; etwctl dump dir
EXPECT dir holds no trace
RETURN_CODE 1

NAME summary_of_a_trace
WHERE host
RUN etwctl summary $DATA/traces/small
EXPECT 418 events
EXPECT WHO RAN

NAME summary_takes_the_filters
WHERE host
RUN etwctl summary --from +1.2 --pid 95 --json $DATA/traces/small; etwctl dump --from +1.2 --pid 95 $DATA/traces/small | wc -l
RUN etwctl summary --from +1.2 --cpu 1 $DATA/traces/small
EXPECT ^\{.*"events":\{"count":23,
EXPECT ^23$
EXPECT ^188 events, .*; none lost$

NAME repair_of_a_whole_trace_changes_nothing
WHERE host
RUN cp -r $DATA/traces/small t; etwctl repair t; diff -r t $DATA/traces/small && echo same
EXPECT t: nothing to repair
EXPECT ^same$
