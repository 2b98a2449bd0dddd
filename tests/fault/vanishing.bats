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

# A constructor that allocates, and 200,000 functions more.
many_functions() {
	cat >"$home/start.c" <<-'C'
		#include <stdlib.h>
		__attribute__((constructor)) static void start(void)
		{
			void *volatile block = malloc(100000);
			free(block);
		}
	C
	awk 'BEGIN {
		print ".section .note.GNU-stack,\"\",%progbits\n.text"
		for (i = 0; i < 200000; i++)
			printf ".globl f%d\n.type f%d,%%function\nf%d: nop\n.size f%d,1\n", i, i, i, i
	}' >"$home/functions.s"
	"${CC:-cc}" -shared -fPIC -fno-builtin "$home/start.c" "$home/functions.s" -o "$home/plugin.so"
}

@test "a plugin is closed while its functions are being named" {
	many_functions
	compile exit_while_closing
	for _ in {1..10}; do
		same_in_all_modes "$home/exit_while_closing" "$home/plugin.so"
		said_nothing
		same_in_all_modes "$home/exit_while_closing" "$home/plugin.so" refused
		rm -f "$output"/*
	done
}

@test "the recording is truncated" {
	compile truncates
	for how in empty half; do
		for mode in sampled full; do
			rm -f "$output"/*
			options=start=1:size=4MiB:host=$mode
			unchanged_under command "$home/truncates" "$output" "$how"
			said_once "recording stopped: the recording's file was truncated"
		done
	done
	# while it is long enough again, nobody notices
	rm -f "$output"/*
	unchanged_under command "$home/truncates" "$output" grow
}

@test "the recording's blocks are freed, and the disk is full" {
	need_root
	need_mounts
	compile truncates
	on_small_disk() { unshare -m sh -c 'mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"' "$output" "$@"; }
	for mode in sampled full; do
		options=start=1:size=4MiB:host=$mode
		unchanged_under on_small_disk "$home/truncates" "$output" fill
		# a page may also be found empty before one cannot be written
		said_once "recording stopped: the recording's "
	done
}

@test "SIGBUS is the program's, before the recording is truncated and after" {
	compile bus_errors
	same_in_all_modes "$home/bus_errors" "$output"
	said_once "recording stopped: the recording's file was truncated"
}

# NAME: a plugin whose function of this name allocates
plugin() {
	"${CC:-cc}" -O1 -fno-builtin -fno-optimize-sibling-calls -shared -fPIC "-DNAME=$1" \
		"$root/tests/fault/others/plugin.c" -o "$home/$1.so"
}

# FUNCTION=BYTES...: what the recording says of these functions, and of no other in a plugin
leaked_by() {
	"$build/cuflight" report --json "$output" >"$home/report.json"
	python3 - "$home/report.json" "$@" <<-'PY'
		import collections, json, sys
		found = collections.Counter()
		for leak in json.load(open(sys.argv[1]))['leaks']:
		    if leak['stack'][0]['module'].endswith('.copy'):
		        found[leak['stack'][0]['function']] += leak['bytes']
		wanted = {name: int(value) for name, value in (a.split('=') for a in sys.argv[2:])}
		assert found == wanted, (found, wanted)
	PY
}

@test "plugins at one place, one after another, keep their own names" {
	compile plugins
	plugin alpha
	plugin beta
	options=start=1:size=4MiB:host=full
	unchanged_under command "$home/plugins" "$home/alpha.so" "quiet:$home/beta.so"
	grep -qx 'one place: 1' "$home/recorded.out" || skip "the loader gives them other places"
	said_nothing
	leaked_by alpha=300000
	rm -f "$output"/*
	unchanged_under command "$home/plugins" "$home/alpha.so" "$home/beta.so" "$home/alpha.so"
	leaked_by alpha=600000 beta=300000
}
