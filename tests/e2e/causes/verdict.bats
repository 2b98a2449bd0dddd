#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the library prints when a process dies for lack of memory: on stderr and in the container's
# termination log. Also the measured largest block. It prints nothing about failures that the
# program survived.
load ../cli.bash

# "VICTIM [ARGUMENT]" [OPTIONS]: runs it recorded on the simulated device; stdout in truth, stderr in err, the recording is r.cuf
record() {
	local status=0 words
	read -ra words <<<"$1"
	rm -f r.cuf
	SIMCUDA_LIB=$build/sim "$root/scripts/simcuda" env CUFLIGHT_OUTPUT="$home/r.cuf" CUFLIGHT_OPTIONS="size=4MiB${2:+:$2}" \
		LD_PRELOAD="$build/libcuflight.so" "$build/victims/${words[0]}" "${words[@]:1}" >truth 2>err || status=$?
	echo "$status" >status
}

# VICTIM: what the program prints without the recorder
native() {
	SIMCUDA_LIB=$build/sim "$root/scripts/simcuda" "$build/victims/$1" >native.truth 2>native.err || true
}

@test "a fatal failure is explained in three lines on stderr, after the program's output" {
	record oom_fatal
	native oom_fatal
	[ "$(<status)" = 1 ]
	head -n 1 err | cmp - <(head -n 1 native.err)
	[ "$(grep -c '^cuflight: ' err)" = 3 ]
	grep -qE '^cuflight: out of GPU memory: cudaMalloc\([0-9.]+ GiB\) failed, GPU 0 has [0-9.]+ GiB of 16\.0 GiB free$' err
	grep -qE '^cuflight: this process holds [0-9.]+ GiB device' err
	grep -qxF "cuflight: explain it: cuflight report $home/r.cuf" err
	cmp <(grep -v '^device ' truth) <(grep -v '^device ' native.truth)
}

@test "the likely cause is named where arithmetic shows it; tests/bench/causes.py compares it with the report's" {
	record 'cause_fixture weights_too_large'
	grep -qE '^cuflight: likely: almost nothing has been freed since startup: .* \(model-too-large, kv-cache-too-large, too-many-requests\)$' err
	record 'cause_fixture pages_pinned'
	grep -qE '^cuflight: likely: free memory is split into pieces; together they are [0-9.]+ [GM]iB \(fragmentation\)$' err
	record 'cause_fixture other_tenant_at_load'
	grep -qE '^cuflight: likely: other processes hold .* \(other-tenant\)$' err
	# the launch after it says that the GPU is full, and it is not
	record 'cause_fixture page_lock_refused'
	grep -qE '^cuflight: out of page-locked host memory: cudaHostAlloc\([0-9.]+ MiB\) failed, GPU 0 has [0-9.]+ GiB of [0-9.]+ GiB free$' err
	grep -qE '^cuflight: likely: page-locked host memory ran out, not the device \(page-lock-refused\)$' err
	# pieces that would do, and a leak that would do for longer
	record 'cause_fixture leak_among_holes --seed=604 --scale=0.95'
	grep -qE '^cuflight: likely: [0-9.]+ GiB in [0-9]+ blocks of one call site, .* \(gpu-leak, kv-cache-grew, fragmentation\)$' err
}

@test "the same lines go to the termination log when asked, and a log that cannot be written changes nothing" {
	record oom_fatal termination_log="$home/log"
	cmp log <(grep '^cuflight: ' err)
	record oom_fatal termination_log=/proc/nowhere/log
	[ "$(<status)" = 1 ]
	[ "$(grep -c '^cuflight: ' err)" = 3 ]
}

@test "a refused malloc that ends the program is explained, too; one that the program survives is not" {
	limited() { (ulimit -v 1000000 && CUFLIGHT_OUTPUT="$home/r.cuf" LD_PRELOAD="$build/libcuflight.so" /usr/bin/python3 -c "$1" 2>err); }
	limited 'kept = []
while True: kept.append(bytes(8 << 20))' && return 1
	grep -qE '^cuflight: out of host memory: calloc\(8\.00 MiB\) failed$' err
	grep -qE '^cuflight: this process holds [0-9.]+ MiB of malloc.s \(estimated\); [0-9.]+ MiB resident' err
	rm r.cuf
	limited 'try: bytes(8 << 30)
except MemoryError: print("went on")' | grep -qxF 'went on'
	# the recording is small under such a limit, and one line says so
	[ "$(wc -l <err)" = 1 ]
	grep -qE '^cuflight: recording has .* instead of 64\.0 MiB: the limit is .* of addresses' err
}

@test "recovered and handled failures, and healthy programs, print nothing on stderr" {
	for victim in oom_recovered oom_handled healthy_churn leak_per_request; do
		record $victim termination_log="$home/log"
		native $victim
		cmp err native.err
		[ ! -e log ]
	done
}

@test "probe=1 measures the largest block that can be allocated; without it nothing is probed" {
	record oom_fatal probe=1
	expect 0 report --json -o r.json r.cuf
	python3 - r.json <<'CHECK'
import json, sys
incident = json.load(open(sys.argv[1]))["incidents"][0]
measured, free = incident["largest_free"]["measured_bytes"], incident["free_bytes"]
# the simulated device maps any free pages, so the measured size is the free size, to the page
assert measured is not None and free - (2 << 20) < measured <= free, (measured, free)
assert measured < incident["requested_bytes"]
CHECK
	record oom_fatal
	expect 0 report --json -o r.json -f r.cuf
	python3 -c 'import json; assert json.load(open("r.json"))["incidents"][0]["largest_free"]["measured_bytes"] is None'
}
