#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The memory of the recorder: little in a process that allocates little, and no growth however long
# it records.
load broken.bash

# OPTIONS COMMAND...: prints its output
under() {
	local options=$1
	shift
	CUFLIGHT_OPTIONS=$options CUFLIGHT_OUTPUT=$output/ LD_PRELOAD=$library "$@"
}

# NAME: the number after it, on stdin
field() { sed -nE "s/.*\\b$1 ([0-9]+).*/\\1/p"; }

@test "a process that allocates little has at most 8 MiB more resident" {
	native=$("$victims/allocates_little" | field rss)
	[ "$native" -gt 0 ] || skip "no /proc/self/smaps_rollup here"
	for options in host=sampled host=sampled:start=1 host=full \
		host=sampled:start=1:size=1GiB host=full:size=1GiB; do
		rss=$(under "$options" "$victims/allocates_little" | field rss)
		echo "# $options: $(((rss - native) >> 10)) KiB" >&3
		[ $((rss - native)) -le $((8 << 20)) ]
	done
}

churned() { field "$1" <"$home/churned"; }

# OPTIONS: the resident size after a quarter of the time is the one at the end, and the file has the
# same size. A sampled recording is touched page by page for hours: its pages belong to a file of
# fixed size, and are counted separately.
nothing_grows() {
	local before
	under "$1" "$victims/churns" "$CHURN_SECONDS" >"$home/churned" &
	sleep $((CHURN_SECONDS / 4))
	before=$(stat -c %s "$output"/*.cuf)
	wait $!
	echo "# $1: $(<"$home/churned"), file of $before" >&3
	[ "$(stat -c %s "$output"/*.cuf)" = "$before" ]
	# the file system may need one more block for its metadata
	[ $(($(stat -c %b "$output"/*.cuf) * 512)) -le $((before + (64 << 10))) ]
	[ "$(churned rss)" -gt 0 ] && [ "$(churned pairs)" -gt 10000 ]
	[ $(($(churned most_anonymous) - $(churned anonymous))) -le $((512 << 10)) ]
	[ $(($(churned most) - $(churned most_anonymous))) -le $((before + (8 << 20))) ]
	[[ $1 != host=full* ]] || [ $(($(churned most) - $(churned rss))) -le $((512 << 10)) ]
	readable_in "$output"
	"$build/cuflight" report --json "$output"/*.cuf |
		python3 -c 'import json, sys; assert json.load(sys.stdin)["coverage"]["lost"] == []'
}

@test "${CHURN_SECONDS:=16} seconds at full speed, every event recorded: memory does not grow" {
	nothing_grows host=full:size=16MiB
}

@test "$CHURN_SECONDS seconds at full speed, sampled: memory does not grow" {
	nothing_grows host=sampled:start=1:size=16MiB
}
