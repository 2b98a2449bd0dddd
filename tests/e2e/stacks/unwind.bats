#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The option unwind: other ways to walk a stack give the call sites that the default way gives.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=$(realpath "${BUILD:-$root/build}")
	cd "$BATS_TEST_TMPDIR" || return
	cat >chain.c <<-'C'
		#include <stdlib.h>
		#define NEXT(from, to) __attribute__((noinline)) void *from(int n) { void *p = to(n); __asm__ volatile(""); return p; }
		__attribute__((noinline)) void *third(int n) { void *p = malloc(n); __asm__ volatile(""); return p; }
		NEXT(second, third)
		NEXT(first, second)
		int main(void)
		{
			for (int i = 0; i < 200; i++)
				if (!first(5000)) return 1;
			return 0;
		}
	C
}

# WAY COMMAND...: records it into WAY.cuf, and writes its call sites, "bytes frames", to WAY.sites
sites() {
	local way=$1 library=$build/libcuflight.so unwind=$1
	shift
	[ "$way" != listed ] || library=$build/before_2.35/libcuflight.so unwind=cfi
	CUFLIGHT_OPTIONS=host=full:unwind=$unwind CUFLIGHT_OUTPUT=$way.cuf LD_PRELOAD=$library "$@" >out.$way 2>err.$way
	"$build/cuflight" report --json "$way.cuf" | python3 -c '
import json, sys
report = json.load(sys.stdin)
for site in report["leaks"] + report["growth"]:
    print(site["bytes"], *("%s:%s" % (f["function"], f["line"]) for f in site["stack"]))' | sort -u >"$way.sites"
	[ -s "$way.sites" ]
}

# every call site of cfi is there with the same bytes and frames; the rest is the loader's, for libunwind
same_as_cfi() {
	sites cfi "$@"
	sites libunwind "$@"
	cmp out.cfi out.libunwind
	[ ! -s err.libunwind ]
	[ -z "$(comm -23 cfi.sites libunwind.sites)" ]
	! comm -13 cfi.sites libunwind.sites | grep -v dlopen
}

@test "unwind=libunwind gives the same call sites as call-frame information" {
	ldconfig -p | grep -q 'libunwind\.so\.8 ' || skip "no libunwind here"
	cc -O2 -g -o chain chain.c
	same_as_cfi ./chain
	grep -q '^1000000 third:[0-9]* second:[0-9]* first:[0-9]* main:[0-9]* ' libunwind.sites
	same_as_cfi "$build/victims/host_leak"
}

@test "unwind=libunwind in python3: Python's frames are merged as before" {
	ldconfig -p | grep -q 'libunwind\.so\.8 ' || skip "no libunwind here"
	cat >keeps.py <<-'PY'
		kept = []
		def remember(n):
		    kept.append(bytearray(n))
		for i in range(100):
		    remember(100000)
	PY
	python=$(python3 -c 'import sys; print(sys.executable)') # the name may be a script's
	sites cfi "$python" keeps.py
	sites libunwind "$python" keeps.py
	grep 'remember:3' cfi.sites >cfi.lines
	grep 'remember:3' libunwind.sites >libunwind.lines
	cmp cfi.lines libunwind.lines
	awk '{ sum += $1 } END { exit !(sum >= 10000000) }' libunwind.lines
}

@test "glibc before 2.35: stacks go through libraries that were opened late, closed and opened again" {
	cat >plugin.c <<-'C'
		#include <stdlib.h>
		__attribute__((noinline)) void *PART(int n) { void *p = malloc(n); __asm__ volatile(""); return p; }
		void *start(int n) { void *p = PART(n); __asm__ volatile(""); return p; }
		static void *early;
		__attribute__((constructor)) static void begin(void) { early = PART(7000); }
	C
	cat >opens.c <<-'C'
		#include <dlfcn.h>
		#include <stdio.h>
		int main(void)
		{
			for (int i = 0; i < 20; i++) {
				char path[] = "./A.so";
				path[2] += i % 4;
				void *library = dlopen(path, RTLD_NOW);
				void *(*start)(int) = (void *(*)(int))dlsym(library, "start");
				if (!start(5000 + i % 4)) return 1;
				if (i == 5) dlclose(library);
				if (i > 4 && i % 4 == 1) dlclose(library); /* its place stays free for it */
			}
			puts("done");
			return 0;
		}
	C
	for part in A B C D; do cc -O2 -g -shared -fPIC -DPART="part_$part" -o $part.so plugin.c; done
	cc -O2 -g -o opens opens.c
	sites cfi ./opens
	sites listed ./opens
	cmp out.cfi out.listed
	diff cfi.sites listed.sites
	for part in A B C D; do grep -q "part_$part:[0-9]* start:[0-9]* main:[0-9]* " listed.sites; done
	grep 'begin:[0-9]*' listed.sites | grep -q main
}

@test "glibc before 2.35, python3: the same call sites, in its extensions too" {
	cat >keeps.py <<-'PY'
		import hashlib, json, sqlite3, zlib
		kept = [sqlite3.connect(':memory:').execute('select randomblob(300000)').fetchone() for _ in range(9)]
		kept += [zlib.compressobj() for _ in range(9)]
	PY
	python=$(python3 -c 'import sys; print(sys.executable)')
	for way in cfi listed; do
		PYTHONHASHSEED=0 sites $way "$python" keeps.py
		grep -E ' (sqlite3_|zlib_|deflateInit).* <listcomp>:' $way.sites >$way.late
	done
	[ -s cfi.late ]
	diff cfi.late listed.late
}

@test "unwind=libunwind where it cannot be loaded: one line, and call-frame information" {
	cc -O2 -g -o chain chain.c
	mkdir broken
	: >broken/libunwind.so.8
	sites cfi ./chain
	LD_LIBRARY_PATH=$PWD/broken sites libunwind ./chain
	[ "$(wc -l <err.libunwind)" -eq 1 ]
	grep -q 'unwind=libunwind: cannot load libunwind.so.8' err.libunwind
	grep -F "$(cut -d' ' -f1-5 cfi.sites | grep third)" libunwind.sites
}

@test "unwind=fp follows frame pointers, in code that keeps them and has no unwind information" {
	cc -O2 -g -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-optimize-sibling-calls -o chain chain.c
	sites fp ./chain
	grep -q '^1000000 third:[0-9]* second:[0-9]* first:[0-9]* main:[0-9]* ' fp.sites
}

@test "unwind=: a wrong word is told, and the default stays" {
	CUFLIGHT_OPTIONS=unwind=magic CUFLIGHT_OUTPUT=w.cuf run --separate-stderr env LD_PRELOAD="$build/libcuflight.so" ls
	[ "$status" -eq 0 ]
	[[ "$stderr" == *"bad value 'unwind=magic'"*"using the default"* ]]
}
