#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Memory that the recorder reads or writes disappears: stacks, loaded objects, the recording itself.
# The program ends as it does without the recorder.
load broken.bash

# NAME FLAG...: builds $home/NAME
compile() {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin "$root/tests/fault/others/$1.c" \
		-o "$home/$1" "${@:2}" -ldl -lpthread
}

# COMMAND...: in all modes
same_in_all_modes() {
	for mode in sampled full; do
		options=start=1:size=4MiB:host=$mode
		unchanged_under command "$@"
	done
}

@test "a stack next to the thread's own is unmapped" {
	for flags in "-fno-omit-frame-pointer" "-O2 -fomit-frame-pointer"; do
		# shellcheck disable=SC2086 # a list of flags
		compile stack_unmapped $flags
		same_in_all_modes "$home/stack_unmapped"
		said_nothing
	done
}
