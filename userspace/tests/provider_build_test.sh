#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the compiler makes of etw/provider.h: C11 and C++17 without a warning, in one program and in libraries that come and go; the
# cost of an event that nobody wants; mistakes that must not compile. TAP. It must not know how the library works.
set -euo pipefail
src=@SRC@ build=@BUILD@
cc=${CC:-gcc-12} cxx=${CXX:-g++}
# shellcheck source=userspace/tests/tap.sh
. "$src/tests/tap.sh"
flags=(-Wall -Wextra -Werror -pedantic -I"$src/lib/include" -isystem "$src/../uapi")

make -s -C "$src" BUILD="$build" lib >&2

# Every kind of field, in a language that is both.
cat >"$work/all.c" <<'EOF'
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>
#include <etw/provider.h>

ETW_PROVIDER(everything, "Test-Build", ETW_KEYWORD("one", 0x1), ETW_KEYWORD("two", 0x2),
	     ETW_PROVIDER_GUID("b3864c38-4273-58c5-545b-8b3608343471"));
ETW_PROVIDER_DECLARE(elsewhere);
ETW_VALUE_MAP(states, { 0, "idle" }, { 1, "busy" });
ETW_FLAG_MAP(rights, { 1, "r" }, { 2, "w" });
enum color { RED, GREEN };
struct bits { unsigned int a : 3; int b : 5; };

int all(const char *text, size_t n, const struct in_addr *a4, const struct in6_addr *a6, const __u8 *id, struct bits b,
	const uint64_t *v, const __u64 *w, const int8_t *s, const bool *t, const double *d, const float *f, void *p);
int all(const char *text, size_t n, const struct in_addr *a4, const struct in6_addr *a6, const __u8 *id, struct bits b,
	const uint64_t *v, const __u64 *w, const int8_t *s, const bool *t, const double *d, const float *f, void *p)
{
	if (n)
		ETW_WRITE(everything, "None", 0, 0);
	else
		ETW_WRITE(everything, "All", ETW_LEVEL_VERBOSE, 0x8000000000000003ULL, etw_activity(id), etw_related(id),
			  etw_opcode(ETW_OPCODE_START), etw_task(65535), etw_id(0), etw_version(255), etw_description("line"),
			  etw_u8("a", 1), etw_u16("b", n ? 1 : 2), etw_u32("c", 3), etw_u64("d", n), etw_s8("e", -1), etw_s16("f", -2),
			  etw_s32("g", -3), etw_s64("h", -4L), etw_hex8("i", 1), etw_hex16("j", 1), etw_hex32("k", 1),
			  etw_hex64("l", 1), etw_errno("m", errno), etw_pid("n", 1), etw_time("o", 1), etw_octal("p", 0644),
			  etw_dev("q", 1), etw_ptr("r", p), etw_f32("s", 1.5f), etw_f64("t", 1.5), etw_bool("u", n > 1),
			  etw_str("v", text), etw_strn("w", text, n), etw_chars("x", text, 16), etw_bin("y", p, n),
			  etw_guid("z", id), etw_ipv4("A", a4), etw_ipv6("B", a6), etw_mac("C", id), etw_u64_array("D", v, n),
			  etw_u64_fixed("E", w, 2), etw_s8_array("F", s, n), etw_bool_array("G", t, n), etw_f64_fixed("H", d, 2),
			  etw_f32_array("I", f, n), etw_as(ETW_FORMAT_HEX, etw_u8_array("J", id, n)),
			  etw_named(states, etw_u8("K", GREEN)), etw_named(rights, etw_as(ETW_FORMAT_HEX, etw_u32("L", b.a))),
			  etw_s32("M", b.b), etw_str("N", "literal"), etw_u16("O", 'c'), etw_u8("P", 255), etw_u8("Q", -128),
			  etw_u16("R", 65535), etw_s16("S", -32768), etw_u8("T", b.a + 70000), etw_str("U", NULL),
			  etw_str("V", id ? NULL : (char *)p));
	ETW_WRITE(elsewhere, "There", ETW_LEVEL_INFO, 0, etw_u32("n", 1));
	return errno;
}
EOF
printf '#include <etw/provider.h>\nETW_PROVIDER(elsewhere, "Test-Elsewhere");\nint all(void);\nint main(void) { return 0; }\n' >"$work/main.c"
for std in c11 gnu11 c17; do
	for opt in -O0 "-O2 -fPIC -Wshadow"; do
		# shellcheck disable=SC2086
		try "$std $opt" "$cc" -std=$std $opt "${flags[@]}" -c "$work/all.c" -o "$work/all.o"
	done
