#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A call site is the same one after a rebuild: other optimisation, another path, other line numbers.
load ../cli.bash

# NAME SOURCE FLAG...: build/NAME/model_server
build_as() {
	local name=$1 source=$2
	shift 2
	mkdir -p "$name"
	cc -std=gnu11 -D_GNU_SOURCE -I"$root" "$@" "$source" -o "$name/model_server" -ldl -lpthread
}

# NAME COMMIT: a recording of it, host=full
record() {
	"$root/scripts/simcuda" "$cuflight" run -q --size=4MiB --host=full -o "$1.cuf" -- "./$1/model_server" "--commit=$2" >truth
}

# BEFORE AFTER: 99 % of the bytes at the peak have a call site in both
keeps_identity() {
	local status=0
	"$cuflight" diff --least=0 --json "$1" "$2" >diff.json || status=$?
	[ "$status" -le 1 ]
	"$cuflight" baseline -q -f "$1" -o before.json
	node -e '
		const fs = require("fs");
		const before = JSON.parse(fs.readFileSync("before.json"));
		const diff = JSON.parse(fs.readFileSync("diff.json"));
		const kinds = ["device", "pinned", "managed", "host"];
		const sum = (list) => list.reduce((total, bytes) => total + bytes, 0);
		const all = sum(before.sites.filter((s) => kinds.includes(s.kind)).map((s) => s.peak[0]));
		const lost = sum(diff.sites.filter((s) => kinds.includes(s.kind) && s.change === "gone").map((s) => s.bytes_before));
		console.log(`${process.argv[1]}: ${all - lost} of ${all} bytes keep their identity`);
		process.exit(all > 200 * 1048576 && lost <= all / 100 ? 0 : 1);
	' "$1 -> $2" | tee -a kept
	[ "${PIPESTATUS[0]}" = 0 ]
}

@test "at least 99 % of the bytes keep their call site in another build" {
	local source=$root/tests/victims/gate/model_server.c name
	build_as plain "$source" -O1 -g
	build_as unoptimised "$source" -O0 -g
	build_as optimised "$source" -O2 -g
	build_as aggressive "$source" -O3 -g -fomit-frame-pointer
	mkdir -p elsewhere/very/deep
	{ yes '' | head -n 300; cat "$source"; } >elsewhere/very/deep/renamed.c
	build_as moved elsewhere/very/deep/renamed.c -O1 -g
	for name in plain unoptimised optimised aggressive moved; do record $name 4; done
	for name in unoptimised optimised aggressive moved; do
		keeps_identity plain.cuf $name.cuf
		keeps_identity $name.cuf plain.cuf
	done
	cat kept >&3
}

@test "a baseline of one build judges another: clean stays clean, the regression is named" {
	local source=$root/tests/victims/gate/model_server.c
	build_as before "$source" -O0 -g
	build_as after "$source" -O2 -g
	record before 1
	"$cuflight" baseline -q before.cuf -o memory.json
	record after 1
	expect 0 check after.cuf -b memory.json 'device.peak <= +3%' 'device.leak = 0'
	rm after.cuf
	record after 7
	expect 1 check after.cuf -b memory.json 'device.peak <= +3%'
	holds out allocate_workspace 'before 24.0 MiB'
	lacks out load_layer
}
