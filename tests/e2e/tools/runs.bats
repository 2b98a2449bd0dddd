#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Which files scripts/check runs, in a folder with a copy of it and of what lists them.
bats_require_minimum_version 1.5.0

# NAME: a test file that passes
test_file() {
	printf '#!/bin/sh\necho 1..1\necho "ok 1 - %s"\n' "$1" >"tests/golden/$1.tap"
	chmod +x "tests/golden/$1.tap"
}

setup() {
	local root=$BATS_TEST_DIRNAME/../../..
	cd "$BATS_TEST_TMPDIR" || return 1
	unset CHECK_RUN # of the run that this test is a part of
	mkdir -p scripts tests/golden tests/unit build
	cp "$root/scripts/check" "$root/scripts/list-tests" scripts/
	printf '%s\n' '# a comment' 'quick 1 0.5 tests/golden/short.tap' 'all 9 8.5 tests/golden/long.tap' \
		'quick 5 0.5 tests/golden/longer.tap' 'all 5 0.5 tests/golden/gone.tap' >tests/files.txt
	for name in short long longer new; do test_file $name; done
}

# the files that ran, in their order
ran() { CHECK_JOBS=1 scripts/check golden build | sed -n 's,.*tests/golden/\(.*\).tap.*,\1,p' | paste -sd ' '; }

@test "the quick run leaves out what the table leaves to --all, and takes a new file" {
	[ "$(CHECK_RUN=quick ran)" = "new longer short" ]
	[ "$(CHECK_RUN=all ran)" = "new long longer short" ]
	[ "$(ran)" = "new long longer short" ]
}

@test "the table gets the seconds of the last run, new files, and loses what is gone" {
	ran
	scripts/list-tests build
	grep -q '^# a comment$' tests/files.txt
	[ "$(awk '!/^#/ { print $1, $4 }' tests/files.txt | grep -v scripts/lint)" = 'all tests/golden/long.tap
quick tests/golden/longer.tap
quick tests/golden/new.tap
quick tests/golden/short.tap' ]
	[ "$(awk '/longer/ { print $2 < 5 }' tests/files.txt)" = 1 ]
}
