"""Observations at a common scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Scaling"]


class Scaling(nn.Module):
    """Shifts and scales each column, and clips: ``clip((x - mean) / std, -limit, limit)``.

    At the beginning mean is 0 and std 1. Who trains sets them: see :class:`manikin.learn.common.moments.Moments`.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, columns: int, limit: float = 10.0) -> None:
        super().__init__()
        self.limit = limit
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("std", torch.ones(columns))

    def forward(self, values: Tensor) -> Tensor:
        return ((values - self.mean) / self.std).clamp(-self.limit, self.limit)
