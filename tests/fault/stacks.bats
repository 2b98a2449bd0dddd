#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Small stacks: a hook needs at most 2 KiB beyond the real call, and larger work has a stack of its
# own. So threads of 16 KiB and crash handlers on alternate stacks run as they do natively.
# scripts/lint-stack has the figures.
load broken.bash

# NAME: builds $home/NAME. Bound at start, since the loader needs 3 KiB for a first call.
compile() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin -w -Wl,-z,now \
		"$root/tests/fault/stacks/$1.c" -o "$home/$1" -ldl -lpthread
}

# PROGRAM ARGUMENT...: the same with the recorder in both modes and without
same() {
	local mode
	observe native timeout 30 "$@"
	for mode in host=sampled host=full; do
		observe recorded timeout 30 env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" \
			"CUFLIGHT_OPTIONS=$mode:size=4MiB" "$@"
		cmp "$home/native.out" "$home/recorded.out"
		diff "$home/native.status" "$home/recorded.status" ||
			{ echo "differs: $mode $*" >&2; return 1; }
	done
}

@test "threads of 16 KiB that have little of it left" {
	compile small_thread
	same "$home/small_thread" handover 9000
	same "$home/small_thread" refused 9000
	same "$home/small_thread" dlopen 6500
	same "$home/small_thread" fork 8000
	same "$home/small_thread" malloc 9500
	readable_in "$output" 5
}

@test "crash handlers on an alternate stack of 8 KiB" {
	local how
	compile crash_handler
	for how in abort exit _exit malloc big fork; do
		same "$home/crash_handler" "$how"
		same "$home/crash_handler" "$how" refuse
	done
	readable_in "$output" 6
}
