# SPDX-License-Identifier: Apache-2.0
"""cupy_real.py: plays lines as model_player.c does, on CuPy's own MemoryPool."""
import os
import sys

sys.path.insert(0, os.environ['CLIENTS_FOLDER'])
import cupy_backends.cuda.api.runtime as runtime # noqa: E402
import redirect # noqa: E402

redirect.redirect(os.path.basename(runtime.__file__))
import cupy # noqa: E402

pool, blocks = cupy.cuda.MemoryPool(), {}
print('capacity', cupy.cuda.runtime.memGetInfo()[0])
for line in sys.stdin:
    word = line.split()
    refused = ''
    if word[0] == 'r':
        blocks.clear()
        pool.free_all_blocks()
        pool = cupy.cuda.MemoryPool()
    elif word[0] == 'a':
        try:
            blocks[int(word[1])] = pool.malloc(int(word[2]))
        except cupy.cuda.memory.OutOfMemoryError:
            refused = ' -'
    else:
        blocks.pop(int(word[1]), None)
    print(f'{pool.total_bytes()}{refused}')
sys.stdout.flush()
os._exit(0)
