"""Several critics computed as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["Ensemble"]


class Ensemble(nn.Module):
    """``count`` perceptrons from the same inputs to one number each, by batched matrix products.

    Between the layers are layer normalization, by option, and ReLU. Weights are orthogonal with gain sqrt 2, drawn
    apart for each; the last layer's with gain 1. Biases are zero.

    Args:
        count: K, how many.
        inputs: D, columns that come in.
        hidden: sizes between.
        norm: layer normalization before each ReLU; it keeps values of unseen actions from growing.
        generator: draws the weights.
    """

    def __init__(
        self,
        count: int,
        inputs: int,
        hidden: Sequence[int],
        *,
        norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.count, self.norm = count, norm
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        sizes = [inputs, *hidden, 1]
        for i, (a, b) in enumerate(pairwise(sizes)):
            last = i == len(sizes) - 2
            weight = torch.empty(count, a, b)
            for one in weight:
                nn.init.orthogonal_(one, 1.0 if last else 2**0.5, generator=generator)
            self.weights.append(nn.Parameter(weight))
            self.biases.append(nn.Parameter(torch.zeros(count, 1, b)))
            if norm and not last:
                self.gains.append(nn.Parameter(torch.ones(count, 1, b)))
                self.shifts.append(nn.Parameter(torch.zeros(count, 1, b)))

    def forward(self, inputs: Tensor) -> Tensor:
        """Inputs (B, D) to values (K, B)."""
        x = inputs.expand(self.count, *inputs.shape)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if i == len(self.weights) - 1:
                break
            if self.norm:
                x = torch.addcmul(self.shifts[i], nn.functional.layer_norm(x, x.shape[-1:]), self.gains[i])
            x = torch.relu(x)
        return x.squeeze(-1)