done
for std in c++17 c++20; do
	for opt in -O0 "-O2 -fPIC"; do
		# shellcheck disable=SC2086
		try "$std $opt" "$cxx" -std=$std $opt "${flags[@]}" -x c++ -c "$work/all.c" -o "$work/all++.o"
	done
done
if command -v clang >/dev/null; then
	try "clang, C11" clang -std=c11 -O2 "${flags[@]}" -c "$work/all.c" -o "$work/clang.o"
	try "clang, C++17" clang++ -std=c++17 -O2 "${flags[@]}" -x c++ -c "$work/all.c" -o "$work/clang++.o"
fi
cat >"$work/more.cc" <<'EOF'
#include <string>
#include <etw/provider.h>

ETW_PROVIDER(plus, "Test-Plus");
enum small : unsigned char { A };
namespace inner { ETW_PROVIDER(nested, "Test-Nested"); }
template <class T> struct holder { void f(T t) { ETW_WRITE(plus, "Template", 4, 0, etw_u32("t", t)); } };
inline void inlined(const std::string &s, std::string_view v)
{
	ETW_WRITE(plus, "Strings", 4, 0, etw_str("s", s), etw_str("v", v), etw_str("n", nullptr), etw_str("l", "literal"), etw_u8("e", A));
	ETW_WRITE(inner::nested, "Nested", 4, 0);
}
int main()
{
	auto lambda = [](int a) { ETW_WRITE(plus, "Lambda", 4, 0, etw_u64("a", a)); };

	holder<int>().f(1);
	holder<short>().f(2);
	inlined("x", "y");
	lambda(3);
}
EOF
for std in c++17 c++20; do
	try "templates, inline functions, lambdas, strings: $std" "$cxx" -std=$std -O2 -fPIC "${flags[@]}" -c "$work/more.cc" -o "$work/more.o"
done
try "a C++ program links with the static library alone" "$cxx" "$work/more.o" "$build/lib/libetw.a" -o "$work/more"
try "and runs without the module" timeout 10 "$work/more"
try "a static C program takes nothing else" "$cc" -std=c11 "${flags[@]}" -static "$work/main.c" -x none "$build/lib/libetw.a" -o "$work/static"
nm "$work/static" | grep -E ' [TtWw] (json_|SHA1|etw_(consumer|session|writer|control)_)' >"$work/log" && status=1 || status=0
result "$status" "of the library it has the provider half"

# The cost of an event that nobody wants: load, compare, branch.
cat >"$work/off.c" <<'EOF'
#include <etw/provider.h>
ETW_PROVIDER_DECLARE(p);
void off(unsigned int n);
void off(unsigned int n) { ETW_WRITE(p, "Off", ETW_LEVEL_INFO, 1, etw_u32("n", n)); }
void nothing(unsigned int n);
void nothing(unsigned int n) { (void)n; }
EOF
instructions() { objdump -d --no-show-raw-insn "$work/off.o" | awk -v f="<$1>:" '$2 == f { on = 1; next } on && NF { n++ } on && /\tret/ { exit } END { print n }'; }
for opt in "-O2 -fno-pic" "-O2 -fPIC"; do
	[ "$(uname -m)" = x86_64 ] || break
	# shellcheck disable=SC2086
	"$cc" -std=c11 $opt "${flags[@]}" -c "$work/off.c" -o "$work/off.o"
	objdump -d --no-show-raw-insn "$work/off.o" >"$work/log"
	[ "$(($(instructions off) - $(instructions nothing)))" -le 3 ] && status=0 || status=1
	result "$status" "at most 3 instructions for an event that nobody wants ($opt)"
done

# Libraries that come and go, and one provider in several files.
cat >"$work/plugin.c" <<'EOF'
#include <etw/provider.h>
ETW_PROVIDER(plugin, "Test-Plugin");
void hello(int n);
void hello(int n) { ETW_WRITE(plugin, "Hello", ETW_LEVEL_INFO, 0, etw_s32("n", n)); }
EOF
cat >"$work/host.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	(void)argc;
	for (int i = 0; i < 20; i++) {
		void *so = dlopen(argv[1], RTLD_NOW);
		void (*hello)(int) = so ? (void (*)(int))(size_t)dlsym(so, "hello") : NULL;
		if (!hello)
			return 1;
		hello(i);
		if (i % 2)
			usleep(2000);
		dlclose(so);
		if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
			return 2;
	}
	puts("done");
	return 0;
}
EOF
# With the library in it, so that the code of its thread goes too.
for f in "$src"/lib/provider*.c "$src"/lib/error.c "$src"/lib/names.c "$src"/lib/guid.c; do
	"$cc" -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -fvisibility=hidden -DETW_LIBRARY_VERSION='"test"' -I"$src/lib/include" -I"$src/../uapi" \
		-c "$f" -o "$work/pic-$(basename "$f" .c).o"
