# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Debian's stock 6.1 for arm64, unpacked beside the others: image and headers of that architecture, the build tools of
# this machine's, and the few programs a guest runs. Sourced by scripts/kernel, whose functions it uses.
# shellcheck disable=SC2034  # for those

# Fills in the directory "6.1-arm64" like get() its own.
get_arm64()
{
	local f p new key name=6.1-arm64 VERSION=6.1
	local -a files=() programs=()

	META=linux-image-arm64 FLAVOUR=arm64 SUITE=bookworm-security DIR=$ETW_CACHE/kernels/$name
	if [ -e "$DIR/complete" ] && [ -n "$(find "$DIR.checked" -mmin -1440 2>/dev/null)" ]; then
		return 0
	fi
	need_space "$ETW_CACHE" 1500
	mkdir -p "$ETW_CACHE/kernels"
	lock "$ETW_CACHE/kernels/lock"
	DEB_ARCH=arm64
	if ! resolve; then
		[ -e "$DIR/complete" ] || die -s "$ST_SKIP" "kernel $name: the mirror does not offer $META; see $APT/update.log"
		say "kernel $name: the mirror has no answer; using $(sed -n 's/^release=//p' "$DIR/paths") from the cache"
		unlock
		return 0
	fi
	for p in "linux-image-$REL" "linux-headers-$REL" "linux-headers-${REL%-arm64}-common"; do
		f=$(download "$p") || exit
		files+=("$f")
	done
	for p in busybox-static bash libtinfo6 coreutils libc6; do
		f=$(download "$p") || exit
		programs+=("$f")
	done
	# They run while a module is built, so they are this machine's.
	DEB_ARCH=
	update_lists || true
	f=$(download linux-kbuild-6.1) || exit
	files+=("$f")
	key=$(printf '%s\n' "${files[@]}" "${programs[@]}" | sha256sum | cut -c1-12)
	TREE=$ETW_CACHE/kernels/$REL-$key
	if [ ! -e "$TREE/complete" ]; then
		new=$TREE.new
		rm -rf "$new" "$TREE"
		mkdir -p "$new/programs"
		for f in "${files[@]}"; do
			dpkg-deb -x "$f" "$new"
		done
		for f in "${programs[@]}"; do
			dpkg-deb -x "$f" "$new/programs"
		done
		fix_headers "$new" "$TREE"
		rm -rf "${new:?}/usr/share" "$new/programs/usr/share" "$new/usr/lib/linux-image-$REL"
		depmod -b "$new" "$REL"
		{
			printf 'release=%s\n' "$REL"
			printf 'image=%s\n' "$TREE/boot/vmlinuz-$REL"
			printf 'headers=%s\n' "$TREE/usr/src/linux-headers-$REL"
			printf 'modules=%s\n' "$TREE"
			printf 'programs=%s\n' "$TREE/programs"
			printf 'key=%s\n' "$key"
		} >"$new/paths"
		touch "$new/complete"
		mv "$new" "$TREE"
		say "unpacked $REL in $TREE"
	fi
	ln -sfn "$TREE" "$DIR"
	touch "$DIR.checked"
	unlock
}
