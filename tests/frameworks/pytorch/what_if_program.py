# SPDX-License-Identifier: Apache-2.0
"""what_if_program.py HOLD STRIDE PIECE REQUEST: a PyTorch program that fragments its memory: of one large block
that was freed, HOLD MiB, pieces of PIECE MiB are made. All but every STRIDE-th are freed, and REQUEST MiB are asked for. Ends with 0 when it is served, with 1 when it is refused."""
import os
import sys

import torch

MiB = 2**20


def ask(mebibytes):
    return torch.empty(mebibytes * MiB, dtype=torch.uint8, device='cuda')


def fragment(hold, stride, piece):
    large = ask(hold)
    del large
    blocks = [ask(piece) for _ in range(hold // piece)]
    return blocks[::stride]


def main(hold, stride, piece, request):
    kept = fragment(hold, stride, piece)
    try:
        large = ask(request)
    except torch.OutOfMemoryError:
        os._exit(1) # with all that it holds: the interpreter would free it first
    print('served', len(kept), large.numel(), flush=True)
    os._exit(0)


main(*map(int, sys.argv[1:5]))
