# SPDX-License-Identifier: Apache-2.0
"""
Host tensors made in all the ways that user code reaches an allocation of PyTorch's: argv: the folder of marks.py, where the
truth goes. mark_tensor() is innermost, as the function that calls PyTorch's C++ is.
"""
import sys

import torch

sys.path.insert(0, sys.argv[1])
import marks

torch.set_num_threads(1)


def mark_tensor(label, make):
    size = marks.next_size()
    frames = marks.frames_of(sys._getframe(0))
    kept = make(size // 4); frames[0][2] = sys._getframe(0).f_lineno
    marks.kept.append(kept)
    marks.notes[size] = [label, frames]
    return kept


class Inner(torch.nn.Module):
    def forward(self, x):
        mark_tensor("module in a module", torch.zeros)
        return torch.relu(x)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(Inner(), torch.nn.Identity())
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = self.inner(x * self.weight)
        mark_tensor("module", torch.ones)
        return x


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mark_tensor("autograd function, forward", torch.empty)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        mark_tensor("autograd function, backward", torch.empty)
        return gradient * 2


@torch.no_grad()
def without_gradients():
    mark_tensor("no_grad", torch.rand)


def main():
    for make in torch.zeros, torch.empty, torch.ones, torch.rand, torch.randn:
        mark_tensor(make.__name__, make)
    mark_tensor("clone", torch.ones(1).expand)  # no memory of its own
    marks.notes.popitem()
    model = Outer()
    loss = Function.apply(model(torch.ones(4))).sum()
    loss.register_hook(lambda gradient: mark_tensor("hook of a tensor", torch.zeros) is None or None)
    loss.backward()
    without_gradients()
    with torch.no_grad():
        mark_tensor("no_grad, with", torch.zeros)
    list(map(lambda n: mark_tensor("map", torch.zeros), [1]))


main()
marks.done(sys.argv[2])
