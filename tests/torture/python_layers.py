# SPDX-License-Identifier: Apache-2.0
"""python_layers.py slabs | SEED STEPS: a random Python program that puts allocators over the interpreter's own, with
layers.c and tracemalloc, and takes them away again in every order that natively works. Prints what it
computed. slabs: one allocator that serves small objects itself, for longer than 64 samples of 512 KiB."""
import os
import random
import sys
import tracemalloc

import layers

SLABS, COUNTERS = range(2), range(2, 6)
DOMAINS = [1, 2] # mem and obj: raw may be called without the interpreter's lock
dice = random.Random(sys.argv[1])
lying = [] # what lies on the interpreter's allocators, the last one above
kept = []


def put():
    free = [n for n in [*SLABS, *COUNTERS] if n not in lying]
    if free:
        n = dice.choice(free)
        for domain in DOMAINS:
            layers.put(n, domain)
        lying.append(n)


def take_away(what, restore):
    """What lies above goes with it, so none of that may hold blocks."""
    place = lying.index(what)
    if not set(SLABS) & set(lying[place:]):
        restore()
        if 'tracemalloc' in lying[place + 1:]:
            tracemalloc.stop() # which puts back what it found: what is being taken away
            restore()
        del lying[place:]


def restore():
    there = [n for n in COUNTERS if n in lying]
    if there:
        n = dice.choice(there)
        take_away(n, lambda: [layers.restore(n, domain) for domain in DOMAINS])


def trace():
    if 'tracemalloc' in lying:
        take_away('tracemalloc', tracemalloc.stop)
    else:
        tracemalloc.start(dice.randrange(1, 5))
        lying.append('tracemalloc')


def keep_small():
    """Nothing else is allocated meanwhile, so what serves small blocks hides the recorder."""
    row = [None] * dice.randrange(1, 90000)
    kept.append(row)
    for i in range(len(row)):
        row[i] = float(i)


def keep_large():
    kept.append([bytes(dice.randrange(500, 3000)) for _ in range(dice.randrange(1, 3000))])


def keep_grown():
    kept.append([bytearray(b'x' * n) * 2 for n in range(1, dice.randrange(2, 900))])
    for block in kept[-1]:
        block += bytes(dice.randrange(600))


def keep_tables():
    kept.append([{i: str(i), 'n': [i] * (i % 90)} for i in range(dice.randrange(1, 5000))])


def free():
    for _ in range(dice.randrange(4)):
        if kept:
            kept.pop(dice.randrange(len(kept)))


def fork():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        keep_small()
        keep_large()
        print('child', sum(map(len, kept)), flush=True)
        os._exit(len(kept) % 100)
    print('status', os.waitpid(child, 0)[1])


def hide():
    kept.append([(i, str(i)) for i in range(100000)]) # beyond 8 MiB of arenas
    row = [None] * 1500000
    layers.put(0, 2)
    for i in range(len(row)):
        row[i] = float(i)
    kept.append(row)
    keep_large()


ACTIONS = [put, restore, trace, trace] + [keep_small, keep_large, keep_grown, keep_tables, free] * 3 + [fork]
for _ in range(int(sys.argv[2]) if sys.argv[2:] else 0):
    action = dice.choice(ACTIONS)
    action()
    print(action.__name__, lying, len(kept), sum(map(len, kept)))
if sys.argv[1] == 'slabs':
    hide()
    print(len(kept), sum(map(len, kept)))
sys.stdout.flush()
if dice.random() < 0.5:
    os._exit(3)
