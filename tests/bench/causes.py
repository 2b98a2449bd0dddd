#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""causes.py BUILD [--seeds=N] [--from=N] [--only=PATTERN] [--nameless] [--variants] [--advice] [--tap] [--keep=DIR]: does the report name the cause?

Plays every scenario of tests/victims/causes under the recorder on the simulated device, N seeds each (20), every seed at
another scale between 0.7 and 1.3, and compares the report with the scenario's truth: the verdict, its neighbours, figures;
every event and time that evidence points at is looked up in the recording. Prints what was confused with what, and the
share of right verdicts; 1 when it is below 97 %, or when a healthy program was said to leak.
--from=101 plays seeds that no threshold was looked at with: those were set on 1 to 20.
--nameless plays programs without symbols: verdicts rest on arithmetic, and names only sharpen their words.
--variants needs no truth: each scenario is also played with what must not change its cause (VARIANTS). 1 when one did. Without
names a doubt between the cause and another is no change.
--advice follows the advice, where it is a setting: the scenario is played again as advised, which must fit, and with a number
clearly beyond the advised one, which must not. A table has what was applied. --tap prints one line a scenario; --keep leaves the recordings of what went wrong in DIR.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIGHT_AT_LEAST = 0.97
SECONDS = 30
SLOW_SECONDS = 200 # --slow takes ten times as long
HIGH, MEDIUM = 0.8, 0.5 # analysis/explain/causes.h
# what must not change the cause; "nameless" is a program of its own; "last-half" is the same run, whose rings were half as large
VARIANTS = ("--nameless", "--doubled", "--idle-tenant", "--holes", "--slow", "--last-half")
WORK_LEAST = 8 # cycles of work: fewer are none (analysis/facts/README.md)
NOISE_BYTES = 1 << 20 # fixture.c: what other threads hold at most


class Cgroup:
    """A memory cgroup for one run, of either version; entered by the shell that becomes the program."""

    def __init__(self, name, mib):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        base, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (old.parent, "memory.max")
        self.path = base / name
        self.path.mkdir()
        try:
            (self.path / limit).write_text(str(mib << 20))
        except OSError:
            self.path.rmdir()
            raise

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.path.rmdir()


