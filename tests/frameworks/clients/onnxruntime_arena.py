# SPDX-License-Identifier: Apache-2.0
"""onnxruntime_arena.py power|same: ONNX Runtime's CUDA provider allocates through its arena, whose log says what it took;
then it is asked for more than there is."""
import os
import sys

import numpy
import onnxruntime
from onnxruntime.capi import _pybind_state as state

MiB = 2**20
onnxruntime.set_default_logger_severity(1) # the arena's growth is in the log
state.set_arena_extend_strategy({'power': state.ArenaExtendStrategy.kNextPowerOfTwo, 'same': state.ArenaExtendStrategy.kSameAsRequested}[sys.argv[1]])


def ask(mebibytes):
    return onnxruntime.OrtValue.ortvalue_from_shape_and_type([mebibytes * MiB], numpy.uint8, 'cuda', 0)


def make_values():
    return [ask(mebibytes) for mebibytes in (1, 3, 7, 20, 100)]


held = make_values()
try:
    ask(20 << 10)
except Exception as error: # its own type is not public
    print('refused', 20 << 30)
    print('says', str(error).splitlines()[0])
sys.stdout.flush()
os._exit(1) # with all that it holds
