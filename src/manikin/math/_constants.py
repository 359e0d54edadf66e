"""Constants as tensors, made once per dtype and device.

A Python number in a torch expression is wrapped anew on every call, which costs more than the arithmetic at a batch
size of one; a ready tensor does not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["Constant"]


class Constant:
    """A number or nested tuple of numbers, handed out as a tensor that suits another tensor."""

    __slots__ = ("_made", "_value")

    def __init__(self, value: float | tuple[Any, ...]) -> None:
        self._value = value
        self._made: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def like(self, x: Tensor) -> Tensor:
        """With the dtype and device of ``x``. Shared: never write to it."""
        return self._get(x.dtype, x.device)

    def index_for(self, x: Tensor) -> Tensor:
        """As int64 on the device of ``x``. Shared: never write to it."""
        return self._get(torch.int64, x.device)

    def _get(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        found = self._made.get((dtype, device))
        if found is None:
            # A constant first met under inference mode must still serve a later call that records gradients.
            with torch.inference_mode(False):
                found = self._made[dtype, device] = torch.tensor(self._value, dtype=dtype, device=device)
        return found
