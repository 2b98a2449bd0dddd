# SPDX-License-Identifier: Apache-2.0
"""python_stacks.py python_stacks.so [FRAMES=20]: what Python frames add to one stack, measured inside this interpreter"""
import ctypes
import platform
import sys

library = ctypes.PyDLL(sys.argv[1])


def down(n):
    if n > 1:
        down(n - 1)
    else:
        library.measure(platform.python_version().encode())


down(int(sys.argv[2]) - 1 if len(sys.argv) > 2 else 19)  # and <module>
