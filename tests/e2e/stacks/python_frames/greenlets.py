# SPDX-License-Identifier: Apache-2.0
"""Stacks that are put aside and taken up again: greenlets in two threads, gevent's. argv: where the truth goes."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from marks import done, mark
import greenlet


def down(depth, label, other):
    if depth:
        return down(depth - 1, label, other)
    for i in range(3):
        mark("%s, turn %d" % (label, i))
        other().switch()
        mark("%s, taken up %d" % (label, i))


def pair(label):
    """Two that switch to each other from different depths, and through a callback of C."""
    both = []
    both.append(greenlet.greenlet(lambda: down(7, label + " a", lambda: both[1])))
    both.append(greenlet.greenlet(lambda: sorted([1], key=lambda _: down(2, label + " b", lambda: both[0]))))
    both[0].switch()
    mark(label + ", back in the first")


def generator_in_greenlet():
    def numbers():
        for i in range(3):
            mark("generator that switches, %d" % i)
            greenlet.getcurrent().parent.switch()
            yield i
    one = greenlet.greenlet(lambda: list(numbers()))
    while not one.dead:
        one.switch()
        mark("between")


def thrown_into():
    def waits():
        try:
            greenlet.getcurrent().parent.switch()
        except ValueError:
            mark("thrown into")
    one = greenlet.greenlet(waits)
    one.switch()
    one.throw(ValueError)


def with_gevent():
    try:
        import gevent
    except ImportError:
        return

    def work(n):
        for i in range(3):
            mark("gevent %d.%d" % (n, i))
            gevent.sleep(0)
    gevent.joinall([gevent.spawn(work, n) for n in range(4)])


pair("main thread")
generator_in_greenlet()
thrown_into()
for number in range(3):
    thread = threading.Thread(target=pair, args=("thread %d" % number,))
    thread.start()
    thread.join()
with_gevent()
mark("after all")
done(sys.argv[1])
