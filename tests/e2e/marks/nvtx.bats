#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs that mark their work by NVTX: the real headers, new and old, another tool next to the
# recorder, and Python's package.
bats_require_minimum_version 1.5.0

setup_file() {
	export ROOT BUILT LIB
	ROOT=$(realpath "$BATS_TEST_DIRNAME/../../..")
	BUILT=${BUILD:-$ROOT/build}
	LIB=$BUILT/libcuflight.so
	cd "$BATS_FILE_TMPDIR" || return
	for headers in nvtx nvtx12; do
		[ ! -d "$ROOT/build/$headers/include/nvtx3" ] ||
			cc -O1 -Wall -Werror -I"$ROOT/build/$headers/include" "$ROOT/tests/e2e/marks/nvtx_program.c" -o "program_$headers" -ldl -lpthread || return
	done
	cc -O1 -Wall -Werror -shared -fPIC "$ROOT/tests/e2e/marks/nvtx_tool.c" -o tool.so
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset NVTX_INJECTION64_PATH
	export CUFLIGHT_OUTPUT=$BATS_TEST_TMPDIR/recordings/
	mkdir recordings
}

need_program() { [ -x "$BATS_FILE_TMPDIR/program_$1" ] || skip "no headers of NVTX in build/$1: scripts/setup fetches them"; }
preloaded() { LD_PRELOAD=$LIB CUFLIGHT_OPTIONS=start=1 "$@"; }

# TRUTH: the report of the last recording agrees with it
report_agrees() {
	"$BUILT/cuflight" report --format=json -o report.json recordings
	node "$ROOT/tests/e2e/validate.cjs" report.json
	"$ROOT/tests/e2e/check_truth.py" "$1" report.json
}

recorded_right() {
	need_program "$1"
	preloaded "$BATS_FILE_TMPDIR/program_$1" >truth 2>returned
	report_agrees truth
	[ "$(cat returned)" = "$(printf 'depths 0 1 0 1 2; 2 1 1 0 0 -2\nids differ')" ]
}

@test "every range and mark of a program is in the report, by its name, domain, nesting and thread" { recorded_right nvtx; }
@test "the same holds with NVTX's header of CUDA 12.1" { recorded_right nvtx12; }

@test "the same holds under cuflight run" {
	need_program nvtx
	"$BUILT/cuflight" run -o recordings/ -- "$BATS_FILE_TMPDIR/program_nvtx" >truth
	report_agrees truth
}

@test "without the recorder, and with it disabled, the program finds no tool" {
	need_program nvtx
	"$BATS_FILE_TMPDIR/program_nvtx" >native 2>native.err
	CUFLIGHT_DISABLE=1 preloaded "$BATS_FILE_TMPDIR/program_nvtx" >disabled 2>disabled.err
	cmp native disabled
	cmp native.err disabled.err
	grep -q 'depths -2 -2' native.err
	NVTX_INJECTION64_PATH=./. preloaded "$BATS_FILE_TMPDIR/program_nvtx" 2>refused.err >refused
	cmp native.err refused.err
}

@test "another tool gets every call with its ids and results, and the recorder does, too" {
	need_program nvtx
	NVTX_INJECTION64_PATH=$BATS_FILE_TMPDIR/tool.so "$BATS_FILE_TMPDIR/program_nvtx" 2>alone.err >truth
	NVTX_INJECTION64_PATH=$BATS_FILE_TMPDIR/tool.so preloaded "$BATS_FILE_TMPDIR/program_nvtx" 2>both.err >truth
	grep -E '^tool: [0-9]+ pushes' alone.err >alone
	grep -E '^tool: [0-9]+ pushes' both.err | diff alone -
	grep -q ' 0 wrong$' alone
	grep -q '^depths 100 101' both.err
	sed -i '/^phase engine:/d' truth # of its handles of domains the tool makes names of its own
	report_agrees truth
}

@test "a tool that fails is not called again, and the recorder continues" {
	need_program nvtx
	NVTX_TOOL_FAILS=1 NVTX_INJECTION64_PATH=$BATS_FILE_TMPDIR/tool.so preloaded "$BATS_FILE_TMPDIR/program_nvtx" >truth 2>returned
	report_agrees truth
	! grep -q tool: returned
}

@test "the program's environment is unchanged; cuflight run adds only the name of the tool" {
	env | sort >native
	LD_PRELOAD=$LIB env | sort | grep -v '^LD_PRELOAD=' | diff native -
	run "$BUILT/cuflight" run -o recordings/ -- env
	[[ $output == *"NVTX_INJECTION64_PATH=$LIB"* ]]
	NVTX_INJECTION64_PATH=/some/tool.so run "$BUILT/cuflight" run -o recordings/ -- env
	[[ $output == *"NVTX_INJECTION64_PATH=/some/tool.so"* ]]
}

