# SPDX-License-Identifier: GPL-2.0-only
# Shared by the demos, which run in the guest: headings, and assertions in TAP. It must not know what a demo shows.
#
# A demo sources this, shows something, and calls `check NAME COMMAND...` for what must be true of it. With --assert as its
# first argument these are printed as TAP and decide the exit status; without, only a failed one is mentioned.
set -eu

ASSERT=
[ "${1-}" = --assert ] && ASSERT=1
# shellcheck disable=SC2034	# for the demos
OUT=${OUT:-/out}
CHECKS=0
FAILED=0

say() {
	printf '\n== %s\n' "$*"
}

# Show a command as one would type it, and run it.
run() {
	printf '$ %s\n' "$*"
	"$@"
}

# check NAME COMMAND...: the command must succeed.
check() {
	name=$1
	shift
	CHECKS=$((CHECKS + 1))
	if "$@"; then
		[ -z "$ASSERT" ] || echo "ok $CHECKS - $name"
	else
		FAILED=$((FAILED + 1))
		echo "not ok $CHECKS - $name"
		echo "# failed: $*"
	fi
}

# equal A B, at_least A B, at_most A B (whole numbers)
equal() { [ "$1" = "$2" ]; }
at_least() { [ "$1" -ge "$2" ]; }
at_most() { [ "$1" -le "$2" ]; }

# start TOOL ARGUMENT...: run a tool of ours in the background until stop; its output goes to TOOL.txt. Returns when it records.
start() {
	TOOL=$1
	"$@" >"$OUT/$1.txt" 2>"/tmp/$1.err" &
	TOOL_PID=$!
	until grep -q recording "/tmp/$TOOL.err"; do
		kill -0 "$TOOL_PID" 2>/dev/null || break
		sleep 0.1
	done
}

# stop: end it; STATUS is its exit status.
stop() {
	kill -INT "$TOOL_PID" 2>/dev/null || true
	# shellcheck disable=SC2034	# for the demos
	wait "$TOOL_PID" && STATUS=0 || STATUS=$?
	grep -v recording "/tmp/$TOOL.err" || true
}

# word KEY FILE: the value of KEY=value, as demo-work prints it.
word() {
	sed -n "s/.*\\b$1=\\([^ ]*\\).*/\\1/p" "$2" | head -n 1
}

# activities FILE: what the list of activities in a summary says, a line for each: milliseconds in all, on a CPU, for a disk, in no
# thread's hands; begin; name and fields; in brackets the disks whose reads it waited for.
activities() {
	# shellcheck disable=SC2016	# awk
	awk '
	function ms(n, unit) { return n * (unit == "s" ? 1000 : unit == "ms" ? 1 : unit == "us" ? 1e-3 : 1e-6) }
	function next_ms(  v) {
		if ($(at) == "-") { at++; return 0 }
		v = ms($(at), $(at + 1)); at += 2
		return v
	}
	function put() { if (row != "") print row, "[" disks "]"; row = disks = "" }
	/^ *DURATION/ { list = 1; next }
	/^PAGE FAULTS/ { put(); list = 0 }
	list && / [+-][0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]  / {
		put(); at = 1
		all = next_ms(); cpu = next_ms(); next_ms(); disk = next_ms(); next_ms(); idle = next_ms(); next_ms()
		row = sprintf("%.4f %.4f %.4f %.4f %s", all, cpu, disk, idle, $(at))
		for (at++; at <= NF; at++) row = row " " $(at)
	}
	list && / waited .* for a read of / { sub(/.* read of /, ""); sub(/,.*/, ""); if (!index(disks, $0)) disks = disks $0 }
	END { put() }' "$1"
}

# What a summary says of activities, without what is before and after it.
activity_part() {
	sed -n '/^ACTIVITIES/,/^PAGE FAULTS/{/^PAGE FAULTS/!p}' "$1"
}

finish() {
	[ -z "$ASSERT" ] || echo "1..$CHECKS"
	[ "$FAILED" = 0 ]
}
