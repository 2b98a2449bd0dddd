# SPDX-License-Identifier: Apache-2.0
"""growth.py NAME [SECONDS]: one program of programs.txt. A leak keeps some 20 MB a second, one request
every 10 ms, on a busy machine in more seconds; the line that allocates what is kept ends with a comment that names the program."""
import collections
import ctypes
import functools
import gc
import queue
import random
import sys
import time
import tracemalloc

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 8
BLOCK = 2000
EACH = 100  # blocks a request
KEPT = {}  # what a program keeps is still there at its end


def requests():
    """One number every 10 ms. Each request also makes and drops something."""
    for number in range(int(SECONDS * 80)):
        scratch = [bytes(3000) for _ in range(20)]
        yield number
        del scratch
        time.sleep(0.01)


# ---- leaks ----

def list_kept():
    history = KEPT[0] = []
    for _ in requests():
        for _ in range(EACH):
            history.append(bytes(BLOCK))  # leak: list_kept


def lru_cache_on_method():
    class Model:
        @functools.lru_cache(maxsize=None)
        def embed(self, text):
            return b"x" * (BLOCK + len(text))  # leak: lru_cache_on_method

    KEPT[0] = Model
    for number in requests():
        model = Model()
        for i in range(EACH):
            model.embed(str(number * EACH + i))


def c_extension_without_decref():
    make = ctypes.pythonapi.PyByteArray_FromStringAndSize
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_ssize_t]
    data = bytes(BLOCK)
    for _ in requests():
        for _ in range(EACH):
            make(data, BLOCK)  # leak: c_extension_without_decref


def unbounded_queue():
    waiting = KEPT[0] = queue.Queue()
    for number in requests():
        for _ in range(EACH):
            waiting.put(bytes(BLOCK))  # leak: unbounded_queue
        if number % 10 == 0:
            waiting.get()


def views_keep_the_base():
    heads = KEPT[0] = []
    for _ in requests():
        for _ in range(2):
            base = bytearray(100_000)  # leak: views_keep_the_base
            heads.append(memoryview(base)[:16])


def sessions_by_unique_key():
    sessions = KEPT[0] = collections.defaultdict(dict)
    for number in requests():
        for i in range(EACH):
            sessions[number, i]["body"] = bytes(BLOCK)  # leak: sessions_by_unique_key


def handlers_registered_again():
    handlers = KEPT[0] = []

    def register(buffer):
        handlers.append(lambda: len(buffer))

    for _ in requests():
        for _ in range(EACH):
            register(bytearray(BLOCK))  # leak: handlers_registered_again


def errors_keep_their_frames():
    errors = KEPT[0] = []

    def fail():
        payload = bytearray(BLOCK)  # leak: errors_keep_their_frames
        raise ValueError(len(payload))

    for _ in requests():
        for _ in range(EACH):
            try:
                fail()
            except ValueError as error:
                errors.append(error)


def cycles_without_collector():
    gc.disable()

    class Node:
        def __init__(self):
            self.me = self
            self.body = bytearray(BLOCK)  # leak: cycles_without_collector

    for _ in requests():
        for _ in range(EACH):
            Node()


def malloc_by_ctypes():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    for _ in requests():
        for _ in range(EACH):
            malloc(BLOCK)  # leak: malloc_by_ctypes


# ---- healthy ----

def list_comprehension():
    kept = KEPT[0] = [bytes(1000) for _ in range(40_000)]
    print(len(kept))


def sort_of_strings():
    kept = KEPT[0] = [str(random.random()).encode() * 40 for _ in range(40_000)]
    kept.sort()
    print(len(kept))


def own_tables_of_tracemalloc():
    tracemalloc.start()
    kept = KEPT[0] = {number: bytes(700) for number in range(60_000)}
    for _ in requests():
        kept[random.randrange(60_000)] = bytes(700)


def lru_cache_that_fills():
    @functools.lru_cache(maxsize=3000)
    def embed(number):
        return bytes(20_000 + number % 7)

    KEPT[0] = embed
    for number in requests():
        for i in range(20):
            embed(random.randrange(3000))


def last_events_in_a_deque():
    events = KEPT[0] = collections.deque(maxlen=10_000)
    for _ in requests():
        for _ in range(EACH):
            events.append(bytes(BLOCK))


def random_keys_fill_a_dictionary():
    known = KEPT[0] = {}
    for _ in requests():
        for _ in range(EACH):
            key = random.randrange(6_000)  # nearly full after two seconds
            if key not in known:
                known[key] = bytes(10_000)


def batch_that_is_flushed():
    batch = KEPT[0] = []
    for number in requests():
        batch.extend(bytes(BLOCK) for _ in range(EACH))
        if number % 70 == 69:
            batch.clear()


def document_read_at_once():
    rows = KEPT[0] = []
    for number in range(40_000):
        rows.append({"id": number, "text": "line %d " % number * 150})
    print(len(rows))


def pool_of_buffers():
    free = KEPT[0] = []
    for _ in requests():
        taken = [free.pop() if free else bytearray(50_000) for _ in range(random.randrange(1, 200))]
        free.extend(taken)


def warm_up_then_steady():
    state = KEPT[0] = [bytes(BLOCK) for _ in range(30_000)]
    for number in requests():
        for i in range(EACH):
            state[(number * EACH + i) % len(state)] = bytes(BLOCK)


globals()[sys.argv[1]]()
