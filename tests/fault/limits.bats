#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Limits that count the recorder's memory as the program's: the program's own requests are served as
# they are natively, a smaller recording is made, and one line states why.
load broken.bash

setup_file() {
	local source=$BATS_TEST_DIRNAME/others/under_limits.c
	set -- -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin "$source"
	"${CC:-cc}" "$@" -o "$BATS_FILE_TMPDIR/under_limits"
	"${CC:-cc}" "$@" -DLOCKS -o "$BATS_FILE_TMPDIR/locks"
}

# LIMIT KIB COMMAND...
limited() { (ulimit "$1" "$2" && shift 2 && exec "$@"); }

# LIMIT MIB WHAT: a limit of 100 MiB, in both modes
served_as_natively() {
	local mode
	observe native limited "$1" 102400 "$BATS_FILE_TMPDIR/under_limits" allocate "$2"
	for mode in sampled full; do
		observe recorded limited "$1" 102400 env "LD_PRELOAD=$library" \
			"CUFLIGHT_OUTPUT=$output/" "CUFLIGHT_OPTIONS=start=1:host=$mode" \
			"$BATS_FILE_TMPDIR/under_limits" allocate "$2"
		compare
		said_once "the limit is 100 MiB of $3"
	done
	readable_in "$output" 2
}

@test "a limit on addresses: the recorder takes less than a tenth" {
	served_as_natively -v 88 addresses
}

@test "a limit on private memory: the recorder takes less than a tenth" {
	served_as_natively -d 90 'private memory'
}

@test "a program that locks all its memory, with the right to and without" {
	need_root
	open_to_all
	chmod a+rx "$BATS_FILE_TMPDIR" "$BATS_FILE_TMPDIR/locks"
	chmod a+rwx "$output"
	cp "$library" "$home" # nobody may come there, wherever the build is
	library=$home/libcuflight.so
	unprivileged() { limited -l 8192 setpriv --reuid 65534 --clear-groups "$@"; }
	for as in env unprivileged; do
		observe native $as "$BATS_FILE_TMPDIR/locks" lock
		observe recorded $as env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output/" \
			CUFLIGHT_OPTIONS= "$BATS_FILE_TMPDIR/locks" lock
		compare
		grep -qx 'mlockall: ok; little is locked' "$home/recorded.out"
		said_nothing # there is no file
	done
}
