#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Recordings that were changed at random places, with names that no format expects: each export, page
# and pack is read to its end by real parsers, or refused. MUTANTS=FROM-TO chooses other seeds.

load ../cli

@test "what is written of a changed recording is valid in every format" {
	for name in leak_per_request inference_server vmm_early_release captured_graph; do
		zstd -dqf "$root"/tests/golden/*/"$name.cuf.zst" -o "$name.cuf"
	done
	"$BATS_TEST_DIRNAME/mutants.py" "$cuflight" "$build" "${MUTANTS:-4}" ./*.cuf
}

@test "a parser that finds nothing wrong would be noticed: a broken document fails the check" {
	zstd -dqf "$root"/tests/golden/v1/oom_fatal.cuf.zst -o one.cuf
	cat >broken <<-'END'
		#!/bin/sh
		# as the command, but the last byte of what it writes is missing
		"$real" "$@" || exit
		[ ! -f out/x ] || truncate -s -2 out/x
	END
	chmod +x broken
	real=$cuflight run "$BATS_TEST_DIRNAME/mutants.py" "$PWD/broken" "$build" 1 one.cuf
	[ "$status" = 1 ]
	for form in perfetto torch-snapshot pack; do
		[[ $output = *", $form: "* ]]
	done
}
