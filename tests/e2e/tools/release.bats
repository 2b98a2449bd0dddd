#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What stops a release, before anything is made.
bats_require_minimum_version 1.5.0

setup() {
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
