#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""profiles.py REPORT KIND PROFILE: each call site of a kind of memory has the same bytes in a report (--json) and in a
profile, which `go tool pprof` reads. A profile leaves functions of the interpreter out where Python frames are known,
and names what has no name by its module; so stacks are compared by their other functions. Prints the sites that
differ, or how many there are."""
import collections
import json
import os
import re
import subprocess
import sys

path, kind, profile = sys.argv[1:]
with open(path) as file:
	sites = [site for site in json.load(file)['leaks'] if site['kind'] == kind]
interpreter = {frame['function'] for site in sites for frame in site['stack']
               if re.match(r'(lib)?python', os.path.basename(frame['module'] or ''))}
told, read = collections.Counter(), collections.Counter()
for site in sites:
	names = (frame['function'] for frame in site['stack'])
	told[tuple(name for name in names if name and name not in interpreter)] += site['bytes']

command = ['go', 'tool', 'pprof', '-symbolize=none', '-traces', '-unit=B', '-sample_index=inuse_space', profile]
text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
for trace in text.split('-----------+')[1:]:
	rows = re.findall(r'^ *(\d*)B? {2,}(\S.*)$', trace.partition('\n')[2], re.M)
	stack = [(size, name.removesuffix(' (inline)')) for size, name in rows if not re.match(r'\w+: ', name)]
	if stack and f'kind:  {kind}\n' in trace:
		read[tuple(name for _, name in stack if '+0x' not in name and name not in interpreter)] += int(stack[0][0])

for stack in sorted(told.keys() | read.keys()):
	if told[stack] != read[stack]:
		print(f'{stack}: the report has {told[stack]} bytes, the profile {read[stack]}')
if +told != +read or not told:
	sys.exit(1)
print(f'{len(+told)} sites of {kind} memory, {sum(told.values())} bytes')
