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

# EXPRESSION: of the report, as d; where it is false, what it asks for is printed
report_has() {
	node -e '
		const [expression] = process.argv.slice(1), d = JSON.parse(require("fs").readFileSync("report.json"));
		if (eval(expression)) process.exit(0);
		for (const part of new Set(expression.match(/\bd(\.\w+|\[\d+\])+(?!\w*\()/g)))
			console.log(part, "is", String(JSON.stringify(eval(part.replaceAll(".", "?.").replaceAll("[", "?.[")))).slice(0, 200));
		process.exit(1);
	' "$1"
}
