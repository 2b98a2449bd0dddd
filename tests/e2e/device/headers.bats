#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every driver function of the headers that are here has a row in hooks.def, or a decision in
# decided_functions.txt. CUDA_HEADERS=FOLDER: those of a new release.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	headers=${CUDA_HEADERS:-${BUILD:-$root/build}/cuda/include}
	decided=$BATS_TEST_DIRNAME/decided_functions.txt
	[ -e "$headers/cuda.h" ] || skip "no headers of CUDA here (scripts/setup)"
	cd "$BATS_TEST_TMPDIR" || return
	grep -ohE '\bCUDAAPI +cu[A-Za-z0-9_]+ *\(' "$headers/cuda.h" | grep -oE 'cu[A-Za-z0-9_]+' | sort -u >functions
	printf '%s\n' '#define HOOK(id, lib, ret, name, params, args, role) @lib:name' '#include "interpose/abi/hooks.def"' |
		cc -E -P -I"$root" -x c - | grep -oE '@CUDA:[A-Za-z0-9_ ]+' | sed 's/@CUDA://' | sort -u >rows
	[ "$(wc -l <functions)" -gt 400 ] && [ "$(wc -l <rows)" -gt 100 ]
	comm -23 functions rows >without_row
}

# NAMES: those that no line decides
undecided() {
	awk '
		function allocates(name) { return name ~ /Alloc|Create|Bind|Import|Instantiate|Load|Map[A-Z]|Mapp|Register|Open|Add.*Mem/ }
		FNR == NR { if (/^[a-z]/) { if (sub(/\*$/, "", $1)) pattern[$1]; else exact[$1] } next }
		$1 in exact { next }
		{
			known = 0
			if (!allocates($1)) for (start in pattern) if (index($1, start) == 1) known = 1
			if (!known) print $1
		}' "$decided" "$1"
}

@test "every driver function has a row or a decision" {
	undecided without_row >left
	[ ! -s left ] || { echo "decide on these, in hooks.def or $decided:" >&2; cat left >&2; false; }
}

@test "a new function is not decided by a pattern when it may allocate, and a row needs no decision" {
	printf '%s\n' cuMemPoolAllocBatch cuGraphicsMapMore cuDeviceCreateThing cuStreamBindMem cuNewThing >new
	undecided new | cmp - new
	echo cuDeviceGetSomething >known
	[ -z "$(undecided known)" ]
	awk '/^[a-z]/ { print $1 }' "$decided" | grep -v '\*$' | sort | comm -12 - rows >both
	[ ! -s both ] || { cat both >&2; false; }
}
