#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A victim with PyTorch's allocator under cuflight. The report equals the allocator's statistics to
# the byte, at the moment that it describes and at every point at which the victim printed them.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cd "$BATS_TEST_TMPDIR" || return
}

# EXPECTED-STATUS OPTION...: leaves truth, one.cuf and report.json
record() {
	local expected=$1 status=0
	shift
	"$root/scripts/simcuda" env CUFLIGHT_OUTPUT="$PWD/one.cuf" CUFLIGHT_OPTIONS="${OPTIONS-size=64MiB}" LD_PRELOAD="$build/libcuflight.so" \
		"$build/victims/torch_allocator" "$@" >truth 2>stderr || status=$?
	[ $status != 77 ] || skip "$(cat stderr)"
	[ $status = "$expected" ] || { cat stderr; return 1; }
	"$build/cuflight" report --json one.cuf >report.json
}

agree() {
	"$root/tests/e2e/check_truth.py" truth report.json
	node "$root/tests/e2e/cli_keys.cjs" report.json
}

every_point() {
	run "$build/fault/framework_points" one.cuf <truth
	echo "$output"
	[ "$status" = 0 ]
	[[ "${lines[-1]}" == "$1 points, 0 disagreements" ]]
}

@test "segments of cudaMalloc: the report equals the allocator at 1,000 points and at the failure" {
	record 1
	agree
	every_point 1001
}

@test "expandable segments: the report equals the allocator at 1,000 points and at the failure" {
	record 1 --expandable
	agree
	every_point 1001
}

@test "a request refused by the framework's limit is an incident without a driver failure" {
	record 1 --mode=capped
	grep -v '^refused ' truth >truth.here # the driver was not asked what is free
	mv truth.here truth
	agree
	[ "$(python3 -c 'import json; print(json.load(open("report.json"))["incidents"][-1]["kind"])')" = framework ]
	every_point 1001
}

@test "a request that succeeds after the cache was released is no failure" {
	record 0 --mode=retried
	agree
	every_point 1
}

@test "the comparison notices a wrong figure" {
	record 1 --points=5
	every_point 6
	sed -i 's/^\(point 3 .* hole_small \)/\11/' truth
	run "$build/fault/framework_points" one.cuf <truth
	[ "$status" = 1 ]
	[[ "$output" == *"point 3: hole_small"* ]]
	sed -i 's/^\(oom .* allocated \)/\11/' truth
	run "$root/tests/e2e/check_truth.py" truth report.json
	[ "$status" = 1 ]
	[[ "$output" == *"framework allocated"* ]]
}

@test "when the framework's events were overwritten, figures are estimates and the rows still sum" {
	OPTIONS=size=4MiB record 1 --points=2000
	at=$(python3 -c 'import json; print((int(next(l for l in open("truth") if l.startswith("point 1 ")).split()[3]) - json.load(open("report.json"))["processes"][0]["start_ns"]) / 1e9)')
	"$build/cuflight" report --json "--at=${at}s" one.cuf >early.json
	python3 - <<-'PYTHON'
		import json
		report = json.load(open("early.json"))
		device = report["devices"][0]
		assert device["total_bytes"] == sum(r["bytes"] or 0 for r in device["owners"] if r["in_sum"])
		assert device["fragmentation"]["frameworks"]
		for f in device["fragmentation"]["frameworks"]:
		    assert f["basis"] == "estimated", f
		assert report["capture"]["events_overwritten"] > 0
	PYTHON
}
