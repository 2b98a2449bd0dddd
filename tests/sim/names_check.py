#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names_check.py INCLUDE_DIR [CC]: compares names.def with NVIDIA's headers, and prints what differs.

cuda.h, asked for its internal view, declares every exact export; cudaTypedefs.h names every (function, version). Sorted,
they pair up: the oldest version gets the bare name, the next _v2, and so on. --print writes the rows instead, to bring the
table up to a newer toolkit.
"""
import collections
import pathlib
import re
import subprocess
import sys


def preprocessed(include, header, compiler):
    run = [compiler, "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-I", str(include), str(include / header)]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def split(exact):
    base, number, suffix = re.fullmatch(r"(cu\w+?)(?:_v(\d+))?(_ptsz|_ptds)?", exact).groups()
    return base, int(number or 1), suffix or ""


def rows_of(include, compiler):
    versions, exports = collections.defaultdict(list), collections.defaultdict(list)
    typedefs = preprocessed(include, "cudaTypedefs.h", compiler)
    for base, version, suffix in set(re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", typedefs)):
        versions[base, suffix].append(int(version))
    for exact in set(re.findall(r"\bCUresult\s+(cu[A-Z]\w+)\s*\(", preprocessed(include, "cuda.h", compiler))):
        base, number, suffix = split(exact)
        exports[base, suffix].append((number, exact))
    for key, found in exports.items():
        if len(found) != len(versions[key]):
            print(f"{key}: {found} do not pair up with versions {versions[key]}")
        for (_, exact), version in zip(sorted(found), sorted(versions[key])):
            yield exact, key[0], version


def main():
    arguments = [a for a in sys.argv[1:] if a != "--print"]
    include, compiler = pathlib.Path(arguments[0]), arguments[1] if len(arguments) > 1 else "cc"
    wanted = set(rows_of(include, compiler))
    if "--print" in sys.argv:
        print("\n".join(f"NAME({e}, {b}, {v})" for e, b, v in sorted(wanted)))
        return 0
    table = pathlib.Path(__file__).with_name("names.def").read_text(encoding="utf-8")
    have = {(e, b, int(v)) for e, b, v in re.findall(r"NAME\((\w+), (\w+), (\d+)\)", table) if e != "exact"}
    missing = sorted(wanted - have)
    for row in missing:
        print("missing:", *row)
    print(f"{len(wanted)} names in the headers, {len(have)} in the table, {len(missing)} missing")
    return 1 if missing or not wanted else 0


sys.exit(main())
