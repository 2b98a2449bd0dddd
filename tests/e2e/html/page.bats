#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight report --html` in Debian's Chromium: no request, no error in the console, nothing serious
# found by axe, and figures that equal the JSON report's.
load ../cli.bash

# NAME COMMAND...: records it on the simulated device, then writes NAME.html and NAME.json
look_at() {
	local name=$1
	shift
	browser_is_here
	"$root/scripts/simcuda" "$cuflight" run -q $options -o "$name/" -- "$@" >/dev/null 2>&1 || true
	[ -n "$(recordings "$name")" ]
	"$cuflight" report --html -o "$name.html" "$name"
	"$cuflight" report --json -o "$name.json" "$name"
	node "$BATS_TEST_DIRNAME/look.cjs" "$name.html" "$name.json" >out || { cat out; return 1; }
	echo "# $name: $(<out)" >&3
}

browser_is_here() {
	command -v chromium >/dev/null || skip "no chromium here"
	[ -d "$build/node_modules/playwright-core" ] || skip "no playwright-core here (scripts/setup all)"
	[ -s "$build/view/html/page.js" ] || skip "the command was built without the page"
}

setup() {
	home=$BATS_TEST_TMPDIR options=--size=8MiB
	cd "$home" || return 1
	unset LD_PRELOAD "${!CUFLIGHT_@}"
	export BUILD=$build
}

teardown() { rm -rf "${home:?}"/*/; }

victim() { look_at "$1" "$build/victims/$1"; }

many_blocks() {
	cc -O1 -o many_blocks "$BATS_TEST_DIRNAME/many_blocks.c" -ldl
	look_at many ./many_blocks "$@"
}

@test "a program that allocates nothing" { look_at tiny true; }

@test "memory that ran out, with a leak" { victim inference_server; }

@test "memory that ran out between holes" { victim page_checkerboard; }

@test "the segments of PyTorch's allocator" { victim torch_allocator; }

@test "host memory without a GPU" { victim host_leak; }

@test "64 processes" {
	options=--size=4MiB
	SIMCUDA_TOTAL=40GiB many_blocks 40 64
}

@test "500,000 allocations" {
	options=--size=256MiB
	many_blocks 500000
}

@test "names that are markup stay text" {
	look_at hostile python3 "$BATS_TEST_DIRNAME/hostile.py" '</script><script>window.attacked=1</script>'
}

@test "without JavaScript the page is the text report" {
	browser_is_here
	"$root/scripts/simcuda" "$cuflight" run -q -o run/ -- "$build/victims/inference_server" >/dev/null 2>&1 || true
	"$cuflight" report --html -o page.html run
	"$cuflight" report run >screen
	node "$BATS_TEST_DIRNAME/plain.cjs" page.html screen
}

@test "every control does what it names" {
	browser_is_here
	local name
	for name in torch_allocator inference_server; do
		"$root/scripts/simcuda" "$cuflight" run -q -o $name/ -- "$build/victims/$name" >/dev/null 2>&1 || true
		"$cuflight" report --html -o $name.html $name
	done
	node "$BATS_TEST_DIRNAME/controls.cjs" torch_allocator.html inference_server.html
}

@test "one name and one colour for one thing, own code first, a link opens the same view, phones" {
	browser_is_here
	"$root/scripts/simcuda" "$cuflight" run -q -o gpu/ -- "$build/victims/torch_allocator" >/dev/null 2>&1 || true
	"$cuflight" run -q -o python/ -- python3 "$BATS_TEST_DIRNAME/works.py" >/dev/null
	zstd -dqf "$root/tests/golden/screens/host_killed_growing.cuf.zst" -o limited.cuf
	"$cuflight" report --html -o gpu.html gpu
	"$cuflight" report --html -o python.html python
	"$cuflight" report --html -o limited.html limited.cuf
	node "$BATS_TEST_DIRNAME/views.cjs" gpu.html python.html limited.html
}

@test "the page's sources put no text in as markup" {
	cd "$root/analysis/view/html/page"
	! grep -nE '(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|DOMParser' -r --include='*.js' .
}
