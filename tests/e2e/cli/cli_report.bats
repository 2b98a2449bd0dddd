#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight report`: what it reads, what it refuses, and the forms it writes. What it says of the facts is judged by the
# victims' own truth, elsewhere.
load ../cli.bash

# VICTIM [OPTION...]: records it on the simulated device into VICTIM/
record_victim() {
	local victim=$1
	shift
	[ -x "$build/victims/$victim" ] || skip "no victims built"
	"$root/scripts/simcuda" "$cuflight" run -q --size=8MiB "$@" -o "$victim/" -- "$build/victims/$victim" >/dev/null 2>&1 || true
	[ -n "$(recordings "$victim")" ]
}

@test "without an argument it reads the newest run here, or in CUFLIGHT_OUTPUT, and prints which" {
	expect 2 report
	holds err 'no recording in' "record one with 'cuflight run -- COMMAND'"
	"$cuflight" run -q --size=4MiB -o a.cuf -- true
	"$cuflight" run -q --size=4MiB -o b.cuf -- false || true
	expect 0 report
	holds err 'reading b.cuf, the newest run here'
	holds out 'FINISHED: false (pid '
	expect 0 report -q
	empty err
	mkdir elsewhere
	"$cuflight" run -q --size=4MiB -o elsewhere/c.cuf -- sh -c 'exit 3' || true
	CUFLIGHT_OUTPUT=elsewhere expect 0 report
	holds err 'elsewhere/c.cuf'
	holds out 'exit status 3'
	mkdir 'a b'
	cd 'a b'
	"$cuflight" run -q --size=4MiB -o "it's one.cuf" -- true
	expect 0 report
	holds err "reading 'it'\\''s one.cuf', the newest run here"
	cd ..
	CUFLIGHT_OUTPUT='a b/' expect 0 report
	CUFLIGHT_OUTPUT='p/%e/%p.cuf' "$cuflight" run -q --size=4MiB -- true
	CUFLIGHT_OUTPUT='p/%e/%p.cuf' expect 0 report
	holds err 'reading p/true/'
}

@test "a file that is no recording is refused with the reason" {
	expect 2 report missing.cuf
	holds err "cannot open 'missing.cuf': No such file or directory"
	expect 2 report /nonexistent
	holds err "cannot open '/nonexistent': No such file or directory"
	: >empty.cuf
	expect 2 report empty.cuf
	holds err 'the file is empty'
	echo "not a recording" >text.cuf
	expect 2 report text.cuf
	head -c 65536 /dev/urandom >noise.cuf
	expect 2 report noise.cuf
	mkdir folder
	expect 2 report folder
	holds err 'no recordings in this directory'
	expect 2 report one.cuf two.cuf
	holds err "too many arguments: 'two.cuf'"
	empty out
}

@test "a cut recording is reported as far as it goes, and its first screen says so" {
	record_one
	head -c 65536 x.cuf >cut.cuf
	expect 0 report cut.cuf
	grep -q '^Note: the recording is cut' out
	head -c 100 x.cuf >stump.cuf
	expect 2 report stump.cuf
	holds err 'truncated inside its header'
}

@test "--at takes its moments and no others" {
	local at
	record_victim oom_recovered
	for at in now peak '#1' 0s 0.0001s; do
		expect 0 report --at="$at" oom_recovered
	done
	for at in soon '#' '#0' '#x' 5 -1s nan s 1e99s; do
		expect 2 report --at="$at" oom_recovered
		holds err 'expected now, end, peak, #N'
	done
	expect 2 report --at='#9' oom_recovered
	holds err 'failed requests are numbered #1 to #1'
	expect 2 report --at=99s oom_recovered
	holds err 'cannot show --at=99s: the recording ends after '
	empty out
}

