#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_blocks.py TRUTH RECORDING: replays the events of a torch_allocator run, or of PyTorch itself, and compares with
the allocator's own books at every point: allocated, reserved, slack, largest hole inside the segments of either pool, and
the failure with its true request. Prints what disagrees; the last line counts what was compared. Exit 1: something did.

Holes need nothing but what the recording has: segments are device blocks, or runs of mappings, in which a block of the
framework ever lay; small ones are those of 2 MiB.
"""
import bisect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
import recording as r # noqa: E402

SMALL_SEGMENT = 2 << 20


class Ranges:
    """Disjoint ranges of addresses by their start."""

    def __init__(self):
        self.starts, self.bytes = [], {}

    def add(self, start, count):
        if start not in self.bytes:
            bisect.insort(self.starts, start)
        self.bytes[start] = count

    def remove(self, start):
        if self.bytes.pop(start, None) is not None:
            self.starts.pop(bisect.bisect_left(self.starts, start))

    def at(self, addr):
        """Start of the range that holds addr, or None."""
        i = bisect.bisect_right(self.starts, addr) - 1
        if i >= 0 and addr < self.starts[i] + self.bytes[self.starts[i]]:
            return self.starts[i]
        return None


class Memory:
    """Segments and blocks, as events make them."""

    def __init__(self, expandable):
        self.segments, self.blocks, self.pools = Ranges(), Ranges(), {}
        self.expandable = expandable

    def see(self, event):
        if event.kind in (r.DEVICE, r.MAPPING):
            if event.op in (r.ALLOC, r.RESTORE):
                self.segments.add(event.addr, event.bytes)
            elif event.op == r.FREE:
                self.segments.remove(event.addr)
                self.pools.pop(event.addr, None)
        elif event.kind == r.FRAMEWORK and event.op == r.ALLOC:
            self.blocks.add(event.addr, event.bytes)
            self.claim(event.addr, event.addr + event.bytes)
        elif event.kind == r.FRAMEWORK and event.op == r.FREE:
            self.blocks.remove(event.addr)

    def claim(self, start, end):
        """The segments under a block are the framework's."""
        at = self.segments.at(start)
        while at is not None and at < end:
            self.pools[at] = self.segments.bytes[at] == SMALL_SEGMENT
            at = self.segments.at(at + self.segments.bytes[at])

    def allocated(self):
        return sum(self.blocks.bytes.values())

    def reserved(self):
        return sum(self.segments.bytes[s] for s in self.pools)

    def holes(self):
        """Largest hole in small and in large segments. Mappings that touch are one."""
        largest = {True: 0, False: 0}
        runs = []
        for start in sorted(self.pools):
            small, end = self.pools[start], start + self.segments.bytes[start]
            if self.expandable and runs and runs[-1][1:] == [start, small]:
                runs[-1][1] = end
            else:
                runs.append([start, end, small])
        for start, end, small in runs:
            at = start
            first = bisect.bisect_left(self.blocks.starts, start)
            for block in self.blocks.starts[first:bisect.bisect_left(self.blocks.starts, end)]:
                largest[small] = max(largest[small], block - at)
                at = block + self.blocks.bytes[block]
            largest[small] = max(largest[small], end - at)
        return largest[True], largest[False]


def points(path):
    """(subject, {name: value}) of the lines that have books"""
    for line in open(path, encoding='utf-8'):
        words = line.split()
        if words and words[0] in ('point', 'oom', 'retried') and 'allocated' in words:
            first = 2 if words[0] == 'point' else 1
            yield ' '.join(words[:first]), dict(zip(words[first::2], map(int, words[first + 1::2])))


def refused(path):
    for line in open(path, encoding='utf-8'):
        words = line.split()
        if words and words[0] == 'refused':
            return dict(zip(words[1::2], map(int, words[2::2])))
    return None


def check(truth, recording, ended=True):
    wrong, compared = [], 0

    def same(what, have, want):
        nonlocal compared
        compared += 1
        if have != want:
            wrong.append(f'{what}: recorded {have}, true {want}')

    memory, events = Memory(recording.framework().get('backend') == 'expandable'), iter(recording.events())
    event = next(events, None)
    last = None
    for subject, books in points(truth):
        while event and event.time_ns <= books['monotonic_ns']:
            memory.see(event)
            event = next(events, None)
        small, large = memory.holes()
        same(f'{subject} allocated', memory.allocated(), books['allocated'])
        same(f'{subject} reserved', memory.reserved(), books['reserved'])
        same(f'{subject} slack', memory.reserved() - memory.allocated(), books['slack'])
        same(f'{subject} hole_small', small, books['hole_small'])
        same(f'{subject} hole_large', large, books['hole_large'])
        last = books
    if last is None:
        wrong.append('the truth has no point')
    want = refused(truth)
    given_up = [i for i in recording.incidents() if i.kind == r.FRAMEWORK]
    if want:
        same('failures', len(given_up), 1)
    if want and given_up:
        same('request', given_up[-1].requested_bytes, want['requested'])
        same('free memory', given_up[-1].free_bytes, want['free'])
        same('level at the failure', recording.framework_level(given_up[-1]), (last['allocated'], last['reserved']))
    if ended:
        same('ledger', sum(recording.ledger(r.SPACE_FRAMEWORK).values()), last['allocated'] if last else None)
    return wrong, compared


def main():
    wrong, compared = check(sys.argv[1], r.Recording(sys.argv[2]))
    print('\n'.join(wrong[:20]))
    print(f'{compared} compared, {len(wrong)} wrong')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
