# SPDX-License-Identifier: Apache-2.0
"""books.py SEED POINTS: real PyTorch allocates and frees at random, without a kernel, and says what its own allocator has
at every point (torch.cuda.memory_stats, memory._snapshot), then asks for more than there is. The lines are those of
tests/victims/framework/torch_allocator.c."""
import os
import random
import sys
import time

import torch

MiB = 2**20


def hole(segments, kind):
    blocks = [b for s in segments if s['segment_type'] == kind for b in s['blocks']]
    return max((b['size'] for b in blocks if b['state'] == 'inactive'), default=0)


def say_books(subject):
    stats, segments = torch.cuda.memory_stats(), torch.cuda.memory._snapshot()['segments']
    allocated, reserved = stats['allocated_bytes.all.current'], stats['reserved_bytes.all.current']
    print(subject, 'time_ns', time.time_ns(), 'allocated', allocated, 'reserved', reserved, 'slack', reserved - allocated,
          'hole_small', hole(segments, 'small'), 'hole_large', hole(segments, 'large'), 'monotonic_ns', time.monotonic_ns(), flush=True)


def ask(count):
    return torch.empty(count, dtype=torch.uint8, device='cuda')


def main(seed, points):
    choose = random.Random(seed)
    live = {}
    for point in range(1, points + 1):
        for _ in range(choose.randrange(1, 40)):
            place = choose.randrange(256)
            if live.pop(place, None) is None:
                live[place] = ask(int(2**choose.uniform(9, 27)))
        if choose.randrange(20) == 0:
            torch.cuda.empty_cache()
        say_books(f'point {point}')
    count = torch.cuda.mem_get_info()[1]
    try:
        ask(count)
    except torch.OutOfMemoryError:
        say_books('oom')
        print('refused requested', count, 'free', torch.cuda.mem_get_info()[0])
    sys.stdout.flush()
    os._exit(1) # with all that it holds: the interpreter would free it first


main(int(sys.argv[1]), int(sys.argv[2]))
