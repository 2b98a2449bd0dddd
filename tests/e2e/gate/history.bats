#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Regressions are caught at their commit (history.py). GATE_RUNS=3: judged runs of each of its twelve commits.
load ../cli.bash

@test "each regression of a history is caught at its commit and named, and nothing else is" {
	"$BATS_TEST_DIRNAME/history.py" >log || { cat log; return 1; }
	tail -n 1 log >&3
}
