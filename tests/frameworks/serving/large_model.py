# SPDX-License-Identifier: Apache-2.0
"""large_model.py LAYERS: weights, layer by layer."""
import sys

from tiny_llama import make_model, prompt, read, serve

layers = int(sys.argv[1])


def load():
    model = make_model(layers=layers, width=1024)  # here
    read(model, prompt(16))


serve(__file__, 'model-too-large', load)
