# SPDX-License-Identifier: Apache-2.0
"""host.py: ordinary work on the CPU, its results, and what PyTorch's profiler saw of host memory: reports, bytes that came, bytes that went."""
import os
import sys

import torch


def keep_tensors():
    return [torch.randn(300, 5000) for _ in range(5)]


def work():
    kept = keep_tensors()
    product = kept[0] @ kept[1].T
    model = torch.nn.Sequential(torch.nn.Linear(5000, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    loss = model(kept[2]).pow(2).mean()
    loss.backward()
    del product
    return kept, loss, model


torch.manual_seed(1)
with torch.autograd.profiler.profile(profile_memory=True) as profile:
    kept, loss, model = work()
sizes = [event.nbytes() for event in profile.kineto_results.events() if event.name() == '[memory]']
print('result', round(float(loss), 6), [tuple(p.grad.shape) for p in model.parameters()])
print('host', len(sizes), sum(s for s in sizes if s > 0), -sum(s for s in sizes if s < 0))
sys.stdout.flush()
os._exit(0) # with its tensors: the interpreter would free them first
