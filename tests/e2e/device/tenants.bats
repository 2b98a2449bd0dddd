#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031 # each test is its own subshell
# Other GPU processes, as NVML reports them at a failed request. The recorder queries NVML if the
# program has it open, else `cuflight run` does. The victim queries NVML itself, by its oldest
# function. The report must agree, and NVML must be left as it was.
load ../cli.bash

setup() {
	home=$BATS_TEST_TMPDIR
	cd "$home" || return 1
	unset LD_PRELOAD "${!CUFLIGHT_@}" "${!SIMCUDA_@}"
	export SIMCUDA_LIB=$build/sim SIMCUDA_STATE=$home/devices
	sleep 300 3>&- &
	neighbour=$!
	export SIMCUDA_TENANTS=$neighbour:3GiB,4194303:700MiB
}

teardown() { kill "$neighbour"; }

sim() { "$root/scripts/simcuda" "$@"; }

# VICTIM [ARGUMENT...]: only preloaded; stdout in truth, its recording r.cuf, its report r.json
preloaded() {
	local victim=$1
	shift
	rm -f r.cuf
	sim env "CUFLIGHT_OUTPUT=$home/r.cuf" CUFLIGHT_OPTIONS=size=4MiB${options:+:$options} "LD_PRELOAD=$build/libcuflight.so" \
		"$build/victims/$victim" "$@" >truth 2>err || true
	expect 0 report --json -f -o r.json r.cuf
}

# [OPTION...] -- COMMAND...: under run, with the report of the run
launched() {
	rm -rf rec
	sim "$cuflight" run --size=4MiB -o rec/ "$@" >truth 2>err || true
	expect 0 report --json -f -o r.json rec
}

agrees() { "$root/tests/e2e/check_truth.py" truth r.json; }

# CONDITION: on the report r, its rows by kind (bytes), and those from NVML
is() {
	python3 - "$1" <<'CHECK' || { cat err truth; return 1; }
import json, sys
r = json.load(open("r.json"))
owners = [o for o in r["devices"][0]["owners"]]
row = {o["kind"]: o["bytes"] for o in owners}
nvml = {o["pid"]: o for o in owners if o["kind"] == "other_processes" and o["source"] == "nvml"}
blind = " ".join(b["text"] for b in r["coverage"]["blind"])
GiB, MiB = 1 << 30, 1 << 20
if not eval(sys.argv[1]):
    sys.exit(f"not so: {sys.argv[1]}\n{[(o['kind'], o['pid'], o['bytes'], o['source'], o['basis']) for o in owners if o['bytes'] != 0]}\n{blind}")
CHECK
}

@test "each process that NVML names has a row; blocks, context, others and free are the whole device" {
	preloaded neighbours
	agrees
	is "nvml[$neighbour]['bytes'] == 3 * GiB and nvml[$neighbour]['name'] == 'sleep' and nvml[$neighbour]['basis'] == 'observed'"
	is "nvml[4194303]['bytes'] == 700 * MiB and nvml[4194303]['name'] is None"
	is "row['unexplained'] == 0 and row['context'] == 64 * MiB"
	is "'find and stop sleep (pid $neighbour), which holds 3.00 GiB' in r['incidents'][0]['cause']['fix'][0]['text']"
	expect 0 report --color=never r.cuf
	grep -qE "^> pid $neighbour, sleep +3\.00 GiB +[0-9]+%" out
}

@test "NVML of drivers 450 and 535 is read: other names, records of 16 and of 32 bytes" {
	for release in 450 535; do
		SIMCUDA_NVML=$release preloaded neighbours
		agrees
		is "nvml[$neighbour]['bytes'] == 3 * GiB and row['unexplained'] == 0"
	done
}

@test "bytes that NVML does not know are unknown, not 0, and stay unexplained" {
	SIMCUDA_TENANTS="$neighbour:3GiB?,4194303:700MiB" preloaded neighbours
	agrees
	is "nvml[$neighbour]['bytes'] is None and row['unexplained'] == 3 * GiB"
}

@test "for a program that loads no NVML cuflight run queries it, also when the process ends immediately" {
	launched -- "$build/victims/neighbours" --without-nvml
	agrees
	is "nvml[$neighbour]['bytes'] == 3 * GiB and nvml[4194303]['bytes'] == 700 * MiB and row['unexplained'] == 64 * MiB"
}

