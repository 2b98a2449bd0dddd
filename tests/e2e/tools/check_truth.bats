#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The comparison must be able to fail: each number and name that a victim prints is falsified in
# turn, and check_truth.py must notice every time.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	check=$root/tests/e2e/check_truth.py
}

# VICTIM: leaves truth and report
record() {
	rm -f "$BATS_TEST_TMPDIR/one.cuf"
	"$root/scripts/simcuda" env CUFLIGHT_OUTPUT="$BATS_TEST_TMPDIR/one.cuf" LD_PRELOAD="$build/libcuflight.so" "$build/victims/$1" \
		>"$BATS_TEST_TMPDIR/truth" 2>/dev/null || true
	"$build/cuflight" report --format=json "$BATS_TEST_TMPDIR/one.cuf" >"$BATS_TEST_TMPDIR/report"
	"$check" "$BATS_TEST_TMPDIR/truth" "$BATS_TEST_TMPDIR/report"
}

# writes the truth once for each value in it, with that value falsified, as LINE:FIELD files
falsify() {
	awk -v folder="$1" '
		{ line[NR] = $0 }
		function lie(word) { return word ~ /^[0-9]+$/ ? word + 1 : word == "true" ? "false" : word == "false" ? "true" : word "x" }
		END {
			for (n = 1; n <= NR; n++) {
				fields = split(line[n], word, " ")
				if (word[1] == "door") continue
				first = word[1] ~ /^(clean|fits_if_packed)$/ ? 2 : 3
				for (f = first; f <= fields; f += 2) {
					file = folder "/" n ":" f
					for (m = 1; m <= NR; m++) {
						text = ""
						for (g = 1; g <= split(line[m], out, " "); g++) text = text (g > 1 ? " " : "") (m == n && g == f ? lie(out[g]) : out[g])
						print text >file
					}
					close(file)
				}
			}
		}' "$BATS_TEST_TMPDIR/truth"
}

notices_every_lie() {
	local lie count=0
	record "$1"
	mkdir "$BATS_TEST_TMPDIR/lies"
	falsify "$BATS_TEST_TMPDIR/lies"
	for lie in "$BATS_TEST_TMPDIR"/lies/*; do
		count=$((count + 1))
		if "$check" "$lie" "$BATS_TEST_TMPDIR/report" >/dev/null 2>&1; then
			echo "not noticed: line and field ${lie##*/}:"
			diff "$BATS_TEST_TMPDIR/truth" "$lie"
			return 1
		fi
	done
	[ $count -gt 5 ]
}

@test "page_checkerboard: every falsified value is noticed" { notices_every_lie page_checkerboard; }
@test "leak_per_request: every falsified value is noticed" { notices_every_lie leak_per_request; }
@test "pool_threshold: every falsified value is noticed" { notices_every_lie pool_threshold; }
@test "vmm_early_release: every falsified value is noticed" { notices_every_lie vmm_early_release; }
@test "oom_recovered: every falsified value is noticed" { notices_every_lie oom_recovered; }

@test "a victim that prints no end fails the comparison" {
	record managed
	sed -i /^end/d "$BATS_TEST_TMPDIR/truth"
	run "$check" "$BATS_TEST_TMPDIR/truth" "$BATS_TEST_TMPDIR/report"
	[ "$status" = 1 ]
}

@test "a leak or a failed request in a victim that prints clean is noticed" {
	record leak_per_request
	echo 'clean leaks' >>"$BATS_TEST_TMPDIR/truth"
	run "$check" "$BATS_TEST_TMPDIR/truth" "$BATS_TEST_TMPDIR/report"
	[ "$status" = 1 ]
	[[ "$output" = *'no leaks expected'*remember_session* ]]
	record oom_handled
	echo 'clean incidents' >>"$BATS_TEST_TMPDIR/truth"
	run "$check" "$BATS_TEST_TMPDIR/truth" "$BATS_TEST_TMPDIR/report"
	[ "$status" = 1 ]
	[[ "$output" = *'no incidents expected'* ]]
}

@test "owners that do not sum to the device are noticed" {
	record managed
	sed -i 's/"total_bytes":17179869184/"total_bytes":17179869185/' "$BATS_TEST_TMPDIR/report"
	run "$check" "$BATS_TEST_TMPDIR/truth" "$BATS_TEST_TMPDIR/report"
	[ "$status" = 1 ]
	[[ "$output" = *'sum of the owners'* ]]
}
