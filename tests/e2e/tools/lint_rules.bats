#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The rules of scripts/lint can fail. Each test plants one fault in a small tree of its own and sees the rule report it;
# the same tree without the fault passes.

# A tree of two rooms with one file each. abi is below platform.
setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/both "$tree"/interpose/{abi,platform} "$tree"/analysis "$tree"/tests "$tree"/.ci "$tree"/build/obj "$tree"/scripts
	cp "$root"/scripts/{lint,lint-arrows,lint-words,measure-source} "$tree/scripts"
	cd "$tree" || return
	touch .ci/run
	echo '# Reads recordings.' >README.md
	printf '%s\n' 'interpose/abi      -' 'interpose/platform interpose/abi' >scripts/layers.txt
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' '/* Returns what it was passed. */' \
		'int abi_value(int value) { return value; }' >interpose/abi/value.c
	printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' 'int abi_value(int value);' \
		'int platform_value(int value) { return abi_value(value); }' >interpose/platform/value.c
	git init -q .
}

# compiles the tree as the Makefile does: one object for each file
compile() {
	local file
	for file in interpose/*/*.c; do
		mkdir -p "build/obj/${file%/*}"
		cc -I. -c "$file" -o "build/obj/${file%.c}.o"
	done
	: >build/libcuflight.so
}

# RULE: scripts/lint has it and reports nothing
passes() {
	compile
	scripts/lint --tap --rule="$1" build >lint.out 2>&1 && grep -qx "ok 1 - $1" lint.out || { cat lint.out; return 1; }
}

# RULE FINDING: the rule passed before the fault; now it fails, and one of its lines has the finding
reports() {
	compile
	scripts/lint --tap --rule="$1" build >lint.out 2>&1 && { echo "lint found nothing"; return 1; }
	grep -qx "not ok 1 - $1" lint.out && grep -qF -- "$2" lint.out || { cat lint.out; return 1; }
}

@test "hooks that include another header of the recorder, and a front door with 31 functions, are reported" {
	mkdir -p interpose/{record,hooks/malloc}
	for number in $(seq 30); do echo "void cuf_function_$number(void);"; done >interpose/record/recorder.h
	echo '#include "interpose/record/recorder.h"' >interpose/hooks/malloc/libc.c
	passes 'hooks use the front door'
	passes 'front door is small'
	echo '#include "interpose/process/gate.h"' >>interpose/hooks/malloc/libc.c
	reports 'hooks use the front door' 'interpose/hooks/malloc/libc.c:2:'
	sed -i '$d' interpose/hooks/malloc/libc.c
	echo 'void cuf_one_more(void);' >>interpose/record/recorder.h
	reports 'front door is small' 'interpose/record/recorder.h:1: 31 functions'
}

@test "a line of more than 100 columns is reported; tabs count eight" {
	passes 'lines and conditionals'
	printf '\t/* %s */\n' "$(printf 'x%.0s' {1..88})" >>interpose/abi/value.c
	reports 'lines and conditionals' 'interpose/abi/value.c:4:'
	sed -i '$d' interpose/abi/value.c
	printf '\t/* %s */\n' "$(printf 'x%.0s' {1..86})" >>interpose/abi/value.c
	passes 'lines and conditionals'
}

@test "a conditional inside a conditional is reported, two next to each other are not" {
	echo 'int two(int a) { return (a ? 1 : 2) + (a ? 3 : 4); }' >>interpose/abi/value.c
	passes 'lines and conditionals'
	echo 'int nested(int a, int b) { return a ? 1 : b ? 2 : 3; }' >>interpose/abi/value.c
	reports 'lines and conditionals' 'interpose/abi/value.c:5:'
}

@test "a word that the project does not use is reported in comments, strings, documents and scripts, not in names" {
	git add -A
	echo 'static int books; /* a name is no text */ int *abi_books(void) { return &books; }' >>interpose/abi/value.c
	passes 'plain words'
	echo '/* the allocator keeps books */' >>interpose/abi/value.c
	reports 'plain words' 'interpose/abi/value.c:5: "books"'
	sed -i '$d' interpose/abi/value.c
	echo 'const char *abi_text(void) { return "for want of memory"; }' >>interpose/abi/value.c
	reports 'plain words' 'interpose/abi/value.c:5: "for want of"'
	sed -i '$d' interpose/abi/value.c
	passes 'plain words'
	echo 'It reads recordings alone.' >>README.md
	reports 'plain words' 'README.md:2: "alone"'
	echo '# Reads recordings.' >README.md
	printf '#!/bin/sh\n# prints what the report says\n' >scripts/example
	git add -A
	reports 'plain words' 'scripts/example:2: "says"'
}

