# SPDX-License-Identifier: GPL-2.0-only
# Shared by the demos, which run in the guest: headings, and assertions in TAP. It must not know what a demo shows.
#
# A demo sources this, shows something, and calls `check NAME COMMAND...` for what must be true of it. With --assert as its
# first argument these are printed as TAP and decide the exit status; without, only a failed one is mentioned.
set -eu

ASSERT=
[ "${1-}" = --assert ] && ASSERT=1
# shellcheck disable=SC2034	# for the demos
OUT=/out
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

finish() {
	[ -z "$ASSERT" ] || echo "1..$CHECKS"
	[ "$FAILED" = 0 ]
}
