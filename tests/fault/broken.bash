# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs a victim twice under the same broken condition, without and with the recorder, and compares
# output and status.
# Loaded by the .bats files in this folder.
root=$(realpath "$BATS_TEST_DIRNAME/../..")
build=${BUILD:-$root/build}
victims=$build/victims
library=$build/libcuflight.so
# small, and from the start: the conditions are about the file
options=start=1:host=full:size=4MiB
export LD_LIBRARY_PATH=$build/sim

setup() {
	home=$BATS_TEST_TMPDIR
	output=$home/recordings
	mkdir -p "$output"
	[ -x "$library" ] # a condition that cannot be made is skipped, a missing library is not
}

# what run_recorded puts in front of a victim
recorded() { env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$options" "$@"; }

# WAY COMMAND...: leaves WAY.out, WAY.err and WAY.status in $home
observe() {
	local way=$1 status=0
	shift
	"$@" >"$home/$way.out" 2>"$home/$way.err" </dev/null || status=$?
	echo "$status" >"$home/$way.status"
}

# CONDITION VICTIM...: CONDITION is a function or command that runs its arguments in a broken world. stdout and exit
# status must be the same; the victim must have printed something. stderr is left for the caller.
unchanged_under() {
	local condition=$1
	shift
	observe native "$condition" "$@"
	observe recorded "$condition" env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$options" "$@"
	compare
}

compare() {
	[ -s "$home/native.out" ] || { echo "the victim said nothing: $(<"$home/native.err")" >&2; return 1; }
	[ "$(<"$home/native.status")" -lt 125 ] || { echo "the condition could not be made: $(<"$home/native.err")" >&2; return 1; }
	cmp -s "$home/native.out" "$home/recorded.out" || { diff "$home/native.out" "$home/recorded.out" | head -n 20 >&2; return 1; }
	diff "$home/native.status" "$home/recorded.status" >&2
}

# TEXT: the recorder printed one line, and TEXT is in it
said_once() {
	[ "$(wc -l <"$home/recorded.err")" = 1 ] && grep -q '^cuflight: ' "$home/recorded.err" && grep -qF -- "$1" "$home/recorded.err" && return
	echo "not one line with '$1':" >&2
	cat "$home/recorded.err" >&2
	return 1
}

said_nothing() { [ ! -s "$home/recorded.err" ] || { cat "$home/recorded.err" >&2; return 1; }; }

# FOLDER: nothing was left there
left_nothing() { [ -z "$(ls -A "$1")" ] || { ls -l "$1" >&2; return 1; }; }

# FOLDER [NUMBER]: at least NUMBER recordings are there, and each can be reported on
readable_in() {
	local file count=0
	for file in "$1"/*.cuf; do
		[ -f "$file" ] || continue
		"$build/cuflight" report "$file" >"$home/report" 2>&1 || { echo "$file:" >&2; cat "$home/report" >&2; return 1; }
		count=$((count + 1))
	done
	[ "$count" -ge "${2:-1}" ] || { echo "$count recordings" >&2; return 1; }
}

# Skips where the condition cannot be made.
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }
need_mounts() { unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null || skip "no mounts allowed here"; }

# lets other users reach $home
open_to_all() {
	local folder=$home
	while [ "$folder" != / ] && [ "$folder" != "${BATS_RUN_TMPDIR%/*}" ]; do
		chmod a+rx "$folder"
		folder=${folder%/*}
	done
}
