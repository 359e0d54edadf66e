"""Saved rows of several layouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manikin.sim.snapshot import Snapshot

__all__ = ["LayoutSnapshot"]


@dataclass
class LayoutSnapshot:
    """Saved rows of several layouts.

    Attributes:
        n: how many rows.
        pieces: which of them, and their snapshot; each piece is of one layout.
        layouts: number of each piece's layout.
    """

    n: int
    pieces: list[tuple[np.ndarray, Snapshot]]
    layouts: list[int]

    def __len__(self) -> int:
        return self.n

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """As of :class:`Snapshot`, the keys of the rows' episodes: seed and index (n,) int64."""
        joined = {name: np.zeros(self.n, np.int64) for name in ("seed", "index")}
        for name, values in joined.items():
            for rows, snapshot in self.pieces:
                values[rows] = snapshot.extra[name]
        return joined
