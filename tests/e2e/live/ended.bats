#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# After a kernel's kill nothing of ours runs where the server did: the next start of its pod, or the
# sidecar, tells why. Once for each run.
load live.bash
load ../../memory_cgroup.bash

# NAME [ARGUMENT...]: a run that is killed while it holds memory
killed_server() {
	start_server "$@"
	order "$1" weights 300
	order "$1" keep 5
	kill_server "$1"
}

teardown() {
	end_started
	remove_memory_cgroup
}

report_new() { "$cuflight" report --new --termination-log=log "$@" >new.txt 2>new.err; }

@test "report --new: the run that ended last, once, on stdout and in the termination log; never a failure" {
	report_new nowhere
	report_new rec
	[ ! -s new.txt ] && [ ! -e log ]
	grep -q "no run in 'rec' has ended" new.err
	: >log # as a runtime mounts it
	ln log the_same_file
	start_server runs
	report_new rec
	[ ! -s new.txt ]
	killed_server first
	killed_server second
	report_new rec
	grep -qF "(pid $(<second.pid))" new.txt
	grep -q "NO END RECORDED" new.txt
	cmp new.txt the_same_file
	[ "$(wc -c <log)" -le 4096 ]
	report_new rec
	[ ! -s new.txt ]
	# what ended before the last one is no news, and a run that went on until now is
	kill_server runs
	report_new rec
	grep -qF "(pid $(<runs.pid))" new.txt
	# a report that cannot be made is given out once, too
	killed_server third
	truncate -s 70000 rec/*."$(<third.pid)".cuf
	report_new rec
	report_new rec
	[ ! -s new.txt ]
}

@test "the kernel kills all that runs in a container: the next start has its call site" {
	memory_cgroup "cuflight_ended_$$" $((160 << 20)) || skip "$why_no_group"
	CUFLIGHT_OUTPUT=$PWD/rec/ CUFLIGHT_OPTIONS=size=4MiB LD_PRELOAD=$build/libcuflight.so in_memory_cgroup \
		python3 -c '
def remember_answer(): return bytearray(1 << 20)
kept = []
while True: kept.append(remember_answer())' || status=$?
	[ $status = 137 ]
	remove_memory_cgroup # as the container's
	report_new rec
	grep -q remember_answer log
}

@test "report --new without a place for its note tells so, and reports" {
	killed_server one
	mkdir rec/.cuflight-reported
	report_new rec
	grep -qF "(pid $(<one.pid))" new.txt
	grep -q "cannot note what was reported in 'rec/.cuflight-reported'" new.err
	status=0
	"$cuflight" report --new || status=$?
	[ $status = 2 ]
}

has_report_of() { grep -qF "(pid $(<"$1.pid"))" serve.out; }

@test "serve --report-ended: of the run before its start, and of each that ends, in every pod, once" {
	killed_server before
	start_server now
	order now weights 100
	start_serve --report-ended --termination-log=log rec
	until_true 60 has_report_of before
	order now keep 5
	kill_server now
	until_true 60 has_report_of now
	until_true 60 grep -qF "(pid $(<now.pid))" log
	start_server pod '' rec/shop/server-0/
	order pod weights 50
	kill_server pod
	until_true 60 has_report_of pod
	kill "$serve"
	wait "$serve" || :
	cp serve.out first.out
	# whoever comes next has nothing to tell
	start_serve --report-ended rec
	start_server last '' rec/shop/server-0/
	order last weights 50
	kill_server last
	until_true 60 has_report_of last
	for name in before now pod; do
		[ "$(grep -cF "(pid $(<"$name.pid"))" first.out)" = 1 ]
		if has_report_of "$name"; then return 1; fi
	done
}
