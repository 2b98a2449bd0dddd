# SPDX-License-Identifier: Apache-2.0
"""
The truth of the tests of Python frames: mark() allocates a block of a size that nobody else has, and notes the frames
that a traceback shows at that point. done() writes the notes as JSON (size -> frames, innermost first) and ends the
process at once, so that the blocks are live at the end.
"""
import ctypes
import json
import os
import sys

NEXT = 1 << 20
notes = {}
kept = []
here = __file__

allocate, one_more = bytearray, 1
if "free-threading" in sys.version: # its own memory is not malloc's
    allocate, one_more = ctypes.PyDLL(None).malloc, 0
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)  # qualified from 3.11 on


def frames_of(frame):
    frames = []
    while frame:
        frames.append([name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def next_size():
    global NEXT
    NEXT += 4096
    return NEXT


def mark(label):
    size = next_size()
    frames = frames_of(sys._getframe(0))
    block = allocate(size - one_more); frames[0][2] = sys._getframe(0).f_lineno
    kept.append(block)
    notes[size] = [label, frames]


def mark_without_gil(label, malloc):
    """malloc: of ctypes.CDLL, which lets the GIL go."""
    size = next_size()
    frames = frames_of(sys._getframe(0))
    kept.append(malloc(size)); frames[0][2] = sys._getframe(0).f_lineno
    notes[size] = [label, frames]


def done(path):
    with open(path, "w") as out:
        json.dump(notes, out)
    os._exit(0)
