"""Observations at a common scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Scaling", "Span", "value_at"]


class Scaling(nn.Module):
    """Shifts and scales each column, and clips: ``clip((x - mean) / std, -limit, limit)``.

    At the beginning mean is 0 and std 1. Who trains sets them: see
    :class:`manikin.learn.common.numerics.moments.Moments`.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, columns: int, limit: float = 10.0) -> None:
        super().__init__()
        self.limit = limit
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("std", torch.ones(columns))

    def hide(self, columns: Sequence[int]) -> None:
        """Make these columns 0 whatever they hold: an infinite spread."""
        self.std[list(columns)] = torch.inf

    def take(self, observation: Tensor) -> Tensor:
        """The observation itself; see :meth:`~manikin.policy.networks.pictures.NamedScaling.take`."""
        return observation

    def forward(self, values: Tensor) -> Tensor:
        return ((values - self.mean) / self.std).clamp(-self.limit, self.limit)


class Span(nn.Module):
    """Brings each column from between its least and its most to [-1, 1], and back.

    At the beginning it changes nothing. A column that never changes is only shifted.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))

    def fit(self, values: Tensor) -> None:
        """Take least and most of ``values`` (..., columns)."""
        rows = values.reshape(-1, values.shape[-1])
        low, high = rows.amin(0), rows.amax(0)
        half = (high - low) / 2
        self.shift.copy_((high + low) / 2)
        self.scale.copy_(torch.where(half > 1e-6, half, torch.ones_like(half)))

    def forward(self, values: Tensor) -> Tensor:
        return (values - self.shift) / self.scale

    def restore(self, values: Tensor) -> Tensor:
        """The inverse of calling."""
        return values * self.scale + self.shift


def value_at(tree: Mapping[str, Any], path: str) -> Tensor:
    """The tensor at ``group/name`` of an observation with names."""
    value: Any = tree
    for name in path.split("/"):
        value = value[name]
    found: Tensor = value
    return found
