# SPDX-License-Identifier: Apache-2.0
"""cupy_pool.py pool|async: CuPy allocates and frees through its default pool, or through the driver's, says what that has,
then asks for more than there is."""
import os
import sys

import cupy_backends.cuda.api.runtime as runtime
import redirect

redirect.redirect(os.path.basename(runtime.__file__))
import cupy # noqa: E402

MiB = 2**20
pool = cupy.get_default_memory_pool()
if sys.argv[1] == 'async':
    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)


def ask(mebibytes):
    return cupy.empty(mebibytes * MiB, dtype=cupy.uint8)


def make_cache():
    return [ask(mebibytes) for mebibytes in (1, 3, 7, 20, 100)]


held = make_cache()
del held[2]
try:
    ask(20 << 10)
except cupy.cuda.memory.OutOfMemoryError as error:
    print('refused', 20 << 30)
    print('says', error)
used = sum(array.nbytes for array in held)
if sys.argv[1] == 'pool': # a pool that is refused gives back what it has free, and asks again
    used = pool.used_bytes()
    print('books regions', pool.total_bytes())
print('books used', used)
sys.stdout.flush()
os._exit(1) # with all that it holds