@test "opened as a tool without a preload, the recorder declines" {
	need_program nvtx
	NVTX_INJECTION64_PATH=$LIB "$BATS_FILE_TMPDIR/program_nvtx" >out 2>err
	grep -q 'depths -2 -2' err
	run ! ls recordings/*.cuf
}

@test "a flood is thinned: it overwrites nothing, ends match beginnings, and dropped ranges are counted" {
	need_program nvtx
	preloaded "$BATS_FILE_TMPDIR/program_nvtx" 300000 >truth 2>/dev/null
	report_agrees truth
	python3 - report.json <<-'PY'
		import json, sys
		report = json.load(open(sys.argv[1]))
		flood = next(g for g in report["requests"]["phases"] if g["name"] == "flood")
		assert report["capture"]["events_overwritten"] == 0, report["capture"]
		assert report["requests"]["phases_left_out"] > 100000 and flood["open"] == 0, (report["requests"]["phases_left_out"], flood)
		assert flood["count"] + report["requests"]["phases_left_out"] == 300000, (flood["count"], report["requests"]["phases_left_out"])
		assert flood["count"] > 1000
	PY
}

@test "strings beyond those that the recorder keeps are counted" {
	need_program nvtx
	preloaded "$BATS_FILE_TMPDIR/program_nvtx" 0 5000 >truth 2>/dev/null
	report_agrees truth
	# two domains and two strings are registered, too; 4,096 are kept
	node -e '
		const { lost } = JSON.parse(require("fs").readFileSync("report.json")).coverage;
		if (lost.length !== 1 || !/names .*phases/.test(lost[0].what) || lost[0].count !== 908) throw new Error(JSON.stringify(lost));'
}

@test "Python's nvtx is recorded: annotations, domains and threads" {
	[ -d "$ROOT/build/nvtx_python/nvtx" ] || skip "no package nvtx in build/nvtx_python: scripts/setup fetches it"
	cat >program.py <<-'PY'
		import threading, nvtx

		@nvtx.annotate("decorated", domain="app")
		def decorated():
		    with nvtx.annotate("inside", domain="app"):
		        pass

		nvtx.push_range("outer")
		nvtx.mark("a mark")
		decorated()
		thread = threading.Thread(target=lambda: [decorated() for _ in range(3)])
		thread.start(); thread.join()
		nvtx.pop_range()
		across = nvtx.start_range("across")
		nvtx.end_range(across)
		print("said")
	PY
	python=$(python3 -c 'import sys; print(sys.executable)') # not a script that looks for it
	PYTHONPATH=$ROOT/build/nvtx_python $python program.py >native
	PYTHONPATH=$ROOT/build/nvtx_python preloaded "$python" program.py >recorded
	cmp native recorded
	cat >truth <<-'EOF'
		phase app:_decorated sort phase source nvtx count 4 open 0
		phase app:_inside sort phase source nvtx count 4 open 0
		nested app:_inside in app:_decorated
		phase outer sort phase source nvtx count 1 open 0
		phase across sort phase source nvtx count 1 open 0
		phase a_mark sort mark source nvtx count 1 open 0
		end state exit 0
	EOF
	report_agrees truth
}

@test "torch.cuda.nvtx of PyTorch's CUDA wheels is recorded" {
	local ran=
	cat >program.py <<-'PY'
		import threading
		from torch.cuda import nvtx
		nvtx.range_push("outer")
		nvtx.mark("a mark")
		with nvtx.range("layer {}", 7):
		    pass
		nvtx.range_end(nvtx.range_start("across"))
		thread = threading.Thread(target=lambda: (nvtx.range_push("worker"), nvtx.range_pop()))
		thread.start(); thread.join()
		nvtx.range_pop()
	PY
	cat >truth <<-'EOF'
		phase outer sort phase source nvtx count 1 open 0
		phase layer_7 sort phase source nvtx count 1 open 0
		nested layer_7 in outer
		phase across sort phase source nvtx count 1 open 0
		phase worker sort phase source nvtx count 1 open 0
		phase a_mark sort mark source nvtx count 1 open 0
		end state exit 0
	EOF
	for python in "$ROOT"/build/frameworks/torch-cu*/bin/python; do
		[ -x "$python" ] || continue
		rm -f recordings/* report.json
		preloaded "$python" program.py
		report_agrees truth
		ran=1
	done
	[ -n "$ran" ] || skip "no CUDA wheel of PyTorch in build/frameworks: make check-frameworks fetches them"
}

@test "a forked child's ranges have the names that its parent registered" {
	[ -d "$ROOT/build/nvtx_python/nvtx" ] || skip "no package nvtx in build/nvtx_python: scripts/setup fetches it"
	cat >program.py <<-'PY'
		import os, nvtx
		domain = nvtx.get_domain("app")
		attributes = domain.get_event_attributes(message="work")
		domain.push_range(attributes)
		if os.fork() == 0:
		    domain.push_range(attributes)
		    domain.pop_range()
		    os._exit(0)
		os.wait()
		domain.pop_range()
	PY
	python=$(python3 -c 'import sys; print(sys.executable)')
	PYTHONPATH=$ROOT/build/nvtx_python CUFLIGHT_OPTIONS=host=full LD_PRELOAD=$LIB "$python" program.py
	"$BUILT/cuflight" report --format=json -o report.json recordings
	python3 -c '
import json
report = json.load(open("report.json"))
assert len(report["processes"]) == 2, report["processes"]
assert [(p["name"], p["depth"], p["end_ns"] is None) for p in report["phases"]] == [("app: work", 0, False)] * 2, report["phases"]
assert len({p["pid"] for p in report["phases"]}) == 2'
}
