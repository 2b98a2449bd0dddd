#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight top`: frames of servers that run, against what they hold.
load live.bash

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
assert all(process['is_running'] and process['is_too_early'] for process in frame['processes'])
END
	"$cuflight" top --once rec >screen
	grep -q '23.0 MiB  device .* allocate (server.py:' screen
	grep -q 'too early: ' screen
	kill_server two
	"$cuflight" top --once rec | grep -q "(pid $(<two.pid))  ended: killed"
	[ "$("$cuflight" top --json --count=2 --every=1 rec | grep -c '"schema":"cuflight.live/1"')" = 2 ]
}
