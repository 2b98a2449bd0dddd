#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA without a GPU for programs as they are published: memory comes from the simulated runtime and driver; devices,
events and launches from stand_in/*.c; every other function that the program's libraries want is generated here and does
nothing. Kernels do not run, so results mean nothing; allocations are as on a GPU.

stand_in.py FOLDER: what the libraries there are linked with and is nowhere, since their wheel came without the wheels that it asks
for, is made where their RPATH has it, of functions that do nothing; the driver, which no wheel brings, is not."""
import collections
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get('BUILD', HERE.parents[1] / 'build')).resolve()
LIBRARY, SIM = BUILD / 'libcuflight.so', BUILD / 'sim'


class Skip(Exception):
    pass


def absent(name):
    """Why build/frameworks/NAME is not there."""
    failed = HERE.parents[1] / f'build/frameworks/{name}.failed'
    return failed.read_text().splitlines()[0] if failed.exists() else f'no build/frameworks/{name}: run scripts/setup frameworks'


def output(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def symbols(path, defined):
    """Names that an object defines, or does not, without versions."""
    lines = output('nm', '-D', '--defined-only' if defined else '--undefined-only', path).splitlines()
    return {line.split()[-1].split('@')[0] for line in lines if line.split()}


GIVES_HANDLE = {'cublasCreate_v2'} # without one ggml makes another at every use, each with a workspace


def function_of(name):
    if name in GIVES_HANDLE:
        return f'int {name}(void **handle) {{ static char thing; *handle = &thing; return 0; }}\n'
    return f'int {name}(void) {{ return 0; }}\n'


def nothing(names, soname, work, *objects, version=None):
    """The command that makes a library of functions that return 0, all of one version."""
    source = work / f'{soname}.c'
    source.write_text(''.join(map(function_of, sorted(names))))
    (work / f'{soname}.map').write_text(f'{version or soname} {{ global: *; }};\n')
    return ['cc', '-shared', '-fPIC', '-w', *objects, source, f'-Wl,--version-script={work}/{soname}.map']


def carried(library):
    """{name: offset} of the functions that a library has in its own symbol table, and exports to nobody."""
    lines = [line.split() for line in output('nm', library).splitlines()]
    return {name: int(offset, 16) for offset, kind, name in (line for line in lines if len(line) == 3) if kind == 't'}


def make_runtime(soname, wanted, work):
    """(what to preload, environment) for a program that wants these names of a runtime."""
    if not (SIM / soname).exists():
        raise Skip(f'no simulated {soname}')
    rest, rest_object = work / 'rest.so', work / 'rest.o'
    output('cc', '-c', '-O1', '-fPIC', HERE / 'stand_in/runtime_rest.c', '-o', rest_object)
    have = symbols(SIM / soname, True) | {line.split()[-1] for line in output('nm', rest_object).splitlines() if ' T ' in line}
    missing = {name for name in wanted if re.match(r'(__)?cuda[A-Z]', name)} - have
    output(*nothing(missing, soname, work, rest_object), '-o', rest)
    output('cc', '-shared', '-fPIC', HERE / 'stand_in/nvml.c', '-Wl,-soname,libnvidia-ml.so.1', '-o', work / 'libnvidia-ml.so.1')
    return [LIBRARY, SIM / soname, rest], {'LD_LIBRARY_PATH': f'{work}:{SIM}'} # PyTorch asks NVML more than the simulated one knows


def make(needs_runtime, libraries, work):
    """The same for a program of these libraries, of which one is linked with the runtime."""
    soname = re.search(r'\[(libcudart\.so\.\d+)\]', output('readelf', '-d', needs_runtime))[1]
    return make_runtime(soname, set().union(*(symbols(library, False) for library in libraries)), work)


def make_named(names, soname, work, *objects):
    """A library whose functions all do nothing, of these names."""
    output(*nothing(names, soname, work, *objects, version=soname.replace('-', '_')), f'-Wl,-soname,{soname}', '-o', work / soname)


def make_library(prefix, soname, libraries, work):
    """A library whose functions all do nothing, as far as these libraries want it."""
    wanted = set().union(*(symbols(library, False) for library in libraries))
    make_named({name for name in wanted if name.startswith(prefix)}, soname, work)


def versions(libraries):
    """{soname: the version that these libraries want of it}: NVIDIA's have one each, or none."""
    lines = re.findall(r'File: (\S+)|^  0x\w+:\s+Name: (\S+)', output('readelf', '-W', '-V', *libraries), re.MULTILINE)
    found, soname = {}, None
    for file, version in lines:
        soname = file or soname
        if version:
            found[soname] = version
    return found


def complete(folder):
    """Makes the libraries that those of the folder are linked with and nobody has."""
    libraries = sorted(glob.glob(f'{folder}/*.so*'))
    missing = set(re.findall(r'(\S+) => not found', output('ldd', *libraries))) - {'libcuda.so.1'}
    wanted = collections.defaultdict(set)
    for line in output('nm', '-D', '--undefined-only', *libraries).splitlines():
        name, _, version = line.split()[-1].partition('@') if line.split() else ('', '', '')
        wanted[version].add(name)
    version_of = versions(libraries)
    places = re.search(r'R(?:UN)?PATH.*\[\$ORIGIN/([^:\]]+)', output('readelf', '-d', *libraries))
    for soname in sorted(missing):
        version = version_of.get(soname)
        stem = re.match(r'lib([A-Za-z]+)', soname)[1].lower() # a name without a version tells its library by how it begins
        names = wanted[version] if version else {name for name in wanted[''] if name.lower().startswith(stem)}
        where = pathlib.Path(folder, places[1])
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            output(*nothing(names, soname, pathlib.Path(work), version=version), f'-Wl,-soname,{soname}', '-o', where / soname)
    return sorted(missing)


def tap(tests):
    """Runs (what, function) and prints TAP; a function returns a remark or None, or raises."""
    number = 0
    for number, (what, test) in enumerate(tests, 1):
        try:
            remark = test()
            print(f'ok {number} - {what}' + (f' ({remark})' if remark else ''), flush=True)
        except Skip as why:
            print(f'ok {number} - {what} # SKIP {why}', flush=True)
        except (AssertionError, subprocess.SubprocessError, OSError, LookupError, ValueError) as why:
            print(f'not ok {number} - {what}\n# ' + str(why).strip().replace('\n', '\n# '), flush=True)
    print(f'1..{number}')


if __name__ == '__main__':
    print('stood in for:', *complete(pathlib.Path(sys.argv[1]).resolve()))
