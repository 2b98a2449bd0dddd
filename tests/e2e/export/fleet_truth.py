#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet_truth.py TRUTH ANSWERS: fails unless the answers of scripts/fleet/query are those of the truth.

TRUTH is what build/bench/fleet printed, a process in each line; ANSWERS is what query --json printed."""
import json
import sys

with open(sys.argv[1], encoding='utf-8') as file:
	fleet = [json.loads(line) for line in file]
with open(sys.argv[2], encoding='utf-8') as file:
	answers = json.load(file)


def number(value):
	"""Sums of 128 bits come as text."""
	return None if value is None else float(value)


def expect(what, found, wanted):
	if found != wanted:
		sys.exit(f'{what}:\n{found}\nthe truth is\n{wanted}')


def group(key, processes=None):
	groups = {}
	for process in fleet if processes is None else processes:
		groups.setdefault(process[key], []).append(process)
	return groups


leaking = [p for p in fleet if p['leaked_bytes']]
one, = answers['leaks']
expect('leaks', (one['function'], one['callers'], one['hosts'], one['processes'], number(one['leaked_bytes'])),
       ('append_session', 'serve_request', len(group('host', leaking)), len(leaking), sum(p['leaked_bytes'] for p in leaking)))

sharing = group('host', [p for p in fleet if p['tenant_bytes']])
expect('other tenants', {(r['host'], r['name'], r['tenants'], number(r['most_bytes'])) for r in answers['other_tenants']},
       {(host, 'notebook', 1, max(p['tenant_bytes'] for p in group_)) for host, group_ in sharing.items()})

expect('near misses', {(r['model'], r['processes'], r['near_misses'], r['failures']) for r in answers['near_misses']},
       {(model, len(group_), sum(p['retries'] for p in group_), sum(p['fails'] for p in group_)) for model, group_ in group('model').items()})

expect('versions', {(r['framework_version'], r['processes'], r['growing']) for r in answers['growth_by_version']},
       {(version, len(group_), sum(p['leaked_bytes'] > 0 for p in group_)) for version, group_ in group('version').items()})
rates = {r['framework_version']: number(r['bytes_per_s_each']) for r in answers['growth_by_version']}
if not 1.98 < rates['2.9.0'] / rates['2.8.0'] < 2.02: # it leaks twice as much
	sys.exit(f'growth by version: {rates}')

by_pid = {p['pid']: p for p in fleet}
expect('time to the limit', {r['pid'] for r in answers['time_to_limit']}, {p['pid'] for p in leaking})
left = [number(r['seconds_left']) for r in answers['time_to_limit']]
expect('order of the time to the limit', left, sorted(left))
for row in answers['time_to_limit']:
	# a turn is three events of half a second, in which a leak of this much is left
	rate = by_pid[row['pid']]['leaked_bytes'] / 24 / 1.5
	if not 0.98 < number(row['bytes_per_s']) / rate < 1.02:
		sys.exit(f'time to the limit: {row}, the truth is {rate} bytes a second')

open_pages = [p for p in fleet if p['hole_bytes']]
expect('fragmentation', {(r['pid'], r['layer'], number(r['free_bytes']), r['largest_hole_bytes']) for r in answers['fragmentation']},
       {(p['pid'], 'pages', 8 * p['hole_bytes'], p['hole_bytes']) for p in open_pages})
if not (leaking and sharing and open_pages):
	sys.exit('a fleet without findings proves nothing')
