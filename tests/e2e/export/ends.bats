#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An export, a page or a pack that does not come to its end leaves no file, and no half file.

load ../cli

forms='folded pprof perfetto torch-snapshot heaptrack csv ndjson sqlite parquet html json pack'
# what a command does to files, so the moments at which it may be interrupted
calls=openat,write,pwrite64,ftruncate,mkdir,linkat,link,rename,unlink

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	local root=$BATS_TEST_DIRNAME/../../.. build=${BUILD:-$BATS_TEST_DIRNAME/../../../build}
	"$root/scripts/simcuda" "$build/cuflight" run -q --size=4MiB -o one.cuf -- "$build/victims/leak_per_request" >truth
}

# FORM: the command that writes it to out/; its copies, if it makes some, go to copies/
command_of() {
	case $1 in
	html) args=(report --html -o out/page.html) ;;
	json) args=(report --json -o out/report.json) ;;
	pack) args=(pack -o out/one.cufpack) ;;
	csv | ndjson | parquet) args=(export --to="$1" -o out) ;;
	*) args=(export --to="$1" -o "out/$1") ;;
	esac
	args+=("$BATS_FILE_TMPDIR/one.cuf")
	rm -rf out copies
	mkdir out copies
	export TMPDIR=$home/copies
}

# FORM: leaves what a whole run writes in whole/
write_whole() {
	command_of "$1"
	"$cuflight" "${args[@]}" >/dev/null 2>err
	[ -z "$(ls copies)" ]
	rm -rf whole
	mv out whole
	[ -n "$(find whole -type f)" ]
}

# Files that are there are complete: they are those of the whole run. No copy is left.
nothing_half() {
	local file
	find copies -mindepth 1 >left
	while read -r file; do
		if [ "$1" = pack ]; then
			"$cuflight" report "$file" >/dev/null || echo "$file" >>left
		else
			cmp -s "$file" "whole/${file#out/}" || echo "$file" >>left
		fi
	done < <(find out -type f)
	[ ! -d out/_unfinished ] || echo out/_unfinished >>left
	[ ! -s left ] || { echo "$*:" >&2; cat left >&2; return 1; }
}

# FORM SIGNAL STATUS: at moments from the first to the last of its calls
interrupt() {
	local form=$1 count at hit=0
	command_of "$form"
	strace -qq -e trace=$calls -o log "$cuflight" "${args[@]}" >/dev/null 2>&1
	count=$(wc -l <log)
	for at in $(seq 1 $((count / ${MOMENTS:-8} + 1)) "$count") $((count - 2)) $((count - 1)); do
		command_of "$form"
		status=0
		strace -qq -o /dev/null -e trace=$calls -e "inject=$calls:signal=$2:when=$at" "$cuflight" "${args[@]}" >/dev/null 2>&1 || status=$?
		[ "$status" = 0 ] || [ "$status" = "$3" ] || { echo "$form: status $status" >&2; return 1; }
		[ "$status" = 0 ] || hit=$((hit + 1))
		[ "$2" = KILL ] && [[ $form = parquet && -d out/_unfinished ]] && rmdir out/_unfinished
		nothing_half "$form" "$2 at call $at of $count"
	done
	[ $hit -gt 0 ] || { echo "$form was never interrupted: $count calls" >&2; return 1; }
}

needs_strace() { strace -qq -o /dev/null -e trace=none true 2>/dev/null || skip "strace does not run here"; }

@test "interrupted at any moment, nothing half is left" {
	needs_strace
	for form in $forms; do
		write_whole "$form"
		interrupt "$form" TERM 143
	done
	for form in sqlite csv pack; do
		write_whole "$form"
		interrupt "$form" INT 130
	done
}

@test "killed, only a database or the copies of a pack have a name that could be left" {
	needs_strace
	python3 -c 'import os; os.open(".", os.O_TMPFILE | os.O_WRONLY)' || skip "this file system has no files without a name"
	for form in $forms; do
		[[ $form != sqlite && $form != pack ]] || continue
		write_whole "$form"
		interrupt "$form" KILL 137
	done
}

@test "a result that is read only in part leaves nothing" {
	for form in folded pprof perfetto torch-snapshot heaptrack json pack; do
		command_of "$form"
		args=("${args[@]/#out\/*/-}")
		"$cuflight" "${args[@]}" 2>/dev/null | head -c 1 >/dev/null || true
		[ -z "$(find copies out -mindepth 1)" ]
	done
	command_of csv
	{ "$cuflight" export --to=csv --table=blocks "$BATS_FILE_TMPDIR/one.cuf" || true; } | { true; }
	[ -z "$(find copies out -mindepth 1)" ]
}

# ROOM PLACE COMMAND...: with a disk at PLACE that has so many bytes left; prints the files there
on_full_disk() {
	local room=$1 place=$2
	shift 2
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m sh -c 'mount -t tmpfs -o "size=$(($1 + 4096))" tmpfs "$2" || exit 125
		head -c 4096 /dev/zero >"$2/filler"; shift 2
		"$@" 2>err; status=$?; find out copies -type f ! -name filler; exit $status' sh "$room" "$place" "$@"
}

@test "on a full disk nothing is left, and the reason is printed" {
	unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null || skip "no mounts allowed here"
	for form in $forms; do
		write_whole "$form"
		quarter=$(find whole -type f -printf '%b\n' | awk '{ sum += $1 } END { printf "%d", int(sum * 512 / 4 / 4096) * 4096 }')
		for place in out copies; do
			[ $place = out ] || [ "$form" = pack ] || continue
			command_of "$form"
			status=0
			on_full_disk "$([ $place = copies ] && echo 0 || echo $quarter)" $place "$cuflight" "${args[@]}" >left || status=$?
			[ $status = 2 ] || { echo "$form: status $status" >&2; return 1; }
			grep -qE 'No space left|disk is full' err || { cat err >&2; return 1; }
			[ "$form" = parquet ] || [ ! -s left ] || { cat left >&2; return 1; }
			lacks left 'tmp\|_unfinished'
		done
	done
}

@test "a limit on the size of files ends it, and nothing is left" {
	for form in $forms; do
		command_of "$form"
		(ulimit -f 1; exec "$cuflight" "${args[@]}") >/dev/null 2>err && status=0 || status=$?
		[ $status != 0 ] || [[ $form = folded || $form = csv || $form = ndjson ]]
		[ $status = 0 ] || [ "$form" = parquet ] || [ -z "$(find out copies -type f)" ]
	done
}

@test "a place that cannot be written is said before the recording is read, and a recording that cannot be read leaves nothing" {
	expect 2 export --to=folded -o missing/x.folded missing.cuf
	holds err "cannot write 'missing/x.folded'"
	expect 2 export --to=folded -o x.folded missing.cuf
	holds err "cannot open 'missing.cuf'"
	expect 2 export --to=folded --at='#99' -o x.folded "$BATS_FILE_TMPDIR/one.cuf"
	[ -z "$(compgen -G 'x.folded*')" ]
}
