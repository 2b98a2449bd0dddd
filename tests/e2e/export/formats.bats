#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# cuflight export: every format has the sums of the report, in the tool that it is for.

load ../cli

# NAME VICTIM ARGUMENTS...: leaves NAME.cuf, its report and the victim's truth; a victim may fail. It is recorded once for all tests.
record() {
	local kept="$BATS_FILE_TMPDIR/${*:2} ${OPTIONS-}" kind
	if ! [ -e "$kept.json" ]; then
		# shellcheck disable=SC2086 # words
		SIMCUDA_DEVICES=2 "$root/scripts/simcuda" "$cuflight" run -q ${OPTIONS-} -o "$kept.cuf" -- "$build/victims/$2" "${@:3}" >"$kept.truth" 2>/dev/null || [ $? != 77 ] || skip "$2 does not run here"
		"$cuflight" report --json "$kept.cuf" >"$kept.json"
	fi
	for kind in cuf json truth; do ln -f "$kept.$kind" "$1.$kind"; done
}

# NAME FORMAT...: the totals of each agree with the report; those of a history with that of the end
agree() {
	local name=$1 form report
	"$cuflight" report --json --at=now "$name.cuf" >"$name.end.json"
	shift
	for form; do
		expect 0 export --to="$form" -o "$name.$form" "$name.cuf"
		case $form in
		perfetto | heaptrack) report=$name.end.json ;;
		*) report=$name.json ;;
		esac
		"$root/tests/e2e/export/totals.py" "$report" "$form" "$name.$form" || { echo "$name, $form" >&2; return 1; }
	done
}

# what needs no other program
own=(folded perfetto)
needs() { command -v "$1" >/dev/null || skip "$1 is not installed"; }

@test "live bytes are those that the victim printed" {
	record one oom_fatal
	expect 0 export --to=folded --kind=device one.cuf
	truth=$(sed -n 's/^live kind device bytes \([0-9]*\).*/\1/p' one.truth)
	[ "$truth" -gt 0 ]
	[ "$(awk '{ sum += $NF } END { printf "%.0f", sum }' out)" = "$truth" ]
	holds out 'device gpu 0;' ';append_kv (oom_fatal.c:'
}

@test "folded stacks and Perfetto have the sums of the report" {
	for victim in oom_fatal leak_per_request vmm_pool host_leak pinned array managed two_devices; do
		record $victim $victim
		agree $victim "${own[@]}"
	done
}

@test "a sampled host counts for what it stands for, a full one exactly" {
	OPTIONS="--host=sampled --sample=64KiB" record sampled host_grows
	agree sampled "${own[@]}"
	OPTIONS=--host=full record full host_grows
	agree full "${own[@]}"
}

@test "go tool pprof reads totals, tags and differences" {
	needs go
	for victim in oom_fatal vmm_pool host_leak marks_its_work; do
		record $victim $victim
		agree $victim pprof
	done
	go tool pprof -symbolize=none -tags marks_its_work.pprof >tags 2>/dev/null
	grep -q '^ phase: Total' tags
	record before leak_per_request
	go tool pprof -symbolize=none -top -unit=B oom_fatal.pprof 2>/dev/null | grep -q 'append_kv$'
}

@test "heaptrack_print reads leaks, and the peak of the whole history" {
	needs heaptrack_print
	for victim in oom_fatal healthy_churn host_leak; do
		record $victim $victim
		agree $victim heaptrack
	done
}

@test "PyTorch's own reader reads segments, blocks and the trace" {
	export VIZ=$build/memory_viz/_memory_viz.py
	[ -f "$VIZ" ] || skip "PyTorch's _memory_viz.py was not fetched"
	for victim in oom_fatal torch_allocator two_devices vmm_pool array managed; do
		record $victim $victim
		agree $victim torch-snapshot
	done
}

@test "Perfetto's trace_processor reads levels, blocks, failures and names" {
	export TRACE_PROCESSOR=$build/trace_processor
	[ -d "$TRACE_PROCESSOR" ] || skip "trace_processor was not fetched"
	for victim in oom_fatal vmm_pool host_leak managed two_devices marks_its_work; do
		record $victim $victim
		agree $victim perfetto
		"$root/tests/e2e/export/totals.py" $victim.end.json trace_processor $victim.perfetto
	done
	# a total that is wrong is found
	sed -i 's/"live_at_end":true/"live_at_end":false/' oom_fatal.perfetto
	run "$root/tests/e2e/export/totals.py" oom_fatal.end.json trace_processor oom_fatal.perfetto
	[ "$status" = 1 ]
}

