#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Objects in CPython's own allocator, on every interpreter that this machine has: keeps.py prints what each of its lines
keeps, and the report must have those bytes at those lines. Prints TAP. BUILD says where the product is.
objects.py [WORD...]: only tests whose name holds one of the words.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here + "/../../stacks/python_frames")
import matrix  # the interpreters of this machine # noqa: E402

program = here + "/keeps.py"
work = tempfile.mkdtemp(prefix="python_objects.")
MEAN = 32 << 10
NUMBER = 150000
ARENAS_BEFORE = 12 << 20  # python_objects=auto wraps at 8 MiB, in the next arena
count = failed = 0


def record(python, words, options, environment=None, number=NUMBER, way=None):
    """
    Runs keeps.py. Returns the report of the process that kept the objects, and its truth. way: a function that makes a
    command of the text that runs keeps.py.
    """
    folder = tempfile.mkdtemp(dir=work)
    command = [python, program, folder + "/truth", str(number), *words]
    if way:
        command = way("import sys; sys.argv = %r; exec(compile(open(%r).read(), %r, 'exec'), {'__file__': %r, '__name__': 'keeps'})"
                      % (command[1:], program, program, program))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUFLIGHT_", "PYTHON"))}
    env.update(LD_PRELOAD=matrix.library, CUFLIGHT_OPTIONS=options, CUFLIGHT_OUTPUT=folder + "/", PYTHONDONTWRITEBYTECODE="1", **(environment or {}))
    got = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, timeout=120,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert got.returncode == (-9 if "die" in words else 0), got.stdout[-2000:]
    with open(folder + "/truth", encoding="utf-8") as file:
        truth = {int(line): size for line, size in json.load(file).items()}
    return matrix.report_of(folder), truth


def lines_of(report):
    lines = {}
    for site in report["leaks"]:
        inner = [f for f in site["stack"] if f["language"] == "python"]
        if inner and inner[0]["file"].endswith("keeps.py"):
            lines[inner[0]["line"]] = lines.get(inner[0]["line"], 0) + site["bytes"]
    return lines


def compare(report, truth, below=0, above=0):
    """Each line has its bytes, to five standard deviations of a sample of this mean. below, above: what else may differ."""
    found = lines_of(report)
    for line, size in truth.items():
        got, deviation = found.get(line, 0), 5 * math.sqrt(max(size, MEAN) * MEAN) + 0.02 * size
        assert size - below - deviation <= got <= size + above + deviation, \
            "line %d: %d bytes, found %d, deviation %d; %s" % (line, size, got, deviation, found)


def sampled(python, *words, environment=None, options="", **differences):
    report, truth = record(python, words, "start=1:python_objects=start:sample=%d%s" % (MEAN, options), environment)
    compare(report, truth, **differences)
    return report


def from_the_start(python):
    report = sampled(python, "free")
    assert report["host"]["python_live_bytes"] > 20 << 20 and report["host"]["python_arena_bytes"] >= report["host"]["python_live_bytes"] * 0.8, report["host"]


def killed(python):
    sampled(python, "die")


def beyond_a_threshold(python):
    report, truth = record(python, (), "start=1:sample=%d" % MEAN)
    found = lines_of(report)
    compare(report, truth, below=ARENAS_BEFORE)
    assert sum(truth.values()) - ARENAS_BEFORE <= sum(found.values()) * 1.1, (truth, found)


def every_event(python):
    """host=full: to the byte, but for the bytes that a map's address must not have and the list"""
    report, truth = record(python, ("free",), "python_objects=start:host=full:size=512MiB", number=20000)
    found = lines_of(report)
    for line, size in truth.items():
        got = found.get(line, 0)
        # a few thousand tuples and floats stay in the interpreter's free lists
        assert size * 0.99 <= got <= size * 1.01 + (256 << 10), (line, size, got, found)


def resized(python):
    # a bytearray grows by an eighth more than asked for
    sampled(python, "resize", above=6 << 20)


def forked(python):
    report = sampled(python, "fork")
    assert report["capture"]["processes"] == 2


def in_a_sub_interpreter(python):
    modern = subprocess.run([python, "-c", "import _interpreters"], stderr=subprocess.DEVNULL).returncode == 0
    module = "_interpreters" if modern else "_xxsubinterpreters"

    def way(text):
        return [python, "-c", "import %s as interpreters\ninterpreters.run_string(interpreters.create(), %r)" % (module, text)]
    report, truth = record(python, (), "start=1:python_objects=start:sample=%d" % MEAN, way=way)
    compare(report, truth)


