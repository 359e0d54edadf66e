"""Saved rows of several layouts."""

from __future__ import annotations

from collections.abc import Sequence
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

    def rows(self, index: np.ndarray) -> LayoutSnapshot:
        """Some of its rows, in this order."""
        place = np.full(self.n, -1)
        place[index] = np.arange(len(index))
        kept = [(place[rows] >= 0, rows, snapshot) for rows, snapshot in self.pieces]
        pieces = [(place[rows[some]], snapshot.rows(np.flatnonzero(some))) for some, rows, snapshot in kept]
        full = [k for k, (rows, _) in enumerate(pieces) if len(rows)]
        return LayoutSnapshot(len(index), [pieces[k] for k in full], [self.layouts[k] for k in full])

    @classmethod
    def joined(cls, parts: Sequence[LayoutSnapshot]) -> LayoutSnapshot:
        """The rows of several snapshots of such environments, in their order."""
        first = np.cumsum([0, *(part.n for part in parts)])
        pieces = [(rows + at, one) for at, part in zip(first, parts, strict=False) for rows, one in part.pieces]
        return cls(int(first[-1]), pieces, [layout for part in parts for layout in part.layouts])
