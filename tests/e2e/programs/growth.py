#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growth.py BUILD HALF RUNS: records the programs of victims/growth/programs.txt, several at once,
and compares the verdicts on their call sites with the truth. A leak must be of class leak or
growing at its line, and in no healthy program may any call site be. Exit status 1: not so; a
program whose compiler is missing is left out, with a line that says so."""
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD, HALF, RUNS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "victims" / "growth"
AT_ONCE = int(os.environ.get("GROWTH_JOBS", "4"))
HOME = pathlib.Path(tempfile.mkdtemp(prefix="growth.", dir="."))
HOME = HOME.resolve()

Program = collections.namedtuple("Program", "half truth language name where")

# language: the program that is needed, how the source is compiled (None: not at all), how it is run
LANGUAGES = {
    "python": ("growth.py", "/usr/bin/python3", None, ["/usr/bin/python3", "{source}"]),
    "c": ("growth.c", "gcc", ["gcc", "-g", "-O1", "{source}", "-o", "{out}"], ["{out}"]),
    "cpp": ("growth.cpp", "g++", ["g++", "-g", "-O1", "-std=c++17", "{source}", "-o", "{out}"], ["{out}"]),
    "rust": ("growth.rs", "rustc", ["rustc", "-g", "-C", "opt-level=1", "{source}", "-o", "{out}"], ["{out}"]),
    "go": ("growth.go", "go", ["go", "build", "-o", "{out}", "{source}"], ["{out}"]),
    # compiled code is compiled again while it runs, and then is another call site: interpreted only
    "java": ("Growth.java", "javac", ["javac", "-d", "{home}", "{source}"],
             ["java", "-Xint", "-Xmx256m", "-XX:MaxDirectMemorySize=1g", "-cp", "{home}", "Growth"]),
    "node": ("growth.js", "node", None, ["node", "--jitless", "--no-expose-wasm", "{source}"]),
}


def table():
    for line in (SOURCES / "programs.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            program = Program(*line.split())
            if HALF in (program.half, "both"):
                yield program


def filled(words, language):
    places = {"source": SOURCES / LANGUAGES[language][0], "home": HOME, "out": HOME / f"growth_{language}"}
    return [word.format(**places) for word in words]


def compile_all(languages):
    """The languages that can run; the others are named."""
    for language in sorted(languages):
        _, needed, build, _ = LANGUAGES[language]
        if not shutil.which(needed):
            print(f"# left out: {language}, no {needed} here")
            continue
        if build and subprocess.run(filled(build, language), cwd=HOME, check=False).returncode:
            print(f"# left out: {language}, {needed} does not build {LANGUAGES[language][0]}")
            continue
        yield language


def marked_line(program):
    source = SOURCES / LANGUAGES[program.language][0]
    for number, line in enumerate(source.read_text().splitlines(), 1):
        words = line.replace("*/", "").rstrip()
        if words.endswith(f"leak: {program.name}"):
            return source.name, number
    raise SystemExit(f"{source}: no line for {program.name}")


def names(site, place):
    return any((frame.get("file") or "").endswith(place[0]) and frame.get("line") == place[1]
               for frame in site["stack"])


def judge(program, report):
    """What is wrong with the verdicts, or None."""
    grown = [site for site in report["leaks"] if site["class"] in ("leak", "growing")]
    if program.truth == "healthy":
        return f"{grown[0]['class']}, {grown[0]['bytes']} bytes" if grown else None
    if program.where == "line":
        place = marked_line(program)
        if any(names(site, place) for site in grown):
            return None
        return f"not at line {place[1]}" if grown else "missed"
    return None if grown else "missed"


def run(program, number):
    recording = HOME / f"{program.name}.{number}"
    command = filled(LANGUAGES[program.language][3], program.language)
    subprocess.run([BUILD / "cuflight", "run", "-q", "-o", f"{recording}/", "--", *command, program.name],
                   check=False, stdout=subprocess.DEVNULL, cwd=HOME)
    report = subprocess.run([BUILD / "cuflight", "report", "--json", recording], check=True,
                            capture_output=True, cwd=HOME)
    keep = os.environ.get("GROWTH_KEEP")
    if keep: # for tests/bench/timelapse.py
        shutil.move(recording, pathlib.Path(keep) / f"{program.truth}.{program.language}.{program.name}.{number}")
    else:
        shutil.rmtree(recording)
    return program, judge(program, json.loads(report.stdout))


def main():
    programs = list(table())
    languages = set(compile_all({program.language for program in programs}))
    programs = [program for program in programs if program.language in languages]
    wrong = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(run, program, number) for number in range(RUNS) for program in programs]
        for done in concurrent.futures.as_completed(runs):
            program, trouble = done.result()
            if trouble:
                wrong[program] += 1
                print(f"# {program.language} {program.name} ({program.truth}): {trouble}", flush=True)
    for truth in ("leak", "healthy"):
        total = sum(RUNS for program in programs if program.truth == truth)
        failed = sum(count for program, count in wrong.items() if program.truth == truth)
        print(f"# {HALF} half, {truth}: {total - failed} of {total} runs right")
    shutil.rmtree(HOME)
    # every healthy run is right, and each leak is named in 19 of 20
    return any(program.truth == "healthy" or count * 20 > max(RUNS, 20) for program, count in wrong.items()) \
        or (RUNS < 20 and bool(wrong))


sys.exit(main())
