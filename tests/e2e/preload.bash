# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs a program that does not use a GPU with and without the recorder, and compares its output, its
# exit status, and the files it leaves. Loaded by .bats files.
root=$(realpath "$BATS_TEST_DIRNAME/../../..")
build=${BUILD:-$root/build}

# (bats waits for every process that has descriptor 3: a daemon that a program leaves behind must
# not)
# WAY COMMAND...: runs it one way in its own folder; leaves WAY.out, WAY.err, WAY.status and WAY.files. TMPDIR is inside.
run_way() {
	local way=$1 home=$BATS_TEST_TMPDIR/$1 status=0 prefix=()
	shift
	case $way in
	preload) prefix=(env "LD_PRELOAD=$build/libcuflight.so") ;;
	full) prefix=(env "CUFLIGHT_OUTPUT=$BATS_TEST_TMPDIR/recordings/" "$build/cuflight" run --host=full --size=4MiB --) ;;
	esac
	mkdir -p "$home/tmp" "$BATS_TEST_TMPDIR/recordings"
	(cd "$home" && TMPDIR=$home/tmp exec "${prefix[@]}" "$@") >"$home.out" 2>"$home.err" </dev/null 3>&- || status=$?
	echo "$status" >"$home.status"
	(cd "$home" && find . | sort) >"$home.files"
}

# PART WAY: the way must agree with the native run in this part
same_as_native() { diff "$BATS_TEST_TMPDIR/native.$1" "$BATS_TEST_TMPDIR/$2.$1" >&2 || { echo "$1 differs under $2" >&2; return 1; }; }

# COMMAND...: the same in every way. The native run must have succeeded and printed something, else
# nothing was compared
unchanged_by_recording() {
	local way
	for way in native preload full; do run_way "$way" "$@"; done
	[ "$(<"$BATS_TEST_TMPDIR/native.status")" = "${expected_status:-0}" ]
	[ -s "$BATS_TEST_TMPDIR/native.out" ]
	for way in preload full; do
		same_as_native out "$way"
		same_as_native status "$way"
		same_as_native files "$way"
	done
	same_as_native err preload
	recordings_are_readable
}

# `cuflight run` leaves a recording of each process; all must be readable
recordings_are_readable() {
	local recordings=("$BATS_TEST_TMPDIR"/recordings/*.cuf)
	[ -f "${recordings[0]}" ]
	"$build/cuflight" report "$BATS_TEST_TMPDIR/recordings" >"$BATS_TEST_TMPDIR/report" 2>&1 || { cat "$BATS_TEST_TMPDIR/report" >&2; return 1; }
}

# NAME: skips where the program is not installed
need() { command -v "$1" >/dev/null || skip "no $1 here"; }
