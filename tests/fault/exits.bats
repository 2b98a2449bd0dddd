#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A process that ends: the recorder takes no memory then, makes no copy of the process, and asks
# nobody who has a lock.
load broken.bash
load ../memory_cgroup.bash

sources=$root/tests/fault/exits

# NAME SOURCE FLAG...: builds $home/NAME
compile() {
	local name=$1 source=$2
	shift 2
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin "$sources/$source" \
		-o "$home/$name" "$@" -ldl -lpthread
}

teardown() { remove_memory_cgroup; }

@test "a process that ends within a page of its control group's limit ends normally" {
	local left limit_file usage_file allocator path options
	memory_cgroup "cuflight-exits.$$" $((256 << 20)) || skip "$why_no_group"
	limit_file=$group/memory.limit_in_bytes usage_file=$group/memory.usage_in_bytes
	[ -f "$limit_file" ] || limit_file=$group/memory.max usage_file=$group/memory.current
	compile near_limit near_limit.c
	for allocator in '' libjemalloc.so.2; do
		path=''
		[ -z "$allocator" ] || path=$(/sbin/ldconfig -p | awk -v name="$allocator" '$1 == name { print $NF; exit }')
		[ -z "$allocator" ] || [ -n "$path" ] || continue
		for options in size=64MiB start=1; do
			for left in 1024 256 4; do
				rm -f "$output"/*
				observe native in_memory_cgroup env "LD_PRELOAD=$path" "$home/near_limit" "$limit_file" "$usage_file" $left
				observe recorded in_memory_cgroup env "LD_PRELOAD=$library $path" "CUFLIGHT_OUTPUT=$output" \
					"CUFLIGHT_OPTIONS=$options" "$home/near_limit" "$limit_file" "$usage_file" $left
				compare || { echo "$allocator, $options, $left KiB" >&2; return 1; }
				"$build/cuflight" report "$output"/*.cuf >"$home/screen"
				grep -q '^FINISHED: near_limit ' "$home/screen"
			done
		done
	done
}

@test "an allocator with locks, and the loader, are asked nothing while the process ends" {
	local way
	compile libasked.so asked_allocator.c -shared -fPIC
	compile asked asked.c
	for way in exit quick_exit main; do
		rm -f "$output"/*
		observe native env "LD_PRELOAD=$home/libasked.so" "$home/asked" $way
		observe recorded env "LD_PRELOAD=$library $home/libasked.so" "CUFLIGHT_OUTPUT=$output" \
			CUFLIGHT_OPTIONS=start=1:size=4MiB "$home/asked" $way
		compare || { echo "$way" >&2; return 1; }
		readable_in "$output" 1
	done
}
