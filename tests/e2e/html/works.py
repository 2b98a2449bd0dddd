# SPDX-License-Identifier: Apache-2.0
# A list of its own for each of two children: one is killed, the other goes on and frees all of it. Both are made by one line that
# many paths lead to. Prints the pids: the killed one first.
import os, signal, sys, time

MIB = 1 << 20


def block():
    return bytearray(MIB)


def upper(depth, keep):
    if depth:
        return upper(depth - 1, keep)
    keep.append(block())


def child(is_killed):
    keep = []
    for number in range(48):
        upper(number % 12, keep)
    if is_killed:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    os._exit(0)


pids = []
for is_killed in (True, False):
    pid = os.fork()
    if not pid:
        child(is_killed)
    pids.append(pid)
    if is_killed:
        os.waitpid(pid, 0)
print(*pids, flush=True)
os.waitpid(pids[1], 0)
time.sleep(0.1)
