# SPDX-License-Identifier: Apache-2.0
"""A CUDA runtime that is linked into a library, stood in for: its functions, whose names the library's own symbol table has
kept, jump to those of the same names that were preloaded. In the process itself, before it uses CUDA."""
import ctypes
import mmap
import os

READ_WRITE_RUN = 7
JUMP = b'\xff\x25\0\0\0\0' # jmp *0(%rip), and the address


def redirect(library):
    """library: as it is mapped. $STATIC_RUNTIME: a file of "name offset" lines. Returns how many were redirected."""
    preloaded = ctypes.CDLL(None)
    with open('/proc/self/maps') as maps:
        base = min(int(line.split('-')[0], 16) for line in maps if line.rstrip().endswith(library))
    count = 0
    with open(os.environ['STATIC_RUNTIME']) as names:
        for name, offset in map(str.split, names):
            target = ctypes.cast(getattr(preloaded, name), ctypes.c_void_p).value
            at = base + int(offset)
            page = at & -mmap.PAGESIZE
            if preloaded.mprotect(ctypes.c_void_p(page), at + 16 - page, READ_WRITE_RUN):
                raise OSError(f'{name} may not be changed')
            ctypes.memmove(at, JUMP + target.to_bytes(8, 'little'), len(JUMP) + 8)
            count += 1
    return count
