#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight list` and `cuflight clean`: the runs of a directory, and what may be removed of them.
load ../cli.bash
# where python3 is a script, that would be recorded too
python=$(python3 -c 'import sys; print(sys.executable)')

# TIMES PROGRAM...: the same program, started again after it ended, as a pod does; by a plain preload
restarts() {
	local times=$1
	shift
	for ((; times; times--)); do
		CUFLIGHT_OUTPUT=$home/rec/ CUFLIGHT_OPTIONS=size=4MiB:start=1 LD_PRELOAD=$build/libcuflight.so "$@" || true
	done
}

# NAME FILE: the schema of that document, with every key described
follows() {
	local schema=analysis/view/cuflight.$1-1.schema.json
	node "$root/tests/e2e/validate.cjs" --schema="$schema" "$2" || [ $? = 77 ]
	node "$root/tests/e2e/cli_keys.cjs" --schema="$schema" "$2"
}

# of the last document: a Python expression over its runs
runs() { python3 -c 'import json, sys; runs = json.load(open(sys.argv[1]))["runs"]; print(eval(sys.argv[2]))' "$home/out" "$1"; }

@test "restarts of one program are runs of their own, and the newest one is explained" {
	mkdir rec
	restarts 3 "$python" -c 'import sys; sys.exit(3)'
	expect 0 list rec
	holds out '3 runs in rec, oldest first' 'exit status 3' 'host peak'
	expect 0 list --json rec
	[ "$(runs 'len(runs), {r["end_status"] for r in runs}, [r["run"] for r in runs]')" = '(3, {3}, [1, 2, 3])' ]
	[ "$(wc -l <out)" = 5 ] # a run a line
	follows list out
	pid=$(runs 'runs[2]["pid"]')
	expect 0 report rec
	holds out "(pid $pid)"
	holds err 'newest of 3 runs' 'cuflight list rec'
	expect 0 list --json rec
	pid=$(runs 'runs[0]["pid"]')
	expect 0 report --run=1 rec
	holds out "(pid $pid)"
	expect 2 report --run=4 rec
	holds err 'has no run of that number'
}

@test "runs that ended alike are one line, and every run is in the JSON" {
	mkdir rec
	local status
	for status in 0 0 0 0 3 0 0; do
		echo "raise SystemExit($status)" >agent.py
		restarts 1 "$python" agent.py
	done
	expect 0 list rec
	holds out '7 runs in rec' 'the same again, 3 times (2-4)' ' 5  20' ' 7  20' 'the same again: host'
	[ "$(wc -l <out)" = 11 ]
	expect 0 list --json rec
	[ "$(runs '[r["run"] for r in runs]')" = '[1, 2, 3, 4, 5, 6, 7]' ]
}

# COMMAND...: how often it opens a recording
opens_of() { strace -f -e trace=openat "$cuflight" "$@" 2>&1 | grep -c '\.cuf"'; }

# times would depend on the machine
@test "list and clean open each recording as often among forty as among ten" {
	command -v strace >/dev/null || skip "strace is not installed"
	mkdir rec
	restarts 10 /bin/true
	listed=$(opens_of list rec) cleaned=$(opens_of clean --keep=1 --dry-run rec)
	[ "$listed" -ge 10 ] && [ "$cleaned" -ge 10 ]
	restarts 30 /bin/true
	[ "$(opens_of list rec)" -le $((listed * 4 + 10)) ]
	[ "$(opens_of clean --keep=1 --dry-run rec)" -le $((cleaned * 4 + 10)) ]
}

@test "a program, its children and what one run starts in turn are one run" {
	mkdir rec
	restarts 1 "$python" -c 'import subprocess; subprocess.run(["true"]); subprocess.run(["true"])'
	"$cuflight" run -q --size=4MiB -o rec/ -- sh -c '/bin/true; /bin/true; /bin/sleep 0'
	expect 0 list --json rec
	[ "$(runs 'len(runs)')" = 2 ]
	[ "$(runs 'runs[0]["processes"]')" = 3 ]
	[ "$(runs 'sum(len(r["files"]) for r in runs)')" = "$(recordings rec | wc -l)" ]
}

@test "a script is called by its own name" {
	mkdir rec
	echo pass >agent.py
	restarts 1 "$python" agent.py
	expect 0 list rec
	holds out ' agent.py ('
	expect 0 report rec
	holds out 'FINISHED: agent.py (pid '
}

@test "clean keeps the newest runs, asks, and removes whole runs only" {
	expect 2 clean rec
	holds err 'what may go?'
	mkdir rec
	restarts 3 /bin/true
	before=$(recordings rec)
	expect 2 clean --keep=1 rec
	holds err 'nothing was removed; pass --yes'
	[ "$(wc -l <out)" = 2 ]
	expect 0 clean --keep=1 --dry-run rec
	[ "$(recordings rec)" = "$before" ]
	expect 0 list --json rec
	newest=$(runs 'runs[2]["files"][0]')
	expect 0 clean --keep=1 --yes rec
	holds err 'removed 2 recordings'
	[ "$(recordings rec)" = "$newest" ]
	expect 0 clean --days=1 --yes rec
	holds err 'nothing to remove'
	expect 0 clean --total=1KiB --yes rec
	[ -z "$(recordings rec)" ]
	expect 2 clean --keep=1 rec
	holds err 'no recordings in this directory'
}

