#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Libraries that a program loads while it runs. C++ exceptions keep their cost, calls that bypass
# the recorder are named, stacks through an unloaded library keep its names, and a library that
# allocates before the recorder could start is served.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	library=$build/libcuflight.so
	[ -x "$library" ]
	cd "$BATS_TEST_TMPDIR" || return
	cc -O1 "$root/tests/e2e/programs/library_host.c" -o host -ldl
}

# NAME: a library whose go() forgets 100 blocks of 1000 bytes in NAME(), which is at a different
# address in each
leaky() {
	cat >"$1.c" <<-C
		__asm__(".text; .skip 32 * ${#1}, 0x90");
		#include <stdlib.h>
		char *volatile kept_$1;
		__attribute__((noinline)) void $1(void) { kept_$1 = malloc(1000); }
		int go(void) { for (int i = 0; i < 100; i++) $1(); return 0; }
	C
	cc -O1 -g -fno-builtin -shared -fPIC "$1.c" -o "$1.so"
}

# COMMAND...: its report as JSON in ./report
recorded() {
	CUFLIGHT_OUTPUT=$PWD/recordings/ "$build/cuflight" run --host=full --size=4MiB -- "$@"
	"$build/cuflight" report --json recordings >report
}

# FUNCTION: the bytes of the live call site that has it in its stack
live_in() { python3 -c '
import json, sys
print(sum(s["bytes"] for s in json.load(open("report"))["leaks"] if any(sys.argv[1] in (f.get("function") or "") for f in s["stack"])))' "$1"; }

# OPTIONS: instructions of one throw and catch, under the recorder with these options or without it. Those of the start are subtracted.
instructions() {
	local throws counts=()
	for throws in 100 300; do
		counts+=("$(THROWS=$throws CUFLIGHT_OPTIONS=$1 CUFLIGHT_OUTPUT=$PWD/recordings/ LD_PRELOAD=${1:+$library} \
			valgrind --tool=callgrind --callgrind-out-file=/dev/null ./host ./throws.so 2>&1 | sed -n 's/.*Collected : //p')")
	done
	echo $(((counts[1] - counts[0]) / (8 * 200)))
}

@test "C++ exceptions in a library of a C program take only few more instructions" {
	command -v g++ >/dev/null || skip "no g++ here"
	command -v valgrind >/dev/null || skip "no valgrind here"
	g++ -O2 -shared -fPIC "$root/tests/e2e/programs/throws.cpp" -o throws.so
	native=$(instructions '') sampled=$(instructions host=sampled) full=$(instructions host=full:start=1)
	echo "# throw and catch: native $native instructions, sampled $sampled, full $full" >&3
	[ "$native" -gt 1000 ]
	[ $((100 * sampled)) -le $((102 * native)) ]
	# an exception is a malloc and a free, too
	[ $((100 * full)) -gt $((101 * native)) ]
	[ $((100 * full)) -le $((110 * native)) ]
}

# Under heaptrack 25 times and more: it brings libunwind, whose _Unwind_RaiseException stands before libgcc's. Time, so not a
# matter of a few percent: on a shared machine native runs differ by a third.
@test "C++ exceptions in a library of a C program are not many times slower" {
	command -v g++ >/dev/null || skip "no g++ here"
	g++ -O2 -shared -fPIC "$root/tests/e2e/programs/throws.cpp" -o throws.so
	for _ in 1 2 3; do
		./host ./throws.so >>native
		for options in host=sampled host=full:start=1; do
			CUFLIGHT_OPTIONS=$options CUFLIGHT_OUTPUT=$PWD/recordings/ LD_PRELOAD=$library ./host ./throws.so >>"${options%%:*}"
		done
	done
	least() { sort -n "$1" | head -n 1; }
	echo "# throw and catch: native $(least native) ns, sampled $(least host=sampled) ns, full $(least host=full) ns" >&3
	preload=$(ls /usr/lib/*/heaptrack/libheaptrack_preload.so /usr/lib/heaptrack/libheaptrack_preload.so 2>/dev/null | head -n 1) || :
	if [ -n "$preload" ]; then
		echo "# under heaptrack: $(DUMP_HEAPTRACK_OUTPUT=$PWD/heaptrack.out LD_PRELOAD=$preload ./host ./throws.so) ns" >&3
	fi
	[ "$(least native)" -gt 0 ]
	[ "$(least host=sampled)" -le $((3 * $(least native))) ]
	[ "$(least host=full)" -le $((3 * $(least native))) ]
}

@test "a library loaded with RTLD_DEEPBIND is named in coverage, because its calls are not seen" {
	leaky hidden_site
	leaky seen_site
	recorded ./host deep ./hidden_site.so
	grep -q 'hidden_site.so was loaded with RTLD_DEEPBIND' report
	rm -r recordings
	recorded ./host ./seen_site.so
	if grep RTLD_DEEPBIND report; then return 1; fi
	[ "$(live_in seen_site)" = 100000 ]
}

@test "libraries that are unloaded leave their names in stacks" {
	for name in first_site second_site the_third_site; do leaky $name; done
	recorded ./host close ./first_site.so ./second_site.so ./the_third_site.so ./first_site.so
	[ "$(live_in first_site)" = 200000 ]
	[ "$(live_in second_site)" = 100000 ]
	[ "$(live_in the_third_site)" = 100000 ]
}

@test "libraries whose files are gone leave their names in stacks, too" {
	for name in first_site second_site; do leaky $name; done
	# shellcheck disable=SC2016
	recorded sh -c './host close ./first_site.so && rm first_site.so && exec ./host close ./second_site.so'
	[ "$(live_in second_site)" = 100000 ]
}

# The recorder looks for the real allocator without allocating. A library that allocates meanwhile
# gets a block of the recorder's arena (interpose/hooks/malloc/boot_alloc.c). It may be resized and
# freed at any time later, although libc could not free it.
@test "blocks from before the real allocator was resolved are resized and freed like all others, in each mode" {
	cat >first.c <<'EOF'
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
char *early[3];
/* The recorder calls this when it has found the name: here is one who allocates then. */
extern void *__libc_malloc(size_t);
static void *(*choose(void))(size_t)
{
	for (int i = 0; i < 3; i++)
		if (!early[i])
			early[i] = memset(malloc(100), 'a' + i, 100);
	return __libc_malloc;
}
void *malloc(size_t bytes) __attribute__((ifunc("choose")));
EOF
	cat >victim.c <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char *early[3] __attribute__((weak));
int main(void)
{
	Dl_info info;
	if (!early || !early[2] || !dladdr(early[0], &info) || !strstr(info.dli_fname, "libcuflight"))
		return 3; /* it did not come to this */
	for (int i = 0; i < 20000; i++) /* beyond the thread's first event */
		free(malloc(100));
	early[0] = realloc(early[0], 1000);
	if (memcmp(early[0], "aaaa", 4) || malloc_usable_size(early[1]) < 100)
		return 1;
	free(early[0]);
	free(early[1]);
	early[2] = realloc(early[2], 10);
	if (memcmp(early[2], "cccc", 4))
		return 1;
	free(early[2]);
	puts("well");
	return 0;
}
EOF
	cc -fno-builtin -shared -fPIC first.c -o first.so
	cc -fno-builtin victim.c -o victim
	for option in start=1 start=1:host=full start=1:host=off size=64MiB; do
		[ "$(CUFLIGHT_OPTIONS=$option CUFLIGHT_OUTPUT=$PWD/rec/ LD_PRELOAD="$library $PWD/first.so" ./victim)" = well ]
	done
	[ "$(CUFLIGHT_DISABLE=1 LD_PRELOAD="$library $PWD/first.so" ./victim)" = well ]
}
