# SPDX-License-Identifier: Apache-2.0
"""Agents without a framework: histories, checkpoints, caches, bursts, prompts, weights."""
import array
import functools
import os
import pickle
import sqlite3
import tempfile
import threading

import work
from work import KIB, MIB, SESSIONS, Agent, word

STARTS_MIB = 80


class History(Agent):
    """Messages of a chat, each with the document that was retrieved for it."""

    def answer(self, turn):
        self.kept.append({"role": "tool", "turn": turn, "content": word(turn) * (self.size // 9)}) # here: history
        if self.bounded:
            del self.kept[:-8]


class Checkpoints(Agent):
    """The state of a graph after every step, whole, in a saver in memory."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.saver = {}

    def answer(self, turn):
        state = {"turn": turn, "documents": [word(turn + i) * (self.size // 36) for i in range(4)]}
        self.saver[turn] = pickle.dumps(state) # here: checkpoints
        if self.bounded:
            self.saver.pop(turn - 8, None)


class Database(Agent):
    """The same in SQLite's memory."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.lock = threading.Lock()
        self.saver = sqlite3.connect(":memory:", check_same_thread=False)
        self.saver.execute("create table checkpoints (id integer primary key, state blob)")

    def answer(self, turn):
        state = pickle.dumps({"turn": turn, "document": word(turn) * (self.size // 9)})
        with self.lock:
            self.saver.execute("insert or replace into checkpoints values (?, ?)", (turn, state)) # here: database
            if self.bounded:
                self.saver.execute("delete from checkpoints where id <= ?", (turn - 8,))


class ToolCache(Agent):
    """A tool whose outputs are cached by their arguments, which never repeat."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.search = functools.lru_cache(maxsize=8 if bounded else None)(self.search_now)

    def search_now(self, query):
        return word(query) * (self.size // 9) # here: tool_cache

    def answer(self, turn):
        self.search(turn)


class Delegates(Agent):
    """A tool that runs in a thread of its own, another one each time; its outputs are kept. Many threads read an index at first."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        ready = threading.Barrier(80)
        workers = [threading.Thread(target=lambda: (bytearray(MIB), ready.wait())) for _ in range(80)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def look_up(self, turn):
        self.kept.append(word(turn) * (self.size // 9)) # here: delegates
        if self.bounded:
            del self.kept[:-4]

    def answer(self, turn):
        worker = threading.Thread(target=work.or_give_up(self.look_up), args=(turn,))
        worker.start()
        worker.join()


class Callbacks(Agent):
    """A handler is registered for every run, and its closure keeps the run's output."""

    def answer(self, turn):
        output = bytearray(word(turn) * (self.size // 9), "ascii") # here: callbacks

        def on_end(event):
            return event, output

        self.kept.append(on_end)
        if self.bounded:
            self.kept.clear()


class Retries(Agent):
    """Exceptions of failed attempts are kept, and their tracebacks keep the frames with what they had read."""

    def attempt(self, turn):
        body = word(turn) * (self.size // 9) # here: retries
        raise ValueError("bad answer of %d characters" % len(body))

    def answer(self, turn):
        try:
            self.attempt(turn)
        except ValueError as error:
            self.kept.append(str(error) if self.bounded else error)


class Frames(Agent):
    """Tables of numbers in the state: one for each question."""

    def answer(self, turn):
        columns = {name: array.array("d", range(self.size // 32)) for name in "abcd"} # here: frames
        self.kept.append(columns)
        if self.bounded:
            del self.kept[:-8]


class Sessions(Agent):
    """A session of small objects for every user, never closed."""

    def answer(self, turn):
        self.kept.append([{"id": i, "score": turn + i / 7, "tags": [str(turn), str(i)]} for i in range(self.size // 512)]) # here: sessions
        if self.bounded:
            del self.kept[:-4]


class Fanout(work.Fanout):
    """Branches that the program starts itself."""
    rounds = (3, 6)

    def answer(self, turn):
        return word(turn) * (self.size // 9) # here: fanout


class Chunks(Fanout):
    """The same, and the document is many small chunks."""

    def answer(self, turn):
        return ["%08x" % (turn * 4096 + i) * 400 for i in range(self.size // 3200)] # here: chunks


class Recursion(work.Doubling):

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.prompts = {}

    def answer(self, turn):
        session = turn % SESSIONS if self.bounded else 0
        prompt = self.prompts.get(session) or word(turn) * (64 * KIB // 9)
        said = prompt + "\nYou said: " + prompt # here: recursion
        self.prompts[session] = said[-64 * KIB:] if self.bounded else said


class Model(work.Model):
    """Shards of a file."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.shard = self.random.randrange(3, 9) * MIB
        self.file = tempfile.TemporaryFile()
        self.file.write(os.urandom(MIB) * (self.shard // MIB))
        self.file.flush()

    def answer(self, turn):
        if not (self.bounded and len(self.kept) >= 4):
            self.kept.append(self.load_shard())

    def load_shard(self):
        return os.pread(self.file.fileno(), self.shard, 0) # here: model


SCENARIOS = {
    "history": History, "checkpoints": Checkpoints, "database": Database, "tool_cache": ToolCache, "delegates": Delegates,
    "callbacks": Callbacks, "retries": Retries, "frames": Frames, "sessions": Sessions, "fanout": Fanout, "chunks": Chunks,
    "recursion": Recursion, "model": Model,
}
