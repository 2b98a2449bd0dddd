#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How a program ended is judged, too: the kernel's kill is a failure in every set of limits, an end
# that nobody knows is no pass, and what leaks beside a GPU is found.
load ../cli.bash
load ../../memory_cgroup.bash

teardown() { remove_memory_cgroup; }

# MIB: a memory cgroup of that limit; $group
limited() {
	memory_cgroup "cuflight-ends.$$.$BATS_TEST_NUMBER" $(($1 << 20)) || skip "$why_no_group"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "files here are memory of the cgroup"
}

# keeps 256 KiB at a time, until somebody ends it
write_keeper() {
	cat >keeper.py <<'END'
import sys, time
kept = []
def handle():
    kept.append(b'x' * (256 << 10))
while len(kept) < int(sys.argv[1]):
    handle()
    print(len(kept) * (256 << 10), flush=True)
    time.sleep(0.002)
END
}

python() { python3 -c 'import sys; print(sys.executable)'; }

# OPTION... -- VICTIM ARGUMENT...: on the simulated device, recorded in r.cuf; its truth in truth
recorded() {
	"$root/scripts/simcuda" "$cuflight" run -q -f --size=4MiB -o r.cuf "$@" >"$home/truth" 2>"$home/run.err" || true
}

@test "a program that the kernel killed is a failure, whoever recorded it, unless a limit allows it" {
	write_keeper
	limited 64
	CUFLIGHT_OUTPUT=plain/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup timeout 60 "$(python)" keeper.py 10000 >truth || true
	in_memory_cgroup timeout 60 "$cuflight" run -q -o run/ -- "$(python)" keeper.py 10000 >truth || true
	for directory in plain run; do
		expect 1 check $directory
		holds out 'FAIL ' 'fatal failures: 1' 'was killed by the kernel' 'handle (keeper.py:4)'
		expect 1 check $directory 'host.peak <= 1GiB'
		expect 0 check $directory 'incidents.fatal <= 1'
	done
}

@test "an end that nobody recorded cannot be judged; one that a person asked for is none" {
	write_keeper
	CUFLIGHT_OUTPUT=plain/ LD_PRELOAD=$build/libcuflight.so timeout --signal=KILL 60 "$(python)" -c '
import os, signal, sys
sys.argv[1] = "400"
exec(open("keeper.py").read())
os.kill(os.getpid(), signal.SIGKILL)' 400 >truth || true
	[ "$(tail -n 1 truth)" = $((400 * (256 << 10))) ]
	expect 3 check plain
	holds out 'INCONCLUSIVE ' 'how process '
	expect 0 check --allow-inconclusive plain
	expect 143 run -q -o term.cuf -- sh -c 'kill $$'
	expect 3 check term.cuf # it allocated nothing
	lacks out 'ended by signal'
	expect 137 run -q --host=full -o kill.cuf -- "$(python)" -c 'import os; os.kill(os.getpid(), 9)'
	expect 3 check kill.cuf
	holds out 'was killed, before all of its work was seen'
}

@test "host memory that leaks with the requests of a GPU is found, and its bytes are the program's" {
	recorded --host=full -- "$build/victims/gpu_server" --keep=80
	expect 1 check --json r.cuf
	node -e '
		const truth = require("fs").readFileSync("truth", "utf8").match(/^kept bytes (\d+) count (\d+)$/m);
		const d = JSON.parse(require("fs").readFileSync("out"));
		const leak = d.findings.find((f) => f.measure === "host.leak");
		const site = leak.sites.find((s) => s.stack.some((f) => f.function === "keep_trace"));
		if (leak.status !== "exceeded" || site.bytes !== +truth[1] || site.count !== +truth[2]) process.exit(1);' || { cat truth out; false; }
	"$cuflight" report r.cuf >screen
	grep -q '^Found: host memory leak' screen
	recorded --host=full -- "$build/victims/gpu_server"
	expect 0 check r.cuf 'host.leak = 0'
}

