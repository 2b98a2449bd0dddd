# SPDX-License-Identifier: Apache-2.0
"""long_context.py TOKENS: one conversation whose key/value cache grows with every turn, up to TOKENS (0: without end)."""
import sys

import transformers

from tiny_llama import make_model, prompt, serve

TURN = 256
most = int(sys.argv[1])


def converse():
    model = make_model()
    cache = transformers.DynamicCache(config=model.config)
    for turn in range(100):
        if most and cache.get_seq_length() + TURN > most:
            cache = transformers.DynamicCache(config=model.config)
        model(prompt(TURN), past_key_values=cache, use_cache=True, logits_to_keep=1)  # here


serve(__file__, 'kv-cache-grew', converse)
