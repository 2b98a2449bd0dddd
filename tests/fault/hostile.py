#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds recordings that no recorder writes: hostile.py ROOT NAME FILE [NUMBER...].

Each asks the reader for much more work, memory or output than its own size is worth, or has texts that a terminal acts on.
ROOT is the root of the repository: offsets are taken from interpose/abi/format.h by the compiler. Prints the size of the file.
"""
import os
import struct
import subprocess
import sys
import tempfile

SECTION_IDS = dict(META=1, DEVICES=2, STACK_INDEX=4, STACK_FRAMES=5, LEDGER=6, RING=8, INCIDENTS=10, FRAMEWORK_RING=12)
SECTIONS_AT = 0x88
SECTION = struct.Struct('<IIQQ')
EVENT = struct.Struct('<QQQQQIIIIHHBBBB')
SEGMENT = struct.Struct('<QQIIIIQ3Q')
META = struct.Struct('<HHIQQII')
STACK = struct.Struct('<QIHBB')
BLOCK = struct.Struct('<QQQQQIIIHHHHBBBB')
PAGE, MASK, SECOND, GIB = 4096, 2**64 - 1, 10**9, 1 << 30
DEVICE, VMM, MAPPING, RESERVATION, FRAMEWORK = 1, 7, 12, 13, 11
ALLOC, FAIL, EXIT = 1, 4, 10
HEADER_FIELDS = ('options_host_mode stack_depth device_segment_bytes host_segment_bytes framework_segment_bytes meta_used frames_used '
                 'incident_count next_seq replaced end_status end_ns end_seq')


def compile_offsets(root):
    """{name: offset in struct cuf_header}, and sizes of structs."""
    sizes = 'cuf_header cuf_incident cuf_device cuf_meta_module'
    lines = [f'printf("{n} %zu\\n", offsetof(struct cuf_header, {n}));' for n in (HEADER_FIELDS + ' end_kind state').split()]
    lines += [f'printf("{n} %zu\\n", sizeof(struct {n}));' for n in sizes.split()]
    with tempfile.TemporaryDirectory() as folder:
        source, program = folder + '/offsets.c', folder + '/offsets'
        with open(source, 'w') as file:
            file.write('#include <stdio.h>\n#include "interpose/abi/format.h"\nint main(void){' + ''.join(lines) + '}')
        subprocess.check_call([os.environ.get('CC', 'cc'), '-std=gnu11', '-I', root, '-o', program, source])
        return {name: int(at) for name, at in (line.split() for line in subprocess.check_output([program], text=True).splitlines())}


class Builder:
    """A recording from nothing: sections of raw records, META records one by one."""

    def __init__(self, at, segment_bytes=1 << 20):
        self.at, self.body, self.meta, self.sections = at, bytearray(), bytearray(), []
        self.header = bytearray(PAGE)
        self.header[0:8] = b'CUFLIGHT'
        struct.pack_into('<III', self.header, 8, 1, 0x01020304, at['cuf_header'])
        struct.pack_into('<II', self.header, 32, 62, PAGE)
        struct.pack_into('<QQQIIQ', self.header, 40, 5 * SECOND, 5 * SECOND, 1700000000 * SECOND, 4242, 1, MASK)
        self.put('options_host_mode', 2)
        self.put('stack_depth', 64)
        self.put('device_segment_bytes', segment_bytes)
        self.put('host_segment_bytes', 1 << 20)
        self.put('framework_segment_bytes', PAGE)
        self.put('state', 1, '<I')
        self.text(1, 0, '/bin/demo')
        device = bytearray(at['cuf_device'])
        device[0] = device[8] = 1
        device[24:33] = b'Simulated'
        struct.pack_into('<QQQQQQ', device, 104, 16 * GIB, GIB, 5 * SECOND, GIB, 0, MASK)
        self.section('DEVICES', len(device), device)

    def put(self, field, value, form='<Q'):
        struct.pack_into(form, self.header, self.at[field], value)

    def section(self, name, record_bytes, raw):
        raw = bytes(raw) + bytes(-len(raw) % PAGE)
        self.sections.append((SECTION_IDS[name], record_bytes, PAGE + len(self.body), len(raw)))
        self.body += raw

    def record(self, kind, number, head, tail, text_bytes):
        size = META.size + len(head) + len(tail)
        padding = -size % 8
        self.meta += META.pack(kind, 0, size + padding, 5 * SECOND, number, text_bytes, 0) + head + tail + bytes(padding)

    def text(self, kind, number, text):
        raw = text if isinstance(text, bytes) else text.encode()
        self.record(kind, number, b'', raw, len(raw))

    def module(self, number, base, start, end, path, build_id=b''):
        head = struct.pack('<QQQI20sII', base, start, end, len(build_id), build_id, len(path), 0)
        self.record(7, number, head[:self.at['cuf_meta_module'] - META.size], path.encode(), 0)

    def stacks(self, frames, entries):
        """entries: (first, depth), from stack 1 on"""
        self.section('STACK_FRAMES', 8, struct.pack(f'<{len(frames)}Q', *frames))
        self.put('frames_used', len(frames))
        self.section('STACK_INDEX', 16, b''.join(STACK.pack(i + 1, first, depth, 0, 0) for i, (first, depth) in enumerate(entries)))

    def incidents(self, rows):
        self.put('incident_count', len(rows))
        self.section('INCIDENTS', self.at['cuf_incident'], b''.join(rows))

    def incident(self, number, requested=GIB, time_ns=None):
        raw = bytearray(self.at['cuf_incident'])
        struct.pack_into('<QQQQIIHHBBBBIIQQQQ', raw, 0, number, number, time_ns or 5 * SECOND + number * 10 * SECOND, requested, 0, 1000, 0, 0,
                         DEVICE, 0, 0, 1, 2, 0, number, 1 << 20, 16 * GIB, MASK)
        return bytes(raw)

    def finish(self, path):
        self.put('meta_used', len(self.meta))
        self.section('META', 1, self.meta)
        for i, section in enumerate(self.sections):
            SECTION.pack_into(self.header, SECTIONS_AT + SECTION.size * i, *section)
        struct.pack_into('<IQ', self.header, 20, len(self.sections), PAGE + len(self.body))
        with open(path, 'wb') as file:
            file.write(self.header)
            file.write(self.body)


def block(key, count, seq, stack=0, kind=DEVICE, device=0, aux=0):
    return BLOCK.pack(key, count, aux, seq, 5 * SECOND, stack, 1000, 0, 1, 0, 0, 0, kind, device, 0, 0)


def event(seq, op, kind, addr=0, count=0, aux=0):
    return EVENT.pack(seq, 5 * SECOND + seq * 1000, addr, count, aux, 0, 0, 1000, 0, 0, 0, op, kind, 0, 0)


def ring(events, segment_bytes):
    each, out = (segment_bytes - SEGMENT.size) // EVENT.size, bytearray()
    for i in range(0, len(events), each):
        part = events[i:i + each]
        segment = SEGMENT.pack(i // each + 1, 5 * SECOND, len(part), 0, 1000, 0, 0, 0, 0, 0) + b''.join(part)
        out += segment + bytes(segment_bytes - len(segment))
    return out


def many_blocks(count, stack=0):
    return b''.join(block(0x200000000000 + (i << 22), 4096, i + 2, stack and i + 1) for i in range(count))


def longname(b, name_bytes=1000000, depth=400):
    """One function's name of 1 MB in every frame of a stack."""
    b.text(9, 0x401000, 'a' * name_bytes)
    b.stacks([0x401000] * depth, [(0, depth)])
    b.section('LEDGER', 64, many_blocks(1, 1))


