#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight serve`: what it tells of servers that run, against what they hold, and who may ask.
load live.bash

# NAME PID: the blocks of a process are what its server holds, in terms of metrics.py
own="weights kv compute output library communication graph other"
holds() { echo "sum(m('gpu_memory_bytes', process='$1', owner=o) for o in '$own'.split()) == sum(truth($2)[k] for k in ('weights', 'kv', 'keep'))"; }

check_exposition() { ! command -v promtool >/dev/null || promtool check metrics <"$1"; }

@test "owners of two servers sum to the device, and are what the servers and the report say" {
	start_server one
	start_server two
	order one weights 300
	order one kv 20
	order two weights 100
	order two keep 7
	start_serve rec
	metrics_become "$(holds python3 "$(<one.pid)")" "$(holds 'python3 #2' "$(<two.pid)")" \
		"m('gpu_memory_bytes', owner='free') == truth($(<two.pid))['free']" \
		"m('gpu_memory_total_bytes') == truth($(<two.pid))['total'] and n('gpu_memory_total_bytes') == 1" \
		"m('process_running') == 2 and m('up') == 2 and n('cause') == 0"
	check_exposition metrics.txt
	"$cuflight" report --json rec/*."$(<one.pid)".cuf >report.json
	python3 "$root/tests/e2e/live/metrics.py" metrics.txt \
		"(lambda d: sum(row['bytes'] for row in d['devices'][0]['owners'] if row['role'] == 'weights') == m('gpu_memory_bytes', process='python3', owner='weights') == 300 << 20)(json.load(open('report.json')))"
}

@test "who is killed is at 0 at once, its successor has its name, and counters add up" {
	start_server one
	order one keep 5
	order one fail
	start_serve rec
	metrics_become "m('process_running', process='python3') == 1" "m('allocation_failures_total', outcome='handled') == 1" \
		"m('allocations_total') == 65" "n('allocation_failures_total', gpu='0') == 3"
	kill_server one
	metrics_become "n('process_running') == 1 and m('process_running') == 0" "n('gpu_memory_bytes') == 0" "m('allocations_total') == 65"
	start_server two
	order two keep 5
	metrics_become "m('process_running', process='python3') == 1 and n('process_running') == 1" \
		"m('allocations_total') == 66" "m('allocation_failures_total', outcome='handled') == 1"
}

@test "the number of series stays while memory is allocated and freed" {
	local round series first=
	start_server one
	order one weights 10
	start_serve rec
	metrics_become "m('gpu_memory_bytes', owner='other') + m('gpu_memory_bytes', owner='weights') > 0"
	for round in 1 2 3; do
		order one churn 500
		metrics_become "m('allocations_total') == 1 + 500 * $round" "m('site_bytes', memory='device') == 10 << 20"
		series=$(grep -vc '^#' metrics.txt)
		[ "${first:=$series}" = "$series" ]
	done
}

@test "names of processes are escaped, whatever is in them" {
	start_server one
	order one name '"a\"b\\\\c{}#"'
	start_server two
	order two name '"x\ny=\"1\""'
	order one keep 1
	order two keep 1
	start_serve rec
	metrics_become "n('process_running') == 2" "m('process_running', process='a\"b\\\\\\\\c{}#') == 1"
	check_exposition metrics.txt
}

@test "damaged files, links, FIFOs and files that come later: nothing hangs, nothing outside is read" {
	start_server one
	order one keep 3
	mkdir rec/pod outside
	head -c 70000 /dev/urandom >rec/noise.cuf
	{ printf 'CUFLIGHT'; head -c 9000 /dev/zero; } >rec/damaged.cuf
	mkfifo rec/fifo.cuf
	: >rec/empty.cuf
	cp rec/cuflight.* outside/secret.cuf
	ln -s ../outside/secret.cuf rec/link.cuf
	ln -s ../outside rec/linked
	start_serve rec
	metrics_become "m('up', recording='damaged.cuf') == 0 and n('up', recording='damaged.cuf') == 1" "m('up') == 1" "n('up') == 2" "m('gpu_memory_bytes', owner='other') == 3 << 20"
	cp outside/secret.cuf rec/pod/later.cuf
	metrics_become "n('up', recording='pod/later.cuf') == 1"
	mkdir $'rec/p\xff\n"d'
	mv rec/pod/later.cuf $'rec/p\xff\n"d/later.cuf'
	metrics_become "n('up', recording='p\ufffd\n\"d/later.cuf') == 1"
	get "$address/live.json" | python3 -c 'import json, sys
assert any(process["recording"].endswith("d/later.cuf") for process in json.loads(sys.stdin.buffer.read().decode())["processes"])'
	rm -r $'rec/p\xff\n"d'
	metrics_become "n('up', recording='pod/later.cuf') == 0" "m('process_running') == 1"
}

status_of() { get -o answer -w '%{http_code}' "$@"; }

@test "strange hosts, methods and paths are refused" {
	start_serve rec
	[ "$(status_of "$address/metrics")" = 200 ]
	[ "$(status_of -H 'Host: localhost:1' "$address/metrics")" = 200 ]
	[ "$(status_of -H 'Host: evil.example' "$address/metrics")" = 403 ]
	[ "$(status_of -H 'Host: 127.0.0.1.evil.example' "$address/metrics")" = 403 ]
	[ "$(status_of -X POST "$address/metrics")" = 405 ]
	[ "$(status_of --path-as-is "$address/../../etc/passwd")" = 404 ]
	[ "$(status_of --path-as-is "$address/metrics/..%2f..%2fetc/passwd")" = 404 ]
	[ "$(status_of "$address/metrics%00")" != 500 ]
	[ "$(status_of "$address/metrics?process=%0a%0dX:%20y")" = 200 ]
	kill "$serve"
	wait "$serve"
}

@test "slow clients and endless headers take no place from a scrape" {
	start_serve rec
	python3 - "${address#http://}" <<'END'
import socket, sys
host, port = sys.argv[1].split(':')
def connect():
    return socket.create_connection((host, int(port)), 20)
slow = []
for i in range(400):
    try:
        s = connect()
        s.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-A: ')
        slow.append(s)
    except OSError:
        pass
def scrape():
    with connect() as s:
        s.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return s.recv(100)
assert scrape().startswith(b'HTTP/1.1 200'), 'slow clients have all places'
big = connect()
try:
    big.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-A: ' + b'a' * (1 << 20) + b'\r\n\r\n')
    answer = big.recv(100)
except OSError:
    answer = b''
assert b' 200 ' not in answer, answer
assert scrape().startswith(b'HTTP/1.1 200')
END
}

@test "an address that others reach needs a token; with one, only who has it reads" {
	local status=0
	"$cuflight" serve --listen=0.0.0.0:0 rec >said 2>&1 || status=$?
	[ "$status" = 2 ]
	grep -q -- --token-file said
	echo short >token
	status=0
	"$cuflight" serve --listen=127.0.0.1:0 --token-file=token rec >said 2>&1 || status=$?
	[ "$status" = 2 ]
	echo correct-horse-battery >token
	start_serve --token-file=token rec
	[ "$(status_of "$address/metrics")" = 401 ]
	[ "$(status_of "$address/nothing")" = 401 ]
	[ "$(status_of -H 'Authorization: Bearer correct-horse-batterx' "$address/metrics")" = 401 ]
	[ "$(status_of -H 'Authorization: Bearer correct-horse-battery' "$address/metrics")" = 200 ]
	[ "$(status_of "$address/healthz")" = 200 ]
}

@test "--metrics-file writes the same for node_exporter, readable for all, and takes it away at the end" {
	start_server one
	order one keep 9
	umask 077
	"$cuflight" serve --metrics-file="$PWD/cuflight.prom" --every=1 --processor=50 rec >serve.out 2>&1 3>&- &
	serve=$!
	started+=" $serve"
	until_true ${PATIENCE:-60} grep -q 'owner="other"} 9437184$' cuflight.prom
	[ "$(stat -c %a cuflight.prom)" = 644 ]
	[ "$(grep -c '# EOF' cuflight.prom)" = 0 ]
	check_exposition cuflight.prom
	kill "$serve"
	wait "$serve"
	[ -z "$(ls cuflight.prom* 2>/dev/null)" ]
	mkfifo pipe.prom # what is no file stays what it is
	"$cuflight" serve --metrics-file="$PWD/pipe.prom" --every=1 rec >serve.out 2>&1 3>&- &
	serve=$!
	started+=" $serve"
	until_true 60 grep -q 'cannot write' serve.out
	[ -p pipe.prom ]
	kill "$serve"
	wait "$serve"
	[ -p pipe.prom ]
}