# 21 lines: a terminal of 24 rows also shows the command, a note and the next prompt
@test "a fatal failure: the first screen has every answer in 21 lines of 80 columns" {
	record_victim oom_fatal
	expect 0 report oom_fatal
	[ "$(wc -l <out)" -le 21 ]
	awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out
	ascii out
	for words in 'OUT OF GPU MEMORY: oom_fatal (pid ' 'cudaMalloc(' 'Likely cause: ' 'Fix: ' 'Who held GPU 0 at the failure ' '  free ' \
		'Failed at: ' 'More: cuflight report --full oom_fatal' '      cuflight help '; do
		grep -qF "$words" out || { echo "no $words" >&2; cat out >&2; return 1; }
	done
	holds out 'append_kv'
	[ "$(head -c 17 out)" = 'OUT OF GPU MEMORY' ]
}

@test "the long report begins with the first screen, and has a section for each further question" {
	local title
	record_victim oom_fatal
	expect 0 report oom_fatal
	grep -v '^More:' out >screen
	expect 0 report --full oom_fatal
	head -n 1 screen | cmp - <(head -n 1 out)
	awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out
	for title in Why 'By call site' 'Failed requests (1)' 'Host memory of pid ' 'Processes (1)' 'What could not be seen'; do
		grep -q "^$title" out || { echo "no section $title" >&2; return 1; }
	done
	record_victim page_checkerboard
	expect 0 report --full --top=1 page_checkerboard
	grep -q 'and [0-9]* more (--top=[0-9]*)$' out
	expect 2 report --full --top=0 oom_fatal
}

@test "what is in no sum of a failure is counted, and the report counts holes by itself" {
	export SIMCUDA_LIB=$build/sim
	cat >pages.py <<-'END'
		import ctypes
		cuda, context, block = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_uint64()
		cuda.cuInit(0)
		cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
		for _ in range(5000): # the sums of 4 MiB have room for 4,096 pages
		    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(3 << 19)) == 0
		assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 40)) == 2
	END
	"$root/scripts/simcuda" "$cuflight" run -q --size=4MiB -o pages.cuf -- python3 pages.py
	expect 0 report --full pages.cuf
	grep -A1 'events beyond a small table (sums at a failure' out | grep -q ': 904$'
	expect 0 report --json pages.cuf
	python3 - <<-'END'
		import json
		report = json.load(open('out'))
		lost = {row['what']: row['count'] for row in report['coverage']['lost']}
		assert [(what[:28], count) for what, count in lost.items()] == [('events beyond a small table ', 904)], lost
		pages = report['devices'][0]['fragmentation']['pages']
		assert (pages['count'], pages['largest_hole_bytes']) == (5000, 1 << 19), pages
	END
}

@test "a long report on a terminal goes through PAGER, unless --no-pager says otherwise" {
	record_victim oom_fatal
	TERM=xterm PAGER="sed s/^/paged:/" script -qec "'$cuflight' report --full oom_fatal" /dev/null </dev/null >out
	grep -q '^paged:.*OUT OF GPU MEMORY' out
	TERM=xterm PAGER="sed s/^/paged:/" script -qec "'$cuflight' report --full --no-pager oom_fatal" /dev/null </dev/null >out
	lacks out 'paged:'
	TERM=xterm PAGER="sed s/^/paged:/" script -qec "'$cuflight' report oom_fatal" /dev/null </dev/null >out
	lacks out 'paged:'
	TERM=xterm PAGER="false" script -qec "'$cuflight' report --full oom_fatal" /dev/null </dev/null >out
}

@test "the screen follows COLUMNS" {
	record_victim oom_fatal
	COLUMNS=132 expect 0 report oom_fatal
	awk 'length($0) > 132 { print; bad = 1 } END { exit bad }' out
	COLUMNS=40 expect 0 report oom_fatal # more lines, the same words
	awk '!/cuflight / && length($0) > 40 { print; bad = 1 } END { exit bad }' out
	sed -n '/^Likely cause/,/^Fix/p' out | tr -s '\n ' '  ' >narrow
	expect 0 report oom_fatal
	sed -n '/^Likely cause/,/^Fix/p' out | tr -s '\n ' '  ' >wide
	[ "$(head -c 120 narrow)" = "$(head -c 120 wide)" ]
}

