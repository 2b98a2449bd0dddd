#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A recording is trimmed to what it holds: by `run` at its end, by `clean --trim` after a plain preload. What a report says
# stays the same to the byte.
load ../cli.bash
simcuda=$root/scripts/simcuda
# where python3 is a script, that would be recorded too
python=$(python3 -c 'import sys; print(sys.executable)')

# FILE: its length, and its space on disk
sizes() { stat -c '%s %b' "$1" | awk '{ print $1, $2 * 512 }'; }
# FILE [LIMIT]: neither is larger
is_small() {
	sizes "$1" | awk -v limit="${2:-1048576}" '$1 > limit || $2 > limit { print "too large:", $0; bad = 1 } END { exit bad }'
}

# FILE: all that a report reads, at two moments
say_everything() {
	local at
	for at in now peak; do
		"$build/cuflight" report --json --at="$at" "$1" || return 1
		"$build/cuflight" report --full --no-pager --at="$at" "$1" || return 1
	done 2>&1
	"$build/cuflight" phases "$1" 2>&1 || true
}

# NAME PROGRAM...: recorded by a plain preload, then trimmed
stays_the_same() {
	local name=$1
	shift
	"$simcuda" env CUFLIGHT_OUTPUT="$home/$name.cuf" CUFLIGHT_OPTIONS="start=1${options:+:$options}" LD_PRELOAD="$build/libcuflight.so" \
		"$@" >"$name.truth" 2>&1 || true
	[ "$(sizes "$name.cuf" | cut -d' ' -f1)" -gt 60000000 ]
	# pages that were read are no holes any more, so the file that is trimmed is one that nobody has read
	(umask 077 && fallocate -l "$(stat -c %s "$name.cuf")" fresh.cuf)
	dd if="$name.cuf" of=fresh.cuf bs=4096 conv=sparse,notrunc status=none
	say_everything "$name.cuf" >before
	mv fresh.cuf "$name.cuf"
	touch -d '2026-01-02 03:04:05' "$name.cuf"
	"$build/cuflight" clean --trim . >trimmed 2>err
	grep -qx "./$name.cuf" trimmed
	is_small "$name.cuf" ${limit:-}
	[ "$(stat -c '%a %Y' "$name.cuf")" = "600 $(date -d '2026-01-02 03:04:05' +%s)" ]
	say_everything "$name.cuf" >after
	cmp before after
	[ "$(wc -c <after)" -gt 4000 ]
}

@test "run leaves at most 1 MiB after a short run, also of one that was killed" {
	"$build/cuflight" run -o "$home/a.cuf" -- true
	"$build/cuflight" run -o "$home/b.cuf" -- "$python" -c 'print(1)'
	"$build/cuflight" run -o "$home/c.cuf" -- sh -c 'kill -9 $$' || true
	for file in a b c; do is_small "$file.cuf"; done
	"$build/cuflight" report --json c.cuf >c.json
	python3 -c 'import json; p = json.load(open("c.json"))["processes"][0]; assert p["end_status"] == 9, p'
}

