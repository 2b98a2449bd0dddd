#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Host memory beyond malloc's live blocks: the allocator's own books (others than glibc's: host_allocators.bats), fragmentation told from a leak, maps, the kernel's
# kills. The victims tell their truth (tests/victims/README.md), with glibc's malloc and with jemalloc.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../..")
	build=${BUILD:-$root/build}
	cuflight=$build/cuflight
	cd "$BATS_TEST_TMPDIR" || return
	unset CUFLIGHT_OPTIONS CUFLIGHT_OUTPUT CUFLIGHT_DISABLE LD_PRELOAD MALLOC_CONF MALLOC_ARENA_MAX
	export TZ=UTC LC_ALL=C.UTF-8 DEBUGINFOD_URLS=
}

have_jemalloc() { compgen -G '/usr/lib/*/libjemalloc.so.2' >/dev/null || skip "libjemalloc2 is not installed"; }

# OPTIONS... -- VICTIM [ARGUMENT...]: recorded, and its report is as it says
told_right() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -rf rec
	"$cuflight" run -q -o rec/ "${options[@]}" -- "$build/victims/$1" "${@:2}" >truth
	"$cuflight" report --json rec >report.json
	"$root/tests/e2e/check_truth.py" truth report.json
}

# EXPRESSION: of the report, as d
report_has() { node -e 'const d = JSON.parse(require("fs").readFileSync("report.json")); process.exit(eval(process.argv[1]) ? 0 : 1)' "$1"; }

exact=(--host=full --size=256MiB)

@test "a leak of small blocks under churn, host=full: exact" {
	told_right "${exact[@]}" -- host_leak
	report_has 'd.coverage.lost.length === 0 && d.host.allocator.alloc_count === d.host.allocator.recorded_alloc_count && d.host.allocator.alloc_count > 1 << 20'
}

@test "a leak of small blocks under churn, host=full, with jemalloc: exact" {
	have_jemalloc
	told_right "${exact[@]}" --host-allocator=jemalloc -- host_leak
	report_has 'd.host.allocator.name === "jemalloc" && d.coverage.lost.length === 0'
}

# ARGUMENTS of told_right: the stated 95 % interval holds the leak in at least 15 of 20 runs. One that does what it says is
# below that once in 3,000 times; one that holds half of the time, in 49 of 50.
interval_holds() {
	local held=0 truth
	for _ in {1..20}; do
		told_right "$@"
		truth=$(sed -n 's/^leak .* bytes \([0-9]*\) .*/\1/p' truth)
		! report_has "d.leaks[0].bytes_interval[0] <= $truth && $truth <= d.leaks[0].bytes_interval[1]" || held=$((held + 1))
	done
	report_has 'd.leaks[0].basis === "estimated" && d.leaks[0].bytes_interval[0] < d.leaks[0].bytes_interval[1]'
	report_has 'd.host.allocator.alloc_count === null && d.host.allocator.recorded_alloc_count > 0 && d.host.allocator.alloc_bytes_basis === "estimated"'
	echo "# the interval held the leak in $held of 20 runs" >&3
	[ "$held" -ge 15 ]
}

@test "a leak of small blocks under churn, sampled: within the interval" {
	interval_holds -- host_leak
}

@test "a leak of small blocks under churn, sampled, with jemalloc: within the interval" {
	have_jemalloc
	interval_holds --host-allocator=jemalloc -- host_leak
}

@test "a heap held open by every 64th block, host=full: fragmentation, and by whom" {
	told_right "${exact[@]}" -- host_fragmented
	report_has 'd.host.largest_free_bytes === undefined && d.host.allocator.largest_free_bytes < 1 << 20'
	"$cuflight" report rec | grep -q '^verdict  fragmentation: '
	"$cuflight" report rec | grep -q '^held by .* keep_index_entry'
}

@test "a heap held open by every 64th block, host=full, with jemalloc: fragmentation, and by whom" {
	have_jemalloc
	told_right "${exact[@]}" --host-allocator=jemalloc -- host_fragmented
	report_has 'd.host.allocator.slabs.some((s) => s.block_bytes === 64 && s.used_count * 10 < s.all_count)'
}

@test "a heap held open by every 64th block, sampled: fragmentation, and by whom" {
	told_right -- host_fragmented 512
}

@test "a heap held open by every 64th block, sampled, with jemalloc: fragmentation, and by whom" {
	have_jemalloc
	told_right --host-allocator=jemalloc -- host_fragmented 512
}

@test "whole free pages that threads' arenas keep: cached, and what gives them back" {
	told_right -- host_cached
	report_has 'd.host.advice.some((a) => a.fix === "malloc_trim" && a.gain_bytes_max > 100 << 20)'
	report_has 'd.host.advice.some((a) => a.fix === "MALLOC_ARENA_MAX") && d.host.allocator.arena_count > 8'
	MALLOC_ARENA_MAX=1 "$cuflight" run -q -o one/ -- "$build/victims/host_cached" >/dev/null
	"$cuflight" report --json one >report.json
	report_has 'd.host.allocator.arena_count === 1'
}

