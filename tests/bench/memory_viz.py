# SPDX-License-Identifier: Apache-2.0
"""memory_viz.py EVENTS: CPU milliseconds and resident MiB of PyTorch's own torch.cuda._memory_viz.trace for so many block events."""
import resource
import sys
import time

from torch.cuda import _memory_viz

events, blocks = int(sys.argv[1]), 2048
trace = [{'action': 'segment_alloc', 'addr': 1 << 30, 'size': 2**31, 'stream': 0, 'frames': []}]
for i in range(events // 2):
    at = (1 << 30) + i % blocks * 2**20
    if i >= blocks:
        for action in ('free_requested', 'free_completed'):
            trace.append({'action': action, 'addr': at, 'size': 65536, 'stream': 0, 'frames': []})
    trace.append({'action': 'alloc', 'addr': at, 'size': 65536, 'stream': 0, 'frames': []})
before = time.process_time()
_memory_viz.trace({'segments': [], 'device_traces': [trace]})
print(round((time.process_time() - before) * 1000), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