@test "speedscope's page shows folded stacks" {
	page=$build/node_modules/speedscope/dist/release/index.html
	[ -f "$page" ] || skip "speedscope was not fetched"
	needs chromium
	record one oom_fatal
	expect 0 export --to=folded -o one.folded one.cuf
	echo "speedscope.loadFileFromBase64('one.folded', '$(base64 -w0 one.folded)')" >profile.js
	timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=9000 \
		--dump-dom "file://$page#localProfilePath=$PWD/profile.js&view=sandwich" >dom 2>chromium.log || skip "chromium does not run here: $(tail -1 chromium.log)"
	sed 's/<[^>]*>/\n/g' dom >text
	grep -q '^append_kv (oom_fatal.c:' text
	bytes=$(sed -n 's/^live kind device bytes \([0-9]*\).*/\1/p' one.truth)
	grep -q "^$(printf "%s" "$bytes" | sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta') " text
}

@test "several processes: one root each, and formats of one process ask for --pid" {
	mkdir rec
	"$root/scripts/simcuda" env CUFLIGHT_OUTPUT="$PWD/rec/" LD_PRELOAD="$build/libcuflight.so" "$build/victims/two_processes" >truth 2>/dev/null || true
	"$cuflight" report --json rec >rec.json
	ln -s rec rec.cuf
	agree rec "${own[@]}"
	[ "$(cut -d';' -f1 rec.folded | sort -u | wc -l)" -ge 2 ]
	for form in heaptrack torch-snapshot; do
		expect 2 export --to=$form -o no rec
		holds err 'choose one with --pid=N'
		[ ! -e no ]
	done
	pid=$(python3 -c 'import json; print(json.load(open("rec.json"))["processes"][-1]["pid"])')
	expect 0 export --to=heaptrack --pid="$pid" -o one.heaptrack rec
}

@test "--at chooses the moment, as in the report" {
	record one leak_per_request
	for at in now peak 0s; do
		expect 0 export --to=folded --at=$at --kind=device -o at.$at one.cuf
	done
	[ ! -s at.0s ]
	[ -s at.now ]
	"$cuflight" report --json --at=now one.cuf >one.json
	expect 0 export --to=folded --at=now -o one.folded one.cuf
	"$root/tests/e2e/export/totals.py" one.json folded one.folded
	expect 2 export --to=folded --at=#99 one.cuf
	expect 2 export --to=perfetto --at=peak one.cuf
	holds err '--at does not go with --to=perfetto'
}

@test "a ring that was overwritten and a file that is cut are named, and the sums stay" {
	OPTIONS="--size=4MiB --host=full" record ring churns 1
	[ "$(python3 -c 'import json; print(json.load(open("ring.json"))["capture"]["events_overwritten"] > 0)')" = True ]
	agree ring folded
	expect 0 export --to=perfetto -o trace ring.cuf
	holds err 'events were overwritten'
	python3 -m json.tool trace >/dev/null
	head -c $(($(stat -c %s ring.cuf) * 3 / 4)) ring.cuf >cut.cuf
	for form in folded pprof perfetto heaptrack; do
		expect 0 export --to=$form -o cut.$form cut.cuf
	done
	holds err 'is cut'
}

