# SPDX-License-Identifier: Apache-2.0
"""agent.py SCENARIO FORM END [--bounded] [--seed=N]: an agent as people write one, without a framework, that runs out of host memory.

SCENARIO: a row of SCENARIOS. FORM: sync, asyncio (sessions that take turns in one event loop) or threads (a pool). END: group (the
kernel kills it, the caller has set a limit), rlimit (RLIMIT_AS, the MemoryError is not caught) or handled (RLIMIT_DATA, the
MemoryError is caught and the program ends by itself). --bounded: the same with the guide's fix, to its own end. Imports come first
and take as much of its life as an agent's do. Prints its truth: the cause, and the line that holds the memory, marked "# here: SCENARIO".
--list prints the scenarios with their forms.
"""
import array
import asyncio
import concurrent.futures
import functools
import json
import os
import pathlib
import pickle
import random
import resource
import sqlite3
import sys
import tempfile
import threading
import time

KIB, MIB = 1 << 10, 1 << 20
ROOM = 160 * MIB # what the work may have, however the program ends
TURNS_BOUNDED = 150
TURNS_MOST = 4000
SESSIONS = 4
IMPORTS = ("argparse calendar cgi cmd code codeop colorsys configparser csv ctypes decimal difflib dis doctest email.mime.text ensurepip"
           " filecmp fractions ftplib gettext graphlib html.parser http.server imaplib inspect ipaddress locale logging.config mailbox"
           " mimetypes multiprocessing.pool netrc optparse pdb pickletools platform plistlib poplib pprint profile pstats pyclbr pydoc"
           " sched shelve shlex smtplib socketserver ssl statistics tarfile telnetlib textwrap timeit tokenize trace tracemalloc turtle"
           " typing unittest.mock urllib.request uuid venv wave webbrowser wsgiref.simple_server xml.dom.minidom xml.etree.ElementTree"
           " xml.sax xmlrpc.client zipapp zipfile zoneinfo")


def start_up(seconds):
    """Imports, and what libraries make at import: tables, models of messages. They stay."""
    begin = time.monotonic()
    for name in IMPORTS.split():
        try:
            __import__(name)
        except ImportError: # other versions, other modules
            pass
    tables = [{"field_%d_%d" % (n, i): ("str", i) for i in range(200)} for n in range(300)]
    time.sleep(max(0, seconds - (time.monotonic() - begin)))
    return tables


