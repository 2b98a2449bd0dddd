#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A program that allocates from four threads is killed at random instants (KILL_SEED=1). Every
# recording can be read. Its live set equals the program's, up to the calls in flight, and no
# completed call is missing.
load broken.bash

# RUNS OPTIONS [churn]
kill_runs() {
	local status=0
	CUFLIGHT_OPTIONS=$2 "$build/fault/kill_runs" "$1" "${KILL_SEED:-1}" "$output" \
		env "LD_PRELOAD=$library" "$victims/kill_workload" ${3:+"$3"} \
		>"$home/kills" 2>&1 || status=$?
	sed 's/^/# /' "$home/kills"
	[ "$status" = 0 ]
}

# KILL_RUNS=1000: as many as you like
@test "SIGKILL at ${KILL_RUNS:=100} random instants, every event recorded" {
	kill_runs "$KILL_RUNS" start=1:host=full:size=16MiB
}

@test "SIGKILL at $KILL_RUNS random instants, around the first use of the device, which creates the file" {
	kill_runs "$KILL_RUNS" size=16MiB
}

@test "SIGKILL at $KILL_RUNS random instants, while threads and children start and end" {
	kill_runs "$KILL_RUNS" start=1:host=full:size=32MiB churn
}
