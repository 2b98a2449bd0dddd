#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""what_if_advice.py [NAME...]: the table of `cuflight what-if` against what happens; prints TAP. Real PyTorch runs out of memory under the
recorder, over the simulated driver, in 20 fragmented programs (what_if_program.py). Then each setting of the table is set, the program
runs again, and it must be served where the table has "fits" and refused where it has "no"."""
import functools
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
FRAMEWORKS = ROOT / 'build/frameworks'
sys.path.insert(0, str(ROOT / 'tests/frameworks'))
import stand_in # noqa: E402
from stand_in import BUILD, Skip # noqa: E402

# MiB: in use at the peak, which blocks stay, their size, the request that fails; a device of 1 GiB
HELPED = [(900, 16, 12, 300), (900, 8, 24, 400), (940, 10, 16, 500), (960, 40, 5, 350), (880, 6, 44, 380),
          (950, 50, 8, 600), (900, 30, 9, 420), (920, 25, 14, 520), (940, 60, 4, 450), (800, 12, 30, 560)]
HELPLESS = [(900, 2, 10, 450), (960, 4, 5, 400), (940, 3, 6, 420), (960, 2, 4, 300), (900, 2, 12, 460),
            (940, 8, 2, 350), (960, 5, 4, 500), (920, 2, 8, 480), (960, 3, 5, 560), (900, 3, 4, 600)]
SETTINGS = {'expandable-segments': 'expandable_segments:True', 'max-split-128': 'max_split_size_mb:128'}


class Wheel:
    def __init__(self, name):
        self.name, self.work = name, tempfile.TemporaryDirectory(prefix='what_if.')
        self.python = FRAMEWORKS / name / 'bin/python'

    @functools.cached_property
    def ready(self):
        libraries = glob.glob(str(FRAMEWORKS / self.name / 'lib/python3*/site-packages/torch/lib'))[0]
        return stand_in.make(pathlib.Path(libraries, 'libc10_cuda.so'), glob.glob(f'{libraries}/*.so*'), pathlib.Path(self.work.name))

    def run(self, numbers, settings, recording=None):
        preload, environment = self.ready
        more = {'SIMCUDA_TOTAL': '1GiB', 'SIMCUDA_CONTEXT': '16MiB', 'PYTHONDONTWRITEBYTECODE': '1', 'PYTORCH_CUDA_ALLOC_CONF': settings}
        if recording:
            more |= {'CUFLIGHT_OUTPUT': str(recording), 'CUFLIGHT_OPTIONS': 'size=16MiB'}
        done = subprocess.run([self.python, '-W', 'ignore', HERE / 'what_if_program.py', *map(str, numbers)], capture_output=True, text=True,
                              env={**os.environ, **environment, **more, 'LD_PRELOAD': ' '.join(map(str, preload if recording else preload[1:]))})
        assert done.returncode in (0, 1), done.stderr[-400:]
        return done.returncode == 0


def test(wheel, numbers, helps):
    if not wheel.python.exists():
        raise Skip(stand_in.absent(wheel.name))
    recording = pathlib.Path(wheel.work.name, 'recording.cuf')
    recording.unlink(missing_ok=True)
    assert not wheel.run(numbers, '', recording), 'it was served without any setting'
    answer = json.loads(subprocess.run([BUILD / 'cuflight', 'what-if', '--json', recording], check=True, capture_output=True, text=True).stdout)
    assert answer['unlike'] is None, answer['unlike']
    rows = {row['id']: row for row in answer['rows']}
    assert rows['expandable-segments']['fits'] == helps, rows['expandable-segments']
    for row, settings in SETTINGS.items():
        served = wheel.run(numbers, settings)
        assert rows[row]['fits'] == served, f'{settings}: {rows[row]["fits"]}, and it was {"served" if served else "refused"}'
    return ', '.join(f'{row} {"fits" if rows[row]["fits"] else "no"}' for row in SETTINGS)


def main(*only):
    names = sorted({'torch-cu13', *(path.parts[-2] for path in FRAMEWORKS.glob('torch-*/packages'))})
    wheels = [Wheel(name) for name in names if not only or name in only]
    stand_in.tap([(f'{wheel.name}: {numbers}: expandable segments {"help" if helps else "do not help"}',
                   functools.partial(test, wheel, numbers, helps))
                  for wheel in wheels for helps, all_numbers in ((True, HELPED), (False, HELPLESS)) for numbers in all_numbers])


main(*sys.argv[1:])
