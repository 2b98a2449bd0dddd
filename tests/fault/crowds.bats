#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# More threads than the recording has places for, and processes that share a number: the program
# goes on at its own speed. The time limits are a hundred times what a run takes.
load broken.bash

compile() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin \
		"$root/tests/fault/others/$1.c" -o "$home/$1" -lpthread
}
limited() { timeout 30 "$@"; }

@test "more live threads than the recording has places for" {
	compile many_threads
	for options in size=4MiB start=1:size=4MiB start=1:size=4MiB:host=full; do
		unchanged_under limited "$home/many_threads" 300 1000000
		said_nothing
	done
}

@test "a child that has its parent's process id" {
	compile same_pid
	unshare --pid --fork true || skip "this process may make no pid namespace"
	in_namespace() { timeout 30 unshare --pid --fork "$@"; }
	for options in start=1:size=4MiB:host=sampled start=1:size=4MiB:host=full; do
		unchanged_under in_namespace "$home/same_pid"
		grep -qx "process 1, child's status 5" "$home/recorded.out"
		said_nothing
	done
}

@test "the file system does not answer" {
	command -v strace >/dev/null || skip "strace is not installed"
	compile slow_output
	observe native "$home/slow_output"
	# the recording's open takes ten seconds
	observe recorded timeout 60 strace -qq -f -o /dev/null -P "$home/slow.cuf" -e trace=openat \
		-e inject=openat:delay_enter=10000000:when=2 -E "LD_PRELOAD=$library" \
		env "CUFLIGHT_OUTPUT=$home/slow.cuf" "$home/slow_output"
	compare
}
