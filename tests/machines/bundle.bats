#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What `make bundle ARCH=aarch64` made, under qemu: its recorder in a real Python, its command on that
# recording and on one of this machine.
bats_require_minimum_version 1.5.0
load there.bash
shipped=$build/bundle/aarch64

setup_file() {
	! command -v qemu-aarch64 >/dev/null || [ ! -d "$shipped/dist" ] || fetch_programs python3 >"$BATS_FILE_TMPDIR/fetch.log" 2>&1 ||
		touch "$BATS_FILE_TMPDIR/failed"
}

setup() {
	command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 here (scripts/setup machines)"
	[ -d "$shipped/dist" ] || skip "no bundle here (make bundle ARCH=aarch64)"
	[ ! -e "$BATS_FILE_TMPDIR/failed" ] || skip "no packages for aarch64: $(tail -n 1 "$BATS_FILE_TMPDIR/fetch.log")"
	cd "$BATS_TEST_TMPDIR" || return
	tar xf "$shipped"/dist/*-linux-aarch64.tar.gz --strip-components=1
}

teardown() { [ -z "${served:-}" ] || kill -KILL "$served"; }

@test "aarch64: the shipped command is static, and installs the recorder of the wheel and the .deb" {
	readelf -lW bin/cuflight >segments
	[ "$(grep -c 'INTERP\|DYNAMIC' segments)" = "$(grep -c DYNAMIC segments)" ] # static-pie has the second
	[[ $(qemu-aarch64 bin/cuflight --version) = "$("$build/cuflight" --version | cut -d, -f1)"* ]]
	qemu-aarch64 bin/cuflight install out
	readelf -hW out/lib/libcuflight.so | grep -q 'Machine: *AArch64'
	cmp out/lib/libcuflight.so lib/libcuflight.so
	cmp out/lib/aarch64-linux-gnu/libcuflight.so lib/libcuflight.so
	python3 -m zipfile -e "$shipped"/dist/cuflight-*.whl wheel
	cmp wheel/cuflight/libcuflight.so lib/libcuflight.so
	dpkg-deb -x "$shipped"/dist/*.deb deb
	cmp deb/usr/lib/aarch64-linux-gnu/libcuflight.so lib/libcuflight.so
	cmp deb/usr/bin/cuflight bin/cuflight
	[ "$(dpkg-deb -f "$shipped"/dist/*.deb Architecture)" = arm64 ]
}

@test "aarch64: the shipped recorder sees Python's lines, and both commands print the same" {
	record_keeps "$PWD/lib/libcuflight.so"
	for form in --json --full ''; do
		# shellcheck disable=SC2086
		qemu-aarch64 bin/cuflight report $form keeps.cuf >there.out
		# shellcheck disable=SC2086
		"$build/cuflight" report $form keeps.cuf >here.out
		diff here.out there.out
		[ "$form" != --json ] || cp there.out keeps.json
	done
	judge_keeps
}

@test "aarch64: the shipped command serves by HTTP" {
	mkdir rec
	qemu-aarch64 bin/cuflight serve --listen=127.0.0.1:0 rec >serve.out 2>&1 3>&- &
	served=$!
	until grep -q 'http://' serve.out; do kill -0 $served || return; sleep 0.1; done
	curl -sS --noproxy '*' --max-time 60 "$(grep -o 'http://[^/]*' serve.out)/metrics" | grep -q '^cuflight_build_info'
}

@test "aarch64: the shipped command reads a recording of this machine as the command here does" {
	CUFLIGHT_OPTIONS=host=full:size=16MiB CUFLIGHT_OUTPUT=here.cuf LD_PRELOAD=$build/libcuflight.so "$build/victims/host_leak" >truth
	"$build/cuflight" report --json here.cuf >here.out
	qemu-aarch64 bin/cuflight report --json here.cuf >there.out
	diff here.out there.out
	grep -q remember_session there.out
}
