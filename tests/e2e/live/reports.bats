#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Reports and profiles that `cuflight serve` makes on request, against what the command itself prints.
load live.bash

need() { command -v "$1" >/dev/null || skip "no $1 here"; }

setup_servers() {
	start_server one
	start_server two
	order one keep 11
	order two keep 23
	order two fail
	start_serve rec
}

@test "a report is the command's own, of the process that was asked for" {
	setup_servers
	get -f -G --data-urlencode 'process=python3' "$address/report.json" >served.json
	get -f -G --data-urlencode 'process=python3 #2' "$address/report.json" >second.json
	python3 - "$(<one.pid)" "$(<two.pid)" <<'END'
import json, sys
for path, pid, mib in (('served.json', sys.argv[1], 11), ('second.json', sys.argv[2], 23)):
    report = json.load(open(path))
    assert [str(process['pid']) for process in report['processes']] == [pid], path
    assert sum(row['bytes'] for row in report['devices'][0]['owners'] if row['kind'] == 'device') == mib << 20, path
END
	get -f -o live.json "$address/live.json"
	grep -q '"schema":"cuflight.live/1"' live.json
	get -f -o screen "$address/report"
	grep '^RUNNING: server.py' screen || { cat screen; return 1; }
	[ "$(get -o said -w '%{http_code}' "$address/report?process=nobody")" = 404 ]
	[ "$(get -o said -w '%{http_code}' "$address/debug/pprof/gpu?device=-1")" = 400 ]
	[ "$(get -o said -w '%{http_code}' "$address/debug/pprof/gpu?device=0%20--help")" = 400 ]
}

# NAME PROCESS: each call site of both profiles, read by their address, has the bytes that report has
profiles_equal_report() {
	"$cuflight" report --json rec/cuflight.python*."$(<"$1.pid")".cuf >report.json
	python3 "$root/tests/e2e/live/profiles.py" report.json host "$address/debug/pprof/heap?process=$2"
	python3 "$root/tests/e2e/live/profiles.py" report.json device "$address/debug/pprof/gpu?process=$2"
}

@test "go tool pprof reads both profiles by their address: each call site has the bytes of the report and of the server" {
	need go
	recorder=sample=16KiB start_server one
	recorder=sample=16KiB start_server two
	order one keep 11
	order one weights 30
	order two keep 23
	order two kv 5
	start_serve rec
	profiles_equal_report one python3
	profiles_equal_report two 'python3%20%232'
	go tool pprof -top -unit=B "$address/debug/pprof/gpu?process=python3" >top
	grep -q "of $((41 << 20))B total" top
}

@test "many that ask at once get the same report, and metrics are answered meanwhile" {
	local i
	setup_servers
	waiting=
	for i in $(seq 12); do get -f "$address/report.json?process=python3" >many.$i & waiting+=" $!"; done
	get -f "$address/metrics" >metrics.txt
	# shellcheck disable=SC2086 # a list
	wait $waiting
	for i in $(seq 12); do cmp many.1 many.$i; done
	grep -q '"schema": *"cuflight.report/1"' many.1
}

@test "the page of a process is whole, and asks nobody else" {
	setup_servers
	[ "$(get -o page -w '%{http_code}' "$address/report.html?process=python3")" != 500 ] || skip "built without the page"
	grep -q '</html>' page
	get -D headers -o page "$address/report.html?process=python3"
	grep -qi "content-security-policy: default-src 'none'" headers
}

has_seen() { [ "$(grep -c seen shown)" = "$1" ]; }

needs_chromium() {
	[ -x "${CHROMIUM:-/usr/bin/chromium}" ] && [ -d "$build/node_modules/playwright-core" ] || skip "no Chromium with playwright-core"
}

@test "the live page shows what comes, in place" {
	needs_chromium
	start_server one
	order one keep 11
	start_serve rec
	mkfifo words
	BUILD=$build node "$root/tests/e2e/live/live_page.cjs" "$address" 'python3' '11.0 MiB' <words >shown 2>faults 3>&- &
	local page=$!
	started+=" $page"
	exec {words}>words
	until_true 90 grep -q ready shown
	order one keep 4321
	echo '4.23 GiB' >&"$words"
	until_true 90 has_seen 1
	kill_server one
	echo ended >&"$words"
	until_true 90 has_seen 2
	exec {words}>&-
	wait "$page" || { cat faults; return 1; }
}

@test "the live page holds no more after 300 refreshes than after 30" { # 3,600 by hand: two hours of a browser
	needs_chromium
	start_server one
	order one keep 11
	start_serve rec
	BUILD=$build node "$root/tests/e2e/live/live_hour.cjs" "$address" 300
}
