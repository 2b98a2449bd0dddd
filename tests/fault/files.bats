#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The place for the recording is full, read-only, missing, forbidden or limited. The program runs as
# it does natively, and one line on stderr gives the reason.
load broken.bash

# SETTINGS COMMAND...: with a tmpfs of these settings at $output
with_tmpfs() {
	local settings=$1
	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m sh -c 'mount -t tmpfs -o "$1" tmpfs "$2" || exit 125
		shift 2; "$@"; status=$?; ls -A "$output" >"$left"; exit $status' \
		sh "$settings" "$output" "$@"
}
full_disk() { with_tmpfs size=1m "$@"; }
read_only() { with_tmpfs ro "$@"; }

@test "a full disk: the program is unchanged, and one line gives the reason" {
	need_mounts
	export output left=$home/left
	unchanged_under full_disk "$victims/holds_memory" 20 7
	said_once 'no space left'
	[ ! -s "$home/left" ]
}

@test "a disk that is full except for a part of the file" {
	need_mounts
	export output left=$home/left
	options=start=1:size=64MiB
	almost_full() { with_tmpfs size=30m "$@"; }
	unchanged_under almost_full "$victims/holds_memory" 20 7
	said_once 'no space left'
	[ ! -s "$home/left" ]
}

@test "a read-only file system" {
	need_mounts
	export output left=$home/left
	unchanged_under read_only "$victims/holds_memory" 20 7
	said_once 'read-only file system'
}

@test "a folder that is missing and can be made" {
	output=$home/not/yet/there/
	unchanged_under command "$victims/holds_memory" 20 7
	said_nothing
	readable_in "$output"
}

@test "a folder that is missing and cannot be made" {
	output=/proc/no/such/folder/
	unchanged_under command "$victims/holds_memory" 20 7
	said_once "no such directory"
}

@test "a file where a folder should be" {
	output=/dev/null/folder/
	unchanged_under command "$victims/holds_memory" 20 7
	said_once 'not a directory'
}

@test "a folder that another user owns" {
	need_root
	command -v setpriv >/dev/null || skip "no setpriv here"
	open_to_all
	chmod 755 "$output"
	cp "$library" "$victims/holds_memory" "$build/sim/libcuda.so.1" "$home"
	library=$home/libcuflight.so
	LD_LIBRARY_PATH=$home
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	as_nobody test -x "$home/holds_memory" || skip "nobody may not come here"
	unchanged_under as_nobody "$home/holds_memory" 20 7
	said_once 'permission denied'
	left_nothing "$output"
}

@test "a symbolic link where the recording would go is not followed" {
	echo precious >"$home/precious"
	ln -s "$home/precious" "$home/link.cuf"
	output=$home/link.cuf
	unchanged_under command "$victims/holds_memory" 20 7
	[ "$(<"$home/precious")" = precious ]
}

@test "an older recording of the same name" {
	echo older >"$home/run.cuf"
	output=$home/run.cuf
	unchanged_under command "$victims/holds_memory" 20 7
	[ "$(<"$home/run.cuf")" = older ]
	[ -s "$home/run.2.cuf" ]
}

@test "a limit on the size of files" {
	limited() { (ulimit -f 100 && exec "$@"); }
	unchanged_under limited "$victims/holds_memory" 20 7
	said_once 'file size limit'
	left_nothing "$output"
}

@test "a limit on the size of files that only the recording reaches" {
	limited() { (ulimit -f 1000 && exec "$@"); }
	options=start=0:size=64MiB
	unchanged_under limited "$victims/holds_memory" 80 7
	said_once 'file size limit'
	left_nothing "$output"
}

@test "a limit on the address space: a smaller recording, and one line gives the reason" {
	limited() { (ulimit -v 200000 && exec "$@"); }
	options=start=1:size=1GiB
	unchanged_under limited "$victims/holds_memory" 20 7
	said_once 'instead of 1.00 GiB: the limit is 195 MiB of addresses'
	"$build/cuflight" report --json "$output" >"$home/report.json"
	python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["processes"][0]["end_state"] == "exit" and r["host"]["live_peak_bytes"] >= 20 << 20, r["host"]' "$home/report.json"
}

# The program takes all addresses but a few MiB before the recording wants a file.
@test "a file is made though there are no addresses for it next to the recording" {
	cat >"$home/full.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#define MiB ((size_t)1 << 20)
int main(void)
{
	unsigned long pages;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		return 2;
	fclose(statm);
	struct rlimit limit = { pages * 4096 + 160 * MiB, RLIM_INFINITY };
	setrlimit(RLIMIT_AS, &limit);
	if (mmap(NULL, 60 * MiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 3;
	for (int i = 0; i < 90; i++)
		memset(malloc(MiB), 1, MiB);
	puts("filled");
	return 7;
}
EOF
	"${CC:-cc}" -g "$home/full.c" -o "$home/full"
	options=start=0:size=64MiB
	unchanged_under command "$home/full"
	said_nothing
	"$build/cuflight" report --json "$output" >"$home/report.json"
	python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["processes"][0]["end_state"] == "exit" and r["host"]["live_peak_bytes"] >= 90 << 20, r["host"]' "$home/report.json"
}

@test "a program that closes every descriptor" {
	mkdir "$home/app"
	unchanged_under command "$victims/closes_descriptors" "$home/app"
	said_nothing
	readable_in "$output"
}

@test "a program that closes every descriptor before there is a recording" {
	mkdir "$home/app"
	options=start=0
	unchanged_under command "$victims/closes_descriptors" "$home/app"
	said_nothing
	readable_in "$output"
}

@test "children that are forked while the recording moves to its file keep no descriptor of it" {
	options=start=0:size=512MiB # filled, not reserved, on tmpfs: the file is open for long
	[ -d /dev/shm ] && output=$(mktemp -d /dev/shm/cuflight.XXXXXX)
	unchanged_under command "$victims/forks_while_it_grows"
	readable_in "$output"
	rm -rf "${output:?}"
}

@test "no process reads standard error any more" {
	# shellcheck disable=SC2016
	unread() {
		sh -c 'exec 3>&1; { sleep 0.2; "$@" 2>&1 >&3; echo $? >"$0"; } | true
			exit "$(cat "$0")"' "$home/inner" "$@"
	}
	output=/proc/no/such/folder/
	unchanged_under unread "$victims/holds_memory" 20 7
}

@test "standard descriptors are closed" {
	# shellcheck disable=SC2016
	closed() { sh -c '"$@" 2>&- <&-' sh "$@"; }
	unchanged_under closed "$victims/holds_memory" 20 7
	readable_in "$output"
}

@test "the library opened and closed by a program leaves no trace: no file, no memory" {
	cd "$home" || return
	cat >opens.c <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static long kib(void)
{
	long size = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	fscanf(file, "%ld", &size);
	fclose(file);
	return size * 4;
}
int main(int argc, char **argv)
{
	long before = kib();
	for (int i = 0; i < 100; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return 1;
		for (int k = 0; k < 100; k++)
			free(malloc(k * 3000));
		dlclose(library);
	}
	printf("%ld KiB more\n", kib() - before);
	return kib() - before > 4096;
}
EOF
	cc -w -o opens opens.c -ldl
	CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=$home/left/ ./opens "$build/libcuflight.so" 2>err
	[ ! -s err ]
	[ ! -e left ]
}
