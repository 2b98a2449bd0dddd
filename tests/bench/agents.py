#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agents.py BUILD [--framework=NAME,...] [--seeds=N] [--from=N] [--only=PATTERN] [--sample=N] [--tap] [--keep=DIR]

Does the report name why an agent ran out of memory? Plays tests/victims/agents/agent.py under the recorder: every scenario of a
framework in three forms (synchronous, asyncio, threads), in memory and in the framework's own store, with three ends (killed in a
memory cgroup, an uncaught MemoryError, a handled one), N seeds each (1), and as often bounded, with the same limit. A verdict is right when the report names the
cause, its first screen has the scenario's own line, and the first advice is the framework's own. A bounded one is right when the
report has no cause and nothing is called a leak.

--framework: "plain" (the default) or those of build/frameworks, or NAME=PYTHON. Of build/frameworks, transformers has PyTorch's newest
wheel with it. --only: a pattern of "framework scenario form store
end [bounded]". --sample: so many of them, chosen by --from. --keep: each recording stays in DIR with its truth; what is there
already is judged again, not played again. --tap prints one line for each, and plays a wrong one twice more.
Prints a table by framework and form, and what was said instead; 1 when less than 95 % are right, or when a bounded one raised an alarm.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from causes import Cgroup # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENTS = ROOT / "tests/victims/agents"
RIGHT_AT_LEAST = 0.95
SECONDS = 180 # a framework starts in a few, and in a minute on a machine that has much else to do
FORMS = ("sync", "asyncio", "threads")
WHEELS = {"transformers": "torch-cu13"} # which a framework of build/frameworks comes without
Row = collections.namedtuple("Row", "framework scenario form store end bounded seed")


