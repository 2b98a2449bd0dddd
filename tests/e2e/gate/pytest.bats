#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The plugin for pytest, with the oldest and the newest pytest that it supports.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	export PYTHON
	PYTHON=$(python3 -c 'import sys; print(sys.executable)')
}

# Here and not where it is used: a skip under `run` ends only the function.
setup() {
	home=$BATS_TEST_TMPDIR
	cd "$home" || return 1
	unset NO_COLOR FORCE_COLOR COLUMNS LD_PRELOAD "${!CUFLIGHT_@}"
	latest=newest
	[ -d "$build/pytest_newest" ] || latest=oldest # scripts/setup all fetches the newest
	need_pytest $latest
}

need_pytest() { [ -d "$build/pytest_$1" ] || skip "the $1 pytest was not fetched (scripts/setup all)"; }

# VERSION ARGUMENT...: pytest of build/pytest_VERSION with the plugin, recorded; its output is in out
recorded_pytest() {
	rm -rf recordings
	PYTHONPATH=$build/pytest_$1:$root/scripts/pytest_cuflight PYTHONDONTWRITEBYTECODE=1 \
		"$root/scripts/simcuda" "$cuflight" run -q --host="${mode:-full}" --size="${size:-64MiB}" -o recordings/ -- \
		"$PYTHON" -m pytest -p pytest_cuflight.plugin -p no:cacheprovider --color=no \
		-o addopts= --rootdir="$BATS_TEST_DIRNAME/pytest" "${@:2}" >out 2>&1
}

tests=$BATS_TEST_DIRNAME/pytest

# what fails by its limit, and what fails for another reason
expect_failures() {
	diff - <(sed -n 's/^FAILED .*::\([a-z_0-9]*[^ ]*\).*/\1/p' out | sort) <<-'EOF'
		test_bad_mark
		test_device_exceeds
		test_device_leaks
		test_host_exceeds
		test_host_leaks
		test_own_failure_counts_first
		test_parameters[3]
		test_two_limits_exceeds
	EOF
}

for version in oldest newest; do
	bats_test_function --description "$version pytest: tests fail by their limits, with the call site" -- judged "$version"
	bats_test_function --description "$version pytest, two workers of xdist: the same tests fail" -- with_xdist "$version"
done

judged() {
	need_pytest "$1"
	run -1 recorded_pytest "$1" -p no:memray "$tests/test_memory.py"
	expect_failures
	holds out "Test was limited to 10.00 MiB of device memory but needed 12.00 MiB" \
		"12.00 MiB in 1 block: hold_device (test_memory.py:" "< test_device_exceeds (:" \
		"Test was allowed to leak 1.00 MiB of device memory from one call site but left 2.00 MiB" \
		"Test was limited to 2.00 MiB of host memory but needed 3.00 MiB" \
		"hold_host (test_memory.py:" "7.00 MiB in 1 block" \
		"cannot read the size '1 parsec'" "its own failure" \
		"memory of tests (cuflight)" "8 failed, 7 passed"
	lacks out pytest_pyfunc_call
	# the table: the largest first, device memory to the byte
	[[ $(grep -A 2 'memory of tests' out | tail -1) =~ 12.00\ MiB.*test_device_exceeds ]]
}

with_xdist() {
	need_pytest "$1"
	run -1 recorded_pytest "$1" -p no:memray -n 2 "$tests/test_memory.py"
	expect_failures
	holds out "needed 12.00 MiB" "memory of tests (cuflight)" "8 failed, 7 passed"
	grep -q '5.00 MiB .*test_host_leaks' out
	grep -q '2.00 MiB .*test_device_leaks' out
}

@test "a worker that crashes: its recording is named, and the table has its tests" {
	run -1 recorded_pytest $latest -p no:memray -n 1 --max-worker-restart=2 "$tests/test_crash.py"
	holds out "crashed while running" "cuflight report $home/recordings/"
	grep -q '2.00 MiB .*test_before' out
	grep -q '3.00 MiB .*test_after' out
}

@test "without xdist, a crash leaves a recording that has the open test" {
	run recorded_pytest $latest -p no:memray "$tests/test_crash.py"
	[ "$status" != 0 ]
	expect 0 phases --json recordings/
	run -0 node -e '
		const open = JSON.parse(require("fs").readFileSync("out")).phases.filter((phase) => phase.end_ns === null);
		console.log(open.map((phase) => phase.name).join());
	'
	[[ $output == *test_crash.py::test_crashes ]]
}

