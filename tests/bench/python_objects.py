#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
python_objects.py BUILD [ROUNDS] [INTERPRETER...]: CPU time of Python programs, native, recorded without CPython's own
allocator (python_objects=off), recorded with it from the start, and under memray's --trace-python-allocators where
memray is installed. The four are run in turn, in alternating order; figures are medians by native.

python_objects.py --run NAME: one of the programs.
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile


class Point:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b


# ---- programs that do nothing but allocate ----

def objects():
    return [Point(i, float(i)) for i in range(300000)]


def tuples():
    return [(i, i + 1) for i in range(450000)]


def strings():
    return [str(i) for i in range(400000)]


def dicts():
    return [{"a": i} for i in range(200000)]


def floats():
    x = 0.5
    for _ in range(900000):
        x = x * 1.0000001 + 0.1
    return x


# ---- programs that work with objects ----

def json_rows():
    import json
    rows = [{"id": i, "name": "n%d" % i, "tags": [str(i)] * 3} for i in range(15000)]
    return [json.loads(json.dumps(rows)) for _ in range(3)]


def compiler():
    import ast
    with open(ast.__file__.replace(".pyc", ".py"), encoding="utf-8") as file:
        text = file.read()
    return [compile(ast.parse(text), "ast.py", "exec") for _ in range(4)]


def tokens():
    import io
    import tokenize
    with open(tokenize.__file__, encoding="utf-8") as file:
        text = file.read()
    return [sum(1 for _ in tokenize.generate_tokens(io.StringIO(text).readline)) for _ in range(4)]


def words():
    import collections
    import re
    text = " ".join("w%d" % (i * 7919 % 5003) for i in range(120000))
    return collections.Counter(re.findall(r"w\d+", text)).most_common(5)


def shortest_paths():
    import heapq
    import random
    random.seed(1)
    graph = [[(random.randrange(12000), random.random()) for _ in range(6)] for _ in range(12000)]
    far, queue = {0: 0.0}, [(0.0, 0)]
    while queue:
        distance, node = heapq.heappop(queue)
        for to, length in graph[node]:
            if distance + length < far.get(to, 1e9):
                far[to] = distance + length
                heapq.heappush(queue, (far[to], to))
    return len(far)


def decimals():
    import decimal
    decimal.getcontext().prec = 400
    total = term = decimal.Decimal(1)
    for i in range(1, 2500):
        term = term / i
        total += term
    return total


def database():
    import sqlite3
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((i, "row %d" % i) for i in range(80000)))
    return sum(len(b) for a, b in base.execute("select a, b from t order by b"))


def tables():
    import csv
    import io
    out = io.StringIO()
    csv.writer(out).writerows((i, i / 3, "x%d" % i) for i in range(60000))
    return sum(float(row[1]) for row in csv.reader(io.StringIO(out.getvalue())))


def differences():
    import difflib
    a = ["line %d" % (i * i % 997) for i in range(1500)]
    b = ["line %d" % (i * i % 991) for i in range(1500)]
    return sum(1 for _ in difflib.unified_diff(a, b))


def cache():
    import functools

    @functools.lru_cache(4096)
    def render(key):
        return "<p>%s</p>" % ("x%d" % key * 5)
    return sum(len(render(i * 31 % 9973)) for i in range(250000))


# how often each runs, else 3: about half a second, so that what a start costs does not count
TIMES = {"floats": 10, "dicts": 8, "strings": 7, "tokens": 20, "words": 10, "decimals": 40, "differences": 40}
PURE = (objects, tuples, strings, dicts, floats)
REAL = (json_rows, compiler, tokens, words, shortest_paths, decimals, database, tables, differences, cache)


def cpu_s(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ways(build, python, folder):
    """name -> (command before the program, environment)"""
    plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUFLIGHT_")}
    recorded = dict(plain, LD_PRELOAD=os.path.realpath(build) + "/libcuflight.so", CUFLIGHT_OUTPUT=folder + "/")
    found = {
        "native": ([python], plain),
        "off": ([python], dict(recorded, CUFLIGHT_OPTIONS="start=1:python_objects=off")),
        "objects": ([python], dict(recorded, CUFLIGHT_OPTIONS="start=1:python_objects=start")),
    }
    if not subprocess.run([python, "-c", "import memray"], stderr=subprocess.DEVNULL).returncode:
        found["memray"] = ([python, "-m", "memray", "run", "-qf", "--trace-python-allocators", "-o", folder + "/memray.bin"], plain)
    return found


def measure(build, rounds, python):
    with tempfile.TemporaryDirectory() as folder:
        found = ways(build, python, folder)
        print("%-34s %9s %s" % (python, "native", " ".join("%8s" % way for way in list(found)[1:])))
        for group in (PURE, REAL):
            ratios = {way: [] for way in found}
            for program in group:
                times = {way: [] for way in found}
                for turn in range(rounds):
                    for way in list(found) if turn % 2 else list(found)[::-1]:
                        command, environment = found[way]
                        times[way].append(cpu_s(command + [__file__, "--run", program.__name__], environment))
                        for name in os.listdir(folder):
                            os.unlink(folder + "/" + name)
                native = statistics.median(times["native"])
                for way in found:
                    ratios[way].append(statistics.median(times[way]) / native)
                print("%-34s %6.0f ms %s" % (program.__name__, native * 1e3, " ".join("%8.3f" % ratios[way][-1] for way in list(found)[1:])))
            what = "only allocating, goal 1.10" if group is PURE else "ten programs, goal 1.02"
            print("%-34s %9s %s" % ("geometric mean: " + what, "", " ".join("%8.3f" % statistics.geometric_mean(ratios[way]) for way in list(found)[1:])))


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        for _ in range(TIMES.get(sys.argv[2], 3)):
            globals()[sys.argv[2]]()
    else:
        for interpreter in sys.argv[3:] or [sys.executable]:
            measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7, interpreter)
