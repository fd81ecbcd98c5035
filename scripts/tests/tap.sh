# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# The TAP that tests print which are shell scripts; it must not know what they test.

tap_number=0 tap_failed=0
# Files whose ends are shown after a failure: as much as scripts/vm shows of a kernel's complaint.
tap_files=()

# result STATUS NAME [WHY]: one result, good if STATUS is 0.
result()
{
	local not='' file

	tap_number=$((tap_number + 1))
	if [ "$1" != 0 ]; then
		not='not '
		tap_failed=1
		for file in "${tap_files[@]}"; do
			[ ! -e "$file" ] || tail -n 80 "$file" | cat -v | cut -c 1-500 | sed 's/^/# /'
		done
	fi
	printf '%sok %d - %s%s\n' "$not" $tap_number "$2" "${3:+: $3}"
}

# holds NAME COMMAND...: COMMAND succeeds; the last line of what it prints stands beside the name.
holds()
{
	# By names that COMMAND's own do not have: it sees these.
	local tap_name=$1 tap_said tap_status=0

	shift
	tap_said=$("$@" 2>&1) || tap_status=$?
	result $tap_status "$tap_name" "$(tail -n 1 <<<"$tap_said")"
}

# For holds, of a command whose status the test has kept in $status.
# shellcheck disable=SC2154  # it is the test's
status_is() { [ "$status" = "$1" ] || { echo "status $status"; return 1; }; }

# nothing NAME TEXT: there is no TEXT, which says what is wrong.
nothing()
{
	[ -z "$2" ] || printf '%s\n' "$2" | sed 's/^/# /'
	result "$([ -z "$2" ]; echo $?)" "$1"
}

skip() { printf 'ok %d - %s # SKIP %s\n' $((++tap_number)) "$1" "$2"; }

# tap_end: the plan; ends the script.
tap_end()
{
	printf '1..%d\n' $tap_number
	exit $tap_failed
}
