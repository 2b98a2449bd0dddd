#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What `make install` installs works from there, and `make uninstall` removes all of it.
bats_require_minimum_version 1.5.0
load ../preload.bash

make_it() { make -s -C "$root" O="$(realpath --relative-to="$root" "$build")" DESTDIR="$BATS_TEST_TMPDIR/stage" PREFIX=/opt/cuflight "$@" >&2; }

@test "installed: the command finds its library, records and reports; uninstalled: nothing is left" {
	make_it install
	local at=$BATS_TEST_TMPDIR/stage/opt/cuflight
	[ -x "$at/bin/cuflight" ] && [ -f "$at/lib/libcuflight.so" ] && [ -f "$at/share/man/man1/cuflight.1" ]
	cd "$BATS_TEST_TMPDIR"
	run -0 "$at/bin/cuflight" run -q -o recordings/ -- sh -c 'echo recorded'
	[ "$output" = recorded ]
	"$at/bin/cuflight" report recordings/ >report
	grep -q . report
	echo 'int main(void) { return cuflight_version(); }' | cc -x c -include cuflight.h -I"$at/include" -o says -
	./says
	run -1 "$at/bin/cuflight" run -q -o recordings/ -- ./says
	make_it uninstall
	[ -z "$(find "$BATS_TEST_TMPDIR/stage" -type f)" ]
}

@test "make without npm says that there is no page, and how to get it" {
	run make -s -n -C "$root" O="$BATS_TEST_TMPDIR/build" page_modules= HTML_JS=/none HTML_CSS=/none all
	[[ $output == *"built without the page of 'cuflight report --html'"*"install npm, run 'scripts/setup build'"* ]]
	run make -s -n -C "$root" O="$BATS_TEST_TMPDIR/build" page_modules= HTML_JS=Makefile HTML_CSS=Makefile all
	[[ $output != *'built without the page'* ]]
}

# Ubuntu's compiler and most packagers add them.
@test "flags of a distribution make no reference to what the recorder does without" {
	local made=$BATS_TEST_TMPDIR/build name
	for name in store/recording code/modules; do
		BUILD='' make -s -C "$root" O="$made" CFLAGS='-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong' "$made/obj/interpose/$name.o"
		run -1 grep -E '__[a-z]+_chk' <(nm -u "$made/obj/interpose/$name.o")
	done
}

# On a fresh machine the optional headers are not there, and the first build must not ask for them.
@test "libraries that are not there are left out of the build" {
	local made=$BATS_TEST_TMPDIR/build sources
	sources=$(BUILD='' make -pn -C "$root" O="$made" CC="${CC:-cc} -nostdinc" 2>/dev/null | grep '^cmd_src := ')
	[[ $sources == */http_absent.c* && $sources != */http_daemon.c* ]]
	[[ $sources == */screen_absent.c* && $sources != */curses_* ]]
	BUILD='' make -s -C "$root" O="$made" "$made"/obj/analysis/cmd/{serve/http,live/screen}_absent.o
}

@test "install writes the command and a recorder that \$LIB finds" {
	load ../cli.bash
	home=$BATS_TEST_TMPDIR && cd "$home"
	expect 2 install
	holds err "takes one directory"
	expect 0 install here/
	cmp here/bin/cuflight "$cuflight"
	cmp here/lib/libcuflight.so "$build/libcuflight.so"
	cmp here/lib64/libcuflight.so "$build/libcuflight.so"
	holds err "here/bin/cuflight env"
	here/bin/cuflight env >lines
	grep -qF "/here/\$LIB/libcuflight.so" lines
	# shellcheck source=/dev/null
	(. ./lines && CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=plain.cuf /bin/true)
	expect 0 report plain.cuf
	# what runs keeps the old files
	expect 0 install here
	expect 2 install /proc/here
	holds err "cannot write"
}
