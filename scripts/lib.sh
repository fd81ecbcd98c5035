# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What every script of the lab shares: where things are, messages, the cache, locks, the host's speed.

# Documented statuses. Those of scripts/vm are chosen where a command's own status is unlikely to be.
# shellcheck disable=SC2034  # used by the scripts that source this file
{
ST_NEED_ROOT=3      # packages are missing and this user may not install them
ST_SKIP=77          # the mirror does not have what was asked for
ST_VM_SETUP=120     # scripts/vm: nothing was booted (usage, missing file, failed build)
ST_VM_NO_KERNEL=121 # scripts/vm: the mirror does not have that kernel
ST_VM_POWER_OFF=123 # scripts/vm: the power was cut, as --power-off-after asked
ST_VM_TIMEOUT=124   # scripts/vm: the command ran out of its time; the guest is well
ST_VM_GUEST=125     # scripts/vm: the guest failed: panic, splat, no verdict, out of time
}

ETW_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ETW_BUILD=${ETW_BUILD:-$ETW_TOP/build}
ETW_CACHE=${ETW_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/etw-linux}

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die [-s STATUS] MESSAGE...
die()
{
	local status=1

	if [ "${1:-}" = -s ]; then
		status=$2
		shift 2
	fi
	say "$*"
	exit "$status"
}

# need_space DIRECTORY MEGABYTES: fails when the file system that will hold DIRECTORY has less.
need_space()
{
	local dir=$1 want=$2 have

	while [ ! -d "$dir" ]; do
		dir=$(dirname "$dir")
	done
	have=$(df -Pm "$dir" | df_free)
	[ "$have" -ge "$want" ] ||
		die "$dir: $have MB free, $want needed; make room, or set ETW_CACHE to a directory elsewhere"
}

# The fourth column of df's second line, without awk: bootstrap has only bash and coreutils.
df_free()
{
	local free
	read -r _
	read -r _ _ _ free _
	printf '%s\n' "$free"
}

# lock FILE: waits for FILE's lock and holds it until unlock or the end of the script.
lock()
{
	mkdir -p "$(dirname "$1")"
	exec {ETW_LOCK_FD}>>"$1"
	flock "$ETW_LOCK_FD"
}

unlock() { exec {ETW_LOCK_FD}>&-; }

# How much slower than the reference machine this one is right now, in tenths (10 = as fast, at most 100);
# measured once per boot of the host, because every time limit is multiplied by it.
host_scale()
{
	local boot file begin end i x=0 scale

	boot=$(cat /proc/sys/kernel/random/boot_id)
	file=$ETW_CACHE/scale-$boot
	if [ ! -s "$file" ]; then
		mkdir -p "$ETW_CACHE"
		begin=${EPOCHREALTIME/[.,]/}
		for ((i = 0; i < 300000; i++)); do
			x=$(((x * 31 + i) & 0xffff))
		done
		end=${EPOCHREALTIME/[.,]/}
		# The reference machine needs 0.75 s for this loop.
		scale=$(((end - begin) / 75000))
		[ "$scale" -ge 10 ] || scale=10
		[ "$scale" -le 100 ] || scale=100
		rm -f "$ETW_CACHE"/scale-*
		printf '%s\n' "$scale" >"$file.$$"
		mv "$file.$$" "$file"
	fi
	cat "$file"
}

# scaled SECONDS: a time limit for this machine.
scaled() { printf '%s\n' $(($1 * $(host_scale) / 10)); }