@test "a trimmed recording says what it said: device blocks, a failure, pools" {
	for victim in oom_fatal vmm_pool captured_graph page_checkerboard; do
		stays_the_same "$victim" "$build/victims/$victim"
		rm -f ./*.cuf
	done
}

@test "a trimmed recording says what it said: host blocks, Python's objects, full mode" {
	stays_the_same leak "$build/victims/host_leak"
	rm -f ./*.cuf
	# 3,000 objects, and the start of the interpreter: 70,000 events of 32 bytes
	limit=4194304 options=host=full stays_the_same full "$python" -c 'x = [bytes(100) for _ in range(3000)]'
}

@test "what run left has every block that the program held" {
	"$build/cuflight" run -o "$home/rec/" -- "$python" -c '
import os, signal
if not os.fork():
    keep = [bytearray(10 << 20) for _ in range(20)]
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()'
	"$build/cuflight" report --json rec >rec.json
	python3 - <<-'PY'
		import json
		child, = (p for p in json.load(open('rec.json'))['processes'] if p['parent'] is not None)
		assert child['host']['malloc_live_bytes'] >= 20 * 10 << 20, child['host']
	PY
}

@test "a recording that somebody may write to is left alone, and trimmed afterwards" {
	CUFLIGHT_OUTPUT=$home/x.cuf CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so \
		"$python" -c 'import time; print(1, flush=True); time.sleep(60)' >ready &
	pid=$!
	until [ -s ready ]; do sleep 0.05; done
	inode=$(stat -c %i x.cuf)
	expect 0 clean --trim .
	holds err 'left alone because somebody may still write to them: 1' 'trimmed 0 recordings'
	kill -9 "$pid"
	wait "$pid" || true
	[ "$(stat -c %i x.cuf)" = "$inode" ]
	expect 0 clean --trim --dry-run .
	holds err '1 recording can be trimmed by 6'
	[ "$(stat -c %i x.cuf)" = "$inode" ]
	expect 0 clean --trim .
	is_small x.cuf
	expect 0 clean --trim .
	holds err 'trimmed 0 recordings'
}

@test "a child that outlives the command keeps its recording whole" {
	"$build/cuflight" run -o "$home/rec/" -- sh -c 'setsid "$0" -c "
import ctypes, os, time
first = ctypes.create_string_buffer(100 << 20)
open(\"pid\", \"w\").write(str(os.getpid()))
while not os.path.exists(\"stop\"): time.sleep(0.02)
keep = ctypes.create_string_buffer(5 << 20)
open(\"ready\", \"w\").close(); time.sleep(60)" & until test -s pid; do sleep 0.05; done' "$python"
	pid=$(cat pid)
	touch stop
	until [ -e ready ]; do sleep 0.05; done
	kill -9 "$pid"
	"$build/cuflight" report --json rec/*."$pid".cuf >child.json
	python3 - <<-'PY'
		import json
		report = json.load(open('child.json'))
		assert report['host']['malloc_live_bytes'] > 104 << 20, report['host']
	PY
}

@test "a cut recording stays as it is, and nothing else is touched" {
	"$simcuda" "$build/cuflight" run --size=4MiB -o "$home/x.cuf" -- "$build/victims/oom_fatal" >out || true
	truncate -s -4096 x.cuf
	sum=$(sha256sum x.cuf)
	echo hello >note.txt
	ln -s /etc/hostname link.cuf
	expect 0 clean --trim .
	holds err "'./x.cuf' is cut or damaged, and stays as it is"
	[ "$(sha256sum x.cuf)" = "$sum" ]
	[ "$(cat note.txt)" = hello ]
	[ -L link.cuf ]
	expect 2 clean --trim --keep=1 .
	holds err '--trim removes no recording'
}

@test "after a plain preload, list and report make the files of their directory small; of a process that goes on, not" {
	local running
	mkdir rec
	for name in a b; do
		CUFLIGHT_OUTPUT="rec/$name.cuf" CUFLIGHT_OPTIONS=start=1 LD_PRELOAD="$build/libcuflight.so" "$python" -c 'print(1)'
	done
	CUFLIGHT_OUTPUT=rec/killed.cuf CUFLIGHT_OPTIONS=start=1 LD_PRELOAD="$build/libcuflight.so" \
		"$python" -c 'import os; os.kill(os.getpid(), 9)' || true
	mkfifo go
	CUFLIGHT_OUTPUT=rec/running.cuf CUFLIGHT_OPTIONS=start=1 LD_PRELOAD="$build/libcuflight.so" \
		"$python" -c 'print(1, flush=True); open("go").read()' >said 3>&- &
	running=$!
	until [ -s said ]; do sleep 0.05; done
	"$build/cuflight" report --json rec/a.cuf >before
	[ "$(sizes rec/a.cuf | cut -d' ' -f1)" -gt 60000000 ] # a file alone stays as it is
	"$build/cuflight" report rec >first
	for name in a b killed; do is_small rec/$name.cuf; done
	[ "$(sizes rec/running.cuf | cut -d' ' -f2)" -gt 60000000 ]
	echo >go
	wait $running
	"$build/cuflight" list rec >second
	is_small rec/running.cuf
	"$build/cuflight" report --json rec/a.cuf >after
	cmp before after
	[ -z "$(find rec -name '*.trim-*')" ]
}

@test "list and report of a directory that cannot be written say nothing about it" {
	mkdir rec
	CUFLIGHT_OUTPUT=rec/a.cuf CUFLIGHT_OPTIONS=start=1 LD_PRELOAD="$build/libcuflight.so" "$python" -c 'print(1)'
	chmod a-w rec/a.cuf rec
	[ "$(id -u)" != 0 ] || mount --bind -o ro rec rec 2>err || skip "no mount here: $(<err)"
	"$build/cuflight" report rec >out 2>err
	[ ! -s err ]
	[ "$(sizes rec/a.cuf | cut -d' ' -f1)" -gt 60000000 ]
	[ "$(id -u)" != 0 ] || umount rec
	chmod u+w rec
}

@test "a report of a directory writes no copy of a recording that is full" {
	mkdir full
	"$build/bench/reader_throughput" 8 full/one.cuf 0 77
	(ulimit -f 64 && "$build/cuflight" report full >out)
	[ -s out ]
}