class Run:
    """One agent, played once. said: what was wrong, by what was asked."""

    def __init__(self, bench, row):
        self.bench, self.row, self.said = bench, row, {}
        keep = bench.options.keep
        self.place = pathlib.Path(keep, ".".join(map(str, row))) if keep else pathlib.Path(tempfile.mkdtemp(prefix="agents."))
        played = self.place / "played.json"
        if played.exists():
            self.played = json.loads(played.read_text(encoding="utf-8"))
        else:
            shutil.rmtree(self.place, ignore_errors=True)
            self.place.mkdir(parents=True)
            self.played = self.play_in_group()
            if not self.played.get("late"): # which tells of the machine, not of the report
                played.write_text(json.dumps(self.played), encoding="utf-8")
        self.skipped = self.played.get("skipped")
        if not self.skipped:
            self.judge()
        if not keep:
            shutil.rmtree(self.place, ignore_errors=True)

    def play_in_group(self):
        try:
            return self.play()
        except OSError as error:
            if self.row.end != "group":
                raise
            return {"skipped": f"no memory cgroup: {error.strerror}"}

    def play(self):
        row, limit = self.row, self.bench.limits[self.row.framework, self.row.scenario]
        group = Cgroup(f"cuflight-agents.{os.getpid()}.{self.place.name}", limit) if row.end == "group" else None
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUFLIGHT_", "LD_", "PYTHON"))}
        environment = keep | {"TMPDIR": str(self.place), "HOME": str(self.place), **self.bench.paths[row.framework],
                              "CUFLIGHT_OUTPUT": f"{self.place}/recordings/", "LD_PRELOAD": str(self.bench.build / "libcuflight.so")}
        words = [row.framework, row.scenario, row.form, row.store, row.end, *(["--bounded"] if row.bounded else [])]
        command = [self.bench.pythons[row.framework], "-W", "ignore", AGENTS / "agent.py", *words, f"--seed={row.seed}"]
        try:
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                  cwd=self.place, preexec_fn=group.enter if group else None) as process:
                late = False
                try:
                    truth, stderr = process.communicate(timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    late = True
                    process.kill()
                    truth, stderr = process.communicate()
                    stderr += f"did not end within {SECONDS} s"
        finally:
            if group:
                group.close()
        return {"status": process.returncode, "stderr": stderr[-300:], "late": late,
                "truth": dict(line.split(None, 1) for line in truth.splitlines() if " " in line)}

    def report(self, *words):
        command = [self.bench.build / "cuflight", "report", *words, self.place / "recordings"]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout

    def judge(self):
        status, truth, stderr = (self.played[key] for key in ("status", "truth", "stderr"))
        if (status == 0) != self.row.bounded or self.played.get("late"):
            self.said["broken"] = f"status {status}: {stderr}"
        if not (self.place / "recordings").is_dir():
            if not self.row.bounded: # a plain preload may leave nothing of a small one
                self.said["cause"] = "no recording"
            return
        document = self.report("--format=json")
        if not document:
            self.said["cause"] = "no report"
            return
        report = json.loads(document)
        cause = report["cause"] or {}
        found = cause.get("name_id") or ("inconclusive" if cause else "none")
        if self.row.bounded:
            leaks = [row["bytes"] for row in report["leaks"] if row["class"] == "leak"]
            if cause or leaks:
                self.said["alarm"] = f"{found}, leaks of {leaks}"
        elif "do" in truth:
            self.judge_failure(truth, found, cause)
        else:
            self.said["broken"] = f"no truth: {stderr}"

    def judge_failure(self, truth, found, cause):
        if found != truth["cause"]:
            self.said["cause"] = f"told {found}"
        screen = self.report()
        if not any(f"{truth['file']}:{line}" in screen for line in truth["lines"].split()):
            self.said["line"] = "its line is not on the screen"
        first = (cause.get("fix") or [{"text": "nothing"}])[0]["text"]
        if not re.search(truth["do"], first):
            self.said["do"] = f"advised to {first}"

    def is_wrong(self):
        return any(kind != "do" for kind in self.said)


def scenarios_of(framework, python, paths):
    """scenario: stores, ends of each, cgroup's limit; asked of a Python that has the framework"""
    module = framework if framework == "plain" else f"with_{framework}"
    source = (f"import json, {module} as m\n"
              "ends = lambda kind, store: kind.ends[store] if isinstance(kind.ends, dict) else kind.ends\n"
              "print(json.dumps({name: [{s: ends(kind, s) for s in kind.stores}, m.STARTS_MIB + kind.starts_mib + kind.room_mib] for name, kind in m.SCENARIOS.items()}))")
    asked = subprocess.run([python, "-W", "ignore", "-c", source], cwd=AGENTS, capture_output=True, text=True, check=False,
                           env=os.environ | paths)
    return (json.loads(asked.stdout.splitlines()[-1]), "") if asked.returncode == 0 else ({}, asked.stderr.strip().splitlines()[-1])


class Bench:
    def __init__(self, options):
        self.build, self.options = pathlib.Path(options.build).resolve(), options
        self.pythons, self.paths, self.limits, self.rows, self.absent = {}, {}, {}, [], {}
        for word in options.framework.split(","):
            name, _, python = word.partition("=")
            wheels = () if python else (self.build / "frameworks").glob(f"{WHEELS.get(name)}/lib/python3*/site-packages")
            self.paths[name] = {"PYTHONPATH": ":".join(map(str, wheels)), "PYTHONDONTWRITEBYTECODE": "1"}
            self.add(name, python or (sys.executable if name == "plain" else str(self.build / f"frameworks/{name}/bin/python")))
        if options.sample:
            self.rows = random.Random(options.first).sample(self.rows, min(options.sample, len(self.rows)))

    def add(self, name, python):
        if not pathlib.Path(python).exists():
            self.absent[name] = f"no {python}: run scripts/setup frameworks"
            return
        self.pythons[name] = python
        scenarios, why = scenarios_of(name, python, self.paths[name])
        if why:
            self.absent[name] = why
        for scenario, (stores, limit) in scenarios.items():
            self.limits[name, scenario] = limit
            rows = [Row(name, scenario, form, store, end, bounded, seed) for bounded in (False, True) for form in FORMS for store in stores
                    for end in stores[store] for seed in range(self.options.first, self.options.first + self.options.seeds)]
            self.rows += [row for row in rows if re.search(self.options.only, words_of(row))]

    def all(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(self.run, self.rows))

    def run(self, row):
        """A test is not the place of chance, which is in what was sampled and when the kernel came: there, one wrong run of
        three is as good as none. A false alarm is never good."""
        run = Run(self, row)
        if not self.options.tap or not run.said or row.bounded:
            return run
        again = [Run(self, row._replace(seed=row.seed + 100 * more)) for more in (1, 2)]
        return run if any(other.said for other in again) else again[0]


def words_of(row):
    return " ".join(map(str, row[:5])) + (" bounded" if row.bounded else "")


def print_table(runs):
    print("| framework | form | right | cause | own line | first DO | alarms of bounded |\n|---|---|---|---|---|---|---|")
    groups = collections.defaultdict(list)
    for run in runs:
        for key in (run.row.framework, run.row.form), (run.row.framework, "all"), ("all", "all"):
            groups[key].append(run)
    for (framework, form), rows in groups.items():
        failing, bounded = ([run for run in rows if run.row.bounded == wanted] for wanted in (False, True))
        share = lambda *kinds: f"{sum(not any(kind in run.said for kind in kinds) for run in failing)}/{len(failing)}"
        print(f"| {framework} | {form} | {share('cause', 'line', 'broken')} | {share('cause')} | {share('line')} | {share('do')} | "
              f"{sum('alarm' in run.said for run in bounded)}/{len(bounded)} |")
    print()
    for run in runs:
        if run.said:
            print(f"{words_of(run.row)} {run.row.seed}: {run.said}")


def print_tap(bench, runs):
    lines = [f"ok - {name} # SKIP {why}" for name, why in bench.absent.items()]
    for run in runs:
        lines.append(f"{'not ok' if run.said else 'ok'} - {words_of(run.row)}{f' # SKIP {run.skipped}' if run.skipped else ''}")
        lines += [f"#   {kind}: {note}".replace("\n", " ") for kind, note in run.said.items()]
    number = 0
    for line in lines:
        if "ok - " in line[:9]:
            number += 1
            line = line.replace("ok -", f"ok {number} -", 1)
        print(line)
    print(f"1..{number}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--framework", default="plain")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=2)
    bench = Bench(parser.parse_args())
    runs = bench.all()
    if bench.options.tap:
        print_tap(bench, runs)
        return 0
    for name, why in bench.absent.items():
        print(f"{name}: not played: {why}")
    runs = [run for run in runs if not run.skipped]
    print_table(runs)
    failing = [run for run in runs if not run.row.bounded]
    right = sum(not run.is_wrong() for run in failing)
    alarms = [run for run in runs if run.row.bounded and run.said]
    return 1 if alarms or right < RIGHT_AT_LEAST * len(failing) else 0


if __name__ == "__main__":
    sys.exit(main())
