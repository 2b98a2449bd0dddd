# SPDX-License-Identifier: Apache-2.0
"""
Keeps objects and ends without giving them back. keeps.py TRUTH COUNT [WORD...]: TRUTH gets {line: bytes} in JSON, by
sys.getsizeof. Words: free (others are made and freed before), tracemalloc (it runs for a while, then stops), fork (the
child keeps them), resize (each is resized many times), die (by SIGKILL).
"""
import json
import os
import signal
import sys


class Turn:
    __slots__ = ("score", "next")

    def __init__(self, i):
        self.score = i + 0.5 # SCORE
        self.next = None


def texts(n):
    return ["%060d" % i for i in range(n)] # TEXTS


def turns(n):
    return [Turn(i) for i in range(n)] # TURNS


def freed(n):
    return [(i, i + 0.5) for i in range(n)] # FREED


def resized(n):
    kept = []
    for i in range(n):
        block = bytearray(40)
        for size in 90, 200, 300:
            block += bytes(size - len(block)) # RESIZED
        kept.append(block)
    return kept


def line_of(word):
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.endswith("# %s\n" % word))


def all_bytes(objects):
    return sum(map(sys.getsizeof, objects))


def main():
    path, count, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    truth = {}
    if "tracemalloc" in words:
        import tracemalloc
        tracemalloc.start()
        freed(count)
        tracemalloc.stop()
    if "free" in words:
        freed(count)
        truth[line_of("FREED")] = 0
    if "fork" in words and os.fork():
        os.wait()
        os._exit(0)
    if "resize" in words:
        kept = resized(count // 4)
        # an empty array is as large as the object alone
        truth[line_of("RESIZED")] = all_bytes(kept) - len(kept) * sys.getsizeof(bytearray())
    else:
        kept = texts(count), turns(count)
        truth[line_of("TEXTS")] = all_bytes(kept[0]) + sys.getsizeof(kept[0])
        truth[line_of("TURNS")] = all_bytes(kept[1]) + sys.getsizeof(kept[1])
        truth[line_of("SCORE")] = count * sys.getsizeof(0.5)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(truth, file)
    if "die" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


main()
