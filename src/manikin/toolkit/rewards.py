"""Terms of rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor

from manikin.toolkit.steps import ONE, ZERO, constant

__all__ = ["bonus", "closeness"]


@overload
def closeness(distance: Tensor, scale: float) -> Tensor: ...
@overload
def closeness(distance: Sequence[Tensor], scale: float) -> tuple[Tensor, ...]: ...
def closeness(distance: Tensor | Sequence[Tensor], scale: float) -> Tensor | tuple[Tensor, ...]:
    """1 - tanh(scale * distance): 1 at zero, falling to 0. Of several distances of one shape, one value each."""
    if isinstance(distance, Tensor):
        return ONE - torch.tanh(distance * constant(scale))
    return closeness(torch.stack(tuple(distance)), scale).unbind()


def bonus(terms: dict[str, Tensor], success: Tensor, total: float) -> dict[str, Tensor]:
    """Add the term ``success``: what is missing to ``total`` in rows that succeed, 0 elsewhere."""
    reached, *others = terms.values()
    for term in (*others[3:], *others[:3]):  # as torch adds up a row of so many numbers, without making one
        reached = reached + term
    return {**terms, "success": torch.where(success, constant(total) - reached, ZERO)}
