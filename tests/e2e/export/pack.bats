#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A pack takes a run to a machine without its programs. Packs of others are hostile.
load ../cli.bash

simcuda=$root/scripts/simcuda

# A program of this test's own, which is deleted later, and its recording server.cuf
record_server() {
	cp "$build/victims/leak_per_request" server
	"$simcuda" "$cuflight" run -q --size=4MiB -o server.cuf -- ./server >truth
}

# FILE: without its path. The pack's name is as long as the recording's, so that lines break alike.
without_paths() { sed -E 's/[^ "]*(server\.cuf|pk\.cufpack)/X/g; s/X(\/recordings\/X)?/X/' "$1"; }

@test "a report of a pack equals the report before, without the program" {
	record_server
	for form in '' --full --json; do
		expect 0 report $form server.cuf
		mv out "before$form"
	done
	holds before "take (doors.h:"
	expect 0 pack -o pk.cufpack server.cuf
	holds err "cuflight report pk.cufpack"
	rm server server.cuf
	for form in '' --full --json; do
		expect 0 report $form pk.cufpack
		diff <(without_paths "before$form") <(without_paths out)
	done
}

@test "without the pack, the names of a deleted program are lost" {
	record_server
	rm server
	expect 0 report server.cuf
	lacks out "doors.h"
}

@test "every command that reads recordings reads a pack" {
	record_server
	expect 1 check --json server.cuf
	mv out before
	expect 0 pack -o pk.cufpack server.cuf
	expect 0 list pk.cufpack
	holds out "server (" "GPU memory leak"
	expect 1 check --json pk.cufpack
	diff <(without_paths before) <(without_paths out)
	expect 0 baseline -o base.json pk.cufpack
	expect 0 diff server.cuf pk.cufpack
	expect 0 phases pk.cufpack
}

@test "a pack has the processes of a run" {
	mkdir rec
	"$simcuda" "$cuflight" run -q --size=4MiB -o rec/ -- "$build/victims/two_processes" >truth
	expect 0 report --json rec
	mv out before
	expect 0 pack -o two.cufpack rec
	expect 0 report --json two.cufpack
	node -e '
		const read = (f) => JSON.parse(require("fs").readFileSync(f));
		const [a, b] = ["before", "out"].map(read);
		const pick = (r) => JSON.stringify([r.processes.map((p) => [p.pid, p.held_bytes, p.end_state]), r.devices.map((d) => d.owners)]);
		if (a.processes.length < 2 || pick(a) !== pick(b)) throw new Error(pick(a) + "\n" + pick(b));
	'
}

@test "tar opens a pack, and its report is the one that cuflight prints" {
	record_server
	expect 0 pack -o pk.cufpack server.cuf
	tar xf pk.cufpack
	cmp recordings/server.cuf server.cuf
	expect 0 report --full server.cuf
	diff <(without_paths out) <(without_paths report.txt)
	node -e 'for (const f of ["pack.json", "report.json"]) JSON.parse(require("fs").readFileSync(f))'
	grep -q '"cuflight.pack/1"' pack.json
}

@test "a name that is longer than the header of tar is in the pack" {
	local name
	name=$(printf 'name%.0s' {1..40}).cuf
	"$cuflight" run -q --size=4MiB -o "$name" -- true
	expect 0 pack -o pk.cufpack "$name"
	tar xf pk.cufpack
	cmp "recordings/$name" "$name"
	expect 0 report pk.cufpack
}

@test "the same recording gives the same pack" {
	record_server
	expect 0 pack -o pk.cufpack server.cuf
	mkdir again
	sleep 1.1
	expect 0 pack -o again/pk.cufpack server.cuf
	cmp pk.cufpack again/pk.cufpack
}

@test "secrets that the recorder left are hidden" {
	local secret=hf_0123456789abcdefghij
	# the recorder hides it, so it is written into the recording where a path was
	"$cuflight" run -q --size=4MiB -o x.cuf -- true --label=aa_0123456789abcdefghij --note=plain
	sed -i "s/aa_0123456789abcdefghij/$secret/" x.cuf
	grep -qaF $secret x.cuf
	expect 0 pack -o x.cufpack x.cuf
	holds err "secret"
	tar xf x.cufpack
	! grep -raF $secret recordings report.txt report.json pack.json || false
	expect 0 report --json x.cufpack
	holds out "--label=***********************" "--note=plain"
}

@test "hostile packs leave no file, and are refused or read as the recording in them" {
	command -v zstd >/dev/null || skip "no zstd to make packs with"
	record_one
	mkdir packs tmp
	python3 "$root/tests/e2e/export/hostile_packs.py" x.cuf packs
	export TMPDIR=$home/tmp
	expect 0 report --json x.cuf
	node -p 'JSON.parse(require("fs").readFileSync("out")).capture.pid' >pid
	for pack in packs/refused-*; do
		echo "$pack"
		expect 2 report --json "$pack"
		holds err "cuflight: cannot read "
	done
	for pack in packs/harmless-*; do
		echo "$pack"
		expect 0 report --json "$pack"
		node -p 'JSON.parse(require("fs").readFileSync("out")).capture.pid' | cmp - pid
	done
	[ -z "$(ls tmp)" ]
	[ ! -e /tmp/cuflight-was-here ]
}

@test "pack: what it cannot do is one error" {
	record_one
	expect 2 pack
	holds err "name a recording"
	expect 2 pack x.cuf x.cuf
	expect 2 pack missing.cuf
	holds err "missing.cuf"
	[ ! -e missing.cufpack ]
	expect 0 pack x.cuf
	expect 2 pack x.cuf
	holds err "exists; -f overwrites it"
	expect 0 pack -f x.cuf
	expect 2 pack -o again.cufpack x.cufpack
	holds err "is a pack already"
	[ ! -e again.cufpack ]
	TMPDIR=$home/none expect 2 pack -f x.cuf
	holds err "TMPDIR"
	TMPDIR=$home/none expect 2 report x.cufpack
	holds err "none"
	[ -z "$(find . -name '*.tmp.*')" ]
}

@test "a recording that zstd compressed is read as it is" {
	record_server
	command -v zstd >/dev/null || skip "zstd is not installed"
	expect 0 report --json server.cuf
	mv out before
	zstd -q server.cuf
	expect 0 report --json server.cuf.zst
	diff <(sed 's/server\.cuf\.zst/server.cuf/' out) before
	# what is compressed must be a recording
	echo "no recording" | zstd -q >text.zst
	expect 2 report text.zst
	holds err "the pack is damaged, or no pack of cuflight"
}
