# SPDX-License-Identifier: Apache-2.0
"""Device memory by ctypes, with the GIL let go, until there is none: the failure is the last call. argv: where the truth goes."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from marks import done, frames_of, notes

driver = ctypes.CDLL("libcuda.so.1")
address, device, context = ctypes.c_uint64(), ctypes.c_int(), ctypes.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and driver.cuCtxSetCurrent(context) == 0


def mark_device(label, mib):
    size = mib << 20
    frames = frames_of(sys._getframe(0))
    result = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)); frames[0][2] = sys._getframe(0).f_lineno
    notes[size] = [label, frames]
    return result


class Cache:
    def grow(self, mib):
        return mark_device("grown", mib)


def serve():
    cache = Cache()
    for mib in range(2, 2000000, 2):
        if cache.grow(mib * mib):
            return mark_device("failed", 999999)


assert serve()
done(sys.argv[1])
