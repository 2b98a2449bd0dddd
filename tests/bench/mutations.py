#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/mutations.py [--all] [--only NUMBER...] [FOLDER]: twenty faults, put one by one into a copy of the sources.
Prints for each which test finds it, and how many are found: by the files of `scripts/test`, with --all by those of
`scripts/test --all`. A file that is expected to find it runs first, then all. A copy and its build are in FOLDER (default
build/mutations). What is known is in FOLDER/results and is not run again, so it may be stopped. A fault whose line has changed
is an error: mend its row."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ['unit', 'golden', 'lint', 'e2e', 'fault', 'torture']

# what is wrong, file, text (once in the file), what is there instead; kind and path of the tests that are tried first
FAULTS = [
    ('lost free of an array', 'interpose/hooks/cuda/cuda_array.c',
     'cuf_free_begin(&call, CUF_SPACE_ARRAY, (uint64_t)(uintptr_t)array, &block);\n\tCUresult result = cuf_real.cuArrayDestroy',
     'false;\n\t(void)block;\n\tCUresult result = cuf_real.cuArrayDestroy', 'e2e', 'device/victims'),
    ('a refused free is not undone', 'interpose/hooks/cuda/cuda_call.c',
     'if (freed && result != CUDA_SUCCESS)', 'if (freed && result == CUDA_SUCCESS && !block->key)',
     'unit', 'hooks/cuda/driver_calls'),
    ('pitched memory counts its width, not its pitch', 'interpose/hooks/cuda/cuda_linear.c',
     'cuf_real.cuMemAllocPitch_v2(out, pitch, width_bytes, height, element_bytes);\n\tif (result == CUDA_SUCCESS && pitch)',
     'cuf_real.cuMemAllocPitch_v2(out, pitch, width_bytes, height, element_bytes);\n\tif (result != CUDA_SUCCESS && pitch)',
     'unit', 'hooks/cuda/driver_calls'),
    ('overwritten events are not counted', 'interpose/store/ring.c',
     '__atomic_fetch_add(counts.overwritten, used, __ATOMIC_RELAXED);', ';', 'unit', 'interpose/record/framework'),
    ('a block in the furthest place of the ledger is not found', 'interpose/store/ledger.c',
     'raise_reach(probe + 1);', 'raise_reach(probe);', 'unit', 'interpose/record/lifecycle'),
    ('aligned_alloc is not recorded', 'interpose/hooks/malloc/libc.c',
     'return record_alloc(cuf_real.aligned_alloc(alignment, bytes), bytes, CUF_HOST_ALIGNED,\n\t\t\t    FRAME);',
     'return cuf_real.aligned_alloc(alignment, bytes);', 'e2e', 'host/host_memory'),
    ('a resize that failed: freed bytes with the wrong sign', 'interpose/record/host.c',
     'host_free_bytes -= cuf_host_bytes(undo->word1)', 'host_free_bytes += cuf_host_bytes(undo->word1)',
     'unit', 'interpose/record/host'),
    ('tokens of Hugging Face are not redacted', 'both/secrets.c', '"hf_", ', '', 'unit', 'recording/secret_texts'),
    ('Python 3.11 and later: one-line entries are one line off', 'interpose/python/python_line.c',
     'line += form - ONE_LINE;', 'line += form - ONE_LINE + 1;', 'unit', 'interpose/python'),
    ('a graph pool holds what it reserved', 'analysis/measure/owners.c', '\t\tbytes = block->aux;\n', '', 'unit', 'facts/owners'),
    ('pool slack: reserved and used are exchanged', 'analysis/measure/owners.c',
     'subtract_to_zero(pool->reserved_bytes, pool->used_bytes)', 'subtract_to_zero(pool->used_bytes, pool->reserved_bytes)',
     'unit', 'facts/owners'),
    ('a gap of a pool ends at the last block, not at the furthest', 'analysis/measure/holes_ranges.c',
     'end = most_of(behind, end);', 'end = at;', 'unit', 'facts/owners'),
    ('growth: what was freed is what was kept', 'analysis/growth/survival.c',
     'sums.freed_bytes += site->bins[bin].freed_bytes;', 'sums.freed_bytes += site->bins[bin].net_bytes;',
     'unit', 'growth/survival'),
    ('events of threads are not put in order', 'analysis/recording/events.c', 'merge->sorted &= seq >= merge->last_seq;', ';',
     'unit', 'replay/replay'),
    ('names are those of the next instruction', 'analysis/facts/frames.c',
     'elf_address = addr - module->base - 1;', 'elf_address = addr - module->base + 16;', 'golden', 'golden'),
    ('what the end held is compared with the peak before', 'analysis/gate/compared.c',
     'return at_end ? site->before->end.median', 'return !at_end ? site->before->end.median', 'e2e', 'gate/check'),
    ('JSON: two fields of an allocator are exchanged', 'analysis/view/json/json_host.c',
     '"system_bytes", allocator->system_bytes', '"system_bytes", allocator->live_bytes', 'golden', 'golden'),
    ('pprof: a function has its file as its name', 'analysis/view/export/pprof.c',
     'FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4',
     'FUNCTION_ID = 1, FUNCTION_NAME = 4, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 2', 'e2e', 'export/formats'),
    ("what-if: the driver's pool refuses with free pages", 'analysis/what_if/pools.c', 'trim(pool, 0);\n\t\tif', 'if',
     'unit', 'what_if'),
    ('nested phases have no depth', 'analysis/growth/phases_work.c', 'span.depth = outer->depth + 1;', 'span.depth = outer->depth;',
     'unit', 'growth/phases'),
]


