#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What is installed can be used: header in C and C++, both libraries by pkg-config, exported symbols = header = manual.
# TAP. It must not know how the library works.
set -euo pipefail
src=@SRC@ build=@BUILD@
# shellcheck source=userspace/tests/tap.sh
. "$src/tests/tap.sh"

try "make install" make -C "$src" BUILD="$build" install DESTDIR="$work/root" PREFIX=/usr
root=$work/root/usr
export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
pkgconfig() { pkg-config "$@" libetw; }
try "pkg-config knows it" pkgconfig --exists

# The manual's example is the program that is built.
sed -n '/^#include <stdio.h>/,/^\.EE/p' "$root/share/man/man3/libetw.3" | sed -e '/^\.EE/d' -e 's/\\e/\\/g' -e 's/\\-/-/g' >"$work/example.c"
# shellcheck disable=SC2046
try "the manual's example builds with the shared library" \
	"${CC:-gcc}" -Wall -Wextra -Werror "$work/example.c" -o "$work/shared" $(pkgconfig --cflags --libs)
# shellcheck disable=SC2046
try "and statically" \
	"${CC:-gcc}" -static -Wall -Wextra -Werror "$work/example.c" -o "$work/static" $(pkgconfig --cflags --static --libs)
for kind in shared static; do
	LD_LIBRARY_PATH=$root/lib "$work/$kind" "$work/none" >"$work/log" 2>&1 && status=1 || status=0
	grep -q "none: No such file" "$work/log" || status=1
	result "$status" "the $kind one runs and names what is missing"
done
printf '#include <etw/etw.h>\n#include <etw/provider.h>\nETW_PROVIDER(p, "Test-Install");\nint main() { ETW_WRITE(p, "E", 4, 0); return etw_library_version() == nullptr; }\n' >"$work/header.cc"
# shellcheck disable=SC2046
try "the headers are C++ too" \
	"${CXX:-g++}" -Wall -Wextra -Werror "$work/header.cc" -o "$work/cxx" $(pkgconfig --cflags --libs)
for header in etw provider; do
	printf '#include <etw/%s.h>\n' $header >"$work/alone.c"
	# shellcheck disable=SC2046
	try "$header.h stands alone in C11" \
		"${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -pedantic -c "$work/alone.c" -o "$work/alone.o" $(pkgconfig --cflags)
done

cat "$root"/include/etw/*.h | tr '\n' ' ' | grep -o ' ETW_API [^;]*;' | grep -o 'etw_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$root/lib/libetw.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/exported"
grep -oh 'etw_[a-z0-9_]*' "$root"/share/man/man3/*.3 | sort -u >"$work/manual"
try "exported are exactly the functions of the headers" diff "$work/declared" "$work/exported"
comm -23 "$work/declared" "$work/manual" >"$work/missing"
try "the manual names every function" diff "$work/missing" /dev/null
readelf -d "$root/lib/libetw.so" >"$work/dynamic"
try "the shared library has its SONAME" grep 'SONAME.*\[libetw\.so\.0\]' "$work/dynamic"
echo "1..$count"
exit $failed
