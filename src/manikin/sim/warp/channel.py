"""Columns of a Warp world's state as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.sim.world import STATE, Piece

__all__ = ["Rows", "WarpChannel", "merged"]

Rows = np.ndarray | Tensor | None
"""Row numbers (n,) with n values, a mask (N,) of bool with values for all N rows, or None for all rows."""


def merged(mask: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """``new`` (N, ...) where the mask (N,) is True or there is none, ``old`` elsewhere."""
    return new if mask is None else torch.where(mask.view(-1, *[1] * (old.dim() - 1)), new, old)


class _Columns(Protocol):
    """What a channel needs of its world, which is made of channels."""

    num_worlds: int
    device: torch.device
    version: int

    def flat(self, field: str) -> Tensor: ...

    def index(self, rows: Any) -> Tensor: ...

    def spread(self, value: Tensor, rows: Rows) -> tuple[Tensor | None, Tensor]: ...


class WarpChannel:
    """See :class:`manikin.sim.world.Channel`. One run of columns is a view; several are gathered when read."""

    def __init__(self, world: _Columns, pieces: Sequence[Piece], shape: tuple[int, ...], quat_at: int | None) -> None:
        self._world, self._pieces, self._quat_at, self._version = world, tuple(pieces), quat_at, -1
        self._sources = [world.flat(field)[:, a:b] for field, a, b in pieces]
        self._direct = len(self._sources) == 1 and quat_at is None and self._sources[0].dtype == torch.float32
        self._shape = shape
        self._value: Tensor

    def _gather(self, rows: Tensor | None) -> Tensor:
        parts = self._sources if rows is None else [s[rows] for s in self._sources]
        flat = torch.cat([p.float() for p in parts], 1)
        if self._quat_at is not None:
            quat = flat[:, self._quat_at : self._quat_at + 4]
            quat *= torch.where(quat[:, :1] < 0, -1.0, 1.0)
        return flat.reshape(len(flat), *self._shape)

    def all(self) -> Tensor:
        if self._direct:
            return self._sources[0].reshape(self._world.num_worlds, *self._shape)
        if self._version != self._world.version:
            self._value, self._version = self._gather(None), self._world.version
        return self._value

    def rows(self, rows: np.ndarray) -> Tensor:
        return self._gather(self._world.index(rows))

    def write(self, value: Tensor | np.ndarray, rows: Rows = None) -> None:
        if any(field not in STATE for field, _, _ in self._pieces):
            raise ConfigError(f"only state fields can be written, not {[p[0] for p in self._pieces]}")
        width = sum(s.shape[1] for s in self._sources)
        flat = torch.as_tensor(value, dtype=torch.float32, device=self._world.device).reshape(-1, width)
        mask, flat = self._world.spread(flat, rows)
        at = 0
        for source in self._sources:
            part = flat[:, at : at + source.shape[1]].to(source.dtype)
            source.copy_(merged(mask, part, source))
            at += source.shape[1]
        self._world.version += 1
