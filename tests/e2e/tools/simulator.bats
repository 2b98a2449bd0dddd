#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031 # each test is its own subshell, and so is sh -c
# The simulated device: what its settings do, what processes share, and that memory of dead
# processes is released.
# What it models of the driver is checked by driver_semantics.tap.

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	victims=$build/victims
	sim=$root/scripts/simcuda
}

# key of the victim's `device` line
device_says() { sed -n "s/^device .*\b$1 \([0-9]*\).*/\1/p"; }

@test "a command keeps its arguments, status, input and output" {
	[ "$(echo text | "$sim" sed 's/t/T/')" = Text ]
	run "$sim" sh -c 'echo "$0 $#"; exit 9' 'a b' c
	[ "$status" = 9 ]
	[ "$output" = 'a b 1' ]
	run "$sim" sh -c 'kill -TERM $$'
	[ "$status" = 143 ]
}

@test "a missing command is a usage error, and a missing library is reported" {
	run "$sim"
	[ "$status" = 2 ]
	SIMCUDA_LIB=/nonexistent run "$sim" true
	[ "$status" = 2 ]
	[[ "$output" = *'make sim'* ]]
}

@test "the shared state is removed when the command ends" {
	TMPDIR=$BATS_TEST_TMPDIR "$sim" "$victims/healthy_churn" >/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ -z "$(ls "$BATS_TEST_TMPDIR")" ] && return
		sleep 0.3
	done
	ls "$BATS_TEST_TMPDIR"
	false
}

@test "the driver reports SIMCUDA_TOTAL and SIMCUDA_OTHER" {
	SIMCUDA_TOTAL=3GiB SIMCUDA_OTHER=1GiB SIMCUDA_CONTEXT=0 "$sim" "$victims/other_tenant" >"$BATS_TEST_TMPDIR/out"
	[ "$(device_says total <"$BATS_TEST_TMPDIR/out")" = $((3 << 30)) ]
	[ "$(device_says free <"$BATS_TEST_TMPDIR/out")" = $(((2 << 30) - (48 << 20))) ]
}

@test "SIMCUDA_CONTEXT is allocated once for a process" {
	SIMCUDA_TOTAL=3GiB SIMCUDA_CONTEXT=128MiB "$sim" "$victims/other_tenant" >"$BATS_TEST_TMPDIR/out"
	[ "$(device_says free <"$BATS_TEST_TMPDIR/out")" = $(((3 << 30) - (128 << 20) - (48 << 20))) ]
}

@test "SIMCUDA_FAIL fails the n-th call of a name, and no other" {
	SIMCUDA_FAIL=cuMemAlloc:2 run "$sim" "$victims/other_tenant"
	[ "$status" = 0 ] # it allocates once
	SIMCUDA_FAIL=cuMemAlloc:1 run "$sim" "$victims/other_tenant"
	[ "$status" = 3 ]
	[[ "$output" = *'failed with 2'* ]]
	SIMCUDA_FAIL=cuMemHostAlloc:1,cuMemCreate:2+ run "$sim" "$victims/vmm_early_release"
	[ "$status" = 3 ]
	[[ "$output" = *'cu.create'*'failed with 2'* ]]
}

@test "SIMCUDA_DELAY_US makes every call slow" {
	local start end
	start=$(date +%s%N)
	SIMCUDA_DELAY_US=2000 "$sim" "$victims/leak_per_request" >/dev/null
	end=$(date +%s%N)
	[ $((end - start)) -gt $((121 * 2000 * 1000)) ] # 40 requests of three calls, the weights
}

@test "SIMCUDA_GRANULARITY is the unit of physical memory" {
	SIMCUDA_GRANULARITY=32MiB "$sim" "$victims/vmm_early_release" | grep -q "^vmm mapped $((5 * 4 * 32 << 20))$"
}

@test "processes share a device, and the memory of a killed one is released" {
	export SIMCUDA_STATE=$BATS_TEST_TMPDIR/devices SIMCUDA_CONTEXT=0
	run "$sim" "$victims/sigkill"
	[ "$status" = 137 ]
	echo "$output" >"$BATS_TEST_TMPDIR/killed"
	[ "$(device_says free <"$BATS_TEST_TMPDIR/killed")" -le $(((16 << 30) - (465 << 20))) ]
	"$sim" "$victims/other_tenant" >"$BATS_TEST_TMPDIR/after"
	[ "$(device_says free <"$BATS_TEST_TMPDIR/after")" = $(((16 << 30) - (48 << 20))) ]
}

@test "of two processes that run together, each sees the bytes of the other" {
	export SIMCUDA_STATE=$BATS_TEST_TMPDIR/devices SIMCUDA_CONTEXT=0 SIMCUDA_DELAY_US=20000
	"$sim" "$victims/leak_per_request" >/dev/null &
	for _ in $(seq 50); do
		"$sim" env SIMCUDA_DELAY_US=0 "$victims/other_tenant" >"$BATS_TEST_TMPDIR/out"
		[ "$(device_says free <"$BATS_TEST_TMPDIR/out")" -ge $(((16 << 30) - (48 << 20))) ] || break
		sleep 0.05
	done
	wait
	[ "$(device_says free <"$BATS_TEST_TMPDIR/out")" -lt $(((16 << 30) - (48 << 20))) ]
}

@test "an older driver has fewer functions" {
	SIMCUDA_DRIVER_VERSION=11010 run "$sim" "$victims/healthy_churn" --door=gpa5
	[ "$status" = 77 ]
	[[ "$output" = *cuMemAllocAsync* ]]
}

@test "the driver's internal look-ups are not interposed, and it notices a preload that does so" {
	cat >"$BATS_TEST_TMPDIR/naive.c" <<-'C'
		int cuInit(unsigned flags) { return 0; }
		int cuGetProcAddress(const char *name, void **out, int version, unsigned long flags) { *out = (void *)cuInit; return 0; }
	C
	cc -shared -fPIC "$BATS_TEST_TMPDIR/naive.c" -o "$BATS_TEST_TMPDIR/naive.so"
	run "$sim" env LD_PRELOAD="$BATS_TEST_TMPDIR/naive.so" "$victims/healthy_churn" --door=dlsym
	[ "$status" = 77 ]
	[[ "$output" = *'must not be interposed'* ]]
	LD_PRELOAD='' "$sim" env CUFLIGHT_DISABLE=0 LD_PRELOAD="$build/libcuflight.so" CUFLIGHT_OUTPUT="$BATS_TEST_TMPDIR/" "$victims/healthy_churn" --door=dlsym
}

@test "the table of names agrees with NVIDIA's headers" {
	local home=${CUDA_HOME:-$build/cuda}
	[ -e "$home/include/cudaTypedefs.h" ] || skip "no cudaTypedefs.h in $home/include"
	"$root/tests/sim/names_check.py" "$home/include"
}
