# SPDX-License-Identifier: Apache-2.0
"""what_if_trace.py FRACTION TRACES POINTS FIRST_SEED: real PyTorch allocates and frees at random, on several streams and in private
pools of graphs, until it is refused and beyond, and prints each request with its outcome and, at every point, what its allocator
has (torch.cuda.memory_snapshot). tests/fault/what_if_model.c plays the same on the model.

T seed free_bytes total_bytes limit_bytes   a trace begins, with an empty allocator
A block bytes group private served          F block   E (empty_cache)
P check segments blocks allocated reserved peak     check: crc32 of the canonical list of segments
"""
import ctypes
import random
import sys
import zlib

import torch

STREAMS, PLACES, PRIVATE = 3, 72, 100
SMALL, LARGE = 512, 2**24 # bytes, of the two sorts of segments
DEVICE = 0
C = torch._C


class Trace:
    def __init__(self, seed, streams):
        self.choose = random.Random(seed)
        self.streams = streams
        self.groups = {stream: n for n, stream in enumerate(streams)}
        self.most = self.choose.uniform(23, 28.5)
        self.live, self.pools, self.begun, self.count = {}, {}, [], 0
        self.capture = None
        self.out = []

    def begin_capture(self):
        known = [pool for pool in self.pools if self.choose.random() < 0.5]
        self.capture = known[0] if known else torch.cuda.graph_pool_handle()
        self.pools.setdefault(self.capture, PRIVATE + len(self.pools))
        self.begun.append(self.capture)
        C._cuda_beginAllocateCurrentThreadToPool(DEVICE, self.capture)

    def end_capture(self):
        C._cuda_endAllocateToPool(DEVICE, self.capture)
        self.capture = None

    def ask(self, place):
        size = int(2**self.choose.uniform(4, 20) if self.choose.random() < 0.3 else 2**self.choose.uniform(14, self.most))
        stream = 0 if self.capture or self.choose.random() < 0.6 else self.choose.randrange(STREAMS)
        group = self.pools[self.capture] if self.capture else stream
        block, served = self.count, 1
        self.count += 1
        try:
            self.live[place] = (block, C._cuda_cudaCachingAllocator_raw_alloc(size, self.streams[stream]))
        except torch.OutOfMemoryError:
            served = 0
        self.out.append(f'A {block} {size} {group} {int(self.capture is not None)} {served}')

    def step(self):
        place = self.choose.randrange(PLACES)
        if place in self.live:
            self.give(place)
        else:
            self.ask(place)

    def give(self, place):
        block, address = self.live.pop(place)
        C._cuda_cudaCachingAllocator_raw_delete(address)
        self.out.append(f'F {block}')

    def segments(self):
        """One text a segment, in an order that addresses have no part in."""
        for segment in torch.cuda.memory_snapshot():
            pool = tuple(segment['segment_pool_id'])
            group = self.pools.get(pool, self.groups.get(segment['stream']))
            blocks = ','.join(f"{block['size']}{'a' if block['state'] == 'active_allocated' else 'i'}" for block in segment['blocks'])
            yield f"{group} {segment['segment_type']} {segment['total_size']}:{blocks}"

    def point(self):
        stats, segments = C._cuda_memoryStats(DEVICE), sorted(self.segments()) # torch.cuda.memory_stats() sorts all of them
        text = '\n'.join(segments)
        self.out.append(f'P {zlib.crc32(text.encode())} {len(segments)} {text.count(",") + len(segments)} '
                        f'{stats["allocated_bytes"]["all"]["current"]} {stats["reserved_bytes"]["all"]["current"]} {stats["reserved_bytes"]["all"]["peak"]}')
        if '--texts' in sys.argv:
            self.out.append('# ' + text.replace('\n', '\n# '))

    def run(self, points):
        captures = self.choose.random() < 0.4
        for _ in range(points):
            for _ in range(self.choose.randrange(1, 9)):
                self.step()
            if captures and self.choose.random() < 0.1:
                if self.capture:
                    self.end_capture()
                else:
                    self.begin_capture()
            if not self.capture and self.choose.random() < 0.03:
                torch.cuda.empty_cache()
                self.out.append('E')
            self.point()
        if self.capture:
            self.end_capture()
        for place in list(self.live):
            self.give(place)
        for pool in self.begun:
            C._cuda_releasePool(DEVICE, pool)


def new_stream():
    """Of the simulated runtime: PyTorch's own streams come from a function that has a stand-in."""
    stream = ctypes.c_void_p()
    assert ctypes.CDLL(None).cudaStreamCreate(ctypes.byref(stream)) == 0
    return stream.value


def empty(streams):
    """Nothing of the trace before is left. A range of addresses that was reserved for a refused request stays, is in no figure, and is
    released only after something was in it: otherwise the next trace would use it."""
    torch.cuda.empty_cache()
    for stream in streams:
        for size in SMALL, LARGE:
            C._cuda_cudaCachingAllocator_raw_delete(C._cuda_cudaCachingAllocator_raw_alloc(size, stream))
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_reserved() == 0


def main(fraction, traces, points, first):
    total = torch.cuda.mem_get_info()[1]
    limit = 2**64 - 1
    if fraction:
        torch.cuda.set_per_process_memory_fraction(fraction)
        limit = int(fraction * total)
    streams = [0, *(new_stream() for _ in range(STREAMS - 1))]
    for seed in range(first, first + traces):
        empty(streams)
        trace = Trace(seed, streams)
        print('T', seed, torch.cuda.mem_get_info()[0], total, limit)
        trace.run(points)
        print('\n'.join(trace.out))


main(float(sys.argv[1]), *map(int, sys.argv[2:5]))
