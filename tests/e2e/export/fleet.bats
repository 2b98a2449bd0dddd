#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A fleet whose truth is known: the questions of scripts/fleet have its answers, on each engine.
load ../cli.bash

readers=$build/table_readers
spark=$build/frameworks/spark
truth=$root/tests/e2e/export/fleet_truth.py

make_fleet() {
	"$build/bench/fleet" recordings "$1" >truth
	expect 0 export --to=parquet -o fleet recordings
	holds err "exported $1 processes"
}

@test "six questions about a fleet have the true answers, in DuckDB" {
	[ -d "$readers" ] || skip "no DuckDB (scripts/setup all fetches it)"
	make_fleet 120
	PYTHONPATH=$readers python3 "$root/scripts/fleet/query" --json fleet >answers
	python3 "$truth" truth answers
	# and the truth can be missed
	sed -i 's/"leaked_bytes":[1-9][0-9]*/"leaked_bytes":1/' truth
	! python3 "$truth" truth answers >/dev/null 2>&1
}

@test "the same questions, unchanged, have the same answers in Spark" {
	[ -d "$spark" ] || skip "no Spark (scripts/setup clients fetches it)"
	command -v java >/dev/null || skip "no Java for Spark"
	make_fleet 60
	"$spark/bin/python" "$root/scripts/fleet/query" --engine=spark --json fleet >answers 2>err || { tail -20 err >&2; false; }
	python3 "$truth" truth answers
}

@test "the same questions, unchanged, have the same answers in ClickHouse" {
	[ -d "$build/clickhouse" ] || skip "no ClickHouse (scripts/setup all fetches it)"
	[ -d "$readers" ] || skip "no pyarrow, which ClickHouse's package needs (scripts/setup all)"
	make_fleet 60
	PYTHONPATH=$build/clickhouse:$readers python3 "$root/scripts/fleet/query" --engine=clickhouse --json fleet >answers
	python3 "$truth" truth answers
}

@test "new recordings are added to a fleet, and its partitions are columns" {
	make_fleet 10
	"$build/bench/fleet" recordings 14 >truth
	expect 0 export --to=parquet -o fleet recordings
	holds err "exported 4 processes" "10 were there already"
	[ "$(find fleet/sites -name '*.parquet' | wc -l)" = 14 ]
	[ -d "fleet/processes/date=2026-11-23/host=node01/program=serve.py" ]
}