@test "hostile names are data in every format" {
	cat >hostile.py <<-'END'
		def make(name):
		    def grow():
		        return bytearray(1 << 20)
		    grow.__code__ = grow.__code__.replace(co_name=name, **({"co_qualname": name} if hasattr(grow.__code__, "co_qualname") else {}), co_filename=name + ".py")
		    return grow
		names = ['a;b c', '"quoted\\', 'line\nfeed\ttab', '\x1b[31m', "</script>", "'; DROP TABLE x;--", '\udcff\udcfe', 'x' * 5000, '\u202e']
		kept = [make(name)() for name in names]
	END
	"$cuflight" run -q -o hostile.cuf -- "$(python3 -c 'import sys; print(sys.executable)')" hostile.py >/dev/null 2>err || true
	[ -f hostile.cuf ]
	"$cuflight" report --json hostile.cuf >hostile.json
	agree hostile "${own[@]}"
	if command -v heaptrack_print >/dev/null; then agree hostile heaptrack; fi
	if command -v go >/dev/null; then agree hostile pprof; fi
	if [ -d "$build/trace_processor" ]; then
		TRACE_PROCESSOR=$build/trace_processor "$root/tests/e2e/export/totals.py" hostile.end.json trace_processor hostile.perfetto
	fi
	grep -q 'a:b c' hostile.folded
	# one line a stack, each with its number, and no control character
	[ "$(LC_ALL=C grep -c '[[:cntrl:]]' hostile.folded)" = 0 ]
	[ "$(grep -vc ' [0-9][0-9]*$' hostile.folded)" = 0 ]
	sed -i 's/return bytearray(1 << 20)/return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 20))/' hostile.py
	printf '%s\n' 'import ctypes' 'cuda = ctypes.CDLL("libcuda.so.1")' 'cuda.cuInit(0)' 'context = ctypes.c_void_p()' \
		'cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)' 'cuda.cuCtxSetCurrent(context)' | cat - hostile.py >device.py
	"$root/scripts/simcuda" "$cuflight" run -q -o device.cuf -- "$(python3 -c 'import sys; print(sys.executable)')" device.py >/dev/null 2>err || true
	expect 0 export --to=torch-snapshot -o hostile.pickle device.cuf
	python3 -c 'import pickle, sys; print(sum(len(s["blocks"]) for s in pickle.load(open(sys.argv[1], "rb"))["segments"]))' hostile.pickle >blocks
	[ "$(cat blocks)" -ge 9 ]
}

@test "usage errors are one line, status 2, and leave nothing" {
	record one oom_fatal
	expect 2 export one.cuf
	holds err '--to=FORMAT is missing'
	expect 2 export --to=pprofs one.cuf
	holds err "did you mean 'pprof'"
	expect 2 export --to=folded --kind=devise one.cuf
	holds err "did you mean 'device'"
	expect 2 export --to=folded --device=7 one.cuf
	expect 2 export --to=folded --pid=1 one.cuf
	expect 2 export --to=torch-snapshot --kind=host -o none one.cuf
	expect 2 export --to=folded one.cuf two.cuf
	holds err "too many arguments: 'two.cuf'"
	expect 2 export --to=folded none.cuf
	for form in folded pprof; do
		expect 0 export --to=$form -o kept one.cuf
		expect 2 export --to=$form -o kept one.cuf
		holds err 'exists; -f overwrites it'
		rm kept
	done
	[ "$(wc -l <err)" = 1 ]
	[ ! -e none ]
	mkdir into
	expect 0 export --to=pprof -o into one.cuf
	[ -s into/one.pb.gz ]
}

@test "a binary format refuses a terminal, and a full disk is an error" {
	record one oom_fatal
	script -qec "'$cuflight' export --to=pprof one.cuf; echo status \$?" typescript >shown </dev/null
	grep -q 'is binary and stdout is a terminal' shown
	grep -q 'status 2' shown
	for form in folded pprof perfetto; do
		run bash -c "'$cuflight' export --to=$form one.cuf >/dev/full"
		[ "$status" = 2 ]
	done
}

@test "stacks of Python have the program's lines, and the interpreter's functions when asked" {
	cat >leak.py <<-'END'
		kept = []
		class Node:
		    pass
		def grow(count):
		    kept.append([Node() for _ in range(count)])
		    for node in kept[-1]:
		        node.values = {'key': [1, 2, 3]}
		grow(200000)
	END
	"$cuflight" run -q -o x.cuf -- python3 leak.py
	"$cuflight" export --to=folded --kind=host -o own.folded x.cuf
	"$cuflight" export --to=folded --kind=host --interpreter -o all.folded x.cuf
	grep -q 'grow (leak.py:7)' own.folded
	# before the first line of Python there is nothing else to name
	[ -z "$(grep '\.py:' own.folded | grep '_PyEval\|Py_BytesMain')" ]
	grep '\.py:' all.folded | grep -q '_PyEval\|Py_BytesMain' # a distribution's has few symbols
	[ "$(awk '{ sum += $NF } END { print sum }' own.folded)" = "$(awk '{ sum += $NF } END { print sum }' all.folded)" ]
}

@test "a snapshot without memory of a device is an error that names other formats" {
	"$cuflight" run -q -o x.cuf -- ls >/dev/null
	expect 2 export --to=torch-snapshot -o x.pickle x.cuf
	holds err 'no memory of a device' 'pprof'
	[ ! -e x.pickle ]
}
