#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight check` and `cuflight baseline`: limits, exit statuses, bad input, documents.
load ../cli.bash

# NAME COMMIT [OPTION...]: one run of the model server
record() {
	local name=$1 commit=$2
	shift 2
	"$root/scripts/simcuda" "$cuflight" run -q --size=4MiB "$@" -o "$name" -- "$build/victims/model_server" "--commit=$commit" >"$home/truth"
}

# SCHEMA FILE...: valid, and without a key that the schema does not describe
valid() {
	local schema=analysis/view/cuflight.$1-1.schema.json
	shift
	node "$root/tests/e2e/validate.cjs" --schema="$schema" "$@"
	node "$root/tests/e2e/cli_keys.cjs" --schema="$schema" "$@"
}

@test "limits are kept or exceeded, and the exit status tells" {
	record good.cuf 1
	expect 0 check good.cuf
	holds out 'PASS model_server'
	expect 0 check good.cuf 'device.peak <= 1GiB' 'device.leak = 0' 'incidents.recovered = 0' 'device.end<=230MiB' 'pinned.peak = 0'
	expect 1 check good.cuf 'device.peak <= 100MiB' 'device.leak = 0'
	holds out 'FAIL model_server: 1 of 3 limits exceeded' 'peak GPU memory: 221 MiB, more than the limit of 100 MiB' 'load_layer'
	expect 1 check good.cuf 'device.hole >= 1GiB'
	expect 1 check good.cuf 'device.allocations < 41'
	expect 0 check good.cuf 'device.allocations = 41'
}

@test "a leak is named with its call site, its bytes are those of the program" {
	record leak.cuf 4
	expect 1 check --json leak.cuf
	node -e '
		const d = JSON.parse(require("fs").readFileSync("out"));
		const leak = d.findings.find((f) => f.measure === "device.leak");
		if (d.verdict !== "fail" || leak.status !== "exceeded" || leak.observed.value !== 24 * 1048576) process.exit(1);
		if (leak.sites[0].stack[1].function !== "keep_trace" || leak.sites[0].count !== 24) process.exit(2);'
	expect 1 check leak.cuf 'request.growth <= 512KiB'
	holds out 'keep_trace'
	expect 0 check leak.cuf 'request.growth <= 1MiB'
}

@test "within a phase, by its name" {
	record marked.cuf 1
	expect 0 check marked.cuf 'device.peak@generate <= 2MiB' 'device.end@generate = 0'
	expect 1 check marked.cuf 'device.peak @ generate <= 1MiB'
	holds out "peak GPU memory in 'generate': 2.00 MiB, more than the limit of 1.00 MiB"
	expect 3 check marked.cuf 'host.peak@generate <= 1GiB'
	expect 2 check marked.cuf 'device.leak@generate = 0'
	record leaks.cuf 4
	expect 1 check leaks.cuf 'device.end@generate <= 512KiB'
	record full.cuf 1 --host=full
	expect 0 check full.cuf 'host.peak@generate <= 1MiB'
	expect 3 check marked.cuf 'device.peak@decode <= 1GiB'
	holds out 'no phase has this name'
}

@test "a failed request that ended the program exceeds every set of limits" {
	SIMCUDA_FAIL=cuMemAlloc:9+ record died.cuf 1 || true
	expect 1 check died.cuf 'device.peak <= 1GiB'
	holds out 'fatal failures: 1' 'load_layer'
	expect 0 check died.cuf 'device.peak <= 1GiB' 'incidents.fatal <= 1'
}

@test "what cannot be judged is no pass" {
	"$cuflight" run -q --size=4MiB --host=off -o none.cuf -- true
	expect 3 check none.cuf
	holds out INCONCLUSIVE 'nothing was recorded'
	expect 3 check none.cuf 'device.peak <= 1GiB'
	holds out 'no CUDA call was recorded'
	expect 0 check --allow-inconclusive none.cuf 'device.peak <= 1GiB'
	record good.cuf 1
	expect 3 check good.cuf 'host.leak = 0'
	holds out 'record with --host=full'
	expect 3 check good.cuf 'framework.peak <= 1GiB'
	record full.cuf 1 --host=full
	expect 0 check full.cuf 'host.leak = 0' 'host.peak <= 1GiB'
	# what is exceeded stays exceeded
	expect 1 check good.cuf 'host.leak = 0' 'device.peak <= 1MiB'
}

