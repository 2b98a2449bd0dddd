#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ends that are announced and do not come, or come twice: the recording states how the process really ended.
load broken.bash

# WAY STATUS
ends_with() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin -I "$root" "$root/tests/fault/others/ends_twice.c" -o "$home/ends_twice"
	for mode in sampled full; do
		rm -f "$output"/*
		options=${3-start=1}:size=4MiB:host=$mode
		unchanged_under command "$home/ends_twice" "$1"
		said_nothing
		"$build/cuflight" report --json "$output" >"$home/report.json"
		python3 - "$home/report.json" "$2" <<-'PY'
			import json, sys
			process, = json.load(open(sys.argv[1]))['processes']
			assert process['end_state'] == 'exit' and process['end_status'] == int(sys.argv[2]), process
		PY
	done
}

@test "an exec that fails in an exit handler" { ends_with exec 3; }
@test "a file that only an exit handler asks for" { ends_with phase 5 ''; }
@test "an abort that a handler leaves by siglongjmp" { ends_with abort 4; }
