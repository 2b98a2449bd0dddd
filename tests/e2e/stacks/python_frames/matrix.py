#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Python frames on every interpreter that this machine has: programs beside this file note the frames that a traceback shows
where they allocate (marks.py), and the report must show the same ones, function, file and line, for those very bytes.
BUILD says where the product is. matrix.py [WORD...]: only tests whose name holds one of the words.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

here = programs = os.path.dirname(os.path.abspath(__file__))
build = os.path.abspath(os.environ.get("BUILD", os.path.join(here, "../../../../build")))
library, cuflight = build + "/libcuflight.so", build + "/cuflight"
work = tempfile.mkdtemp(prefix="python_frames.")
count = failed = 0


def interpreters():
    """(version, path), one for each distinct interpreter"""
    found = {}
    places = os.environ["PATH"].split(":") + glob.glob(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")) + "/versions/*/bin")
    places.append(build + "/python/usr/bin") # scripts/setup-python
    for place in places:
        for path in glob.glob(place + "/python3") + glob.glob(place + "/python3.[0-9]*"):
            if not re.fullmatch(r"python3(\.\d+)?", os.path.basename(path)) or "/shims" in path:
                continue
            got = subprocess.run([path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3] + ('t' if 'free-threading' in sys.version else '')); print(sys.executable)"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL)
            if got.returncode:
                continue
            version, real = got.stdout.split("\n")[:2]
            found.setdefault(os.path.realpath(real), version)
    return sorted(((version, path) for path, version in found.items()), key=lambda v: list(map(int, v[0].rstrip("t").split("."))))


class Skip(Exception):
    pass


def run_recorded(command, options="start=1:stack_depth=256", environment=None):
    """Runs it under the recorder in a folder of its own, which it returns."""
    folder = tempfile.mkdtemp(dir=work)
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUFLIGHT_")}
    env.update(LD_PRELOAD=library, CUFLIGHT_OPTIONS=options, CUFLIGHT_OUTPUT=folder + "/", PYTHONDONTWRITEBYTECODE="1", **(environment or {}))
    got = subprocess.run([c.replace("FOLDER", folder) for c in command], env=env, cwd=folder, stdin=subprocess.DEVNULL, timeout=120,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    assert got.returncode == 0, "exit status %d: %s" % (got.returncode, got.stdout[-2000:])
    return folder


def record(*arguments, **named):
    """The report, too."""
    folder = run_recorded(*arguments, **named)
    return report_of(folder), folder


def report_of(folder):
    got = subprocess.run([cuflight, "report", "--json", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def python_of(stack):
    return [(f["function"], f["file"], f["line"]) for f in stack if f["language"] == "python"]


def rows_of(report):
    """frames -> bytes, of sites that mark() made: 1 MiB and more is nobody else's"""
    rows = {}
    for site in report["leaks"]:
        frames = python_of(site["stack"])
        if frames and frames[0][0].startswith("mark") and site["bytes"] >= 1 << 20:
            rows[tuple(frames)] = rows.get(tuple(frames), 0) + site["bytes"]
    return rows


def truth_of(path):
    truth = {}
    with open(path) as file:
        for size, (label, frames) in json.load(file).items():
            key = tuple(tuple(f) for f in frames)
            total, _ = truth.get(key, (0, label))
            truth[key] = total + int(size), label
    return truth


def compare(report, truth, kept=None):
    """Every noted stack is there with its bytes, and no other; kept: only so many innermost frames are."""
    rows, wrong = rows_of(report), []
    if kept:
        truth = {k[:kept]: v for k, v in truth.items()}
        rows = {k[:kept]: v for k, v in rows.items()}
    for frames, (size, label) in truth.items():
        if rows.get(frames) == size:
            continue
        near = [k for k, v in rows.items() if v == size]
        wrong.append("%s: expected %s\n   found %s" % (label, frames, near[0] if near else rows.get(frames, "nothing")))
    wrong += ["not expected: %s" % (k,) for k in rows if k not in truth]
    assert truth and not wrong, "%d of %d differ\n  %s" % (len(wrong), len(truth), "\n  ".join(wrong[:4]))


def no_native_eval(report):
    """The interpreter's own frames that run Python are replaced, every one, where Python frames are (3.9: not a cold part's).
    3.10.4: throw() into `yield from` breaks the chain of frames off at that generator, in a traceback as well."""
    for site in report["leaks"]:
        frames = python_of(site["stack"])
        if not frames or frames[-1][0] == "outer":
            continue
        names = [f["function"] for f in site["stack"] if f["language"] == "native"]
        assert not [n for n in names if n and n.startswith("_PyEval_EvalFrameDefault")], names


# ---- tests: each is given the interpreter's version and path ----

def every_way_to_call(version, python):
    report, folder = record([python, programs + "/calls.py", "FOLDER/truth"])
    compare(report, truth_of(folder + "/truth"))
    if not version.startswith("3.9."):
        no_native_eval(report)


def every_way_to_call_with_every_event_recorded(version, python):
    report, folder = record([python, programs + "/calls.py", "FOLDER/truth"], "start=1:stack_depth=256:host=full:size=256MiB")
    compare(report, truth_of(folder + "/truth"))


def every_way_to_call_without_pymalloc(version, python):
    need_pymalloc(version)
    report, folder = record([python, programs + "/calls.py", "FOLDER/truth"], environment={"PYTHONMALLOC": "malloc"})
    compare(report, truth_of(folder + "/truth"))


def recursion_900_deep(version, python):
    text = "import sys; sys.path.insert(0, %r); import marks\ndef f(n):\n  if n: f(n - 1)\n  else: marks.mark('deep')\nf(900)\nmarks.done('FOLDER/truth')\n" % programs
    report, folder = record([python, "-c", text], "start=1")
    truth = truth_of(folder + "/truth")
    (frames,) = rows_of(report)
    assert 20 <= len(frames) <= 64, len(frames)
    compare(report, truth, kept=len(frames))


def command_line(version, python):
    text = "import sys; sys.path.insert(0, %r); import marks\nmarks.mark('-c')\nmarks.done('FOLDER/truth')\n" % programs
    report, folder = record([python, "-c", text])
    compare(report, truth_of(folder + "/truth"))
    assert "<string>" in json.dumps(report)


def virtual_environment(version, python):
    folder = tempfile.mkdtemp(dir=work)
    made = subprocess.run([python, "-m", "venv", "--without-pip", folder + "/venv"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode:
        raise Skip("no venv module")
    with open(folder + "/program.py", "w") as program:
        program.write("import marks\ndef work(): marks.mark('venv')\nwork()\nmarks.done('%s/truth')\n" % folder)
    report, _ = record([folder + "/venv/bin/python", folder + "/program.py"], environment={"PYTHONPATH": programs})
    compare(report, truth_of(folder + "/truth"))


def forked_child(version, python):
    text = ("import os, sys; sys.path.insert(0, %r); import marks\ndef parent(): marks.mark('before')\nparent()\n"
            "if os.fork() == 0:\n  marks.notes.clear()\n  def child(): marks.mark('child')\n  child()\n  marks.done('FOLDER/child')\n"
            "os.wait()\nmarks.done('FOLDER/parent')\n" % programs)
    folder = run_recorded([python, "-c", text], "start=1:host=full:stack_depth=256:size=64MiB")
    reports = [report_of(f) for f in glob.glob(folder + "/*.cuf")]
    for part in "child", "parent":
        truth = truth_of(folder + "/" + part)
        own = [r for r in reports if any(k in rows_of(r) for k in truth)]
        assert len(own) == 1, (part, len(own))
        compare(own[0], truth)


def sub_interpreters(version, python):
    module = "_interpreters" if version.startswith(("3.13", "3.14")) else "_xxsubinterpreters"
    how = "isolated=False" if version.startswith("3.12") else ""  # else distributions' 3.12 loads no _ctypes there
    text = ("import sys; sys.path.insert(0, %r)\nimport %s as interpreters, marks\n"
            "def run(interpreter, text): interpreters.run_string(interpreter, text)\n"
            "i = interpreters.create(%s)\nrun(i, \"import sys; sys.path.insert(0, %r); import marks\\n"
            "def inside(): marks.mark('inside')\\ninside()\\nimport json; json.dump(marks.notes, open('FOLDER/inside', 'w'))\\n\")\n"
            "marks.NEXT += 1 << 24\ndef outside(): marks.mark('outside')\noutside()\nmarks.done('FOLDER/truth')\n") % (programs, module, how, programs)
    report, folder = record([python, "-c", text])
    truth = truth_of(folder + "/truth")
    inside = truth_of(folder + "/inside")
    rows = rows_of(report)
    assert {k: rows.get(k) for k in truth} == {k: v for k, (v, _) in truth.items()}, (rows, truth)
    # a sub-interpreter's frames do not go on in those of the one that runs it; the stack's do, where both are known
    for frames, (size, _) in inside.items():
        near = [k for k, v in rows.items() if v == size]
        assert near and near[0][:len(frames)] == frames, (frames, near, rows)


def held_gil(version, python):
    """A thread that allocates while another one holds the GIL until it has: had we taken the GIL, neither would get on."""
    helper = helper_library("gil")
    text = ("import ctypes, sys, threading; sys.path.insert(0, %r); import marks\n"
            "free, held = ctypes.CDLL(%r), ctypes.PyDLL(%r)\nfree.allocate_when.restype = ctypes.c_void_p\n"
            "def work():\n  size = marks.next_size()\n  frames = marks.frames_of(sys._getframe(0))\n"
            "  marks.kept.append(free.allocate_when(size)); frames[0][2] = sys._getframe(0).f_lineno\n  marks.notes[size] = ['held', frames]\n"
            "work.__name__ = 'mark'; work.__code__ = work.__code__.replace(co_name='mark', **({'co_qualname': 'mark'} if sys.version_info >= (3, 11) else {}))\n"
            "t = threading.Thread(target=work)\nt.start()\nassert held.hold() == 0, 'the other thread did not get on'\nt.join()\n"
            "marks.done('FOLDER/truth')\n") % (programs, helper, helper)
    report, folder = record([python, "-c", text], "start=1:stack_depth=256:host=full:size=64MiB")
    compare(report, truth_of(folder + "/truth"))


def device_memory(version, python):
    """Over the simulated driver: each block's stack, and that of the request that failed."""
    if not os.path.exists(build + "/sim/libcuda.so.1"):
        raise Skip("no simulated driver was built")
    report, folder = record([os.path.join(here, "../../../../scripts/simcuda"), python, programs + "/device.py", "FOLDER/truth"],
                            "stack_depth=256", {"SIMCUDA_LIB": build + "/sim"})
    truth = truth_of(folder + "/truth")
    incident = report["incidents"][-1]
    assert python_of(incident["stack"]) == list(map(tuple, max(truth, key=lambda k: truth[k][0]))), incident["stack"]
    grown = [python_of(site["stack"]) for site in report["leaks"] if site["kind"] == "device"]
    assert [g[1][0] for g in grown] == ["Cache.grow" if version >= "3.11" and not version.startswith("3.9") else "grow"], grown


def check_embedding(version, python, linked):
    """A program that embeds Python takes its modules from the first python3 of PATH, which may be another one."""
    command = embedding_program(version, python, linked) + [programs, "FOLDER/truth"]
    report, folder = record(command, environment={"PYTHONHOME": configured(python, "prefix")})
    check_embedded(report, folder)


def embedded(version, python):
    check_embedding(version, python, linked=True)


def loaded_late(version, python):
    check_embedding(version, python, linked=False)


def option_off(version, python):
    report, folder = record([python, programs + "/calls.py", "FOLDER/truth"], "start=1:python=0")
    assert not rows_of(report)
    assert any("python=0" in b["text"] for b in report["coverage"]["blind"]), report["coverage"]["blind"]


def greenlets(version, python):
    """Stacks that are switched on one thread; gevent's, too, where it is to be had."""
    if subprocess.run([python, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no greenlet there")
    for options in "start=1:stack_depth=256", "start=1:host=full:stack_depth=256:size=128MiB":
        report, folder = record([python, programs + "/greenlets.py", "FOLDER/truth"], options)
        compare(report, truth_of(folder + "/truth"))


def end_of_the_interpreter(version, python):
    """Destructors while the interpreter shuts down, and threads that outlive it: no crash, and a report."""
    text = ("import atexit, ctypes, sys, threading, time\nsys.path.insert(0, %r)\nimport marks\nclass Late:\n  def __del__(self): marks.kept.append(bytearray(1 << 20))\n"
            "late = Late(); late.me = late\nsys.late = Late()\natexit.register(lambda: marks.mark('atexit'))\n"
            "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p\n"
            "def spin():\n  while True: libc.free(ctypes.c_void_p(libc.malloc(100000)))\n"
            "for _ in range(3): threading.Thread(target=spin, daemon=True).start()\ntime.sleep(0.05)\n") % programs
    report, _ = record([python, "-c", text])
    assert report["processes"][0]["end_state"] == "exit", report["processes"][0]


def code_made_again_by_threads(version, python):
    """800 functions, made and freed in four threads at addresses used again and again: each block is the right one's."""
    need_pymalloc(version)
    text = ("import os, threading\nkept = []\ndef work(t):\n  for i in range(t * 200, t * 200 + 200):\n"
            "    exec(compile('\\n' * (i % 7) + 'def function_%d():\\n  return bytearray(%d)\\nkept.append(function_%d())' % (i, 99999 + i, i), '<made %d>' % i, 'exec'), {'kept': kept})\n"
            "threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nos._exit(0)\n")
    report, _ = record([python, "-c", text], "start=1:stack_depth=256:size=128MiB")
    seen = set()
    for site in report["leaks"]:
        frames = python_of(site["stack"])
        if frames and frames[0][0].startswith("function_"):
            i = int(frames[0][0][9:])
            assert frames[0][1:] == ("<made %d>" % i, i % 7 + 2) and site["bytes"] == 100000 + i, (frames, site["bytes"])
            assert frames[1][:2] == ("<module>", "<made %d>" % i) and frames[2][0] == "work", frames
            seen.add(i)
    assert len(seen) == 800, len(seen)


def code_that_differs_in_one_character(version, python):
    """Methods made and freed at addresses used again, of one name and line: files and classes differ in a character amid many."""
    need_pymalloc(version)
    text = ("import os, threading\nkept = []\ndef work(t):\n  for i in range(t * 100, t * 100 + 100):\n"
            "    exec(compile('class Generated_%03d_in_a_loop:\\n  def method(self):\\n    return bytearray(%d)\\nkept.append(Generated_%03d_in_a_loop().method())' % (i, 199999 + i, i),\n"
            "      'a folder of a length that does not matter/made_%03d/of_which_the_end_is_the_same.py' % i, 'exec'), {'kept': kept})\n"
            "threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nos._exit(0)\n")
    for options in "start=1:stack_depth=256:size=128MiB", "start=1:host=full:stack_depth=256:size=128MiB":
        report, _ = record([python, "-c", text], options)
        seen = set()
        for site in report["leaks"]:
            frames = python_of(site["stack"])
            if frames and frames[0][0].endswith("method") and site["bytes"] >= 200000:
                i = int(frames[0][1].partition("made_")[2][:3])
                assert site["bytes"] == 200000 + i and frames[0][2] == 3, (frames, site["bytes"])
                assert frames[0][0] == ("Generated_%03d_in_a_loop.method" % i if version >= "3.11" and not version.startswith("3.9") else "method"), frames
                seen.add(i)
        assert len(seen) == 400, len(seen)


def wrong_layouts(version, python):
    """200 wrong tables of offsets, each met by a process that captures stacks in this interpreter: none ends it.
    Many fields are not read by the interpreter's own version, so most wrong tables do not matter."""
    text = ("import ctypes, sys\nlibrary = ctypes.PyDLL(%r)\non = ctypes.c_uint()\n"
            "def down(n): return down(n - 1) if n else library.survive(200, ctypes.byref(on))\n"
            "ended = sorted([2, 1], key=lambda v: down(10) if v == 1 else 0)\nended = down(3)\nprint(ended, on.value)\nassert not ended and on.value < 180\n"
            ) % (build + "/bench/python_stacks.so")
    got = subprocess.run([python, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=work)
    assert got.returncode == 0, got.stdout[-1000:]


def too_old(version, python):
    """Its frames are left alone, and the report says so."""
    report, _ = record([python, "-c", "import os; x = [bytearray(1 << 20) for _ in range(9)]; os._exit(0)"])
    assert not any(python_of(site["stack"]) for site in report["leaks"])
    short = "Python %s.%s:" % tuple(version.split(".")[:2])
    assert any(short in b["text"] for b in report["coverage"]["blind"]), report["coverage"]["blind"]


# ---- what the tests need ----

def need_pymalloc(version):
    if version.endswith("t"):
        raise Skip("a free-threaded interpreter has an allocator of its own, beside malloc")



def need_compiler():
    if not shutil.which("cc"):
        raise Skip("no C compiler")


def helper_library(name):
    need_compiler()
    out = "%s/%s.so" % (work, name)
    if not os.path.exists(out):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", out, "%s/%s.c" % (programs, name)], check=True)
    return out


def configured(python, name):
    return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_config_var(%r) or '')" % name], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def embedding_program(version, python, linked):
    need_compiler()
    short = ".".join(version.split(".")[:2])
    place, headers = configured(python, "LIBDIR"), configured(python, "INCLUDEPY")
    libraries = glob.glob("%s/libpython%s.so*" % (place, short)) + glob.glob("%s/*/libpython%s.so*" % (place, short))
    if not libraries or not os.path.exists(headers + "/Python.h"):
        raise Skip("no libpython or no headers of it")
    out = "%s/embed.%s.%d" % (work, version, linked)
    command = ["cc", "-g", "-O1", "-o", out, programs + "/embed.c", "-I" + headers, "-DLIBRARY=\"%s\"" % libraries[0]]
    if linked:
        command += ["-DLINKED", libraries[0], "-Wl,-rpath," + os.path.dirname(libraries[0])]
    subprocess.run(command + ["-ldl", "-lpthread"], check=True)
    return [out]


def check_embedded(report, folder):
    compare(report, truth_of(folder + "/truth"))
    named = [[f["function"] for f in site["stack"]] for site in report["leaks"] if python_of(site["stack"])]
    assert any("run_text" in names for names in named), named


tests = [every_way_to_call, every_way_to_call_with_every_event_recorded, every_way_to_call_without_pymalloc, recursion_900_deep, command_line,
         virtual_environment, forked_child, sub_interpreters, held_gil, device_memory, embedded, loaded_late, option_off, greenlets, end_of_the_interpreter, code_made_again_by_threads,
         code_that_differs_in_one_character, wrong_layouts]


def run(test, version, python):
    global count, failed
    name = "Python %s: %s" % (version, test.__name__.replace("_", " "))
    if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
        return
    count += 1
    try:
        test(version, python)
        print("ok %d - %s" % (count, name))
    except Skip as why:
        print("ok %d - %s # SKIP %s" % (count, name, why))
    except Exception as why:
        failed += 1
        print("not ok %d - %s" % (count, name))
        for line in ("%s: %s" % (type(why).__name__, why)).splitlines():
            print("# " + line[:2000])
    sys.stdout.flush()


def main():
    try:
        for version, python in interpreters():
            known = tuple(map(int, version.split(".")[:2])) >= (3, 9)
            for test in tests if known else [too_old]:
                run(test, version, python)
    finally:
        shutil.rmtree(work)
    print("1..%d" % count)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
