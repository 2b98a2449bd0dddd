#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Where AMD's or Intel's runtime is in use, the report tells that its memory is not recorded, and has
# host memory and PyTorch's blocks.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=$(realpath "${BUILD:-$root/build}")
	cd "$BATS_TEST_TMPDIR" || return
}

# SONAME TYPE: records the program with this runtime and this type of device; leaves report.json and screen
record() {
	local source=$root/tests/e2e/framework/other_gpus.c
	"${CC:-cc}" -O0 -fPIC -shared -DRUNTIME -I"$root" -Wl,-soname,"$1" -o "$1" "$source"
	"${CC:-cc}" -O0 -g -I"$root" -o program "$source" -L"$build/victims/torch" -l:libc10.so -L. -l:"$1" \
		-Wl,-rpath,"$build/victims/torch:$PWD"
	rm -rf rec
	CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1 LD_PRELOAD=$build/libcuflight.so ./program "$2" 2>/dev/null || [ $? = 1 ]
	"$build/cuflight" report rec >screen
	"$build/cuflight" report --json rec >report.json
}

# EXPRESSION of the report d
report_has() {
	node -e "const d = JSON.parse(require('fs').readFileSync('report.json')); if (!($1)) process.exit(1)" ||
		{ echo "not so: $1" >&2; cat screen >&2; false; }
}

has_host_and_blocks() {
	report_has 'd.growth.concat(d.leaks).some((s) => s.stack[0].function === "load_weights" && s.bytes === 1000 * 2 ** 20)'
	report_has 'd.incidents.some((i) => i.requested_bytes === 200 * 2 ** 20)'
	grep 'keep_answers .* 100 MiB' screen
}

@test "AMD's runtime: named on the first screen, beside host memory and PyTorch's blocks" {
	local library type
	for library in libamdhip64.so.6 libhsa-runtime64.so.1; do
		for type in 1 6; do # PyTorch calls it CUDA, or HIP
			record $library $type
			has_host_and_blocks
			report_has "d.coverage.blind.filter((b) => b.text === \"memory of AMD GPUs is not recorded ($library is in use): host memory and PyTorch's blocks are\").length === 1"
			grep '^Note: memory of AMD GPUs is not recorded' screen
		done
	done
}

@test "Intel's runtime: the same" {
	local library
	for library in libze_loader.so.1 libsycl.so.8; do
		record $library 12
		has_host_and_blocks
		grep '^Note: memory of Intel GPUs is not recorded' screen
	done
}

@test "a library of another name is no runtime, and PyTorch's other devices are none" {
	record libother.so.1 9
	report_has '!d.coverage.blind.some((b) => /GPUs is not recorded/.test(b.text)) && d.incidents.length === 0'
	grep 'No GPU was used' screen
	record libze_loader.so.1 9
	run grep 'No GPU was used' screen
	[ "$status" = 1 ]
}
