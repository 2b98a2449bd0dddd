#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [SCRIPT...]: what field guides warn of when a GPU serves a model, with PyTorch's own wheel and Transformers over the simulated driver;
prints TAP. Each script runs out of memory once, and the report must name the cause and the script's line; then it runs with the fix that the
guide gives, and serves. KEEP=FOLDER keeps the recordings. scripts/setup frameworks and clients fetch what it needs."""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / 'tests/frameworks'), str(ROOT / 'tests/frameworks/clients')]
import stand_in # noqa: E402
from run import WORK, transformers # noqa: E402

# script: its argument that does not fit, and the one that does, with 512 MiB
SCRIPTS = {'long_context': (0, 4096), 'reserved_context': (4096, 512), 'large_batch': (32, 4), 'many_requests': (100, 4), 'large_model': (24, 4),
           'kept_logits': (0, 8)}


def serve(script, argument, recording=None):
    preload, environment = transformers()
    more = {**environment, 'SIMCUDA_TOTAL': '512MiB', 'SIMCUDA_CONTEXT': '2MiB', 'PYTHONDONTWRITEBYTECODE': '1',
            'LD_PRELOAD': ' '.join(map(str, preload)), 'CUFLIGHT_OPTIONS': 'size=64MiB:host=off', 'CUFLIGHT_OUTPUT': str(recording)}
    done = subprocess.run(['/usr/bin/python3', '-W', 'ignore', HERE / f'{script}.py', str(argument)], capture_output=True, text=True,
                          timeout=170, cwd=WORK, env={**os.environ, **more})
    told = [line.split() for line in done.stdout.splitlines() if line.startswith(('failed ', 'served'))]
    assert told, f'exit status {done.returncode}: {(done.stdout + done.stderr)[-800:]}'
    return told[-1]


def lines_of(stack, file):
    return {frame['line'] for frame in stack if frame['language'] == 'python' and (frame['file'] or '').endswith('/' + file)}


def check(script):
    broken, fixed = SCRIPTS[script]
    recording = pathlib.Path(os.environ.get('KEEP', WORK)) / f'{script}.cuf'
    recording.unlink(missing_ok=True)
    told = serve(script, broken, recording)
    assert told[0] == 'failed', f'{broken} fits'
    causes, file, lines = told[1].split(','), told[2], set(map(int, told[3].split(',')))
    report = json.loads(stand_in.output(stand_in.BUILD / 'cuflight', 'report', '--json', recording))
    incident, = (incident for incident in report['incidents'] if incident['fatal'])
    assert report['cause']['name_id'] in causes, f'{report["cause"]["id"]} {report["cause"]["summary"]}'
    assert lines_of(incident['stack'], file) & lines, (incident['stack'], lines)
    served = serve(script, fixed, WORK / 'fixed.cuf')
    assert served == ['served'], f'{fixed}: {served}'
    return f'{report["cause"]["id"]}, {file}:{min(lines)}'


if __name__ == '__main__':
    stand_in.tap([(f'{script}: the cause and its line; with the fix it serves', lambda script=script: check(script))
                  for script in sys.argv[1:] or SCRIPTS])
