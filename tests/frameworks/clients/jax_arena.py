# SPDX-License-Identifier: Apache-2.0
"""jax_arena.py: JAX puts arrays on the device, says what its allocator has, then puts one for which there is no room.
XLA_PYTHON_CLIENT_PREALLOCATE says whether it takes most of the device at once."""
import os
import sys

import jax._src.hardware_utils as hardware

hardware._NVIDIA_GPU_DEVICES = ['/'] # it looks for device files
import jax # noqa: E402
import numpy # noqa: E402

MiB = 2**20
device = jax.devices()[0]


def ask(mebibytes):
    array = jax.device_put(numpy.zeros(mebibytes * MiB, numpy.uint8), device)
    return array.block_until_ready()


def make_arrays():
    return [ask(mebibytes) for mebibytes in (1, 3, 7, 20, 100)]


held = make_arrays()
del held[2]
try:
    while True:
        held.append(ask(2 << 10))
except jax.errors.JaxRuntimeError as error:
    print('refused', 2 << 30)
    print('says', str(error).splitlines()[0])
books = device.memory_stats()
print('books regions', books['pool_bytes'], 'used', books['bytes_in_use'], 'limit', books['bytes_limit'])
sys.stdout.flush()
os._exit(1) # with all that it holds
