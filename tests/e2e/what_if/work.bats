#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Changes of the work in `cuflight what-if`: the program is changed in the same way and run, and it survives exactly if the
# row fits.
bats_require_minimum_version 1.5.0
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
	console.log(r ? Number(r.fits) : "none", (/(?:at most |^weights=|^batch=)(\d+)/.exec(r?.change) ?? ["", ""])[1])' "$1"; }

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
	# the largest share that fits is named: with it the program survives, with a little more it does not
	[[ $(row loaded-fits) == '1 '* ]]
	row_is_true loaded-fits loaded --share=0.
	share=$(row loaded-fits)
	set_is_true loaded weights=$((${share#* } + 1))% --share=0.$((${share#* } + 1))
	[ "$(grep survives changed.truth | sort -u)" = 'survives 0' ]
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

# MODE SETTING OPTION...: what --set predicts is what the program does with these options
set_is_true() {
	local fits
	"$build/cuflight" what-if --json --set "$2" "$1.cuf" >set.json
	fits=$(node -e 'console.log(Number(JSON.parse(require("fs").readFileSync("set.json")).rows.find((row) => row.id === "set").fits))')
	"$root/scripts/simcuda" "$build/victims/what_if_work" "$1" "${@:3}" >changed.truth
	echo "$2: $fits; ${*:3}: $(grep survives changed.truth)"
	[ "survives $fits" = "$(grep survives changed.truth | sort -u)" ]
}

@test "--set changes the work by any amount, and the program so changed does what was predicted" {
	local share
	record loaded
	for share in 40 54 60 90; do set_is_true loaded weights=$share% --share=0.$share; done
	for share in 30 60; do set_is_true loaded largest=$share% --largest=0.$share; done
	record growth
	for most in 5 40 60; do set_is_true growth kept=$most --at-most=$most; done
	record threads
	for most in 2 5 7; do set_is_true threads requests=$most --at-once=$most; done
}

@test "contexts capped, a smaller batch, a bounded cache, a smaller KV cache: what is predicted is what the program does" {
	record context
	row_is_true context-half context --context=
	for most in 20 60 70 95; do set_is_true context context=$most --context=$most; done
	record batch
	row_is_true batch-half batch --batch=
	for most in 16 64 79 82; do set_is_true batch batch=$most --batch=$most; done
	record cache
	for most in 100 400 440 480; do set_is_true cache cache=${most}MiB --cache=$most; done
	record kv
	for share in 25 70 90 99; do set_is_true kv kv=$share% --kv=0.$share; done
}

@test "without the other tenant: the program alone on the device survives where it is predicted, and not where it is not" {
	export SIMCUDA_OTHER=160MiB
	for share in 0.30 0.60; do
		rm -f loaded.cuf
		"$root/scripts/simcuda" "$build/cuflight" run -q -o loaded.cuf -- "$build/victims/what_if_work" loaded --share=$share >loaded.truth
		grep -q 'survives 0' loaded.truth
		"$build/cuflight" what-if --json --all loaded.cuf >rows.json
		"$build/cuflight" what-if --json --set tenant=0% loaded.cuf >set.json
		[ "$(row no-tenant)" = "$(cp set.json rows.json && row set)" ]
		"$build/cuflight" what-if --json --all loaded.cuf >rows.json
		SIMCUDA_OTHER=0 row_is_true no-tenant loaded --share=$share
	done
	rm loaded.cuf
	SIMCUDA_OTHER=0 record loaded
	[ "$(row no-tenant)" = 'none ' ]
	"$build/cuflight" what-if --set tenant=0% loaded.cuf | grep -q 'no other process had memory'
}

@test "a change that the recording does not show has its reason, and a value that is none is refused" {
	record loaded
	"$build/cuflight" what-if --set kv=50% loaded.cuf >out
	grep -q 'no block is known to be of the KV cache' out
	for row in 'context=4 grow by equal steps' 'batch=4 multiples of one size' 'cache=1MiB no call site keeps' 'kept=4 no call site gains'; do
		"$build/cuflight" what-if --set "${row%% *}" loaded.cuf >out
		grep -q "${row#* }" out
	done
	for bad in weights=half weights=60 weights=0% kv=-5% largest=nan% requests=0 requests=1.5 kept= kept=4x context=-1 batch=x cache=0 \
		cache=much tenant=-1%; do
		run -2 "$build/cuflight" what-if --set "$bad" loaded.cuf
		[[ $output == "cuflight: cannot try --set=$bad: its value is a "* ]]
	done
}

@test "what is no recording of one run is refused in one line" {
	record loaded
	mkdir empty
	head -c 100000 /dev/urandom >foreign
	for words in --nonsense --set 'a b' foreign empty nowhere 'loaded.cuf loaded.cuf' '--set weights loaded.cuf'; do
		# shellcheck disable=SC2086 # several words
		run -2 "$build/cuflight" what-if $words
		echo "$words: $output"
		[[ $output == "cuflight: "* ]]
	done
}