@test "DIRECTORY/#N is a run of a directory, for every command that reads a run" {
	mkdir rec
	local mib
	for mib in 10 30 20; do
		echo "kept = bytearray($mib << 20)" >agent.py
		restarts 1 "$python" agent.py
	done
	expect 1 diff rec/#1 rec/#2
	holds out '+20.0 MiB' 'agent.py:1'
	expect 0 report rec/#1
	holds out 'FINISHED' "'rec/#1'"
	[ ! -s err ]
	expect 0 check rec/#1 'host.peak <= 28MiB'
	expect 1 check rec/#2 'host.peak <= 28MiB'
	expect 2 report rec/#4
	holds err "cannot read 'rec/#4': the directory has no run of that number"
	expect 2 report rec/#0
	expect 2 report rec/#1x
	holds err "cannot open 'rec/#1x': No such file"
}

@test "report --pid explains one process of a run" {
	mkdir rec
	restarts 1 "$python" -c '
import os
kept = bytearray(20 << 20)
if not os.fork():
    kept = [kept, bytearray(40 << 20)]
    os._exit(3)
os.wait()'
	expect 0 list --json rec
	follows list out
	[ "$(runs 'runs[0]["processes"]')" = 2 ]
	expect 0 report --json rec
	pids=$(python3 -c 'import json; print(*sorted(p["pid"] for p in json.load(open("out"))["processes"]))')
	for pid in $pids; do
		expect 0 report --pid=$pid rec
		holds out "(pid $pid)"
		expect 0 report --json --pid=$pid rec
	done
	expect 2 report --pid=1 rec
	holds err 'the run has no recording of that process'
}

@test "names of files cannot act on a terminal, nor begin a line" {
	mkdir rec
	restarts 1 /bin/true
	mv "$(recordings rec)" rec/$'nl\n::error::x\e[31m.cuf'
	expect 0 clean --keep=0 --dry-run rec
	[ "$(cat out)" = 'rec/nl?::error::x?[31m.cuf' ]
	expect 0 clean --keep=0 --yes rec
	[ "$(cat out)" = 'rec/nl?::error::x?[31m.cuf' ]
	[ -z "$(ls rec)" ]
	CUFLIGHT_OUTPUT=$'/proc/nowhere/\n::error::x\e[31m.cuf' CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so /bin/true 2>err
	holds err "'/proc/nowhere/?::error::x?[31m.cuf'"
	[ "$(wc -l <err)" = 1 ]
}

@test "clean leaves everything alone that is no complete run" {
	mkdir rec
	restarts 1 /bin/true
	mv "$(recordings rec)" kept.cuf
	ln -s ../kept.cuf rec/link.cuf
	echo "not a recording" >rec/notes.cuf
	head -c 100 kept.cuf >rec/damaged.cuf
	echo text >rec/text.txt
	CUFLIGHT_OUTPUT=$home/rec/ CUFLIGHT_OPTIONS=size=4MiB:start=1 LD_PRELOAD=$build/libcuflight.so sleep 60 &
	sleeper=$!
	for _ in {1..50}; do
		[ -z "$(find rec -name '*sleep*')" ] || break
		sleep 0.1
	done
	expect 0 clean --keep=0 --yes rec
	holds err 'left alone'
	kill $sleeper
	wait $sleeper || true
	[ "$(find rec -name '*sleep*' | wc -l)" = 1 ]
	[ -L rec/link.cuf ] && [ -f kept.cuf ] && [ -f rec/notes.cuf ] && [ -f rec/damaged.cuf ] && [ -f rec/text.txt ]
	expect 0 clean --keep=0 --yes rec
	[ "$(ls rec)" = "$(printf '%s\n' damaged.cuf link.cuf notes.cuf text.txt)" ]
}

@test "a worker that was killed among healthy ones is what the report is about" {
	"$build/cuflight" run -o "$home/rec/" -- "$python" -c '
import os, signal, sys, time
workers = []
for n in range(3):
    pid = os.fork()
    if not pid:
        keep = b"x" * ((300 if n == 1 else 120) << 20)  # at once: a busy machine draws no rise out
        for _ in range(20):  # the peak is read when something is allocated
            some = bytearray(2 << 20)
            time.sleep(0.01)
        if n == 1: os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    workers.append(pid)
for pid in workers: os.waitpid(pid, 0)
print(workers[1])' >killed
	pid=$(cat killed)
	expect 0 report rec
	[ "$(head -1 out | grep -c "^NO END RECORDED: .*(pid $pid)")" = 1 ]
	holds out 'Processes of this run' "$pid" 'killed'
	[ "$(wc -l <out)" -le 21 ]
	[ "$(grep -c 'exit 0' out)" = 2 ]
	expect 0 report --full --no-pager rec
	holds out 'Processes (4)'
	# each row has the peak of its own process, as it was sampled
	sed -n '/^Processes (4)/,$p' out >rows
	grep -E "^ +$pid .* killed +[23][0-9]{2} MiB" rows
	[ "$(grep -cE '^ +[0-9]+ .* exit 0 +1[0-4][0-9] MiB' rows)" = 2 ]
}

@test "what-if and export read the newest run when none is named" {
	"$root/scripts/simcuda" "$build/cuflight" run -q -o "$home/x.cuf" -- "$build/victims/oom_fatal" >truth || true
	expect 0 what-if
	holds err 'reading x.cuf, the newest run here'
	expect 0 export --to=folded
	holds err 'reading x.cuf, the newest run here'
	[ -s out ]
	expect 2 what-if x.cuf y.cuf
	holds err "too many arguments: 'y.cuf'"
	rm x.cuf
	expect 2 export --to=folded
	holds err 'no recording in'
}
