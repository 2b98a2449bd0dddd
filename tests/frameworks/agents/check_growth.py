#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_growth.py TRUTH REPORT: does the report say of an agent's memory what the script said of itself?

TRUTH's last line of ours is "clean", or "cause NAME FILE LINE[,LINE...]": that is the report's cause, and one of the call sites that hold
most is reached through one of these lines of FILE; or "grows FILE LINE[,LINE...] SHAPE BYTES KEEPER": some site of the report then is a leak, or is
still growing (the scripts mark no requests, so most are not proven), of that shape through one of these lines of FILE, of BYTES
a turn within a tenth (KEEPER "-"), or through the function KEEPER beside growth through one of these lines; and the cause of the run is growth of host memory. Prints what was found; exits 1 when it
disagrees.
"""
import json
import sys


GROWS = ("leak", "growing")


def lines_of(site, file):
    return [f["line"] for f in site["stack"] if f["language"] == "python" and (f["file"] or "").endswith("/" + file)]


def check_clean(report):
    wrong = [f"called a leak: {s['bytes']} bytes at {s['stack'][:3]}" for s in report["growth"] if s["class"] in GROWS]
    if report["cause"]:
        wrong.append(f"a cause where there is none: {report['cause']['id']} {report['cause']['summary']}")
    return wrong


def check_grows(report, file, lines, shape, per_turn, keeper):
    cause = report["cause"] or {"id": "none"}
    wrong = [] if cause["id"].startswith("S9.H2") else [f"the cause is {cause['id']}, not S9.H2"]
    leaks = [s for s in report["growth"] if s["class"] in GROWS]
    own = [s for s in report["growth"] if set(lines_of(s, file)) & lines and s["bytes"] >= per_turn]
    if not own:
        return wrong + [f"nothing grows through {file}:{sorted(lines)}"] + [f"leak elsewhere: {s['bytes']} bytes {s['stack'][:4]}" for s in leaks]
    if keeper != "-":
        sites = [s for s in leaks if keeper in [f["function"] for f in s["stack"]]]
    else:
        sites = [s for s in own if s["class"] in GROWS]
        found = sum(s["per_request_bytes"] or 0 for s in sites)
        print(f"{found} bytes a turn of {per_turn}")
        if abs(found - per_turn) > per_turn / 10:
            wrong.append(f"{found} bytes a turn, not {per_turn}")
    if not sites:
        return wrong + [f"no leak in {keeper}" if keeper != "-" else f"what grows through {file} is no leak: {own[0]['class']}"]
    most = max(sites, key=lambda s: s["bytes"])
    print(f"{cause['id']}, {most['shape']}, {file}:{(set(lines_of(own[0], file)) & lines).pop()}")
    if most["shape"] != shape:
        wrong.append(f"the shape is {most['shape']}, not {shape}")
    return wrong


def check_cause(report, name, file, lines):
    cause = report["cause"] or {"id": "none", "name_id": "none"}
    largest = sorted(report["growth"], key=lambda site: -site["bytes"])[:3]
    print(f"{cause['id']} {cause['name_id']}")
    wrong = [] if cause["name_id"] == name else [f"the cause is {cause['name_id']}, not {name}"]
    if not any(set(lines_of(site, file)) & lines for site in largest):
        wrong.append(f"none of the largest call sites is reached through {file}:{sorted(lines)}")
    return wrong


def main():
    said = [line.split() for line in open(sys.argv[1], encoding="utf-8") if line.strip()]
    truth = [words for words in said if words[0] in ("clean", "cause", "grows")][-1]  # CrewAI prints, too
    report = json.load(open(sys.argv[2], encoding="utf-8"))
    if truth[0] == "clean":
        wrong = check_clean(report)
    elif truth[0] == "cause":
        wrong = check_cause(report, truth[1], truth[2], set(map(int, truth[3].split(","))))
    else:
        wrong = check_grows(report, truth[1], set(map(int, truth[2].split(","))), truth[3], int(truth[4]), truth[5])
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
