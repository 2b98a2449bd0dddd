#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A program that allocates from four threads is killed at 200 random instants (and 28 more while it starts): every
# recording can be read, and what it says is live is what the program says was live, up to the calls in flight.
load broken.bash

@test "SIGKILL at 228 random instants" {
	local status=0
	CUFLIGHT_OPTIONS=start=1:host=full:size=16MiB "$build/fault/kill_runs" 228 "${KILL_SEED:-1}" "$output" \
		env "LD_PRELOAD=$library" "$victims/kill_workload" >"$home/kills" 2>&1 || status=$?
	sed 's/^/# /' "$home/kills"
	[ "$status" = 0 ]
}
