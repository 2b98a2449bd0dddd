#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The gate on cuflight's own demo, the server of scripts/quickstart, with a baseline that is under version control. So CI
# notices when the recorder counts other bytes, or names other call sites, than it did. After an intended change:
#   for i in 1 2 3; do SIMCUDA_TOTAL=16GiB scripts/simcuda build/cuflight run -o demo$i.cuf -- build/victims/inference_server; done
#   build/cuflight baseline -f demo?.cuf -o tests/e2e/gate/demo.json
load ../cli.bash

@test "the demo holds what its baseline holds" {
	SIMCUDA_TOTAL=16GiB "$root/scripts/simcuda" "$cuflight" run -q -o demo.cuf -- "$build/victims/inference_server" >/dev/null 2>&1 || true
	expect 0 check demo.cuf --config="$root/tests/e2e/gate/demo.ini"
	# the call sites, too
	"$cuflight" diff --json --least=0 "$root/tests/e2e/gate/demo.json" demo.cuf >out || [ $? = 1 ]
	node -e '
		const diff = JSON.parse(require("fs").readFileSync("out"));
		process.exit(diff.sites.filter((s) => s.kind === "device").length);'
}

@test "and would notice a smaller one" {
	SIMCUDA_TOTAL=16GiB "$root/scripts/simcuda" "$cuflight" run -q -o demo.cuf -- "$build/victims/inference_server" >/dev/null 2>&1 || true
	sed 's/"device.leak": \[[0-9]*, [0-9]*, [0-9]*/"device.leak": [5000000000, 5000000000, 5000000000/' "$root/tests/e2e/gate/demo.json" >demo.json
	cp "$root/tests/e2e/gate/demo.ini" .
	expect 1 check demo.cuf --config=demo.ini
	holds out remember_adapter_delta
}
