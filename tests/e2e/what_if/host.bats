#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight what-if --host`: what it predicts of an allocator is within 10 % of the same program on that allocator. A setting
# that is not installed has no row.
bats_require_minimum_version 1.5.0
load ../host/host.bash

# PATTERN [OPTIONS]: leaves the recording
record() {
	rm -f "$1.cuf"
	LD_PRELOAD=$build/libcuflight.so CUFLIGHT_OUTPUT=$1.cuf CUFLIGHT_OPTIONS=start=1:size=256MiB:${2:-host=full} \
		"$build/victims/host_patterns" "$1" >/dev/null
}

# PATTERN CHANGE: least and most of some runs of the program alone. mimalloc releases memory after 25 ms, so that the
# program itself has more or less of it from run to run.
real_range() {
	local runs=1
	[[ $2 != *mimalloc* ]] || runs=12
	for ((i = 0; i < runs; i++)); do
		# shellcheck disable=SC2086 # a list of variables
		env $2 "$build/victims/host_patterns" "$1" | awk '{ print $3 }'
	done | sort -n | sed -n '1p;$p' | tr '\n' ' '
}

# PATTERN: the program alone, with the settings of each row, against the rows; prints the ratios
rows_are_true() {
	local change end least most
	"$cuflight" what-if --host --all --json "$1.cuf" >rows.json
	node -e 'JSON.parse(require("fs").readFileSync("rows.json")).rows.forEach((row) => console.log(row.end_bytes + "\t" + row.change))' >rows
	[ "$(wc -l <rows)" -ge 6 ]
	while IFS=$'\t' read -r end change; do
		read -r least most < <(real_range "$1" "$change") || :
		: "${most:=$least}"
		awk -v end="$end" -v least="$least" -v most="$most" -v change="$change" -v pattern="$1" 'BEGIN {
			printf "%s, %s: %.1f MiB, really %.1f to %.1f, ratio %.3f\n", pattern, change, end / 2^20, least / 2^20, most / 2^20, 2 * end / (least + most)
			exit !(least > 0 && end > 0.9 * least - 2^18 && end < 1.1 * most + 2^18)
		}' || return 1
	done <rows
}

@test "short-lived tokens beside a long-lived index" { record cache; rows_are_true cache; }
@test "eight workers with a burst each, and a few results" { record arenas; rows_are_true arenas; }
@test "buffers that grow by realloc, beside small state" { record growing; rows_are_true growing; }
@test "large buffers with small state between them" { record pinned; rows_are_true pinned; }
@test "blocks of one thread that another frees" { record passed; rows_are_true passed; }

@test "the sentence names the best setting and what it saves" {
	record pinned
	"$cuflight" what-if --host pinned.cuf >out
	grep -E '^MALLOC_[A-Z_]+=[0-9]+: [0-9.]+ [KM]iB instead of [0-9.]+ MiB$' out
}

@test "one setting is played as it is typed, and what is none is refused" {
	record growing
	"$cuflight" what-if --host --set 'MALLOC_ARENA_MAX=3' --json growing.cuf >rows.json
	node -e 'const d = JSON.parse(require("fs").readFileSync("rows.json")); process.exit(Number(d.rows.length !== 2 || d.rows[1].change !== "MALLOC_ARENA_MAX=3"))'
	run -2 "$cuflight" what-if --host --set 'PATH=/tmp' growing.cuf
	[[ $output == *"is no setting of an allocator"* ]]
	run -2 "$cuflight" what-if --host --set 'LD_PRELOAD=libnothing.so.9' growing.cuf
	[[ $output == *"there is no library"* ]]
}

@test "of a sample the figures are an estimate, and within a third for a pattern of small blocks" {
	local recorded real
	record cache host=sampled
	"$cuflight" what-if --host --json cache.cuf >rows.json
	node -e 'process.exit(Number(!JSON.parse(require("fs").readFileSync("rows.json")).history.estimated))'
	recorded=$(node -e 'console.log(JSON.parse(require("fs").readFileSync("rows.json")).rows[0].end_bytes)')
	real=$("$build/victims/host_patterns" cache | awk '{ print $3 }')
	echo "estimated $recorded, real $real"
	[ "$recorded" -gt $((real * 2 / 3)) ] && [ "$recorded" -lt $((real * 4 / 3)) ]
}

@test "the document follows its schema" {
	record growing
	"$cuflight" what-if --host --json growing.cuf >rows.json
	node "$root/tests/e2e/validate.cjs" --schema=analysis/view/cuflight.what-if-host-1.schema.json rows.json
}

@test "a recording without malloc is refused with the reason" {
	record growing host=off
	run -2 "$cuflight" what-if --host growing.cuf
	[[ $output == *"malloc was not recorded"* ]]
}

@test "a replay far below what the process had is weak evidence, and names no setting" {
	"$cuflight" run -q -o arenas.cuf -- "$build/victims/host_patterns" arenas >truth
	"$cuflight" what-if --host --json arenas.cuf >rows.json
	far=$(python3 -c 'import json; d = json.load(open("rows.json")); print(int(d["rows"][0]["end_bytes"] < 0.7 * d["history"]["recorded_resident_bytes"]))')
	run -0 "$cuflight" what-if --host arenas.cuf
	if [ "$far" = 1 ]; then
		[[ $output == *'Caution: the process had'*'weak evidence'* ]]
		[[ $output != *' instead of '* ]]
	else
		[[ $output != *Caution* ]]
	fi
}
