#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight top`: frames of servers that run, against what they hold.
load live.bash

# FILE: a document of the published schema, without a key that it does not describe
check_schema() {
	local schema=analysis/view/cuflight.live-1.schema.json
	node "$root/tests/e2e/validate.cjs" --schema=$schema "$1" || [ $? = 77 ]
	node "$root/tests/e2e/cli_keys.cjs" --schema=$schema "$1"
}

@test "one frame has what two servers hold, as JSON and as text; a killed one has ended" {
	start_server one
	start_server two
	order one keep 11
	order two keep 23
	"$cuflight" top --once --json rec >frame
	python3 - <<'END'
import json
frame = json.load(open('frame'))
assert frame['schema'] == 'cuflight.live/1'
own = [sum(process['devices'][0]['owners'].values()) for process in frame['processes']]
other = [process['devices'][0]['owners']['other'] for process in frame['processes']]
assert sorted(other) == [11 << 20, 23 << 20], other
device, = frame['devices']
assert sum(own) + device['free'] + device['other_processes'] + device['unexplained'] == device['total_bytes']
assert sum(device['owners'].values()) == device['total_bytes'] and device['owners']['other'] == 34 << 20
assert all(process['is_running'] and process['is_too_early'] for process in frame['processes'])
assert sorted(process['gpu_bytes'] for process in frame['processes']) == [11 << 20, 23 << 20]
assert {process['verdict'] for process in frame['processes']} == {'early'}
END
	check_schema frame
	"$cuflight" top --once rec >screen
	grep -q '23.0 MiB  device .* allocate (server.py:' screen
	grep -q 'too early: ' screen
	kill_server two
	"$cuflight" top --once --json rec >frame
	check_schema frame
	"$cuflight" top --once rec | grep -q "(pid $(<two.pid))  ended: killed"
	[ "$("$cuflight" top --json --count=2 --every=1 rec | grep -c '"schema":"cuflight.live/1"')" = 2 ]
}

@test "the document of serve follows the same schema" {
	start_server one
	order one keep 5
	start_serve rec
	has_sites() { get "$address/live.json" >frame && grep -q '"sites":\[{' frame; }
	until_true ${PATIENCE:-60} has_sites
	check_schema frame
}

@test "top PID shows the recording of that process only" {
	start_server one
	start_server two
	order one keep 11
	order two keep 23
	(cd / && "$cuflight" top --once "$(<"$OLDPWD/two.pid")") >screen
	grep -q "(pid $(<two.pid))" screen
	[ "$(grep -c '(pid' screen)" = 1 ]
}

# WORDS COMMAND...: it fails with status 2 and one line that has the words
refuses() {
	local words=$1 status=0
	shift
	"$@" >out 2>said || status=$?
	cat said
	[ "$status" = 2 ]
	[ ! -s out ]
	[ "$(wc -l <said)" = 1 ]
	grep -q -- "$words" said
}

# COMMAND WORD...: what each of the three refuses. In a group of its own: one of them killed its group.
refuses_all() {
	refuses "'note.txt' is no recording" setsid -w "$cuflight" "$@" note.txt
	refuses "cannot read 'damaged.cuf'" setsid -w "$cuflight" "$@" damaged.cuf
	refuses "cannot read 'empty.cuf': the file is empty" setsid -w "$cuflight" "$@" empty.cuf
	refuses "cannot read 'zeros'" setsid -w "$cuflight" "$@" zeros
	refuses 'No such file' setsid -w "$cuflight" "$@" nowhere
	refuses 'neither a directory nor a file' setsid -w "$cuflight" "$@" fifo
	refuses "process $$ is not recorded" setsid -w "$cuflight" "$@" $$
	refuses "there is no process $gone" setsid -w "$cuflight" "$@" "$gone"
	refuses 'too many arguments' setsid -w "$cuflight" "$@" rec rec
}

@test "top, watch, serve: what is no recording of a running process is refused, with one line and status 2" {
	local gone
	start_server one
	order one keep 1
	echo text >note.txt
	: >empty.cuf
	head -c 100000 /dev/zero >zeros
	mkfifo fifo
	{ printf 'CUFLIGHT'; head -c 9000 /dev/zero; } >damaged.cuf
	gone=$(bash -c 'echo $$')
	refuses_all top --once
	refuses_all watch --rule 'leak > 1MiB -> log'
	refuses_all serve --listen=127.0.0.1:0
	refuses 'zeros:1: longer than' timeout 60 "$cuflight" watch --rules=zeros rec
	refuses '--report-ended' "$cuflight" serve --termination-log=log rec
	"$cuflight" top --once rec >screen
}
