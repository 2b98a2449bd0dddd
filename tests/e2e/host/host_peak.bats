#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The highest moment of host memory, by call site, of a program that has freed everything when it
# ends; next to heaptrack where that is installed.

load host.bash

# OPTIONS...: records host_peak; the report of its peak agrees with its truth
peak_is_right() {
	rm -rf rec
	"$cuflight" run -q -o rec/ "$@" -- "$build/victims/host_peak" >truth
	"$cuflight" report --json --at=peak rec >report.json
	"$root/tests/e2e/check_truth.py" truth report.json
}

@test "the peak by call site, host=full: exact" {
	peak_is_right --host=full
	report_has 'd.host.at_peak && d.host.malloc_live_bytes === d.host.live_peak_bytes && d.host.malloc_basis === "observed"'
	report_has 'd.host.rss_bytes >= 90e6 && d.host.rss_bytes < 110e6'
}

@test "the peak by call site, sampled: small blocks within the interval, large ones exact" {
	for _ in 1 2 3; do
		peak_is_right
		report_has 'd.leaks.some((l) => l.bytes === 30000000 && l.count === 300 && l.basis === "observed")'
	done
}

@test "a report of the end states the peak, and has what only exit handlers free" {
	peak_is_right --host=full
	"$cuflight" report --json rec >report.json
	report_has '!d.host.at_peak && d.host.live_peak_bytes >= 90e6 && d.host.live_peak_bytes < 91e6'
	report_has 'd.host.malloc_live_bytes > 30e6 && d.host.malloc_live_bytes < 31e6'
	report_has 'd.leaks[0].bytes === 30000000 && d.leaks[0].stack[0].function === "build_table"'
	# pages of the recording itself are resident, too: they are a part of their own
	report_has 'd.host.resident.find((one) => one.part === "recorder").bytes > 1 << 20'
}

@test "the screen of a finished program is that of its peak; --at=end shows the end" {
	peak_is_right --host=full
	"$cuflight" report rec >screen
	tr '\n' ' ' <screen | grep -qE 'Host memory at its peak \([^)]+\): [0-9.]+ MiB resident, 8[56]\.[0-9] MiB allocated; [0-9.]+ MiB at the end'
	grep -qE '^Who held host memory at the peak ' screen
	grep -qE '^  read_row \(host_peak\.c:[0-9]+\) +57\.2 MiB ' screen
	grep -q -- '--at=end' screen
	"$cuflight" report --at=end rec >screen
	grep -qE '^Who held host memory[; ]' screen
	[ "$(grep -c 'read_row' screen)" = 0 ]
	grep -qE '^  build_table \(host_peak\.c:[0-9]+\) +28\.6 MiB ' screen
	grep -q -- '--at=peak' screen
}

@test "the screen of the peak has resident and allocated memory of one moment on one line, and who held it" {
	peak_is_right --host=full
	"$cuflight" report --at=peak rec >screen
	grep -qE '^Host memory at its peak \([^)]+\): (8[6-9]|9[0-9])\.[0-9] MiB resident, 8[56]\.[0-9] MiB allocated;' screen
	grep -qE '^Who held host memory at the peak ' screen
	grep -qE '^  read_row \(host_peak\.c:[0-9]+\) +57\.2 MiB ' screen
	grep -qE '^  build_table \(host_peak\.c:[0-9]+\) +28\.6 MiB ' screen
}

# 300,000 more blocks overwrite the events of the peak. Rows were all live before the last note; of
# the tables at least 95 % of all was.
@test "the peak by call site is known after its events were overwritten" {
	local mode
	for mode in sampled full; do
		rm -rf rec
		"$cuflight" run -q -o rec/ --host=$mode --size=4MiB -- "$build/victims/host_peak" 300000 >truth
		"$cuflight" report --json --at=peak rec >report.json
		report_has 'd.capture.events_overwritten > 0 && d.host.at_peak && d.host.is_near_peak'
		report_has 'd.host.malloc_live_bytes >= 0.94 * d.host.live_peak_bytes && d.host.malloc_live_bytes <= d.host.live_peak_bytes'
		report_has 'd.host.rss_bytes > 80e6 && d.host.rss_bytes < 110e6' # what is allocated is an estimate when sampled
		report_has 'd.leaks.filter((l) => l.stack[0].function === "build_table").some((l) => l.bytes >= 20e6 && l.bytes <= 30e6 && l.bytes === l.count * 100000)'
		report_has 'd.leaks.filter((l) => l.stack[0].function === "read_row").some((l) => l.bytes >= 30e6 && l.bytes <= 100e6)'
		"$cuflight" report --at=peak rec >screen
		tr '\n' ' ' <screen | grep -qE 'Host memory near its peak \([0-9.]+ m?s\): [0-9.]+ MiB resident, ~?[0-9.]+ MiB of ~?[0-9.]+ MiB allocated'
		grep -q '^Who held host memory near the peak ' screen
		"$cuflight" report --json rec >report.json
		report_has '!d.host.at_peak && !d.host.is_near_peak && d.host.live_peak_bytes > 70e6'
	done
	report_has 'd.host.live_peak_bytes >= 88.9e6 && d.host.live_peak_bytes < 91e6'
}

@test "heaptrack names the same call sites and bytes at the peak" {
	command -v heaptrack >/dev/null || skip "heaptrack is not installed"
	peak_is_right --host=full
	heaptrack -o ht "$build/victims/host_peak" >/dev/null
	heaptrack_print ht.* | sed -n '/^PEAK MEMORY/,/^$/p;/peak memory consumed/,+1p' >peaks
	grep -A1 '^60.00M peak memory consumed over 30000 calls' peaks | grep -q read_row
	grep -A1 '^30.00M peak memory consumed over 300 calls' peaks | grep -q build_table
}