@test "Python's arenas are told from other maps" {
	command -v python3 >/dev/null || skip "no python3 here"
	"$cuflight" run -q -o rec/ --mmap=1 -- python3 -c 'import os; x = [{i: str(i)} for i in range(100000)]; os._exit(0)'
	"$cuflight" report --json rec >report.json
	report_has 'd.processes.some((p) => p.host.maps.python_arena_bytes > 10 << 20)'
}

@test "maps past malloc, mmap=1: split, moved, replaced, refused" {
	told_right --host=full --mmap=1 -- host_maps
	told_right --mmap=1 -- host_maps
}

@test "maps with jemalloc behind: its own are not counted beside the blocks inside" {
	have_jemalloc
	told_right --host=full --mmap=1 --host-allocator=jemalloc -- host_maps
}

@test "without mmap=1 nothing is said of maps" {
	"$cuflight" run -q -o rec/ --host=full -- "$build/victims/host_maps" >/dev/null
	"$cuflight" report --json rec >report.json
	report_has 'd.host.maps === null'
}

@test "an incident has the largest free piece of the heap" {
	"$root/scripts/simcuda" "$cuflight" run -q -o rec/ -- "$build/victims/oom_fatal" >/dev/null || [ $? = 1 ]
	"$cuflight" report --json rec >report.json
	report_has 'd.incidents[0].largest_free.host_bytes > 0 && /top of the heap|books/.test(d.incidents[0].largest_free.basis.host_bytes)'
}

@test "exit in a signal handler that broke into malloc does not hang" {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		rm -rf rec
		status=0
		timeout 20 "$cuflight" run -q -o rec/ -- "$build/victims/exits_in_handler" || status=$?
		[ "$status" = 9 ]
	done
}

@test "--host-allocator of a library that is not there says which package has it" {
	local directory status=0
	have_jemalloc
	directory=$(dirname "$(compgen -G '/usr/lib/*/libjemalloc.so.2' | head -n 1)")
	mkdir upper work
	mknod upper/libjemalloc.so.2 c 0 0 2>/dev/null || skip "no rights to hide a file here"
	unshare -m sh -c 'mount -t overlay overlay -o "lowerdir=$1,upperdir=$PWD/upper,workdir=$PWD/work" "$1"' - "$directory" 2>/dev/null || skip "no overlay mounts here"
	unshare -m sh -c 'mount -t overlay overlay -o "lowerdir=$1,upperdir=$PWD/upper,workdir=$PWD/work" "$1" && exec "$2" run --host-allocator=jemalloc -- true' \
		- "$directory" "$cuflight" 2>err || status=$?
	[ "$status" = 125 ]
	grep -q 'libjemalloc.so.2 here; install the package libjemalloc2' err
}

# GROUP COMMAND...: in a memory cgroup of 96 MiB
in_small_group() { sh -c 'echo $$ >"$1/tasks"; shift; exec "$@"' - "$@"; }

@test "a kill for want of memory: as the parent saw it, and without a parent, with the growth that led there" {
	local group=/sys/fs/cgroup/memory/cuflight-host.$$
	[ -w /sys/fs/cgroup/memory ] && mkdir "$group" 2>/dev/null || skip "no memory cgroup that could be made here"
	echo $((96 << 20)) >"$group/memory.limit_in_bytes" || { rmdir "$group"; skip "the cgroup takes no limit"; }
	in_small_group "$group" "$cuflight" run -q -o parent/ -- "$build/victims/host_grows" 400 >out 2>err || true
	CUFLIGHT_OUTPUT=alone/ CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so in_small_group "$group" "$build/victims/host_grows" 400 >>out 2>>err || true
	for _ in 1 2 3 4 5 6 7 8 9 10; do rmdir "$group" && break; sleep 0.2; done
	"$cuflight" report --json parent >report.json
	report_has 'd.capture.end_state === "oom_killed" && d.processes[0].end_status === 9 && /count of kills for want of memory rose by 1/.test(d.processes[0].end_why)'
	"$cuflight" report --json alone >report.json
	report_has 'd.capture.end_state === "oom_killed" && d.processes.at(-1).end_basis === "inferred"'
	report_has 'd.growth[0].stack.some((f) => f.function === "load_chunk") && d.growth[0].grown_bytes > 64 << 20'
	"$cuflight" report alone | grep -q '^GROWTH   to a limit of 96.00 MiB in .*: cgroup '
}

@test "the parent's word of an end that left no record: a signal, a status, somebody's SIGKILL" {
	local status
	"$cuflight" run -q -o a/ -- sh -c 'kill -SEGV $$' || status=$?
	[ "$status" = 139 ]
	"$cuflight" report --json a >report.json
	report_has 'd.capture.end_state === "signal" && d.capture.end_status === 11'
	"$cuflight" run -q -o b/ -- sh -c 'kill -KILL $$' || status=$?
	[ "$status" = 137 ]
	"$cuflight" report --json b >report.json
	report_has 'd.capture.end_state === "killed" && d.capture.end_status === 9 && d.processes[0].end_basis === "observed"'
}
