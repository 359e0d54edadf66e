"""Where the base drives to before a place, from anywhere in an apartment."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from torch import Tensor

from manikin.homes import FreeSpace
from manikin.homes.free_space import CELL
from manikin.tasks.home.objects_at import places
from manikin.tasks.home.ways import quick_way

__all__ = ["paths_to"]

_THERE = (0.06, 0.15)  # [m], [rad] from a stand it need not drive
_CHOICE = 4  # stands that are tried, the nearest ones


def paths_to(layout: str, place: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """Ways from bases to stands before places of an apartment.

    Args:
        layout: name of the apartment.
        place: (n,) int64 numbers of the places.
        base: (n, 3) x, y [m] and yaw [rad] where they begin.

    Returns:
        (n, k, 3) places of the bases one after the other; the shorter ways end with NaN. (n,) [rad] how they face at
        the end.
    """
    ways = [_way(layout, number, *one) for number, one in zip(place.tolist(), base.tolist(), strict=True)]
    out = np.full((len(ways), max(map(len, ways)), 3), math.nan, np.float32)
    for row, way in zip(out, ways, strict=True):
        row[: len(way)] = way
    return torch.from_numpy(out), torch.tensor([float(way[-1, 2]) for way in ways])


@functools.lru_cache(maxsize=4096)
def _way(layout: str, place: int, x: float, y: float, yaw: float) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] from a base to one of the stands before a place."""
    found = places(layout)
    base, stands = np.array([x, y, yaw]), np.unique(found.stands[place].astype(float), axis=0)
    away = np.linalg.norm(stands[:, :2] - base[:2], axis=1)
    askew = np.abs((stands[:, 2] - yaw + math.pi) % (2 * math.pi) - math.pi)
    if ((away < _THERE[0]) & (askew < _THERE[1])).any():
        return base[None]
    inside = _inside(found.space, base[:2])
    far = np.array([found.space.ways(stand[:2])[tuple(_cell(found.space, inside))] for stand in stands])
    near = stands[np.argsort(far, kind="stable")[:_CHOICE]]
    return quick_way(found.space, np.array([*inside, yaw]), near)


def _cell(space: FreeSpace, point: np.ndarray) -> np.ndarray:
    cell = np.rint((point - space.origin) / CELL).astype(int)
    return np.clip(cell, 0, np.array(space.inside.shape) - 1)


def _inside(space: FreeSpace, point: np.ndarray) -> np.ndarray:
    """(2,) the point, or the nearest one at which the robot has room [m]."""
    if space.inside[tuple(_cell(space, point))]:
        return point
    middles = space.origin + np.argwhere(space.inside) * CELL
    return np.asarray(middles[np.linalg.norm(middles - point, axis=1).argmin()])
