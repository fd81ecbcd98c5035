# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Results of the tests that are scripts, as TAP: sourced. $work is a directory of the test's own, $failed its exit status. It knows
# nothing of what is tested.
# shellcheck disable=SC2034  # read by who sources it
count=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2034
result()
{
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		failed=1
		sed 's/^/# /' "$work/log" | head -20
	fi
}

try()
{
	local what=$1 status=0

	shift
	"$@" >"$work/log" 2>&1 || status=$?
	result "$status" "$what"
}
