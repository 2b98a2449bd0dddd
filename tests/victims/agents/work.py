# SPDX-License-Identifier: Apache-2.0
"""What all agents here share: sizes, what a turn costs, and how one gives up. A scenario is a class of a with_*.py or of plain.py.

A scenario has its truth with it: the cause, and a pattern of the first advice, by store where they differ. The line that makes what
stays, or what is too much, is marked "# here: SCENARIO"; "# here: SCENARIO STORE" where the stores differ.
"""
import asyncio
import functools
import json
import os
import random
import sys
import tempfile
import time

KIB, MIB = 1 << 10, 1 << 20
SESSIONS = 4


def word(turn):
    """Nine characters of what a model or a tool answers, others each time."""
    return "%08x " % random.Random(turn).getrandbits(32)


def think(prompt):
    """A turn's own work: its messages become JSON and come back, and all of that goes again."""
    request = json.dumps({"messages": [{"role": "user", "content": prompt[i:i + 2048]} for i in range(0, min(len(prompt), 64 * KIB), 2048)]})
    return len(json.loads(request)["messages"])


def give_up():
    """As a worker does whose pool would wait for the others for ever."""
    sys.stderr.write("out of memory, giving up\n")
    os._exit(3)


def is_refusal(error):
    """PyTorch's, or of a thread that could not be started, are RuntimeErrors; others are mistakes."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in ("start new thread", "allocate memory"))


def or_give_up(function):
    """Of a framework that takes what a tool raises for its answer, and asks again."""
    @functools.wraps(function)
    def called(*arguments, **options):
        try:
            return function(*arguments, **options)
        except (MemoryError, RuntimeError) as error:
            if not is_refusal(error):
                raise
            give_up()
    return called


class Agent:
    """The seed decides how large things are. Bounded: with the guide's fix."""
    cause, do = "host-leak", "limit what"
    stores = ("memory",)
    ends = ("group", "rlimit", "handled")
    at_once = False          # bursts of branches, not turns
    documents = (96, 640)    # KiB
    room_mib = 160           # what the work may have
    turns_bounded = 150
    starts_mib = 0           # more than the framework itself

    def __init__(self, bounded, own, seed):
        self.bounded, self.own, self.random = bounded, own, random.Random(seed)
        self.size = self.random.randrange(*self.documents) * KIB
        self.kept = []

    def question(self, turn):
        think(word(turn) * (16 * KIB // 9))

    def answer(self, turn):
        """One turn: what it keeps."""

    async def answer_soon(self, turn):
        self.answer(turn)


class Doubling(Agent):
    """The answer repeats the prompt, and becomes the next prompt."""
    cause, do = "host-request-doubles", "end of an answer"


class Fanout(Agent):
    """A branch for every document, all at once. Each has the document while it runs. A framework's own way is in burst and burst_soon."""
    cause, do = "host-work-at-once", "at the same time"
    at_once = True
    rounds = ()              # of fewer branches, before
    documents = (1536, 4096)

    def read(self, number, pause):
        self.question(number)
        document = self.answer(number)
        time.sleep(pause)
        return think(str(document[:100]))

    async def read_soon(self, number, pause):
        self.question(number)
        document = self.answer(number)
        await asyncio.sleep(pause)
        return think(str(document[:100]))

    def burst(self, branches, pause):
        documents = []
        for number in range(branches):
            self.question(number)
            documents.append(self.answer(number))
        time.sleep(pause)
        return [think(str(document[:100])) for document in documents]

    async def burst_soon(self, branches, pause):
        await asyncio.gather(*(self.read_soon(number, pause) for number in range(branches)))


class Model(Agent):
    """Weights of a model, read from its files."""
    cause, do = "loading-needs-more-host", "map the file|read the file in parts"

    def question(self, turn):
        """None is asked before all is loaded."""


class Torch(Model):
    """Weights that PyTorch reads."""
    turns_bounded, starts_mib = 40, 180

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        import torch # no other scenario needs it, and it takes as long as the framework
        self.torch, self.file = torch, os.path.join(tempfile.mkdtemp(), "shard.pt")
        torch.save({"weight": torch.ones(self.random.randrange(3, 9) * MIB // 4)}, self.file)

    def load_shard(self):
        """In the scenario's file, where its line is."""
        raise NotImplementedError

    def ask(self, turn):
        """A question to the framework, once all is loaded."""

    def answer(self, turn):
        if self.bounded and len(self.kept) >= 4:
            self.ask(turn)
        else:
            self.kept.append(self.load_shard())
