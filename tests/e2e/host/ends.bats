#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ended a process, where nobody recorded it: the kernel's kill of one request, of a copy after
# fork, in a group that the process entered itself; a kill that was not the kernel's; an exit that
# no recorder sees. `run` and the report of the same run agree.
load host.bash
load ../../memory_cgroup.bash

teardown() { remove_memory_cgroup; }

limited() { # MIB: a memory cgroup; $group
	memory_cgroup "cuflight-ends.$$.$BATS_TEST_NUMBER" $(($1 << 20)) || skip "$why_no_group"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "files here are memory of the cgroup"
}

python() { python3 -c 'import sys; print(sys.executable)'; }

# COMMAND...: with a plain preload; leaves screen, report.json, and its status in ended
plain() {
	ended=0
	rm -rf rec
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup timeout 60 "$@" >truth 2>err || ended=$?
	"$cuflight" report rec >screen
	"$cuflight" report --json rec >report.json
}

# COMMAND...: by `run`, in the group
launched() {
	ended=0
	rm -rf rec
	in_memory_cgroup timeout 60 "$cuflight" run -o rec/ -- "$@" >truth 2>err || ended=$?
	"$cuflight" report rec >screen
	"$cuflight" report --json rec >report.json
}

lacks() { # PATTERN FILE
	if grep -q "$1" "$2"; then cat "$2"; return 1; fi
}

killed_by_kernel() { # the process died, and everybody says so
	[ "$ended" = 137 ]
	grep -q '^KILLED BY THE KERNEL (out of memory)' screen || { cat screen; return 1; }
	report_has 'd.capture.end_state === "oom_killed"'
}

@test "a kill in one jump: the request that did not fit is named, whether the group can still be read or not" {
	cat >jump.py <<'END'
import time
held = [b'x' * (1 << 20) for _ in range(100)]
print("held", len(held) << 20, flush=True)
time.sleep(0.3)
more = b'x' * (150 << 20)
END
	limited 200
	for way in plain launched; do
		$way "$(python)" jump.py
		[ "$(<truth)" = "held $((100 << 20))" ]
		killed_by_kernel
		report_has 'd.cause.name_id === "host-request-does-not-fit" && d.cause.evidence.some((e) => e.stack.some((f) => (f.file || "").endsWith("/jump.py") && f.line === 5))'
		grep -q '150 MiB' screen
		lacks 'map the weights' screen
	done
	remove_memory_cgroup
	plain_again=$("$cuflight" report rec | head -n 1)
	[[ $plain_again == "KILLED BY THE KERNEL"* ]]
}

@test "a container that doubles, and a fork that writes to what it shares: the kernel's kill is named" {
	command -v c++ >/dev/null || skip "no C++ compiler here"
	cat >doubles.cc <<'END'
#include <cstdio>
#include <unistd.h>
#include <vector>
static std::vector<long> numbers;
void record(long i) { numbers.push_back(i); }
int main()
{
	for (long i = 0;; i++) {
		record(i);
		if (i % 1000000 == 0) { printf("%ld\n", (long)(numbers.capacity() * sizeof(long))); fflush(stdout); usleep(20000); }
	}
}
END
	c++ -g -O0 -o doubles doubles.cc
	limited 200
	plain ./doubles
	killed_by_kernel
	[ "$(tail -n 1 truth)" = $((128 << 20)) ]
	grep -q 'record (doubles.cc:5)' screen
	grep -q '256 MiB' screen
	cat >copies.py <<'END'
import os, time
data = bytearray(120 << 20)
for i in range(0, len(data), 4096): data[i] = 1
print("held", len(data), flush=True)
if not os.fork():
    time.sleep(0.2)
    for i in range(0, len(data), 4096): data[i] = 2
    os._exit(0)
os.wait()
END
	plain "$(python)" copies.py
	grep -q '^held ' truth
	grep -q '^KILLED BY THE KERNEL (out of memory)' screen || { cat screen; false; }
}

