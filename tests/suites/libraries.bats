#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test suites of allocators and C libraries, from the distribution's source packages, without
# the recorder and under it in both modes: same output, same status. Sources are fetched with
# separate package lists, only for this run.
bats_require_minimum_version 1.5.0

setup_file() {
	root=$(realpath "$BATS_TEST_DIRNAME/../..")
	build=$(realpath "${BUILD:-$root/build}")
	export root build CUFLIGHT_OUTPUT=$BATS_FILE_TMPDIR/recordings/
	[ -x "$build/libcuflight.so" ]
	command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || return 0
	lists_of_sources >"$BATS_FILE_TMPDIR/lists.log" 2>&1 || echo "no package lists" >"$BATS_FILE_TMPDIR/no_sources"
}

# The machine's own lists, as lists of sources; the machine's configuration stays as it is.
lists_of_sources() {
	local apt=$BATS_FILE_TMPDIR/apt file
	mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
	for file in /etc/apt/sources.list.d/*.sources; do
		[ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}"
	done
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$apt/sources.list"
	fetch update
}

fetch() {
	local apt=$BATS_FILE_TMPDIR/apt
	apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists" \
		-o Dir::Cache="$apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

# PACKAGE: unpacked in ./source
source_of() {
	[ -d "$BATS_FILE_TMPDIR/apt" ] || skip "no apt-get and dpkg-source here"
	[ ! -e "$BATS_FILE_TMPDIR/no_sources" ] || skip "no lists of source packages: $(tail -n 1 "$BATS_FILE_TMPDIR/lists.log")"
	cd "$BATS_TEST_TMPDIR" || return
	fetch source "$1" >fetch.log 2>&1 || skip "no sources of $1: $(tail -n 1 fetch.log)"
	mv "$1"-*/ source
	cd source || return
}

# WAY NAME COMMAND...: its output and status in ../NAME.WAY
observe() {
	local out=../$2.$1
	shift 2
	"$@" >"$out" 2>&1 </dev/null && echo "status 0" >>"$out" || echo "status $?" >>"$out"
}

# NAME COMMAND...: same in all ways, and no failure
same() {
	local name=$1 mode
	shift
	observe native "$name" "$@"
	grep -q '^status 0$' "../$name.native" || { cat "../$name.native"; echo "$name fails without the recorder"; return 1; } >&2
	for mode in sampled full; do
		observe $mode "$name" env "LD_PRELOAD=$build/libcuflight.so" "CUFLIGHT_OPTIONS=start=1:host=$mode:size=16MiB" "$@"
		diff <(steady "../$name.native") <(steady "../$name.$mode") >&2 || { echo "$name differs, host=$mode" >&2; return 1; }
	done
	suites=$((${suites:-0} + 1))
}

# what does not differ from run to run
steady() { sed -E 's/0x[0-9a-f]+/0x/g; s/[0-9.]+ ?(us|ms|s|seconds)\b/time/g' "$1"; }

recordings_are_readable() {
	local file count=0
	for file in "$CUFLIGHT_OUTPUT"/*.cuf; do
		[ -f "$file" ]
		"$build/cuflight" report "$file" >report 2>&1 || { cat report >&2; return 1; }
		count=$((count + 1))
	done
	echo "# $suites programs, $count recordings" >&3
	rm -r "$CUFLIGHT_OUTPUT"
}

@test "jemalloc's integration tests pass, with jemalloc behind the recorder" {
	source_of jemalloc
	local program
	{ [ -x configure ] || autoconf; CFLAGS=-O1 ./configure --disable-cxx && make -j2 build_lib_shared tests_integration; } >../build.log 2>&1 ||
		{ tail ../build.log >&2; return 1; }
	export LD_LIBRARY_PATH=$PWD/lib
	for program in test/integration/*; do
		[ -f "$program" ] && [ -x "$program" ] && [[ $program != *.* ]] || continue
		# shellcheck disable=SC1090
		settings=$([ ! -f "$program.sh" ] || enable_fill=1 enable_prof=0 . "./$program.sh"; echo "${MALLOC_CONF:-}")
		same "${program##*/}" env "MALLOC_CONF=$settings" "$program"
	done
	[ "$suites" -ge 10 ]
	recordings_are_readable
}

@test "mimalloc's stress test passes on the process's malloc" {
	source_of mimalloc
	cc -O1 -DUSE_STD_MALLOC test/test-stress.c -o stress -lpthread
	same one_thread ./stress 1 50 20
	same many_threads ./stress 8 20 20
	recordings_are_readable
}

# except those of sockets and pipes, which test neither memory nor threads
@test "apr's tests pass: pools, tables, threads, locks, processes, shared memory" {
	source_of apr
	local suite
	{ ./configure && make -j2 && make -C test -j2; } >../build.log 2>&1 || { tail ../build.log >&2; return 1; }
	cd test
	for suite in testpools teststr testtable testhash testskiplist testfmt testencode testescape testthread testatomic testcond testlock testdso testoc testnames \
		testenv testfile testmmap testproc testprocmutex testshm testtemp testuser; do
		same $suite ./testall $suite
	done
	recordings_are_readable
}
