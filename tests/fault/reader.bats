#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Recordings that no recorder writes (hostile.py). The reader ends with a report or with one error,
# within work and memory that depend on the size of the file: 1 s of CPU time and 64 MiB for each
# MiB, and what any report needs.
load broken.bash

cuflight=$build/cuflight

# Sanitizers reserve terabytes of addresses, so only a plain build has a limit on them.
setup_file() {
	export LIMIT_MEMORY=yes
	[[ "${BUILD:-}" != *address* && "${BUILD:-}" != *thread* ]] || LIMIT_MEMORY=no
}

# NAME [NUMBER...]: builds $home/NAME.cuf; mib is its size, at least 1
hostile() {
	local bytes
	bytes=$(python3 "$root/tests/fault/hostile.py" "$root" "$1" "$home/$1.cuf" "${@:2}")
	mib=$(((bytes + 1048575) / 1048576))
}

# NAME OPTION...: reports within the limits; leaves $home/out, $home/err and sets status
bounded() {
	status=0
	(
		ulimit -t $((2 + mib)) -f 2097152
		[ "$LIMIT_MEMORY" = no ] || ulimit -v $((400000 + 65536 * mib))
		"$cuflight" report "${@:2}" "$home/$1.cuf" >"$home/out" 2>"$home/err"
	) || status=$?
	# a shell that was killed by a limit has a status above 128
	[ "$status" = 0 ] || [ "$status" = 2 ]
	[ "$status" = 0 ] || [ "$(wc -l <"$home/err")" = 1 ]
}

# NAME [NUMBER...]: both forms of the report end, and the document is JSON
ends() {
	hostile "$@"
	bounded "$1"
	bounded "$1" --full --no-pager
	bounded "$1" --json
	[ "$status" = 2 ] || python3 -m json.tool "$home/out" >"$home/checked"
}

# Whether the document has no control character but the end of a line
is_clean() { ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1"; }

@test "a request of 0 bytes for a server with slots" { ends divide; }
@test "blocks of 1 TiB, fifteen thousand of them" { ends pages; }
@test "statistics of six thousand allocators at 300 failures" { ends allocators; }
@test "live blocks that were made to collide" { ends collide; }
@test "26,000 texts that are all different" { ends unhooked; }
@test "11,000 modules whose files do not exist" { ends modules; }
@test "reservations that all overlap" { ends reservations; }
@test "400 failures of as many threads" { ends ladders; }

@test "a file longer than any recording is refused, however little of it is on the disk" {
	hostile divide
	truncate -s 16G "$home/divide.cuf"
	mib=1
	bounded divide --json
	[ "$status" = 2 ]
	grep -q 'larger than any recording' "$home/err"
	rm "$home/divide.cuf"
}

@test "a list of 26,000 rows is cut, and the rest is counted" {
	ends notes
	python3 - "$home/out" <<-'END'
	import json, sys
	coverage = json.load(open(sys.argv[1]))['coverage']
	rows, left_out = len(coverage['blind']), coverage['blind_left_out']
	assert rows == 4096, rows
	assert rows + left_out >= 26000, left_out
	END
}

@test "a name of 1 MB is cut, and the rest is counted" {
	ends longname
	[ "$status" = 0 ]
	grep -q 'aaaa\.\.\. (983616 bytes more)' "$home/out"
	[ "$(stat -c %s "$home/out")" -lt 67108864 ]
}

@test "two thousand stacks of a thousand frames" { ends manyframes; }

@test "a document that repeats long names without end is refused, and no file is left" {
	hostile repeated
	bounded repeated --json
	[ "$status" = 2 ]
	grep -q 'the document would be longer than' "$home/err"
	status=0
	"$cuflight" report --json -o "$home/document" "$home/repeated.cuf" 2>"$home/err" || status=$?
	[ "$status" = 2 ]
	[ "$(find "$home" -name 'document*' | wc -l)" = 0 ]
}

# Its symbols and its debug information take several MiB each time that they are read.
@test "one file under 200 spellings of its path is read once" {
	hostile spellings "$(realpath "$cuflight")"
	bounded spellings --json
	[ "$status" = 0 ]
	grep -q '"module":"cuflight"' "$home/out"
}

@test "texts that a terminal acts on are clean in text, JSON and errors" {
	hostile escape
	for options in "" "--full --no-pager" "--json" "-v"; do
		# shellcheck disable=SC2086 # options are words
		LC_ALL=C.UTF-8 bounded escape $options
		[ "$status" = 0 ]
		is_clean "$home/out"
		is_clean "$home/err"
	done
}

@test "a full disk and a closed pipe are told, and the status is 2" {
	hostile divide
	status=0
	"$cuflight" report --json "$home/divide.cuf" >/dev/full 2>"$home/err" || status=$?
	[ "$status" = 2 ]
	grep -q 'No space left' "$home/err"
	hostile notes
	(
		trap '' PIPE
		status=0
		"$cuflight" report --json "$home/notes.cuf" 2>"$home/err" || status=$?
		echo "$status" >"$home/status"
	) | head -c 1 >/dev/null
	[ "$(cat "$home/status")" = 2 ]
	grep -q 'Broken pipe' "$home/err"
}

# The file of a module names debug files, and those names lead to FIFOs: opening one waits without limit.
@test "FIFOs in place of debug files are not opened" {
	local folder=$home/elf
	mkdir -p "$folder"
	printf 'int twice(int n)\n{\n\treturn 2 * n;\n}\n' >"$folder/part.c"
	(
		cd "$folder"
		"${CC:-cc}" -g -gsplit-dwarf -shared -fPIC -o libsplit.so part.c
		"${CC:-cc}" -g -shared -fPIC -o liblinked.so part.c
		objcopy --only-keep-debug liblinked.so linked.debug
		objcopy --strip-debug --add-gnu-debuglink=linked.debug liblinked.so
		rm -f ./*.dwo linked.debug
		mkfifo linked.debug
		for name in $(readelf --debug-dump=info libsplit.so | grep -o '[^ ]*\.dwo$'); do
			mkfifo "$name"
		done
	)
	[ "$(find "$folder" -name '*.dwo' | wc -l)" -ge 1 ]
	for name in split linked; do
		hostile spellings "$folder/lib$name.so" 1
		timeout 20 "$cuflight" report --json "$home/spellings.cuf" >"$home/out"
		grep -q "\"module\":\"lib$name.so\"" "$home/out"
	done
}
