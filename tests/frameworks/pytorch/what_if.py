#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""what_if.py [NAME...]: the model of PyTorch's allocator against the real one, over the simulated driver; prints TAP. Each wheel of
build/frameworks/torch-* plays random traces (what_if_trace.py) under each setting. tests/fault/what_if_model.c plays the same on the model
and compares every outcome, and all segments and blocks at 100 points a trace. WHAT_IF_TRACES=500: traces of a setting (default 8). More than
25 are played in pieces; a piece that was equal is noted, and a later run with the same model and script goes on after it."""
import functools
import glob
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
FRAMEWORKS = ROOT / 'build/frameworks'
sys.path.insert(0, str(ROOT / 'tests/frameworks'))
import stand_in # noqa: E402
from stand_in import BUILD, Skip # noqa: E402

TRACES, POINTS, FIRST, PIECE = int(os.environ.get('WHAT_IF_TRACES', '8')), 100, 1000, 25
MODEL, SCRIPT = BUILD / 'fault/what_if_model', HERE / 'what_if_trace.py'
COUNTED = 'traces', 'requests', 'of them refused', 'points'
# settings, and the share of the device that PyTorch allows itself (0: all of it)
SETTINGS = (
    ('', 0),
    ('expandable_segments:True', 0),
    ('max_split_size_mb:64', 0),
    ('roundup_power2_divisions:4', 0),
    ('roundup_power2_divisions:[1:2,4:8,16:1,>:4]', 0),
    ('garbage_collection_threshold:0.6', 0.8),
    ('expandable_segments:True,roundup_power2_divisions:8', 0.7),
    ('max_split_size_mb:32,garbage_collection_threshold:0.8', 0.9),
)


class Wheel:
    def __init__(self, name):
        self.name, self.work = name, tempfile.TemporaryDirectory(prefix='what_if.')
        self.python = FRAMEWORKS / name / 'bin/python'

    @functools.cached_property
    def version(self):
        versions = glob.glob(str(FRAMEWORKS / self.name / 'lib/python3*/site-packages/torch-*.dist-info'))
        return re.search(r'torch-(\d+[.]\d+[.]\d+)', os.path.basename(versions[0]))[1] if versions else ''

    @functools.cached_property
    def environment(self):
        libraries = glob.glob(str(FRAMEWORKS / self.name / 'lib/python3*/site-packages/torch/lib'))[0]
        preload, environment = stand_in.make(pathlib.Path(libraries, 'libc10_cuda.so'), glob.glob(f'{libraries}/*.so*'),
                                             pathlib.Path(self.work.name))
        # without the recorder: this is about the allocators
        return {**os.environ, **environment, 'LD_PRELOAD': ' '.join(map(str, preload[1:])), 'SIMCUDA_TOTAL': '768MiB',
                'SIMCUDA_CONTEXT': '16MiB', 'PYTHONDONTWRITEBYTECODE': '1'}

    def compare(self, settings, fraction, traces, first):
        """What was compared, as COUNTED; raises with the first lines where the two differ."""
        real = subprocess.run([self.python, '-W', 'ignore', SCRIPT, str(fraction), str(traces), str(POINTS), str(first)],
                              env={**self.environment, 'PYTORCH_CUDA_ALLOC_CONF': settings}, capture_output=True, text=True)
        assert real.returncode == 0, real.stderr[-400:]
        model = subprocess.run([MODEL, settings, self.version], input=real.stdout, capture_output=True, text=True)
        assert model.returncode == 0, model.stderr + '\n'.join(model.stdout.splitlines()[:12])
        counts = [int(re.search(rf'(\d+) {what}', model.stdout)[1]) for what in COUNTED]
        assert counts[0] == traces and counts[3] == traces * POINTS, model.stdout
        return counts


class Notes:
    """Which pieces were equal, by all that decides it; in build/, none for a run of one piece."""

    def __init__(self, wheel):
        self.path = FRAMEWORKS / wheel.name / 'what_if.equal'
        self.same = hashlib.sha256(MODEL.read_bytes() + SCRIPT.read_bytes() + wheel.version.encode()).hexdigest()[:16]
        lines = self.path.read_text().splitlines() if TRACES > PIECE and self.path.exists() else []
        self.counts = {key: list(map(int, counts.split())) for key, counts in (line.split('\t') for line in lines)}

    def compare(self, wheel, settings, fraction, traces, first):
        key = f'{self.same} {settings or "default"} {fraction} {first} {traces}'
        if key not in self.counts:
            self.counts[key] = wheel.compare(settings, fraction, traces, first)
            if TRACES > PIECE:
                with self.path.open('a') as file:
                    print(key, ' '.join(map(str, self.counts[key])), sep='\t', file=file)
        return self.counts[key]


def test(wheel, settings, fraction):
    if not wheel.python.exists():
        raise Skip(stand_in.absent(wheel.name))
    notes, end = Notes(wheel), FIRST + TRACES
    pieces = [notes.compare(wheel, settings, fraction, min(PIECE, end - first), first) for first in range(FIRST, end, PIECE)]
    return ', '.join(f'{sum(counts)} {what}' for counts, what in zip(zip(*pieces), COUNTED)) + ', all equal'


def main(*only):
    names = sorted({'torch-cu13', *(path.parts[-2] for path in FRAMEWORKS.glob('torch-*/packages'))})
    wheels = [Wheel(name) for name in names if not only or name in only]
    stand_in.tap([(f'{wheel.name} {wheel.version}: {settings or "default"}' + (f', a share of {fraction}' if fraction else ''),
                   functools.partial(test, wheel, settings, fraction)) for wheel in wheels for settings, fraction in SETTINGS])


main(*sys.argv[1:])
