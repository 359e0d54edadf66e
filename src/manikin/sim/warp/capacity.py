"""How much of a Warp world's room was needed, and what did not fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from manikin.spec.budget import FIXED, Shortage

__all__ = ["Capacity"]


class Capacity:
    """Counts on the device, without waiting for it.

    Args:
        sizes: of a :class:`manikin.spec.budget.Budget`.
        num_worlds: rows N.
        device: of the tensors.
        kinds: MuJoCo Warp's OverflowType.
    """

    def __init__(self, sizes: dict[str, int], num_worlds: int, device: torch.device, kinds: Any) -> None:
        self._sizes, self._kinds = sizes, kinds
        self._needed = torch.zeros(num_worlds, dtype=torch.int32, device=device)  # rows of constraints, at most
        self._pooled = torch.zeros(1, dtype=torch.int32, device=device)  # contacts or pairs of all rows, at most
        self._lost = torch.zeros_like(self._needed)  # kinds of what was dropped, as bits

    def mark(self, constraints: Tensor, overflow: Tensor) -> None:
        """Set the bit of rows of constraints (N,) that there is no room for in ``overflow`` (N, 1)."""
        overflow |= ((constraints > self._sizes["njmax"]) * int(self._kinds.NEFC))[:, None]

    def need(self, constraints: Tensor) -> None:
        """Rows of constraints (N,) that a substep took."""
        torch.maximum(self._needed, constraints, out=self._needed)

    def pool(self, pooled: Iterable[Tensor]) -> None:
        """Numbers (1,) of what all rows have together, after a substep."""
        for counter in pooled:
            torch.maximum(self._pooled, counter, out=self._pooled)

    def lose(self, bits: Tensor) -> None:
        """Bits (N,) of what was dropped in a step."""
        self._lost |= bits

    def usage(self) -> dict[str, int]:
        """The largest ``nconmax`` and ``njmax`` that were needed so far, whether or not there was room."""
        return {"nconmax": -(-int(self._pooled) // len(self._needed)), "njmax": int(self._needed.max())}

    def shortages(self) -> dict[str, Shortage]:
        """What was too little, by the names of a budget and of :data:`manikin.spec.budget.FIXED`."""
        needed, sizes, out = self.usage(), self._sizes, {}
        if needed["njmax"] > sizes["njmax"]:
            rows = torch.nonzero(self._needed > sizes["njmax"])[:, 0].tolist()
            out["njmax"] = Shortage(needed=needed["njmax"], room=sizes["njmax"], rows=tuple(rows))
        if needed["nconmax"] > sizes["nconmax"]:  # of the pool it is not known whose were dropped
            out["nconmax"] = Shortage(needed=needed["nconmax"], room=sizes["nconmax"])
        kinds = self._kinds  # of these Warp does not say how many there were
        for name, kind in (("njmax", kinds.NJMAX_NNZ), ("nccdmax", kinds.CCD), *((k, kinds[k.upper()]) for k in FIXED)):
            rows = torch.nonzero(self._lost & int(kind))[:, 0].tolist()
            if rows and name not in out:
                out[name] = Shortage(needed=None, room=sizes.get(name, 0), rows=tuple(rows))
        return out
