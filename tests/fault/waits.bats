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

@test "ends of a process in which malloc's lock is held for ever" {
	local microseconds
	compile allocator_ends allocator_ends.c -fno-optimize-sibling-calls
	for microseconds in 3000 5100 7300 9700 12100 15500; do
		same "$home/allocator_ends" jump $microseconds
		options_of=start=1:size=4MiB:stack_depth=2 same "$home/allocator_ends" handler \
			$microseconds
		same "$home/allocator_ends" handler $microseconds
	done
	readable_in "$output" 18
}

# mimalloc, built with assertions, ends one of a thousand such programs itself, without us as well
aborts_by_itself() { grep -qs '^mimalloc: assertion failed' "$home/native.err" "$home/recorded.err"; }

# jemalloc's statistics need its locks, tcmalloc's too
@test "ends of a process in which another allocator's lock is held for ever" {
	local name path microseconds way found='' aborted=0
	compile allocator_ends allocator_ends.c -fno-optimize-sibling-calls
	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
		path=$(/sbin/ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
		[ -n "$path" ] || continue
		found=1
		for microseconds in 1000 2000 3000 4444 5100 7300 9700 12100; do
			for way in jump handler; do
				observe native env "LD_PRELOAD=$path" timeout $limit \
					"$home/allocator_ends" $way $microseconds
				observe recorded timeout $limit env "LD_PRELOAD=$library $path" \
					"CUFLIGHT_OUTPUT=$output/" \
					CUFLIGHT_OPTIONS=start=1:size=4MiB:stack_depth=2 \
					"$home/allocator_ends" $way $microseconds
				if aborts_by_itself; then aborted=$((aborted + 1)); else compare; fi
			done
		done
	done
	[ -n "$found" ] || skip "no other allocator is installed"
	[ "$aborted" -le 1 ]
	readable_in "$output" 16
}

# what the end of such a process costs: tests/bench/exits.py
@test "a heap with millions of holes is not read to its end: the rest is estimated" {
	compile allocator_ends allocator_ends.c
	same "$home/allocator_ends" holes 3000000
	"$build/cuflight" report --format=json "$output"/*.cuf >"$home/report.json"
	python3 - "$home/report.json" <<'CHECK'
import json, sys
report = json.load(open(sys.argv[1]))
heap = report["host"]["allocator"]
# 1.5 million holes of 176 bytes: what was not read in time is estimated
assert 0.9 * 264e6 < heap["cached_bytes"] + heap["fragmented_bytes"] < 1.1 * 264e6, heap
CHECK
}

@test "a refused request, and the first call of a linked driver, while the loader's lock is held" {
	compile libcuda.so.1 libcuda.c -shared -fPIC -Wl,-soname,libcuda.so.1
	compile plugin.so lock_plugin.c -shared -fPIC
	compile loader_lock loader_lock.c -rdynamic -L"$home" -l:libcuda.so.1
	export LD_LIBRARY_PATH=$home
	limit=10
	same "$home/loader_lock" refused "$home/plugin.so"
	grep -qx 2 "$home/recorded.out"
	same "$home/loader_lock" first "$home/plugin.so"
	readable_in "$output" 2
	# the thread that asks NVML must not need that lock to start
	rm -f "$output"/*
	library="$library $build/sim/nvml-580/libnvidia-ml.so.1" \
		same "$home/loader_lock" refused "$home/plugin.so"
	grep -qx 2 "$home/recorded.out"
	readable_in "$output" 1
	# it was asked: this driver names no bus that it knows
	"$build/cuflight" report --format=json "$output"/*.cuf |
		grep -q 'nvmlDeviceGetHandleByPciBusId_v2 answered 6 (not found)'
}

# An allocator with locks, and the loader for its list of objects, are asked at the end alone.
@test "a refused request while the lock of an object's own allocator is held for ever" {
	compile libcuda.so.1 libcuda.c -shared -fPIC -Wl,-soname,libcuda.so.1
	compile libheld.so held_allocator.c -shared -fPIC -Wl,-soname,libheld.so
	compile refused refused.c -L"$home" -l:libcuda.so.1 -Wl,--no-as-needed -l:libheld.so
	export LD_LIBRARY_PATH=$home
	same "$home/refused"
	[ "$(tr '\n' ' ' <"$home/recorded.out")" = "2 2 2 " ]
	readable_in "$output" 1
}

@test "a forked child opens a library while a thread of its parent is inside the loader's list" {
	compile forked_dlopen forked_dlopen.c
	limit=10
	same "$home/forked_dlopen"
	grep -qx opened "$home/recorded.out"
	readable_in "$output" 1
}
