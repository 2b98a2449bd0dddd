#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/account.py [BUILD [ROW...]]: where the instructions of each hot path of the recorder go, by source file. A row is
one pair (allocation and free), or one stack; a figure is the difference of two runs under callgrind, of which one makes twice
as many pairs. So load does not change it, and what a program pays once is not in it. README.md has the rows and what they tell."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST_PART = 0.02  # of a row: less of a file is summed up as "other"

# row: pairs, options, program and arguments; @ is the number of pairs
ROWS = {
    'malloc, sampled': (200000, 'host=sampled:start=1', 'bench/malloc_pairs @'),
    'malloc, full': (20000, 'host=full', 'bench/malloc_pairs @'),
    'map': (5000, 'start=1', 'bench/malloc_pairs @ map'),
    'CUDA, sync': (5000, 'host=off', 'bench/cuda_pairs @ sync'),
    'CUDA, async': (5000, 'host=off', 'bench/cuda_pairs @ async'),
    'stack of 23 frames': (2000, '', 'bench/unwinder_cost 23 @ cuflight'),
}


def costs_by_file(path):
    """{file: instructions of its own lines}; code that was inlined counts where it was written"""
    names, costs, file, skip = {}, collections.Counter(), '', False
    for line in path.read_text().splitlines():
        place = re.match(r'(c?)f[lie]=\((\d+)\)(?: (.*))?$', line)  # a name comes once, with its number
        if place:
            names.setdefault(place[2], place[3])
            file = file if place[1] else names[place[2]]
        elif line.startswith('calls='):
            skip = True  # the next line is the cost of the call, which the called function has
        elif re.match(r'[+\-*\d]', line):
            costs[file] += 0 if skip else int(line.split()[1])
            skip = False
    return costs


def run(build, work, pairs, options, command):
    program, *arguments = command.replace('@', str(pairs)).split()
    out = work / 'callgrind'
    environment = {**os.environ, 'LD_LIBRARY_PATH': f'{build}/sim', 'SIMCUDA_DEVICES': '1', 'CUFLIGHT_OUTPUT': f'{work}/'}
    if options:
        environment |= {'CUFLIGHT_OPTIONS': options, 'LD_PRELOAD': f'{build}/libcuflight.so'}
    subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', build / program, *arguments], check=True,
                   env=environment, capture_output=True)
    return costs_by_file(out)


def account(build, work, row):
    pairs, options, command = row
    once, twice = (run(build, work, pairs * times, options, command) for times in (1, 2))
    return {file: (cost - once[file]) / pairs for file, cost in twice.items()}


def show(title, costs):
    ours, rest = collections.Counter(), 0.0
    for file, cost in costs.items():
        inside = re.search(r'(?:^|/)((?:interpose|both)/\S+)', file)
        if inside:
            ours[inside[1]] += cost
        else:
            rest += cost
    total = sum(ours.values())
    print(f'{title}: {total:.1f} in the recorder, {rest:.1f} elsewhere')
    shown = {file: cost for file, cost in ours.items() if cost >= LEAST_PART * total}
    for file, cost in sorted(shown.items(), key=lambda item: -item[1]):
        print(f'  {cost:8.1f}  {100 * cost / total:3.0f}%  {file}')
    print(f'  {total - sum(shown.values()):8.1f}        other')


def main():
    build = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / 'build').resolve()
    for title in sys.argv[2:] or ROWS:
        with tempfile.TemporaryDirectory() as work:
            show(title, account(build, pathlib.Path(work), ROWS[title]))


main()
