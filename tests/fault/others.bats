#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Other objects define the same names: allocators, sanitizers, driver shims and stubs, other
# preloads. Whatever stands in front of the recorder or behind it, the program runs as it does
# without the recorder.
load broken.bash

sources=$root/tests/fault/others

# NAME SOURCE FLAG...: builds $home/NAME
compile() {
	local name=$1 source=$2
	shift 2
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin "$sources/$source" \
		-o "$home/$name" "$@" -ldl -lpthread
}
shared() { compile "$1" "$2" -shared -fPIC "${@:3}"; }

# PROGRAM PRELOAD...: PRELOAD names the other preloads; "us" is the recorder. Both runs keep the
# order.
same_with() {
	local program=$1 others=() all=() preload mode
	shift
	for preload in "$@"; do
		[ "$preload" = us ] || others+=("$preload")
		all+=("${preload/#us/$library}")
	done
	observe native env "LD_PRELOAD=${others[*]}" "$program"
	for mode in host=full host=sampled; do
		observe recorded env "LD_PRELOAD=${all[*]}" \
			"CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=start=1:$mode:size=4MiB" \
			"$program"
		compare
		said_nothing
	done
	observe recorded env "LD_PRELOAD=${all[*]}" CUFLIGHT_DISABLE=1 "$program"
	compare
	said_nothing
}

@test "a program with an allocator of its own, which lacks reallocarray and free_sized" {
	compile own own_malloc.c
	same_with "$home/own" us
	compile own own_malloc.c -rdynamic
	same_with "$home/own" us
}

