# SPDX-License-Identifier: GPL-2.0-only
# etwctl emit: what it says, and what a session sees of it.

NAME nobody_listens_and_nothing_is_said
WHERE host
RUN etwctl emit Test-Emit Event a=1 2>&1 | wc -c
EXPECT ^0$

NAME verbose_says_why
WHERE host
RUN etwctl emit -v Test-Emit Event a=1
EXPECT (there is no /dev/etw: the module is not loaded, so nobody listens|no session has this provider enabled)

NAME which_provider
WHERE host
RUN etwctl emit
EXPECT which PROVIDER, and which EVENT
RETURN_CODE 2

NAME which_event
WHERE host
RUN etwctl emit Test-Emit
EXPECT which EVENT of Test-Emit
RETURN_CODE 2

NAME no_name
WHERE host
RUN etwctl emit 'a b' Event
EXPECT 'a b' is no name for a provider: a letter
RETURN_CODE 2

NAME no_field
WHERE host
RUN etwctl emit Test-Emit Event nothing
EXPECT 'nothing' is no field: give it as NAME=VALUE or NAME:TYPE=VALUE
RETURN_CODE 2

NAME no_type
WHERE host
RUN etwctl emit Test-Emit Event a:u7=1
EXPECT a: there is no type 'u7'; u8 to u64
RETURN_CODE 2

NAME out_of_range
WHERE host
RUN etwctl emit Test-Emit Event a:s8=128
EXPECT a: '128' is not an integer from -128 to 127
RETURN_CODE 2

NAME not_of_the_type
WHERE host
RUN for f in u8=-1 u32=x f64=1x bool=maybe guid=1 ipv4=1.2.3 ipv6=x mac=1 bin=0g errno=NOTHING time=today 'u8=' 'chars[2]=abc' 'u8[2]=1' 'u8[]=1,,2' 'u8[0]=' 'str[]=a' chars=a; do
RUN etwctl emit Test-Emit Event "a:$f" 2>/dev/null; echo "$f $?"; done | grep -v ' 2$'; echo none
EXPECT ^none$
EXPECT_NOT =

NAME two_fields_of_one_name
WHERE host
RUN etwctl emit Test-Emit Event a=1 a=2
EXPECT there are two fields a
RETURN_CODE 2

NAME no_such_opcode
WHERE host
RUN etwctl emit --opcode begin Test-Emit Event
EXPECT --opcode: 'begin' is not info start stop
RETURN_CODE 2

NAME no_such_level
WHERE host
RUN etwctl emit --level loud Test-Emit Event
EXPECT --level: "loud" is not a level
RETURN_CODE 2

NAME new_activity
WHERE host
RUN a=$(etwctl emit --activity new); b=$(etwctl emit --activity new --opcode start Test-Emit Event); echo "$a"; [ "$a" != "$b" ] && echo differ
EXPECT ^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$
EXPECT ^differ$

NAME no_activity
WHERE host
RUN etwctl emit --activity none Test-Emit Event; ETW_ACTIVITY=0 etwctl emit Test-Emit Event
EXPECT --activity: 'none' is not an activity id
EXPECT ETW_ACTIVITY: '0' is not an activity id
RETURN_CODE 2

NAME wrong_lines_are_reported
WHERE host
RUN printf 'A x=1\n\n# nothing\nB y\nC "open\n' | etwctl emit --stdin Test-Emit
EXPECT 'y' is no field
EXPECT line 5: a quote does not end
RETURN_CODE 2

NAME errors_as_json
WHERE host
RUN etwctl emit --json Test-Emit Event a
EXPECT ^\{"error":"'a' is no field.*","verb":"emit","status":2\}$
RETURN_CODE 2

