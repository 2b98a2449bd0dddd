#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--system] [NAME...]: PyTorch as its wheels are, under the recorder; prints TAP. Environments: build/frameworks/torch-*
(scripts/setup frameworks, or pytorch) and the system's Python with Debian's PyTorch (--system: that alone). Without a GPU PyTorch's own
caching allocator runs over the simulated driver: ../stand_in.py.
"""
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
FRAMEWORKS = ROOT / 'build/frameworks'
sys.path[:0] = [str(ROOT / 'tests'), str(ROOT / 'tests/frameworks'), str(ROOT / 'tests/e2e/framework/torch')]
import check_blocks # noqa: E402
import recording as r # noqa: E402
import stand_in # noqa: E402
from stand_in import LIBRARY, Skip, output, symbols # noqa: E402

WANTED = re.compile(r'report(MemoryUsage|OutOfMemory)ToProfiler')
POINTS = '100'


class PyTorch:
    def __init__(self, name, python, tests):
        self.name, self.python, self.tests, self.work = name, str(python), tests, pathlib.Path(tempfile.mkdtemp(prefix='pytorch.'))
        atexit.register(shutil.rmtree, self.work, ignore_errors=True)
        found = subprocess.run(['env', self.python, '-W', 'ignore', '-c', 'import torch; print(torch.__file__); print(torch.__version__)'],
                               capture_output=True, text=True)
        self.there = found.returncode == 0
        self.error = found.stderr.strip()
        self.file, self.version = found.stdout.split()[-2:] if self.there else (None, None)
        self.libraries = pathlib.Path(self.file).parent / 'lib' if self.there else None

    def cuda(self):
        return self.libraries / 'libc10_cuda.so'

    def run(self, script, *args, preload=(), check=True, **environment):
        """Output of a script under the recorder, and the recording."""
        where = self.work / 'recording.cuf'
        where.unlink(missing_ok=True)
        more = {'CUFLIGHT_OUTPUT': str(where), 'PYTHONDONTWRITEBYTECODE': '1', **environment}
        preload = ' '.join(map(str, preload))
        done = subprocess.run([self.python, '-W', 'ignore', str(HERE / script), *args], capture_output=True, text=True, timeout=180,
                              env={**os.environ, **more, **({'LD_PRELOAD': preload} if preload else {})})
        if check and done.returncode not in (0, 1):
            raise AssertionError(f'exit status {done.returncode}: {done.stderr[-400:]}')
        return done, where

    @functools.cached_property
    def stand_in(self):
        return stand_in.make(self.cuda(), glob.glob(str(self.libraries / '*.so*')), self.work)

    def books(self, settings):
        preload, environment = self.stand_in
        done, where = self.run('books.py', '7', POINTS, preload=preload, PYTORCH_CUDA_ALLOC_CONF=settings, **environment)
        (self.work / 'truth').write_text(done.stdout)
        return done, where


# ---- tests: return None or a remark; AssertionError says what is wrong ----

def names(torch):
    """the names by which it reports are hooked, in libraries that bind by name"""
    wanted = {name for name in symbols(torch.cuda(), False) if WANTED.search(name)}
    assert len(wanted) == 2, f'it imports {sorted(wanted)}'
    missing = wanted - symbols(LIBRARY, True)
    assert not missing, f'not hooked: {sorted(missing)}'
    for name in ('libc10.so', 'libc10_cuda.so'):
        assert 'SYMBOLIC' not in output('readelf', '-d', str(torch.libraries / name)), f'{name} binds its own symbols first'
    return ' '.join(sorted(wanted))


def clash(torch):
    """the recorder defines nothing else that its libraries define"""
    ours, shared = symbols(LIBRARY, True), set()
    for library in glob.glob(str(torch.libraries / '*.so*')):
        shared |= {f'{os.path.basename(library)}: {name}' for name in symbols(library, True) & ours if not WANTED.search(name)}
    assert not shared, ', '.join(sorted(shared))


def host(torch):
    """import and work on the CPU are as without the recorder, and host reports sum to the profiler's own"""
    plain, _ = torch.run('host.py')
    seen, where = torch.run('host.py', preload=[LIBRARY], CUFLIGHT_OPTIONS='start=1')
    assert plain.returncode == seen.returncode == 0, seen.stderr[-400:]
    assert plain.stdout == seen.stdout, f'{plain.stdout!r} became {seen.stdout!r}'
    assert 'cuflight' not in seen.stderr, seen.stderr
    recording = r.Recording(where)
    framework = recording.framework()
    want = next(line for line in seen.stdout.splitlines() if line.startswith('host ')).split()[1:]
    have = [framework.get(key) for key in ('host_reports', 'host_allocated_bytes', 'host_freed_bytes')]
    assert have == want, f'recorded {have}, the profiler saw {want}'
    # a distribution's library is called by its own version, and torch itself says 1.13.0a0
    assert framework.get('framework') == 'PyTorch' and torch.version.startswith(framework.get('version', '?')), framework
    assert not recording.notes(r.NOTE_FRAMEWORK), recording.notes(r.NOTE_FRAMEWORK)
    return f'{want[0]} reports, {want[1]} bytes'


