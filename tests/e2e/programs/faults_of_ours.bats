#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A fault inside the recorder turns recording off: the program's output and exit status stay as they are, one line on stderr
# states the reason, and the recording is readable and says that it was switched off.
load ../cli.bash

# BYTE [BYTES]: the victim overwrites the recording with BYTE; its output is in out and err, its status in $status
scribble() {
	rm -f r.cuf
	status=0
	SIMCUDA_LIB=$build/sim "$root/scripts/simcuda" env CUFLIGHT_OUTPUT="$home/r.cuf" CUFLIGHT_OPTIONS="size=8MiB:host=$mode" \
		LD_PRELOAD="$build/libcuflight.so" "$build/victims/scribbles" "$@" >out 2>err || status=$?
}

native() {
	SIMCUDA_LIB=$build/sim "$root/scripts/simcuda" "$build/victims/scribbles" >native.out 2>native.err || true
}

switched_off() {
	[ "$status" = 7 ]
	cmp out native.out
	cmp <(grep -v '^cuflight: ' err) native.err
	[ "$(grep -c '^cuflight: ' err)" = 1 ]
	grep -qE '^cuflight: recording stopped: the recording.s .* overwritten; the program goes on unrecorded$' err
	expect 0 report r.cuf
	grep -qE 'recording was switched off: the' out
	expect 0 report --json -o r.json -f r.cuf
	python3 -c 'import json; assert json.load(open("r.json"))["processes"][0]["switched_off"]'
}

@test "a recording that is overwritten as a whole: the program is unchanged, recording stops with one line" {
	native
	for mode in sampled full; do
		for byte in 0 0xa5 0xff; do
			scribble "$byte"
			switched_off
		done
	done
}

@test "an overwritten header, or only its magic: noticed when the next thread starts" {
	native
	mode=sampled
	for bytes in 4096 8; do
		scribble 0xa5 "$bytes"
		switched_off
	done
}
