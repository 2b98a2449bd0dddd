#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# CPython's test suites for what a preload could break (foreign functions, threads, child processes,
# fork) pass under the recorder. A suite that also fails without it is skipped: it shows nothing.
# -w: a failed test is run again by itself, as CPython's builders do; some of these tests race with
# a busy machine.
load ../preload.bash

# SUITE: prints the interpreter to use: the distribution's, whose suites are a package, else the one in PATH (itself, not a
# version switcher's script in front of it)
python_with() {
	local python
	for python in /usr/bin/python3 "$(python3 -c 'import sys; print(sys.executable)')"; do
		! "$python" -c "import test.$1" 2>/dev/null || { echo "$python"; return; }
	done
	return 1
}

# SUITE: passes under a plain preload and under `cuflight run --host=full`, else it must fail natively
suite_passes() {
	local way python suite
	python=$(python_with "$1") || skip "no python3 here ships test.$1"
	# one that hangs prints where before the file's own limit
	suite=("$python" -m test -w --timeout=$((${CHECK_SECONDS:-900} * 2 / 3)) "$1")
	for way in preload full; do # at one time: they wait more than they work
		run_way "$way" "${suite[@]}" &
	done
	wait
	for way in preload full; do
		[ "$(<"$BATS_TEST_TMPDIR/$way.status")" != 0 ] || continue
		run_way native "${suite[@]}"
		[ "$(<"$BATS_TEST_TMPDIR/native.status")" = 0 ] || skip "test.$1 fails here without the recorder, too"
		echo "passes natively, fails under $way:" >&2
		tail -n 60 "$BATS_TEST_TMPDIR/$way.out" "$BATS_TEST_TMPDIR/$way.err" >&2
		return 1
	done
	grep -q '^Ran\|^Result: SUCCESS\|^== Tests result: SUCCESS' "$BATS_TEST_TMPDIR/preload.out"
	# A plain preload leaves a recording only of a process that held 64 MiB of host memory, or of a
	# forked child that took a quarter of that itself. Of these suites only two have such processes.
	local recording least report=$BATS_TEST_TMPDIR/report.json
	while read -r recording; do
		echo "$recording" >&2
		case $1 in
		test_ctypes) least=64 ;;
		test_multiprocessing_fork) least=16 ;;
		*) return 1 ;;
		esac
		"$build/cuflight" report --json "$BATS_TEST_TMPDIR/preload/$recording" >"$report"
		python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["host"]["rss_peak_bytes"] < int(sys.argv[2]) << 20)' "$report" $least
	done < <(grep '\.cuf$' "$BATS_TEST_TMPDIR/preload.files")
	rm -rf "$BATS_TEST_TMPDIR/recordings"
}

@test "python's test_ctypes passes as it does natively" { suite_passes test_ctypes; }
@test "python's test_threading passes as it does natively" { suite_passes test_threading; }
@test "python's test_subprocess passes as it does natively" { suite_passes test_subprocess; }
@test "python's test_multiprocessing_fork passes as it does natively" { suite_passes test_multiprocessing_fork; }
