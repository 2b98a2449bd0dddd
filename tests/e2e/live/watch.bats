#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight watch`: servers that will run out of memory are acted upon while they run, one that works
# in bursts never, and no more often than its limits allow, whatever happens to the watcher.
load live.bash

# ARGUMENT...: a watcher; what it prints is in watch.out
start_watch() {
	"$cuflight" watch --processor=50 "$@" >watch.out 2>&1 3>&- &
	watch=$!
	started+=" $watch"
	until_true 30 grep -q '^cuflight: watching' watch.out
}

# SIGNAL STATUS
stop_watch() {
	local status=0
	kill -"$1" "$watch"
	wait "$watch" || status=$?
	[ "$status" = "$2" ]
}

# NAME DEVICE KIND: a server that works without end
start_working() {
	start_server "$1" "$2"
	order "$1" name "\"$1\""
	order "$1" weights 64
	local fd=orders_$1
	echo "serve $3" >&"${!fd}"
}

has() { until_true "${PATIENCE:-60}" grep -q -e "$2" "$1"; }
count() { find "$1" -name "$2" | wc -l; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# told.sh: appends its arguments and what it is told
make_told() {
	printf '%s\n' '#!/bin/sh' 'printf "[%s]" "$@" >>told.args' \
		'env | grep "^CUFLIGHT_" >>told.env' 'cat >>told.json' 'echo "done" >>told' >told.sh
	chmod +x told.sh
}

@test "a leak is packed while the server runs, with its cause; a healthy server never; limits outlive the watcher" {
	local leak='time_to_oom(gpu) < 1h for 1s -> snapshot, log' snapshot
	export SIMCUDA_DEVICES=2
	start_working leak 0 leak
	start_working healthy 1 healthy
	start_watch --warm-up=5 --rule "$leak" rec
	PATIENCE=240 has watch.out '1h for 1s: leak, GPU 0: .*; gpu-leak at .*; rec/watch/snapshot'
	kill -0 "$(<leak.pid)"
	stop_watch KILL 137
	# the other rule sees the same, a moment later: by then the first one would have fired
	start_watch --warm-up=5 --rule "$leak" --rule 'time_to_oom(gpu) < 1000d for 1s -> log' rec
	PATIENCE=240 has watch.out '1000d for 1s: leak, GPU 0'
	[ "$(grep -c -e '1h for 1s' -e healthy watch.out)" = 0 ]
	stop_watch TERM 0
	[ "$(count rec/watch '*')" = 3 ] # itself, the state, the snapshot
	kill_server leak
	snapshot=$(echo rec/watch/snapshot.*.cufpack)
	"$cuflight" report "$snapshot" >report.txt
	grep -q '^RUNNING: ' report.txt # as it did then
	tar xOf "$snapshot" report.json | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["capture"]["end_state"] == "running", report["capture"]
found = [leak["stack"] for leak in report["leaks"] if leak["class"] == "leak"]
assert any(frame["function"] == "remember_session" for frame in found[0]), found'
}

@test "a command gets its arguments as they are, and what happened in its environment and as JSON" {
	make_told
	start_server one
	order one weights 300
	start_watch --rule 'gpu_memory(weights) > 250MiB -> snapshot, exec ./told.sh $HOME "a; b" '"'c, d'"', log' rec
	has told "done"
	[ "$(<told.args)" = '[$HOME][a; b][c, d]' ]
	grep -qx 'CUFLIGHT_VALUE=314572800' told.env
	grep -qx 'CUFLIGHT_VALUE_TEXT=300 MiB' told.env
	grep -qx "CUFLIGHT_PID=$(<one.pid)" told.env
	grep -qx 'CUFLIGHT_GPU=0' told.env
	grep -q '^CUFLIGHT_RULE=gpu_memory(weights) > 250MiB' told.env
	[ -s "$(sed -n 's/^CUFLIGHT_SNAPSHOT=//p' told.env)" ]
	[ -s "$(sed -n 's/^CUFLIGHT_RECORDING=//p' told.env)" ]
	python3 -c "
import json
event = json.load(open('told.json'))
assert event['schema'] == 'cuflight.watch/1' and event['value'] == 300 << 20, event
assert event['pid'] == $(<one.pid) and event['process'] == 'python3', event"
	has watch.out '250MiB: python3, GPU 0, weights: 300 MiB; rec/watch/snapshot'
}

@test "commands that fail or are missing, and a webhook that nobody hears, are told; what follows goes on" {
	start_server one
	order one weights 30
	start_watch --rule 'gpu_memory(weights) > 1MiB -> exec false, exec ./none, webhook http://127.0.0.1:9/x, log' rec
	has watch.out 'weights: 30.0 MiB'
	grep -q "the command of 'gpu_memory(weights) > 1MiB' failed with status 1" watch.out
	grep -q "cannot execute './none': No such file" watch.out
	grep -q "the webhook of .* failed with status" watch.out
}

@test "a webhook posts the event" {
	command -v curl >/dev/null || skip "no curl here"
	python3 - >port 3>&- <<'END' &
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        with open('posted', 'wb') as file:
            file.write(body)
        self.send_response(204)
        self.end_headers()
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
	started+=" $!"
	until_true 30 [ -s port ]
	start_server one
	order one weights 30
	no_proxy='*' start_watch --rule "used(gpu) > 0.1% -> webhook http://127.0.0.1:$(<port)/x, log" rec
	has watch.out 'used(gpu) > 0.1%: python3, GPU 0'
	python3 -c 'import json; assert json.load(open("posted"))["gpu"] == "0"'
	[ "$(wc -l <watch.out)" = 2 ]
}

@test "each new failure is news, an old one is not; a signal reaches the server" {
	start_server one
	order one keep 5
	order one fail
	start_watch --interval=1 --rule 'failures(handled) > 0 -> log, signal TERM' --rule 'gpu_memory(other) > 7MiB -> log' rec
	order one keep 5
	has watch.out 'gpu_memory(other) > 7MiB: python3'
	[ "$(grep -c failures watch.out)" = 0 ]
	order one fail
	has watch.out 'failures(handled) > 0: python3, GPU 0, handled: 1$'
	until_true 60 is_gone "$(<one.pid)"
}

@test "there is one watcher for a directory, until it ends, however it ends" {
	local status=0
	start_watch --rule 'leak > 0 -> log' rec
	"$cuflight" watch --rule 'leak > 0 -> log' rec >second 2>&1 || status=$?
	[ "$status" = 2 ]
	grep -q "'rec' is watched already, by process $watch;" second
	start_server one
	"$cuflight" watch -n --rule 'leak > 0 -> log' "$(<one.pid)"
	status=0
	"$cuflight" watch --rule 'leak > 0 -> log' "$(<one.pid)" >second 2>&1 || status=$?
	[ "$status" = 2 ]
	grep -q "is watched already, by process $watch;" second
	stop_watch KILL 137
	start_watch --rule 'leak > 0 -> log' rec
	stop_watch TERM 0
	[ "$(count rec/watch '*')" = 2 ] # itself and the state
}

@test "what runs ends with the watcher, asked or killed" {
	local how
	printf '%s\n' '#!/bin/sh' 'echo $$ >>pids' 'exec sleep 1000' >hang.sh
	chmod +x hang.sh
	start_server one
	order one weights 30
	for how in "TERM 0" "KILL 137"; do
		rm -f pids
		start_watch --keep="kept.${how% *}" --rule 'gpu_memory(weights) > 1MiB -> exec ./hang.sh' rec
		until_true 60 [ -s pids ]
		# shellcheck disable=SC2086 # two words
		stop_watch $how
		until_true 60 is_gone "$(<pids)"
	done
}

@test "a full disk stops snapshots and tells it once; the command runs all the same" {
	unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null || skip "no mounts allowed here"
	make_told
	mkdir tiny
	start_server one
	order one weights 30
	# shellcheck disable=SC2016 # of the other shell
	unshare -m sh -c 'mount -t tmpfs -o size=1m tmpfs tiny && exec "$@"' - \
		"$cuflight" watch --processor=50 --interval=1 --keep=tiny rec \
		--rule 'gpu_memory(weights) > 1MiB -> snapshot, exec ./told.sh' \
		--rule 'gpu_memory(other) > 1MiB -> snapshot, log' >watch.out 2>&1 3>&- &
	watch=$!
	started+=" $watch"
	has told "done"
	grep -qx 'CUFLIGHT_SNAPSHOT=' told.env
	order one keep 30
	has watch.out 'gpu_memory(other) > 1MiB: python3'
	[ "$(grep -c "no snapshot: 'tiny' has .* left, and one of 'rec/.*' may need 4[.0-9]* MiB" watch.out)" = 1 ]
	stop_watch TERM 0
}

@test "--dry-run has each rule with what it sees, and does nothing" {
	make_told
	start_server one
	order one weights 30
	printf '%s\n' '# comment' '' 'gpu_memory(weights) > 1MiB -> exec ./told.sh' '  time_to_oom < 1h -> snapshot' >rules
	"$cuflight" watch --dry-run --rules=rules --rule 'free < 1GiB -> log' rec >seen
	grep -q '^gpu_memory(weights) > 1MiB -> exec' seen
	grep -q '^  holds    python3, GPU 0, weights: 30.0 MiB$' seen
	grep -q '^           python3, GPU 0: 15.9 GiB$' seen
	grep -q '^  nothing to look at now$' seen
	[ ! -e told ] && [ ! -e rec/watch ]
}

@test "a wrong rule is refused, with the place, what is allowed and an example" {
	local status=0
	"$cuflight" watch --rule 'time_to_oom(gup) < 30m -> log' rec >said 2>&1 || status=$?
	[ "$status" = 2 ]
	[ "$(wc -l <said)" = 1 ]
	grep -q "at column 13, 'gup) < 30m -> log': unknown word 'gup' of time_to_oom: expected machine, gpu, cgroup.*for example: time_to_oom(gpu) < 30m for 5m -> snapshot" said
	printf '%s\n' 'leak > 1MiB -> log' 'leek > 1MiB -> log' >rules
	status=0
	"$cuflight" watch --rules=rules rec >said 2>&1 || status=$?
	[ "$status" = 2 ]
	grep -q "rules:2: .*at column 1, .*did you mean 'leak'" said
	status=0
	"$cuflight" watch rec >said 2>&1 || status=$?
	[ "$status" = 2 ]
	[ ! -e rec/watch ]
}
