#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""timelapse.py BUILD [--only=PATTERN] [--no-host] [--run=SECONDS] [--seed=N] [--tap [--lead=SHARE]] [--jobs=N]: would the alarm have come in time?

Records every scenario of tests/victims/causes, sample servers and, unless told otherwise, the host programs of tests/victims/growth,
and plays each recording to the judge of analysis/explain/ from its first second (timelapse.c): a pass at each twentieth of the run.
Prints which rule raised how many false alarms, and how many leaks it announced with 30 % of the run left; beside it two
rules that watch totals: "90 % used", and a line through the last eighth of the run that reaches the whole device within half of it.
A program here does in seconds what a server does in hours. So each run is taken to last SECONDS (1800), and the judge's times are
shorter in proportion. Each call of the driver takes a millisecond, so that the pace is the program's and not the scheduler's.
--tap: one line for each program, as a test; --lead=0: an alarm before the end is enough, as the scheduler of a busy machine may
stretch any part of a run of seconds.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import causes

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAD_LEAST = 0.3
PACE = "SIMCUDA_DELAY_US=1000"
RULES = ("judge", "threshold", "linear")
SERVERS = {"inference_server": "leak", "leak_per_request": "leak", "healthy_churn": "healthy"}

Row = collections.namedtuple("Row", "name truth alarms right")


def truth_of(run):
    """leak: goes on until memory ends; growth: a cache of keys and values that does; healthy; other: fails for another reason"""
    cause = (run.said("cause") or ["none"])[0]
    if cause == "none":
        return "healthy"
    if cause.startswith(("S8", "S9.H2")):
        return "leak"
    return "growth" if cause.startswith("S4") else "other"


def play(options, name, truth, recordings):
    done = subprocess.run([options.build / "bench/timelapse", recordings, str(options.run)], capture_output=True, text=True, check=True)
    alarms, right = {}, False
    for line in done.stdout.splitlines():
        rule, at, *rest = line.split()
        alarms[rule] = None if at == "-" else float(at)
        right |= bool(rest) and rest[0] == "right"
    return Row(name, truth, alarms, right)


def scenario(options, bench, name):
    try:
        run = causes.Run(bench, name, options.seed, 1.0, [PACE])
    except OSError:  # no cgroup could be made here
        return None
    row = None if run.status == 77 or not any(run.recordings.iterdir()) else play(options, name, truth_of(run), run.recordings)
    run.close()
    return row


def server(options, name):
    with tempfile.TemporaryDirectory(prefix="timelapse.") as place:
        recordings = pathlib.Path(place) / "recordings"
        environment = os.environ | dict([PACE.split("=")]) | {"SIMCUDA_LIB": str(options.build / "sim"), "CUFLIGHT_OUTPUT": f"{recordings}/"}
        subprocess.run([ROOT / "scripts/simcuda", "env", f"LD_PRELOAD={options.build}/libcuflight.so", options.build / "victims" / name],
                       env=environment, check=False, capture_output=True)
        return play(options, name, SERVERS[name], recordings)


def host_programs(options, place):
    subprocess.run([ROOT / "tests/e2e/programs/growth.py", options.build, "both", "1"], check=False, capture_output=True,
                   env=os.environ | {"GROWTH_KEEP": place}, cwd=place)
    for recordings in sorted(pathlib.Path(place).glob("*.*.*.0")):
        truth, language, name, _ = recordings.name.split(".")
        if re.search(options.only, name):
            yield play(options, f"{language}:{name}", truth, recordings)


def record(options):
    bench = causes.Bench(argparse.Namespace(build=options.build, only=options.only, nameless=False))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(scenario, options, bench, name) for name in bench.scenarios]
        runs += [pool.submit(server, options, name) for name in SERVERS if re.search(options.only, name)]
        rows = [run.result() for run in runs]
    if not options.no_host:
        with tempfile.TemporaryDirectory(prefix="timelapse.") as place:
            rows += host_programs(options, place)
    return [row for row in rows if row]


def is_right(row, lead):
    at = row.alarms["judge"]
    if row.truth == "healthy":
        return at is None
    if row.truth == "other":  # a small leak beside the cause is one
        return at is None or row.right
    return at is not None and 1 - at >= lead and (row.right or row.truth == "growth")


def print_tap(rows, lead):
    for number, row in enumerate(rows, 1):
        print(f"{'ok' if is_right(row, lead) else 'not ok'} {number} - {row.name} ({row.truth}): alarm at {row.alarms['judge']}")
    print(f"1..{len(rows)}")


def share(rows):
    return f"{sum(rows)} of {len(rows)}"


def print_table(rows):
    kinds = {truth: [row for row in rows if row.truth == truth] for truth in ("healthy", "other", "leak", "growth")}
    for row in rows:
        if not is_right(row, LEAD_LEAST):
            print(f"# {row.name} ({row.truth}): {row.alarms}{'' if row.right else ', no such call site in the report'}")
    print("| rule | alarms: healthy | other failures | leaks announced | with 30 % left | growing KV caches, with 30 % left | median lead |\n"
          "|---|---|---|---|---|---|---|")
    for rule in RULES:
        early = {truth: [row.alarms[rule] is not None and 1 - row.alarms[rule] >= LEAD_LEAST for row in of] for truth, of in kinds.items()}
        any_at = {truth: [row.alarms[rule] is not None for row in of] for truth, of in kinds.items()}
        leads = [1 - row.alarms[rule] for row in kinds["leak"] if row.alarms[rule] is not None]
        lead = f"{100 * statistics.median(leads):.0f} %" if leads else "-"
        print(f"| {rule} | {share(any_at['healthy'])} | {share(any_at['other'])} | {share(any_at['leak'])} | {share(early['leak'])} "
              f"| {share(early['growth'])} | {lead} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default="")
    parser.add_argument("--no-host", action="store_true")
    parser.add_argument("--run", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1, help="of the scenarios; rules were set on 1")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--lead", type=float, default=LEAD_LEAST, help="with --tap: the share of the run that is left")
    parser.add_argument("--jobs", type=int, default=8)  # they sleep most of the time
    options = parser.parse_args()
    rows = record(options)
    if options.tap:
        print_tap(rows, options.lead)
        return 0
    print_table(rows)
    return 0 if all(is_right(row, LEAD_LEAST) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
