# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Packages of the mirror that are unpacked and not installed: apt with its own lists, and a cache by checksum. Sourced
# after lib.sh. No host is named here: everything derives from the machine's own apt configuration.

APT=$ETW_CACHE/apt

# apt with its own lists and cache: needs no root, and never meets the lists of the machine, which may be old.
# $SOURCES is empty (the machine's own sources) or a file for the suite $SUITE. $DEB_ARCH is empty for packages of this
# machine's architecture, or another one.
private_apt()
{
	local cmd=$1 state=$APT/own
	local -a opts

	shift
	[ -z "${SOURCES:-}" ] || state=$APT/$SUITE
	state+=${DEB_ARCH:+-$DEB_ARCH}
	mkdir -p "$state/lists/partial" "$APT/cache/archives/partial"
	opts=(-q -o "Dir::State=$state" -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$APT/cache"
		-o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any
		-o Acquire::Retries=3 -o Debug::NoLocking=1 -o Acquire::Languages=none)
	[ -z "${SOURCES:-}" ] || opts+=(-o "Dir::Etc::SourceList=$SOURCES" -o Dir::Etc::SourceParts=/dev/null)
	[ -z "${DEB_ARCH:-}" ] || opts+=(-o "APT::Architecture=$DEB_ARCH" -o "APT::Architectures=$DEB_ARCH")
	LC_ALL=C "$cmd" "${opts[@]}" "$@" </dev/null
}

# A source list for $SUITE, made from a source of the machine that can have it: the same archive, and the same
# keyring. Security suites live in an archive of their own.
extra_sources()
{
	# shellcheck disable=SC2016  # apt expands these
	local uri release key signed want=other format='$(REPO_URI)|$(RELEASE)'

	SOURCES=$APT/$SUITE.list
	mkdir -p "$APT"
	case $SUITE in *-security) want=security ;; esac
	: >"$SOURCES.new"
	# The keyring that Debian itself installs; without it, apt's own trusted keys.
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	signed=
	[ ! -e $key ] || signed="[signed-by=$key] "
	while IFS='|' read -r uri release; do
		case $release in
		*-security) [ $want = security ] || continue ;;
		*) [ $want = other ] || continue ;;
		esac
		case $release in bookworm* | trixie* | forky* | sid | stable* | oldstable*) ;; *) continue ;; esac
		printf 'deb %s%s %s main\n' "$signed" "$uri" "$SUITE" >"$SOURCES.new"
		break
	done < <(LC_ALL=C apt-get indextargets --format "$format" 'Created-By: Packages' 2>/dev/null | sort -u)
	mv "$SOURCES.new" "$SOURCES"
	[ -s "$SOURCES" ]
}

update_lists()
{
	local stamp=$APT/updated-own

	[ -z "${SOURCES:-}" ] || stamp=$APT/updated-$SUITE
	stamp+=${DEB_ARCH:+-$DEB_ARCH}
	[ -z "$(find "$stamp" -mmin -60 2>/dev/null)" ] || return 0
	mkdir -p "$APT"
	private_apt apt-get update >"$APT/update.log" 2>&1 || return 1
	touch "$stamp"
}

# field PACKAGE FIELD: of the newest version on offer.
field()
{
	private_apt apt-cache --no-all-versions show "$1" 2>/dev/null | sed -n "s/^$2: //p" | head -n 1
}

# Downloads PACKAGE into the cache of packages, under its checksum, and prints the file.
download()
{
	local pkg=$1 ver sha dir file

	ver=$(field "$pkg" Version)
	sha=$(field "$pkg" SHA256)
	[ -n "$sha" ] || die -s "$ST_SKIP" "$pkg: the mirror does not have it"
	dir=$ETW_CACHE/debs/$sha
	file=$dir/$pkg.deb
	if [ ! -s "$file" ]; then
		say "downloading $pkg $ver ($(($(field "$pkg" Size) / 1000000 + 1)) MB)"
		rm -rf "$dir.new"
		mkdir -p "$dir.new"
		(cd "$dir.new" && private_apt apt-get download "$pkg=$ver" >../apt.log 2>&1) ||
			die "$pkg: the download failed: $(tail -n 1 "$ETW_CACHE/debs/apt.log")"
		mv "$dir.new"/*.deb "$dir.new/$pkg.deb"
		printf '%s  %s\n' "$sha" "$dir.new/$pkg.deb" | sha256sum --quiet -c - >&2 ||
			die "$pkg: the checksum of what was downloaded is wrong"
		rm -rf "$dir"
		mv "$dir.new" "$dir"
	fi
	printf '%s\n' "$file"
}

# Downloads the newest of every PACKAGE and of all that they depend on, down to libc, into DIRECTORY; apt checks the sums. On
# which system they will run is not this machine's business, so nothing counts as installed.
download_closure()
{
	local dir=$1

	shift
	mkdir -p "$dir/partial"
	private_apt apt-get -y --no-install-recommends --download-only -o "Dir::Cache::archives=$dir" install "$@" \
		>"$APT/closure.log" 2>&1 || die -s "$ST_SKIP" "$*: the mirror does not have all of it; see $APT/closure.log"
}
