#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# aarch64 under qemu: the walker against libunwind in real programs, and a recording that is read
# here.
bats_require_minimum_version 1.5.0
load there.bash
made=$BATS_FILE_TMPDIR/made

setup_file() {
	command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null && command -v apt-get >/dev/null || return 0
	fetch_programs libunwind8 libcmocka-dev bash python3 sqlite3 perl >"$BATS_FILE_TMPDIR/fetch.log" 2>&1 && make_library >"$BATS_FILE_TMPDIR/make.log" 2>&1 && : >"$BATS_FILE_TMPDIR/ready"
}

make_library() {
	mkdir -p "$BATS_FILE_TMPDIR/link" || return
	cp -d "$there"/usr/lib/aarch64-linux-gnu/libcmocka* "$BATS_FILE_TMPDIR/link" || return
	make -C "$root" O="$made" CC=aarch64-linux-gnu-gcc \
		CFLAGS="-idirafter $there/usr/include/ -L$BATS_FILE_TMPDIR/link" "$made/libcuflight.so" "$made/bench/walker_oracle.so" \
		"$made"/unit/interpose/stack/{walker,walker_registers,stack_cache,stacks} "$made/victims/host_leak"
}

setup() {
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc here (scripts/setup machines)"
	command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 here (scripts/setup machines)"
	[ -s "$BATS_FILE_TMPDIR/make.log" ] || skip "no packages for aarch64: $(tail -n 1 "$BATS_FILE_TMPDIR/fetch.log")"
	[ -e "$BATS_FILE_TMPDIR/ready" ] || { tail -n 20 "$BATS_FILE_TMPDIR/make.log" >&2; return 1; }
	cd "$BATS_TEST_TMPDIR" || return
}

# NAME PROGRAM...: at every allocation the walker's stack is libunwind's, frame by frame
agrees() {
	local line
	there -E LD_PRELOAD="$made/bench/walker_oracle.so" "${@:2}" >out 2>err
	line=$(grep "^walker_oracle: $1\[" err | tail -n 1)
	echo "$line" | tee -a "${ORACLE_LOG:-/dev/null}" >&2
	[[ "$line" =~ stacks\ ([0-9]+),.*equal\ ([0-9]+)\ .*stopped\ early\ 0,\ longer\ 0,\ differ\ 0$ ]]
	[ "${BASH_REMATCH[1]}" -gt 500 ]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
}

@test "aarch64: unit tests of the walker" {
	for test in walker walker_registers stack_cache stacks; do there "$made/unit/interpose/stack/$test"; done
}

@test "aarch64, sqlite3: every stack is the same as libunwind's" {
	agrees sqlite3 "$there/usr/bin/sqlite3" :memory: 'create table t(a, b);
		with recursive c(i) as (select 1 union all select i + 1 from c where i < 2000) insert into t select i, hex(randomblob(20)) from c;
		create index x on t(b); select count(*) from t where b like "%AB%";'
}

@test "aarch64, python3: every stack is the same as libunwind's" {
	agrees 'python3[.0-9]*' -E PYTHONMALLOC=malloc -E PYTHONHOME="$there/usr" "$there/usr/bin/python3" -c '
import json, threading
def work():
    text = json.dumps({str(i): [i] * 10 for i in range(50)})
    def down(n): return [n] if not n else down(n - 1) + [n]
    down(100)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]'
}

@test "aarch64, perl and bash: every stack is the same as libunwind's" {
	agrees perl "$there/usr/bin/perl" -e 'my %h; $h{$_} = [1 .. 10] for 1 .. 500; my $s = join ",", keys %h; print length $s'
	agrees bash "$there/bin/bash" -c 'for i in {1..200}; do a+=("$i"); done; echo "${a[*]}"'
}

@test "aarch64, python3: objects have their Python function and line, and no walk is refused" {
	record_keeps "$made/libcuflight.so"
	"$build/cuflight" report --json keeps.cuf >keeps.json
	judge_keeps
}

@test "aarch64: a leak's call site is the one of this machine" {
	CUFLIGHT_OPTIONS=host=full:size=16MiB CUFLIGHT_OUTPUT=here.cuf LD_PRELOAD=$build/libcuflight.so "$build/victims/host_leak" >out.here
	there -E CUFLIGHT_OPTIONS=host=full:size=16MiB -E CUFLIGHT_OUTPUT=there.cuf -E LD_PRELOAD="$made/libcuflight.so" "$made/victims/host_leak" >out.there
	for run in here there; do
		"$build/cuflight" report --json $run.cuf | python3 -c '
import json, sys
report = json.load(sys.stdin)
largest = max(report["leaks"] + report["growth"], key=lambda site: site["bytes"])
print(largest["bytes"], *(f["function"] for f in largest["stack"] if f["module"].endswith("host_leak")))' >$run.leaks
	done
	grep -q '^16777216 remember_session serve_request main ' here.leaks
	cmp here.leaks there.leaks
}
