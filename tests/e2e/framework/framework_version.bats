#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# PyTorch's version is read from a file, never inside a report of its allocator: those run under the
# allocator's lock.

@test "PyTorch's version is read when a library is opened, not when a block is reported" {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cd "$BATS_TEST_TMPDIR"
	mkdir -p torch/lib
	cp "$build/victims/torch/libc10.so" torch/lib/
	cc -I"$root" -o program "$root/tests/e2e/framework/framework_version.c" -Ltorch/lib -l:libc10.so -Wl,-rpath,"$PWD/torch/lib" -ldl
	CUFLIGHT_OUTPUT=$PWD/one.cuf CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so ./program torch/version.py
	run strings one.cuf
	grep "^framework=PyTorch" <<<"$output"
	[ "$(grep "^version=.*+" <<<"$output")" = version=2.0+opened ]
}