def manyframes(b, stacks=2000, frames=65535):
    """Stacks that share their frames, each with frames of its own at its end, so that none prints like another."""
    b.text(9, 0x401000, 'a' * 1500)
    b.stacks([0x401000] * frames + [0x500000 + 16 * i for i in range(stacks)], [(frames - 1020 + i, 1023) for i in range(stacks)])
    b.section('LEDGER', 64, many_blocks(stacks, 1))


def repeated(b, stacks=2000, depth=1000):
    """A document of gigabytes: every stack has the longest names of a document, and no stack prints like another."""
    b.text(9, 0x401000, 'a' * 16384)
    b.stacks([0x401000] * depth + [0x500000 + 16 * i for i in range(stacks)], [(depth - 900 + i % 100, 1000) for i in range(stacks)])
    b.section('LEDGER', 64, many_blocks(stacks, 1))


def pages(b, count=15000):
    """Blocks of 1 TiB: a walk over the pages of each takes minutes."""
    b.section('RING', 64, ring([event(i + 1, ALLOC, DEVICE, 0x100000000000, 1 << 40) for i in range(count)], 1 << 20))
    b.section('FRAMEWORK_RING', 64, ring([event(count + 1, ALLOC, FRAMEWORK, 0x100000000000, 512, 512)], PAGE))
    b.section('LEDGER', 64, many_blocks(1))


