# SPDX-License-Identifier: Apache-2.0
"""kept_logits.py ANSWERS: the logits of the last ANSWERS answers are kept for statistics (0: of all)."""
import sys

from tiny_llama import make_model, prompt, read, serve

most = int(sys.argv[1])


def answer():
    model = make_model()
    kept = []
    for number in range(200):
        kept.append(read(model, prompt(256)).logits)  # here
        if most and len(kept) > most:
            del kept[0]


serve(__file__, 'gpu-leak', answer)
