# SPDX-License-Identifier: Apache-2.0
"""PyTorch and Transformers on the CPU: caches and logits that are kept, a loss that keeps its graph, batches at once, a model too large."""
import os
import tempfile
import threading

import torch
import transformers

import work

STARTS_MIB = 480


def make_model(layers=2, width=128, vocabulary=1024):
    config = transformers.LlamaConfig(hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers, num_attention_heads=4,
                                      num_key_value_heads=4, vocab_size=vocabulary, max_position_embeddings=1 << 16)
    return transformers.LlamaForCausalLM._from_config(config, attn_implementation="eager").eval()


def prompt(tokens, batch=1):
    return torch.randint(0, 1024, (batch, tokens))


class Serving(work.Agent):
    room_mib, turns_bounded = 240, 60

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        torch.set_num_threads(1)
        self.model = make_model(width=384)
        self.tokens = self.random.randrange(192, 320)

    def question(self, turn):
        """Has its own work."""

    def keep(self, what):
        self.kept.append(what)
        if self.bounded:
            del self.kept[:-4]


class Caches(Serving):
    """The key/value cache of every conversation is kept for its next question, which never comes."""
    stores, do = ("own",), "past_key_values"

    def answer(self, turn):
        cache = transformers.DynamicCache(config=self.model.config)
        with torch.no_grad():
            self.model(prompt(self.tokens), past_key_values=cache, use_cache=True, logits_to_keep=1) # here: caches
        self.keep(cache)


class Logits(Serving):
    """The logits of all answers are kept for statistics."""
    do = "inference_mode"

    def answer(self, turn):
        with torch.no_grad():
            self.keep(self.model(prompt(self.tokens), use_cache=False).logits) # here: logits


class Graph(Serving):
    """Scores are kept with the graph that they came from."""
    do = r"item\(\)"

    def answer(self, turn):
        logits = self.model(prompt(self.tokens), use_cache=False).logits # here: graph
        self.kept.append(logits.mean().item() if self.bounded else logits.mean())


class Batch(work.Fanout):
    """All requests are worked on at once: as one batch, or in tasks and threads. The first batches were small."""
    do = "at the same time"
    room_mib, rounds = 240, (3, 6)

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        torch.set_num_threads(1)
        self.model = make_model(vocabulary=2048)

    def answer(self, turn):
        with torch.no_grad():
            return self.model(prompt(512), use_cache=False).logits # here: batch

    def read(self, number, pause):
        logits = self.answer(number)
        work.time.sleep(pause)
        return int(logits.argmax())

    async def read_soon(self, number, pause):
        logits = self.answer(number)
        await work.asyncio.sleep(pause)
        return int(logits.argmax())

    def burst(self, branches, pause):
        answers = [self.answer(number) for number in range(branches)]
        work.time.sleep(pause)
        return [int(logits.argmax()) for logits in answers]


class Model(work.Model):
    """A model of one file for each size. Its file is mapped; converted, the weights are the program's own. Bounded: one at a time."""
    do = "from_pretrained"
    room_mib, turns_bounded = 240, 8

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        torch.set_num_threads(1)
        self.folder, self.loading = os.path.join(tempfile.mkdtemp(), "model"), threading.Lock()
        make_model(width=384).save_pretrained(self.folder)

    def load_model(self):
        return transformers.LlamaForCausalLM.from_pretrained(self.folder, dtype=torch.float64) # here: model

    def answer(self, turn):
        if not self.bounded:
            self.kept.append(self.load_model())
            return
        with self.loading:
            if len(self.kept) < 2:
                self.kept.append(self.load_model())


SCENARIOS = {"caches": Caches, "logits": Logits, "graph": Graph, "batch": Batch, "model": Model}
