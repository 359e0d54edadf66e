"""Mean and variance of everything seen so far, added batch by batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["Moments"]


class Moments:
    """Running mean and variance per column.

    Batches are joined exactly (Chan, Golub and LeVeque, 1979): after any split into batches, mean and variance are
    those of all rows together, to rounding. Sums are float64.

    Args:
        columns: of a row.
        device: where the rows are.
    """

    def __init__(self, columns: int, device: torch.device | str = "cpu") -> None:
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(columns, dtype=torch.float64, device=device)
        self.squares = torch.zeros(columns, dtype=torch.float64, device=device)  # sum of squared distances to the mean

    def begin(self, count: Tensor, mean: Tensor, std: Tensor) -> None:
        """As if so many rows had been seen: ``count`` (columns,), of which 0 is a column without any; ``mean`` and
        ``std`` (columns,) of them."""
        self.count = count.to(self.mean)
        self.mean = torch.where(self.count > 0, mean.to(self.mean), 0.0)
        self.squares = std.to(self.mean).square() * self.count

    def add(self, rows: Tensor) -> None:
        """Rows (..., columns)."""
        rows = rows.reshape(-1, rows.shape[-1]).to(torch.float64)
        n = len(rows)
        if n == 0:
            return
        mean = rows.mean(0)
        squares = (rows - mean).square().sum(0)
        total = self.count + n
        gap = mean - self.mean
        self.mean = self.mean + gap * (n / total)
        self.squares = self.squares + squares + gap.square() * (self.count * n / total)
        self.count = total

    @property
    def variance(self) -> Tensor:
        """(columns,) of all rows (divided by their number); 1 before the first."""
        return torch.where(self.count > 0, self.squares / self.count.clamp(min=1.0), torch.ones_like(self.squares))

    def write(self, scaling: Any) -> None:
        """Into a :class:`~manikin.policy.networks.scaling.Scaling`. A column that never changes keeps scale 1."""
        std = self.variance.sqrt()
        scaling.mean.copy_(self.mean)
        scaling.std.copy_(torch.where(std > 1e-6, std, torch.ones_like(std)))

    def state_dict(self) -> dict[str, Tensor]:
        return {"count": self.count, "mean": self.mean, "squares": self.squares}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name in ("count", "mean", "squares"):
            setattr(self, name, state[name].to(getattr(self, name)).clone())
