# SPDX-License-Identifier: Apache-2.0
"""reserved_context.py TOKENS: an engine that reserves its key/value cache for TOKENS in advance, for sixteen sequences."""
import sys

import transformers

from tiny_llama import make_model, prompt, serve

SEQUENCES = 16
tokens = int(sys.argv[1])


def reserve():
    model = make_model()
    cache = transformers.StaticCache(config=model.config, max_cache_len=tokens)
    for layer in range(3):
        model(prompt(16, SEQUENCES), past_key_values=cache, use_cache=True, logits_to_keep=1)  # here


serve(__file__, 'kv-cache-too-large', reserve)
