# SPDX-License-Identifier: Apache-2.0
"""many_requests.py REQUESTS: requests with a cache each are decoded in turn, REQUESTS at a time; they come ever more densely."""
import sys

import transformers

from tiny_llama import make_model, prompt, serve

most = int(sys.argv[1])


def decode():
    model = make_model()
    running = []
    for wanted in [2, 3, 2, 4, 3, 4, 2, 4, 3, 100]:
        while len(running) < min(wanted, most):
            running.append(transformers.DynamicCache(config=model.config))
            model(prompt(384), past_key_values=running[-1], use_cache=True, logits_to_keep=1)  # here
        for _ in range(3):
            for cache in running:
                model(prompt(1), past_key_values=cache, use_cache=True)
        running.clear()


serve(__file__, 'too-many-requests,kv-cache-grew', decode)
