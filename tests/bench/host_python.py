# SPDX-License-Identifier: Apache-2.0
"""A program for tests/bench/host.py: dictionaries, strings, JSON there and back, sorting, regular expressions, 16 frames deep."""
import json
import random
import re

random.seed(7)


def row(depth):
    if depth:
        return row(depth - 1)
    return {"id": random.randrange(1 << 30), "name": "n%08x" % random.getrandbits(32), "tags": [str(random.random()) for _ in range(4)]}


def main():
    rows = [row(16) for _ in range(8000)]
    for _ in range(4):
        text = json.dumps(rows)
        back = json.loads(text)
        back.sort(key=lambda r: r["name"])
        index = {}
        for r in back:
            index.setdefault(r["name"][:3], []).append(r)
        words = "".join(sorted(set(re.findall(r"n[0-9a-f]{8}", text))))
        blocks = [bytearray(random.randrange(600, 20000)) for _ in range(1500)]
        assert index and words and blocks


main()
