# SPDX-License-Identifier: Apache-2.0
"""A Llama-shaped model with random weights for every script here, and the truth that a script prints of itself.

Over the simulated driver no kernel runs: what the model answers means nothing, what it allocates is real.
"""
import os
import pathlib
import sys

import torch
import transformers


def make_model(layers=4, width=512, vocabulary=4096):
    config = transformers.LlamaConfig(hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers, num_attention_heads=8,
                                      num_key_value_heads=8, vocab_size=vocabulary, max_position_embeddings=1 << 17)
    with torch.device('meta'):  # random numbers would take most of the time, and nobody looks at them
        model = transformers.LlamaForCausalLM._from_config(config, attn_implementation='eager').eval()
    return model.to_empty(device='cuda')


def prompt(tokens, batch=1):
    return torch.zeros((batch, tokens), dtype=torch.long, device='cuda')


def read(model, tokens):
    """Without a cache; the mask is given, since to find packed prompts takes a kernel."""
    return model(tokens, attention_mask=torch.ones_like(tokens), use_cache=False)


def serve(script, causes, work):
    """Runs work. When memory runs out it prints the causes that are right, and the lines of the script that are marked "# here"."""
    lines = pathlib.Path(script).read_text().splitlines()
    places = ','.join(str(number) for number, line in enumerate(lines, 1) if line.endswith('# here'))
    try:
        with torch.no_grad():
            work()
    except torch.OutOfMemoryError:
        print('failed', causes, pathlib.Path(script).name, places, flush=True)
        os._exit(1)  # with all that it holds
    print('served', flush=True)
    sys.stdout.flush()
    os._exit(0)
