#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs in Rust and C++ that keep memory through the library of their language: the report names
# the program's own line, killed by the kernel and run to the end, with and without optimisation.

load ../host/host.bash
load ../../memory_cgroup.bash

teardown() { remove_memory_cgroup; }

needs() { command -v "$1" >/dev/null || skip "no $1 here"; }

# COMMAND...: with a plain preload in a memory cgroup of 96 MiB, until the kernel kills it
killed() {
	memory_cgroup "cuflight-lines.$$.$BATS_TEST_NUMBER" $((96 << 20)) || skip "$why_no_group"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "files here are memory of the cgroup"
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup timeout 60 "$@" >truth || true
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
	report_has 'd.capture.end_state === "oom_killed"'
}

finished() {
	"$cuflight" run -q -o rec/ -- "$@" >truth
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
	report_has 'd.capture.end_state === "exit"'
}

# FUNCTION: what it said last that it holds is in one row, the first, with its line
names_own_line() {
	local held place
	read -r held place < <(tail -n 1 truth | sed -nE 's/^holds ([0-9]+) at (.*)$/\1 \2/p')
	cat screen; tail -n 1 truth
	report_has "Math.abs(d.leaks.filter((s) => s.stack.some((f) => (f.file || '').endsWith('/${place%:*}') && f.line === ${place#*:})).reduce((n, s) => n + s.bytes, 0) - $held) < (2 << 20)"
	awk '/^Who held/ { getline; print; exit }' screen >first
	grep -qF "$1 (${place})" first
	# the code of the language's own library is on no line, and no name is cut inside brackets
	! grep -qE 'alloc::|core::|std::|__rust|hashbrown|<[^>.]*\.\.' screen
	awk 'length > 80 { exit 1 } END { exit NR > 21 }' screen
	# advice is of what the program is seen to be
	"$cuflight" report --full rec >full
	! grep -nE 'LangChain|LangGraph|AutoGen|CrewAI|Transformers|PyTorch|Python|safetensors|weights' full
}

@test "Rust, optimised and killed: the program's own line, not that of its alloc crate" {
	needs rustc
	rustc -g -O -o grows "$root/tests/victims/languages/grows.rs"
	killed ./grows
	names_own_line grows::Session::remember
	report_has 'd.cause.name_id === "host-leak"'
}

@test "Rust, not optimised, run to the end: the same line" {
	needs rustc
	rustc -g -o grows "$root/tests/victims/languages/grows.rs"
	finished ./grows 64
	names_own_line grows::Session::remember
}

@test "C++, optimised and killed: the program's own line, behind its vectors and strings" {
	needs c++
	c++ -g -O2 -o grows "$root/tests/victims/languages/grows.cpp"
	killed ./grows
	names_own_line 'EventLog<Event>::record'
	report_has 'd.cause.name_id === "host-leak"'
}

@test "C++, not optimised, run to the end: the same line" {
	needs c++
	c++ -g -O0 -o grows "$root/tests/victims/languages/grows.cpp"
	finished ./grows 64
	names_own_line 'EventLog<Event>::record'
}

@test "a long name that is of another file than most is abridged, and keeps its line" {
	needs c++
	cat >store.h <<'EOF'
template <class T> struct document_store {
	static void keep_whole_document() { *held++ = memset(malloc(48 << 20), 1, 48 << 20); }
};
EOF
	cat >long.cpp <<'EOF'
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>
static void *blocks[8], **held = blocks;
#include "store.h"
__attribute__((noinline)) static void first() { *held++ = memset(malloc(20 << 20), 1, 20 << 20); }
__attribute__((noinline)) static void second() { *held++ = memset(malloc(20 << 20), 1, 20 << 20); }
int main()
{
	first();
	second();
	document_store<std::map<int, std::vector<double>>>::keep_whole_document();
	return !held[-1];
}
EOF
	c++ -g -O0 long.cpp -o long
	finished ./long
	cat screen
	grep -qE '^  \.\.::keep_whole_document \(store\.h:2\) +48\.0 MiB' screen
	grep -qE '^  first \((long\.cpp)?:7\) +20\.0 MiB' screen
}
