#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [NAME...]: CuPy, RMM, JAX, ONNX Runtime and Transformers as published (scripts/setup clients) allocate through pools of their own, over
the simulated driver; prints TAP. KEEP=FILE keeps the last recording. Each says what its pool took from the driver: the report must have the same, name whose it is, say that
the inside is not seen, and tell the request that failed. No kernel runs."""
import atexit
import functools
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
sys.path[:0] = [str(ROOT / 'tests/frameworks')]
import stand_in # noqa: E402

FOLDER = ROOT / 'build/frameworks/clients'
WORK = pathlib.Path(tempfile.mkdtemp(prefix='clients.'))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
MiB, GiB = 2**20, 2**30
REFUSED = 20 * GiB
# what XLA opens by name, and the functions of it that it carries stubs for
LIBRARIES_OF_XLA = {'libcublas.so.13': 'cublas(?!Lt)', 'libcublasLt.so.13': 'cublasLt', 'libcudnn.so.9': 'cudnn', 'libcufft.so.12': 'cufft',
                    'libcupti.so.13': 'cupti', 'libnccl.so.2': 'nccl', 'libnvrtc.so.13': 'nvrtc', 'libnvshmem_host.so.3': 'nvshmem',
                    'libnvJitLink.so.13': 'nvJitLink'}


def packages():
    if not (FOLDER / 'packages').exists():
        raise stand_in.Skip(stand_in.absent('clients').replace('setup frameworks', 'setup clients'))
    return next(FOLDER.glob('lib/python3*/site-packages'))


def folder(name):
    where = WORK / name
    where.mkdir(exist_ok=True)
    return where


@functools.cache
def cupy():
    """Its runtime is linked into one of its modules."""
    library, = (packages() / 'cupy_backends/cuda/api').glob('runtime.*.so')
    functions = {name: offset for name, offset in stand_in.carried(library).items() if re.match('cuda[A-Z]', name)}
    preload, environment = stand_in.make_runtime('libcudart.so.13', functions, folder('cupy'))
    names = WORK / 'cupy/names'
    names.write_text(''.join(f'{name} {offset}\n' for name, offset in functions.items()))
    return preload, {**environment, 'STATIC_RUNTIME': str(names), 'CUPY_CACHE_DIR': str(WORK / 'cupy/cache')}


@functools.cache
def onnxruntime():
    """Linked with CUDA's libraries."""
    library = packages() / 'onnxruntime/capi/libonnxruntime_providers_cuda.so'
    work = folder('onnxruntime')
    for soname in set(re.findall(r'\[(libcu[a-zA-Z]+\.so\.\d+)\]', stand_in.output('readelf', '-d', library))) - {'libcudart.so.13', 'libcuda.so.1'}:
        stand_in.make_library(re.match(r'lib(\w+)', soname)[1], soname, [library], work)
    return stand_in.make(library, [library], work)


@functools.cache
def jax():
    """Opens all of CUDA by name, and finds its functions through stubs of the same names."""
    library = packages() / 'jax_plugins/xla_cuda13/xla_cuda_plugin.so'
    work, stubs = folder('jax'), stand_in.carried(library)
    preload, environment = stand_in.make_runtime('libcudart.so.13', stubs, work)
    for soname, names in LIBRARIES_OF_XLA.items():
        stand_in.make_named({name for name in stubs if re.match(f'{names}[A-Z_]', name)}, soname, work)
    nvml = work / 'nvml.o'
    stand_in.output('cc', '-c', '-fPIC', ROOT / 'tests/frameworks/stand_in/nvml.c', '-o', nvml)
    rest = {name for name in stubs if re.match('nvml[A-Z]', name)} - {line.split()[-1] for line in stand_in.output('nm', nvml).splitlines()}
    stand_in.make_named(rest, 'libnvidia-ml.so.1', work, nvml)
    return preload, {**environment, 'JAX_PLATFORMS': 'cuda', 'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1'}


