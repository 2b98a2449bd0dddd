#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What an HTML page has as data equals the JSON report, for every recording that is kept; read without a browser.
load ../cli.bash

need_page() {
	"$cuflight" report --html -f -o page.html "$@" 2>err && return
	grep -q 'has no HTML page' err && skip "built without the page (no npm)"
	cat err >&2
	return 1
}

# RECORDING.zst...: each page says what the report says
pages_equal_reports() {
	local kept
	for kept; do
		zstd -dqf "$kept" -o x.cuf
		need_page x.cuf
		"$cuflight" report --json x.cuf >report.json
		"$BATS_TEST_DIRNAME/page_data.py" page.html report.json "$(basename "$kept").json" || { echo "$kept" >&2; return 1; }
	done
	follow_the_table ./*.cuf.zst.json
}

# FILE...: the data of pages is as the table of the command has it, with every key described
follow_the_table() {
	"$cuflight" help --json | python3 -c 'import json, sys; json.dump(json.load(sys.stdin)["schemas"]["page"], open("schema.json", "w"))'
	node "$root/tests/e2e/validate.cjs" --schema="$PWD/schema.json" "$@" || [ $? = 77 ]
	node "$root/tests/e2e/cli_keys.cjs" --schema="$PWD/schema.json" "$@"
}

@test "the page of each kept recording of v1 equals its report" { pages_equal_reports "$root"/tests/golden/v1/*.cuf.zst; }
@test "the page of each kept screen equals its report" { pages_equal_reports "$root"/tests/golden/screens/*.cuf.zst; }

# RUN [OPTION]: the page of a run says what its report says
page_equals_report() {
	need_page "$@"
	"$cuflight" report --json "$@" >report.json
	"$BATS_TEST_DIRNAME/page_data.py" page.html report.json object.json
	follow_the_table object.json
}

@test "a process that was killed holds nothing afterwards, and one line of Python is one part" {
	"$cuflight" run -q -o run/ -- python3 "$BATS_TEST_DIRNAME/works.py" >truth
	page_equals_report run
	read -r killed other <truth
	"$cuflight" report --json run >report.json
	grep -q "\"pid\":$killed" report.json
	grep -q "\"pid\":$other" report.json
}

@test "what lies in a framework's segments is charged to who holds it" {
	"$root/scripts/simcuda" "$cuflight" run -q -o run/ -- "$build/victims/torch_allocator" >/dev/null 2>&1 || true
	page_equals_report run
}

@test "the page of the peak of host memory has what was live then, be the peak within a millisecond" {
	"$cuflight" run -q -o run/ --host=full -- "$build/victims/host_peak" >truth
	page_equals_report --at=peak run
}

@test "the peak of a device is the highest of its processes together, and the chart and every table agree" {
	local victim
	for victim in ranks two_processes imported "cause_fixture worker_beside"; do
		rm -rf run
		# shellcheck disable=SC2086 # the words of a command
		"$root/scripts/simcuda" "$cuflight" run -q -o run/ -- "$build/victims/"$victim >truth 2>err || true
		need_page run
		BUILD=$build "$root/tests/rows_sum.py" run
		"$cuflight" report --json run >report.json
		grep -qE '"peak_basis": ?"observed"' report.json
	done
}

@test "names of a hostile program are data, never markup" {
	local name='<img src=x onerror=alert(2)><b>'
	cp "$build/victims/oom_fatal" "$name"
	"$root/scripts/simcuda" "$cuflight" run -q -o "$home/x.cuf" -- "./$name" '</pre></noscript></script><iframe>' >truth || true
	need_page x.cuf
	"$cuflight" report --json x.cuf >report.json
	"$BATS_TEST_DIRNAME/page_data.py" page.html report.json
	holds report.json 'onerror=alert(2)'
}
