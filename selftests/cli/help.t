# SPDX-License-Identifier: GPL-2.0-only
# What needs no module and no trace: help, usage errors, tables.

NAME help_lists_every_verb
WHERE host
RUN etwctl help
EXPECT ^  record  
EXPECT ^  start  
EXPECT ^  stop  
EXPECT ^  status  
EXPECT ^  list  
EXPECT ^  enable  
EXPECT ^  disable  
EXPECT ^  update  
EXPECT ^  flush  
EXPECT ^  capture-state  
EXPECT ^  snapshot  
EXPECT ^  watch  
EXPECT ^  dump  
EXPECT ^  summary  
EXPECT ^  emit  
EXPECT ^  repair  
EXPECT ^  help  
EXPECT ^  version  
EXPECT_NOT __complete

NAME help_goes_to_stdout
WHERE host
RUN etwctl help 2>/dev/null | grep -q Usage
RUN etwctl record --help 2>/dev/null | grep -q Usage
RUN etwctl help dump 2>/dev/null | grep -c -e --from

NAME no_verb_is_misuse
WHERE host
RUN etwctl
EXPECT Usage
RETURN_CODE 2

NAME unknown_verb
WHERE host
RUN etwctl frobnicate
EXPECT ^etwctl: there is no verb 'frobnicate' \(see etwctl help\)$
RETURN_CODE 2

NAME no_abbreviated_verb
WHERE host
RUN etwctl rec
EXPECT no verb 'rec'
RETURN_CODE 2

NAME unknown_option
WHERE host
RUN etwctl dump --frobnicate x
EXPECT ^etwctl dump: there is no option '--frobnicate'
RETURN_CODE 2

NAME unknown_letter
WHERE host
RUN etwctl dump -Z x
EXPECT no option -Z
RETURN_CODE 2

NAME missing_argument
WHERE host
RUN etwctl dump --event
EXPECT --event needs LIST
RETURN_CODE 2

NAME argument_to_a_switch
WHERE host
RUN etwctl record --circular=1
EXPECT takes no argument
RETURN_CODE 2

NAME misuse_is_one_line
WHERE host
RUN etwctl record --subbuf-size 3000 2>&1 | wc -l
EXPECT ^1$

NAME subbuf_size_names_limits
WHERE host
RUN etwctl record --subbuf-size 3000
EXPECT --subbuf-size: '3000' is not a size from 4 KiB to 4 MiB
RETURN_CODE 2

NAME subbuf_size_power_of_two
WHERE host
RUN etwctl record --subbuf-size 5000
EXPECT not a power of two
RETURN_CODE 2

NAME subbufs_range
WHERE host
RUN etwctl record --subbufs 5000
EXPECT number from 2 to 4096
RETURN_CODE 2

NAME flush_range
WHERE host
RUN etwctl record --flush-ms 3600001
EXPECT from 1 to 3600000 ms
RETURN_CODE 2

NAME clock_names
WHERE host
RUN etwctl start x -o y --clock tsc
EXPECT 'tsc' is not monotonic, boot, real or cycles
RETURN_CODE 2

NAME circular_needs_size
WHERE host
RUN etwctl record --circular
EXPECT --circular needs --max-size
RETURN_CODE 2

NAME start_needs_a_place
WHERE host
RUN etwctl start x
EXPECT -o DIR .* --flight-recorder
RETURN_CODE 2

NAME start_needs_a_name
WHERE host
RUN etwctl start -o y
EXPECT needs a name
RETURN_CODE 2

NAME start_name_is_checked
WHERE host
RUN etwctl start 9lives -o y
EXPECT '9lives' is not a session name
RETURN_CODE 2

NAME recorder_has_no_directory
WHERE host
RUN etwctl start x --flight-recorder -o y
EXPECT keeps events in memory
RETURN_CODE 2

NAME spec_level
WHERE host
RUN etwctl record -p sched:loud
EXPECT 'loud' is not a level
RETURN_CODE 2

NAME spec_parts
WHERE host
RUN etwctl record -p sched:info:a:b:c
EXPECT more than four parts
RETURN_CODE 2

NAME spec_twice
WHERE host
RUN etwctl record -p sched -p sched:info
EXPECT sched is there already
RETURN_CODE 2