done
try "a plugin with the library in it" "$cc" -shared -fPIC "${flags[@]}" "$work/plugin.c" "$work"/pic-*.o -o "$work/plugin.so"
"$cc" -std=gnu11 "$work/host.c" -o "$work/host"
try "is loaded, writes and is unloaded, again and again" timeout 60 "$work/host" "$work/plugin.so"
try "a plugin with the shared library" "$cc" -shared -fPIC "${flags[@]}" "$work/plugin.c" -L"$build/lib" -letw -o "$work/plugin2.so"
LD_LIBRARY_PATH=$build/lib try "as well" timeout 60 "$work/host" "$work/plugin2.so"
printf '#include <etw/provider.h>\nETW_PROVIDER_DECLARE(plugin);\nvoid hello(int n);\nint main(void) { hello(1); ETW_WRITE(plugin, "Main", 4, 0); return 0; }\n' >"$work/user.c"
try "a program that uses a library's provider" "$cc" -std=c11 "${flags[@]}" "$work/user.c" "$work/plugin2.so" -Wl,-rpath,"$work" -L"$build/lib" -letw -o "$work/user"
LD_LIBRARY_PATH=$build/lib try "runs" timeout 10 "$work/user"

# Mistakes: each line must not compile, neither as C nor as C++, and say why where we can.
refused()
{
	local lang compiler status

	for lang in ${3:-c11 c++17}; do
		compiler=$cc
		[ "$lang" = c11 ] || compiler=$cxx
		printf '#include <etw/provider.h>\nETW_PROVIDER(p, "Test-Mistakes");\nvoid f(int i, long l, const char *s, double d, float *r);\nvoid f(int i, long l, const char *s, double d, float *r)\n{\n\t(void)i; (void)l; (void)s; (void)d; (void)r;\n\tETW_WRITE(p, %s);\n}\n' "$1" >"$work/bad.c"
		status=1
		"$compiler" -x "${lang%%[0-9]*}" -std="$lang" "${flags[@]}" -c "$work/bad.c" -o "$work/bad.o" >"$work/log" 2>&1 || status=0
		[ $status != 0 ] || [ -z "$2" ] || grep -q "$2" "$work/log" || status=1
		result "$status" "$lang refuses $1"
	done
}
refused_in_c() { refused "\"E\", 4, 0, $1" "$2" c11; }
refused '"E", 4, 0, etw_u32("a", l)' 'wider than its field'
refused '"E", 4, 0, etw_u8("a", l)' 'wider than its field'
refused '"E", 4, 0, etw_u32("a", s)' ''
refused '"E", 4, 0, etw_u32("a", d)' 'no integer'
refused '"E", 4, 0, etw_f64("a", i)' 'floating point'
refused '"E", 4, 0, etw_str("a", i)' ''
refused '"E", 4, 0, etw_str("a", r)' ''
refused_in_c 'etw_str("a", 5)' 'no text'
refused_in_c 'etw_str("a", r)' 'no text'
refused_in_c 'etw_u8("a", 256)' 'does not fit'
refused_in_c 'etw_s8("a", -129)' 'does not fit'
refused_in_c 'etw_u16("a", 70000)' 'does not fit'
refused_in_c 'etw_hex16("a", 1 << 16)' 'does not fit'
refused '"E", 4, 0, etw_u32_array("a", r, 3)' 'another type'
refused '"E", 4, 0, etw_s16_array("a", &i, 1)' 'another type'
refused '"E", 4, 0, etw_u32_array("a", &i, 1)' 'another type'
refused '"E", 4, 0, etw_guid("a", &i)' 'another size'
refused '"E", 4, 0, etw_opcode(256)' ''
refused '"E", 256, 0' 'levels are 0 to 255'
refused '"", 4, 0' 'name has 1 to 63'
refused '"E", 4, 0, i' ''
refused '"E", 4, 0, etw_u99("a", i)' ''
refused '"E", i, 0' ''
many=$(printf ', etw_u8("f%d", 1)' $(seq 65))
refused "\"E\", 4, 0$many" 'at most 64'
echo "1..$count"
exit $failed
