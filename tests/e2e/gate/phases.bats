#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight phases`: the figures of each phase are those that the program printed about itself.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	local root build
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cd "$BATS_FILE_TMPDIR" || return
	cc -g -O1 -Wall -Werror -I"$root" "$BATS_TEST_DIRNAME/phases_program.c" -o phases_program \
		"$build/sim/libcudart.so.13"
	"$root/scripts/simcuda" "$build/cuflight" run -q --host=full --size=16MiB -o full.cuf -- \
		./phases_program >truth
	"$root/scripts/simcuda" "$build/cuflight" run -q --size=16MiB -o sampled.cuf -- \
		./phases_program >/dev/null
}

# the figures of a document, as the program prints them
figures() {
	node -e '
		const kinds = (name) => (name.startsWith("device") ? "device" : name === "pinned" ? "pinned" : "host");
		for (const phase of JSON.parse(require("fs").readFileSync(process.argv[1])).phases) {
			const one = phase.memory[kinds(phase.name)];
			console.log(phase.name, kinds(phase.name), one.need_bytes, one.stay_bytes);
		}
	' "$1"
}

@test "each phase needed and kept what the program states, to the byte" {
	expect 0 phases --json "$BATS_FILE_TMPDIR/full.cuf"
	diff <(grep . "$BATS_FILE_TMPDIR/truth") <(figures out)
}

@test "the document follows its schema, with every key described" {
	expect 0 phases --json --id=1 --sites "$BATS_FILE_TMPDIR/full.cuf"
	schema=analysis/view/cuflight.phases-1.schema.json
	node "$root/tests/e2e/validate.cjs" --schema=$schema out || [ $? = 77 ]
	node "$root/tests/e2e/cli_keys.cjs" --schema=$schema out
}

@test "with --sites: the call sites of the peak and of what stayed" {
	expect 0 phases --json "$BATS_FILE_TMPDIR/full.cuf"
	id=$(node -p 'JSON.parse(require("fs").readFileSync("out")).phases.find((p) => p.name === "device kept").id')
	expect 0 phases --json --id="$id" --sites "$BATS_FILE_TMPDIR/full.cuf"
	run -0 node -e '
		const [phase, ...more] = JSON.parse(require("fs").readFileSync("out")).phases;
		for (const site of phase.sites.filter((one) => one.kind === "device"))
			console.log(phase.name, more.length, site.moment, site.bytes, site.function, site.file);
	'
	diff - <(printf '%s\n' "${lines[@]}") <<-EOF
		device kept 0 peak 6291456 hold_device phases_program.c
		device kept 0 peak 3145728 hold_device phases_program.c
		device kept 0 end 3145728 hold_device phases_program.c
	EOF
	expect 0 phases --id="$id" --sites "$BATS_FILE_TMPDIR/full.cuf"
	holds out "device kept" "9.00 MiB" "+3.00 MiB" "hold_device (phases_program.c:"
	ascii out
}

@test "sampled host memory is an estimate, and one of host=off is unknown" {
	expect 0 phases --json "$BATS_FILE_TMPDIR/sampled.cuf"
	run -0 node -p 'const m = JSON.parse(require("fs").readFileSync("out")).phases[0].memory; m.host.basis + " " + m.device.basis'
	[ "$output" = "estimated observed" ]
	"$root/scripts/simcuda" "$cuflight" run -q --host=off -o off.cuf -- "$BATS_FILE_TMPDIR/phases_program" >/dev/null
	expect 0 phases --json off.cuf
	run -0 node -p 'const h = JSON.parse(require("fs").readFileSync("out")).phases[0].memory.host; [h.need_bytes, h.stay_bytes, h.basis, h.why].join()'
	[ "$output" = ",,,host memory was not recorded (--host=off)" ]
}

@test "a phase whose events were overwritten is unknown" {
	cat >churn.c <<-'EOF'
		#include <stdlib.h>
		#include "interpose/cuflight.h"
		void *volatile sink;
		int main(void)
		{
			uint64_t id = cuflight_phase_start("early");
			sink = malloc(100);
			cuflight_phase_end(id);
			for (int i = 0; i < 1000000; i++)
				free(sink = malloc(50));
			return 0;
		}
	EOF
	cc -I"$root" churn.c -o churn
	"$cuflight" run -q --host=full --size=4MiB -o churn.cuf -- ./churn
	expect 0 phases churn.cuf
	holds out early
	expect 0 phases --json churn.cuf
	run -0 node -p 'JSON.parse(require("fs").readFileSync("out")).phases[0].memory.host.why'
	[[ $output == "events were overwritten"* ]]
}

@test "refused with one sentence: no such id, no recording, two of them" {
	expect 2 phases --id=999999 "$BATS_FILE_TMPDIR/full.cuf"
	holds err "no phase of" "has the id 999999"
	expect 2 phases nowhere.cuf
	holds err "nowhere.cuf" "No such file"
	expect 2 phases
	expect 2 phases --sites "$BATS_FILE_TMPDIR/full.cuf"
	holds err "--sites needs --id"
	expect 2 phases a.cuf b.cuf
	record_one
	expect 0 phases x.cuf
	holds out "no phases or requests are marked" "cuflight report --full"
	zstd -dqf "$root/tests/golden/v1/captured_graph.cuf.zst" -o graph.cuf
	expect 0 phases graph.cuf
	holds out "those that are inferred"
	expect 0 report --full graph.cuf
	holds out "graph capture  inferred"
}
