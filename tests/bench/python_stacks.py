# SPDX-License-Identifier: Apache-2.0
"""
python_stacks.py python_stacks.so [FRAMES=20]: what Python frames add to one stack, measured inside this interpreter: of one
function that calls itself, and of methods of five modules that call one another, as a program's are. Before 3.12 in both modes:
host=full knows code by other means (interpose/README.md, "Names").
"""
import ctypes
import marshal
import os
import platform
import sys
import tempfile

library = ctypes.PyDLL(os.path.abspath(sys.argv[1]))
frames = int(sys.argv[2]) if len(sys.argv) > 2 else 20
MODULES = 5


def measure(what):
    for mode in ("sampled", "full") if sys.version_info < (3, 12) else ("sampled",):
        if not os.fork():
            library.measure(("%-8s %-7s %s" % (platform.python_version(), mode, what)).encode(), ("CUFLIGHT_OPTIONS=stack_depth=64:host=" + mode).encode())
            os._exit(0)
        os.wait()


def down(n):
    if n > 1:
        down(n - 1)
    else:
        measure("recursion")


def modules():
    """classes Layer<i>, each of a file of its own, with names as an import from a cache leaves them: their hashes are not known"""
    made = []
    for i in range(MODULES):
        text = "class Layer%d:\n" % i + "".join("    def forward_%d(self, n, others):\n        return step(n - 1, others)\n" % m for m in range(4))
        code = marshal.loads(marshal.dumps(compile(text, "/usr/lib/python3/dist-packages/framework/modules/layer_%d.py" % i, "exec")))
        space = {"step": step}
        exec(code, space)
        made.append(space["Layer%d" % i]())
    return made


def step(n, made):
    if n < 2:
        return measure("methods")
    return getattr(made[n % MODULES], "forward_%d" % (n // MODULES % 4))(n - 1, made)


with tempfile.TemporaryDirectory() as folder: # host=full makes a recording at once
    os.chdir(folder)
    down(frames - 2)
    step(frames - 2, modules())
    os.chdir("/")
