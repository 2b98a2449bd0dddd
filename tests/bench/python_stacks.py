# SPDX-License-Identifier: Apache-2.0
"""
python_stacks.py python_stacks.so [FRAMES=20]: what Python frames add to one stack, measured inside this interpreter: of one
function that calls itself, and of methods of five modules that call one another, as a program's are.
"""
import ctypes
import marshal
import platform
import sys

library = ctypes.PyDLL(sys.argv[1])
frames = int(sys.argv[2]) if len(sys.argv) > 2 else 20
MODULES = 5


def measure(what):
    library.measure(("%-8s %s" % (platform.python_version(), what)).encode())


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


down(frames - 1)
step(frames - 1, modules())
