# SPDX-License-Identifier: Apache-2.0
"""A CUDA without a GPU for programs as they are published: memory comes from the simulated runtime and driver; devices,
events and launches from stand_in/*.c; every other function that the program's libraries want is generated here and does
nothing. Kernels do not run, so results mean nothing; allocations are as on a GPU."""
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get('BUILD', HERE.parents[1] / 'build')).resolve()
LIBRARY, SIM = BUILD / 'libcuflight.so', BUILD / 'sim'


class Skip(Exception):
    pass


def output(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def symbols(path, defined):
    """Names that an object defines, or does not, without versions."""
    lines = output('nm', '-D', '--defined-only' if defined else '--undefined-only', path).splitlines()
    return {line.split()[-1].split('@')[0] for line in lines if line.split()}


def nothing(names, soname, work, *objects):
    """A library of functions that return 0."""
    source = work / f'{soname}.c'
    source.write_text(''.join(f'int {name}(void) {{ return 0; }}\n' for name in sorted(names)))
    (work / f'{soname}.map').write_text(f'{soname} {{ global: *; }};\n')
    return ['cc', '-shared', '-fPIC', '-w', *objects, source, f'-Wl,--version-script={work}/{soname}.map']


def make(needs_runtime, libraries, work):
    """(what to preload, environment) for a program of these libraries, of which one is linked with the runtime."""
    wanted = set().union(*(symbols(library, False) for library in libraries))
    soname = re.search(r'\[(libcudart\.so\.\d+)\]', output('readelf', '-d', needs_runtime))[1]
    if not (SIM / soname).exists():
        raise Skip(f'no simulated {soname}')
    rest, rest_object = work / 'rest.so', work / 'rest.o'
    output('cc', '-c', '-O1', '-fPIC', HERE / 'stand_in/runtime_rest.c', '-o', rest_object)
    have = symbols(SIM / soname, True) | {line.split()[-1] for line in output('nm', rest_object).splitlines() if ' T ' in line}
    missing = {name for name in wanted if re.match(r'(__)?cuda[A-Z]', name)} - have
    output(*nothing(missing, soname, work, rest_object), '-o', rest)
    output('cc', '-shared', '-fPIC', HERE / 'stand_in/nvml.c', '-Wl,-soname,libnvidia-ml.so.1', '-o', work / 'libnvidia-ml.so.1')
    return [LIBRARY, SIM / soname, rest], {'LD_LIBRARY_PATH': f'{SIM}:{work}'}


def make_library(prefix, soname, libraries, work):
    """A library whose functions all do nothing, as far as these libraries want it."""
    wanted = set().union(*(symbols(library, False) for library in libraries))
    output(*nothing({name for name in wanted if name.startswith(prefix)}, soname, work), f'-Wl,-soname,{soname}', '-o', work / soname)


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
