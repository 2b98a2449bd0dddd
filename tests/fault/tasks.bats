#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tasks that share the process's memory and are no threads of the C library: none of them is taken
# for a dead thread, and none writes through another one's state.
load broken.bash

setup_file() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin \
		"$BATS_TEST_DIRNAME/others/memory_tasks.c" -o "$BATS_FILE_TMPDIR/memory_tasks" \
		-lpthread -ldl
}

# WAY OPTIONS: as natively, and nothing is lost or impossible in the recording
same_as_native() {
	rm -rf "${output:?}"
	mkdir "$output"
	observe recorded env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output/" \
		"CUFLIGHT_OPTIONS=start=1:$2" "$BATS_FILE_TMPDIR/memory_tasks" "$1"
	compare
	said_nothing
	readable_in "$output"
}

in_all_modes() {
	local mode
	observe native "$BATS_FILE_TMPDIR/memory_tasks" "$1"
	for mode in {,,}host=full {,,}host=sampled:sample=4KiB {,,}host=full:mmap=1; do
		same_as_native "$1" "$mode:size=16MiB"
	done
}

@test "tasks with thread-local storage of their own, while threads come and go" {
	in_all_modes own
}

# The thread's 50,000 events are recorded, and the task's are counted as lost: none is mistaken for
# the thread's.
@test "a task that runs with the words of a thread" {
	in_all_modes shared
	"$build/cuflight" report --json "$output" >"$home/report"
	python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert "clone tasks" in report["coverage"]["lost"][0]["what"], report["coverage"]["lost"]
assert [lost["count"] for lost in report["coverage"]["lost"]] == [50000], report["coverage"]["lost"]
assert report["capture"]["events_recorded"] >= 50000' "$home/report"
}

@test "threads whose first call is made by their vfork children" { in_all_modes vfork; }
