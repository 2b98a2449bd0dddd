#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet.py BUILD: exports the recordings of a synthetic fleet (fleet.c), asks it the questions of
scripts/fleet, and prints times, sizes and memory. FLEET_PROCESSES=10000, ENGINES="duckdb spark clickhouse".

It writes about 350 KB of temporary files for each process, and removes them."""
import os
import resource
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1] if len(sys.argv) > 1 else 'build'
PROCESSES = int(os.environ.get('FLEET_PROCESSES', '10000'))
ENGINES = os.environ.get('ENGINES', 'duckdb').split()
SITES = {'duckdb': f'{BUILD}/table_readers', 'spark': None, 'clickhouse': f'{BUILD}/clickhouse:{BUILD}/table_readers'}


def run(what, command, **options):
	begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
	subprocess.run(command, check=True, **options)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
	print(f'{what}: {time.monotonic() - begin:.1f} s, {cpu:.1f} s of CPU, at most {after.ru_maxrss / 1024:.0f} MiB', flush=True)


def size(what, folder):
	total = files = 0
	for root, _, names in os.walk(folder):
		for name in names:
			total += os.stat(os.path.join(root, name)).st_size
			files += 1
	print(f'{what}: {files} files, {total / 2**20:.1f} MiB', flush=True)


def main():
	with tempfile.TemporaryDirectory() as home:
		recordings, tables = f'{home}/recordings', f'{home}/tables'
		with open(f'{home}/truth', 'w', encoding='utf-8') as truth:
			run(f'making {PROCESSES} recordings', [f'{BUILD}/bench/fleet', recordings, str(PROCESSES)], stdout=truth)
		size('recordings', recordings)
		run('export --to=parquet', [f'{BUILD}/cuflight', 'export', '-q', '--to=parquet', '-o', tables, recordings])
		size('parquet', tables)
		for engine in ENGINES:
			python = f'{BUILD}/frameworks/spark/bin/python' if engine == 'spark' else sys.executable
			environment = {**os.environ, 'PYTHONPATH': SITES[engine] or ''}
			with open(f'{home}/answers', 'w', encoding='utf-8') as answers:
				run(f'six questions, {engine}', [python, 'scripts/fleet/query', f'--engine={engine}', '--json', tables],
				    stdout=answers, stderr=subprocess.DEVNULL, env=environment)
			run(f'their answers are the truth, {engine}', [sys.executable, 'tests/e2e/export/fleet_truth.py', f'{home}/truth', f'{home}/answers'])


main()
