#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# aarch64 under qemu: the walker against libunwind in real programs, and a recording that is read
# here. Programs and libraries are the distribution's, fetched with separate package lists and
# unpacked for this run; nothing of another machine is installed.
bats_require_minimum_version 1.5.0

setup_file() {
	root=$(realpath "$BATS_TEST_DIRNAME/../..")
	build=$(realpath "${BUILD:-$root/build}")
	there=$BATS_FILE_TMPDIR/there made=$BATS_FILE_TMPDIR/made
	export root build there made
	command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null && command -v apt-get >/dev/null || return 0
	fetch_programs >"$BATS_FILE_TMPDIR/fetch.log" 2>&1 && make_library >"$BATS_FILE_TMPDIR/make.log" 2>&1 && : >"$BATS_FILE_TMPDIR/ready"
}

# an apt of its own, for the other architecture and without anything installed
fetch_programs() {
	local apt=$BATS_FILE_TMPDIR/apt package
	local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User="$(id -un)"
		-o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$there" || return
	: >"$apt/status"
	apt-get "${options[@]}" update && apt-get "${options[@]}" --no-install-recommends --download-only -y \
		install libunwind8 libcmocka-dev bash python3 sqlite3 perl || return
	for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$there" || return; done
}

make_library() {
	mkdir -p "$BATS_FILE_TMPDIR/link" || return
	cp -d "$there"/usr/lib/aarch64-linux-gnu/libcmocka* "$BATS_FILE_TMPDIR/link" || return
	make -C "$root" O="$made" CC=aarch64-linux-gnu-gcc \
		CFLAGS="-idirafter $there/usr/include/ -L$BATS_FILE_TMPDIR/link" "$made/libcuflight.so" "$made/bench/walker_oracle.so" \
		"$made"/unit/interpose/stack/{walker,walker_registers,stacks} "$made/victims/host_leak"
}

setup() {
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc here (scripts/setup machines)"
	command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 here (scripts/setup machines)"
	[ -s "$BATS_FILE_TMPDIR/make.log" ] || skip "no packages for aarch64: $(tail -n 1 "$BATS_FILE_TMPDIR/fetch.log")"
	[ -e "$BATS_FILE_TMPDIR/ready" ] || { tail -n 20 "$BATS_FILE_TMPDIR/make.log" >&2; return 1; }
	cd "$BATS_TEST_TMPDIR" || return
}

# [-E NAME=VALUE...] PROGRAM [ARGUMENT...]
there() { qemu-aarch64 -L "$there" "$@"; }

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
	for test in walker walker_registers stacks; do there "$made/unit/interpose/stack/$test"; done
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
	cat >keeps.py <<'PYTHON'
import sys


def keep(count):
    return [str(i) * 5 for i in range(count)] # line 5


kept = keep(300000)
print(sum(map(sys.getsizeof, kept)))
PYTHON
	there -E PYTHONHOME="$there/usr" -E CUFLIGHT_OPTIONS=start=1:python_objects=start:sample=64KiB \
		-E CUFLIGHT_OUTPUT=keeps.cuf -E LD_PRELOAD="$made/libcuflight.so" "$there/usr/bin/python3" keeps.py >truth
	"$build/cuflight" report --json keeps.cuf >keeps.json
	python3 -c '
import json, sys
report, truth = json.load(open("keeps.json")), int(open("truth").read())
assert not [b for b in report["coverage"]["blind"] if "walks of Python" in str(b)], report["coverage"]["blind"]
found = 0
for site in report["leaks"]:
    frames = [f for f in site["stack"] if f["language"] == "python"]
    if frames and frames[0]["file"].endswith("keeps.py") and frames[0]["line"] == 5:
        assert frames[0]["function"].startswith("keep"), frames
        found += site["bytes"]
# five standard deviations of the sample, and the list itself
assert abs(found - truth) < 5 * (truth * 65536) ** 0.5 + (4 << 20), (found, truth)'
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
