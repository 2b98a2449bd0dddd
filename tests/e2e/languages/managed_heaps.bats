#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs of runtimes with a heap of their own. The heap is an owner, of the size that the runtime
# itself prints; it is no leak, and the advice is the runtime's. What is not in the heap is still
# found.

load ../host/host.bash
load ../../memory_cgroup.bash

teardown() { remove_memory_cgroup; }

needs() { command -v "$1" >/dev/null || skip "no $1 here"; }

# What was compiled for an earlier test is taken: Go compiles its runtime, too, which takes ten seconds.
java_program() {
	needs java
	needs javac
	[ -e "$BATS_FILE_TMPDIR/Grows.class" ] || javac -d "$BATS_FILE_TMPDIR" "$root/tests/victims/languages/Grows.java"
	cp "$BATS_FILE_TMPDIR"/*.class .
}

go_program() {
	needs go
	needs cc
	cp "$root/tests/victims/languages/grows.go" .
	export HOME=$BATS_FILE_TMPDIR # of the compiler's cache
	GOFLAGS=-mod=mod GO111MODULE=off CGO_ENABLED=1 go build -o grows grows.go || skip "go builds nothing with cgo here"
}

reported() {
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
	"$cuflight" report --full rec >full
	cat screen
	tail -n 2 truth
	awk 'length > 80 { exit 1 } END { exit NR > 21 }' screen
	# never of another allocator, another runtime, or a model
	! grep -qE 'MALLOC_ARENA_MAX|malloc_trim|safetensors|end of an answer|weights' full
}

# MIB COMMAND...: with a plain preload in a memory cgroup, until the kernel kills it
killed() {
	memory_cgroup "cuflight-heaps.$$.$BATS_TEST_NUMBER" $(($1 << 20)) || skip "$why_no_group"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "files here are memory of the cgroup"
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup timeout 100 "${@:2}" >truth || true
	reported
	report_has 'd.capture.end_state === "oom_killed"'
}

finished() {
	"$cuflight" run -q -o rec/ -- "$@" >truth
	reported
	report_has 'd.capture.end_state === "exit"'
}

told() { grep "^$1 " truth | tail -n 1 | cut -d ' ' -f "${2:-2}"; }

# NAME LEAST MOST: the first row of the table, and the facts, to a tenth of what the runtime printed.
# It printed that after the last sample, which may lack what came until its cgroup's limit. Pages of
# files that others read before are resident, and count for those.
heap_is() {
	awk '/^Who held/ { getline; print; exit }' screen >first
	grep -q "^> $1" first
	report_has "((h) => h.heap.name === '$1' && (h.heap.bytes || h.nobodys_bytes) + Math.max(0, h.cgroup.max_bytes - h.cgroup.current_bytes) > 0.9 * $2 && (h.heap.bytes || h.nobodys_bytes) < 1.1 * $3 + (8 << 20))(d.processes.map((p) => p.host).find((h) => h.heap))"
	report_has 'd.cause.name_id === "managed-heap" && d.cause.confidence >= 0.5'
}

no_leak() {
	grep -q '^FINISHED' screen
	grep -q 'no leak found' screen
	report_has 'd.cause === null && d.leaks.every((s) => s.class !== "leak" && s.class !== "growing")'
	"$cuflight" check rec
}

@test "Node.js, killed: V8's heap and its limit" {
	needs node
	export CUFLIGHT_OPTIONS=start=1
	killed 192 node "$root/tests/victims/languages/grows.js" 10000 10000
	heap_is 'V8 heap' "$(told heap)" "$(told heap)"
	grep -q -- '--max-old-space-size=[1-9]' screen
	grep -q -- '--heapsnapshot-near-heap-limit' screen
	grep -q '^KILLED.*grows.js' screen
}

@test "Node.js, bounded and full: no leak" {
	needs node
	finished node --max-old-space-size=96 "$root/tests/victims/languages/grows.js" 24 300
	no_leak
}

@test "Java, Serial collector, killed: its heap and its limit" {
	java_program
	killed 192 java -XX:+UseSerialGC -Xmx1g -cp . Grows heap 10000 10000
	heap_is 'Java heap' "$(told heap)" "$(told heap 3)"
	report_has 'd.processes[0].host.heap.limit_bytes === 2 ** 30'
	tr '\n' ' ' <screen | grep -qE -- 'may +grow +to +1.00 +GiB.*-Xmx[1-9][0-9]*m;.*jcmd'
	grep -q '^KILLED.*: Grows' screen
}

@test "Java, G1, killed: its heap and its limit" {
	java_program
	killed 192 java -XX:+UseG1GC -Xmx1g -cp . Grows heap 10000 10000
	heap_is 'Java heap' "$(told heap)" "$(told heap 3)"
	tr '\n' ' ' <screen | grep -qE -- '-Xmx[1-9][0-9]*m;.*jcmd'
}

@test "Java, bounded and full, both collectors: no leak" {
	local collector
	java_program
	for collector in Serial G1; do
		finished java -XX:+Use${collector}GC -Xmx64m -cp . Grows heap 10000 300
		no_leak
		rm -r rec
	done
}

@test "Java, direct buffers next to a small heap, killed: the buffers, not the heap" {
	java_program
	killed 192 java -XX:+UseSerialGC -Xmx48m -XX:MaxDirectMemorySize=1g -Xint -cp . Grows direct 10000 10000
	grep -q '^> Java direct buffers' screen
	report_has "Math.abs(d.leaks.filter((s) => s.owner === 'Java direct buffers').reduce((n, s) => n + s.bytes, 0) - $(told direct)) < (8 << 20)"
	report_has 'd.cause.name_id === "host-leak"'
}

@test "Go with cgo, killed: Go's heap and its limit" {
	go_program
	killed 160 ./grows heap 10000 10000
	heap_is 'Go heap' "$(told heap)" "$(told heap)"
	tr '\n' ' ' <screen | grep -qE 'GOMEMLIMIT=[1-9][0-9]*MiB;.*pprof'
}

@test "Go with cgo, bounded: no leak" {
	go_program
	finished ./grows heap 24 300
	no_leak
}

@test "Go, ended by itself: only the command sees how, and the screen tells that of Go alone" {
	go_program
	CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so ./grows heap 24 30 >truth
	reported
	grep -q '^NO END RECORDED: grows' screen
	tr '\n' ' ' <screen | grep -qF "Go makes that system call itself, so only 'cuflight run' sees the status."
	rm -r rec
	finished ./grows heap 24 30
	grep -q '^FINISHED: grows .*exit status 0' screen
}

@test "Go, memory of C that is kept, killed: C.malloc, or the line of C" {
	go_program
	killed 96 ./grows malloc 10000 10000
	grep -q '^> C.malloc called from Go' screen
	report_has 'd.cause.name_id === "host-leak"'
	report_has "Math.abs(d.leaks.filter((s) => s.owner === 'C.malloc called from Go').reduce((n, s) => n + s.bytes, 0) - $(told held)) < (4 << 20)"
	rm -r rec
	remove_memory_cgroup
	killed 96 ./grows c 10000 10000
	grep -q '^> keep_in_c (grows.go:11)' screen
}
