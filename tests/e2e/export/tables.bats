#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tables: the same rows in every format, the sums of the report, and valid whatever is recorded.
load ../cli.bash

simcuda=$root/scripts/simcuda
tables=$root/tests/e2e/export/tables.py
readers=$build/table_readers

# VICTIM: its recording x.cuf and its truth
record() { "$simcuda" "$cuflight" run -q --size=8MiB -o x.cuf -- "$build/victims/$1" >truth || true; }

# FORMAT FILE: all tables of x.cuf
export_all() { expect 0 export "--to=$1" -o "$2" x.cuf; }

export_everything() {
	export_all sqlite x.sqlite
	export_all csv csv
	export_all ndjson ndjson
	export_all parquet parquet
}

# Parquet is read where pyarrow is
compare() {
	local parquet=
	[ ! -d "$readers" ] || parquet=parquet
	PYTHONPATH=$readers python3 "$tables" same x.sqlite csv ndjson $parquet
}

# SQL: one value of x.sqlite
ask() { sqlite3 x.sqlite "$1"; }

# WORD KEY: what follows KEY in the line of the victim's truth that begins with WORD
truth() { awk -v word="$1" -v key="$2" '$1 == word { for (i = 2; i < NF; i++) if ($i == key) print $(i + 1) }' truth; }

# COLUMN: of the recorded process, in csv/processes.csv
csv_cell() { python3 -c 'import csv, sys; print(next(csv.DictReader(open("csv/processes.csv", newline="")))[sys.argv[1]])' "$1"; }

@test "no cell of CSV begins as a spreadsheet's formula does" {
	for name in '=cmd' '+1' '-1' '@sum' $'\tx'; do
		rm -rf csv x.cuf
		mkdir -p bin
		cp "$(type -P true)" "bin/$name"
		PATH=$PWD/bin:$PATH "$cuflight" run -q --size=4MiB -o x.cuf -- "$name"
		expect 0 export --to=csv -o csv x.cuf
		[ "$(csv_cell command_line)" = "'$name" ]
	done
}

@test "all formats have the same rows, and their sums are those of the report" {
	for victim in oom_fatal page_checkerboard sigkill pool_threshold torch_allocator vmm_reservation; do
		echo "$victim"
		rm -rf x.* csv ndjson parquet
		record $victim
		export_everything
		compare
		expect 0 report --json x.cuf
		python3 "$tables" report x.sqlite out
	done
}

@test "pyarrow and DuckDB read the types that the manual promises" {
	[ -d "$readers" ] || skip "no pyarrow and DuckDB (scripts/setup all fetches them)"
	record oom_fatal
	export_all parquet parquet
	PYTHONPATH=$readers python3 - <<-'END'
		import glob, duckdb, pyarrow.parquet as parquet
		one = glob.glob('parquet/incidents/*/*/*/*.parquet')[0]
		schema = {f.name: str(f.type) for f in parquet.read_schema(one)}
		assert schema['process'] == 'string' and schema['time'] == 'timestamp[us, tz=UTC]', schema
		assert schema['requested_bytes'] == 'int64' and schema['confidence'] == 'double', schema
		assert schema['fits_if_packed'] == 'bool', schema
		column = parquet.ParquetFile(one).metadata.row_group(0).column(list(schema).index('requested_bytes'))
		assert column.compression == 'ZSTD' and column.statistics.min == column.statistics.max, column
		rows = duckdb.sql("SELECT p.host, p.program, typeof(date), typeof(i.time), i.requested_bytes FROM "
		                  "read_parquet('parquet/incidents/**/*.parquet', hive_partitioning = true) i JOIN "
		                  "read_parquet('parquet/processes/**/*.parquet', hive_partitioning = true) p USING (process, date)").fetchall()
		assert rows and rows[-1][1:4] == ('oom_fatal', 'DATE', 'TIMESTAMP WITH TIME ZONE'), rows
	END
}

@test "the victim's truth: what it leaked, its holes, the request that failed" {
	record leak_per_request
	export_all sqlite x.sqlite
	[ "$(ask "SELECT sum(bytes) FROM sites WHERE class = 'leak' AND kind = 'device'")" = "$(truth leak bytes)" ]
	[ "$(ask "SELECT bytes FROM growth_by_site WHERE class = 'leak'")" = "$(truth leak bytes)" ]
	rm x.*
	record page_checkerboard
	export_all sqlite x.sqlite
	[ "$(ask "SELECT largest_hole_bytes FROM holes WHERE layer = 'pages'")" = "$(truth hole bytes)" ]
	rm x.*
	record oom_fatal
	export_all sqlite x.sqlite
	[ "$(ask "SELECT requested_bytes FROM incidents WHERE outcome = 'fatal'")" = "$(truth incident requested)" ]
}

@test "hostile strings stay valid in every format" {
	local name=$'a"b,c\n\t\x01\xff\xc3\x28\xe2\x80\xae\'; DROP TABLE sites; --\\"<script>'
	cp "$(type -P true)" "$home/$name"
	"$cuflight" run -q --size=4MiB -o x.cuf -- "./$name" $'=cmd|"/c calc"!A0' $'\xed\xa0\x80\xf8\x88' "it's
two lines"
	export_everything
	[ -n "$(ask "SELECT count(*) FROM sites")" ]
	ask "SELECT command_line FROM processes" | grep -qF "'; DROP TABLE sites; --"
	ask "SELECT command_line FROM processes" | iconv -f UTF-8 -t UTF-8 >/dev/null
	python3 - <<-'END'
		import csv, json, sqlite3
		wanted = sqlite3.connect('x.sqlite').execute('SELECT executable, command_line FROM processes').fetchone()
		assert '\ufffd' in wanted[0] and '=cmd|"/c calc"' in wanted[1] and 'two lines' in wanted[1], wanted
		rows = list(csv.DictReader(open('csv/processes.csv', encoding='utf-8', newline='')))
		assert (rows[0]['executable'], rows[0]['command_line']) == wanted
		row = json.loads(open('ndjson/processes.ndjson', encoding='utf-8').readline())
		assert (row['executable'], row['command_line']) == wanted
	END
	compare_small
	# nothing of the name is a directory of its own
	[ "$(find parquet/processes -type f | wc -l)" = 1 ]
	[ "$(find parquet -mindepth 5 | awk -F/ '{ print NF }' | sort -u)" = 6 ]
}