@test "what ended a program is its headline: refusals that it survived are not, a kill is" {
	limited 200
	recorded -- "$build/victims/gpu_server" --fill
	expect 1 check r.cuf
	"$cuflight" report r.cuf >screen
	grep -q '^OUT OF GPU MEMORY: gpu_server' screen
	in_memory_cgroup "$root/scripts/simcuda" "$cuflight" run -f --size=4MiB -o r.cuf -- "$build/victims/gpu_server" --offload >truth 2>err || true
	refusals=$(sed -n 's/^survived refusals //p' truth)
	"$cuflight" report r.cuf >screen
	"$cuflight" report --json r.cuf >report.json
	grep -q '^KILLED BY THE KERNEL (out of memory): gpu_server' screen || { cat screen; false; }
	grep -q "^1 request failed in $refusals calls, and the program handled it" screen || { cat screen truth; false; }
	node -e '
		const d = JSON.parse(require("fs").readFileSync("report.json"));
		if (d.capture.end_state !== "oom_killed" || d.incidents.some((i) => i.fatal) || d.cause.device !== null) process.exit(1);'
	expect 1 check r.cuf
	holds out 'was killed by the kernel' offload
	expect 0 check r.cuf 'incidents.fatal <= 1'
}

@test "limits of a section that is for no recorded program are not dropped in silence" {
	write_keeper
	expect 0 run -q --host=full -o r.cuf -- "$(python)" keeper.py 40
	printf '[limits]\nhost.peak <= 1MiB\n' >cuflight.ini
	expect 3 check r.cuf
	holds out 'cuflight.ini has no section for python' 'only [limits]' "a section is a program's name"
	printf 'host.peak <= 1GiB\n[limits]\nhost.peak <= 1MiB\n' >cuflight.ini
	expect 0 check r.cuf
	holds out note 'only [limits]'
	printf '[limits]\nhost.peak <= 1GiB\n[keeper.py]\nhost.peak <= 1MiB\n' >cuflight.ini
	expect 1 check r.cuf
	lacks out 'has no section'
}

@test "what rules suppress is said with its bytes" {
	recorded --host=full -- "$build/victims/gpu_server" --keep=80
	echo 'leak:keep_trace' >rules
	expect 0 check --suppressions=rules r.cuf 'host.leak = 0'
	holds out 'leaked host memory: 117 MiB, of which rules suppress 117 MiB'
	expect 0 check --suppressions=rules --write md:page.md r.cuf 'host.leak = 0'
	holds page.md '0 B, 117 MiB suppressed'
}

@test "one verdict: the report, run's last lines, list and JSON have the same words, and a second finding has a line" {
	"$root/scripts/simcuda" "$cuflight" run --size=4MiB -o words/ -- "$build/victims/cause_fixture" weights_too_large >truth 2>err || true
	"$cuflight" report words >screen
	verdict=$(sed -n 's/^Likely cause: //p' screen)
	[[ $verdict == *' confidence)' ]]
	"$cuflight" list words >listed
	holds listed "$verdict"
	holds err "likely cause: ${verdict% (*}"
	[ "$(grep -c 'explain it:' err)" = 1 ]
	"$root/scripts/simcuda" "$cuflight" run --host=full -f --size=4MiB -o r.cuf -- "$build/victims/gpu_server" --keep=80 --fill >truth 2>err || true
	bytes=$(sed -n 's/^kept bytes \([0-9]*\) .*/\1/p' truth)
	"$cuflight" report r.cuf >screen
	grep -q "^Also: host memory leak, $((bytes >> 20)) MiB at keep_trace (gpu_server.c:" screen || { cat screen; false; }
	[ "$(wc -l <screen)" -le 21 ]
	"$cuflight" report --json r.cuf >report.json
	node -e 'const d = JSON.parse(require("fs").readFileSync("report.json")); process.exit(d.also.bytes === +process.argv[1] && d.also.class === "leak" ? 0 : 1)' "$bytes"
	"$root/scripts/simcuda" "$cuflight" run -f --size=4MiB -o r.cuf -- "$build/victims/oom_ladder" >truth 2>err || true
	calls=$(sed -n 's/^incident .* attempts \([0-9]*\) .*/\1/p' truth)
	holds err ", 1 failed request in $calls calls"
}
