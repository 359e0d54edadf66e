"""Losses that are not finite stop a run."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from manikin.errors import DivergedError

__all__ = ["check_finite"]


def check_finite(where: str, losses: Mapping[str, Tensor | float]) -> dict[str, float]:
    """The losses as numbers.

    Raises:
        DivergedError: one is NaN or infinite; names it and ``where``.
    """
    numbers = {name: float(value) for name, value in losses.items()}
    bad = {name: value for name, value in numbers.items() if not torch.isfinite(torch.tensor(value))}
    if bad:
        said = ", ".join(f"{name} is {value}" for name, value in bad.items())
        raise DivergedError(f"{where}: {said}. Try a smaller learning rate")
    return numbers