def text_of(turn, size):
    """What a model or a tool answers: other characters each time."""
    word = "%08x " % random.Random(turn).getrandbits(32)
    return word * (size // len(word)) # made


def think(prompt):
    """A turn's own work: its messages become JSON and come back, and all of that goes again."""
    request = json.dumps({"messages": [{"role": "user", "content": prompt[i:i + 2048]} for i in range(0, min(len(prompt), 64 * KIB), 2048)]})
    return len(json.loads(request)["messages"])


class Agent:
    """What every scenario shares: how large things are, whether it is the fixed one, and which turn it is."""

    def __init__(self, bounded, seed):
        self.bounded, self.random = bounded, random.Random(seed)
        self.size = self.random.randrange(96, 640) * KIB
        self.kept = []

    def question(self, turn):
        think(text_of(turn, 16 * KIB))

    def answer(self, turn):
        """One turn: what it keeps."""

    def close(self):
        """What the program does with all of it at the end."""


class History(Agent):
    """Messages of a chat, each with the document that was retrieved for it."""

    def answer(self, turn):
        self.kept.append({"role": "tool", "turn": turn, "content": text_of(turn, self.size)}) # here: history
        if self.bounded:
            del self.kept[:-8]


class Checkpoints(Agent):
    """The state of a graph after every step, whole, in a saver in memory."""

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.saver = {}

    def answer(self, turn):
        state = {"turn": turn, "documents": [text_of(turn + i, self.size // 4) for i in range(4)]}
        self.saver[turn] = pickle.dumps(state) # here: checkpoints
        if self.bounded:
            self.saver.pop(turn - 8, None)


class Database(Agent):
    """The same in SQLite's memory."""

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.lock = threading.Lock()
        self.saver = sqlite3.connect(":memory:", check_same_thread=False)
        self.saver.execute("create table checkpoints (id integer primary key, state blob)")

    def answer(self, turn):
        state = pickle.dumps({"turn": turn, "document": text_of(turn, self.size)})
        with self.lock:
            self.saver.execute("insert or replace into checkpoints values (?, ?)", (turn, state)) # here: database
            if self.bounded:
                self.saver.execute("delete from checkpoints where id <= ?", (turn - 8,))


class ToolCache(Agent):
    """A tool whose outputs are cached by their arguments, which never repeat."""

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.search = functools.lru_cache(maxsize=8 if bounded else None)(self.search_now)

    def search_now(self, query):
        return text_of(query, self.size) # here: tool_cache

    def answer(self, turn):
        self.search(turn)


class Callbacks(Agent):
    """A handler is registered for every run, and its closure keeps the run's output."""

    def answer(self, turn):
        output = bytearray(text_of(turn, self.size), "ascii") # here: callbacks

        def on_end(event):
            return event, output

        self.kept.append(on_end)
        if self.bounded:
            self.kept.clear()


class Retries(Agent):
    """Exceptions of failed attempts are kept, and their tracebacks keep the frames with what they had read."""

    def attempt(self, turn):
        body = text_of(turn, self.size) # here: retries
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


class Fanout(Agent):
    """A branch for every document, all at once. Each has the document while it runs."""
    at_once = True

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.size = self.random.randrange(1536, 4096) * KIB

    def answer(self, turn):
        return text_of(turn, self.size) # here: fanout


class Chunks(Fanout):
    """The same, and the document is many small chunks."""

    def answer(self, turn):
        return ["%08x" % (turn * 4096 + i) * 400 for i in range(self.size // 3200)] # here: chunks


class Recursion(Agent):
    """The answer repeats the prompt, and becomes the next prompt."""

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.prompts = {}

    def answer(self, turn):
        session = turn % SESSIONS if self.bounded else 0
        prompt = self.prompts.get(session) or text_of(turn, 64 * KIB)
        said = prompt + "\nYou said: " + prompt # here: recursion
        self.prompts[session] = said[-64 * KIB:] if self.bounded else said


class Model(Agent):
    """Weights of a model, read from its files."""

    def __init__(self, bounded, seed):
        super().__init__(bounded, seed)
        self.shard = self.random.randrange(3, 9) * MIB
        self.file = tempfile.TemporaryFile()
        self.file.write(os.urandom(MIB) * (self.shard // MIB))
        self.file.flush()

    def answer(self, turn):
        if not (self.bounded and len(self.kept) >= 4):
            self.kept.append(self.load_shard())

    def question(self, turn):
        """None is asked before all is loaded."""

    def load_shard(self):
        return os.pread(self.file.fileno(), self.shard, 0) # here: model


# the cause, and the scenario
SCENARIOS = {
    "history": ("host-leak", History), "checkpoints": ("host-leak", Checkpoints), "database": ("host-leak", Database),
    "tool_cache": ("host-leak", ToolCache), "callbacks": ("host-leak", Callbacks), "retries": ("host-leak", Retries),
    "frames": ("host-leak", Frames), "sessions": ("host-leak", Sessions),
    "fanout": ("host-work-at-once", Fanout), "chunks": ("host-work-at-once", Chunks),
    "recursion": ("host-request-doubles", Recursion), "model": ("loading-needs-more-host", Model),
}
FORMS = ("sync", "asyncio", "threads")
ENDS = ("group", "rlimit", "handled")


# ---- the forms ----

def give_up():
    """As a worker does whose pool would wait for the others for ever."""
    sys.stderr.write("out of memory, giving up\n")
    os._exit(3)


def or_give_up(function, *arguments):
    try:
        return function(*arguments)
    except (MemoryError, RuntimeError): # no thread could be started
        give_up()


def turn_of(agent, turn, pause):
    agent.question(turn)
    agent.answer(turn)
    time.sleep(pause)


def run_sync(agent, turns, pause):
    for turn in range(turns):
        turn_of(agent, turn, pause)


async def session(agent, first, turns, pause):
    for turn in range(first, turns, SESSIONS):
        agent.question(turn)
        await asyncio.sleep(pause)
        agent.answer(turn)
        await asyncio.sleep(pause)


async def run_sessions(agent, turns, pause):
    await asyncio.gather(*(session(agent, first, turns, pause) for first in range(SESSIONS)))


def run_asyncio(agent, turns, pause):
    asyncio.run(run_sessions(agent, turns, pause))


def run_threads(agent, turns, pause):
    with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        for done in [pool.submit(or_give_up, turn_of, agent, turn, pause) for turn in range(turns)]:
            done.result()


# ---- and of what runs at once: bursts, each of more branches than the last ----

def bursts(bounded):
    return [6] * 12 if bounded else [3, 6, 160]


def branch(agent, number, pause):
    agent.question(number)
    document = agent.answer(number)
    time.sleep(pause)
    return think(str(document[:100]))


async def branch_soon(agent, number, pause):
    agent.question(number)
    document = agent.answer(number)
    await asyncio.sleep(pause)
    return think(str(document[:100]))


def fan_sync(agent, branches, pause):
    documents = []
    for number in range(branches):
        agent.question(number)
        documents.append(agent.answer(number))
    time.sleep(pause)
    return [think(str(document[:100])) for document in documents]


async def gather(agent, branches, pause):
    await asyncio.gather(*(branch_soon(agent, number, pause) for number in range(branches)))


def fan_asyncio(agent, branches, pause):
    asyncio.run(gather(agent, branches, pause))


def fan_threads(agent, branches, pause):
    with concurrent.futures.ThreadPoolExecutor(branches) as pool:
        for done in [pool.submit(or_give_up, branch, agent, number, pause) for number in range(branches)]:
            done.result()


def run(agent, form, pause):
    if hasattr(agent, "at_once"):
        for branches in bursts(agent.bounded):
            {"sync": fan_sync, "asyncio": fan_asyncio, "threads": fan_threads}[form](agent, branches, 0.5 if branches > 12 else 0.02)
    else:
        turns = TURNS_BOUNDED if agent.bounded else TURNS_MOST
        {"sync": run_sync, "asyncio": run_asyncio, "threads": run_threads}[form](agent, turns, pause)


# ---- its end ----

def limit(kind, field, room):
    status = pathlib.Path("/proc/self/status").read_text()
    now = int(status.split(field + ":")[1].split()[0]) * KIB
    resource.setrlimit(kind, (now + room, resource.RLIM_INFINITY))




def tell(scenario, bounded):
    lines = pathlib.Path(__file__).read_text().splitlines()
    places = [str(i + 1) for i, line in enumerate(lines) if line.endswith(("# here: " + scenario, "# made"))]
    print("clean" if bounded else "cause %s\nlines %s" % (SCENARIOS[scenario][0], " ".join(places)), flush=True)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    if "list" in flags:
        print("\n".join("%s %s" % (name, cause) for name, (cause, _) in SCENARIOS.items()))
        return
    scenario, form, end = words
    seed = int(flags.get("seed", 1))
    chance = random.Random(seed * 7919)
    threading.stack_size(256 * KIB) # stacks count for the limit
    tell(scenario, "bounded" in flags)
    tables = start_up(chance.uniform(0.4, 1.6))
    agent = SCENARIOS[scenario][1]("bounded" in flags, seed)
    if end == "rlimit":
        # addresses: the recorder's file, and what glibc reserves for the arenas of threads
        limit(resource.RLIMIT_AS, "VmSize", ROOM + (400 if form == "threads" else 64) * MIB)
    elif end == "handled":
        limit(resource.RLIMIT_DATA, "VmData", ROOM)
    try:
        run(agent, form, chance.choice((0, 0.0005, 0.002)))
    except MemoryError:
        if end != "handled" and form != "threads":
            raise
        agent = None
        give_up()
    del tables


main()
