#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight what-if`: a row that fits is true when the program is run with that setting, and one that
# does not fit is, too.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	local root build
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cd "$BATS_FILE_TMPDIR" || return
	for name in torch_pinned_segment torch_checkerboard torch_other_stream torch_kv torch_fraction \
		healthy_torch_serving; do
		"$root/scripts/simcuda" "$build/cuflight" run -q -o $name.cuf -- \
			"$build/victims/cause_fixture" $name 3 >$name.truth 2>/dev/null || true
	done
}

# NAME KEY ID: a key of the row with this id; the document is kept in out
row_value() {
	expect 0 what-if --json --all "$BATS_FILE_TMPDIR/$1.cuf"
	node -e '
		const [, file, key, id] = process.argv;
		console.log(JSON.parse(require("fs").readFileSync(file)).rows.find((row) => row.id === id)[key]);
	' "$home/out" "$2" "$3"
}

# NAME: does the program run to its end with expandable segments?
lives_expandable() {
	PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$root/scripts/simcuda" \
		"$build/victims/cause_fixture" "$1" 3 >/dev/null 2>&1
}

@test "the replay of the recorded setting ends as the program did" {
	for name in torch_pinned_segment torch_checkerboard torch_other_stream torch_kv torch_fraction; do
		[ "$(row_value $name fits recorded)" = false ]
		node -e 'process.exit(Number(JSON.parse(require("fs").readFileSync(process.argv[1])).unlike !== null))' out
	done
	[ "$(row_value healthy_torch_serving fits recorded)" = true ]
}

@test "what the allocator had reserved at the failure is what the program printed" {
	for name in torch_pinned_segment torch_checkerboard torch_other_stream torch_kv; do
		truth=$(sed -n 's/^reserved //p' "$BATS_FILE_TMPDIR/$name.truth")
		peak=$(row_value $name peak_reserved_bytes recorded)
		[ -n "$truth" ] && [ "$peak" -ge "$truth" ]
		# the last refusal released what was cached
		[ $((peak - truth)) -le $((truth / 5)) ]
	done
}

@test "with the setting that fits the program runs, and with one that does not it fails" {
	for name in torch_pinned_segment torch_checkerboard torch_other_stream; do
		fits=$(row_value $name fits expandable-segments)
		echo "$name: $fits"
		if [ "$fits" = true ]; then lives_expandable $name; else run ! lives_expandable $name; fi
	done
	[ "$(row_value torch_pinned_segment fits expandable-segments)" = true ]
	[ "$(row_value torch_checkerboard fits expandable-segments)" = false ]
}

@test "a memory fraction is found, and the whole device fits" {
	[ "$(row_value torch_fraction fits whole-device)" = true ]
}

@test "blocks that the allocator kept apart are of two groups" {
	expect 0 what-if "$BATS_FILE_TMPDIR/torch_other_stream.cuf"
	holds out "2 groups of streams or graphs" "from the first one"
}

# RECORDING: without the names of functions that the recorder noted: as of a process that was killed
without_noted_names() {
	python3 - "$1" "$root/tests" <<-'END'
		import struct, sys
		sys.path.insert(0, sys.argv[2])
		import recording as r
		data = r.Recording(sys.argv[1])
		_, at, size = data.sections[r.META]
		changed = bytearray(data.data)
		end = at + size
		while at < end and (bytes_ := struct.unpack_from('<I', changed, at + 4)[0]):
		    if struct.unpack_from('<H', changed, at)[0] == r.META_FUNCTION:
		        struct.pack_into('<H', changed, at, 0)
		    at += bytes_
		open(sys.argv[1], 'wb').write(changed)
	END
}

@test "ggml's pool is known by the program's files where the recorder noted no name" {
	"$root/scripts/simcuda" "$build/cuflight" run -q -o ggml.cuf -- "$build/victims/vmm_pool" >truth
	cp ggml.cuf noted.cuf
	without_noted_names ggml.cuf
	run ! cmp -s ggml.cuf noted.cuf
	expect 0 what-if --json --all ggml.cuf
	grep -q '"ggml-legacy-pool"' out
}

@test "that blocks of cudaMalloc would have fitted without gaps is said where it is so, and only there" {
	zstd -dqf "$root/tests/golden/v1/page_checkerboard.cuf.zst" -o gaps.cuf
	expect 0 what-if gaps.cuf
	holds out 'With every gap closed the request would have fitted' 'from one pool'
	zstd -dqf "$root/tests/golden/v1/oom_fatal.cuf.zst" -o full.cuf
	expect 0 what-if full.cuf
	lacks out 'every gap'
}

@test "the table is at most 80 columns wide and 24 lines long" {
	for name in torch_pinned_segment torch_checkerboard torch_kv; do
		expect 0 what-if "$BATS_FILE_TMPDIR/$name.cuf"
		[ "$(wc -l <out)" -le 24 ]
		lacks out '.\{89\}' # a setting is never cut, so its line may be longer
		ascii out
	done
}

@test "the document follows its schema, with every key described" {
	expect 0 what-if --json --all "$BATS_FILE_TMPDIR/torch_kv.cuf"
	schema=analysis/view/cuflight.what-if-1.schema.json
	node "$root/tests/e2e/validate.cjs" --schema=$schema out || [ $? = 77 ]
	node "$root/tests/e2e/cli_keys.cjs" --schema=$schema out
}

@test "--set tries one setting, by variable or by name" {
	expect 0 what-if --set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$BATS_FILE_TMPDIR/torch_kv.cuf"
	holds out "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
	lacks out max_split
	expect 0 what-if --json --set max_split_size_mb=256 "$BATS_FILE_TMPDIR/torch_kv.cuf"
	node -e 'process.exit(Number(JSON.parse(require("fs").readFileSync(process.argv[1])).rows.length !== 2))' out
}

@test "a setting that cannot be read is one error, and so is a recording without requests" {
	for bad in nonsense max_split_size_mb=none backend:x=1 expandable_segments=perhaps unknown=1; do
		expect 2 what-if --set "$bad" "$BATS_FILE_TMPDIR/torch_kv.cuf"
		[ "$(wc -l <err)" = 1 ]
		holds err "cannot try --set="
	done
	"$cuflight" run -q -o none.cuf -- true
	expect 2 what-if none.cuf
	holds err "cannot replay"
	expect 2 what-if nowhere.cuf
	expect 2 what-if
}

@test "without the first events the table says where the history begins" {
	"$root/scripts/simcuda" "$cuflight" run -q --size=4MiB -o short.cuf -- \
		"$build/victims/cause_fixture" healthy_torch_generation 3 >/dev/null
	expect 0 what-if short.cuf
	holds out "were live when the history begins" "placed anew"
}
