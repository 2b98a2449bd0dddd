#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
pictures.py BUILD [MIB]: what it takes to look at a recording. CPU seconds, the most resident memory and bytes written: of the report, the
page and every export of a recording of MIB (1024) with all rings and ledgers full; and next to the tools that people use today, on the same
program: heaptrack_print, and PyTorch's memory_viz.

pictures.py --tensors COUNT SNAPSHOT: the program for memory_viz. It needs PyTorch from scripts/setup frameworks and clients.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPORTS = ("folded", "pprof", "perfetto", "torch-snapshot", "heaptrack", "parquet", "csv", "sqlite", "ndjson")
TENSORS = 100000
ROW = "{:52} {:>8} {:>9} {:>10}"


def size(path):
    files = [path] if path.is_file() else path.rglob("*") if path.is_dir() else []
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())


def measure(command, environment=None):
    """CPU seconds and MiB of a command and all that it starts; its output is dropped."""
    # GNU time would count the same; a child of a child of its own makes the maximum that of this command alone
    inner = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
             "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss >> 10); sys.exit(code)")
    done = subprocess.run([sys.executable, "-c", inner, *map(str, command)], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        raise SystemExit(f"{command}: exit status {done.returncode}: {done.stderr[-500:]}")
    seconds, mebibytes = done.stdout.split()[-2:]
    return float(seconds), int(mebibytes)


def row(name, command, written=None, note="", environment=None):
    seconds, mebibytes = measure(command, environment)
    print(ROW.format(name, f"{seconds:.2f} s", f"{mebibytes} MiB", f"{size(written) / 1e6:.1f} MB" if written else ""), note, flush=True)


def large_recording(build, work, mebibytes):
    recording, out = work / "large.cuf", work / "out"
    subprocess.run([build / "bench/reader_throughput", str(mebibytes), recording], check=True, stdout=subprocess.DEVNULL)
    print(f"a recording of {size(recording) / 2**20:.0f} MiB")
    row("  report", [build / "cuflight", "report", recording], note="goal for 1 GiB: 4 s, 512 MiB")
    row("  report --html", [build / "cuflight", "report", "--html", "-q", "-f", "-o", out, recording], out, "goal: 8 MB")
    for name in EXPORTS:
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        row(f"  export --to={name}", [build / "cuflight", "export", "-q", "-f", f"--to={name}", "-o", out, recording], out, "goal: 512 MiB")
    recording.unlink()


def beside_heaptrack(build, work):
    if not shutil.which("sqlite3"):
        print("sqlite3: not installed")
        return
    program = ["sqlite3", ":memory:", f".read {HERE}/host_sqlite.sql"]
    print("sqlite3, 1.2 million calls of malloc and free, every one recorded")
    if not shutil.which("heaptrack"):
        print("  heaptrack: not installed")
    else:
        with open(work / "log", "w") as log: # its shell script writes to pipes whose readers may be gone
            subprocess.run(["heaptrack", "-o", work / "program", *program], check=True, stdout=log, stderr=log, restore_signals=False)
        other, = work.glob("program.*")
        row("  heaptrack_print", ["heaptrack_print", other], other, "(its recording)")
    recording = work / "program.cuf"
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env={
        **os.environ, "LD_PRELOAD": str(build / "libcuflight.so"), "CUFLIGHT_OPTIONS": "host=full:start=1:size=256MiB",
        "CUFLIGHT_OUTPUT": str(recording)})
    out = work / "out"
    row("  cuflight report --full", [build / "cuflight", "report", "--full", recording], recording, "(its recording)")
    row("  cuflight report --html", [build / "cuflight", "report", "--html", "-q", "-f", "-o", out, recording], out)
    row("  cuflight export --to=heaptrack", [build / "cuflight", "export", "-q", "-f", "--to=heaptrack", "-o", out, recording], out)
    if shutil.which("heaptrack"):
        row("  heaptrack_print of that export", ["heaptrack_print", out])
    recording.unlink()


def tensors(count, snapshot):
    """As many tensors as COUNT, of which 500 live at one time."""
    import torch
    torch.cuda.memory._record_memory_history(max_entries=4 * count, stacks="python")
    live = [None] * 500
    for i in range(count):
        live[i * 7919 % len(live)] = torch.empty((i * 37 % 64 + 1) * 65536, dtype=torch.uint8, device="cuda")
    torch.cuda.memory._dump_snapshot(snapshot)


def beside_memory_viz(build, work):
    print(f"{TENSORS} tensors of PyTorch on the simulated device")
    sys.path[:0] = [str(HERE.parent / "frameworks"), str(HERE.parent / "frameworks/clients")]
    viz = build / "memory_viz/_memory_viz.py"
    try:
        from run import WORK, transformers
        preload, environment = transformers()
    except Exception as error: # whatever is missing is named
        print(f"  PyTorch: {error}")
        return
    recording, snapshot, out = work / "tensors.cuf", work / "snapshot.pickle", work / "out"
    subprocess.run(["/usr/bin/python3", "-W", "ignore", __file__, "--tensors", str(TENSORS), snapshot], check=True, cwd=WORK, env={
        **os.environ, **environment, "LD_PRELOAD": " ".join(map(str, preload)), "CUFLIGHT_OPTIONS": "size=256MiB:host=off",
        "CUFLIGHT_OUTPUT": str(recording)})
    if viz.is_file():
        row("  memory_viz trace_plot", [sys.executable, viz, "trace_plot", snapshot, "-o", out], out)
        row("  memory_viz segment_plot", [sys.executable, viz, "segment_plot", snapshot, "-o", out], out)
        row("  memory_viz stats", [sys.executable, viz, "stats", snapshot])
    else:
        print("  memory_viz: not fetched")
    row("  cuflight report", [build / "cuflight", "report", recording])
    row("  cuflight report --html", [build / "cuflight", "report", "--html", "-q", "-f", "-o", out, recording], out)
    row("  cuflight export --to=torch-snapshot", [build / "cuflight", "export", "-q", "-f", "--to=torch-snapshot", "-o", out, recording], out)


def main(build, mebibytes=1024):
    print(ROW.format("what", "CPU", "resident", "written"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
        beside_heaptrack(build, pathlib.Path(work))
        beside_memory_viz(build, pathlib.Path(work))
        large_recording(build, pathlib.Path(work), mebibytes)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tensors"]:
        tensors(int(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) in (2, 3):
        main(pathlib.Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
    else:
        raise SystemExit(__doc__)
