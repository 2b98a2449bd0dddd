# SPDX-License-Identifier: Apache-2.0
"""host.py: ordinary work on the CPU, its results, and what PyTorch's profiler saw of host memory: reports, bytes that came, bytes that went."""
import torch

torch.manual_seed(1)
with torch.autograd.profiler.profile(profile_memory=True) as profile:
    kept = [torch.randn(300, 500) for _ in range(5)]
    product = kept[0] @ kept[1].T
    model = torch.nn.Sequential(torch.nn.Linear(500, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    loss = model(kept[2]).pow(2).mean()
    loss.backward()
    del product
sizes = [event.nbytes() for event in profile.kineto_results.events() if event.name() == '[memory]']
print('result', round(float(loss), 6), [tuple(p.grad.shape) for p in model.parameters()])
print('host', len(sizes), sum(s for s in sizes if s > 0), -sum(s for s in sizes if s < 0))
