#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs with unusual stacks, threads and processes. The program ends as it does natively, and the
# recording has every block, in both modes. Where a stack can be walked, it is the right one.
load broken.bash

# VICTIM WAY: exact in both modes
exact() {
	local victim=$1 mode
	"$victims/$victim" "$2" >"$home/native.out"
	grep -q '^size ' "$home/native.out"
	for mode in full sampled; do
		local truth=
		[ "$mode" = full ] || truth=some # forked children keep theirs in memory
		rm -rf "${output:?}"/*
		local settings=start=1:host=$mode:size=${size:-16MiB}:stack_depth=${depth:-64}
		CUFLIGHT_OUTPUT=$output/ CUFLIGHT_OPTIONS=$settings LD_PRELOAD=$library \
			"$victims/$victim" "$2" >"$home/truth" 2>"$home/recorded.err"
		said_nothing
		diff <(told native.out) <(told truth) >&2
		"$build/fault/host_truth" "$output" ${truth:+"$truth"} <"$home/truth"
	done
}

# the output, except what differs from run to run
told() { sed -E "s/pid [0-9]+/pid/; ${varies:-}" "$home/$1"; }

@test "stacks left by longjmp" { exact host_stacks longjmp; }
@test "stacks made by makecontext, and unmapped" { exact host_stacks makecontext; }
@test "signal handlers that allocate" { exact host_stacks signal; }
@test "signal handlers that allocate, on an alternate stack" { exact host_stacks alternate_stack; }
@test "signal handlers left by siglongjmp" { exact host_stacks siglongjmp; }
@test "a timer's handler that allocates" { varies='s/^size 131223 .*//' exact host_stacks timer; }
@test "stacks deeper than the cap" {
	exact host_stacks deep_recursion
	depth=256 exact host_stacks deep_recursion
}
@test "the smallest stacks that threads may have" { depth=256 exact host_stacks small_stack; }
@test "destructors of threads that have ended" { exact host_processes destructors; }
@test "threads that are cancelled" { exact host_processes cancel; }
@test "fork while threads allocate" { varies='s/^size 131271 .*//' exact host_processes fork; }
@test "clone as a raw system call" { exact host_processes raw_clone; }
@test "vfork and exec, and exec that fails" { exact host_processes vfork; }
@test "posix_spawn, also of a file that does not exist" { exact host_processes posix_spawn; }
@test "clone that shares the memory" { exact host_processes clone_vm; }
@test "allocations after exit began" { exact host_processes atexit; }
