#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight doctor`: each problem that it knows is caused here and reported with advice; nothing is left behind.
load ../cli.bash

# NAME WORD...: the check NAME is a problem, and its lines have the words
problem() {
	local name=$1
	shift
	"$cuflight" doctor --json "${arguments[@]}" >out 2>err || true
	node -e '
		const check = JSON.parse(require("fs").readFileSync("out")).checks.find((c) => c.name === process.argv[1]);
		const text = `${check.found} ${check.todo}`;
		const missing = process.argv.slice(2).filter((word) => !text.includes(word));
		if (check.state !== "problem" || !check.todo || missing.length) { console.error(check, missing); process.exit(1); }
	' "$name" "$@"
}

@test "no problem: status 0, all checks ok or notes, nothing left behind" {
	expect 0 doctor -- true
	lacks out '^PROBLEM'
	holds out 'ok       trial' 'ok       dynamic' 'ok       libc' 'ok       machine'
	holds err 'recording will work'
	rm out err
	[ -z "$(ls -A)" ]
}

@test "a problem: 1, and the command is not run" {
	expect 1 doctor -- no-such-command
	holds out 'PROBLEM  command' 'not found'
	expect 0 doctor -- touch ran
	[ ! -e ran ]
}

@test "static programs" {
	echo 'int main(void) { return 0; }' >s.c
	gcc -static -o static s.c 2>/dev/null || skip "no static libc"
	arguments=(-- ./static)
	problem dynamic 'statically linked' 'dynamically'
	gcc -static-pie -o static s.c 2>/dev/null || skip "no static PIE"
	problem dynamic 'statically linked'
}

@test "setuid programs" {
	[ "$(id -u)" = 0 ] || skip "only root can make one for another user"
	cp "$(type -P true)" setuid
	chown 65534 setuid
	chmod u+s setuid
	arguments=(-- ./setuid)
	problem privileges setuid LD_PRELOAD
}

@test "another libc, and another machine" {
	echo 'int main(void) { return 0; }' >m.c
	gcc -o musl m.c -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
	arguments=(-- ./musl)
	problem libc musl glibc 'the program runs as without cuflight'
	# glibc's version is that of the libc in the loader's folder
	arguments=(-- "$(type -P true)")
	expect 0 doctor "${arguments[@]}"
	holds out "glibc $(getconf GNU_LIBC_VERSION | cut -d' ' -f2) ("
	mkdir old
	printf 'GNU C Library (old) stable release version 2.12.\n%0100d' 0 >old/libc.so.6
	cp /lib64/ld-linux-x86-64.so.2 old/
	gcc -o ancient m.c -Wl,--dynamic-linker="$PWD/old/ld-linux-x86-64.so.2"
	arguments=(-- ./ancient)
	problem libc '2.12' '2.17'
	cp musl other
	printf '\267\000' | dd of=other bs=1 seek=18 conv=notrunc status=none # e_machine: aarch64
	arguments=(-- ./other)
	problem machine 'another machine (aarch64'
}

@test "scripts are followed to what runs them" {
	printf '#!/usr/bin/env -S A=1 ./middle -x\n' >script
	printf '#!%s\n' "$(type -P true)" >middle
	chmod +x script middle
	expect 0 doctor -- ./script
	holds out "a script run by"
	grep -q "$(type -P true)" out
	printf '#!/no/such/interpreter\n' >orphan
	printf '#!./loop\n' >loop
	chmod +x orphan loop
	arguments=(-- ./orphan)
	problem command '/no/such/interpreter: not found' 'first line'
	arguments=(-- ./loop)
	problem command './loop'
}

@test "wrappers: programs that start others elsewhere" {
	printf '#!/bin/sh\nexec "$@"\n' >sudo
	chmod +x sudo
	arguments=(-- ./sudo python3 server.py)
	problem wrapper 'sudo clears the environment' 'put cuflight inside'
}

@test "no library, no directory, no space" {
	arguments=(--library=/no/libcuflight.so)
	problem library '/no/libcuflight.so: No such file'
	: >file
	arguments=(--recordings="$home/file/deeper/")
	problem directory 'cannot write to' 'CUFLIGHT_OUTPUT'
	if [ "$(id -u)" = 0 ] && mkdir tiny && mount -t tmpfs -o size=1m tmpfs tiny 2>/dev/null; then
		arguments=(--recordings="$home/tiny/")
		problem space 'free in' '--size'
		problem trial 'recorded '
		umount tiny
	fi
}

@test "a library that does not load, or prints something, fails the trial" {
	echo 'int x;' >l.c
	mkdir lib
	gcc -shared -fPIC -o lib/libcuflight.so l.c
	arguments=(--library="$home/lib/libcuflight.so")
	problem trial '0 recordings'
	echo text >lib/libcuflight.so
	problem trial '0 recordings' 'it printed:'
	rm -f out err l.c
	[ "$(ls -A)" = lib ]
}

@test "the environment: other preloads, a sanitizer, switched off" {
	LD_PRELOAD=/nonexistent/libother.so "$cuflight" doctor >out 2>/dev/null
	grep -q '^note  *other preloads  */nonexistent/libother.so' out
	LD_PRELOAD=/nonexistent/libasan.so.8 "$cuflight" doctor >out 2>/dev/null || true
	grep -q '^PROBLEM  *other preloads' out
	arguments=(-- true)
	CUFLIGHT_DISABLE=1 problem 'switched off' 'CUFLIGHT_DISABLE=1' 'unset'
}

@test "the CUDA driver, where there is one" {
	LD_LIBRARY_PATH=$build/sim "$cuflight" doctor >out 2>/dev/null
	[ -e "$build/sim/libcuda.so.1" ] || skip "no simulated driver built"
	grep -q '^ok  *CUDA driver .*libcuda.so.1' out
	grep -q '^ok  *weak references .*libcuda.so.1' out
}

# The price that interpose/README.md states. tests/fault/others.bats has what it is.
@test "weak references of plugins, where there is no CUDA driver" {
	"$cuflight" doctor >out 2>/dev/null
	! grep -q '^ok  *CUDA driver' out || skip "this machine has a driver"
	grep -q '^note  *weak references ' out
	grep -q 'ask by dlsym' out
}