@test "JSON is valid by the published schema, and says no key that the schema does not describe" {
	local victim
	for victim in oom_fatal oom_recovered leak_per_request page_checkerboard pool_threshold vmm_reservation vmm_early_release captured_graph \
		two_processes sigkill pinned managed array; do
		record_victim "$victim"
		expect 0 report --json "$victim"
		cp out "$victim.json"
	done
	record_victim healthy_churn --host=full
	expect 0 report --json healthy_churn
	cp out healthy_churn.json
	node "$root/tests/e2e/validate.cjs" ./*.json
	node "$root/tests/e2e/cli_keys.cjs" ./*.json
}

@test "JSON of names that are not UTF-8 is still UTF-8" {
	local name=$'n\xffme'
	cp "$(type -P true)" "$name"
	"$cuflight" run -q --size=4MiB -o x.cuf -- "./$name"
	expect 0 report --json x.cuf
	iconv -f UTF-8 -t UTF-8 out >/dev/null
	node "$root/tests/e2e/validate.cjs" out
}

# A segment of a framework is one block of the driver, of which the row has only what blocks use.
@test "at its peak the call sites of a device hold what the device's rows have, in every kept recording" {
	local kept
	for kept in "$root"/tests/golden/*/*.cuf.zst; do
		expect 0 report --at=peak --json -o peak.json -f "$kept"
		node -e '
			const report = JSON.parse(require("fs").readFileSync("peak.json"));
			const sum = (rows) => rows.reduce((total, row) => total + row.bytes, 0);
			const kinds = ["device", "async", "vmm", "array"];
			report.devices.forEach((device, number) => {
				const sites = sum(report.leaks.filter((site) => site.device === number && kinds.includes(site.kind)));
				const rows = sum(device.owners.filter((row) => row.in_sum && [...kinds, "framework_slack"].includes(row.kind)));
				console.log(process.argv[1], number, sites, rows);
				if (sites !== rows)
					process.exit(1);
			})' "$kept"
	done
}

@test "the peak of a program that freed its cache later shows the cache" {
	record_victim oom_recovered
	expect 0 report --at=peak oom_recovered
	grep -E '^ +(fill_cache|take) .*15\.[0-9] GiB +9[0-9]%' out
	lacks out 'call sites not recorded'
}

@test "another process of the run is named by its program, and those of one program are one row" {
	record_victim ranks
	expect 0 report ranks
	grep -qE '^> 4 x ranks +1\.00 GiB ' out
	lacks out '^> pid '
	grep -qE '^Fix: give ranks \(pid [0-9]+\), which holds 256 MiB, another' out
	expect 0 report --json ranks
	grep -q '"name": *"ranks"' out
	"$root/scripts/simcuda" "$cuflight" run -q -o pair/ -- "$build/victims/cause_fixture" worker_beside >/dev/null 2>&1 || true
	expect 0 report pair
	grep -qE '^> pid [0-9]+, cause_fixture +[0-9.]+ GiB ' out
}

@test "what the driver has for itself at the failure is not free at the peak just before" {
	record_victim inference_server
	for at in end peak; do
		expect 0 report --json "--at=$at" inference_server
		mv out "$at.json"
	done
	node -e '
		const [end, peak] = ["end", "peak"].map((at) => JSON.parse(require("fs").readFileSync(at + ".json")).devices[0]);
		const bytes = (device, kind) => device.owners.find((row) => row.kind === kind).bytes;
		console.log(bytes(end, "unexplained"), bytes(peak, "unexplained"), bytes(peak, "free"));
		if (!bytes(end, "unexplained") || bytes(end, "unexplained") !== bytes(peak, "unexplained"))
			process.exit(1);'
}
