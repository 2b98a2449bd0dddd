#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exits.py BUILD [RUNS [LIBRARY...]]: what an exit takes, native and recorded, in one run.

From the program's last word to its end, as its parent sees it: medians of interleaved runs, in
milliseconds of time and of CPU. A library more is another build of the recorder, to compare with.
The last rows end within 2 MiB of a control group's limit (version 1; as root)."""
import os, shutil, statistics, subprocess, sys, tempfile, time

build = os.path.abspath(sys.argv[1])
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 11
libraries = [""] + (sys.argv[3:] or [f"{build}/libcuflight.so"])
program = f"{build}/bench/exit_cost"
group = "/sys/fs/cgroup/memory/cuflight-exits"
limit_bytes = 600 << 20


def path_of(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    return next((line.split()[-1] for line in listed.splitlines() if line.split()[:1] == [name]), None)


def run_once(library, allocator, arguments, in_group):
    """(milliseconds, CPU milliseconds) of the exit; None: it was killed."""
    folder = tempfile.mkdtemp()
    environment = {**os.environ, "LD_PRELOAD": " ".join(filter(None, (library, allocator))),
                   "CUFLIGHT_OUTPUT": folder + "/", "CUFLIGHT_OPTIONS": "start=1"}
    command = [program, *arguments]
    if in_group:
        command = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "-", *command]
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    line = child.stdout.readline()
    _, status, usage = os.wait4(child.pid, 0)
    ended_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    child.returncode = status
    child.stdout.close()
    shutil.rmtree(folder)
    if status:
        return None
    began_ns, cpu_ns = map(int, line.split())
    return (ended_ns - began_ns) / 1e6, (usage.ru_utime + usage.ru_stime) * 1e3 - cpu_ns / 1e6


def row(label, allocator, arguments, in_group=False):
    times = [[] for _ in libraries]
    for _ in range(runs):
        for i, library in enumerate(libraries):
            times[i].append(run_once(library, allocator, arguments, in_group))
    cells = []
    for own in times:
        kept = [time for time in own if time]
        cells.append(f"{statistics.median(t[0] for t in kept):8.2f} {statistics.median(t[1] for t in kept):7.2f}"
                     if kept else "       -       -")
        cells[-1] += f" {len(own) - len(kept):6d}"
    print(f"{label:40}" + "".join(cells), flush=True)


print(f"{'':40}" + "".join(f"{'native' if not library else os.path.basename(library):>23}" for library in libraries))
print(f"{'allocator, blocks, threads':40}" + "      ms  CPU ms killed" * len(libraries))
for allocator in ("glibc", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"):
    path = "" if allocator == "glibc" else path_of(allocator)
    if path is None:
        continue
    for blocks in (0, 100000, 1000000):
        for threads in (1, 64):
            row(f"{allocator}, {blocks}, {threads}", path, [str(blocks), str(threads)])
if os.access("/sys/fs/cgroup/memory/memory.limit_in_bytes", os.W_OK):
    os.makedirs(group, exist_ok=True)
    with open(f"{group}/memory.limit_in_bytes", "w") as file:
        file.write(str(limit_bytes))
    for blocks in (0, 1000000):
        row(f"glibc, {blocks}, 1, 2 MiB before a limit", "", [str(blocks), "1", f"{group}/memory.limit_in_bytes",
                                                         f"{group}/memory.usage_in_bytes", "2048"], True)
    os.rmdir(group)