NAME guessed_types
RUN etwctl record -q -o trace -p Test-Emit -- etwctl emit Test-Emit Event a=1 b=-2 c=0x1f d=1.5 e=true f=192.0.2.1 g=2001:db8::1 h=00:00:5e:00:53:01 i=b3864c38-4273-58c5-545b-8b3608343471 j=18446744073709551615 k=007 l='two words' m=1.2.3
RUN etwctl dump trace; etwctl dump --json trace
EXPECT Test-Emit/Event a=1 b=-2 c=0x1f d=1.5 e=true f=192.0.2.1 g=2001:db8::1 h=00:00:5e:00:53:01 i=b3864c38-4273-58c5-545b-8b3608343471 j=18446744073709551615 k="?007"? l="two words" m="?1.2.3"?$
EXPECT "level":4,

NAME explicit_types
RUN etwctl record -q -o trace -p Test-Emit -- etwctl emit --level error --keyword 0x10 Test-Emit Event a:u8=255 b:pid=1 c:errno=ENOENT d:octal=0644 e:'chars[4]'=ab f:bin=00ff g:'u32[]'=1,2,3 h:'s16[2]'=-1,1 i:str=5 j:f32=0.5 k:hex16=255
RUN etwctl dump trace; etwctl dump --json trace
EXPECT Test-Emit/Event a=255 b=1 c=-?ENOENT d=0644 e="?ab"? f=00ff g=\[1, 2, 3\] h=\[-1, 1\] i="?5"? j=0.5 k=0xff$
EXPECT "level":2,

NAME levels_and_keywords_choose
RUN etwctl record -q -o trace -p Test-Emit:warning:2 -- sh -c 'etwctl emit Test-Emit Info; etwctl emit --level 3 --keyword 1 Test-Emit Other; etwctl emit --level 3 --keyword 3 Test-Emit Right; etwctl emit --level 1 Test-Emit None'
RUN etwctl dump trace
EXPECT Test-Emit/Right
EXPECT Test-Emit/None
EXPECT_NOT Info|Other

NAME activity_of_a_script
RUN etwctl record -q -o trace -p Test-Emit -- sh -c 'export ETW_ACTIVITY=$(etwctl emit --activity new --opcode start Test-Emit Run); echo "id $ETW_ACTIVITY"; etwctl emit Test-Emit Step n=1; etwctl emit --related "$ETW_ACTIVITY" --activity new Test-Emit Part >/dev/null' | tee ids
RUN etwctl dump trace; id=$(sed 's/id //' ids); etwctl dump trace | grep -c "activity_id=$id"
EXPECT Test-Emit/Run activity_id=
EXPECT Test-Emit/Step activity_id=.* n=1
EXPECT ^3$

NAME lines
RUN etwctl record -q -o trace -p Test-Emit -- sh -c 'printf "A x=1\nB y=\"two words\" z=a\\\\ b\n" | etwctl emit --stdin Test-Emit; seq 3 | sed s/^/n=/ | etwctl emit --stdin Test-Emit Number'
RUN etwctl dump trace
EXPECT Test-Emit/A x=1
EXPECT Test-Emit/B y="two words" z="a b"
EXPECT Test-Emit/Number n=3

NAME many
RUN etwctl record -q -o trace -p Test-Emit -- etwctl emit -v -n 1000 Test-Emit Event a=1
RUN etwctl dump trace | grep -c Test-Emit/Event
EXPECT 1000 of 1000 events written; sessions that have the provider enabled: 1
EXPECT ^1000$

NAME a_name_of_the_kernel
RUN etwctl emit Linux-Kernel-Sched Event
EXPECT provider Linux-Kernel-Sched: this name or GUID is the kernel's
RETURN_CODE 4

NAME beside_the_kernel
RUN etwctl record -q -o trace -p sched:info:switch -p Test-Emit -- sh -c 'etwctl emit Test-Emit One; sleep 0.1; etwctl emit Test-Emit Two'
RUN etwctl dump trace | grep -o 'Test-Emit/[A-Z][a-z]*\|sched_switch' | uniq
EXPECT Test-Emit/One
EXPECT Test-Emit/Two
EXPECT sched_switch
