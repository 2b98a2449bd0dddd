# SPDX-License-Identifier: Apache-2.0
"""agent.py FRAMEWORK SCENARIO FORM STORE END [--bounded] [--seed=N]: an agent as people write one, that runs out of host memory.

FRAMEWORK: plain, or that of a with_*.py here, in a Python that has it. SCENARIO: a row of its SCENARIOS. FORM: sync, asyncio
(sessions that take turns in one event loop) or threads (a pool). STORE: memory (the program's own), or own (the framework's). END:
group (the kernel kills it, the caller has set a limit), rlimit (RLIMIT_AS, the MemoryError is not caught) or handled (RLIMIT_DATA, the
MemoryError is caught and the program ends by itself). --bounded: the same with the guide's fix, to its own end. Imports come first
and take as much of its life as an agent's do. Prints its truth: the cause, a pattern of the first advice, and the line that holds the
memory.
"""
import asyncio
import concurrent.futures
import ctypes
import importlib
import pathlib
import queue
import random
import re
import resource
import sys
import threading
import time

from work import KIB, MIB, SESSIONS, give_up, is_refusal, or_give_up

HERE = pathlib.Path(__file__).resolve().parent
TURNS_BOUNDED = 150
TURNS_MOST = 16000 # of the smallest documents: 1.5 GiB
BRANCHES = 160
IMPORTS = ("argparse calendar cgi cmd code codeop colorsys configparser csv ctypes decimal difflib dis doctest email.mime.text ensurepip"
           " filecmp fractions ftplib gettext graphlib html.parser http.server imaplib inspect ipaddress locale logging.config mailbox"
           " mimetypes multiprocessing.pool netrc optparse pdb pickletools platform plistlib poplib pprint profile pstats pyclbr pydoc"
           " sched shelve shlex smtplib socketserver ssl statistics tarfile telnetlib textwrap timeit tokenize trace tracemalloc turtle"
           " typing unittest.mock urllib.request uuid venv wave webbrowser wsgiref.simple_server xml.dom.minidom xml.etree.ElementTree"
           " xml.sax xmlrpc.client zipapp zipfile zoneinfo")
M_ARENA_MAX = -8 # of glibc


def start_up(seconds):
    """Imports, and what libraries make at import: tables, models of messages. They stay."""
    begin = time.monotonic()
    for name in IMPORTS.split():
        try:
            importlib.import_module(name)
        except ImportError: # other versions, other modules
            pass
    tables = [{"field_%d_%d" % (n, i): ("str", i) for i in range(200)} for n in range(300)]
    time.sleep(max(0, seconds - (time.monotonic() - begin)))
    return tables


# ---- the forms ----

def turn_of(agent, turn, pause):
    agent.question(turn)
    agent.answer(turn)
    time.sleep(pause)


def run_sync(agent, turns, pause):
    for turn in turns:
        turn_of(agent, turn, pause)


def of_sessions(turns):
    return [range(first, turns, SESSIONS) for first in range(SESSIONS)]


async def session(agent, turns, pause):
    for turn in turns:
        agent.question(turn)
        await asyncio.sleep(pause)
        await agent.answer_soon(turn)
        await asyncio.sleep(pause)


async def run_sessions(agent, turns, pause):
    try:
        await asyncio.gather(*(session(agent, its, pause) for its in of_sessions(turns)))
    except MemoryError:
        raise
    except BaseException: # of a library in Rust, which leaves its thread waiting
        give_up()


def run_asyncio(agent, turns, pause):
    asyncio.run(run_sessions(agent, turns, pause))


def in_pool(function, agent, tasks, pause):
    """A thread for each, and all of them begin before one works."""
    ready = threading.Barrier(len(tasks))
    with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
        list(pool.map(lambda _: ready.wait(), tasks))
        for done in [pool.submit(or_give_up(function), agent, task, pause) for task in tasks]:
            done.result()


def run_threads(agent, turns, pause):
    in_pool(run_sync, agent, of_sessions(turns), pause)


def run_burst(agent, form, branches, pause):
    if form == "sync":
        agent.burst(branches, pause)
    elif form == "asyncio":
        asyncio.run(agent.burst_soon(branches, pause))
    else:
        in_pool(type(agent).read, agent, range(branches), pause)


def run(agent, form, pause):
    if agent.at_once:
        for branches in [6] * 12 if agent.bounded else [*agent.rounds, BRANCHES]:
            run_burst(agent, form, branches, 20 if branches == BRANCHES else 0.02)
    else:
        turns = agent.turns_bounded if agent.bounded else TURNS_MOST
        if form == "sync":
            run_sync(agent, range(turns), pause)
        else:
            {"asyncio": run_asyncio, "threads": run_threads}[form](agent, turns, pause)


# ---- its end ----

def watch_births():
    """A thread that has no memory to begin with leaves its starter waiting for ever, and cannot call a function of Python's."""
    births = queue.SimpleQueue()
    sys.unraisablehook = births.put

    def watch():
        while True:
            ignored = births.get()
            if ignored.exc_type is MemoryError:
                give_up()
            sys.__unraisablehook__(ignored)

    threading.Thread(target=watch, daemon=True).start()


def limit(kind, field, room):
    status = pathlib.Path("/proc/self/status").read_text()
    now = int(status.split(field + ":")[1].split()[0]) * KIB
    resource.setrlimit(kind, (now + room, resource.RLIM_INFINITY))


def set_limit(end, room):
    if end == "rlimit":
        # addresses: the recorder's file, and no 64 MiB for each of the threads' arenas, as is usual below such a limit
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
        limit(resource.RLIMIT_AS, "VmSize", room + 64 * MIB)
    elif end == "handled":
        limit(resource.RLIMIT_DATA, "VmData", room)


def tell(module, scenario, store, bounded):
    file = pathlib.Path(module.__file__)
    mark = re.compile(r"# here: %s(?: %s)?$" % (scenario, store))
    places = [str(i + 1) for i, line in enumerate(file.read_text().splitlines()) if mark.search(line)]
    of_store = lambda words: words[store] if isinstance(words, dict) else words
    kind = module.SCENARIOS[scenario]
    print("clean" if bounded else "cause %s\nfile %s\nlines %s\ndo %s" % (kind.cause, file.name, " ".join(places), of_store(kind.do)), flush=True)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    framework, scenario, form, store, end = words
    seed = int(flags.get("seed", 1))
    chance = random.Random(seed * 7919)
    threading.stack_size(256 * KIB) # stacks count for the limit
    tables = start_up(chance.uniform(0.4, 1.6))
    module = importlib.import_module(framework if framework == "plain" else "with_" + framework)
    tell(module, scenario, store, "bounded" in flags)
    agent = module.SCENARIOS[scenario]("bounded" in flags, store == "own", seed)
    watch_births()
    set_limit(end, agent.room_mib * MIB)
    try:
        run(agent, form, chance.choice((0, 0.0005, 0.002)))
    except (MemoryError, RuntimeError) as error:
        if not is_refusal(error) or (end != "handled" and form != "threads"):
            raise
        agent = None
        give_up()
    del tables


main()