class Run:
    """One scenario played once: its truth, its status and its report."""

    def __init__(self, bench, name, seed, scale, extra=()):
        self.bench, self.name, self.seed, self.scale = bench, name, seed, scale
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="causes."))
        self.recordings = self.place / "recordings"
        self.recordings.mkdir()
        self.play(extra)

    def environment(self, extra):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUFLIGHT_", "SIMCUDA_", "LD_"))}
        return keep | {
            "LD_LIBRARY_PATH": str(self.bench.build / "sim"), "SIMCUDA_STATE": str(self.place / "devices"), "TMPDIR": str(self.place),
            "CUFLIGHT_OUTPUT": f"{self.recordings}/", "CUFLIGHT_OPTIONS": "size=8MiB", "LD_PRELOAD": str(self.bench.build / "libcuflight.so")
        } | dict(word.split("=", 1) for word in extra if not word.startswith("-"))

    def play(self, extra):
        mib = self.bench.scenarios[self.name]
        group = Cgroup(f"cuflight-causes.{os.getpid()}.{self.place.name}", mib) if mib else None
        extra = [*extra, "--nameless"] if self.bench.options.nameless else extra
        fixture = self.bench.nameless if "--nameless" in extra else self.bench.build / "victims/cause_fixture"
        which = [f"--seed={self.seed}", f"--scale={self.scale:.2f}"]
        settings = subprocess.run([fixture, self.name, "--settings", *which], capture_output=True, text=True, check=True).stdout.split()
        program = [fixture, self.name, *which, *(word for word in extra if word.startswith("-")), *settings]
        with subprocess.Popen(program, env=self.environment(extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=group.enter if group else None) as process:
            try:
                seconds = SLOW_SECONDS if "--slow" in extra else SECONDS
                truth, self.stderr = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                truth, self.stderr = process.communicate()
                self.stderr += f"did not end within {seconds} s"
        if group:
            group.close()
        self.status = process.returncode
        self.truth = [line.split(None, 1) for line in truth.splitlines() if line]
        self.report = self.read_report()

    def read_report(self):
        command = [self.bench.build / "cuflight", "report", "--format=json", self.recordings]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            self.stderr += done.stderr
            return None
        return json.loads(done.stdout)

    def forget_half(self):
        subprocess.run([self.bench.build / "fault/last_half", *self.recordings.glob("*.cuf")], check=True)
        self.report = self.read_report()

    def said(self, subject):
        return [rest for first, rest in self.truth if first == subject]

    def verdict(self):
        """the cause's id; "none" where nothing is wrong: near misses that nobody expects are no wrong verdict"""
        if self.report is None:
            return "no report"
        cause = self.cause()
        if not cause or (cause["id"] == "S0" and self.said("cause") == ["none"]):
            return "none"
        return cause["id"] or "inconclusive"

    def cause(self):
        """the run's cause, else the last failure's"""
        found = self.report.get("cause") if self.report else None
        for incident in reversed(self.report["incidents"] if self.report else []):
            found = found or incident["cause"]
        return found

    def wrong_evidence(self):
        """Evidence of events or samples that the recordings do not have."""
        found = subprocess.run([self.bench.build / "fault/event_numbers", *self.recordings.glob("*.cuf")], capture_output=True, text=True, check=True)
        events = {tuple(map(int, line.split())) for line in found.stdout.splitlines()}
        # one that was killed is taken to have lived until a second after its last record
        spans = {p["pid"]: (p["start_ns"], p["end_ns"] + (10**9 if "killed" in p["end_state"] else 0)) for p in self.report["processes"]}
        causes = [cause for cause in [self.report.get("cause")] + [i["cause"] for i in self.report["incidents"]] if cause]
        for line in [line for cause in causes for line in cause["evidence"]]:
            start, end = spans.get(line["pid"], (0, 0))
            missing = [seq for seq in line["seqs"] if (line["pid"], seq) not in events]
            if missing or not (line["seqs"] or line["time_ns"]):
                yield f"evidence without its events: {line['text']} {missing}"
            elif line["time_ns"] and not start <= line["time_ns"] <= end:
                yield f"evidence at a time beyond the process: {line['text']}"

    def live(self):
        """the causes that the library itself names in its last words; none: it could not tell"""
        found = re.search(r"^cuflight: likely: .*\(([^()]*)\)$", self.stderr, re.MULTILINE)
        return [LIVE_NAMES[name] for name in found[1].split(", ")] if found else []

    def leaks(self):
        return [leak for leak in self.report["leaks"] if leak["class"] == "leak"] if self.report else []

    def keep(self, folder, variant=""):
        shutil.copytree(self.recordings, pathlib.Path(folder) / f"{self.name}.{self.seed}{variant}", dirs_exist_ok=True)

    def close(self, keep=None):
        if keep:
            self.keep(keep)
        shutil.rmtree(self.place, ignore_errors=True)


# the names that the library prints, as causes of the report; "fragmentation" is any of S6
LIVE_NAMES = {"memory-cap": "S1.cap", "other-tenant": "S1.tenant", "fragmentation": "S6", "gpu-leak": "S8", "kv-cache-grew": "S4",
              "model-too-large": "S2", "kv-cache-too-large": "S3", "too-many-requests": "S5", "page-lock-refused": "S9.H6"}


def names(expected, found):
    """is `found` the cause `expected`, or a sub-type of it?  S2: S2a; S6: S6.F1"""
    return found == expected or bool(re.fullmatch(re.escape(expected) + r"([a-z]|[.].+)", found))


# what a line of truth beside the cause asks of the report; each returns what is wrong, or None

def check_per_request(run, said):
    found = [leak["per_request_bytes"] for leak in run.leaks()]
    if not any(f and abs(f - int(said)) <= int(said) / 100 for f in found):
        return f"per request {said}, found {found}"


def check_end(run, said):
    words = said.split()[1:]
    capture = run.report["processes"][0]
    found = [capture["end_state"]] + ([str(capture["end_status"])] if len(words) > 1 else [])
    if words != found:
        return f"end {words}, found {found}"


def check_clean(run, said):
    found = run.leaks() if said == "leaks" else run.report["incidents"]
    if found:
        return f"{said} in a program without: {[[f['function'] for f in row['stack'][:2]] for row in found]}"


def check_attempts_least(run, said):
    if not run.report["incidents"] or len(run.report["incidents"][-1]["attempts"]) < int(said):
        return f"fewer than {said} attempts"


def check_pinned_by(run, said):
    if said not in json.dumps(run.cause()):
        return f"the verdict does not name {said}"


EVIDENCE = {"other_devices": r"of \d+ devices, the fullest is .* used, the emptiest", "percent": r"\d ?%", "caveat": r"(?i)leak"}


def check_evidence(run, said):
    text = json.dumps([run.cause() and run.cause()[key] for key in ("evidence", "separates", "lacks") if run.cause() and key in run.cause()])
    if not re.search(EVIDENCE[said], text):
        return f"the evidence does not tell {said}"


def check_hole(run, said):
    found = (run.report["incidents"][-1]["largest_free"] or {}).get("segment_bytes") if run.report["incidents"] else None
    if found != int(said):
        return f"largest hole {said}, found {found}"


def check_framework_request(run, said):
    found = run.report["incidents"][-1].get("framework_requested_bytes") if run.report["incidents"] else None
    if found != int(said):
        return f"the framework wanted {said}, found {found}"


def check_reserved(run, said):
    """what the framework held at the failure, chunks that were given back not counted; the other threads' blocks are beside it"""
    owners = run.report["incidents"][-1]["owners"] if run.report["incidents"] else []
    found = sum(row["bytes"] or 0 for row in owners if row["kind"] in ("device", "vmm", "framework_slack"))
    if not 0 <= found - int(said) <= NOISE_BYTES:
        return f"reserved {said}, found {found}"


def check_when(run, said):
    """the timing that field guides give for a cause: at the start, before any work was done; under load, with more at once than ever; late"""
    done = run.report["requests"]["count"]
    words = (run.cause() or {}).get("summary", "")
    if said == "load":
        together = re.search(r"([\d,]+) requests at once .* before there were at most ([\d,]+)", words)
        counts = [int(count.replace(",", "")) for count in together.groups()] if together else [0, 0]
        return None if counts[0] > counts[1] else f"under load, found: {words}"
    if (done != 0) if said == "start" else (done < WORK_LEAST):
        return f"when {said}, found {done} requests before it"


def check_fits(run, said):
    fixes = (run.cause() or {}).get("fix") or []
    if int(said) not in [fix["value"] for fix in fixes]:
        return f"{said} would fit, advised {[fix['value'] for fix in fixes]}"


def check_without(run, said):
    found = [row["bytes"] for row in (run.cause() or {}).get("counterfactual", [])]
    if int(said) not in found:
        return f"without {said}, found {found}"


def check_recorded(run, _said):
    """what a call allocated is not called nobody's"""
    found = [line["text"] for line in run.report["coverage"]["blind"] if "of no recorded call" in line["text"]]
    return found[0] if found else None


CHECKS = {"per_request": check_per_request, "end": check_end, "clean": check_clean, "attempts_least": check_attempts_least,
          "pinned_by": check_pinned_by, "evidence": check_evidence, "fits": check_fits, "when": check_when, "hole": check_hole, "framework_request": check_framework_request,
          "reserved": check_reserved, "without": check_without, "recorded": check_recorded}


class Result:
    def __init__(self, run):
        self.name, self.seed, self.scale = run.name, run.seed, run.scale
        self.skipped = run.stderr.strip() if run.status == 77 else ""
        expected = run.said("cause")
        self.expected = expected[0] if expected else "nothing"
        self.found = run.verdict()
        self.right = names(self.expected, self.found) and not any(names(id, self.found) for id in run.said("not"))
        self.confidence = (run.cause() or {}).get("confidence")
        self.called_leak = bool(run.leaks()) and "leaks" in run.said("clean")
        broken = not expected or run.status in (2, 3) or "did not end" in run.stderr
        self.notes = [f"broken: status {run.status}: {run.stderr.strip()}"] if broken else []
        for subject, rest in run.truth if run.report else []:
            note = CHECKS[subject](run, rest) if subject in CHECKS else None
            self.notes += [note] if note else []
        self.notes += run.wrong_evidence() if run.report else []
        self.live = run.live()
        if self.live and not any(names(id, self.found) for id in self.live) and not set(self.live) & set(run.said("refused_by")):
            self.notes.append(f"the library itself said {' or '.join(self.live)}")

    def is_wrong(self):
        return not self.skipped and (not self.right or bool(self.notes))


# Advice in words, and what follows it in a scenario. A number is followed as it stands.
FOLLOWED = ((r"expandable_segments:True(?! does not help)", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
            (r"^set MALLOC_ARENA_MAX=2", "MALLOC_ARENA_MAX=2"),
            (r"^allocate long-lived blocks first", "--apart"),
            (r"^find and stop|^give .* another device", "--no-tenant"),
            (r"set_per_process_memory_fraction", "--whole"))
# Verdicts whose advice is no setting: the code is to be changed, or a limit of the machine.
NO_SETTING = ("none", "S0", "S6.F2", "S6.F3", "S6.F5", "S7", "S8", "S9")


def followed(fix):
    """as an argument of the scenario; None: words that no scenario can follow"""
    return next((argument for words, argument in FOLLOWED if re.search(words, fix["text"])), None)


def advice_of(run):
    """the first advice that can be followed, as an argument of the scenario, and one clearly beyond its number"""
    fixes = (run.cause() or {}).get("fix") or []
    if fixes and followed(fixes[0]):
        return fixes[0], followed(fixes[0]), None
    if run.verdict().startswith(NO_SETTING):
        return None, None, None
    for fix in fixes:
        if fix["value"] is not None and fix["unit"] == "count":
            return fix, f"--value={fix['value']}", f"--value={fix['value'] * 5 // 4 + 1}"
    for fix in fixes:
        # the least that is missing: what would have been requested later was not recorded, and the words say so
        if fix["by_bytes"] and "at least" not in fix["text"]:
            return fix, f"--by-bytes={fix['by_bytes']}", f"--by-bytes={fix['by_bytes'] // 2}"
    return None, None, None


class Advice:
    """The closed loop of one scenario: fails; lives as advised; fails beyond that."""

    def __init__(self, bench, name, seed, scale):
        self.name, self.seed, self.scale, self.skipped, self.right, self.notes = name, seed, scale, "", False, []
        first = Run(bench, name, seed, scale)
        self.expected = "advice that fits"
        self.found = first.verdict()
        fix, fitting, beyond = advice_of(first)
        first.close()
        self.applied = fitting
        if not fitting:
            self.no_setting(first)
            return
        fits = self.again(bench, fitting) == 0
        fails = not beyond or self.again(bench, beyond) == 1
        self.right = fits and fails
        self.notes += [] if fits else [f"{fitting} as advised ({fix['text']}) does not fit"]
        self.notes += [] if fails else [f"{beyond}, beyond the advice, fits as well"]

    def no_setting(self, first):
        """Such advice is for code or machines, or states that it is the least; a knob or a number must have been followed."""
        fixes = (first.cause() or {}).get("fix") or []
        promised = [fix for fix in fixes if fix["unit"] == "count" or (fix["knob"] and fix["by_bytes"])]
        if promised and not first.verdict().startswith(NO_SETTING):
            self.notes.append(f"nobody followed: {promised[0]['text']}")
        else:
            self.skipped = f"{self.found}: its advice is no setting"

    def again(self, bench, argument):
        run = Run(bench, self.name, self.seed, self.scale, [argument])
        run.close()
        return run.status


class Variant:
    """One scenario, and the same with one thing that must not matter."""

    def __init__(self, option, expected, run):
        cause = run.cause() or {}
        self.expected, self.found = expected, run.verdict()
        self.right = self.expected[:2] == self.found[:2]
        # nothing but a name states which of two it is: then both are named, and neither is called certain
        other = (cause.get("runner_up") or {}).get("id") or ""
        self.doubted = not self.right and option == "--nameless" and cause.get("confidence", 1) < HIGH and other[:2] == expected[:2]


class Bench:
    def __init__(self, options):
        self.build = pathlib.Path(options.build).resolve()
        self.options = options
        self.place = tempfile.TemporaryDirectory(prefix="causes.")
        self.nameless = pathlib.Path(self.place.name) / "cause_fixture"
        subprocess.run(["strip", self.build / "victims/cause_fixture", "-o", self.nameless], check=True)
        (self.nameless.parent / "torch").symlink_to(self.build / "victims/torch")
        listed = subprocess.run([self.build / "victims/cause_fixture", "--list"], capture_output=True, text=True, check=True)
        rows = [line.split() for line in listed.stdout.splitlines()]
        self.scenarios = {name: int(mib) for name, mib in rows if re.search(options.only, name)}

    def play(self, name, seed):
        scale = 0.7 + 0.6 * (seed * 7 % 20) / 19
        if self.options.variants:
            return name, self.vary(name, seed, scale)
        if self.options.advice:
            advice = Advice(self, name, seed, scale)
            return name, advice if advice.right or advice.skipped or not self.options.tap else Advice(self, name, seed, scale)
        try:
            result = self.once(name, seed, scale)
        except OSError as error:  # no cgroup could be made here
            if not self.scenarios[name]:
                raise
            return name, f"no memory cgroup: {error.strerror}"
        if self.options.tap and result.is_wrong():  # threads and the kernel's timing differ from run to run: two of three count
            again = [self.once(name, seed, scale) for _ in range(2)]
            result = again[0] if not any(r.is_wrong() for r in again) else result
        return name, result

    def vary(self, name, seed, scale):
        """one verdict for each variant"""
        plain = Run(self, name, seed, scale)
        expected, rows = plain.verdict(), {}
        with tempfile.TemporaryDirectory(prefix="causes.") as aside:
            plain.keep(aside)
            for option in VARIANTS:
                run = plain if option == "--last-half" else Run(self, name, seed, scale, [option])
                if run == plain:
                    plain.forget_half()
                rows[option] = Variant(option, expected, run)
                if self.options.keep and not rows[option].right:
                    run.keep(self.options.keep, option)
                    shutil.copytree(aside, self.options.keep, dirs_exist_ok=True)
                run.close()
        return rows

    def once(self, name, seed, scale):
        run = Run(self, name, seed, scale)
        result = Result(run)
        run.close(self.options.keep if result.is_wrong() else None)
        return result

    def all(self):
        pairs = [(name, seed) for seed in range(self.options.first, self.options.first + self.options.seeds) for name in self.scenarios]
        results = collections.defaultdict(list)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for name, result in pool.map(lambda pair: self.play(*pair), pairs):
                results[name].append(result)
        return results


def print_tap(results):
    """a scenario is right when every seed is; which it was told instead is said"""
    for number, (name, rows) in enumerate(results.items(), 1):
        skipped = [row for row in rows if isinstance(row, str) or row.skipped]
        wrong = [row for row in rows if row not in skipped and (not row.right or row.notes)]
        reason = f" # SKIP {skipped[0] if isinstance(skipped[0], str) else skipped[0].skipped}" if skipped else ""
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}{reason}")
        for row in wrong:
            print(f"#   seed {row.seed}: expected {row.expected}, found {row.found}; {'; '.join(row.notes)}")
    print(f"1..{len(results)}")


def print_matrix(rows):
    found = sorted({row.found for row in rows})
    expected = sorted({row.expected for row in rows})
    widths = [max(5, len(id)) for id in found]
    print("\n| expected \\ found | " + " | ".join(f"{id:>{w}}" for id, w in zip(found, widths)) + " |")
    print("|---|" + "---|" * len(found))
    for row_id in expected:
        counts = collections.Counter(row.found for row in rows if row.expected == row_id)
        print(f"| {row_id} | " + " | ".join(f"{counts[id] or '':>{w}}" for id, w in zip(found, widths)) + " |")


def with_settings(results):
    """those whose advice is a setting; the others are listed in a comment"""
    print("# no setting: " + ", ".join(name for name, rows in results.items() if all(not isinstance(row, str) and row.skipped for row in rows)))
    return {name: rows for name, rows in results.items() if not all(not isinstance(row, str) and row.skipped for row in rows)}


def print_advice(results):
    rows = [row for each in results.values() for row in each if not row.skipped]
    print("| scenario | verdict | what was applied | ran | what did not |\n|---|---|---|---|---|")
    for name, each in results.items():
        each = [row for row in each if not row.skipped]
        if not each:
            continue
        applied = sorted({re.sub(r"=\d+$", "=N", row.applied or "") for row in each})
        notes = collections.Counter(re.sub(r"\d+", "N", note) for row in each for note in row.notes)
        print(f"| {name} | {', '.join(sorted({row.found for row in each}))} | {', '.join(applied)} | {sum(row.right for row in each)}/{len(each)} | "
              + "; ".join(f"{note} x{count}" for note, count in notes.items()) + " |")
    right = sum(row.right for row in rows)
    print(f"\n{right} of {len(rows)} ran as advised, and not with a number beyond that: {100 * right / len(rows):.1f} %")
    return 0 if right == len(rows) else 1


def print_variants(results):
    """which cause became which other one"""
    changed, played, doubted = 0, 0, 0
    print("| scenario | variant | changed | from, to |\n|---|---|---|---|")
    for name, each in results.items():
        each = [rows for rows in each if not isinstance(rows, str)]
        for option in VARIANTS:
            wrong = collections.Counter(f"{rows[option].expected}, {rows[option].found}" for rows in each
                                        if not rows[option].right and not rows[option].doubted)
            played, changed = played + len(each), changed + sum(wrong.values())
            doubted += sum(rows[option].doubted for rows in each)
            if wrong:
                print(f"| {name} | {option[2:]} | {sum(wrong.values())}/{len(each)} | " + "; ".join(f"{n} x{c}" for n, c in wrong.items()) + " |")
    print(f"\n{changed} of {played} changed the cause; {doubted} without names were doubted between it and another")
    return 1 if changed else 0


def print_calibration(rows):
    """a verdict that is called certain has to be right more often than one that is not"""
    for word, least, most in (("high", HIGH, 2), ("medium", MEDIUM, HIGH), ("low", 0, MEDIUM)):
        told = [row for row in rows if row.confidence is not None and least <= row.confidence < most and row.expected != "none"]
        if told:
            print(f"confidence {word}: {sum(row.right for row in told)} of {len(told)} right, {100 * sum(row.right for row in told) / len(told):.1f} %")


def print_table(results):
    rows = [row for each in results.values() for row in each if not isinstance(row, str) and not row.skipped]
    print("| scenario | cause | right | told instead | other figures wrong |")
    print("|---|---|---|---|---|")
    for name, each in results.items():
        told = [row for row in each if row in rows]
        if not told:
            print(f"| {name} | | skipped | {each[0] if isinstance(each[0], str) else each[0].skipped} | |")
            continue
        instead = collections.Counter(row.found for row in told if not row.right)
        notes = collections.Counter(note.split(":")[0].split(",")[0] for row in told for note in row.notes)
        print(f"| {name} | {told[0].expected} | {sum(row.right for row in told)}/{len(told)} | "
              + ", ".join(f"{id} x{n}" for id, n in instead.items()) + " | " + "; ".join(f"{n} x{c}" for n, c in notes.items()) + " |")
    print_matrix(rows)
    print()
    print_calibration(rows)
    right, leaks = sum(row.right for row in rows), sum(row.called_leak for row in rows)
    print(f"{right} of {len(rows)} right, {100 * right / len(rows):.1f} %; healthy programs called leaks: {leaks}")
    return 0 if right >= RIGHT_AT_LEAST * len(rows) and not leaks else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--nameless", action="store_true")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--advice", action="store_true")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--keep")
    bench = Bench(parser.parse_args())
    results = bench.all()
    if bench.options.variants:
        return print_variants(results)
    if not bench.options.tap:
        return print_advice(results) if bench.options.advice else print_table(results)
    if bench.options.advice:
        results = with_settings(results)
    print_tap(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