def sites(torch):
    """a tensor's memory on the host is its line's, in the user's own file"""
    _, where = torch.run('host.py', preload=[LIBRARY], CUFLIGHT_OPTIONS='start=1')
    report = json.loads(output(stand_in.BUILD / 'cuflight', 'report', '--json', where))
    # a tensor is recorded exactly; beside it the sample may hold a small block, of what PyTorch keeps at a function's first call
    sites = [site for site in report['leaks'] if site['basis'] == 'observed' and any(frame.get('function') == 'keep_tensors' for frame in site['stack'])]
    want = 5 * 300 * 5000 * 4
    assert [(site['bytes'], site['count']) for site in sites] == [(want, 5)], [(s['bytes'], s['stack'][:3]) for s in sites or report['leaks'][:3]]
    frame = next(frame for frame in sites[0]['stack'] if frame.get('function') == 'keep_tensors')
    line = next(n for n, text in enumerate((HERE / 'host.py').read_text().splitlines(), 1) if 'torch.randn' in text)
    assert os.path.basename(frame['file']) == 'host.py' and frame['line'] == line, frame


def compare(torch, settings, backend):
    done, where = torch.books(settings)
    assert done.returncode == 1, done.stderr[-400:]
    recording = r.Recording(where)
    assert recording.framework().get('backend') == backend, recording.framework()
    wrong, compared = check_blocks.check(str(torch.work / 'truth'), recording)
    assert not wrong, '; '.join(wrong[:5])
    assert compared >= 5 * int(POINTS), compared
    assert not recording.notes(r.NOTE_FRAMEWORK), recording.notes(r.NOTE_FRAMEWORK)
    assert "out of GPU memory: PyTorch's request(" in done.stderr, done.stderr
    rebuilt = subprocess.run([stand_in.BUILD / 'fault/framework_points', where], input=done.stdout, capture_output=True, text=True)
    assert rebuilt.returncode == 0, f'the report: {rebuilt.stdout[-400:]}'
    return f'{compared} figures; the report: {rebuilt.stdout.splitlines()[-1]}'


def native(torch):
    """the books of its caching allocator are the recording's, at every point and at the failure"""
    return compare(torch, '', 'native')


def expandable(torch):
    """the same with expandable segments"""
    return compare(torch, 'expandable_segments:True', 'expandable')


def blind(torch):
    """with the back-end cudaMallocAsync the recording says what it does not see"""
    done, where = torch.books('backend:cudaMallocAsync')
    assert done.returncode == 1 or 'point' in done.stdout or 'cudaMallocAsync' in done.stderr, done.stderr[-400:]
    recording = r.Recording(where)
    assert not [e for e in recording.ring(r.FRAMEWORK_RING) if e.kind == r.FRAMEWORK]
    assert any('cudaMallocAsync' in note for note in recording.notes(r.NOTE_FRAMEWORK)), recording.notes(r.NOTE_FRAMEWORK)
    assert recording.framework() == {'framework': 'PyTorch', 'backend': 'cudaMallocAsync'}, recording.framework()


HOST_TESTS = host, sites
CUDA_TESTS = names, clash, native, expandable, blind


def environments(system_alone):
    """Those that are there, and the one that `scripts/setup frameworks` makes; the system's, which knows no CUDA."""
    made = {'torch-cu13', *(path.parts[-2] for path in FRAMEWORKS.glob('torch-*/packages'))}
    return [*(PyTorch(name, FRAMEWORKS / name / 'bin/python', HOST_TESTS + CUDA_TESTS) for name in sorted(made) if not system_alone),
            PyTorch('system', '/usr/bin/python3', HOST_TESTS)]


def run(torch, test):
    if torch.there:
        return test(torch)
    if (FRAMEWORKS / torch.name).exists():
        raise AssertionError(torch.error)
    raise Skip('no torch for /usr/bin/python3' if torch.name == 'system' else stand_in.absent(torch.name))


def main(*only):
    system_alone, only = '--system' in only, {name for name in only if name != '--system'}
    stand_in.tap([(f'{torch.name} {torch.version or ""}: {test.__doc__}', functools.partial(run, torch, test))
                  for torch in environments(system_alone) for test in torch.tests if not only or test.__name__ in only])


main(*sys.argv[1:])
