# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A recorded program's host memory, and its report. Loaded by the host_*.bats files.
setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cuflight=$build/cuflight
	cd "$BATS_TEST_TMPDIR" || return
	unset CUFLIGHT_OPTIONS CUFLIGHT_OUTPUT CUFLIGHT_DISABLE LD_PRELOAD MALLOC_CONF MALLOC_ARENA_MAX
	export TZ=UTC LC_ALL=C.UTF-8 DEBUGINFOD_URLS=
}

have() { compgen -G "/usr/lib/*/$1" >/dev/null || skip "no $1 here"; }
have_jemalloc() { have libjemalloc.so.2; }

# EXPRESSION: of the report, as d
report_has() { node -e 'const d = JSON.parse(require("fs").readFileSync("report.json")); process.exit(eval(process.argv[1]) ? 0 : 1)' "$1"; }
