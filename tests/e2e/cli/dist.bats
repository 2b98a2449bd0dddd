#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A release builds without node and without a network, and its command has the same page as this one.
load ../preload.bash

setup() {
	[ -s "$build/view/html/page.js" ] || skip "the command was built without the page"
	[ -d "$root/.git" ] || [ -f "$root/release/files" ] || skip "neither a git checkout nor a release"
	git -C "$root" ls-files >/dev/null 2>&1 || [ -f "$root/release/files" ] || skip "git refuses this folder"
	cd "$BATS_TEST_TMPDIR" || return 1
	(cd "$root" && scripts/dist release "$build/view/html" "$BATS_TEST_TMPDIR")
}

teardown() { rm -rf "${BATS_TEST_TMPDIR:?}/release"; }

# COMMAND...: runs it without a network and with tools of node that only fail
shut_in() {
	mkdir -p no_node
	printf '#!/bin/sh\necho "$0 was called" >>%s/calls\nexit 1\n' "$PWD" | tee no_node/node no_node/npm >no_node/npx
	chmod +x no_node/*
	PATH=$PWD/no_node:$PATH MAKEFLAGS='' BUILD='' "${without_network[@]}" "$@"
}

@test "a release builds without node and network, with the page and its licences" {
	without_network=()
	if unshare -rn true 2>/dev/null; then without_network=(unshare -rn); fi
	sha256sum -c release.tar.gz.sha256
	tar -xzf release.tar.gz
	shut_in make -s -C release -j2 O=build CC="${CC:-cc}" CFLAGS='-O0 -g0' analysis >made 2>&1 || { tail -20 made >&2; false; }
	[ ! -e calls ]
	zstd -dq "$root/tests/golden/v1/captured_graph.cuf.zst" -o x.cuf
	release/build/cuflight report --html -o released.html x.cuf
	"$build/cuflight" report --html -o built.html x.cuf
	cmp released.html built.html
	local name
	for name in uplot d3-flame-graph d3-selection; do
		grep -q "^$name [0-9.]* (" release/release/licences.txt
		grep -q "^$name [0-9.]* (" released.html
	done
	grep -q 'Permission is hereby granted' release/release/licences.txt
}

@test "a release makes the same release" {
	tar -xzf release.tar.gz
	(cd release && scripts/dist release release again)
	cmp release.tar.gz release/again/release.tar.gz
}