@test "a process that enters a group and is killed there: run and the report agree" {
	limited 100
	cat >enters.sh <<'END'
echo $$ >"$1/cgroup.procs"
shift
exec "$@"
END
	"$cuflight" run -o rec/ -- sh enters.sh "$group" "$(python)" -c '
kept = []
while True: kept.append(b"x" * (1 << 20))' 2>err || ended=$?
	[ "$ended" = 137 ]
	grep -q "killed by the kernel's OOM killer: the cgroup's oom_kill count rose by 1 (limit 100 MiB)" err
	"$cuflight" report --json rec >report.json
	report_has 'd.capture.end_state === "oom_killed" && /oom_kill of its cgroup rose by 1/.test(d.processes.at(-1).end_why)'
}

@test "the kill of another group's process is no evidence" {
	limited 100
	CUFLIGHT_DISABLE=1 in_memory_cgroup perl -e '$x = "x" x (300 << 20)' & # the kernel kills it
	other=$!
	"$cuflight" run -o rec/ -- sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; kill -9 $$' - $other 2>err || ended=$?
	wait $other || [ $? = 137 ]
	[ "$ended" = 137 ]
	grep -q 'killed by SIGKILL, but not by the OOM killer' err
	"$cuflight" report --json rec >report.json
	report_has 'd.capture.end_state === "killed" && /not by the OOM killer/.test(d.processes[0].end_why)'
}

@test "an exit that no recorder sees is not called a kill" {
	cat >leaves.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	memset(malloc(90 << 20), 1, 90 << 20);
	printf("left with %d\n", 0);
	fflush(stdout);
	__asm__ volatile("syscall" : : "a"((long)SYS_exit_group), "D"(0L) : "rcx", "r11", "memory");
	return 1;
}
END
	[ "$(uname -m)" = x86_64 ] || skip "its system call is of x86-64"
	cc -O1 -o leaves leaves.c
	limited 100
	plain ./leaves
	[ "$ended" = 0 ] && [ "$(<truth)" = "left with 0" ]
	grep -q '^NO END RECORDED: leaves' screen || { cat screen; false; }
	grep -q 'ended by a raw system call: no end' screen
	lacks KILLED screen
	report_has 'd.capture.end_state === "killed" && d.processes[0].end_basis === "inferred" && /did not rise/.test(d.processes[0].end_why)'
	[ "$("$cuflight" check rec >check; echo $?)" = 3 ]
	launched ./leaves
	grep -q '^FINISHED: leaves .*exit status 0' screen
}

@test "\"no leak found\" is never said above a row that grows" {
	cat >small.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void **kept;
void add_node(void) { void **node = memset(malloc(64), 0, 64); *node = kept; kept = node; }
int main(void)
{
	for (long i = 0; i < 200L << 14; i++) {
		add_node();
		if (i % 20000 == 0) usleep(10000);
	}
	printf("kept %ld\n", 200L << 20);
	return 0;
}
END
	cc -g -o small small.c
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so ./small >truth
	"$cuflight" report rec >screen
	grep -q ' growing$' screen || { cat screen; false; }
	lacks 'no leak found' screen
	grep -q '^Still growing at the end: add_node (small.c:6), ~' screen
}

@test "what is still growing is the line that holds most, though each of its call sites holds less than another's" {
	cat >lines.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void **kept, **others;
void add_node(void) { void **node = memset(malloc(512), 0, 512); *node = kept; kept = node; }
void add_other(void) { void **node = memset(malloc(768), 0, 768); *node = others; others = node; }
int main(void)
{
	for (long i = 0; i < 100000; i++) {
		add_node();
		add_node();
		add_node();
		add_other();
		if (i % 1000 == 0) usleep(10000);
	}
	printf("kept %d\n", 146 << 20);
	return 0;
}
END
	cc -g -o lines lines.c
	"$cuflight" run -q -o rec/ -- ./lines >truth
	"$cuflight" report rec >screen
	cat screen
	grep -q '^Still growing at the end: add_node (lines.c:6), ~' screen
	awk '/^Who held/ { getline; print; exit }' screen | grep -q 'add_node (lines.c:6)'
}