@test "next to pytest-memray, on the same marks" {
	need_pytest newest
	size=256MiB run -1 recorded_pytest $latest "$tests/test_both.py" # memray makes call stacks too
	holds out "2 failed, 2 passed" "Test was limited to 1.0MiB but allocated 3.0MiB" \
		"Test was limited to 1.00 MiB of python memory but needed 3.00 MiB"
	run -1 recorded_pytest $latest -p no:memray "$tests/test_both.py"
	holds out "2 failed, 2 passed" "Test was limited to 1.00 MiB of host memory but needed 3.00 MiB"
}

@test "sampled host memory cannot be judged: the test fails, or is a warning on request" {
	mode=sampled run -1 recorded_pytest $latest -p no:memray "$tests/test_both.py"
	holds out "cannot be judged: host memory was sampled; record with cuflight run --host=full" "4 failed"
	mode=sampled run -0 recorded_pytest $latest -p no:memray --cuflight-allow-inconclusive "$tests/test_both.py"
	holds out "4 passed" "PytestWarning: The memory limit of this test cannot be judged"
}

@test "not recorded: nothing is judged, nothing is wrapped, and one line states it" {
	export PYTHONPATH=$build/pytest_$latest:$root/scripts/pytest_cuflight PYTHONDONTWRITEBYTECODE=1
	run -0 "$PYTHON" -m pytest -p pytest_cuflight.plugin -p no:memray -p no:cacheprovider --strict-markers "$tests/test_both.py"
	# its folder may have the name, too
	[ "$(sed 's,[^ ]*/cuflight[^ ]*,,g' <<<"$output" | grep -c cuflight)" = 1 ]
	[[ $output == *"cuflight: not recording, limits are not judged"*"4 passed"* ]]
}

@test "a test-suite of a real package passes as without us, with a row for each of its tests" {
	[ -d "$build/ci_readers/opt_einsum" ] || skip "opt_einsum was not fetched (scripts/setup)"
	/usr/bin/python3 -c 'import torch, numpy' || skip "python3-torch is not installed"
	einsum=$build/ci_readers/opt_einsum/tests
	# the import of torch fills a smaller ring
	PYTHONPATH=$build/pytest_$latest:$root/scripts/pytest_cuflight:$build/ci_readers PYTHONDONTWRITEBYTECODE=1 \
		"$cuflight" run -q --host=full --size=256MiB -o einsum.cuf -- /usr/bin/python3 -m pytest -q \
		-p pytest_cuflight.plugin -p no:memray -p no:cacheprovider "$einsum/test_backends.py" >out 2>&1
	holds out "memory of tests (cuflight)" " passed"
	lacks out failed
	passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' out)
	expect 0 phases --json einsum.cuf
	# a skipped test may begin, too
	run -0 node -p 'JSON.parse(require("fs").readFileSync("out")).phases.filter((p) => p.memory.host.need_bytes !== null).length'
	[ "$output" -ge "$passed" ]
}

@test "the package installs with pip, and pytest finds the plugin by itself" {
	/usr/bin/python3 -c 'import setuptools, sys; sys.exit(int(setuptools.__version__.split(".")[0]) < 61)' ||
		skip "this Python has no setuptools >= 61"
	cp -r "$root/scripts/pytest_cuflight" source
	/usr/bin/python3 -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation \
		--no-index --target installed ./source >log 2>&1
	PYTHONPATH=$build/pytest_$latest:$home/installed run -0 /usr/bin/python3 -m pytest -p no:cacheprovider --markers
	[[ $output == *"@pytest.mark.limit_memory(limit, kind=\"host\")"*"(cuflight)"* ]]
}

# every object of Python in full mode: its stacks need more room than the default size has
@test "a call site whose stack did not fit says so, and what to do" {
	cat >test_many.py <<-'END'
		import pytest
		kept = []
		@pytest.mark.limit_memory("1 MiB")
		def test_many():
		    kept.append([{'key': str(i)} for i in range(60000)])
	END
	export CUFLIGHT_OPTIONS=python_objects=start
	run -1 recorded_pytest $latest -p no:memray --rootdir=. test_many.py
	holds out 'test_many' 'call stacks that did not fit; record with a larger --size'
}
