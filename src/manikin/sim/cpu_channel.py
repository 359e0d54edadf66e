"""Columns of a CPU world's state as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from manikin.errors import ConfigError
from manikin.sim.world import STATE, Piece

__all__ = ["CpuChannel"]


def _evenly(pieces: Sequence[Piece]) -> list[tuple[str, slice]]:
    """The columns of the pieces, in order, as few evenly spaced runs: copying one costs as much as copying many."""
    runs: list[tuple[str, slice]] = []
    for name, start, stop in pieces:
        for column in range(start, stop):
            field, run = runs[-1] if runs else ("", slice(0, 0, 1))
            step = column - (run.stop - 1)
            one = run.stop - run.start == 1
            if field == name and step > 0 and (one or step == run.step):
                runs[-1] = (field, slice(run.start, column + 1, step))
            else:
                runs.append((name, slice(column, column + 1, 1)))
    return runs


class CpuChannel:
    """See :class:`manikin.sim.world.Channel`; ``world`` is a :class:`manikin.sim.cpu.CpuWorld`."""

    def __init__(self, world: Any, pieces: Sequence[Piece], shape: tuple[int, ...], quat_at: int | None) -> None:
        self._world, self._pieces, self._shape, self._version = world, tuple(pieces), shape, -1
        self._quat_at = quat_at
        self._sources = [world.columns(field, columns) for field, columns in _evenly(pieces)]
        self._foreign = [field for field, _, _ in pieces if field not in STATE]  # which cannot be written
        self._allocate()

    def _allocate(self) -> None:
        n, width = self._world.num_worlds, sum(b - a for _, a, b in self._pieces)
        flat = np.zeros((n, width), np.float32)
        self._tensor = torch.from_numpy(flat).view(n, *self._shape)
        self._copies, at = [], 0
        for source in self._sources:
            self._copies.append((flat[:, at : at + source.shape[1]], source))
            at += source.shape[1]
        self._flat = flat
        self._quat = None if self._quat_at is None else flat[:, self._quat_at : self._quat_at + 4]

    def all(self) -> torch.Tensor:
        if self._version != self._world.version:
            if self._world.poison and self._version >= 0:
                self._flat.fill(np.nan)  # whoever kept the old tensor sees it
                self._allocate()
            self._world.ready()
            for target, source in self._copies:
                target[...] = source
            if self._quat is not None:
                turned = self._quat[:, :1] < 0
                if np.count_nonzero(turned):
                    np.negative(self._quat, out=self._quat, where=turned)
            self._version = self._world.version
        return self._tensor

    def rows(self, rows: np.ndarray) -> torch.Tensor:
        self._world.ready()
        parts = [source[rows] for source in self._sources]
        flat = (parts[0] if len(parts) == 1 else np.concatenate(parts, 1)).astype(np.float32)
        if self._quat_at is not None:
            quat = flat[:, self._quat_at : self._quat_at + 4]
            np.negative(quat, out=quat, where=quat[:, :1] < 0)
        return torch.from_numpy(flat).view(len(rows), *self._shape)

    def write(self, value: torch.Tensor | np.ndarray, rows: np.ndarray | torch.Tensor | None = None) -> None:
        if self._foreign:
            raise ConfigError(f"only state fields can be written, not {self._foreign}")
        flat = (value.numpy() if isinstance(value, torch.Tensor) else value).reshape(-1, self._flat.shape[1])
        if rows is None and len(self._sources) == 1:
            self._sources[0][...] = flat
            self._world.version += 1
            return
        at = 0
        for source in self._sources:
            part = flat[:, at : at + source.shape[1]]
            if rows is None:
                source[...] = part
            else:
                source[rows] = part
            at += source.shape[1]
        self._world.version += 1
