"""Where the base drives to before a place, from anywhere in an apartment."""

from __future__ import annotations

import functools
import math

import numpy as np
from torch import Tensor

from manikin.homes.free_space import CELL
from manikin.tasks.home.objects_at import places, way_to
from manikin.tasks.home.ways import stacked

__all__ = ["paths_to"]

_THERE = (0.06, 0.15)  # [m], [rad] from a stand it need not drive


def paths_to(layout: str, place: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """Ways from bases to stands before places of an apartment.

    Args:
        layout: name of the apartment.
        place: (n,) int64 numbers of the places.
        base: (n, 3) x, y [m] and yaw [rad] where they begin.

    Returns:
        (n, 16, 3) places of the bases one after the other, the last one repeated; (n,) [rad] how they face there.
    """
    return stacked([_way(layout, number, *one) for number, one in zip(place.tolist(), base.tolist(), strict=True)])


@functools.lru_cache(maxsize=4096)
def _way(layout: str, place: int, x: float, y: float, yaw: float) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] from a base to one of the stands before a place."""
    found = places(layout)
    base, stands = np.array([x, y, yaw]), found.stands[place]
    away = np.linalg.norm(stands[:, :2] - base[:2], axis=1)
    askew = np.abs((stands[:, 2] - yaw + math.pi) % (2 * math.pi) - math.pi)
    if ((away < _THERE[0]) & (askew < _THERE[1])).any():
        return base[None]
    cell = np.rint((base[:2] - found.space.origin) / CELL).astype(int)
    if not found.space.inside[tuple(np.clip(cell, 0, np.array(found.space.inside.shape) - 1))]:
        middles = found.space.origin + np.argwhere(found.space.inside) * CELL  # where the map has it, it was pushed
        x, y = middles[np.linalg.norm(middles - base[:2], axis=1).argmin()].tolist()
    return way_to(layout, place, x, y, yaw)
