#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Suppressions: one file for LeakSanitizer, heaptrack and cuflight; kinds, dates, generated rules.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	cc -g -O1 -fno-omit-frame-pointer "$BATS_TEST_DIRNAME/leaks.c" -o plain
	cc -g -O1 -fno-omit-frame-pointer -fsanitize=leak "$BATS_TEST_DIRNAME/leaks.c" -o sanitized
	"${BUILD:-$(realpath "$BATS_TEST_DIRNAME/../../..")/build}/cuflight" run -q --host=full \
		--size=8MiB -o leaks.cuf -- ./plain >/dev/null
}

# RULES: the bytes that cuflight counts and suppresses at the end
by_cuflight() {
	"$cuflight" check --json --suppressions "$1" "$BATS_FILE_TMPDIR/leaks.cuf" 'host.end = 0' 2>/dev/null | node -e '
		const end = JSON.parse(require("fs").readFileSync(0)).findings.find((one) => one.measure === "host.end");
		console.log(end.observed.value, end.suppressed);
	'
}

by_leaksanitizer() {
	LSAN_OPTIONS=suppressions=$1:print_suppressions=1:exitcode=0 "$BATS_FILE_TMPDIR/sanitized" 2>&1 | awk '
		/failed to parse/ { print; exit 1 }
		/^ +[0-9]+ +[0-9]+ [^ ]/ { suppressed += $2 }
		/^SUMMARY:/ { left = $3 }
		END { print left + 0, suppressed + 0 }'
}

by_heaptrack() {
	[ -e "$BATS_FILE_TMPDIR/heap.zst" ] ||
		heaptrack -o "$BATS_FILE_TMPDIR/heap" "$BATS_FILE_TMPDIR/plain" >/dev/null 2>&1
	# the built-in rules of 1.4 match everything
	heaptrack_print --suppressions="$1" --disable-embedded-suppressions --disable-builtin-suppressions \
		--print-suppressions=1 -l1 -p0 -a0 -T0 "$BATS_FILE_TMPDIR/heap.zst" 2>&1 | tee heaptrack.txt | awk '
		function bytes(text) { return substr(text, 1, length(text) - (text ~ /[KM]?B?$/ ? 1 : 0)) * (text ~ /K/ ? 1000 : text ~ /M/ ? 1000000 : 1) }
		/^total memory leaked:/ { left = bytes($4) }
		/^suppressed leaks:/ { suppressed = bytes($3) }
		END { print left + 0, suppressed + 0 }'
	! grep -i invalid heaptrack.txt
}

# RULES: all three agree
agree() {
	printf '%s\n' "$@" >rules.supp
	local ours sanitizers
	ours=$(by_cuflight rules.supp)
	sanitizers=$(by_leaksanitizer rules.supp)
	[ "$ours" = "$sanitizers" ] || { echo "cuflight '$ours', LeakSanitizer '$sanitizers'" >&2; return 1; }
	if command -v heaptrack >/dev/null; then
		heaps=$(by_heaptrack rules.supp)
		[ "$ours" = "$heaps" ] || { echo "cuflight '$ours', heaptrack '$heaps'" >&2; return 1; }
	fi
	[ -z "${expected:-}" ] || [ "$ours" = "$expected" ]
}

@test "LeakSanitizer, heaptrack and cuflight accept one file and agree on what it suppresses" {
	expected="750000 50000" agree '# a comment with leak:nothing' '' \
		'#cuflight until=2126-01-01 reason="known for long"' 'leak:lose_known*' \
		'#cuflight device:load_weights'
}

@test "each way to write a pattern has one meaning" {
	expected="550000 250000" agree 'leak:^call_below$'
	expected="800000 0" agree 'leak:^call$'
	expected="800000 0" agree 'leak:below_$'
	expected="550000 250000" agree 'leak:l*_bel*w$'
	expected="0 800000" agree 'leak:gate/leaks.c$'
	expected="0 800000" agree 'leak:^lose_'
	expected="800000 0" agree 'leak: lose_known'
	expected="0 800000" agree 'leak:*'
	expected="400000 400000" agree 'leak:lose_known' 'leak:lose_last' 'leak:lose_known'
}

@test "own kinds and dates count for cuflight only" {
	printf '%s\n' '#cuflight until=2020-01-01' 'leak:lose_known' '#cuflight host:lose_other' 'leak:nowhere' >rules.supp
	[ "$(by_cuflight rules.supp)" = "650000 150000" ]
	[ "$(by_leaksanitizer rules.supp)" = "750000 50000" ]
	expect 1 check --suppressions rules.supp "$BATS_FILE_TMPDIR/leaks.cuf" 'host.end = 0'
	holds err "rules.supp:2: rule 'leak:lose_known' has expired on 2020-01-01" \
		"rules.supp:4: rule 'leak:nowhere' matched nothing"
	holds out "suppressed by host:lose_other"
	# a peak is excused by the kinds of memory only
	printf 'leak:lose_\n' >rules.supp
	expect 1 check --suppressions rules.supp "$BATS_FILE_TMPDIR/leaks.cuf" 'host.peak <= 1KiB'
	printf 'host:lose_\n' >rules.supp
	expect 0 check --suppressions rules.supp "$BATS_FILE_TMPDIR/leaks.cuf" 'host.peak <= 1KiB'
}

@test "generated rules suppress what was found, for LeakSanitizer, too" {
	expect 1 check --gen-suppressions=made.supp "$BATS_FILE_TMPDIR/leaks.cuf" 'host.end = 0'
	expect 0 check --suppressions made.supp "$BATS_FILE_TMPDIR/leaks.cuf" 'host.end = 0'
	[ "$(by_leaksanitizer made.supp)" = "0 800000" ]
}

@test "a file that cannot be read is refused with its line" {
	printf 'leak:a\nrace:b\n' >bad.supp
	expect 2 check --suppressions bad.supp "$BATS_FILE_TMPDIR/leaks.cuf"
	holds err "bad.supp:2: unknown kind of rule"
	expect 2 check --suppressions missing.supp "$BATS_FILE_TMPDIR/leaks.cuf"
	holds err "missing.supp" "No such file"
}