@test "a program that continues after its failure is queried while it runs" {
	launched -- "$build/victims/oom_handled"
	is "nvml[$neighbour]['bytes'] == 3 * GiB and len(nvml) == 2 and row['unexplained'] == 64 * MiB"
}

@test "a process that was also recorded is counted once, with its context" {
	mkfifo hold
	sim env "CUFLIGHT_OUTPUT=$home/two/" CUFLIGHT_OPTIONS=size=4MiB "LD_PRELOAD=$build/libcuflight.so" \
		"$build/victims/cause_fixture" --hold $((8 << 30)) <hold >held 3>&- &
	background=$!
	exec 4>hold
	until [ -s held ] && grep -q holds held; do sleep 0.05; done
	sim env "CUFLIGHT_OUTPUT=$home/two/" CUFLIGHT_OPTIONS=size=4MiB "LD_PRELOAD=$build/libcuflight.so" "$build/victims/neighbours" >truth 2>err || true
	holder=$(sed -n 's/^tenant pid \([0-9]*\) .*/\1/p' truth | grep -vx "$neighbour" | grep -vx 4194303)
	exec 4>&-
	wait "$background"
	expect 0 report --json -f -o r.json two
	agrees
	is "nvml[$holder]['bytes'] > 4 * GiB and len([o for o in owners if o['pid'] == $holder]) == 1 and row['unexplained'] == 0"
}

@test "with process ids of another namespace the process is not counted as its own neighbour" {
	export SIMCUDA_NVML_PIDS=4200000
	preloaded neighbours --without-nvml
	is "not nvml"
	launched -- "$build/victims/neighbours" --without-nvml
	is "len(nvml) == 2 and sum(o['bytes'] for o in nvml.values()) == 3 * GiB + 700 * MiB"
	preloaded neighbours
	is "len(nvml) == 2 and nvml[$neighbour + 4200000]['bytes'] == 3 * GiB and nvml[$neighbour + 4200000]['basis'] == 'estimated'"
}

@test "without NVML only the unexplained bytes change" {
	SIMCUDA_NVML=none launched -- "$build/victims/neighbours" --without-nvml
	is "not nvml and 'NVML' not in blind and row['unexplained'] == 3 * GiB + 764 * MiB"
}

@test "an NVML that refuses is reported; one that never answers is not waited for" {
	SIMCUDA_NVML_FAIL=nvmlInit_v2:9 launched -- "$build/victims/oom_fatal"
	is "not nvml and 'nvmlInit_v2 answered 9 (driver not loaded)' in blind"
	SIMCUDA_NVML_FAIL=nvmlDeviceGetComputeRunningProcesses_v3:4 preloaded neighbours
	is "not nvml and 'nvmlDeviceGetComputeRunningProcesses_v3 answered 4 (no permission)' in blind and row['unexplained'] > 3 * GiB"
	began=$SECONDS
	SIMCUDA_NVML_FAIL=nvmlInit_v2:hang launched -- "$build/victims/oom_fatal"
	is "not nvml and 'no answer in time' in blind"
	[ $((SECONDS - began)) -lt 10 ]
}

# An init that hangs keeps what it holds: the program itself must not need NVML then.
@test "a program whose NVML hangs has its refusal at once" {
	local hangs began
	for hangs in nvmlInit_v2 nvmlDeviceGetMemoryInfo_v2 nvmlShutdown; do
		began=$SECONDS
		rm -f r.cuf
		SIMCUDA_NVML_FAIL=$hangs:hang sim env "CUFLIGHT_OUTPUT=$home/r.cuf" \
			"LD_PRELOAD=$build/libcuflight.so $build/sim/nvml-580/libnvidia-ml.so.1" \
			"$build/victims/oom_handled" >truth 2>err
		[ $((SECONDS - began)) -lt 5 ]
		expect 0 report --json -f -o r.json r.cuf
		is "not nvml and 'no answer in time' in blind and r['processes'][0]['end_state'] == 'exit'"
	done
}

@test "with nvml=0 nothing queries NVML" {
	options=nvml=0 preloaded neighbours
	is "not nvml"
	launched --nvml=0 -- "$build/victims/oom_fatal"
	is "not nvml and row['unexplained'] > 3 * GiB"
}
