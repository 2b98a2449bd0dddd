# SPDX-License-Identifier: Apache-2.0
"""A Llama-shaped model with random weights on the CPU, and what every script here prints of itself.

The model is real as far as memory goes: weights, a key/value cache that grows with each token and goes away with the
request, activations. What it says is noise. Text is bytes; the prompt is cut to the context, as engines do.
"""
import itertools
import os
import pathlib
import random
import resource
import sys
import threading

import torch


class LocalModel:
    def __init__(self, width=128, layers=2, heads=4, context=256, seed=1):
        torch.manual_seed(seed)
        self.width, self.layers, self.heads, self.context = width, layers, heads, context
        self.embedding = torch.randn(256, width) * 0.1
        self.blocks = [{name: torch.randn(*shape) * 0.05 for name, shape in (
            ("qkv", (width, 3 * width)), ("out", (width, width)), ("up", (width, 4 * width)), ("down", (4 * width, width)))}
            for _ in range(layers)]

    def generate(self, prompt, new_tokens=6):
        """str -> str; holds a cache for as long as it runs."""
        tokens = torch.tensor(list(prompt.encode()[-self.context:]) or [0])
        cache, said = [None] * self.layers, []
        with torch.no_grad():
            for _ in range(new_tokens):
                logits = self._forward(tokens, cache)
                tokens = logits.argmax().reshape(1)
                said.append(97 + int(tokens) % 26)
        return bytes(said).decode()

    def _forward(self, tokens, cache):
        hidden = self.embedding[tokens]
        for layer, block in enumerate(self.blocks):
            q, k, v = (hidden @ block["qkv"]).split(self.width, dim=-1)
            if cache[layer] is not None:
                k, v = torch.cat((cache[layer][0], k)), torch.cat((cache[layer][1], v))
            cache[layer] = (k, v)
            hidden = hidden + self._attend(q, k, v) @ block["out"]
            hidden = hidden + torch.relu(hidden @ block["up"]) @ block["down"]
        return hidden[-1] @ self.embedding.T

    def _attend(self, q, k, v):
        rows, size = q.shape[0], self.width // self.heads
        q, k, v = (x.reshape(-1, self.heads, size).transpose(0, 1) for x in (q, k, v))
        scores = q @ k.transpose(1, 2) / size ** 0.5
        mask = torch.ones(rows, scores.shape[2], dtype=torch.bool).tril(scores.shape[2] - rows)
        return (scores.masked_fill(~mask, -1e9).softmax(-1) @ v).transpose(0, 1).reshape(rows, self.width)


def fetch_document(turn, size):
    """What a retriever or a tool brings back: `size` characters, other ones every turn. Not more than the ceiling leaves."""
    word = "%08x " % random.Random(turn).getrandbits(32)
    with ceiling:
        return (word * (size // len(word) + 1))[:size]


class Batch:
    """Documents that are answered together, as a batching server does: each waits until `size` have come, so that they are held at once
    on a fast machine, too. Those that come later, or after one did not fit, do not wait."""

    def __init__(self, size):
        self.size, self.documents, self.is_full = size, itertools.count(1), threading.Event()

    def fetch(self, turn, size):
        try:
            document = fetch_document(turn, size)
        except MemoryError:
            self.is_full.set()
            raise
        if next(self.documents) >= self.size:
            self.is_full.set()
        self.is_full.wait()
        return document


def tell(script, broken, shape, bytes_per_turn, keeper="-"):
    """The truth, for the checker: which line of the script (marked "# grows") brings what stays, and how much a turn; keeper: the
    framework's function that makes copies of it in threads of its own, which grow in that shape."""
    lines = pathlib.Path(script).read_text().splitlines()
    places = [str(i + 1) for i, line in enumerate(lines) if line.endswith("# grows")]
    if broken:
        print("grows", pathlib.Path(script).name, ",".join(places), shape, bytes_per_turn, keeper)
    else:
        print("clean")
    sys.stdout.flush()


def expect(script, broken, cause):
    """The truth of what does not grow with the turns: the report's cause, and the lines (marked "# here") that hold most."""
    lines = pathlib.Path(script).read_text().splitlines()
    places = [str(i + 1) for i, line in enumerate(lines) if line.endswith("# here")]
    print("cause %s %s %s" % (cause, pathlib.Path(script).name, ",".join(places)) if broken else "clean")
    sys.stdout.flush()


class Ceiling:
    """What the process may have more from set() on, as in a container; what does not fit is a MemoryError. It is of data, not of
    address space, which counts what allocators reserve and the recorder's file. While no document comes it is higher: a thread that
    could not start near it would be the end in the document's place, and libraries wait for such a thread, or tell it otherwise."""
    ROOM, SPARE = 384 << 20, 64 << 20

    def __init__(self):
        self.bytes = None

    def set(self):
        if os.environ.get("AGENTS_CEILING") == "none":  # something else limits it
            return
        status = pathlib.Path("/proc/self/status").read_text()
        self.bytes = int(status.split("VmData:")[1].split()[0]) * 1024 + self.ROOM
        self.__exit__()

    def __enter__(self):
        self._limit(0)

    def __exit__(self, *exception):
        self._limit(self.SPARE)

    def _limit(self, spare):
        if self.bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (self.bytes + spare, resource.RLIM_INFINITY))


ceiling = Ceiling()
