#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py CUFLIGHT BUILD SEEDS RECORDING...: changes recordings at random places and exports each one.

Every export either refuses the recording with status 2 and leaves no file, or what it writes is read to its end by a
real parser: those of Python for JSON, CSV and pickles, sqlite3, pyarrow, protobuf's (go tool pprof), heaptrack_print,
Perfetto's trace_processor, an HTML parser. What is not installed is not used. Works in the current directory, prints
what went wrong, and exits 1. SEEDS is a number, or FROM-TO.
"""
import csv
import html.parser
import importlib.util
import json
import os
import pickle
import random
import re
import shutil
import sqlite3
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", ".."))
from recording import SECTION, SECTIONS_AT  # noqa: E402

cuflight, build, seeds, *recordings = sys.argv[1:]
sys.path.insert(0, os.path.join(build, "table_readers"))
ODD = [0, 1, 2**64 - 1, 2**63, 2**63 - 1, 2**53 + 1, 2**32, 2**31, 0xFFFE, 10**18]
HOSTILE = [b"\xff\xfe\xc3\x28", b"\xed\xa0\x80", b"\x1b[31m", b"</script><!--", b"'; DROP TABLE x;--", b'"\\,\r\n', b";a b",
           b"\xe2\x80\xae", b"=cmd|x", b"\xf4\x90\x80\x80", b"]]>", b"\x7f\x01"]


def sections_of(data):
    count = int.from_bytes(data[20:24], "little")
    for n in range(min(count, 32)):
        _, record, at, size = SECTION.unpack_from(data, SECTIONS_AT + n * SECTION.size)
        if record and size and at < len(data):
            yield at, min(size, len(data) - at)


def filled_places(data, at, size):
    """where something is written: most of a recording is zeros"""
    return [place for place in range(at, at + size - 8, 8) if any(data[place:place + 8])]


def change_number(data, at, size, chance):
    places = filled_places(data, at, size)
    if places:
        width = chance.choice([1, 2, 4, 8])
        place = chance.choice(places) + chance.randrange(0, 8, width)
        value = chance.choice(ODD + [chance.getrandbits(64)]) % 2**(8 * width)
        data[place:place + width] = value.to_bytes(width, "little")


def change_text(data, chance):
    """over the letters of some name, without a change of its length"""
    names = [m.span() for m in re.finditer(rb"[ -~]{6,}", bytes(data))]
    if names:
        begin, end = chance.choice(names)
        word = chance.choice(HOSTILE)[:end - begin]
        data[begin:begin + len(word)] = word


def mutate(data, chance):
    data = bytearray(data)
    for _ in range(chance.choice([1, 2, 8, 40])):
        if chance.random() < 0.4:
            change_text(data, chance)
        else:
            change_number(data, *chance.choice(list(sections_of(data))), chance)
    if chance.random() < 0.1:
        del data[chance.randrange(4096, len(data)):]
    return bytes(data)


def tool(*command):
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, f"{command[0]}: {done.stderr[-400:].decode(errors='replace')}"
    return done.stdout


def text(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def strict_json(document):
    def refuse(word):
        raise ValueError(word)
    return json.loads(document, parse_constant=refuse)


def read_folded(path):
    for line in text(path).split("\n")[:-1]:
        assert re.fullmatch(r"[^\x00-\x1f]+ [0-9]+", line), line


def read_perfetto(path):
    strict_json(text(path))
    if os.path.isdir(f"{build}/trace_processor") and shutil.which("node"):
        complaints, = tool("node", "--liftoff-only", f"{here}/trace_processor.mjs", f"{build}/trace_processor", path,
                           "select name, value from stats where severity = 'error' and value > 0").splitlines()
        assert complaints == b"[]", complaints


def read_pprof(path):
    if shutil.which("go"):
        tool("go", "tool", "pprof", "-symbolize=none", "-raw", path)


def read_heaptrack(path):
    if shutil.which("heaptrack_print"):
        tool("heaptrack_print", "--disable-builtin-suppressions", "-f", path)


def read_pickle(path):
    with open(path, "rb") as file:
        assert pickle.load(file)["segments"] is not None
        assert not file.read()


def read_csv(path):
    for name in os.listdir(path):
        rows = list(csv.reader(text(f"{path}/{name}").splitlines(keepends=True), strict=True))
        assert {len(row) for row in rows} == {len(rows[0])}, name


def read_ndjson(path):
    for name in os.listdir(path):
        for line in text(f"{path}/{name}").split("\n")[:-1]:
            assert isinstance(strict_json(line), dict)


def read_sqlite(path):
    base = sqlite3.connect(path)
    assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for kind, name in base.execute("SELECT type, name FROM sqlite_master").fetchall():
        if kind in ("table", "view"):
            base.execute(f"SELECT * FROM {name}").fetchall()


def read_parquet(path):
    if importlib.util.find_spec("pyarrow"):
        import pyarrow.parquet
        for folder, _, names in os.walk(path):
            for name in names:
                pyarrow.parquet.ParquetFile(f"{folder}/{name}").read().validate(full=True)


def read_page(path):
    spec = importlib.util.spec_from_file_location("page_data", f"{here}/../html/page_data.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    wrong = list(page.check_elements(text(path)))
    assert not wrong, wrong
    page.load(text(path))


def read_pack(path):
    strict_json(tool(cuflight, "report", "--json", path))


EXPORTS = {
    "folded": read_folded, "perfetto": read_perfetto,
    "pprof": read_pprof, "heaptrack": read_heaptrack, "torch-snapshot": read_pickle, "csv": read_csv,
    "ndjson": read_ndjson, "sqlite": read_sqlite, "parquet": read_parquet,
}


def commands(path):
    for form, read in EXPORTS.items():
        yield form, read, [cuflight, "export", f"--to={form}", "-q", "-o", "out/x", path]
    yield "html", read_page, [cuflight, "report", "--html", "-q", "-o", "out/x", path]
    yield "pack", read_pack, [cuflight, "pack", "-q", "-o", "out/x", path]


def check(form, read, command):
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    if form in ("csv", "ndjson"):
        os.mkdir("out/x")
    done = subprocess.run(command, capture_output=True, timeout=120)
    if done.returncode == 0:
        read("out/x")
        return True
    assert done.returncode == 2, f"status {done.returncode}: {done.stderr[-300:].decode(errors='replace')}"
    assert done.stderr.startswith(b"cuflight: "), done.stderr
    left = [name for _, _, names in os.walk("out") for name in names]
    assert not left or form == "parquet", left
    return False


def main():
    first, _, last = seeds.rpartition("-")
    wrong = written = refused = 0
    for seed in range(int(first or 1), int(last) + 1):
        chance = random.Random(seed)
        source = chance.choice(recordings)
        with open(source, "rb") as file:
            data = mutate(file.read(), chance)
        with open("mutant.cuf", "wb") as file:
            file.write(data)
        for form, read, command in commands("mutant.cuf"):
            try:
                good = check(form, read, command)
                written, refused = written + good, refused + (not good)
            except Exception as reason:  # of any parser
                wrong += 1
                print(f"seed {seed}, {source}, {form}: {type(reason).__name__}: {reason}")
                shutil.copy("mutant.cuf", f"seed-{seed}.cuf")
    print(f"{written} written and read, {refused} refused, {wrong} wrong", file=sys.stderr)
    sys.exit(bool(wrong or not written))


main()
