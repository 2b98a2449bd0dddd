#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Changes of the work in `cuflight what-if`: the program is changed in the same way and run, and it survives exactly if the
# row fits.
load ../cli.bash

setup_file() {
	export SIMCUDA_TOTAL=512MiB SIMCUDA_CONTEXT=16MiB
}

# MODE: leaves the rows of a run that failed
record() {
	"$root/scripts/simcuda" "$build/cuflight" run -q -o "$1.cuf" -- "$build/victims/what_if_work" "$1" >"$1.truth"
	grep -q 'survives 0' "$1.truth"
	"$build/cuflight" what-if --json --all "$1.cuf" >rows.json
}

# ID: whether the row fits; the number in the words of its change, if any
row() { node -e 'const r = JSON.parse(require("fs").readFileSync("rows.json")).rows.find((row) => row.id === process.argv[1]);
	console.log(r ? Number(r.fits) : "none", (/at most (\d+)/.exec(r?.change) ?? ["", ""])[1])' "$1"; }

# ID MODE OPTION: the row's verdict is what the changed program does
row_is_true() {
	local verdict
	verdict=$(row "$1")
	"$root/scripts/simcuda" "$build/victims/what_if_work" "$2" "$3${verdict#* }" >changed.truth
	echo "$1: $verdict; $3${verdict#* }: $(grep survives changed.truth)"
	[ "survives ${verdict% *}" = "$(grep survives changed.truth | sort -u)" ]
}

@test "a call site that keeps its blocks: fixed, or bounded, it survives" {
	record growth
	[ "$(row recorded)" = '0 ' ]
	[ "$(row without-growth)" = '1 ' ]
	row_is_true without-growth growth --at-most=1
	row_is_true half-the-growth growth --at-most=
	[ "$(row one-at-once)" = 'none ' ]
}

@test "less loaded: half is enough, a quarter less is not, nor half of the last request" {
	record loaded
	[ "$(row loaded-half)" = '1 ' ]
	[ "$(row loaded-quarter-less)" = '0 ' ]
	row_is_true loaded-half loaded --share=0.5
	row_is_true loaded-quarter-less loaded --share=0.75
	row_is_true largest-half loaded --largest=0.5
	[ "$(row without-growth)" = 'none ' ]
}

@test "threads at once: with fewer it survives" {
	record threads
	[ "$(row one-at-once)" = '1 ' ]
	row_is_true one-at-once threads --at-once=1
	row_is_true half-at-once threads --at-once=
	[ "$(row without-growth)" = 'none ' ]
}