@functools.cache
def rmm():
    """Headers, made into a program: WORK/rmm/rmm_pool."""
    include, program = packages() / 'librmm/include', folder('rmm') / 'rmm_pool'
    cuda = ROOT / 'build/cuda12/include'
    if not cuda.exists():
        raise stand_in.Skip('no build/cuda12: run scripts/setup')
    folders = [include, include / 'rapids', include / 'rapids/libcudacxx', cuda, packages() / 'nvidia/cu13/include']
    settings = ['LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE', 'FMT_HEADER_ONLY', 'SPDLOG_FMT_EXTERNAL']
    object_file = WORK / 'rmm/rmm_pool.o'
    stand_in.output('g++', '-std=c++17', '-O1', '-g', '-w', *(f'-D{name}' for name in settings), *(f'-I{path}' for path in folders),
                    '-c', HERE / 'rmm_pool.cpp', '-o', object_file)
    wanted = [line.split()[-1] for line in stand_in.output('nm', '--undefined-only', object_file).splitlines()]
    preload, environment = stand_in.make_runtime('libcudart.so.12', wanted, WORK / 'rmm')
    stand_in.output('g++', object_file, '-o', program, *preload[1:], '-ldl', '-lpthread')
    return preload, environment


def site_packages(name):
    found = next((ROOT / 'build/frameworks' / name).glob('lib/python3*/site-packages'), None)
    if not found:
        raise stand_in.Skip(f'no build/frameworks/{name}')
    return found


@functools.cache
def transformers():
    """With PyTorch's own wheel, whose mathematics do nothing; numpy is that of the others."""
    torch = site_packages('torch-cu13') / 'torch/lib'
    libraries = sorted(map(str, torch.glob('*.so*')))
    work = folder('transformers')
    preload, environment = stand_in.make(torch / 'libc10_cuda.so', libraries, work)
    for name in ('cublas', 'cublasLt'):
        stand_in.make_library(name, f'lib{name}.so.13', libraries, work)
        preload.append(work / f'lib{name}.so.13') # PyTorch's RPATH comes before the environment's
    return preload, {**environment, 'PYTHONPATH': ':'.join(map(str, (site_packages('torch-cu13'), site_packages('transformers'), packages())))}


def run(make, command, **settings):
    """(what it printed, report) of a client that ran out of memory."""
    preload, environment = make()
    where = WORK / 'recording.cuf'
    where.unlink(missing_ok=True)
    more = {**environment, 'CUFLIGHT_OUTPUT': str(where), 'PYTHONDONTWRITEBYTECODE': '1', 'LD_PRELOAD': ' '.join(map(str, preload)),
            'PYTHONPATH': f'{environment.get("PYTHONPATH", "")}:{HERE}', **settings}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, cwd=WORK, env={**os.environ, **more})
    assert done.returncode == 1 and ('refused ' in done.stdout or 'says ' in done.stdout), f'exit status {done.returncode}: {(done.stdout + done.stderr)[-800:]}'
    if os.environ.get('KEEP'):
        shutil.copy(where, os.environ['KEEP'])
    report = json.loads(stand_in.output(stand_in.BUILD / 'cuflight', 'report', '--json', where))
    return done.stdout + done.stderr, report


def python(script, *arguments):
    return [FOLDER / 'bin/python', '-W', 'ignore', HERE / script, *arguments]


def figure(printed, name):
    return int(re.findall(rf'\b{name} (\d+)', printed)[-1])


def functions(stack):
    return [frame.get('function') or '' for frame in stack]


def owners(report):
    return {row['kind']: row['bytes'] for row in report['devices'][0]['owners'] if row['role'] is None}


def is_told(report, name, taken, kind='device', requested=REFUSED, tries=None, line=None):
    """The report has what the client's books have: regions, their owner, blindness, and the failure, at the user's own line.
    requested None: the client refused by itself, and the report says that it does not see such."""
    segments = [segment for segment in report['fragmentation']['segments'] if segment['framework'] == name]
    assert sum(segment['bytes'] for segment in segments) == taken, f'{name} took {taken}; reported {[segment["bytes"] for segment in segments]}'
    assert all(segment['live_bytes'] is None for segment in segments), segments
    assert owners(report)[kind] == taken, owners(report)
    blind = [row['text'] for row in report['coverage']['blind'] if row['text'].startswith(f'{name} keeps ')]
    assert len(blind) == 1 and f'in {len(segments)} block' in blind[0] and 'refuses by itself' in blind[0], report['coverage']['blind']
    told = f'{taken / MiB:.2f} MiB in {len(segments)}'
    fatal = [incident for incident in report['incidents'] if incident['fatal']]
    if requested is None:
        assert not fatal, fatal
        return told
    what = [(incident['outcome'], [attempt['requested_bytes'] for attempt in incident['attempts']]) for incident in report['incidents']]
    assert len(fatal) == 1 and fatal[0] is report['incidents'][-1] and requested <= fatal[0]['attempts'][-1]['requested_bytes'] <= 1.2 * requested, what
    assert tries is None or len(fatal[0]['attempts']) >= tries, what
    if line:
        assert line in functions(fatal[0]['stack']), functions(fatal[0]['stack'])
    return f'{told}, {len(fatal[0]["attempts"])} tries down to {fatal[0]["attempts"][-1]["requested_bytes"] / MiB:.0f} MiB, cause {fatal[0]["cause"]["id"]}'