@test "events that were overwritten leave a lower bound" {
	"$cuflight" run -q --size=4MiB --host=full -o churn.cuf -- perl -e 'my @a; for (1..400000) { push @a, "x" x 100; shift @a if @a > 1000 }'
	expect 3 check churn.cuf 'host.peak <= 1GiB'
	holds out 'peak host memory cannot be judged: events were overwritten; record with a larger --size'
	expect 1 check churn.cuf 'host.peak <= 1KiB'
	expect 0 check churn.cuf 'host.end <= 1GiB'
}

@test "bad limits have one sentence each and exit with 2" {
	local limit
	record good.cuf 1
	for limit in 'device.pek <= 1' 'device.peak' 'device.peak <= 1XiB' 'device.peak <= -3%' 'device.peak == 3' 'device.peak >= +3%'; do
		expect 2 check good.cuf "$limit"
		empty out
		[ "$(wc -l <"$home/err")" = 1 ]
	done
	expect 2 check good.cuf 'device.peak <= +3%'
	holds err 'needs a baseline'
	expect 2 check
	expect 2 check missing.cuf
	expect 2 check good.cuf --config=missing.ini
}

@test "bad baselines have one sentence each and exit with 2 or 3" {
	local what
	record good.cuf 1
	"$cuflight" baseline -q good.cuf -o good.json
	: >empty.json
	head -c 700 good.json >cut.json
	sed 's#cuflight.baseline/1#cuflight.baseline/9#' good.json >other.json
	sed '/"runs"/d' good.json >noruns.json
	sed 's/"device.peak": \[[0-9]*/"device.peak": [-1/' good.json >negative.json
	echo 'hello' >text.json
	echo '[]' >array.json
	mkdir folder.json
	for what in empty cut other noruns negative text array folder missing; do
		expect 2 check good.cuf --baseline=$what.json
		empty out
		[ "$(wc -l <"$home/err")" = 1 ]
		holds err "cannot use baseline '$what.json': "
	done
	sed 's/Simulated GPU 1/NVIDIA H100/' good.json >gpu.json
	sed 's/"driver": "13.0"/"driver": "12.4"/' good.json >driver.json
	expect 3 check good.cuf --baseline=gpu.json
	holds out 'the baseline was recorded on another GPU: NVIDIA H100, now Simulated GPU 1'
	expect 0 check good.cuf --baseline=gpu.json --any-environment
	expect 3 check good.cuf --baseline=driver.json
	record full.cuf 1 --host=full
	expect 3 check full.cuf --baseline=good.json
	holds out '--host=sampled'
}

