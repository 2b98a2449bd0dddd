#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight run --check` and --error-exitcode: the child's failure comes first, and the same program gets the same answer.
load ../cli.bash

server() { echo "$root/scripts/simcuda" "$build/victims/model_server" "--commit=$1"; }

# STATUS OPTION... -- COMMAND...
runs() {
	local wanted=$1
	shift
	expect "$wanted" run --size=4MiB -f -o x.cuf "$@"
}

@test "--check judges a run that has succeeded" {
	# shellcheck disable=SC2046 # words
	runs 0 --check -- $(server 1)
	holds err 'PASS model_server'
	# shellcheck disable=SC2046
	runs 1 --check -- $(server 4)
	holds err 'FAIL model_server' 'device.leak = 0' keep_trace
	lacks out FAIL
	# shellcheck disable=SC2046
	runs 1 --limits='device.peak <= 100MiB, device.leak = 0' -- $(server 1)
	holds err '1 of 3 limits exceeded' 'device.peak <= 100MiB'
	# shellcheck disable=SC2046
	runs 0 --limits='device.peak <= 1GiB' -- $(server 4)
	# shellcheck disable=SC2046
	runs 9 --check --error-exitcode=9 -- $(server 4)
}

@test "the child's own failure comes first" {
	runs 4 --check -- sh -c 'exit 4'
	runs 143 --limits='device.peak <= 1KiB' -- sh -c 'kill $$'
	runs 127 --check -- ./missing
	lacks err 'PASS\|FAIL'
}

@test "mistakes in limits are found before the command starts" {
	runs 125 --limits='device.pek <= 1' -- touch started
	holds err "no measure 'device.pek'"
	runs 125 --limits='device.peak <= +3%' -- touch started
	runs 125 --baseline=missing.json -- touch started
	[ ! -e started ]
}

@test "what cannot be judged is no pass" {
	runs 3 --limits='device.peak <= 1GiB' -- true
	holds err 'no CUDA call was recorded'
	CUFLIGHT_DISABLE=1 runs 3 --check -- true
}

@test "with a baseline, and limits of cuflight.ini" {
	# shellcheck disable=SC2046
	runs 0 -- $(server 1)
	"$cuflight" baseline -q x.cuf -o memory.json
	# shellcheck disable=SC2046
	runs 0 --baseline=memory.json -- $(server 2)
	# shellcheck disable=SC2046
	runs 1 --baseline=memory.json -- $(server 7)
	holds err allocate_workspace
	printf 'baseline = memory.json\n[model_server]\ndevice.peak <= +3%%\n' >cuflight.ini
	# shellcheck disable=SC2046
	runs 1 --check -- $(server 7)
	# the short form judges failures and proofs only
	# shellcheck disable=SC2046
	runs 0 --error-exitcode=9 -- $(server 7)
}

@test "a shell around the program does not make it inconclusive" {
	expect 0 run --size=4MiB -o rec/ --limits='device.peak <= 1GiB' -- sh -c "\"$root/scripts/simcuda\" \"$build/victims/model_server\" --commit=1; :"
	expect 1 run --size=4MiB -o rec/ --limits='device.peak <= 1MiB' -- sh -c "\"$root/scripts/simcuda\" \"$build/victims/model_server\" --commit=1; :"
}

@test "--error-exitcode gives the same answer in ten runs of a program that only grows" {
	local i
	command -v perl >/dev/null || skip 'no perl'
	for i in $(seq 10); do
		runs 0 --error-exitcode=9 -- perl -e 'my @kept; for (1 .. 20000) { push @kept, "x" x 1000; my $gone = "y" x 3000 }'
	done
}