@test "a folder without a row in layers.txt is reported" {
	passes layers
	sed -i '/^interpose.platform/d' scripts/layers.txt
	reports layers 'interpose/platform/value.c:1: this folder has no row in scripts/layers.txt'
}

@test "an include that layers.txt does not list is reported, and one that is not written from the root" {
	echo 'int platform_value(int value);' >interpose/platform/value.h
	sed -i '1a #include "interpose/platform/value.h"' interpose/platform/value.c
	passes layers
	sed -i '1a #include "interpose/platform/value.h"' interpose/abi/value.c
	reports layers 'interpose/abi/value.c:2: interpose/abi may not include interpose/platform'
	cp interpose/platform/value.h interpose/abi/
	sed -i '2s/.*/#include "value.h"/' interpose/abi/value.c
	reports layers 'interpose/abi/value.c:2: write the path from the root'
}

@test "a call against the arrows is reported, also without an include" {
	passes 'arrows point downwards'
	echo 'int platform_value(int); int abi_upwards(int value) { return platform_value(value); }' >interpose/abi/upwards.c
	reports 'arrows point downwards' 'interpose/abi/upwards.c:1: interpose/abi may not use interpose/platform: platform_value'
}

@test "a row of layers.txt that lists a room above it is reported" {
	printf '%s\n' 'interpose/abi      interpose/platform' 'interpose/platform interpose/abi' >scripts/layers.txt
	reports 'arrows point downwards' 'scripts/layers.txt:1: interpose/abi may not use interpose/platform: it has no row above'
}

@test "a circle of files is reported, also inside one room" {
	echo 'int abi_back(int); int abi_there(int value) { return abi_back(value); }' >interpose/abi/there.c
	echo 'int abi_back(int value) { return value; }' >interpose/abi/back.c
	passes 'arrows point downwards'
	echo 'int abi_there(int); int abi_back(int value) { return value ? abi_there(value - 1) : 0; }' >interpose/abi/back.c
	reports 'arrows point downwards' 'interpose/abi/back.c:1: a circle of 2 files'
}

@test "a folder of more than 25 files is reported" {
	local number
	for number in {1..24}; do echo "int abi_$number;" >interpose/abi/file_$number.c; done
	passes 'folders of at most 25 files'
	echo 'int abi_25;' >interpose/abi/file_25.c
	reports 'folders of at most 25 files' 'interpose/abi:1: 26 files (limit 25)'
}

@test "an npm package that Debian 12's Node.js cannot run is reported" {
	local range
	lock() { printf '{"packages": {"node_modules/tool": {"engines": {"node": "%s"}}}}' "$1" >tests/package-lock.json; }
	for range in '>=18' '>= 14.16' '^12.20.0 || ^18.18.0 || >=20' '18 || 20 || >=22' '14 >=14.17 || >=16' '*'; do
		lock "$range"
		passes 'npm packages run on node 18'
	done
	for range in '>=20' '>= 20.19.0' '20 || >=22' '^20.19.0 || >=22.12.0' '>=18.21'; do
		lock "$range"
		reports 'npm packages run on node 18' "tests/package-lock.json:1: node_modules/tool wants Node.js"
	done
}

@test "a function that the shipped command's C library has not is reported" {
	ls /lib/ld-musl-*.so.1 >/dev/null 2>&1 || skip "no musl here (Debian's package musl)"
	# FUNCTION: a command that calls it
	command_calls() {
		printf '#include <stdlib.h>\nint %s(void);\nint command(char *p, char **end) { return %s() + (int)strtoll(p, end, 0); }\n' "$1" "$1" >command.c
		cc -fno-builtin -D_GNU_SOURCE -c command.c -o command.o
		rm -f build/libanalysis.a && ar rcs build/libanalysis.a command.o
	}
	command_calls getpid
	passes 'command calls what musl has'
	command_calls gnu_get_libc_version
	reports 'command calls what musl has' 'command.o: calls gnu_get_libc_version'
	command_calls own_function
	passes 'command calls what musl has'
}
