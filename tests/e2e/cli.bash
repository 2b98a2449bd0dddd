# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs the command in its own folder and keeps its stdout and stderr. Loaded by the cli_*.bats
# files.
root=$(realpath "$BATS_TEST_DIRNAME/../../..")
build=${BUILD:-$root/build}
cuflight=$build/cuflight

setup() {
	home=$BATS_TEST_TMPDIR
	cd "$home" || return 1
	unset NO_COLOR FORCE_COLOR CLICOLOR_FORCE COLUMNS LD_PRELOAD "${!CUFLIGHT_@}"
}

# STATUS ARGUMENTS...: the command must end with this status; its output is in out and err
expect() {
	local wanted=$1 status=0
	shift
	"$cuflight" "$@" >"$home/out" 2>"$home/err" </dev/null || status=$?
	[ "$status" = "$wanted" ] && return
	echo "cuflight $*: status $status, wanted $wanted" >&2
	cat "$home/out" "$home/err" >&2
	return 1
}

# FILE TEXT...: the file has every text
holds() {
	local file=$home/$1 text
	shift
	for text; do
		grep -qF -- "$text" "$file" || { echo "no '$text' in:" >&2; cat "$file" >&2; return 1; }
	done
}

# FILE PATTERN: no line matches
lacks() {
	if grep -- "$2" "$home/$1" >&2; then return 1; fi
}

ascii() { (export LC_ALL=C; lacks "$1" '[^ -~]'); }

empty() { [ ! -s "$home/$1" ] || { cat "$home/$1" >&2; return 1; }; }

# recordings below a folder
recordings() { find "${1:-.}" -type f -name '*.cuf*' | sort; }

# one small recording, x.cuf
record_one() { "$cuflight" run -q --size=4MiB -o x.cuf -- true; }

# COMMAND: its options, one a line, as the command lists them
options_of() {
	"$cuflight" help --json | node -e '
		const help = JSON.parse(require("fs").readFileSync(0));
		help.commands.find((c) => c.name === process.argv[1]).options.forEach((o) => console.log("--" + o.name));
	' "$1"
}