def of_a_second_start(python):
    """the first interpreter's are gone, and the wrappers stay for the second"""
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    libraries = [place + "/libpython%s.so" % version for place in (matrix.configured(python, "LIBDIR"),)]
    libraries = [library for library in libraries if os.path.exists(library)]
    if not libraries or not os.path.exists(matrix.configured(python, "INCLUDEPY") + "/Python.h"):
        raise matrix.Skip("no libpython or no headers of it")
    matrix.need_compiler()
    out = "%s/again.%s" % (work, version)
    subprocess.run(["cc", "-g", "-o", out, here + "/again.c", "-I" + matrix.configured(python, "INCLUDEPY"), libraries[0],
                    "-Wl,-rpath," + os.path.dirname(libraries[0])], check=True)
    first = "gone = [(i, i + 0.5) for i in range(200000)]"
    report, truth = record(python, (), "start=1:python_objects=start:sample=%d" % MEAN, way=lambda text: [out, first, text])
    compare(report, truth)
    inner = [(next((f for f in site["stack"] if f["language"] == "python"), None), site["bytes"]) for site in report["leaks"]]
    gone = sum(size for frame, size in inner if frame and frame["file"] == "<string>")
    assert gone < 2 << 20, gone


def off(python):
    report, truth = record(python, (), "start=1:python_objects=off:large_maps=0")
    assert report["host"]["python_live_bytes"] is None
    assert sum(lines_of(report).values()) < sum(truth.values()) / 2


def off_with_their_arenas(python):
    """then an arena is a map, at the line that needed it"""
    report, truth = record(python, (), "start=1:python_objects=off")
    found = lines_of(report)
    assert report["host"]["python_live_bytes"] is None
    assert sum(truth.values()) * 0.8 - (2 << 20) < sum(found.values()) < sum(truth.values()) * 1.6 + (2 << 20), (truth, found)


def with_debug_hooks(python):
    sampled(python, "free", environment={"PYTHONMALLOC": "debug"})


def without_an_allocator(python):
    """everything reaches malloc, and is counted there alone"""
    report = sampled(python, "free", environment={"PYTHONMALLOC": "malloc"})
    assert report["host"]["python_live_bytes"] < 1 << 20, report["host"]["python_live_bytes"]


def malloc_with_debug_hooks(python):
    # 24 or 32 bytes around each of three blocks
    sampled(python, environment={"PYTHONMALLOC": "malloc_debug"}, above=NUMBER * 33)


def below_tracemalloc(python):
    """it was there first; what its own tables take is at the lines, too"""
    sampled(python, environment={"PYTHONTRACEMALLOC": "1"}, above=NUMBER * 160)


def below_memray(python):
    """it takes the interpreter's calls of mmap, so an arena is recognised by its size"""
    tool = matrix.build + "/python/memray/bin/python"  # scripts/setup-python
    if os.path.realpath(tool) != os.path.realpath(python) or subprocess.run([tool, "-c", "import memray"], stderr=subprocess.DEVNULL).returncode:
        raise matrix.Skip("no memray there")
    for option in [], ["--trace-python-allocators"]:
        def way(text):
            return [tool, "-m", "memray", "run", "-qf", *option, "-o", work + "/memray.bin", "-c", text]
        report, truth = record(python, (), "start=1:python_objects=start:sample=%d" % MEAN, way=way)
        compare(report, truth)


def tracemalloc_stops(python):
    """what it puts back is older than the wrappers: they come back after a while, and nothing stale stays"""
    report, truth = record(python, ("tracemalloc", "free"), "start=1:sample=%d" % MEAN, number=500000)
    compare(report, truth, below=2 * ARENAS_BEFORE)
    assert sum(lines_of(report).values()) > sum(truth.values()) / 2


tests = [from_the_start, killed, beyond_a_threshold, every_event, resized, forked, in_a_sub_interpreter, of_a_second_start, off, off_with_their_arenas, with_debug_hooks, without_an_allocator,
         malloc_with_debug_hooks, below_tracemalloc, below_memray, tracemalloc_stops]


def run(test, version, python):
    global count, failed
    name = "Python %s: objects %s" % (version, test.__name__.replace("_", " "))
    if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
        return
    count += 1
    try:
        test(python)
        print("ok %d - %s" % (count, name))
    except matrix.Skip as why:
        print("ok %d - %s # SKIP %s" % (count, name, why))
    except Exception as why:
        failed += 1
        print("not ok %d - %s" % (count, name))
        for line in ("%s: %s" % (type(why).__name__, why)).splitlines():
            print("# " + line[:2000])
    sys.stdout.flush()


def main():
    try:
        for version, python in matrix.interpreters():
            if tuple(map(int, version.rstrip("t").split(".")[:2])) >= (3, 9):
                for test in tests:
                    run(test, version, python)
    finally:
        shutil.rmtree(work)
        shutil.rmtree(matrix.work)
    print("1..%d" % count)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
