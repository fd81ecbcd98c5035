#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the command tests of *.t files and prints TAP. POSIX sh, so that it runs in a guest with busybox only. It knows nothing
# of what is tested.
#
#   run_cli.sh [--where guest|host] [--only REGEX] FILE.t ...
#
# A case is a block of lines, a word and its text; blocks are divided by blank lines, # begins a comment line:
#   NAME         what it is called
#   WHERE        guest (with the module, the default) or host (needs no module)
#   RUN          one line of a shell script that runs in an empty directory; all RUN lines together are the script
#   EXPECT       an extended regular expression that a line of its output (both streams) must match
#   EXPECT_NOT   one that no line may match
#   RETURN_CODE  exit status of the script's last line, default 0
#   TIMEOUT      seconds, default 30; times ETW_SCALE tenths
# For the scripts: ETWCTL_RUN is a directory of the case's own, DATA the directory of the file.
set -u

where=guest
only=.
while [ $# -gt 0 ]; do
	case $1 in
	--where) where=$2; shift 2 ;;
	--only) only=$2; shift 2 ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || { echo "usage: run_cli.sh [--where guest|host] [--only REGEX] FILE.t ..." >&2; exit 2; }

top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
number=0
failed=0
nl='
'

begin_case()
{
	name='' script='' expect='' expect_not='' code=0 limit=30 place=guest
}

run_case()
{
	[ -n "$name" ] || return 0
	printf '%s\n' "$name" | grep -Eq -- "$only" || return 0
	[ "$where" = "$place" ] || return 0
	number=$((number + 1))
	dir=$top/$number
	mkdir "$dir" "$dir/run" "$dir/cwd" || exit 1
	printf '%s' "$script" >"$dir/script"
	(
		cd "$dir/cwd" || exit 125
		ETWCTL_RUN=$dir/run DATA=$data exec timeout $((limit * ${ETW_SCALE:-20} / 10)) sh "$dir/script"
	) >"$dir/output" 2>&1 </dev/null
	got=$?
	why=''
	[ "$got" -eq "$code" ] || why="exit status $got instead of $code"
	while IFS= read -r line; do
		[ -z "$line" ] || grep -Eq -- "$line" "$dir/output" || why="$why${why:+; }nothing matches: $line"
	done <<-END
	$expect
	END
	while IFS= read -r line; do
		[ -z "$line" ] || ! grep -Eq -- "$line" "$dir/output" || why="$why${why:+; }something matches: $line"
	done <<-END
	$expect_not
	END
	if [ -z "$why" ]; then
		echo "ok $number $name"
	else
		failed=$((failed + 1))
		echo "not ok $number $name"
		echo "# $why"
		tail -n 40 "$dir/output" | sed 's/^/#   /'
	fi
	rm -rf "$dir"
}

echo "TAP version 13"
for file; do
	data=$(cd "$(dirname "$file")" && pwd) || exit 1
	begin_case
	while IFS= read -r line || [ -n "$line" ]; do
		word=${line%%[ 	]*}
		text=${line#"$word"}
		text=${text#"${text%%[! 	]*}"}
		case $word in
		'') run_case; begin_case ;;
		'#'*) ;;
		NAME) name=$text ;;
		WHERE) place=$text ;;
		RUN) script=$script$text$nl ;;
		EXPECT) expect=$expect$text$nl ;;
		EXPECT_NOT) expect_not=$expect_not$text$nl ;;
		RETURN_CODE) code=$text ;;
		TIMEOUT) limit=$text ;;
		*) echo "Bail out! $file: '$word' is not a word of a case"; exit 1 ;;
		esac
	done <"$file"
	run_case
done
echo "1..$number"
[ "$failed" -eq 0 ]
