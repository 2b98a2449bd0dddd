#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""totals.py REPORT FORMAT FILE: has an export the sums of the report?

REPORT is what `cuflight report --json` printed. The file is read with the real tool where there is one: go tool pprof,
heaptrack_print, PyTorch's _memory_viz (VIZ names its file), Perfetto's trace_processor (TRACE_PROCESSOR names its
folder). Prints the disagreements and exits 1.
"""
import collections
import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys

report, form, path = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
wrong = []


def same(what, said, found):
    if said != found:
        wrong.append(f"{what}: the report has {said}, the export {found}")


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="strict").stdout


live = collections.Counter()
calls = collections.Counter()
for site in report["leaks"]:
    live[site["kind"]] += site["bytes"]
    calls[site["kind"]] += site["count"]
framework = live.pop("framework", None)
calls.pop("framework", None)
several = report["capture"]["processes"] > 1


def kind_of(text):
    """ "device gpu 0: python 12" -> "device" """
    return text.split(" ")[0].rstrip(":")


def folded():
    found = collections.Counter()
    for line in open(path, encoding="utf-8", newline="\n"):
        stack, _, number = line.rstrip("\n").rpartition(" ")
        found[kind_of(stack.split(";")[several])] += int(number)
    same("live bytes by kind", live, found)


def tags(index):
    """what `go tool pprof -tags` says of the label kind"""
    text = tool("go", "tool", "pprof", "-symbolize=none", f"-sample_index={index}", "-unit=B", "-tags", path)
    chapter = re.search(r"^ kind: Total.*?(?=^ \S+: Total|\Z)", text, re.S | re.M)
    rows = re.findall(r"^\s+(\d+)B?\s.*: (\w+)$", chapter.group(0), re.M) if chapter else []
    return collections.Counter({kind: int(number) for number, kind in rows})


def pprof():
    same("inuse_space by kind", live, tags("inuse_space"))
    same("inuse_objects by kind", calls, tags("inuse_objects"))
    allocated = tags("alloc_space")
    for kind in live:
        if allocated[kind] < live[kind]:
            wrong.append(f"alloc_space of {kind} is {allocated[kind]}, less than what lives: {live[kind]}")
    top = tool("go", "tool", "pprof", "-symbolize=none", "-sample_index=inuse_space", "-unit=B", "-top",
               f"-diff_base={path}", path)
    same("difference with itself", "0", re.search(r"accounting for (\d+)", top).group(1))


def torch():
    place = importlib.util.spec_from_file_location("_memory_viz", os.environ["VIZ"])
    viz = importlib.util.module_from_spec(place)
    place.loader.exec_module(viz)
    snapshot = pickle.load(open(path, "rb"))
    text = viz.segsum(snapshot)  # asserts that blocks and gaps fill each segment
    same("segments", len(snapshot["segments"]), int(re.search(r"segments: (\d+)", text).group(1)))
    viz.trace(snapshot)
    viz.trace_plot(snapshot)
    viz.compare(snapshot["segments"], snapshot["segments"], format_flamegraph=lambda lines: lines)
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    active = 0
    for line in viz.memory(snapshot, format_flamegraph=lambda lines: lines).splitlines():
        if ";active_allocated;" in line:
            active += int(line.rpartition(" ")[2])
    shown = ["device", "managed", "async", "array", "imported"]
    same("bytes of segments", sum(live[kind] for kind in shown) + live["vmm"], reserved)
    if framework is None:
        same("bytes of blocks", reserved, active)
    else:
        plain = sum(s["total_size"] for s in snapshot["segments"]
                    if len(s["blocks"]) == 1 and s["blocks"][0]["frames"] == s["frames"])
        same("bytes of the framework's blocks", framework, active - plain)
    level = {"segment": 0, "block": 0}
    for event in (event for trace in snapshot["device_traces"] for event in trace):
        what, size = event["action"], event["size"]
        level["segment"] += size * (what in ("segment_alloc", "segment_map"))
        level["segment"] -= size * (what in ("segment_free", "segment_unmap"))
        level["block"] += size * (what == "alloc") - size * (what == "free_completed")
    if not report["capture"]["events_overwritten"]:
        same("bytes of segments after the trace", reserved, level["segment"])
        same("bytes of blocks after the trace", active, level["block"])


def heaptrack():
    lines = path + ".folded"
    tool("heaptrack_print", "--disable-builtin-suppressions", "-f", path, "-F", lines, "--flamegraph-cost-type", "leaked")
    found = sum(int(line.rpartition(" ")[2]) for line in open(lines, encoding="utf-8"))
    same("leaked bytes", sum(live.values()), found)


def perfetto():
    document = json.load(open(path, encoding="utf-8"))
    slices, live_at_end, last = {}, collections.Counter(), {}
    for event in document["traceEvents"]:
        if event["ph"] == "b":
            slices[event["id"]] = event
            if event["cat"] == "block" and event["args"]["live_at_end"]:
                live_at_end[event["args"]["kind"]] += event["args"]["bytes"]
        elif event["ph"] == "e":
            begin = slices.pop(event["id"])
            if event["ts"] < begin["ts"] or event["name"] != begin["name"]:
                wrong.append(f"slice {event['id']} ends before it begins")
        elif event["ph"] == "C" and event["name"].endswith(" live"):
            last[event["pid"], event["name"]] = event["args"]["bytes"]
    same("slices without an end", {}, slices)
    found = collections.Counter()
    for (_, name), level in last.items():
        found[kind_of(name)] += level
    found.pop("framework", None)
    same("levels at the end, by kind", +live, +found)
    for kind in ("device", "async", "array", "managed"):
        same(f"slices of {kind} blocks that live", live[kind], live_at_end[kind])
    same("failed requests", len(report["incidents"]), sum(e["ph"] == "i" for e in document["traceEvents"]))


QUERIES = {
    "what the parser complains of":
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    "levels": "select t.id, t.name, c.value from process_counter_track t join counter c on c.track_id = t.id"
              " order by c.ts, c.id",
    "slices": "select category, name, dur, extract_arg(arg_set_id, 'args.kind'), extract_arg(arg_set_id, 'args.bytes'),"
              " extract_arg(arg_set_id, 'args.live_at_end') from slice",
    "processes": "select name from process where upid in (select upid from process_counter_track) order by name",
}


def trace_processor():
    """the same trace as perfetto(), as Perfetto reads it"""
    program = os.path.join(os.path.dirname(__file__), "trace_processor.mjs")
    # a compiler that optimizes takes five times as long as the queries
    answers = tool("node", "--liftoff-only", program, os.environ["TRACE_PROCESSOR"], path, *QUERIES.values()).splitlines()
    found = {name: json.loads(line) for name, line in zip(QUERIES, answers, strict=True)}
    same("what the parser complains of", [], found["what the parser complains of"])
    last, levels = {(track, name): value for track, name, value in found["levels"]}, collections.Counter()
    for (_, name), value in last.items():
        if name.endswith(" live bytes"):
            levels[kind_of(name)] += int(value)
    levels.pop("framework", None)
    same("levels at the end, by kind", +live, +levels)
    blocks = [row for row in found["slices"] if row[0] == "block"]
    for kind in ("device", "async", "array", "managed"):
        same(f"slices of {kind} blocks that live", live[kind], sum(row[4] for row in blocks if row[3] == kind and row[5]))
    same("slices without an end", 0, sum(row[2] < 0 for row in found["slices"]))
    same("failed requests", len(report["incidents"]), sum(row[0] == "incident" for row in found["slices"]))
    events = json.load(open(path, encoding="utf-8"))["traceEvents"]
    same("names of slices", sorted(e["name"] for e in events if e["ph"] == "b"),
         sorted(row[1] for row in found["slices"] if row[0] != "incident"))
    same("names of processes", sorted({e["args"]["name"] for e in events if e["ph"] == "M"}),
         [name for name, in found["processes"]])


{"folded": folded, "pprof": pprof, "torch-snapshot": torch, "heaptrack": heaptrack,
 "perfetto": perfetto, "trace_processor": trace_processor}[form]()
for line in wrong:
    print(line)
sys.exit(bool(wrong))