# as compare, of a recording without blocks of a device
compare_small() {
	[ -d "$readers" ] || return 0
	PYTHONPATH=$readers python3 - <<-'END'
		import glob, sqlite3, pyarrow.parquet as parquet
		wanted = sqlite3.connect('x.sqlite').execute('SELECT executable, command_line FROM processes').fetchone()
		row = parquet.ParquetFile(glob.glob('parquet/processes/*/*/*/*.parquet')[0]).read().to_pylist()[0]
		assert (row['executable'], row['command_line']) == wanted, row
	END
}

@test "filters: kind, device, pid, and the blocks of a moment" {
	SIMCUDA_DEVICES=2 record two_devices
	expect 0 export --to=sqlite -o x.sqlite --device=1 x.cuf
	[ "$(ask 'SELECT DISTINCT device FROM blocks UNION SELECT device FROM devices')" = 1 ]
	expect 0 export --to=sqlite -f -o x.sqlite --kind=host x.cuf
	[ "$(ask 'SELECT DISTINCT kind FROM blocks UNION SELECT kind FROM sites UNION SELECT kind FROM events')" = host ]
	expect 2 export --to=sqlite -f -o x.sqlite --pid=1 x.cuf
	holds err "no recording is of process 1"
	rm x.cuf
	record oom_recovered
	expect 0 export --to=sqlite -f -o x.sqlite --at=peak --kind=device x.cuf
	# what was live then is the peak that the driver's blocks reached
	[ "$(ask 'SELECT sum(bytes) FROM blocks')" = "$(ask 'SELECT peak_bytes FROM devices')" ]
	[ "$(ask 'SELECT count(died_ns) FROM blocks WHERE died_ns <= (SELECT moment_ns FROM devices)')" = 0 ]
}

@test "one table goes to a file or to stdout, several need a directory" {
	record oom_fatal
	expect 0 export --to=csv --table=incidents x.cuf
	holds out "process,incident,time" "fatal"
	expect 0 export --to=ndjson --table=sites -o sites.ndjson x.cuf
	node -e 'require("fs").readFileSync("sites.ndjson", "utf8").trim().split("\n").forEach(JSON.parse)'
	expect 0 export --to=csv --table=sites --table=frames -o two x.cuf
	[ "$(ls two)" = "$(printf 'frames.csv\nsites.csv')" ]
	expect 2 export --to=csv x.cuf
	holds err "one file for each table"
	expect 2 export --to=csv --table=sties x.cuf
	holds err "did you mean 'sites'"
	expect 2 export --to=parquet x.cuf
	holds err "name it with -o"
	expect 2 export --to=sqlite x.cuf
	expect 2 export --to=csv --table=sites -o sites.ndjson x.cuf
	holds err "exists; -f overwrites it"
	expect 2 export --to=csv --table=blocks -o /dev/full x.cuf
	expect 2 export --to=folded --table=sites x.cuf
	expect 2 export --to=parquet --run=1 -o p x.cuf
}

@test "of many recordings, those that cannot be read are named, and the status tells" {
	mkdir -p rec/deep/er
	"$cuflight" run -q --size=4MiB -o rec/a.cuf -- true
	"$cuflight" run -q --size=4MiB -o rec/deep/er/b.cuf -- true
	cp rec/a.cuf rec/copy.cuf
	echo 'no recording' >rec/bad.cuf
	: >rec/deep/empty.cuf
	expect 3 export --to=parquet -o all rec
	holds err "rec/bad.cuf" "rec/deep/empty.cuf" "2 of 5 recordings could not be read and are left out" \
		"exported 2 processes" "copy.cuf"
	[ "$(find all/processes -name '*.parquet' | wc -l)" = 2 ]
	[ -z "$(find all -name '*unfinished*' -o -name '*.tmp.*')" ]
	# each table is there, so that it can be queried
	[ "$(ls all | wc -l)" = 12 ]
	expect 3 export --to=parquet -o all rec
	holds err "2 were there already"
	expect 3 export --to=sqlite -o x.sqlite rec
	[ "$(ask 'SELECT count(*) FROM processes')" = 2 ]
	expect 2 export --to=parquet -o none rec/bad.cuf
	[ ! -e none/processes ]
}

@test "tables of a pack are those of its recordings" {
	mkdir rec
	"$simcuda" "$cuflight" run -q --size=4MiB -o rec/ -- "$build/victims/two_processes" >truth
	expect 0 pack -o run.cufpack rec
	expect 0 export --to=sqlite -o x.sqlite rec
	expect 0 export --to=sqlite -o p.sqlite run.cufpack
	[ "$(ask 'SELECT count(*) FROM processes')" -ge 2 ]
	for table in sites frames blocks devices owners; do
		diff <(ask "SELECT * FROM $table ORDER BY process") <(sqlite3 p.sqlite "SELECT * FROM $table ORDER BY process")
	done
}
