#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host.py BUILD: the cost of the malloc path beside its peers, in one run. QUICK=1: one round, a tenth of the calls.

Everything is CPU time. Each round runs the program natively, then under each tool in another order each time, and natively
again; a ratio is the tool's time by the mean of the two native ones around, and what is printed is the median over rounds.
Slow peers get one round of fewer calls. A budget that is not met is printed as missed; nothing here passes or fails.
"""
import glob
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "7"))
CALLS = 600000 if QUICK else 6000000
SLOW_CALLS = 60000 if QUICK else 300000
HERE = os.path.dirname(os.path.abspath(__file__))


def library(*names):
    """The first of these files that is there, else None."""
    return next((f for n in names for f in glob.glob(n)), None)


def tools(build, work):
    """Name -> (environment or None when it is not installed, slow). The order is that of the table."""
    ours, null = f"{build}/libcuflight.so", f"{build}/bench/null_interposer.so"
    heaptrack = library("/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib/*/heaptrack/libheaptrack_preload.so")
    jemalloc = library("/usr/lib/*/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2")
    gperftools = library("/usr/lib/*/libtcmalloc.so.4", "/usr/lib/libtcmalloc.so.4")

    def preload(path, **variables):
        return path and dict(variables, LD_PRELOAD=path)

    def profile(lg):
        return preload(jemalloc, MALLOC_CONF=f"prof:true,lg_prof_sample:{lg},prof_final:true,prof_prefix:{work}/je")

    return {
        "null interposer": (preload(null), False),
        "cuflight sampled": (preload(ours, CUFLIGHT_OPTIONS="host=sampled"), False),
        "cuflight full": (preload(ours, CUFLIGHT_OPTIONS="host=full"), False),
        "heaptrack": (preload(heaptrack, DUMP_HEAPTRACK_OUTPUT=f"{work}/heaptrack"), True),
        "jemalloc prof 19": (profile(19), False),
        "jemalloc prof 0": (profile(0), True),
        "gperftools heap profile": (preload(gperftools, HEAPPROFILE=f"{work}/gperftools"), True),
    }


def run(command, variables, work, figure):
    """One run; its CPU seconds, or with figure the first number that it prints."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUFLIGHT_")}
    environment.update(variables, CUFLIGHT_OUTPUT=work + "/")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for path in glob.glob(work + "/*"):
        os.unlink(path)
    if done.returncode:
        return None
    return float(done.stdout.split()[0]) if figure else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(title, command, slow_command, names, all_tools, work, figure=True, variables=None):
    """Prints one table; returns tool -> ratio to native."""
    ratios, values, native = {}, {}, []
    always = variables or {}
    for number in range(ROUNDS):
        order = [n for n in names if all_tools[n][0] and (number == 0 or not all_tools[n][1])]
        random.shuffle(order)
        native.append(run(command, always, work, figure))
        for name in order:
            slow = all_tools[name][1]
            value = run(slow_command if slow else command, dict(all_tools[name][0], **always), work, figure)
            native.append(run(command, always, work, figure))
            if value is None:
                continue
            values.setdefault(name, []).append(value)
            ratios.setdefault(name, []).append(2 * value / (native[-1] + native[-2]))
    print(f"\n{title}: native {statistics.median(native):.4g} {'ns a pair' if figure else 's'}")
    for name in names:
        if not all_tools[name][0]:
            print(f"  {name:26} skipped: not installed")
        elif name not in values:
            print(f"  {name:26} failed")
        else:
            print(f"  {name:26} {statistics.median(values[name]):9.4g}  {statistics.median(ratios[name]):6.3f} x native")
    sys.stdout.flush()
    return {n: statistics.median(r) for n, r in ratios.items()}


def budget(what, value, goal):
    print(f"    {'met' if value <= goal else 'MISSED':8}{what}: {value:.3f}, goal <= {goal}")


def micro(build, all_tools, work):
    full = {}
    for kind, words in (("nofp", "without frame pointers"), ("fp", "with frame pointers")):
        for threads in (1, 2):
            program = [f"{build}/bench/malloc_workload_{kind}", str(threads)]
            ratios = compare(f"malloc, {threads} thread{'s' * (threads > 1)}, 20 frames {words}", program + [str(CALLS)], program + [str(SLOW_CALLS)],
                             list(all_tools), all_tools, work)
            budget("sampled by the null interposer", ratios["cuflight sampled"] / ratios["null interposer"], 1.02)
            budget("full by native", ratios["cuflight full"], 2.0)
            full[kind, threads] = ratios["cuflight full"]
        budget(f"full at 2 threads by full at 1, {words}", full[kind, 2] / full[kind, 1], 1.0)


def real_programs(build, all_tools, work, inputs):
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip()
    source = f"{inputs}/input.i"
    largest = max(glob.glob(f"{HERE}/../../analysis/*/*.c"), key=os.path.getsize)
    if os.path.sep in cc1:
        subprocess.run(["gcc", "-E", "-D_GNU_SOURCE", f"-I{HERE}/../..", largest, "-o", source], check=True)
    programs = {
        "sqlite3": (shutil.which("sqlite3"), ["sqlite3", ":memory:", f".read {HERE}/host_sqlite.sql"], {}),
        "cc1 -O2": (os.path.sep in cc1, [cc1, "-quiet", "-O2", source, "-o", "/dev/null"], {}),
        "python3": (shutil.which("python3"), [sys.executable, f"{HERE}/host_python.py"], {}),
        "python3, PYTHONMALLOC=malloc": (shutil.which("python3"), [sys.executable, f"{HERE}/host_python.py"], {"PYTHONMALLOC": "malloc"}),
    }
    for name, (there, command, variables) in programs.items():
        if not there:
            print(f"\n{name}: skipped: not installed")
            continue
        ratios = compare(name, command, command, list(all_tools), all_tools, work, figure=False, variables=variables)
        budget("sampled by native", ratios["cuflight sampled"], 1.01)


def births(build, all_tools, work):
    command = [f"{build}/bench/thread_births", "300" if QUICK else "3000"]
    native, recorded = [], {}
    names = [n for n in all_tools if all_tools[n][0]]
    for _ in range(ROUNDS):
        native.append(run(command, {}, work, True))
        for name in names:
            recorded.setdefault(name, []).append(run(command, all_tools[name][0], work, True))
    base = statistics.median(native)
    print(f"\nthread, 10 mallocs and frees, its end: native {base:.1f} us")
    for name in names:
        print(f"  {name:26} +{statistics.median(recorded[name]) - base:.1f} us")
    budget("sampled beyond native, us", statistics.median(recorded["cuflight sampled"]) - base, 5)


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as inputs:
        all_tools = tools(build, work)
        micro(build, all_tools, work)
        real_programs(build, all_tools, work, inputs)
        births(build, all_tools, work)
    print("\none stack of 23 frames without frame pointers, CPU ns; goal of the walker: <= 110", flush=True)
    subprocess.run([f"{build}/bench/unwinder_cost"], check=False)


main()
