#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What stops a release, before anything is made.
bats_require_minimum_version 1.5.0

setup() {
	command -v git >/dev/null || skip "no git"
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	mkdir "$BATS_TEST_TMPDIR/tree" && cd "$BATS_TEST_TMPDIR/tree" || return
	mkdir scripts
	cp "$root/scripts/release" scripts/
	printf 'VERSION := 1.2.3\n' >Makefile
	printf '# Changelog\n\n## Unreleased\n\n- later\n\n## 1.2.3 - 2026-12-01\n\n- new\n\n## 1.2.2 - 2026-11-01\n\n- old\n' >CHANGELOG.md
	git init -q
	save first
}

save() { git add -A && git -c user.name=n -c user.email=e@example.org commit -q -m "$1"; }

# VERSION TEXT: the gate says so
stops() {
	run -1 scripts/release --gate "$1"
	[[ $output == *"$2"* ]]
}

@test "a release needs its version, its section, a clean tree and a free tag" {
	run -0 scripts/release --gate 1.2.3
	stops 1.2.4 "VERSION is 1.2.3, not 1.2.4"
	run -2 scripts/release --gate 1.2
	run -2 scripts/release
	touch new
	stops 1.2.3 "not committed"
	rm new
	git tag v1.2.3
	run -0 scripts/release --gate 1.2.3
	sed -i 's/- new/- newer/' CHANGELOG.md
	save second
	stops 1.2.3 "v1.2.3 is another commit"
}

@test "a section without a date or without text does not count" {
	local heading
	for heading in '## 1.2.3' '## 1.2.3 - soon' '## 1.2.33 - 2026-12-01' '## 1.2.3 - 2026-12-01\n\n## 1.2.2 - 2026-11-01\n'; do
		printf '# Changelog\n\n## Unreleased\n\n- later\n\n'"$heading"'\n\n- new\n' >CHANGELOG.md
		save "$heading"
		stops 1.2.3 "no section '## 1.2.3 - DATE' with text"
	done
}

@test "the version of this tree is one, and its changelog has the part for what comes" {
	[ "$(sed -n 's/^VERSION := //p' "$root/Makefile")" = "$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/scripts/pytest_cuflight/pyproject.toml")" ]
	grep -qx '## Unreleased' "$root/CHANGELOG.md"
	run -1 "$root/scripts/release" --gate 999.0.0
	[[ $output == *"Makefile's VERSION is"* ]]
}

# NAME COMMAND: a commit that builds this recorder, and as cuflight the lines of COMMAND
version_with() {
	printf '%s\n' 'interpose:' '	mkdir -p build && ln -sf "$(REAL)/libcuflight.so" build/' 'analysis:' '	mkdir -p build && cp answer build/cuflight' >Makefile
	printf '#!/bin/bash\n%s\n' "$2" >answer
	chmod +x answer
	save "$1"
	git tag "$1"
}

@test "what two versions do not agree on is reported, and a reader may only refuse what is newer" {
	export REAL=${BUILD:-$root/build}
	REAL=$(realpath "$REAL")
	cp "$root"/scripts/{check-versions,simcuda} scripts/
	ln -s "$REAL" build
	echo build >.gitignore
	run -0 scripts/check-versions
	[[ $output == *"no version was tagged"* ]]
	version_with same 'exec "$REAL/cuflight" "$@"'
	run -0 scripts/check-versions same
	[[ $output == *"same writes, this reads: "*" facts, the same, 0 refused"*"this writes, same reads: "*" facts, the same, 0 refused"* ]]
	version_with other "\"\$REAL/cuflight\" \"\$@\" | sed 's/\"fail_count\": *1\b/\"fail_count\": 2/'"
	run -1 scripts/check-versions other
	[[ $output == *"oom_fatal: devices[0].fail_count: 2 became 1"*"this writes, other reads: "*" facts, not the same"* ]]
	version_with refuses 'echo "cuflight: this file is of a newer format" >&2; exit 2'
	run -1 scripts/check-versions refuses
	[[ $output == *"refuses writes, this reads: 0 facts, not the same"*"this writes, refuses reads: 0 facts, the same, 7 refused"* ]]
	version_with breaks 'echo "cuflight: this file is damaged" >&2; exit 2'
	run -1 scripts/check-versions breaks
	[[ $output == *"this writes, breaks reads: 0 facts, not the same, 0 refused"* ]]
}
