# SPDX-License-Identifier: Apache-2.0
"""onnxruntime_real.py power|same: plays lines as model_player.c does, on ONNX Runtime's arena; a process for each trace, since
a process has one arena. The arena's log says what it took."""
import os
import re
import sys

import numpy
import onnxruntime
from onnxruntime.capi import _pybind_state as state

STRATEGY = {'power': state.ArenaExtendStrategy.kNextPowerOfTwo, 'same': state.ArenaExtendStrategy.kSameAsRequested}
onnxruntime.set_default_logger_severity(1) # the arena's growth is in the log
state.set_arena_extend_strategy(STRATEGY[sys.argv[1]])


def play(lines, log):
    """A line for each: what the arena has."""
    os.dup2(log, 2)
    blocks, taken, read = {}, 0, 0
    for line in lines:
        word = line.split()
        refused = ''
        if word[0] == 'a':
            try:
                blocks[int(word[1])] = onnxruntime.OrtValue.ortvalue_from_shape_and_type([int(word[2])], numpy.uint8, 'cuda', 0)
            except Exception: # its own type is not public
                refused = ' -'
        else:
            blocks.pop(int(word[1]), None)
        text = os.pread(log, 1 << 20, read)
        read += len(text)
        taken += sum(map(int, re.findall(rb'Extended allocation by (\d+) bytes', text)))
        print(f'{taken}{refused}')
    sys.stdout.flush()
    os._exit(0)


traces = [part.splitlines() for part in sys.stdin.read().split('r\n')]
for number, lines in enumerate(traces):
    if number:
        print(0, flush=True)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        play(lines, os.open('.', os.O_TMPFILE | os.O_RDWR))
    assert os.waitpid(pid, 0)[1] == 0
