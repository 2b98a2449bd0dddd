# SPDX-License-Identifier: Apache-2.0
"""Every way that one piece of Python comes to run another. argv: where the truth goes."""
import asyncio
import contextlib
import ctypes
import functools
import operator
import os
import re
import signal
import sys
import threading
import weakref

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from marks import done, mark, mark_without_gil


def nested():
    def inner():
        def innermost():
            mark("nested")
        innermost()
    inner()


class Base:
    def __init__(self, label):
        mark(label + " __init__")

    def __new__(cls, label):
        mark(label + " __new__")
        return super().__new__(cls)

    @property
    def attribute(self):
        mark("property")

    def __getattr__(self, name):
        mark("__getattr__")

    def __call__(self):
        mark("__call__")

    def __add__(self, other):
        mark("__add__")
        return self

    def __eq__(self, other):
        mark("__eq__")
        return True

    def __hash__(self):
        return 1

    @classmethod
    def of_class(cls):
        mark("classmethod")

    @staticmethod
    def of_nobody():
        mark("staticmethod")


class Derived(Base):
    mark("class body")

    def __init__(self, label):
        super().__init__(label)
        mark(label + " derived __init__")


class Meta(type):
    def __new__(mcs, name, bases, space):
        mark("metaclass")
        return super().__new__(mcs, name, bases, space)


def objects():
    o = Derived("object")
    o.attribute
    o.missing
    o()
    o + o
    {o: 1}[Derived("key")]
    o.of_class()
    o.of_nobody()

    class Made(metaclass=Meta):
        pass


class Dies:
    def __del__(self):
        mark("__del__")


def deaths():
    Dies()
    d = Dies()
    ref = weakref.ref(threading.Thread(), lambda r: mark("weakref callback of a temporary"))
    del d
    x = Base.__subclasses__
    return ref, x


def generators():
    def plain():
        mark("generator")
        got = yield 1
        mark("generator, sent to")
        try:
            yield got
        except ValueError:
            mark("generator, thrown into")
        yield 3
        mark("generator, last")

    def outer():
        yield from plain()

    g = outer()
    next(g)
    g.send(2)
    g.throw(ValueError())
    list(g)
    sum(mark("generator expression") or 1 for _ in range(2))
    [mark("list comprehension") for _ in range(1)]
    {mark("dict comprehension"): 1 for _ in range(1)}

    def closes():
        try:
            yield
        finally:
            mark("generator, closed")
    g = closes()
    next(g)
    g.close()


def callbacks():
    sorted([3, 1, 2], key=lambda v: (mark("sorted key"), v)[1])
    sorted([3, 1], key=functools.cmp_to_key(lambda a, b: (mark("cmp_to_key"), a - b)[1]))
    list(map(lambda v: mark("map"), [1]))
    list(filter(lambda v: mark("filter"), [1]))
    functools.partial(mark, "partial")()
    functools.partial(lambda x: mark(x), "partial of a lambda")()
    functools.reduce(lambda a, b: (mark("reduce"), b)[1], [1, 2])
    re.sub("a", lambda m: (mark("re.sub"), "b")[1], "a")
    max([1, 2], key=lambda v: (mark("max key"), v)[1])
    operator.methodcaller("__call__")(Derived("methodcaller"))
    iter(lambda: mark("iter of a function"), None).__next__() if False else list(iter(lambda: mark("iter, sentinel"), None))
    double = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    double(lambda v: (mark("ctypes callback"), 1)[1])(2)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))

    def by_value(a, b):
        mark("qsort callback")
        return a[0] - b[0]
    libc = ctypes.CDLL(None)
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare(by_value))
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    mark_without_gil("GIL let go", libc.malloc)
    with_gil = ctypes.PyDLL(None).malloc
    with_gil.restype = ctypes.c_void_p
    with_gil.argtypes = [ctypes.c_size_t]
    mark_without_gil("malloc with the GIL", with_gil)


@contextlib.contextmanager
def managed():
    mark("context manager, enter")
    try:
        yield
    finally:
        mark("context manager, exit")


