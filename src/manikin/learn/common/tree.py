"""Observations as trees: a tensor, or dictionaries of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from manikin.policy.networks.pictures import NUMBERS

__all__ = ["mapped", "numbers_of", "row_bytes", "rows_of"]


def mapped(function: Callable[..., Tensor], tree: Any, *others: Any) -> Any:
    """``function`` of each tensor of a tree, and of those at its place in ``others``."""
    if isinstance(tree, Mapping):
        return {name: mapped(function, value, *(other[name] for other in others)) for name, value in tree.items()}
    return function(tree, *others)


def rows_of(tree: Any) -> int:
    """How many rows its tensors have."""
    while isinstance(tree, Mapping):
        tree = next(iter(tree.values()))
    return len(tree)


def row_bytes(tree: Any) -> int:
    """Memory of a row of all its tensors [bytes]."""
    if isinstance(tree, Mapping):
        return sum(map(row_bytes, tree.values()))
    return int(tree[:1].numel() * tree.element_size())


def numbers_of(taken: Any) -> Tensor:
    """The numbers of what a network's ``scaling.take`` gave: all of a flat observation."""
    found: Tensor = taken[NUMBERS] if isinstance(taken, Mapping) else taken
    return found
