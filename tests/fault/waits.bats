#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Nothing waits: at the end, in handlers and after failures, the recorder asks nobody who may not
# answer. A recorded program ends when its native run does.
load broken.bash

sources=$root/tests/fault/waits
limit=20 # seconds, for runs of a fraction of a second

# NAME SOURCE FLAG...: builds $home/NAME
compile() {
	local name=$1 source=$2
	shift 2
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin "$sources/$source" \
		-o "$home/$name" "$@" -ldl -lpthread
}

# PROGRAM ARGUMENT...: the same with the recorder and without, within the limit
same() {
	observe native timeout $limit "$@"
	observe recorded timeout $limit env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" \
		"CUFLIGHT_OPTIONS=${options_of:-start=1:size=4MiB}" "$@"
	compare || { echo "differs: $*" >&2; return 1; }
}

@test "ends of a process whose device hangs, or whose handler interrupted the driver" {
	local way free
	compile libcuda.so.1 libcuda.c -shared -fPIC -Wl,-soname,libcuda.so.1
	compile device_ends device_ends.c -L"$home" -l:libcuda.so.1
	export LD_LIBRARY_PATH=$home
	for way in "hung exit" "hung quick_exit" "hung _exit" "hung main" \
		"handler exit" "handler quick_exit" "handler _exit"; do
		rm -f "$output"/*
		# shellcheck disable=SC2086 # two words
		same "$home/device_ends" $way
		said_nothing
		"$build/cuflight" report --format=json "$output"/*.cuf >"$home/report.json"
		# what the driver reported at the last call of the program, and when
		python3 - "$home/report.json" "$(sed -n 's/^device free //p' "$home/native.out")" <<'CHECK'
import json, sys
report = json.load(open(sys.argv[1]))
device, end_ns = report["devices"][0], report["processes"][0]["end_ns"]
assert device["free_bytes"] == int(sys.argv[2]), device["free_bytes"]
assert 0 <= end_ns - device["free_ns"] < 20e9, (device["free_ns"], end_ns)
CHECK
	done
}
