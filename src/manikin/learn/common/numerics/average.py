"""An average of weights over the steps of a run."""

from __future__ import annotations

import copy

import torch
from torch import nn

__all__ = ["Average", "decay_at", "follow"]


def decay_at(step: int, power: float, most: float = 0.9999) -> float:
    """Weight of the average in update ``step``, counted from 1: ``1 - step ** -power``, at most ``most``.

    The first update takes the weights as they are. With power 0.75 the decay is 0.999 after 10,000 steps.
    """
    return min(most, max(0.0, 1.0 - float(step) ** -power))


class Average:
    """An exponential moving average of a module's parameters; buffers are copied.

    Args:
        module: what is trained.
        power: see :func:`decay_at`.

    Attributes:
        module: a copy of the module with the average as its weights.
        step: updates so far.
    """

    def __init__(self, module: nn.Module, power: float = 0.75) -> None:
        self.power, self.step = power, 0
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """``average = decay * average + (1 - decay) * weights``."""
        self.step += 1
        decay = decay_at(self.step, self.power)
        follow(self.module, module, 1.0 - decay)
        for mine, other in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(other)


@torch.no_grad()
def follow(target: nn.Module, source: nn.Module, share: float) -> None:
    """Move the target's weights by a ``share`` of the way to the source's: an exponential moving average."""
    for ours, theirs in zip(target.parameters(), source.parameters(), strict=True):
        ours.lerp_(theirs, share)