def allocators(b, count=6000, failures=300):
    """Statistics of many allocators, looked at for each failure."""
    for i in range(count):
        b.text(14, 3, f'name=jemalloc\nobject={i:x}\nlive_bytes=1\npage_bytes=1\n')
    b.incidents([b.incident(i + 1) for i in range(failures)])


def collide(b, count=15000, failures=40):
    """Live blocks whose keys have the same hash, if the hash is the one without a secret."""
    factor, keys = 0x9E3779B97F4A7C15, []
    inverse = pow(factor, -1, 2**64)
    for i in range(1, count + 1):
        product = (i << 32 | i) * inverse & MASK
        key = product
        for _ in range(3):
            key = product ^ key >> 31
        keys.append(key)
    b.put('replaced', 1)
    b.section('LEDGER', 64, b''.join(block(key, 4096, i + 2) for i, key in enumerate(keys)))
    b.incidents([b.incident(i + 1) for i in range(failures)])


def unhooked(b, count=26000):
    """Texts that are all different."""
    for i in range(count):
        b.text(10, 1, f'{i:07x}')


def notes(b, count=26000):
    """Notes that are all different: a sentence each."""
    for i in range(count):
        b.text(12, 2, f'{i:07x}')


def modules(b, count=11000):
    """Modules whose files do not exist."""
    for i in range(count):
        b.module(i + 1, 0x1000 * i, 0x1000 * i, 0x1000 * i + 0x1000, f'/x/{i:05x}')


def reservations(b, count=7500):
    """Ranges of addresses that all overlap, and as many mappings in them."""
    rows = [block(4 << 58 | 0x100000000000 + i, (1 << 50) - i, i + 2, kind=RESERVATION, device=255) for i in range(count)]
    rows += [block(3 << 58 | 0x200000000000 + (i << 21), 1 << 21, i + 2 + count, kind=MAPPING, aux=i) for i in range(count)]
    b.section('LEDGER', 64, b''.join(rows))


def ladders(b, failures=400, count=9000):
    """Failures of many threads, and events after all of them."""
    b.incidents([b.incident(i + 1, time_ns=5 * SECOND + i) for i in range(failures)])
    b.section('RING', 64, ring([event(i + 1, 2, DEVICE, 0x1000, 1) for i in range(count)], 1 << 20))


def divide(b):
    """A server with four slots, and a failed request of 0 bytes."""
    b.text(2, 0, 'server --parallel 4')
    b.put('end_kind', 1, '<I')
    for field, value in (('end_status', 1), ('end_ns', 6 * SECOND), ('end_seq', 3)):
        b.put(field, value)
    b.incidents([b.incident(1, requested=0, time_ns=5 * SECOND + 1000)] + [bytes(b.at['cuf_incident'])] * 3)
    b.section('RING', 64, ring([event(1, FAIL, DEVICE, 1), event(3, EXIT, 0)], 1 << 20))
    b.section('LEDGER', 64, many_blocks(1))


def spellings(b, path='', count=200):
    """One library under many spellings of its path."""
    folder, name = os.path.split(path)
    notes_of = subprocess.check_output(['readelf', '-n', path], text=True, stderr=subprocess.DEVNULL)
    build_id = bytes.fromhex(notes_of.split('Build ID: ')[1].split()[0]) if 'Build ID: ' in notes_of else b''
    for i in range(count):
        base = 0x10000000 * (i + 1)
        b.module(i + 1, base, base, base + 0x10000000, folder + '/' + './' * (i + 1) + name, build_id)
    b.stacks([0x10000000 * (i + 1) + 0x2000 for i in range(count)], [(i, 1) for i in range(count)])
    b.section('LEDGER', 64, many_blocks(count, 1))


def escape(b):
    """Texts that a terminal acts on."""
    text = '\x1b]0;OWNED\x07\x1b[2J\u009b31m\u202e\u200b'
    b.text(2, 0, 'cmd ' + text)
    b.text(3, 0, 'host' + text)
    b.text(10, 1, 'un' + text)
    for number in range(1, 12):
        b.text(12, number, 'note' + text)
    b.text(9, 0x401000, 'main' + text)
    b.module(1, 0, 0x400000, 0x500000, '/lib/x' + text.encode().decode('latin-1'), b'\1' * 20)
    b.stacks([0x401000, 0x999999], [(0, 2)])
    b.section('LEDGER', 64, many_blocks(1, 1))


if __name__ == '__main__':
    build = globals()[sys.argv[2]]
    recording = Builder(compile_offsets(sys.argv[1]))
    build(recording, *[int(a) if a.isdigit() else a for a in sys.argv[4:]])
    recording.finish(sys.argv[3])
    print(os.path.getsize(sys.argv[3]))
