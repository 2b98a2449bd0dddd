#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Forty-nine host programs in seven languages, half of them healthy (tests/victims/growth/): no call
# site of a healthy one is called a leak or growing, and each leak is named at its line. GROWTH_RUNS
# (1) is how often each runs, GROWTH_JOBS (4) how many at once.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cd "$BATS_TEST_TMPDIR" || return
	unset CUFLIGHT_OPTIONS CUFLIGHT_OUTPUT CUFLIGHT_DISABLE LD_PRELOAD MALLOC_CONF MALLOC_ARENA_MAX
	export TZ=UTC LC_ALL=C.UTF-8 DEBUGINFOD_URLS=
}

judge() {
	"$BATS_TEST_DIRNAME/growth.py" "$build" "$1" "${GROWTH_RUNS:-1}" >log || { cat log; return 1; }
	grep 'half,\|left out' log >&3
}

@test "the first half: leaks are named at their lines, healthy programs have none" {
	judge first
}

@test "the second half: leaks are named at their lines, healthy programs have none" {
	judge second
}

@test "a list that is filled in a second is no leak, sampled and host=full, and no finding" {
	local mode
	for mode in sampled full; do
		"$build/cuflight" run -q --host=$mode --error-exitcode=9 -o "$mode.cuf" -- \
			/usr/bin/python3 -c 'kept = [bytes(1000) for _ in range(200000)]'
		"$build/cuflight" report "$mode.cuf" >report
		# on a slow machine it takes more than a second, and then it is said to grow
		grep -qE 'No allocation failed, no leak (found|is proven)' report
	done
}

@test "what grows to the end is said to, on the screen, with its rate where that is known, and is no finding for an exit status" {
	/usr/bin/gcc -g -O1 "$root/tests/victims/growth/growth.c" -o growth_c
	"$build/cuflight" run -q --sample=64KiB --error-exitcode=9 -o x.cuf -- ./growth_c connections_in_a_list >served
	"$build/cuflight" report x.cuf >report
	cat served report
	# about 120 MiB in 7 s and 2,000 samples: 2 % is one standard deviation, a word of two digits is
	# off by 4 %; a rate is there if it is known to a tenth, which on a busy machine it is not
	tr '\n' ' ' <report | sed -nE 's|.*Still growing at the end: open_connection \(growth\.c:[0-9]+\), ~([0-9]+) MiB(, +~([0-9.]+) MiB/s)?\..*|\1 \3|p' |
		awk -v blocks="$(awk '{ print $2 * $5 }' served)" -v seconds="$(awk '{ print $8 }' served)" '
			function is_near(seen, truth, share) { return seen > truth * (1 - share) && seen < truth * (1 + share) }
			{ truth = blocks * 2008 / 2 ^ 20; found = is_near($1, truth, 0.15) && (NF < 2 || is_near($2, truth / seconds, 0.25)) }
			END { exit !found }'
	grep -q 'no leak is proven' report
}
