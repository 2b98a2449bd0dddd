#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host.py BUILD: the cost of the malloc path beside its peers, in one run and one table.

Everything is CPU time. Each round runs the program natively, then under each tool in another order each time, and natively
again between them; a ratio is the tool's time by the mean of the two native ones around it, and what is printed is the median
over rounds. Slow peers get one round, of fewer calls where the program can do with fewer; with QUICK no real programs. A budget that is not met is printed
as missed; nothing here passes or fails.

ROUNDS=5; QUICK=1: one round, a tenth of the calls; MINUTES=12: no further round is begun when a program's share of them is
over; REALTIME=1: before all other programs of the machine (chrt, root), where it is shared.
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
import time

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "5"))
SECONDS_EACH = float(os.environ.get("MINUTES", "12")) * 60 / 9
FIRST = ["chrt", "-f", "50"] if os.environ.get("REALTIME") else []
CALLS = 600000 if QUICK else 4000000
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


class Bench:
    """Runs programs under tools and keeps what came out: column -> (title of native, tool -> cell)."""

    def __init__(self, build, work):
        self.build, self.work = build, work
        self.tools = tools(build, work)
        self.columns, self.budgets = {}, []

    def run(self, command, variables, figure):
        """One run; its CPU seconds, or with figure the first number that it prints. None: it failed."""
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUFLIGHT_")}
        environment.update(variables, CUFLIGHT_OUTPUT=self.work + "/")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        starter = ["env"] + [f"{k}={v}" for k, v in variables.items()]
        environment.pop("LD_PRELOAD", None)  # of the program alone
        done = subprocess.run(FIRST + starter + command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        for path in glob.glob(self.work + "/*"):
            os.unlink(path)
        if done.returncode:
            return None
        return float(done.stdout.split()[0]) if figure else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def measure(self, command, slow_command, always, figure):
        """Tool -> list of (value, ratio to native); and the native values."""
        found, native, begun = {}, [self.run(command, always, figure)], time.monotonic()
        for number in range(ROUNDS):
            order = [n for n in self.tools if self.tools[n][0] and (not self.tools[n][1] or (number == 0 and slow_command))]
            random.shuffle(order)
            for name in order:
                environment, slow = self.tools[name]
                value = self.run(slow_command if slow else command, dict(environment, **always), figure)
                native.append(self.run(command, always, figure))
                if value is not None:
                    found.setdefault(name, []).append((value, 2 * value / (native[-1] + native[-2])))
            if time.monotonic() - begun > SECONDS_EACH:
                break
        return found, native

    def compare(self, column, command, slow_command, figure=True, variables=None, beyond=False):
        """A column of the table. Returns tool -> median ratio to native; beyond: microseconds beyond it instead."""
        print(f"{column} ...", file=sys.stderr, flush=True)
        found, native = self.measure(command, slow_command, variables or {}, figure)
        base, cells, medians = statistics.median(native), {}, {}
        for name in self.tools:
            if name not in found:
                cells[name] = "not installed" if not self.tools[name][0] else "failed" if slow_command else "left out"
                continue
            value = statistics.median(v for v, _ in found[name])
            medians[name] = value - base if beyond else statistics.median(r for _, r in found[name])
            cells[name] = f"{medians[name]:+.1f}" if beyond else f"{medians[name]:.3g} ({value:.3g})" if medians[name] >= 10 else f"{medians[name]:.2f} ({value:.3g})"
        self.columns[column] = (f"{base:.3g}", cells)
        return medians

    def budget(self, what, value, goal):
        """value: None when one of those that it is made of failed."""
        self.budgets.append(f"{'failed' if value is None else 'met   ' if value <= goal else 'MISSED'} {what}" + (f": {value:.3f}, goal <= {goal}" if value is not None else ""))

    def print_table(self):
        print("| | " + " | ".join(self.columns) + " |")
        print("|---" * (len(self.columns) + 1) + "|")
        print("| native | " + " | ".join(native for native, _ in self.columns.values()) + " |")
        for name in self.tools:
            print(f"| {name} | " + " | ".join(cells[name] for _, cells in self.columns.values()) + " |")
        print("\n" + "\n".join(self.budgets))


def ratio(medians, name, by=None):
    """None when there is no such figure."""
    if name not in medians or (by and by not in medians):
        return None
    return medians[name] / (medians[by] if by else 1)


def micro(bench):
    for kind, words in (("nofp", "no fp"), ("fp", "fp")):
        full = {}
        for threads in (1, 2):
            program = [f"{bench.build}/bench/malloc_workload_{kind}", str(threads)]
            medians = bench.compare(f"malloc, {words}, {threads} thr, ns a pair", program + [str(CALLS)], program + [str(SLOW_CALLS)])
            bench.budget(f"sampled by the null interposer, {words}, {threads} thr", ratio(medians, "cuflight sampled", "null interposer"), 1.02)
            full[threads] = ratio(medians, "cuflight full")
            bench.budget(f"full by native, {words}, {threads} thr", full[threads], 2.0)
        bench.budget(f"full at 2 threads by full at 1, {words}", full[2] / full[1] if full[1] and full[2] else None, 1.0)


def write_c(path):
    """A source for the compiler, the same each time: functions with loops, branches and calls."""
    with open(path, "w", encoding="utf-8") as out:
        for i in range(40 if QUICK else 120):
            out.write(f"""struct s{i} {{ int a, b[{i % 7 + 2}]; struct s{i} *next; }};
int f{i}(struct s{i} *s, int n) {{
	int sum = {i};
	for (struct s{i} *p = s; p; p = p->next)
		for (int k = 0; k < {i % 7 + 2}; k++)
			sum += p->b[k] * n ^ (p->a > k ? p->a << {i % 5} : sum / (k + 1));
	switch (sum % {i % 6 + 3}) {{ case 0: return n ? f{i}(s->next, n - 1) : 1; case 1: return {f"f{i - 1}((void *)s, sum)" if i else "n"}; default: return sum; }}
}}
""")


def real_programs(bench, inputs):
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip() if shutil.which("gcc") else ""
    python = os.path.realpath(sys.executable)
    write_c(f"{inputs}/input.i")
    programs = {
        "sqlite3, s": (shutil.which("sqlite3"), ["sqlite3", ":memory:", f".read {HERE}/host_sqlite.sql"], {}),
        "cc1 -O2, s": (os.path.sep in cc1, [cc1, "-quiet", "-O2", f"{inputs}/input.i", "-o", "/dev/null"], {}),
        "python3, s": (python, [python, f"{HERE}/host_python.py"], {}),
        "python3, PYTHONMALLOC=malloc, s": (python, [python, f"{HERE}/host_python.py"], {"PYTHONMALLOC": "malloc"}),
    }
    for name, (there, command, variables) in programs.items():
        if not there:
            bench.budgets.append(f"skipped {name}: not installed")
            continue
        medians = bench.compare(name, command, None if QUICK else command, figure=False, variables=variables)
        bench.budget(f"sampled by native, {name}", ratio(medians, "cuflight sampled"), 1.01)


def births(bench):
    command = [f"{bench.build}/bench/thread_births", "300" if QUICK else "3000"]
    medians = bench.compare("thread + 10 pairs, us beyond native", command, command, beyond=True)
    for mode in ("sampled", "full"):
        bench.budget(f"thread birth, {mode}, us beyond native", ratio(medians, f"cuflight {mode}"), 5)


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as inputs:
        bench = Bench(build, work)
        micro(bench)
        real_programs(bench, inputs)
        births(bench)
        bench.print_table()
    print("\none stack of 23 frames without frame pointers, CPU ns; goal of the walker: <= 110", flush=True)
    subprocess.run(FIRST + [f"{build}/bench/unwinder_cost"], check=False)


main()
