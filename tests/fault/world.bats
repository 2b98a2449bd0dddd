#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# No /proc, a sandbox that forbids opening files or kills for it, a storm of forks, a setuid
# program: the program runs as it does natively.
load broken.bash

@test "/proc is not mounted" {
	need_mounts
	# shellcheck disable=SC2016
	no_proc() { unshare -m sh -c 'mount -t tmpfs tmpfs /proc || exit 125; exec "$@"' sh "$@"; }
	unchanged_under no_proc "$victims/holds_memory" 20 7
	said_nothing
	readable_in "$output"
}

@test "/sys is not mounted" {
	need_mounts
	# shellcheck disable=SC2016
	no_sys() { unshare -m sh -c 'mount -t tmpfs tmpfs /sys || exit 125; exec "$@"' sh "$@"; }
	unchanged_under no_sys "$victims/holds_memory" 20 7
	said_nothing
	readable_in "$output"
}

@test "a sandbox that forbids opening files, entered before there is a recording" {
	options=start=0
	unchanged_under command "$victims/sandboxes_itself" eperm
	said_once 'seccomp filter'
	left_nothing "$output"
}

@test "a sandbox that forbids opening files, entered while recording" {
	unchanged_under command "$victims/sandboxes_itself" eperm
	said_nothing
	readable_in "$output"
}

# a filter from before the start (a container's) hides a later one
need_no_filter() {
	grep -q '^Seccomp:[[:space:]]*0' /proc/self/status ||
		skip "a seccomp filter is here already"
}

@test "a sandbox that kills a process that opens a file, entered before there is a recording" {
	need_no_filter
	options=start=0
	unchanged_under command "$victims/sandboxes_itself" kill
	said_once 'seccomp filter'
	left_nothing "$output"
}

@test "a sandbox that kills a process that opens a file, entered while recording" {
	need_no_filter
	unchanged_under command "$victims/sandboxes_itself" kill
	readable_in "$output"
}

@test "a storm of forks" {
	options=start=0:host=full:size=4MiB
	unchanged_under command "$victims/fork_storm" 60
	said_nothing
	readable_in "$output" 121
}

@test "a storm of forks with nothing to record" {
	options=
	unchanged_under command "$victims/fork_storm" 60
	said_nothing
	left_nothing "$output"
}

@test "a storm of forks on a full disk" {
	need_mounts
	options=host=full:size=4MiB
	# shellcheck disable=SC2016
	full() {
		unshare -m \
			sh -c 'mount -t tmpfs -o size=1m tmpfs "$1" || exit 125; shift; exec "$@"' \
			sh "$output" "$@"
	}
	unchanged_under full "$victims/fork_storm" 10
	# one line a process, and the same one
	[ "$(wc -l <"$home/recorded.err")" -ge 1 ]
	[ "$(wc -l <"$home/recorded.err")" -le 21 ]
	! grep -v '^cuflight: .*no space left' "$home/recorded.err"
}

# The dynamic linker of a setuid program accepts preloads only from the system's folders, and only
# setuid files. So the library replaces another one there, in a private view of the file system.
@test "a setuid program writes no recording and prints nothing" {
	need_root
	need_mounts
	command -v setpriv >/dev/null || skip "no setpriv here"
	local place
	place=$(realpath "$(ldconfig -p | sed -n 's|.* => \(/.*/libz.so.1\)$|\1|p' | head -n 1)")
	[ -f "$place" ] || skip "no libz to take the place of"
	open_to_all
	chmod 777 "$output"
	cp "$victims/holds_memory" "$(command -v grep)" "$library" "$home/"
	chmod 4755 "$home/holds_memory" "$home/grep" "$home/libcuflight.so"
	# shellcheck disable=SC2016
	as_nobody() {
		unshare -m sh -c 'mount --bind "$1" "$2" || exit 125; shift 2
			exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' \
			sh "$home/libcuflight.so" "$place" "$@"
	}
	as_nobody "$home/grep" -q . /proc/self/maps || skip "nobody may not come here"
	as_nobody env "LD_PRELOAD=${place##*/}" "$home/grep" -q "$place" /proc/self/maps ||
		skip "setuid has no effect here, or takes no preload"
	observe native as_nobody "$home/holds_memory" 20 7
	observe recorded as_nobody env "LD_PRELOAD=${place##*/}" "CUFLIGHT_OUTPUT=$output" \
		"CUFLIGHT_OPTIONS=$options" "$home/holds_memory" 20 7
	compare
	left_nothing "$output"
	said_nothing
}

@test "a program that locks itself in, alone and behind a container's filter" {
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -fno-builtin \
		"$root/tests/fault/others/confines_itself.c" -o "$home/confines_itself"
	"$home/confines_itself" contained prctl itself >/dev/null || skip "no seccomp filters here"
	options=size=4MiB
	for where in free contained; do
		for way in prctl seccomp; do
			unchanged_under command "$home/confines_itself" "$where" "$way" itself
			said_once "the program enabled a seccomp filter before the file was created"
			left_nothing "$output"
			unchanged_under command "$home/confines_itself" "$where" "$way" in_fork
			said_once "the program enabled a seccomp filter before the file was created"
			left_nothing "$output"
		done
		# what a child does to itself
		unchanged_under command "$home/confines_itself" "$where" prctl in_vfork
		said_nothing
		readable_in "$output"
		rm -f "$output"/*
	done
}