def exceptions():
    def raises(depth):
        if not depth:
            raise KeyError("x")
        try:
            raises(depth - 1)
        finally:
            mark("finally, unwinding")
    try:
        raises(3)
    except KeyError:
        mark("except")
        try:
            1 / 0
        except ZeroDivisionError:
            mark("except inside except")
    else:
        mark("never")
    mark("after except")
    with managed():
        mark("with")
    with contextlib.suppress(OSError):
        with managed():
            raise OSError


def many_lines():
    mark(
        "arguments on "
        "many lines"
    )
    (
        mark
    )("function on another line")
    x = [1,
         mark("inside a display"),
         3]
    if (x and
            mark("inside a condition")):
        pass
    return lambda: mark(
        "lambda on two lines")


def texts():
    exec("mark('exec')", {"mark": mark})
    eval("mark('eval')", {"mark": mark})
    exec(compile("\n\ndef f():\n    mark('compiled')\n\nf()\n", "<made up>", "exec"), {"mark": mark})
    exec(compile("def f():\n mark('names beyond ASCII')\nf()", "/tmp/\u00e9\u4e2d\U0001F600.py", "exec"), {"mark": mark})
    exec(compile("def gr\u00f6\u00dfe():\n mark('a name beyond ASCII')\ngr\u00f6\u00dfe()", "latin.py", "exec"), {"mark": mark})
    # freed and made again at the same address, for all that the allocator can do
    for i in range(50):
        space = {"mark": mark}
        exec(compile("\n" * i + "def function_%d():\n    mark('made again')\nfunction_%d()\n" % (i, i), "<made %d>" % i, "exec"), space)
    for i in range(50):
        exec(compile("def same():\n    mark('same name')\nsame()\n", "<file %03d>" % i, "exec"), {"mark": mark})


def recursion(depth):
    if depth:
        recursion(depth - 1)
    else:
        mark("recursion")


def mutual_a(n):
    return mutual_b(n) if n else mark("mutual recursion")


def mutual_b(n):
    return mutual_a(n - 1)


async def coroutines():
    mark("coroutine")

    async def inner():
        mark("awaited coroutine")
        await asyncio.sleep(0)
        mark("coroutine, resumed")

    async def numbers():
        mark("async generator")
        yield 1
        mark("async generator, resumed")

    class Manager:
        async def __aenter__(self):
            mark("__aenter__")

        async def __aexit__(self, *_):
            mark("__aexit__")

    await inner()
    await asyncio.gather(inner(), inner())
    async for _ in numbers():
        mark("async for")
    async with Manager():
        mark("async with")
    [mark("async comprehension") async for _ in numbers()]
    asyncio.get_running_loop().call_soon(lambda: mark("call_soon"))
    await asyncio.sleep(0)
    await asyncio.get_running_loop().run_in_executor(None, mark, "executor")


def signals():
    signal.signal(signal.SIGUSR1, lambda number, frame: mark("signal handler"))
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(100):
        pass


def hooks():
    seen = []

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "profiled" and not seen:
            seen.append(1)
            mark("profile function")

    def profiled():
        pass
    sys.setprofile(profile)
    profiled()
    sys.setprofile(None)

    def trace(frame, event, argument):
        if frame.f_code.co_name == "traced":
            mark("trace function, " + event)
            return trace

    def traced():
        x = 1
        return x
    sys.settrace(trace)
    traced()
    sys.settrace(None)


def threads():
    def work(n):
        def down(k):
            if k:
                down(k - 1)
            else:
                mark("thread %d" % n)
        down(n)
    all_threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in all_threads:
        t.start()
        t.join()
    local = threading.local()
    local.x = 1
    timer = threading.Timer(0, mark, ["timer"])
    timer.start()
    timer.join()


def main():
    nested()
    objects()
    deaths()
    generators()
    callbacks()
    exceptions()
    many_lines()()
    texts()
    recursion(40)
    mutual_a(20)
    asyncio.run(coroutines())
    signals()
    hooks()
    threads()
    (lambda: mark("lambda"))()


if __name__ == "__main__":
    mark("module")
    main()
    done(sys.argv[1])
