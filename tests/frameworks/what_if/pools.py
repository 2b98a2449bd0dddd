#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pools.py [NAME...]: the models of analysis/what_if/trials against the real pools of CuPy, RMM and ONNX Runtime (scripts/setup clients), over the
simulated device; prints TAP. TRACES=100 random traces each: sizes, lifetimes, and requests that are refused. After every request and free,
what the pool has of the driver and whether it refused must be equal. SEED=1 is the first trace's.

CuPy takes any of several free chunks of one size. A trace that differs only after such a choice is counted, and at most one in twenty may."""
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = ROOT / 'tests/frameworks/clients'
sys.path[:0] = [str(ROOT / 'tests/frameworks'), str(CLIENTS)]
import run as clients # noqa: E402
import stand_in # noqa: E402

MiB = 2**20
TRACES = int(os.environ.get('TRACES', 100))
STEPS = 250
SEED = int(os.environ.get('SEED', 1))


def player():
    program = clients.WORK / 'model_player'
    if not program.exists():
        stand_in.output('cc', '-O1', '-std=gnu11', '-D_GNU_SOURCE', '-I', ROOT, HERE / 'model_player.c', stand_in.BUILD / 'libanalysis.a', '-o', program,
                        *'-ldw -lelf -ljson-c -lzstd -lz -liberty -lm -ldl -lpthread'.split())
    return program


def size(draw, scale):
    """From bytes to a sixth of the device, most of them small."""
    return draw_size(draw) * scale


def draw_size(draw):
    kind = draw.random()
    if kind < .4:
        return draw.randint(1, 65536)
    if kind < .8:
        return draw.randint(65536, 4 * MiB)
    return draw.randint(4 * MiB, 90 * MiB)


def trace(seed, scale):
    """Requests and frees; in most traces more is requested than there is."""
    draw, live, lines = random.Random(seed), [], []
    stays = draw.choice((.35, .5, .62))
    for block in range(STEPS):
        if live and draw.random() > stays:
            lines.append(f'f {live.pop(draw.randrange(len(live)))}')
        else:
            lines.append(f'a {block} {size(draw, scale)} 0')
            live.append(block)
    return lines


def played(command, text, **settings):
    done = subprocess.run(list(map(str, command)), input=text, capture_output=True, text=True, timeout=550, cwd=clients.WORK,
                          env={**os.environ, **settings})
    assert done.returncode == 0, f'{command[0]}: exit status {done.returncode}: {(done.stdout[-300:] + done.stderr)[-900:]}'
    return done.stdout.splitlines(), done.stderr


def outcomes(command, settings, traces):
    """What each trace led to, what the process had of the device where the client prints that, and its standard error."""
    lines, notes = played(command, 'r\n'.join('\n'.join(trace) + '\n' for trace in traces), **settings)
    capacity = next((line.split()[1] for line in lines if line.startswith('capacity')), None)
    lines = [line for line in lines if line[:1].isdigit()]
    assert len(lines) == sum(map(len, traces)) + len(traces) - 1, f'{len(lines)} lines'
    parts, at = [], 0
    for trace in traces:
        parts.append(lines[at:at + len(trace)])
        at += len(trace) + 1
    return parts, capacity, notes


def compare(make, command, model, values, scale=1):
    preload, environment = make()
    traces = [trace(SEED + number, scale) for number in range(TRACES)]
    settings = {**environment, 'CLIENTS_FOLDER': str(CLIENTS), 'PYTHONDONTWRITEBYTECODE': '1', 'SIMCUDA_TOTAL': f'{512 * scale}MiB',
                'LD_PRELOAD': ' '.join(str(path) for path in preload if 'libcuflight' not in str(path)),
                'PYTHONPATH': f'{environment.get("PYTHONPATH", "")}:{CLIENTS}'}
    real, capacity, _ = outcomes(command, settings, traces)
    modelled, _, choices = outcomes([player(), model, values, capacity or device_room(settings)], {}, traces)
    choices = list(map(int, choices.split()))
    refused = sum(line.endswith('-') for part in real for line in part)
    assert refused >= TRACES, f'only {refused} requests were refused'
    differing, chosen = [], 0
    for number, lines in enumerate(traces):
        if real[number] == modelled[number]:
            continue
        step = next(i for i in range(len(lines)) if real[number][i] != modelled[number][i])
        if 0 < choices[number] <= step + 1 + bool(number):
            chosen += 1
            continue
        differing.append(f'trace {SEED + number} step {step} "{lines[step]}": real {real[number][step]}, model {modelled[number][step]}')
    assert not differing, f'{len(differing)} of {TRACES} traces differ: ' + '; '.join(differing[:4])
    assert chosen <= TRACES / 20 + 1, f'{chosen} traces differ after a choice'
    free = f', {chosen} differ after a choice among equals' if chosen else ''
    return f'{TRACES} traces, {sum(map(len, traces))} steps, {refused} refused{free}'


def device_room(settings):
    """What a process has of the device after its context, for clients that do not print it."""
    program = clients.WORK / 'room'
    if not program.exists():
        source = clients.WORK / 'room.c'
        source.write_text('#include <stdio.h>\n#include <stddef.h>\nint cuInit(unsigned);int cuDevicePrimaryCtxRetain(void**,int);int cuCtxSetCurrent(void*);'
                          'int cuMemGetInfo_v2(size_t*,size_t*);int main(void){void*c;size_t f,t;cuInit(0);cuDevicePrimaryCtxRetain(&c,0);cuCtxSetCurrent(c);'
                          'cuMemGetInfo_v2(&f,&t);printf("%zu\\n",f);return 0;}')
        stand_in.output('cc', '-w', source, '-o', program, stand_in.BUILD / 'sim/libcuda.so.1')
    return played([program], '', LD_LIBRARY_PATH=str(stand_in.BUILD / 'sim'), SIMCUDA_TOTAL=settings['SIMCUDA_TOTAL'])[0][0]


def python(script, *more):
    return [clients.FOLDER / 'bin/python', '-W', 'ignore', HERE / script, *more]


def cupy():
    """CuPy's memory pool"""
    return compare(clients.cupy, python('cupy_real.py'), 'cupy', '')


def onnxruntime_power():
    """ONNX Runtime's arena that grows by powers of two"""
    return compare(clients.onnxruntime, python('onnxruntime_real.py', 'power'), 'onnxruntime', 'arena_extend_strategy:kNextPowerOfTwo')


def onnxruntime_large():
    """ONNX Runtime's arena on a device of 16 GiB, where doubling ends at 1 GiB"""
    return compare(clients.onnxruntime, python('onnxruntime_real.py', 'power'), 'onnxruntime', '', 32)


def onnxruntime_same():
    """ONNX Runtime's arena that takes what was asked for"""
    return compare(clients.onnxruntime, python('onnxruntime_real.py', 'same'), 'onnxruntime', 'arena_extend_strategy:kSameAsRequested')


def rmm():
    """RMM's pool"""
    initial = 64 * MiB
    return compare(lambda: clients.rmm(HERE / 'rmm_real.cpp'), [clients.WORK / 'rmm/rmm_real', initial], 'rmm', f'initial_pool_size:{initial}')


TESTS = cupy, onnxruntime_power, onnxruntime_large, onnxruntime_same, rmm
stand_in.tap([(f'the model of {test.__doc__} is the real one', test) for test in TESTS if not sys.argv[1:] or test.__name__ in sys.argv[1:]])
