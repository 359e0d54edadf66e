"""Recorded episodes: writing, reading, playing again, converting, and training from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manikin.data.dataset import Dataset, Normalizer

__all__ = ["Dataset", "Normalizer"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from manikin.data import dataset  # late: it brings torch, which reading alone does not need

        return getattr(dataset, name)
    raise AttributeError(f"module 'manikin.data' has no attribute {name!r}; it has: {', '.join(__all__)}")
