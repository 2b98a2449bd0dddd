#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The n-th system call of the recorder fails, for all n, once and from then on. The program runs as
# it does natively. What was written can be read, and where nothing was written a line gives the
# reason.
load broken.bash

setup() {
	home=$BATS_TEST_TMPDIR
	output=$home/recordings
	mkdir -p "$output"
	[ -x "$build/fault/inject" ]
	"$build/fault/inject" --syscall=openat --nth=1 --errno=EPERM -- true ||
		skip "no tracing allowed here"
	"$victims/holds_memory" 2 7 >"$home/native.out" 2>"$home/native.err" ||
		echo $? >"$home/native.status"
	[ "$(<"$home/native.status")" = 7 ]
}

# After one run: same output, one line at most, a recording or a reason.
judge() {
	compare
	[ "$(wc -l <"$home/recorded.err")" -le 1 ]
	! grep -v '^cuflight: ' "$home/recorded.err"
	if [ -n "$(ls -A "$output")" ]; then
		readable_in "$output"
	else
		[ -s "$home/recorded.err" ]
	fi
}

# OPTIONS NAME:ERRNO[:onward] N: one run; leaves "seen S failed F" in $home/seen
run_failing() {
	local name errno onward
	IFS=: read -r name errno onward <<<"$2"
	rm -rf "${output:?}"/*
	observe recorded "$build/fault/inject" --syscall="$name" --nth="$3" --errno="$errno" \
		${onward:+--onward} --report="$home/seen" -- \
		env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$1" \
		"$victims/holds_memory" 2 7
	judge || { echo "$2, call $3, with $1" >&2; return 1; }
}

# NAME:ERRNO[:onward] [:OPTIONS]: for n = 1, 2, ... until there is no n-th call, with the recording
# made at the start and at the first use of the device
for_all_n() {
	local settings n calls=0
	for settings in start=1:host=full:size=4MiB start=0:size=4MiB; do
		for ((n = 1; n < 60; n++)); do
			run_failing "$settings${2-}" "$1" $n
			! grep -q 'failed 0' "$home/seen" || break
			calls=$((calls + 1))
		done
	done
	[ "$calls" -gt 0 ] || { echo "the recorder never called ${1%%:*}" >&2; return 1; }
	echo "# $1: $calls runs"
}

@test "openat fails" { for_all_n openat:EMFILE; }
@test "openat fails from the n-th call on" { for_all_n openat:EPERM:onward; }
@test "fallocate fails: no space" { for_all_n fallocate:ENOSPC; }
@test "fallocate is not supported, zeros are written instead" { for_all_n fallocate:EOPNOTSUPP; }
@test "fallocate fails with an input or output error" { for_all_n fallocate:EIO; }
@test "mmap fails" { for_all_n mmap:ENOMEM; }
@test "mmap fails from the n-th call on" { for_all_n mmap:ENOMEM:onward; }
@test "mmap is forbidden" { for_all_n mmap:EPERM; }
@test "mremap fails" { for_all_n mremap:ENOMEM; }
@test "madvise fails" { for_all_n madvise:EINVAL; }
@test "close fails" { for_all_n close:EIO; }
@test "read fails" { for_all_n read:EIO; }
@test "read is interrupted" { for_all_n read:EINTR; }
@test "readlinkat fails" { for_all_n readlinkat:EACCES; }
@test "uname fails" { for_all_n uname:EPERM; }
@test "prctl fails" { for_all_n prctl:EPERM; }
@test "prlimit64 fails" { for_all_n prlimit64:EPERM; }
@test "rt_sigprocmask is forbidden while there is a line to print" {
	for_all_n rt_sigprocmask:EPERM :nonsense=1
}
@test "membarrier fails" { for_all_n membarrier:EPERM; }
@test "membarrier does not exist" { for_all_n membarrier:ENOSYS:onward; }

@test "fallocate is not supported, and the disk fills while zeros are written" {
	observe recorded "$build/fault/inject" --syscall=fallocate --nth=1 --errno=EOPNOTSUPP \
		--syscall=write --nth=30 --errno=ENOSPC --report="$home/seen" -- \
		env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$options" \
		"$victims/holds_memory" 2 7
	judge
	[ "$(sed -n 's/.*failed //p' "$home/seen" | paste -sd' ')" = "1 1" ]
	said_once 'no space left'
	left_nothing "$output"
}
