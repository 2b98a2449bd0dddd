#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Lines of the recorder go to the standard error that the program started with, and never make the
# program wait.
load broken.bash

setup_file() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin \
		"$BATS_TEST_DIRNAME/others/daemon.c" -o "$BATS_FILE_TMPDIR/daemon"
}

@test "a data file of the program has descriptor 2" {
	options=start=0
	output=/proc/no/such/folder/
	unchanged_under command "$BATS_FILE_TMPDIR/daemon" "$home/data" replace
	[ "$(<"$home/data")" = 'app data' ]
}

@test "a refused request and a bad end print nothing into a data file with descriptor 2" {
	unchanged_under command "$BATS_FILE_TMPDIR/daemon" "$home/data" replace refuse
	[ "$(<"$home/data")" = 'app data' ]
}

@test "standard error is replaced by a log file" {
	output=/proc/no/such/folder/
	options=start=0
	unchanged_under command "$BATS_FILE_TMPDIR/daemon" "$home/log" redirect
	[ "$(<"$home/log")" = 'app data' ]
}

@test "standard error is a full pipe that nobody reads" {
	# shellcheck disable=SC2016
	full() { timeout 20 python3 -c 'import fcntl, os, subprocess, sys
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while os.write(w, b"x" * 4096): pass
except BlockingIOError:
    fcntl.fcntl(w, fcntl.F_SETFL, 0)
sys.exit(subprocess.run(sys.argv[1:], stderr=w).returncode)' "$@"; }
	output=/proc/no/such/folder/
	unchanged_under full "$victims/holds_memory" 20 7
}

@test "the termination log is a FIFO that nobody reads" {
	mkfifo "$home/fifo"
	limited() { timeout 20 "$@"; }
	options=start=1:termination_log=$home/fifo
	unchanged_under limited "$BATS_FILE_TMPDIR/daemon" "$home/data" keep refuse
}

@test "the program leaves the directory in which it was started, and removes its own" {
	cd "$home"
	output=recordings
	options=start=0
	unchanged_under command "$BATS_FILE_TMPDIR/daemon" "$home/data" scratch
	grep -qx 'rmdir 0' "$home/recorded.out"
	ls "$home"/recordings/*.cuf
	output=
	unchanged_under command "$BATS_FILE_TMPDIR/daemon" "$home/data" scratch
	grep -qx 'rmdir 0' "$home/recorded.out"
	ls "$home"/cuflight.daemon.*.cuf
}

@test "an output path that is too long" {
	cd "$home"
	output=$(printf '%01100d' 7)
	unchanged_under command "$victims/holds_memory" 20 7
	said_once 'too long'
}

@test "signals interrupt the reservation of the file" {
	command -v strace >/dev/null || skip "strace is not installed"
	observe native "$victims/holds_memory" 20 7
	observe recorded strace -qq -f -o /dev/null -e trace=fallocate \
		-e inject=fallocate:error=EINTR:when=1..3 -E "LD_PRELOAD=$library" \
		env "CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$options" \
		"$victims/holds_memory" 20 7
	compare
	said_nothing
	ls "$output"/*.cuf
}
