# SPDX-License-Identifier: Apache-2.0
"""A recording as interpose/abi/format.h lays it out, read without the command: for tests of what the recorder wrote.

Reads finished recordings alone and trusts them. Event fields are those of struct cuf_event.
"""
import collections
import struct

META, STACK_INDEX, STACK_FRAMES, INCIDENTS, LEDGER, RING, FRAMEWORK_RING = 1, 4, 5, 10, 6, 8, 12
ALLOC, FREE, RESTORE, FAIL, EXIT, ROLE = 1, 2, 3, 4, 10, 15
DEVICE, VMM, HOST, FRAMEWORK, MAPPING, RESERVATION = 1, 7, 10, 11, 12, 13
META_HOOK, META_FUNCTION, META_NOTE, META_FRAMEWORK, NOTE_FRAMEWORK = 6, 9, 12, 19, 11
ROLE_LIBRARY, ROLE_COMMUNICATION = 6, 7
SAMPLED, SPACE_FRAMEWORK = 0x40, 9
UNKNOWN = 2**64 - 1

Event = collections.namedtuple('Event', 'seq time_ns addr bytes aux stack alloc_stack tid extra hook label op kind device flags')
Incident = collections.namedtuple('Incident', 'number seq time_ns requested_bytes stack tid hook label kind device outcome is_request result '
                                  'attempt first free_bytes total_bytes')
EVENT = struct.Struct('<QQQQQIIIIHHBBBB')
SEGMENT = struct.Struct('<QQIIII')
STACK = struct.Struct('<QIHBB')
INCIDENT = struct.Struct('<QQQQIIHHBBBBIIQQQ')
SECTION = struct.Struct('<IIQQ')
META_HEAD = struct.Struct('<HHIQQII')
SECTIONS_AT = 0x88
FRAMEWORK_COUNTS_AT = 0x560 # events, blind
FRAMEWORK_LEVEL_AT = 1088 # of an incident: allocated, reserved


class Recording:
    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as file:
            self.data = file.read()
        count, = struct.unpack_from('<I', self.data, 20)
        self.framework_events, self.framework_blind = struct.unpack_from('<QQ', self.data, FRAMEWORK_COUNTS_AT)
        self.start_ns, self.start_realtime_ns = struct.unpack_from('<QQ', self.data, 0x30)
        self.sections = {}
        for i in range(count):
            number, record_bytes, offset, size = SECTION.unpack_from(self.data, SECTIONS_AT + i * SECTION.size)
            self.sections[number] = (record_bytes, offset, size)

    def ring(self, section, segment_bytes=16 << 10):
        _, offset, size = self.sections[section]
        for at in range(offset, offset + size - segment_bytes + 1, segment_bytes):
            ticket, _, used, _, _, _ = SEGMENT.unpack_from(self.data, at)
            if ticket:
                for n in range(used):
                    yield Event._make(EVENT.unpack_from(self.data, at + 64 + n * EVENT.size))

    def events(self):
        """Driver and framework events in their one order."""
        return sorted([*self.ring(RING), *self.ring(FRAMEWORK_RING)])

    def meta(self):
        """(type, number, text)"""
        _, at, size = self.sections[META]
        end = at + size
        while at < end:
            kind, _, size, _, number, text_bytes, _ = META_HEAD.unpack_from(self.data, at)
            if not size:
                return
            if kind and kind != 7: # a module has a struct of its own
                yield kind, number, self.data[at + META_HEAD.size:at + META_HEAD.size + text_bytes].decode(errors='replace')
            at += size

    def framework(self):
        """META FRAMEWORK as a dict, later lines over earlier ones."""
        found = {}
        for kind, _, text in self.meta():
            if kind == META_FRAMEWORK:
                found.update(line.split('=', 1) for line in text.splitlines() if '=' in line)
        return found

    def notes(self, number):
        return [text for kind, note, text in self.meta() if kind == META_NOTE and note == number]

    def hooks(self):
        return {number: text for kind, number, text in self.meta() if kind == META_HOOK}

    def incidents(self):
        record_bytes, offset, size = self.sections[INCIDENTS]
        found = [Incident._make(INCIDENT.unpack_from(self.data, at)) for at in range(offset, offset + size - record_bytes + 1, record_bytes)]
        return sorted(i for i in found if i.number)

    def framework_level(self, incident):
        """(allocated, reserved) as that incident has them"""
        record_bytes, offset, size = self.sections[INCIDENTS]
        for at in range(offset, offset + size - record_bytes + 1, record_bytes):
            if struct.unpack_from('<Q', self.data, at)[0] == incident.number:
                return struct.unpack_from('<QQ', self.data, at + FRAMEWORK_LEVEL_AT)
        return None

    def functions(self, stack):
        """Names of a stack's functions, innermost first, as far as the recorder noted them."""
        named = {number: text for kind, number, text in self.meta() if kind == META_FUNCTION}
        return [named.get(frame, '') for frame in self.frames(stack)]

    def frames(self, stack):
        if not stack:
            return []
        _, first, depth, _, _ = STACK.unpack_from(self.data, self.sections[STACK_INDEX][1] + (stack - 1) * STACK.size)
        return struct.unpack_from(f'<{depth}Q', self.data, self.sections[STACK_FRAMES][1] + 8 * first)

    def roles(self):
        """{role: bytes} of live blocks that have one"""
        record_bytes, offset, size = self.sections[LEDGER]
        found = {}
        for at in range(offset, offset + size - record_bytes + 1, record_bytes):
            key, count = struct.unpack_from('<QQ', self.data, at)
            role = self.data[at + record_bytes - 1]
            if key > 1 and role:
                found[role] = found.get(role, 0) + count
        return found

    def ledger(self, space):
        """{address: bytes} of what is live"""
        record_bytes, offset, size = self.sections[LEDGER]
        found = {}
        for at in range(offset, offset + size - record_bytes + 1, record_bytes):
            key, count = struct.unpack_from('<QQ', self.data, at)
            if key > 1 and key >> 58 == space:
                found[key & (1 << 58) - 1] = count
        return found