def run(command, folder, **environment):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


def make_copy(folder):
    """The sources as they are now, built: after a fault, only what it touches is built again."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    files = run(['git', 'ls-files', '-z'], ROOT).stdout.split('\0')
    for name in filter(None, files):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    run(['git', 'init', '-q'], folder)
    run(['scripts/setup'], folder)
    built = run(['make', '-j2', 'all', 'tests'], folder)
    if built.returncode:
        sys.exit(f'mutations: the sources do not build\n{built.stderr[-2000:]}')


def quick():
    return {'CHECK_RUN': 'quick', 'CAUSE_SEEDS': '1', 'CHURN_SECONDS': '8', 'DOORS_IN_TURN': '1', 'KILL_RUNS': '20',
            'TORTURE_SECONDS': '15'}


def failing(folder, environment, known, kind, *names):
    """The first file of that kind that fails, and its first failing test, or None. known: files that fail without a fault."""
    checked = run(['scripts/check', kind, 'build', *names], folder, CHECK_STOP='1', **environment)
    found = None
    for line in checked.stdout.splitlines():
        row = re.match(r'  (\S+) +(\d+) passed +(\d+) failed', line)
        test = re.match(r' *\| *(?:# )?not ok (?:\d+ )?-? *(.*)', line)
        if found and test:
            return f'{found}: {test[1]}'
        if row and int(row[3]) and row[1] not in known:
            found = row[1]
    return found


def find(folder, environment, known, kind, name):
    """The first test file that fails because of the fault, or None: first where it is expected, then everywhere."""
    found = failing(folder, environment, known, kind, name)
    if not found:
        run(['make', '-j2', 'all', 'tests'], folder)
        found = next(filter(None, (failing(folder, environment, known, each) for each in KINDS)), None)
    return found


def try_fault(fault, folder, environment, known):
    what, name, text, instead, kind, first = fault
    path = folder / name
    good = path.read_text()
    if good.count(text) != 1:
        sys.exit(f'mutations: {name} has {good.count(text)} times: {text!r}')
    path.write_text(good.replace(text, instead))
    try:
        if run(['make', '-j2', 'all'], folder).returncode:
            return 'the compiler'
        return find(folder, environment, known, kind, first) or 'none'
    finally:
        path.write_text(good)


def main():
    arguments = sys.argv[1:]
    environment = {'CHECK_RUN': 'all'} if '--all' in arguments else quick()
    numbers = [int(a) for a in arguments if a.isdigit()] or range(1, len(FAULTS) + 1)
    folders = [a for a in arguments if not a.startswith('--') and not a.isdigit()]
    folder = pathlib.Path(folders[0] if folders else ROOT / 'build/mutations').resolve()
    copy, results = folder / 'copy', folder / f"results.{environment['CHECK_RUN']}"
    make_copy(copy)
    known = set((folder / 'fails_anyway').read_text().split()) if (folder / 'fails_anyway').exists() else set()
    done = dict(line.split('\t') for line in results.read_text().splitlines()) if results.exists() else {}
    found = 0
    for number in numbers:
        fault = FAULTS[number - 1]
        if fault[0] not in done:
            done[fault[0]] = try_fault(fault, copy, environment, known)
            with results.open('a') as out:
                out.write(f'{fault[0]}\t{done[fault[0]]}\n')
        found += done[fault[0]] != 'none'
        print(f'{number:2}  {fault[0]:60}  {done[fault[0]]}', flush=True)
    print(f'{found} of {len(numbers)} found')


main()
