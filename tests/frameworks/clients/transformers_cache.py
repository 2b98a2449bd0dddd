# SPDX-License-Identifier: Apache-2.0
"""transformers_cache.py: a Llama-shaped model with random weights reads chunks into a growing KV cache until there is no room,
and says what either has. No kernel runs where there is no GPU."""
import os
import sys

import torch
import transformers


def make_model():
    config = transformers.LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8,
                                      vocab_size=4096, max_position_embeddings=8192)
    return transformers.LlamaForCausalLM._from_config(config, attn_implementation='eager').eval()


def read_chunks(model, cache):
    while True:
        model(torch.zeros((1, 256), dtype=torch.long, device='cuda'), past_key_values=cache, use_cache=True, logits_to_keep=1)


model = make_model().to('cuda')
cache = transformers.DynamicCache(config=model.config)
try:
    with torch.no_grad():
        read_chunks(model, cache)
except torch.OutOfMemoryError as error:
    print('says', error)
print('kv', sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers))
print('weights', sum(tensor.nbytes for tensor in [*model.parameters(), *model.buffers()]))
sys.stdout.flush()
os._exit(1) # with all that it holds