@test "an allocator in front of the recorder, and behind it" {
	local name path found=
	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
		path=$(/sbin/ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
		[ -n "$path" ] || continue
		found=1
		for program in ls "sort /etc/passwd" \
			"python3 -c print(sum(map(len,map(str,range(9999)))))"; do
			printf '#!/bin/sh\nexec %s\n' "$program" |
				sed 's/-c \(.*\)/-c "\1"/' >"$home/program"
			chmod +x "$home/program"
			same_with "$home/program" "$path" us
			same_with "$home/program" us "$path"
		done
	done
	[ -n "$found" ] || skip "no other allocator is installed"
}

@test "programs built with a sanitizer, shared and static" {
	local flags
	# it refuses every preload in front of itself otherwise
	export ASAN_OPTIONS=verify_asan_link_order=0
	for flags in address "address -static-libasan" undefined "undefined -static-libubsan" \
		leak thread; do
		# shellcheck disable=SC2086 # a list of flags
		compile sanitized sanitized.c -fsanitize=$flags ||
			skip "the compiler has no -fsanitize=$flags"
		same_with "$home/sanitized" us
	done
}

@test "a sanitizer's library in front of the recorder" {
	compile sanitized sanitized.c -fsanitize=thread ||
		skip "the compiler has no ThreadSanitizer"
	same_with "$home/sanitized" "$("${CC:-cc}" -print-file-name=libtsan.so)" us
	compile sanitized sanitized.c -fsanitize=address
	same_with "$home/sanitized" "$("${CC:-cc}" -print-file-name=libasan.so)" us
}

@test "global variables with the names of driver functions" {
	compile pointers pointers.c
	same_with "$home/pointers" us
	compile pointers pointers.c -rdynamic
	same_with "$home/pointers" us
}

@test "a library's global variables with the names of driver functions" {
	shared libpointers.so pointers.c -Dmain=use_pointers
	echo 'int use_pointers(void); int main(void) { return use_pointers(); }' >"$home/main.c"
	"${CC:-cc}" "$home/main.c" -o "$home/main" "$home/libpointers.so" "-Wl,-rpath,$home"
	same_with "$home/main" us
	grep -qx 'cuMemAlloc 0' "$home/recorded.out"
	recorded "$home/main" >/dev/null
	"$build/cuflight" report "$output" | grep -q '3.00 MiB'
	"${CC:-cc}" "$home/main.c" -o "$home/main" "$home/libpointers.so" "-Wl,-rpath,$home" -Wl,-z,now
	same_with "$home/main" us
}

@test "weak references that nothing defines stay null" {
	for flags in "" "-fno-plt -Wl,-z,now" "-fPIE -pie -Wl,-z,norelro"; do
		# shellcheck disable=SC2086 # a list of flags
		compile weak weak_references.c $flags
		observe native "$home/weak"
		observe recorded env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" "$home/weak"
		compare
		grep -qx recorded "$home/recorded.err" # what is ours alone is there
		observe recorded env "LD_PRELOAD=$library" CUFLIGHT_DISABLE=1 "$home/weak"
		compare
	done
}

# The loader binds these before dlopen returns; the price is stated in interpose/README.md.
@test "weak references of a plugin find our functions, which refuse; dlsym answers as natively" {
	local way
	compile late late_references.c
	shared late.so late_references.c -DPLUGIN
	"$home/late" "$home/late.so" >"$home/native.out"
	[ "$(cat "$home/native.out")" = "weak 0 dlsym 0" ]
	for way in CUFLIGHT_DISABLE=0 CUFLIGHT_DISABLE=1; do
		env "LD_PRELOAD=$library" "CUFLIGHT_OUTPUT=$output" $way "$home/late" "$home/late.so" \
			>"$home/recorded.out"
		[ "$(cat "$home/recorded.out")" = "weak 1 dlsym 0 result 100" ]
	done
}

@test "two runtimes: a pointer to a function of one stays one to that" {
	local version
	for version in 12 13; do
		shared libcudart.so.$version two_runtimes.c -DVERSION=$version \
			-Wl,-soname,libcudart.so.$version
	done
	shared libhelper.so two_runtimes.c -DHELPER "$home/libcudart.so.13"
	compile two two_runtimes.c
	LD_LIBRARY_PATH=$home same_with "$home/two" us
	grep -qx "12's, called by the library: 12" "$home/recorded.out"
}

@test "another preload that stands in for a driver function, in front and behind" {
	compile linked linked.c -L"$build/sim" -l:libcuda.so.1
	shared quota.so quota.c
	shared quota_by_handle.so quota.c -DBY_HANDLE
	for quota in quota quota_by_handle; do
		same_with "$home/linked" "$home/$quota.so" us
		grep -qx '2 GiB: 2' "$home/recorded.out"
		same_with "$home/linked" us "$home/$quota.so"
		grep -qx '2 GiB: 2' "$home/recorded.out"
	done
}

@test "two copies of the recorder: the first one records, the other stands aside" {
	compile linked linked.c -L"$build/sim" -l:libcuda.so.1
	mkdir "$home/copy"
	cp "$library" "$home/copy/"
	same_with "$home/linked" us "$home/copy/libcuflight.so"
	same_with "$home/linked" "$home/copy/libcuflight.so" us
	same_with /bin/ls us "$home/copy/libcuflight.so" # no driver
	for file in "$output"/*.cuf; do
		"$build/cuflight" report --full "$file" >"$home/full"
		grep -q 'another library was preloaded' "$home/full" && return 1
	done
	LD_PRELOAD=$home/copy/libcuflight.so "$build/cuflight" doctor >"$home/doctor" 2>&1 || true
	tr -s ' \n' ' ' <"$home/doctor" | grep -q 'of two copies of the recorder the first one records'
}

@test "a library of stubs that opens the driver when it is first called" {
	shared libstubs.so stubs.c
	compile linked linked.c "$home/libstubs.so" "-Wl,-rpath,$home"
	same_with "$home/linked" us
	grep -qx 'cuInit 0' "$home/recorded.out"
}

@test "another preload that stands in for a runtime function, in front and behind" {
	shared wrapper.so runtime_wrapper.c
	same_with "$victims/runtime_linked" "$home/wrapper.so" us
	same_with "$victims/runtime_linked" us "$home/wrapper.so"
	grep -q 'the wrapper saw' "$home/recorded.out"
}

# SEED...: Python programs of tests/torture, which put allocators over the interpreter's own
python_layers() {
	local include python seed options
	python=$(python3 -c 'import sys; print(sys.executable)')
	include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
	[ -e "$include/Python.h" ] || skip "no Python.h for $python"
	"${CC:-cc}" -O1 -shared -fPIC "-I$include" "$root/tests/torture/layers.c" \
		-o "$home/layers.so"
	for seed in "$@"; do
		printf '#!/bin/sh\nexec %s\n' "$python -B $root/tests/torture/python_layers.py $seed" \
			>"$home/program"
		chmod +x "$home/program"
		observe native env "PYTHONPATH=$home" "$home/program"
		for options in '' start=1:sample=4KiB:python_objects=start; do
			observe recorded env "PYTHONPATH=$home" "LD_PRELOAD=$library" \
				"CUFLIGHT_OUTPUT=$output" "CUFLIGHT_OPTIONS=$options" "$home/program"
			compare
			said_nothing
		done
	done
}

@test "an extension's allocator over CPython's that hides the recorder, and passes large blocks on to it" {
	python_layers slabs "1 40" "4 40"
}

# The loader keeps what it loaded at the start. A thread may close anything else at any moment.
@test "an earlier constructor opens a plugin, or its thread opens and closes it for ever" {
	shared early.so closes_early.c
	# a note in front of its tables
	echo '__asm__(".section .note.room, \"a\", %note\n.zero 8192\n.text"); int nothing;' \
		>"$home/plugin.c"
	"${CC:-cc}" -shared -fPIC -nostdlib "$home/plugin.c" -o "$home/plugin.so"
	export PLUGIN=$home/plugin.so
	HOW=hidden same_with "$(type -P uname)" us "$home/early.so"
	for _ in {1..20}; do
		HOW=closes same_with "$(type -P uname)" us "$home/early.so"
	done
}
