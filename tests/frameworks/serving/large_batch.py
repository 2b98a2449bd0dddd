# SPDX-License-Identifier: Apache-2.0
"""large_batch.py SEQUENCES: prompts are read together, SEQUENCES at a time, after many small batches."""
import sys

from tiny_llama import make_model, prompt, read, serve

most = int(sys.argv[1])


def read_prompts():
    model = make_model()
    for batch in [1, 2, 1, 4, 2, 1, 4, 2, 3, 1, 2, 4, most]:
        read(model, prompt(512, batch))  # here


serve(__file__, 'activations-too-large,too-many-requests', read_prompts)