def cupy_pool():
    """CuPy's default pool"""
    printed, report = run(cupy, python('cupy_pool.py', 'pool'))
    return is_told(report, 'CuPy', figure(printed, 'regions'), line='ask')


def cupy_async():
    """CuPy's MemoryAsyncPool"""
    printed, report = run(cupy, python('cupy_pool.py', 'async'))
    assert owners(report)["async"] == figure(printed, "used"), (printed, owners(report))
    return f'{figure(printed, "used") / MiB:.2f} MiB'


def onnxruntime_arena(strategy):
    printed, report = run(onnxruntime, python('onnxruntime_arena.py', strategy))
    taken = sum(map(int, re.findall(r'Extended allocation by (\d+) bytes', printed)))
    return is_told(report, 'ONNX Runtime', taken, line='ask')


def onnxruntime_power():
    """ONNX Runtime's arena that grows by powers of two"""
    return onnxruntime_arena('power')


def onnxruntime_same():
    """ONNX Runtime's arena that takes what was asked for"""
    return onnxruntime_arena('same')


def jax_preallocated():
    """JAX's arena that took most of the device at once"""
    printed, report = run(jax, python('jax_arena.py'))
    return is_told(report, 'JAX', figure(printed, 'regions'), kind='vmm', requested=None)


def jax_growing():
    """JAX's arena that doubles"""
    printed, report = run(jax, python('jax_arena.py'), XLA_PYTHON_CLIENT_PREALLOCATE='false', XLA_CLIENT_MEM_FRACTION='1.5')
    return is_told(report, 'JAX', figure(printed, 'regions'), kind='vmm', requested=2 * GiB, tries=14, line='ask')


def rmm_resource(name):
    return run(rmm, [WORK / 'rmm/rmm_pool', name])


def rmm_pool():
    """RMM's pool"""
    printed, report = rmm_resource('pool')
    return is_told(report, 'RMM', figure(printed, 'regions'))


def rmm_arena():
    """RMM's arena"""
    printed, report = rmm_resource('arena')
    return is_told(report, 'RMM', figure(printed, 'regions'), requested=None)


def rmm_async():
    """RMM's pool of the driver"""
    printed, report = rmm_resource('async')
    assert owners(report)["async"] == figure(printed, "used"), (printed, owners(report))
    return f'{figure(printed, "used") / MiB:.2f} MiB'


def transformers_cache():
    """Transformers' growing KV cache in PyTorch's own allocator"""
    printed, report = run(transformers, ['/usr/bin/python3', '-W', 'ignore', HERE / 'transformers_cache.py'],
                          SIMCUDA_TOTAL='512MiB', SIMCUDA_CONTEXT='2MiB', CUFLIGHT_OPTIONS='size=16MiB:host=off')
    incident, = (incident for incident in report['incidents'] if incident['fatal'])
    roles = {row['role']: row['bytes'] for row in incident['owners'] if row['role'] and row['kind'] == 'device'}
    assert roles['kv'] == figure(printed, 'kv'), (roles, printed)
    # 2 KiB of each norm are not told from the rest
    assert abs(figure(printed, 'weights') - roles['weights']) < figure(printed, 'weights') / 1000, (roles, printed)
    assert 'read_chunks' in functions(incident['stack']), functions(incident['stack'])
    return ', '.join(f'{role} {count / MiB:.2f} MiB' for role, count in roles.items()) + f', cause {incident["cause"]["id"]}'


TESTS = cupy_pool, cupy_async, onnxruntime_power, onnxruntime_same, jax_preallocated, jax_growing, rmm_pool, rmm_arena, rmm_async, transformers_cache
stand_in.tap([(f'{test.__doc__}: the report has what it took, and why it failed', test) for test in TESTS
              if not sys.argv[1:] or test.__name__ in sys.argv[1:]])