NAME list_empty_part
WHERE host
RUN etwctl dump --event a,,b x
EXPECT empty part
RETURN_CODE 2

NAME bad_pid
WHERE host
RUN etwctl dump --pid 1,x y
EXPECT --pid: 'x' is not a number
RETURN_CODE 2

NAME bad_time
WHERE host
RUN etwctl dump --from yesterday y
EXPECT --from: 'yesterday' is not a time
RETURN_CODE 2

NAME bad_cpu
WHERE host
RUN etwctl dump --cpu 3-1 y
EXPECT --cpu: '1' is not a number from 3
RETURN_CODE 2

NAME unknown_profile
WHERE host
RUN etwctl record --profile nothing
EXPECT no profile 'nothing'
RETURN_CODE 1

NAME profiles_built_in
WHERE host
RUN HOME=$PWD etwctl list profiles
EXPECT ^default +Processes, scheduling, block I/O and page faults \(built in\)
EXPECT ^cpu 
EXPECT ^disk 
EXPECT ^memory 

NAME own_profile_is_found_first
WHERE host
RUN mkdir p; echo 'description Mine' >p/default.profile; echo 'provider sched' >>p/default.profile
RUN ETWCTL_PROFILES=p etwctl list profiles
EXPECT ^default +Mine \(p/default.profile\)

NAME profile_line_is_named
WHERE host
RUN echo 'povider sched' >my.profile
RUN etwctl record --profile ./my.profile
EXPECT profile ./my.profile, line 1: 'povider sched'
RETURN_CODE 1

NAME errors_as_json
WHERE host
RUN etwctl dump --json --from x y
EXPECT ^\{"error":"--from: 'x' is not a time.*","verb":"dump","status":2\}$
RETURN_CODE 2

NAME json_before_the_mistake_or_behind
WHERE host
RUN etwctl dump --from x --json y 2>/dev/null
EXPECT ^\{"error":
RETURN_CODE 2

NAME watch_needs_one_source
WHERE host
RUN etwctl watch
EXPECT NAME, or -p PROVIDER
RETURN_CODE 2

NAME watch_takes_one_source
WHERE host
RUN etwctl watch x -p sched
EXPECT NAME, or -p PROVIDER
RETURN_CODE 2

NAME dump_needs_a_trace
WHERE host
RUN etwctl dump
EXPECT which trace
RETURN_CODE 2

NAME dump_of_nothing
WHERE host
RUN etwctl dump ./nothing
EXPECT nothing
RETURN_CODE 1

NAME no_module
WHERE host
RUN [ -e /dev/etw ] && { echo "etwctl status: /dev/etw is there: insmod is not needed"; exit 3; }
RUN etwctl status
EXPECT (/dev/etw.*insmod|insmod)
RETURN_CODE 3

NAME no_module_json
WHERE host
RUN [ -e /dev/etw ] && { echo '{"error":"","verb":"list","status":3}'; exit 3; }
RUN etwctl list providers --json
EXPECT ^\{"error":".*","verb":"list","status":3\}$
RETURN_CODE 3

NAME version
WHERE host
RUN etwctl version
EXPECT ^etwctl [0-9.]+, ABI 1, record format 1$
EXPECT ^module: 

NAME version_json
WHERE host
RUN etwctl --version; etwctl version --json
EXPECT "abi":1

NAME completion_verbs
WHERE host
RUN etwctl __complete ''
EXPECT ^record$
EXPECT ^capture-state$
EXPECT_NOT __complete

NAME completion_options
WHERE host
RUN etwctl __complete dump --
EXPECT ^--event$
EXPECT ^--json$
EXPECT_NOT subbuf

NAME completion_words
WHERE host
RUN etwctl __complete record --clock ''
EXPECT ^monotonic$
EXPECT ^boot$

NAME completion_nouns
WHERE host
RUN etwctl __complete list ''
EXPECT ^providers$
EXPECT ^profiles$

NAME completion_without_module_is_silent
WHERE host
RUN [ -e /dev/etw ] || etwctl __complete stop '' | wc -c | grep -qx 0

NAME repair_needs_a_trace
WHERE host
RUN etwctl repair ./nothing
EXPECT nothing
RETURN_CODE 1