@test "a baseline is sorted text that the same runs write again, without addresses and lines" {
	record a.cuf 2
	record b.cuf 2
	expect 0 baseline a.cuf b.cuf -o one.json
	expect 0 baseline b.cuf a.cuf -o two.json
	cmp one.json two.json
	lacks one.json '0x\|:[0-9]*)'
	[ "$(grep -c '^    {"kind": "device", "site": "model_server!take < model_server!' one.json)" = 3 ]
	valid baseline one.json
	expect 2 baseline a.cuf -o one.json
	holds err '-f overwrites it'
	expect 2 baseline
	expect 2 baseline missing.cuf -o new.json
	[ ! -e new.json ]
	"$cuflight" run -q --size=4MiB --host=off -o none.cuf -- true
	expect 3 baseline none.cuf -o new.json
	holds err 'nothing was recorded'
	record full.cuf 2 --host=full
	expect 3 baseline a.cuf full.cuf -o new.json
	holds err 'cannot put'
	[ ! -e new.json ]
}

@test "every run of a directory counts, and check takes the last one" {
	mkdir runs
	record runs/ 1
	record runs/ 1
	record runs/ 4
	expect 0 baseline runs/ -o runs.json
	holds runs.json '"runs": 3' '"device.peak": [231735296, 231735296, 256901120'
	expect 1 check runs/
	holds out keep_trace
}

@test "a relative limit trips beyond percent, excess and spread together" {
	record small.cuf 1
	record large.cuf 7
	"$cuflight" baseline -q small.cuf -o small.json
	expect 1 check large.cuf -b small.json 'device.peak <= +3%'
	grep 'peak GPU memory: .* 6.[0-9]% more than' out
	holds out allocate_workspace
	expect 0 check large.cuf -b small.json 'device.peak <= +7%'
	expect 0 check large.cuf -b small.json 'device.peak <= +3% +20MiB'
	expect 1 check large.cuf -b small.json 'device.peak <= +10MiB'
	# a baseline that has seen the larger value
	"$cuflight" baseline -q small.cuf small.cuf large.cuf -o wide.json
	expect 0 check large.cuf -b wide.json 'device.peak <= +3%'
	expect 3 check large.cuf -b small.json 'host.leak <= +3%'
	holds out 'the baseline does not have it'
}

@test "what is there at the end is compared with the end of the baseline, not with its peak" {
	record small.cuf 1
	record large.cuf 6
	"$cuflight" baseline -q small.cuf -o small.json
	sed '/allocate_workspace/s/"peak": \[25165824, 25165824, 25165824/"peak": [50331648, 50331648, 50331648/' small.json >peak.json
	[ "$(diff small.json peak.json | grep -c '^>')" = 1 ]
	expect 1 check large.cuf -b peak.json 'device.end <= +0%'
	holds out '25.1 MiB, before 24.0 MiB, 1 block'
	holds out allocate_workspace
}

@test "cuflight.ini is found upwards, and has sections" {
	record leak.cuf 4
	mkdir -p project/deep
	cat >project/cuflight.ini <<-'END'
		# of all programs
		device.peak <= 1GiB   ; far away
		[other]
		device.peak <= 1MiB
		[model_server]
		device.leak <= 20MiB
	END
	cd project/deep
	expect 1 check ../../leak.cuf
	holds out 'device.leak <= 20MiB  (cuflight.ini:6)'
	expect 0 check ../../leak.cuf 'device.leak <= 30MiB'
	printf 'device.peak\n' >bad.ini
	expect 2 check ../../leak.cuf --config=bad.ini
	holds err "bad.ini:1: limit 'device.peak' has no operator"
	printf '[oops\n' >bad.ini
	expect 2 check ../../leak.cuf --config=bad.ini
	"$cuflight" baseline -q ../../leak.cuf -o ../memory.json
	printf 'baseline = memory.json\ndevice.peak <= +3%%\n' >../cuflight.ini
	expect 0 check ../../leak.cuf
	holds out 'as in the baseline'
}

@test "the JSON documents are valid, and every key is described" {
	record a.cuf 1
	record b.cuf 4
	"$cuflight" baseline -q a.cuf -o a.json
	"$cuflight" check --json -b a.json b.cuf >check.json || true
	"$cuflight" check --json b.cuf 'host.leak = 0' >bare.json || true
	"$cuflight" diff --json a.cuf b.cuf >diff.json || true
	valid check check.json bare.json
	valid diff diff.json
	valid baseline a.json
}

@test "diff prints what is new, gone, grown and shrunk, the biggest first" {
	record a.cuf 1
	record b.cuf 7
	record c.cuf 12
	expect 0 diff a.cuf a.cuf
	holds out 'no difference'
	expect 1 diff a.cuf b.cuf
	grep -E '^  grown +\+1[0-9.]+ MiB device .*allocate_workspace' out
	expect 1 diff b.cuf a.cuf
	grep -E '^  shrunk +-1[0-9.]+ MiB device .*allocate_workspace' out
	expect 1 diff a.cuf c.cuf --end
	grep -E '^  new +\+6.00 MiB pinned +stage_prompt \(model_server.c:[0-9]+\)' out
	expect 1 diff c.cuf a.cuf
	grep -E '^  gone +-6.00 MiB pinned +stage_prompt' out
	"$cuflight" baseline -q a.cuf -o a.json
	expect 1 diff a.json b.cuf
	grep -E '^  grown .*allocate_workspace \(model_server.c' out || grep -E '^  grown .*allocate_workspace' out
	expect 0 diff a.cuf b.cuf --least=1GiB
	expect 1 diff --at=0s..end c.cuf
	grep -E '^  new .*stage_prompt' out
	expect 2 diff a.cuf
	expect 2 diff --at=1s c.cuf
	expect 2 diff --at=0s..900s c.cuf
	holds err 'the recording ends after'
	expect 2 diff a.cuf missing.cuf
}
