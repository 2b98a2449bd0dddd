#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the recorder interposes in every program: the malloc family, dlsym and the like, the end of
# the process. Programs that check the letter of their contracts get the same results with it as
# without.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	mkdir -p "$BATS_TEST_TMPDIR/recordings"
	export CUFLIGHT_OUTPUT=$BATS_TEST_TMPDIR/recordings/
}

# OPTIONS COMMAND...: its output and status are the same with the recorder
same_answers() {
	local options=$1 native recorded native_status=0 recorded_status=0
	shift
	native=$("$@") || native_status=$?
	recorded=$(CUFLIGHT_OPTIONS=$options LD_PRELOAD=$build/libcuflight.so "$@") || recorded_status=$?
	[ -n "$native" ]
	[ "$native_status" = "$recorded_status" ]
	diff <(echo "$native") <(echo "$recorded") >&2
}

@test "the malloc family keeps its contract: results, errno, alignment, refused resizes" {
	for options in host=off host=sampled host=full host=full:mmap=1; do
		same_answers "$options" "$build/victims/malloc_contract"
	done
	run ! grep '^NO ' <("$build/victims/malloc_contract")
}

@test "the malloc family keeps its contract over another allocator" {
	jemalloc=$(ldconfig -p | awk '/libjemalloc.so.2/ { print $NF; exit }')
	[ -n "$jemalloc" ] || skip "no libjemalloc here"
	native=$(LD_PRELOAD=$jemalloc "$build/victims/malloc_contract" basic)
	for mode in sampled full; do
		recorded=$(CUFLIGHT_OPTIONS=host=$mode LD_PRELOAD="$build/libcuflight.so $jemalloc" "$build/victims/malloc_contract" basic)
		diff <(echo "$native") <(echo "$recorded") >&2
	done
}

@test "dlsym invents nothing, keeps dlerror and errno, and RTLD_NEXT is the caller's next" {
	cc -O1 -D_GNU_SOURCE -shared -fPIC -DFIRST "$root/tests/e2e/device/chain.c" -o "$BATS_TEST_TMPDIR/first.so" -ldl
	cc -O1 -D_GNU_SOURCE -shared -fPIC "$root/tests/e2e/device/chain.c" -o "$BATS_TEST_TMPDIR/second.so"
	same_answers host=sampled "$build/victims/symbol_contract" "$BATS_TEST_TMPDIR/first.so" "$BATS_TEST_TMPDIR/second.so"
	same_answers host=sampled "$build/victims/symbol_contract" "$BATS_TEST_TMPDIR/second.so" "$BATS_TEST_TMPDIR/first.so"
}

@test "dlsym's pass-through is a jump in the object code" {
	"$root/scripts/lint-tailjump" "$build"
}

@test "every way to exit keeps its status" {
	same_answers host=full bash -c 'echo shell; exit 7'
	same_answers host=full perl -MPOSIX -e '$| = 1; print "fast\n"; POSIX::_exit(9)'
	same_answers host=full perl -e '$| = 1; print "exec\n"; exec "sh", "-c", "echo child; exit 4"'
	same_answers host=full perl -e '$| = 1; print "no exec\n"; exec "/no/such/program" or exit 3'
	same_answers host=full perl -MPOSIX -e '$| = 1; print "abort\n"; POSIX::abort()'
}

@test "exec in a vfork child does not end the recording of its parent" {
	cat >"$BATS_TEST_TMPDIR/spawn.py" <<-'PY'
		import subprocess, os
		for _ in range(3):
		    print(subprocess.run(["true"]).returncode, subprocess.run(["sh", "-c", "exit 5"]).returncode)
		try: subprocess.run(["/no/such/program"])
		except FileNotFoundError: print("not found")
		os._exit(6)
	PY
	command -v python3 >/dev/null || skip "no python3 here"
	same_answers host=full python3 -u "$BATS_TEST_TMPDIR/spawn.py"
}
