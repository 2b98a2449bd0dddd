#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agents.py BUILD [--seeds=N] [--from=N] [--only=PATTERN] [--tap] [--keep=DIR]: does the report name why an agent ran out of memory?

Plays tests/victims/agents/agent.py under the recorder: every scenario in three forms (synchronous, asyncio, threads) with three ends
(killed in a memory cgroup, an uncaught MemoryError, a handled one), N seeds each (1), and each form bounded. A verdict is right when
the report names the cause, and its first screen has the scenario's own line. A bounded one is right when the report has no cause and
nothing is called a leak. Prints what was said instead, and the share that is right; 1 when it is below 95 %, or when a bounded one
raised an alarm. --only: a pattern of "scenario form end". --tap prints one line a scenario and form; --keep leaves the recordings of
what went wrong in DIR.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from causes import Cgroup # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = ROOT / "tests/victims/agents/agent.py"
RIGHT_AT_LEAST = 0.95
SECONDS = 30
LIMIT_MIB = 240 # of the cgroup
FORMS = ("sync", "asyncio", "threads")
ENDS = ("group", "rlimit", "handled", "bounded")


class Run:
    """One agent played once."""

    def __init__(self, bench, scenario, form, end, seed):
        self.bench, self.name, self.form, self.end, self.seed = bench, scenario, form, end, seed
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="agents."))
        self.skipped = ""
        try:
            self.play()
        except OSError as error:
            if end != "group":
                raise
            self.skipped = f"no memory cgroup: {error.strerror}"
        self.wrong = [] if self.skipped else list(self.judge())

    def play(self):
        group = Cgroup(f"cuflight-agents.{os.getpid()}.{self.place.name}", LIMIT_MIB) if self.end == "group" else None
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUFLIGHT_", "LD_", "PYTHON"))}
        environment = keep | {"TMPDIR": str(self.place), "PYTHONDONTWRITEBYTECODE": "1", "CUFLIGHT_OUTPUT": f"{self.place}/recordings/",
                              "LD_PRELOAD": str(self.bench.build / "libcuflight.so")}
        ending = ["group", "--bounded"] if self.end == "bounded" else [self.end]
        command = [self.bench.python, "-W", "ignore", AGENT, self.name, self.form, *ending, f"--seed={self.seed}"]
        try:
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.place,
                                  preexec_fn=group.enter if group else None) as process:
                try:
                    truth, self.stderr = process.communicate(timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    truth, self.stderr = process.communicate()
                    self.stderr += f"did not end within {SECONDS} s"
        finally:
            if group:
                group.close()
        self.status = process.returncode
        self.truth = dict(line.split(None, 1) for line in truth.splitlines() if " " in line)

    def report(self, *words):
        command = [self.bench.build / "cuflight", "report", *words, self.place / "recordings"]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout

    def judge(self):
        self.found = "none"
        if (self.status == 0) != (self.end == "bounded") or "did not end" in self.stderr:
            yield f"broken: status {self.status}: {self.stderr[-300:]}"
        if not (self.place / "recordings").is_dir():
            if self.end != "bounded": # a plain preload may leave nothing of a small one
                yield "no recording"
            return
        document = self.report("--format=json")
        if not document:
            yield "no report"
            return
        report = json.loads(document)
        cause = report["cause"] or {}
        self.found = cause.get("name_id") or ("inconclusive" if cause else "none")
        if self.end == "bounded":
            if cause:
                yield f"a cause where there is none: {self.found}"
            yield from (f"called a leak: {row['bytes']} bytes" for row in report["leaks"] if row["class"] == "leak")
            return
        if self.found != self.truth["cause"]:
            yield f"told {self.found}"
        screen = self.report()
        if not any(f"agent.py:{line}" in screen for line in self.truth["lines"].split()):
            yield "its line is not on the screen"

    def close(self, keep):
        if keep and self.wrong:
            shutil.copytree(self.place / "recordings", pathlib.Path(keep) / f"{self.name}.{self.form}.{self.end}.{self.seed}", dirs_exist_ok=True)
        shutil.rmtree(self.place, ignore_errors=True)
        return self


class Bench:
    def __init__(self, options):
        self.build, self.options = pathlib.Path(options.build).resolve(), options
        self.python = options.python
        listed = subprocess.run([sys.executable, AGENT, "--list"], capture_output=True, text=True, check=True)
        self.scenarios = dict(line.split() for line in listed.stdout.splitlines())

    def play(self, words):
        run = Run(self, *words).close(self.options.keep)
        if self.options.tap and run.wrong: # threads and the kernel's timing differ from run to run: two of three count
            again = [Run(self, *words).close(self.options.keep) for _ in range(2)]
            run = run if any(other.wrong for other in again) else again[0]
        return run

    def all(self):
        rows = [(name, form, end, seed) for name in self.scenarios for form in FORMS for end in ENDS
                for seed in range(self.options.first, self.options.first + self.options.seeds)
                if re.search(self.options.only, f"{name} {form} {end}")]
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(self.play, rows))


def grouped(runs, *fields):
    groups = collections.defaultdict(list)
    for run in runs:
        if not run.skipped:
            groups[tuple(getattr(run, field) for field in fields)].append(run)
    return groups


def share(runs):
    return f"{sum(not run.wrong for run in runs)}/{len(runs)}"


def print_table(bench, runs):
    print("| scenario | cause | " + " | ".join(f"{form}, {end}" for form in FORMS for end in ENDS) + " | what was wrong |")
    print("|---|---|" + "---|" * (len(FORMS) * len(ENDS) + 1))
    each = grouped(runs, "name", "form", "end")
    for (name,), rows in grouped(runs, "name").items():
        notes = collections.Counter(f"{run.form}, {run.end}: {note}" for run in rows for note in run.wrong)
        print(f"| {name} | {bench.scenarios[name]} | " + " | ".join(share(each[name, form, end]) for form in FORMS for end in ENDS)
              + " | " + "; ".join(f"{note} x{count}" for note, count in notes.items()).replace("\n", " ") + " |")


def print_tap(runs):
    groups = grouped(runs, "name", "form", "end")
    for number, (words, rows) in enumerate(groups.items(), 1):
        wrong = [run for run in rows if run.wrong]
        print(f"{'not ok' if wrong else 'ok'} {number} - {', '.join(words)}")
        for run in wrong:
            print(f"#   seed {run.seed}: {'; '.join(run.wrong)}".replace("\n", " "))
    print(f"1..{len(groups)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", default=sys.executable)
    bench = Bench(parser.parse_args())
    runs = bench.all()
    if bench.options.tap:
        print_tap(runs)
        return 0
    print_table(bench, runs)
    failing = [run for run in runs if run.end != "bounded" and not run.skipped]
    alarms = [run for run in runs if run.end == "bounded" and run.wrong]
    right = sum(not run.wrong for run in failing)
    if failing:
        print(f"\n{right} of {len(failing)} right: {100 * right / len(failing):.1f} %")
    print(f"{len(alarms)} of {sum(run.end == 'bounded' for run in runs)} bounded ones raised an alarm")
    return 1 if alarms or (failing and right < RIGHT_AT_LEAST * len(failing)) else 0


if __name__ == "__main__":
    sys.exit(main())
