#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A preload that is set for a whole pod meets containers with another C library. Programs of musl
# (Debian's package musl-tools) run as if it was not there: the same output and status, no file.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=$(realpath "${BUILD:-$root/build}")
	command -v musl-gcc >/dev/null || skip "no musl-gcc here (Debian's package musl-tools)"
	mkdir "$BATS_TEST_TMPDIR/here"
	cd "$BATS_TEST_TMPDIR/here" || return
}

# NAME VALUE... -- COMMAND...: the same as without us
same() {
	local variables=() status=0
	while [ "$1" != -- ]; do variables+=("$1"); shift; done
	shift
	"$@" >../native.out 2>../native.err || status=$?
	echo $status >../native.status
	status=0
	env "${variables[@]}" LD_PRELOAD="$build/libcuflight.so" "$@" >../preload.out 2>../preload.err || status=$?
	echo $status >../preload.status
	[ -s ../native.out ]
	for part in out err status; do diff ../native.$part ../preload.$part; done
	! ls cuflight.calls.* 2>/dev/null # the shell that it starts may be recorded
	rm -f ./*.cuf
}

@test "musl: everything that the recorder interposes does what it does without it" {
	musl-gcc -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin -o ../calls "$root/tests/e2e/programs/calls_of_libc.c"
	readelf -l ../calls | grep -q ld-musl
	same -- ../calls
	same -- ../calls 7
	grep -q '^at exit 0$' ../preload.out
	grep -qx 7 ../preload.status
}

@test "musl: no option makes it record, and a bad one is not told" {
	printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(malloc(200 << 20) ? "fine" : "none") < 0; }\n' >../small.c
	musl-gcc -O1 -fno-builtin -o ../small ../small.c
	same CUFLIGHT_OPTIONS=start=1:host=full CUFLIGHT_OUTPUT=./ -- ../small
	same CUFLIGHT_OPTIONS=nonsense:start=never -- ../small
	same CUFLIGHT_DISABLE=1 -- ../small
}

@test "musl: a tree that \$LIB leads to is not found there, and is with glibc" {
	printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(malloc(200 << 20) ? "fine" : "none") < 0; }\n' >../small.c
	musl-gcc -O1 -fno-builtin -o ../small ../small.c
	"${CC:-cc}" -O1 -fno-builtin -o ../small_glibc ../small.c
	"$build/cuflight" install ../tree 2>../said
	../tree/bin/cuflight env >../lines
	# shellcheck source=/dev/null
	. ../lines
	export CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=$PWD/
	[[ $LD_PRELOAD == *'/$LIB/libcuflight.so' ]]
	[ "$(../small 2>&1)" = fine ]
	run -2 ls ./*.cuf
	[ "$(../small_glibc 2>&1)" = fine ]
	LD_PRELOAD='' "$build/cuflight" report ./*.small_glibc.*.cuf | grep small_glibc
}
