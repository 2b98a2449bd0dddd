#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tables.py same SQLITE CSV_DIR NDJSON_DIR [PARQUET_DIR]: fails unless all formats have the same rows.
tables.py report SQLITE REPORT.json: fails unless the sums of the tables are those of the report.

Each format is read by a parser that is not ours: csv, json, sqlite3, pyarrow."""
import csv
import datetime
import glob
import json
import sqlite3
import sys



def of_sqlite(path):
	base = sqlite3.connect(path)
	base.row_factory = sqlite3.Row
	tables = {name: [dict(row) for row in base.execute(f'SELECT * FROM {name}')]
	          for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
	types = {name: {row[1]: row[2] for row in base.execute(f'PRAGMA table_info({name})')} for name in tables}
	return tables, types


def of_csv(folder, types):
	parse = {'INTEGER': int, 'REAL': float, 'TEXT': str, 'TIMESTAMP': str, 'BOOLEAN': lambda v: int(v == 'true')}
	tables = {}
	for name, columns in types.items():
		with open(f'{folder}/{name}.csv', encoding='utf-8', newline='') as file:
			tables[name] = [{key: parse[columns[key]](value) if value != '' else None for key, value in row.items()}
			                for row in csv.DictReader(file)]
	return tables


def of_ndjson(folder, types):
	tables = {}
	for name in types:
		with open(f'{folder}/{name}.ndjson', encoding='utf-8') as file:
			tables[name] = [{key: int(value) if isinstance(value, bool) else value for key, value in json.loads(line).items()}
			                for line in file]
	return tables


def of_parquet(folder, types):
	import pyarrow.parquet as parquet
	tables = {}
	for name in types:
		tables[name] = []
		for path in sorted(glob.glob(f'{folder}/{name}/*/*/*/*.parquet')):
			# the schema is that of the file: the partition's columns are in the path only
			for row in parquet.ParquetFile(path).read().to_pylist():
				for key, value in row.items():
					if isinstance(value, datetime.datetime):
						row[key] = value.strftime('%Y-%m-%dT%H:%M:%S.%fZ')
					elif isinstance(value, bool):
						row[key] = int(value)
				tables[name].append(row)
	return tables


def normal(row, left_out=()):
	"""CSV has no difference between an empty text and none."""
	return {key: value for key, value in row.items() if key not in left_out and value not in (None, '')}


def same(name, ours, theirs, left_out=()):
	if len(ours) != len(theirs):
		sys.exit(f'{name}: {len(ours)} and {len(theirs)} rows')
	for a, b in zip(ours, theirs):
		if normal(a, left_out) != normal(b, left_out):
			sys.exit(f'{name}:\n{a}\n{b}')


def check_same(sqlite, csv_folder, ndjson_folder, parquet_folder=None):
	tables, types = of_sqlite(sqlite)
	if len(tables) < 12 or not all(tables[name] for name in ('processes', 'sites', 'frames', 'blocks', 'events')):
		sys.exit(f'tables are missing or empty: { {name: len(rows) for name, rows in tables.items()} }')
	others = [('csv', of_csv(csv_folder, types)), ('ndjson', of_ndjson(ndjson_folder, types))]
	if parquet_folder:
		others.append(('parquet', of_parquet(parquet_folder, types)))
	for format_name, other in others:
		for name in types:
			left_out = ('date', 'host', 'program') if format_name == 'parquet' else ()
			same(f'{format_name} {name}', tables[name], other[name], left_out)


def expect(what, found, wanted):
	if found != wanted:
		sys.exit(f'{what}: {found}, the report has {wanted}')


def live(rows):
	return [row for row in rows if row['died_ns'] is None]


def check_report(sqlite, report):
	tables, _ = of_sqlite(sqlite)
	with open(report, encoding='utf-8') as file:
		report = json.load(file)
	process = tables['processes'][0]
	expect('pid', process['pid'], report['capture']['pid'])
	expect('end', process['end_state'], report['capture']['end_state'])
	expect('cause', process['cause'], (report['cause'] or {}).get('name_id'))
	for ours, theirs in zip(tables['devices'], report['devices'], strict=True):
		for key in ('uuid', 'total_bytes', 'free_bytes', 'peak_bytes'):
			expect(f'device {key}', ours[key], theirs[key])
		for layer in ('page_hole_bytes', 'pool_bytes', 'vmm_bytes', 'segment_bytes'):
			expect(layer, ours[layer], theirs['largest_free'][layer])
	owners = [(row['kind'], row['role'], row['bytes']) for row in tables['owners']]
	expect('owners', owners, [(o['kind'], o['role'], o['bytes']) for d in report['devices'] for o in d['owners']])
	for device in tables['devices']:
		total = sum(o['bytes'] or 0 for o in tables['owners'] if o['device'] == device['device'] and o['in_sum'])
		expect('sum of owners', total, device['total_bytes'])
	expect('incidents', [(i['incident'], i['outcome'], i['requested_bytes']) for i in tables['incidents']],
	       [(i['id'], i['outcome'], i['requested_bytes']) for i in report['incidents']])
	for kind in {site['kind'] for site in report['leaks']}:
		wanted = sum(site['bytes'] for site in report['leaks'] if site['kind'] == kind)
		expect(f'sites of {kind}', sum(site['bytes'] for site in tables['sites'] if site['kind'] == kind), wanted)
	expect('classes', sorted((s['class'], s['kind'], s['bytes']) for s in tables['sites'] if s['count']),
	       sorted((s['class'], s['kind'], s['bytes']) for s in report['leaks']))
	check_blocks(tables, report, sqlite)


def check_blocks(tables, report, sqlite):
	"""Blocks that live at the moment of the report have its sums."""
	base = sqlite3.connect(sqlite)
	fatal = [i for i in report['incidents'] if i['fatal']]
	if fatal:
		blocks = base.execute('SELECT kind, bytes FROM live_at_oom').fetchall()
		expect('live_at_oom', sum(b for k, b in blocks if k == 'device'), (fatal[-1]['live'].get('device') or {'bytes': 0})['bytes'])
		return
	if report['capture']['end_state'] == 'killed': # nothing was freed at an end
		by_kind = dict(base.execute('SELECT kind, sum(bytes) FROM by_kind GROUP BY kind').fetchall())
		for kind in {site['kind'] for site in report['leaks']} - {'host'}:
			expect(f'by_kind {kind}', by_kind.get(kind), sum(s['bytes'] for s in report['leaks'] if s['kind'] == kind))
	for block in tables['blocks']:
		if block['died_ns'] is not None and block['born_ns'] is not None and block['died_ns'] < block['born_ns']:
			sys.exit(f'died before its birth: {block}')


if sys.argv[1] == 'same':
	check_same(*sys.argv[2:])
else:
	check_report(*sys.argv[2:])
